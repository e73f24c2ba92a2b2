// SPDX-License-Identifier: GPL-2.0-or-later
//! Derived loads, written into the state where a decision is about to read them.

use crate::inputs::Inputs;
use crate::machine::apply::Machine;
use crate::machine::config::Release;
use crate::machine::{TaskFlags, TaskId};
use crate::topology::SdFlags;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// Ten half-lives: what an average started from counts less than 1 in 1000.
const WARM_NS: u64 = 10 * 32 * 1024 * 1024;

impl Machine {
    /// The loads that this call can read: of the wakee and the waker, of this_cpu and prev_cpu, for the slow path of all.
    pub(super) fn show_loads(&mut self, wakeup: &Wakeup) {
        if wakeup.kind == WakeKind::Ttwu {
            self.show_rq(wakeup.this_cpu);
            self.show_rq(wakeup.prev_cpu);
        } else {
            self.state.topology.clone().cpus().for_each(|cpu| self.show_rq(cpu));
        }
        let weighs = self.weighs(wakeup);
        self.show_task(wakeup.p, wakeup.prev_cpu, weighs);
        if wakeup.current != wakeup.p {
            self.show_task(wakeup.current, wakeup.this_cpu, weighs && self.is_sync(wakeup));
        }
    }

    fn is_sync(&self, wakeup: &Wakeup) -> bool {
        wakeup.sync && !self.state.tasks[wakeup.current].flags.contains(TaskFlags::EXITING)
    }

    /// Whether the call gets as far as wake_affine_weight(), which asks for h_load, as far as the state tells: wakee flips
    /// are not in it.
    ///
    /// **Source**: kernel/sched/fair.c, select_task_rq_fair(), wake_affine(), wake_affine_idle(); the idle prev since 5.11.
    fn weighs(&self, wakeup: &Wakeup) -> bool {
        let Wakeup { this_cpu, prev_cpu, kind, .. } = *wakeup;
        if kind != WakeKind::Ttwu || this_cpu == prev_cpu || !self.state.tasks[wakeup.p].cpus_ptr.test(this_cpu) {
            return false;
        }
        let topology = &self.state.topology;
        let rq = &self.state.rq;
        let is_idle =
            |cpu: Cpu| rq.curr_idle.test(cpu) && rq.nr_running[cpu.index()] == 0 && !rq.ttwu_pending.test(cpu);
        let affine =
            topology.hierarchy(this_cpu).iter().map(|&id| topology.domain(id)).find(|sd| sd.span.test(prev_cpu));
        let by_idle = is_idle(this_cpu) && topology.cpus_share_cache(this_cpu, prev_cpu)
            || self.is_sync(wakeup) && rq.nr_running[this_cpu.index()] == 1
            || self.config.release >= Release::new(5, 11) && is_idle(prev_cpu);
        affine.is_some_and(|sd| sd.flags.contains(SdFlags::WAKE_AFFINE)) && !by_idle
    }

    fn is_warm(&self, since_ns: u64) -> bool {
        self.now_ns.saturating_sub(since_ns) >= WARM_NS
    }

    fn show_rq(&mut self, cpu: Cpu) {
        let cfs = &self.loads.cfs[cpu.index()];
        let rq = &mut self.state.rq;
        let at = cpu.index();
        rq.load_avg[at] = cfs.avg.load_avg;
        rq.runnable_load_avg[at] = cfs.avg.load_avg;
        rq.runnable_avg[at] = cfs.avg.runnable_avg;
        rq.util_avg[at] = cfs.avg.util_avg;
        rq.util_est_enqueued[at] = cfs.util_est;
        if self.is_warm(self.start_ns.unwrap_or(self.now_ns)) {
            let loads = Inputs::RQ_LOAD | Inputs::RQ_UTIL;
            if self.state.rq.known[at].unknown.intersects(loads) {
                self.state.rq.known[at].set_derived(loads);
            }
        }
    }

    fn show_task(&mut self, id: TaskId, cpu: Cpu, asks: bool) {
        if id.index() < self.cpus.len() {
            // A swapper has no load.
            return;
        }
        let avg = self.loads.entities[id.index()].avg;
        let h_load = self.loads.h_load(avg.load_avg, cpu, self.state.jiffies, asks);
        let entity = &self.loads.entities[id.index()];
        let seen_ns = entity.seen_ns;
        let task = &mut self.state.tasks[id];
        task.load_avg = avg.load_avg;
        task.h_load = h_load;
        task.util_avg = avg.util_avg;
        task.runnable_avg = avg.runnable_avg;
        task.util_est_enqueued = entity.util_est;
        task.util_est_ewma = entity.util_est_ewma;
        if task.last_update_time_ns != 0 {
            task.last_update_time_ns = avg.last_update_ns.max(1);
        }
        let loads = Inputs::TASK_LOAD | Inputs::TASK_UTIL;
        if self.state.tasks[id].known.unknown.intersects(loads) && (seen_ns == 0 || self.is_warm(seen_ns)) {
            self.state.tasks[id].known.set_derived(loads);
        }
    }
}
