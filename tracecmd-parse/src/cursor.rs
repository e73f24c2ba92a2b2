// SPDX-License-Identifier: GPL-2.0-or-later
//! The events of all CPUs in one order.

use crate::error::Error;
use crate::field::RawEvent;
use crate::meta::Gap;
use crate::stream::{Head, Shared, Stream};

/// What a cursor gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// An event.
    Event(RawEvent<'a>),
    /// Events of this CPU are missing here: the ring buffer overran, or this
    /// part of the file is cut or damaged (then [`Summary::gaps`] says why).
    Lost {
        /// The CPU whose events are missing.
        cpu: u32,
        /// When: of an overrun, the time of the page after it; of a gap, the
        /// time of the last event before it.
        ts_ns: u64,
        /// How many, if the kernel counted them.
        count: Option<u64>,
    },
}

/// What was counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events given.
    pub events: u64,
    /// [`Item::Lost`] given.
    pub losses: u64,
    /// Lost events of those losses that have a count.
    pub lost_events: u64,
    /// Events that were earlier than the one before them on the same CPU.
    pub out_of_order: u64,
    /// What was cut or damaged: the gaps found at opening, then those found
    /// while reading, the first thousand of them.
    pub gaps: Vec<Gap>,
    /// Gaps found while reading that are not in `gaps`.
    pub more_gaps: u64,
}

/// Events in the order (time, CPU, position in the CPU's buffer).
///
/// A lending iterator: an item lives until the next call, so nothing is copied.
pub trait EventCursor {
    /// The next item, `None` at the end.
    ///
    /// # Errors
    /// The operating system's. Damage in the file is no error but an
    /// [`Item::Lost`] with a gap in the summary.
    fn next(&mut self) -> Result<Option<Item<'_>>, Error>;

    /// What was counted so far; complete after `next` gave `None`.
    fn summary(&self) -> Summary;

    /// How many bytes of the file's events are still to be read, for telling how far a walk is; `None`: not known.
    fn left(&self) -> Option<u64> {
        None
    }
}

/// The cursor of the native reader: one stream for each CPU, and a heap of
/// their heads.
pub(crate) struct Merge<'a> {
    shared: Shared<'a>,
    streams: Vec<Stream>,
    /// Streams that have a head, the earliest first (a binary heap).
    heap: Vec<Key>,
    /// The first stream's head was given and has to be moved on.
    given: bool,
    last_ts: Vec<u64>,
    summary: Summary,
}

/// Time, CPU, place in `streams`.
type Key = (u64, u32, u32);

impl<'a> Merge<'a> {
    pub(crate) fn new(mut shared: Shared<'a>, mut streams: Vec<Stream>, gaps: Vec<Gap>) -> Result<Merge<'a>, Error> {
        let mut heap = Vec::with_capacity(streams.len());
        for (at, stream) in streams.iter_mut().enumerate() {
            stream.advance(&mut shared)?;
            if let Some(head) = &stream.head {
                heap.push((head.ts(), stream.cpu, at as u32));
            }
        }
        // A sorted vector is a heap.
        heap.sort_unstable();
        Ok(Merge {
            last_ts: vec![0; streams.len()],
            shared,
            streams,
            heap,
            given: false,
            summary: Summary { gaps, ..Summary::default() },
        })
    }

    #[inline]
    fn move_on(&mut self) -> Result<(), Error> {
        let Some(top) = self.heap.first_mut() else {
            return Ok(());
        };
        let stream = &mut self.streams[top.2 as usize];
        stream.advance(&mut self.shared)?;
        match &stream.head {
            Some(head) => top.0 = head.ts(),
            None => {
                self.heap.swap_remove(0);
            }
        }
        sift_down(&mut self.heap);
        Ok(())
    }
}

/// Restores the heap after its first key grew (or was replaced by the last).
#[inline]
fn sift_down(heap: &mut [Key]) {
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= heap.len() {
            return;
        }
        if child + 1 < heap.len() && heap[child + 1] < heap[child] {
            child += 1;
        }
        if heap[at] <= heap[child] {
            return;
        }
        heap.swap(at, child);
        at = child;
    }
}

impl EventCursor for Merge<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        if self.given {
            self.given = false;
            self.move_on()?;
        }
        let Some(&(_, cpu, at)) = self.heap.first() else {
            return Ok(None);
        };
        let at = at as usize;
        let stream = &self.streams[at];
        let Some(head) = stream.head else {
            return Ok(None);
        };
        self.given = true;
        let ts = head.ts();
        if ts < self.last_ts[at] {
            self.summary.out_of_order += 1;
        }
        self.last_ts[at] = ts;
        Ok(Some(match head {
            Head::Event { ts, at, len, id } => {
                self.summary.events += 1;
                Item::Event(RawEvent { ts_ns: ts, cpu, id, data: stream.data(at, len) })
            }
            Head::Lost { ts, count } => {
                self.summary.losses += 1;
                let lost = self.summary.lost_events;
                self.summary.lost_events = lost.saturating_add(count.unwrap_or(0));
                Item::Lost { cpu, ts_ns: ts, count }
            }
        }))
    }

    fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        summary.gaps.extend(self.shared.gaps.iter().cloned());
        summary.more_gaps = self.shared.more_gaps;
        summary
    }

    fn left(&self) -> Option<u64> {
        Some(self.streams.iter().fold(0, |sum: u64, stream| sum.saturating_add(stream.left())))
    }
}
