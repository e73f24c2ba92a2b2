// SPDX-License-Identifier: GPL-2.0-or-later
//! The first bytes of a file, and the parts that both versions share.

use std::collections::BTreeMap;

use crate::bytes::{Endian, Walk, quote, text};
use crate::compress::Compression;
use crate::error::Error;
use crate::format::Formats;
use crate::meta::{Gap, Meta};
use crate::page::PageLayout;
use crate::source::Source;

/// What a trace.dat begins with.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 64..=16 << 20;

/// What the initial header says, and where it ends.
pub(crate) struct Initial {
    pub(crate) meta: Meta,
    pub(crate) end: u64,
}

pub(crate) fn read_initial(source: &Source) -> Result<Initial, Error> {
    check_magic(source)?;
    // The version's digits come before the byte order is known; neither needs it.
    let at = MAGIC.len() as u64;
    let mut walk = Walk::file(source, at, source.len(), Endian::Little);
    let version = walk.cstr(8, "version")?;
    let version: u32 = match version.as_str() {
        "6" => 6,
        "7" => 7,
        _ => {
            return Err(Error::Version { found: format!("{version:?}") });
        }
    };
    let offset = walk.offset();
    let endian = match walk.u8("byte order")? {
        0 => Endian::Little,
        1 => Endian::Big,
        other => {
            let found = other.to_string();
            return Err(Error::invalid("byte order", offset, "0 or 1", found));
        }
    };
    let offset = walk.offset();
    let long_size = walk.u8("size of long")?;
    if long_size != 4 && long_size != 8 {
        let found = long_size.to_string();
        return Err(Error::invalid("size of long", offset, "4 or 8", found));
    }
    let mut walk = Walk::file(source, walk.offset(), source.len(), endian);
    let page_size = check_page_size(walk.offset(), walk.u32("page size")?)?;
    let (compression, compression_version) = match version {
        7 => read_compression(&mut walk)?,
        _ => (Compression::None, String::new()),
    };
    Ok(Initial {
        end: walk.offset(),
        meta: Meta {
            version,
            endian,
            long_size,
            page_size,
            file_size: source.len(),
            compression,
            compression_version,
            cpus: 0,
            clock: None,
            uname: None,
            tracecmd_version: None,
            cpustat: Vec::new(),
            trace_id: None,
            ts_offset_ns: 0,
            tsc_to_ns: None,
            time_shift: None,
            proc_maps: Vec::new(),
            comms: BTreeMap::new(),
            options: Vec::new(),
            buffers: Vec::new(),
            kallsyms: None,
            printk_formats: None,
            gaps: Vec::new(),
            notes: Vec::new(),
        },
    })
}

/// The version in the first bytes of a file, 0 if there is none.
pub(crate) fn version_of(source: &Source) -> u32 {
    let mut first = [0; 18];
    let n = source.read_at(0, &mut first).unwrap_or(0);
    let digits = first[..n].strip_prefix(MAGIC).unwrap_or(&[]).split(|&byte| byte == 0).next();
    digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

fn check_magic(source: &Source) -> Result<(), Error> {
    if source.len() == 0 {
        return Err(Error::Empty);
    }
    let mut first = [0; 64];
    let n = source.read_at(0, &mut first)?;
    let first = &first[..n];
    if first.starts_with(MAGIC) {
        return Ok(());
    }
    if !first.is_empty() && MAGIC.starts_with(first) {
        return Err(Error::Truncated { what: "magic", offset: 0, need: MAGIC.len() as u64, have: n as u64 });
    }
    let printable = first.iter().all(|&b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    let kind = if printable { "text " } else { "" };
    Err(Error::NotTraceDat { found: format!("{kind}{}", quote(first)) })
}

pub(crate) fn check_page_size(offset: u64, page_size: u32) -> Result<u32, Error> {
    if PAGE_SIZES.contains(&page_size) {
        return Ok(page_size);
    }
    Err(Error::invalid(
        "page size",
        offset,
        format!("{} to {} bytes", PAGE_SIZES.start(), PAGE_SIZES.end()),
        page_size.to_string(),
    ))
}

fn read_compression(walk: &mut Walk<'_>) -> Result<(Compression, String), Error> {
    let name = walk.cstr(64, "compression name")?;
    let version = walk.cstr(256, "compression version")?;
    let method = match name.as_str() {
        "none" => Compression::None,
        "zlib" => Compression::Zlib,
        "zstd" => Compression::Zstd,
        _ => return Err(Error::Compression { found: format!("{name:?}") }),
    };
    Ok((method, version))
}

/// `header_page` and `header_event`: how pages look.
pub(crate) fn read_header_info(walk: &mut Walk<'_>, meta: &mut Meta) -> Result<PageLayout, Error> {
    walk.expect(b"header_page\0", "header_page section")?;
    let size = walk.u64("header_page size")?;
    let offset = walk.offset();
    let page = text(&walk.take(size, "header_page text")?);
    walk.expect(b"header_event\0", "header_event section")?;
    let size = walk.u64("header_event size")?;
    walk.skip(size, "header_event text")?;
    let (layout, told) = page_layout(&page, offset, meta.page_size, walk.endian())?;
    if told != layout.page_size {
        meta.gaps.push(other_page_size(None, offset, layout.page_size, told));
    }
    Ok(layout)
}

/// Two sizes of a page in one file: one is wrong, or a buffer was given another (since 6.8).
pub(crate) fn other_page_size(buffer: Option<&str>, offset: u64, used: u32, other: u32) -> Gap {
    let what = format!("pages are read with {used} bytes each, header_page has {other}: events may be missing");
    Gap { buffer: buffer.map(str::to_string), cpu: None, offset, bytes: None, what }
}

/// Offsets and sizes from the text of `header_page`, and the size of a page that follows from it.
fn page_layout(page: &str, at: u64, page_size: u32, endian: Endian) -> Result<(PageLayout, u32), Error> {
    if page.trim().is_empty() {
        return Err(Error::Unsupported {
            what: "no header_page text (a kernel before 2.6.31)".into(),
            hint: "record with a newer kernel",
        });
    }
    let number = |field: &str, key: &str| -> Option<u32> {
        let line = page.lines().find(|line| {
            let declaration = line.split(';').next().unwrap_or("");
            declaration.split_whitespace().next_back() == Some(field)
        })?;
        line.split(';').find_map(|part| {
            let (name, value) = part.trim().split_once(':')?;
            (name == key).then(|| value.trim().parse().ok())?
        })
    };
    let get = |field: &'static str, key: &str| {
        number(field, key).ok_or_else(|| {
            Error::invalid("header_page text", at, format!("field {field} with {key}"), quote(page.as_bytes()))
        })
    };
    let must = |what: &str, found: u32, allowed: &[u32]| {
        if allowed.contains(&found) {
            return Ok(found);
        }
        let expected = format!("{what} {allowed:?}");
        Err(Error::invalid("header_page text", at, expected, found.to_string()))
    };
    must("timestamp offset", get("timestamp", "offset")?, &[0])?;
    must("timestamp size", get("timestamp", "size")?, &[8])?;
    must("commit offset", get("commit", "offset")?, &[8])?;
    let commit_size = must("commit size", get("commit", "size")?, &[4, 8])?;
    let data_offset = must("data offset", get("data", "offset")?, &[8 + commit_size])?;
    let told = get("data", "size")?.saturating_add(data_offset);
    Ok((PageLayout { endian, page_size, commit_size, data_offset }, told))
}

/// Formats of the `ftrace` system.
pub(crate) fn read_ftrace_formats(walk: &mut Walk<'_>, formats: &mut Formats) -> Result<(), Error> {
    let count = walk.u32("number of ftrace events")?;
    read_formats(walk, count, "ftrace", formats)
}

/// Formats of all other systems.
pub(crate) fn read_event_formats(walk: &mut Walk<'_>, formats: &mut Formats) -> Result<(), Error> {
    let systems = walk.u32("number of event systems")?;
    for _ in 0..systems {
        let system = walk.cstr(4096, "name of an event system")?;
        let count = walk.u32("number of events of a system")?;
        read_formats(walk, count, &system, formats)?;
    }
    Ok(())
}

fn read_formats(walk: &mut Walk<'_>, count: u32, system: &str, formats: &mut Formats) -> Result<(), Error> {
    for _ in 0..count {
        let size = walk.u64("size of an event format")?;
        let format = text(&walk.take(size, "event format")?);
        formats.add(system, &format);
    }
    Ok(())
}

/// Saved command lines: `pid comm` on each line; a comm may hold spaces.
pub(crate) fn read_cmdlines(walk: &mut Walk<'_>, meta: &mut Meta) -> Result<(), Error> {
    let size = walk.u64("size of the saved command lines")?;
    let lines = text(&walk.take(size, "saved command lines")?);
    for line in lines.lines() {
        let Some((pid, comm)) = line.trim_start().split_once(' ') else {
            continue;
        };
        if let Ok(pid) = pid.parse() {
            meta.comms.insert(pid, comm.to_string());
        }
    }
    Ok(())
}
