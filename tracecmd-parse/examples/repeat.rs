// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes a long recording from a short one: `repeat IN OUT TIMES`. Each repetition has the same events, later by the span
//! of the recording and a millisecond. For measuring only: where one repetition follows another, tasks jump.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Item, Select, TraceFile, TraceReader};

/// Between the last event of a repetition and the first of the next.
const PAUSE_NS: u64 = 1_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, times] = &args[..] else {
        eprintln!("usage: repeat IN OUT TIMES");
        return ExitCode::from(2);
    };
    let Ok(times) = times.parse() else {
        eprintln!("repeat: {times:?} is not a number of times");
        return ExitCode::from(2);
    };
    match repeat(from, to, times) {
        Ok(events) => {
            println!("{to}: {events} events, {times} times {from}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("repeat: {error}");
            ExitCode::FAILURE
        }
    }
}

fn repeat(from: &str, to: &str, times: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let trace = TraceFile::open(from)?;
    let (mut first, mut last) = (u64::MAX, 0);
    let mut cursor = trace.cursor(&Select::top())?;
    while let Some(item) = cursor.next()? {
        if let Item::Event(event) = item {
            first = first.min(event.ts_ns);
            last = last.max(event.ts_ns);
        }
    }
    let period = last.saturating_sub(first) + PAUSE_NS;
    let mut head = Head::of(&trace);
    head.kallsyms = trace.kallsyms()?.unwrap_or_default();
    head.printk_formats = trace.printk_formats()?.unwrap_or_default();
    let out = BufWriter::new(File::create(to)?);
    let mut writer = TraceWriter::new(out, &Shape::of(&trace), &head, &[])?;
    writer.start_buffer("")?;
    let mut events = 0;
    for data in &trace.meta().buffer("").ok_or("no top buffer")?.cpus {
        writer.start_cpu(data.cpu)?;
        for time in 0..times {
            let mut cursor = trace.cpu_cursor(&Select::top(), data.cpu)?;
            while let Some(item) = cursor.next()? {
                match item {
                    Item::Event(event) => {
                        writer.event(event.ts_ns + time * period, event.data)?;
                        events += 1;
                    }
                    Item::Lost { count, .. } => writer.lost(count)?,
                    _ => {}
                }
            }
        }
    }
    writer.finish()?;
    Ok(events)
}
