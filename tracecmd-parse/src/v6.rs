// SPDX-License-Identifier: GPL-2.0-or-later
//! Version 6: one section after the other, in a fixed order.
//!
//! **Source**: trace-cmd.dat.v6(5).

use crate::bytes::Walk;
use crate::error::Error;
use crate::format::Formats;
use crate::header::{self, Initial};
use crate::meta::{Buffer, CpuData, Meta, Text};
use crate::options;
use crate::page::PageLayout;
use crate::source::Source;

const FLYRECORD: &[u8; 10] = b"flyrecord\0";

pub(crate) fn read(source: &Source, initial: Initial) -> Result<(Meta, Formats), Error> {
    let Initial { mut meta, end } = initial;
    let mut formats = Formats::new(meta.endian);
    let mut walk = Walk::file(source, end, source.len(), meta.endian);
    let layout = header::read_header_info(&mut walk, meta.page_size)?;
    header::read_ftrace_formats(&mut walk, &mut formats)?;
    header::read_event_formats(&mut walk, &mut formats)?;
    let size = u64::from(walk.u32("size of kallsyms")?);
    meta.kallsyms = text_at(&mut walk, size, "kallsyms")?;
    let size = u64::from(walk.u32("size of the printk formats")?);
    meta.printk_formats = text_at(&mut walk, size, "printk formats")?;
    header::read_cmdlines(&mut walk, &mut meta)?;
    let cpus = walk.u32("number of CPUs")?;
    meta.cpus = cpus;

    let offset = walk.offset();
    let mut mark = walk.take(10, "options or flyrecord mark")?;
    let mut instances = Vec::new();
    let mut clock_follows = false;
    if mark.starts_with(b"options") {
        loop {
            let opt = options::next(&mut walk, true)?;
            options::apply(&mut meta, &opt)?;
            match opt.id {
                options::DONE => break,
                options::BUFFER => {
                    let mut data = Walk::memory(&opt.data, opt.offset, meta.endian);
                    let at = data.u64("BUFFER option")?;
                    instances.push((at, crate::bytes::text(&opt.data[8..])));
                }
                options::TRACECLOCK => clock_follows = true,
                _ => {}
            }
        }
        mark = walk.take(10, "flyrecord mark")?;
    }
    check_mark(&mark, offset)?;
    let table = cpu_table(&mut walk, cpus)?;
    if clock_follows {
        read_clock(&mut walk, &mut meta);
    }
    let clock = meta.clock.clone();
    meta.buffers.push(buffer(String::new(), clock, layout, table));
    for (at, name) in instances {
        let mut walk = Walk::file(source, at, source.len(), meta.endian);
        let mark = walk.take(10, "flyrecord mark of a buffer")?;
        check_mark(&mark, at)?;
        let table = cpu_table(&mut walk, cpus)?;
        meta.buffers.push(buffer(name, None, layout, table));
    }
    Ok((meta, formats))
}

fn text_at(walk: &mut Walk<'_>, size: u64, what: &'static str) -> Result<Option<Text>, Error> {
    let offset = walk.offset();
    walk.skip(size, what)?;
    Ok((size > 0).then_some(Text { offset, size, compressed: false }))
}

fn check_mark(mark: &[u8], offset: u64) -> Result<(), Error> {
    if mark == FLYRECORD {
        return Ok(());
    }
    if mark.starts_with(b"latency") {
        return Err(Error::Unsupported {
            what: "a latency trace (text, no events)".into(),
            hint: "record events with 'trace-cmd record -e sched'",
        });
    }
    let found = crate::bytes::quote(mark);
    Err(Error::invalid("section mark", offset, "\"flyrecord\\x00\"", found))
}

fn cpu_table(walk: &mut Walk<'_>, cpus: u32) -> Result<Vec<CpuData>, Error> {
    let need = u64::from(cpus) * 16;
    if need > walk.left() {
        return Err(Error::Truncated { what: "table of CPU buffers", offset: walk.offset(), need, have: walk.left() });
    }
    (0..cpus)
        .map(|cpu| {
            Ok(CpuData { cpu, offset: walk.u64("table of CPU buffers")?, size: walk.u64("table of CPU buffers")? })
        })
        .collect()
}

/// The clock's text stands behind the table. Old files have it damaged; the
/// events are readable without it.
fn read_clock(walk: &mut Walk<'_>, meta: &mut Meta) {
    let read = |walk: &mut Walk<'_>| -> Result<String, Error> {
        let size = walk.u64("size of the trace clock")?;
        Ok(crate::bytes::text(&walk.take(size.min(65536), "trace clock")?))
    };
    if let Ok(text) = read(walk)
        && let Some(clock) = options::chosen_clock(&text)
    {
        meta.clock = Some(clock);
    }
}

fn buffer(name: String, clock: Option<String>, layout: PageLayout, cpus: Vec<CpuData>) -> Buffer {
    Buffer { name, clock, layout, compressed: false, cpus }
}
