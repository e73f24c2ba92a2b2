// SPDX-License-Identifier: GPL-2.0-or-later
//! A part of a recording as a trace.dat of its own, to mail or commit; with the names in it replaced, if asked.
//!
//! [`disguise`] says what a name becomes, [`kinds`] which events are kept and what their fields are, [`rewrite`] makes
//! one event anew; [`run`] does it for a file, [`machine`] for the machine's description beside it.

pub mod disguise;
pub mod kinds;
pub mod machine;
mod names;
pub mod rewrite;
pub mod run;
mod spool;

use tracecmd_parse::write::WriteError;

use crate::cpumask::Cpumask;
use crate::topology::LoadError;
use crate::trace::cut_mark;

pub use run::cut;

/// What of a recording is kept.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The buffer; `None`: all of them.
    pub buffer: Option<String>,
    /// CPUs whose events are kept; `None`: all.
    pub cpus: Option<Cpumask>,
    /// Only the events that a replay reads.
    pub sched_only: bool,
    /// Without the `sis_*` kprobe events.
    pub no_probes: bool,
    /// With names and thread ids replaced, and only events whose every field is known.
    pub anonymize: bool,
}

/// A half-open time window, ns of the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Not before this.
    pub since_ns: Option<u64>,
    /// Before this.
    pub until_ns: Option<u64>,
}

impl Window {
    /// Whether a time lies in it.
    pub fn has(&self, ts_ns: u64) -> bool {
        self.since_ns.is_none_or(|since| ts_ns >= since) && self.until_ns.is_none_or(|until| ts_ns < until)
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// Events written.
    pub kept: u64,
    /// Time of the earliest event written, ns.
    pub first_ns: Option<u64>,
    /// Time of the latest event written, ns.
    pub last_ns: Option<u64>,
    /// Marks of lost events written.
    pub losses: u64,
    /// Events out of the window.
    pub out_of_window: u64,
    /// Events of other CPUs.
    pub of_other_cpus: u64,
    /// Events of kinds that are not kept.
    pub of_other_kinds: u64,
    /// Names of the buffers written; one that was asked for by name is the top one of the new file.
    pub buffers: Vec<String>,
    /// Version of the new file.
    pub version: u32,
    /// How it is compressed.
    pub compression: &'static str,
    /// Names and thread ids replaced.
    pub replaced: Option<(u64, u64)>,
    /// Parts of the recording that are cut or damaged.
    pub gaps: Vec<String>,
    /// Lines of a text that could not be read, so are not in the cut, and the number of the first.
    pub unreadable_lines: Option<(u64, u64)>,
}

impl Selection {
    /// Flags by which kinds of events are left out, as one gives them; empty: none are.
    pub fn leaves_out(&self) -> String {
        let flags =
            [(self.sched_only, "--sched-only"), (self.no_probes, "--no-probes"), (self.anonymize, "--anonymize")];
        let flags: Vec<&str> = flags.iter().filter(|(given, _)| *given).map(|(_, flag)| *flag).collect();
        flags.join(" ")
    }

    /// The version text of what is cut from a file with the version text `of`.
    fn version_text(&self, of: Option<&str>) -> String {
        let cpus = self.cpus.as_ref().map(cut_mark::cpus_flag);
        let flags: Vec<String> = cpus.into_iter().chain([self.leaves_out()]).filter(|flag| !flag.is_empty()).collect();
        cut_mark::marked(of, &flags)
    }
}

/// Why nothing was cut.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] tracecmd_parse::Error),
    /// The new file cannot be written.
    #[error("{file}: {error}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        error: WriteError,
    },
    /// Events cannot be kept for a moment.
    #[error("a temporary file in TMPDIR: {0}")]
    Spool(std::io::Error),
    /// Nothing to write.
    #[error("{file}: none of its {events} events is in the cut ({why}); nothing was written")]
    Nothing {
        /// The recording.
        file: String,
        /// How many there are.
        events: u64,
        /// Where they are instead.
        why: String,
    },
    /// The machine's description cannot be read.
    #[error(transparent)]
    Machine(#[from] LoadError),
    /// The machine's description cannot be cleaned.
    #[error("{file}: is no archive or folder of /sys, so it cannot be cleaned of names; leave --with-topology out")]
    Unclean {
        /// The file.
        file: String,
    },
}
