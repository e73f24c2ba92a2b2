// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of kernel releases: what each one is, its switches, its patches.

use crate::inputs::Inputs;
use crate::spec::{Patch, SchedFeat, Version};

/// A kernel release whose wakeup path is written out in a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Linux v5.2.
    V5_2,
    /// Linux 5.10.262.
    V5_10,
    /// Linux v5.11.
    V5_11,
    /// Linux 6.1.192.
    V6_1,
    /// Linux v6.12; with its stable changes 6.12.117.
    V6_12,
    /// Linux 7.3.4.
    V7_3,
}

/// One patch that a release knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchInfo {
    /// Its name in a spec, after `+`.
    pub name: &'static str,
    /// Its bit; for a shorthand, several.
    pub bits: Patch,
    /// What it is, in a line.
    pub meaning: &'static str,
}

/// What is known of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// Which.
    pub release: Release,
    /// Its name in a spec.
    pub name: &'static str,
    /// The version it was written from.
    pub version: Version,
    /// Beginning of the `uname -r` of the Debian kernel of that version, where it does not show the version.
    pub debian: Option<&'static str>,
    /// Patches that the name stands for beside the release's own text.
    pub base: Patch,
    /// The kernel it was written from: version, package, blob of kernel/sched/fair.c.
    pub source: &'static str,
    /// What it is, in a line.
    pub meaning: &'static str,
    /// The scheduler features it has.
    pub features: SchedFeat,
    /// Those that are on by default.
    pub defaults: SchedFeat,
    /// The patches it knows; shorthands for several first.
    pub patches: &'static [PatchInfo],
    /// Kinds of input it can read.
    pub reads: Inputs,
}

const WAKE_AFFINE: SchedFeat = SchedFeat::WA_IDLE.union(SchedFeat::WA_WEIGHT).union(SchedFeat::WA_BIAS);
const COMMON: SchedFeat = WAKE_AFFINE.union(SchedFeat::UTIL_EST).union(SchedFeat::TTWU_QUEUE);

/// Everything but what only a patch reads.
const V6_1_READS: Inputs = Inputs::all().difference(Inputs::SOFT_AFFINITY);
const COMMON_READS: Inputs = V6_1_READS.difference(Inputs::NR_IDLE_SCAN);
/// v5.11 does not ask for the context.
const V5_11_READS: Inputs = COMMON_READS.difference(Inputs::CONTEXT);

/// v5.2 knows no SCHED_IDLE CPUs, no context and no bounds on utilisation, and compares no NUMA nodes.
const V5_2_READS: Inputs = COMMON_READS
    .difference(Inputs::POLICY)
    .difference(Inputs::CONTEXT)
    .difference(Inputs::UCLAMP)
    .difference(Inputs::NUMA);

const V5_2_PATCHES: &[PatchInfo] = &[
    PatchInfo {
        name: "soft-affinity",
        bits: Patch::SOFT_AFFINITY,
        meaning: "RFC 2/3: prefer the CPUs of the soft affinity (cpus_preferred)",
    },
    PatchInfo {
        name: "tunables",
        bits: Patch::TUNABLES,
        meaning: "RFC 3/3: sched_preferred and sched_allowed, on top of soft-affinity",
    },
    PatchInfo {
        name: "fix-smt-span",
        bits: Patch::FIX_SMT_SPAN,
        meaning: "df3cb4ea1fb6: select_idle_smt() tests the domain's span",
    },
    PatchInfo {
        name: "fix-scan-allowed",
        bits: Patch::FIX_SCAN_ALLOWED,
        meaning: "60588bfa223f: the scan walks allowed CPUs only",
    },
    PatchInfo {
        name: "fix-second-scan",
        bits: Patch::FIX_SECOND_SCAN,
        meaning: "RFC 2/3 with its second scan made where the first ran out (no patch of any kernel)",
    },
];

/// Since 6.6 no scan cost and no average idle time is read.
const UTIL_READS: Inputs = V6_1_READS.difference(Inputs::SCAN_COST).difference(Inputs::AVG_IDLE);

/// What 6.12.117 changed of v6.12's wakeup path; v7.3 has it, too.
const V6_12_STABLE: Patch = Patch::SYNC_NO_DELAYED.union(Patch::SLOW_ALLOWED);

const V6_12_PATCHES: &[PatchInfo] = &[
    PatchInfo {
        name: "sync-no-delayed",
        bits: Patch::SYNC_NO_DELAYED,
        meaning: "6.12.y: the sync rule of wake_affine_idle() does not count delayed-dequeue tasks",
    },
    PatchInfo {
        name: "slow-allowed",
        bits: Patch::SLOW_ALLOWED,
        meaning: "6.12.y: the slow path counts allowed CPUs only",
    },
];

const V5_10_PATCHES: &[PatchInfo] = &[PatchInfo {
    name: "idle-prev",
    bits: Patch::IDLE_PREV,
    meaning: "d8fcb81f1acf: an idle prev_cpu wins in wake_affine_idle()",
}];

const V6_1_PATCHES: &[PatchInfo] = &[
    PatchInfo {
        name: "bug-smt-span",
        bits: Patch::BUG_SMT_SPAN,
        meaning: "as before 8aeaffef8c6e: select_idle_smt() does not test the span",
    },
    PatchInfo {
        name: "bug-idle-cores-llc",
        bits: Patch::BUG_IDLE_CORES_LLC,
        meaning: "as before 02dbb7246c5b: has_idle_cores of the waker's LLC is cleared",
    },
    PatchInfo {
        name: "bug-no-idle-smt",
        bits: Patch::BUG_NO_IDLE_SMT,
        meaning: "as before c722f35b513f: no sibling of prev is tried",
    },
];

const V5_11_PATCHES: &[PatchInfo] = &[
    PatchInfo {
        name: "mel-v2",
        bits: Patch::NO_SIS_AVG_CPU.union(Patch::SCAN_COST).union(Patch::RECENT_USED).union(Patch::IDLE_CANDIDATE),
        meaning: "the December 2020 series \"Reduce scanning of runqueues in select_idle_sibling\", v2, all four",
    },
    PatchInfo { name: "no-sis-avg-cpu", bits: Patch::NO_SIS_AVG_CPU, meaning: "1/4: remove SIS_AVG_CPU" },
    PatchInfo { name: "scan-cost", bits: Patch::SCAN_COST, meaning: "2/4: move the avg_scan_cost work under SIS_PROP" },
    PatchInfo {
        name: "recent-used",
        bits: Patch::RECENT_USED,
        meaning: "3/4: do not replace recent_used_cpu with the new target",
    },
    PatchInfo {
        name: "idle-candidate",
        bits: Patch::IDLE_CANDIDATE,
        meaning: "4/4: return an idle CPU found by a failed search for an idle core",
    },
    PatchInfo {
        name: "fix-cpus-ptr",
        bits: Patch::FIX_CPUS_PTR,
        meaning: "ae2ad293d6be: test the affinity of recent_used_cpu itself (no effect without recent-used)",
    },
    PatchInfo {
        name: "recent-used-v1",
        bits: Patch::RECENT_USED_V1,
        meaning: "the earlier 05/10 form of 3/4; decides as recent-used does",
    },
    PatchInfo {
        name: "fix-candidate-span",
        bits: Patch::FIX_CANDIDATE,
        meaning: "23d04d8c6b8e: test 4/4's candidate against the CPUs of the domain",
    },
    PatchInfo {
        name: "kthread-in-task",
        bits: Patch::KTHREAD_IN_TASK,
        meaning: "8b4e74ccb582: the rule for per-CPU kthreads in task context only",
    },
    PatchInfo {
        name: "kthread-fits",
        bits: Patch::KTHREAD_FITS,
        meaning: "014ba44e8184: the rule for per-CPU kthreads asks whether the task fits",
    },
    PatchInfo {
        name: "bug-asym-first",
        bits: Patch::BUG_ASYM_FIRST,
        meaning: "as before b4c9c9f15649: the search for capacity comes first",
    },
    PatchInfo {
        name: "bug-avg-load",
        bits: Patch::BUG_AVG_LOAD,
        meaning: "as before 6c8116c914b6: avg_load of the wrong groups",
    },
    PatchInfo {
        name: "bug-group-weight",
        bits: Patch::BUG_GROUP_WEIGHT,
        meaning: "as before 289de3598481: group_weight is 0 in the slow path",
    },
    PatchInfo {
        name: "fix-group-span",
        bits: Patch::FIX_GROUP_SPAN,
        meaning: "585b6d2723dc: sched groups stay in their domain where nodes are three links apart",
    },
    PatchInfo {
        name: "fix-idle-stamp",
        bits: Patch::FIX_IDLE_STAMP,
        meaning: "no kernel's: the slow path takes an idle CPU whose idle_stamp is 0",
    },
    PatchInfo {
        name: "fix-move-affine",
        bits: Patch::FIX_MOVE_AFFINE,
        meaning: "39afe5d6fc59: ttwu_move_affine is not counted where prev_cpu won",
    },
];

/// Every name that a spec can begin with, oldest first.
pub const RELEASES: &[ReleaseInfo] = &[
    ReleaseInfo {
        release: Release::V5_2,
        name: "v5.2",
        version: [5, 2, 0],
        debian: None,
        base: Patch::empty(),
        source: "Linux v5.2, kernel/sched/fair.c blob f35930f5e528",
        meaning: "base of the June 2019 RFC \"Scheduler Soft Affinity\"",
        features: COMMON.union(SchedFeat::SIS_PROP).union(SchedFeat::SIS_AVG_CPU).union(SchedFeat::LB_BIAS),
        defaults: COMMON.union(SchedFeat::SIS_PROP),
        patches: V5_2_PATCHES,
        reads: V5_2_READS,
    },
    ReleaseInfo {
        release: Release::V5_10,
        name: "v5.10",
        version: [5, 10, 262],
        debian: Some("5.10.0-46-"),
        base: Patch::empty(),
        source: "Linux 5.10.262 (Debian linux-source-5.10 5.10.262-1), kernel/sched/fair.c blob fa85b84fdbc5",
        meaning: "Debian 11; recordings and vectors are both of it",
        features: COMMON.union(SchedFeat::SIS_PROP).union(SchedFeat::SIS_AVG_CPU),
        defaults: COMMON.union(SchedFeat::SIS_PROP),
        patches: V5_10_PATCHES,
        reads: COMMON_READS,
    },
    ReleaseInfo {
        release: Release::V5_11,
        name: "v5.11",
        version: [5, 11, 0],
        debian: None,
        base: Patch::empty(),
        source: "Linux v5.11, kernel/sched/fair.c blob 04a3ce20da67",
        meaning: "base of the v2 series of December 2020 (its 5.10.0-rc6 was the scheduler tree that became 5.11)",
        features: COMMON.union(SchedFeat::SIS_PROP).union(SchedFeat::SIS_AVG_CPU),
        defaults: COMMON.union(SchedFeat::SIS_PROP),
        patches: V5_11_PATCHES,
        reads: V5_11_READS,
    },
    ReleaseInfo {
        release: Release::V6_1,
        name: "v6.1",
        version: [6, 1, 192],
        debian: Some("6.1.0-57-"),
        base: Patch::empty(),
        source: "Linux 6.1.192 (Debian linux-source-6.1 6.1.192-3), kernel/sched/fair.c blob 325e7542fbb4",
        meaning: "Debian 12; recordings and vectors are both of it",
        features: COMMON.union(SchedFeat::SIS_PROP).union(SchedFeat::SIS_UTIL),
        defaults: COMMON.union(SchedFeat::SIS_UTIL),
        patches: V6_1_PATCHES,
        reads: V6_1_READS,
    },
    ReleaseInfo {
        release: Release::V6_12,
        name: "v6.12",
        version: [6, 12, 0],
        debian: None,
        base: Patch::empty(),
        source: "Linux v6.12, kernel/sched/fair.c blob 2d16c8545c71",
        meaning: "the tag",
        features: COMMON.union(SchedFeat::SIS_UTIL),
        defaults: COMMON.union(SchedFeat::SIS_UTIL),
        patches: V6_12_PATCHES,
        reads: UTIL_READS,
    },
    ReleaseInfo {
        release: Release::V6_12,
        name: "v6.12.117",
        version: [6, 12, 117],
        debian: None,
        base: V6_12_STABLE,
        source: "Linux 6.12.117 (Debian linux-source-6.12 6.12.117-1), kernel/sched/fair.c blob 020a39fe0e7b",
        meaning: "Debian 13: the tag with sync-no-delayed and slow-allowed",
        features: COMMON.union(SchedFeat::SIS_UTIL),
        defaults: COMMON.union(SchedFeat::SIS_UTIL),
        patches: &[],
        reads: UTIL_READS,
    },
    ReleaseInfo {
        release: Release::V7_3,
        name: "v7.3",
        version: [7, 3, 4],
        debian: None,
        base: V6_12_STABLE,
        source: "Linux 7.3.4 (Debian linux-source-7.3 7.3.4-1~bpo13+1), kernel/sched/fair.c blob b35e23f93bcd",
        meaning: "the newest recorded; SCHED_IDLE wakees, bounded search with asymmetric capacities",
        features: COMMON.union(SchedFeat::SIS_UTIL),
        defaults: COMMON.union(SchedFeat::SIS_UTIL),
        patches: &[],
        reads: UTIL_READS,
    },
];

impl ReleaseInfo {
    /// The features it has once `patches` are applied.
    pub fn features_with(&self, patches: Patch) -> SchedFeat {
        if patches.contains(Patch::NO_SIS_AVG_CPU) { self.features - SchedFeat::SIS_AVG_CPU } else { self.features }
    }

    /// What its kernel has in this path and the model leaves out.
    pub fn not_modelled(&self) -> Vec<&'static str> {
        let mut not =
            vec!["energy-aware placement, find_energy_efficient_cpu() (asymmetric capacities and an energy model)"];
        if self.release == Release::V7_3 {
            not.push("cache-aware scheduling (off; it concerns load balancing only)");
        }
        not
    }

    /// The kinds of input it can read once `patches` are applied.
    pub fn reads_with(&self, patches: Patch) -> Inputs {
        let mut reads = self.reads;
        reads.set(
            Inputs::SOFT_AFFINITY,
            reads.contains(Inputs::SOFT_AFFINITY) || patches.contains(Patch::SOFT_AFFINITY),
        );
        reads.set(Inputs::CONTEXT, reads.contains(Inputs::CONTEXT) || patches.contains(Patch::KTHREAD_IN_TASK));
        reads
    }
}
