// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff fidelity` from end to end.

use std::path::Path;
use std::process::{Command, Output};

const FULL: &str = "traces/numa16-state-truth/trace.dat";
const SCAN: &str = "traces/smt8-scan-truth/trace.dat";
const NO_PROBES: &str = "traces/smp4-idle-light/trace.dat";

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.arg("fidelity").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("sisdiff runs")
}

fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&fine(&[args, &["--format", "json"]].concat())).expect("JSON")
}

fn count(value: &serde_json::Value) -> u64 {
    value.as_u64().expect("a count")
}

#[test]
fn reports_are_their_snapshots() {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!("fidelity-numa16-state-truth", fine(&[FULL]));
        insta::assert_snapshot!("fidelity-smt8-scan-truth", fine(&[SCAN]));
    });
}

#[test]
fn json_fits_its_schema_and_adds_up() {
    let report = json(&[FULL, SCAN, NO_PROBES, "--also", "v6.12"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fidelity.schema.json");
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let id = compiler.compile(&path.display().to_string(), &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(&report, id) {
        panic!("{error:#}");
    }
    for file in report["files"].as_array().expect("files") {
        assert_eq!(file["implementations"].as_array().map(Vec::len), Some(2), "the model and the other one");
        let model = &file["implementations"][0];
        assert_eq!(model["recorded"], true);
        let wakeups = &model["kinds"]["wakeups"];
        let grounds = wakeups["agreement"].as_object().expect("grounds");
        let compared: u64 = grounds.values().map(|share| count(&share["of"])).sum();
        assert_eq!(compared + count(&wakeups["choice_unknown"]), count(&wakeups["decisions"]));
        let cells = model["confusion"].as_array().expect("cells").iter();
        assert_eq!(cells.map(|cell| count(&cell["count"])).sum::<u64>(), compared, "every wakeup has one cell");
        let kinds = model["kinds"].as_object().expect("kinds").values();
        let shares = kinds.flat_map(|kind| kind["agreement"].as_object().expect("grounds").values());
        let differ: u64 = shares.map(|share| count(&share["of"]) - count(&share["same"])).sum();
        let causes = model["residue"].as_array().expect("causes").iter();
        let listed: usize = causes.map(|cause| cause["decisions"].as_array().expect("numbers").len()).sum();
        assert_eq!(listed as u64, differ, "every disagreement has one cause");
        let races = model["races"].as_array().expect("proofs");
        for race in races {
            let [at, from, until] = ["ts_ns", "from_ns", "until_ns"].map(|key| count(&race[key]));
            assert!(from <= at && at <= until, "{race}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let files = [SCAN, NO_PROBES, FULL];
    let one = fine(&[&files[..], &["--threads", "1"]].concat());
    assert_eq!(fine(&[&files[..], &["--threads", "3"]].concat()), one);
}

#[test]
fn ignored_probes_are_no_inputs_and_change_no_choice() {
    let with = json(&[FULL]);
    let without = json(&[FULL, "--ignore-probes"]);
    assert_eq!(without["files"][0]["level"], "none");
    assert_eq!(without["files"][0]["ignore_probes"], true);
    let of = |report: &serde_json::Value, input: &str| {
        let inputs = report["files"][0]["implementations"][0]["inputs"].as_array().expect("inputs").clone();
        inputs.into_iter().find(|it| it["input"] == input).expect("it was read")
    };
    assert!(count(&of(&with, "sync")["traced"]) > 0);
    assert_eq!(count(&of(&without, "sync")["traced"]), 0);
    // What was derived without probes was checked by them both times, with the same result.
    assert_eq!(with["files"][0]["derived"], without["files"][0]["derived"]);
}

#[test]
fn a_minimum_is_a_gate() {
    assert_eq!(run(&[FULL, "--min", "90", "--quiet"]).status.code(), Some(0));
    let output = run(&[FULL, "--min", "100%", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--min 100 asks for more"));
    assert_eq!(run(&[FULL, "--min", "101"]).status.code(), Some(2));
    assert_eq!(run(&["nowhere.dat"]).status.code(), Some(2));
}

#[test]
fn markdown_has_a_row_for_each_recording() {
    let text = fine(&[FULL, SCAN, "--format", "markdown"]);
    for name in ["numa16-state-truth", "smt8-scan-truth"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("| {name} | "))), "{text}");
    }
    let width = |line: &str| line.matches(" | ").count();
    let tables = text.split("\n\n");
    for table in tables {
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines.iter().all(|line| width(line) == width(lines[0])), "{table}");
    }
}
