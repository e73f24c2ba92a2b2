// SPDX-License-Identifier: GPL-2.0-or-later
//! A regression gate: what a replay of recordings gave when somebody last looked, and whether it still does. Pure: texts
//! and counts in, texts and verdicts out; files and threads are the command line's.

pub mod allow;
pub mod compare;
pub mod config;
mod config_values;
pub mod digest;
pub mod glean;
pub mod name;
pub mod origin;
pub mod result;
pub mod snapshot;
mod snapshot_parse;

pub use allow::{Allow, Rules, Share};
pub use compare::{Change, Excuse, Value, compare};
pub use config::{Config, ConfigError, Pair};
pub use glean::Gleaner;
pub use result::{Check, Gate, Oracle, Status, Trouble, Violation};
pub use snapshot::{FORMAT, Head, Part, Snapshot, Table};
pub use snapshot_parse::SnapshotError;
