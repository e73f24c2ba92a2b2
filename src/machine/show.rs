// SPDX-License-Identifier: GPL-2.0-or-later
//! Derived loads, written into the state where a decision is about to read them.

use crate::inputs::Inputs;
use crate::machine::TaskId;
use crate::machine::apply::Machine;
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
        self.show_task(wakeup.p, wakeup.prev_cpu);
        if wakeup.current != wakeup.p {
            self.show_task(wakeup.current, wakeup.this_cpu);
        }
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

    fn show_task(&mut self, id: TaskId, cpu: Cpu) {
        if id.index() < self.cpus.len() {
            // A swapper has no load.
            return;
        }
        let avg = self.loads.entities[id.index()].avg;
        let h_load = self.loads.h_load(avg.load_avg, cpu, self.state.jiffies);
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
