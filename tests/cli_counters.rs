// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff counters` and `replay --schedstat` from outside.

use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat");
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).args(args).output().expect("the binary runs")
}

fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn trouble(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }
}

/// The words of each line, so that widths of columns do not matter.
fn has_row(text: &str, row: &str) -> bool {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    text.lines().any(|line| words(line) == words(row))
}

#[test]
fn the_published_table_is_completed() {
    let dir = Dir::new();
    let table = dir.file(
        "table.txt",
        "Ops SIS Search               5653107942.00  5726545742.00\n\
         Ops SIS Domain Search        3365067916.00  3319768543.00\n\
         Ops SIS Scanned            112173512543.00 99194352541.00\n\
         Ops SIS Failures             2923185114.00  2950166441.00\n\
         Ops SIS Recent Used Hit           56547.00   118064916.00\n\
         Ops SIS Recent Used Miss     1590899250.00   354942791.00\n",
    );
    let text = fine(&["counters", &table]);
    for row in [
        "SIS Domain Scanned 109,885,472,517 96,787,575,342 -11.92%",
        "SIS Recent Attempts 1,590,955,797 473,007,707 -70.27%",
        "SIS Search Efficiency 5.04 5.77 +14.55%",
        "SIS Domain Search Eff 3.06 3.43 +12.00%",
        "SIS Fast Success Rate 40.47 42.03 +3.84%",
        "SIS Success Rate 48.29 48.48 +0.40%",
    ] {
        assert!(has_row(&text, row), "{row}\n{text}");
    }
    let second = dir.file(
        "second.json",
        r#"{"sis_search": 5596677950, "sis_domain_search": 3268344934, "sis_scanned": 15909069113,
            "sis_failed": 2944874939, "sis_recent_hit": 124265515, "sis_recent_miss": 338142547}"#,
    );
    let text = fine(&["counters", &second]);
    for row in [
        "SIS Domain Scanned 13,580,736,097",
        "SIS Search Efficiency 35.18",
        "SIS Domain Search Eff 24.07",
        "SIS Fast Success Rate 41.60",
        "SIS Success Rate 47.38",
        "SIS Recent Success Rate 26.87",
    ] {
        assert!(has_row(&text, row), "{row}\n{text}");
    }
}

#[test]
fn readings_are_taken_in_pairs() {
    let dir = Dir::new();
    let reading = |name: &str, numbers: &str| dir.file(name, &format!("version 15\ntimestamp 1\ncpu0 {numbers}\n"));
    let before = reading("before", "0 0 0 0 100 50 0 0 0 1000 600 5000 400 10 90 300 200");
    let after = reading("after", "0 0 0 0 300 90 0 0 0 3000 1600 15000 1400 110 190 800 500");
    let text = fine(&["counters", &before, &after]);
    for row in ["TTWU Count 200", "SIS Search 2,000", "SIS Core Hit 200", "SIS Recent Success Rate 50.00"] {
        assert!(has_row(&text, row), "{row}\n{text}");
    }
    assert!(trouble(&["counters", &after, &before]).contains("ttwu_count goes back"));
    assert!(has_row(&fine(&["counters", "--each", &before, &after]), "TTWU Count 100 300 +200.00%"));
    let odd = reading("odd", "0 0 0 0 100 50 0 0 0 1 2 3");
    assert!(trouble(&["counters", &odd]).contains("12 numbers after cpu0; expected 9"));
    assert!(trouble(&["counters", &dir.file("x", "hello\n")]).contains("no counters; expected"));
    let json: serde_json::Value =
        serde_json::from_str(&fine(&["counters", &before, &after, "--format", "json"])).expect("JSON");
    assert_eq!(json["columns"][0]["rows"]["SIS Scanned"], 10000);
}

#[test]
fn a_report_of_replay_has_counters_too() {
    let dir = Dir::new();
    let report = dir.file("report.json", &fine(&["replay", TRACE, "--format", "json"]));
    let text = fine(&["counters", &report]);
    assert!(text.contains("baseline   v5.11\n") && text.contains("v5.11+mel-v2"), "{text}");
    assert!(text.contains("SIS Recent Success Rate"), "{text}");
}

#[test]
fn the_machines_own_counters_stand_beside_the_modelled_ones() {
    let dir = Dir::new();
    let reading = |name: &str, count: u32| dir.file(name, &format!("cpu0 0 0 0 0 {count} 50 0 0 0\n"));
    let (before, after) = (reading("before", 100), reading("after", 4252));
    let text = fine(&["replay", TRACE, "--schedstat", &before, &after]);
    assert!(has_row(&text, "TTWU Count 4,052 4,052 0.00% 4,152"), "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("SIS Search ") && line.ends_with(" -")), "{text}");
    let text = fine(&["replay", TRACE, "--recent-miss", "2021"]);
    assert!(text.contains("Recent Used Miss as in 2021"), "{text}");
    assert!(trouble(&["replay", TRACE, TRACE, "--schedstat", &before]).contains("one recording"));
}

/// The recorded machines' own counters: every recording has a before and an after.
#[test]
fn recordings_of_every_kernel_have_counters() {
    if !Path::new(SHARED).is_dir() {
        println!("skipped: {SHARED} is not there");
        return;
    }
    for (name, version) in [
        ("smt8-state-truth", "6.1"),
        ("k510-smt8-light-state-truth", "5.10"),
        ("k612-smt8-light-state-truth", "6.12"),
        ("k73-smt8-light-state-truth", "7.3"),
    ] {
        let archive = format!("{SHARED}/{name}/state.tar.gz");
        let text = fine(&["counters", &archive]);
        let row = text.lines().find(|line| line.trim_start().starts_with("TTWU Count")).expect("a row");
        let count: u64 = row.split_whitespace().last().expect("a count").replace(',', "").parse().expect("a number");
        println!("{version}: {count} wakeups counted");
        assert!(count > 1000, "{text}");
        assert!(!text.contains("SIS Search"), "a mainline kernel does not count searches");
    }
}
