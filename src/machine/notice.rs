// SPDX-License-Identifier: GPL-2.0-or-later
//! What the machine tells while events drive it.

use crate::machine::Step;
use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::Wakeup;

/// A recorded call of select_task_rq_fair(), at the moment of its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedWakeup {
    /// Number of this call in the trace, from 1. What `explain --wakeup N` takes.
    pub number: u64,
    /// Time of the sched_waking (or sis_in) event, ns of the trace's clock.
    pub ts_ns: u64,
    /// The wakee.
    pub pid: Pid,
    /// Its name.
    pub comm: Comm,
    /// The task in whose context the call ran.
    pub waker_pid: Pid,
    /// Its name.
    pub waker_comm: Comm,
    /// The question as the implementations get it.
    pub wakeup: Wakeup,
}

/// Why a sched_waking led to no selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The wakee was the current task.
    Current,
    /// It was still queued: preempted, not switched out, or delayed.
    StillQueued,
    /// It was in the middle of switching out and went to its CPU's wake list.
    OnCpu,
    /// It may run on one CPU only.
    Bound,
    /// Migration was disabled, or another reason that only the missing probe tells.
    Unexplained,
    /// It is no fair task: deadline, real time, stop.
    NotFair,
    /// The state before the replay's start or around lost events does not tell.
    Unknown,
}

/// Something the machine noticed while applying one event. The state is the one at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Implementations decide now.
    Wakeup(RecordedWakeup),
    /// A waking that was no decision.
    NotSelected {
        /// When.
        ts_ns: u64,
        /// Who.
        pid: Pid,
        /// Its name.
        comm: Comm,
        /// The CPU that the waking ran on.
        this_cpu: Cpu,
        /// Why.
        why: Why,
    },
    /// Hidden state of the implementations is concerned.
    Step(Step),
    /// What the recorded kernel chose for wakeup `number`; may come late, and for some wakeups never.
    Chosen {
        /// Which wakeup.
        number: u64,
        /// What the scheduling class returned, where a probe told.
        class_cpu: Option<Cpu>,
        /// Where the task went, where an event told.
        final_cpu: Option<Cpu>,
    },
    /// Nothing more will be learned of the choice of wakeup `number`.
    NeverChosen {
        /// Which wakeup.
        number: u64,
    },
}
