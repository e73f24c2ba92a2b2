// SPDX-License-Identifier: GPL-2.0-or-later
//! Implementations of the wakeup path, one file per kernel release, behind one seam.
//!
//! A release is written in kernel order under kernel names, one Rust `return` per kernel `return`; a patch is a bit
//! tested where the patch has its hunk. Releases share leaf reads (`env`) only while they mean the same, and no
//! control flow. The kernel's bugs are kept and marked with the commit that fixed them.

pub mod decision;
pub mod env;
pub mod fallback;
pub mod features;
pub mod groups;
pub mod hidden;
pub mod leaf;
pub mod model;
pub mod recorded;
pub mod release;
pub mod spec;
pub mod v5_11;
pub mod v5_2;
pub mod v6_1;
pub mod walk;

pub use decision::{Decision, Exit, ProbeKind, SisCounters, Writes};
pub use env::Env;
pub use features::{Patch, SchedFeat};
pub use hidden::{Clock, CpuHidden, Hidden, SharedHidden, TaskHidden};
pub use model::Model;
pub use recorded::{Recorded, model_of};
pub use release::{RELEASES, Release, ReleaseInfo};
pub use spec::{ModelSpec, Spec, SpecError, TreeSpec};
pub use walk::{Quiet, Recorder, Walk, WalkStep};

use crate::machine::{Inputs, State, TaskId};
use crate::topology::SharedId;
use crate::units::Cpu;
use crate::wakeup::Wakeup;

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
    /// A fact about hidden state was observed in the recorded kernel: it overwrites. Only its own model is told.
    Fact(HiddenFact),
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
}

/// The seam: everything the rest of sisdiff knows of an implementation.
pub trait Implementation: Send {
    /// The name one would write in a mail: `v5.11+recent-used`.
    fn name(&self) -> &str;

    /// Kinds of input that the walk can read.
    fn reads(&self) -> Inputs;

    /// Takes note of a change outside of a decision.
    fn step(&mut self, state: &State, step: &Step);

    /// `select_task_rq_fair()`; records the walk if asked.
    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision;

    /// The decision as [`Self::select_task_rq`] would make it, with all hidden state left as it is: to try the same
    /// wakeup under another assumption.
    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision;
}
