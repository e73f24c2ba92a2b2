// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording and the text that trace-cmd prints of it are the same typed events, and the same replay.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sisdiff::trace::{Context, Decoder, Event, EventKind, Lack};
use tracecmd_parse::text::TextTrace;
use tracecmd_parse::{Item, Select, TraceFile, TraceReader};

/// The typed events of a reader, without those that nothing is made of.
fn events(reader: &dyn TraceReader) -> (Vec<Event>, Vec<Lack>) {
    let decoder = Decoder::new(reader.formats());
    let mut cursor = reader.cursor(&Select::top()).expect("a top buffer");
    let mut events = Vec::new();
    while let Some(item) = cursor.next().expect("readable") {
        if let Item::Event(raw) = item {
            events.push(decoder.decode(&raw));
        }
    }
    events.retain(|event| event.kind != EventKind::Ignored);
    (events, decoder.lacks().to_vec())
}

/// `trace-cmd report` of a recording; `None` without trace-cmd.
fn report(path: &Path, options: &[&str]) -> Option<Vec<u8>> {
    let out = Command::new("trace-cmd").arg("report").args(options).arg("-i").arg(path).output().ok()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(out.stdout)
}

fn recordings() -> Vec<PathBuf> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut found: Vec<_> = std::fs::read_dir(traces)
        .expect("traces/ is part of the project")
        .flatten()
        .map(|entry| entry.path().join("trace.dat"))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found
}

#[test]
fn trace_cmd_report_with_flags_is_the_recording() {
    let mut compared = 0;
    for path in recordings() {
        // Nanoseconds and the latency columns: all that a text can have.
        let Some(text) = report(&path, &["-t", "-l"]) else {
            println!("skipped: no trace-cmd");
            return;
        };
        let (expected, _) = events(&TraceFile::open(&path).expect("a recording"));
        let (found, lacks) = events(&TextTrace::from_bytes(text).expect("a text"));
        assert!(!lacks.contains(&Lack::Context), "{}: {lacks:?}", path.display());
        for (ours, theirs) in expected.iter().zip(&found) {
            assert_eq!(ours, theirs, "{}", path.display());
        }
        assert_eq!(expected.len(), found.len(), "{}", path.display());
        compared += found.len();
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn the_default_report_does_not_tell_interrupts_and_says_so() {
    let Some(path) = recordings().into_iter().next() else { panic!("no recording in traces/") };
    let Some(text) = report(&path, &[]) else {
        println!("skipped: no trace-cmd");
        return;
    };
    let (mut expected, _) = events(&TraceFile::open(&path).expect("a recording"));
    let (found, lacks) = events(&TextTrace::from_bytes(text).expect("a text"));
    assert!(lacks.contains(&Lack::Context), "{lacks:?}");
    for event in &mut expected {
        event.context = Context::UNTOLD;
        event.ts_ns = (event.ts_ns + 500) / 1000 * 1000;
    }
    assert_eq!(expected, found);
}

/// The totals of a replay, by the binary; `input` goes to its standard input.
fn totals(arguments: &[&str], topology: &Path, input: Option<&[u8]>) -> Result<serde_json::Value, String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["replay", "--format", "json", "--topology"])
        .arg(topology)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    if let Some(input) = input {
        stdin.write_all(input).expect("it reads its input");
    }
    drop(stdin);
    let out = child.wait_with_output().expect("it ends");
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    Ok(report["files"][0]["totals"].clone())
}

#[test]
fn every_way_to_read_gives_the_same_replay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/smt8-scan-truth");
    let (dat, topology) = (folder.join("trace.dat"), folder.join("topology.tar.gz"));
    let dat_name = dat.to_str().expect("a path of letters");
    let expected = totals(&[dat_name], &topology, None).expect("a replay");
    assert!(expected.is_object(), "{expected}");
    let bytes = std::fs::read(&dat).expect("a recording");
    assert_eq!(totals(&["-"], &topology, Some(&bytes)).as_ref(), Ok(&expected));
    match totals(&["--reader", "tracecmd", dat_name], &topology, None) {
        Err(error) if error.contains("cannot be loaded") => println!("skipped: {error}"),
        found => assert_eq!(found.as_ref(), Ok(&expected)),
    }
    let Some(text) = report(&dat, &["-t", "-l"]) else {
        println!("skipped: no trace-cmd");
        return;
    };
    assert_eq!(totals(&["-"], &topology, Some(&text)).as_ref(), Ok(&expected));
}
