// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written is read again: every version, byte order, size of long and
//! page, compression; several buffers, long deltas, absolute stamps, losses.

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::model::{self, Seen};
use common::random::Random;
use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Compression, Item, Select, TraceFile, TraceReader};

#[test]
fn what_is_written_is_read() {
    let mut random = Random(3);
    for shape in model::shapes() {
        for _ in 0..2 {
            let cpus = 1 + random.below(6) as u32;
            let head = model::head(cpus);
            let model = model::model(&mut random, &shape, cpus, false);
            let bytes = model::write(&shape, &head, &model);
            let trace = TraceFile::from_bytes(bytes).unwrap();
            let meta = trace.meta();
            assert_eq!((meta.version, meta.endian, meta.compression), (shape.version, shape.endian, shape.compression));
            assert_eq!((meta.cpus, &meta.comms, &meta.cpustat), (cpus, &head.comms, &head.cpustat));
            assert_eq!((&meta.clock, &meta.uname, meta.trace_id), (&head.clock, &head.uname, head.trace_id));
            assert_eq!(meta.tracecmd_version, head.tracecmd_version);
            assert_eq!(trace.kallsyms().unwrap(), Some(head.kallsyms.clone()));
            assert_eq!(trace.printk_formats().unwrap(), None);
            assert_eq!((trace.formats().len(), trace.formats().skipped()), (2, &[][..]));
            for (name, cpus) in &model {
                let want: BTreeMap<u32, Vec<Seen>> = cpus
                    .iter()
                    .map(|(cpu, records)| (*cpu, model::expected(records)))
                    .filter(|(_, seen)| !seen.is_empty())
                    .collect();
                assert_eq!(model::read(&trace, name), want, "{shape:?}, buffer {name:?}");
            }
        }
    }
}

/// Writes a trace again, CPU by CPU.
fn copy(trace: &TraceFile, shape: &Shape, to: &Path) {
    let head = Head {
        kallsyms: trace.kallsyms().unwrap().unwrap_or_default(),
        printk_formats: trace.printk_formats().unwrap().unwrap_or_default(),
        ..Head::of(trace)
    };
    let mut writer = TraceWriter::new(File::create(to).unwrap(), shape, &head, &[]).unwrap();
    writer.start_buffer("").unwrap();
    for cpu in 0..trace.meta().cpus {
        writer.start_cpu(cpu).unwrap();
        let mut cursor = trace.cpu_cursor(&Select::top(), cpu).unwrap();
        while let Some(item) = cursor.next().unwrap() {
            match item {
                Item::Event(event) => writer.event(event.ts_ns, event.data).unwrap(),
                Item::Lost { count, .. } => writer.lost(count).unwrap(),
                _ => panic!("an item that is not written"),
            }
        }
    }
    writer.finish().unwrap();
}

#[test]
fn a_recording_is_written_again() {
    let mut files: Vec<PathBuf> = common::recordings();
    files.sort_by_key(|path| path.metadata().map_or(u64::MAX, |m| m.len()));
    files.dedup_by_key(|path| path.parent().and_then(Path::file_name).map(|n| n.to_owned()));
    if files.is_empty() {
        println!("skipped: no recordings in traces or ../shared");
        return;
    }
    let copied = std::env::temp_dir().join(format!("tracecmd-parse-copy-{}.dat", std::process::id()));
    let shapes = [(6, Compression::None), (7, Compression::Zstd)];
    for (path, (version, compression)) in files.iter().step_by(9).zip(shapes.into_iter().cycle()) {
        let trace = TraceFile::open(path).unwrap();
        copy(&trace, &Shape { version, compression, ..Shape::of(&trace) }, &copied);
        let again = TraceFile::open(&copied).unwrap();
        assert_eq!(model::read(&again, ""), model::read(&trace, ""), "{}", path.display());
        assert!(again.formats().iter().eq(trace.formats().iter()));
        assert_eq!(again.meta().comms, trace.meta().comms);
        if common::have_tracecmd() {
            assert!(report(&copied) == report(path), "trace-cmd reads the copy of {} otherwise", path.display());
        }
    }
    std::fs::remove_file(&copied).unwrap();
}

fn report(path: &Path) -> Vec<u8> {
    let out = Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(path).output().unwrap();
    assert!(out.status.success());
    assert!(out.stdout.len() > 1000);
    out.stdout
}
