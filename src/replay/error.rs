// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a recording is not replayed.

use crate::affinity::AffinityError;
use crate::topology::LoadError;

/// Why a recording is not replayed: the object, what was found, what was expected, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read, or is no trace.
    #[error(transparent)]
    Read(#[from] tracecmd_parse::Error),
    /// The file cannot be read from front to back, or what comes through a pipe not be kept.
    #[error("{file}: cannot be read ({reason}); expected a file or a pipe, and room for a pipe's copy in TMPDIR")]
    Checksum {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// Nothing in it.
    #[error("{file}: no events at all{}; expected sched events; record again, and longer",
        if gaps.is_empty() { String::new() } else { format!(" ({gaps})") })]
    NoEvents {
        /// The file.
        file: String,
        /// What is cut or damaged.
        gaps: String,
    },
    /// Events, but not those that a replay needs.
    #[error(
        "{file}: no {missing} among its {events} events (most: {found}); record with: trace-cmd record -e sched_switch \
         -e sched_waking -e sched_wakeup -e sched_wakeup_new -e sched_migrate_task -e sched_process_fork \
         -e sched_process_exec -e sched_process_exit; what this one has and lacks is shown by 'sisdiff info'"
    )]
    NotRecorded {
        /// The file.
        file: String,
        /// Which events are missing.
        missing: &'static str,
        /// How many there are.
        events: u64,
        /// The most frequent ones.
        found: String,
    },
    /// The events that a replay needs lack a field.
    #[error(
        "{file}: {what}, and without it there is no replay; copy the recording again, and if its kernel's format is so, this \
         sisdiff is too old for it"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// Event, field and count.
        what: String,
    },
    /// A kernel tree that was built cannot be opened.
    #[error("{0}")]
    Tree(String),
    /// The code of a kernel tree went wrong: its spec, the call, where.
    #[error("{0}; the replay stops there")]
    Fault(String),
    /// No topology.
    #[error(transparent)]
    Topology(#[from] LoadError),
    /// A topology of another machine.
    #[error(
        "topology {topology}: {found}, but {file} was recorded on {expected}; give that machine's own with --topology"
    )]
    OtherMachine {
        /// Where the topology comes from.
        topology: String,
        /// Its CPUs.
        found: String,
        /// The recording.
        file: String,
        /// Its CPUs.
        expected: String,
    },
    /// The side file asks for what this machine or these tasks cannot have.
    #[error("{file}: {error}")]
    Affinity {
        /// The side file.
        file: String,
        /// What.
        error: Box<AffinityError>,
    },
    /// Output cannot be written.
    #[error("{what}: cannot be written ({reason})")]
    Write {
        /// To where.
        what: String,
        /// The system's reason.
        reason: String,
        /// Whether nobody reads it any more.
        closed: bool,
    },
    /// There is no such decision.
    #[error("{file}: no decision {number}; {found}")]
    NoDecision {
        /// The recording.
        file: String,
        /// What was asked for.
        number: String,
        /// What there is.
        found: String,
    },
}

impl ReplayError {
    /// From an error of writing to `what`.
    pub fn write(what: &str, error: &std::io::Error) -> Self {
        let closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self::Write { what: what.to_owned(), reason: error.to_string(), closed }
    }
}
