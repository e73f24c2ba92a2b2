// SPDX-License-Identifier: GPL-2.0-or-later
//! Version 7: sections, found through a chain of options.
//!
//! **Source**: trace-cmd.dat.v7(5).

use std::collections::BTreeSet;

use crate::bytes::Walk;
use crate::compress::Decompressor;
use crate::error::Error;
use crate::format::Formats;
use crate::header::{self, Initial};
use crate::meta::{Buffer, CpuData, Gap, Meta, Text};
use crate::options::{self, Opt};
use crate::page::PageLayout;
use crate::source::Source;

const COMPRESSED: u16 = 1;
/// The largest section that is decompressed into memory: formats of a kernel
/// with every event come to 3 MB, kallsyms to 20 MB.
const SECTION_MAX: u64 = 256 << 20;

/// A section's header.
struct Section {
    compressed: bool,
    /// Where its data are.
    data: u64,
    size: u64,
}

pub(crate) fn read(source: &Source, initial: Initial) -> Result<(Meta, Formats), Error> {
    let Initial { mut meta, end } = initial;
    let mut walk = Walk::file(source, end, source.len(), meta.endian);
    let first = walk.u64("offset of the options")?;
    let opts = options_chain(source, &meta, first)?;
    let mut decompressor = Decompressor::new(meta.compression);
    let mut formats = Formats::new(meta.endian);
    let mut layout = None;
    let mut buffers = Vec::new();
    for opt in &opts {
        options::apply(&mut meta, opt)?;
        let target = |what| Walk::memory(&opt.data, opt.offset, meta.endian).u64(what);
        let mut load = |id: u16, what| -> Result<Vec<u8>, Error> {
            section_bytes(source, &meta, target(what)?, id, what, &mut decompressor)
        };
        let endian = meta.endian;
        match opt.id {
            options::HEADER_INFO => {
                let at = target("HEADER_INFO option")?;
                let bytes = load(opt.id, "HEADER_INFO section")?;
                let mut walk = Walk::memory(&bytes, at, endian);
                layout = Some(header::read_header_info(&mut walk, meta.page_size)?);
            }
            options::FTRACE_EVENTS => {
                let at = target("FTRACE_EVENTS option")?;
                let bytes = load(opt.id, "FTRACE_EVENTS section")?;
                let mut walk = Walk::memory(&bytes, at, endian);
                header::read_ftrace_formats(&mut walk, &mut formats)?;
            }
            options::EVENT_FORMATS => {
                let at = target("EVENT_FORMATS option")?;
                let bytes = load(opt.id, "EVENT_FORMATS section")?;
                let mut walk = Walk::memory(&bytes, at, endian);
                header::read_event_formats(&mut walk, &mut formats)?;
            }
            options::CMDLINES => {
                let at = target("CMDLINES option")?;
                let bytes = load(opt.id, "CMDLINES section")?;
                let mut walk = Walk::memory(&bytes, at, endian);
                header::read_cmdlines(&mut walk, &mut meta)?;
            }
            options::KALLSYMS => {
                meta.kallsyms = Some(text_section(source, &meta, target("KALLSYMS option")?, opt.id)?);
            }
            options::PRINTK => {
                meta.printk_formats = Some(text_section(source, &meta, target("PRINTK option")?, opt.id)?);
            }
            options::BUFFER | options::BUFFER_TEXT => buffers.push(opt),
            _ => {}
        }
    }
    let Some(layout) = layout else {
        return Err(Error::invalid("options", first, "a HEADER_INFO option", "none"));
    };
    read_buffers(source, &mut meta, layout, &buffers)?;
    Ok((meta, formats))
}

/// All options of all option sections, in the order of the chain.
fn options_chain(source: &Source, meta: &Meta, first: u64) -> Result<Vec<Opt>, Error> {
    let mut decompressor = Decompressor::new(meta.compression);
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut at = first;
    let mut budget = source.len().saturating_mul(64).saturating_add(1 << 20);
    while at != 0 {
        if !seen.insert(at) {
            let expected = "a chain that ends";
            let found = "a loop";
            return Err(Error::invalid("chain of option sections", at, expected, found));
        }
        let bytes = section_bytes(source, meta, at, options::DONE, "options section", &mut decompressor)?;
        // Sections may overlap in a hostile file: bound what is kept of them together.
        budget = budget.checked_sub(bytes.len() as u64).ok_or(Error::Limit {
            what: "size of all options together",
            offset: at,
            found: bytes.len() as u64,
            limit: budget,
        })?;
        let mut walk = Walk::memory(&bytes, at, meta.endian);
        at = loop {
            let opt = options::next(&mut walk, false)?;
            if opt.id == options::DONE {
                let mut data = Walk::memory(&opt.data, opt.offset, meta.endian);
                let next = data.u64("DONE option")?;
                all.push(opt);
                break next;
            }
            all.push(opt);
        };
    }
    Ok(all)
}

fn section_header(source: &Source, meta: &Meta, at: u64, id: u16, what: &'static str) -> Result<Section, Error> {
    let mut walk = Walk::file(source, at, source.len(), meta.endian);
    let found = walk.u16(what)?;
    if found != id {
        let expected = format!("section {id}");
        return Err(Error::invalid(what, at, expected, format!("section {found}")));
    }
    let flags = walk.u16(what)?;
    walk.skip(4, what)?;
    let size = walk.u64(what)?;
    Ok(Section { compressed: flags & COMPRESSED != 0, data: walk.offset(), size })
}

/// The bytes of a section, decompressed.
fn section_bytes(
    source: &Source,
    meta: &Meta,
    at: u64,
    id: u16,
    what: &'static str,
    decompressor: &mut Decompressor,
) -> Result<Vec<u8>, Error> {
    let section = section_header(source, meta, at, id, what)?;
    let mut walk = Walk::file(source, section.data, source.len(), meta.endian);
    if !section.compressed {
        return walk.take(section.size, what);
    }
    let packed = walk.u32(what)?;
    let size = walk.u32(what)?;
    if u64::from(size) > SECTION_MAX {
        return Err(Error::Limit { what, offset: section.data, found: u64::from(size), limit: SECTION_MAX });
    }
    let input = walk.take(u64::from(packed), what)?;
    let mut out = Vec::new();
    decompressor.run(&input, size as usize, &mut out, what, section.data)?;
    Ok(out)
}

fn text_section(source: &Source, meta: &Meta, at: u64, id: u16) -> Result<Text, Error> {
    let section = section_header(source, meta, at, id, "text section")?;
    Ok(Text { offset: section.data, size: section.size, compressed: section.compressed })
}

/// Reads a text that was left in the file: a 4-byte length, then the text.
pub(crate) fn read_text(source: &Source, meta: &Meta, text: Text) -> Result<Vec<u8>, Error> {
    let mut walk = Walk::file(source, text.offset, source.len(), meta.endian);
    if meta.version < 7 {
        return walk.take(text.size, "text section");
    }
    if !text.compressed {
        let size = walk.u32("text section")?;
        return walk.take(u64::from(size), "text section");
    }
    let packed = walk.u32("text section")?;
    let size = walk.u32("text section")?;
    if u64::from(size) > SECTION_MAX {
        return Err(Error::Limit {
            what: "text section",
            offset: text.offset,
            found: u64::from(size),
            limit: SECTION_MAX,
        });
    }
    let input = walk.take(u64::from(packed), "text section")?;
    let mut out = Vec::new();
    Decompressor::new(meta.compression).run(&input, size as usize, &mut out, "text section", text.offset)?;
    let mut walk = Walk::memory(&out, text.offset, meta.endian);
    let size = walk.u32("text section")?;
    walk.take(u64::from(size), "text section")
}

fn read_buffers(source: &Source, meta: &mut Meta, layout: PageLayout, opts: &[&Opt]) -> Result<(), Error> {
    let mut text_only = false;
    for opt in opts {
        let mut walk = Walk::memory(&opt.data, opt.offset, meta.endian);
        let at = walk.u64("BUFFER option")?;
        let name = walk.cstr(4096, "buffer name")?;
        let clock = walk.cstr(4096, "buffer clock")?;
        if opt.id == options::BUFFER_TEXT {
            text_only = true;
            meta.gaps.push(Gap {
                buffer: Some(name),
                cpu: None,
                offset: at,
                bytes: None,
                what: "a latency trace (text, no events) is not read".into(),
            });
            continue;
        }
        let page_size = match walk.u32("page size of a buffer")? {
            0 => layout.page_size,
            size => header::check_page_size(walk.offset(), size)?,
        };
        let count = walk.u32("number of CPUs of a buffer")?;
        let need = u64::from(count) * 20;
        if need > walk.left() {
            return Err(Error::Truncated {
                what: "table of CPU buffers",
                offset: walk.offset(),
                need,
                have: walk.left(),
            });
        }
        let mut cpus = Vec::with_capacity(count as usize);
        for _ in 0..count {
            cpus.push(CpuData {
                cpu: walk.u32("table of CPU buffers")?,
                offset: walk.u64("table of CPU buffers")?,
                size: walk.u64("table of CPU buffers")?,
            });
        }
        let section = section_header(source, meta, at, options::BUFFER, "BUFFER section")?;
        let clock = (!clock.is_empty()).then_some(clock);
        if name.is_empty() && meta.clock.is_none() {
            meta.clock.clone_from(&clock);
        }
        meta.cpus = meta.cpus.max(cpus.iter().map(|c| c.cpu.saturating_add(1)).max().unwrap_or(0));
        meta.buffers.push(Buffer {
            name,
            clock,
            layout: PageLayout { page_size, ..layout },
            compressed: section.compressed,
            cpus,
        });
    }
    if meta.buffers.is_empty() && text_only {
        return Err(Error::Unsupported {
            what: "only a latency trace (text, no events)".into(),
            hint: "record events with 'trace-cmd record -e sched'",
        });
    }
    Ok(())
}
