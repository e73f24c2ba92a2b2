// SPDX-License-Identifier: GPL-2.0-or-later
//! Predicates of changes, by a plain look at the state.

use crate::cpumask::Cpumask;
use crate::fair::features::SchedFeat;
use crate::machine::TaskFlags;
use crate::topology::{SdFlags, SharedId};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use super::Site;

/// The change alters no decision: what is looked at or booked, not what is chosen.
pub fn never(_: &Site<'_>) -> bool {
    false
}

/// `available_idle_cpu()`.
fn is_available(site: &Site<'_>, cpu: Cpu) -> bool {
    let rq = &site.state.rq;
    let queued = rq.nr_running[cpu.index()] > 0 || rq.ttwu_pending.test(cpu) || !rq.curr_idle.test(cpu);
    !queued && !rq.vcpu_preempted.test(cpu)
}

/// `sched_idle_cpu()`.
fn is_sched_idle(site: &Site<'_>, cpu: Cpu) -> bool {
    let nr_running = site.state.rq.nr_running[cpu.index()];
    nr_running > 0 && nr_running == site.state.rq.idle_h_nr_running[cpu.index()]
}

/// Some CPU runs only SCHED_IDLE tasks.
pub fn some_sched_idle(site: &Site<'_>) -> bool {
    site.state.topology.cpus().any(|cpu| is_sched_idle(site, cpu))
}

/// The same, and the wakee is SCHED_IDLE itself.
pub fn sched_idle_wakee(site: &Site<'_>) -> bool {
    site.state.tasks[site.wakeup.p].policy_idle && some_sched_idle(site)
}

/// Both CPUs that the search can start from.
fn targets(site: &Site<'_>) -> [Cpu; 2] {
    [site.wakeup.this_cpu, site.wakeup.prev_cpu]
}

/// The LLC spans of the targets.
fn spans<'a>(site: &'a Site<'_>) -> impl Iterator<Item = &'a Cpumask> {
    let topology = &site.state.topology;
    targets(site).into_iter().filter_map(|cpu| topology.sd_llc(cpu)).map(|id| &topology.domain(id).span)
}

/// The wakee may not use every CPU of a target's LLC.
pub fn part_of_llc(site: &Site<'_>) -> bool {
    let cpus_ptr = &site.state.tasks[site.wakeup.p].cpus_ptr;
    spans(site).any(|span| !span.is_subset(cpus_ptr))
}

/// The waker is a per-CPU kthread on the wakee's previous CPU with nothing else queued there.
pub fn kthread_stacks(site: &Site<'_>) -> bool {
    let current = &site.state.tasks[site.wakeup.current];
    let is = current.flags.contains(TaskFlags::KTHREAD) && current.nr_cpus_allowed == 1;
    let (this_cpu, prev_cpu) = (site.wakeup.this_cpu, site.wakeup.prev_cpu);
    is && this_cpu == prev_cpu && site.state.rq.nr_running[prev_cpu.index()] <= 1
}

/// The same, from an interrupt.
pub fn kthread_in_interrupt(site: &Site<'_>) -> bool {
    kthread_stacks(site) && !site.wakeup.in_task
}

/// The same, where capacities differ.
pub fn kthread_may_not_fit(site: &Site<'_>) -> bool {
    kthread_stacks(site) && asym(site)
}

/// A sibling of a target is not in its LLC domain.
pub fn sibling_outside(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let outside = |cpu: Cpu| {
        let span = topology.sd_llc(cpu).map(|id| topology.domain(id).span);
        span.is_some_and(|span| !topology.smt_mask(cpu).is_subset(&span))
    };
    targets(site).into_iter().any(outside)
}

/// An idle sibling of a target: SMT stages can take it.
pub fn idle_sibling(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let idle = |cpu: Cpu| is_available(site, cpu) || is_sched_idle(site, cpu);
    let has = |cpu: Cpu| topology.smt_mask(cpu).iter().any(|sibling| sibling != cpu && idle(sibling));
    topology.smt_present() && targets(site).into_iter().any(has)
}

/// A target's LLC is said to have idle cores.
pub fn cores_are_searched(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let said = |cpu: Cpu| {
        let shared = [topology.llc_shared(cpu), topology.balance_shared(cpu)];
        let says = |id: SharedId| site.older.shared[id].has_idle_cores || site.newer.shared[id].has_idle_cores;
        shared.into_iter().flatten().any(says)
    };
    topology.smt_present() && targets(site).into_iter().any(said)
}

/// Capacities differ.
pub fn asym(site: &Site<'_>) -> bool {
    site.state.topology.asym_cpucapacity()
}

/// Both CPUs are compared by load, and the averages differ at one of them.
pub fn loads_differ(site: &Site<'_>) -> bool {
    let rq = &site.state.rq;
    compares_cpus(site)
        && targets(site).into_iter().any(|cpu| rq.load_avg[cpu.index()] != rq.runnable_load_avg[cpu.index()])
}

/// wake_affine() can be asked.
fn compares_cpus(site: &Site<'_>) -> bool {
    site.wakeup.kind == WakeKind::Ttwu && site.wakeup.this_cpu != site.wakeup.prev_cpu
}

/// wake_affine() can be asked, and prev_cpu is idle.
pub fn prev_is_idle(site: &Site<'_>) -> bool {
    compares_cpus(site) && is_available(site, site.wakeup.prev_cpu)
}

/// The waker says it will sleep, and its run queue holds delayed tasks.
pub fn sync_with_delayed(site: &Site<'_>) -> bool {
    let (rq, this_cpu) = (&site.state.rq, site.wakeup.this_cpu.index());
    compares_cpus(site) && site.wakeup.sync && rq.h_nr_running[this_cpu] != rq.h_nr_runnable[this_cpu]
}

/// The slow path can be taken.
pub fn slow(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let mut domains = topology.hierarchy(site.wakeup.this_cpu).iter().map(|&id| topology.domain(id));
    site.wakeup.kind != WakeKind::Ttwu || domains.any(|domain| domain.flags.contains(SdFlags::BALANCE_WAKE))
}

/// The slow path through a NUMA domain.
pub fn slow_numa(site: &Site<'_>) -> bool {
    slow(site) && site.state.topology.domains().iter().any(|domain| domain.flags.contains(SdFlags::NUMA))
}

/// The slow path where capacities differ.
pub fn slow_asym(site: &Site<'_>) -> bool {
    slow(site) && asym(site)
}

/// The slow path of a task that may not use every CPU.
pub fn slow_part(site: &Site<'_>) -> bool {
    slow(site) && !site.state.topology.online().is_subset(&site.state.tasks[site.wakeup.p].cpus_ptr)
}

/// The wakee's estimated utilisation is asked: to fit it on a CPU, or to take it out of a run queue that it is on.
fn estimates(site: &Site<'_>) -> bool {
    let queued = site.state.tasks[site.wakeup.p].on_rq || site.wakeup.p == site.wakeup.current;
    asym(site) || (slow(site) && queued)
}

/// The same, and its last bit is free for a flag.
pub fn flag_shows(site: &Site<'_>) -> bool {
    let task = &site.state.tasks[site.wakeup.p];
    estimates(site) && task.util_est_ewma.max(task.util_est_enqueued).is_multiple_of(2)
}

/// The same, and the two estimates of the wakee differ.
pub fn estimates_differ(site: &Site<'_>) -> bool {
    let task = &site.state.tasks[site.wakeup.p];
    estimates(site) && task.util_est_ewma != task.util_est_enqueued
}

/// Capacities differ, and the wakee has bounds on its utilisation.
pub fn asym_uclamp(site: &Site<'_>) -> bool {
    let task = &site.state.tasks[site.wakeup.p];
    asym(site) && (task.uclamp_min, task.uclamp_max) != (0, 1024)
}

/// wake_affine() can be asked, and this_cpu or prev_cpu is more than an eighth smaller than the biggest CPU.
pub fn small_cpu(site: &Site<'_>) -> bool {
    let capacity = &site.state.rq.cpu_capacity_orig;
    let smallest = targets(site).into_iter().map(|cpu| capacity[cpu.index()]).min().unwrap_or(0);
    let biggest = capacity.iter().copied().max().unwrap_or(0);
    asym(site) && compares_cpus(site) && biggest - smallest >= biggest >> 3
}

/// A limit can end the scan of a target's LLC in one of the two: its proportional one, or that of utilisation.
pub fn limit_bites(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let cpus_ptr = &site.state.tasks[site.wakeup.p].cpus_ptr;
    let bites = |cpu: Cpu| {
        let Some(id) = topology.sd_llc(cpu) else { return false };
        let span = &topology.domain(id).span;
        let usable = u64::from((*span & *cpus_ptr).weight());
        let by_util = site.newer_spec.features().contains(SchedFeat::SIS_UTIL)
            && topology.llc_shared(cpu).is_some_and(|id| u64::from(site.newer.shared[id].nr_idle_scan) < usable);
        by_util || prop_bites(site, u64::from(span.weight()), usable)
    };
    // Without an LLC of its own, this_cpu scans nothing where the limit is proportional.
    topology.sd_llc(site.wakeup.this_cpu).is_none() || targets(site).into_iter().any(bites)
}

/// The older one's proportional limit, or its first rule for it.
fn prop_bites(site: &Site<'_>, span_weight: u64, usable: u64) -> bool {
    let this_cpu = site.wakeup.this_cpu.index();
    let features = site.older_spec.features();
    let avg_idle = site.state.rq.avg_idle_ns[this_cpu] / 512;
    let avg_cost = site.older.cpus[this_cpu].avg_scan_cost_ns + 1;
    let nr = if span_weight * avg_idle > 4 * avg_cost { span_weight * avg_idle / avg_cost } else { 4 };
    (features.contains(SchedFeat::SIS_PROP) && nr <= usable)
        || (features.contains(SchedFeat::SIS_AVG_CPU) && avg_idle < avg_cost)
}

/// The limit of v5.2 counts CPUs that the wakee may not use, and bites.
pub fn limit_counts_others(site: &Site<'_>) -> bool {
    part_of_llc(site) && spans(site).any(|span| prop_bites(site, u64::from(span.weight()), u64::from(span.weight())))
}

/// The older one bounds its scan by average idle time over scan cost.
pub fn older_has_sis_prop(site: &Site<'_>) -> bool {
    site.older_spec.features().contains(SchedFeat::SIS_PROP)
}

/// The two have another recent_used_cpu for the wakee.
pub fn recent_differs(site: &Site<'_>) -> bool {
    let of = |hidden: &crate::fair::Hidden| hidden.tasks.get(site.wakeup.p.index()).map(|task| task.recent_used_cpu);
    of(site.older) != of(site.newer)
}

/// The newer one bounds its scan by average idle time over scan cost.
pub fn newer_has_sis_prop(site: &Site<'_>) -> bool {
    site.newer_spec.features().contains(SchedFeat::SIS_PROP)
}

/// The older one can give up a scan for its average cost alone.
pub fn older_has_sis_avg_cpu(site: &Site<'_>) -> bool {
    site.older_spec.features().contains(SchedFeat::SIS_AVG_CPU)
}

/// Some domain is a cluster.
pub fn clusters(site: &Site<'_>) -> bool {
    site.state.topology.has_clusters()
}
