// SPDX-License-Identifier: GPL-2.0-or-later
//! The events that the machine understands.

use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::WakeKind;

bitflags::bitflags! {
    /// What an event interrupted, from `common_flags`; empty: task context.
    ///
    /// **Source**: include/linux/trace_events.h, enum trace_flag_type. TRACE_FLAG_BH_OFF (0x80) is not here: a task that
    /// disabled bottom halves is still in_task().
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Context: u8 {
        /// A hard interrupt.
        const HARDIRQ = 0x08;
        /// A softirq.
        const SOFTIRQ = 0x10;
        /// A non-maskable interrupt.
        const NMI = 0x40;
        /// The trace does not tell (a text without its irq-info column). No bit of the kernel's: it is
        /// TRACE_FLAG_IRQS_OFF there.
        const UNTOLD = 0x01;
    }
}

impl Context {
    /// From `common_flags`.
    #[inline]
    pub fn from_flags(flags: u8) -> Self {
        Self::from_bits_truncate(flags) - Self::UNTOLD
    }

    /// `in_task()`; where the trace does not tell, what is likelier: a swapper wakes nobody but in interrupts, and
    /// most other wakeups are a task's own.
    #[inline]
    pub fn in_task(self, pid: Pid) -> bool {
        match self.contains(Self::UNTOLD) {
            true => pid != Pid::SWAPPER,
            false => self.is_empty(),
        }
    }
}

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Time, ns of the trace's clock.
    pub ts_ns: u64,
    /// The CPU that it happened on.
    pub cpu: Cpu,
    /// The task in whose context it happened (`common_pid`).
    pub pid: Pid,
    /// What it interrupted.
    pub context: Context,
    /// What happened.
    pub kind: EventKind,
}

/// The state in which a task was switched out, decoded by the trace's own flag table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrevState {
    /// Still runnable, preempted or not: it stays queued.
    Runnable,
    /// It sleeps.
    Blocked,
    /// It is gone for good (`X`, `Z`).
    Dead,
}

/// A task as wakeup events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakee {
    /// Thread id.
    pub pid: Pid,
    /// Name.
    pub comm: Comm,
    /// Kernel priority: 100 to 139 fair, below real time, below 0 deadline.
    pub prio: i32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EventKind {
    /// sched_switch.
    Switch {
        /// Who ran.
        prev: Wakee,
        /// In which state it left.
        prev_state: PrevState,
        /// Who runs now.
        next: Wakee,
    },
    /// sched_waking: in the waker's context, before the decision.
    Waking {
        /// The wakee.
        wakee: Wakee,
        /// `task_cpu(p)`: prev_cpu of the decision.
        target_cpu: Cpu,
    },
    /// sched_wakeup, sched_wakeup_new: the task is queued.
    Wakeup {
        /// The wakee.
        wakee: Wakee,
        /// Where it is queued.
        target_cpu: Cpu,
        /// sched_wakeup_new: the first of a task.
        new: bool,
    },
    /// sched_migrate_task: set_task_cpu() changes the CPU.
    Migrate {
        /// Who.
        task: Wakee,
        /// From where.
        orig_cpu: Cpu,
        /// To where.
        dest_cpu: Cpu,
    },
    /// sched_process_fork.
    Fork {
        /// The parent.
        parent: Pid,
        /// The new task.
        child: Pid,
        /// Its name.
        child_comm: Comm,
    },
    /// sched_process_exec: the task has a new program.
    Exec {
        /// Thread id now.
        pid: Pid,
        /// Thread id before (differs if a thread other than the leader called exec).
        old_pid: Pid,
    },
    /// sched_process_exit: PF_EXITING is set (slightly before).
    Exit {
        /// Who.
        pid: Pid,
    },
    /// sched_process_free: the pid is free.
    Free {
        /// Who.
        pid: Pid,
    },
    /// Events of the event's CPU are missing here.
    Lost {
        /// How many, if the kernel counted them.
        count: Option<u64>,
    },
    /// cpuhp_enter: a CPU is on its way up or down.
    Hotplug {
        /// Which CPU.
        target: Cpu,
        /// Up.
        online: bool,
    },
    /// cpu_idle: entry to (`Some`, the index) or exit from an idle state.
    IdleState {
        /// Which CPU.
        target: Cpu,
        /// The state's index.
        state: Option<u32>,
    },
    /// kprobe sis_in: entry of select_task_rq_fair().
    SisIn(Box<SisIn>),
    /// kprobe sis_rqN at the same entry: a run queue as it is in memory.
    SisRq(Box<SisRq>),
    /// kprobe sis_out: the answer of select_task_rq_fair().
    SisOut {
        /// The CPU, `None` if the number is no CPU.
        ret: Option<Cpu>,
    },
    /// kprobe sis_avail_in: available_idle_cpu() is asked.
    AvailIn {
        /// About which CPU.
        target: Cpu,
    },
    /// kprobe sis_avail_out: its answer.
    AvailOut {
        /// The answer.
        idle: bool,
    },
    /// An event that the machine does not need.
    #[default]
    Ignored,
    /// An event of a known kind with values that cannot be.
    Malformed,
}

/// The wakee as select_task_rq_fair() got it; `None`: the recorded kernel or the probe has no such member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SisIn {
    /// The wakee.
    pub pid: Pid,
    /// `prev_cpu`.
    pub prev_cpu: Cpu,
    /// What the call is for.
    pub kind: WakeKind,
    /// WF_SYNC.
    pub sync: bool,
    /// `recent_used_cpu`.
    pub recent_used_cpu: Option<Cpu>,
    /// `on_cpu`.
    pub on_cpu: Option<bool>,
    /// `wakee_flips`.
    pub wakee_flips: Option<u32>,
    /// `wakee_flip_decay_ts`, jiffies.
    pub wakee_flip_decay_jiffies: Option<u64>,
    /// `last_wakee->pid`; 0 where last_wakee is NULL (or a swapper, which nobody wakes).
    pub last_wakee: Option<Pid>,
    /// `se.avg.util_avg`.
    pub util_avg: Option<u64>,
    /// `se.avg.util_est.enqueued` (since 6.8 `util_est`), the flag bit included.
    pub util_est: Option<u64>,
    /// `se.avg.load_avg`.
    pub load_avg: Option<u64>,
    /// `se.avg.last_update_time`, ns of the run queue clock.
    pub last_update_time_ns: Option<u64>,
    /// `se.load.weight`, 1024 for nice 0 (the kernel's 10 more bits removed).
    pub weight: Option<u64>,
    /// `nr_cpus_allowed`.
    pub nr_cpus_allowed: Option<u32>,
    /// The first 128 bits of `cpus_ptr`.
    pub cpus_ptr: Option<[u64; 2]>,
    /// `policy`: 0 SCHED_NORMAL, 3 SCHED_BATCH, 5 SCHED_IDLE.
    pub policy: Option<u32>,
    /// `flags`: the PF_ bits.
    pub flags: Option<u64>,
    /// `se.depth`: 0 in the root group.
    pub depth: Option<u32>,
    /// `numa_preferred_nid`.
    pub numa_preferred_nid: Option<i32>,
    /// `se.sched_delayed`.
    pub delayed: Option<bool>,
    /// `jiffies` of the recorded kernel.
    pub jiffies: Option<u64>,
}

/// One run queue at the entry of select_task_rq_fair(); `None`: the recorded kernel or the probe has no such member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SisRq {
    /// Whose run queue.
    pub target: Cpu,
    /// `nr_running`.
    pub nr_running: Option<u32>,
    /// `cfs.h_nr_running`, later `h_nr_queued`.
    pub h_nr_running: Option<u32>,
    /// `cfs.h_nr_runnable`.
    pub h_nr_runnable: Option<u32>,
    /// `cfs.h_nr_delayed`.
    pub h_nr_delayed: Option<u32>,
    /// `cfs.idle_h_nr_running`, later `h_nr_idle`.
    pub idle_h_nr_running: Option<u32>,
    /// `ttwu_pending`.
    pub ttwu_pending: Option<bool>,
    /// `cfs.avg.util_avg`.
    pub util_avg: Option<u64>,
    /// `cfs.avg.util_est.enqueued`, later `util_est`.
    pub util_est: Option<u64>,
    /// `cfs.avg.load_avg`.
    pub load_avg: Option<u64>,
    /// `cfs.avg.runnable_avg`.
    pub runnable_avg: Option<u64>,
    /// `cpu_capacity`.
    pub cpu_capacity: Option<u64>,
    /// `avg_idle`, ns.
    pub avg_idle_ns: Option<u64>,
    /// `wake_avg_idle`, ns.
    pub wake_avg_idle_ns: Option<u64>,
    /// `curr->pid`.
    pub curr: Option<Pid>,
    /// `curr->wakee_flips`.
    pub curr_wakee_flips: Option<u32>,
    /// `curr->last_wakee->pid`; 0 where last_wakee is NULL.
    pub curr_last_wakee: Option<Pid>,
    /// `curr->wakee_flip_decay_ts`, jiffies.
    pub curr_wakee_flip_decay_jiffies: Option<u64>,
    /// `curr->se.avg.load_avg`.
    pub curr_load_avg: Option<u64>,
    /// `curr->flags`: the PF_ bits.
    pub curr_flags: Option<u64>,
    /// `curr->nr_cpus_allowed`.
    pub curr_nr_cpus_allowed: Option<u32>,
    /// `curr->policy`, as [`SisIn::policy`].
    pub curr_policy: Option<u32>,
    /// `idle_stamp`, ns of the run queue clock; 0: not idle, or a task was pulled.
    pub idle_stamp_ns: Option<u64>,
    /// `cfs.h_load`.
    pub h_load: Option<u64>,
    /// `cfs.last_h_load_update`, jiffies.
    pub last_h_load_jiffies: Option<u64>,
    /// `sd_llc->avg_scan_cost`, ns.
    pub avg_scan_cost_ns: Option<u64>,
    /// `sd_llc_shared->has_idle_cores`.
    pub has_idle_cores: Option<bool>,
    /// `sd_llc_shared->nr_idle_scan`.
    pub nr_idle_scan: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bottom_halves_off_is_task_context() {
        assert!(Context::from_flags(0x80 | 0x01).in_task(Pid::SWAPPER));
        assert!(!Context::from_flags(0x10).in_task(Pid(1)));
        assert!(!Context::from_flags(0x40).in_task(Pid(1)));
        assert!(Context::UNTOLD.in_task(Pid(1)) && !Context::UNTOLD.in_task(Pid::SWAPPER));
    }
}
