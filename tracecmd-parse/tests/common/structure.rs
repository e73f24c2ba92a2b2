// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the numbers are that hold a trace.dat together: lengths, offsets, counts, ids, times.
//!
//! Written after trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) without the reader under test, which is what it is for. It
//! stops where it does not understand the file; a file that the writer made is walked to its end.

use super::random::Random;

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Length,
    Offset,
    Count,
    Id,
    /// Time stamps, and the deltas in the heads of events.
    Time,
}

/// A number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub at: usize,
    pub size: usize,
    pub kind: Kind,
    /// Of what it is the length, offset, ...
    pub of: &'static str,
}

/// The numbers of a file.
#[derive(Debug)]
pub struct Structure {
    pub big: bool,
    pub places: Vec<Place>,
}

impl Structure {
    pub fn number(&self, file: &[u8], place: Place) -> Option<u64> {
        number(file, self.big, place.at, place.size)
    }

    pub fn set(&self, file: &mut [u8], place: Place, value: u64) {
        let Some(bytes) = file.get_mut(place.at..place.at + place.size) else { return };
        match self.big {
            false => bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]),
            true => {
                let from = 8 - bytes.len();
                bytes.copy_from_slice(&value.to_be_bytes()[from..]);
            }
        }
    }

    /// One place, each kind as likely as the others; a page has many more numbers than a file has sections.
    pub fn pick(&self, random: &mut Random, allowed: &[Kind]) -> Option<Place> {
        let kind = allowed[random.below(allowed.len())];
        let mut names: Vec<&str> = self.places.iter().filter(|p| p.kind == kind).map(|p| p.of).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return None;
        }
        let of = names[random.below(names.len())];
        let these: Vec<&Place> = self.places.iter().filter(|p| p.kind == kind && p.of == of).collect();
        Some(*these[random.below(these.len())])
    }

    /// Gives the place another value that someone might have meant.
    pub fn damage(&self, file: &mut [u8], place: Place, random: &mut Random) {
        let old = self.number(file, place).unwrap_or(0);
        let same: Vec<Place> =
            self.places.iter().filter(|p| p.kind == place.kind && p.size == place.size).copied().collect();
        let other = same[random.below(same.len())];
        let value = match random.below(12) {
            0 => 0,
            1 => 1,
            2 => u64::MAX >> (64 - 8 * place.size),
            3 => (u64::MAX >> (64 - 8 * place.size)) / 2 + 1,
            4 => old.wrapping_add(1),
            5 => old.wrapping_sub(1),
            6 => old.wrapping_mul(2),
            7 => old / 2,
            8 => old.wrapping_add(1 << random.below(24)),
            9 => file.len() as u64 - random.below(64.min(file.len())) as u64,
            10 => self.number(file, other).unwrap_or(0),
            _ => random.number() >> random.below(64),
        };
        let value = if value == old { old ^ (1 << random.below(8)) } else { value };
        self.set(file, place, value);
    }
}

/// Walks a file; `None` if it has not even a head.
pub fn structure(file: &[u8]) -> Option<Structure> {
    if !file.starts_with(b"\x17\x08\x44tracing") {
        return None;
    }
    let version = *file.get(10)?;
    let big = *file.get(12)? == 1;
    let mut walk = Walk { file, big, long: usize::from(*file.get(13)?), page: 0, packed: false, places: Vec::new() };
    walk.page = number(file, big, 14, 4)? as usize;
    walk.mark(14, 4, Kind::Length, "page");
    // What cannot be followed is left out.
    let _ = if version == b'7' { walk.version_7() } else { walk.version_6() };
    Some(Structure { big, places: walk.places })
}

fn number(file: &[u8], big: bool, at: usize, size: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(size)?)?;
    let fold = |value, &byte: &u8| value << 8 | u64::from(byte);
    Some(if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
}

struct Walk<'a> {
    file: &'a [u8],
    big: bool,
    long: usize,
    page: usize,
    packed: bool,
    places: Vec<Place>,
}

impl Walk<'_> {
    fn mark(&mut self, at: usize, size: usize, kind: Kind, of: &'static str) -> Option<usize> {
        let value = number(self.file, self.big, at, size)?;
        self.places.push(Place { at, size, kind, of });
        usize::try_from(value).ok()
    }

    /// The end of the text at `at`, behind its NUL.
    fn text(&self, at: usize) -> Option<usize> {
        let rest = self.file.get(at..)?;
        Some(at + rest.iter().position(|&byte| byte == 0)? + 1)
    }

    /// A length and so many bytes; gives the end.
    fn sized(&mut self, at: usize, size: usize, of: &'static str) -> Option<usize> {
        let len = self.mark(at, size, Kind::Length, of)?;
        let end = (at + size).checked_add(len)?;
        (end <= self.file.len()).then_some(end)
    }

    fn version_6(&mut self) -> Option<()> {
        let mut at = self.header_info(18)?;
        at = self.formats(at, "ftrace events")?;
        at = self.systems(at)?;
        at = self.sized(at, 4, "kallsyms")?;
        at = self.sized(at, 4, "printk")?;
        at = self.sized(at, 8, "command lines")?;
        let cpus = self.mark(at, 4, Kind::Count, "CPUs")?;
        at += 4;
        let mut tables = Vec::new();
        if self.file.get(at..)?.starts_with(b"options") {
            at += 10;
            loop {
                let id = self.mark(at, 2, Kind::Id, "option")?;
                at += 2;
                if id == 0 {
                    break;
                }
                let data = at + 4;
                at = self.sized(at, 4, "option")?;
                if id == 3 {
                    tables.push(self.mark(data, 8, Kind::Offset, "buffer")?);
                }
            }
        }
        tables.push(at);
        for table in tables {
            for cpu in 0..cpus {
                self.cpu_data(table.checked_add(10 + 16 * cpu)?)?;
            }
        }
        Some(())
    }

    fn header_info(&mut self, at: usize) -> Option<usize> {
        let text = at + 12 + 8;
        let end = self.sized(at + 12, 8, "header_page")?;
        let commit = self.file[text..end].windows(14).position(|w| w == b"local_t commit");
        if let Some(commit) = commit {
            let line = self.file[text + commit..end].split(|&b| b == b'\n').next()?;
            self.long = if line.windows(6).any(|w| w == b"size:4") { 4 } else { 8 };
        }
        self.sized(end + 13, 8, "header_event")
    }

    fn formats(&mut self, at: usize, of: &'static str) -> Option<usize> {
        let count = self.mark(at, 4, Kind::Count, of)?;
        (0..count).try_fold(at + 4, |at, _| self.sized(at, 8, "format"))
    }

    fn systems(&mut self, at: usize) -> Option<usize> {
        let count = self.mark(at, 4, Kind::Count, "systems")?;
        let mut at = at + 4;
        for _ in 0..count {
            at = self.text(at)?;
            at = self.formats(at, "events")?;
        }
        Some(at)
    }

    /// Offset and size of one CPU's data.
    fn cpu_data(&mut self, at: usize) -> Option<()> {
        let offset = self.mark(at, 8, Kind::Offset, "CPU data")?;
        let size = self.mark(at + 8, 8, Kind::Length, "CPU data")?;
        if size == 0 {
            return Some(());
        }
        if self.packed {
            let chunks = self.mark(offset, 4, Kind::Count, "chunks")?;
            (0..chunks).try_fold(offset + 4, |at, _| {
                self.mark(at + 4, 4, Kind::Length, "chunk unpacked")?;
                Some(self.sized(at, 4, "chunk")? + 4)
            })?;
            return Some(());
        }
        for page in (offset..offset.checked_add(size)?).step_by(self.page.max(64)) {
            self.page(page)?;
        }
        Some(())
    }

    fn page(&mut self, at: usize) -> Option<()> {
        self.mark(at, 8, Kind::Time, "page")?;
        let commit = self.mark(at + 8, self.long, Kind::Length, "committed bytes")? & ((1 << 27) - 1);
        let mut event = at + 8 + self.long;
        let end = event.checked_add(commit)?;
        while event < end {
            let word = number(self.file, self.big, event, 4)?;
            let (kind, delta) = if self.big { (word >> 27, word << 5) } else { (word & 31, word >> 5) };
            self.places.push(Place { at: event, size: 4, kind: Kind::Time, of: "event" });
            event += match kind {
                0 => self.mark(event + 4, 4, Kind::Length, "event")?.checked_add(4)?.checked_next_multiple_of(4)?,
                29 if delta == 0 => return Some(()),
                29 => 4 + self.mark(event + 4, 4, Kind::Length, "padding")?,
                30 | 31 => {
                    self.mark(event + 4, 4, Kind::Time, "extended time")?;
                    8
                }
                words => {
                    let id = event + 4;
                    self.mark(id, 2, Kind::Id, "event")?;
                    4 + 4 * words as usize
                }
            };
        }
        Some(())
    }

    fn version_7(&mut self) -> Option<()> {
        let at = self.text(self.text(18)?)?;
        let mut section = self.mark(at, 8, Kind::Offset, "options")?;
        let mut seen = Vec::new();
        while section != 0 && !seen.contains(&section) {
            seen.push(section);
            section = self.options(section)?;
        }
        Some(())
    }

    /// A section's head: whether it is packed, and where its bytes are.
    fn section(&mut self, at: usize) -> Option<(bool, usize)> {
        self.mark(at, 2, Kind::Id, "section")?;
        let flags = number(self.file, self.big, at + 2, 2)?;
        self.mark(at + 8, 8, Kind::Length, "section")?;
        if flags & 1 != 0 {
            self.mark(at + 16, 4, Kind::Length, "section packed")?;
            self.mark(at + 20, 4, Kind::Length, "section unpacked")?;
        }
        Some((flags & 1 != 0, at + 16))
    }

    /// One section of options; gives where the next is.
    fn options(&mut self, at: usize) -> Option<usize> {
        let (_, mut at) = self.section(at)?;
        loop {
            let id = self.mark(at, 2, Kind::Id, "option")?;
            let data = at + 6;
            at = self.sized(at + 2, 4, "option")?;
            match id {
                0 => return self.mark(data, 8, Kind::Offset, "options"),
                3 => self.buffer(data)?,
                16..=21 => {
                    let section = self.mark(data, 8, Kind::Offset, "section")?;
                    let (packed, from) = self.section(section)?;
                    if !packed {
                        match id {
                            16 => self.header_info(from).map(drop)?,
                            17 => self.formats(from, "ftrace events").map(drop)?,
                            18 => self.systems(from).map(drop)?,
                            21 => self.sized(from, 8, "command lines").map(drop)?,
                            _ => self.sized(from, 4, "text").map(drop)?,
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn buffer(&mut self, at: usize) -> Option<()> {
        let section = self.mark(at, 8, Kind::Offset, "buffer")?;
        let at = self.text(self.text(at + 8)?)?;
        self.mark(at, 4, Kind::Length, "page")?;
        let cpus = self.mark(at + 4, 4, Kind::Count, "CPUs")?;
        self.packed = self.section_is_packed(section)?;
        for cpu in 0..cpus {
            let row = at + 8 + 20 * cpu;
            self.mark(row, 4, Kind::Id, "CPU")?;
            self.cpu_data(row + 4)?;
        }
        Some(())
    }

    fn section_is_packed(&mut self, at: usize) -> Option<bool> {
        self.mark(at, 2, Kind::Id, "section")?;
        self.mark(at + 8, 8, Kind::Length, "section")?;
        Some(number(self.file, self.big, at + 2, 2)? & 1 != 0)
    }
}
