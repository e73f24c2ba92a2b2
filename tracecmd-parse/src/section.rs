// SPDX-License-Identifier: GPL-2.0-or-later
//! Sections of version 7, and texts that stay in the file until asked for.

use std::cell::Cell;

use crate::bytes::{Endian, Walk};
use crate::compress::Decompressor;
use crate::error::Error;
use crate::meta::{Meta, Text};
use crate::source::Source;

const COMPRESSED: u16 = 1;
/// The largest section that is decompressed into memory: formats of a kernel
/// with every event come to 3 MB, kallsyms to 20 MB.
const SECTION_MAX: u64 = 256 << 20;
/// How far a section may grow: so much always, and so many times its packed
/// size. Formats pack best, about 40 times.
const SECTION_ALWAYS: u64 = 4 << 20;
const SECTION_TIMES: u64 = 256;

/// A section's header.
pub(crate) struct Section {
    pub(crate) compressed: bool,
    /// Where its data are.
    pub(crate) data: u64,
    /// Bytes of them in the file.
    pub(crate) size: u64,
}

/// Reads sections of one file.
pub(crate) struct Sections<'a> {
    source: &'a Source,
    endian: Endian,
    decompressor: Decompressor,
    /// Where the last section that was asked for ends.
    end: Cell<u64>,
}

impl<'a> Sections<'a> {
    pub(crate) fn new(source: &'a Source, meta: &Meta) -> Sections<'a> {
        Sections { source, endian: meta.endian, decompressor: Decompressor::new(meta.compression), end: Cell::new(0) }
    }

    /// Where the last section ends: of those that were asked for, and of those that follow one another behind them.
    pub(crate) fn end(&self) -> u64 {
        /// More than the options that there are.
        const IDS: u16 = 64;
        loop {
            let at = self.end.get();
            let mut walk = Walk::file(self.source, at, self.source.len(), self.endian);
            let next = walk.u16("section").ok().filter(|&id| id > 0 && id < IDS);
            let follows = next.and_then(|id| self.header(at, id, "section").ok());
            let fits = |section: &Section| section.data.saturating_add(section.size) <= self.source.len();
            if !follows.is_some_and(|section| section.size > 0 && fits(&section)) {
                self.end.set(at);
                return at;
            }
        }
    }

    pub(crate) fn source(&self) -> &'a Source {
        self.source
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// The header of the section at `at`, which must be of that number.
    pub(crate) fn header(&self, at: u64, id: u16, what: &'static str) -> Result<Section, Error> {
        let mut walk = Walk::file(self.source, at, self.source.len(), self.endian);
        let found = walk.u16(what)?;
        if found != id {
            return Err(Error::invalid(what, at, format!("section {id}"), format!("section {found}")));
        }
        let flags = walk.u16(what)?;
        // A number into the strings sections: what the section is, for people.
        walk.skip(4, what)?;
        let size = walk.u64(what)?;
        let data = walk.offset();
        self.end.set(self.end.get().max(data.saturating_add(size)));
        Ok(Section { compressed: flags & COMPRESSED != 0, data, size })
    }

    /// The bytes of the section at `at`, decompressed, and where its data are.
    pub(crate) fn bytes(&mut self, at: u64, id: u16, what: &'static str) -> Result<(Vec<u8>, u64), Error> {
        let section = self.header(at, id, what)?;
        let mut walk = Walk::file(self.source, section.data, self.source.len(), self.endian);
        let bytes = if section.compressed {
            unpack(&mut walk, &mut self.decompressor, what)?
        } else {
            walk.take(section.size, what)?
        };
        Ok((bytes, section.data))
    }

    /// Where the text of a section is.
    pub(crate) fn text(&self, at: u64, id: u16) -> Result<Text, Error> {
        let section = self.header(at, id, "text section")?;
        Ok(Text { offset: section.data, size: section.size, compressed: section.compressed })
    }
}

/// Sizes, then the compressed bytes.
fn unpack(walk: &mut Walk<'_>, decompressor: &mut Decompressor, what: &'static str) -> Result<Vec<u8>, Error> {
    let offset = walk.offset();
    let packed = walk.u32(what)?;
    let size = walk.u32(what)?;
    let limit = SECTION_MAX.min(SECTION_ALWAYS + SECTION_TIMES * u64::from(packed));
    if u64::from(size) > limit {
        return Err(Error::Limit { what, offset, found: u64::from(size), limit });
    }
    let input = walk.take(u64::from(packed), what)?;
    let mut out = Vec::new();
    decompressor.run(&input, size as usize, &mut out, what, offset)?;
    Ok(out)
}

/// Reads a text that was left in the file. In version 7 its length stands
/// before it, inside the section.
pub(crate) fn read_text(source: &Source, meta: &Meta, text: Text) -> Result<Vec<u8>, Error> {
    const WHAT: &str = "text section";
    let mut walk = Walk::file(source, text.offset, source.len(), meta.endian);
    if meta.version < 7 {
        return walk.take(text.size, WHAT);
    }
    if text.compressed {
        let bytes = unpack(&mut walk, &mut Decompressor::new(meta.compression), WHAT)?;
        let mut walk = Walk::memory(&bytes, text.offset, meta.endian);
        let size = walk.u32(WHAT)?;
        return walk.take(u64::from(size), WHAT);
    }
    let size = walk.u32(WHAT)?;
    walk.take(u64::from(size), WHAT)
}
