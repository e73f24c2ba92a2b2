// SPDX-License-Identifier: GPL-2.0-or-later
//! How a good trace of this machine is made: which events and probes, and in which steps. Nothing is done here.

pub mod btf;
pub mod plan;
pub mod probes;

pub use btf::{Btf, BtfError};
pub use plan::{Facts, Plan, Step, Wish};
pub use probes::{Level, Probe, Symbols, probes};
