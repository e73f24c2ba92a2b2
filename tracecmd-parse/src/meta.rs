// SPDX-License-Identifier: GPL-2.0-or-later
//! What a trace says about itself.

use std::collections::BTreeMap;

use crate::bytes::Endian;
use crate::compress::Compression;
use crate::page::PageLayout;
use crate::time::{TimeShift, TscToNs};

/// Everything in a trace.dat besides formats and events.
#[derive(Debug, Clone)]
pub struct Meta {
    /// 6 or 7.
    pub version: u32,
    /// Byte order of the recorded machine.
    pub endian: Endian,
    /// Bytes of a `long` of the recording program (4 or 8). The kernel's is
    /// [`PageLayout::commit_size`].
    pub long_size: u8,
    /// Bytes of a page of the recorded machine.
    pub page_size: u32,
    /// Bytes of the file when it was opened.
    pub file_size: u64,
    /// How sections and buffers are compressed.
    pub compression: Compression,
    /// Version text of the compressor, empty in version 6.
    pub compression_version: String,
    /// CPUs of the machine: the CPUCOUNT option, else the number of CPU buffers.
    pub cpus: u32,
    /// Trace clock: `local`, `mono`, `x86-tsc`, ...
    pub clock: Option<String>,
    /// `uname` text: system, node name, release, machine.
    pub uname: Option<String>,
    /// Version of the trace-cmd that wrote the file.
    pub tracecmd_version: Option<String>,
    /// The ring buffer's `stats` text, one for each CPU that had one.
    pub cpustat: Vec<String>,
    /// Session number, shared by host and guest traces.
    pub trace_id: Option<u64>,
    /// Added to every time stamp: the OFFSET and DATE options together, in nanoseconds.
    pub ts_offset_ns: i64,
    /// Conversion of TSC ticks, which is applied to every time stamp.
    pub tsc_to_ns: Option<TscToNs>,
    /// Guest-to-host time correction, which is applied to every time stamp.
    pub time_shift: Option<TimeShift>,
    /// Memory maps of traced processes, as stored.
    pub proc_maps: Vec<String>,
    /// Saved command lines: pid and comm.
    pub comms: BTreeMap<i32, String>,
    /// Every option in the file, in order, known or not.
    pub options: Vec<OptionSeen>,
    /// The buffers with events; the top one has an empty name.
    pub buffers: Vec<Buffer>,
    /// Where kernel symbols are stored, if they are.
    pub kallsyms: Option<Text>,
    /// Where the formats of `trace_printk()` are stored, if they are.
    pub printk_formats: Option<Text>,
    /// What is missing or damaged, found while the file was opened.
    pub gaps: Vec<Gap>,
    /// What a reader of any result must know of this trace, one sentence each; of a text what it does not have.
    pub notes: Vec<String>,
}

impl Meta {
    /// The kernel's release (`6.1.0-57-amd64`), from the uname text.
    pub fn kernel_release(&self) -> Option<&str> {
        self.uname.as_deref()?.split_whitespace().nth(2)
    }

    /// The machine (`x86_64`), from the uname text.
    pub fn machine(&self) -> Option<&str> {
        self.uname.as_deref()?.split_whitespace().nth(3)
    }

    /// Whether event times are nanoseconds: the clock counts them, or the file
    /// says how to convert. `None` if the file does not name its clock.
    pub fn clock_is_ns(&self) -> Option<bool> {
        if self.tsc_to_ns.is_some() {
            return Some(true);
        }
        let clock = self.clock.as_deref()?;
        Some(
            clock.starts_with("mono")
                || matches!(clock, "local" | "global" | "perf" | "boot" | "tai" | "uptime" | "tsc2nsec"),
        )
    }

    /// Whether the recorded kernel zeroes what is behind the events of a page.
    ///
    /// **Source**: `ring_buffer_read_page()`, kernel/trace/ring_buffer.c; since 6.10 a ring buffer can be mapped, which
    /// shows what was there before.
    pub(crate) fn zeroes_pages(&self) -> bool {
        let mut numbers = self.kernel_release().unwrap_or("").split('.').map(|part| part.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => (major, minor) < (6, 10),
            // Those who did not store it recorded before.
            _ => true,
        }
    }

    /// The buffer of that name; the top one is `""`.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|b| b.name == name)
    }
}

/// One option of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionSeen {
    /// Its number.
    pub id: u16,
    /// Its name, if this reader knows the number.
    pub name: Option<&'static str>,
    /// Bytes of its data.
    pub size: u32,
    /// Where its data is.
    pub offset: u64,
}

/// A ring buffer (trace instance) in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the instance, empty for the top one.
    pub name: String,
    /// Its clock, if it names one.
    pub clock: Option<String>,
    /// How its pages look.
    pub layout: PageLayout,
    /// Whether its data are lists of compressed chunks.
    pub compressed: bool,
    /// Where the data of each CPU are, in file order of the table.
    pub cpus: Vec<CpuData>,
}

/// Where the events of one CPU are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuData {
    /// The CPU.
    pub cpu: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file, as declared.
    pub size: u64,
}

/// A text in the file that is not kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// File offset: of the text, or of its compressed section.
    pub(crate) offset: u64,
    /// Bytes of it in the file.
    pub(crate) size: u64,
    /// Whether it is a compressed section with the text's length word inside.
    pub(crate) compressed: bool,
}

/// Something that should be in the file and is not, or is not readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Buffer, if it is about one (`""` is the top one).
    pub buffer: Option<String>,
    /// CPU, if it is about one.
    pub cpu: Option<u32>,
    /// Byte offset in the file (of the compressed chunk, if it is inside one).
    pub offset: u64,
    /// Bytes that are missing or were passed over, if known.
    pub bytes: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(buffer) = self.buffer.as_deref().filter(|b| !b.is_empty()) {
            write!(f, "buffer {buffer}, ")?;
        }
        if let Some(cpu) = self.cpu {
            write!(f, "CPU {cpu}, ")?;
        }
        write!(f, "byte {}: {}", self.offset, self.what)?;
        if let Some(bytes) = self.bytes {
            write!(f, " ({bytes} bytes not read)")?;
        }
        Ok(())
    }
}
