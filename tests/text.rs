// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording and the text that trace-cmd prints of it are the same typed events.

use std::path::{Path, PathBuf};
use std::process::Command;

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
