// SPDX-License-Identifier: GPL-2.0-or-later
//! The C side's answer, read where the C wrote it.

use sisdiff_tree::run::protocol::ANSWER_WORDS;

use super::words::{NONE, task_of};
use crate::fair::{ProbeKind, TaskHidden};
use crate::machine::TaskId;
use crate::units::Cpu;

/// Something that happened on the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// An idle check.
    Probe { kind: ProbeKind, cpu: u32, idle: bool, file: u32, line: u32 },
    /// A `return` with a value.
    Return { statement: u32, value: i64 },
    /// A function was entered (recorded on demand).
    Enter { function: u32 },
    /// A WARN_ON() held.
    Warn { line: u32 },
    /// select_idle_sibling() was entered.
    Search { target: i64 },
    /// The recently used CPU was found to be of no use, in a tree that otherwise keeps it for later.
    Miss,
}

/// What a task's hidden state is after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskAfter {
    pub(super) recent_used_cpu: i64,
    pub(super) wakee_flips: u32,
    pub(super) wakee_flip_decay_jiffies: u64,
    pub(super) last_wakee: Option<TaskId>,
}

impl TaskAfter {
    /// Takes over the values, but not how well they are known.
    #[inline]
    pub(super) fn store(self, to: &mut TaskHidden) {
        to.recent_used_cpu = Cpu(self.recent_used_cpu as u16);
        to.wakee_flips = self.wakee_flips;
        to.wakee_flip_decay_jiffies = self.wakee_flip_decay_jiffies;
        to.last_wakee = self.last_wakee;
    }
}

/// Where things are among the words.
const COUNTERS: usize = 7;
const TASKS: usize = 14;
const CPU: usize = 22;
const EVENTS: usize = 25;

/// The answer to one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer<'a> {
    head: &'a [u64; ANSWER_WORDS],
    shared: &'a [u64],
    events: &'a [u64],
}

impl<'a> Answer<'a> {
    /// The answer in `words`, from an object with `nr_shared` shared states; `None`: something is missing.
    #[inline]
    pub(super) fn of(words: &'a [u64], nr_shared: usize) -> Option<Self> {
        let (head, rest) = words.split_first_chunk()?;
        let (shared, rest) = rest.split_at_checked(2 * nr_shared)?;
        let (all, kept) = (head[EVENTS], head[EVENTS + 1]);
        let events = rest.get(..usize::try_from(kept).ok()?.checked_mul(2)?)?;
        (all == kept).then_some(Self { head, shared, events })
    }

    /// What the function returned.
    #[inline]
    pub(super) fn cpu(&self) -> i64 {
        self.head[0] as i64
    }

    #[inline]
    pub(super) fn clock_ns(&self) -> u64 {
        self.head[1]
    }

    #[inline]
    pub(super) fn mask_ops(&self) -> u64 {
        self.head[2]
    }

    /// Run queues taken at an index at or above nr_cpu_ids.
    #[inline]
    pub(super) fn oob(&self) -> u64 {
        self.head[3]
    }

    /// Kinds of input read, and of hidden state written.
    #[inline]
    pub(super) fn reads(&self) -> u64 {
        self.head[5]
    }

    /// CPUs that the loops of a search turned to.
    #[inline]
    pub(super) fn turns(&self) -> u64 {
        self.head[6]
    }

    /// The tree's own counters (search, scanned, domain_search, failed, recent_hit, recent_miss), those it has.
    #[inline]
    pub(super) fn counters(&self) -> [Option<u64>; 6] {
        let have = self.head[COUNTERS];
        std::array::from_fn(|at| (have & (1 << at) != 0).then_some(self.head[COUNTERS + 1 + at]))
    }

    /// The words of the hidden state of the wakee or the waker.
    #[inline]
    pub(super) fn task_words(&self, which: usize) -> [u64; 4] {
        let at = TASKS + 4 * which;
        [self.head[at], self.head[at + 1], self.head[at + 2], self.head[at + 3]]
    }

    /// The same as values.
    #[inline]
    pub(super) fn task(&self, which: usize) -> TaskAfter {
        let [recent, flips, decay, last] = self.task_words(which);
        TaskAfter {
            recent_used_cpu: recent as i64,
            wakee_flips: flips as u32,
            wakee_flip_decay_jiffies: decay,
            last_wakee: if last == NONE { None } else { task_of(last) },
        }
    }

    /// avg_scan_cost of the waking CPU's LLC, where there is such a thing; its wake_stamp; its wake_avg_idle.
    #[inline]
    pub(super) fn cpu_after(&self) -> (Option<u64>, u64, u64) {
        (Some(self.head[CPU]).filter(|&cost| cost != NONE), self.head[CPU + 1], self.head[CPU + 2])
    }

    /// has_idle_cores and nr_idle_scan of each shared state.
    #[inline]
    pub(super) fn shared(&self) -> impl Iterator<Item = (bool, u32)> {
        self.shared.chunks_exact(2).map(|pair| (pair[0] != 0, pair[1] as u32))
    }

    /// The record of the walk.
    #[inline]
    pub(super) fn events(&self) -> impl Iterator<Item = Event> + use<'a> {
        self.events.chunks_exact(2).filter_map(|pair| event(pair[0], pair[1]))
    }
}

#[inline]
fn event(what: u64, value: u64) -> Option<Event> {
    let number = (what & 0xffff_ffff) as u32;
    Some(match what >> 56 {
        1 => Event::Probe {
            kind: match (what >> 8) as u8 {
                b'A' => ProbeKind::Available,
                b'I' => ProbeKind::Idle,
                b'S' => ProbeKind::SchedIdle,
                _ => ProbeKind::Without,
            },
            cpu: value as u32,
            idle: what & 1 != 0,
            file: (value >> 32) as u32,
            line: (what >> 16) as u32,
        },
        2 => Event::Return { statement: number, value: value as i64 },
        3 => Event::Enter { function: number },
        4 => Event::Warn { line: number },
        5 => Event::Search { target: value as i64 },
        6 => Event::Miss,
        _ => return None,
    })
}
