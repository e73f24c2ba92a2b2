// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens to hidden state outside of decisions. The machine tells it, the implementations act on it.

use crate::topology::SharedId;
use crate::units::{Cpu, TaskId};

/// A change that the wakeup path hears of outside of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A CPU goes idle: `__update_idle_core()` runs.
    EnterIdle(Cpu),
    /// A wakeup ended an idle period of `idle_ns`: wake_avg_idle is updated (6.1).
    LeaveIdle {
        /// The CPU.
        cpu: Cpu,
        /// Length of the idle period, ns.
        idle_ns: u64,
    },
    /// A task was made on a CPU: its recent_used_cpu starts anew, its wakee_flips, their decay stamp and last_wakee are
    /// copies of the parent's (`dup_task_struct()` copies them, nothing resets them; seen so in recordings).
    Fork {
        /// The new task.
        p: TaskId,
        /// Its parent; `None`: not known, or nothing to copy.
        parent: Option<TaskId>,
        /// `task_cpu()` at the time, the first recent_used_cpu.
        cpu: Cpu,
    },
    /// A periodic balance of an LLC domain computed nr_idle_scan.
    Balance {
        /// The LLC.
        shared: SharedId,
        /// The value.
        nr_idle_scan: u32,
    },
    /// Sched domains were built anew ([`State::topology`](crate::machine::State) is another): what they share is new, too.
    Domains,
    /// A fact about hidden state was observed in the recorded kernel: it overwrites. Only its own model is told.
    Fact(HiddenFact),
    /// What the recorded kernel's choice shows of its hidden state: it overwrites, as derived. Only its own model is told.
    Learned(HiddenFact),
    /// The same fact for every other implementation: taken only while the value is unknown.
    Seed(HiddenFact),
}

/// An observed value of hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenFact {
    /// A task's recent_used_cpu.
    RecentUsedCpu(TaskId, Cpu),
    /// A task's wakee_flips, and where known their decay stamp (jiffies).
    WakeeFlips(TaskId, u32, Option<u64>),
    /// A task's last_wakee.
    LastWakee(TaskId, Option<TaskId>),
    /// has_idle_cores of a shared state.
    HasIdleCores(SharedId, bool),
    /// nr_idle_scan of a shared state.
    NrIdleScan(SharedId, u32),
    /// avg_scan_cost of a CPU's sd_llc, ns.
    AvgScanCost(Cpu, u64),
    /// wake_avg_idle of a CPU, ns.
    WakeAvgIdle(Cpu, u64),
    /// Tasks whose wakee_flips are not known and were halved last at these jiffies: so many flips more.
    FlipsOfKin(u64, i64),
    /// What an idle check costs on the declared clock, ns.
    ProbeCost(u64),
}
