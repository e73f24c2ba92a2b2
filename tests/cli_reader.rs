// SPDX-License-Identifier: GPL-2.0-or-later
//! Who reads a recording: trace-cmd's library steps in where the native reader does not know the file.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use tracecmd_parse::tracecmd::Libraries;
use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Compression, Item, Select, TraceFile, TraceReader};

const RECORDING: &str = "smt8-affinity-truth";

/// A recording of `traces/` as version 6, with another version written on it.
fn with_version(version: u8, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(RECORDING).join("trace.dat");
    let trace = TraceFile::open(from).expect("a recording");
    let shape = Shape { version: 6, compression: Compression::None, ..Shape::of(&trace) };
    let mut writer =
        TraceWriter::new(File::create(to).expect("a file"), &shape, &Head::of(&trace), &[]).expect("a head");
    writer.start_buffer("").expect("the top buffer");
    for cpu in 0..trace.meta().cpus {
        writer.start_cpu(cpu).expect("a CPU");
        let mut cursor = trace.cpu_cursor(&Select::top(), cpu).expect("its events");
        while let Some(Item::Event(event)) = cursor.next().expect("readable") {
            writer.event(event.ts_ns, event.data).expect("an event");
        }
    }
    writer.finish().expect("a file");
    let mut bytes = std::fs::read(to).expect("a file");
    bytes[10] = version;
    std::fs::write(to, bytes).expect("a file");
}

fn replay(input: &Path) -> Output {
    let topology = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(RECORDING).join("topology.tar.gz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.args(["replay", "--format", "json", "--topology"]).arg(topology).arg(input).output().expect("it starts")
}

fn totals(out: &Output) -> serde_json::Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    report["files"][0]["totals"].clone()
}

/// Version 5 is older than what the native reader knows; the library takes it.
#[test]
fn the_library_reads_what_native_does_not_know() {
    if let Err(error) = Libraries::default().check() {
        println!("skipped: {error}");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let (six, five) = (dir.path().join("six.dat"), dir.path().join("five.dat"));
    with_version(b'6', &six);
    with_version(b'5', &five);
    let (native, library) = (replay(&six), replay(&five));
    let expected = totals(&native);
    assert!(expected.is_object(), "{expected}");
    assert_eq!(totals(&library), expected);
    let said = String::from_utf8_lossy(&library.stdout);
    assert!(said.contains("read by trace-cmd's library, which this reader cannot check"), "{said}");
    assert!(!String::from_utf8_lossy(&native.stdout).contains("trace-cmd's library"));
    // The same packed: a file without a name goes to the other process, too.
    let packed = dir.path().join("five.gz");
    let mut gzip = flate2::write::GzEncoder::new(File::create(&packed).expect("a file"), flate2::Compression::fast());
    std::io::copy(&mut File::open(&five).expect("a file"), &mut gzip).expect("written");
    gzip.finish().expect("written");
    assert_eq!(totals(&replay(&packed)), expected);
}

/// Neither knows version 8: both say so, and nothing is read.
#[test]
fn what_neither_reads_is_refused_with_both_reasons() {
    if let Err(error) = Libraries::default().check() {
        println!("skipped: {error}");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let eight = dir.path().join("eight.dat");
    with_version(b'8', &eight);
    let lzma = dir.path().join("lzma.dat");
    std::fs::write(&lzma, b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0").expect("a file");
    for (file, native) in [(eight, "is trace.dat version \"8\", expected 6 or 7"), (lzma, "has compression \"lzma\"")] {
        let out = replay(&file);
        assert_eq!(out.status.code(), Some(2));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(native) && said.contains("trace-cmd's library does not help: "), "{said}");
        assert_eq!(said.matches(&*file.display().to_string()).count(), 1, "{said}");
    }
}
