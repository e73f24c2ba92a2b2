// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are not what they are given for, and names that would play tricks on a terminal.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SMALL: &str = "traces/smp4-idle-light/trace.dat";

fn sisdiff(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.args(args).stdin(Stdio::null()).current_dir(ROOT).output().expect("the binary runs")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn repro_plays_no_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = path(folder.path(), "report.json");
    assert!(sisdiff(&["replay", SMALL, "--format", "json", "-o", &json]).status.success());
    let text = path(folder.path(), "report.txt");
    assert!(sisdiff(&["replay", SMALL, "-o", &text]).status.success());
    for (file, found, next) in [
        (SMALL, "a recording of trace-cmd", "sisdiff replay"),
        (&json, "JSON", "sisdiff merge"),
        (&text, "text without a version", "version = 1"),
    ] {
        let output = sisdiff(&["repro", file]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len(), error.lines().count()), (Some(2), 0, 1), "{error}");
        assert!(error.contains(found) && error.contains(next) && error.contains(file), "{error}");
    }
}

/// A small recording as text in which a task turns the direction of text.
fn tricky(comm: &str) -> String {
    let mut text = String::from("# tracer: nop\n");
    for cpu in 0..4 {
        text += &format!(
            "  <idle>-0     [{cpu:03}] d..2. 10.00000{cpu}: sched_switch: prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 \
             prev_state=R ==> next_comm=busy{cpu} next_pid={} next_prio=120\n",
            20 + cpu
        );
    }
    for n in 0..40 {
        let ms = 100 + n * 3;
        text += &format!(
            "  busy0-20     [000] d..2. 10.{ms:03}000: sched_waking: comm={comm} pid=77 prio=120 target_cpu=001\n  \
             busy0-20     [000] d..2. 10.{ms:03}010: sched_migrate_task: comm={comm} pid=77 prio=120 orig_cpu=1 dest_cpu=2\n  \
             busy0-20     [000] d..2. 10.{ms:03}020: sched_wakeup: comm={comm} pid=77 prio=120 target_cpu=002\n  \
             busy2-22     [002] d..2. 10.{ms:03}100: sched_switch: prev_comm=busy2 prev_pid=22 prev_prio=120 \
             prev_state=R ==> next_comm={comm} next_pid=77 next_prio=120\n  \
             {comm}-77     [002] d..2. 10.{ms:03}200: sched_switch: prev_comm={comm} prev_pid=77 prev_prio=120 \
             prev_state=S ==> next_comm=busy2 next_pid=22 next_prio=120\n"
        );
    }
    text
}

#[test]
fn names_cannot_turn_the_text_around() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "trace.txt");
    let comm = "a\u{202e}b\u{2066}c";
    fs::write(&file, tricky(comm)).expect("written");
    let dat = path(folder.path(), "\u{202e}cut.dat");
    let machine = ["--topology", "1x4x1"];
    let mut shown = 0;
    for args in [
        vec!["replay", &file],
        vec!["replay", &file, "--comm", comm],
        vec!["replay", &file, "--format", "html"],
        vec!["explain", &file, "--wakeup", "5"],
        vec!["cut", &file, "-o", &dat],
        vec!["replay", &dat],
        vec!["info", &dat],
        vec!["fidelity", &dat],
    ] {
        let args = if args[0] == "cut" || args[0] == "info" { args } else { [args, machine.to_vec()].concat() };
        let output = sisdiff(&args);
        for text in [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)] {
            assert!(!text.contains(['\u{202e}', '\u{2066}']), "{args:?}: {text}");
            shown += text.matches("u{202e}").count();
        }
    }
    assert!(shown > 5, "the name is shown, escaped: {shown}");
}

#[test]
fn no_model_of_the_recorded_kernel_follows_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "trace.txt");
    let probe = "  busy0-20     [000] d..2. 10.500000: sis_in: (select_task_rq_fair+0x0/0x1) pid=77 recent=2 flags=8\n";
    fs::write(&file, tricky("worker") + probe).expect("written");
    let output = sisdiff(&["replay", &file, "--topology", "1x4x1"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("no model: the recorded kernel is not known"), "{text}");
    assert!(!text.contains("the model of the recorded kernel follows"), "{text}");
}
