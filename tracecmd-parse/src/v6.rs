// SPDX-License-Identifier: GPL-2.0-or-later
//! Version 6: one section after the other, in a fixed order.
//!
//! **Source**: trace-cmd.dat.v6(5).

use crate::bytes::{Walk, quote, text};
use crate::cover;
use crate::error::Error;
use crate::format::Formats;
use crate::header::{self, Initial};
use crate::meta::{Buffer, CpuData, Gap, Meta, Text};
use crate::option_check;
use crate::options;
use crate::page::PageLayout;
use crate::source::Source;

pub(crate) const FLYRECORD: &[u8; 10] = b"flyrecord\0";

/// A trace instance, as its BUFFER option names it.
struct Instance {
    offset: u64,
    name: String,
    cpus: u32,
}

pub(crate) fn read(source: &Source, initial: Initial) -> Result<(Meta, Formats), Error> {
    let Initial { mut meta, end } = initial;
    let mut formats = Formats::new(meta.endian);
    let mut walk = Walk::file(source, end, source.len(), meta.endian);
    let layout = header::read_header_info(&mut walk, &mut meta)?;
    header::read_ftrace_formats(&mut walk, &mut formats)?;
    header::read_event_formats(&mut walk, &mut formats)?;
    meta.kallsyms = text_at(&mut walk, "kallsyms")?;
    meta.printk_formats = text_at(&mut walk, "printk formats")?;
    header::read_cmdlines(&mut walk, &mut meta)?;
    let cpus = walk.u32("number of CPUs")?;
    meta.cpus = cpus;

    let mut offset = walk.offset();
    let mut mark = walk.take(10, "options or flyrecord mark")?;
    let mut instances = Vec::new();
    let mut clock_follows = false;
    if mark.starts_with(b"options") {
        (instances, clock_follows) = read_options(&mut walk, &mut meta, cpus)?;
        offset = walk.offset();
        mark = walk.take(10, "flyrecord mark")?;
    }
    check_mark(&mark, offset)?;
    let table = cpu_table(&mut walk, cpus)?;
    let start = walk.offset();
    if clock_follows && let Some(clock) = read_clock(&mut walk) {
        meta.clock = Some(clock);
    }
    meta.buffers.push(Buffer {
        name: String::new(),
        clock: meta.clock.clone(),
        layout,
        compressed: false,
        cpus: table,
    });
    // Options may all lead to the same large table: bound the tables together.
    let tables = instances.iter().map(|i| u64::from(i.cpus)).sum::<u64>().saturating_mul(16);
    if tables > source.len() {
        return Err(Error::Limit {
            what: "size of all tables of CPU buffers",
            offset,
            found: tables,
            limit: source.len(),
        });
    }
    let mut pieces = Vec::new();
    for instance in instances {
        pieces.push((instance.offset, instance.offset.saturating_add(10 + 16 * u64::from(instance.cpus))));
        let buffer = read_instance(source, &meta, instance, layout, clock_follows)?;
        meta.buffers.push(buffer);
    }
    for data in meta.buffers.iter().flat_map(|buffer| &buffer.cpus) {
        pieces.push((data.offset, data.offset.saturating_add(data.size)));
    }
    for hole in cover::holes(pieces, start, source.len(), meta.page_size, None) {
        let is_last = hole.bytes.is_some_and(|bytes| hole.offset + bytes == source.len());
        let told = if is_last { cover::behind(source, hole.offset)? } else { None };
        meta.gaps.push(told.unwrap_or(hole));
    }
    let placed: Vec<Gap> = meta.buffers.iter().filter_map(|buffer| without_a_place(buffer, start)).collect();
    meta.gaps.extend(placed);
    option_check::check_cpus(&mut meta, None);
    Ok((meta, formats))
}

/// Whoever writes a table knows where each CPU's data are, also of one that has none.
fn without_a_place(buffer: &Buffer, table: u64) -> Option<Gap> {
    let data = buffer.cpus.iter().find(|data| data.offset == 0)?;
    let what = "the table of CPU buffers has no place for this CPU: the number of CPUs is wrong".to_string();
    Some(Gap { buffer: Some(buffer.name.clone()), cpu: Some(data.cpu), offset: table, bytes: None, what })
}

fn text_at(walk: &mut Walk<'_>, what: &'static str) -> Result<Option<Text>, Error> {
    let size = u64::from(walk.u32(what)?);
    let offset = walk.offset();
    walk.skip(size, what)?;
    Ok((size > 0).then_some(Text { offset, size, compressed: false }))
}

/// Reads the options up to their end mark. Gives the instances, and whether
/// each table of CPUs is followed by a clock text.
fn read_options(walk: &mut Walk<'_>, meta: &mut Meta, cpus: u32) -> Result<(Vec<Instance>, bool), Error> {
    let mut instances: Vec<Instance> = Vec::new();
    let mut clock_follows = false;
    loop {
        let opt = options::next(walk, true)?;
        if opt.id == options::CPUCOUNT && !instances.is_empty() {
            // Behind a BUFFER option it speaks of that buffer.
            options::note(meta, &opt);
            let count = Walk::memory(&opt.data, opt.offset, meta.endian).u32("CPUCOUNT option")?;
            if let Some(instance) = instances.last_mut() {
                instance.cpus = count;
            }
            continue;
        }
        options::apply(meta, &opt)?;
        match opt.id {
            options::DONE => return Ok((instances, clock_follows)),
            options::BUFFER => {
                let offset = opt.target(meta.endian, "BUFFER option")?;
                let name = text(opt.data.get(8..).unwrap_or(&[]));
                // The top buffer has its table behind the options.
                if !name.is_empty() {
                    instances.push(Instance { offset, name, cpus });
                }
            }
            options::TRACECLOCK => clock_follows = true,
            _ => {}
        }
    }
}

fn check_mark(mark: &[u8], offset: u64) -> Result<(), Error> {
    if mark == FLYRECORD {
        return Ok(());
    }
    if mark.starts_with(b"latency") {
        return Err(options::latency_only());
    }
    Err(Error::invalid("section mark", offset, "\"flyrecord\\x00\"", quote(mark)))
}

fn cpu_table(walk: &mut Walk<'_>, cpus: u32) -> Result<Vec<CpuData>, Error> {
    const WHAT: &str = "table of CPU buffers";
    walk.check(u64::from(cpus) * 16, WHAT)?;
    (0..cpus).map(|cpu| Ok(CpuData { cpu, offset: walk.u64(WHAT)?, size: walk.u64(WHAT)? })).collect()
}

/// The clock's text behind a table. Old files have it damaged; the events are
/// readable without it.
fn read_clock(walk: &mut Walk<'_>) -> Option<String> {
    let size = walk.u64("size of the trace clock").ok()?;
    let bytes = walk.take(size.min(1 << 16), "trace clock").ok()?;
    options::chosen_clock(&text(&bytes))
}

fn read_instance(
    source: &Source,
    meta: &Meta,
    instance: Instance,
    layout: PageLayout,
    clock_follows: bool,
) -> Result<Buffer, Error> {
    let mut walk = Walk::file(source, instance.offset, source.len(), meta.endian);
    let mark = walk.take(10, "flyrecord mark of a buffer")?;
    check_mark(&mark, instance.offset)?;
    let cpus = cpu_table(&mut walk, instance.cpus)?;
    let clock = if clock_follows { read_clock(&mut walk) } else { None };
    Ok(Buffer { name: instance.name, clock, layout, compressed: false, cpus })
}
