// SPDX-License-Identifier: GPL-2.0-or-later
//! What is given to the writer besides the events.

use std::collections::BTreeMap;

use super::WriteError;
use crate::bytes::Endian;
use crate::compress::Compression;
use crate::page::PageLayout;
use crate::reader::TraceReader;
use crate::time::{TimeShift, TscToNs};

/// How the file is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// 6 or 7.
    pub version: u32,
    /// Byte order of every number.
    pub endian: Endian,
    /// Bytes of a `long`, 4 or 8.
    pub long_size: u8,
    /// Bytes of a page of the ring buffer.
    pub page_size: u32,
    /// How sections and buffers are compressed; version 6 has no compression.
    pub compression: Compression,
}

impl Default for Shape {
    /// Version 7, little endian, 64 bits, pages of 4096 bytes, not compressed.
    fn default() -> Shape {
        Shape { version: 7, endian: Endian::Little, long_size: 8, page_size: 4096, compression: Compression::None }
    }
}

impl Shape {
    /// As a trace that was read.
    pub fn of(trace: &dyn TraceReader) -> Shape {
        let meta = trace.meta();
        let commit_size = meta.buffers.first().map(|b| b.layout.commit_size as u8);
        Shape {
            version: meta.version,
            endian: meta.endian,
            long_size: commit_size.unwrap_or(meta.long_size),
            page_size: meta.page_size,
            compression: meta.compression,
        }
    }

    /// How its pages look.
    pub fn layout(&self) -> PageLayout {
        PageLayout {
            endian: self.endian,
            page_size: self.page_size,
            commit_size: u32::from(self.long_size),
            data_offset: 8 + u32::from(self.long_size),
        }
    }

    pub(super) fn check(&self) -> Result<(), WriteError> {
        let wrong = |what, found: u32, expected| WriteError::Shape { what, found: found.to_string(), expected };
        if self.version != 6 && self.version != 7 {
            return Err(wrong("version", self.version, "6 or 7"));
        }
        if self.long_size != 4 && self.long_size != 8 {
            return Err(wrong("size of long", u32::from(self.long_size), "4 or 8"));
        }
        if !(64..=16 << 20).contains(&self.page_size) || !self.page_size.is_power_of_two() {
            return Err(wrong("page size", self.page_size, "a power of two from 64 to 16777216"));
        }
        if self.version == 6 && self.compression != Compression::None {
            let found = self.compression.name().to_string();
            return Err(WriteError::Shape { what: "compression", found, expected: "none in version 6" });
        }
        Ok(())
    }
}

/// One event's format, as a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatText {
    /// `sched`, or `ftrace` for the tracers' own events.
    pub system: String,
    /// The `format` file.
    pub text: String,
}

/// What a trace says about itself.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Event formats; those of one system follow one another.
    pub formats: Vec<FormatText>,
    /// Text of /proc/kallsyms.
    pub kallsyms: Vec<u8>,
    /// Text of tracefs' `printk_formats`.
    pub printk_formats: Vec<u8>,
    /// Saved command lines: pid and comm.
    pub comms: BTreeMap<i32, String>,
    /// Number of CPUs.
    pub cpus: u32,
    /// Trace clock.
    pub clock: Option<String>,
    /// `uname` text.
    pub uname: Option<String>,
    /// Version of the program that recorded.
    pub tracecmd_version: Option<String>,
    /// The ring buffer's `stats` texts.
    pub cpustat: Vec<String>,
    /// Session number.
    pub trace_id: Option<u64>,
    /// To be added to every time stamp, in nanoseconds; 0 writes no option.
    pub ts_offset_ns: i64,
    /// Conversion of TSC ticks.
    pub tsc_to_ns: Option<TscToNs>,
    /// Guest-to-host time correction.
    pub time_shift: Option<TimeShift>,
    /// Memory maps of traced processes.
    pub proc_maps: Vec<String>,
    /// Other options: number and data.
    pub more_options: Vec<(u16, Vec<u8>)>,
}

impl Head {
    /// What a trace that was read says, for writing (a part of) it again with the
    /// times that its cursor gives: corrections of times are left out, since
    /// those times have them. Symbols and printk formats are left out too; see
    /// [`crate::TraceFile::kallsyms`].
    pub fn of(trace: &dyn TraceReader) -> Head {
        let meta = trace.meta();
        let mut formats: Vec<FormatText> = trace
            .formats()
            .iter()
            .map(|event| FormatText { system: event.system.clone(), text: event.to_text() })
            .collect();
        // Stable: by id within a system.
        formats.sort_by(|a, b| a.system.cmp(&b.system));
        Head {
            formats,
            comms: meta.comms.clone(),
            cpus: meta.cpus,
            clock: meta.clock.clone(),
            uname: meta.uname.clone(),
            tracecmd_version: meta.tracecmd_version.clone(),
            cpustat: meta.cpustat.clone(),
            trace_id: meta.trace_id,
            proc_maps: meta.proc_maps.clone(),
            ..Head::default()
        }
    }
}
