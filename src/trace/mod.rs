// SPDX-License-Identifier: GPL-2.0-or-later
//! From the events of a recording to typed events: the only place that knows field names and flag values of tracepoints.

pub mod cut_mark;
pub mod decode;
pub mod event;
mod probes;
pub mod summary;

pub use decode::{Decoder, Lack, Unreadable};
pub use event::{Context, Event, EventKind, PrevState, SisIn, SisRq, Wakee};
pub use summary::Summary;
