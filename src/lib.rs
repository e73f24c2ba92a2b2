// SPDX-License-Identifier: GPL-2.0-or-later
//! sisdiff: differential tester and fuzzer for the Linux scheduler's wakeup path.
//!
//! trace → [`machine`] → [`fair`] → compare → report, with no circle.
#![forbid(unsafe_code)]

pub mod affinity;
pub mod bins;
pub mod cli;
pub mod column;
pub mod compare;
pub mod counters;
pub mod cpumask;
pub mod cut;
pub mod export;
pub mod fair;
pub mod fidelity;
pub mod funcgraph;
pub mod fuzz_loop;
pub mod gate;
pub mod hint;
pub mod histogram;
pub mod info;
pub mod inputs;
pub mod machine;
pub mod oracle;
pub mod record;
pub mod replay;
pub mod report;
pub mod repro;
pub mod scan_cost;
pub mod scenario;
pub mod shrink;
pub mod simulate;
pub mod spec;
pub mod topology;
pub mod trace;
#[cfg(feature = "tree")]
pub mod tree;
pub mod units;
pub mod vectors;
pub mod wakeup;
