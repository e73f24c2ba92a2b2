// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of v6.12, which was renamed in v6.10; with a stable change as a bit that of 6.12.117.

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::groups::{Group, Reach, groups};
pub use crate::fair::v5_2::slow::cpu_util;
use crate::fair::v5_2::slow::{descend, no_contribution};
pub use crate::fair::v5_11::slow::find_idlest_group_cpu as sched_balance_find_dst_group_cpu;
use crate::fair::v5_11::slow::{classify, node_is, note_group, stay_busy};
pub use crate::fair::v6_1::slow::{
    GroupType, SgLbStats, adjust_numa_imbalance, cpu_load_without, cpu_runnable_without, task_running_on_cpu,
    update_pick_idlest,
};
use crate::fair::v6_1::slow::{NR_CPUS, idle_imbalance};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::{Patch, SchedFeat};
use crate::topology::{Domain, DomainId, SdFlags};
use crate::units::Cpu;

use super::{_task_util_est, task_util_est, util_fits_cpu};

/// **Source**: kernel/sched/fair.c, cpu_util_without() and cpu_util(cpu, p, -1, 0), v6.8 to v7.3 (no boost).
pub fn cpu_util_without<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u64 {
    if no_contribution(e, cpu, p) {
        return cpu_util(e, cpu);
    }

    let mut util = e.cfs_util_avg(cpu);

    util = util.saturating_sub(e.task_util(p));

    if e.sched_feat(SchedFeat::UTIL_EST) {
        let mut util_est = e.cfs_util_est_enqueued(cpu);

        if e.on_rq(p) || e.current() == p {
            util_est = util_est.saturating_sub(_task_util_est(e, p));
        }

        util = util.max(util_est);
    }

    util.min(e.capacity_orig_of(cpu))
}

/// `task_fits_cpu()`. **Source**: kernel/sched/fair.c, v6.12 to v7.3.
pub fn task_fits_cpu<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, cpu: Cpu) -> bool {
    let (min, max) = (e.uclamp_min(p), e.uclamp_max(p));
    let util = task_util_est(e, p);
    util_fits_cpu(e, util, min, max, cpu) > 0
}

/// Sums up a group. Kernel bug, kept: over CPUs that `p` may not use, too; 6.12.117 has the fix,
/// [`Patch::SLOW_ALLOWED`].
///
/// **Source**: kernel/sched/fair.c, update_sg_wakeup_stats(), v6.12, with the bit 6.12.117 to v7.3.
pub fn update_sg_wakeup_stats<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, group: &Group, p: TaskId) -> SgLbStats {
    let mut sgs = SgLbStats::ZERO;
    let asym = sd.flags.contains(SdFlags::ASYM_CPUCAPACITY);

    // Until a CPU is found that the task fits.
    if asym {
        sgs.group_misfit_task_load = true;
    }

    let cpus = if e.patched(Patch::SLOW_ALLOWED) { group.span & e.cpus_ptr(p) } else { group.span };
    for i in cpus.iter() {
        sgs.group_load = sgs.group_load.wrapping_add(cpu_load_without(e, i, p));
        sgs.group_util = sgs.group_util.wrapping_add(cpu_util_without(e, i, p));
        sgs.group_runnable = sgs.group_runnable.wrapping_add(cpu_runnable_without(e, i, p));
        let local = task_running_on_cpu(e, i, p);

        let nr_running = e.nr_running(i).wrapping_sub(local);
        sgs.sum_nr_running = sgs.sum_nr_running.wrapping_add(nr_running);

        if nr_running == 0 && e.idle_cpu_without(i, p) {
            sgs.idle_cpus += 1;
        }

        if asym && sgs.group_misfit_task_load && task_fits_cpu(e, p, i) {
            sgs.group_misfit_task_load = false;
        }
    }

    classify(sd, group, &mut sgs);
    sgs
}

/// The least busy group of `sd`; `None`: stay. **Source**: kernel/sched/fair.c, sched_balance_find_dst_group(), v6.12.
pub fn sched_balance_find_dst_group<R: Recorder>(
    e: &mut Env<'_, R>,
    id: DomainId,
    p: TaskId,
    this_cpu: Cpu,
) -> Option<Group> {
    e.enter("sched_balance_find_dst_group");
    let sd = e.topology().domain(id);
    let groups = groups(e, this_cpu, id, Reach::Inside);
    let cpus_ptr = e.cpus_ptr(p);
    let mut idlest: Option<(&Group, SgLbStats)> = None;
    let mut local: Option<(&Group, SgLbStats)> = None;

    for group in &groups {
        if !group.span.intersects(&cpus_ptr) {
            continue;
        }

        let local_group = group.span.test(this_cpu);
        let sgs = update_sg_wakeup_stats(e, sd, group, p);
        note_group(e, group, &sgs);

        if local_group {
            local = Some((group, sgs));
        } else {
            let idlest_sgs = idlest.as_ref().map_or(&SgLbStats::WORST, |(_, sgs)| sgs);
            if update_pick_idlest(idlest.as_ref().map(|(group, _)| *group), idlest_sgs, group, &sgs) {
                idlest = Some((group, sgs));
            }
        }
    }

    let (idlest, idlest_sgs) = idlest?;

    let Some((local, local_sgs)) = local else {
        return Some(*idlest);
    };

    if local_sgs.group_type < idlest_sgs.group_type {
        return None;
    }

    if local_sgs.group_type > idlest_sgs.group_type {
        return Some(*idlest);
    }

    if stay_busy(sd, (local, &local_sgs), (idlest, &idlest_sgs)) {
        return None;
    }

    if local_sgs.group_type == GroupType::HasSpare {
        if sd.flags.contains(SdFlags::NUMA) {
            let mut imb_numa_nr = sd.imb_numa_nr;
            let numa_preferred_nid = e.numa_preferred_nid(p);
            if node_is(e, Some(this_cpu), numa_preferred_nid) {
                return None;
            }

            if node_is(e, idlest.span.first(), numa_preferred_nid) {
                return Some(*idlest);
            }

            // Stay close to the waker while few tasks run here, no more than the task may use CPUs.
            if e.nr_cpus_allowed(p) != NR_CPUS {
                let cpus = e.cpumask_and(&local.span, &cpus_ptr);
                imb_numa_nr = imb_numa_nr.min(cpus.weight());
            }

            let imbalance = idle_imbalance(e, &local_sgs, &idlest_sgs);
            e.value("imbalance", imbalance);
            e.value("imb_numa_nr", imb_numa_nr);
            if adjust_numa_imbalance(imbalance, local_sgs.sum_nr_running.wrapping_add(1), imb_numa_nr) == 0 {
                return None;
            }
        }

        if local_sgs.idle_cpus >= idlest_sgs.idle_cpus {
            return None;
        }
    }

    Some(*idlest)
}

/// From `sd` down: the idlest group, its idlest CPU, then the domains below that. **Source**: kernel/sched/fair.c,
/// sched_balance_find_dst_cpu(), v6.12.
pub fn sched_balance_find_dst_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: DomainId,
    p: TaskId,
    cpu: Cpu,
    prev_cpu: Cpu,
    sd_flag: SdFlags,
) -> Cpu {
    e.enter("sched_balance_find_dst_cpu");
    let cpus_ptr = e.cpus_ptr(p);
    if !e.topology().domain(sd).span.intersects(&cpus_ptr) {
        return e.exit(Exit::SlowOutside, prev_cpu);
    }

    let new_cpu = descend(e, sd, cpu, sd_flag, |e, sd, cpu| {
        let group = sched_balance_find_dst_group(e, sd, p, cpu)?;
        Some(sched_balance_find_dst_group_cpu(e, &group, p, cpu))
    });
    e.exit(Exit::Slow, new_cpu)
}
