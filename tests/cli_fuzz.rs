// SPDX-License-Identifier: GPL-2.0-or-later
//! `fuzz`, `repro` and `bugs` from outside: what they print and write, and their exit codes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sisdiff::oracle::{Models, Options, attempt};
use sisdiff::scenario::Case;

fn run_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(args)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("CLICOLOR")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Exit code, stdout, stderr.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = run_in(folder().path(), args);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const BUG: &[&str] = &["fuzz", "--pair", "v5.11,v5.11+recent-used", "--cases", "400"];

#[test]
fn the_bug_of_patch_3_is_found_minimised_and_reproduced() {
    let folder = folder();
    let output = run_in(folder.path(), BUG);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}\n{err}");
    for part in ["cases      400", "returns taken", "never", "CPU outside cpus_ptr (RecentUsed)", "ae2ad293d6be"] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
    assert_eq!(err.lines().count(), 1, "one line for each new finding: {err}");
    assert!(err.starts_with("case ") && err.contains("affinity: v5.11+recent-used"), "{err}");

    let file = folder.path().join("sisdiff-findings/affinity-RecentUsed-CPU-outside-cpus_ptr.toml");
    let case = Case::parse(&fs::read_to_string(&file).expect("a case file")).expect("a case");
    let machine = case.machine.present().weight();
    assert!(machine <= 4 && case.decisions() <= 2, "{machine} CPUs, {} wakeups\n{case:?}", case.decisions());

    let file = file.display().to_string();
    let (code, out, err) = run(&["repro", &file, "--explain"]);
    assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
    for part in ["affinity: v5.11+recent-used", "outside of cpus_ptr", "cpumask_test_cpu(", "  (RecentUsed)"] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
    let (code, _, _) = run(&["repro", &file, "--allow-known"]);
    assert_eq!(code, Some(0), "a known bug that is allowed is no finding");
    let (code, out, _) = run(&["repro", &file, "--pair", "v5.11,v5.11+recent-used+fix-cpus-ptr"]);
    assert_eq!(code, Some(0), "the fix mends it: {out}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_files() {
    let folders = [folder(), folder()];
    let runs = folders.each_ref().map(|folder| run_in(folder.path(), BUG));
    assert_eq!(text(&runs[0].stdout), text(&runs[1].stdout));
    assert_eq!(text(&runs[0].stderr), text(&runs[1].stderr));
    let files = folders.each_ref().map(|folder| {
        let entries = fs::read_dir(folder.path().join("sisdiff-findings")).expect("the folder");
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            (path.file_name().expect("a name").to_owned(), fs::read(&path).expect("a file"))
        };
        entries.map(read).collect::<std::collections::BTreeMap<_, _>>()
    });
    assert_eq!(files[0], files[1]);
}

#[test]
fn nothing_found_is_success_and_writes_nothing() {
    let folder = folder();
    let args = ["fuzz", "--pair", "v6.1,v6.12", "--cases", "60", "--seed", "3"];
    let output = run_in(folder.path(), &args);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("findings\n  none"), "{}", text(&output.stdout));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn expected_equality_and_the_first_finding_only() {
    let (code, out, err) = run(&["fuzz", "--pair", "v5.11,v6.1", "--cases", "400", "--expect-equal", "--first"]);
    assert_eq!(code, Some(1), "{out}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(out.contains("difference: v5.11 against v6.1"), "{out}");
}

#[test]
fn time_ends_a_run() {
    let start = std::time::Instant::now();
    let (code, out, _) = run(&["fuzz", "--pair", "v5.11", "--time", "1", "--quiet"]);
    // How many cases fit into a second is the machine's affair, and so is whether a known oddity of the kernel turns up.
    assert!(matches!(code, Some(0 | 1)), "{code:?} {out}");
    assert!((1..30).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[test]
fn bytes_are_cases_and_come_out_as_files() {
    let folder = folder();
    // The first in which the two differ.
    let pair = ["v5.11", "v6.1"].map(str::to_owned);
    let equal = Options { allow_known: true, expect_equal: true, ..Options::default() };
    let differs = |n: &u64| attempt(&sisdiff::fuzz_loop::case(1, *n), &pair, &Models, equal).is_err();
    let number = (0..100).find(differs).expect("they differ soon");
    fs::write(folder.path().join("crash"), sisdiff::fuzz_loop::dna(1, number)).expect("written");
    let output = run_in(folder.path(), &["repro", "crash", "--pair", "v5.11,v6.1", "-o", "case.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = fs::read_to_string(folder.path().join("case.toml")).expect("written");
    let case = Case::parse(&written).expect("a case");
    assert_eq!(case.pair, ["v5.11", "v6.1"]);
    assert_eq!(case.events, sisdiff::fuzz_loop::case(1, number).events);

    // The difference, as small as it gets, as a file on stdout.
    let output = run_in(folder.path(), &["repro", "case.toml", "--minimize", "-o", "-"]);
    let small = Case::parse(&text(&output.stdout)).expect("a case");
    assert!(small.events.len() <= case.events.len() && small.note.starts_with("difference: "), "{small:?}");

    let mut child = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["repro", "-", "--minimize"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(written.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(text(&output.stdout).contains("case file\nversion = 1"), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_played_is_told() {
    let folder = folder();
    let bad = folder.path().join("bad.toml");
    fs::write(&bad, "version = 1\n[machine]\nllcs = [\"node0: 0 0\"]\n").expect("written");
    let bad = bad.display().to_string();
    for (args, expected) in [
        (vec!["repro", "no-such-file"], "no-such-file: cannot be read"),
        (vec!["repro", &bad], "CPU 0 is in two cores"),
        (vec!["repro", "/dev/zero"], "/dev/zero: larger than"),
        (vec!["repro", &bad, "-o", &bad], "would overwrite"),
        (vec!["fuzz", "--pair", "v5.12"], "did you mean"),
        (vec!["fuzz", "--pair", "tree:x"], "x: no such file"),
        (vec!["fuzz", "--time", "soon"], "expected seconds"),
        (vec!["fuzz", "--cases", "0"], "0"),
    ] {
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}");
        assert!(err.contains(expected) && !err.contains("panicked"), "{args:?}: {err}");
    }
}

#[test]
fn the_table_of_known_bugs_names_each_fix() {
    let (code, out, err) = run(&["bugs"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for bug in &sisdiff::oracle::KNOWN {
        assert!(out.contains(bug.fix), "{}", bug.fix);
    }
}

#[test]
fn help_has_examples_and_fits() {
    for command in ["fuzz", "repro", "bugs"] {
        let (code, out, _) = run(&[command, "--help"]);
        assert_eq!(code, Some(0));
        assert!(out.contains("Examples:"), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    }
}
