// SPDX-License-Identifier: GPL-2.0-or-later
//! Switches of the wakeup path: the kernel's own `sched_feat()`s and the patches under test.

bitflags::bitflags! {
    /// Scheduler features that the path reads. **Source**: kernel/sched/features.h of each release, which also has the
    /// defaults; a release that lacks a feature ignores its bit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub struct SchedFeat: u32 {
        /// Give up the CPU scan when the average idle time is below the average scan cost (to 5.11; off).
        const SIS_AVG_CPU = 1 << 0;
        /// Bound the CPU scan in proportion to idle time over scan cost (to 6.5; on until 5.18).
        const SIS_PROP = 1 << 1;
        /// Bound the CPU scan by the LLC's utilisation (since 5.19; on).
        const SIS_UTIL = 1 << 2;
        /// wake_affine() looks at idleness.
        const WA_IDLE = 1 << 3;
        /// wake_affine() compares loads.
        const WA_WEIGHT = 1 << 4;
        /// wake_affine() favours the waker's CPU by half the imbalance percentage.
        const WA_BIAS = 1 << 5;
        /// Use estimated utilisation.
        const UTIL_EST = 1 << 6;
        /// Bias loads by history (to 5.2; off).
        const LB_BIAS = 1 << 7;
        /// Queue wakeups of a CPU that does not share cache on its wake list.
        const TTWU_QUEUE = 1 << 8;
    }
}

bitflags::bitflags! {
    /// Patches: one bit each, tested where the patch has its hunk.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub struct Patch: u32 {
        /// v2 series 1/4: remove SIS_AVG_CPU.
        const NO_SIS_AVG_CPU = 1 << 0;
        /// v2 series 2/4: move the avg_scan_cost work under SIS_PROP.
        const SCAN_COST = 1 << 1;
        /// v2 series 3/4: do not replace recent_used_cpu with the new target.
        const RECENT_USED = 1 << 2;
        /// v2 series 4/4: return an idle CPU found by a failed search for an idle core.
        const IDLE_CANDIDATE = 1 << 3;
        /// ae2ad293d6be: test the affinity of recent_used_cpu itself.
        const FIX_CPUS_PTR = 1 << 4;
        /// The earlier 05/10 form of 3/4, with its nested branch.
        const RECENT_USED_V1 = 1 << 5;
        /// Soft affinity RFC 2/3.
        const SOFT_AFFINITY = 1 << 6;
        /// Soft affinity RFC 3/3: sched_preferred and sched_allowed.
        const TUNABLES = 1 << 7;
        /// 6.12.y: the sync rule of wake_affine_idle() does not count delayed-dequeue tasks.
        const SYNC_NO_DELAYED = 1 << 8;
        /// 6.12.y: the slow path counts allowed CPUs only.
        const SLOW_ALLOWED = 1 << 9;
        /// df3cb4ea1fb6 on 5.2: select_idle_smt() tests the domain's span.
        const FIX_SMT_SPAN = 1 << 16;
        /// 60588bfa223f on 5.2: the scan walks allowed CPUs only.
        const FIX_SCAN_ALLOWED = 1 << 17;
        /// No patch of any kernel: the soft-affinity RFC with the second scan made where the first ran out.
        const FIX_SECOND_SCAN = 1 << 18;
        /// d8fcb81f1acf on 5.10: an idle prev_cpu wins in wake_affine_idle().
        const IDLE_PREV = 1 << 19;
        /// 8b4e74ccb582 on 5.11: the rule for per-CPU kthreads holds in task context only.
        const KTHREAD_IN_TASK = 1 << 20;
        /// 014ba44e8184 on 5.11: the rule for per-CPU kthreads asks whether the task fits.
        const KTHREAD_FITS = 1 << 21;
        /// Before b4c9c9f15649 (5.7 to 5.10-rc3): the search for capacity comes before an idle target and prev.
        const BUG_ASYM_FIRST = 1 << 22;
        /// 23d04d8c6b8e on patch 4/4: the candidate is tested against the CPUs of the domain.
        const FIX_CANDIDATE = 1 << 23;
        /// Before 6c8116c914b6 (5.5, 5.6): avg_load of groups with spare capacity in place of busy ones.
        const BUG_AVG_LOAD = 1 << 24;
        /// Before 289de3598481 (5.5): the slow path's group_weight is 0.
        const BUG_GROUP_WEIGHT = 1 << 25;
        /// Before 8aeaffef8c6e (6.1 to 6.8): select_idle_smt() does not test the domain's span.
        const BUG_SMT_SPAN = 1 << 26;
        /// Before 02dbb7246c5b (5.12, 5.13-rc1): has_idle_cores of the waker's LLC is cleared.
        const BUG_IDLE_CORES_LLC = 1 << 27;
        /// Before c722f35b513f (5.12): no sibling of prev is tried.
        const BUG_NO_IDLE_SMT = 1 << 28;
        /// 585b6d2723dc (5.13) on 5.11: the groups of a domain stay inside it where nodes are three links apart.
        const FIX_GROUP_SPAN = 1 << 29;
        /// No patch of any kernel: find_idlest_group_cpu() takes an idle CPU without idle state whose idle_stamp is 0.
        const FIX_IDLE_STAMP = 1 << 30;
        /// 39afe5d6fc59 (6.3) on 5.11: ttwu_move_affine is counted where this_cpu won, not where prev_cpu did.
        const FIX_MOVE_AFFINE = 1 << 31;
        /// No patch of any kernel: the abs() that the golden vectors of 6.1 and later were made with. It leaves a negative
        /// unsigned difference as it is, where the kernel's include/linux/math.h converts it to signed first.
        const STAND_IN_ABS = 1 << 15;
    }
}
