// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff replay --format perfetto` and `--format parquet`: what needs no other tool, and `tests/formats/run`, which
//! opens the files with DuckDB and with Perfetto's schema where those are installed.
#![cfg(feature = "parquet")]

use std::fs;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SMALL: &str = "traces/smt8-affinity-truth/trace.dat";
const OTHER: &str = "traces/dies12-truth/trace.dat";

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).args(args).current_dir(ROOT).output().expect("sisdiff runs")
}

fn fine(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    assert!(output.status.success(), "{args:?}");
    output.stdout
}

fn trouble(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_same_bytes_come_from_a_pipe_a_file_and_any_number_of_threads() {
    let dir = tempfile::tempdir().expect("a folder");
    for format in ["perfetto", "parquet"] {
        let path = dir.path().join(format).display().to_string();
        let piped = fine(&["replay", SMALL, "--format", format, "-o", "-", "--threads", "1"]);
        assert!(piped.len() > 10_000, "{format}: {}", piped.len());
        assert!(fine(&["replay", SMALL, "--format", format, "-o", &path]).is_empty());
        assert!(fs::read(&path).expect("what was written") == piped, "{format}");
    }
}

#[test]
fn parquet_has_its_magic_at_both_ends() {
    let bytes = fine(&["replay", SMALL, "--format", "parquet", "-o", "-"]);
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn a_folder_gets_a_file_for_each_recording() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = format!("{}/corpus/", dir.path().display());
    fine(&["replay", SMALL, OTHER, "--format", "parquet", "-o", &folder]);
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["dies12-truth-trace.parquet", "smt8-affinity-truth-trace.parquet"]);
    let one = fine(&["replay", OTHER, "--format", "parquet", "-o", "-"]);
    assert!(fs::read(format!("{folder}/{}", names[0])).expect("a file") == one);
}

#[test]
fn what_cannot_be_written_is_told_before_the_work() {
    assert!(trouble(&["replay", SMALL, "--format", "parquet"]).contains("-o NAME.parquet"));
    assert!(trouble(&["replay", SMALL, "--format", "perfetto"]).contains("-o NAME.pftrace"));
    assert!(trouble(&["replay", SMALL, OTHER, "--format", "perfetto", "-o", "x"]).contains("give one"));
    assert!(trouble(&["replay", SMALL, OTHER, "--format", "parquet", "-o", "x"]).contains("end its name with /"));
    assert!(trouble(&["replay", SMALL, "--format", "parquet", "-o", "-", "--decisions", "-"]).contains("--decisions"));
    let text = trouble(&["replay", SMALL, "--format", "parquet", "-o", "/nowhere/x.parquet"]);
    assert!(text.contains("/nowhere/x.parquet") && text.contains("cannot be written"), "{text}");
    let text = trouble(&["replay", SMALL, "--format", "perfetto", "-o", "/dev/full"]);
    assert!(text.contains("/dev/full") && text.contains("No space"), "{text}");
    let text = trouble(&["replay", SMALL, "--format", "parquet", "-o", "/dev/full"]);
    assert!(text.contains("/dev/full") && text.contains("No space"), "{text}");
}

#[test]
fn a_gate_holds_with_any_format() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("x").display().to_string();
    let output = run(&["replay", SMALL, "--format", "parquet", "-o", &path, "--fail-on", "any"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(fs::metadata(&path).is_ok());
}

#[test]
fn other_tools_open_what_was_written() {
    let output = Command::new(format!("{ROOT}/tests/formats/run"))
        .env("SISDIFF", env!("CARGO_BIN_EXE_sisdiff"))
        .output()
        .expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // It says what it could not do for lack of a tool.
    println!("{out}");
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("queries: ") || out.contains("no duckdb") || out.contains("no Python"), "{out}");
}
