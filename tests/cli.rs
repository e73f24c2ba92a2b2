// SPDX-License-Identifier: GPL-2.0-or-later
//! The binary from outside: what it prints, where, and with which exit code.

use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tracecmd_parse::write::{FormatText, Head, Shape, TraceWriter};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/dies12-truth/trace.dat");
const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/numa80-truth/trace.dat");
const NO_PROBES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smp4-idle-light/trace.dat");

fn sisdiff() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    sisdiff().args(args).output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs, and expects one clear message on stderr, nothing on stdout, and exit code 2.
fn trouble(args: &[&str]) -> String {
    let output = run(args);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert_eq!(stdout(&output), "", "{args:?}");
    assert!(!text.contains("panicked") && !text.is_empty(), "{args:?}: {text}");
    text
}

/// Runs, and expects exit code 0 and nothing on stderr.
fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args:?}");
    stdout(&output)
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).expect("written");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[test]
fn help_has_examples_and_fits() {
    for command in
        ["replay", "merge", "explain", "info", "counters", "cut", "funcgraph", "topology", "list", "completions", "man"]
    {
        let text = fine(&[command, "--help"]);
        assert!(text.contains("Examples:") && text.contains("sisdiff"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
    let text = fine(&["--help"]);
    assert!(text.contains("Exit codes") && text.contains("replay") && text.contains("explain"), "{text}");
    assert!(fine(&["--version"]).starts_with("sisdiff "));
    let short = fine(&["replay", "-h"]);
    assert!(short.lines().count() < 66, "{short}");
}

#[test]
fn wrong_command_lines_name_what_is_wrong() {
    assert!(trouble(&["replay"]).contains("FILE"));
    assert!(trouble(&["frobnicate"]).contains("frobnicate"));
    let text = trouble(&["replay", SMALL, "--baseline", "v5.12"]);
    assert!(text.contains("v5.12") && text.contains("v5.11"), "{text}");
    assert!(trouble(&["replay", SMALL, "--patched", "v5.11+mel-v3"]).contains("mel-v2"));
    assert!(
        trouble(&["replay", SMALL, "--baseline", "v5.11", "--patched", "v5.11"]).contains("every implementation once")
    );
    assert!(trouble(&["replay", SMALL, "--since", "noon"]).contains("seconds"));
    assert!(trouble(&["replay", SMALL, "--fail-on", "maybe"]).contains("wrong"));
    assert!(trouble(&["replay", SMALL, "--comm", "[x"]).contains("--comm"));
    assert!(trouble(&["replay", SMALL, "--decisions", "-"]).contains("--quiet"));
    assert!(trouble(&["replay", SMALL, "--threads", "0"]).contains("--threads"));
    assert!(trouble(&["explain", SMALL]).contains("--wakeup"));
    assert!(trouble(&["explain", SMALL, "--wakeup", "1", "--pid", "1"]).contains("--"));
    assert!(trouble(&["list", "v9.9"]).contains("v9.9"));
    assert!(trouble(&["list", "--kernel", "linux"]).contains("linux"));
    assert!(trouble(&["topology", "2x2", "--kernel", "new"]).contains("new"));
}

#[test]
fn files_that_are_no_traces_are_named_with_the_reason() {
    let dir = Dir::new();
    let missing = dir.path("missing.dat").display().to_string();
    let text = trouble(&["replay", &missing]);
    assert!(text.contains("missing.dat") && text.contains("No such file"), "{text}");
    let text = trouble(&["replay", &dir.0.path().display().to_string()]);
    assert!(text.contains("directory"), "{text}");
    let text = trouble(&["replay", &dir.file("empty.dat", b"")]);
    assert!(text.contains("empty.dat") && text.contains("is empty"), "{text}");
    let text = trouble(&["replay", &dir.file("notes.txt", b"these are my notes\nand nothing else\n")]);
    assert!(text.contains("notes.txt"), "{text}");
    let text = trouble(&["replay", &dir.file("noise.dat", &[7; 5000])]);
    assert!(text.contains("noise.dat"), "{text}");
    let text = trouble(&["replay", SMALL, &missing]);
    assert!(text.contains("missing.dat"), "one bad file of several: {text}");
    let text = trouble(&["explain", &missing, "--wakeup", "1"]);
    assert!(text.contains("missing.dat"), "{text}");
    assert_eq!(text.lines().count(), 1, "one message: {text}");
}

#[test]
fn a_trace_cut_anywhere_is_an_error_or_a_report_that_says_so() {
    let dir = Dir::new();
    let bytes = fs::read(SMALL).expect("a recording");
    for part in [1, 5, 20, 50, 80, 95, 99] {
        let cut = dir.file("cut.dat", &bytes[..bytes.len() * part / 100]);
        let output = run(&["replay", &cut, "--topology", "2x3x2"]);
        let (out, err) = (stdout(&output), stderr(&output));
        match output.status.code() {
            Some(2) => assert!(err.contains("cut.dat") && out.is_empty(), "{part} %: {err}"),
            Some(0) => assert!(out.contains("cut or damaged"), "{part} %: {out}"),
            code => panic!("{part} %: exit {code:?}: {err}"),
        }
        assert!(!err.contains("panicked"), "{part} %: {err}");
    }
}

/// A trace.dat of `cpus` CPUs with one event of `system:name`, none if `name` is empty.
fn written(cpus: u32, system: &str, name: &str) -> Vec<u8> {
    let text = format!(
        "name: {name}\nID: 100\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:u32 count;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"count=%u\", REC->count\n"
    );
    let formats = if name.is_empty() { Vec::new() } else { vec![FormatText { system: system.into(), text }] };
    let head = Head { cpus, formats, ..Head::default() };
    let mut writer =
        TraceWriter::new(Cursor::new(Vec::new()), &Shape::default(), &head, &[]).expect("a writer into memory");
    writer.start_buffer("").expect("a buffer");
    writer.start_cpu(0).expect("a CPU");
    if !name.is_empty() {
        writer.event(1_000, &[100, 0, 0, 0, 7, 0, 0, 0, 42, 0, 0, 0]).expect("an event");
    }
    writer.finish().expect("a trace").into_inner()
}

#[test]
fn a_trace_without_sched_events_says_how_to_record_them() {
    let dir = Dir::new();
    let text = trouble(&["replay", &dir.file("timers.dat", &written(2, "timer", "tick"))]);
    assert!(text.contains("timers.dat") && text.contains("timer:tick"), "{text}");
    assert!(text.contains("trace-cmd record") && text.contains("sched_switch"), "{text}");
    let text = trouble(&["replay", &dir.file("nothing.dat", &written(2, "", ""))]);
    assert!(text.contains("no events"), "{text}");
}

#[test]
fn a_topology_of_another_machine_is_refused() {
    for other in ["2x20x2", "1x2x2"] {
        let text = trouble(&["replay", SMALL, "--topology", other]);
        assert!(text.contains(other) && text.contains("12 CPUs") && text.contains("--topology"), "{text}");
    }
    let dir = Dir::new();
    let text = trouble(&["replay", SMALL, "--topology", &dir.file("broken.tar.gz", b"not an archive")]);
    assert!(text.contains("broken.tar.gz"), "{text}");
    assert!(trouble(&["topology", "0x0x0"]).contains("0x0x0"));
}

#[test]
fn a_pipe_a_packed_file_and_the_other_reader_give_the_same() {
    let counts = |output: &Output| {
        assert_eq!((output.status.code(), stderr(output).as_str()), (Some(0), ""));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (report["files"][0]["recording"]["events"].clone(), report["files"][0]["totals"].clone())
    };
    let topology = Path::new(SMALL).with_file_name("topology.tar.gz").display().to_string();
    let args = ["--topology", &topology, "--format", "json"];
    let named = counts(&sisdiff().args(["replay", SMALL]).args(args).output().expect("runs"));
    let piped = fs::File::open(SMALL).expect("a recording");
    let piped = sisdiff().args(["replay", "-"]).args(args).stdin(piped).output().expect("runs");
    assert_eq!(counts(&piped), named);
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        println!("no trace-cmd here: its library and its text are not tried");
        return;
    }
    let other = sisdiff().args(["replay", SMALL, "--reader", "tracecmd"]).args(args).output().expect("runs");
    assert_eq!(counts(&other), named);
    let text = Command::new("trace-cmd").args(["report", "-t", SMALL]).output().expect("trace-cmd runs").stdout;
    let dir = Dir::new();
    let text = dir.file("report.txt", &text);
    let read = counts(&sisdiff().args(["replay", &text]).args(args).output().expect("runs"));
    assert_eq!((&read.0, &read.1["decisions"]), (&named.0, &named.1["decisions"]));
}

#[test]
fn without_a_topology_the_guess_is_stated() {
    let dir = Dir::new();
    let alone = dir.path("trace.dat");
    fs::copy(SMALL, &alone).expect("copied");
    let text = fine(&["replay", &alone.display().to_string()]);
    assert!(text.contains("guessed") && text.contains("--topology"), "{text}");
}

#[test]
fn the_default_report_is_plain_text_that_fits() {
    let text = fine(&["replay", SMALL]);
    for part in ["sha256", "12 CPUs", "v5.11 -> v5.11+mel-v2", "SIS Search Efficiency", "agree", "always prev_cpu"] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour codes without a terminal");
    let long: Vec<&str> =
        text.lines().filter(|line| line.chars().count() > 80 && !line.contains("trace.dat")).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(text.lines().all(|line| line.trim_end() == line), "no space at a line's end");
}

#[test]
fn colour_is_for_terminals_and_who_forces_it() {
    let colourful = |name: &str, value: &str| {
        let output = sisdiff().args(["list"]).env(name, value).output().expect("runs");
        stdout(&output).contains('\u{1b}')
    };
    assert!(colourful("CLICOLOR_FORCE", "1"));
    assert!(!colourful("NO_COLOR", "1"));
    assert!(!colourful("CLICOLOR", "1"));
    let dir = Dir::new();
    let report = dir.path("report.txt");
    let output =
        sisdiff().args(["replay", SMALL, "-o"]).arg(&report).env("CLICOLOR_FORCE", "1").output().expect("runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let text = fs::read_to_string(&report).expect("the report");
    assert!(text.contains("agree") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn fail_on_is_a_gate() {
    let code = |args: &[&str]| {
        let output = sisdiff().args(["replay", SMALL, "--quiet"]).args(args).output().expect("runs");
        assert_eq!((stdout(&output), stderr(&output)), (String::new(), String::new()));
        output.status.code()
    };
    let differing = ["--baseline", "v5.11", "--patched", "v6.1"];
    assert_eq!(code(&differing), Some(0), "differences alone are no failure");
    assert_eq!(code(&[&differing[..], &["--fail-on", "any"]].concat()), Some(1));
    assert_eq!(code(&[&differing[..], &["--fail-on", "0%"]].concat()), Some(1));
    assert_eq!(code(&[&differing[..], &["--fail-on", "100%"]].concat()), Some(0));
    assert_eq!(code(&[&differing[..], &["--fail-on", "wrong"]].concat()), Some(0));
    let same = ["--patched", "v5.11+no-sis-avg-cpu", "--fail-on", "any"];
    assert_eq!(code(&same), Some(0), "SIS_AVG_CPU is off: removing it changes nothing");
}

#[test]
fn output_that_cannot_be_written_is_trouble() {
    let text = trouble(&["replay", SMALL, "-o", "/nowhere/report.txt"]);
    assert!(text.contains("/nowhere/report.txt"), "{text}");
    let text = trouble(&["replay", SMALL, "--quiet", "--decisions", "/nowhere/decisions.jsonl"]);
    assert!(text.contains("/nowhere/decisions.jsonl"), "{text}");
}

#[test]
fn a_closed_pipe_is_success() {
    let mut child = sisdiff()
        .args(["replay", OTHER, "--quiet", "--decisions", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut line = String::new();
    {
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
    }
    let mut text = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("stderr");
    assert!(line.starts_with("{\"file\""), "{line}");
    assert_eq!((child.wait().expect("ends").code(), text.as_str()), (Some(0), ""));
}

#[test]
fn filters_count_less_and_say_so() {
    let wakeups = |args: &[&str]| {
        let report = json(&[&["replay", NO_PROBES, "--format", "json"], args].concat());
        report["files"][0]["totals"]["decisions"]["wakeups"].as_u64().expect("a count")
    };
    let all = wakeups(&[]);
    let first = wakeups(&["--until", "+1"]);
    let rest = wakeups(&["--since", "+1"]);
    assert!(first > 0 && rest > 0, "{first} {rest}");
    assert_eq!(first + rest, all);
    assert_eq!(wakeups(&["--cpu", "0-1"]) + wakeups(&["--cpu", "2-3"]), all);
    assert_eq!(wakeups(&["--comm", "*"]), all);
    let line =
        fine(&["replay", NO_PROBES, "--quiet", "--decisions", "-"]).lines().next().expect("a decision").to_owned();
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let pid = line["pid"].to_string();
    let of_pid = wakeups(&["--pid", &pid]);
    assert!((1..all).contains(&of_pid), "{of_pid} of {all}");
    assert_eq!(wakeups(&["--pid", &format!("{pid},999999")]), of_pid);
    let text = fine(&["replay", NO_PROBES, "--comm", "rcu*", "--since", "+0.5"]);
    assert!(text.contains("since +0.5, comm rcu*"), "{text}");
}

#[test]
fn probes_can_be_ignored() {
    let facts = |args: &[&str]| {
        let report = json(&[&["replay", SMALL, "--format", "json"], args].concat());
        report["files"][0]["setup"]["facts"].as_u64().expect("a count")
    };
    assert!(facts(&[]) > 0);
    assert_eq!(facts(&["--ignore-probes"]), 0);
    let text = fine(&["replay", SMALL, "--ignore-probes", "--hz", "1000", "--scan-cost", "80ns"]);
    assert!(text.contains("free running") && text.contains("HZ 1000 (as given)") && text.contains("80 ns"), "{text}");
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&fine(args)).expect("JSON")
}

/// Checks `value` against the schema in `docs/`.
fn fits(schema: &str, values: &[serde_json::Value]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(schema);
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    let id = compiler.compile(&path.display().to_string(), &mut schemas).expect("a schema");
    for value in values {
        if let Err(error) = schemas.validate(value, id) {
            panic!("{schema}: {error:#}\n{value}");
        }
    }
}

#[test]
fn json_fits_its_schema_and_adds_up() {
    let report =
        json(&["replay", SMALL, NO_PROBES, "--format", "json", "--patched", "v6.1", "--patched", "v5.11+recent-used"]);
    fits("replay.schema.json", std::slice::from_ref(&report));
    for shard in ["1/2", "2/2"] {
        let report = json(&["replay", NO_PROBES, "--format", "json", "--shard", shard]);
        assert_eq!(report["shards"]["parts"], serde_json::json!([shard[..1].parse::<u64>().expect("a number")]));
        fits("replay.schema.json", &[report]);
    }
    let wakeups = |totals: &serde_json::Value| totals["decisions"]["wakeups"].as_u64().expect("a count");
    let files = report["files"].as_array().expect("files");
    assert_eq!(files.iter().map(|file| wakeups(&file["totals"])).sum::<u64>(), wakeups(&report["sum"]));
    assert_eq!(report["sum"]["comparisons"].as_array().map(Vec::len), Some(2));
    for file in files {
        let tally = &file["totals"]["comparisons"][0]["verdicts"]["wakeups"];
        let of = |value: &serde_json::Value| value.as_u64().expect("a count");
        let sum = ["same", "different"].iter().map(|key| of(&tally[key]["known"]) + of(&tally[key]["assumed"]));
        assert_eq!(sum.sum::<u64>() + of(&tally["unknown"]), wakeups(&file["totals"]), "every wakeup has one verdict");
    }
}

#[test]
fn decisions_fit_their_schema_and_come_in_order() {
    let text = fine(&["replay", SMALL, "--quiet", "--decisions", "-"]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one JSON value a line")).collect();
    fits("decision.schema.json", &lines);
    let numbers: Vec<u64> = lines.iter().map(|line| line["number"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let report = json(&["replay", SMALL, "--format", "json"]);
    let decisions = &report["files"][0]["totals"]["decisions"];
    let all: u64 = ["wakeups", "forks", "execs"].iter().filter_map(|kind| decisions[kind].as_u64()).sum();
    assert_eq!(numbers.len() as u64, all);
}

#[test]
fn threads_change_nothing_but_the_time() {
    let dir = Dir::new();
    let at = |threads: &str, name: &str| {
        let decisions = dir.path(name);
        let args = ["replay", SMALL, OTHER, NO_PROBES, "--threads", threads, "--decisions"];
        let output = sisdiff().args(args).arg(&decisions).output().expect("runs");
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        (output.stdout, fs::read(decisions).expect("decisions"))
    };
    let (one, two) = (at("1", "one.jsonl"), at("2", "two.jsonl"));
    assert!(one.0.len() > 1000 && one.1.len() > 1_000_000);
    assert!(one == two, "one and two threads differ");
    // More than there are files: each is read ahead.
    assert!(one == at("4", "four.jsonl"), "one and four threads differ");
}

#[test]
fn explain_shows_machine_decisions_and_walks() {
    let wide = fine(&["explain", SMALL, "--wakeup", "30", "--width", "100", "--patched", "v6.1"]);
    for part in ["LLC 0-5", "LLC 6-11", "prev_cpu", "recorded choice", "select_idle_sibling()", "leaned on"] {
        assert!(wide.contains(part), "no {part}: {wide}");
    }
    assert!(wide.lines().all(|line| line.chars().count() <= 100), "{wide}");
    assert!(wide.lines().any(|line| line.matches("select_idle_sibling()").count() == 2), "side by side: {wide}");
    let narrow = fine(&["explain", SMALL, "--wakeup", "30", "--width", "80", "--patched", "v6.1"]);
    assert!(narrow.lines().all(|line| line.matches("select_idle_sibling()").count() <= 1), "stacked: {narrow}");
    assert!(narrow.lines().any(|line| line.starts_with("> ")), "the first different step: {narrow}");
}

#[test]
fn explain_finds_a_wakeup_by_time_and_task() {
    let text = fine(&["replay", SMALL, "--quiet", "--decisions", "-"]);
    let line: serde_json::Value = serde_json::from_str(text.lines().nth(99).expect("line 100")).expect("JSON");
    let ts_ns = line["ts_ns"].as_u64().expect("a time");
    let at = format!("{}.{:06}", ts_ns / 1_000_000_000, ts_ns % 1_000_000_000 / 1_000);
    let pid = line["pid"].as_i64().expect("a pid").to_string();
    let by_time = fine(&["explain", SMALL, "--at", &at, "--pid", &pid]);
    assert_eq!(by_time, fine(&["explain", SMALL, "--wakeup", "100"]));
    let text = trouble(&["explain", SMALL, "--at", &at, "--pid", "999999"]);
    assert!(text.contains("999999"), "{text}");
    let text = trouble(&["explain", SMALL, "--wakeup", "1000000"]);
    assert!(text.contains("1000000") && text.contains("numbered from 1"), "{text}");
    assert!(trouble(&["explain", SMALL, "--wakeup", "0"]).contains("numbered from 1"));
}

#[test]
fn topology_list_and_completions_answer() {
    let text = fine(&["topology", "2x20x2"]);
    assert!(text.contains("80 CPUs") && text.ends_with('\n'), "{text}");
    let snapshot = Path::new(SMALL).with_file_name("topology.tar.gz").display().to_string();
    assert!(fine(&["topology", &snapshot]).contains("12 CPUs"));
    let text = fine(&["list"]);
    assert!(text.contains("v5.11") && text.contains("+mel-v2") && text.contains("v6.1"), "{text}");
    assert!(fine(&["list", "v5.11"]).contains("SIS_PROP"));
    assert!(fine(&["list", "--kernel", "6.1.0-57-amd64"]).starts_with("v6.1:"));
    for (shell, sign) in [("bash", "complete"), ("zsh", "#compdef"), ("fish", "complete -c sisdiff")] {
        assert!(fine(&["completions", shell]).contains(sign), "{shell}");
    }
}

/// Memory must not grow with the trace: the largest recording at hand stays under 64 MB of anonymous memory.
#[test]
fn memory_stays_small() {
    let folders =
        [concat!(env!("CARGO_MANIFEST_DIR"), "/traces"), concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces")];
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let traces = files.map(|entry| entry.path().join("trace.dat")).filter(|path| path.exists());
    let largest = traces.max_by_key(|path| fs::metadata(path).map_or(0, |meta| meta.len())).expect("a recording");
    let mut child = sisdiff()
        .args(["replay", "--threads", "1", "--decisions", "/dev/null", "-o", "/dev/null"])
        .args([&largest, &largest])
        .spawn()
        .expect("runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kb = 0;
    while child.try_wait().expect("waits").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
        let kb = line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0);
        peak_kb = peak_kb.max(kb);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().expect("ends").success());
    eprintln!("{}: at most {peak_kb} kB of anonymous memory", largest.display());
    assert!((1..64 * 1024).contains(&peak_kb), "{peak_kb} kB");
}

/// A copy of a recording that may be lost.
fn precious(dir: &Dir) -> String {
    dir.file("trace.dat", &fs::read(NO_PROBES).expect("a recording"))
}

#[test]
fn no_output_overwrites_an_input_or_the_other_output() {
    let dir = Dir::new();
    let trace = precious(&dir);
    let topology = dir.file("topology.tar.gz", b"not looked at");
    let link = dir.path("link").display().to_string();
    std::os::unix::fs::symlink(&trace, &link).expect("a link");
    let hard = dir.path("hard").display().to_string();
    fs::hard_link(&trace, &hard).expect("a link");
    let before = fs::read(&trace).expect("the recording");
    for output in [&trace, &link, &hard, &topology] {
        for flag in ["--decisions", "-o"] {
            let text = trouble(&["replay", NO_PROBES, &trace, flag, output]);
            assert!(text.contains("would overwrite") && text.contains(output.as_str()), "{text}");
        }
    }
    let text = trouble(&["replay", NO_PROBES, "--topology", &topology, "-o", &topology]);
    assert!(text.contains("the topology"), "{text}");
    let piped = fs::File::open(&trace).expect("the recording");
    let output = sisdiff().args(["replay", "-", "-o", &trace]).stdin(piped).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let appended = fs::OpenOptions::new().append(true).open(&trace).expect("the recording");
    let output = sisdiff().args(["replay", &trace]).stdout(appended).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(fs::read(&trace).expect("the recording") == before, "the recording was touched");

    let one = dir.path("one").display().to_string();
    let other = dir.path("./one").display().to_string();
    for [decisions, report] in [[&one, &one], [&one, &other]] {
        let text = trouble(&["replay", NO_PROBES, "--decisions", decisions, "-o", report]);
        assert!(text.contains("name two files"), "{text}");
        assert!(!Path::new(&one).exists());
    }
    for report in ["-", "/dev/stdout"] {
        assert!(trouble(&["replay", NO_PROBES, "--decisions", "-", "-o", report]).contains("name two files"));
    }
}

#[test]
fn a_failed_run_leaves_old_output_and_nothing_else() {
    let dir = Dir::new();
    let old = dir.file("decisions.jsonl", b"old");
    let report = dir.file("report.txt", b"old");
    trouble(&["replay", NO_PROBES, "/nowhere.dat", "--decisions", &old, "-o", &report]);
    trouble(&["replay", NO_PROBES, "--topology", "2x20x2", "--decisions", &old, "-o", &report]);
    assert_eq!([fs::read(&old).expect("decisions"), fs::read(&report).expect("a report")], [b"old", b"old"]);
    assert_eq!(fs::read_dir(dir.0.path()).expect("a folder").count(), 2, "no temporary file is left");

    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&old, fs::Permissions::from_mode(0o664)).expect("a mode");
    let link = dir.path("link").display().to_string();
    std::os::unix::fs::symlink("decisions.jsonl", &link).expect("a link");
    assert_eq!(fine(&["replay", NO_PROBES, "-q", "--decisions", &link, "-o", &report]), "");
    assert!(fs::read_to_string(&old).expect("decisions").starts_with("{\"file\""));
    assert!(fs::read_to_string(&report).expect("a report").contains("agreement"), "--quiet keeps -o");
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert_eq!(fs::metadata(&old).expect("decisions").permissions().mode() & 0o777, 0o664);
    assert_eq!(fs::read_dir(dir.0.path()).expect("a folder").count(), 3, "no temporary file is left");
}

#[test]
fn devices_are_written_as_they_are() {
    let text = trouble(&["replay", NO_PROBES, "-o", "/dev/full"]);
    assert!(text.contains("/dev/full") && text.contains("No space"), "{text}");
    assert!(trouble(&["replay", NO_PROBES, "-q", "--decisions", "/dev/full"]).contains("No space"));
    assert!(fine(&["replay", NO_PROBES, "-q", "--decisions", "/dev/stdout"]).starts_with("{\"file\""));
    assert!(fine(&["replay", NO_PROBES, "-o", "-"]).contains("agreement"));
}

#[test]
fn times_and_numbers_out_of_range_are_told() {
    for [since, until] in [["7", "6.5"], ["+2", "+1"]] {
        let text = trouble(&["replay", NO_PROBES, "--since", since, "--until", until]);
        assert!(text.contains("is later than"), "{text}");
    }
    assert!(trouble(&["replay", NO_PROBES, "--since", "-5"]).contains("not negative"));
    assert!(trouble(&["replay", NO_PROBES, "--pid", "-1"]).contains("a number from 0"));
    for width in ["59", "401"] {
        assert!(trouble(&["explain", NO_PROBES, "--wakeup", "1", "--width", width]).contains("60..=400"));
    }
    let text = trouble(&["replay", NO_PROBES, "--baseline", "tree:/no/such/linux"]);
    assert!(text.contains("/no/such/linux: no such file"), "{text}");
}

#[test]
fn nothing_compared_is_told_and_no_success_of_a_gate() {
    let output = run(&["replay", NO_PROBES, "--comm", "no such name"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stderr(&output);
    assert!(text.contains("filters") && text.lines().count() == 1, "{text}");
    for gate in ["any", "wrong", "5%"] {
        let text = trouble(&["replay", NO_PROBES, "--comm", "no such name", "--fail-on", gate, "--quiet"]);
        assert!(text.contains("nothing was compared") && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn the_hint_is_a_command_that_explains() {
    let dir = Dir::new();
    let file = dir.file("it's a trace.dat", &fs::read(SMALL).expect("a recording"));
    let topology = Path::new(SMALL).with_file_name("topology.tar.gz").display().to_string();
    let flags = ["--baseline", "v6.1", "--patched", "v5.11", "--topology", &topology, "--ignore-probes", "--hz", "300"];
    let text = fine(&[&["replay", &file, "--scan-cost", "60"], &flags[..]].concat());
    let hint = text.lines().find_map(|line| line.strip_prefix("one of them: sisdiff ")).expect("a hint").to_owned();
    for flag in ["--baseline v6.1", "--patched v5.11", "--ignore-probes", "--hz 300", "--scan-cost 60", "--topology "] {
        assert!(hint.contains(flag), "no {flag}: {hint}");
    }
    let again = Command::new("sh")
        .args(["-c", &format!("\"$0\" {hint}"), env!("CARGO_BIN_EXE_sisdiff")])
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    assert_eq!((again.status.code(), stderr(&again).as_str()), (Some(0), ""), "{hint}");
    let plain = fine(&["replay", SMALL]);
    let hint = plain.lines().find(|line| line.starts_with("one of them")).expect("a hint");
    assert!(hint.contains(&format!("explain {SMALL} --wakeup ")), "nothing that is default: {hint}");
    let piped = fs::File::open(SMALL).expect("a recording");
    let output = sisdiff().args(["replay", "-", "--topology", &topology]).stdin(piped).output().expect("runs");
    assert!(output.status.success() && !stdout(&output).contains("one of them"), "{}", stdout(&output));
}

#[test]
fn endless_input_is_refused_under_its_own_name_and_leaves_nothing() {
    let dir = Dir::new();
    for (file, reason) in [("/dev/zero", "binary data"), ("/dev/null", "is empty")] {
        let output = sisdiff().args(["replay", file]).env("TMPDIR", dir.0.path()).output().expect("runs");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("sisdiff: {file}: ")) && text.contains(reason), "{text}");
    }
    let output = run(&["replay", "-"]);
    assert!(stderr(&output).starts_with("sisdiff: -: is empty"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.0.path()).expect("a folder").count(), 0);
}

#[test]
fn control_characters_of_a_name_do_not_reach_the_terminal() {
    let dir = Dir::new();
    let file = dir.file("a\u{1b}[31m.dat", &fs::read(NO_PROBES).expect("a recording"));
    let text = fine(&["replay", &file, "--topology", "1x4x1"]);
    assert!(text.contains("a\\u{1b}[31m.dat") && !text.contains('\u{1b}'), "{text}");
    assert!(trouble(&["replay", &dir.path("b\u{1b}.dat").display().to_string()]).contains("b\\u{1b}.dat"));
}
