// SPDX-License-Identifier: GPL-2.0-or-later
//! How long woken tasks waited for their CPU, as recorded: from sched_waking, and from sched_wakeup, to the
//! sched_switch that let them run.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::replay::Filter;
use crate::replay::totals::Latency;
use crate::trace::{Event, EventKind, PrevState};
use crate::units::{Comm, Pid};

/// Tasks that may wait at a time; a wakeup beyond is not timed.
const WAITING_MAX: usize = 1 << 16;
/// Names that are told apart.
const COMMS_MAX: usize = 512;

/// Times wakeups as events come.
#[derive(Debug, Default)]
pub struct Latencies {
    filter: Filter,
    waiting: BTreeMap<Pid, Waiting>,
    /// All of them.
    pub all: Latency,
    /// From sched_waking by the name of the wakee, of the first names that came.
    pub by_comm: BTreeMap<Comm, Histogram>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    waking_ns: Option<u64>,
    wakeup_ns: Option<u64>,
    counts: bool,
}

impl Latencies {
    /// Of the wakings that pass the filter.
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Waking { wakee, .. } => {
                let counts = self.filter.passes(event.ts_ns, wakee.pid, &wakee.comm, event.cpu);
                self.wait(wakee.pid, Waiting { waking_ns: Some(event.ts_ns), wakeup_ns: None, counts });
            }
            EventKind::Wakeup { wakee, .. } => match self.waiting.get_mut(&wakee.pid) {
                Some(waiting) => waiting.wakeup_ns = waiting.wakeup_ns.or(Some(event.ts_ns)),
                None => {
                    let counts = self.filter.passes(event.ts_ns, wakee.pid, &wakee.comm, event.cpu);
                    self.wait(wakee.pid, Waiting { waking_ns: None, wakeup_ns: Some(event.ts_ns), counts });
                }
            },
            EventKind::Switch { prev, prev_state, next } => {
                // A task that was woken while it ran, and that is queued again for another reason.
                if *prev_state == PrevState::Runnable {
                    self.waiting.remove(&prev.pid);
                }
                if let Some(waiting) = self.waiting.remove(&next.pid).filter(|waiting| waiting.counts) {
                    self.ran(waiting, next.comm, event.ts_ns);
                }
            }
            EventKind::Lost { .. } => self.waiting.clear(),
            _ => {}
        }
    }

    fn wait(&mut self, pid: Pid, waiting: Waiting) {
        if self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&pid) {
            self.waiting.insert(pid, waiting);
        }
    }

    fn ran(&mut self, waiting: Waiting, comm: Comm, ts_ns: u64) {
        if let Some(wakeup_ns) = waiting.wakeup_ns {
            self.all.from_wakeup_ns.add(ts_ns.saturating_sub(wakeup_ns));
        }
        let Some(waking_ns) = waiting.waking_ns else { return };
        let waited_ns = ts_ns.saturating_sub(waking_ns);
        self.all.from_waking_ns.add(waited_ns);
        if self.by_comm.len() < COMMS_MAX || self.by_comm.contains_key(&comm) {
            self.by_comm.entry(comm).or_default().add(waited_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Context, Wakee};
    use crate::units::Cpu;

    fn task(pid: i32) -> Wakee {
        Wakee { pid: Pid(pid), comm: Comm::new(b"task"), prio: 120 }
    }

    fn play(events: &[(u64, EventKind)]) -> Latencies {
        let mut latencies = Latencies::new(Filter::default());
        for (ts_ns, kind) in events {
            let kind = kind.clone();
            latencies.event(&Event { ts_ns: *ts_ns, cpu: Cpu(0), pid: Pid(0), context: Context::empty(), kind });
        }
        latencies
    }

    fn waking(pid: i32) -> EventKind {
        EventKind::Waking { wakee: task(pid), target_cpu: Cpu(0) }
    }

    fn wakeup(pid: i32) -> EventKind {
        EventKind::Wakeup { wakee: task(pid), target_cpu: Cpu(0), new: false }
    }

    fn switch(prev: i32, prev_state: PrevState, next: i32) -> EventKind {
        EventKind::Switch { prev: task(prev), prev_state, next: task(next) }
    }

    #[test]
    fn both_latencies_end_with_the_switch() {
        let of = play(&[(10, waking(1)), (14, wakeup(1)), (30, switch(9, PrevState::Runnable, 1))]);
        assert_eq!((of.all.from_waking_ns.sum(), of.all.from_wakeup_ns.sum()), (20, 16));
        assert_eq!(of.by_comm.get(&Comm::new(b"task")).map(Histogram::n), Some(1));
    }

    #[test]
    fn a_task_woken_while_it_ran_is_not_timed_later() {
        let of =
            play(&[(10, waking(1)), (20, switch(1, PrevState::Runnable, 2)), (90, switch(2, PrevState::Blocked, 1))]);
        assert_eq!(of.all.from_waking_ns.n(), 0);
        // One that is just on its way out is.
        let of =
            play(&[(10, waking(1)), (20, switch(1, PrevState::Blocked, 2)), (90, switch(2, PrevState::Blocked, 1))]);
        assert_eq!(of.all.from_waking_ns.sum(), 80);
    }

    #[test]
    fn nothing_is_timed_across_lost_events() {
        let of =
            play(&[(10, waking(1)), (20, EventKind::Lost { count: None }), (90, switch(2, PrevState::Blocked, 1))]);
        assert_eq!(of.all.from_waking_ns.n(), 0);
    }
}
