// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of `gate.toml`.
//!
//! ```toml
//! traces = ["traces/*/trace.dat"]        # from the folder of this file
//!
//! [pair.mel-v2]
//! baseline = "v5.11"
//! patched = "v5.11+mel-v2"
//!
//! [tolerance]                            # exact where nothing is said
//! sis = "0.5%"
//!
//! [[allow]]
//! trace = "traces/numa*"
//! what = "exits.RecentUsed"
//! reason = "…"
//! ```

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use crate::gate::allow::{Allow, Rules};
use crate::gate::config_values::{
    flag, glob, globs, keys, number, optional, pattern, share, spec, string, strings, subtable, tables,
};
use crate::gate::snapshot::Part;
use crate::replay::setup::SCAN_COST_NS;
use crate::spec::Spec;

/// Differing decisions that a snapshot lists where nobody says.
pub const LISTED: u64 = 20;
/// And at most.
pub const LISTED_MAX: u64 = 1000;

const FILE_KEYS: &[&str] =
    &["traces", "snapshots", "lock", "listed", "pair", "topology", "tolerance", "allow", "replay", "tree"];
const PAIR_KEYS: &[&str] = &["baseline", "patched", "recorded"];
const TOPOLOGY_KEYS: &[&str] = &["traces", "source"];
const ALLOW_KEYS: &[&str] = &["trace", "pair", "what", "within", "reason"];
const REPLAY_KEYS: &[&str] = &["ignore_probes", "assume_sync", "hz", "scan_cost_ns", "affinity"];
const TREE_KEYS: &[&str] = &["config", "shim", "isolation"];

/// Why a text is no configuration of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No TOML at all.
    #[error("is no TOML: {0}")]
    Toml(String),
    /// A key that nobody reads.
    #[error("{place}: no key {found:?}{hint}; expected {possible}")]
    Key {
        /// Where.
        place: String,
        /// The key.
        found: String,
        /// The nearest one, or nothing.
        hint: String,
        /// What there is.
        possible: String,
    },
    /// A value that cannot be.
    #[error("{place}: {key} = {found}: {expected}")]
    Value {
        /// Where.
        place: String,
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Something that has to be there.
    #[error("{place}: {what}")]
    Missing {
        /// Where.
        place: String,
        /// What, and what was expected.
        what: String,
    },
}

/// Two implementations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Its name: what snapshots are called by, whatever the specs become.
    pub name: String,
    /// What the other is compared with.
    pub baseline: Spec,
    /// What is compared.
    pub patched: Spec,
    /// What stands for the recorded kernel; `None`: its model.
    pub recorded: Option<Spec>,
}

/// The machine of some recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyRule {
    /// The recordings: paths with `*`, `?`, `[…]` and `**`.
    pub traces: Vec<String>,
    /// As `--topology` takes it; a path from the folder of the file.
    pub source: String,
}

/// How the recordings are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// As if they had no probes.
    pub ignore_probes: bool,
    /// Wakeups are sync wakeups where no probe tells.
    pub assume_sync: bool,
    /// Jiffies per second; `None`: what a snapshot of the machine tells.
    pub hz: Option<u32>,
    /// Declared cost of an idle check in a scan, ns.
    pub scan_cost_ns: u64,
    /// A side file of affinities.
    pub affinity: Option<String>,
}

/// How kernel trees are built and run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trees {
    /// A kernel's .config.
    pub config: Option<String>,
    /// A C header with stand-ins.
    pub shim: Option<String>,
    /// In a process of its own.
    pub own_process: bool,
}

/// What a gate is.
#[derive(Debug, Clone)]
pub struct Config {
    /// The recordings: paths with `*`, `?`, `[…]` and `**`.
    pub traces: Vec<String>,
    /// The folder of the snapshots.
    pub snapshots: String,
    /// What may not change.
    pub lock: BTreeSet<Part>,
    /// Differing decisions that a snapshot lists.
    pub listed: usize,
    /// The implementations, by name.
    pub pairs: Vec<Pair>,
    /// Machines of recordings that have none beside them; the first rule that fits a recording counts.
    pub topologies: Vec<TopologyRule>,
    /// What may differ.
    pub rules: Rules,
    /// How recordings are replayed.
    pub replay: Replay,
    /// How kernel trees are built and run.
    pub trees: Trees,
}

impl Config {
    /// The configuration that a text is.
    ///
    /// # Errors
    /// [`ConfigError`], which names the place, what was found and what was expected.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::Toml(error.to_string().trim_end().replace('\n', " ").replace("  ", " "))
        })?;
        let place = "the file";
        keys(&file, place, FILE_KEYS)?;
        let traces = globs(&file, place, "traces")?;
        if traces.is_empty() {
            let what = "no recordings; expected traces = [\"traces/*/trace.dat\"]".to_owned();
            return Err(ConfigError::Missing { place: place.to_owned(), what });
        }
        let snapshots = optional(&file, place, "snapshots", string)?.unwrap_or_else(|| "snapshots".to_owned());
        Ok(Self {
            traces,
            snapshots,
            lock: lock(&file)?,
            listed: optional(&file, place, "listed", number(0, LISTED_MAX))?.unwrap_or(LISTED) as usize,
            pairs: pairs(&file)?,
            topologies: tables(&file, "topology")?.into_iter().map(topology).collect::<Result<_, _>>()?,
            rules: Rules {
                tolerance: tolerance(&file)?,
                allow: tables(&file, "allow")?.into_iter().map(allow).collect::<Result<_, _>>()?,
            },
            replay: replay(&file)?,
            trees: trees(&file)?,
        })
    }
}

fn lock(file: &Table) -> Result<BTreeSet<Part>, ConfigError> {
    let Some(names) = optional(file, "the file", "lock", strings)? else { return Ok(Part::ALL.into()) };
    let part = |name: &String| {
        Part::named(name).ok_or_else(|| ConfigError::Value {
            place: "the file".to_owned(),
            key: "lock".to_owned(),
            found: format!("{name:?}"),
            expected: format!("expected some of {}", Part::NAMES.join(", ")),
        })
    };
    let parts: BTreeSet<Part> = names.iter().map(part).collect::<Result<_, _>>()?;
    if parts.is_empty() {
        let what = "lock = []: nothing is locked; leave the key out to lock everything".to_owned();
        return Err(ConfigError::Missing { place: "the file".to_owned(), what });
    }
    Ok(parts)
}

fn pairs(file: &Table) -> Result<Vec<Pair>, ConfigError> {
    let table = subtable(file, "pair", "expected [pair.NAME] tables")?;
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for (name, one) in table.into_iter().flatten() {
        let place = format!("pair {name:?}");
        let toml::Value::Table(table) = one else {
            let what = format!("pair.{name} = {one}: expected a [pair.NAME] table");
            return Err(ConfigError::Missing { place: "the file".to_owned(), what });
        };
        keys(table, &place, PAIR_KEYS)?;
        let side = |key: &str| {
            optional(table, &place, key, spec)?.ok_or_else(|| ConfigError::Missing {
                place: place.clone(),
                what: format!("no {key}; expected {key} = \"SPEC\", see sisdiff list"),
            })
        };
        let (baseline, patched) = (side("baseline")?, side("patched")?);
        if baseline == patched {
            let what = format!("baseline and patched are both {patched}; expected two implementations");
            return Err(ConfigError::Missing { place, what });
        }
        let recorded = optional(table, &place, "recorded", spec)?;
        pairs.insert(name.clone(), Pair { name: name.clone(), baseline, patched, recorded });
    }
    if pairs.is_empty() {
        let what = "no implementations; expected a table [pair.NAME] with baseline and patched".to_owned();
        return Err(ConfigError::Missing { place: "the file".to_owned(), what });
    }
    Ok(pairs.into_values().collect())
}

fn topology((place, table): (String, &Table)) -> Result<TopologyRule, ConfigError> {
    keys(table, &place, TOPOLOGY_KEYS)?;
    let missing = |key: &str| ConfigError::Missing { place: place.clone(), what: format!("no {key}") };
    let source = optional(table, &place, "source", string)?.ok_or_else(|| missing("source"))?;
    let traces = globs(table, &place, "traces")?;
    if traces.is_empty() { Err(missing("traces")) } else { Ok(TopologyRule { traces, source }) }
}

fn tolerance(file: &Table) -> Result<BTreeMap<Part, crate::gate::Share>, ConfigError> {
    let table = subtable(file, "tolerance", "expected a [tolerance] table")?;
    let Some(table) = table else { return Ok(BTreeMap::new()) };
    keys(table, "tolerance", &Part::NAMES)?;
    let mut tolerance = BTreeMap::new();
    for part in Part::ALL {
        let share = optional(table, "tolerance", part.name(), share)?;
        tolerance.extend(share.filter(|share| share.0 > 0).map(|share| (part, share)));
    }
    Ok(tolerance)
}

fn allow((place, table): (String, &Table)) -> Result<Allow, ConfigError> {
    keys(table, &place, ALLOW_KEYS)?;
    let missing = |what: &str| ConfigError::Missing { place: place.clone(), what: what.to_owned() };
    let reason = optional(table, &place, "reason", string)?.filter(|reason| !reason.trim().is_empty());
    Ok(Allow {
        trace: optional(table, &place, "trace", glob)?,
        pair: optional(table, &place, "pair", glob)?,
        what: optional(table, &place, "what", glob)?
            .ok_or_else(|| missing("no what; expected what = \"sis.scanned\" or another row of a snapshot"))?,
        within: optional(table, &place, "within", share)?,
        reason: reason.ok_or_else(|| missing("no reason; say why this may differ"))?,
    })
}

fn replay(file: &Table) -> Result<Replay, ConfigError> {
    let none = Table::new();
    let table = subtable(file, "replay", "expected a [replay] table")?.unwrap_or(&none);
    let place = "replay";
    keys(table, place, REPLAY_KEYS)?;
    Ok(Replay {
        ignore_probes: optional(table, place, "ignore_probes", flag)?.unwrap_or(false),
        assume_sync: optional(table, place, "assume_sync", flag)?.unwrap_or(false),
        hz: optional(table, place, "hz", number(24, 10_000))?.map(|hz| hz as u32),
        scan_cost_ns: optional(table, place, "scan_cost_ns", number(0, 1_000_000))?.unwrap_or(SCAN_COST_NS),
        affinity: optional(table, place, "affinity", string)?,
    })
}

fn trees(file: &Table) -> Result<Trees, ConfigError> {
    let none = Table::new();
    let table = subtable(file, "tree", "expected a [tree] table")?.unwrap_or(&none);
    keys(table, "tree", TREE_KEYS)?;
    let where_it_runs = optional(table, "tree", "isolation", string)?;
    let own_process = match where_it_runs.as_deref() {
        None | Some("in-process") => false,
        Some("process") => true,
        Some(other) => {
            return Err(ConfigError::Value {
                place: "tree".to_owned(),
                key: "isolation".to_owned(),
                found: format!("{other:?}"),
                expected: "expected \"in-process\" or \"process\"".to_owned(),
            });
        }
    };
    let path = |key: &str| optional(table, "tree", key, string);
    Ok(Trees { config: path("config")?, shim: path("shim")?, own_process })
}

/// Whether `path` is one that `patterns` mean, all of which were read by [`Config::parse`].
pub fn is_meant(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|text| pattern(text).is_ok_and(|pattern| pattern.matches_with(path, OPTIONS)))
}

/// How patterns of recordings are matched: as a shell does.
pub const OPTIONS: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
