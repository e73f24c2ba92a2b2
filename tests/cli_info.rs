// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff info` and `sisdiff man` from outside.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn sisdiff() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.env_remove("CLICOLOR_FORCE").env_remove("CLICOLOR").stdin(Stdio::null()).current_dir(ROOT);
    command
}

fn run(args: &[&str]) -> Output {
    sisdiff().args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    text(&output.stdout)
}

fn info(file: &str) -> Value {
    let report: Value = serde_json::from_str(&fine(&["info", file, "--format", "json"])).expect("JSON");
    fits(&report);
    report["files"][0].clone()
}

fn fits(report: &Value) {
    let path = Path::new(ROOT).join("docs/info.schema.json");
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let id = compiler.compile(&path.display().to_string(), &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(report, id) {
        panic!("{error:#}\n{report}");
    }
}

fn snapshot(name: &str, args: &[&str]) {
    let out = fine(args);
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(ROOT).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, out));
}

#[test]
fn full_probes_lack_nothing() {
    snapshot("info-smt8-light-state-truth", &["info", "traces/smt8-light-state-truth/trace.dat"]);
}

#[test]
fn a_plain_recording_lacks_probes() {
    snapshot("info-smp4-idle-light", &["info", "traces/smp4-idle-light/trace.dat"]);
}

#[test]
fn a_text_lacks_more() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("trace.txt");
    let line = |at: u32, rest: &str| format!("          <idle>-0     [001] d..2.   100.{at:06}: {rest}\n");
    let mut body = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 3/7   #P:4\n#\n\
        #                                _-----=> irqs-off\n#                               / _----=> need-resched\n\
        #                              | / _---=> hardirq/softirq\n#                              || / _--=> preempt-depth\n\
        #                              ||| / _-=> migrate-disable\n#                              |||| /     delay\n\
        #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n#              | |         |   |||||     |         |\n"
        .to_owned();
    body += &line(
        1,
        "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120",
    );
    body += &line(2, "sched_waking: comm=a pid=7 prio=120 target_cpu=001");
    body += &line(
        3,
        "sched_switch: prev_comm=c prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120",
    );
    fs::write(&file, body).expect("written");
    let out = fine(&["info", file.to_str().expect("a name")]);
    let out = out.replace(&dir.path().display().to_string(), "DIR");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(ROOT).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("info-text", out));
}

/// Counts of `trace-cmd report`-like event lists in notes.txt: `4545 sched_switch`.
fn noted(notes: &str) -> Vec<(String, u64)> {
    let from = notes.split("events by type (trace-cmd report):\n").nth(1).unwrap_or("");
    let lines = from.lines().take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(n, name)| (name.to_owned(), n.parse().unwrap_or(0)))
        .collect()
}

/// Recordings with notes, in the project and beside it.
fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["traces", "../shared/traces", "../../shared/traces"] {
        let Ok(entries) = fs::read_dir(Path::new(ROOT).join(folder)) else { continue };
        found.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.join("trace.dat").exists()));
    }
    found.sort();
    found
}

#[test]
fn every_recording_is_told_as_its_notes_say() {
    let folders = recordings();
    if !folders.iter().any(|folder| folder.to_string_lossy().contains("shared")) {
        println!("only the project's own recordings: ../shared/traces is absent");
    }
    let files: Vec<String> = folders.iter().map(|folder| folder.join("trace.dat").display().to_string()).collect();
    let mut args: Vec<&str> = vec!["info", "--format", "json"];
    args.extend(files.iter().map(String::as_str));
    let report: Value = serde_json::from_str(&fine(&args)).expect("JSON");
    fits(&report);
    let infos = report["files"].as_array().expect("files");
    assert_eq!(infos.len(), folders.len());
    for (folder, info) in folders.iter().zip(infos) {
        let name = folder.display();
        let notes = fs::read_to_string(folder.join("notes.txt")).expect("notes");
        let wanted = noted(&notes);
        assert!(wanted.len() > 3, "{name}: {wanted:?}");
        let buffer = &info["buffers"][0];
        let mut counted: Vec<(String, u64)> = buffer["by_type"]
            .as_array()
            .expect("counts")
            .iter()
            .map(|one| {
                let event = one["event"].as_str().expect("a name");
                (event.split(':').nth(1).expect("a name").to_owned(), one["count"].as_u64().expect("a count"))
            })
            .collect();
        let mut wanted_all = wanted.clone();
        counted.sort();
        wanted_all.sort();
        assert_eq!(counted, wanted_all, "{name}");
        let kernel = info["recorded"]["kernel"].as_str().expect("a kernel");
        assert!(notes.contains(&format!("Linux version {kernel} ")), "{name}: {kernel}");
        let cpus = info["recorded"]["cpus"].as_u64().expect("a count");
        assert!(notes.contains(&format!("topology:  {cpus} CPUs")), "{name}: {cpus}");
        let clock = info["recorded"]["clock"].as_str().expect("a clock");
        assert!(notes.contains(&format!("clock={clock}")) || notes.contains(&format!("-C {clock}")), "{name}: {clock}");
        assert!(notes.contains("lost events: 0") && buffer["losses"] == 0, "{name}");
        let has_full = notes.contains("probes=full");
        let probes = info["probes"].as_array().expect("probes");
        assert_eq!(probes.iter().any(|probe| probe["event"] == "kprobes:sis_rqN"), has_full, "{name}");
        assert_eq!(
            probes.iter().any(|probe| probe["event"] == "kprobes:sis_in"),
            !notes.contains("probes=none"),
            "{name}"
        );
        assert_eq!(info["replay"]["possible"], true, "{name}: {}", info["replay"]);
        assert_eq!(info["format"]["version"], if name.to_string().ends_with("v6") { 6 } else { 7 }, "{name}");
        let machine = &info["beside"]["machine"];
        assert_eq!(machine["online_cpus"].as_u64(), Some(cpus), "{name}");
    }
}

#[test]
fn public_recordings_are_told_as_their_source_says() {
    let shared = ["../shared/public-traces", "../../shared/public-traces"];
    let Some(folder) = shared.iter().map(|folder| Path::new(ROOT).join(folder)).find(|folder| folder.exists()) else {
        println!("skipped: ../shared/public-traces is absent");
        return;
    };
    let of = |name: &str| info(folder.join(name).to_str().expect("a name"));
    let count = |info: &Value, event: &str| {
        let all = info["buffers"][0]["by_type"].as_array().expect("counts");
        all.iter().find(|one| one["event"] == event).and_then(|one| one["count"].as_u64()).unwrap_or(0)
    };
    let lacks = |info: &Value, what: &str| {
        let all = info["missing"].as_array().expect("a list");
        assert!(all.iter().any(|one| one["what"].as_str().is_some_and(|text| text.contains(what))), "{what}: {all:?}");
    };
    let arm = of("v6-arm64-6cpu-schedload/trace.dat");
    assert_eq!((&arm["format"]["version"], &arm["format"]["endian"]), (&6.into(), &"little".into()));
    assert_eq!((&arm["recorded"]["cpus"], &arm["recorded"]["kernel"]), (&6.into(), &Value::Null));
    let events = [("sched:sched_load_cfs_rq", 2437), ("power:cpu_idle", 474), ("sched:sched_switch", 399)];
    for (event, n) in events.into_iter().chain([("sched:sched_load_se", 364), ("sched:sched_migrate_task", 28)]) {
        assert_eq!(count(&arm, event), n, "{event}");
    }
    assert_eq!((arm["buffers"][0]["events"].as_u64(), &arm["replay"]["possible"]), (Some(3724), &false.into()));
    lacks(&arm, "no sched_waking recorded");
    lacks(&arm, "no topology");
    for name in ["atrace_data", "atrace_fixed_tgids", "atrace_missing_tgids"] {
        let atrace = of(&format!("atrace-text-variants/{name}"));
        assert_eq!((count(&atrace, "sched:sched_switch"), count(&atrace, "sched:sched_wakeup")), (72, 44), "{name}");
        assert_eq!(atrace["recorded"]["cpus"], 1, "{name}");
        lacks(&atrace, "no sched_waking recorded");
        lacks(&atrace, "nanoseconds");
    }
    let systrace = of("atrace-text-variants/android_systrace.txt");
    assert_eq!((count(&systrace, "sched:sched_switch"), count(&systrace, "sched:sched_wakeup")), (58, 33));
    lacks(&systrace, "irq-info");
    let calls = of("ftrace-text-desktop-waking/ftrace_syscalls.txt");
    assert_eq!(count(&calls, "sched:sched_switch"), 60);
    assert_eq!((count(&calls, "sched:sched_wakeup"), count(&calls, "sched:sched_waking")), (30, 30));
    let path = of("ftrace-text-desktop-waking/trace-critical-path");
    assert_eq!(count(&path, "sched:sched_switch"), 28);
    assert_eq!((count(&path, "sched:sched_wakeup"), count(&path, "sched:sched_waking")), (12, 12));
    lacks(&path, "the kernel");
}

#[test]
fn the_other_reader_says_the_same() {
    let native = info("traces/dies12-truth/trace.dat");
    let output = run(&["info", "traces/dies12-truth/trace.dat", "--format", "json", "--reader", "tracecmd"]);
    if !output.status.success() {
        let error = text(&output.stderr);
        assert!(error.contains("libtracecmd"), "{error}");
        println!("skipped: {error}");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for key in ["buffers", "probes", "missing", "record", "replay", "recorded"] {
        assert_eq!(report["files"][0][key], native[key], "{key}");
    }
}

#[test]
fn pipes_and_packed_files_are_told_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let bytes = fs::read(Path::new(ROOT).join("traces/dies12-truth/trace.dat")).expect("a recording");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&bytes).expect("packed");
    let file = dir.path().join("trace.dat.gz");
    fs::write(&file, packed.finish().expect("packed")).expect("written");
    let native = info("traces/dies12-truth/trace.dat");
    let gz = info(file.to_str().expect("a name"));
    assert_eq!((&gz["buffers"], &gz["format"]["packed"]), (&native["buffers"], &"gzip".into()));
    assert_eq!(gz["beside"]["machine"], Value::Null);
    let mut child = sisdiff()
        .args(["info", "-", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("a pipe").write_all(&bytes).expect("taken");
    let output = child.wait_with_output().expect("ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    fits(&report);
    assert_eq!(report["files"][0]["buffers"], native["buffers"]);
    assert_eq!(report["files"][0]["format"]["bytes"], Value::Null);
}

#[test]
fn a_bad_file_is_named_and_the_others_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let bad = dir.path().join("notes.txt");
    fs::write(&bad, "these are my notes\nand nothing else\n").expect("written");
    let bad = bad.to_str().expect("a name");
    let output = run(&["info", bad, "traces/dies12-truth/trace.dat", "/none.dat", "--format", "json"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.lines().count() == 2 && error.contains("notes.txt") && error.contains("/none.dat"), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    fits(&report);
    assert_eq!(
        (report["files"].as_array().map(Vec::len), report["unread"].as_array().map(Vec::len)),
        (Some(1), Some(2))
    );
    let output = run(&["info", "traces/dies12-truth/trace.dat", "--buffer", "nosuch"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("no buffer \"nosuch\""));
    let output = run(&["info", "-", "-"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("once"));
    let output = run(&["info", "traces/dies12-truth/trace.dat", "-o", "traces/dies12-truth/trace.dat"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("would overwrite"));
}

#[test]
fn a_cut_file_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("a folder");
    let bytes = fs::read(Path::new(ROOT).join("traces/dies12-truth/trace.dat")).expect("a recording");
    let mut told = 0;
    for part in [10, 50, 90] {
        let file = dir.path().join("cut.dat");
        fs::write(&file, &bytes[..bytes.len() * part / 100]).expect("written");
        let output = run(&["info", file.to_str().expect("a name")]);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        match output.status.code() {
            Some(2) => assert!(error.contains("cut.dat") && error.contains("byte"), "{error}"),
            Some(0) => assert!(out.contains("damage"), "{out}"),
            code => panic!("{code:?}: {error}"),
        }
        told += 1;
    }
    assert_eq!(told, 3);
}

#[test]
fn manual_pages_are_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let pages = dir.path().join("man/man1");
    assert_eq!(fine(&["man", pages.to_str().expect("a name")]), "");
    let mut names: Vec<String> = fs::read_dir(&pages)
        .expect("pages")
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    for name in ["sisdiff.1", "sisdiff-info.1", "sisdiff-replay.1", "sisdiff-explain.1", "sisdiff-completions.1"] {
        assert!(names.iter().any(|other| other == name), "{names:?}");
    }
    let page = fs::read_to_string(pages.join("sisdiff-replay.1")).expect("a page");
    assert!(page.contains(".TH sisdiff-replay 1") && page.contains("\\-\\-fail\\-on"), "{page}");
    assert!(fine(&["man", "-"]).contains(".TH sisdiff 1"));
    assert!(run(&["man"]).status.code() == Some(2));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = fine(&["completions", shell]);
        assert!(script.contains("info") && script.contains("fail-on"), "{shell}");
    }
}
