// SPDX-License-Identifier: GPL-2.0-or-later
//! What a check of a gate came to.

use serde::Serialize;

use crate::gate::allow::Rules;
use crate::gate::compare::{Change, Excuse};
use crate::gate::snapshot::FORMAT;
use crate::replay::Role;

/// A rule that no implementation may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Oracle {
    /// The class answers with a CPU of the wakee's cpus_ptr.
    Affinity,
    /// Run queues are taken below nr_cpu_ids.
    RunQueue,
}

/// An implementation that broke one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub oracle: Oracle,
    /// The implementation.
    pub spec: String,
    /// What it is here.
    pub role: Role,
    /// How often.
    pub count: u64,
    /// The first decision: what `explain --wakeup` takes.
    pub example: Option<u64>,
    /// Whether the snapshot has it, too.
    pub is_known: bool,
}

/// Why a gate cannot tell: the object, what was found, what was expected, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A pattern without recordings.
    #[error(
        "{config}: traces: {pattern:?} matches no file; expected recordings there: restore them, or mend the pattern"
    )]
    EmptyGlob {
        /// The configuration.
        config: String,
        /// The pattern.
        pattern: String,
    },
    /// A recording that is named, or has a snapshot, and is not there.
    #[error("{trace}: missing: {why}; restore it, or {otherwise}")]
    MissingTrace {
        /// The recording.
        trace: String,
        /// Who wants it.
        why: String,
        /// What else to do.
        otherwise: String,
    },
    /// Another recording than the snapshot's.
    #[error(
        "{trace}: is another recording than that of its snapshot: its sha256 is {found}, {snapshot} has {expected}; restore \
         it, or look at the new figures and take them with `sisdiff gate accept`"
    )]
    ChangedTrace {
        /// The recording.
        trace: String,
        /// Its checksum.
        found: String,
        /// The snapshot.
        snapshot: String,
        /// Its checksum.
        expected: String,
    },
    /// A snapshot that cannot be read.
    #[error("{snapshot}: {why}; restore it, or take the new one beside it with `sisdiff gate accept`")]
    UnreadableSnapshot {
        /// The snapshot.
        snapshot: String,
        /// Why.
        why: String,
    },
    /// A snapshot of another version of the format.
    #[error(
        "{snapshot}: has the format {found}, and this sisdiff reads and writes {FORMAT}: check with the sisdiff that wrote \
         it, then take the new one beside it with `sisdiff gate accept`"
    )]
    SnapshotVersion {
        /// The snapshot.
        snapshot: String,
        /// Its format.
        found: String,
    },
    /// A snapshot of what is no longer checked.
    #[error(
        "{snapshot}: {why}, so that nothing checks it; mend {config}, or remove it with `sisdiff gate accept --orphans`"
    )]
    Orphan {
        /// The snapshot.
        snapshot: String,
        /// Of what it is.
        why: String,
        /// The configuration.
        config: String,
    },
    /// A recording that cannot be replayed, or a snapshot that cannot be written.
    #[error("{0}")]
    Other(String),
}

impl Trouble {
    /// In a word, for lists.
    pub fn word(&self) -> &'static str {
        match self {
            Self::EmptyGlob { .. } => "no recordings",
            Self::MissingTrace { .. } => "missing",
            Self::ChangedTrace { .. } => "another recording",
            Self::UnreadableSnapshot { .. } => "unreadable snapshot",
            Self::SnapshotVersion { .. } => "another format",
            Self::Orphan { .. } => "orphan",
            Self::Other(_) => "trouble",
        }
    }
}

/// How one recording with one pair stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// As it was, or within what is allowed.
    Same,
    /// There was no snapshot.
    New,
    /// Otherwise than it was.
    Changed,
    /// It cannot be told.
    Trouble(Trouble),
}

/// One recording with one pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The recording, by its path from the folder of the configuration.
    pub trace: String,
    /// The same as it can be opened from here.
    pub path: String,
    /// The pair's name.
    pub pair: String,
    /// The specs now.
    pub specs: [String; 2],
    /// The snapshot's file.
    pub snapshot: String,
    /// How it stands.
    pub status: Status,
    /// What differs.
    pub changes: Vec<Change>,
    /// Text of the snapshot and of what there is now, where they differ; `old` is empty where there was none.
    pub texts: Option<[String; 2]>,
    /// Specs that the snapshot has, where they are others.
    pub old_specs: Option<[String; 2]>,
    /// What no implementation may do, and did.
    pub violations: Vec<Violation>,
    /// Whether the new text lies beside the snapshot.
    pub is_pending: bool,
}

impl Check {
    /// Changes that count.
    pub fn counted(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.excuse.is_none())
    }

    /// The entries that excuse something here.
    pub fn allowed(&self) -> impl Iterator<Item = (usize, &Change)> {
        self.changes.iter().filter_map(|change| match change.excuse {
            Some(Excuse::Allowed(at)) => Some((at, change)),
            _ => None,
        })
    }
}

/// The worst of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing changed.
    Unchanged,
    /// Something changed, or is new.
    Changed,
    /// Something cannot be told.
    Trouble,
}

/// A check of a gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The configuration's file.
    pub config: String,
    /// What may differ.
    pub rules: Rules,
    /// Each recording with each pair, in order.
    pub checks: Vec<Check>,
    /// What is about none of them.
    pub troubles: Vec<Trouble>,
    /// Whether only some were asked for.
    pub is_part: bool,
}

impl Gate {
    /// How many stand so.
    pub fn count(&self, is: impl Fn(&Status) -> bool) -> usize {
        self.checks.iter().filter(|check| is(&check.status)).count()
    }

    /// All that cannot be told, in order.
    pub fn all_troubles(&self) -> impl Iterator<Item = &Trouble> {
        let own = self.checks.iter().filter_map(|check| match &check.status {
            Status::Trouble(trouble) => Some(trouble),
            _ => None,
        });
        self.troubles.iter().chain(own)
    }

    /// The worst.
    pub fn verdict(&self) -> Verdict {
        if self.all_troubles().next().is_some() {
            Verdict::Trouble
        } else if self.count(|status| *status != Status::Same) > 0 {
            Verdict::Changed
        } else {
            Verdict::Unchanged
        }
    }

    /// Entries that excuse nothing: a mistake in them, or done with. Nobody knows where only a part was checked.
    pub fn idle_entries(&self) -> Vec<usize> {
        let used = |at: usize| self.checks.iter().any(|check| check.allowed().any(|(other, _)| other == at));
        let all = if self.is_part || self.verdict() == Verdict::Trouble { 0 } else { self.rules.allow.len() };
        (0..all).filter(|&at| !used(at)).collect()
    }
}
