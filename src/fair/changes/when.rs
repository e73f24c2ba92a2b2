// SPDX-License-Identifier: GPL-2.0-or-later
//! Predicates of changes, by a plain look at the state.

use crate::machine::{TaskFlags, TaskId};
use crate::spec::SchedFeat;
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use super::Site;
use super::search::{Search, affine_domain, allowed, is_available, is_idle, is_sched_idle, searches};

/// The change alters no decision: what is looked at or booked, not what is chosen.
pub fn never(_: &Site<'_>) -> bool {
    false
}

/// A CPU that runs only SCHED_IDLE tasks is where the older one passes it over and the newer one takes it: prev_cpu or
/// recent_used_cpu, the target while another CPU is idle, the first in the scan, a sibling where the scan ends too early; or
/// the slow path meets one.
pub fn sched_idle_is_met(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let is = |cpu: Cpu| is_sched_idle(site, cpu);
    let prev = site.wakeup.prev_cpu;
    let recent = site.older.tasks.get(site.wakeup.p.index()).map(|task| task.recent_used_cpu);
    let recent = recent.filter(|&cpu| allowed(site).test(cpu));
    let meets = |search: Search<'_>| {
        let target = search.target;
        let near = |cpu: Cpu| cpu != target && topology.cpus_share_cache(cpu, target);
        let named = [Some(prev), recent].into_iter().flatten().filter(|&cpu| near(cpu));
        let others = search.usable.iter().chain(named.clone());
        let first = search.first_usable(site);
        let is_cut = |turn| search.common_limit(site).is_some_and(|limit| turn >= limit);
        let cut = topology.sd_llc(site.wakeup.this_cpu).is_none() || first.is_some_and(|(_, turn)| is_cut(turn));
        let by_core = search.says_idle_cores(site) && search.has_idle_core(site);
        named.clone().any(is)
            || (is(target) && others.into_iter().any(|cpu| cpu != target && is_available(site, cpu)))
            || (!by_core && !cut && first.is_some_and(|(cpu, _)| cpu != target && is(cpu)))
            || (!by_core && cut && topology.smt_mask(target).iter().any(|cpu| cpu != target && is(cpu)))
    };
    searches(site).any(meets)
        || (searches_outside(site) && targets(site).into_iter().any(is))
        || ((slow(site) || (asym(site) && searches(site).next().is_some())) && allowed(site).iter().any(is))
}

/// A target without an LLC domain: only it and prev_cpu are looked at.
fn searches_outside(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    site.wakeup.kind == WakeKind::Ttwu && targets(site).into_iter().any(|cpu| topology.sd_llc(cpu).is_none())
}

/// Some CPU runs only SCHED_IDLE tasks, and the wakee is SCHED_IDLE itself.
pub fn sched_idle_wakee(site: &Site<'_>) -> bool {
    let some = || site.state.topology.cpus().any(|cpu| is_sched_idle(site, cpu));
    site.state.tasks[site.wakeup.p].policy_idle && some()
}

/// An idle CPU that the wakee may use lies where the limit of v5.2, which counts the others too, has ended the scan.
pub fn limit_counts_others(site: &Site<'_>) -> bool {
    let beyond = |search: Search<'_>| {
        let Some(limit) = search.older_limit(site).filter(|_| search.usable != *search.span) else { return false };
        let idle = |cpu: Cpu| search.usable.test(cpu) && is_idle(site, cpu);
        search.span.iter_wrap(search.target.index()).zip(1..).any(|(cpu, turn)| turn >= limit && idle(cpu))
    };
    searches(site).any(beyond)
}

/// The two put the search's end elsewhere: the older one's proportional limit, or that of utilisation, comes before an idle
/// CPU that there is. Without an LLC of its own, this_cpu scans nothing where the limit is proportional.
pub fn limits_differ(site: &Site<'_>) -> bool {
    let scans_nothing = site.state.topology.sd_llc(site.wakeup.this_cpu).is_none();
    let bites = |search: Search<'_>| {
        let Some((_, turn)) = search.first_usable(site) else { return false };
        let older = search.older_limit(site).is_some_and(|limit| turn >= limit);
        let newer =
            || search.first_after(site).zip(search.util_limit(site)).is_some_and(|((_, turn), limit)| turn >= limit);
        older || scans_nothing || newer()
    };
    searches(site).any(bites)
}

/// A scan from the target finds another CPU than one from the CPU after it, or only one of them ends at its limit before.
pub fn one_turn_matters(site: &Site<'_>) -> bool {
    let aged = site.newer_spec.features().contains(SchedFeat::SIS_PROP);
    let matters = |search: Search<'_>| {
        let (Some(from), Some(after)) = (search.first_usable(site), search.first_after(site)) else { return false };
        let parts = |limit: Option<u64>| limit.is_some_and(|limit| (from.1 >= limit) != (after.1 >= limit));
        from.0 != after.0
            || (aged && from != after)
            || parts(search.older_limit(site))
            || parts(search.util_limit(site))
    };
    searches(site).any(matters)
}

/// A target's LLC is said to have idle cores, has none, and yet an idle CPU.
pub fn core_search_fails(site: &Site<'_>) -> bool {
    let fails = |search: Search<'_>| {
        search.says_idle_cores(site) && search.first_usable(site).is_some() && !search.has_idle_core(site)
    };
    searches(site).any(fails)
}

/// A sibling of prev_cpu is idle that the scan would not have come to first, or one of the target that a scan that ended at
/// its limit left over.
pub fn idle_sibling(site: &Site<'_>) -> bool {
    let topology = &site.state.topology;
    let prev = site.wakeup.prev_cpu;
    let matters = |search: Search<'_>| {
        let idle = |cpu: &Cpu| search.usable.test(*cpu) && is_idle(site, *cpu);
        let of = |cpu: Cpu| topology.smt_mask(cpu).iter().filter(|&sibling| sibling != cpu).find(|cpu| idle(cpu));
        let first = search.first_usable(site);
        let ends = |turn| search.older_limit(site).is_some_and(|limit| turn >= limit);
        let limited = topology.sd_llc(site.wakeup.this_cpu).is_none() || first.is_none_or(|(_, turn)| ends(turn));
        let of_prev = of(prev).filter(|_| topology.cpus_share_cache(prev, search.target));
        let new = of_prev.is_some_and(|sibling| limited || first.is_none_or(|(cpu, _)| cpu != sibling));
        new || (limited && of(search.target).is_some())
    };
    topology.smt_present() && searches(site).any(matters)
}

/// wake_affine_idle() leaves the choice to the loads, and these choose this_cpu by one average and not by the other.
pub fn loads_choose_differently(site: &Site<'_>) -> bool {
    let rq = &site.state.rq;
    let chooses = |loads: &[u64]| affine_domain(site).is_some_and(|sd| loads_choose_this(site, sd, loads));
    is_left_to_loads(site) && chooses(&rq.load_avg) != chooses(&rq.runnable_load_avg)
}

/// wake_affine_idle() leaves the choice to the loads, these choose this_cpu, and prev_cpu is idle; where the two share cache
/// prev_cpu would be taken all the same, unless this_cpu runs only SCHED_IDLE tasks or has to fit.
pub fn loads_leave_idle_prev(site: &Site<'_>) -> bool {
    let (this_cpu, prev_cpu) = (site.wakeup.this_cpu, site.wakeup.prev_cpu);
    let apart = !site.state.topology.cpus_share_cache(this_cpu, prev_cpu);
    let taken = !apart && !is_sched_idle(site, this_cpu) && !asym(site) && !site.state.topology.has_clusters();
    let chooses = || affine_domain(site).is_some_and(|sd| loads_choose_this(site, sd, &site.state.rq.load_avg));
    !taken && is_available(site, prev_cpu) && is_left_to_loads(site) && chooses()
}

/// wake_affine() is asked, and neither this_cpu's idleness nor the sync flag has decided.
fn is_left_to_loads(site: &Site<'_>) -> bool {
    let (this_cpu, prev_cpu) = (site.wakeup.this_cpu, site.wakeup.prev_cpu);
    if affine_domain(site).is_none() {
        return false;
    }
    let idle = is_available(site, this_cpu) && site.state.topology.cpus_share_cache(this_cpu, prev_cpu);
    let alone = is_sync(site) && site.state.rq.nr_running[this_cpu.index()] == 1;
    let ask = site.older_spec.features() & site.newer_spec.features();
    !(ask.contains(SchedFeat::WA_IDLE) && (idle || alone))
}

/// The waker will sleep.
fn is_sync(site: &Site<'_>) -> bool {
    site.wakeup.sync && !site.state.tasks[site.wakeup.current].flags.contains(TaskFlags::EXITING)
}

/// wake_affine_weight() with these loads of the run queues chooses this_cpu.
fn loads_choose_this(site: &Site<'_>, sd: &Domain, loads: &[u64]) -> bool {
    let features = site.older_spec.features() | site.newer_spec.features();
    if !features.contains(SchedFeat::WA_WEIGHT) {
        return false;
    }
    let (this_cpu, prev_cpu) = (site.wakeup.this_cpu.index(), site.wakeup.prev_cpu.index());
    let h_load = |id: TaskId| i128::from(site.state.tasks[id].h_load);
    let capacity = |cpu: usize| i128::from(site.state.rq.cpu_capacity[cpu]);
    let bias = |percent: u32| if features.contains(SchedFeat::WA_BIAS) { i128::from(percent) } else { 1 };
    let mut this_load = i128::from(loads[this_cpu]);
    if is_sync(site) {
        this_load -= h_load(site.wakeup.current);
        if this_load < 0 {
            return true;
        }
    }
    let task = h_load(site.wakeup.p);
    let this_load = (this_load + task) * bias(100) * capacity(prev_cpu);
    let half = sd.imbalance_pct.saturating_sub(100) / 2;
    let prev_load = (i128::from(loads[prev_cpu]) - task) * bias(100 + half) * capacity(this_cpu);
    this_load < prev_load + i128::from(is_sync(site))
}

/// The older one bounds its scan by average idle time over scan cost, and there is something to find.
pub fn older_has_sis_prop(site: &Site<'_>) -> bool {
    site.older_spec.features().contains(SchedFeat::SIS_PROP) && is_something_to_find(site)
}

/// The newer one does.
pub fn newer_has_sis_prop(site: &Site<'_>) -> bool {
    site.newer_spec.features().contains(SchedFeat::SIS_PROP) && is_something_to_find(site)
}

/// The older one gives up its scan for its average cost alone, and there is something to find.
pub fn older_gives_up_by_cost(site: &Site<'_>) -> bool {
    let gives_up = |search: Search<'_>| search.older_limit(site) == Some(0) && search.first_usable(site).is_some();
    searches(site).any(gives_up)
}

/// A search can be made, and an idle CPU is there that it may take.
fn is_something_to_find(site: &Site<'_>) -> bool {
    searches(site).any(|search| search.first_usable(site).is_some())
}

/// Both CPUs that the search can start from.
fn targets(site: &Site<'_>) -> [Cpu; 2] {
    [site.wakeup.this_cpu, site.wakeup.prev_cpu]
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

/// Capacities differ.
pub fn asym(site: &Site<'_>) -> bool {
    site.state.topology.asym_cpucapacity()
}

/// wake_affine() can be asked.
fn compares_cpus(site: &Site<'_>) -> bool {
    site.wakeup.kind == WakeKind::Ttwu && site.wakeup.this_cpu != site.wakeup.prev_cpu
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

/// The two have another recent_used_cpu for the wakee.
pub fn recent_differs(site: &Site<'_>) -> bool {
    let of = |hidden: &crate::fair::Hidden| hidden.tasks.get(site.wakeup.p.index()).map(|task| task.recent_used_cpu);
    of(site.older) != of(site.newer)
}

/// Some domain is a cluster.
pub fn clusters(site: &Site<'_>) -> bool {
    site.state.topology.has_clusters()
}
