// SPDX-License-Identifier: GPL-2.0-or-later
//! Closed loop: a machine on which an implementation's own choices decide what follows.
//!
//! A [`Workload`] is tasks with programs; [`Cost`] is what things cost; [`Setup`] is the machine. [`run`] plays them as
//! discrete events, ordered by time and number, and counts. The implementation is the very one of a replay, asked through
//! the same seam about the same [`State`](crate::machine::State); load tracking is the replay's, too. Pure: no clock but
//! the simulated one, no randomness but the seed's.

pub mod cfs;
pub mod cost;
mod engine;
pub mod exits;
pub mod extract;
pub mod histogram;
pub mod invent;
pub mod models;
pub mod program;
pub mod reality;
pub mod rtapp;
pub mod stats;
pub mod suite;
pub mod trial;

pub use cost::{Cost, CostError};
pub use engine::{Decided, Setup, SimulateError, Watch, run, run_audited, run_watched};
pub use histogram::Histogram;
pub use program::{Arrivals, Dist, How, Op, Start, TaskSpec, Times, Workload, WorkloadError};
pub use stats::Stats;
