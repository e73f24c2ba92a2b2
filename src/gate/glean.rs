// SPDX-License-Identifier: GPL-2.0-or-later
//! A replay → its snapshot: digests of the decisions as they pass, tables of the sums at the end. Fixed in size.

use std::collections::{BTreeSet, VecDeque};

use sha2::{Digest, Sha256};

use crate::compare::{Class, Difference, Distance, Load, Outside, Verdict};
use crate::fair::Exit;
use crate::gate::digest::printed;
use crate::gate::result::{Oracle, Violation};
use crate::gate::snapshot::{Head, Part, Snapshot, Table};
use crate::replay::totals::{Agreement, ByKind, Column, Share, Tally};
use crate::replay::{Outcome, Role, Row, Totals};
use crate::units::seconds;
use crate::wakeup::WakeKind;

/// Watches the decisions of one replay: of a baseline, one patched implementation and what stands for the recorded kernel.
pub struct Gleaner {
    lock: BTreeSet<Part>,
    placements: Vec<Sha256>,
    exits: Vec<Sha256>,
    listed: usize,
    differences: VecDeque<String>,
}

/// What a snapshot says of its recording that the replay does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// The recording's path from the folder of `gate.toml`.
    pub trace: &'a str,
    /// The pair's name.
    pub pair: &'a str,
    /// The specs as `gate.toml` has them.
    pub baseline: &'a str,
    /// The other one.
    pub patched: &'a str,
}

impl Gleaner {
    /// For a snapshot of the parts `lock`, which lists the first `listed` decisions that differ.
    pub fn new(lock: &BTreeSet<Part>, listed: usize) -> Self {
        Self { lock: lock.clone(), placements: Vec::new(), exits: Vec::new(), listed, differences: VecDeque::new() }
    }

    /// Takes the next decision.
    pub fn row(&mut self, row: &Row) {
        let number = row.recorded.number;
        let kind = kind_name(row.recorded.wakeup.kind);
        if self.placements.is_empty() {
            self.placements = vec![Sha256::new(); row.decisions.len()];
            self.exits = self.placements.clone();
        }
        for (at, decision) in row.decisions.iter().enumerate() {
            let mut bytes = [0; 13];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes[8] = kind.as_bytes()[0];
            bytes[9..11].copy_from_slice(&decision.class_cpu.0.to_le_bytes());
            bytes[11..].copy_from_slice(&decision.final_cpu.0.to_le_bytes());
            self.placements[at].update(bytes);
            self.exits[at].update(&bytes[..9]);
            // By name: places in the list of exits may move.
            self.exits[at].update(exit_name(decision.exit).as_bytes());
        }
        if self.differences.len() < self.listed {
            self.differences.extend(difference(row));
        }
    }

    /// The snapshot of what passed; `outcome` are its sums.
    pub fn snapshot(self, outcome: &Outcome, named: &Named<'_>) -> Snapshot {
        let totals = &outcome.totals;
        let mut snapshot = Snapshot { head: head(outcome, named), ..Snapshot::default() };
        let mut digest = |part: Part, whose: &str, sum: Option<Sha256>| {
            let sum = sum.unwrap_or_default().finalize();
            snapshot.digests.insert(format!("{}.{whose}", part.name()), printed(&sum));
        };
        for (part, sums) in [(Part::Placements, &self.placements), (Part::Exits, &self.exits)] {
            if self.lock.contains(&part) {
                digest(part, "baseline", sums.first().cloned());
                digest(part, "patched", sums.get(1).cloned());
            }
        }
        if self.lock.contains(&Part::Agreement) {
            digest(Part::Agreement, "recorded", self.placements.get(2).cloned());
        }
        for &part in &self.lock {
            let table = match part {
                Part::Placements => placements(totals),
                Part::Exits => exits(totals),
                Part::Sis => sis(totals),
                Part::Agreement => agreement(totals),
            };
            snapshot.tables.insert(part, table);
        }
        snapshot.differences = self.lock.contains(&Part::Placements).then(|| self.differences.into());
        snapshot
    }
}

fn head(outcome: &Outcome, named: &Named<'_>) -> Head {
    let Outcome { recording, setup, .. } = outcome;
    let probes = if setup.ignore_probes { "; probes ignored" } else { "" };
    let stated = if setup.affinity.is_some() { "; affinities stated" } else { "" };
    Head {
        trace: named.trace.to_owned(),
        sha256: recording.sha256.clone(),
        kernel: recording.kernel.clone().unwrap_or_else(|| "unknown".to_owned()),
        topology: setup.topology.clone(),
        pair: named.pair.to_owned(),
        baseline: named.baseline.to_owned(),
        patched: named.patched.to_owned(),
        recorded: setup.recorded.as_ref().map_or_else(|| "no model".to_owned(), |model| model.spec.clone()),
        replay: format!("HZ {}, an idle check costs {} ns{probes}{stated}", setup.hz, setup.scan_cost_ns),
    }
}

fn kinds(of: ByKind<u64>) -> [u64; 3] {
    [of.wakeups, of.forks, of.execs]
}

fn placements(totals: &Totals) -> Table {
    let mut table = Table::new(&["wakeups", "forks", "execs"]);
    table.row("decisions", &kinds(totals.decisions));
    if let Some(comparison) = totals.comparisons.first() {
        let tallies = &comparison.verdicts;
        let mut row = |name: &str, of: fn(&Tally) -> u64| {
            table.row(name, &[of(&tallies.wakeups), of(&tallies.forks), of(&tallies.execs)]);
        };
        row("same", |tally| tally.same.sum());
        row("same.by_another_return", |tally| tally.same_by_another_return);
        row("different", |tally| tally.different.sum());
        row("different.assumed_inputs", |tally| tally.different.assumed);
        row("no_verdict", |tally| tally.unknown);
        row("no_verdict.another_cpu", |tally| tally.unknown_differs);
    }
    let recorded = totals.recorded().map(|column| ("recorded", column));
    for (name, column) in sides(totals).chain(recorded) {
        table.row(&format!("outside_cpus_ptr.{name}"), &kinds(column.wrong));
    }
    table
}

/// The baseline and the patched implementation.
fn sides(totals: &Totals) -> impl Iterator<Item = (&'static str, &Column)> {
    let baseline = totals.baseline().map(|column| ("baseline", column));
    baseline.into_iter().chain(totals.patched().take(1).map(|column| ("patched", column)))
}

/// One row of both sides.
fn both(totals: &Totals, of: impl Fn(&Column) -> u64) -> Vec<u64> {
    sides(totals).map(|(_, column)| of(column)).collect()
}

fn side_table(totals: &Totals) -> Table {
    let names: Vec<&str> = sides(totals).map(|(name, _)| name).collect();
    Table::new(&names)
}

fn exits(totals: &Totals) -> Table {
    let mut table = side_table(totals);
    for exit in Exit::ALL {
        let counts = both(totals, |column| column.exits.get(&exit).copied().unwrap_or(0));
        if counts.iter().any(|&n| n > 0) {
            table.row(&exit_name(exit), &counts);
        }
    }
    table
}

/// The name by which reports call a `return`.
fn exit_name(exit: Exit) -> String {
    format!("{exit:?}")
}

fn sis(totals: &Totals) -> Table {
    let mut table = side_table(totals);
    let mut row = |name: &str, of: fn(&Column) -> u64| table.row(name, &both(totals, of));
    row("search", |column| column.sis.search);
    row("domain_search", |column| column.sis.domain_search);
    row("scanned", |column| column.sis.scanned);
    row("failed", |column| column.sis.failed);
    row("recent_hit", |column| column.sis.recent_hit);
    row("recent_miss", |column| column.sis.recent_miss);
    row("recent_miss_2021", |column| column.sis.recent_miss_2021);
    row("ttwu_local", |column| column.ttwu_local);
    row("idle_checks", |column| column.probes);
    row("mask_operations", |column| column.mask_ops);
    row("run_queues_beyond_end", |column| column.faults);
    table
}

fn agreement(totals: &Totals) -> Table {
    let mut table = Table::new(&["same", "of"]);
    let mut row = |name: &str, share: Share| {
        if share.of > 0 {
            table.row(name, &[share.same, share.of]);
        }
    };
    if let Some(model) = totals.recorded() {
        let kinds: [(&str, Agreement); 3] = [
            ("recorded.wakeups", model.agreement.wakeups),
            ("recorded.forks", model.agreement.forks),
            ("recorded.execs", model.agreement.execs),
        ];
        for (name, agreement) in kinds {
            row(name, agreement.sum());
            row(&format!("{name}.known"), agreement.known);
        }
    }
    for (name, column) in sides(totals) {
        row(&format!("{name}.wakeups"), column.agreement.wakeups.sum());
    }
    row("always_prev_cpu.wakeups", totals.always_prev.wakeups);
    table
}

fn kind_name(kind: WakeKind) -> &'static str {
    match kind {
        WakeKind::Ttwu => "wakeup",
        WakeKind::Fork => "fork",
        WakeKind::Exec => "exec",
    }
}

/// `#12     12.153288  CPU 1 -> 2  IdleCpu -> IdleCandidate  other core  srvA`; `None`: no other CPU, or no verdict.
fn difference(row: &Row) -> Option<String> {
    let Some(&Verdict::Diverge { class, difference, .. }) = row.verdicts.first() else { return None };
    let [baseline, patched, ..] = row.decisions.as_slice() else { return None };
    let recorded = &row.recorded;
    let number = format!("#{}", recorded.number);
    let kind = match recorded.wakeup.kind {
        WakeKind::Ttwu => String::new(),
        kind => format!("{}  ", kind_name(kind)),
    };
    Some(format!(
        "{number:<8}{}  {kind}CPU {} -> {}  {} -> {}  {}{}  {}",
        seconds(recorded.ts_ns),
        baseline.class_cpu,
        patched.class_cpu,
        exit_name(baseline.exit),
        exit_name(patched.exit),
        words(difference),
        if class == Class::Assumed { ", assumed" } else { "" },
        recorded.comm,
    ))
}

/// A difference in words, always the same ones.
fn words(difference: Difference) -> String {
    let distance = match difference.distance {
        Distance::SameCore => "same core",
        Distance::OtherCore => "other core",
        Distance::OtherLlc => "other LLC",
        Distance::OtherNode => "other node",
    };
    let load = match difference.load {
        Load::Alike => "",
        Load::IdleToBusy => ", idle->busy",
        Load::BusyToIdle => ", busy->idle",
        Load::CoreToSibling => ", core->sibling",
        Load::SiblingToCore => ", sibling->core",
    };
    let outside = match difference.outside {
        Outside::Neither => "",
        Outside::Baseline => ", no longer outside cpus_ptr",
        Outside::Patched => ", WRONG: outside cpus_ptr",
        Outside::Both => ", WRONG: both outside cpus_ptr",
    };
    format!("{distance}{load}{outside}")
}

/// What no implementation may do, and did: the same that `replay` says under "wrong placements".
pub fn violations(totals: &Totals) -> Vec<Violation> {
    let mut found = Vec::new();
    for column in &totals.columns {
        let of = |oracle, count, example| {
            let (spec, role) = (column.spec.clone(), column.role);
            Violation { oracle, spec, role, count, example, is_known: false }
        };
        let wrong = column.wrong.sum();
        if wrong > 0 {
            found.push(of(Oracle::Affinity, wrong, column.wrong_example));
        }
        if column.faults > 0 {
            found.push(of(Oracle::RunQueue, column.faults, column.fault_example));
        }
    }
    // The baseline first, the model of the recorded kernel last.
    found.sort_by_key(|one| (one.role == Role::Recorded, one.role == Role::Patched, one.oracle));
    found
}

#[cfg(test)]
#[path = "glean_tests.rs"]
mod tests;
