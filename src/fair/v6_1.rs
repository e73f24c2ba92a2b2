// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux 6.1.192 (Debian 12), kernel/sched/fair.c.
//!
//! Against v5.11: one loop looks for cores and for CPUs, from the CPU after `target`; a sibling of `prev` is tried before
//! it; the limit comes from the LLC's utilisation (SIS_UTIL); recent_used_cpu always becomes `prev`.
//!
//! Departs: energy-aware and core scheduling are off (every cookie matches); thermal pressure is 0; averages are taken as
//! they are in the state (sync_entity_load_avg() does nothing).

pub mod slow;

use crate::cpumask::Cpumask;
use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::{Wrap, fits_capacity, update_avg};
use crate::fair::v5_2::div_u64;
pub use crate::fair::v5_10::{_task_util_est, TaskUtil, task_util_est};
pub use crate::fair::v5_11::{record_wakee, set_idle_cores, wake_affine_idle, wake_affine_weight, wake_wide};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::{Patch, SchedFeat};
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use slow::find_idlest_cpu;

/// **Source**: kernel/sched/fair.c, wake_affine(), v6.1.y to v7.3: prev_cpu as the answer is no affine wakeup (39afe5d6fc59).
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

/// The CPU, if it is idle or runs only SCHED_IDLE tasks. **Source**: kernel/sched/fair.c, __select_idle_cpu(), v6.1.
pub fn __select_idle_cpu<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> Option<Cpu> {
    if e.available_idle_cpu(cpu) || e.sched_idle_cpu(cpu) {
        return Some(cpu);
    }

    None
}

/// `test_idle_cores()`: of `cpu`'s LLC, false without one. **Source**: kernel/sched/fair.c, v5.15 to v6.12.
pub fn test_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> bool {
    if let Some(sds) = e.topology().llc_shared(cpu) {
        return e.has_idle_cores(sds);
    }

    false
}

/// A CPU goes idle: if its siblings are idle too, there is an idle core.
///
/// **Source**: kernel/sched/fair.c, __update_idle_core(), v5.15 to v6.12.
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

/// Whether all CPUs of the core of `core` are idle; remembers the first usable CPU met on the way.
///
/// **Source**: kernel/sched/fair.c, select_idle_core(), 6.1.192 (the candidate is tested against the masked `cpus`,
/// 23d04d8c6b8e).
pub fn select_idle_core<R: Recorder>(
    e: &mut Env<'_, R>,
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
                if e.sched_idle_cpu(cpu) && cpus.test(cpu) {
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
/// **Source**: kernel/sched/fair.c, select_idle_smt(), 6.1.192 (the span is tested again, 8aeaffef8c6e).
pub fn select_idle_smt<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_smt");
    let cpus = *e.topology().smt_mask(target) & e.cpus_ptr(p);
    for cpu in cpus.iter() {
        // sis_scanned: each turn of the loop, which visits allowed CPUs only.
        e.sis().scanned += 1;
        if cpu == target {
            continue;
        }
        if !sd.span.test(cpu) && !e.patched(Patch::BUG_SMT_SPAN) {
            continue;
        }
        if e.available_idle_cpu(cpu) || e.sched_idle_cpu(cpu) {
            return Some(e.exit(Exit::IdleSmt, cpu));
        }
    }

    e.nothing(Exit::IdleSmt)
}

/// Looks for an idle core, or for an idle CPU within the limit. **Source**: kernel/sched/fair.c, select_idle_cpu(), v6.1.
pub fn select_idle_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    p: TaskId,
    sd: &Domain,
    has_idle_core: bool,
    target: Cpu,
) -> Option<Cpu> {
    e.enter("select_idle_cpu");
    let this = e.this_cpu();
    let mut idle_cpu = None;
    let mut nr = i32::MAX;
    let mut this_sd = None;
    let mut time = 0;

    let cpus_ptr = e.cpus_ptr(p);
    let mut cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    if e.sched_feat(SchedFeat::SIS_PROP) && !has_idle_core {
        this_sd = e.topology().sd_llc(this);
        if this_sd.is_none() {
            return e.nothing(Exit::IdleCpu);
        }

        // The last idle period predicts less the longer it is over.
        let now = e.state.jiffies;
        let (mut wake_stamp, mut wake_avg_idle) = e.wake_avg_idle(this);
        if wake_stamp < now && wake_avg_idle != 0 {
            while wake_stamp < now && wake_avg_idle != 0 {
                wake_stamp += 1;
                wake_avg_idle >>= 1;
            }
            e.set_wake_avg_idle(this, wake_stamp, wake_avg_idle);
        }

        let avg_idle = wake_avg_idle;
        let avg_cost = e.avg_scan_cost_ns(this).wrapping_add(1);

        let span_avg = u64::from(sd.span.weight()).wrapping_mul(avg_idle);
        nr = if span_avg > avg_cost.wrapping_mul(4) { div_u64(span_avg, avg_cost) } else { 4 };
        e.value("nr", nr);

        time = e.cpu_clock();
    }

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
            if nr == 0 {
                return e.give_up();
            }
            idle_cpu = __select_idle_cpu(e, cpu);
            if idle_cpu.is_some() {
                break;
            }
        }
    }

    if has_idle_core {
        let of = if e.patched(Patch::BUG_IDLE_CORES_LLC) { this } else { target };
        set_idle_cores(e, of, false);
    }

    if e.sched_feat(SchedFeat::SIS_PROP) && this_sd.is_some() && !has_idle_core {
        time = e.cpu_clock().wrapping_sub(time);

        // The scan's cost comes out of the predicted idle time.
        let (wake_stamp, wake_avg_idle) = e.wake_avg_idle(this);
        e.set_wake_avg_idle(this, wake_stamp, wake_avg_idle - wake_avg_idle.min(time));

        let avg = e.avg_scan_cost_ns(this);
        e.set_avg_scan_cost_ns(this, update_avg(avg, time));
    }

    let exit = if has_idle_core { Exit::IdleCandidate } else { Exit::IdleCpu };
    match idle_cpu {
        Some(cpu) => Some(e.exit(exit, cpu)),
        None => e.nothing(exit),
    }
}

/// Whether a utilisation within uclamp bounds fits a CPU: 1 yes, 0 no, -1 all but the boost of uclamp_min.
///
/// **Source**: kernel/sched/fair.c, util_fits_cpu(), v6.1. Departs: thermal pressure is 0, and uclamp counts as used
/// (without it the bounds are 0 and 1024, which decide nothing on any capacity up to 1024).
pub fn util_fits_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    util: u64,
    mut uclamp_min: u64,
    uclamp_max: u64,
    cpu: Cpu,
) -> i32 {
    const SCHED_CAPACITY_SCALE: u64 = 1024;
    let capacity = e.capacity_of(cpu);
    let mut fits = fits_capacity(util, capacity);

    let capacity_orig = e.capacity_orig_of(cpu);
    let capacity_orig_thermal = capacity_orig;

    let mut uclamp_max_fits = capacity_orig == SCHED_CAPACITY_SCALE && uclamp_max == SCHED_CAPACITY_SCALE;
    uclamp_max_fits = !uclamp_max_fits && uclamp_max <= capacity_orig;
    fits = fits || uclamp_max_fits;

    uclamp_min = uclamp_min.min(uclamp_max);
    if fits && util < uclamp_min && uclamp_min > capacity_orig_thermal {
        return -1;
    }

    i32::from(fits)
}

/// Looks for an idle CPU in the asymmetric domain that fits best.
///
/// The schedstat patches count nothing here. **Source**: kernel/sched/fair.c, select_idle_capacity(), v6.1.
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

/// `asym_fits_cpu()`: true on machines with one capacity. **Source**: kernel/sched/fair.c, v6.1 to v6.12.
pub fn asym_fits_cpu<R: Recorder>(e: &mut Env<'_, R>, task: TaskUtil, cpu: Cpu) -> bool {
    if e.topology().asym_cpucapacity() {
        let fits = util_fits_cpu(e, task.util, task.min, task.max, cpu) > 0;
        return e.check(fits, || format!("asym_fits_cpu({}, {}, {}, {cpu})", task.util, task.min, task.max));
    }

    true
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), 6.1.192.
pub fn select_idle_sibling<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev: Cpu, target: Cpu) -> Cpu {
    e.enter("select_idle_sibling");
    e.value("target", target.0);
    e.sis().search += 1;
    // sis_scanned: target, prev and recent_used_cpu together.
    e.sis().scanned += 1;

    let mut has_idle_core = false;
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
        return e.exit(Exit::Prev, prev);
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
        e.sis().recent_hit += 1;
        return e.exit(Exit::RecentUsed, recent_used_cpu);
    }
    e.sis().recent_miss += u64::from(shares);
    e.sis().recent_miss_2021 += u64::from(candidate);

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
            && !e.patched(Patch::BUG_NO_IDLE_SMT)
            && e.cpus_share_cache(prev, target)
            && let Some(i) = select_idle_smt(e, p, sd, prev)
        {
            return i;
        }
    }

    if let Some(i) = select_idle_cpu(e, p, sd, has_idle_core, target) {
        return i;
    }

    e.fallback(target)
}

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), v6.1.
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
        new_cpu = find_idlest_cpu(e, sd, p, cpu, prev_cpu, sd_flag);
    } else if ttwu {
        new_cpu = select_idle_sibling(e, p, prev_cpu, new_cpu);
    }

    new_cpu
}
