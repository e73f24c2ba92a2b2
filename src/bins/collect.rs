// SPDX-License-Identifier: GPL-2.0-or-later
//! The observer that fills the bins.

use std::cell::RefCell;
use std::sync::Arc;

use crate::bins::{Comms, Latencies, Picks, TimeBins};
use crate::compare::Verdict;
use crate::replay::run::Observer;
use crate::replay::setup::Bench;
use crate::replay::{Filter, ReplayError, Row};
use crate::topology::Topology;
use crate::trace::Event;

/// All bins of one recording.
#[derive(Debug, Default)]
pub struct Bins {
    /// The machine; `None` before the replay has begun.
    pub topology: Option<Arc<Topology>>,
    /// Over time.
    pub time: TimeBins,
    /// By name.
    pub comms: Comms,
    /// As recorded.
    pub latencies: Latencies,
    /// What to explain.
    pub picks: Picks,
}

/// Fills [`Bins`].
#[derive(Debug, Default)]
pub struct Collector(RefCell<Bins>);

impl Collector {
    /// What was collected.
    pub fn bins(self) -> Bins {
        self.0.into_inner()
    }
}

impl Observer for Collector {
    fn begin(&self, bench: &Bench, filter: &Filter) {
        let topology = Arc::clone(&bench.machine.state().topology);
        let time = TimeBins::new(bench.setup.patched.len(), bench.contestants.len() + 1, topology.nr_cpu_ids());
        let latencies = Latencies::new(filter.clone());
        *self.0.borrow_mut() = Bins { topology: Some(topology), time, latencies, ..Bins::default() };
    }

    fn event(&self, event: &Event) {
        self.0.borrow_mut().latencies.event(event);
    }

    fn decision(&self, row: &Row) -> Result<(), ReplayError> {
        let bins = &mut *self.0.borrow_mut();
        let bin = bins.time.at(row.recorded.ts_ns);
        bin.decisions += 1;
        for (n, verdict) in bin.different.iter_mut().zip(&row.verdicts) {
            *n += u32::from(matches!(verdict, Verdict::Diverge { .. }));
        }
        let chosen = row.decisions.iter().map(|decision| Some(decision.class_cpu)).chain([row.choice.cpu()]);
        for (cpus, chosen) in bin.placed.iter_mut().zip(chosen) {
            // A wrong decision may name a CPU that the machine does not have.
            if let Some(n) = chosen.and_then(|cpu| cpus.get_mut(cpu.index())) {
                *n += 1;
            }
        }
        bins.comms.add(row);
        bins.picks.add(row);
        Ok(())
    }
}
