// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux v6.12, kernel/sched/fair.c; with two stable changes as bits 6.12.117 (Debian 13).
//!
//! Against v6.1: SIS_PROP is gone, CPUs of the target's cluster come first, and the estimated utilisation is one value.
//!
//! Departs: energy-aware and core scheduling are off (every cookie matches); WF_CURRENT_CPU is not set; hardware and
//! frequency pressure are 0; averages are taken as they are in the state (sync_entity_load_avg() does nothing).

pub mod cluster;
pub mod slow;

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::Wrap;
pub use crate::fair::v5_10::TaskUtil;
pub use crate::fair::v6_1::{
    __select_idle_cpu, asym_fits_cpu, record_wakee, select_idle_core, select_idle_smt, set_idle_cores, test_idle_cores,
    update_idle_core, util_fits_cpu, wake_affine_weight, wake_wide,
};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::{Patch, SchedFeat};
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use cluster::{cpus_share_resources, sched_cluster_active};
use slow::sched_balance_find_dst_cpu;

/// **Source**: kernel/sched/fair.c, wake_affine_idle(), v6.12, with [`Patch::SYNC_NO_DELAYED`] 6.12.117 to v7.3.
pub fn wake_affine_idle<R: Recorder>(e: &mut Env<'_, R>, this_cpu: Cpu, prev_cpu: Cpu) -> Option<Cpu> {
    if e.available_idle_cpu(this_cpu) && e.cpus_share_cache(this_cpu, prev_cpu) {
        return Some(if e.available_idle_cpu(prev_cpu) { prev_cpu } else { this_cpu });
    }

    if e.sync() {
        let mut nr_running = e.nr_running(this_cpu);
        if e.patched(Patch::SYNC_NO_DELAYED) {
            nr_running = nr_running.wrapping_sub(e.cfs_h_nr_delayed(this_cpu));
        }
        if nr_running == 1 {
            return Some(this_cpu);
        }
    }

    if e.available_idle_cpu(prev_cpu) {
        return Some(prev_cpu);
    }

    None
}

/// Which of this_cpu and prev_cpu the search starts from. **Source**: kernel/sched/fair.c, wake_affine(), v6.12.
pub fn wake_affine<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, p: TaskId, this_cpu: Cpu, prev_cpu: Cpu) -> Cpu {
    e.enter("wake_affine");
    let mut target = None;

    if e.sched_feat(SchedFeat::WA_IDLE) {
        target = wake_affine_idle(e, this_cpu, prev_cpu);
    }

    if e.sched_feat(SchedFeat::WA_WEIGHT) && target.is_none() {
        target = wake_affine_weight(e, sd, p, this_cpu, prev_cpu);
    }

    if target != Some(this_cpu) {
        return prev_cpu;
    }

    e.ttwu_move_affine(this_cpu);
    this_cpu
}

/// Looks for an idle core, or for an idle CPU within the limit; first in the target's cluster, where there are any.
///
/// **Source**: kernel/sched/fair.c, select_idle_cpu(), v6.12.
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

    let cpus_ptr = e.cpus_ptr(p);
    let mut cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    if e.sched_feat(SchedFeat::SIS_UTIL)
        && let Some(sd_share) = e.topology().llc_shared(target)
    {
        nr = (e.nr_idle_scan(sd_share) as i32).wrapping_add(1);
        e.value("nr", nr);
        // An overloaded LLC is not searched, not even for cores.
        if nr == 1 {
            return e.give_up();
        }
    }

    if sched_cluster_active(e)
        && let Some(span) = cluster::first_group(e, sd, target)
    {
        for cpu in span.iter_wrap(target.index() + 1) {
            if !cpus.test(cpu) {
                continue;
            }

            if has_idle_core {
                if let Some(i) = select_idle_core(e, cpu, &mut cpus, &mut idle_cpu) {
                    return Some(i);
                }
            } else {
                // sis_scanned: each turn of the loop with a usable CPU, the one that stops at the limit included.
                e.sis().scanned += 1;
                nr = nr.wrapping_sub(1);
                if nr <= 0 {
                    return e.give_up();
                }
                idle_cpu = __select_idle_cpu(e, cpu);
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
            if let Some(i) = select_idle_core(e, cpu, &mut cpus, &mut idle_cpu) {
                return Some(i);
            }
        } else {
            // sis_scanned: each turn of the loop, the one that stops at the limit included.
            e.sis().scanned += 1;
            nr = nr.wrapping_sub(1);
            if nr <= 0 {
                return e.give_up();
            }
            idle_cpu = __select_idle_cpu(e, cpu);
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

/// `task_util_est()`. **Source**: kernel/sched/fair.c, task_util_est() and _task_util_est(), v6.8 to v7.3.
pub fn task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    e.task_util(p).max(_task_util_est(e, p))
}

/// See [`task_util_est`].
pub fn _task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    e.util_est(p).1
}

/// Looks for an idle CPU in the asymmetric domain that fits best.
///
/// The schedstat patches count nothing here. **Source**: kernel/sched/fair.c, select_idle_capacity(), v6.12.
pub fn select_idle_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_capacity");
    let mut best_cap = 0;
    let mut best_fits = 0;
    let mut best_cpu = None;

    let cpus_ptr = e.cpus_ptr(p);
    let cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    let task_util = task_util_est(e, p);
    let util_min = e.uclamp_min(p);
    let util_max = e.uclamp_max(p);

    for cpu in cpus.iter_wrap(target.index()) {
        let mut cpu_cap = e.capacity_of(cpu);

        if !e.available_idle_cpu(cpu) && !e.sched_idle_cpu(cpu) {
            continue;
        }

        let fits = util_fits_cpu(e, task_util, util_min, util_max, cpu);

        if fits > 0 {
            return Some(cpu);
        } else if fits < 0 {
            // get_actual_cpu_capacity(): no pressure.
            cpu_cap = e.capacity_orig_of(cpu);
        }

        if fits < best_fits || (fits == best_fits && cpu_cap > best_cap) {
            best_cap = cpu_cap;
            best_cpu = Some(cpu);
            best_fits = fits;
        }
    }

    best_cpu
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), v6.12.
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

    if (e.available_idle_cpu(target) || e.sched_idle_cpu(target)) && asym_fits_cpu(e, task, target) {
        return e.exit(Exit::Target, target);
    }

    if prev != target
        && e.cpus_share_cache(prev, target)
        && (e.available_idle_cpu(prev) || e.sched_idle_cpu(prev))
        && asym_fits_cpu(e, task, prev)
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
        && (e.available_idle_cpu(recent_used_cpu) || e.sched_idle_cpu(recent_used_cpu))
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

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), v6.12.
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
        new_cpu = sched_balance_find_dst_cpu(e, sd, p, cpu, prev_cpu, sd_flag);
    } else if ttwu {
        new_cpu = select_idle_sibling(e, p, prev_cpu, new_cpu);
    }

    new_cpu
}
