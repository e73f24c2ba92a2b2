// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_switch: who runs, who left, and idle periods.

use crate::inputs::Inputs;
use crate::machine::Step;
use crate::machine::TaskId;
use crate::machine::apply::{IDLE_BEFORE_NS, Machine, Out};
use crate::machine::book::Place;
use crate::machine::notice::Notice;
use crate::trace::{Event, PrevState, Wakee};
use crate::units::{Cpu, Pid};

impl Machine {
    pub(super) fn on_switch(&mut self, event: &Event, prev: &Wakee, prev_state: PrevState, next: &Wakee, out: Out<'_>) {
        let cpu = event.cpu;
        if self.cpus[cpu.index()].next_pid.is_some_and(|last| last != prev.pid) {
            self.doubts.breaks += 1;
        }
        self.cpus[cpu.index()].next_pid = Some(next.pid);
        self.state.rq.known[cpu.index()].set_derived(Inputs::IDLE);
        let prev_id = self.meet(prev, cpu);
        if prev_state == PrevState::Dead {
            self.decide_about(prev_id, out);
        }
        if prev.pid != Pid::SWAPPER {
            self.switch_out(event, prev_id, prev_state, out);
        }
        if next.pid == Pid::SWAPPER {
            self.enter_idle(event, out);
        } else {
            let next_id = self.meet(next, cpu);
            self.decide_about(next_id, out);
            if prev_state == PrevState::Runnable && prev.pid != Pid::SWAPPER {
                self.gave_way(prev_id, next_id);
            }
            self.switch_in(event, next_id, out);
        }
    }

    fn switch_out(&mut self, event: &Event, id: TaskId, state: PrevState, out: Out<'_>) {
        let cpu = event.cpu;
        self.state.tasks[id].task_cpu = match self.books[id.index()].place {
            // Already decided to be elsewhere: its waking overtook this event.
            Place::On(other) | Place::Listed(other) if other != cpu => other,
            _ => cpu,
        };
        let book = &mut self.books[id.index()];
        book.left_ns = Some(event.ts_ns);
        if state == PrevState::Blocked {
            book.slept_ns = event.ts_ns;
        }
        let decided = !book.confirmed && book.place != Place::Off;
        match state {
            PrevState::Runnable if !decided => {
                self.place(id, Place::On(cpu), true);
                self.loads.put(cpu, self.now_ns);
            }
            PrevState::Blocked if !decided => {
                // Woken while it was switching out, and not activated yet: it went to this CPU's wake list.
                let to = if book.woken { Place::Listed(cpu) } else { Place::Off };
                let confirmed = to == Place::Off;
                self.place(id, to, confirmed);
            }
            PrevState::Dead => {
                if let Some(call) = book.call.take() {
                    out(&self.state, Notice::NeverChosen { number: call.number });
                }
                self.drop_task(id);
            }
            _ => {}
        }
    }

    fn switch_in(&mut self, event: &Event, id: TaskId, out: Out<'_>) {
        let cpu = event.cpu;
        let book = &mut self.books[id.index()];
        match book.place {
            Place::On(other) | Place::Listed(other) if other != cpu => self.doubts.misplaced += 1,
            _ => {}
        }
        if std::mem::take(&mut book.woken) {
            // It runs before its sched_wakeup was seen: clocks of two CPUs differ.
            book.ahead = true;
            self.leave_idle(cpu, event.ts_ns, out);
        }
        self.state.tasks[id].task_cpu = cpu;
        self.seen_on(id, cpu);
        self.place(id, Place::On(cpu), true);
        self.loads.run(id.index(), cpu, self.now_ns);
        self.set_curr(cpu, id);
    }

    /// **Source**: kernel/sched/idle.c, set_next_task_idle(): update_idle_core() runs while the previous task is still
    /// curr, and looks at the siblings only.
    fn enter_idle(&mut self, event: &Event, out: Out<'_>) {
        let cpu = event.cpu;
        let mut stale: Vec<TaskId> = Vec::new();
        if self.cpus[cpu.index()].now.nr > 0 {
            stale.extend(self.queued_on(cpu));
        }
        for id in stale {
            self.doubts.forgotten += 1;
            self.place(id, Place::Off, true);
        }
        self.set_curr(cpu, TaskId::swapper(cpu));
        self.balancer.enter_idle(cpu);
        self.state.rq.known[cpu.index()].set_derived(Inputs::NR_RUNNING | Inputs::IDLE_STATE);
        self.state.rq.idle_stamp_ns[cpu.index()] = event.ts_ns;
        out(&self.state, Notice::Step(Step::EnterIdle(cpu)));
    }

    /// A wakeup activates a task on a CPU that has been idle.
    ///
    /// **Source**: kernel/sched/core.c, ttwu_do_wakeup() (since 6.2 ttwu_do_activate()): update_avg(), then the clamp to
    /// twice max_idle_balance_cost.
    pub(super) fn leave_idle(&mut self, cpu: Cpu, ts_ns: u64, out: Out<'_>) {
        let at = cpu.index();
        let stamp = std::mem::take(&mut self.state.rq.idle_stamp_ns[at]);
        if stamp <= IDLE_BEFORE_NS {
            return;
        }
        let idle_ns = ts_ns.saturating_sub(stamp);
        let avg = self.state.rq.avg_idle_ns[at] as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        let cost = self.config.max_idle_balance_cost_ns.get(at).copied().unwrap_or(0);
        self.state.rq.avg_idle_ns[at] = (avg.max(0) as u64).min(2 * cost.max(SYSCTL_SCHED_MIGRATION_COST_NS));
        out(&self.state, Notice::Step(Step::LeaveIdle { cpu, idle_ns }));
    }
}

/// **Source**: kernel/sched/fair.c, sysctl_sched_migration_cost: what max_idle_balance_cost is never below.
const SYSCTL_SCHED_MIGRATION_COST_NS: u64 = 500_000;
