// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes. Where a stable release took a later fix and its successor's first release did not have it, the step between
//! them lists its loss.

use super::{Change, when};

/// What changed to the release named `name` from the one before it in the table.
pub fn of(name: &str) -> &'static [Change] {
    match name {
        "v5.10" => TO_V5_10,
        "v5.11" => TO_V5_11,
        "v6.1" => TO_V6_1,
        "v6.12" => TO_V6_12,
        "v6.12.117" => TO_V6_12_117,
        "v7.3" => TO_V7_3,
        _ => &[],
    }
}

const TO_V5_10: &[Change] = &[
    Change {
        name: "sched-idle",
        commit: Some("17346452b25b"),
        since: "v5.6",
        meaning: "a CPU that runs only SCHED_IDLE tasks counts as idle in every stage (in the scan since v5.4, 3c29e651e16d)",
        can_matter: when::sched_idle_is_met,
    },
    Change {
        name: "mask-before-budget",
        commit: Some("60588bfa223f"),
        since: "v5.6",
        meaning: "the scan walks allowed CPUs only, so that others no longer count against its limit",
        can_matter: when::limit_counts_others,
    },
    Change {
        name: "kthread-stacking",
        commit: Some("52262ee567ad"),
        since: "v5.6",
        meaning: "a per-CPU kthread stacks the wakee on its own CPU",
        can_matter: when::kthread_stacks,
    },
    Change {
        name: "core-search-stops",
        commit: Some("bec2860a2bd6"),
        since: "v5.6",
        meaning: "the core search stops at the first busy sibling: fewer looks, the same core",
        can_matter: when::never,
    },
    Change {
        name: "smt-span",
        commit: Some("df3cb4ea1fb6"),
        since: "v5.10",
        meaning: "select_idle_smt() leaves out siblings that are not in the LLC domain",
        can_matter: when::sibling_outside,
    },
    Change {
        name: "asym-scan",
        commit: Some("b7a331615d25"),
        since: "v5.7",
        meaning: "a scan of its own for asymmetric capacities, and tests of fitness before it (b4c9c9f15649)",
        can_matter: when::asym,
    },
    Change {
        name: "no-wake-cap",
        commit: Some("000619680c37"),
        since: "v5.7",
        meaning: "wake_cap() no longer keeps tasks that are too big from an affine wakeup",
        can_matter: when::small_cpu,
    },
    Change {
        name: "load-avg",
        commit: Some("11f10e5420f6"),
        since: "v5.5",
        meaning: "wake_affine_weight() compares load_avg, not runnable_load_avg",
        can_matter: when::loads_choose_differently,
    },
    Change {
        name: "slow-rework",
        commit: Some("57abff067a08"),
        since: "v5.5",
        meaning: "find_idlest_group() chooses by type of group, idle CPUs and utilisation",
        can_matter: when::slow,
    },
    Change {
        name: "no-flag-bit",
        commit: Some("68d7a190682a"),
        since: "v5.13, in 5.10.y",
        meaning: "the estimated utilisation has no flag bit in it",
        can_matter: when::flag_shows,
    },
];

const TO_V5_11: &[Change] = &[
    Change {
        name: "affine-prev-idle",
        commit: Some("d8fcb81f1acf"),
        since: "v5.11",
        meaning: "wake_affine_idle() takes an idle prev_cpu that does not share cache",
        can_matter: when::loads_leave_idle_prev,
    },
    Change {
        name: "numa-fork-limit",
        commit: Some("23e6082a522e"),
        since: "v5.11",
        meaning: "the slow path stays on the node while a quarter of the domain is enough, not while any CPU is idle",
        can_matter: when::slow_numa,
    },
    Change {
        name: "core-mask",
        commit: Some("13d5a5e9f9b8"),
        since: "v5.11",
        meaning: "a core is taken out of the mask only if it is not idle: one mask operation less",
        can_matter: when::never,
    },
    Change {
        name: "without-in-task",
        commit: Some("8b4e74ccb582"),
        since: "v5.17, in 5.10.y, not yet here",
        meaning: "a per-CPU kthread stacks from interrupts, too",
        can_matter: when::kthread_in_interrupt,
    },
    Change {
        name: "without-kthread-fit",
        commit: Some("014ba44e8184"),
        since: "v5.17, in 5.10.y, not yet here",
        meaning: "a per-CPU kthread stacks where the wakee does not fit, too",
        can_matter: when::kthread_may_not_fit,
    },
    Change {
        name: "without-util-fits",
        commit: Some("a2e7f03ed28f"),
        since: "v6.2, in 5.10.y, not yet here",
        meaning: "uclamp bounds are clamped into the utilisation",
        can_matter: when::asym_uclamp,
    },
    Change {
        name: "without-slow-allowed",
        commit: Some("82d6e01a0699"),
        since: "v6.19, in 5.10.y, not yet here",
        meaning: "the slow path counts CPUs that the task may not use",
        can_matter: when::slow_part,
    },
    Change {
        name: "flag-bit",
        commit: Some("68d7a190682a"),
        since: "v5.13, in 5.10.y, not yet here",
        meaning: "the estimated utilisation has a flag bit in it",
        can_matter: when::flag_shows,
    },
];

const TO_V6_1: &[Change] = &[
    Change {
        name: "merged-scan",
        commit: Some("9fe1f127b913"),
        since: "v5.12",
        meaning: "one loop looks for a core and remembers an idle CPU; no scan follows a failed core search",
        can_matter: when::core_search_fails,
    },
    Change {
        name: "after-target",
        commit: None,
        since: "v5.15",
        meaning: "the scan begins with the CPU after the target: \"Avoid a second scan of target in select_idle_cpu\"",
        can_matter: when::one_turn_matters,
    },
    Change {
        name: "sis-util",
        commit: Some("70fb5ccf2ebb"),
        since: "v5.19",
        meaning: "the scan is bounded by the LLC's utilisation, no longer in proportion to idle time",
        can_matter: when::limits_differ,
    },
    Change {
        name: "no-sis-avg-cpu",
        commit: Some("e6e0dc2d5497"),
        since: "v5.12",
        meaning: "SIS_AVG_CPU is gone (it was off)",
        can_matter: when::older_gives_up_by_cost,
    },
    Change {
        name: "aged-idle",
        commit: Some("94aafc3ee31d"),
        since: "v5.14",
        meaning: "SIS_PROP (off since v5.19) goes by an average idle time that ages",
        can_matter: when::newer_has_sis_prop,
    },
    Change {
        name: "sibling-of-prev",
        commit: Some("c722f35b513f"),
        since: "v5.13",
        meaning: "a sibling of prev is tried before the scan, none of the target after it (6cd56ef1df39)",
        can_matter: when::idle_sibling,
    },
    Change {
        name: "recent-used",
        commit: Some("89aafd67f28c"),
        since: "v5.15",
        meaning: "recent_used_cpu always becomes prev, and the waker's is left alone",
        can_matter: when::recent_differs,
    },
    Change {
        name: "in-task",
        commit: Some("8b4e74ccb582"),
        since: "v5.17",
        meaning: "a per-CPU kthread does not stack from an interrupt",
        can_matter: when::kthread_in_interrupt,
    },
    Change {
        name: "kthread-fit",
        commit: Some("014ba44e8184"),
        since: "v5.17",
        meaning: "a per-CPU kthread does not stack where the wakee does not fit",
        can_matter: when::kthread_may_not_fit,
    },
    Change {
        name: "util-fits",
        commit: Some("a2e7f03ed28f"),
        since: "v6.2, in 6.1.y",
        meaning: "fitness asks utilisation and uclamp bounds apart; almost fitting counts in the scan (e5ed0550c04c)",
        can_matter: when::asym_uclamp,
    },
    Change {
        name: "affine-counter",
        commit: Some("39afe5d6fc59"),
        since: "v6.4, in 6.1.y",
        meaning: "wake_affine() counts an affine wakeup only if this_cpu was chosen",
        can_matter: when::never,
    },
    Change {
        name: "numa-imbalance",
        commit: Some("e496132ebedd"),
        since: "v5.18",
        meaning: "the imbalance allowed between NUMA nodes follows the number of LLCs and the affinity (f5b2eeb49991)",
        can_matter: when::slow_numa,
    },
    Change {
        name: "slow-fit",
        commit: None,
        since: "v6.2, in 6.1.y",
        meaning: "the slow path asks each CPU of a group whether the task fits",
        can_matter: when::slow_asym,
    },
    Change {
        name: "slow-allowed",
        commit: Some("82d6e01a0699"),
        since: "v6.19, in 6.1.y",
        meaning: "the slow path counts allowed CPUs only",
        can_matter: when::slow_part,
    },
    Change {
        name: "no-flag-bit",
        commit: Some("68d7a190682a"),
        since: "v5.13",
        meaning: "the estimated utilisation has no flag bit in it",
        can_matter: when::flag_shows,
    },
];

const TO_V6_12: &[Change] = &[
    Change {
        name: "no-sis-prop",
        commit: Some("984ffb6a4366"),
        since: "v6.7",
        meaning: "SIS_PROP is gone (it was off)",
        can_matter: when::older_has_sis_prop,
    },
    Change {
        name: "clusters",
        commit: Some("8881e1639f1f"),
        since: "v6.7",
        meaning: "the target's cluster is scanned first; prev and recent_used_cpu of another one come last (22165f61d0c4)",
        can_matter: when::clusters,
    },
    Change {
        name: "one-estimate",
        commit: Some("11137d384996"),
        since: "v6.8",
        meaning: "the estimated utilisation is one value",
        can_matter: when::estimates_differ,
    },
    Change {
        name: "without-slow-allowed",
        commit: Some("82d6e01a0699"),
        since: "v6.19, in 6.1.y, not yet here",
        meaning: "the slow path counts CPUs that the task may not use",
        can_matter: when::slow_part,
    },
];

const TO_V6_12_117: &[Change] = &[
    Change {
        name: "sync-no-delayed",
        commit: Some("aa3ee4f0b754"),
        since: "v6.16, in 6.12.y",
        meaning: "the sync rule of wake_affine_idle() does not count delayed-dequeue tasks",
        can_matter: when::sync_with_delayed,
    },
    Change {
        name: "slow-allowed",
        commit: Some("82d6e01a0699"),
        since: "v6.19, in 6.12.y",
        meaning: "the slow path counts allowed CPUs only",
        can_matter: when::slow_part,
    },
];

const TO_V7_3: &[Change] = &[
    Change {
        name: "sched-idle-wakee",
        commit: Some("fd54d81c2c0e"),
        since: "v7.1",
        meaning: "for a SCHED_IDLE task a CPU that runs only SCHED_IDLE tasks is not idle",
        can_matter: when::sched_idle_wakee,
    },
    Change {
        name: "limit-before-mask",
        commit: None,
        since: "after v6.12",
        meaning: "nr_idle_scan is asked before the mask is made, and an empty mask leaves has_idle_cores as it is",
        can_matter: when::never,
    },
    Change {
        name: "asym-bounded",
        commit: None,
        since: "after v6.12",
        meaning: "with asymmetric capacities the scan is bounded by nr_idle_scan, too",
        can_matter: when::asym,
    },
    Change {
        name: "asym-idle-cores",
        commit: None,
        since: "after v6.12",
        meaning: "\"Prefer fully-idle SMT cores in asym-capacity idle selection\"; has_idle_cores through sd_balance_shared",
        can_matter: when::asym,
    },
];
