// SPDX-License-Identifier: GPL-2.0-or-later
//! The gate from outside: a new user's story, everything that can be wrong, and being killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder with the recordings `a` and `b`.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a temporary directory"));
        desk.recording("smp4-idle-light", "a");
        desk.recording("dies12-truth", "b");
        desk
    }

    /// With a gate that is green.
    fn green() -> Self {
        let desk = Self::new();
        desk.runs(0, &["gate", "init", "a/trace.dat", "b/trace.dat"]);
        desk.runs(1, &["gate", "check"]);
        desk.runs(0, &["gate", "accept"]);
        desk
    }

    fn recording(&self, from: &str, to: &str) {
        fs::create_dir(self.path(to)).expect("made");
        for file in ["trace.dat", "topology.tar.gz"] {
            let from = Path::new(ROOT).join("traces").join(from).join(file);
            fs::copy(from, self.path(to).join(file)).expect("copied");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no {from:?}");
        self.write(name, &text.replacen(from, to, 1));
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("XDG_CACHE_HOME", self.path("cache"));
        command.stdin(Stdio::null()).current_dir(self.0.path()).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary runs")
    }

    /// Expects that exit code, and gives stdout.
    fn runs(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{out}\n{err}");
        assert_eq!(err, "", "{args:?}");
        out
    }

    /// Expects exit code 2 and gives what is on both, as one line.
    fn trouble(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{said}");
        assert!(!said.contains("panicked"), "{said}");
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The files of the folder of snapshots.
    fn snapshots(&self) -> BTreeMap<String, String> {
        let list = fs::read_dir(self.path("snapshots")).expect("snapshots");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        list.flatten()
            .map(|entry| (name(entry), String::new()))
            .map(|(name, _)| (name.clone(), self.read(&format!("snapshots/{name}"))))
            .collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const A: &str = "snapshots/a__trace.dat@patch.snap";
const B: &str = "snapshots/b__trace.dat@patch.snap";

#[test]
fn a_new_users_story() {
    let desk = Desk::new();
    // Three commands make a gate.
    let text = desk.runs(0, &["gate", "init", "a/trace.dat", "b/trace.dat"]);
    assert!(text.contains("sisdiff gate check") && text.contains("sisdiff gate accept"), "{text}");
    let text = desk.runs(1, &["gate", "check"]);
    assert!(text.contains("2 replays: 2 new") && text.contains("sisdiff gate accept"), "{text}");
    assert!(desk.path(&format!("{A}.new")).exists() && !desk.path(A).exists());
    let text = desk.runs(0, &["gate", "accept"]);
    assert_eq!(text, "accepted  a/trace.dat with patch\naccepted  b/trace.dat with patch\n");
    let text = desk.runs(0, &["gate", "check"]);
    assert!(text.contains("2 replays: 2 unchanged") && text.lines().count() == 2, "{text}");
    assert_eq!(desk.snapshots().len(), 2, "nothing waits");

    // A change of the patched spec turns it red, with a diff that can be read.
    let accepted = desk.snapshots();
    desk.edit("gate.toml", "patched = \"v5.11+mel-v2\"", "patched = \"v5.11+recent-used\"");
    let red = desk.runs(1, &["gate", "check"]);
    for expected in [
        "2 replays: 2 changed",
        "changed: a/trace.dat with patch",
        "patched  was v5.11+mel-v2, is v5.11+recent-used",
        "-patched: v5.11+mel-v2",
        "+patched: v5.11+recent-used",
        "-  placements.patched        sha256:",
        "   placements.baseline       sha256:",
        "sisdiff replay a/trace.dat --baseline v5.11+mel-v2 --patched v5.11+recent-used",
        "sisdiff gate review",
    ] {
        assert!(red.contains(expected), "no {expected:?} in\n{red}");
    }
    assert!(!red.contains('\u{1b}'), "colour only on a terminal");
    let waiting = desk.snapshots();
    assert_eq!(waiting.len(), 4);
    assert!(accepted.iter().all(|(name, text)| waiting[name] == *text), "the snapshots are as they were");

    // One is accepted, then the rest; green again.
    assert_eq!(desk.runs(0, &["gate", "accept", "--only", "a/*"]), "accepted  a/trace.dat with patch\n");
    let text = desk.runs(1, &["gate", "check"]);
    assert!(text.contains("2 replays: 1 unchanged, 1 changed"), "{text}");
    desk.runs(0, &["gate", "accept"]);
    assert!(desk.runs(0, &["gate", "check"]).contains("2 unchanged"));
    assert!(desk.runs(0, &["gate", "accept"]).contains("nothing waits"));
}

#[test]
fn our_own_gate_is_green() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    let output = command.current_dir(ROOT).args(["gate", "check", "--no-new"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "see sisdiff gate review\n{}", text_of(&output));
}

#[test]
fn the_readme_makes_a_gate_in_three_commands() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README.md");
    let commands: Vec<&str> = readme
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.starts_with("sisdiff gate init"))
        .expect("a block with the three")
        .lines()
        .map(|line| line.split('#').next().unwrap_or(line).trim())
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let desk = Desk::new();
    std::os::unix::fs::symlink(Path::new(ROOT).join("traces"), desk.path("traces")).expect("linked");
    for (command, code) in commands.iter().zip([0, 1, 0]) {
        let args: Vec<&str> = command.split_whitespace().skip(1).collect();
        desk.runs(code, &args);
    }
    assert!(desk.runs(0, &["gate", "check"]).contains("2 replays: 2 unchanged"));
}

#[test]
fn a_snapshot_that_waits_goes_when_its_reason_does() {
    let desk = Desk::green();
    desk.edit("gate.toml", "patched = \"v5.11+mel-v2\"", "patched = \"v5.11+recent-used\"");
    desk.runs(1, &["gate", "check"]);
    assert_eq!(desk.snapshots().len(), 4);
    desk.edit("gate.toml", "patched = \"v5.11+recent-used\"", "patched = \"v5.11+mel-v2\"");
    desk.runs(0, &["gate", "check"]);
    assert_eq!(desk.snapshots().len(), 2);
    desk.edit("gate.toml", "patched = \"v5.11+mel-v2\"", "patched = \"v5.11+recent-used\"");
    desk.runs(1, &["gate", "check", "--no-new"]);
    assert_eq!(desk.snapshots().len(), 2, "--no-new leaves nothing");
}

#[test]
fn what_is_missing_or_changed_is_told_apart() {
    let desk = Desk::green();
    let check = || desk.trouble(&["gate", "check"]);

    // A recording that is named and not there.
    fs::rename(desk.path("a"), desk.path("elsewhere")).expect("moved");
    let text = check();
    assert!(text.contains("a/trace.dat: missing: gate.toml names it; restore it"), "{text}");
    assert!(text.contains("1 replay: 1 unchanged"), "the other one is checked all the same: {text}");
    // The same where a pattern means it: its snapshot tells.
    desk.edit("gate.toml", "    \"a/trace.dat\",\n    \"b/trace.dat\",", "    \"[ab]/trace.dat\",");
    let text = check();
    assert!(text.contains(&format!("a/trace.dat: missing: {A} is of it; restore it")), "{text}");
    fs::rename(desk.path("elsewhere"), desk.path("a")).expect("moved");
    desk.runs(0, &["gate", "check"]);

    // Another recording of the same name.
    let old = fs::read(desk.path("a/trace.dat")).expect("read");
    fs::copy(desk.path("b/trace.dat"), desk.path("a/trace.dat")).expect("copied");
    fs::copy(desk.path("b/topology.tar.gz"), desk.path("a/topology.tar.gz")).expect("copied");
    let text = check();
    assert!(text.contains("a/trace.dat: is another recording than that of its snapshot: its sha256 is "), "{text}");
    desk.runs(0, &["gate", "accept", "--only", "a/*"]);
    desk.runs(0, &["gate", "check"]);
    assert_ne!(fs::read(desk.path("a/trace.dat")).expect("read"), old);

    // A pattern that matches nothing.
    desk.edit("gate.toml", "\"[ab]/trace.dat\"", "\"[ab]/trace.dat\", \"c*/trace.dat\"");
    let text = check();
    assert!(text.contains("gate.toml: traces: \"c*/trace.dat\" matches no file"), "{text}");
}

#[test]
fn what_is_wrong_with_snapshots_is_told_apart() {
    let desk = Desk::green();
    let check = || desk.trouble(&["gate", "check"]);
    let good = desk.read(A);

    desk.write(A, &good.replace("sisdiff.gate/1", "sisdiff.gate/9"));
    let text = check();
    assert!(text.contains(&format!("{A}: has the format sisdiff.gate/9, and this sisdiff reads and writes")), "{text}");

    desk.write(A, &good.replace("exits  ", "<<<<<<< "));
    let text = check();
    assert!(text.contains(&format!("{A}: line ")) && text.contains("no section \"<<<<<<<\""), "{text}");

    desk.write(A, "---\nsource: tests/replay.rs\n---\n");
    assert!(check().contains("is no snapshot of a gate"));
    fs::remove_file(desk.path(A)).expect("removed");
    fs::create_dir(desk.path(A)).expect("made");
    assert!(check().contains(&format!("{A}: cannot be read")));
    fs::remove_dir(desk.path(A)).expect("removed");

    // Each of them is mended by accepting what was written beside it.
    desk.write(A, "nothing");
    check();
    desk.runs(0, &["gate", "accept"]);
    desk.runs(0, &["gate", "check"]);
    assert_eq!(desk.read(A), good);

    // A half of what waits is not accepted.
    desk.write(&format!("{A}.new"), good.trim_end());
    let text = desk.trouble(&["gate", "accept"]);
    assert!(text.contains(&format!("{A}.new: line ")) && text.contains("sisdiff gate check"), "{text}");
    desk.runs(0, &["gate", "check"]);

    // Snapshots of what is not checked any more.
    desk.edit("gate.toml", "    \"b/trace.dat\",\n", "");
    let text = check();
    assert!(text.contains(&format!("{B}: is of b/trace.dat, which gate.toml does not mean")), "{text}");
    desk.edit("gate.toml", "[pair.patch]", "[pair.other]");
    let text = check();
    assert!(text.contains(&format!("{B}: is of the pair \"patch\", which gate.toml does not have")), "{text}");
    let text = desk.runs(0, &["gate", "accept", "--orphans"]);
    assert_eq!(
        text,
        "accepted  a/trace.dat with other\nremoved   a/trace.dat with patch\nremoved   b/trace.dat with patch\n"
    );
    desk.runs(0, &["gate", "check"]);

    // What is no snapshot of a gate is somebody else's.
    desk.write("snapshots/replay@mine.snap", "---\nsource: tests/replay.rs\n---\n");
    desk.write("snapshots/notes.txt", "mine");
    desk.runs(0, &["gate", "check"]);
}

/// Whatever a text that waits was made from has to be so still when it is accepted.
#[test]
fn what_waits_is_accepted_only_while_it_is_true() {
    let desk = Desk::green();
    let (to, from) = ("patched = \"v5.11+recent-used\"", "patched = \"v5.11+mel-v2\"");
    desk.edit("gate.toml", from, to);
    desk.runs(1, &["gate", "check"]);
    let before = desk.snapshots();
    let refused = |reason: &str| {
        for args in [&["gate", "accept"][..], &["gate", "accept", "--only", "a/*"], &["gate", "review"]] {
            let said = desk.trouble(args);
            assert!(said.contains(&format!("{A}.new: is stale: it {reason}")), "{args:?}: {said}");
            assert!(said.contains("; write it again with `sisdiff gate check`"), "{args:?}: {said}");
        }
        assert_eq!(desk.snapshots(), before, "nothing was moved");
    };
    let gate = desk.read("gate.toml");
    // Other specs.
    desk.edit("gate.toml", to, from);
    refused("was made with patched = \"v5.11+recent-used\", and gate.toml has \"v5.11+mel-v2\" now");
    desk.write("gate.toml", &gate.replace("baseline = \"v5.11\"", "baseline = \"v5.10\""));
    refused("was made with baseline = \"v5.11\", and gate.toml has \"v5.10\" now");
    // Other settings; rules judge only, and change nothing.
    for change in ["listed = 3", "lock = [\"sis\"]"] {
        let key = change.split(' ').next().expect("a key");
        let line = gate.lines().find(|line| line.starts_with(key)).expect("a line");
        desk.write("gate.toml", &gate.replace(line, change));
        refused("was made with another lock, listed, recorded or [replay] than gate.toml has now");
    }
    for more in ["[replay]\nscan_cost_ns = 70\n", "[replay]\nignore_probes = true\n"] {
        desk.write("gate.toml", &format!("{gate}{more}"));
        refused("was made with another lock, listed, recorded or [replay] than gate.toml has now");
    }
    desk.write("gate.toml", &format!("{gate}[[topology]]\ntraces = [\"a/*\"]\nsource = \"1x2x2\"\n"));
    refused("was made with another description of the machine than there is now");
    desk.write("gate.toml", &gate);
    // Another recording, another description of its machine.
    let bytes = fs::read(desk.path("a/trace.dat")).expect("read");
    fs::copy(desk.path("b/trace.dat"), desk.path("a/trace.dat")).expect("copied");
    refused("was made from another recording than a/trace.dat is now");
    fs::write(desk.path("a/trace.dat"), bytes).expect("written");
    let bytes = fs::read(desk.path("a/topology.tar.gz")).expect("read");
    fs::copy(desk.path("b/topology.tar.gz"), desk.path("a/topology.tar.gz")).expect("copied");
    refused("was made with another description of the machine than there is now");
    fs::write(desk.path("a/topology.tar.gz"), bytes).expect("written");
    // Of an older sisdiff, which did not say.
    let waits = before.iter().find(|(name, _)| name.starts_with("a") && name.ends_with(".new")).expect("it waits").1;
    let silent: String =
        waits.lines().filter(|line| !line.starts_with("made_from.")).map(|line| format!("{line}\n")).collect();
    assert!(silent.len() < waits.len());
    desk.write(&format!("{A}.new"), &silent);
    assert!(desk.trouble(&["gate", "accept"]).contains("is stale: it does not say what it was made from"));
    desk.write(&format!("{A}.new"), waits);
    // As it was: accepted, without a word of where it comes from.
    desk.write("gate.toml", &format!("{gate}[tolerance]\nsis = \"1%\"\n"));
    desk.runs(0, &["gate", "accept"]);
    assert!(desk.snapshots().values().all(|text| !text.contains("made_from")));
    desk.runs(0, &["gate", "check"]);
}

/// A pattern finds a recording or not; what it does not find is not missing for that.
#[test]
fn a_recording_that_is_there_is_not_called_missing() {
    let desk = Desk::green();
    let named = "    \"a/trace.dat\",\n    \"b/trace.dat\",";
    desk.edit("gate.toml", named, "    \"**/*.dat\",");
    desk.runs(0, &["gate", "check"]);
    for folders in ["**", "a/**"] {
        desk.edit("gate.toml", "**/*.dat", folders);
        let said = desk.trouble(&["gate", "check"]);
        let expected = format!("{folders:?} means folders only, not the files in them; write \"{folders}/*.dat\"");
        assert!(said.contains(&expected) && !said.contains("missing") && !said.contains("--orphans"), "{said}");
        desk.edit("gate.toml", &format!("\"{folders}\""), "\"**/*.dat\"");
    }
    // A folder where a recording was.
    fs::rename(desk.path("a/trace.dat"), desk.path("kept")).expect("moved");
    fs::create_dir(desk.path("a/trace.dat")).expect("made");
    let said = desk.trouble(&["gate", "check"]);
    assert!(said.contains(&format!("a/trace.dat: is no file, and {A} is of it")), "{said}");
    assert!(!said.contains("missing") && !said.contains("--orphans") && said.contains("1 unchanged"), "{said}");
    fs::remove_dir(desk.path("a/trace.dat")).expect("removed");
    // A link to nowhere is missing.
    std::os::unix::fs::symlink("nowhere", desk.path("a/trace.dat")).expect("linked");
    assert!(desk.trouble(&["gate", "check"]).contains("a/trace.dat: missing: "));
    fs::remove_file(desk.path("a/trace.dat")).expect("removed");
    fs::rename(desk.path("kept"), desk.path("a/trace.dat")).expect("moved");
    desk.runs(0, &["gate", "check"]);
}

#[test]
fn a_snapshot_that_cannot_be_read_is_not_called_none() {
    let desk = Desk::green();
    let good = desk.read(A);
    let formats = ["text", "markdown", "github", "junit", "json", "sarif"];
    for (bad, what) in [
        (String::new(), "a snapshot that cannot be read"),
        ("<<<<<<< ours\n".to_owned(), "a snapshot that cannot be read"),
        (good.replace("sisdiff.gate/1", "sisdiff.gate/9"), "a snapshot of another format"),
    ] {
        desk.write(A, &bad);
        for format in formats {
            let said = desk.trouble(&["gate", "check", "--format", format]);
            assert!(!said.contains("no snapshot;") && !said.contains("there is no snapshot"), "{format}: {said}");
        }
        let said = desk.trouble(&["gate", "check"]);
        assert!(said.contains(&format!("{what}; ")) && said.contains(" beside it"), "{said}");
        assert!(desk.trouble(&["gate", "check", "--no-new"]).contains("lines to write"));
    }
    fs::remove_file(desk.path(A)).expect("removed");
    let said = desk.runs(1, &["gate", "check", "--no-new"]);
    assert!(said.contains("no snapshot; ") && said.contains(" to write"), "{said}");
}

#[test]
fn what_waits_of_an_entry_that_was_taken_out_is_named() {
    let desk = Desk::green();
    let gate = desk.read("gate.toml");
    desk.edit("gate.toml", "[pair.patch]", "[pair.other]\nbaseline = \"v6.1\"\npatched = \"v6.12\"\n[pair.patch]");
    desk.runs(1, &["gate", "check"]);
    desk.write("gate.toml", &gate);
    let waits = "snapshots/a__trace.dat@other.snap.new";
    let said = desk.trouble(&["gate", "check"]);
    assert!(
        said.contains(&format!("{waits}: waits to be accepted, and is of a/trace.dat with other, so that nothing")),
        "{said}"
    );
    let said = desk.trouble(&["gate", "accept"]);
    assert!(said.contains(&format!("{waits}: is of the pair \"other\", which gate.toml does not have")), "{said}");
    assert!(said.contains("sisdiff gate accept --orphans") && desk.path(waits).exists(), "{said}");
    let said = desk.runs(0, &["gate", "accept", "--orphans"]);
    assert_eq!(said, "removed   a/trace.dat with other\nremoved   b/trace.dat with other\n");
    desk.runs(0, &["gate", "check"]);
    assert_eq!(desk.snapshots().len(), 2);
}

#[test]
fn a_wrong_configuration_names_what_is_wrong() {
    let desk = Desk::new();
    let text = desk.trouble(&["gate", "check"]);
    assert!(text.contains("gate.toml: cannot be read") && text.contains("sisdiff gate init"), "{text}");
    desk.runs(0, &["gate", "init", "a/trace.dat", "--baseline", "v6.1", "--patched", "v6.1:NO_SIS_UTIL"]);
    assert!(desk.trouble(&["gate", "init", "a/trace.dat"]).contains("gate.toml: is there already"));
    desk.edit("gate.toml", "listed = 20", "lsited = 20");
    assert!(
        desk.trouble(&["gate", "check"]).contains("gate.toml: the file: no key \"lsited\" (did you mean \"listed\"?)")
    );
    desk.edit("gate.toml", "lsited = 20", "listed = 20");
    assert!(desk.trouble(&["gate", "check", "--only", "zzz"]).contains("--only: matches no recording"));
    assert!(desk.trouble(&["gate", "check", "--report", "xml=a"]).contains("junit"));
    assert!(desk.trouble(&["gate", "check", "-o", "gate.toml"]).contains("would overwrite the configuration"));
    assert!(desk.trouble(&["gate", "check", "-o", "a/trace.dat"]).contains("would overwrite the recording"));
    assert!(desk.trouble(&["gate", "init", "none.dat", "--config", "g.toml"]).contains("none.dat"));
    desk.write("notes.txt", "my notes");
    assert!(desk.trouble(&["gate", "init", "notes.txt", "--config", "g.toml"]).contains("notes.txt"));
    assert!(!desk.path("g.toml").exists());
    // A recording that cannot be replayed leaves the others alone.
    desk.edit("gate.toml", "    \"a/trace.dat\",", "    \"a/trace.dat\", \"notes.txt\",");
    let text = desk.trouble(&["gate", "check"]);
    assert!(text.contains("notes.txt") && text.contains("1 new"), "{text}");
}

/// A kernel tree in the folder of the configuration; the smallest of changes of its C.
#[cfg(feature = "tree")]
#[test]
fn one_changed_line_of_an_implementation_turns_it_red() {
    let desk = Desk::new();
    copy(&Path::new(ROOT).join("kernel-tree/tests/mini"), &desk.path("mini"));
    desk.runs(0, &["gate", "init", "b/trace.dat", "--baseline", "v6.1", "--patched", "tree:mini"]);
    desk.runs(1, &["gate", "check"]);
    desk.runs(0, &["gate", "accept"]);
    desk.runs(0, &["gate", "check"]);

    let line = "if (prev != target && available_idle_cpu(prev))";
    desk.edit("mini/kernel/sched/fair.c", line, "if (prev == target && available_idle_cpu(prev))");
    let text = desk.runs(1, &["gate", "check"]);
    assert!(text.contains("changed: b/trace.dat with patch") && !text.contains("was tree:"), "{text}");
    assert!(text.contains("-  placements.patched        sha256:"), "{text}");
    assert!(!text.contains("-  placements.baseline "), "only the tree changed: {text}");
    let moved = |sign: &str| text.lines().find(|line| line.starts_with(&format!("  {sign}  Prev "))).is_some();
    assert!(moved("-"), "the return that was taken less often: {text}");
    desk.edit("mini/kernel/sched/fair.c", "if (prev == target &&", "if (prev == target && 1 &&");
    let said = desk.trouble(&["gate", "accept"]);
    assert!(said.contains("is stale: it was made from another kernel tree (patched) than there is now"), "{said}");
    desk.edit("mini/kernel/sched/fair.c", "if (prev == target && 1 &&", "if (prev == target &&");
    desk.runs(0, &["gate", "accept"]);
    desk.runs(0, &["gate", "check"]);
    desk.edit("mini/kernel/sched/fair.c", "if (prev == target &&", "if (prev != target &&");
    desk.runs(1, &["gate", "check"]);
}

#[cfg(feature = "tree")]
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}

/// A change of one bit of a model: a feature of the kernel that is off.
#[test]
fn one_changed_feature_turns_it_red() {
    let desk = Desk::new();
    desk.runs(0, &["gate", "init", "b/trace.dat", "--baseline", "v5.11", "--patched", "v6.1"]);
    desk.runs(1, &["gate", "check"]);
    desk.runs(0, &["gate", "accept"]);
    desk.edit("gate.toml", "patched = \"v6.1\"", "patched = \"v6.1:NO_SIS_UTIL\"");
    let text = desk.runs(1, &["gate", "check"]);
    assert!(text.contains("patched  was v6.1, is v6.1:NO_SIS_UTIL"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  -  scanned ")), "the scan has no limit: {text}");
    desk.runs(0, &["gate", "accept"]);
    desk.runs(0, &["gate", "check"]);
}

#[test]
fn help_has_examples_and_fits() {
    let desk = Desk::new();
    for args in [&["gate"][..], &["gate", "init"], &["gate", "check"], &["gate", "accept"], &["gate", "review"]] {
        let text = desk.runs(0, &[args, &["--help"]].concat());
        assert!(text.contains("Examples:"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn a_gate_elsewhere_is_the_same_gate() {
    let desk = Desk::new();
    fs::create_dir(desk.path("ci")).expect("made");
    desk.runs(0, &["gate", "init", "a/trace.dat", "--config", "ci/gate.toml", "--snapshots", "old"]);
    assert!(desk.read("ci/gate.toml").contains("\"../a/trace.dat\""));
    let text = desk.runs(1, &["gate", "check", "--config", "ci/gate.toml"]);
    assert!(text.contains("sisdiff gate accept --config ci/gate.toml"), "{text}");
    desk.runs(0, &["gate", "accept", "--config", "ci/gate.toml"]);
    desk.runs(0, &["gate", "check", "--config", "ci/gate.toml"]);
    assert!(desk.path("ci/old/%2E.__a__trace.dat@patch.snap").exists());
    let mut command = desk.command(&["gate", "check"]);
    let output = command.current_dir(desk.path("ci")).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn tolerances_and_entries_excuse_and_idle_entries_are_told() {
    let desk = Desk::green();
    desk.edit("gate.toml", "patched = \"v5.11+mel-v2\"", "patched = \"v5.11+recent-used\"");
    let gate = desk.read("gate.toml");
    let allow = |what: &str| format!("{gate}\n[[allow]]\nwhat = \"{what}\"\nreason = \"because we say so\"\n");

    desk.write("gate.toml", &allow("*"));
    let text = desk.runs(0, &["gate", "check"]);
    assert!(text.contains("2 unchanged") && text.contains("allowed") && text.contains("because we say so"), "{text}");
    desk.write("gate.toml", &allow("head.*"));
    let text = desk.runs(1, &["gate", "check"]);
    assert!(text.contains("allowed  head.patched v5.11+mel-v2 -> v5.11+recent-used: because we say so"), "{text}");
    let tolerances = "[tolerance]\nplacements = \"100%\"\nexits = \"100%\"\nagreement = \"100%\"\nsis = \"100%\"\n";
    desk.write("gate.toml", &format!("{}{tolerances}", allow("head.patched")));
    let text = desk.runs(0, &["gate", "check"]);
    assert!(text.contains("tolerated") && text.contains("within 100%"), "{text}");

    desk.edit("gate.toml", "patched = \"v5.11+recent-used\"", "patched = \"v5.11+mel-v2\"");
    let text = desk.runs(0, &["gate", "check"]);
    assert!(text.contains("allow 1: nothing to allow (because we say so)"), "{text}");
}

#[test]
fn any_number_of_threads_prints_the_same() {
    let desk = Desk::green();
    desk.edit("gate.toml", "[pair.patch]", "[pair.one]\nbaseline = \"v6.1\"\npatched = \"v6.12\"\n[pair.patch]");
    desk.edit("gate.toml", "patched = \"v5.11+mel-v2\"", "patched = \"v5.11+recent-used\"");
    let check = |threads| desk.runs(1, &["gate", "check", "--threads", threads]);
    let sequential = check("1");
    assert!(sequential.contains("4 replays: 2 changed, 2 new"), "{sequential}");
    assert_eq!(sequential, check("2"));
    assert_eq!(sequential, check("16"));
}

#[test]
fn review_needs_a_terminal_and_says_what_does_not() {
    let desk = Desk::green();
    let text = desk.trouble(&["gate", "review"]);
    assert!(text.contains("terminal") && text.contains("sisdiff gate accept"), "{text}");
}

/// Xorshift: moments, not statistics.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn whoever_is_killed_leaves_the_old_or_the_new() {
    const SNAPSHOTS: usize = 40;
    let desk = Desk::new();
    desk.runs(0, &["gate", "init", "a/trace.dat"]);
    desk.runs(1, &["gate", "check"]);
    let waiting = desk.read(&format!("{A}.new"));
    desk.runs(0, &["gate", "accept"]);
    let new = desk.read(A);
    fs::remove_dir_all(desk.path("snapshots")).expect("removed");
    // The same one under many names of pairs.
    let specs = "baseline = \"v5.11\"\npatched = \"v5.11+mel-v2\"\n";
    let pairs: String = (0..SNAPSHOTS).map(|at| format!("[pair.p{at}]\n{specs}")).collect();
    desk.edit("gate.toml", "[pair.patch]", &format!("{pairs}[pair.patch]"));
    let named = |at: usize, text: &str| text.replacen("pair: patch", &format!("pair: p{at}"), 1);
    let old = new.replacen("kernel: ", "kernel: an older ", 1);
    let lay = || {
        fs::create_dir_all(desk.path("snapshots")).expect("made");
        for at in 0..SNAPSHOTS {
            let name = format!("snapshots/a__trace.dat@p{at}.snap");
            desk.write(&name, &named(at, &old));
            desk.write(&format!("{name}.new"), &named(at, &waiting));
        }
    };
    lay();
    let start = Instant::now();
    desk.runs(0, &["gate", "accept"]);
    let whole = start.elapsed().max(Duration::from_millis(4));

    let (mut state, mut between) = (0x9e37_79b9_7f4a_7c15, 0);
    for moment in 0..50 {
        lay();
        let mut child = desk.command(&["gate", "accept", "--quiet"]).spawn().expect("spawned");
        std::thread::sleep(Duration::from_micros(random(&mut state) % whole.as_micros() as u64));
        child.kill().expect("killed");
        let status = child.wait().expect("gone");
        assert!(status.signal() == Some(9) || status.code() == Some(0), "{status}");
        let mut accepted = 0;
        for at in 0..SNAPSHOTS {
            let text = desk.read(&format!("snapshots/a__trace.dat@p{at}.snap"));
            let (is_old, is_new) = (text == named(at, &old), text == named(at, &new));
            assert!(is_old || is_new, "moment {moment}, snapshot {at}:\n{text}");
            let waits = desk.path(&format!("snapshots/a__trace.dat@p{at}.snap.new")).exists();
            assert!(waits || is_new, "nothing is lost either: moment {moment}, snapshot {at}");
            accepted += usize::from(is_new);
        }
        between += usize::from(accepted > 0 && accepted < SNAPSHOTS);
        // Whoever comes after it finishes the work.
        if moment % 10 == 0 {
            desk.runs(0, &["gate", "accept", "--quiet"]);
            assert_eq!(desk.read("snapshots/a__trace.dat@p7.snap"), named(7, &new));
        }
    }
    println!("{between} of 50 were killed with some snapshots accepted and some not; accepting takes {whole:?}");
    assert!(between >= 5, "only {between} of 50 were killed in the middle");
}
