// SPDX-License-Identifier: GPL-2.0-or-later
//! What a walk can see of run queues and tasks at the moment of a decision: observed facts only.
//!
//! Replay fills a [`State`] from events, a vector or a case file writes it down, the fuzzer invents it. Hidden state of
//! the wakeup path (`recent_used_cpu`, `has_idle_cores`, …) is not here: it belongs to each implementation, see
//! [`crate::fair::Hidden`].

use std::sync::Arc;

use crate::column::Column;
use crate::cpumask::Cpumask;
use crate::inputs::Provenance;
use crate::machine::TaskMask;
use crate::topology::Topology;
use crate::units::{Comm, Cpu, Pid, TaskId};

bitflags::bitflags! {
    /// The `PF_` flags that the wakeup path reads.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub struct TaskFlags: u8 {
        /// PF_KTHREAD.
        const KTHREAD = 1 << 0;
        /// PF_EXITING.
        const EXITING = 1 << 1;
    }
}

/// The facts of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Thread id.
    pub pid: Pid,
    /// Name.
    pub comm: Comm,
    /// Affinity (`cpus_ptr`, in 5.2 `cpus_allowed`).
    pub cpus_ptr: TaskMask,
    /// Number of CPUs in the affinity mask as the kernel caches it.
    pub nr_cpus_allowed: u32,
    /// Soft affinity (the RFC's `cpus_preferred`); the same as `cpus_ptr` where nobody set it.
    pub cpus_preferred: TaskMask,
    /// The RFC's `affinity_unequal`.
    pub affinity_unequal: bool,
    /// `PF_` flags.
    pub flags: TaskFlags,
    /// `p->on_rq`.
    pub on_rq: bool,
    /// `task_cpu(p)`.
    pub task_cpu: Cpu,
    /// `task_has_idle_policy(p)`: SCHED_IDLE.
    pub policy_idle: bool,
    /// `p->numa_preferred_nid`, -1 for none.
    pub numa_preferred_nid: i32,
    /// `se.avg.last_update_time` in ns; 0: a new task.
    pub last_update_time_ns: u64,
    /// `se.avg.load_avg`.
    pub load_avg: u64,
    /// `task_h_load(p)`: without group scheduling the same as `load_avg`.
    pub h_load: u64,
    /// `se.avg.util_avg`, 0 to 1024.
    pub util_avg: u64,
    /// `se.avg.util_est.ewma`.
    pub util_est_ewma: u64,
    /// `se.avg.util_est.enqueued`, the flag bit UTIL_AVG_UNCHANGED removed; since 6.8 the single `util_est`.
    pub util_est_enqueued: u64,
    /// `se.avg.runnable_avg`.
    pub runnable_avg: u64,
    /// `uclamp_eff_value(p, UCLAMP_MIN)`, 0 to 1024, default 0.
    pub uclamp_min: u64,
    /// `uclamp_eff_value(p, UCLAMP_MAX)`, 0 to 1024, default 1024.
    pub uclamp_max: u64,
    /// How well these facts are known.
    pub known: Provenance,
}

impl Task {
    /// A task that may run on `cpus_ptr`, without history.
    pub fn new(pid: Pid, comm: Comm, cpus_ptr: impl Into<TaskMask>, task_cpu: Cpu) -> Self {
        let cpus_ptr = cpus_ptr.into();
        Self {
            pid,
            comm,
            nr_cpus_allowed: cpus_ptr.weight(),
            cpus_preferred: cpus_ptr.clone(),
            cpus_ptr,
            affinity_unequal: false,
            flags: TaskFlags::empty(),
            on_rq: false,
            task_cpu,
            policy_idle: false,
            numa_preferred_nid: -1,
            last_update_time_ns: 1,
            load_avg: 0,
            h_load: 0,
            util_avg: 0,
            util_est_ewma: 0,
            util_est_enqueued: 0,
            runnable_avg: 0,
            uclamp_min: 0,
            uclamp_max: 1024,
            known: Provenance::TRACED,
        }
    }

    /// The idle task of `cpu`: a kthread bound to it.
    pub fn swapper(cpu: Cpu) -> Self {
        let comm = Comm::new(format!("swapper/{cpu}").as_bytes());
        Self { flags: TaskFlags::KTHREAD, ..Self::new(Pid::SWAPPER, comm, Cpumask::of(cpu), cpu) }
    }
}

/// The tasks, by [`TaskId`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tasks(pub Vec<Task>);

impl std::ops::Index<TaskId> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, id: TaskId) -> &Task {
        &self.0[id.index()]
    }
}

impl std::ops::IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, id: TaskId) -> &mut Task {
        &mut self.0[id.index()]
    }
}

/// Run queues as columns: one entry per CPU in each list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQueues {
    /// `rq->nr_running`.
    pub nr_running: Column<u32>,
    /// `rq->cfs.h_nr_running`, since 6.13 (and 6.12.y) `h_nr_queued`.
    pub h_nr_running: Column<u32>,
    /// `rq->cfs.h_nr_runnable` (6.12.y on): queued tasks without the delayed ones; before: the same as `h_nr_running`.
    pub h_nr_runnable: Column<u32>,
    /// `rq->cfs.idle_h_nr_running`: queued SCHED_IDLE tasks.
    pub idle_h_nr_running: Column<u32>,
    /// `rq->curr == rq->idle`.
    pub curr_idle: Cpumask,
    /// `rq->ttwu_pending`; in 5.2 a `wake_list` that is not empty.
    pub ttwu_pending: Cpumask,
    /// `vcpu_is_preempted()`.
    pub vcpu_preempted: Cpumask,
    /// `rq->curr`.
    pub curr: Column<TaskId>,
    /// `rq->avg_idle`, ns.
    pub avg_idle_ns: Column<u64>,
    /// `rq->cfs.avg.load_avg`.
    pub load_avg: Column<u64>,
    /// `rq->cfs.avg.runnable_load_avg` (5.2).
    pub runnable_load_avg: Column<u64>,
    /// `rq->cfs.avg.runnable_avg`.
    pub runnable_avg: Column<u64>,
    /// `rq->cfs.avg.util_avg`.
    pub util_avg: Column<u64>,
    /// `rq->cfs.avg.util_est.enqueued`.
    pub util_est_enqueued: Column<u64>,
    /// `rq->cpu_capacity`: what is left for fair tasks, 1024 for a full biggest CPU.
    pub cpu_capacity: Column<u64>,
    /// `rq->cpu_capacity_orig`.
    pub cpu_capacity_orig: Column<u64>,
    /// `rq->idle_stamp`, ns; 0: not idle, or a task was pulled.
    pub idle_stamp_ns: Column<u64>,
    /// Exit latency of the CPU's idle state, µs; `None`: `idle_get_state()` is NULL.
    pub exit_latency_us: Column<Option<u32>>,
    /// How well each CPU's facts are known.
    pub known: Vec<Provenance>,
}

impl RunQueues {
    /// Every CPU of `topology` idle, never used, and known.
    pub fn new(topology: &Topology) -> Self {
        let n = topology.nr_cpu_ids();
        Self {
            nr_running: vec![0; n].into(),
            h_nr_running: vec![0; n].into(),
            h_nr_runnable: vec![0; n].into(),
            idle_h_nr_running: vec![0; n].into(),
            curr_idle: Cpumask::first_n(n),
            ttwu_pending: Cpumask::EMPTY,
            vcpu_preempted: Cpumask::EMPTY,
            curr: topology.cpus().map(TaskId::swapper).collect(),
            avg_idle_ns: vec![1_000_000; n].into(),
            load_avg: vec![0; n].into(),
            runnable_load_avg: vec![0; n].into(),
            runnable_avg: vec![0; n].into(),
            util_avg: vec![0; n].into(),
            util_est_enqueued: vec![0; n].into(),
            cpu_capacity: topology.parts().capacity_orig.clone().into(),
            cpu_capacity_orig: topology.parts().capacity_orig.clone().into(),
            idle_stamp_ns: vec![0; n].into(),
            exit_latency_us: vec![None; n].into(),
            known: vec![Provenance::TRACED; n],
        }
    }
}

/// Everything a walk can see that is not hidden state of an implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The machine's shape.
    pub topology: Arc<Topology>,
    /// The run queues.
    pub rq: RunQueues,
    /// The tasks; the first `nr_cpu_ids` are the swappers.
    pub tasks: Tasks,
    /// `jiffies`.
    pub jiffies: u64,
    /// Jiffies per second of the modelled kernel (`HZ`).
    pub hz: u32,
}

impl State {
    /// An idle machine with no tasks but the swappers.
    pub fn new(topology: Arc<Topology>) -> Self {
        Self {
            rq: RunQueues::new(&topology),
            tasks: Tasks(topology.cpus().map(Task::swapper).collect()),
            jiffies: 0,
            hz: 250,
            topology,
        }
    }
}
