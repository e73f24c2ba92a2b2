// SPDX-License-Identifier: GPL-2.0-or-later
//! The events of one CPU, page after page.

use crate::compress::Decompressor;
use crate::error::Error;
use crate::meta::{CpuData, Gap};
use crate::packed::{Growth, TIMES};
use crate::page::{Missed, PageLayout, PageWalk, Step};
use crate::source::Source;
use crate::time::TimeMap;

/// Bytes read at once from an uncompressed file, if a page is not larger.
const READ_AT_ONCE: u64 = 32 << 10;
/// trace-cmd writes chunks of 10 pages.
const CHUNK_PAGES_MAX: u64 = 64;
const CHUNK_MIN_LIMIT: u64 = 1 << 20;
/// Bytes that a chunk may be larger than its decompressed self and an eighth.
const PACKED_MORE: u64 = 1024;
/// Blocks of all CPUs together; a real file stays far below. Less for a small file: chunks of events pack 3 to 6 times.
const BLOCKS_BUDGET: u64 = 512 << 20;
const BLOCKS_ALWAYS: u64 = 48 << 20;
const BLOCKS_TIMES: u64 = 8;
/// What chunks may grow to before their growth is looked at: pages of 64 KiB of 1,024 CPUs with an event each are real.
pub(crate) const GROWS_FREELY: u64 = 256 << 20;
/// A chunk's two sizes, bytes.
const WORDS: u64 = 8;
/// A chunk list's count, which some writers include in its size.
const COUNT_BYTES: u64 = 4;
/// Gaps that are described; more are counted.
const GAPS_MAX: usize = 1000;

/// What all streams of a cursor share.
pub(crate) struct Shared<'a> {
    pub(crate) source: &'a Source,
    pub(crate) layout: PageLayout,
    pub(crate) times: TimeMap,
    pub(crate) type_at: usize,
    /// By event id: the bytes that an event takes at least, `u16::MAX` without a format; 0 once it was told.
    pub(crate) least: Vec<u16>,
    /// Bytes of a page behind its events are zero.
    pub(crate) zeroed: bool,
    pub(crate) decompressor: Decompressor,
    pub(crate) packed: Vec<u8>,
    /// Of all chunks.
    pub(crate) growth: Growth,
    /// Bytes of all blocks.
    pub(crate) block_bytes: u64,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) more_gaps: u64,
    pub(crate) buffer: String,
}

/// Events that a page's walk is ahead at most: enough that a walk in turns costs little, few enough to stay in a cache.
const AHEAD_MAX: usize = 64;

/// An event in the page that is walked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) ts: u64,
    /// Bytes from the start of the page.
    at: u32,
    len: u32,
    pub(crate) id: u16,
}

/// What a stream stands at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Head {
    Event(Slot),
    Lost { ts: u64, count: Option<u64> },
}

impl Head {
    #[inline]
    pub(crate) fn ts(&self) -> u64 {
        match *self {
            Head::Event(Slot { ts, .. }) | Head::Lost { ts, .. } => ts,
        }
    }
}

/// Where the next bytes come from.
#[derive(Debug)]
enum Rest {
    /// Pages as they are.
    Plain { offset: u64, size: u64 },
    /// A list of compressed chunks; `left` of them from `offset` on, all before `end`.
    Chunks { offset: u64, left: u32, end: u64 },
    /// A list whose count was not read yet.
    ChunkList { offset: u64, size: u64 },
}

impl Rest {
    const END: Rest = Rest::Plain { offset: 0, size: 0 };
}

/// What the blocks of all CPUs of a file of `len` bytes may take together.
fn blocks_budget(len: u64) -> u64 {
    BLOCKS_BUDGET.min(BLOCKS_ALWAYS + len.saturating_mul(BLOCKS_TIMES))
}

fn over_budget(shared: &Shared<'_>) -> String {
    format!("more than {} bytes for the CPUs' buffers at once", blocks_budget(shared.source.len()))
}

/// The type of an event of `len` bytes; `None` if it has no room for one.
#[inline]
fn type_of(page: &[u8], at: u32, len: u32, shared: &Shared<'_>) -> Option<u16> {
    let id = shared.layout.endian.u16(page, at as usize + shared.type_at)?;
    (shared.type_at + 2 <= len as usize).then_some(id)
}

/// The buffer of one CPU.
pub(crate) struct Stream {
    pub(crate) cpu: u32,
    rest: Rest,
    /// A few pages, or one decompressed chunk.
    block: Vec<u8>,
    /// File offset of the block, for messages.
    block_offset: u64,
    /// The page in `block` that is walked.
    page: std::ops::Range<usize>,
    walk: Option<PageWalk>,
    /// Events that the walk has passed, and how many of them were the head.
    ahead: Vec<Slot>,
    taken: usize,
    /// Where the first of the empty pages is that were passed since the last one with events.
    empty: Option<u64>,
    /// Time of the last event, or of the page after lost ones.
    last_ts: u64,
    pub(crate) head: Option<Head>,
    /// Time of the last head that the cursor gave.
    pub(crate) given_ts: u64,
}

impl Stream {
    pub(crate) fn new(data: &CpuData, compressed: bool) -> Stream {
        let rest = if data.size == 0 {
            Rest::END
        } else if compressed {
            Rest::ChunkList { offset: data.offset, size: data.size }
        } else {
            Rest::Plain { offset: data.offset, size: data.size }
        };
        Stream {
            cpu: data.cpu,
            rest,
            block: Vec::new(),
            block_offset: data.offset,
            page: 0..0,
            walk: None,
            ahead: Vec::new(),
            taken: 0,
            empty: None,
            last_ts: 0,
            head: None,
            given_ts: 0,
        }
    }

    /// Bytes of the file that were not read yet.
    pub(crate) fn left(&self) -> u64 {
        match self.rest {
            Rest::Plain { size, .. } | Rest::ChunkList { size, .. } => size,
            Rest::Chunks { left: 0, .. } => 0,
            Rest::Chunks { offset, end, .. } => end.saturating_sub(offset),
        }
    }

    /// The bytes of the event at the head.
    #[inline]
    pub(crate) fn data(&self, slot: Slot) -> &[u8] {
        let from = self.page.start + slot.at as usize;
        // PageWalk gives places inside the page only.
        &self.block[from..from + slot.len as usize]
    }

    /// Moves the head to the next event or loss; `None` at the end.
    #[inline]
    pub(crate) fn advance(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        match self.ahead.get(self.taken) {
            Some(&slot) => {
                self.taken += 1;
                self.take(slot);
                Ok(())
            }
            None => self.walk_on(shared),
        }
    }

    #[inline]
    fn take(&mut self, slot: Slot) {
        self.last_ts = slot.ts;
        self.head = Some(Head::Event(slot));
    }

    /// Moves the head where no event was walked ahead.
    fn walk_on(&mut self, shared: &mut Shared<'_>) -> Result<(), Error> {
        loop {
            self.walk_ahead(shared);
            if let Some(&slot) = self.ahead.first() {
                self.taken = 1;
                self.take(slot);
                return Ok(());
            }
            let Some(walk) = &mut self.walk else {
                if !self.next_page(shared)? {
                    self.head = None;
                    return Ok(());
                }
                if self.head.is_some() {
                    return Ok(());
                }
                continue;
            };
            let page = &self.block[self.page.clone()];
            match walk.next(page, shared.layout.endian) {
                Step::Event { ts, at, len } => {
                    let Some(id) = type_of(page, at, len, shared) else {
                        self.damaged(shared, at, "event is too short for its type");
                        return Ok(());
                    };
                    if len < u32::from(shared.least[usize::from(id)]) {
                        self.odd(shared, at, len, id);
                    }
                    let ts = shared.times.ns(self.cpu, ts);
                    self.take(Slot { ts, at, len, id });
                    return Ok(());
                }
                Step::End => self.walk = None,
                Step::Damaged { at, why } => {
                    self.damaged(shared, at, why);
                    return Ok(());
                }
            }
        }
    }

    /// Walks on as long as events follow that nothing is to be said about. What is noted must be noted when it is its turn,
    /// or gaps of several CPUs would come in another order.
    fn walk_ahead(&mut self, shared: &Shared<'_>) {
        self.ahead.clear();
        self.taken = 0;
        let Some(walk) = &mut self.walk else { return };
        let bytes = walk.committed(&self.block[self.page.clone()]);
        while self.ahead.len() < AHEAD_MAX {
            let before = *walk;
            let Some((ts, at, len)) = walk.event(bytes, shared.layout.endian) else { return };
            match type_of(bytes, at, len, shared) {
                Some(id) if len >= u32::from(shared.least[usize::from(id)]) => {
                    self.ahead.push(Slot { ts: shared.times.ns(self.cpu, ts), at, len, id });
                }
                _ => {
                    *walk = before;
                    return;
                }
            }
        }
    }

    /// Gives up the rest of the page: noted as a gap, told as a loss.
    fn damaged(&mut self, shared: &mut Shared<'_>, at: u32, why: &str) {
        let in_block = self.page.start as u64 + u64::from(at);
        let offset = self.block_offset + in_block;
        self.gap(shared, offset, None, why.to_string());
        self.walk = None;
    }

    /// Notes a gap, and gives a loss to be told.
    fn gap(&mut self, shared: &mut Shared<'_>, offset: u64, bytes: Option<u64>, what: String) {
        self.note(shared, offset, bytes, what);
        self.head = Some(Head::Lost { ts: self.last_ts, count: None });
    }

    fn note(&self, shared: &mut Shared<'_>, offset: u64, bytes: Option<u64>, what: String) {
        if shared.gaps.len() < GAPS_MAX {
            let buffer = Some(shared.buffer.clone());
            shared.gaps.push(Gap { buffer, cpu: Some(self.cpu), offset, bytes, what });
        } else {
            shared.more_gaps += 1;
        }
    }

    /// Notes an event that does not fit its format, the first of its type; it is given as it is.
    #[cold]
    fn odd(&self, shared: &mut Shared<'_>, at: u32, len: u32, id: u16) {
        let least = std::mem::take(&mut shared.least[usize::from(id)]);
        let what = match least {
            u16::MAX => format!("event of type {id}, which has no format"),
            _ => format!("event of type {id} has {len} bytes, its format {least}"),
        };
        self.note(shared, self.block_offset + self.page.start as u64 + u64::from(at), None, what);
    }

    /// Notes bytes behind the events of a page that no kernel leaves there.
    fn unread(&self, shared: &mut Shared<'_>, walk: &PageWalk, missed: Option<Missed>) {
        let page = &self.block[self.page.clone()];
        let behind = walk.behind(page, &shared.layout, missed);
        if !shared.zeroed || behind.iter().all(|&byte| byte == 0) {
            return;
        }
        let offset = self.block_offset + (self.page.end - behind.len()) as u64;
        let what = "bytes behind the events of a page are not zero: its committed size is wrong".to_string();
        self.note(shared, offset, Some(behind.len() as u64), what);
    }

    /// Tells of pages with nothing on them before one with something. The kernel hands out no page without events
    /// (`rb_get_reader_page()`): something has emptied them, a hole of a sparse file as a rule.
    fn hole(&mut self, shared: &mut Shared<'_>, empty: bool) -> bool {
        if empty {
            self.empty.get_or_insert(self.block_offset + self.page.start as u64);
            return false;
        }
        let Some(from) = self.empty.take() else { return false };
        self.gap(shared, from, None, "pages without events before one with events: their events are lost".to_string());
        true
    }

    /// Goes to the next page. `false` at the end of the buffer. Sets the head if
    /// there is a loss to tell before the page's events.
    fn next_page(&mut self, shared: &mut Shared<'_>) -> Result<bool, Error> {
        self.head = None;
        let page_size = shared.layout.page_size as usize;
        let start = self.page.end;
        if start >= self.block.len() {
            self.page = 0..0;
            if !self.next_block(shared)? {
                return Ok(false);
            }
            if self.head.is_some() {
                return Ok(true);
            }
            self.page = 0..self.block.len().min(page_size);
        } else {
            self.page = start..self.block.len().min(start + page_size);
        }
        match PageWalk::new(&self.block[self.page.clone()], &shared.layout) {
            Ok((walk, missed)) => {
                self.unread(shared, &walk, missed);
                let ts = shared.times.ns(self.cpu, walk.ts());
                let hole = self.hole(shared, walk.is_empty() && missed.is_none());
                self.walk = Some(walk);
                if let Some(missed) = missed {
                    self.last_ts = ts;
                    self.head = Some(Head::Lost { ts, count: missed.count.filter(|_| !hole) });
                }
            }
            Err(why) => self.damaged(shared, 0, why),
        }
        Ok(true)
    }

    /// Loads the next block. `false` at the end of the buffer; sets the head
    /// (and leaves the block empty) where data are missing.
    fn next_block(&mut self, shared: &mut Shared<'_>) -> Result<bool, Error> {
        self.block.clear();
        match self.rest {
            Rest::Chunks { offset, left: 0, end } if end.saturating_sub(offset) > COUNT_BYTES => {
                self.rest = Rest::END;
                let bytes = end - offset;
                let what = "bytes behind the last chunk: the number of chunks is wrong".to_string();
                self.gap(shared, offset, Some(bytes), what);
                Ok(true)
            }
            Rest::Plain { size: 0, .. } | Rest::Chunks { left: 0, .. } => Ok(false),
            Rest::Plain { offset, size } => self.plain_block(shared, offset, size),
            Rest::ChunkList { offset, size } => self.chunk_list(shared, offset, size),
            Rest::Chunks { offset, left, end } => self.chunk(shared, offset, left, end),
        }
    }

    fn plain_block(&mut self, shared: &mut Shared<'_>, offset: u64, size: u64) -> Result<bool, Error> {
        let page_size = u64::from(shared.layout.page_size);
        let want = (READ_AT_ONCE / page_size).max(1).saturating_mul(page_size).min(size);
        let here = shared.source.len().saturating_sub(offset).min(want);
        if !self.may_hold(shared, here) {
            self.rest = Rest::END;
            let what = over_budget(shared);
            self.gap(shared, offset, Some(size), what);
            return Ok(true);
        }
        self.block.resize(here as usize, 0);
        let n = shared.source.read_at(offset, &mut self.block)?;
        self.block.truncate(n);
        self.block_offset = offset;
        if n == 0 {
            self.rest = Rest::END;
            self.gap(shared, offset, Some(size), "the file ends before this CPU's data do".into());
            return Ok(true);
        }
        // If the file is cut, the next call finds nothing more and says so.
        self.rest = Rest::Plain { offset: offset.saturating_add(n as u64), size: size - n as u64 };
        Ok(true)
    }

    /// Counts a block of that size into the budget, unless there is no room for it.
    fn may_hold(&self, shared: &mut Shared<'_>, size: u64) -> bool {
        let grows = size.saturating_sub(self.block.capacity() as u64);
        if shared.block_bytes + grows > blocks_budget(shared.source.len()) {
            return false;
        }
        shared.block_bytes += grows;
        true
    }

    fn chunk_list(&mut self, shared: &mut Shared<'_>, offset: u64, size: u64) -> Result<bool, Error> {
        let mut word = [0; 4];
        let n = shared.source.read_at(offset, &mut word)?;
        let Some(left) = shared.layout.endian.u32(&word[..n], 0) else {
            self.rest = Rest::END;
            self.gap(shared, offset, Some(size), "the file ends before this CPU's data do".into());
            return Ok(true);
        };
        let offset = offset + 4;
        // trace-cmd leaves the word with the count out of the size.
        let end = offset.saturating_add(size);
        self.rest = Rest::Chunks { offset, left, end };
        self.next_block(shared)
    }

    fn chunk(&mut self, shared: &mut Shared<'_>, offset: u64, left: u32, end: u64) -> Result<bool, Error> {
        let stop = |stream: &mut Stream, shared: &mut Shared<'_>, what: String| {
            stream.rest = Rest::END;
            let bytes = end.saturating_sub(offset);
            stream.gap(shared, offset, Some(bytes), what);
            Ok(true)
        };
        let endian = shared.layout.endian;
        let mut words = [0; 8];
        let n = shared.source.read_at(offset, &mut words)?;
        let (Some(packed), Some(size)) = (endian.u32(&words[..n], 0), endian.u32(&words[..n], 4)) else {
            return stop(self, shared, "the file ends before this CPU's data do".into());
        };
        let data = offset + WORDS;
        let next = data + u64::from(packed);
        if next > end {
            return stop(self, shared, format!("chunk of {packed} bytes reaches beyond this CPU's data"));
        }
        if next > shared.source.len() {
            return stop(self, shared, "the file ends inside a chunk".into());
        }
        let limit = CHUNK_MIN_LIMIT.max(CHUNK_PAGES_MAX * u64::from(shared.layout.page_size));
        if u64::from(size) > limit {
            return stop(self, shared, format!("chunk of {size} bytes decompressed, the limit is {limit}"));
        }
        if u64::from(packed) > u64::from(size) + u64::from(size) / 8 + PACKED_MORE {
            return stop(self, shared, format!("chunk of {packed} bytes for {size} bytes decompressed"));
        }
        if !self.may_hold(shared, u64::from(size)) {
            let what = over_budget(shared);
            return stop(self, shared, what);
        }
        shared.packed.resize(packed as usize, 0);
        shared.source.read_exact(data, &mut shared.packed, "chunk")?;
        self.rest = Rest::Chunks { offset: next, left: left - 1, end };
        self.block_offset = offset;
        let result = shared.decompressor.run(&shared.packed, size as usize, &mut self.block, "chunk", offset);
        if let Err(error) = result {
            // What came out before the error is not trusted.
            self.block.clear();
            self.gap(shared, offset, Some(u64::from(packed)), error.to_string());
        }
        if !shared.growth.book(u64::from(packed) + WORDS, u64::from(size)) {
            let expected = format!("at most {TIMES} times as much as their packed bytes (record the file anew)");
            return Err(Error::invalid("chunks of CPU data", offset, expected, format!("{size} bytes from {packed}")));
        }
        Ok(true)
    }
}
