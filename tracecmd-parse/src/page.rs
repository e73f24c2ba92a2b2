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
    /// The bytes are fewer than a page.
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
        if commit & !(COMMIT_MASK | MISSED_EVENTS | MISSED_STORED) != 0 {
            return Err("commit word has bits that have no meaning");
        }
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
        // A page that is not whole may have lost more than its committed bytes: what is behind it, if the size is wrong.
        let cut = page.len() < layout.page_size as usize;
        let walk = PageWalk { ts, next: layout.data_offset, end: end.min(page.len()) as u32, cut };
        Ok((walk, missed))
    }

    /// The bytes of a new page behind the committed ones and the number of lost events.
    pub(crate) fn behind<'a>(&self, page: &'a [u8], layout: &PageLayout, missed: Option<Missed>) -> &'a [u8] {
        let stored = missed.is_some_and(|missed| missed.count.is_some());
        let from = self.end as usize + if stored { layout.commit_size as usize } else { 0 };
        page.get(from..).unwrap_or(&[])
    }

    /// Whether a new page has no committed bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// The time of the last event, or of the page before its first one.
    pub fn ts(&self) -> u64 {
        self.ts
    }

    /// The next event.
    pub fn next(&mut self, page: &[u8], endian: Endian) -> Step {
        let bytes = self.committed(page);
        loop {
            if let Some((ts, at, len)) = self.event(bytes, endian) {
                return Step::Event { ts, at, len };
            }
            if self.next >= self.end {
                return self.finish(self.next);
            }
            if let Some(step) = self.other(bytes, endian) {
                return step;
            }
        }
    }

    /// The bytes of a page up to where its events end.
    #[inline]
    pub(crate) fn committed<'a>(&self, page: &'a [u8]) -> &'a [u8] {
        page.get(..self.end as usize).unwrap_or(&[])
    }

    /// Time, place and length of the next event of the [committed](Self::committed) bytes, where a whole event is what comes
    /// next; else nothing has changed.
    #[inline]
    pub(crate) fn event(&mut self, bytes: &[u8], endian: Endian) -> Option<(u64, u32, u32)> {
        let at = self.next;
        let (type_len, delta) = header(word(bytes, endian, at)?, endian);
        let (data, len) = match type_len {
            1..=TYPE_DATA_MAX => (at + 4, type_len * 4),
            0 => (at + 8, long(word(bytes, endian, at + 4)?)?),
            _ => return None,
        };
        let next = data.checked_add(len).filter(|&next| next <= self.end)?;
        self.ts = self.ts.wrapping_add(u64::from(delta));
        self.next = next;
        Some((self.ts, data, len))
    }

    /// What comes next and is no whole event; `None`: passed over.
    fn other(&mut self, bytes: &[u8], endian: Endian) -> Option<Step> {
        let at = self.next;
        let Some(first) = word(bytes, endian, at) else {
            return Some(self.broken(at, "event header reaches beyond the committed bytes"));
        };
        let (type_len, delta) = header(first, endian);
        let second = word(bytes, endian, at + 4);
        let why = match (type_len, second) {
            (1..=TYPE_DATA_MAX, _) => "event reaches beyond the committed bytes",
            (0, None) => "event length reaches beyond the committed bytes",
            (0, Some(length)) if length < 4 => "event length is less than its own word",
            (0, Some(length)) if long(length).is_none() => "event length is out of range",
            (0, Some(_)) => "event reaches beyond the committed bytes",
            (TYPE_PADDING, _) if delta == 0 => {
                // Nothing follows on this page: the kernel never commits an event behind a padding without a delta
                // (`rb_null_event()`), not even a discarded one.
                let behind = bytes.get(at as usize + 8..).unwrap_or(&[]);
                if behind.iter().any(|&byte| byte != 0) {
                    return Some(self.broken(at, "padding that ends a page, and events committed behind it"));
                }
                self.next = self.end;
                return Some(self.finish(self.end));
            }
            (TYPE_PADDING, second) => match second.and_then(|length| (at + 4).checked_add(length)) {
                Some(next) if next <= self.end => {
                    self.ts = self.ts.wrapping_add(u64::from(delta));
                    self.next = next;
                    return None;
                }
                _ => "padding reaches beyond the committed bytes",
            },
            (_, None) => "time stamp reaches beyond the committed bytes",
            (time, Some(high)) => {
                let value = u64::from(high) << TIME_BITS | u64::from(delta);
                self.ts = match time {
                    TYPE_TIME_EXTEND => self.ts.wrapping_add(value),
                    _ => absolute(value, self.ts),
                };
                self.next = at + 8;
                return None;
            }
        };
        Some(self.broken(at, why))
    }

    fn finish(&mut self, at: u32) -> Step {
        if self.cut {
            return self.broken(at, "the data end inside this page");
        }
        Step::End
    }

    fn broken(&mut self, at: u32, why: &'static str) -> Step {
        let why = if self.cut { "the data end inside this page" } else { why };
        self.next = self.end;
        self.cut = false;
        Step::Damaged { at, why }
    }
}

/// The word at `at`, if it is inside.
#[inline]
fn word(bytes: &[u8], endian: Endian, at: u32) -> Option<u32> {
    endian.u32(bytes, at as usize)
}

/// Type or length, and delta, of an event's first word.
#[inline]
fn header(word: u32, endian: Endian) -> (u32, u32) {
    match endian {
        Endian::Little => (word & 31, word >> 5),
        Endian::Big => (word >> TIME_BITS, word & ((1 << TIME_BITS) - 1)),
    }
}

/// Bytes of data of an event whose length word, which counts itself, is `length`.
#[inline]
fn long(length: u32) -> Option<u32> {
    length.checked_sub(4)?.checked_next_multiple_of(4)
}

/// An absolute time stamp with its missing upper bits.
pub(crate) fn absolute(value: u64, before: u64) -> u64 {
    if before & ABSOLUTE_MSB == 0 {
        return value;
    }
    let full = value | (before & ABSOLUTE_MSB);
    if full < before { full.wrapping_add(1 << ABSOLUTE_BITS) } else { full }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: PageLayout = PageLayout { endian: Endian::Little, page_size: 128, commit_size: 8, data_offset: 16 };

    /// A little-endian page of 64-bit kernels from its words.
    fn page(ts: u64, commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = ts.to_le_bytes().to_vec();
        page.extend(commit.to_le_bytes());
        words.iter().for_each(|w| page.extend(w.to_le_bytes()));
        page.resize(128, 0);
        page
    }

    fn event(type_len: u32, delta: u32) -> u32 {
        type_len | delta << 5
    }

    fn steps(page: &[u8], layout: &PageLayout) -> Vec<Step> {
        let (mut walk, _) = PageWalk::new(page, layout).unwrap();
        let mut steps = Vec::new();
        loop {
            let step = walk.next(page, layout.endian);
            steps.push(step);
            if !matches!(step, Step::Event { .. }) {
                return steps;
            }
        }
    }

    #[test]
    fn deltas_add_up() {
        let page = page(1000, 20, &[event(2, 0), 1, 2, event(1, 5), 3]);
        assert_eq!(
            steps(&page, &LITTLE),
            [Step::Event { ts: 1000, at: 20, len: 8 }, Step::Event { ts: 1005, at: 32, len: 4 }, Step::End]
        );
    }

    #[test]
    fn big_endian_has_the_type_in_the_upper_bits() {
        let layout = PageLayout { endian: Endian::Big, page_size: 64, commit_size: 4, data_offset: 12 };
        let mut page = 7u64.to_be_bytes().to_vec();
        page.extend(8u32.to_be_bytes());
        page.extend((1u32 << 27 | 9).to_be_bytes());
        page.extend([1, 2, 3, 4]);
        page.resize(64, 0);
        assert_eq!(steps(&page, &layout), [Step::Event { ts: 16, at: 16, len: 4 }, Step::End]);
    }

    #[test]
    fn a_long_event_has_a_length_word_that_counts_itself() {
        let page = page(0, 16, &[event(0, 3), 9, 1, 2]);
        // 9 - 4 bytes, rounded up to 8.
        assert_eq!(steps(&page, &LITTLE), [Step::Event { ts: 3, at: 24, len: 8 }, Step::End]);
    }

    #[test]
    fn behind_a_padding_without_a_delta_is_nothing() {
        let quiet = page(5, 20, &[event(1, 3), 9, event(TYPE_PADDING, 0), 8, 0]);
        assert_eq!(steps(&quiet, &LITTLE), [Step::Event { ts: 8, at: 20, len: 4 }, Step::End]);
        let more = page(5, 24, &[event(1, 3), 9, event(TYPE_PADDING, 0), 4, event(1, 3), 9]);
        let damaged = steps(&more, &LITTLE).pop();
        assert!(matches!(damaged, Some(Step::Damaged { at: 24, .. })), "{damaged:?}");
        // One with a delta is a discarded event.
        let discarded = page(5, 24, &[event(1, 3), 9, event(TYPE_PADDING, 1), 4, event(1, 3), 9]);
        assert_eq!(steps(&discarded, &LITTLE)[1], Step::Event { ts: 12, at: 36, len: 4 });
    }

    #[test]
    fn a_time_extend_carries_the_upper_bits() {
        let page = page(1, 16, &[event(TYPE_TIME_EXTEND, 2), 3, event(1, 4), 0]);
        let ts = 1 + (3u64 << 27) + 2 + 4;
        assert_eq!(steps(&page, &LITTLE), [Step::Event { ts, at: 28, len: 4 }, Step::End]);
    }

    #[test]
    fn an_absolute_stamp_replaces_the_time() {
        let page = page(1 << 40, 16, &[event(TYPE_TIME_STAMP, 2), 3, event(1, 4), 0]);
        let ts = (3u64 << 27) + 2 + 4;
        assert_eq!(steps(&page, &LITTLE), [Step::Event { ts, at: 28, len: 4 }, Step::End]);
    }

    #[test]
    fn an_absolute_stamp_takes_its_upper_bits_from_the_time_before() {
        let top = 5u64 << ABSOLUTE_BITS;
        assert_eq!(absolute(100, top + 50), top + 100);
        // The lower bits ran over since.
        assert_eq!(absolute(100, top + 200), top + (1 << ABSOLUTE_BITS) + 100);
        assert_eq!(absolute(100, 200), 100);
    }

    #[test]
    fn padding_is_passed_over_and_its_time_counts() {
        let page = page(0, 20, &[event(TYPE_PADDING, 7), 8, 0xdead, event(1, 1), 0]);
        assert_eq!(steps(&page, &LITTLE), [Step::Event { ts: 8, at: 32, len: 4 }, Step::End]);
    }

    #[test]
    fn padding_without_a_delta_ends_the_page() {
        let page = page(0, 16, &[event(1, 1), 0, event(TYPE_PADDING, 0), 0xffff]);
        assert_eq!(steps(&page, &LITTLE), [Step::Event { ts: 1, at: 20, len: 4 }, Step::End]);
    }

    #[test]
    fn missed_events_are_told_with_their_count_if_it_is_stored() {
        let stored = page(0, MISSED_EVENTS | MISSED_STORED | 8, &[event(1, 1), 0, 812]);
        assert_eq!(PageWalk::new(&stored, &LITTLE).unwrap().1, Some(Missed { count: Some(812) }));
        let flag = page(0, MISSED_EVENTS | 8, &[event(1, 1), 0, 812]);
        assert_eq!(PageWalk::new(&flag, &LITTLE).unwrap().1, Some(Missed { count: None }));
        // No room behind the events: the flag must not be there, and there is no count.
        let full = page(0, MISSED_EVENTS | MISSED_STORED | 112, &[event(27, 0)]);
        assert_eq!(PageWalk::new(&full, &LITTLE).unwrap().1, Some(Missed { count: None }));
    }

    #[test]
    fn what_reaches_beyond_the_committed_bytes_is_damage() {
        for words in [
            vec![event(28, 0)],
            vec![event(0, 0), 100],
            vec![event(0, 0), 3],
            vec![event(0, 0), u32::MAX],
            vec![event(TYPE_PADDING, 1), 100],
            vec![event(TYPE_PADDING, 1), u32::MAX],
            vec![event(TYPE_TIME_EXTEND, 1)],
        ] {
            let page = page(0, 4 * words.len() as u64, &words);
            assert!(matches!(steps(&page, &LITTLE)[..], [Step::Damaged { at: 16, .. }]), "{words:x?}");
        }
    }

    #[test]
    fn a_page_that_is_cut_gives_its_whole_events_and_says_so() {
        let whole = page(0, 16, &[event(1, 1), 0, event(1, 1), 0]);
        let found = steps(&whole[..30], &LITTLE);
        let why = "the data end inside this page";
        assert_eq!(found, [Step::Event { ts: 1, at: 20, len: 4 }, Step::Damaged { at: 24, why }]);
        assert!(PageWalk::new(&whole[..15], &LITTLE).is_err());
    }

    #[test]
    fn a_size_beyond_the_page_is_refused() {
        assert!(PageWalk::new(&page(0, 113, &[]), &LITTLE).is_err());
        assert!(PageWalk::new(&page(0, 112, &[event(27, 0)]), &LITTLE).is_ok());
    }
}
