// SPDX-License-Identifier: GPL-2.0-or-later
//! The question put to every implementation: who is woken, by whom, from where.

use crate::inputs::{Inputs, Provenance};
use crate::units::{Cpu, TaskId};

/// What `select_task_rq_fair()` is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeKind {
    /// WF_TTWU: a wakeup.
    Ttwu,
    /// WF_FORK: the first placement of a new task.
    Fork,
    /// WF_EXEC: a task about to execute another program.
    Exec,
}

/// One call of `select_task_rq_fair(p, prev_cpu, wake_flags)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// The wakee.
    pub p: TaskId,
    /// The task in whose context the wakeup runs; in an interrupt whatever was interrupted.
    pub current: TaskId,
    /// `smp_processor_id()`.
    pub this_cpu: Cpu,
    /// Where the wakee last was.
    pub prev_cpu: Cpu,
    /// What the call is for.
    pub kind: WakeKind,
    /// WF_SYNC: the waker says that it is about to sleep.
    pub sync: bool,
    /// `in_task()`: not in an interrupt, softirq or NMI.
    pub in_task: bool,
    /// How well `sync`, `in_task` and `prev_cpu` are known.
    pub known: Provenance,
}

impl Wakeup {
    /// The kinds of input that the wakeup itself carries.
    pub const INPUTS: Inputs = Inputs::SYNC.union(Inputs::CONTEXT).union(Inputs::PREV_CPU);
}
