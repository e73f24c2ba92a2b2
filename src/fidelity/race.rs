// SPDX-License-Identifier: GPL-2.0-or-later
//! Races: a run queue that changed while the kernel was asked, proven by an event.
//!
//! The kernel reads other CPUs' run queues one by one, and they go on meanwhile. A disagreement is a **proven race** if
//!
//! 1. an event of another CPU lies between the moment from which the recorded state stands (the first probe of the call,
//!    else its sched_waking) and the answer, and says that a CPU became idle or busy: a switch to or from its idle task, a
//!    task sent there or queued there; and
//! 2. with that CPU idle where the model had it busy, or the other way round, and all else as it was, the model chooses as
//!    the kernel did.
//!
//! The same holds for has_idle_cores, which a CPU that goes idle sets and another's search clears. Where one change is not
//! enough, two of those that events show are tried together.

use std::collections::VecDeque;

use crate::fidelity::figures::RaceProof;
use crate::fidelity::why::{Trial, flip_idle};
use crate::trace::{Event, EventKind};
use crate::units::{Cpu, Pid};

/// Older changes belong to no call that is still open, ns.
const KEPT_NS: u64 = 20_000_000;
/// Changes of one call that are tried.
const TRIED_MAX: usize = 24;

/// A CPU that became idle or busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When, ns.
    pub ts_ns: u64,
    /// The CPU on which it was told.
    pub by: Cpu,
    /// The CPU that changed.
    pub cpu: Cpu,
    /// The event.
    pub event: &'static str,
}

/// The latest changes, and since when calls are open.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    recent: VecDeque<Change>,
    /// By CPU: the time of the first run queue probe of its open call.
    probed_ns: Vec<Option<u64>>,
    now_ns: u64,
}

impl Watch {
    /// Takes an event, before the machine does.
    pub fn event(&mut self, event: &Event) {
        self.now_ns = self.now_ns.max(event.ts_ns);
        while self.recent.front().is_some_and(|change| change.ts_ns + KEPT_NS < self.now_ns) {
            self.recent.pop_front();
        }
        let at = event.cpu.index();
        if self.probed_ns.len() <= at {
            self.probed_ns.resize(at + 1, None);
        }
        let mut changed = |cpu: Cpu, name| {
            self.recent.push_back(Change { ts_ns: event.ts_ns, by: event.cpu, cpu, event: name });
        };
        match &event.kind {
            EventKind::SisRq(_) => {
                self.probed_ns[at].get_or_insert(event.ts_ns);
            }
            EventKind::Waking { .. } => self.probed_ns[at] = None,
            EventKind::Switch { prev, next, .. } if prev.pid == Pid::SWAPPER || next.pid == Pid::SWAPPER => {
                changed(event.cpu, "sched_switch");
            }
            EventKind::Wakeup { target_cpu, .. } => changed(*target_cpu, "sched_wakeup"),
            // What it left may have been empty before: the task slept.
            EventKind::Migrate { dest_cpu, .. } => changed(*dest_cpu, "sched_migrate_task"),
            EventKind::SisOut { ret: Some(cpu) } => changed(*cpu, "sis_out"),
            _ => {}
        }
    }

    /// The call of `cpu` has its answer: the next one's probes come.
    pub fn close(&mut self, cpu: Cpu) {
        if let Some(probed_ns) = self.probed_ns.get_mut(cpu.index()) {
            *probed_ns = None;
        }
    }

    /// Since when the recorded state of the call open on `cpu` stands, and until when: now.
    pub fn window(&self, cpu: Cpu, asked_ns: u64) -> (u64, u64) {
        let probed_ns = self.probed_ns.get(cpu.index()).copied().flatten();
        (probed_ns.map_or(asked_ns, |ns| ns.min(asked_ns)), self.now_ns)
    }

    /// What other CPUs told in that time, of each CPU the last change.
    pub fn changes(&self, this_cpu: Cpu, (from_ns, until_ns): (u64, u64)) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for change in self.recent.iter().rev() {
            let within = change.ts_ns >= from_ns && change.ts_ns <= until_ns && change.by != this_cpu;
            if within && changes.len() < TRIED_MAX && changes.iter().all(|other| other.cpu != change.cpu) {
                changes.push(*change);
            }
        }
        changes
    }
}

/// The proof, if the disagreement is a race.
pub fn prove(
    trial: &Trial<'_>,
    decision: u64,
    changes: &[Change],
    (from_ns, until_ns): (u64, u64),
) -> Option<RaceProof> {
    let proof = |change: &Change| RaceProof {
        decision,
        cpu: u64::from(change.cpu.0),
        event: change.event.to_owned(),
        ts_ns: change.ts_ns,
        from_ns,
        until_ns,
    };
    let nr_cpus = trial.state.topology.nr_cpu_ids();
    let changes: Vec<&Change> = changes.iter().filter(|change| change.cpu.index() < nr_cpus).collect();
    for change in &changes {
        let alone = trial.with_state(|state| flip_idle(state, change.cpu));
        if alone || hint(trial, change.cpu) {
            return Some(proof(change));
        }
    }
    for (at, one) in changes.iter().enumerate() {
        for other in &changes[at + 1..] {
            let both = trial.with_state(|state| {
                flip_idle(state, one.cpu);
                flip_idle(state, other.cpu);
            });
            if both {
                return Some(proof(one));
            }
        }
    }
    None
}

/// has_idle_cores of the changed CPU's LLC as it may have been before or after.
fn hint(trial: &Trial<'_>, cpu: Cpu) -> bool {
    let Some(id) = trial.state.topology.llc_shared(cpu) else { return false };
    let mut model = trial.model.clone();
    model.hidden.shared[id].has_idle_cores ^= true;
    trial.gives(trial.state, trial.wakeup, &mut model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Context, PrevState, Wakee};
    use crate::units::Comm;

    fn event(ts_ns: u64, cpu: u16, kind: EventKind) -> Event {
        Event { ts_ns, cpu: Cpu(cpu), pid: Pid(9), context: Context::empty(), kind }
    }

    fn task(pid: i32) -> Wakee {
        Wakee { pid: Pid(pid), comm: Comm::new(b"t"), prio: 120 }
    }

    fn switch(prev: i32, next: i32) -> EventKind {
        EventKind::Switch { prev: task(prev), prev_state: PrevState::Blocked, next: task(next) }
    }

    #[test]
    fn only_changes_of_other_cpus_within_the_call_count() {
        let mut watch = Watch::default();
        watch.event(&event(100, 3, switch(0, 7)));
        watch.event(&event(200, 1, EventKind::Waking { wakee: task(5), target_cpu: Cpu(2) }));
        watch.event(&event(210, 2, switch(7, 8)));
        watch.event(&event(220, 2, switch(8, 0)));
        watch.event(&event(230, 1, EventKind::Migrate { task: task(6), orig_cpu: Cpu(4), dest_cpu: Cpu(5) }));
        watch.event(&event(240, 1, EventKind::SisOut { ret: Some(Cpu(2)) }));
        let window = watch.window(Cpu(1), 200);
        assert_eq!(window, (200, 240));
        let changes = watch.changes(Cpu(1), window);
        // Of CPU 3 too early, of CPU 1 itself no race; a switch between tasks makes no CPU idle.
        assert_eq!(changes, [Change { ts_ns: 220, by: Cpu(2), cpu: Cpu(2), event: "sched_switch" }]);
    }
}
