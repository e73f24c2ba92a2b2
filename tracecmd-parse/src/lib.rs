// SPDX-License-Identifier: GPL-2.0-or-later
//! Reader and writer of trace-cmd's `trace.dat`, versions 6 and 7.
//!
//! ```
//! use tracecmd_parse::{Item, Select, TaskStates, TraceFile, TraceReader};
//!
//! # let path = std::env::temp_dir().join(format!("tracecmd-parse-doc-{}.dat", std::process::id()));
//! # {
//! #     use tracecmd_parse::write::{FormatText, Head, Shape, TraceWriter};
//! #     let text = "name: sched_switch\nID: 316\nformat:\n\
//! #         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//! #         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
//! #         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
//! #         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
//! #         \tfield:long prev_state;\toffset:8;\tsize:8;\tsigned:1;\n\
//! #         \tfield:char next_comm[8];\toffset:16;\tsize:8;\tsigned:0;\n\n\
//! #         print fmt: \"%s\", REC->prev_state & 0xff ? __print_flags(REC->prev_state & 0xff, \"|\", { 1, \"S\" }, { 2, \"D\" }) : \"R\", REC->prev_state & 256 ? \"+\" : \"\"\n";
//! #     let formats = vec![FormatText { system: "sched".into(), text: text.into() }];
//! #     let head = Head { formats, cpus: 4, clock: Some("mono".into()), ..Head::default() };
//! #     let mut writer = TraceWriter::new(std::fs::File::create(&path)?, &Shape::default(), &head, &[])?;
//! #     writer.start_buffer("")?;
//! #     writer.start_cpu(3)?;
//! #     writer.event(5_000, b"\x3c\x01\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0swapper\0")?;
//! #     writer.finish()?;
//! # }
//! let trace = TraceFile::open(&path)?;
//! let switch = trace.formats().event("sched", "sched_switch")?;
//! let (prev_state, next_comm) = (switch.field_ref("prev_state")?, switch.field_ref("next_comm")?);
//! let states = TaskStates::of(switch).expect("the print format has a table of states");
//!
//! let mut cursor = trace.cursor(&Select::top())?;
//! while let Some(item) = cursor.next()? {
//!     match item {
//!         Item::Event(event) if event.id == switch.id => {
//!             let state = prev_state.u64(&event).expect("the event is as long as its format");
//!             let comm = next_comm.text(&event).expect("the event is as long as its format");
//!             println!("{} ns, CPU {}: {} ==> {comm}", event.ts_ns, event.cpu, states.letters(state));
//! #           assert_eq!((event.ts_ns, event.cpu, &*states.letters(state), &*comm), (5_000, 3, "S", "swapper"));
//!         }
//!         Item::Lost { cpu, count, .. } => println!("CPU {cpu}: lost {count:?} events"),
//!         _ => {}
//!     }
//! }
//! for gap in &cursor.summary().gaps {
//!     eprintln!("{}: {gap}", path.display());
//! }
//! # assert_eq!(cursor.summary().events, 1);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! * **Any bytes are safe.** Every length, offset and count is checked; damage is an [`Error`] that says where,
//!   what was expected and what was found, or a [`Gap`] where the rest is still readable. No panic, no endless
//!   loop; memory is bounded by the size of the file and fixed limits.
//! * **Nothing is silently wrong.** Lost events are [`Item::Lost`], in their place. A file that was cut gives the
//!   events that are there, then [`Item::Lost`] and a gap that says what is missing. Events of one CPU whose
//!   times go back are given as they are and counted.
//! * **Nothing about events is built in.** Offsets, sizes and signs come from the formats in the file, also for
//!   the common fields (8 bytes in mainline, 12 elsewhere) and the letters of task states.
//! * **Memory does not grow with the trace.** It is read by position, a few pages or one chunk of each CPU at a
//!   time, and merged without an allocation for an event.
//!
//! # What it knows
//!
//! Versions 6 and 7; both byte orders; kernels of 32 and 64 bits; zstd and zlib (in Rust, no C compiler; with the
//! feature `zstd-c` zstd's own library, which is three times as fast and gives the same); several buffers;
//! time-extend and absolute time stamps; the options OFFSET, DATE, TIME_SHIFT and TSC2NSEC, applied as trace-cmd
//! applies them. Options that it does not know are listed in [`Meta::options`].
//!
//! Not: latency traces (text), kernels before 2.6.31, live traces. A version 7 file that was cut has lost its
//! table of buffers, which is the last thing in it, and is refused.
//!
//! # Order of events
//!
//! By (time, CPU, position in the CPU's buffer), as `trace-cmd report` prints them. Unix only: it uses `pread`.
#![deny(unsafe_code)]

mod bytes;
mod compress;
mod cover;
mod cursor;
mod error;
mod field;
mod flags;
mod format;
mod header;
mod input;
mod meta;
mod option_check;
mod options;
mod packed;
pub mod page;
mod reader;
mod section;
mod source;
mod stream;
pub mod text;
mod time;
pub mod tracecmd;
mod v6;
mod v7;
pub mod write;
pub mod zstd;

pub use bytes::Endian;
pub use compress::Compression;
pub use cursor::{EventCursor, Item, Summary};
pub use error::{Error, PackedFault};
pub use field::{FieldRef, RawEvent};
pub use flags::{FlagTable, TaskStates};
pub use format::{CommonFields, EventFormat, Field, FieldKind, Formats};
pub use input::{AnyTrace, Unpacked, open_any, open_repeatable, open_unpacked};
pub use meta::{Buffer, CpuData, Gap, Meta, OptionSeen, Text};
pub use page::PageLayout;
pub use reader::{Select, TraceFile, TraceReader};
pub use time::{TimeSample, TimeShift, TscToNs};
