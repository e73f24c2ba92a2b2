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
    /// Lines of a text that should be events and could not be read, and the first one's number, from 1. The first of them
    /// are in `gaps`, too.
    pub unreadable_lines: Option<(u64, u64)>,
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
    /// The stream whose head is the earliest. Not in the heap: events of one CPU come in runs, and as long as its next one
    /// is earlier than the heap's first nothing has to be sorted.
    turn: Option<Key>,
    /// The other streams that have a head, the earliest first (a binary heap).
    heap: Vec<Key>,
    /// The head of `turn` was given and has to be moved on.
    given: bool,
    summary: Summary,
}

/// The head of a stream: time, CPU, place in `streams`, as one number, whose order is that of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    #[inline]
    fn new(ts: u64, cpu: u32, at: u32) -> Key {
        Key(u128::from(ts) << 64 | u128::from(cpu) << 32 | u128::from(at))
    }

    #[inline]
    fn cpu(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn at(self) -> usize {
        self.0 as u32 as usize
    }
}

impl<'a> Merge<'a> {
    pub(crate) fn new(mut shared: Shared<'a>, mut streams: Vec<Stream>, gaps: Vec<Gap>) -> Result<Merge<'a>, Error> {
        let mut heap = Vec::with_capacity(streams.len());
        for (at, stream) in streams.iter_mut().enumerate() {
            stream.advance(&mut shared)?;
            if let Some(head) = &stream.head {
                heap.push(Key::new(head.ts(), stream.cpu, at as u32));
            }
        }
        // A sorted vector is a heap.
        heap.sort_unstable();
        Ok(Merge {
            shared,
            streams,
            turn: pop(&mut heap),
            heap,
            given: false,
            summary: Summary { gaps, ..Summary::default() },
        })
    }

    #[inline]
    fn move_on(&mut self) -> Result<(), Error> {
        let Some(turn) = self.turn else {
            return Ok(());
        };
        let stream = &mut self.streams[turn.at()];
        stream.advance(&mut self.shared)?;
        let Some(head) = &stream.head else {
            self.turn = pop(&mut self.heap);
            return Ok(());
        };
        let next = Key::new(head.ts(), turn.cpu(), turn.at() as u32);
        self.turn = match self.heap.first() {
            Some(&first) if first < next => {
                put_in(&mut self.heap, next);
                Some(first)
            }
            _ => Some(next),
        };
        Ok(())
    }
}

/// Takes the earliest key.
fn pop(heap: &mut Vec<Key>) -> Option<Key> {
    let last = heap.pop()?;
    let Some(&first) = heap.first() else {
        return Some(last);
    };
    put_in(heap, last);
    Some(first)
}

/// Puts `key` into the place of the first, and keeps the order.
fn put_in(heap: &mut [Key], key: Key) {
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= heap.len() {
            break;
        }
        if child + 1 < heap.len() && heap[child + 1] < heap[child] {
            child += 1;
        }
        if key <= heap[child] {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

impl EventCursor for Merge<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        if self.given {
            self.given = false;
            self.move_on()?;
        }
        let Some(turn) = self.turn else {
            return Ok(None);
        };
        let stream = &mut self.streams[turn.at()];
        let Some(head) = stream.head else {
            return Ok(None);
        };
        self.given = true;
        let (ts, cpu) = (head.ts(), turn.cpu());
        self.summary.out_of_order += u64::from(ts < stream.given_ts);
        stream.given_ts = ts;
        Ok(Some(match head {
            Head::Event(slot) => {
                self.summary.events += 1;
                Item::Event(RawEvent { ts_ns: ts, cpu, id: slot.id, data: stream.data(slot) })
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
