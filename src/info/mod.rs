// SPDX-License-Identifier: GPL-2.0-or-later
//! What a recording is, what is in it, what it contradicts, and what a good replay lacks.
//!
//! [`mod@read`] walks a file once and counts; [`advice`] is the pure part that says what is missing and how to record it.
//! Nothing here refuses a file for what it lacks: that is what the answer is for.

pub mod advice;
pub mod beside;
pub mod probes;
pub mod read;
pub mod tally;

use serde::{Deserialize, Serialize};

pub use advice::{Missing, Replayable, Weight};
pub use beside::{Beside, Machine};
pub use probes::Probe;
pub use read::read;
pub use tally::{Break, BufferInfo, CpuInfo, EventCount};

/// One recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Info {
    /// As it was named.
    pub file: String,
    /// What kind of file it is.
    pub format: FormatInfo,
    /// The recorded kernel and machine.
    pub recorded: Recorded,
    /// Every buffer (ftrace instance) with its events; the top one first.
    pub buffers: Vec<BufferInfo>,
    /// Name of the buffer that [`Self::probes`], [`Self::missing`] and [`Self::replay`] are about; the top one is empty.
    pub about: String,
    /// The kprobe events that a replay reads.
    pub probes: Vec<Probe>,
    /// Inputs of a decision that the probes tell.
    pub traced_inputs: Vec<String>,
    /// The machine description beside the recording, and other files there.
    pub beside: Beside,
    /// Parts of the file that are cut or damaged, a sentence each.
    pub gaps: Vec<String>,
    /// What a reader of any result must know, a sentence each.
    pub notes: Vec<String>,
    /// Whether it can be replayed, and how well.
    pub replay: Replayable,
    /// What a good replay lacks, the gravest first.
    pub missing: Vec<Missing>,
    /// The command that would record what is missing, for a shell.
    pub record: String,
}

/// What kind of file it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatInfo {
    /// `trace.dat`, or `text`.
    pub kind: String,
    /// Of a trace.dat: 6 or 7.
    pub version: Option<u32>,
    /// Of a text: who printed it.
    pub form: Option<String>,
    /// Of a trace.dat: `little` or `big`.
    pub endian: Option<String>,
    /// Of a trace.dat: bytes of a `long` of the recorded kernel.
    pub long_bytes: Option<u32>,
    /// Of a trace.dat: bytes of a page of the ring buffer.
    pub page_bytes: Option<u32>,
    /// Of a trace.dat: `none`, `zlib` or `zstd`.
    pub compression: Option<String>,
    /// What the whole file was packed with (`gzip`, `zstd`), if it was.
    pub packed: Option<String>,
    /// Bytes of the file; `None` of what came through a pipe.
    pub bytes: Option<u64>,
    /// Who read it: `native` or `tracecmd`.
    pub reader: String,
    /// Version of the trace-cmd that wrote it.
    pub tracecmd: Option<String>,
    /// Options of a trace.dat, by name, in the file's order, each once.
    pub options: Vec<String>,
    /// Event formats in the file.
    pub formats: u64,
    /// Saved command lines.
    pub comms: u64,
    /// Whether the symbol table (/proc/kallsyms) is stored.
    pub has_kallsyms: bool,
}

/// The recorded kernel and machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// `uname -r`; `None` where neither the file nor a machine description says.
    pub kernel: Option<String>,
    /// Where `kernel` is from: `file` or `topology`.
    pub kernel_from: Option<String>,
    /// `uname -m`, where the file says it.
    pub machine: Option<String>,
    /// The model that stands for the kernel.
    pub model: Option<String>,
    /// Whether that is a model of this very kernel.
    pub model_is_exact: bool,
    /// How the kernel maps to the model, in a sentence.
    pub model_why: Option<String>,
    /// CPUs that the file has data of; 0: it does not say.
    pub cpus: u32,
    /// Trace clock; `None` where the file does not say.
    pub clock: Option<String>,
    /// Whether its times are nanoseconds; `None` where the file does not say.
    pub clock_is_ns: Option<bool>,
    /// Events that the kernel overwrote or dropped, by the ring buffer's own statistics; `None` where the file has none.
    pub overrun: Option<u64>,
}

impl Info {
    /// The buffer that the detailed part is about.
    pub fn main(&self) -> Option<&BufferInfo> {
        self.buffers.iter().find(|buffer| buffer.name == self.about)
    }
}
