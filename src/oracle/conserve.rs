// SPDX-License-Identifier: GPL-2.0-or-later
//! Work conservation, by a naive second look at the state: is the chosen CPU idle, and was none passed over?
//!
//! Idle means here what the walks call idle: `available_idle_cpu()`, or only SCHED_IDLE tasks queued.

use crate::cpumask::Cpumask;
use crate::fair::Exit;
use crate::machine::State;
use crate::oracle::{Finding, Trial, shown};
use crate::spec::{Patch, Release};
use crate::topology::{SdFlags, Topology};
use crate::units::Cpu;

/// `available_idle_cpu()`, read plainly.
fn is_available(state: &State, cpu: Cpu) -> bool {
    let rq = &state.rq;
    let queued = rq.nr_running[cpu.index()] > 0 || rq.ttwu_pending.test(cpu) || !rq.curr_idle.test(cpu);
    !queued && !rq.vcpu_preempted.test(cpu)
}

/// Idle, or running SCHED_IDLE tasks only.
fn is_idle(state: &State, cpu: Cpu) -> bool {
    let (queued, idle) = (state.rq.nr_running[cpu.index()], state.rq.idle_h_nr_running[cpu.index()]);
    is_available(state, cpu) || (queued > 0 && queued == idle)
}

/// How a release scans single CPUs of the LLC.
struct ScanRule {
    /// How far from the target it begins.
    start: usize,
    /// What it takes for idle.
    is_idle: fn(&State, Cpu) -> bool,
}

/// The rule, where one is stated: not for the soft-affinity RFC, which makes two scans.
fn scan_rule(trial: &Trial<'_>) -> Option<ScanRule> {
    let spec = trial.spec?;
    match spec.release() {
        Release::V5_2 if spec.patches().contains(Patch::SOFT_AFFINITY) => None,
        // Before 5.4 nobody asks for SCHED_IDLE.
        Release::V5_2 => Some(ScanRule { start: 0, is_idle: is_available }),
        Release::V5_10 | Release::V5_11 => Some(ScanRule { start: 0, is_idle }),
        // To a SCHED_IDLE wakee a CPU that runs only SCHED_IDLE tasks is not idle.
        Release::V7_3 if trial.state.tasks[trial.wakeup.p].policy_idle => {
            Some(ScanRule { start: 1, is_idle: is_available })
        }
        Release::V6_1 | Release::V6_12 | Release::V7_3 => Some(ScanRule { start: 1, is_idle }),
    }
}

/// An exit that is taken for an idle CPU leads to an idle CPU; for a core, to one whose CPUs are all idle.
pub fn idleness(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let (state, cpu) = (trial.state, trial.decision.class_cpu);
    // The RFC's scans ask idle_cpu(), to which a preempted virtual CPU is idle.
    let soft = trial.spec.is_some_and(|spec| spec.patches().contains(Patch::SOFT_AFFINITY));
    let by_idle_cpu = |cpu: Cpu| soft && state.rq.nr_running[cpu.index()] == 0 && !state.rq.ttwu_pending.test(cpu);
    if cpu.index() >= state.topology.nr_cpu_ids() {
        return Ok(());
    }
    let holds = match trial.decision.exit {
        Exit::Target
        | Exit::Prev
        | Exit::RecentUsed
        | Exit::IdleCandidate
        | Exit::IdleCpu
        | Exit::IdleSmt
        | Exit::IdleCluster
        | Exit::ClusterPrev
        | Exit::ClusterRecentUsed
        | Exit::AsymCapacity => is_idle(state, cpu) || by_idle_cpu(cpu),
        Exit::IdleCore => {
            state.topology.smt_mask(cpu).iter().all(|sibling| is_available(state, sibling) || by_idle_cpu(sibling))
        }
        _ => true,
    };
    if holds {
        return Ok(());
    }
    let text = format!(
        "CPU {cpu}: nr_running {}, idle_h_nr_running {}, siblings {}",
        state.rq.nr_running[cpu.index()],
        state.rq.idle_h_nr_running[cpu.index()],
        state.topology.smt_mask(cpu)
    );
    trial.fail("idleness", "the CPU is not idle", text)
}

/// The cluster of `cpu`, where the machine has clusters.
fn cluster(topology: &Topology, cpu: Cpu) -> Option<Cpumask> {
    let domains = topology.hierarchy(cpu).iter().map(|&id| topology.domain(id));
    domains.filter(|sd| sd.flags.contains(SdFlags::CLUSTER)).map(|sd| sd.span).next()
}

/// A scan that ran to its end without a CPU passed over no idle one, and one that found took the first on its way.
///
/// Stated for the scan of single CPUs in the LLC without asymmetric capacities, where this_cpu has an LLC domain too (5.2
/// and 5.11 make no scan without one).
pub fn conservation(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let state = trial.state;
    let rule = scan_rule(trial);
    let (Some(ScanRule { start, is_idle }), Some(sd), Some(target)) = (rule, trial.sd_llc(), trial.target()) else {
        return Ok(());
    };
    let start = target.index() + start;
    let allowed = sd.span & *state.tasks[trial.wakeup.p].cpus_ptr;
    let first = allowed.iter_wrap(start).find(|&cpu| is_idle(state, cpu));
    match trial.decision.exit {
        // The cluster is scanned before the rest, so that a CPU found in the rest is the first of all.
        Exit::IdleCpu if first != Some(trial.decision.class_cpu) => {
            let text = format!(
                "CPU {} found, but {} comes first in {allowed} from {start}",
                trial.decision.class_cpu,
                shown(first)
            );
            trial.fail("conservation", "not the first idle CPU on the way", text)
        }
        Exit::IdleCluster => {
            let first = cluster(&state.topology, target)
                .and_then(|span| (allowed & span).iter_wrap(start).find(|&cpu| is_idle(state, cpu)));
            if first == Some(trial.decision.class_cpu) {
                return Ok(());
            }
            let text =
                format!("CPU {} found, but {} comes first of the cluster", trial.decision.class_cpu, shown(first));
            trial.fail("conservation", "not the first idle CPU on the way", text)
        }
        Exit::Fallback | Exit::ClusterPrev | Exit::ClusterRecentUsed => {
            // Where a CPU of another cluster was remembered, the scan may have given up before it found that one.
            if trial.decision.exit != Exit::Fallback && trial.brief.gave_up {
                return Ok(());
            }
            let skipped = state.topology.sd_llc(trial.wakeup.this_cpu).is_none();
            match first {
                Some(idle) if !skipped => {
                    let text = format!("CPU {idle} of {allowed} is idle, target {target}");
                    trial.fail("conservation", "an idle CPU was passed over", text)
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Without asymmetric capacities an idle target is taken, and else an idle prev_cpu that shares its cache.
pub fn stages(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let state = trial.state;
    let rule = scan_rule(trial);
    let (Some(ScanRule { is_idle, .. }), Some(target), false) =
        (rule, trial.target(), state.topology.asym_cpucapacity())
    else {
        return Ok(());
    };
    let prev = trial.wakeup.prev_cpu;
    let prev_counts = prev != target && state.topology.cpus_share_cache(prev, target);
    let expected = if is_idle(state, target) {
        Some((Exit::Target, target))
    } else if prev_counts && is_idle(state, prev) {
        Some((Exit::Prev, prev))
    } else {
        None
    };
    let found = (trial.decision.exit, trial.decision.class_cpu);
    let early = matches!(found.0, Exit::Target | Exit::Prev);
    // With clusters prev also has to be in the target's (since 6.9), else it is only remembered.
    let clusters = state.topology.domains().iter().any(|sd| sd.flags.contains(SdFlags::CLUSTER));
    if clusters && expected == Some((Exit::Prev, prev)) && found.0 != Exit::Target {
        return Ok(());
    }
    if expected.is_some_and(|expected| expected != found) || (expected.is_none() && early) {
        let text = format!("{found:?}, expected {expected:?}, target {target}, prev {prev}");
        return trial.fail("stages", "target and prev come first when idle", text);
    }
    Ok(())
}
