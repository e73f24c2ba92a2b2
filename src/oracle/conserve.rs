// SPDX-License-Identifier: GPL-2.0-or-later
//! Work conservation, by a naive second look at the state: is the chosen CPU idle, and was none passed over?
//!
//! Idle means here what the walks call idle: `available_idle_cpu()`, or only SCHED_IDLE tasks queued.

use crate::fair::Exit;
use crate::fair::release::Release;
use crate::machine::State;
use crate::oracle::{Finding, Trial};
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

/// An exit that is taken for an idle CPU leads to an idle CPU; for a core, to one whose CPUs are all idle.
pub fn idleness(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let (state, cpu) = (trial.state, trial.decision.class_cpu);
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
        | Exit::AsymCapacity => is_idle(state, cpu),
        Exit::IdleCore => state.topology.smt_mask(cpu).iter().all(|sibling| is_available(state, sibling)),
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

/// A scan that ran to its end without a CPU passed over no idle one, and one that found took the first on its way.
///
/// Stated for the scan of single CPUs in the LLC without asymmetric capacities. The scan starts from the target in 5.11
/// and from the CPU after it in 6.1. Without an LLC domain of its own, this_cpu makes 5.11 skip the scan.
pub fn conservation(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let state = trial.state;
    let (Some(release), Some(sd), Some(target)) =
        (trial.spec.map(crate::fair::spec::ModelSpec::release), trial.sd_llc(), trial.target())
    else {
        return Ok(());
    };
    let start = match release {
        // Counts CPUs that are not allowed, and does not know SCHED_IDLE.
        Release::V5_2 => return Ok(()),
        Release::V5_10 | Release::V5_11 => target.index(),
        Release::V6_1 | Release::V6_12 => target.index() + 1,
        // A SCHED_IDLE wakee does not take CPUs that run only SCHED_IDLE tasks.
        Release::V7_3 if state.tasks[trial.wakeup.p].policy_idle => return Ok(()),
        Release::V7_3 => target.index() + 1,
    };
    let allowed = sd.span & state.tasks[trial.wakeup.p].cpus_ptr;
    let first = allowed.iter_wrap(start).find(|&cpu| is_idle(state, cpu));
    match trial.decision.exit {
        Exit::IdleCpu if first != Some(trial.decision.class_cpu) => {
            let text =
                format!("CPU {} found, but {first:?} comes first in {allowed} from {start}", trial.decision.class_cpu);
            trial.fail("conservation", "not the first idle CPU on the way", text)
        }
        Exit::Fallback => {
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
