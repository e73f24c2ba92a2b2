// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens, told as the tracepoints of a kernel tell it, to whoever wants to see it.

use super::{Place, Sim};
use crate::fair::Decision;
use crate::machine::TaskId;
use crate::trace::{Context, Event, EventKind, PrevState, Wakee};
use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::{WakeKind, Wakeup};

/// Sees a simulation go by. Times are ns since its beginning, warm-up included.
pub trait Watch {
    /// A task got a CPU, was woken, or came to a run queue: sched_switch, sched_waking, sched_wakeup.
    fn event(&mut self, event: &Event);
    /// An implementation chose.
    fn decision(&mut self, decided: &Decided<'_>);
}

/// A choice, and what it was about.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// When, ns.
    pub ts_ns: u64,
    /// A wakeup, a fork or an exec.
    pub kind: WakeKind,
    /// Who woke or forked.
    pub waker: (Comm, Pid),
    /// For whom a CPU was chosen.
    pub wakee: (Comm, Pid),
    /// Where the waker ran.
    pub this_cpu: Cpu,
    /// Where the wakee ran before.
    pub prev_cpu: Cpu,
    /// The choice.
    pub decision: &'a Decision,
    /// It lies outside of the wakee's affinity.
    pub is_wrong: bool,
}

impl Sim<'_> {
    fn is_watched(&self) -> bool {
        self.watch.is_some() && self.now_ns >= self.begin_ns
    }

    fn event(&mut self, cpu: Cpu, pid: Pid, kind: EventKind) {
        let event = Event { ts_ns: self.now_ns, cpu, pid, context: Context::empty(), kind };
        if let Some(watch) = &mut self.watch {
            watch.event(&event);
        }
    }

    /// A task as events have it; `None`: the idle task.
    fn named(&self, id: Option<TaskId>) -> Wakee {
        let Some(id) = id.filter(|id| id.index() >= self.cpus.len()) else {
            return Wakee { pid: Pid::SWAPPER, comm: Comm::new(b"swapper"), prio: 120 };
        };
        let task = &self.state.tasks[id];
        Wakee { pid: task.pid, comm: task.comm, prio: 120 }
    }

    pub(super) fn tell_switch(&mut self, cpu: Cpu, prev: Option<TaskId>, next: Option<TaskId>) {
        if !self.is_watched() || prev == next {
            return;
        }
        let prev_state = match prev.map(|id| self.books[id.index()].place) {
            Some(Place::Asleep) => PrevState::Blocked,
            Some(Place::Gone) => PrevState::Dead,
            _ => PrevState::Runnable,
        };
        let (prev, next) = (self.named(prev), self.named(next));
        self.event(cpu, prev.pid, EventKind::Switch { prev, prev_state, next });
    }

    /// Who runs as the measured time begins.
    pub(super) fn tell_running(&mut self) {
        for cpu in self.topology.clone().online().iter() {
            if let Some(id) = self.cpus[cpu.index()].curr {
                self.tell_switch(cpu, None, Some(id));
            }
        }
    }

    pub(super) fn tell_waking(&mut self, id: TaskId, this_cpu: Cpu, prev_cpu: Cpu) {
        if self.is_watched() {
            let (waker, wakee) = (self.named(self.cpus[this_cpu.index()].curr), self.named(Some(id)));
            self.event(this_cpu, waker.pid, EventKind::Waking { wakee, target_cpu: prev_cpu });
        }
    }

    pub(super) fn tell_wakeup(&mut self, id: TaskId, cpu: Cpu, new: bool) {
        if self.is_watched() {
            let (curr, wakee) = (self.named(self.cpus[cpu.index()].curr), self.named(Some(id)));
            self.event(cpu, curr.pid, EventKind::Wakeup { wakee, target_cpu: cpu, new });
        }
    }

    pub(super) fn tell_decision(&mut self, wakeup: &Wakeup, decision: &Decision) {
        if !self.is_watched() {
            return;
        }
        let (waker, wakee) = (self.named(Some(wakeup.current)), self.named(Some(wakeup.p)));
        let is_wrong = decision.is_outside(&self.state.tasks[wakeup.p].cpus_ptr);
        let decided = Decided {
            ts_ns: self.now_ns,
            kind: wakeup.kind,
            waker: (waker.comm, waker.pid),
            wakee: (wakee.comm, wakee.pid),
            this_cpu: wakeup.this_cpu,
            prev_cpu: wakeup.prev_cpu,
            decision,
            is_wrong,
        };
        if let Some(watch) = &mut self.watch {
            watch.decision(&decided);
        }
    }
}
