// SPDX-License-Identifier: GPL-2.0-or-later
//! Writer of trace.dat, versions 6 and 7.
//!
//! For cutting and anonymising recordings, and for making small ones in tests.
//! What it writes, this crate's reader and `trace-cmd report` read back.
//!
//! The events of one CPU are written after those of another, so memory does not
//! grow with the trace: start a buffer, start a CPU, give its events in the
//! order of the ring buffer, start the next CPU.
//!
//! ```
//! use std::io::Cursor;
//! use tracecmd_parse::write::{FormatText, Head, Shape, TraceWriter};
//! use tracecmd_parse::{Item, Select, TraceFile, TraceReader};
//!
//! let head = Head {
//!     cpus: 1,
//!     formats: vec![FormatText {
//!         system: "demo".into(),
//!         text: "name: tick\nID: 100\nformat:\n\
//!             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//!             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
//!             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
//!             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
//!             \n\tfield:u32 count;\toffset:8;\tsize:4;\tsigned:0;\n\
//!             \nprint fmt: \"count=%u\", REC->count\n".into(),
//!     }],
//!     ..Head::default()
//! };
//! let mut writer = TraceWriter::new(Cursor::new(Vec::new()), &Shape::default(), &head, &[])?;
//! writer.start_buffer("")?;
//! writer.start_cpu(0)?;
//! writer.event(1_000, &[100, 0, 0, 0, 7, 0, 0, 0, 42, 0, 0, 0])?;
//! let bytes = writer.finish()?.into_inner();
//!
//! let trace = TraceFile::from_bytes(bytes)?;
//! let tick = trace.formats().event("demo", "tick")?;
//! let (pid, count) = (tick.field_ref("common_pid")?, tick.field_ref("count")?);
//! let mut cursor = trace.cursor(&Select::top())?;
//! let Some(Item::Event(event)) = cursor.next()? else { panic!("one event was written") };
//! assert_eq!((event.ts_ns, event.cpu, event.id), (1_000, 0, 100));
//! assert_eq!((pid.i64(&event), count.u64(&event)), (Some(7), Some(42)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod head;
mod options;
mod out;
mod page;
mod sections;
mod text;
mod writer;

pub use head::{FormatText, Head, Shape};
pub use page::{PageBuilder, Stamp};
pub use writer::TraceWriter;

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error("cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// The shape is not one that exists.
    #[error("{what} is {found}, expected {expected}")]
    Shape {
        /// What of it.
        what: &'static str,
        /// What was given.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// An event does not fit into a page.
    #[error("event of {found} bytes does not fit into a page, the largest is {limit}")]
    EventSize {
        /// Bytes of its data.
        found: usize,
        /// Bytes that fit.
        limit: usize,
    },
    /// A size that the file has no room for.
    #[error("{what} is {found} bytes, the format has room for {limit}")]
    Size {
        /// Of what.
        what: &'static str,
        /// How large it is.
        found: u64,
        /// How large it may be.
        limit: u64,
    },
    /// Calls in an order that makes no trace.
    #[error("{0}")]
    Order(String),
}
