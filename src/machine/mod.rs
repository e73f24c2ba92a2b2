// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine: observed facts, driven by events. Pure: no clock, no I/O.

mod affinity;
mod apply;
mod audit;
mod balance;
mod book;
mod config;
mod life;
mod loads;
mod mask;
mod names;
pub mod notice;
mod pace;
mod pelt;
mod policy;
mod probe;
mod show;
pub mod state;
mod stated;
pub mod step;
mod switch;
mod tasks;
mod wake;

pub use apply::{Doubts, Machine};
pub use audit::{Audit, ErrorRow, Tally};
pub(crate) use balance::{intervals, jiffies_of_ms, nr_idle_scan};
pub use config::{MachineConfig, Release, ReleaseError};
pub(crate) use loads::{Entity, Loads, WEIGHT_IDLE, weight_of};
pub use mask::TaskMask;
pub use names::bound_cpu;
pub use notice::{Notice, RecordedWakeup, Why};
pub use state::{RunQueues, State, Task, TaskFlags, Tasks};
pub use stated::{RuleUse, Stated};
pub use step::{HiddenFact, Step};

pub use crate::inputs::{Inputs, Provenance};
pub use crate::units::TaskId;

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
