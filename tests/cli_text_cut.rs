// SPDX-License-Identifier: GPL-2.0-or-later
//! What is cut of a text, what a cut says of itself, and what recordings with other flaws say.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SMALL: &str = "traces/smp4-idle-light/trace.dat";

fn sisdiff(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.args(args).stdin(Stdio::null()).current_dir(ROOT).output().expect("the binary runs")
}

fn fine(args: &[&str]) -> String {
    let output = sisdiff(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Words without the breaks that the report's width makes.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What trace-cmd prints of the scheduler's events; `None` without trace-cmd.
fn reported(flags: &[&str], file: &str) -> Option<Vec<String>> {
    let output = Command::new("trace-cmd").arg("report").args(flags).arg(file).current_dir(ROOT).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| line.contains(": sched_"));
    Some(lines.map(|line| words(line).replace("target_cpu=00", "target_cpu=")).collect())
}

#[test]
fn trace_cmd_reads_what_is_cut_of_a_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, dat) = (path(folder.path(), "trace.txt"), path(folder.path(), "cut.dat"));
    for flags in [&["-t"][..], &["-R", "-t"]] {
        let Ok(output) = Command::new("trace-cmd").arg("report").args(flags).arg(SMALL).current_dir(ROOT).output()
        else {
            println!("skipped: no trace-cmd");
            return;
        };
        fs::write(&text, &output.stdout).expect("written");
        fine(&["cut", &text, "-o", &dat, "--force"]);
        for again in [&["-R", "-t"][..], &["-t"]] {
            let (Some(before), Some(after)) = (reported(again, SMALL), reported(again, &dat)) else { return };
            assert!(before.len() > 1000 && before.len() == after.len(), "{} {}", before.len(), after.len());
            // The name of whoever ran is not in every event: trace-cmd's file has more of them than the events tell.
            let fields = |line: &String| line.split_once("] ").map(|(_, rest)| rest.to_owned());
            for (before, after) in before.iter().zip(&after) {
                // trace-cmd's plugin prints R for a task that was preempted, too.
                let before = if flags.len() == 1 { &before.replace("prev_state=256", "prev_state=0") } else { before };
                assert_eq!(fields(before), fields(after), "{flags:?} {again:?}");
            }
            let named = after.iter().filter(|line| !line.starts_with("<...>")).count();
            assert!(named * 10 > after.len() * 9, "{named} of {} have a name", after.len());
        }
    }
}

#[test]
fn a_cut_says_which_lines_are_not_in_it_and_that_it_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, dat) = (path(folder.path(), "trace.txt"), path(folder.path(), "cut.dat"));
    let line = |n: u32| format!("  sh-5 [001] d..2. 10.00000{n}: sched_waking: comm=b pid=7 prio=120 target_cpu=001\n");
    let lines: String = (0..9).map(line).collect();
    fs::write(&text, format!("# tracer: nop\n{lines}this is none\n{}nor this\n", line(9))).expect("written");
    let report = words(&fine(&["cut", &text, "-o", &dat, "--anonymize"]));
    assert!(report.contains("2 lines that are no events that can be read, the first is line 11"), "{report}");
    let info = words(&fine(&["info", &dat]));
    assert!(info.contains("cut by sisdiff") && info.contains("(--anonymize)"), "{info}");
    assert!(info.contains("no sched_switch in this cut") && !info.contains("no sched_switch recorded"), "{info}");
    assert!(info.contains("ask for the recording that it was cut from"), "{info}");
    // A recording that is whole says nothing of the kind.
    assert!(!words(&fine(&["info", SMALL])).contains("cut by sisdiff"));
    fs::write(&text, format!("# tracer: nop\n{lines}")).expect("written");
    assert!(!fine(&["cut", &text, "-o", &dat, "--force"]).contains("can be read"));
    // Nothing to replay: what is there is shown by info.
    let output = sisdiff(&["replay", &dat]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("'sisdiff info'"), "{error}");
}

fn notes(file: &str) -> Vec<String> {
    let json: Value =
        serde_json::from_str(&fine(&["replay", file, "--topology", "1x2x1", "--format", "json"])).expect("JSON");
    let notes = json["files"][0]["recording"]["notes"].as_array().expect("notes");
    notes.iter().map(|note| note.as_str().expect("text").to_owned()).collect()
}

#[test]
fn times_that_go_backward_are_told_by_a_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "trace.txt");
    let switch = |at: u32| {
        format!(
            "  sh-5 [001] d..2. 10.{at:06}: sched_switch: prev_comm=sh prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=sh \
             next_pid=5 next_prio=120\n"
        )
    };
    let waking = "  sh-5 [001] d..2. 10.000500: sched_waking: comm=b pid=7 prio=120 target_cpu=001\n";
    let text = |times: &[u32]| times.iter().map(|&at| switch(at)).collect::<String>() + waking;
    fs::write(&file, format!("# tracer: nop\n{}", text(&[1, 2, 3, 4]))).expect("written");
    assert!(!notes(&file).iter().any(|note| note.contains("backward")), "{:?}", notes(&file));
    fs::write(&file, format!("# tracer: nop\n{}", text(&[1, 3, 2, 4]))).expect("written");
    let told: Vec<String> =
        notes(&file).into_iter().filter(|note| note.contains("go backward on a CPU at 1 event")).collect();
    assert_eq!(told.len(), 1, "{:?}", notes(&file));
}

#[test]
fn a_second_recording_behind_the_first_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = fs::read(Path::new(ROOT).join(SMALL)).expect("a recording");
    let file = path(folder.path(), "two.dat");
    let v6 = path(folder.path(), "v6.dat");
    let mut convert = Command::new("trace-cmd");
    convert.args(["convert", "--file-version", "6", "-i", SMALL, "-o", &v6]).current_dir(ROOT);
    let v6 = convert.output().ok().and_then(|_| fs::read(&v6).ok());
    for bytes in [Some(bytes.clone()), v6].into_iter().flatten() {
        fs::write(&file, [&bytes[..], &bytes[..]].concat()).expect("written");
        let info = words(&fine(&["info", &file]));
        assert!(info.contains("another recording begins after the end of the last section"), "{info}");
        assert!(info.contains(&format!("byte {}", bytes.len())), "{} {info}", bytes.len());
        let replay = words(&fine(&["replay", &file, "--topology", "1x4x1"]));
        assert!(replay.contains("another recording begins"), "{replay}");
    }
    fs::write(&file, [&bytes[..], b"garbage"].concat()).expect("written");
    assert!(words(&fine(&["info", &file])).contains("belong to nothing that the file names"));
    // Padding is no damage.
    for padding in [0, 1, 4096, 100_000] {
        fs::write(&file, [&bytes[..], &vec![0; padding][..]].concat()).expect("written");
        assert!(!fine(&["info", &file]).contains("damage"), "{padding}");
    }
}
