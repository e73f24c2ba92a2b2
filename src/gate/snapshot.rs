// SPDX-License-Identifier: GPL-2.0-or-later
//! What one recording gave with one pair of implementations, and its text.
//!
//! ```text
//! ---
//! format: sisdiff.gate/1
//! trace: traces/smt8-scan-truth/trace.dat
//! …
//! ---
//! digests
//!   placements.baseline       sha256:0123456789abcdef0123456789abcdef
//!
//! placements                    wakeups       forks       execs
//!   decisions                     1,266         102          15
//!
//! differences
//!   #12  wakeup  CPU 1 -> 2  IdleCpu -> RecentUsed  …
//! ```
//!
//! Columns have fixed places, so that a changed number changes its own line alone.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::gate::origin::MadeFrom;
use crate::gate::result::Oracle;
use crate::gate::snapshot_parse::{SnapshotError, parse};
use crate::replay::Role;
use crate::units::separated;

/// Name and version of the format. The number grows when a text of an older sisdiff would be misread.
pub const FORMAT: &str = "sisdiff.gate/1";

/// What lines of the head begin with that say what a text was made from.
pub(super) const MADE_FROM: &str = "made_from.";

/// Columns of a row's name, its indent included.
const NAME_WIDTH: usize = 28;
/// Columns of a number.
const COUNT_WIDTH: usize = 12;

/// What can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Where tasks go: a digest of every decision, verdicts, the first that differ.
    Placements,
    /// Which `return` decided.
    Exits,
    /// What the search cost.
    Sis,
    /// How often it is what the recorded kernel chose.
    Agreement,
}

impl Part {
    /// All of them, in the order of a snapshot.
    pub const ALL: [Self; 4] = [Self::Placements, Self::Exits, Self::Sis, Self::Agreement];
    /// Their names.
    pub const NAMES: [&str; 4] = ["placements", "exits", "sis", "agreement"];

    /// Its name in `gate.toml` and in snapshots.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The part of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// What a snapshot is of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The recording, by its path from the folder of `gate.toml`.
    pub trace: String,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// The recorded kernel.
    pub kernel: String,
    /// The machine in a line.
    pub topology: String,
    /// The pair's name.
    pub pair: String,
    /// The baseline's spec.
    pub baseline: String,
    /// The patched implementation's spec.
    pub patched: String,
    /// The spec of what stands for the recorded kernel.
    pub recorded: String,
    /// What else was told to the replay.
    pub replay: String,
}

impl Head {
    /// The keys, in the order of a snapshot.
    pub const KEYS: [&str; 9] =
        ["trace", "sha256", "kernel", "topology", "pair", "baseline", "patched", "recorded", "replay"];

    /// The values, in the order of [`Self::KEYS`].
    pub fn values(&self) -> [&str; 9] {
        let Self { trace, sha256, kernel, topology, pair, baseline, patched, recorded, replay } = self;
        [trace, sha256, kernel, topology, pair, baseline, patched, recorded, replay].map(String::as_str)
    }

    /// From the values in the order of [`Self::KEYS`].
    pub(super) fn from_values(values: [String; 9]) -> Self {
        let [trace, sha256, kernel, topology, pair, baseline, patched, recorded, replay] = values;
        Self { trace, sha256, kernel, topology, pair, baseline, patched, recorded, replay }
    }
}

/// Counts by row and column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Names of the columns: no spaces.
    pub columns: Vec<String>,
    /// Name (no spaces) and counts of each row; one count for each column.
    pub rows: Vec<(String, Vec<u64>)>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, name: &str, counts: &[u64]) {
        self.rows.push((name.to_owned(), counts.to_vec()));
    }
}

/// What one recording gave with one pair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// What it is of.
    pub head: Head,
    /// What it was made from, while it waits to be accepted; empty afterwards.
    pub made_from: MadeFrom,
    /// Digests by name (`placements.patched`): `sha256:` and the first 128 bits, hexadecimal.
    pub digests: BTreeMap<String, String>,
    /// Counts of each locked part.
    pub tables: BTreeMap<Part, Table>,
    /// The first decisions in which the two differ, a line each; `None`: placements are not locked.
    pub differences: Option<Vec<String>>,
}

impl Snapshot {
    /// The text, with a newline at its end.
    pub fn print(&self) -> String {
        let mut out = format!("---\nformat: {FORMAT}\n");
        for (key, value) in Head::KEYS.into_iter().zip(self.head.values()) {
            let _ = writeln!(out, "{key}: {}", quoted(value));
        }
        for (name, value) in &self.made_from {
            let _ = writeln!(out, "{MADE_FROM}{name}: {}", quoted(value));
        }
        out += "---\n";
        if !self.digests.is_empty() {
            out += "digests\n";
            for (name, digest) in &self.digests {
                let _ = writeln!(out, "{:<width$} {digest}", format!("  {name}"), width = NAME_WIDTH - 1);
            }
        }
        for (part, table) in &self.tables {
            if !out.ends_with("---\n") {
                out.push('\n');
            }
            let names = table.columns.iter().map(String::as_str);
            line(&mut out, part.name(), names);
            for (name, counts) in &table.rows {
                let counts: Vec<String> = counts.iter().map(|&n| separated(n)).collect();
                line(&mut out, &format!("  {name}"), counts.iter().map(String::as_str));
            }
        }
        if let Some(differences) = &self.differences {
            if !out.ends_with("---\n") {
                out.push('\n');
            }
            out += "differences\n";
            differences.iter().for_each(|difference| {
                let _ = writeln!(out, "  {}", quoted(difference));
            });
        }
        out
    }

    /// Its text once it is accepted.
    pub fn accepted(&self) -> String {
        Self { made_from: MadeFrom::new(), ..self.clone() }.print()
    }

    /// Whether it has counts of what breaks `oracle`, by what is `role` in it.
    pub fn knows(&self, oracle: Oracle, role: Role) -> bool {
        let role = match role {
            Role::Baseline => "baseline",
            Role::Patched => "patched",
            Role::Recorded => "recorded",
        };
        let row = |part: Part, name: &str| {
            let table = self.tables.get(&part)?;
            table.rows.iter().find(|(row, _)| row == name).map(|(_, counts)| (table, counts))
        };
        match oracle {
            Oracle::Affinity => row(Part::Placements, &format!("outside_cpus_ptr.{role}"))
                .is_some_and(|(_, counts)| counts.iter().any(|&n| n > 0)),
            Oracle::RunQueue => row(Part::Sis, "run_queues_beyond_end").is_some_and(|(table, counts)| {
                table.columns.iter().zip(counts).any(|(column, &n)| column == role && n > 0)
            }),
        }
    }

    /// The snapshot that a text is.
    ///
    /// # Errors
    /// [`SnapshotError`]: it is none, of another version of the format, or damaged.
    pub fn parse(text: &str) -> Result<Self, SnapshotError> {
        parse(text)
    }
}

/// A row: the name, then cells of a fixed width, at least two spaces between them.
fn line<'a>(out: &mut String, name: &str, cells: impl Iterator<Item = &'a str>) {
    let mut text = format!("{name:<NAME_WIDTH$}");
    for cell in cells {
        // A count that fills its place still has a space before it.
        if cell.len() >= COUNT_WIDTH {
            text.push(' ');
        }
        let _ = write!(text, "{cell:>COUNT_WIDTH$}");
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

/// A value on one line: as it is, or in JSON's quotes where it would be misread.
fn quoted(value: &str) -> String {
    let is_plain = !value.is_empty()
        && !value.starts_with('"')
        && value.trim() == value
        && !value.chars().any(|c| c.is_control() || c == '\u{2028}' || c == '\u{2029}');
    if is_plain { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
