// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine: observed facts, driven by events. Pure: no clock, no I/O.

mod apply;
mod book;
mod config;
pub mod inputs;
mod life;
mod names;
pub mod notice;
mod probe;
pub mod state;
mod switch;
mod tasks;
mod wake;

pub use apply::{Doubts, Machine};
pub use config::{MachineConfig, Release, ReleaseError};
pub use inputs::{Inputs, Provenance};
pub use notice::{Notice, RecordedWakeup, Why};
pub use state::{RunQueues, State, Task, TaskFlags, TaskId, Tasks};

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
