// SPDX-License-Identifier: GPL-2.0-or-later
//! A written recording of four CPUs: the wakee may run on CPUs 0 and 1, both busy, and its recently used CPU 3 is idle.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Formats, TraceFile, TraceReader};

/// One event of system `system`: zeroes, then the fields given.
fn event(formats: &Formats, system: &str, name: &str, pid: i64, fields: &[(&str, i64)]) -> Vec<u8> {
    let format = formats.by_name(system, name).unwrap_or_else(|| panic!("no format of {name}"));
    let end = format.fields.iter().map(|field| (field.offset + field.size) as usize).max().expect("fields");
    let mut data = vec![0; end];
    let common = [("common_type", i64::from(format.id)), ("common_pid", pid)];
    for (field, value) in common.iter().chain(fields) {
        let field = format.field(field).unwrap_or_else(|| panic!("{name} has no field {field}"));
        let (at, size) = (field.offset as usize, field.size as usize);
        data[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    data
}

/// A recording of 4 CPUs with the formats of one of ours.
pub fn recording(folder: &Path) -> PathBuf {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-affinity-truth/trace.dat");
    let trace = TraceFile::open(ours).expect("a recording of the project");
    let formats = trace.formats();
    let head = Head { cpus: 4, cpustat: Vec::new(), ..Head::of(&trace) };
    let switch = |prev: i64, next: i64| {
        let fields =
            [("prev_pid", prev), ("prev_prio", 120), ("prev_state", 1), ("next_pid", next), ("next_prio", 120)];
        event(formats, "sched", "sched_switch", prev, &fields)
    };
    // Tasks 20 and 21 occupy CPUs 0 and 1; 22 and 23 leave CPUs 2 and 3.
    let wake = |name: &str| event(formats, "sched", name, 20, &[("pid", 10), ("prio", 120), ("target_cpu", 1)]);
    let asked = [
        ("pid", 10),
        ("prev", 1),
        ("flags", 8),
        ("ruc", 3),
        ("wakecpu", 1),
        ("ncpus", 2),
        ("mask0", 0b0011),
        ("load", 100),
        ("weight", 1 << 20),
    ];
    let cpu0 = [
        (1_000, switch(0, 20)),
        (5_000_000, wake("sched_waking")),
        (5_001_000, event(formats, "kprobes", "sis_in", 20, &asked)),
        (5_002_000, event(formats, "kprobes", "sis_out", 20, &[("ret", 1)])),
        (5_003_000, wake("sched_wakeup")),
    ];
    let others = [switch(0, 21), switch(22, 0), switch(23, 0)];

    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), &Shape::default(), &head, &[]).expect("a writer");
    writer.start_buffer("").expect("the top buffer");
    writer.start_cpu(0).expect("CPU 0");
    for (ts, data) in &cpu0 {
        writer.event(*ts, data).expect("an event of CPU 0");
    }
    for (cpu, data) in (1..).zip(&others) {
        writer.start_cpu(cpu).expect("a CPU");
        writer.event(1_000 + u64::from(cpu), data).expect("a switch");
    }
    let path = folder.join("trace.dat");
    std::fs::write(&path, writer.finish().expect("a trace").into_inner()).expect("a file in a temporary folder");
    path
}
