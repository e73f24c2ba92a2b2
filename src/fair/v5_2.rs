// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux v5.2, kernel/sched/fair.c: the base of the June 2019 RFC "Scheduler Soft Affinity", whose patches 2/3 and 3/3 are
//! bits here, tested where they have their hunks. (1/3 is the system call.)
//!
//! Departs: energy-aware scheduling is off; load indexes are 0, as on every machine but a few, so that LB_BIAS decides
//! nothing; averages are taken as they are in the state (sync_entity_load_avg() does nothing). Every domain has
//! SD_LOAD_BALANCE.

pub mod slow;

use crate::cpumask::Cpumask;
use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::{Wrap, fits_capacity, update_avg};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::{Patch, SchedFeat};
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use slow::find_idlest_cpu;

/// `time_after()`: jiffies wrap. **Source**: include/linux/jiffies.h.
fn time_after(a: u64, b: u64) -> bool {
    (b.wrapping_sub(a) as i64) < 0
}

/// Counts how often the waker changes partners. **Source**: kernel/sched/fair.c, record_wakee(), v5.2 to v7.3.
pub fn record_wakee<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) {
    let (jiffies, hz) = (e.state.jiffies, u64::from(e.state.hz));
    let (wakee_flip_decay_ts, last_wakee) = e.last_wakee();
    if time_after(jiffies, wakee_flip_decay_ts.wrapping_add(hz)) {
        e.decay_wakee_flips(jiffies);
    }

    if last_wakee != Some(p) {
        e.flip_wakee(p);
    }
}

/// Whether waker and wakee both have so many partners that the load had better spread.
///
/// **Source**: kernel/sched/fair.c, wake_wide(), v5.2 to v7.3.
pub fn wake_wide<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> bool {
    let factor = e.topology().sd_llc_size(e.this_cpu());
    let (mut master, mut slave) = e.wakee_flips(e.current(), p, factor);
    if master < slave {
        std::mem::swap(&mut master, &mut slave);
    }
    let wide = !(slave < factor || master < slave.wrapping_mul(factor));
    e.books.wide = Some(wide);
    e.check(wide, || format!("wake_wide(p): flips {master} and {slave}, LLC size {factor}"))
}

/// **Source**: kernel/sched/fair.c, wake_affine_idle(), v5.2 to v5.10 (an idle prev_cpu elsewhere is passed over until
/// d8fcb81f1acf).
pub fn wake_affine_idle<R: Recorder>(e: &mut Env<'_, R>, this_cpu: Cpu, prev_cpu: Cpu) -> Option<Cpu> {
    if e.available_idle_cpu(this_cpu) && e.cpus_share_cache(this_cpu, prev_cpu) {
        return Some(if e.available_idle_cpu(prev_cpu) { prev_cpu } else { this_cpu });
    }

    if e.sync() && e.nr_running(this_cpu) == 1 {
        return Some(this_cpu);
    }

    None
}

/// `weighted_cpuload()`, which source_load() and target_load() are at load index 0. **Source**: kernel/sched/fair.c, v5.2.
pub fn weighted_cpuload<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> u64 {
    e.cfs_runnable_load_avg(cpu)
}

/// **Source**: kernel/sched/fair.c, wake_affine_weight(), v5.2.
pub fn wake_affine_weight<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: &Domain,
    p: TaskId,
    this_cpu: Cpu,
    prev_cpu: Cpu,
) -> Option<Cpu> {
    let mut this_eff_load = weighted_cpuload(e, this_cpu) as i64;

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

    let mut prev_eff_load = weighted_cpuload(e, prev_cpu) as i64;
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

/// Which of this_cpu and prev_cpu the search starts from. **Source**: kernel/sched/fair.c, wake_affine(), v5.2.
pub fn wake_affine<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, p: TaskId, this_cpu: Cpu, prev_cpu: Cpu) -> Cpu {
    e.enter("wake_affine");
    let mut target = None;

    if e.sched_feat(SchedFeat::WA_IDLE) {
        target = wake_affine_idle(e, this_cpu, prev_cpu);
    }

    if e.sched_feat(SchedFeat::WA_WEIGHT) && target.is_none() {
        target = wake_affine_weight(e, sd, p, this_cpu, prev_cpu);
    }

    // Kernel bug, kept: prev_cpu counts, too (39afe5d6fc59).
    if let Some(target) = target {
        e.ttwu_move_affine(target);
    }

    target.unwrap_or(prev_cpu)
}

/// `set_idle_cores()`: of `cpu`'s LLC, if it has one. **Source**: kernel/sched/fair.c, v5.2 to v6.12.
pub fn set_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, val: bool) {
    if let Some(sds) = e.topology().llc_shared(cpu) {
        e.set_has_idle_cores(sds, val);
    }
}

/// `test_idle_cores()`: of `cpu`'s LLC, `def` without one. **Source**: kernel/sched/fair.c, v5.2 to v5.14.
pub fn test_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, def: bool) -> bool {
    if let Some(sds) = e.topology().llc_shared(cpu) {
        return e.has_idle_cores(sds);
    }

    def
}

/// A CPU goes idle: if its siblings are idle too, there is an idle core.
///
/// **Source**: kernel/sched/fair.c, __update_idle_core(), v5.2 to v5.14.
pub fn update_idle_core<R: Recorder>(e: &mut Env<'_, R>, core: Cpu) {
    e.enter("__update_idle_core");
    if test_idle_cores(e, core, true) {
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

/// Looks for a core with all its CPUs idle. **Source**: kernel/sched/fair.c, select_idle_core(), v5.2 and the RFC.
pub fn select_idle_core<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_core");
    if !e.topology().smt_present() {
        return e.nothing(Exit::IdleCore);
    }

    if !test_idle_cores(e, target, false) {
        return e.nothing(Exit::IdleCore);
    }

    if e.patched(Patch::SOFT_AFFINITY) {
        if let Some(core) = select_idle_core_soft(e, p, sd, target) {
            return Some(core);
        }
    } else {
        let cpus_ptr = e.cpus_ptr(p);
        let mut cpus = e.cpumask_and(&sd.span, &cpus_ptr);
        e.mask("scans cores of p->cpus_allowed", &cpus);

        let mut wrap = Wrap::from(target.index());
        while let Some(core) = wrap.next(&cpus) {
            let mut idle = true;

            for cpu in e.topology().smt_mask(core).iter() {
                cpus.clear(cpu);
                // sis_scanned: each sibling that the inner loop visits.
                e.sis().scanned += 1;
                if !e.available_idle_cpu(cpu) {
                    idle = false;
                }
            }

            if idle {
                return Some(e.exit(Exit::IdleCore, core));
            }
        }
    }

    // No core was idle: the hint is taken back.
    set_idle_cores(e, target, false);

    e.nothing(Exit::IdleCore)
}

/// The RFC's two scans: the preferred CPUs, then the rest of the allowed ones.
fn select_idle_core_soft<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    let cpus_preferred = e.cpus_preferred(p);
    let mut cpus = e.cpumask_and(&sd.span, &cpus_preferred);
    e.mask("scans cores of p->cpus_preferred", &cpus);
    if let Some(core) = scan_cpu_mask_for_idle_cores(e, &mut cpus, target) {
        return Some(core);
    }

    if !e.affinity_unequal(p) {
        return None;
    }

    let cpus_ptr = e.cpus_ptr(p);
    cpus = e.cpumask_and(&sd.span, &cpus_ptr);
    e.cpumask_andnot(&mut cpus, &cpus_preferred);
    e.mask("scans cores of p->cpus_allowed without p->cpus_preferred", &cpus);
    scan_cpu_mask_for_idle_cores(e, &mut cpus, target)
}

/// Looks at virtual CPUs even if they are preempted: idle_cpu(), where v5.2 asks available_idle_cpu().
///
/// **Source**: kernel/sched/fair.c, scan_cpu_mask_for_idle_cores(), the RFC's 2/3.
fn scan_cpu_mask_for_idle_cores<R: Recorder>(e: &mut Env<'_, R>, cpus: &mut Cpumask, target: Cpu) -> Option<Cpu> {
    let mut wrap = Wrap::from(target.index());
    while let Some(core) = wrap.next(cpus) {
        let mut idle = true;

        for cpu in e.topology().smt_mask(core).iter() {
            cpus.clear(cpu);
            e.sis().scanned += 1;
            if !e.idle_cpu(cpu) {
                idle = false;
            }
        }

        if idle {
            return Some(e.exit(Exit::IdleCore, core));
        }
    }

    None
}

/// Looks for an idle sibling of `target`.
///
/// Kernel bug, kept: the domain's span is not asked, so that isolated siblings count (df3cb4ea1fb6).
/// **Source**: kernel/sched/fair.c, select_idle_smt(), v5.2 and the RFC.
pub fn select_idle_smt<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_smt");
    if !e.topology().smt_present() {
        return e.nothing(Exit::IdleSmt);
    }

    if e.patched(Patch::SOFT_AFFINITY) {
        let cpus_preferred = e.cpus_preferred(p);
        e.mask("scans siblings in p->cpus_preferred", &(*e.topology().smt_mask(target) & cpus_preferred));
        let cpu = scan_cpu_mask_for_idle_smt(e, &cpus_preferred, target);

        if cpu.is_some() || !e.affinity_unequal(p) {
            return cpu;
        }

        let mut cpus = e.cpus_ptr(p);
        e.cpumask_andnot(&mut cpus, &cpus_preferred);
        e.mask("scans siblings in the rest of p->cpus_allowed", &(*e.topology().smt_mask(target) & cpus));

        return scan_cpu_mask_for_idle_smt(e, &cpus, target);
    }

    let cpus_ptr = e.cpus_ptr(p);
    e.mask("scans siblings in p->cpus_allowed", &(*e.topology().smt_mask(target) & cpus_ptr));
    for cpu in e.topology().smt_mask(target).iter() {
        // sis_scanned: before the affinity test.
        e.sis().scanned += 1;
        if !e.cpu_allowed(cpu, p) || (e.patched(Patch::FIX_SMT_SPAN) && !sd.span.test(cpu)) {
            continue;
        }
        if e.available_idle_cpu(cpu) {
            return Some(e.exit(Exit::IdleSmt, cpu));
        }
    }

    e.nothing(Exit::IdleSmt)
}

/// **Source**: kernel/sched/fair.c, scan_cpu_mask_for_idle_smt(), the RFC's 2/3.
fn scan_cpu_mask_for_idle_smt<R: Recorder>(e: &mut Env<'_, R>, cpus: &Cpumask, target: Cpu) -> Option<Cpu> {
    for cpu in e.topology().smt_mask(target).iter() {
        e.sis().scanned += 1;
        if !cpus.test(cpu) {
            continue;
        }
        if e.idle_cpu(cpu) {
            return Some(e.exit(Exit::IdleSmt, cpu));
        }
    }

    e.nothing(Exit::IdleSmt)
}

/// How a scan of single CPUs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    /// With an idle CPU.
    Found(Cpu),
    /// At its limit: -1.
    GaveUp,
    /// With none: the loop variable is at or above nr_cpumask_bits.
    RanOut,
}

/// Kernel bug, kept: CPUs that the task may not use are counted against the limit (60588bfa223f).
///
/// **Source**: kernel/sched/fair.c, the loop of select_idle_cpu(), v5.2, which the RFC's 2/3 moved to
/// scan_cpu_mask_for_idle_cpu().
fn scan_cpu_mask_for_idle_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    cpus: &Cpumask,
    target: Cpu,
    sd: &Domain,
    nr: &mut i32,
) -> Scan {
    let walked = if e.patched(Patch::FIX_SCAN_ALLOWED) { e.cpumask_and(&sd.span, cpus) } else { sd.span };
    for cpu in walked.iter_wrap(target.index()) {
        // sis_scanned: each turn of the loop, the one that stops at the limit included.
        e.sis().scanned += 1;
        *nr = nr.wrapping_sub(1);
        if *nr == 0 {
            return Scan::GaveUp;
        }
        if !cpus.test(cpu) {
            continue;
        }
        if e.available_idle_cpu(cpu) {
            return Scan::Found(cpu);
        }
    }

    Scan::RanOut
}

/// `div_u64()` into an int: the divisor is 32 bits wide. (A divisor of 0, an average scan cost of 4.29 s, would stop the
/// kernel; here it counts as 1.)
pub(crate) fn div_u64(dividend: u64, divisor: u64) -> i32 {
    (dividend / u64::from((divisor as u32).max(1))) as i32
}

/// Looks for an idle CPU in the LLC, as far as the average idle time pays for it.
///
/// **Source**: kernel/sched/fair.c, select_idle_cpu(), v5.2 and the RFC.
pub fn select_idle_cpu<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_cpu");
    let mut nr = i32::MAX;
    let this = e.this_cpu();

    if e.topology().sd_llc(this).is_none() {
        return e.nothing(Exit::IdleCpu);
    }

    let avg_idle = e.avg_idle_ns(this) / 512;
    let avg_cost = e.avg_scan_cost_ns(this).wrapping_add(1);

    if e.sched_feat(SchedFeat::SIS_AVG_CPU) && avg_idle < avg_cost {
        return e.give_up();
    }

    if e.sched_feat(SchedFeat::SIS_PROP) {
        let span_avg = u64::from(sd.span.weight()).wrapping_mul(avg_idle);
        nr = if span_avg > avg_cost.wrapping_mul(4) { div_u64(span_avg, avg_cost) } else { 4 };
        e.value("nr", nr);
    }

    let nr_begin = nr;
    let mut time = e.cpu_clock();

    let mut scan;
    if e.patched(Patch::SOFT_AFFINITY) {
        let cpus_preferred = e.cpus_preferred(p);
        e.mask("scans p->cpus_preferred", &(sd.span & cpus_preferred));
        scan = scan_cpu_mask_for_idle_cpu(e, &cpus_preferred, target, sd, &mut nr);

        // Bug of the patch, kept: a scan that ran out leaves the loop variable at nr_cpumask_bits or above, not at target.
        // The second scan is therefore left out where it is wanted, and made where target itself was idle.
        let again = match e.patched(Patch::FIX_SECOND_SCAN) {
            true => scan == Scan::RanOut,
            false => scan == Scan::Found(target) && nr < nr_begin.wrapping_sub(1),
        };
        if nr != 0
            && e.affinity_unequal(p)
            && e.check(again, || "second scan: cpu == target && nr < nr_begin - 1".into())
        {
            let mut cpus = e.cpus_ptr(p);
            e.cpumask_andnot(&mut cpus, &cpus_preferred);
            e.mask("scans p->cpus_allowed without p->cpus_preferred", &(sd.span & cpus));

            scan = scan_cpu_mask_for_idle_cpu(e, &cpus, target, sd, &mut nr);
        }
    } else {
        let cpus_ptr = e.cpus_ptr(p);
        e.mask("scans p->cpus_allowed", &(sd.span & cpus_ptr));
        scan = scan_cpu_mask_for_idle_cpu(e, &cpus_ptr, target, sd, &mut nr);
        if scan == Scan::GaveUp {
            return e.give_up();
        }
    }

    time = e.cpu_clock().wrapping_sub(time);
    let cost = e.avg_scan_cost_ns(this);
    e.set_avg_scan_cost_ns(this, update_avg(cost, time));

    match scan {
        Scan::Found(cpu) => Some(e.exit(Exit::IdleCpu, cpu)),
        Scan::GaveUp => e.give_up(),
        Scan::RanOut => e.nothing(Exit::IdleCpu),
    }
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), v5.2.
pub fn select_idle_sibling<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev: Cpu, target: Cpu) -> Cpu {
    e.enter("select_idle_sibling");
    e.value("target", target.0);
    e.sis().search += 1;
    // sis_scanned: target, prev and recent_used_cpu together.
    e.sis().scanned += 1;

    if e.available_idle_cpu(target) {
        return e.exit(Exit::Target, target);
    }

    if prev != target && e.cpus_share_cache(prev, target) && e.available_idle_cpu(prev) {
        return e.exit(Exit::Prev, prev);
    }

    let recent_used_cpu = e.recent_used_cpu(p);
    let candidate = recent_used_cpu != prev && recent_used_cpu != target;
    let shares = candidate && e.cpus_share_cache(recent_used_cpu, target);
    if shares && e.available_idle_cpu(recent_used_cpu) && e.cpu_allowed(recent_used_cpu, p) {
        e.set_recent_used_cpu(p, prev);
        e.sis().recent_hit += 1;
        return e.exit(Exit::RecentUsed, recent_used_cpu);
    }
    e.sis().recent_miss += u64::from(shares);
    e.sis().recent_miss_2021 += u64::from(candidate);

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

/// `task_util_est()`, with the flag bit UTIL_AVG_UNCHANGED in the estimate.
///
/// **Source**: kernel/sched/fair.c, task_util_est() and _task_util_est(), v5.2 to v5.11.
pub fn task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    e.task_util(p).max(_task_util_est(e, p))
}

/// See [`task_util_est`].
pub fn _task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    const UTIL_AVG_UNCHANGED: u64 = 1;
    let (ewma, enqueued) = e.util_est(p);
    ewma.max(enqueued) | UTIL_AVG_UNCHANGED
}

/// `task_fits_capacity()`. **Source**: kernel/sched/fair.c, v5.2.
pub fn task_fits_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, capacity: u64) -> bool {
    fits_capacity(task_util_est(e, p), capacity)
}

/// Whether waking CPU or previous CPU are too small for the task: then no affine wakeup.
///
/// **Source**: kernel/sched/fair.c, wake_cap(), v5.2. Departs: rd->max_cpu_capacity counts every CPU.
pub fn wake_cap<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, cpu: Cpu, prev_cpu: Cpu) -> bool {
    if !e.topology().asym_cpucapacity() {
        return false;
    }

    let min_cap = e.capacity_orig_of(prev_cpu).min(e.capacity_orig_of(cpu));
    let max_cap = e.max_cpu_capacity();

    if max_cap - min_cap < max_cap >> 3 {
        return false;
    }

    let fits = task_fits_capacity(e, p, min_cap);
    !e.check(fits, || format!("task_fits_capacity(p, {min_cap})"))
}

/// The mask of the first level of search: with the RFC the preferred CPUs, with its tunables the allowed ones while the
/// first preferred CPU is busier than the first other.
///
/// **Source**: kernel/sched/fair.c, select_task_rq_fair(), the RFC's 2/3 and 3/3.
fn first_level<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> Cpumask {
    if !e.patched(Patch::SOFT_AFFINITY) {
        return e.cpus_ptr(p);
    }
    if !e.patched(Patch::TUNABLES) {
        return e.cpus_preferred(p);
    }

    if !e.affinity_unequal(p) {
        return e.cpus_ptr(p);
    }
    // cpumask_any() of an empty mask is nr_cpu_ids. Bug of the patch, kept: a run queue is taken there all the same.
    let none = Cpu(e.topology().nr_cpu_ids() as u16);
    let cpus_preferred = e.cpus_preferred(p);
    let cpux = cpus_preferred.first().unwrap_or(none);
    let mut cpus = e.cpus_ptr(p);
    e.cpumask_andnot(&mut cpus, &cpus_preferred);
    let cpuy = cpus.first().unwrap_or(none);
    let (sysctl_sched_preferred, sysctl_sched_allowed) = e.soft_affinity_tunables();
    let preferred = sysctl_sched_preferred.wrapping_mul(e.cfs_util_avg(cpux));
    let allowed = sysctl_sched_allowed.wrapping_mul(e.cfs_util_avg(cpuy));
    if e.check(preferred > allowed, || format!("sched_preferred: {preferred} > {allowed}")) {
        e.cpus_ptr(p)
    } else {
        cpus_preferred
    }
}

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), v5.2 and the RFC.
pub fn select_task_rq_fair<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev_cpu: Cpu) -> Cpu {
    e.enter("select_task_rq_fair");
    let cpu = e.this_cpu();
    let mut new_cpu = prev_cpu;
    let mut want_affine = false;
    let sd_flag = e.sd_flag();
    let ttwu = e.wakeup.kind == WakeKind::Ttwu;
    let cpus = first_level(e, p);
    if e.patched(Patch::SOFT_AFFINITY) {
        e.mask("first level: cpus", &cpus);
    }

    if ttwu {
        record_wakee(e, p);

        want_affine = !wake_wide(e, p)
            && !wake_cap(e, p, cpu, prev_cpu)
            && e.check(cpus.test(cpu), || format!("cpumask_test_cpu({cpu}, cpus)"));
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
        new_cpu = find_idlest_cpu(e, sd, p, (cpu, prev_cpu), sd_flag, &cpus);
    } else if ttwu {
        new_cpu = select_idle_sibling(e, p, prev_cpu, new_cpu);

        if want_affine {
            e.set_current_recent_used_cpu(cpu);
        }
    }

    new_cpu
}
