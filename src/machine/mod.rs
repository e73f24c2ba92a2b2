// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine: observed facts, driven by events. Pure: no clock, no I/O.

pub mod inputs;
pub mod notice;
pub mod state;

pub use inputs::{Inputs, Provenance};
pub use notice::{Notice, RecordedWakeup, Why};
pub use state::{RunQueues, State, Task, TaskFlags, TaskId, Tasks};
