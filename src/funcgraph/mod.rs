// SPDX-License-Identifier: GPL-2.0-or-later
//! What functions of the wakeup path cost, measured by ftrace's function_graph tracer.
//!
//! | part | says |
//! |---|---|
//! | [`mod@read`] | a trace.dat or text → [`Reading`]: calls, and what could not be paired or read |
//! | [`stacks`] | entries and exits → calls, by task and depth |
//! | [`stats`] | durations → mean with its interval, median, percentiles |
//! | [`compare`] | two sets of calls → differences with intervals, a rank test |
//! | [`ops`] | differences per call → a difference per operation |
//! | [`analysis`] | all of that for the sets of a command line |
//! | [`fit`] | durations against scanned CPUs → ns for each |
//!
//! Durations are what the tracer measured, its own cost included: between the kernel's reading the clock at entry and
//! at return lie the tracer's hooks of every traced function that was called in between. [`overhead`] says how much
//! that is, as far as a recording shows it.
//!
//! **Source**: kernel/trace/trace_functions_graph.c and kernel/trace/fgraph.c, v6.1 and v6.12.

pub mod analysis;
pub mod compare;
pub mod dat;
pub mod fit;
pub mod keep;
pub mod ops;
pub mod overhead;
pub mod read;
pub mod sample;
pub mod stacks;
pub mod stats;
mod symbols;
pub mod text;

pub use analysis::{Analysis, Plan, Set, analyse};
pub use keep::{Keep, Moment};
pub use ops::Operation;
pub use read::{CallAt, FuncgraphError, Input, Part, Reading, calls, read};
pub use stats::{Middle, Resampling};
