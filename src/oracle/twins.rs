// SPDX-License-Identifier: GPL-2.0-or-later
//! Pairs of implementations that are equal for a stated reason: a switch that is off, a patch that has nothing to act on.

use crate::fair::{Decision, Walk, WalkStep};
use crate::oracle::Finding;
use crate::scenario::{Case, Event};
use crate::spec::SchedFeat;

/// How much has to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Same {
    /// CPU and exit.
    Decision,
    /// That, and each idle check in its order.
    Probes,
    /// That, and counters and everything written.
    Writes,
}

/// Two implementations and why they are equal.
#[derive(Debug)]
pub struct Twin {
    /// The one.
    pub a: &'static str,
    /// The other.
    pub b: &'static str,
    /// How equal they are.
    pub same: Same,
    /// In which cases.
    pub when: fn(&Case) -> bool,
    /// Why.
    pub because: &'static str,
}

fn always(_: &Case) -> bool {
    true
}

fn on(case: &Case, feature: SchedFeat) -> bool {
    case.settings.features.on.contains(feature) && !case.settings.features.off.contains(feature)
}

fn off(case: &Case, feature: SchedFeat) -> bool {
    case.settings.features.off.contains(feature)
}

/// Nobody set a soft affinity.
fn no_preference(case: &Case) -> bool {
    case.tasks.iter().all(|task| task.cpus_preferred.is_none())
}

/// Nobody set a soft affinity, and no feature reads avg_scan_cost. The RFC books the cost of a scan that gave up, which
/// v5.2 does not: with SIS_PROP the two part by their limits, even where the RFC is not used.
fn no_preference_nor_cost(case: &Case) -> bool {
    no_preference(case) && off(case, SchedFeat::SIS_PROP) && !on(case, SchedFeat::SIS_AVG_CPU)
}

/// Every virtual CPU runs all the time.
fn no_preemption(case: &Case) -> bool {
    !case.cpus.iter().any(|cpu| cpu.preempted) && !case.events.iter().any(|event| matches!(event, Event::Preempt(..)))
}

/// No task is kept from any CPU.
fn unbound(case: &Case) -> bool {
    case.tasks.iter().all(|task| task.cpus_ptr.is_none())
        && !case.events.iter().any(|event| matches!(event, Event::Affine(..)))
}

/// Implementations that tests and fuzz targets put to the oracles together: each release, and both sides of each twin.
/// The first of a family places its tasks.
pub const FAMILIES: &[&[&str]] = &[
    &[
        "v5.11",
        "v5.11+no-sis-avg-cpu",
        "v5.11+scan-cost",
        "v5.11+recent-used",
        "v5.11+recent-used-v1",
        "v5.11+recent-used+fix-cpus-ptr",
        "v5.11+idle-candidate",
        "v5.11+fix-cpus-ptr",
        "v5.11+mel-v2",
    ],
    &["v6.1", "v5.11", "v6.1:SIS_PROP:NO_SIS_UTIL", "v5.11:NO_WA_WEIGHT", "v5.11:NO_WA_WEIGHT:NO_WA_BIAS"],
    &["v5.2", "v5.2+soft-affinity", "v5.2+soft-affinity+tunables", "v5.10"],
    &["v6.12", "v6.12.117", "v7.3", "v6.1"],
];

/// The table.
pub const TWINS: &[Twin] = &[
    Twin {
        a: "v5.11",
        b: "v5.11+no-sis-avg-cpu",
        same: Same::Writes,
        when: |case| !on(case, SchedFeat::SIS_AVG_CPU),
        because: "SIS_AVG_CPU is off by default",
    },
    Twin {
        a: "v5.11",
        b: "v5.11+scan-cost",
        same: Same::Writes,
        when: |case| !off(case, SchedFeat::SIS_PROP) && case.settings.mask_op_ns == 0,
        because: "under SIS_PROP only a mask operation moved into the measured time",
    },
    Twin {
        a: "v5.11",
        b: "v5.11+scan-cost",
        same: Same::Probes,
        when: |case| off(case, SchedFeat::SIS_PROP) && !on(case, SchedFeat::SIS_AVG_CPU),
        because: "without SIS_PROP and SIS_AVG_CPU nobody reads the scan cost",
    },
    Twin {
        a: "v5.11",
        b: "v5.11+fix-cpus-ptr",
        same: Same::Writes,
        when: always,
        because: "without recent-used the variable and the field hold the same CPU",
    },
    Twin {
        a: "v5.11+recent-used",
        b: "v5.11+recent-used-v1",
        same: Same::Writes,
        when: always,
        because: "two forms of one change",
    },
    Twin {
        a: "v5.11+recent-used",
        b: "v5.11+recent-used+fix-cpus-ptr",
        same: Same::Writes,
        when: unbound,
        because: "with every CPU allowed it does not matter whose affinity is tested",
    },
    Twin {
        a: "v5.11",
        b: "v5.11+idle-candidate",
        same: Same::Writes,
        when: |case| case.machine.cores().all(|core| core.cpus.weight() == 1),
        because: "without SMT no core is searched for",
    },
    Twin {
        a: "v5.11:NO_WA_WEIGHT",
        b: "v5.11:NO_WA_WEIGHT:NO_WA_BIAS",
        same: Same::Writes,
        when: |case| !on(case, SchedFeat::WA_WEIGHT),
        because: "WA_BIAS is read by wake_affine_weight() only",
    },
    Twin {
        a: "v5.2",
        b: "v5.2+soft-affinity",
        same: Same::Decision,
        when: |case| no_preference_nor_cost(case) && no_preemption(case),
        because: "without a soft affinity the first of its two scans is the only one, and nothing reads the cost that it books",
    },
    Twin {
        a: "v5.2+soft-affinity",
        b: "v5.2+soft-affinity+tunables",
        same: Same::Writes,
        when: no_preference,
        because: "the tunables are read for tasks with a soft affinity",
    },
];

impl Twin {
    /// Compares one decision of each.
    ///
    /// # Errors
    /// The first thing that differs.
    pub fn check(&self, (a, walk_a): (&Decision, &Walk), (b, walk_b): (&Decision, &Walk)) -> Result<(), Box<Finding>> {
        let fail = |condition: &str, text: String| {
            Err(Box::new(Finding {
                oracle: "twins",
                implementations: vec![self.a.to_owned(), self.b.to_owned()],
                exits: vec![a.exit, b.exit],
                condition: condition.to_owned(),
                known: None,
                text: format!("{text}; expected the same, because {}", self.because),
                event: 0,
            }))
        };
        if (a.class_cpu, a.final_cpu, a.exit) != (b.class_cpu, b.final_cpu, b.exit) {
            return fail("another decision", format!("CPU {} against CPU {}", a.class_cpu, b.class_cpu));
        }
        if self.same >= Same::Probes && !probes(walk_a).eq(probes(walk_b)) {
            return fail("other probes", format!("{} against {}", walk_a.probes(), walk_b.probes()));
        }
        if self.same >= Same::Writes && (a.sis, a.writes) != (b.sis, b.writes) {
            let text = format!("{:?} {:?} against {:?} {:?}", a.sis, a.writes, b.sis, b.writes);
            return fail("other counters or writes", text);
        }
        Ok(())
    }
}

fn probes(walk: &Walk) -> impl Iterator<Item = &WalkStep> {
    walk.steps.iter().filter(|step| matches!(step, WalkStep::Probe { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_is_played() {
        for twin in TWINS {
            assert!(FAMILIES.iter().any(|names| names.contains(&twin.a) && names.contains(&twin.b)), "{twin:?}");
        }
    }

    #[test]
    fn every_release_is_played() {
        for release in crate::spec::RELEASES {
            assert!(FAMILIES.concat().contains(&release.name), "{}", release.name);
        }
    }
}
