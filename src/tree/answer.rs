// SPDX-License-Identifier: GPL-2.0-or-later
//! The C side's answer.

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
    pub(super) fn store(self, to: &mut TaskHidden) {
        to.recent_used_cpu = Cpu(self.recent_used_cpu as u16);
        to.wakee_flips = self.wakee_flips;
        to.wakee_flip_decay_jiffies = self.wakee_flip_decay_jiffies;
        to.last_wakee = self.last_wakee;
    }
}

/// The answer to one call.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What the function returned.
    pub(super) cpu: i64,
    pub(super) clock_ns: u64,
    pub(super) mask_ops: u64,
    /// Run queues taken at an index at or above nr_cpu_ids.
    pub(super) oob: u64,
    pub(super) warnings: u64,
    /// Kinds of input read, and of hidden state written.
    pub(super) reads: u64,
    /// CPUs that the loops of a search turned to.
    pub(super) turns: u64,
    /// The tree's own counters (search, scanned, domain_search, failed, recent_hit, recent_miss), those it has.
    pub(super) counters: [Option<u64>; 6],
    /// The wakee's and the waker's hidden state.
    pub(super) tasks: [Option<TaskAfter>; 2],
    pub(super) avg_scan_cost_ns: Option<u64>,
    pub(super) wake_stamp_jiffies: u64,
    pub(super) wake_avg_idle_ns: u64,
    /// has_idle_cores and nr_idle_scan of each shared state.
    pub(super) shared: Vec<(bool, u32)>,
    pub(super) events: Vec<Event>,
    /// Events that there was no room for.
    pub(super) lost_events: u64,
}

impl Answer {
    /// Reads `words` into `self`, whose vectors are used again.
    pub(super) fn read(&mut self, words: &[u64], nr_shared: usize) {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        self.cpu = next() as i64;
        self.clock_ns = next();
        self.mask_ops = next();
        self.oob = next();
        self.warnings = next();
        self.reads = next();
        self.turns = next();
        let have = next();
        for (at, counter) in self.counters.iter_mut().enumerate() {
            *counter = Some(next()).filter(|_| have & (1 << at) != 0);
        }
        for task in &mut self.tasks {
            *task = Some(TaskAfter {
                recent_used_cpu: next() as i64,
                wakee_flips: next() as u32,
                wakee_flip_decay_jiffies: next(),
                last_wakee: Some(next()).filter(|&number| number != NONE).and_then(task_of),
            });
        }
        self.avg_scan_cost_ns = Some(next()).filter(|&cost| cost != NONE);
        self.wake_stamp_jiffies = next();
        self.wake_avg_idle_ns = next();
        self.shared.clear();
        self.shared.extend((0..nr_shared).map(|_| (next() != 0, next() as u32)));
        let (all, kept) = (next(), next());
        self.lost_events = all.saturating_sub(kept);
        self.events.clear();
        for _ in 0..kept {
            let (what, value) = (next(), next());
            self.events.extend(event(what, value));
        }
    }
}

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
