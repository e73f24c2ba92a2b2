// SPDX-License-Identifier: GPL-2.0-or-later
//! Leaf reads and writes of the wakeup path under their kernel names, shared by releases while they mean the same.

use crate::cpumask::Cpumask;
use crate::fair::decision::ProbeKind;
use crate::fair::env::Env;
use crate::fair::walk::Recorder;
use crate::machine::{Inputs, TaskFlags, TaskId};
use crate::topology::{SdFlags, SharedId};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

/// `cap` fits `max` with a margin of a quarter. **Source**: kernel/sched/fair.c, fits_capacity(), v5.4 to v7.3.
#[inline]
pub fn fits_capacity(cap: u64, max: u64) -> bool {
    cap.wrapping_mul(1280) < max.wrapping_mul(1024)
}

/// Idleness.
impl<R: Recorder> Env<'_, R> {
    /// Whether a run queue is there. One at or above nr_cpu_ids is not: the access is a fault, and reads zeroes.
    #[inline]
    pub(super) fn cpu_rq(&mut self, cpu: Cpu) -> bool {
        let there = cpu.index() < self.state.rq.nr_running.len();
        self.books.faults += u32::from(!there);
        there
    }

    #[inline]
    fn rq_is_idle(&mut self, cpu: Cpu) -> bool {
        if !self.cpu_rq(cpu) {
            // All zeroes: curr == idle, nothing queued.
            return true;
        }
        self.book_rq(cpu, Inputs::IDLE);
        let rq = &self.state.rq;
        rq.curr_idle.test(cpu) && rq.nr_running[cpu.index()] == 0 && !rq.ttwu_pending.test(cpu)
    }

    /// `idle_cpu()`. **Source**: kernel/sched/core.c, v5.2 to v7.3.
    #[inline]
    pub fn idle_cpu(&mut self, cpu: Cpu) -> bool {
        self.probe_begins(cpu);
        let idle = self.rq_is_idle(cpu);
        self.probed(ProbeKind::Idle, cpu, idle)
    }

    /// `available_idle_cpu()`: idle, and its virtual CPU not preempted. **Source**: kernel/sched/core.c, v5.2 to v7.3.
    #[inline]
    pub fn available_idle_cpu(&mut self, cpu: Cpu) -> bool {
        self.probe_begins(cpu);
        let idle = self.rq_is_idle(cpu) && !self.state.rq.vcpu_preempted.test(cpu);
        self.probed(ProbeKind::Available, cpu, idle)
    }

    /// `sched_idle_cpu()`: only SCHED_IDLE tasks are queued. **Source**: kernel/sched/fair.c, v5.4 to v6.12.
    ///
    /// An empty run queue is none whatever the policies, so that these are booked only where something is queued.
    #[inline]
    pub fn sched_idle_cpu(&mut self, cpu: Cpu) -> bool {
        self.looks_again();
        let idle = self.cpu_rq(cpu) && {
            let nr_running = self.nr_running(cpu);
            nr_running != 0 && nr_running == self.idle_h_nr_running(cpu)
        };
        self.probed(ProbeKind::SchedIdle, cpu, idle)
    }

    /// `choose_sched_idle_rq()`: only SCHED_IDLE tasks are queued, and `p` is none itself. **Source**: kernel/sched/fair.c,
    /// v7.3.
    #[inline]
    pub fn choose_sched_idle_rq(&mut self, cpu: Cpu, p: TaskId) -> bool {
        self.looks_again();
        let idle = self.cpu_rq(cpu) && {
            let nr_running = self.nr_running(cpu);
            nr_running != 0 && nr_running == self.idle_h_nr_running(cpu) && !self.task_has_idle_policy(p)
        };
        self.probed(ProbeKind::SchedIdle, cpu, idle)
    }

    /// `choose_idle_cpu()`. **Source**: kernel/sched/fair.c, v7.3.
    #[inline]
    pub fn choose_idle_cpu(&mut self, cpu: Cpu, p: TaskId) -> bool {
        self.available_idle_cpu(cpu) || self.choose_sched_idle_rq(cpu, p)
    }

    /// `idle_cpu_without()`, for a CPU whose nr_running without `p` was found to be 0. **Source**: kernel/sched/fair.c,
    /// v5.5 to v7.3.
    #[inline]
    pub fn idle_cpu_without(&mut self, cpu: Cpu, p: TaskId) -> bool {
        self.probe_begins(cpu);
        self.book_rq(cpu, Inputs::IDLE);
        let rq = &self.state.rq;
        let idle = (rq.curr_idle.test(cpu) || rq.curr[cpu.index()] == p) && !rq.ttwu_pending.test(cpu);
        self.probed(ProbeKind::Without, cpu, idle)
    }
}

/// Run queues.
impl<R: Recorder> Env<'_, R> {
    /// `rq->nr_running`.
    #[inline]
    pub fn nr_running(&mut self, cpu: Cpu) -> u32 {
        self.book_rq(cpu, Inputs::NR_RUNNING);
        self.state.rq.nr_running[cpu.index()]
    }

    /// `rq->cfs.idle_h_nr_running`.
    #[inline]
    pub fn idle_h_nr_running(&mut self, cpu: Cpu) -> u32 {
        self.book_rq(cpu, Inputs::POLICY);
        self.state.rq.idle_h_nr_running[cpu.index()]
    }

    /// `cfs_h_nr_delayed()`: queued tasks that wait to be dequeued. **Source**: kernel/sched/fair.c, 6.12.117 to v7.3.
    #[inline]
    pub fn cfs_h_nr_delayed(&mut self, cpu: Cpu) -> u32 {
        self.book_rq(cpu, Inputs::NR_RUNNING);
        let rq = &self.state.rq;
        rq.h_nr_running[cpu.index()].wrapping_sub(rq.h_nr_runnable[cpu.index()])
    }

    /// `capacity_of()`. **Source**: kernel/sched/fair.c, v5.2 to v7.3.
    #[inline]
    pub fn capacity_of(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::CAPACITY);
        self.state.rq.cpu_capacity[cpu.index()]
    }

    /// `capacity_orig_of()`, since 6.7 `arch_scale_cpu_capacity()`.
    #[inline]
    pub fn capacity_orig_of(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::CAPACITY);
        self.state.rq.cpu_capacity_orig[cpu.index()]
    }

    /// `cpu_load()`. **Source**: kernel/sched/fair.c, v5.4 to v7.3: the load_avg of the root cfs_rq.
    #[inline]
    pub fn cpu_load(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::RQ_LOAD);
        self.state.rq.load_avg[cpu.index()]
    }

    /// The runnable_avg of the root cfs_rq (`cpu_runnable()`).
    #[inline]
    pub fn cpu_runnable(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::RQ_UTIL);
        self.state.rq.runnable_avg[cpu.index()]
    }

    /// `cfs_rq->avg.util_avg`; 0 of a run queue that is not there.
    #[inline]
    pub fn cfs_util_avg(&mut self, cpu: Cpu) -> u64 {
        if !self.cpu_rq(cpu) {
            return 0;
        }
        self.book_rq(cpu, Inputs::RQ_UTIL);
        self.state.rq.util_avg[cpu.index()]
    }

    /// `cfs_rq->avg.runnable_load_avg` (5.2).
    #[inline]
    pub fn cfs_runnable_load_avg(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::RQ_LOAD);
        self.state.rq.runnable_load_avg[cpu.index()]
    }

    /// `rd->max_cpu_capacity` (5.2): the largest capacity_orig.
    pub fn max_cpu_capacity(&mut self) -> u64 {
        self.book_rq(self.this_cpu(), Inputs::CAPACITY);
        self.state.rq.cpu_capacity_orig.iter().copied().max().unwrap_or(0)
    }

    /// `cfs_rq->avg.util_est.enqueued`.
    #[inline]
    pub fn cfs_util_est_enqueued(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::RQ_UTIL);
        self.state.rq.util_est_enqueued[cpu.index()]
    }

    /// Exit latency of the CPU's idle state (µs; `None`: no state), and `rq->idle_stamp` (ns).
    #[inline]
    pub fn idle_state(&mut self, cpu: Cpu) -> (Option<u32>, u64) {
        self.book_rq(cpu, Inputs::IDLE_STATE);
        (self.state.rq.exit_latency_us[cpu.index()], self.state.rq.idle_stamp_ns[cpu.index()])
    }

    /// `rq->avg_idle`, ns.
    #[inline]
    pub fn avg_idle_ns(&mut self, cpu: Cpu) -> u64 {
        self.book_rq(cpu, Inputs::AVG_IDLE);
        self.state.rq.avg_idle_ns[cpu.index()]
    }
}

/// The wakeup and its tasks.
impl<R: Recorder> Env<'_, R> {
    /// WF_SYNC, and the waker is not exiting.
    ///
    /// The kernel computes it on entry of select_task_rq_fair(); here it is read where it decides, so that a wakeup that
    /// never asks does not lean on it. **Source**: kernel/sched/fair.c, v5.2 to v7.3.
    #[inline]
    pub fn sync(&mut self) -> bool {
        self.book_wakeup(Inputs::SYNC);
        let sync = self.wakeup.sync && {
            let current = self.current();
            self.book_task(current, Inputs::TASK_FLAGS);
            !self.state.tasks[current].flags.contains(TaskFlags::EXITING)
        };
        self.check(sync, || "sync".to_owned())
    }

    /// `in_task()`.
    #[inline]
    pub fn in_task(&mut self) -> bool {
        self.book_wakeup(Inputs::CONTEXT);
        self.check(self.wakeup.in_task, || "in_task()".to_owned())
    }

    /// The domain flag that the call looks for: SD_BALANCE_WAKE, _FORK or _EXEC.
    #[inline]
    pub fn sd_flag(&self) -> SdFlags {
        match self.wakeup.kind {
            WakeKind::Ttwu => SdFlags::BALANCE_WAKE,
            WakeKind::Fork => SdFlags::BALANCE_FORK,
            WakeKind::Exec => SdFlags::BALANCE_EXEC,
        }
    }

    /// `p->cpus_ptr`.
    #[inline]
    pub fn cpus_ptr(&mut self, p: TaskId) -> Cpumask {
        self.book_task(p, Inputs::AFFINITY);
        *self.state.tasks[p].cpus_ptr
    }

    /// The soft-affinity RFC's `p->cpus_preferred`.
    #[inline]
    pub fn cpus_preferred(&mut self, p: TaskId) -> Cpumask {
        self.book_task(p, Inputs::SOFT_AFFINITY);
        *self.state.tasks[p].cpus_preferred
    }

    /// The soft-affinity RFC's `p->affinity_unequal`.
    #[inline]
    pub fn affinity_unequal(&mut self, p: TaskId) -> bool {
        self.book_task(p, Inputs::SOFT_AFFINITY);
        let unequal = self.state.tasks[p].affinity_unequal;
        self.check(unequal, || "p->affinity_unequal".to_owned())
    }

    /// The soft-affinity RFC's `sysctl_sched_preferred` and `sysctl_sched_allowed`.
    #[inline]
    pub fn soft_affinity_tunables(&mut self) -> (u64, u64) {
        self.books.read |= Inputs::FEATURES;
        (u64::from(self.hidden.sysctl_sched_preferred), u64::from(self.hidden.sysctl_sched_allowed))
    }

    /// `cpumask_test_cpu(cpu, p->cpus_ptr)`.
    #[inline]
    pub fn cpu_allowed(&mut self, cpu: Cpu, p: TaskId) -> bool {
        self.book_task(p, Inputs::AFFINITY);
        let allowed = self.state.tasks[p].cpus_ptr.test(cpu);
        self.check(allowed, || format!("cpumask_test_cpu({cpu}, p->cpus_ptr)"))
    }

    /// `task_cpu(p)`.
    #[inline]
    pub fn task_cpu(&self, id: TaskId) -> Cpu {
        self.state.tasks[id].task_cpu
    }

    /// `task_on_rq_queued(p)`.
    #[inline]
    pub fn on_rq(&self, id: TaskId) -> bool {
        self.state.tasks[id].on_rq
    }

    /// A task whose averages never were updated: `last_update_time` is 0.
    #[inline]
    pub fn is_new(&self, id: TaskId) -> bool {
        self.state.tasks[id].last_update_time_ns == 0
    }

    /// `p->se.avg.runnable_avg`.
    #[inline]
    pub fn task_runnable_avg(&mut self, id: TaskId) -> u64 {
        self.book_task(id, Inputs::TASK_UTIL);
        self.state.tasks[id].runnable_avg
    }

    /// `p->nr_cpus_allowed`.
    #[inline]
    pub fn nr_cpus_allowed(&mut self, id: TaskId) -> u32 {
        self.book_task(id, Inputs::AFFINITY);
        self.state.tasks[id].nr_cpus_allowed
    }

    /// `p->numa_preferred_nid`.
    #[inline]
    pub fn numa_preferred_nid(&mut self, id: TaskId) -> i32 {
        self.book_task(id, Inputs::NUMA);
        self.state.tasks[id].numa_preferred_nid
    }

    /// `is_per_cpu_kthread()`. **Source**: kernel/sched/sched.h, v5.11 to v7.3 (before: sched/fair.c); every swapper is one.
    #[inline]
    pub fn is_per_cpu_kthread(&mut self, id: TaskId) -> bool {
        self.book_task(id, Inputs::TASK_FLAGS);
        let task = &self.state.tasks[id];
        let is = task.flags.contains(TaskFlags::KTHREAD) && {
            self.book_task(id, Inputs::AFFINITY);
            task.nr_cpus_allowed == 1
        };
        self.check(is, || "is_per_cpu_kthread(current)".to_owned())
    }

    /// `task_has_idle_policy()`: SCHED_IDLE.
    #[inline]
    pub fn task_has_idle_policy(&mut self, id: TaskId) -> bool {
        self.book_task(id, Inputs::POLICY);
        self.state.tasks[id].policy_idle
    }

    /// `task_h_load()`.
    #[inline]
    pub fn task_h_load(&mut self, id: TaskId) -> u64 {
        self.book_task(id, Inputs::TASK_LOAD);
        self.state.tasks[id].h_load
    }

    /// `task_util()`. **Source**: kernel/sched/fair.c, v5.2 to v7.3.
    #[inline]
    pub fn task_util(&mut self, id: TaskId) -> u64 {
        self.book_task(id, Inputs::TASK_UTIL);
        self.state.tasks[id].util_avg
    }

    /// `se.avg.util_est`: its ewma and enqueued, without flag bits.
    #[inline]
    pub fn util_est(&mut self, id: TaskId) -> (u64, u64) {
        self.book_task(id, Inputs::TASK_UTIL);
        (self.state.tasks[id].util_est_ewma, self.state.tasks[id].util_est_enqueued)
    }

    /// `uclamp_eff_value(p, UCLAMP_MIN)`.
    #[inline]
    pub fn uclamp_min(&mut self, id: TaskId) -> u64 {
        self.book_task(id, Inputs::UCLAMP);
        self.state.tasks[id].uclamp_min
    }

    /// `uclamp_eff_value(p, UCLAMP_MAX)`.
    #[inline]
    pub fn uclamp_max(&mut self, id: TaskId) -> u64 {
        self.book_task(id, Inputs::UCLAMP);
        self.state.tasks[id].uclamp_max
    }

    /// `cpus_share_cache()`.
    #[inline]
    pub fn cpus_share_cache(&mut self, a: Cpu, b: Cpu) -> bool {
        let share = self.topology().cpus_share_cache(a, b);
        self.check(share, || format!("cpus_share_cache({a}, {b})"))
    }
}

/// Hidden state.
impl<R: Recorder> Env<'_, R> {
    /// `wakee_flips` of `current` and of `p`.
    ///
    /// wake_wide() wants both to reach `factor`: where one of them is known to stay below, the other decides nothing and
    /// is not leaned on.
    #[inline]
    pub fn wakee_flips(&mut self, current: TaskId, p: TaskId, factor: u32) -> (u32, u32) {
        let of = |id: TaskId| &self.hidden.tasks[id.index()];
        let flips = (of(current).wakee_flips, of(p).wakee_flips);
        let settles = |id: TaskId| of(id).wakee_flips < factor && of(id).known.of(Inputs::WAKEE_FLIPS).is_known();
        let (by_current, by_p) = (settles(current), settles(p));
        if by_current || !by_p {
            self.book_task_hidden(current, Inputs::WAKEE_FLIPS);
        }
        if !by_current {
            self.book_task_hidden(p, Inputs::WAKEE_FLIPS);
        }
        flips
    }

    /// `current->wakee_flip_decay_ts` (jiffies) and `current->last_wakee`.
    #[inline]
    pub fn last_wakee(&mut self) -> (u64, Option<TaskId>) {
        let waker = &self.hidden.tasks[self.wakeup.current.index()];
        (waker.wakee_flip_decay_jiffies, waker.last_wakee)
    }

    /// `current->wakee_flips >>= 1`, at `jiffies`.
    #[inline]
    pub fn decay_wakee_flips(&mut self, jiffies: u64) {
        let waker = &mut self.hidden.tasks[self.wakeup.current.index()];
        waker.wakee_flips >>= 1;
        waker.wakee_flip_decay_jiffies = jiffies;
        let flips = waker.wakee_flips;
        self.books.writes.wakee_flips = Some(flips);
        self.wrote(|| format!("current->wakee_flips = {flips} (decayed)"));
    }

    /// `current->last_wakee = p; current->wakee_flips++`.
    #[inline]
    pub fn flip_wakee(&mut self, p: TaskId) {
        let waker = &mut self.hidden.tasks[self.wakeup.current.index()];
        waker.last_wakee = Some(p);
        waker.wakee_flips = waker.wakee_flips.wrapping_add(1);
        let flips = waker.wakee_flips;
        self.books.writes.wakee_flips = Some(flips);
        self.wrote(|| format!("current->wakee_flips = {flips}"));
    }

    /// `p->recent_used_cpu`.
    #[inline]
    pub fn recent_used_cpu(&mut self, p: TaskId) -> Cpu {
        self.book_task_hidden(p, Inputs::RECENT_USED_CPU);
        self.hidden.tasks[p.index()].recent_used_cpu
    }

    /// `p->recent_used_cpu = cpu`, for the wakee.
    #[inline]
    pub fn set_recent_used_cpu(&mut self, p: TaskId, cpu: Cpu) {
        let task = &mut self.hidden.tasks[p.index()];
        task.recent_used_cpu = cpu;
        task.known.set_derived(Inputs::RECENT_USED_CPU);
        self.books.writes.p_recent_used_cpu = Some(cpu);
        self.wrote(|| format!("p->recent_used_cpu = {cpu}"));
    }

    /// `current->recent_used_cpu = cpu`.
    #[inline]
    pub fn set_current_recent_used_cpu(&mut self, cpu: Cpu) {
        let current = self.current();
        let task = &mut self.hidden.tasks[current.index()];
        task.recent_used_cpu = cpu;
        task.known.set_derived(Inputs::RECENT_USED_CPU);
        self.books.writes.current_recent_used_cpu = Some(cpu);
        self.wrote(|| format!("current->recent_used_cpu = {cpu}"));
    }

    /// `sds->has_idle_cores` of shared state `id`.
    #[inline]
    pub fn has_idle_cores(&mut self, id: SharedId) -> bool {
        self.book_shared(id, Inputs::HAS_IDLE_CORES);
        let has = self.hidden.shared[id].has_idle_cores;
        self.check(has, || format!("has_idle_cores of LLC {id}"))
    }

    /// `sds->has_idle_cores = val`.
    #[inline]
    pub fn set_has_idle_cores(&mut self, id: SharedId, val: bool) {
        let shared = &mut self.hidden.shared[id];
        shared.has_idle_cores = val;
        shared.known.set_derived(Inputs::HAS_IDLE_CORES);
        self.books.writes.has_idle_cores = Some((id, val));
        self.wrote(|| format!("has_idle_cores of LLC {id} = {}", u8::from(val)));
    }

    /// `sds->nr_idle_scan` of shared state `id`.
    #[inline]
    pub fn nr_idle_scan(&mut self, id: SharedId) -> u32 {
        self.book_shared(id, Inputs::NR_IDLE_SCAN);
        self.hidden.shared[id].nr_idle_scan
    }

    /// `avg_scan_cost` of `cpu`'s own `sd_llc`, ns.
    #[inline]
    pub fn avg_scan_cost_ns(&mut self, cpu: Cpu) -> u64 {
        self.book_cpu_hidden(cpu, Inputs::SCAN_COST);
        self.hidden.cpus[cpu.index()].avg_scan_cost_ns
    }

    /// `sd->avg_scan_cost = cost`. Measured with the declared clock, so what was unknown becomes assumed.
    #[inline]
    pub fn set_avg_scan_cost_ns(&mut self, cpu: Cpu, cost_ns: u64) {
        let hidden = &mut self.hidden.cpus[cpu.index()];
        hidden.avg_scan_cost_ns = cost_ns;
        hidden.known.set_assumed(Inputs::SCAN_COST);
        self.books.writes.avg_scan_cost_ns = Some(cost_ns);
        self.wrote(|| format!("avg_scan_cost of CPU {cpu} = {cost_ns}"));
    }

    /// `rq->wake_stamp` (jiffies) and `rq->wake_avg_idle` (ns).
    #[inline]
    pub fn wake_avg_idle(&mut self, cpu: Cpu) -> (u64, u64) {
        self.book_cpu_hidden(cpu, Inputs::AVG_IDLE);
        let hidden = &self.hidden.cpus[cpu.index()];
        (hidden.wake_stamp_jiffies, hidden.wake_avg_idle_ns)
    }

    /// Writes `rq->wake_stamp` (jiffies) and `rq->wake_avg_idle` (ns).
    #[inline]
    pub fn set_wake_avg_idle(&mut self, cpu: Cpu, wake_stamp_jiffies: u64, wake_avg_idle_ns: u64) {
        let hidden = &mut self.hidden.cpus[cpu.index()];
        hidden.wake_stamp_jiffies = wake_stamp_jiffies;
        hidden.wake_avg_idle_ns = wake_avg_idle_ns;
        self.books.writes.wake_avg_idle_ns = Some(wake_avg_idle_ns);
        self.wrote(|| format!("wake_avg_idle of CPU {cpu} = {wake_avg_idle_ns}"));
    }

    /// `cpu_clock()`: the declared clock, ns.
    #[inline]
    pub fn cpu_clock(&mut self) -> u64 {
        let clock = &mut self.hidden.clock;
        clock.now_ns = clock.now_ns.wrapping_add(clock.clock_read_ns);
        clock.now_ns
    }
}

/// Masks and averages.
impl<R: Recorder> Env<'_, R> {
    #[inline]
    fn mask_op(&mut self) {
        self.books.mask_ops += 1;
        let clock = &mut self.hidden.clock;
        clock.now_ns = clock.now_ns.wrapping_add(clock.mask_op_ns);
    }

    /// `cpumask_and()`.
    #[inline]
    pub fn cpumask_and(&mut self, a: &Cpumask, b: &Cpumask) -> Cpumask {
        self.mask_op();
        *a & *b
    }

    /// `cpumask_andnot(cpus, cpus, mask)`.
    #[inline]
    pub fn cpumask_andnot(&mut self, cpus: &mut Cpumask, mask: &Cpumask) {
        self.mask_op();
        *cpus = cpus.and_not(mask);
    }
}

/// `update_avg()`: an eighth of the distance. **Source**: kernel/sched/sched.h, v5.9 to v7.3 (a signed division).
#[inline]
pub fn update_avg(avg: u64, sample: u64) -> u64 {
    let diff = sample.wrapping_sub(avg) as i64;
    avg.wrapping_add((diff / 8) as u64)
}

/// `for_each_cpu_wrap()` over a mask that the loop's body may change.
#[derive(Debug, Clone, Copy)]
pub struct Wrap {
    next: usize,
    start: usize,
    wrapped: bool,
}

impl Wrap {
    /// From `start` upward, then from 0 up to below `start`.
    #[inline]
    pub fn from(start: usize) -> Self {
        Self { next: start, start, wrapped: false }
    }

    /// The next CPU of `mask` as it is now.
    #[inline]
    pub fn next(&mut self, mask: &Cpumask) -> Option<Cpu> {
        if !self.wrapped {
            if let Some(cpu) = mask.next_from(self.next) {
                self.next = cpu.index() + 1;
                return Some(cpu);
            }
            self.wrapped = true;
            self.next = 0;
        }
        let cpu = mask.next_from(self.next).filter(|cpu| cpu.index() < self.start)?;
        self.next = cpu.index() + 1;
        Some(cpu)
    }
}
