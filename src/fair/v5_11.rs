// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux v5.11, kernel/sched/fair.c: the text that the December 2020 series "Reduce scanning of runqueues in
//! select_idle_sibling" applies to. Its patches are bits here, each tested where the patch has its hunk.
//!
//! Departs: energy-aware scheduling is off (sched_energy_enabled() is false); averages are taken as they are in the state
//! (sync_entity_load_avg() does nothing).

pub mod slow;

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::{Wrap, fits_capacity, update_avg};
use crate::fair::v5_2::div_u64;
pub use crate::fair::v5_2::{
    _task_util_est, record_wakee, set_idle_cores, task_util_est, test_idle_cores, update_idle_core, wake_wide,
};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::{Patch, SchedFeat};
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use slow::find_idlest_cpu;

/// **Source**: kernel/sched/fair.c, wake_affine_idle(), v5.11 to v6.6 (an idle prev_cpu since d8fcb81f1acf).
pub fn wake_affine_idle<R: Recorder>(e: &mut Env<'_, R>, this_cpu: Cpu, prev_cpu: Cpu) -> Option<Cpu> {
    if e.available_idle_cpu(this_cpu) && e.cpus_share_cache(this_cpu, prev_cpu) {
        return Some(if e.available_idle_cpu(prev_cpu) { prev_cpu } else { this_cpu });
    }

    if e.sync() && e.nr_running(this_cpu) == 1 {
        return Some(this_cpu);
    }

    if e.available_idle_cpu(prev_cpu) {
        return Some(prev_cpu);
    }

    None
}

/// **Source**: kernel/sched/fair.c, wake_affine_weight(), v5.4 to v7.3.
pub fn wake_affine_weight<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: &Domain,
    p: TaskId,
    this_cpu: Cpu,
    prev_cpu: Cpu,
) -> Option<Cpu> {
    let mut this_eff_load = e.cpu_load(this_cpu) as i64;

    let sync = e.sync();
    if sync {
        let current_load = e.task_h_load(e.current());

        if current_load > this_eff_load as u64 {
            return Some(this_cpu);
        }

        this_eff_load = this_eff_load.wrapping_sub(current_load as i64);
    }

    let task_load = e.task_h_load(p) as i64;

    this_eff_load = this_eff_load.wrapping_add(task_load);
    if e.sched_feat(SchedFeat::WA_BIAS) {
        this_eff_load = this_eff_load.wrapping_mul(100);
    }
    this_eff_load = this_eff_load.wrapping_mul(e.capacity_of(prev_cpu) as i64);

    let mut prev_eff_load = e.cpu_load(prev_cpu) as i64;
    prev_eff_load = prev_eff_load.wrapping_sub(task_load);
    if e.sched_feat(SchedFeat::WA_BIAS) {
        prev_eff_load = prev_eff_load.wrapping_mul(i64::from(100 + sd.imbalance_pct.wrapping_sub(100) / 2));
    }
    prev_eff_load = prev_eff_load.wrapping_mul(e.capacity_of(this_cpu) as i64);

    if sync {
        prev_eff_load = prev_eff_load.wrapping_add(1);
    }

    e.value("this_eff_load", this_eff_load);
    e.value("prev_eff_load", prev_eff_load);
    (this_eff_load < prev_eff_load).then_some(this_cpu)
}

/// Which of this_cpu and prev_cpu the search starts from. **Source**: kernel/sched/fair.c, wake_affine(), v5.11 to v6.3.
pub fn wake_affine<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, p: TaskId, this_cpu: Cpu, prev_cpu: Cpu) -> Cpu {
    e.enter("wake_affine");
    let mut target = None;

    if e.sched_feat(SchedFeat::WA_IDLE) {
        target = wake_affine_idle(e, this_cpu, prev_cpu);
    }

    if e.sched_feat(SchedFeat::WA_WEIGHT) && target.is_none() {
        target = wake_affine_weight(e, sd, p, this_cpu, prev_cpu);
    }

    // Kernel bug, kept: prev_cpu counts, too (39afe5d6fc59, which is FIX_MOVE_AFFINE).
    if let Some(target) = target
        && !(e.patched(Patch::FIX_MOVE_AFFINE) && target != this_cpu)
    {
        e.ttwu_move_affine(target);
    }

    target.unwrap_or(prev_cpu)
}

/// Looks for a core with all its CPUs idle. **Source**: kernel/sched/fair.c, select_idle_core(), v5.11.
pub fn select_idle_core<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_core");
    let mut idle_candidate = None;

    if !e.topology().smt_present() {
        return e.nothing(Exit::IdleCore);
    }

    if !test_idle_cores(e, target, false) {
        return e.nothing(Exit::IdleCore);
    }

    let cpus_ptr = e.cpus_ptr(p);
    let mut cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    let mut wrap = Wrap::from(target.index());
    while let Some(core) = wrap.next(&cpus) {
        let mut idle = true;

        for cpu in e.topology().smt_mask(core).iter() {
            // sis_scanned: each sibling that the inner loop visits.
            e.sis().scanned += 1;
            if !e.available_idle_cpu(cpu) {
                idle = false;
                break;
            }

            if e.patched(Patch::IDLE_CANDIDATE) && idle_candidate.is_none() {
                // Kernel bug, kept: not the CPUs of the domain (23d04d8c6b8e, which is FIX_CANDIDATE).
                let usable = if e.patched(Patch::FIX_CANDIDATE) { &cpus } else { &cpus_ptr };
                if usable.test(cpu) {
                    idle_candidate = Some(cpu);
                }
            }
        }

        if idle {
            return Some(e.exit(Exit::IdleCore, core));
        }

        e.cpumask_andnot(&mut cpus, e.topology().smt_mask(core));
    }

    // No core was idle: the hint is taken back.
    set_idle_cores(e, target, false);

    match idle_candidate {
        Some(cpu) => Some(e.exit(Exit::IdleCandidate, cpu)),
        None => e.nothing(Exit::IdleCore),
    }
}

/// Looks for an idle sibling of `target`. **Source**: kernel/sched/fair.c, select_idle_smt(), v5.11.
pub fn select_idle_smt<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_smt");
    if !e.topology().smt_present() {
        return e.nothing(Exit::IdleSmt);
    }

    for cpu in e.topology().smt_mask(target).iter() {
        // sis_scanned: before the affinity test.
        e.sis().scanned += 1;
        if !e.cpu_allowed(cpu, p) || !sd.span.test(cpu) {
            continue;
        }
        if e.available_idle_cpu(cpu) || e.sched_idle_cpu(cpu) {
            return Some(e.exit(Exit::IdleSmt, cpu));
        }
    }

    e.nothing(Exit::IdleSmt)
}

/// Looks for an idle CPU in the LLC, as far as the average idle time pays for it.
///
/// **Source**: kernel/sched/fair.c, select_idle_cpu(), v5.11.
pub fn select_idle_cpu<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_cpu");
    let mut nr = i32::MAX;
    let mut cpus = sd.span;
    let mut time = 0;
    let this = e.this_cpu();

    if e.topology().sd_llc(this).is_none() {
        return e.nothing(Exit::IdleCpu);
    }

    if e.patched(Patch::SCAN_COST) {
        let cpus_ptr = e.cpus_ptr(p);
        cpus = e.cpumask_and(&sd.span, &cpus_ptr);
    }

    if !e.patched(Patch::NO_SIS_AVG_CPU) {
        let avg_idle = e.avg_idle_ns(this) / 512;
        let avg_cost = e.avg_scan_cost_ns(this).wrapping_add(1);

        if e.sched_feat(SchedFeat::SIS_AVG_CPU) && avg_idle < avg_cost {
            return e.give_up();
        }
    }

    if e.sched_feat(SchedFeat::SIS_PROP) {
        let avg_idle = e.avg_idle_ns(this) / 512;
        let avg_cost = e.avg_scan_cost_ns(this).wrapping_add(1);
        let span_avg = u64::from(sd.span.weight()).wrapping_mul(avg_idle);

        nr = if span_avg > avg_cost.wrapping_mul(4) { div_u64(span_avg, avg_cost) } else { 4 };
        e.value("nr", nr);

        if e.patched(Patch::SCAN_COST) {
            time = e.cpu_clock();
        }
    }

    if !e.patched(Patch::SCAN_COST) {
        time = e.cpu_clock();

        let cpus_ptr = e.cpus_ptr(p);
        cpus = e.cpumask_and(&sd.span, &cpus_ptr);
    }

    let mut found = None;
    for cpu in cpus.iter_wrap(target.index()) {
        // sis_scanned: each turn of the loop, the one that stops at the limit included.
        e.sis().scanned += 1;
        nr = nr.wrapping_sub(1);
        if nr == 0 {
            return e.give_up();
        }
        if e.available_idle_cpu(cpu) || e.sched_idle_cpu(cpu) {
            found = Some(cpu);
            break;
        }
    }

    if !e.patched(Patch::SCAN_COST) || e.sched_feat(SchedFeat::SIS_PROP) {
        time = e.cpu_clock().wrapping_sub(time);
        let avg = e.avg_scan_cost_ns(this);
        e.set_avg_scan_cost_ns(this, update_avg(avg, time));
    }

    match found {
        Some(cpu) => Some(e.exit(Exit::IdleCpu, cpu)),
        None => e.nothing(Exit::IdleCpu),
    }
}

/// Looks for an idle CPU in the asymmetric domain on which the task fits, else the idle one with the most capacity.
///
/// The schedstat patches count nothing here. **Source**: kernel/sched/fair.c, select_idle_capacity(), v5.11.
pub fn select_idle_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_capacity");
    let mut best_cap = 0;
    let mut best_cpu = None;
    let cpus_ptr = e.cpus_ptr(p);
    let cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    let task_util = uclamp_task_util(e, p);

    for cpu in cpus.iter_wrap(target.index()) {
        let cpu_cap = e.capacity_of(cpu);

        if !e.available_idle_cpu(cpu) && !e.sched_idle_cpu(cpu) {
            continue;
        }
        if fits_capacity(task_util, cpu_cap) {
            return Some(cpu);
        }

        if cpu_cap > best_cap {
            best_cap = cpu_cap;
            best_cpu = Some(cpu);
        }
    }

    best_cpu
}

/// `uclamp_task_util()`. **Source**: kernel/sched/fair.c, v5.11.
pub fn uclamp_task_util<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    // clamp() of the kernel: the upper bound wins over the lower.
    task_util_est(e, p).max(e.uclamp_min(p)).min(e.uclamp_max(p))
}

/// `asym_fits_capacity()`: true on machines with one capacity. **Source**: kernel/sched/fair.c, v5.11.
pub fn asym_fits_capacity<R: Recorder>(e: &mut Env<'_, R>, task_util: u64, cpu: Cpu) -> bool {
    if e.topology().asym_cpucapacity() {
        let fits = fits_capacity(task_util, e.capacity_of(cpu));
        return e.check(fits, || format!("asym_fits_capacity({task_util}, {cpu})"));
    }

    true
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), v5.11.
pub fn select_idle_sibling<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev: Cpu, target: Cpu) -> Cpu {
    e.enter("select_idle_sibling");
    e.value("target", target.0);
    e.sis().search += 1;
    // sis_scanned: target, prev and recent_used_cpu together.
    e.sis().scanned += 1;

    let mut task_util = 0;
    if e.topology().asym_cpucapacity() {
        task_util = uclamp_task_util(e, p);
    }

    if e.patched(Patch::BUG_ASYM_FIRST)
        && let Some(cpu) = select_capacity(e, p, target)
    {
        return cpu;
    }

    if (e.available_idle_cpu(target) || e.sched_idle_cpu(target)) && asym_fits_capacity(e, task_util, target) {
        return e.exit(Exit::Target, target);
    }

    if prev != target
        && e.cpus_share_cache(prev, target)
        && (e.available_idle_cpu(prev) || e.sched_idle_cpu(prev))
        && asym_fits_capacity(e, task_util, prev)
    {
        return e.exit(Exit::Prev, prev);
    }

    // Kernel bug, kept: also from interrupt context (8b4e74ccb582), and without a look at the capacity (014ba44e8184).
    if e.is_per_cpu_kthread(e.current())
        && (!e.patched(Patch::KTHREAD_IN_TASK) || e.in_task())
        && prev == e.this_cpu()
        && e.nr_running(prev) <= 1
        && (!e.patched(Patch::KTHREAD_FITS) || asym_fits_capacity(e, task_util, prev))
    {
        return e.exit(Exit::PerCpuKthread, prev);
    }

    let recent_used_cpu = e.recent_used_cpu(p);
    if e.patched(Patch::RECENT_USED | Patch::RECENT_USED_V1) {
        e.set_recent_used_cpu(p, prev);
    }
    let candidate = recent_used_cpu != prev && recent_used_cpu != target;
    let shares = candidate && e.cpus_share_cache(recent_used_cpu, target);
    if shares
        && (e.available_idle_cpu(recent_used_cpu) || e.sched_idle_cpu(recent_used_cpu))
        && recent_allowed(e, p, recent_used_cpu)
        && asym_fits_capacity(e, task_util, recent_used_cpu)
    {
        if !e.patched(Patch::RECENT_USED) {
            e.set_recent_used_cpu(p, prev);
        }
        e.sis().recent_hit += 1;
        return e.exit(Exit::RecentUsed, recent_used_cpu);
    }
    e.sis().recent_miss += u64::from(shares);
    e.sis().recent_miss_2021 += u64::from(candidate);

    if let Some(cpu) = select_capacity(e, p, target) {
        return cpu;
    }

    let Some(sd) = e.topology().sd_llc(target) else {
        return e.exit(Exit::NoLlc, target);
    };
    let sd = e.topology().domain(sd);
    e.sis().domain_search += 1;

    if let Some(i) = select_idle_core(e, p, sd, target) {
        return i;
    }

    if let Some(i) = select_idle_cpu(e, p, sd, target) {
        return i;
    }

    if let Some(i) = select_idle_smt(e, p, sd, target) {
        return i;
    }

    e.fallback(target)
}

/// The search in the asymmetric domain, where there is one, which then decides.
fn select_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, target: Cpu) -> Option<Cpu> {
    if !e.topology().asym_cpucapacity() {
        return None;
    }
    let sd = e.topology().sd_asym(target)?;
    Some(match select_idle_capacity(e, p, e.topology().domain(sd), target) {
        Some(i) => e.exit(Exit::AsymCapacity, i),
        None => e.exit(Exit::AsymFallback, target),
    })
}

/// Whether the wakee may use the recently used CPU.
///
/// Kernel bug, kept: patch 3/4 stores prev in p->recent_used_cpu before this test reads it, so that the affinity of *prev*
/// is tested. Merged as 89aafd67f28c (5.15), fixed by ae2ad293d6be (6.6), which is [`Patch::FIX_CPUS_PTR`].
fn recent_allowed<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, recent_used_cpu: Cpu) -> bool {
    let tested = if e.patched(Patch::FIX_CPUS_PTR) { recent_used_cpu } else { e.recent_used_cpu(p) };
    e.cpu_allowed(tested, p)
}

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), v5.11.
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

        if want_affine && !e.patched(Patch::RECENT_USED | Patch::RECENT_USED_V1) {
            e.set_current_recent_used_cpu(cpu);
        }
    }

    new_cpu
}
