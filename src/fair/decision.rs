// SPDX-License-Identifier: GPL-2.0-or-later
//! What one implementation answered: the CPU, the kernel `return` it took, and what the walk cost and wrote.

use serde::{Deserialize, Serialize};

use crate::machine::{Inputs, Provenance};
use crate::topology::SharedId;
use crate::units::Cpu;

/// The kernel `return` that a walk took, named after its stage. Reports print the variant's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Exit {
    /// The target was idle.
    Target,
    /// The previous CPU was idle and shares cache with the target.
    Prev,
    /// A per-CPU kthread woke a task that last ran on its CPU: stacked there.
    PerCpuKthread,
    /// The recently used CPU was idle.
    RecentUsed,
    /// The asymmetric-capacity search ended with a CPU.
    AsymCapacity,
    /// The asymmetric-capacity search found nothing: target.
    AsymFallback,
    /// The target has no LLC domain: target.
    NoLlc,
    /// A whole core was idle.
    IdleCore,
    /// The core search found no idle core but an idle CPU on its way.
    IdleCandidate,
    /// The scan of single CPUs found one.
    IdleCpu,
    /// An idle SMT sibling (of target, or of prev since 5.13).
    IdleSmt,
    /// The scan of single CPUs found one in the target's cluster (since 6.7, on machines with clusters).
    IdleCluster,
    /// No CPU of the target's cluster or LLC was found: prev, idle in another cluster.
    ClusterPrev,
    /// The same with the recently used CPU.
    ClusterRecentUsed,
    /// The scan gave up at its limit, and no later stage helped: target.
    BudgetSpent,
    /// Nothing was idle: target.
    Fallback,
    /// The slow path: find_idlest_cpu().
    Slow,
    /// The slow path's domain has no CPU that the wakee may use: prev.
    SlowOutside,
    /// No stage applied: the CPU the call began with.
    NewCpu,
    /// A `return` of a kernel tree that has no like in the releases modelled.
    Other,
}

impl Exit {
    /// Each of them, in order: an exit's place is its number.
    pub const ALL: [Self; 20] = [
        Self::Target,
        Self::Prev,
        Self::PerCpuKthread,
        Self::RecentUsed,
        Self::AsymCapacity,
        Self::AsymFallback,
        Self::NoLlc,
        Self::IdleCore,
        Self::IdleCandidate,
        Self::IdleCpu,
        Self::IdleSmt,
        Self::IdleCluster,
        Self::ClusterPrev,
        Self::ClusterRecentUsed,
        Self::BudgetSpent,
        Self::Fallback,
        Self::Slow,
        Self::SlowOutside,
        Self::NewCpu,
        Self::Other,
    ];
}

/// Kinds of idle checks, by the letters of the golden vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// `A`: available_idle_cpu().
    Available,
    /// `I`: idle_cpu() called directly.
    Idle,
    /// `S`: sched_idle_cpu(), in 7.3 choose_sched_idle_rq().
    SchedIdle,
    /// `W`: idle_cpu_without().
    Without,
}

impl ProbeKind {
    /// The letter of the golden vectors.
    pub fn letter(self) -> char {
        match self {
            Self::Available => 'A',
            Self::Idle => 'I',
            Self::SchedIdle => 'S',
            Self::Without => 'W',
        }
    }
}

/// SIS counters of one decision, as Mel Gorman's schedstat patches define them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SisCounters {
    /// Calls of select_idle_sibling().
    pub search: u64,
    /// CPUs looked at: one for target, prev and recent together, then each CPU a loop visited.
    pub scanned: u64,
    /// Searches that went on to the LLC domain.
    pub domain_search: u64,
    /// Searches that ended at the last `return target`.
    pub failed: u64,
    /// recent_used_cpu returned.
    pub recent_hit: u64,
    /// recent_used_cpu was a candidate but not usable.
    pub recent_miss: u64,
    /// The same as the 2021 patches count it: also where recent_used_cpu does not share cache.
    pub recent_miss_2021: u64,
}

impl std::ops::AddAssign for SisCounters {
    fn add_assign(&mut self, other: Self) {
        self.search += other.search;
        self.scanned += other.scanned;
        self.domain_search += other.domain_search;
        self.failed += other.failed;
        self.recent_hit += other.recent_hit;
        self.recent_miss += other.recent_miss;
        self.recent_miss_2021 += other.recent_miss_2021;
    }
}

/// Hidden state that a decision changed; `None`: not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Writes {
    /// The wakee's recent_used_cpu.
    pub p_recent_used_cpu: Option<Cpu>,
    /// The waker's recent_used_cpu.
    pub current_recent_used_cpu: Option<Cpu>,
    /// The waker's wakee_flips.
    pub wakee_flips: Option<u32>,
    /// has_idle_cores of a shared state.
    pub has_idle_cores: Option<(SharedId, bool)>,
    /// avg_scan_cost of this_cpu's sd_llc, ns.
    pub avg_scan_cost_ns: Option<u64>,
    /// wake_avg_idle of this_cpu, ns.
    pub wake_avg_idle_ns: Option<u64>,
}

/// The answer of one implementation to one wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decision {
    /// What the scheduling class returned; can be outside the wakee's affinity.
    pub class_cpu: Cpu,
    /// Where the task ends after `select_fallback_rq()` when `class_cpu` is not allowed or not online.
    pub final_cpu: Cpu,
    /// The `return` that was taken.
    pub exit: Exit,
    /// Idle checks made.
    pub probes: u32,
    /// Calls of cpumask_and() and cpumask_andnot().
    pub mask_ops: u32,
    /// SIS counters.
    pub sis: SisCounters,
    /// Kinds of input that the walk read. It would have been the same with other values of any kind that is not here.
    pub read: Inputs,
    /// Of those, what was derived, assumed, unknown.
    pub leaned_on: Provenance,
    /// Run queues taken at an index at or above nr_cpu_ids (a kernel bug, kept).
    pub faults: u32,
    /// Hidden state changed.
    pub writes: Writes,
}

impl Decision {
    /// What the class returned, and where the task ends.
    #[inline]
    pub fn answer(&self) -> (Cpu, Cpu) {
        (self.class_cpu, self.final_cpu)
    }

    /// Whether both put the task on the same CPU.
    #[inline]
    pub fn is_same_choice(&self, other: &Self) -> bool {
        self.answer() == other.answer()
    }

    /// Whether the class answered with a CPU that the wakee may not use: a wrong decision.
    pub fn is_outside(&self, cpus_ptr: &crate::cpumask::Cpumask) -> bool {
        !cpus_ptr.test(self.class_cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_found_at_its_place() {
        for (at, exit) in Exit::ALL.into_iter().enumerate() {
            assert_eq!(exit as usize, at, "{exit:?}");
        }
    }
}
