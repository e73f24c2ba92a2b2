// SPDX-License-Identifier: GPL-2.0-or-later
//! SCHED_IDLE that nobody traced: events show priority 120 for it, like that of everybody else.
//!
//! A CPU on which only SCHED_IDLE tasks are queued is as good as an idle one for sched_idle_cpu(). So a task that does not
//! sleep, is alone on its CPU, and to which the kernel moves others as if nobody were there, is taken for one. None
//! is who keeps its CPU to itself where a wakeup begins and could end there, since the target of a search is asked first;
//! nor who gets the CPU of another that could go on, which a weight of 3 does not.

use crate::inputs::Inputs;
use crate::machine::TaskId;
use crate::machine::apply::Machine;
use crate::machine::book::Call;
use crate::units::Cpu;
use crate::wakeup::WakeKind;

/// Moves to a task's CPU that it takes to assume that it is SCHED_IDLE.
const ENOUGH: i8 = 2;
/// It has been awake for so long, ns: a task that sleeps and wakes is left alone and joined for many reasons.
const AWAKE_NS: u64 = 100_000_000;
/// And has had the CPU for more than half of the time.
const BUSY: u64 = 512;
/// Placements that spoke against it are remembered up to this many.
const LEAST: i8 = -8;

impl Machine {
    /// What the choice of `cpu` for `wakee` tells of who runs there, or ran where the wakeup began.
    pub(super) fn weigh_policy(&mut self, wakee: TaskId, call: &Call, cpu: Cpu) {
        if call.kind != WakeKind::Ttwu {
            return;
        }
        if cpu != call.prev_cpu && call.prev_cpu == call.this_cpu {
            // It was the target, and was not good enough.
            if let Some(id) = self.alone_on(call.this_cpu, wakee) {
                self.judge_policy(id, -2);
            }
        }
        // Where the wakeup began or the task was, it may be because a search was cut short; elsewhere it was found.
        if call.idle.test(cpu) || cpu == call.this_cpu || cpu == call.prev_cpu {
            return;
        }
        let Some(id) = self.alone_on(cpu, wakee) else { return };
        let is_awake = self.now_ns.saturating_sub(self.books[id.index()].slept_ns) >= AWAKE_NS;
        // On a crowded run queue one is awake for long without running.
        if is_awake && self.loads.entities[id.index()].avg.util_avg >= BUSY {
            self.judge_policy(id, 1);
        }
    }

    /// `next` was given the CPU although `prev` could have gone on.
    pub(super) fn gave_way(&mut self, prev: TaskId, next: TaskId) {
        let is_open = self.state.tasks[next].known.assumed.contains(Inputs::POLICY);
        if is_open && self.books[prev.index()].fair && !self.state.tasks[prev].policy_idle {
            self.judge_policy(next, -1);
        }
    }

    /// The fair task that runs on `cpu` with nothing else queued there but `wakee`, if its policy is not known.
    fn alone_on(&self, cpu: Cpu, wakee: TaskId) -> Option<TaskId> {
        let now = self.cpus[cpu.index()].now;
        let id = now.curr;
        let is_open = self.state.tasks[id].known.assumed.contains(Inputs::POLICY);
        (id != wakee && id != TaskId::swapper(cpu) && now.nr == 1 && now.nr_fair == 1 && is_open).then_some(id)
    }

    fn judge_policy(&mut self, id: TaskId, weight: i8) {
        let shared = &mut self.books[id.index()].shared;
        *shared = match weight {
            against if against < 0 => ((*shared).min(0) + against).max(LEAST),
            it => (*shared + it).min(2 * ENOUGH),
        };
        let policy_idle = *shared >= ENOUGH;
        self.set_policy_idle(id, policy_idle);
    }
}
