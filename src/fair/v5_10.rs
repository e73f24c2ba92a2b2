// SPDX-License-Identifier: GPL-2.0-or-later
//! Linux 5.10.262 (Debian 11), kernel/sched/fair.c.
//!
//! Near v5.11: wake_affine_idle() passes over an idle prev_cpu that does not share cache, and the stable patches since ask
//! for the context and the capacity before a per-CPU kthread stacks. The kernel's function has SD_BALANCE_* and WF_*
//! flags as two arguments.
//!
//! Departs: energy-aware scheduling is off; thermal pressure and capacity inversion are 0; averages are taken as they are
//! in the state (sync_entity_load_avg() does nothing).

pub mod slow;

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::leaf::{Wrap, fits_capacity};
pub use crate::fair::v5_2::{
    record_wakee, set_idle_cores, test_idle_cores, update_idle_core, wake_affine_idle, wake_wide,
};
use crate::spec::{Patch, SchedFeat};
// The text of v5.11 without the patches that are bits there.
pub use crate::fair::v5_11::{select_idle_cpu, select_idle_smt, wake_affine_weight};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use slow::find_idlest_cpu;

/// Which of this_cpu and prev_cpu the search starts from. **Source**: kernel/sched/fair.c, wake_affine(), v5.10.
pub fn wake_affine<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, p: TaskId, this_cpu: Cpu, prev_cpu: Cpu) -> Cpu {
    e.enter("wake_affine");
    let mut target = None;

    if e.sched_feat(SchedFeat::WA_IDLE) {
        target = wake_affine_idle(e, this_cpu, prev_cpu);
        if e.patched(Patch::IDLE_PREV) && target.is_none() && e.available_idle_cpu(prev_cpu) {
            target = Some(prev_cpu);
        }
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

/// Looks for a core with all its CPUs idle; takes a core out of the mask also when it is returned.
///
/// **Source**: kernel/sched/fair.c, select_idle_core(), v5.10.
pub fn select_idle_core<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_core");
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
        }
        e.cpumask_andnot(&mut cpus, e.topology().smt_mask(core));

        if idle {
            return Some(e.exit(Exit::IdleCore, core));
        }
    }

    // No core was idle: the hint is taken back.
    set_idle_cores(e, target, false);

    e.nothing(Exit::IdleCore)
}

/// Whether a utilisation within uclamp bounds fits a CPU.
///
/// **Source**: kernel/sched/fair.c, util_fits_cpu(), 5.10.262. Departs: thermal pressure and capacity inversion are 0, and
/// uclamp counts as used (without it the bounds are 0 and 1024, which decide nothing on any capacity up to 1024).
pub fn util_fits_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    util: u64,
    mut uclamp_min: u64,
    uclamp_max: u64,
    cpu: Cpu,
) -> bool {
    const SCHED_CAPACITY_SCALE: u64 = 1024;
    let capacity = e.capacity_of(cpu);
    let mut fits = fits_capacity(util, capacity);

    let capacity_orig = e.capacity_orig_of(cpu);
    let capacity_orig_thermal = capacity_orig;

    let mut uclamp_max_fits = capacity_orig == SCHED_CAPACITY_SCALE && uclamp_max == SCHED_CAPACITY_SCALE;
    uclamp_max_fits = !uclamp_max_fits && uclamp_max <= capacity_orig;
    fits = fits || uclamp_max_fits;

    uclamp_min = uclamp_min.min(uclamp_max);
    if util < uclamp_min && capacity_orig != SCHED_CAPACITY_SCALE {
        fits = fits && uclamp_min <= capacity_orig_thermal;
    }

    fits
}

/// `task_util_est()`. **Source**: kernel/sched/fair.c, task_util_est() and _task_util_est(), 5.10.262, and v5.14 to v6.7.
pub fn task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    e.task_util(p).max(_task_util_est(e, p))
}

/// See [`task_util_est`].
pub fn _task_util_est<R: Recorder>(e: &mut Env<'_, R>, p: TaskId) -> u64 {
    let (ewma, enqueued) = e.util_est(p);
    ewma.max(enqueued)
}

/// Looks for an idle CPU in the asymmetric domain on which the task fits, else the idle one with the most capacity.
///
/// The schedstat patches count nothing here. **Source**: kernel/sched/fair.c, select_idle_capacity(), 5.10.262.
pub fn select_idle_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, sd: &Domain, target: Cpu) -> Option<Cpu> {
    e.enter("select_idle_capacity");
    let mut best_cap = 0;
    let mut best_cpu = None;
    let cpus_ptr = e.cpus_ptr(p);
    let cpus = e.cpumask_and(&sd.span, &cpus_ptr);

    let task_util = task_util_est(e, p);
    let util_min = e.uclamp_min(p);
    let util_max = e.uclamp_max(p);

    for cpu in cpus.iter_wrap(target.index()) {
        let cpu_cap = e.capacity_of(cpu);

        if !e.available_idle_cpu(cpu) && !e.sched_idle_cpu(cpu) {
            continue;
        }
        if util_fits_cpu(e, task_util, util_min, util_max, cpu) {
            return Some(cpu);
        }

        if cpu_cap > best_cap {
            best_cap = cpu_cap;
            best_cpu = Some(cpu);
        }
    }

    best_cpu
}

/// The wakee's utilisation and its bounds, where capacities differ.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskUtil {
    /// task_util_est(p).
    pub util: u64,
    /// uclamp_eff_value(p, UCLAMP_MIN).
    pub min: u64,
    /// uclamp_eff_value(p, UCLAMP_MAX).
    pub max: u64,
}

/// `asym_fits_cpu()`: true on machines with one capacity. **Source**: kernel/sched/fair.c, 5.10.262.
pub fn asym_fits_cpu<R: Recorder>(e: &mut Env<'_, R>, task: TaskUtil, cpu: Cpu) -> bool {
    if e.topology().asym_cpucapacity() {
        let fits = util_fits_cpu(e, task.util, task.min, task.max, cpu);
        return e.check(fits, || format!("asym_fits_cpu({}, {}, {}, {cpu})", task.util, task.min, task.max));
    }

    true
}

/// Looks for an idle CPU near `target`. **Source**: kernel/sched/fair.c, select_idle_sibling(), 5.10.262.
pub fn select_idle_sibling<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, prev: Cpu, target: Cpu) -> Cpu {
    e.enter("select_idle_sibling");
    e.value("target", target.0);
    e.sis().search += 1;
    // sis_scanned: target, prev and recent_used_cpu together.
    e.sis().scanned += 1;

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
    let candidate = recent_used_cpu != prev && recent_used_cpu != target;
    let shares = candidate && e.cpus_share_cache(recent_used_cpu, target);
    if shares
        && (e.available_idle_cpu(recent_used_cpu) || e.sched_idle_cpu(recent_used_cpu))
        && e.cpu_allowed(recent_used_cpu, p)
        && asym_fits_cpu(e, task, recent_used_cpu)
    {
        e.set_recent_used_cpu(p, prev);
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

/// Selects a run queue for the task. **Source**: kernel/sched/fair.c, select_task_rq_fair(), 5.10.262.
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

        if want_affine {
            e.set_current_recent_used_cpu(cpu);
        }
    }

    new_cpu
}
