// SPDX-License-Identifier: GPL-2.0-or-later
//! The ring buffer's pages: a time stamp, a commit word, then events.
//!
//! **Source**: kernel/trace/ring_buffer.c (`rb_event_length()`,
//! `rb_event_time_stamp()`, `rb_fix_abs_ts()`, `ring_buffer_read_page()`) and
//! include/linux/ring_buffer.h.

use crate::bytes::Endian;

/// The page was preceded by lost events.
pub(crate) const MISSED_EVENTS: u64 = 1 << 31;
/// Their number stands behind the committed bytes.
pub(crate) const MISSED_STORED: u64 = 1 << 30;
/// The part of the commit word that is a size.
const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Bits of an absolute time stamp; the bits above come from the time before it.
pub(crate) const ABSOLUTE_BITS: u32 = 59;
const ABSOLUTE_MSB: u64 = !((1 << ABSOLUTE_BITS) - 1);
/// Bits of a delta in an event's header.
pub(crate) const TIME_BITS: u32 = 27;

pub(crate) const TYPE_DATA_MAX: u32 = 28;
pub(crate) const TYPE_PADDING: u32 = 29;
pub(crate) const TYPE_TIME_EXTEND: u32 = 30;
pub(crate) const TYPE_TIME_STAMP: u32 = 31;

/// How pages look in one trace, from its `header_page` text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Byte order of every number in it.
    pub endian: Endian,
    /// Bytes of a page.
    pub page_size: u32,
    /// Bytes of the commit word: the kernel's `long`, 4 or 8.
    pub commit_size: u32,
    /// Where the events begin.
    pub data_offset: u32,
}

/// What [`PageWalk::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An event: its time and where its data is in the page.
    Event {
        /// Raw clock value.
        ts: u64,
        /// Bytes from the start of the page.
        at: u32,
        /// Bytes of data.
        len: u32,
    },
    /// No more events in this page.
    End,
    /// The page is not what it should be from this place on.
    Damaged {
        /// Bytes from the start of the page.
        at: u32,
        /// What was found.
        why: &'static str,
    },
}

/// A walk over the events of one page. It keeps positions only; the bytes are
/// given to each call.
#[derive(Debug, Clone, Copy)]
pub struct PageWalk {
    ts: u64,
    next: u32,
    end: u32,
    /// The committed bytes reach beyond what is there.
    cut: bool,
}

/// Lost events before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// How many, if the kernel stored it.
    pub count: Option<u64>,
}

impl PageWalk {
    /// Reads the header of a page. `page` may be shorter than a page (a file
    /// that was cut).
    ///
    /// # Errors
    /// What is wrong with the header.
    pub fn new(page: &[u8], layout: &PageLayout) -> Result<(PageWalk, Option<Missed>), &'static str> {
        let header = layout.data_offset as usize;
        if page.len() < header {
            return Err("page ends inside its header");
        }
        let ts = layout.endian.u64(page, 0).ok_or("page ends inside its time stamp")?;
        let commit =
            layout.endian.uint(page, 8, layout.commit_size as usize).ok_or("page ends inside its commit word")?;
        let size = commit & COMMIT_MASK;
        if size > u64::from(layout.page_size.saturating_sub(layout.data_offset)) {
            return Err("committed size is larger than the page");
        }
        let end = header + size as usize;
        let missed = (commit & MISSED_EVENTS != 0).then(|| Missed {
            count: if commit & MISSED_STORED != 0 {
                layout.endian.uint(page, end, layout.commit_size as usize)
            } else {
                None
            },
        });
        let walk = PageWalk { ts, next: layout.data_offset, end: end.min(page.len()) as u32, cut: end > page.len() };
        Ok((walk, missed))
    }

    /// The time of the last event, or of the page before its first one.
    pub fn ts(&self) -> u64 {
        self.ts
    }

    /// The next event.
    #[inline]
    pub fn next(&mut self, page: &[u8], endian: Endian) -> Step {
        loop {
            let at = self.next;
            if at >= self.end {
                return self.finish(at);
            }
            let Some(word) = self.word(page, endian, at) else {
                return self.broken(at, "event header reaches beyond the committed bytes");
            };
            let (type_len, delta) = match endian {
                Endian::Little => (word & 31, word >> 5),
                Endian::Big => (word >> TIME_BITS, word & ((1 << TIME_BITS) - 1)),
            };
            let (data, len) = match type_len {
                1..=TYPE_DATA_MAX => (at + 4, type_len * 4),
                0 => match self.word(page, endian, at + 4) {
                    None => {
                        return self.broken(at, "event length reaches beyond the committed bytes");
                    }
                    Some(length) if length < 4 => {
                        return self.broken(at, "event length is less than its own word");
                    }
                    Some(length) => match (length - 4).checked_next_multiple_of(4) {
                        Some(len) => (at + 8, len),
                        None => return self.broken(at, "event length is out of range"),
                    },
                },
                TYPE_PADDING if delta == 0 => {
                    // Nothing follows on this page.
                    self.next = self.end;
                    return self.finish(self.end);
                }
                TYPE_PADDING => match self.word(page, endian, at + 4) {
                    None => return self.broken(at, "padding reaches beyond the committed bytes"),
                    Some(length) => match (at + 4).checked_add(length) {
                        Some(next) if next <= self.end => {
                            self.ts = self.ts.wrapping_add(u64::from(delta));
                            self.next = next;
                            continue;
                        }
                        _ => return self.broken(at, "padding reaches beyond the committed bytes"),
                    },
                },
                time => match self.word(page, endian, at + 4) {
                    None => {
                        return self.broken(at, "time stamp reaches beyond the committed bytes");
                    }
                    Some(high) => {
                        let value = u64::from(high) << TIME_BITS | u64::from(delta);
                        self.ts = if time == TYPE_TIME_EXTEND {
                            self.ts.wrapping_add(value)
                        } else {
                            absolute(value, self.ts)
                        };
                        self.next = at + 8;
                        continue;
                    }
                },
            };
            // `at` is below the page size, which is far below the range of u32.
            match data.checked_add(len) {
                Some(next) if next <= self.end => {
                    self.ts = self.ts.wrapping_add(u64::from(delta));
                    self.next = next;
                    return Step::Event { ts: self.ts, at: data, len };
                }
                _ => return self.broken(at, "event reaches beyond the committed bytes"),
            }
        }
    }

    #[inline]
    fn word(&self, page: &[u8], endian: Endian, at: u32) -> Option<u32> {
        if at.checked_add(4)? > self.end {
            return None;
        }
        endian.u32(page, at as usize)
    }

    fn finish(&mut self, at: u32) -> Step {
        if self.cut {
            return self.broken(at, "the file ends inside this page");
        }
        Step::End
    }

    fn broken(&mut self, at: u32, why: &'static str) -> Step {
        let why = if self.cut { "the file ends inside this page" } else { why };
        self.next = self.end;
        self.cut = false;
        Step::Damaged { at, why }
    }
}

/// An absolute time stamp with its missing upper bits.
pub(crate) fn absolute(value: u64, before: u64) -> u64 {
    if before & ABSOLUTE_MSB == 0 {
        return value;
    }
    let full = value | (before & ABSOLUTE_MSB);
    if full < before { full.wrapping_add(1 << ABSOLUTE_BITS) } else { full }
}
