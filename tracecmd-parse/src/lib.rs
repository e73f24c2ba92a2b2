// SPDX-License-Identifier: GPL-2.0-or-later
//! Reader of trace-cmd's `trace.dat`, versions 6 and 7.
#![deny(unsafe_code)]

mod bytes;
mod compress;
mod cursor;
mod error;
mod field;
mod flags;
mod format;
mod header;
mod meta;
mod options;
pub mod page;
mod reader;
mod section;
mod source;
mod stream;
mod time;
pub mod tracecmd;
mod v6;
mod v7;
pub mod write;

pub use bytes::Endian;
pub use compress::Compression;
pub use cursor::{EventCursor, Item, Summary};
pub use error::Error;
pub use field::{FieldRef, RawEvent};
pub use flags::{FlagTable, TaskStates};
pub use format::{CommonFields, EventFormat, Field, FieldKind, Formats};
pub use meta::{Buffer, CpuData, Gap, Meta, OptionSeen, Text};
pub use page::PageLayout;
pub use reader::{Select, TraceFile, TraceReader};
pub use time::{TimeSample, TimeShift, TscToNs};
