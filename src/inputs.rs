// SPDX-License-Identifier: GPL-2.0-or-later
//! What a decision reads, and how well it is known.
//!
//! Provenance is a set of bits beside the values, not a wrapper around each: a walk reads hundreds of values, and what a
//! report wants to know is which *kinds* of them were assumed or unknown.

use std::ops::{BitOr, BitOrAssign};

bitflags::bitflags! {
    /// Kinds of input of `select_task_rq_fair()`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub struct Inputs: u32 {
        /// Whether a CPU is idle: curr, nr_running, ttwu_pending, vcpu_is_preempted().
        const IDLE = 1 << 0;
        /// A run queue's nr_running.
        const NR_RUNNING = 1 << 1;
        /// How many queued tasks are SCHED_IDLE, and whether the wakee is one.
        const POLICY = 1 << 2;
        /// WF_SYNC of the wakeup.
        const SYNC = 1 << 3;
        /// in_task() of the waking context.
        const CONTEXT = 1 << 4;
        /// The wakee's cpus_ptr.
        const AFFINITY = 1 << 5;
        /// A task's PF_ flags: kthread, exiting.
        const TASK_FLAGS = 1 << 6;
        /// A task's load (task_h_load()).
        const TASK_LOAD = 1 << 7;
        /// A run queue's load.
        const RQ_LOAD = 1 << 8;
        /// A task's utilisation.
        const TASK_UTIL = 1 << 9;
        /// A run queue's utilisation.
        const RQ_UTIL = 1 << 10;
        /// cpu_capacity.
        const CAPACITY = 1 << 11;
        /// A task's recent_used_cpu.
        const RECENT_USED_CPU = 1 << 12;
        /// A task's wakee_flips, their decay stamp, last_wakee.
        const WAKEE_FLIPS = 1 << 13;
        /// has_idle_cores of an LLC.
        const HAS_IDLE_CORES = 1 << 14;
        /// nr_idle_scan of an LLC.
        const NR_IDLE_SCAN = 1 << 15;
        /// avg_idle and wake_avg_idle of a run queue.
        const AVG_IDLE = 1 << 16;
        /// avg_scan_cost of a domain, and the cost model behind it.
        const SCAN_COST = 1 << 17;
        /// A task's numa_preferred_nid.
        const NUMA = 1 << 18;
        /// idle_stamp and exit_latency of an idle CPU.
        const IDLE_STATE = 1 << 19;
        /// prev_cpu of the wakeup.
        const PREV_CPU = 1 << 20;
        /// Scheduler features and tunables of the recorded kernel.
        const FEATURES = 1 << 21;
        /// The wakee's preferred CPUs (soft affinity RFC).
        const SOFT_AFFINITY = 1 << 22;
        /// A task's bounds on its utilisation.
        const UCLAMP = 1 << 23;
    }
}

/// How well inputs are known: the sets of those that are derived, stated, assumed or unknown. What is in none is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Provenance {
    /// Computed from events by the kernel's own rule.
    pub derived: Inputs,
    /// The user's side file says so.
    pub stated: Inputs,
    /// A declared assumption stands in for it.
    pub assumed: Inputs,
    /// Nothing is known; the value is a placeholder.
    pub unknown: Inputs,
}

impl Provenance {
    /// Everything traced.
    pub const TRACED: Self =
        Self { derived: Inputs::empty(), stated: Inputs::empty(), assumed: Inputs::empty(), unknown: Inputs::empty() };

    /// The part that concerns `inputs`.
    #[inline]
    pub fn of(self, inputs: Inputs) -> Self {
        Self {
            derived: self.derived & inputs,
            stated: self.stated & inputs,
            assumed: self.assumed & inputs,
            unknown: self.unknown & inputs,
        }
    }

    /// Marks `inputs` as traced.
    pub fn set_traced(&mut self, inputs: Inputs) {
        self.derived -= inputs;
        self.stated -= inputs;
        self.assumed -= inputs;
        self.unknown -= inputs;
    }

    /// Marks `inputs` as derived.
    pub fn set_derived(&mut self, inputs: Inputs) {
        self.set_traced(inputs);
        self.derived |= inputs;
    }

    /// Marks `inputs` as stated by the user's side file.
    pub fn set_stated(&mut self, inputs: Inputs) {
        self.set_traced(inputs);
        self.stated |= inputs;
    }

    /// Marks `inputs` as assumed.
    pub fn set_assumed(&mut self, inputs: Inputs) {
        self.set_traced(inputs);
        self.assumed |= inputs;
    }

    /// Marks `inputs` as unknown.
    pub fn set_unknown(&mut self, inputs: Inputs) {
        self.set_traced(inputs);
        self.unknown |= inputs;
    }

    /// Whether nothing is assumed or unknown.
    pub fn is_known(self) -> bool {
        self.assumed.is_empty() && self.unknown.is_empty()
    }
}

impl BitOr for Provenance {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self {
            derived: self.derived | other.derived,
            stated: self.stated | other.stated,
            assumed: self.assumed | other.assumed,
            unknown: self.unknown | other.unknown,
        }
    }
}

impl BitOrAssign for Provenance {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
