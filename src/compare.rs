// SPDX-License-Identifier: GPL-2.0-or-later
//! Two decisions of the same wakeup → verdict and kind of difference. Pure; knows nothing of text.

use serde::{Deserialize, Serialize};

use crate::cpumask::Cpumask;
use crate::fair::{Decision, Exit};
use crate::machine::{Inputs, Provenance, State};
use crate::topology::Topology;
use crate::units::Cpu;

/// How well everything is known that a decision leaned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Everything traced or derived.
    Known,
    /// Something was assumed, nothing unknown.
    Assumed,
    /// Something was unknown.
    Unknown,
}

impl Class {
    /// All classes, best first.
    pub const ALL: [Self; 3] = [Self::Known, Self::Assumed, Self::Unknown];

    /// The class of a decision that leaned on `provenance`.
    pub fn of(provenance: Provenance) -> Self {
        if !provenance.unknown.is_empty() {
            Self::Unknown
        } else if !provenance.assumed.is_empty() {
            Self::Assumed
        } else {
            Self::Known
        }
    }
}

/// The nearest thing that two different CPUs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Hardware threads of one core.
    SameCore,
    /// Another core of the same LLC.
    OtherCore,
    /// Another LLC of the same node.
    OtherLlc,
    /// Another NUMA node.
    OtherNode,
}

/// What the move means for the CPU that the task gets, as the machine was at the moment of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Both idle or both busy, and no SMT sibling makes a difference.
    Alike,
    /// The baseline's CPU was idle, the patched one's is busy.
    IdleToBusy,
    /// The baseline's CPU was busy, the patched one's is idle.
    BusyToIdle,
    /// From a whole idle core to an idle SMT sibling of a busy CPU.
    CoreToSibling,
    /// From an idle SMT sibling of a busy CPU to a whole idle core.
    SiblingToCore,
}

/// Which side answered with a CPU outside the wakee's `cpus_ptr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// Neither.
    Neither,
    /// Only the baseline: the patch mends it.
    Baseline,
    /// Only the patched one: the patch makes it wrong.
    Patched,
    /// Both, with different CPUs.
    Both,
}

impl Outside {
    /// Whether the patched side is wrong.
    pub fn is_patched(self) -> bool {
        matches!(self, Self::Patched | Self::Both)
    }
}

/// Kind of difference, in three independent ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Difference {
    /// How far the two CPUs are apart.
    pub distance: Distance,
    /// Idle or busy.
    pub load: Load,
    /// Inside or outside of the affinity.
    pub outside: Outside,
}

/// The comparison of a baseline's and a patched implementation's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The class answered with the same CPU.
    Agree {
        /// How well both were known.
        class: Class,
        /// Whether both took the same `return`.
        same_exit: bool,
    },
    /// The class answered with different CPUs.
    Diverge {
        /// How well both were known: never [`Class::Unknown`].
        class: Class,
        /// The baseline's `return`.
        baseline: Exit,
        /// The patched implementation's `return`.
        patched: Exit,
        /// What kind of difference.
        difference: Difference,
    },
    /// One of the two leaned on something that is not known at all.
    Unknown {
        /// What.
        inputs: Inputs,
        /// Whether the placeholders led to different CPUs. Says little; never counted as a difference.
        differs: bool,
    },
}

/// Compares two decisions made on `state` for a wakee that may run on `cpus_ptr`.
///
/// What the scheduling class returned is compared ([`Decision::class_cpu`]): the code under test, before
/// select_fallback_rq() mends it.
pub fn compare(state: &State, cpus_ptr: &Cpumask, baseline: &Decision, patched: &Decision) -> Verdict {
    let leaned_on = baseline.leaned_on | patched.leaned_on;
    let differs = baseline.class_cpu != patched.class_cpu;
    let class = Class::of(leaned_on);
    if class == Class::Unknown {
        return Verdict::Unknown { inputs: leaned_on.unknown, differs };
    }
    if !differs {
        return Verdict::Agree { class, same_exit: baseline.exit == patched.exit };
    }
    let difference = Difference {
        distance: distance(&state.topology, baseline.class_cpu, patched.class_cpu),
        load: load(state, baseline.class_cpu, patched.class_cpu),
        outside: match (baseline.is_outside(cpus_ptr), patched.is_outside(cpus_ptr)) {
            (false, false) => Outside::Neither,
            (true, false) => Outside::Baseline,
            (false, true) => Outside::Patched,
            (true, true) => Outside::Both,
        },
    };
    Verdict::Diverge { class, baseline: baseline.exit, patched: patched.exit, difference }
}

/// `available_idle_cpu()` on `state`. A CPU that is not there is not idle.
pub fn is_idle(state: &State, cpu: Cpu) -> bool {
    let rq = &state.rq;
    rq.curr_idle.test(cpu)
        && rq.nr_running.get(cpu.index()) == Some(&0)
        && !rq.ttwu_pending.test(cpu)
        && !rq.vcpu_preempted.test(cpu)
}

/// Whether every hardware thread of the core of `cpu` is idle.
pub fn is_core_idle(state: &State, cpu: Cpu) -> bool {
    cpu.index() < state.topology.nr_cpu_ids()
        && state.topology.smt_mask(cpu).iter().all(|sibling| is_idle(state, sibling))
}

fn distance(topology: &Topology, a: Cpu, b: Cpu) -> Distance {
    let there = |cpu: Cpu| cpu.index() < topology.nr_cpu_ids();
    if !there(a) || !there(b) || topology.node(a) != topology.node(b) {
        Distance::OtherNode
    } else if topology.smt_mask(a).test(b) {
        Distance::SameCore
    } else if topology.cpus_share_cache(a, b) {
        Distance::OtherCore
    } else {
        Distance::OtherLlc
    }
}

fn load(state: &State, from: Cpu, to: Cpu) -> Load {
    match (is_idle(state, from), is_idle(state, to)) {
        (true, false) => Load::IdleToBusy,
        (false, true) => Load::BusyToIdle,
        (false, false) => Load::Alike,
        (true, true) => match (is_core_idle(state, from), is_core_idle(state, to)) {
            (true, false) => Load::CoreToSibling,
            (false, true) => Load::SiblingToCore,
            _ => Load::Alike,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::{SisCounters, Writes};
    use crate::topology::{Domain, Parts, SdFlags};
    use std::sync::Arc;

    fn mask(list: &str) -> Cpumask {
        list.parse().expect("a cpulist")
    }

    /// Two nodes; node 0 has two LLCs of two cores, node 1 one LLC; two threads a core.
    fn machine(busy: &str) -> State {
        let llcs = ["0-3", "4-7", "8-11"].map(mask);
        let domain = |span| Domain {
            level: 1,
            name: "MC".to_owned(),
            span,
            flags: SdFlags::SHARE_LLC,
            imbalance_pct: 117,
            imb_numa_nr: 0,
        };
        let parts = Parts {
            nr_cpu_ids: 12,
            online: mask("0-11"),
            smt: (0..12).map(|cpu| mask(&format!("{}-{}", cpu & !1, cpu | 1))).collect(),
            node: (0..12).map(|cpu| cpu / 8).collect(),
            capacity_orig: vec![1024; 12],
            smt_present: true,
            domains: llcs.map(domain).to_vec(),
            ..Parts::default()
        };
        let mut state = State::new(Arc::new(Topology::new(parts).expect("a topology")));
        for cpu in mask(busy).iter() {
            state.rq.curr_idle.clear(cpu);
            state.rq.nr_running[cpu.index()] = 1;
        }
        state
    }

    fn decision(cpu: u16, exit: Exit) -> Decision {
        Decision {
            class_cpu: Cpu(cpu),
            final_cpu: Cpu(cpu),
            exit,
            probes: 0,
            mask_ops: 0,
            sis: SisCounters::default(),
            read: Inputs::empty(),
            leaned_on: Provenance::TRACED,
            faults: 0,
            writes: Writes::default(),
        }
    }

    fn difference(busy: &str, allowed: &str, from: u16, to: u16) -> Difference {
        let (from, to) = (decision(from, Exit::Prev), decision(to, Exit::IdleCpu));
        match compare(&machine(busy), &mask(allowed), &from, &to) {
            Verdict::Diverge { class: Class::Known, baseline: Exit::Prev, patched: Exit::IdleCpu, difference } => {
                difference
            }
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn the_nearest_thing_in_common_gives_the_distance() {
        let distance = |to| difference("", "0-11", 0, to).distance;
        assert_eq!(distance(1), Distance::SameCore);
        assert_eq!(distance(3), Distance::OtherCore);
        assert_eq!(distance(4), Distance::OtherLlc);
        assert_eq!(distance(8), Distance::OtherNode);
    }

    #[test]
    fn idleness_is_that_of_the_moment() {
        let load = |busy, to| difference(busy, "0-11", 0, to).load;
        assert_eq!(load("", 2), Load::Alike);
        assert_eq!(load("0,2", 2), Load::Alike);
        assert_eq!(load("2", 2), Load::IdleToBusy);
        assert_eq!(load("0", 2), Load::BusyToIdle);
        assert_eq!(load("3", 2), Load::CoreToSibling);
        assert_eq!(load("1", 2), Load::SiblingToCore);
        assert_eq!(load("1,3", 2), Load::Alike);
    }

    #[test]
    fn a_queued_or_pending_cpu_is_not_idle() {
        let mut state = machine("");
        assert!(is_idle(&state, Cpu(0)) && is_core_idle(&state, Cpu(1)));
        state.rq.ttwu_pending.set(Cpu(0));
        assert!(!is_idle(&state, Cpu(0)) && !is_core_idle(&state, Cpu(1)));
        state.rq.nr_running[4] = 1;
        assert!(!is_idle(&state, Cpu(4)));
        assert!(!is_idle(&state, Cpu(99)) && !is_core_idle(&state, Cpu(99)));
    }

    #[test]
    fn outside_says_which_side_is_wrong() {
        let outside = |allowed| difference("", allowed, 0, 2).outside;
        assert_eq!(outside("0-11"), Outside::Neither);
        assert_eq!(outside("2"), Outside::Baseline);
        assert_eq!(outside("0"), Outside::Patched);
        assert_eq!(outside("5"), Outside::Both);
        assert!(outside("5").is_patched() && !outside("2").is_patched());
    }

    #[test]
    fn what_is_unknown_is_neither_agreement_nor_difference() {
        let unknown = Provenance { unknown: Inputs::TASK_LOAD, assumed: Inputs::SYNC, ..Provenance::TRACED };
        let a = decision(0, Exit::Prev);
        let b = Decision { leaned_on: unknown, ..decision(2, Exit::Target) };
        let verdict = compare(&machine(""), &mask("0-11"), &a, &b);
        assert_eq!(verdict, Verdict::Unknown { inputs: Inputs::TASK_LOAD, differs: true });
        let assumed = Decision { leaned_on: Provenance { unknown: Inputs::empty(), ..unknown }, ..a };
        let verdict = compare(&machine(""), &mask("0-11"), &a, &assumed);
        assert_eq!(verdict, Verdict::Agree { class: Class::Assumed, same_exit: true });
        let other = decision(0, Exit::Target);
        let verdict = compare(&machine(""), &mask("0-11"), &a, &other);
        assert_eq!(verdict, Verdict::Agree { class: Class::Known, same_exit: false });
    }
}
