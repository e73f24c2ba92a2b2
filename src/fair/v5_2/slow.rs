// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of v5.2: groups by runnable load, average load and spare capacity.

use crate::cpumask::Cpumask;
use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::groups::{Group, Reach, groups};
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::SchedFeat;
use crate::topology::{Domain, DomainId, SdFlags};
use crate::units::Cpu;

use super::{_task_util_est, weighted_cpuload};

/// `lsub_positive()` on unsigned int.
pub(crate) fn lsub_positive(value: u64, sub: u64) -> u64 {
    u64::from((value as u32).saturating_sub(sub as u32))
}

/// Whether the CPU's averages hold no part of `p`: it was elsewhere, or is new.
pub fn no_contribution<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> bool {
    cpu != e.task_cpu(p) || e.is_new(p)
}

/// **Source**: kernel/sched/fair.c, cpu_util(), v5.2 to v5.15; cpu_util_cfs(), to v6.6 (the same).
pub fn cpu_util<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu) -> u64 {
    let mut util = e.cfs_util_avg(cpu);

    if e.sched_feat(SchedFeat::UTIL_EST) {
        util = util.max(e.cfs_util_est_enqueued(cpu));
    }

    util.min(e.capacity_orig_of(cpu))
}

/// **Source**: kernel/sched/fair.c, cpu_util_without(), v5.2 to v5.11.
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

/// **Source**: kernel/sched/fair.c, capacity_spare_without(), v5.2.
pub fn capacity_spare_without<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u64 {
    e.capacity_of(cpu).saturating_sub(cpu_util_without(e, cpu, p))
}

/// What find_idlest_group() keeps of the groups seen so far.
#[derive(Default)]
struct Seen<'a> {
    idlest: Option<&'a Group>,
    most_spare_sg: Option<&'a Group>,
    most_spare: u64,
    this_spare: u64,
}

/// The least busy group of `sd`; `None`: stay. **Source**: kernel/sched/fair.c, find_idlest_group(), v5.2 and the RFC,
/// whose `cpus` stands for the task's affinity.
pub fn find_idlest_group<R: Recorder>(
    e: &mut Env<'_, R>,
    id: DomainId,
    p: TaskId,
    this_cpu: Cpu,
    sd_flag: SdFlags,
    cpus: &Cpumask,
) -> Option<Group> {
    e.enter("find_idlest_group");
    let sd: &Domain = e.topology().domain(id);
    let groups = groups(e, this_cpu, id, Reach::Beyond);
    let mut seen = Seen::default();
    let (mut min_runnable_load, mut this_runnable_load) = (u64::MAX, u64::MAX);
    let (mut min_avg_load, mut this_avg_load) = (u64::MAX, u64::MAX);
    let imbalance_scale = u64::from(100 + sd.imbalance_pct.wrapping_sub(100) / 2);
    let imbalance = 1024 * u64::from(sd.imbalance_pct.wrapping_sub(100)) / 100;

    for group in &groups {
        if !group.span.intersects(cpus) {
            continue;
        }

        let local_group = group.span.test(this_cpu);

        let mut avg_load: u64 = 0;
        let mut runnable_load: u64 = 0;
        let mut max_spare_cap = 0;

        for i in group.span.iter() {
            // source_load() for the local group, target_load() for others: the same at load index 0.
            runnable_load = runnable_load.wrapping_add(weighted_cpuload(e, i));

            avg_load = avg_load.wrapping_add(e.cpu_load(i));

            let spare_cap = capacity_spare_without(e, i, p);

            max_spare_cap = spare_cap.max(max_spare_cap);
        }

        avg_load = avg_load.wrapping_mul(1024) / group.capacity.max(1);
        runnable_load = runnable_load.wrapping_mul(1024) / group.capacity.max(1);
        e.check(local_group, || {
            let figures = format!("runnable {runnable_load}, load {avg_load}, spare {max_spare_cap}");
            format!("group {} ({figures}) is the local one", group.span)
        });

        if local_group {
            this_runnable_load = runnable_load;
            this_avg_load = avg_load;
            seen.this_spare = max_spare_cap;
        } else {
            if min_runnable_load > runnable_load.wrapping_add(imbalance) {
                min_runnable_load = runnable_load;
                min_avg_load = avg_load;
                seen.idlest = Some(group);
            } else if runnable_load < min_runnable_load.wrapping_add(imbalance)
                && min_avg_load.wrapping_mul(100) > imbalance_scale.wrapping_mul(avg_load)
            {
                min_avg_load = avg_load;
                seen.idlest = Some(group);
            }

            if seen.most_spare < max_spare_cap {
                seen.most_spare = max_spare_cap;
                seen.most_spare_sg = Some(group);
            }
        }
    }

    // A new task has no utilisation yet: spare capacity says nothing.
    if sd_flag != SdFlags::BALANCE_FORK {
        let task_util = e.task_util(p);
        if seen.this_spare > task_util / 2
            && imbalance_scale.wrapping_mul(seen.this_spare) > seen.most_spare.wrapping_mul(100)
        {
            return None;
        }

        if seen.most_spare > task_util / 2 {
            return seen.most_spare_sg.copied();
        }
    }

    let idlest = seen.idlest?;

    if sd.flags.contains(SdFlags::NUMA) && min_runnable_load.wrapping_add(imbalance) >= this_runnable_load {
        return None;
    }

    if min_runnable_load > this_runnable_load.wrapping_add(imbalance) {
        return None;
    }

    if this_runnable_load < min_runnable_load.wrapping_add(imbalance)
        && this_avg_load.wrapping_mul(100) < imbalance_scale.wrapping_mul(min_avg_load)
    {
        return None;
    }

    Some(*idlest)
}

/// The idlest CPU of a group. **Source**: kernel/sched/fair.c, find_idlest_group_cpu(), v5.2 and the RFC.
pub fn find_idlest_group_cpu<R: Recorder>(e: &mut Env<'_, R>, group: &Group, this_cpu: Cpu, cpus: &Cpumask) -> Cpu {
    e.enter("find_idlest_group_cpu");
    let mut min_load = u64::MAX;
    let mut min_exit_latency = u32::MAX;
    let mut latest_idle_timestamp = 0;
    let mut least_loaded_cpu = this_cpu;
    let mut shallowest_idle_cpu = None;

    if group.weight == 1 {
        return group.span.first().unwrap_or(this_cpu);
    }

    let cpus = group.span & *cpus;
    for i in cpus.iter() {
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
            let load = weighted_cpuload(e, i);
            if load < min_load {
                min_load = load;
                least_loaded_cpu = i;
            }
        }
    }

    shallowest_idle_cpu.unwrap_or(least_loaded_cpu)
}

/// From `sd` down: the idlest group, its idlest CPU, then the domains below that. **Source**: kernel/sched/fair.c,
/// find_idlest_cpu(), v5.2 and the RFC (which still asks the affinity first).
pub fn find_idlest_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: DomainId,
    p: TaskId,
    (cpu, prev_cpu): (Cpu, Cpu),
    sd_flag: SdFlags,
    cpus: &Cpumask,
) -> Cpu {
    e.enter("find_idlest_cpu");
    let cpus_ptr = e.cpus_ptr(p);
    if !e.topology().domain(sd).span.intersects(&cpus_ptr) {
        return e.exit(Exit::SlowOutside, prev_cpu);
    }

    let new_cpu = descend(e, sd, cpu, sd_flag, |e, sd, cpu| {
        let group = find_idlest_group(e, sd, p, cpu, sd_flag, cpus)?;
        Some(find_idlest_group_cpu(e, &group, cpu, cpus))
    });
    e.exit(Exit::Slow, new_cpu)
}

/// The loop of find_idlest_cpu(), v5.2 to v7.3; `idlest` is one turn of it: the idlest CPU of the idlest group of a
/// domain as seen from a CPU, if there is such a group.
pub(crate) fn descend<R: Recorder>(
    e: &mut Env<'_, R>,
    sd: DomainId,
    mut cpu: Cpu,
    sd_flag: SdFlags,
    mut idlest: impl FnMut(&mut Env<'_, R>, DomainId, Cpu) -> Option<Cpu>,
) -> Cpu {
    let topology = e.topology();
    let mut new_cpu = cpu;
    let mut sd = Some(sd);
    while let Some(id) = sd {
        let below = || topology.hierarchy(cpu).iter().copied().take_while(|&other| other != id).last();

        if !topology.domain(id).flags.contains(sd_flag) {
            sd = below();
            continue;
        }

        let Some(found) = idlest(e, id, cpu) else {
            sd = below();
            continue;
        };

        new_cpu = found;
        if new_cpu == cpu {
            // Try a lower level of cpu.
            sd = below();
            continue;
        }

        // Try a lower level of new_cpu.
        cpu = new_cpu;
        let weight = topology.domain(id).span.weight();
        sd = None;
        for &tmp in topology.hierarchy(cpu) {
            if weight <= topology.domain(tmp).span.weight() {
                break;
            }
            if topology.domain(tmp).flags.contains(sd_flag) {
                sd = Some(tmp);
            }
        }
    }

    new_cpu
}
