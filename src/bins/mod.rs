// SPDX-License-Identifier: GPL-2.0-or-later
//! What pictures are drawn from: bins that a replay fills as it goes, of a size that does not grow with the recording.

mod collect;
mod comms;
mod latency;
mod picks;
mod time;

pub use collect::{Bins, Collector};
pub use comms::{CommRow, Comms};
pub use latency::Latencies;
pub use picks::{PICKS_MAX, Picks};
pub use time::{Bin, TimeBins};
