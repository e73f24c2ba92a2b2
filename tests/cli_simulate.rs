// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff simulate` from outside.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).arg("simulate").args(args).output().expect("the binary runs")
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

const SHORT: [&str; 6] = ["--topology", "1x4x2", "--time", "20ms", "--warmup", "5ms"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&SHORT).copied().collect()
}

#[test]
fn a_table_has_a_row_for_each_load_and_a_column_for_each_implementation() {
    let text = fine(&with(&["tbench", "clients=1,6", "--patched", "v5.11+recent-used", "--patched", "v6.1"]));
    for row in ["Hmean 1", "Hmean 6", "Lat 99.9% 6", "SIS Search", "6 tbench_srv v6.1"] {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(text.lines().any(|line| words(line).starts_with(&words(row))), "{row}\n{text}");
    }
    assert!(text.contains("v5.11+recent-used") && text.contains("v6.1"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn the_same_bytes_at_any_number_of_threads() {
    let one = fine(&with(&["tbench", "clients=3,6", "--threads", "1"]));
    assert_eq!(one, fine(&with(&["tbench", "clients=3,6", "--threads", "4"])));
    assert_ne!(one, fine(&with(&["tbench", "clients=3,6", "--seed", "2"])));
}

#[test]
fn json_fits_its_schema() {
    let report = fine(&with(&["schbench", "workers=4", "--format", "json", "--repeat", "1"]));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/simulate.schema.json");
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let id = compiler.compile(&path.display().to_string(), &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(&report, id) {
        panic!("{error:#}");
    }
    let cell = &report["loads"][0]["implementations"][0];
    let wakeups = cell["wakeups"].as_u64().expect("a number");
    let exits: u64 = cell["exits"].as_object().expect("exits").values().filter_map(Value::as_u64).sum();
    assert!(wakeups > 0 && exits > 0 && exits <= wakeups, "{wakeups} {exits}");
}

#[test]
fn costs_can_be_printed_given_and_swept() {
    let costs = fine(&["--print-cost"]);
    assert!(costs.contains("[context_switch_ns]") && costs.contains("our guess"), "{costs}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("cost.toml");
    std::fs::write(&file, costs.replace("value = 1200", "value = 120000")).expect("written");
    let file = file.display().to_string();
    let hmean = |text: &str| -> f64 {
        let line = text.lines().find(|line| line.trim_start().starts_with("Hmean")).expect("a row");
        line.split_whitespace().nth(2).and_then(|word| word.parse().ok()).expect("a number")
    };
    let (cheap, dear) = (fine(&with(&["pipe"])), fine(&with(&["pipe", "--cost", &file])));
    assert!(hmean(&cheap) > 4.0 * hmean(&dear), "{cheap}\n{dear}");
    let swept = fine(&with(&["pipe", "--sweep", "ipi_ns=0,500"]));
    assert!(swept.contains("ipi_ns=0") && swept.contains("ipi_ns=500"), "{swept}");
}

#[test]
fn what_is_not_there_is_refused_with_the_next_step() {
    for (args, told) in [
        (&["tbnch"][..], "tbench"),
        (&["tbench", "client=3"], "clients"),
        (&["tbench", "clients"], "KEY=VALUE"),
        (&["tbench", "clients=x"], "a number"),
        (&["tbench", "--set", "ipi=3"], "ipi_ns"),
        (&["tbench", "--softness", "5"], "5:4"),
        (&["tbench", "--cost", "/nonexistent"], "cannot be read"),
        (&["tbench", "--kernel", "linux"], "6.1"),
    ] {
        let error = trouble(args);
        assert!(error.contains(told), "{args:?}: {error}");
    }
}

#[test]
fn a_side_file_binds_tasks() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("soft.toml");
    std::fs::write(&file, "[[rule]]\ncomm = \"tbench*\"\nallowed = \"0-1\"\n").expect("written");
    let file = file.display().to_string();
    let report = fine(&with(&["tbench", "clients=4", "--affinity", &file, "--format", "json"]));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let busy = &report["loads"][0]["implementations"][0]["busy_ns"];
    assert!(busy[1].as_u64() > Some(0) && busy[3].as_u64() == Some(0), "{busy}");
}

#[test]
fn every_built_in_workload_runs() {
    let list = fine(&["--list"]);
    let names = list.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(':').next());
    let mut seen = 0;
    for name in names {
        let text = fine(&with(&[name, "--repeat", "1"]));
        assert!(text.contains("Hmean"), "{name}: {text}");
        seen += 1;
    }
    assert!(seen >= 7, "{list}");
}

#[test]
fn files_in_rt_apps_grammar_run() {
    for (file, unit) in [("periodic.json", "rounds a second"), ("pipeline.json", "sink")] {
        let path = format!("{}/tests/rtapp/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fine(&[&path, "--topology", "1x2x2", "--time", "100ms", "--repeat", "1"]);
        assert!(text.contains(unit), "{text}");
        let hmean = text.lines().find(|line| line.trim_start().starts_with("Hmean")).expect("a row");
        assert!(!hmean.contains(" 0.00 (   0.00%)  0.00"), "{hmean}");
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("app.json");
    std::fs::write(&file, "{\"tasks\": {\"t\": {\"run\": 5, \"mem\": 7}}}").expect("written");
    let error = trouble(&[&file.display().to_string()]);
    assert!(error.contains("\"mem\" is not supported"), "{error}");
}

/// The share of each CPU's time, percent.
fn shares(figures: &Value, wall: &Value) -> Vec<f64> {
    let wall = wall.as_f64().expect("a length");
    let busy = figures["busy_ns"].as_array().expect("a list");
    busy.iter().map(|ns| 100.0 * ns.as_f64().expect("a number") / wall).collect()
}

/// What the recorded kernel's model makes of a recording: the error of busy shares in points, by CPU and by rank, and
/// migrations by those recorded.
fn reality(file: &Path) -> (f64, f64, f64) {
    let report = fine(&[&file.display().to_string(), "--format", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let load = &report["loads"][0];
    let recorded = &load["recorded"];
    let model = load["implementations"].as_array().expect("a list").last().expect("the recorded kernel's model");
    let mut one = shares(recorded, &recorded["wall_ns"]);
    let mut two = shares(model, &model["measured_ns"]);
    let error = |one: &[f64], two: &[f64]| {
        one.iter().zip(two).map(|(one, two)| (one - two).abs()).sum::<f64>() / one.len() as f64
    };
    let by_cpu = error(&one, &two);
    one.sort_by(f64::total_cmp);
    two.sort_by(f64::total_cmp);
    let moved: u64 = ["woken_to", "pulled"]
        .iter()
        .flat_map(|key| ["core", "llc", "node", "remote"].map(|far| model[*key][far].as_u64().unwrap_or(0)))
        .sum();
    let migrations = recorded["migrations"].as_f64().expect("a number");
    (by_cpu, error(&one, &two), moved as f64 / migrations)
}

#[test]
fn recordings_come_out_near_what_was_recorded() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces");
    for name in ["smp4-rtapp-truth", "smt8-light-state-truth", "smt8-pipe-v6", "numa80-light-truth"] {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(name).join("trace.dat");
        let file = if own.is_file() { own } else { shared.join(name).join("trace.dat") };
        if !file.is_file() {
            println!("{name} is not there: not simulated");
            continue;
        }
        let (by_cpu, by_rank, migrations) = reality(&file);
        println!("{name}: {by_cpu:.1} points by CPU, {by_rank:.1} by rank, {migrations:.2} of the migrations");
        // In smt8-pipe-v6 two tasks run all the time and hang on one pass of load balancing: over seeds see docs/reality.md.
        assert!(by_cpu < 10.0 && (0.5..=2.0).contains(&migrations), "{name}: {by_cpu} {by_rank} {migrations}");
    }
}

#[test]
fn several_costs_make_a_grid_of_stated_size() {
    let text = fine(&with(&["pipe", "--repeat", "1", "--sweep", "ipi_ns=0,500", "--sweep", "probe_llc_ns=10,20,30"]));
    let rows = text.lines().filter(|line| line.trim_start().starts_with("Hmean")).count();
    assert_eq!(rows, 6, "{text}");
    assert!(text.contains("1 ipi_ns=500 probe_llc_ns=30"), "{text}");
    assert!(trouble(&["pipe", "--sweep", "ipi_ns=1", "--sweep", "ipi_ns=2"]).contains("given twice"));
    let many: Vec<String> = (0..40).map(|value| value.to_string()).collect();
    let sweep = |key: &str| format!("{key}={}", many.join(","));
    let (one, two) = (sweep("ipi_ns"), sweep("probe_llc_ns"));
    assert!(trouble(&["pipe", "--sweep", &one, "--sweep", &two]).contains("more than 1000"));
}

#[test]
fn a_page_has_its_pictures_and_loads_nothing() {
    let page = fine(&with(&["tbench", "clients=1,2,4", "--patched", "v5.11+recent-used", "--format", "html"]));
    for part in ["Fast success rate against utilisation", "Load 4", "SIS Search", "tbench_srv", "v5.11+recent-used"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains(" NaN"), "a picture has no such place");
    assert!(page.matches("<svg").count() >= 8 && !page.contains("http://") && !page.contains("MNaN"), "{}", page.len());
}

#[test]
fn the_schedule_goes_to_perfetto() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("s.pftrace").display().to_string();
    let args = ["pipe", "--format", "perfetto", "-o", &path, "--patched", "v6.1"];
    assert_eq!(fine(&with(&args)), "");
    let bytes = std::fs::read(&path).expect("a file");
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for text in ["v5.11 (baseline): what runs", "v6.1 (patched): placements", "CPU 7", "Closed loop", "pipe ["] {
        assert!(has(text), "{text}");
    }
    assert_eq!(fine(&with(&args)), "");
    assert!(std::fs::read(&path).expect("a file") == bytes, "the same again");
    assert!(trouble(&with(&["pipe", "--format", "perfetto"])).contains("-o NAME.pftrace"));
    assert!(trouble(&with(&["pipe", "pairs=1,2", "--format", "perfetto", "-o", &path])).contains("one load"));
}

#[test]
fn the_check_against_reality_is_a_table_over_seeds() {
    let file = format!("{}/traces/smt8-light-state-truth/trace.dat", env!("CARGO_MANIFEST_DIR"));
    let table = fine(&["--suite", "reality", &file, "--repeat", "2"]);
    let row = table.lines().find(|line| line.starts_with("| smt8-light-state-truth | v6.1 | 8 |")).expect("a row");
    assert!(row.contains("2 of 2"), "{table}");
    assert!(trouble(&["tbench", "--suite", "reality"]).contains("expected recordings"));
    assert!(trouble(&[&file, "--time", "1s"]).contains("as long as it is"));
}
