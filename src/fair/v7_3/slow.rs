// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of v7.3: a SCHED_IDLE task does not take CPUs that run only SCHED_IDLE tasks.

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::groups::{Group, Reach, groups};
use crate::fair::v5_2::slow::descend;
use crate::fair::v5_11::slow::{node_is, note_group, stay_busy};
use crate::fair::v6_1::slow::{NR_CPUS, idle_imbalance};
// With the stable change of 6.12.y, which is a bit there and on here.
pub use crate::fair::v6_12::slow::{
    GroupType, SgLbStats, adjust_numa_imbalance, cpu_load_without, cpu_runnable_without, cpu_util, cpu_util_without,
    task_fits_cpu, task_running_on_cpu, update_pick_idlest, update_sg_wakeup_stats,
};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::topology::{DomainId, SdFlags};
use crate::units::Cpu;

/// The idlest CPU of a group. **Source**: kernel/sched/fair.c, sched_balance_find_dst_group_cpu(), v7.3.
pub fn sched_balance_find_dst_group_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    group: &Group,
    p: TaskId,
    this_cpu: Cpu,
) -> Cpu {
    e.enter("sched_balance_find_dst_group_cpu");
    let mut min_load = u64::MAX;
    let mut min_exit_latency = u32::MAX;
    let mut latest_idle_timestamp = 0;
    let mut least_loaded_cpu = this_cpu;
    let mut shallowest_idle_cpu = None;

    if group.weight == 1 {
        return group.span.first().unwrap_or(this_cpu);
    }

    let cpus = group.span & e.cpus_ptr(p);
    for i in cpus.iter() {
        if e.choose_sched_idle_rq(i, p) {
            return i;
        }

        if e.available_idle_cpu(i) {
            let (idle, idle_stamp) = e.idle_state(i);
            if let Some(exit_latency) = idle
                && exit_latency < min_exit_latency
            {
                min_exit_latency = exit_latency;
                latest_idle_timestamp = idle_stamp;
                shallowest_idle_cpu = Some(i);
            } else if idle.is_none_or(|exit_latency| exit_latency == min_exit_latency)
                && idle_stamp > latest_idle_timestamp
            {
                latest_idle_timestamp = idle_stamp;
                shallowest_idle_cpu = Some(i);
            }
        } else if shallowest_idle_cpu.is_none() {
            let load = e.cpu_load(i);
            if load < min_load {
                min_load = load;
                least_loaded_cpu = i;
            }
        }
    }

    shallowest_idle_cpu.unwrap_or(least_loaded_cpu)
}

/// The least busy group of `sd`; `None`: stay. **Source**: kernel/sched/fair.c, sched_balance_find_dst_group(), v7.3.
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
                // cpumask_weight_and(): no mask is made.
                imb_numa_nr = imb_numa_nr.min((local.span & cpus_ptr).weight());
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
/// sched_balance_find_dst_cpu(), v7.3.
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
