// SPDX-License-Identifier: GPL-2.0-or-later
//! What a signal, or a stdout that is not there, leaves behind: nothing beside the output, and the exit code that tells.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const BIN: &str = env!("CARGO_BIN_EXE_sisdiff");
const SMALL: &str = "traces/smp4-idle-light/trace.dat";

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// A command that signals end, whoever runs these tests: whatever runs in the background of a shell or under nohup ignores
/// some.
fn mortal(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// What it left, once it has ended; it has a minute for that. Its stdin stays open: nothing but a signal ends it.
fn ended(mut child: Child) -> Output {
    let stdin = child.stdin.take();
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().expect("it can be killed");
            panic!("the signal did not end it");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("it ended");
    drop(stdin);
    output
}

/// Waits until `folder` has a temporary file.
fn until_begun(folder: &Path, child: &mut Child) {
    let start = Instant::now();
    while !names(folder).iter().any(|name| name.starts_with(".sisdiff-")) {
        assert!(start.elapsed() < Duration::from_secs(60), "no temporary file: what does this test wait for?");
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Commands that have begun an output beside `out` and wait for the rest of their input.
fn commands(out: &str) -> Vec<Vec<String>> {
    let words = |text: &str| text.split(' ').map(|word| word.replace("OUT", out)).collect();
    ["cut - -o OUT", "replay - --topology 1x4x1 --decisions OUT"].into_iter().map(words).collect()
}

#[test]
fn a_signal_leaves_no_temporary_file() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out").display().to_string();
        fs::write(&out, "old").expect("an old output");
        for args in commands(&out) {
            let args = if args[0] == "cut" { [args, vec!["--force".to_owned()]].concat() } else { args };
            let mut child = mortal(BIN)
                .args(&args)
                .current_dir(ROOT)
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs");
            until_begun(folder.path(), &mut child);
            signal(&child, name);
            let output = ended(child);
            assert_eq!(output.status.signal(), Some(number), "{args:?}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}: nothing false is said");
            assert_eq!(names(folder.path()), ["out"], "{args:?} {name}");
            assert_eq!(fs::read_to_string(&out).expect("there"), "old", "{args:?}");
        }
    }
}

#[test]
fn a_shell_sees_130_and_143() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let folder = tempfile::tempdir().expect("a folder");
        // The inner shell becomes sisdiff, the outer one waits for it.
        let inner = "echo $$ > \"$1/pid\"; exec \"$0\" cut - -o \"$1/out\"";
        let mut shell = mortal("sh")
            .args(["-c", "sh -c \"$2\" \"$0\" \"$1\"; echo $?", BIN])
            .arg(folder.path())
            .arg(inner)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        until_begun(folder.path(), &mut shell);
        let pid = fs::read_to_string(folder.path().join("pid")).expect("written before");
        assert!(Command::new("kill").args([&format!("-{name}"), pid.trim()]).status().expect("kill").success());
        let output = ended(shell);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), code.to_string());
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" cut - -o \"$1\"", BIN])
        .arg(folder.path().join("out"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    until_begun(folder.path(), &mut child);
    signal(&child, "HUP");
    // The end of its input comes later, and is what it complains about.
    std::thread::sleep(Duration::from_millis(200));
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(names(folder.path()), [""; 0]);
}

/// Runs without a stdout.
fn closed(args: &str) -> Output {
    let script = format!("exec \"$0\" {args} >&-");
    Command::new("sh").args(["-c", &script, BIN]).current_dir(ROOT).stdin(Stdio::null()).output().expect("it runs")
}

#[test]
fn without_a_stdout_nothing_was_written() {
    for args in ["list", "--help", "bugs", "topology 1x4x1", &format!("replay {SMALL}"), &format!("cut {SMALL} -o -")] {
        let output = closed(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains("stdout: cannot be written (it was closed"), "{args}: {error}");
    }
    // What writes elsewhere does not need one.
    let folder = tempfile::tempdir().expect("a folder");
    let output = closed(&format!("replay {SMALL} -o {}", folder.path().join("report").display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(names(folder.path()), ["report"]);
    // Nor is a device that takes everything a closed one, nor a reader that has gone an error.
    for script in [
        "exec \"$0\" list > /dev/null",
        "exec \"$0\" list <> /dev/null >&0",
        "\"$0\" list | true; exit ${PIPESTATUS[0]}",
    ] {
        let output = Command::new("bash").args(["-c", script, BIN]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{script}: {output:?}");
    }
}
