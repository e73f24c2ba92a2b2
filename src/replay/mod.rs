// SPDX-License-Identifier: GPL-2.0-or-later
//! Trace × implementations → comparisons.
//!
//! [`Driver`] is the pure middle: notices in, totals out, memory bounded. Files, threads and progress are at the edge.

pub mod driver;
pub mod filter;
pub mod outcome;
pub mod totals;

pub use driver::{Choice, Contestant, Driver, Explained, Finished, Row};
pub use filter::Filter;
pub use outcome::{Outcome, RecordedModel, Recording, Setup};
pub use totals::{Role, Totals};
