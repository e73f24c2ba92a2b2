// SPDX-License-Identifier: GPL-2.0-or-later
//! Version 7: sections, found through a chain of options.
//!
//! **Source**: trace-cmd.dat.v7(5).

use std::collections::BTreeSet;

use crate::bytes::Walk;
use crate::cover;
use crate::error::Error;
use crate::format::Formats;
use crate::header::{self, Initial};
use crate::meta::{Buffer, CpuData, Gap, Meta};
use crate::option_check;
use crate::options::{self, Opt};
use crate::page::PageLayout;
use crate::section::Sections;
use crate::source::Source;

pub(crate) fn read(source: &Source, initial: Initial) -> Result<(Meta, Formats), Error> {
    let Initial { mut meta, end } = initial;
    let mut walk = Walk::file(source, end, source.len(), meta.endian);
    let first = walk.u64("offset of the options")?;
    if first == 0 {
        return Err(Error::invalid(
            "offset of the options",
            end,
            "a place in the file",
            "0 (the recording was not ended)",
        ));
    }
    let mut sections = Sections::new(source, &meta);
    let opts = options_chain(&mut sections, first)?;
    let mut found = Found { formats: Formats::new(meta.endian), layout: None };
    // Each kind of section is read once: reading a large one for each of many
    // options would take a hostile file's time, not its size.
    let mut kinds = BTreeSet::new();
    for opt in &opts {
        options::apply(&mut meta, opt)?;
        if !options::names_section(opt.id) {
            continue;
        }
        if kinds.insert(opt.id) {
            section_option(&mut sections, &mut meta, &mut found, opt)?;
        } else if kinds.insert(opt.id | SECOND) {
            let what = format!("option {} is there more than once, the first counts", opt.id);
            meta.gaps.push(Gap { buffer: None, cpu: None, offset: opt.offset, bytes: None, what });
        }
    }
    let Found { formats, layout } = found;
    let Some(layout) = layout else {
        return Err(Error::invalid("options", first, "a HEADER_INFO option", "none"));
    };
    let told_cpus = (meta.cpus > 0).then_some(meta.cpus);
    let mut text_only = false;
    for opt in &opts {
        match opt.id {
            options::BUFFER => read_buffer(&sections, &mut meta, layout, opt)?,
            options::BUFFER_TEXT => {
                text_only = true;
                latency_buffer(&mut meta, opt)?;
            }
            _ => {}
        }
    }
    if meta.buffers.is_empty() && text_only {
        return Err(options::latency_only());
    }
    meta.gaps.extend(cover::behind(source, sections.end())?);
    option_check::check_cpus(&mut meta, told_cpus);
    Ok((meta, formats))
}

/// Marks a kind of section that was met again.
const SECOND: u16 = 1 << 15;

/// What the sections with formats gave.
struct Found {
    formats: Formats,
    layout: Option<PageLayout>,
}

/// All options of all option sections, in the order of the chain.
fn options_chain(sections: &mut Sections<'_>, first: u64) -> Result<Vec<Opt>, Error> {
    // Nothing in the data says which CPU they are of: without the table they cannot be read by anybody.
    const WHAT: &str =
        "options section (of version 7 files the last one has the table of buffers, without which no event has a CPU)";
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    // Sections may overlap in a hostile file: bound what is kept of them together.
    let limit = sections.source().len().saturating_mul(64).saturating_add(1 << 20);
    let mut kept = 0u64;
    let mut at = first;
    while at != 0 {
        if !seen.insert(at) {
            return Err(Error::invalid("chain of option sections", at, "a chain that ends", "a loop"));
        }
        let (bytes, data) = sections.bytes(at, options::DONE, WHAT)?;
        kept = kept.saturating_add(bytes.len() as u64);
        if kept > limit {
            return Err(Error::Limit { what: "size of all options together", offset: at, found: kept, limit });
        }
        let mut walk = Walk::memory(&bytes, data, sections.endian());
        at = loop {
            let opt = options::next(&mut walk, false)?;
            let next = match opt.id {
                options::DONE => Some(opt.target(sections.endian(), "DONE option")?),
                _ => None,
            };
            all.push(opt);
            if let Some(next) = next {
                break next;
            }
        };
    }
    Ok(all)
}

/// Reads the section that an option names. Sections that no event needs may be
/// damaged: that is a gap, not an error.
fn section_option(sections: &mut Sections<'_>, meta: &mut Meta, found: &mut Found, opt: &Opt) -> Result<(), Error> {
    let endian = meta.endian;
    let mut load = |what| -> Result<(Vec<u8>, u64), Error> {
        let at = opt.target(endian, what)?;
        sections.bytes(at, opt.id, what)
    };
    match opt.id {
        options::HEADER_INFO => {
            let (bytes, at) = load("HEADER_INFO section")?;
            let mut walk = Walk::memory(&bytes, at, endian);
            found.layout = Some(header::read_header_info(&mut walk, meta)?);
        }
        options::FTRACE_EVENTS => {
            let (bytes, at) = load("FTRACE_EVENTS section")?;
            header::read_ftrace_formats(&mut Walk::memory(&bytes, at, endian), &mut found.formats)?;
        }
        options::EVENT_FORMATS => {
            let (bytes, at) = load("EVENT_FORMATS section")?;
            header::read_event_formats(&mut Walk::memory(&bytes, at, endian), &mut found.formats)?;
        }
        options::CMDLINES => {
            let read = load("CMDLINES section")
                .and_then(|(bytes, at)| header::read_cmdlines(&mut Walk::memory(&bytes, at, endian), meta));
            if let Err(error) = read {
                meta.gaps.push(side_gap(opt, "saved command lines", &error));
            }
        }
        options::KALLSYMS | options::PRINTK => {
            let text = opt.target(endian, "text section").and_then(|at| sections.text(at, opt.id));
            match (text, opt.id) {
                (Ok(text), options::KALLSYMS) => meta.kallsyms = Some(text),
                (Ok(text), _) => meta.printk_formats = Some(text),
                (Err(error), options::KALLSYMS) => meta.gaps.push(side_gap(opt, "kernel symbols", &error)),
                (Err(error), _) => meta.gaps.push(side_gap(opt, "printk formats", &error)),
            }
        }
        _ => {}
    }
    Ok(())
}

fn side_gap(opt: &Opt, what: &str, error: &Error) -> Gap {
    Gap { buffer: None, cpu: None, offset: opt.offset, bytes: None, what: format!("{what} are not readable: {error}") }
}

fn latency_buffer(meta: &mut Meta, opt: &Opt) -> Result<(), Error> {
    let mut walk = Walk::memory(&opt.data, opt.offset, meta.endian);
    let offset = walk.u64("BUFFER_TEXT option")?;
    let name = walk.cstr(4096, "buffer name")?;
    meta.gaps.push(Gap {
        buffer: Some(name),
        cpu: None,
        offset,
        bytes: None,
        what: "a latency trace (text, no events) is not read".into(),
    });
    Ok(())
}

fn read_buffer(sections: &Sections<'_>, meta: &mut Meta, layout: PageLayout, opt: &Opt) -> Result<(), Error> {
    let mut walk = Walk::memory(&opt.data, opt.offset, meta.endian);
    let at = walk.u64("BUFFER option")?;
    let name = walk.cstr(4096, "buffer name")?;
    let clock = walk.cstr(4096, "buffer clock")?;
    let page_size = match walk.u32("page size of a buffer")? {
        0 => layout.page_size,
        size => header::check_page_size(walk.offset(), size)?,
    };
    let count = walk.u32("number of CPUs of a buffer")?;
    let cpus = cpu_table(&mut walk, count)?;
    if walk.left() > 0 {
        let what = "option of a buffer has more than its table of CPUs: the number of CPUs is wrong".to_string();
        let (offset, bytes) = (walk.offset(), Some(walk.left()));
        meta.gaps.push(Gap { buffer: Some(name.clone()), cpu: None, offset, bytes, what });
    }
    let section = sections.header(at, options::BUFFER, "BUFFER section")?;
    let pieces = cpus.iter().map(|data| (data.offset, data.offset.saturating_add(data.size))).collect();
    let end = section.data.saturating_add(section.size);
    meta.gaps.extend(cover::holes(pieces, section.data, end, page_size, Some(&name)));
    if page_size != layout.page_size {
        meta.gaps.push(header::other_page_size(Some(&name), opt.offset, page_size, layout.page_size));
    }
    let clock = (!clock.is_empty()).then_some(clock);
    if name.is_empty() && meta.clock.is_none() {
        meta.clock.clone_from(&clock);
    }
    let highest = cpus.iter().map(|c| c.cpu.saturating_add(1)).max();
    meta.cpus = meta.cpus.max(highest.unwrap_or(0));
    meta.buffers.push(Buffer {
        name,
        clock,
        layout: PageLayout { page_size, ..layout },
        compressed: section.compressed,
        cpus,
    });
    Ok(())
}

fn cpu_table(walk: &mut Walk<'_>, count: u32) -> Result<Vec<CpuData>, Error> {
    const WHAT: &str = "table of CPU buffers";
    walk.check(u64::from(count) * 20, WHAT)?;
    (0..count).map(|_| Ok(CpuData { cpu: walk.u32(WHAT)?, offset: walk.u64(WHAT)?, size: walk.u64(WHAT)? })).collect()
}
