// SPDX-License-Identifier: GPL-2.0-or-later
//! Made-up traces: what goes into the writer, and what has to come out again.

use std::collections::BTreeMap;
use std::io::Cursor;

use tracecmd_parse::write::{FormatText, Head, Shape, Stamp, TraceWriter};
use tracecmd_parse::{Compression, Endian, Item, Select, TraceFile, TraceReader};

use super::random::Random;

/// What happens on one CPU, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Event { ts: u64, data: Vec<u8>, stamp: Stamp },
    Discarded { ts: u64, bytes: u32 },
    Lost { count: Option<u64> },
}

/// Buffers by name (the top one first), CPUs, records.
pub type Model = Vec<(String, BTreeMap<u32, Vec<Record>>)>;

pub const TICK: u16 = 300;
pub const BLOB: u16 = 301;

/// Every shape the writer knows.
pub fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for endian in [Endian::Little, Endian::Big] {
        for long_size in [4, 8] {
            for page_size in [4096, 65536] {
                for (version, compression) in
                    [(6, Compression::None), (7, Compression::None), (7, Compression::Zlib), (7, Compression::Zstd)]
                {
                    shapes.push(Shape { version, endian, long_size, page_size, compression });
                }
            }
        }
    }
    shapes
}

/// A head with two events: `demo:tick` with a number, `demo:blob` with a string
/// of its own length.
pub fn head(cpus: u32) -> Head {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let format = |name: &str, id: u16, fields: &str, print: &str| FormatText {
        system: "demo".into(),
        text: format!("name: {name}\nID: {id}\nformat:\n{common}{fields}\nprint fmt: {print}\n"),
    };
    Head {
        formats: vec![
            format("tick", TICK, "\tfield:u64 count;\toffset:8;\tsize:8;\tsigned:0;\n", "\"count=%llu\", REC->count"),
            format(
                "blob",
                BLOB,
                "\tfield:__data_loc char[] text;\toffset:8;\tsize:4;\tsigned:1;\n",
                "\"text=%s\", __get_str(text)",
            ),
        ],
        kallsyms: b"ffffffff81000000 T _text\n".to_vec(),
        printk_formats: Vec::new(),
        comms: BTreeMap::from([(1, "init".to_string()), (77, "a b=c [x]".to_string())]),
        cpus,
        clock: Some("mono".into()),
        uname: Some("Linux demo 6.1.0-demo x86_64".into()),
        tracecmd_version: Some("3.1.6".into()),
        cpustat: vec!["CPU: 0\nentries: 0\n".into(); cpus as usize],
        trace_id: Some(0x1122_3344_5566_7788),
        ..Head::default()
    }
}

fn put(bytes: &mut Vec<u8>, endian: Endian, value: u64, size: usize) {
    match endian {
        Endian::Little => bytes.extend_from_slice(&value.to_le_bytes()[..size]),
        Endian::Big => bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]),
    }
}

/// The bytes of a `demo:tick`.
pub fn tick(endian: Endian, pid: u32, count: u64) -> Vec<u8> {
    let mut data = Vec::new();
    put(&mut data, endian, TICK.into(), 2);
    put(&mut data, endian, 0, 2);
    put(&mut data, endian, pid.into(), 4);
    put(&mut data, endian, count, 8);
    data
}

/// The bytes of a `demo:blob` with a text of `len` letters.
pub fn blob(endian: Endian, pid: u32, len: usize) -> Vec<u8> {
    let mut data = Vec::new();
    put(&mut data, endian, BLOB.into(), 2);
    put(&mut data, endian, 0, 2);
    put(&mut data, endian, pid.into(), 4);
    put(&mut data, endian, ((len as u64 + 1) << 16) | 12, 4);
    data.extend((0..len).map(|at| b'a' + (at % 26) as u8));
    data.push(0);
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

/// A made-up trace. With `plain` it has only what trace-cmd 3.1.6 reads as well.
pub fn model(random: &mut Random, shape: &Shape, cpus: u32, plain: bool) -> Model {
    let mut buffers = vec![String::new()];
    if random.one_in(2) {
        buffers.push("inst".into());
        buffers.push("another one".into());
    }
    buffers
        .into_iter()
        .map(|name| {
            let mut by_cpu = BTreeMap::new();
            for cpu in 0..cpus {
                if !random.one_in(4) {
                    by_cpu.insert(cpu, records(random, shape, plain));
                }
            }
            (name, by_cpu)
        })
        .collect()
}

fn records(random: &mut Random, shape: &Shape, plain: bool) -> Vec<Record> {
    let mut ts = random.number() >> (10 + random.below(40));
    let mut records = Vec::new();
    for _ in 0..random.below(400) {
        ts = ts.wrapping_add(match random.below(20) {
            0 => 0,
            1 => 1 << 27,
            2 => random.number() >> 20,
            3 if !plain => random.number() >> 3,
            4 if !plain => (random.number() >> 50).wrapping_neg(),
            _ => random.number() % 100_000,
        });
        let stamp = if random.one_in(10) { Stamp::Absolute } else { Stamp::Delta };
        let pid = random.below(1000) as u32;
        let len = if random.one_in(20) { random.below(3000) } else { random.below(150) };
        match random.below(60) {
            0 => records.push(Record::Lost { count: random.one_in(2).then(|| random.number() % 100_000 + 1) }),
            1 => records.push(Record::Discarded { ts, bytes: random.below(200) as u32 }),
            2..20 => records.push(Record::Event { ts, data: blob(shape.endian, pid, len), stamp }),
            _ => records.push(Record::Event { ts, data: tick(shape.endian, pid, random.number()), stamp }),
        }
    }
    records
}

/// Writes the model.
pub fn write(shape: &Shape, head: &Head, model: &Model) -> Vec<u8> {
    let names: Vec<&str> = model.iter().map(|(name, _)| name.as_str()).filter(|n| !n.is_empty()).collect();
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), shape, head, &names).unwrap();
    for (name, cpus) in model {
        writer.start_buffer(name).unwrap();
        for (cpu, records) in cpus {
            writer.start_cpu(*cpu).unwrap();
            for record in records {
                match record {
                    Record::Event { ts, data, stamp } => writer.stamped_event(*ts, data, *stamp).unwrap(),
                    Record::Discarded { ts, bytes } => writer.discarded(*ts, *bytes).unwrap(),
                    Record::Lost { count } => writer.lost(*count).unwrap(),
                }
            }
        }
    }
    writer.finish().unwrap().into_inner()
}

/// What a reader has to give for one CPU: events and losses, without what it
/// passes over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Event { ts: u64, data: Vec<u8> },
    Lost { count: Option<u64> },
}

pub fn expected(records: &[Record]) -> Vec<Seen> {
    let seen = records.iter().filter_map(|record| match record {
        Record::Event { ts, data, .. } => Some(Seen::Event { ts: *ts, data: data.clone() }),
        Record::Lost { count } => Some(Seen::Lost { count: *count }),
        Record::Discarded { .. } => None,
    });
    seen.collect()
}

/// What this crate's reader gives for one buffer.
pub fn read(trace: &TraceFile, buffer: &str) -> BTreeMap<u32, Vec<Seen>> {
    let mut by_cpu: BTreeMap<u32, Vec<Seen>> = BTreeMap::new();
    let mut cursor = trace.cursor(&Select::buffer(buffer)).unwrap();
    while let Some(item) = cursor.next().unwrap() {
        match item {
            Item::Event(event) => {
                by_cpu.entry(event.cpu).or_default().push(Seen::Event { ts: event.ts_ns, data: event.data.to_vec() })
            }
            Item::Lost { cpu, count, .. } => by_cpu.entry(cpu).or_default().push(Seen::Lost { count }),
            _ => panic!("an item the model does not have"),
        }
    }
    assert_eq!(cursor.summary().gaps, []);
    by_cpu
}

/// trace-cmd 3.1.6 tells a loss with the first event of the page after it, and
/// only if that is the first thing on the page; so only such losses.
pub fn as_tracecmd_reads(mut model: Model) -> Model {
    for (_, cpus) in &mut model {
        for records in cpus.values_mut() {
            let next: Vec<bool> =
                records.iter().skip(1).map(|r| matches!(r, Record::Event { stamp: Stamp::Delta, .. })).collect();
            let mut at = 0;
            records.retain(|record| {
                at += 1;
                !matches!(record, Record::Lost { .. }) || next.get(at - 1) == Some(&true)
            });
        }
    }
    model
}
