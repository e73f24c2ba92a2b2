// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes pages of the ring buffer.

use super::{WriteError, out};
use crate::Endian;
use crate::page::{
    ABSOLUTE_BITS, MISSED_EVENTS, MISSED_STORED, Missed, PageLayout, TIME_BITS, TYPE_DATA_MAX, TYPE_PADDING,
    TYPE_TIME_EXTEND, TYPE_TIME_STAMP, absolute,
};

/// How the time of an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// As the kernel does: a delta, with a time-extend event before it if it is long.
    Delta,
    /// An absolute time-stamp event before it.
    Absolute,
}

/// One page in the making.
#[derive(Debug, Clone)]
pub struct PageBuilder {
    layout: PageLayout,
    page: Vec<u8>,
    ts: u64,
    /// Whether the page has a time stamp yet.
    open: bool,
    missed: Option<Missed>,
}

impl PageBuilder {
    /// An empty page.
    pub fn new(layout: PageLayout) -> PageBuilder {
        PageBuilder { layout, page: Vec::new(), ts: 0, open: false, missed: None }
    }

    /// Whether nothing was put into the page.
    pub fn is_empty(&self) -> bool {
        !self.open && self.missed.is_none()
    }

    /// Whether there are events or padding in it.
    pub fn has_events(&self) -> bool {
        self.open
    }

    /// Says that events were lost before this page. Only while it is empty.
    pub fn lost(&mut self, count: Option<u64>) {
        self.missed = Some(Missed { count });
    }

    /// The largest event that fits into an empty page.
    pub fn event_max(&self) -> usize {
        let room = self.end() - self.layout.data_offset as usize;
        // The header of a long event takes 8 bytes.
        room.saturating_sub(8) / 4 * 4
    }

    /// Where the events end at the latest: the count of lost events stands behind them.
    fn end(&self) -> usize {
        let counted = self.missed.is_some_and(|m| m.count.is_some());
        let count = if counted { self.layout.commit_size } else { 0 };
        self.layout.page_size.saturating_sub(count) as usize
    }

    /// Adds an event. `false` if it needs a page of its own: finish this one first.
    /// The data are filled up with zeros to a multiple of 4 bytes, as in the kernel.
    ///
    /// # Errors
    /// [`WriteError::EventSize`] if it does not fit into any page.
    pub fn event(&mut self, ts: u64, data: &[u8], stamp: Stamp) -> Result<bool, WriteError> {
        let limit = self.event_max();
        if data.len() > limit {
            return Err(WriteError::EventSize { found: data.len(), limit });
        }
        let len = data.len().next_multiple_of(4);
        let long = len == 0 || len > 4 * TYPE_DATA_MAX as usize;
        let size = 4 + if long { 4 } else { 0 } + len;
        let Some(delta) = self.stamp(ts, size, stamp) else {
            return Ok(false);
        };
        let type_len = if long { 0 } else { (len / 4) as u32 };
        self.header(type_len, delta);
        if long {
            self.word(len as u32 + 4);
        }
        self.page.extend_from_slice(data);
        self.page.resize(self.page.len() + len - data.len(), 0);
        Ok(true)
    }

    /// Adds a discarded event of `bytes` bytes of data, which readers pass over.
    /// `false` if it needs a page of its own.
    pub fn discarded(&mut self, ts: u64, bytes: u32) -> bool {
        let bytes = bytes.max(4).next_multiple_of(4);
        let Some(delta) = self.stamp(ts, 4 + bytes as usize, Stamp::Delta) else {
            return false;
        };
        // A delta of 0 would say that nothing follows on this page.
        if delta == 0 {
            self.ts = self.ts.wrapping_add(1);
        }
        let delta = delta.max(1);
        self.header(TYPE_PADDING, delta);
        self.word(bytes);
        self.page.resize(self.page.len() + bytes as usize - 4, 0);
        true
    }

    /// Brings the page to the time `ts`; gives the delta that is left for the
    /// event's own header. `None` if the event with it does not fit.
    fn stamp(&mut self, ts: u64, size: usize, stamp: Stamp) -> Option<u32> {
        if !self.open {
            self.open = true;
            self.ts = ts;
            self.page.clear();
            self.page.extend_from_slice(&out::u64(self.layout.endian, ts));
            self.page.resize(self.layout.data_offset as usize, 0);
            if stamp == Stamp::Delta || self.page.len() + 8 + size > self.end() {
                return Some(0);
            }
        }
        let fits = |more: usize| self.page.len() + more + size <= self.end();
        let extended = match ts.checked_sub(self.ts) {
            Some(delta) if stamp == Stamp::Delta && delta < 1 << TIME_BITS => {
                return fits(0).then(|| {
                    self.ts = ts;
                    delta as u32
                });
            }
            Some(delta) if stamp == Stamp::Delta && delta < 1 << ABSOLUTE_BITS => (TYPE_TIME_EXTEND, delta),
            // Backwards, far ahead, or asked for.
            _ => {
                let value = ts & ((1 << ABSOLUTE_BITS) - 1);
                if absolute(value, self.ts) != ts {
                    return None;
                }
                (TYPE_TIME_STAMP, value)
            }
        };
        if !fits(8) {
            return None;
        }
        let (type_len, value) = extended;
        self.header(type_len, (value & ((1 << TIME_BITS) - 1)) as u32);
        self.word((value >> TIME_BITS) as u32);
        self.ts = ts;
        Some(0)
    }

    fn header(&mut self, type_len: u32, delta: u32) {
        self.word(match self.layout.endian {
            Endian::Little => type_len | delta << 5,
            Endian::Big => type_len << TIME_BITS | delta,
        });
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&out::u32(self.layout.endian, word));
    }

    /// The finished page; the builder begins the next one.
    pub fn finish(&mut self) -> Vec<u8> {
        let header = self.layout.data_offset as usize;
        let mut page = std::mem::take(&mut self.page);
        if !self.open {
            page.extend_from_slice(&out::u64(self.layout.endian, self.ts));
            page.resize(header, 0);
        }
        let mut commit = (page.len() - header) as u64;
        if let Some(missed) = self.missed.take() {
            commit |= MISSED_EVENTS;
            if let Some(count) = missed.count {
                commit |= MISSED_STORED;
                self.long(&mut page, None, count);
            }
        }
        self.long(&mut page, Some(8), commit);
        page.resize(self.layout.page_size as usize, 0);
        self.open = false;
        page
    }

    /// Writes a `long` at `at`, or at the end.
    fn long(&self, page: &mut Vec<u8>, at: Option<usize>, value: u64) {
        let endian = self.layout.endian;
        let (four, eight) = (out::u32(endian, value as u32), out::u64(endian, value));
        let bytes: &[u8] = if self.layout.commit_size == 4 { &four } else { &eight };
        match at {
            Some(at) => page[at..at + bytes.len()].copy_from_slice(bytes),
            None => page.extend_from_slice(bytes),
        }
    }
}
