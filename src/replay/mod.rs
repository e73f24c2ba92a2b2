// SPDX-License-Identifier: GPL-2.0-or-later
//! Trace × implementations → comparisons.
//!
//! [`Driver`] is the pure middle: notices in, totals out, memory bounded. [`run`] is the edge: files, threads, progress.

mod ahead;
pub mod contradiction;
pub mod driver;
pub mod entrant;
pub mod error;
pub mod filter;
mod flips;
mod hindsight;
pub mod insight;
pub mod outcome;
pub mod recording;
pub mod run;
pub mod setup;
pub mod stated;
pub mod tally;
pub mod totals;

pub use driver::{Choice, Contestant, Driver, Explained, Finished, Row};
pub use entrant::Entrant;
pub use error::ReplayError;
pub use filter::Filter;
pub use insight::Insight;
pub use outcome::{Outcome, RecordedModel, Recording, Setup};
pub use setup::Options;
pub use totals::{Role, Totals};
