// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel bugs of the wakeup path that the models keep, and how each is recognised by its mechanism.

use std::fmt;

use crate::fair::release::Release;
use crate::fair::spec::ModelSpec;
use crate::fair::{Exit, Patch};
use crate::machine::State;
use crate::oracle::Trial;
use crate::units::Cpu;

/// A bug that was found and fixed in the kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownBug {
    /// The fixing commit, or where there is none the text with the bug.
    pub fix: &'static str,
    /// The kernels concerned.
    pub affected: &'static str,
    /// What goes wrong.
    pub mechanism: &'static str,
    /// How it shows.
    pub shows: &'static str,
}

impl fmt::Display for KnownBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.fix, self.affected, self.mechanism)
    }
}

const fn bug(fix: &'static str, affected: &'static str, mechanism: &'static str, shows: &'static str) -> KnownBug {
    KnownBug { fix, affected, mechanism, shows }
}

/// The table, newest fix last within a function.
pub static KNOWN: [KnownBug; 16] = [
    bug(
        "ae2ad293d6be",
        "5.15 to 6.5, patch 3/4 of December 2020",
        "prev's affinity is tested in place of recent_used_cpu's, which was overwritten before the test",
        "recent_used_cpu returned outside cpus_ptr",
    ),
    bug(
        "df3cb4ea1fb6",
        "4.9 to 5.9",
        "select_idle_smt() ignores the domain's span (isolcpus)",
        "result outside the span of sd_llc",
    ),
    bug(
        "8aeaffef8c6e",
        "6.1 to 6.8 in mainline",
        "the span test of select_idle_smt() was removed as redundant",
        "result outside the span of sd_llc",
    ),
    bug(
        "23d04d8c6b8e",
        "5.12 to 6.8, patch 4/4 of December 2020",
        "select_idle_core() tests its fallback CPU against cpus_ptr, not against the CPUs of the domain",
        "result outside the span of sd_llc",
    ),
    bug(
        "02dbb7246c5b",
        "5.12 to 5.13-rc1",
        "has_idle_cores of the waker's LLC is cleared, not of the target's",
        "end state of another LLC",
    ),
    bug("c722f35b513f", "5.12", "the step that looks for a sibling of prev was lost", "fewer siblings of prev"),
    bug(
        "60588bfa223f",
        "4.13 to 5.5",
        "CPUs that the task may not use eat the scan's budget",
        "an allowed idle CPU within the budget is not found",
    ),
    bug(
        "8b4e74ccb582",
        "5.6 to 5.16",
        "the per-CPU kthread rule also holds in interrupt context",
        "differs in wakeups from interrupts only",
    ),
    bug(
        "014ba44e8184",
        "5.10 to 5.16",
        "the per-CPU kthread rule skips the capacity test",
        "a CPU on which the task does not fit",
    ),
    bug("b4c9c9f15649", "5.7 to 5.10-rc3", "an early return passes over idle prev and recent CPUs", "differs"),
    bug("d8fcb81f1acf", "5.5 to 5.10", "wake_affine() ignores an idle prev in another socket", "differs"),
    bug(
        "39afe5d6fc59",
        "4.16 to 6.3",
        "ttwu_move_affine is counted although prev was chosen",
        "the counter disagrees with the placement",
    ),
    bug(
        "soft-affinity RFC 2/3",
        "the June 2019 RFC",
        "the second scan starts from the loop variable of the first, which ran out",
        "the spill-over scan is never or wrongly made",
    ),
    bug(
        "soft-affinity RFC 1/3",
        "the June 2019 RFC",
        "cpus_preferred may name CPUs outside cpus_ptr or none at all, and 2/3 and 3/3 go by it alone",
        "result outside cpus_ptr, or a run queue taken at nr_cpu_ids",
    ),
    bug(
        "57abff067a08",
        "until the rework of find_idlest_group() in 5.5; found by this fuzzer in 5.2",
        "a local group without allowed CPUs counts as loaded with ULONG_MAX, to which the imbalance is added: the sum wraps, \
         the local group wins, and the slow path answers with this_cpu",
        "result outside cpus_ptr",
    ),
    bug(
        "find_idlest_group_cpu()",
        "every release modelled, 5.2 to 7.3; found by this fuzzer; wakeups only where domains have SD_BALANCE_WAKE",
        "an idle CPU without idle state whose idle_stamp is 0 is never taken, nor are loads compared: where the group has \
         no other allowed CPU, the answer is the CPU that the search began with",
        "result outside cpus_ptr",
    ),
];

fn patches(spec: Option<&ModelSpec>) -> Patch {
    spec.map(ModelSpec::patches).unwrap_or_default()
}

/// The bug by which `trial` left the task's affinity.
pub(super) fn outside_affinity(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let spec = patches(trial.spec);
    let overwritten =
        spec.intersects(Patch::RECENT_USED | Patch::RECENT_USED_V1) && !spec.contains(Patch::FIX_CPUS_PTR);
    let cpus_ptr = &trial.state.tasks[trial.wakeup.p].cpus_ptr;
    let task = &trial.state.tasks[trial.wakeup.p];
    if spec.contains(Patch::SOFT_AFFINITY) && task.cpus_preferred.test(trial.decision.class_cpu) {
        return Some(&KNOWN[13]);
    }
    let Trial { decision, wakeup, .. } = trial;
    if trial.spec.is_some_and(|spec| spec.release() == Release::V5_2)
        && decision.exit == Exit::Slow
        && decision.class_cpu == wakeup.this_cpu
    {
        return Some(&KNOWN[14]);
    }
    if decision.exit == Exit::Slow && cpus_ptr.iter().any(|cpu| is_never_idlest(trial.state, cpu)) {
        return Some(&KNOWN[15]);
    }
    // The test that passed was that of prev_cpu.
    (overwritten && trial.decision.exit == Exit::RecentUsed && cpus_ptr.test(trial.wakeup.prev_cpu))
        .then_some(&KNOWN[0])
}

/// Idle, but find_idlest_group_cpu() does not take it.
fn is_never_idlest(state: &State, cpu: Cpu) -> bool {
    let rq = &state.rq;
    state.topology.online().test(cpu)
        && rq.nr_running[cpu.index()] == 0
        && rq.exit_latency_us[cpu.index()].is_none()
        && rq.idle_stamp_ns[cpu.index()] == 0
}

/// The bug by which `trial` left the domain it scanned.
pub(super) fn outside_domain(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let topology = &trial.state.topology;
    let cpu = trial.decision.class_cpu;
    match trial.decision.exit {
        // A sibling, in no domain itself, of a core that has other CPUs in the domain.
        Exit::IdleSmt if trial.spec.is_some_and(|spec| spec.release() == Release::V5_2) => {
            (topology.smt_mask(cpu).weight() > 1 && topology.sd_llc(cpu).is_none()).then_some(&KNOWN[1])
        }
        Exit::IdleCandidate if patches(trial.spec).contains(Patch::IDLE_CANDIDATE) => {
            (topology.smt_mask(cpu).weight() > 1 && topology.sd_llc(cpu).is_none()).then_some(&KNOWN[3])
        }
        _ => None,
    }
}

/// The bug by which `trial` took a run queue that is not there.
pub(super) fn beyond_nr_cpu_ids(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let task = &trial.state.tasks[trial.wakeup.p];
    let none_left = task.cpus_preferred.is_empty() || task.cpus_ptr.is_subset(&task.cpus_preferred);
    (patches(trial.spec).contains(Patch::TUNABLES) && none_left).then_some(&KNOWN[13])
}
