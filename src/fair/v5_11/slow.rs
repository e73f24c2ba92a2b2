// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of v5.11: the idlest CPU of the idlest group. Taken for fork and exec, and for wakeups on domains with
//! SD_BALANCE_WAKE.

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::groups::{Group, Reach, groups};
use crate::fair::leaf::fits_capacity;
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::spec::Patch;
use crate::topology::{Domain, DomainId, SdFlags};
use crate::units::Cpu;

use super::uclamp_task_util;
pub use crate::fair::v5_2::slow::{cpu_util, cpu_util_without};
use crate::fair::v5_2::slow::{descend, lsub_positive, no_contribution};

/// `sched_feat(UTIL_EST)` estimates, loads and counts of a group (`struct sg_lb_stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SgLbStats {
    /// Average load, where the group is busy.
    pub avg_load: u64,
    /// Sum of loads.
    pub group_load: u64,
    /// Sum of capacities.
    pub group_capacity: u64,
    /// Sum of utilisations.
    pub group_util: u64,
    /// Sum of runnable times.
    pub group_runnable: u64,
    /// Sum of nr_running.
    pub sum_nr_running: u32,
    /// Idle CPUs.
    pub idle_cpus: u32,
    /// CPUs.
    pub group_weight: u32,
    /// What the group is.
    pub group_type: GroupType,
    /// The task does not fit.
    pub group_misfit_task_load: bool,
}

/// `enum group_type`: less is idler. Two more types occur in load balancing only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupType {
    /// Room for more.
    HasSpare,
    /// Busy, but not competing.
    FullyBusy,
    /// The task is too big for it.
    MisfitTask,
    /// More than it can run.
    Overloaded,
}

impl SgLbStats {
    /// What find_idlest_group() starts its comparison from.
    pub const WORST: Self = Self { avg_load: u32::MAX as u64, group_type: GroupType::Overloaded, ..Self::ZERO };

    /// All zeroes.
    pub const ZERO: Self = Self {
        avg_load: 0,
        group_load: 0,
        group_capacity: 0,
        group_util: 0,
        group_runnable: 0,
        sum_nr_running: 0,
        idle_cpus: 0,
        group_weight: 0,
        group_type: GroupType::HasSpare,
        group_misfit_task_load: false,
    };
}

/// **Source**: kernel/sched/fair.c, cpu_load_without(), v5.5 to v7.3.
pub fn cpu_load_without<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u64 {
    if no_contribution(e, cpu, p) {
        return e.cpu_load(cpu);
    }

    let load = e.cpu_load(cpu);
    lsub_positive(load, e.task_h_load(p))
}

/// **Source**: kernel/sched/fair.c, cpu_runnable_without(), v5.7 to v7.3.
pub fn cpu_runnable_without<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u64 {
    if no_contribution(e, cpu, p) {
        return e.cpu_runnable(cpu);
    }

    let runnable = e.cpu_runnable(cpu);
    lsub_positive(runnable, e.task_runnable_avg(p))
}

/// **Source**: kernel/sched/fair.c, task_running_on_cpu(), v5.5 to v7.3.
pub fn task_running_on_cpu<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, p: TaskId) -> u32 {
    if no_contribution(e, cpu, p) {
        return 0;
    }

    u32::from(e.on_rq(p))
}

/// `task_fits_capacity()`. **Source**: kernel/sched/fair.c, v5.11.
pub fn task_fits_capacity<R: Recorder>(e: &mut Env<'_, R>, p: TaskId, capacity: u64) -> bool {
    fits_capacity(uclamp_task_util(e, p), capacity)
}

/// **Source**: kernel/sched/fair.c, group_has_capacity(), v5.7 to v7.3.
pub fn group_has_capacity(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    let pct = u64::from(imbalance_pct);
    if sgs.sum_nr_running < sgs.group_weight {
        return true;
    }

    if sgs.group_capacity.wrapping_mul(pct) < sgs.group_runnable.wrapping_mul(100) {
        return false;
    }

    if sgs.group_capacity.wrapping_mul(100) > sgs.group_util.wrapping_mul(pct) {
        return true;
    }

    false
}

/// **Source**: kernel/sched/fair.c, group_is_overloaded(), v5.7 to v7.3.
pub fn group_is_overloaded(imbalance_pct: u32, sgs: &SgLbStats) -> bool {
    let pct = u64::from(imbalance_pct);
    if sgs.sum_nr_running <= sgs.group_weight {
        return false;
    }

    if sgs.group_capacity.wrapping_mul(100) < sgs.group_util.wrapping_mul(pct) {
        return true;
    }

    if sgs.group_capacity.wrapping_mul(pct) < sgs.group_runnable.wrapping_mul(100) {
        return true;
    }

    false
}

/// **Source**: kernel/sched/fair.c, group_classify(), v5.5 to v7.3. Departs: sg_imbalanced() is false, no group prefers
/// asymmetric packing (both are of load balancing).
pub fn group_classify(imbalance_pct: u32, sgs: &SgLbStats) -> GroupType {
    if group_is_overloaded(imbalance_pct, sgs) {
        return GroupType::Overloaded;
    }

    if sgs.group_misfit_task_load {
        return GroupType::MisfitTask;
    }

    if !group_has_capacity(imbalance_pct, sgs) {
        return GroupType::FullyBusy;
    }

    GroupType::HasSpare
}

/// What every release does with the sums of a group: type and average load.
pub(crate) fn classify(sd: &Domain, group: &Group, sgs: &mut SgLbStats) {
    sgs.group_capacity = group.capacity;

    sgs.group_weight = group.weight;

    sgs.group_type = group_classify(sd.imbalance_pct, sgs);

    // avg_load means something only where a group is busy.
    if sgs.group_type == GroupType::FullyBusy || sgs.group_type == GroupType::Overloaded {
        sgs.avg_load = sgs.group_load.wrapping_mul(1024) / sgs.group_capacity.max(1);
    }
}

/// The same with mistakes of its first releases: `group_weight` left at 0 (until 289de3598481), and avg_load of the
/// groups that have spare capacity (until 6c8116c914b6).
fn classify_at_first(sd: &Domain, group: &Group, sgs: &mut SgLbStats, [no_weight, wrong_load]: [bool; 2]) {
    sgs.group_capacity = group.capacity;

    sgs.group_weight = if no_weight { 0 } else { group.weight };

    sgs.group_type = group_classify(sd.imbalance_pct, sgs);

    let is_busy = sgs.group_type == GroupType::FullyBusy || sgs.group_type == GroupType::Overloaded;
    if is_busy || wrong_load {
        let counts = if wrong_load { sgs.group_type == GroupType::HasSpare } else { is_busy };
        sgs.avg_load = if counts { sgs.group_load.wrapping_mul(1024) / sgs.group_capacity.max(1) } else { 0 };
    }
}

/// Sums up a group. Kernel trait, kept: over CPUs that `p` may not use, too (changed in 5.13).
///
/// **Source**: kernel/sched/fair.c, update_sg_wakeup_stats(), v5.11.
pub fn update_sg_wakeup_stats<R: Recorder>(e: &mut Env<'_, R>, sd: &Domain, group: &Group, p: TaskId) -> SgLbStats {
    let mut sgs = SgLbStats::ZERO;

    for i in group.span.iter() {
        sgs.group_load = sgs.group_load.wrapping_add(cpu_load_without(e, i, p));
        sgs.group_util = sgs.group_util.wrapping_add(cpu_util_without(e, i, p));
        sgs.group_runnable = sgs.group_runnable.wrapping_add(cpu_runnable_without(e, i, p));
        let local = task_running_on_cpu(e, i, p);

        let nr_running = e.nr_running(i).wrapping_sub(local);
        sgs.sum_nr_running = sgs.sum_nr_running.wrapping_add(nr_running);

        if nr_running == 0 && e.idle_cpu_without(i, p) {
            sgs.idle_cpus += 1;
        }
    }

    if e.topology().has_asym_before_5_14(sd) && !task_fits_capacity(e, p, group.max_capacity) {
        sgs.group_misfit_task_load = true;
    }

    let old = Patch::BUG_AVG_LOAD | Patch::BUG_GROUP_WEIGHT;
    if e.patched(old) {
        classify_at_first(sd, group, &mut sgs, [e.patched(Patch::BUG_GROUP_WEIGHT), e.patched(Patch::BUG_AVG_LOAD)]);
    } else {
        classify(sd, group, &mut sgs);
    }
    sgs
}

/// Whether `group` is a better choice than `idlest`. **Source**: kernel/sched/fair.c, update_pick_idlest(), v5.7 to v7.3.
pub fn update_pick_idlest(idlest: Option<&Group>, idlest_sgs: &SgLbStats, group: &Group, sgs: &SgLbStats) -> bool {
    if sgs.group_type < idlest_sgs.group_type {
        return true;
    }

    if sgs.group_type > idlest_sgs.group_type {
        return false;
    }

    match sgs.group_type {
        GroupType::Overloaded | GroupType::FullyBusy => {
            if idlest_sgs.avg_load <= sgs.avg_load {
                return false;
            }
        }
        GroupType::MisfitTask => {
            if idlest.is_some_and(|idlest| idlest.max_capacity >= group.max_capacity) {
                return false;
            }
        }
        GroupType::HasSpare => {
            if idlest_sgs.idle_cpus > sgs.idle_cpus {
                return false;
            }

            if idlest_sgs.idle_cpus == sgs.idle_cpus && idlest_sgs.group_util <= sgs.group_util {
                return false;
            }
        }
    }

    true
}

/// The busy and misfit part of find_idlest_group()'s last comparison: whether to stay in the local group.
///
/// **Source**: kernel/sched/fair.c, find_idlest_group(), v5.7 to v7.3.
pub(crate) fn stay_busy(
    sd: &Domain,
    (local, local_sgs): (&Group, &SgLbStats),
    (idlest, idlest_sgs): (&Group, &SgLbStats),
) -> bool {
    match local_sgs.group_type {
        GroupType::Overloaded | GroupType::FullyBusy => {
            let imbalance = 1024 * u64::from(sd.imbalance_pct.wrapping_sub(100)) / 100;
            let add = |load: u64| load.wrapping_add(imbalance);

            if sd.flags.contains(SdFlags::NUMA) && add(idlest_sgs.avg_load) >= local_sgs.avg_load {
                return true;
            }

            if idlest_sgs.avg_load >= add(local_sgs.avg_load) {
                return true;
            }

            local_sgs.avg_load.wrapping_mul(100) <= u64::from(sd.imbalance_pct).wrapping_mul(idlest_sgs.avg_load)
        }
        GroupType::MisfitTask => local.max_capacity >= idlest.max_capacity,
        GroupType::HasSpare => false,
    }
}

/// The least busy group of `sd`; `None`: stay. **Source**: kernel/sched/fair.c, find_idlest_group(), v5.11.
pub fn find_idlest_group<R: Recorder>(e: &mut Env<'_, R>, id: DomainId, p: TaskId, this_cpu: Cpu) -> Option<Group> {
    e.enter("find_idlest_group");
    let sd = e.topology().domain(id);
    let reach = if e.patched(Patch::FIX_GROUP_SPAN) { Reach::Inside } else { Reach::Beyond };
    let groups = groups(e, this_cpu, id, reach);
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

            // Stay close to the waker while a quarter of the domain is enough. **Source**: allow_numa_imbalance().
            if (local_sgs.sum_nr_running as i32) < (sd.span.weight() >> 2) as i32 {
                return None;
            }
        }

        if local_sgs.idle_cpus >= idlest_sgs.idle_cpus {
            return None;
        }
    }

    Some(*idlest)
}

/// Whether `cpu` is in node `nid`; -1 is no node.
pub(crate) fn node_is<R: Recorder>(e: &Env<'_, R>, cpu: Option<Cpu>, nid: i32) -> bool {
    cpu.is_some_and(|cpu| i64::from(e.topology().node(cpu)) == i64::from(nid))
}

/// Tells the recorder of a group.
pub(crate) fn note_group<R: Recorder>(e: &mut Env<'_, R>, group: &Group, sgs: &SgLbStats) {
    let SgLbStats { group_type, idle_cpus, group_util, avg_load, .. } = sgs;
    e.check(*group_type == GroupType::HasSpare, || {
        let figures = format!("{idle_cpus} idle, util {group_util}, avg_load {avg_load}");
        format!("group {} ({group_type:?}, {figures}) has spare capacity", group.span)
    });
}

/// The idlest CPU of a group. **Source**: kernel/sched/fair.c, find_idlest_group_cpu(), v5.11 to v6.12.
pub fn find_idlest_group_cpu<R: Recorder>(e: &mut Env<'_, R>, group: &Group, p: TaskId, this_cpu: Cpu) -> Cpu {
    e.enter("find_idlest_group_cpu");
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
        if e.sched_idle_cpu(i) {
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
                && (idle_stamp > latest_idle_timestamp
                    || (e.patched(Patch::FIX_IDLE_STAMP) && shallowest_idle_cpu.is_none()))
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

/// From `sd` down: the idlest group, its idlest CPU, then the domains below that. **Source**: kernel/sched/fair.c,
/// find_idlest_cpu(), v5.11.
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
