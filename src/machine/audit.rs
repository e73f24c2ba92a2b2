// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine's books against the kernel's own run queues, wherever a recording has probes of them.

use std::fmt;

use crate::machine::TaskId;
use crate::machine::apply::Machine;
use crate::trace::SisRq;
use crate::units::Pid;

/// How often something was looked at, and how often the books were right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Looks.
    pub of: u64,
    /// The same.
    pub same: u64,
}

impl Tally {
    fn add(&mut self, same: bool) {
        self.of += 1;
        self.same += u64::from(same);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = if self.of == 0 { 0.0 } else { 100.0 * self.same as f64 / self.of as f64 };
        write!(f, "{share:.2}%")
    }
}

/// The books at the moments of run queue probes, before a probe is used for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audit {
    /// Whether the CPU is idle, as available_idle_cpu() tells.
    pub idle: Tally,
    /// nr_running.
    pub nr_running: Tally,
    /// ttwu_pending.
    pub ttwu_pending: Tally,
    /// curr.
    pub curr: Tally,
    /// util_avg within 32 (3 % of a CPU).
    pub util: Tally,
    /// load_avg within 10 % (or 32).
    pub load: Tally,
    /// nr_idle_scan.
    pub nr_idle_scan: Tally,
    /// nr_idle_scan give or take 1.
    pub nr_idle_scan_near: Tally,
    /// avg_idle within 10 %.
    pub avg_idle: Tally,
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} samples: idle {} nr_running {} ttwu_pending {} curr {} util {} load {} nr_idle_scan {} (near {}) avg_idle {}",
            self.idle.of,
            self.idle,
            self.nr_running,
            self.ttwu_pending,
            self.curr,
            self.util,
            self.load,
            self.nr_idle_scan,
            self.nr_idle_scan_near,
            self.avg_idle
        )
    }
}

impl Machine {
    /// The books against the probes so far.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    pub(super) fn audit_rq(&mut self, rq: &SisRq) {
        let now = self.cpus[rq.target.index()].now;
        let audit = &mut self.audit;
        let curr = match rq.curr {
            Some(Pid::SWAPPER) => Some(TaskId::swapper(rq.target)),
            Some(pid) => self.pids.get(pid),
            None => None,
        };
        if let (Some(nr), Some(pending), Some(pid)) = (rq.nr_running, rq.ttwu_pending, rq.curr) {
            let idle = nr == 0 && !pending && pid == Pid::SWAPPER;
            let booked = now.nr == 0 && now.nr_listed == 0 && now.curr == TaskId::swapper(rq.target);
            audit.idle.add(idle == booked);
            audit.nr_running.add(nr == now.nr);
            audit.ttwu_pending.add(pending == (now.nr_listed > 0));
            audit.curr.add(curr == Some(now.curr));
        }
        let cfs = &self.loads.cfs[rq.target.index()];
        let near = |a: u64, b: u64, share: u64| a.abs_diff(b) <= (a / share).max(32);
        if let Some(util) = rq.util_avg {
            audit.util.add(near(util, cfs.avg.util_avg, 32));
        }
        if let Some(load) = rq.load_avg {
            audit.load.add(near(load, cfs.avg.load_avg, 10));
        }
        if let Some(avg) = rq.avg_idle_ns {
            audit.avg_idle.add(near(avg, self.state.rq.avg_idle_ns[rq.target.index()], 10));
        }
        let shared = self.state.topology.llc_shared(rq.target);
        if let (Some(nr), Some(shared)) = (rq.nr_idle_scan, shared)
            && let Some(told) = self.balancer.told(shared)
        {
            audit.nr_idle_scan.add(nr == told);
            audit.nr_idle_scan_near.add(nr.abs_diff(told) <= 1);
        }
    }
}
