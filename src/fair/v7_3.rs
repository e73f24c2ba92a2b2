// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux 7.3.4 (the newest recorded), kernel/sched/fair.c.
//!
//! Against 6.12.117: a CPU that runs only SCHED_IDLE tasks is idle only for a task that is not SCHED_IDLE itself;
//! nr_idle_scan is asked before the mask is built, and an empty mask ends the search; with asymmetric capacities the scan is
//! bounded too and prefers idle cores; has_idle_cores is that of the domain that is balanced (sd_balance_shared).
//!
//! Departs: energy-aware and core scheduling are off (every cookie matches); WF_CURRENT_CPU is not set; hardware and
//! frequency pressure are 0; averages are taken as they are in the state (sync_entity_load_avg() does nothing). The
//! preferred LLC of CONFIG_SCHED_CACHE is of load balancing only.

pub mod slow;

use crate::cpumask::Cpumask;
use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::Wrap;
use crate::fair::v6_12::cluster::{self, cpus_share_resources, sched_cluster_active};
use crate::spec::SchedFeat;
// With the stable changes of 6.12.y, which are bits there and on here.
pub use crate::fair::v6_12::{
    _task_util_est, TaskUtil, record_wakee, task_util_est, util_fits_cpu, wake_affine, wake_wide,
};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::topology::{Domain, SdFlags, SharedId};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use slow::sched_balance_find_dst_cpu;

/// The CPU, if the task may take it for idle. **Source**: kernel/sched/fair.c, __select_idle_cpu(), v7.3.
pub fn __select_idle_cpu<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> Option<Cpu> {
    if e.choose_idle_cpu(cpu, p) {
        return Some(cpu);
    }

    None
}

/// `set_idle_cores()`: of the domain that `cpu`'s balancing goes by. **Source**: kernel/sched/fair.c, v7.3.
pub fn set_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, val: bool) {
    if let Some(sds) = e.topology().balance_shared(cpu) {
        e.set_has_idle_cores(sds, val);
    }
}

/// `test_idle_cores()`: of the domain that `cpu`'s balancing goes by. **Source**: kernel/sched/fair.c, v7.3.
pub fn test_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> bool {
    if let Some(sds) = e.topology().balance_shared(cpu) {
        return e.has_idle_cores(sds);
    }

    false
}

/// A CPU goes idle: if its siblings are idle too, there is an idle core.
///
/// **Source**: kernel/sched/fair.c, __update_idle_core(), v7.3.
pub fn update_idle_core<R: Recorder>(e: &mut Env<'_, R>, core: Cpu) {
    e.enter("__update_idle_core");
    if test_idle_cores(e, core) {
        return;
    }

    for cpu in e.topology().smt_mask(core).iter() {
        if cpu == core {
            continue;
        }

        if !e.available_idle_cpu(cpu) {
            return;
        }
    }

    set_idle_cores(e, core, true);
}

/// Whether the siblings of `cpu` are idle. **Source**: kernel/sched/fair.c, is_core_idle(), v7.3.
pub fn is_core_idle<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> bool {
    for sibling in e.topology().smt_mask(cpu).iter() {
        if cpu == sibling {
            continue;
        }

        if !e.idle_cpu(sibling) {
            return false;
        }
    }

    true
}

/// Whether all CPUs of the core of `core` are idle; remembers the first usable CPU met on the way.
///
/// **Source**: kernel/sched/fair.c, select_idle_core(), v7.3.
pub fn select_idle_core<R: Recorder>(
    e: &mut Env<'_, R>,
    p: TaskId,
    core: Cpu,
    cpus: &mut Cpumask,
    idle_cpu: &mut Option<Cpu>,
) -> Option<Cpu> {
    let mut idle = true;

    for cpu in e.topology().smt_mask(core).iter() {
        // sis_scanned: each sibling that the inner loop visits.
        e.sis().scanned += 1;
        if !e.available_idle_cpu(cpu) {
            idle = false;
            if idle_cpu.is_none() {
                if e.choose_sched_idle_rq(cpu, p) && cpus.test(cpu) {
                    *idle_cpu = Some(cpu);
                    break;
                }
                continue;
            }
            break;
        }
        if idle_cpu.is_none() && cpus.test(cpu) {
            *idle_cpu = Some(cpu);
        }
    }

    if idle {
        return Some(e.exit(Exit::IdleCore, core));
    }

    e.cpumask_andnot(cpus, e.topology().smt_mask(core));
    None
}

/// Looks for an idle sibling of `target`, other than itself and inside the domain.
///
/// **Source**: kernel/sched/fair.c, select_idle_smt(), v7.3.
pub fn select_idle_smt<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_smt");
    let cpus = *e.topology().smt_mask(target) & e.cpus_ptr(p);
    for cpu in cpus.iter() {
        // sis_scanned: each turn of the loop, which visits allowed CPUs only.
        e.sis().scanned += 1;
        if cpu == target {
            continue;
        }
        if !sd.span.test(cpu) {
            continue;
        }
        if e.choose_idle_cpu(cpu, p) {
            return Some(e.exit(Exit::IdleSmt, cpu));
        }
    }

    e.nothing(Exit::IdleSmt)
}

/// `sd->shared` of a domain of `cpu`: its LLC domain or its asymmetric domain.
fn sd_shared<R: Recorder>(e: &Env<'_, R>, sd: &Domain, cpu: Cpu) -> Option<SharedId> {
    let topology = e.topology();
    let has_span = |&id: &SharedId| *topology.shared_span(id) == sd.span;
    topology.llc_shared(cpu).filter(has_span).or_else(|| topology.balance_shared(cpu).filter(has_span))
}

/// Looks for an idle core, or for an idle CPU within the limit; first in the target's cluster, where there are any.
///
/// **Source**: kernel/sched/fair.c, select_idle_cpu(), v7.3.
pub fn select_idle_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    p: TaskId,
    sd: &Domain,
    has_idle_core: bool,
    target: Cpu,
) -> Option<Cpu> {
    e.enter("select_idle_cpu");
    let mut idle_cpu = None;
    let mut nr = i32::MAX;

    if e.sched_feat(SchedFeat::SIS_UTIL)
        && let Some(shared) = sd_shared(e, sd, target)
    {
        nr = (e.nr_idle_scan(shared) as i32).wrapping_add(1);
        e.value("nr", nr);
        // An overloaded LLC is not searched, not even for cores.
        if nr == 1 {
            return e.give_up();
        }
    }

    let cpus_ptr = e.cpus_ptr(p);
    let mut cpus = e.cpumask_and(&sd.span, &cpus_ptr);
    if cpus.is_empty() {
        return e.nothing(Exit::IdleCpu);
    }

    if sched_cluster_active(e)
        && let Some(span) = cluster::first_group(e, sd, target)
    {
        for cpu in span.iter_wrap(target.index() + 1) {
            if !cpus.test(cpu) {
                continue;
            }

            if has_idle_core {
                if let Some(i) = select_idle_core(e, p, cpu, &mut cpus, &mut idle_cpu) {
                    return Some(i);
                }
            } else {
                // sis_scanned: each turn of the loop with a usable CPU, the one that stops at the limit included.
                e.sis().scanned += 1;
                nr = nr.wrapping_sub(1);
                if nr <= 0 {
                    return e.give_up();
                }
                idle_cpu = __select_idle_cpu(e, cpu, p);
                if let Some(cpu) = idle_cpu {
                    return Some(e.exit(Exit::IdleCluster, cpu));
                }
            }
        }
        e.cpumask_andnot(&mut cpus, &span);
    }

    let mut wrap = Wrap::from(target.index() + 1);
    while let Some(cpu) = wrap.next(&cpus) {
        if has_idle_core {
            if let Some(i) = select_idle_core(e, p, cpu, &mut cpus, &mut idle_cpu) {
                return Some(i);
            }
        } else {
            // sis_scanned: each turn of the loop, the one that stops at the limit included.
            e.sis().scanned += 1;
            nr = nr.wrapping_sub(1);
            if nr <= 0 {
                return e.give_up();
            }
            idle_cpu = __select_idle_cpu(e, cpu, p);
            if idle_cpu.is_some() {
                break;
            }
        }
    }

    if has_idle_core {
        set_idle_cores(e, target, false);
    }

    let exit = if has_idle_core { Exit::IdleCandidate } else { Exit::IdleCpu };
    match idle_cpu {
        Some(cpu) => Some(e.exit(exit, cpu)),
        None => e.nothing(exit),
    }
}

/// Ranks of an idle CPU in [`select_idle_capacity`], less is better. **Source**: kernel/sched/fair.c, enum asym_fits_state.
mod rank {
    /// On an idle core, and does not fit.
    pub const ASYM_IDLE_COMPLETE_MISFIT: i32 = -3;
    /// On a busy core, and fits.
    pub const ASYM_IDLE_THREAD_FITS: i32 = -2;
    /// On a busy core, and does not fit.
    pub const ASYM_IDLE_THREAD_MISFIT: i32 = 0;
    /// From a rank on a busy core to that on an idle one.
    pub const ASYM_IDLE_CORE_BIAS: i32 = -3;
}

/// Looks for an idle CPU in the asymmetric domain that fits best, within the limit; on an idle core, if there is one.
///
/// The schedstat patches count nothing here. **Source**: kernel/sched/fair.c, select_idle_capacity(), v7.3.
pub fn select_idle_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_capacity");
    let has_idle_core = e.topology().smt_present() && test_idle_cores(e, target);
    let mut best_cap = 0;
    let mut best_fits = rank::ASYM_IDLE_THREAD_MISFIT;
    let mut best_cpu = None;
    let mut nr = i32::MAX;

    let cpus_ptr = e.cpus_ptr(p);
    let cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    let task_util = task_util_est(e, p);
    let util_min = e.uclamp_min(p);
    let util_max = e.uclamp_max(p);

    if e.sched_feat(SchedFeat::SIS_UTIL)
        && let Some(shared) = sd_shared(e, sd, target)
    {
        nr = (e.nr_idle_scan(shared) as i32).wrapping_add(1);
        e.value("nr", nr);
        // An overloaded domain is not searched.
        if nr == 1 {
            return e.nothing(Exit::AsymCapacity);
        }
    }

    for cpu in cpus.iter_wrap(target.index()) {
        let preferred_core = !has_idle_core || is_core_idle(e, cpu);
        let mut cpu_cap = e.capacity_of(cpu);

        if !has_idle_core {
            nr = nr.wrapping_sub(1);
            if nr <= 0 {
                return best_cpu;
            }
        }

        if !e.choose_idle_cpu(cpu, p) {
            continue;
        }

        let mut fits = util_fits_cpu(e, task_util, util_min, util_max, cpu);

        if fits > 0 && preferred_core {
            return Some(cpu);
        } else if fits < 0 {
            // get_actual_cpu_capacity(): no pressure.
            cpu_cap = e.capacity_orig_of(cpu);
        } else if fits > 0 {
            fits = rank::ASYM_IDLE_THREAD_FITS;
        }

        if preferred_core {
            fits += rank::ASYM_IDLE_CORE_BIAS;
        }

        if fits < best_fits || (fits == best_fits && cpu_cap > best_cap) {
            best_cap = cpu_cap;
            best_cpu = Some(cpu);
            best_fits = fits;
        }
    }

    // The best is on no idle core: the hint is taken back.
    if has_idle_core && best_fits > rank::ASYM_IDLE_COMPLETE_MISFIT {
        set_idle_cores(e, target, false);
    }

    best_cpu
}

/// `asym_fits_cpu()`: true on machines with one capacity; with SMT the siblings must be idle, too.
///
/// **Source**: kernel/sched/fair.c, asym_fits_cpu(), v7.3.
pub fn asym_fits_cpu<R: Recorder>(e: &mut Env<'_, R>, task: TaskUtil, cpu: Cpu) -> bool {
    if e.topology().asym_cpucapacity() {
        let fits = (!e.topology().smt_present() || is_core_idle(e, cpu))
            && util_fits_cpu(e, task.util, task.min, task.max, cpu) > 0;
        return e.check(fits, || format!("asym_fits_cpu({}, {}, {}, {cpu})", task.util, task.min, task.max));
    }

    true
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), v7.3.
pub fn select_idle_sibling<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev: Cpu, target: Cpu) -> Cpu {
    e.enter("select_idle_sibling");
    e.value("target", target.0);
    e.sis().search += 1;
    // sis_scanned: target, prev and recent_used_cpu together.
    e.sis().scanned += 1;

    let mut has_idle_core = false;
    let mut prev_aff = None;
    let mut recent_aff = None;
    let mut task = TaskUtil::default();
    if e.topology().asym_cpucapacity() {
        task = TaskUtil { util: task_util_est(e, p), min: e.uclamp_min(p), max: e.uclamp_max(p) };
    }

    if e.choose_idle_cpu(target, p) && asym_fits_cpu(e, task, target) {
        return e.exit(Exit::Target, target);
    }

    if prev != target && e.cpus_share_cache(prev, target) && e.choose_idle_cpu(prev, p) && asym_fits_cpu(e, task, prev)
    {
        if !sched_cluster_active(e) || cpus_share_resources(e, prev, target) {
            return e.exit(Exit::Prev, prev);
        }

        prev_aff = Some(prev);
    }

    if e.is_per_cpu_kthread(e.current())
        && e.in_task()
        && prev == e.this_cpu()
        && e.nr_running(prev) <= 1
        && asym_fits_cpu(e, task, prev)
    {
        return e.exit(Exit::PerCpuKthread, prev);
    }

    let recent_used_cpu = e.recent_used_cpu(p);
    e.set_recent_used_cpu(p, prev);
    let candidate = recent_used_cpu != prev && recent_used_cpu != target;
    let shares = candidate && e.cpus_share_cache(recent_used_cpu, target);
    if shares
        && e.choose_idle_cpu(recent_used_cpu, p)
        && e.cpu_allowed(recent_used_cpu, p)
        && asym_fits_cpu(e, task, recent_used_cpu)
    {
        if !sched_cluster_active(e) || cpus_share_resources(e, recent_used_cpu, target) {
            e.sis().recent_hit += 1;
            return e.exit(Exit::RecentUsed, recent_used_cpu);
        }

        // The kernel keeps it in recent_used_cpu, and sets that to -1 otherwise. Neither hit nor miss until it is returned.
        recent_aff = Some(recent_used_cpu);
    } else {
        e.sis().recent_miss += u64::from(shares);
        e.sis().recent_miss_2021 += u64::from(candidate);
    }

    if e.topology().asym_cpucapacity()
        && let Some(sd) = e.topology().sd_asym(target)
    {
        return match select_idle_capacity(e, p, e.topology().domain(sd), target) {
            Some(i) => e.exit(Exit::AsymCapacity, i),
            None => e.exit(Exit::AsymFallback, target),
        };
    }

    let Some(sd) = e.topology().sd_llc(target) else {
        return e.exit(Exit::NoLlc, target);
    };
    let sd = e.topology().domain(sd);
    e.sis().domain_search += 1;

    if e.topology().smt_present() {
        has_idle_core = test_idle_cores(e, target);

        if !has_idle_core
            && e.cpus_share_cache(prev, target)
            && let Some(i) = select_idle_smt(e, p, sd, prev)
        {
            return i;
        }
    }

    if let Some(i) = select_idle_cpu(e, p, sd, has_idle_core, target) {
        return i;
    }

    // Idle, but of another cluster: better than nothing.
    if let Some(prev) = prev_aff {
        return e.exit(Exit::ClusterPrev, prev);
    }
    if let Some(recent_used_cpu) = recent_aff {
        e.sis().recent_hit += 1;
        return e.exit(Exit::ClusterRecentUsed, recent_used_cpu);
    }

    e.fallback(target)
}

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), v7.3.
pub fn select_task_rq_fair<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev_cpu: Cpu) -> Cpu {
    e.enter("select_task_rq_fair");
    let cpu = e.this_cpu();
    let mut new_cpu = prev_cpu;
    let mut want_affine = false;
    let sd_flag = e.sd_flag();
    let ttwu = e.wakeup.kind == WakeKind::Ttwu;

    if ttwu {
        record_wakee(e, p);

        want_affine = !wake_wide(e, p) && e.cpu_allowed(cpu, p);
    }

    let mut sd = None;
    for &id in e.topology().hierarchy(cpu) {
        let tmp = e.topology().domain(id);
        if want_affine && tmp.flags.contains(SdFlags::WAKE_AFFINE) && tmp.span.test(prev_cpu) {
            if cpu != prev_cpu {
                new_cpu = wake_affine(e, tmp, p, cpu, prev_cpu);
            }

            sd = None;
            break;
        }

        if tmp.flags.contains(sd_flag) {
            sd = Some(id);
        } else if !want_affine {
            break;
        }
    }

    if let Some(sd) = sd {
        return sched_balance_find_dst_cpu(e, sd, p, cpu, prev_cpu, sd_flag);
    }

    if ttwu {
        return select_idle_sibling(e, p, prev_cpu, new_cpu);
    }

    new_cpu
}
