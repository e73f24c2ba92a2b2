// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff record` as far as it goes without root: what it would do, and what it refuses.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).arg("record").args(args).output().expect("sisdiff runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn has_tracefs() -> bool {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .any(|path| std::path::Path::new(path).join("events/sched").is_dir())
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("rec");
    let name = out.to_str().expect("a name");
    let output = run(&["--dry-run", "-o", name, "--buffer", "4096", "--", "echo", "two words"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("mkdir -p {name}"));
    let record = lines.iter().find(|line| line.starts_with("trace-cmd record")).expect("the recording");
    for part in ["-C mono -b 4096 --no-filter", "-e sched:sched_waking", "-e sched:sched_switch", "echo 'two words'"] {
        assert!(record.contains(part), "{record}");
    }
    assert!(!shown.contains("kprobes"), "{shown}");
    assert!(!out.exists());
}

#[test]
fn probes_are_armed_before_and_taken_away_after() {
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        let output = run(&["--dry-run", "--probes", "task", "--", "true"]);
        assert!(text(&output.stderr).contains("CONFIG_DEBUG_INFO_BTF"));
        return;
    }
    let shown = text(&run(&["--dry-run", "--probes", "task", "--", "true"]).stdout);
    let at = |part: &str| shown.find(part).unwrap_or_else(|| panic!("no {part} in {shown}"));
    let armed = at("p:kprobes/sis_in select_task_rq_fair");
    let recorded = at("trace-cmd record");
    assert!(armed < recorded && recorded < at("echo -:kprobes/sis_in"), "{shown}");
    assert!(shown.contains("-e kprobes:sis_out"), "{shown}");
}

#[test]
fn what_stands_in_the_way_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("trace.dat"), b"old").expect("a file");
    let name = folder.path().to_str().expect("a name");
    let output = run(&["--dry-run", "-o", name, "--", "true"]);
    assert!(text(&output.stderr).contains("name another folder"), "{}", text(&output.stderr));
    let output = run(&["-o", name, "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    if has_tracefs() {
        assert!(text(&output.stderr).starts_with("sisdiff: record: "), "{}", text(&output.stderr));
    } else {
        assert!(text(&output.stderr).contains("tracefs"), "{}", text(&output.stderr));
    }
    assert_eq!(std::fs::read(folder.path().join("trace.dat")).expect("untouched"), b"old");
}

#[test]
fn a_missing_trace_cmd_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["record", "--", "true"])
        .env("PATH", "/nowhere")
        .output()
        .expect("sisdiff runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("install the package trace-cmd"), "{}", text(&output.stderr));
}

#[test]
fn without_a_command_there_is_nothing_to_record() {
    assert_eq!(run(&["--dry-run"]).status.code(), Some(2));
}
