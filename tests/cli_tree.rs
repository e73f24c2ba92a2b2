// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel trees on the command line: a tiny tree in kernel style, everything that can be wrong with one, and a user's
//! story on Debian's linux-source-6.1 where that is installed.
#![cfg(feature = "tree")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/dies12-truth/trace.dat");
const MINI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernel-tree/tests/mini");

/// A folder with a cache of its own, and a copy of the tiny tree that a test may change.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        copy(Path::new(MINI), &desk.path("mini"));
        desk
    }

    /// The tiny tree with `code` at the start of select_idle_sibling().
    fn with(code: &str) -> Self {
        let desk = Self::new();
        desk.edit("mini/kernel/sched/fair.c", "/* PLACE FOR CODE */", code);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("a file");
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(self.path(file), text.replacen(from, to, 1)).expect("written");
    }

    /// A patch that makes `to` of `from` in `file` of the tree `tree`.
    fn patch(&self, name: &str, tree: &Path, changes: &[(&str, &str, &str)]) -> String {
        let (old, new) = (self.path("old"), self.path("new"));
        for &(file, from, to) in changes {
            let text = fs::read_to_string(tree.join(file)).expect("a file of the tree");
            for side in [&old, &new] {
                let path = side.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                if !path.exists() {
                    fs::write(path, &text).expect("written");
                }
            }
            self.edit(&format!("new/{file}"), from, to);
        }
        let mut git = Command::new("git");
        git.current_dir(self.0.path()).args(["diff", "--no-index", "--no-prefix", "old", "new"]);
        let diff = String::from_utf8(git.output().expect("git").stdout).expect("UTF-8");
        assert!(diff.contains("@@"), "no difference: {diff}");
        let diff = diff.replace(" old/", " a/").replace(" new/", " b/");
        fs::write(self.path(name), diff).expect("written");
        self.name(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
        command.env("XDG_CACHE_HOME", self.path("cache")).env_remove("CC").stdin(Stdio::null());
        command.current_dir(self.0.path()).args(args).output().expect("the binary runs")
    }

    /// Expects exit code 0 and nothing on stderr.
    fn fine(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), text.as_str()), (Some(0), ""), "{args:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Replays with `tree` as the patched one, and expects one message, nothing on stdout, exit code 2, nothing left.
    fn trouble(&self, tree: &str, more: &[&str]) -> String {
        let args = ["replay", TRACE, "--baseline", "v6.1", "--patched", tree];
        let output = self.run(&[&args, more].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{tree}: {text}");
        assert!(output.stdout.is_empty() && text.lines().count() == 1, "{tree}: {text}");
        let left = fs::read_dir(self.path("cache/sisdiff/trees")).into_iter().flatten().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("build-")), "{left:?}");
        text
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn contains(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in {text}"));
}

#[test]
fn a_tree_is_a_spec_wherever_one_is() {
    let desk = Desk::new();
    let tree = format!("tree:{}", desk.name("mini"));
    let text = desk.fine(&["tree", "check", &tree]);
    contains(&text, &["functions", "SIS_SEARCH", "build"]);
    contains(&desk.fine(&["tree", "build", &desk.name("mini")]), &["was built before"]);
    contains(&desk.fine(&["list"]), &["kernel trees built", &tree]);

    let patch = desk.patch(
        "mine.patch",
        Path::new(MINI),
        &[
            (
                "kernel/sched/fair.c",
                "if (prev != target && available_idle_cpu(prev))",
                "if (sched_feat(SIS_MINE) && prev != target)",
            ),
            ("kernel/sched/features.h", "SCHED_FEAT(SIS_SEARCH", "SCHED_FEAT(SIS_MINE, true)\nSCHED_FEAT(SIS_SEARCH"),
        ],
    );
    let patched = format!("{tree}+{patch}");
    let lcov = desk.name("lines.info");
    let text = desk.fine(&[
        "replay",
        TRACE,
        "--baseline",
        &tree,
        "--patched",
        &patched,
        "--recorded",
        &tree,
        "--coverage",
        &lcov,
    ]);
    contains(&text, &["stands for it, as given", "another CPU", "sisdiff explain"]);
    let lcov = fs::read_to_string(lcov).expect("written");
    contains(&lcov, &["SF:", "kernel/sched/fair.c", "FN:", ",select_idle_sibling", "end_of_record"]);
    assert!(lcov.lines().any(|line| line.starts_with("DA:") && !line.ends_with(",0")), "{lcov}");

    // The command that the report offers shows the line of the change.
    let offer = text.lines().skip_while(|line| !line.contains("sisdiff explain")).collect::<Vec<_>>().join(" ");
    let number = offer.split("--wakeup ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a number");
    let text = desk.fine(&[
        "explain",
        TRACE,
        "--baseline",
        &tree,
        "--patched",
        &patched,
        "--wakeup",
        number,
        "--width",
        "160",
    ]);
    contains(&text, &["fair.c:", "return prev;"]);

    let pair = format!("{tree},{patched}");
    let output =
        desk.run(&["fuzz", "--pair", &pair, "--cases", "200", "--expect-equal", "--first", "-q", "-o", "found"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let case = fs::read_dir(desk.path("found")).expect("cases").next().expect("a case").expect("an entry").path();
    let text = desk.run(&["repro", &case.display().to_string(), "--explain", "--width", "160"]);
    contains(&String::from_utf8_lossy(&text.stdout), &["fair.c:", &tree]);

    let switched = format!("{patched}:NO_SIS_MINE");
    contains(&desk.fine(&["replay", TRACE, "--baseline", &tree, "--patched", &switched]), &["another CPU"]);
}

#[test]
fn what_is_no_tree_is_said_in_a_line() {
    let desk = Desk::new();
    let tree = format!("tree:{}", desk.name("mini"));
    contains(&desk.trouble("tree:/no/such/tree", &[]), &["/no/such/tree", "no such file"]);
    contains(&desk.trouble(&format!("{tree}@v1"), &[]), &["v1"]);
    contains(&desk.trouble(&format!("{tree}+/no/such.patch"), &[]), &["/no/such.patch"]);
    contains(&desk.trouble(&format!("{tree}:SIS_SERCH"), &[]), &["did you mean \"SIS_SEARCH\""]);
    let patch = desk.patch("mine.patch", Path::new(MINI), &[("kernel/sched/fair.c", "return target;", "return prev;")]);
    desk.edit("mini/kernel/sched/fair.c", "return target;", "return target + 0;");
    contains(&desk.trouble(&format!("{tree}+{patch}"), &[]), &["does not apply", "kernel/sched/fair.c", "hunk 1"]);
    fs::write(desk.path("mini/Makefile"), "VERSION = 4\nPATCHLEVEL = 8\nSUBLEVEL = 17\n").expect("written");
    contains(&desk.trouble(&tree, &[]), &["4.8.17", "4.9"]);
    fs::remove_dir_all(desk.path("mini/kernel/sched")).expect("removed");
    contains(&desk.trouble(&tree, &[]), &["no kernel tree", "kernel/sched/fair.c"]);
    contains(&desk.trouble(&tree, &["--config", "/no/config"]), &["--config /no/config"]);
}

#[test]
fn code_that_does_not_compile_is_named_with_its_line() {
    let desk = Desk::with("int x = ;");
    contains(
        &desk.trouble(&format!("tree:{}", desk.name("mini")), &[]),
        &["kernel/sched/fair.c:", "expected expression"],
    );
    let desk = Desk::with("target = not_defined_anywhere(p);");
    let tree = format!("tree:{}", desk.name("mini"));
    contains(&desk.trouble(&tree, &[]), &["not_defined_anywhere", "select_idle_sibling", "--shim"]);
    fs::write(desk.path("extra.h"), "#define not_defined_anywhere(p) ((p)->recent_used_cpu)\n").expect("written");
    desk.fine(&["replay", TRACE, "--baseline", "v6.1", "--patched", &tree, "--shim", "extra.h"]);
}

#[test]
fn faults_of_the_code_name_the_wakeup_and_the_line() {
    let null = "{ struct sched_domain *none = NULL; if (target > 3) return none->level; }";
    for (code, parts) in [
        (null, &["Segmentation fault", "none->level", "in select_idle_sibling()", "at decision "][..]),
        ("for (;;) prev++;", &["a loop without end", "fair.c:", "wakeup of "]),
        ("*(int *)8192 = target;", &["Segmentation fault", "0x2000"]),
        ("BUG_ON(target > 3);", &["stopped at line", "fair.c:"]),
    ] {
        let desk = Desk::with(code);
        let tree = format!("tree:{}", desk.name("mini"));
        contains(&desk.trouble(&tree, &[]), parts);
        contains(&desk.trouble(&tree, &["--isolation", "process"]), parts);
    }
}

#[test]
fn a_write_into_the_blue_leaves_a_message() {
    let desk = Desk::with("{ char *at = (char *)p; int i; for (i = 0; i < 100000; i++) at[i] = 0x5a; }");
    let tree = format!("tree:{}", desk.name("mini"));
    // What runs over the end of something of the tree's meets pages that nobody may touch, before anything of sisdiff's.
    contains(&desk.trouble(&tree, &["--isolation", "in-process"]), &["Segmentation fault", "fair.c:", "at decision "]);
    contains(&desk.trouble(&tree, &["--isolation", "process"]), &["at decision "]);
    contains(&desk.trouble(&tree, &["--sanitize"]), &["AddressSanitizer", "kernel/sched/fair.c:"]);
}

#[test]
fn a_run_queue_that_is_not_there_is_reported() {
    let desk = Desk::with("if (cpu_rq(nr_cpu_ids + target)->nr_running) return prev;");
    let text = desk.fine(&["replay", TRACE, "--baseline", "v6.1", "--patched", &format!("tree:{}", desk.name("mini"))]);
    contains(&text.replace("\n ", ""), &["beyond nr_cpu_ids", "the first in #"]);
    let tree = format!("tree:{}", desk.name("mini"));
    let failing = ["replay", TRACE, "--baseline", "v6.1", "--patched", &tree, "--fail-on", "wrong", "--quiet"];
    assert_eq!(desk.run(&failing).status.code(), Some(1), "CI has to hear of it");
}

/// Debian's linux-source-6.1, unpacked or not.
fn debian() -> Option<PathBuf> {
    let unpacked = std::env::var_os("SISDIFF_TREES").map(|trees| PathBuf::from(trees).join("linux-source-6.1"));
    let paths = ["/usr/src/linux-source-6.1.tar.xz", "/usr/src/linux-source-6.1"].map(PathBuf::from);
    paths.into_iter().chain(unpacked).find(|path| path.exists())
}

#[test]
fn the_users_own_patch_on_debians_source() {
    let Some(source) = debian() else {
        println!("no linux-source-6.1 here: the story of a user's patch is not played");
        return;
    };
    let desk = Desk::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat");
    let tree = format!("tree:{}", source.display());
    let start = Instant::now();
    contains(&desk.fine(&["replay", trace, "--baseline", "v6.1", "--patched", &tree]), &["no differences"]);
    println!("{tree}: the first answer after {:?}", start.elapsed());
    let start = Instant::now();
    desk.fine(&["replay", trace, "--baseline", "v6.1", "--patched", &tree]);
    println!("{tree}: the second after {:?}", start.elapsed());

    // One condition through a new helper, behind a new feature.
    let unpacked = fs::read_dir(desk.path("cache/sisdiff/sources")).ok().and_then(|mut entries| entries.next());
    let files = unpacked.map_or(source.clone(), |entry| entry.expect("an entry").path());
    let idle = "(available_idle_cpu(prev) || sched_idle_cpu(prev))";
    let head = "static int select_idle_sibling(struct task_struct *p, int prev, int target)\n";
    let helper = "static inline bool prev_will_do(int prev)\n{\n\tif (sched_feat(SIS_SHUN_PREV))\n\t\treturn false;\n\treturn available_idle_cpu(prev) || sched_idle_cpu(prev);\n}\n\n";
    let patch = desk.patch(
        "mine.patch",
        &files,
        &[
            ("kernel/sched/fair.c", idle, "prev_will_do(prev)"),
            ("kernel/sched/fair.c", head, &format!("{helper}{head}")),
            ("kernel/sched/features.h", "SCHED_FEAT(SIS_PROP", "SCHED_FEAT(SIS_SHUN_PREV, true)\nSCHED_FEAT(SIS_PROP"),
        ],
    );
    let patched = format!("{tree}+{patch}");
    let start = Instant::now();
    let text = desk.fine(&["replay", trace, "--baseline", &tree, "--patched", &patched]);
    println!("with the patch: {:?}", start.elapsed());
    contains(&text, &["another CPU", "Prev -> "]);
    let number = text.split("--wakeup ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("an example");
    let args = ["explain", trace, "--baseline", &tree, "--patched", &patched, "--width", "180", "--wakeup", number];
    contains(&desk.fine(&args), &["prev_will_do = 0", "return false;", "return prev;"]);
    let off = format!("{patched}:NO_SIS_SHUN_PREV");
    contains(&desk.fine(&["replay", trace, "--baseline", &tree, "--patched", &off]), &["no differences"]);

    let pair = format!("{tree},{patched}");
    let args = ["fuzz", "--pair", &pair, "--expect-equal", "--first", "--cases", "500", "-q", "-o", "found"];
    assert_eq!(desk.run(&args).status.code(), Some(1));
    let case = fs::read_dir(desk.path("found")).expect("cases").next().expect("a case").expect("an entry").path();
    let text = fs::read_to_string(&case).expect("a case");
    let list = text.split("events = [").nth(1).and_then(|rest| rest.split("\n[").next()).expect("events");
    let events = list.matches('"').count() / 2;
    println!("fuzz: a case of {events} events");
    assert!((1..=20).contains(&events), "{text}");
    let repro = desk.run(&["repro", &case.display().to_string(), "--explain", "--width", "180"]);
    contains(&String::from_utf8_lossy(&repro.stdout), &["prev_will_do"]);
}
