// SPDX-License-Identifier: GPL-2.0-or-later
//! Run queues as the other side was last told of them, column by column: which CPUs changed since.

use crate::cpumask::Cpumask;
use crate::fair::Hidden;
use crate::machine::{RunQueues, State};
use crate::units::Cpu;

/// What was told of the run queues, and of the hidden state that goes with them.
#[derive(Debug, Default)]
pub(super) struct Columns {
    told: Option<RunQueues>,
    own: Vec<[u64; 3]>,
    /// CPUs whose state the other side changed itself.
    stale: Cpumask,
}

impl Columns {
    /// The CPUs that are not as they were told. They are told now.
    pub(super) fn changed(&mut self, state: &State, hidden: &Hidden) -> Cpumask {
        let Some(told) = &mut self.told else {
            self.told = Some(state.rq.clone());
            self.own = hidden.cpus.iter().map(own).collect();
            self.stale = Cpumask::EMPTY;
            return state.topology.cpus().collect();
        };
        let mut changed = std::mem::take(&mut self.stale);
        let now = &state.rq;
        mask(&mut told.curr_idle, now.curr_idle, &mut changed);
        mask(&mut told.ttwu_pending, now.ttwu_pending, &mut changed);
        mask(&mut told.vcpu_preempted, now.vcpu_preempted, &mut changed);
        column(&mut told.curr, &now.curr, &mut changed);
        column(&mut told.nr_running, &now.nr_running, &mut changed);
        column(&mut told.h_nr_running, &now.h_nr_running, &mut changed);
        column(&mut told.h_nr_runnable, &now.h_nr_runnable, &mut changed);
        column(&mut told.idle_h_nr_running, &now.idle_h_nr_running, &mut changed);
        column(&mut told.avg_idle_ns, &now.avg_idle_ns, &mut changed);
        column(&mut told.load_avg, &now.load_avg, &mut changed);
        column(&mut told.runnable_load_avg, &now.runnable_load_avg, &mut changed);
        column(&mut told.runnable_avg, &now.runnable_avg, &mut changed);
        column(&mut told.util_avg, &now.util_avg, &mut changed);
        column(&mut told.util_est_enqueued, &now.util_est_enqueued, &mut changed);
        column(&mut told.cpu_capacity, &now.cpu_capacity, &mut changed);
        column(&mut told.cpu_capacity_orig, &now.cpu_capacity_orig, &mut changed);
        column(&mut told.idle_stamp_ns, &now.idle_stamp_ns, &mut changed);
        column(&mut told.exit_latency_us, &now.exit_latency_us, &mut changed);
        for (at, (told, now)) in self.own.iter_mut().zip(&hidden.cpus).enumerate() {
            let now = own(now);
            if *told != now {
                *told = now;
                changed.set(Cpu(at as u16));
            }
        }
        changed
    }

    /// The other side changed hidden state of `cpu` itself.
    pub(super) fn forget(&mut self, cpu: Cpu) {
        self.stale.set(cpu);
    }
}

fn own(cpu: &crate::fair::CpuHidden) -> [u64; 3] {
    [cpu.avg_scan_cost_ns, cpu.wake_stamp_jiffies, cpu.wake_avg_idle_ns]
}

fn mask(told: &mut Cpumask, now: Cpumask, changed: &mut Cpumask) {
    *changed = *changed | told.and_not(&now) | now.and_not(told);
    *told = now;
}

/// Most columns are as they were, which one comparison of memory tells.
fn column<T: Copy + PartialEq>(told: &mut [T], now: &[T], changed: &mut Cpumask) {
    if *told == *now {
        return;
    }
    for (at, (told, now)) in told.iter_mut().zip(now).enumerate() {
        if *told != *now {
            *told = *now;
            changed.set(Cpu(at as u16));
        }
    }
}
