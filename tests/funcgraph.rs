// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff funcgraph` from outside, on the figures of a mail, on a recording, and on damaged text.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PIPE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/funcgraph/pipe.txt");
const DAMAGED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/funcgraph/damaged.txt");
const SCHEMA: &str = include_str!("../docs/funcgraph.schema.json");

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.arg("funcgraph").args(args).stdin(Stdio::null()).env_remove("CLICOLOR_FORCE");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8").replace(concat!(env!("CARGO_MANIFEST_DIR"), "/"), "")
}

fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    text(&output.stdout)
}

fn snapshot(name: &str, report: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, report));
}

/// The recording of the tracer, which lies beside the project.
fn recording() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    let folder = std::env::var_os("SISDIFF_TRACES").map_or_else(beside, PathBuf::from);
    folder.join("smt8-pipe-fgraph/trace.dat")
}

fn part(label: &str, number: usize) -> String {
    format!("{label}={PIPE}#{number}")
}

const OPERATION: [&str; 8] = [
    "--ops",
    "2*activate_task + 2*deactivate_task",
    "--measured",
    "off=16.1762",
    "--measured",
    "group=19.1771",
    "--measured",
    "uclamp=17.12574",
];

/// The mail concludes: group scheduling adds about 800 ns to each of four calls, which explains 3 us; uclamp 200 ns,
/// which would explain 1 us.
#[test]
fn the_mails_conclusion_comes_out_of_its_figures() {
    let sets = [part("off", 3), part("group", 1), part("uclamp", 4)];
    let args: Vec<&str> = sets.iter().map(String::as_str).chain(OPERATION).collect();
    let report = fine(&args);
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    snapshot("funcgraph-pipe", &report);
}

#[test]
fn json_fits_its_schema() {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    compiler.add_resource("funcgraph.schema.json", schema).expect("the schema is one");
    let compiled = compiler.compile("funcgraph.schema.json", &mut schemas).expect("the schema compiles");
    let (off, group) = (part("off", 3), part("group", 1));
    for args in [vec![PIPE, "--format", "json"], vec![&off, &group, "--format", "json", "--ops", "activate_task"]] {
        let report: serde_json::Value = serde_json::from_str(&fine(&args)).expect("JSON");
        schemas.validate(&report, compiled).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        assert_eq!(report["schema"], "sisdiff.funcgraph/1");
    }
}

#[test]
fn damage_is_counted_with_its_lines_and_what_is_whole_counts() {
    let output = run(&[DAMAGED]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    for line in [7, 9, 11] {
        assert!(err.contains(&format!("line {line}: ")), "{err}");
    }
    assert!(err.contains("3 unreadable"), "{err}");
    snapshot("funcgraph-damaged", &out);
}

#[test]
fn what_cannot_be_is_said() {
    let trouble = |args: &[&str]| {
        let output = run(args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        text(&output.stderr)
    };
    assert!(trouble(&["no-such-file"]).contains("no-such-file"));
    assert!(trouble(&[&format!("{PIPE}#9")]).contains("no part 9: found 4 parts"));
    assert!(trouble(&[PIPE, "--baseline", "x"]).contains("pipe.txt#1"));
    assert!(trouble(&[PIPE, "--measured", "pipe.txt#1=3"]).contains("--ops"));
    assert!(trouble(&[PIPE, "--ops", "2 f"]).contains("2 f"));
    let toml = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(trouble(&[toml]).contains("no function graph"));
    let dat = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/dies12-truth/trace.dat");
    assert!(trouble(&[dat]).contains("function_graph -l"));
}

#[test]
fn filters_leave_out_and_say_so() {
    let report = fine(&[&part("a", 1), "--function", "de*", "--pid", "602"]);
    assert!(report.contains("deactivate_task") && !report.contains("  activate_task"), "{report}");
    assert!(report.contains("calls left out"), "{report}");
    let report = fine(&[&part("a", 1), "--until", "+0.00002"]);
    assert!(report.contains("9 calls left out"), "{report}");
}

/// Both recordings are in one file here, so the join can be tried end to end.
#[test]
fn the_time_of_a_decision_is_fitted_to_what_it_looked_at() {
    let dat = recording();
    if !dat.is_file() {
        eprintln!("not fitted: no recording {}", dat.display());
        return;
    }
    let dat = dat.to_str().expect("a path");
    let json: serde_json::Value = serde_json::from_str(&fine(&[dat, "--fit", "--format", "json"])).expect("JSON");
    let cost = &json["scan_costs"][0];
    assert_eq!((&cost["model"], &cost["calls"]), (&"v6.1".into(), &78.into()));
    let joined = cost["joined"].as_u64().expect("a count");
    assert!((50..=78).contains(&joined), "{joined}");
    assert!(cost["rows"][0]["cost"]["per_probe_ns"].as_f64().is_some_and(f64::is_finite), "{cost}");
}

/// The recording and `trace-cmd report` of it tell the same calls; the counts are those of `grep -c`.
#[test]
fn a_recording_and_trace_cmds_report_of_it_agree() {
    let dat = recording();
    let report = Command::new("trace-cmd").args(["report", "-t"]).arg(&dat).output();
    let Some(report) = report.ok().filter(|output| output.status.success()) else {
        eprintln!("not compared: no trace-cmd, or no recording {}", dat.display());
        return;
    };
    let temp = tempfile::tempdir().expect("a temporary directory");
    let lines = temp.path().join("report.txt");
    std::fs::write(&lines, &report.stdout).expect("written");
    let functions = |path: &Path| {
        let json = fine(&[path.to_str().expect("a path"), "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let set = json["sets"][0].clone();
        assert_eq!((set["unpaired"].as_array().map(Vec::len), &set["nameless_exits"]), (Some(0), &0.into()));
        set["functions"].clone()
    };
    let (of_dat, of_text) = (functions(&dat), functions(&lines));
    assert_eq!(of_dat, of_text, "durations are equal to the printed digit");
    let printed = String::from_utf8_lossy(&report.stdout).into_owned();
    for row in of_dat.as_array().expect("functions") {
        let name = row["function"].as_str().expect("a name");
        let needle = format!("  {name}()");
        let entries = printed.lines().filter(|line| line.contains("funcgraph_entry:") && line.contains(&needle));
        assert_eq!(row["calls"], entries.count(), "{name}");
    }
}
