// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of 5.10.262: groups count allowed CPUs only, fitness is asked of each CPU, and between NUMA nodes any idle
//! CPU keeps the task local.

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::groups::{Group, Reach, groups};
pub use crate::fair::v5_2::slow::cpu_util;
use crate::fair::v5_2::slow::{descend, lsub_positive, no_contribution};
pub use crate::fair::v5_11::slow::{
    GroupType, SgLbStats, cpu_load_without, cpu_runnable_without, find_idlest_group_cpu, task_running_on_cpu,
    update_pick_idlest,
};
use crate::fair::v5_11::slow::{classify, node_is, note_group, stay_busy};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::SchedFeat;
use crate::topology::{Domain, DomainId, SdFlags};
use crate::units::Cpu;

use super::{_task_util_est, task_util_est, util_fits_cpu};

/// **Source**: kernel/sched/fair.c, cpu_util_without(), 5.10.262: the estimate has no flag bit.
pub fn cpu_util_without<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u64 {
    if no_contribution(e, cpu, p) {
        return cpu_util(e, cpu);
    }

    let mut util = e.cfs_util_avg(cpu);

    util = lsub_positive(util, e.task_util(p));

    if e.sched_feat(SchedFeat::UTIL_EST) {
        let mut estimated = e.cfs_util_est_enqueued(cpu);

        if e.on_rq(p) || e.current() == p {
            estimated = lsub_positive(estimated, _task_util_est(e, p));
        }

        util = util.max(estimated);
    }

    util.min(e.capacity_orig_of(cpu))
}

/// `task_fits_cpu()`. **Source**: kernel/sched/fair.c, 5.10.262.
pub fn task_fits_cpu<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, cpu: Cpu) -> bool {
    let (min, max) = (e.uclamp_min(p), e.uclamp_max(p));
    let util = task_util_est(e, p);
    util_fits_cpu(e, util, min, max, cpu)
}

/// Sums up the allowed CPUs of a group. **Source**: kernel/sched/fair.c, update_sg_wakeup_stats(), 5.10.262.
pub fn update_sg_wakeup_stats<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, group: &Group, p: TaskId) -> SgLbStats {
    let mut sgs = SgLbStats::ZERO;
    let asym = e.topology().has_asym_before_5_14(sd);

    // Until a CPU is found that the task fits.
    if asym {
        sgs.group_misfit_task_load = true;
    }

    let cpus = group.span & e.cpus_ptr(p);
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

/// The least busy group of `sd`; `None`: stay. **Source**: kernel/sched/fair.c, find_idlest_group(), v5.10.
pub fn find_idlest_group<R: Recorder>(e: &mut Env<'_, R>, id: DomainId, p: TaskId, this_cpu: Cpu) -> Option<Group> {
    e.enter("find_idlest_group");
    let sd = e.topology().domain(id);
    let groups = groups(e, this_cpu, id, Reach::Beyond);
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
            let numa_preferred_nid = e.numa_preferred_nid(p);
            if node_is(e, Some(this_cpu), numa_preferred_nid) {
                return None;
            }

            if node_is(e, idlest.span.first(), numa_preferred_nid) {
                return Some(*idlest);
            }

            // Stay close to the waker.
            if local_sgs.idle_cpus != 0 {
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
/// find_idlest_cpu(), v5.10.
pub fn find_idlest_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: DomainId,
    p: TaskId,
    cpu: Cpu,
    prev_cpu: Cpu,
    sd_flag: SdFlags,
) -> Cpu {
    e.enter("find_idlest_cpu");
    let cpus_ptr = e.cpus_ptr(p);
    if !e.topology().domain(sd).span.intersects(&cpus_ptr) {
        return e.exit(Exit::SlowOutside, prev_cpu);
    }

    let new_cpu = descend(e, sd, cpu, sd_flag, |e, sd, cpu| {
        let group = find_idlest_group(e, sd, p, cpu)?;
        Some(find_idlest_group_cpu(e, &group, p, cpu))
    });
    e.exit(Exit::Slow, new_cpu)
}
