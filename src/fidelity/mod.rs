// SPDX-License-Identifier: GPL-2.0-or-later
//! How often the model of the recorded kernel chooses as that kernel did, and why not where it does not.
//!
//! A recording is replayed twice. The first pass compares every decision with the recorded choice; the second comes back
//! to those that differ, and tries the other values of each input that the walk read: what makes the model choose as the
//! kernel did explains the difference ([`why`]). Where the input is a run queue, and an event shows that it changed
//! between the probe and the answer, the difference is a proven race ([`race`]).
//!
//! Nothing is left out of a figure but races proven so, and those only where the figure's name says it.

pub mod avail;
pub mod figures;
mod first;
pub mod measure;
pub mod race;
mod second;
pub mod told;
pub mod why;

pub use figures::{Cause, FileFidelity, Implementation, Kind, Level};
pub use measure::{Options, measure};
