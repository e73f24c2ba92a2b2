// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine's books against the kernel's own run queues, wherever a recording has probes of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::machine::TaskId;
use crate::machine::apply::Machine;
use crate::trace::{SisIn, SisRq};
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// Absolute errors of averages: what, how long it has been tracked (ms, the start of the span).
    errors: BTreeMap<(Average, Option<u64>), Vec<u32>>,
}

/// An average that probes check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Average {
    TaskUtil,
    TaskLoad,
    RqUtil,
    RqLoad,
}

/// Spans of time for which an average has been tracked, by their start, ms.
const SPANS_MS: [u64; 4] = [0, 100, 300, 1000];
/// Errors are counted up to this.
const ERROR_MAX: u64 = 1024;

/// Absolute errors of an average after some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRow {
    /// Which average.
    pub average: String,
    /// It had been tracked for at least this long (and less than the next row's), ms; `None`: from the task's fork on.
    pub after_ms: Option<u64>,
    /// Probes.
    pub samples: u64,
    /// Half of the errors are at most this; 1024 is a whole CPU, or a task of nice 0.
    pub median: u64,
    /// 90 % of the errors are at most this.
    pub p90: u64,
}

impl Audit {
    /// The table of errors over time.
    pub fn errors(&self) -> Vec<ErrorRow> {
        let row = |(&(average, after_ms), counts): (&(Average, Option<u64>), &Vec<u32>)| {
            let samples: u64 = counts.iter().map(|&n| u64::from(n)).sum();
            let at = |share: u64| {
                let mut left = (samples * share).div_ceil(100);
                counts.iter().position(|&n| {
                    left = left.saturating_sub(u64::from(n));
                    left == 0
                })
            };
            let average = match average {
                Average::TaskUtil => "task util_avg",
                Average::TaskLoad => "task load_avg",
                Average::RqUtil => "cfs_rq util_avg",
                Average::RqLoad => "cfs_rq load_avg",
            };
            let at = |share| at(share).unwrap_or(0) as u64;
            ErrorRow { average: average.to_owned(), after_ms, samples, median: at(50), p90: at(90) }
        };
        self.errors.iter().map(row).collect()
    }

    fn error(&mut self, average: Average, since_ns: Option<u64>, now_ns: u64, probe: u64, ours: u64) {
        let age_ms = since_ns.map(|since| now_ns.saturating_sub(since) / 1_000_000);
        let span = age_ms.and_then(|age| SPANS_MS.iter().rev().find(|&&span| span <= age).copied());
        let counts = self.errors.entry((average, span)).or_insert_with(|| vec![0; ERROR_MAX as usize + 1]);
        counts[probe.abs_diff(ours).min(ERROR_MAX) as usize] += 1;
    }
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

    /// The wakee's averages, which are as of its last dequeue.
    pub(super) fn audit_task(&mut self, sis: &SisIn) {
        let Some(id) = self.pids.get(sis.pid) else { return };
        let entity = &self.loads.entities[id.index()];
        let since_ns = (entity.seen_ns != 0).then_some(entity.seen_ns);
        if let Some(util) = sis.util_avg {
            self.audit.error(Average::TaskUtil, since_ns, self.now_ns, util, entity.avg.util_avg);
        }
        if let Some(load) = sis.load_avg {
            self.audit.error(Average::TaskLoad, since_ns, self.now_ns, load, entity.avg.load_avg);
        }
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
        let (start_ns, now_ns) = (self.start_ns.unwrap_or(self.now_ns), self.now_ns);
        if let Some(util) = rq.util_avg {
            audit.error(Average::RqUtil, Some(start_ns), now_ns, util, cfs.avg.util_avg);
        }
        if let Some(load) = rq.load_avg {
            audit.error(Average::RqLoad, Some(start_ns), now_ns, load, cfs.avg.load_avg);
        }
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
