// SPDX-License-Identifier: GPL-2.0-or-later
//! What a simulation counts. Its size does not depend on how long is simulated.

use std::collections::BTreeMap;

use crate::fair::{Decision, Exit, SisCounters};
use crate::simulate::histogram::Histogram;
use crate::topology::Distance;
use crate::units::Comm;

/// Parts of the measured time that a series has.
pub const BINS: usize = 100;

/// Counts of one part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// select_idle_sibling() was called.
    pub search: u64,
    /// It went on to the LLC.
    pub domain_search: u64,
    /// CPUs were looked at.
    pub scanned: u64,
    /// Requests were done.
    pub done: u64,
    /// CPUs were busy so long, ns.
    pub busy_ns: u64,
}

/// What is counted of tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByComm {
    /// From the wakeup to the first instruction, ns.
    pub latency: Histogram,
    /// Requests done.
    pub done: u64,
    /// Work done, ns of an undisturbed CPU.
    pub work_ns: u64,
    /// Wakeups that moved it.
    pub migrations: u64,
}

/// What is counted of a simulation after its warm-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Time measured, ns.
    pub measured_ns: u64,
    /// CPUs that took part.
    pub cpus: u32,
    /// Wakeups.
    pub wakeups: u64,
    /// Of these, where the wakee went: same CPU as before, and so on, by [`Distance`].
    pub woken_to: [u64; 5],
    /// Tasks that load balancing moved, by how far.
    pub pulled: [u64; 5],
    /// Wakeups whose class answered with a CPU outside of the wakee's affinity.
    pub wrong: u64,
    /// Tasks were forked.
    pub forks: u64,
    /// Tasks executed another program.
    pub execs: u64,
    /// Context switches to a task.
    pub switches: u64,
    /// Running tasks lost the CPU to one that was woken.
    pub preempted: u64,
    /// SIS counters of wakeups.
    pub sis: SisCounters,
    /// By the kernel's return.
    pub exits: [u64; Exit::ALL.len()],
    /// Requests done.
    pub done: u64,
    /// From a request's beginning to its end, ns.
    pub requests: Histogram,
    /// From a wakeup to the wakee's first instruction, ns.
    pub latency: Histogram,
    /// By name.
    pub comms: BTreeMap<Comm, ByComm>,
    /// CPUs were busy, by CPU, ns.
    pub busy_ns: Vec<u64>,
    /// CPUs were idle, by CPU, ns.
    pub idle_ns: Vec<u64>,
    /// A CPU was idle while a task waited at another: idle CPUs or waiting tasks, whichever were fewer, times ns.
    pub wasted_ns: u64,
    /// Work done, ns of an undisturbed CPU.
    pub work_ns: u64,
    /// Searches for a CPU took so long, ns.
    pub scan_ns: u64,
    /// Refilling caches and fetching data took so long, ns.
    pub cache_ns: u64,
    /// Over time.
    pub series: Vec<Bin>,
}

impl Stats {
    /// Nothing counted yet.
    pub fn new(cpus: usize) -> Self {
        Self {
            measured_ns: 0,
            cpus: cpus as u32,
            wakeups: 0,
            woken_to: [0; 5],
            pulled: [0; 5],
            wrong: 0,
            forks: 0,
            execs: 0,
            switches: 0,
            preempted: 0,
            sis: SisCounters::default(),
            exits: [0; Exit::ALL.len()],
            done: 0,
            requests: Histogram::default(),
            latency: Histogram::default(),
            comms: BTreeMap::new(),
            busy_ns: vec![0; cpus],
            idle_ns: vec![0; cpus],
            wasted_ns: 0,
            work_ns: 0,
            scan_ns: 0,
            cache_ns: 0,
            series: vec![Bin::default(); BINS],
        }
    }

    /// Counts a wakeup's decision.
    pub(super) fn decided(&mut self, decision: &Decision, moved: Distance, bin: usize) {
        self.wakeups += 1;
        self.woken_to[moved as usize] += 1;
        self.sis += decision.sis;
        self.exits[decision.exit as usize] += 1;
        let bin = &mut self.series[bin];
        bin.search += decision.sis.search;
        bin.domain_search += decision.sis.domain_search;
        bin.scanned += decision.sis.scanned;
    }

    /// Requests per second.
    pub fn throughput(&self) -> f64 {
        if self.measured_ns == 0 { 0.0 } else { self.done as f64 * 1e9 / self.measured_ns as f64 }
    }

    /// Wakeups that moved the wakee.
    pub fn migrations(&self) -> u64 {
        self.woken_to[1..].iter().sum()
    }

    /// Share of the CPUs' time that was busy, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        let busy: u64 = self.busy_ns.iter().sum();
        let idle: u64 = self.idle_ns.iter().sum();
        if busy + idle == 0 { 0.0 } else { busy as f64 / (busy + idle) as f64 }
    }

    /// Share of the searches that ended before the LLC, 0 to 1; `None` of none.
    pub fn fast_success(&self) -> Option<f64> {
        let search = self.sis.search;
        (search > 0).then(|| (search - self.sis.domain_search) as f64 / search as f64)
    }

    /// Adds the counts of another seed; series are added bin by bin.
    pub fn merge(&mut self, other: &Self) {
        self.measured_ns += other.measured_ns;
        self.wakeups += other.wakeups;
        self.wrong += other.wrong;
        self.forks += other.forks;
        self.execs += other.execs;
        self.switches += other.switches;
        self.preempted += other.preempted;
        self.sis += other.sis;
        self.done += other.done;
        self.wasted_ns += other.wasted_ns;
        self.work_ns += other.work_ns;
        self.scan_ns += other.scan_ns;
        self.cache_ns += other.cache_ns;
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        add(&mut self.woken_to, &other.woken_to);
        add(&mut self.pulled, &other.pulled);
        add(&mut self.exits, &other.exits);
        add(&mut self.busy_ns, &other.busy_ns);
        add(&mut self.idle_ns, &other.idle_ns);
        self.requests.merge(&other.requests);
        self.latency.merge(&other.latency);
        for (comm, from) in &other.comms {
            let to = self.comms.entry(*comm).or_default();
            to.latency.merge(&from.latency);
            to.done += from.done;
            to.work_ns += from.work_ns;
            to.migrations += from.migrations;
        }
        for (to, from) in self.series.iter_mut().zip(&other.series) {
            to.search += from.search;
            to.domain_search += from.domain_search;
            to.scanned += from.scanned;
            to.done += from.done;
            to.busy_ns += from.busy_ns;
        }
    }
}
