// SPDX-License-Identifier: GPL-2.0-or-later
//! Two snapshots of the same recording and pair → what differs, and what of that is excused.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gate::allow::{Rules, Share};
use crate::gate::snapshot::{Head, Part, Snapshot, Table};

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A line of the head, or a digest.
    Text(String),
    /// Lines about decisions.
    Lines(Vec<String>),
}

/// Why a change does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Excuse {
    /// Within the tolerance of its part.
    Tolerance(Share),
    /// By the entry at that place.
    Allowed(usize),
}

/// Something that was otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What: `sis.scanned.patched`, `head.patched`, `placements.digest.patched`, `placements.differences`.
    pub key: String,
    /// In the snapshot; `None`: was not there.
    pub old: Option<Value>,
    /// Now; `None`: is not there.
    pub new: Option<Value>,
    /// Why it does not count; `None`: it does.
    pub excuse: Option<Excuse>,
}

/// What differs from `old` in `new`, which are of the same recording and pair. The recording's checksum is not compared.
pub fn compare(old: &Snapshot, new: &Snapshot, rules: &Rules) -> Vec<Change> {
    let mut differ = Differ { old, new, rules, changes: Vec::new() };
    let heads = Head::KEYS.into_iter().zip(old.head.values()).zip(new.head.values());
    for ((key, old), new) in heads.filter(|((key, _), _)| *key != "sha256") {
        let text = |value: &str| Some(Value::Text(value.to_owned()));
        differ.value(format!("head.{key}"), text(old), text(new));
    }
    let digest = |name: &String, digest: &String| (digest_key(name), Value::Text(digest.clone()));
    let digests = |side: &Snapshot| side.digests.iter().map(|(name, sum)| digest(name, sum)).collect();
    differ.values(digests(old), digests(new));
    for part in Part::ALL {
        let table = |side: &Snapshot| side.tables.get(&part).map(|table| counts(part, table));
        match (table(old), table(new)) {
            (Some(mut old), Some(mut new)) => {
                // A row that is left out counted nothing.
                fill(&mut old, &new);
                fill(&mut new, &old);
                differ.values(old, new);
            }
            (old, new) => differ.values(old.unwrap_or_default(), new.unwrap_or_default()),
        }
    }
    let lines = |side: &Snapshot| side.differences.clone().map(Value::Lines);
    differ.value("placements.differences".to_owned(), lines(old), lines(new));
    differ.changes
}

/// `placements.patched` → `placements.digest.patched`.
fn digest_key(name: &str) -> String {
    match name.split_once('.') {
        Some((part, whose)) => format!("{part}.digest.{whose}"),
        None => format!("{name}.digest"),
    }
}

fn counts(part: Part, table: &Table) -> BTreeMap<String, Value> {
    let cell = |row: &str, column: &str| format!("{}.{row}.{column}", part.name());
    let rows = table.rows.iter();
    rows.flat_map(|(row, counts)| {
        table.columns.iter().zip(counts).map(move |(column, &n)| (cell(row, column), Value::Count(n)))
    })
    .collect()
}

fn fill(side: &mut BTreeMap<String, Value>, other: &BTreeMap<String, Value>) {
    for key in other.keys() {
        side.entry(key.clone()).or_insert(Value::Count(0));
    }
}

struct Differ<'a> {
    old: &'a Snapshot,
    new: &'a Snapshot,
    rules: &'a Rules,
    changes: Vec<Change>,
}

impl Differ<'_> {
    fn values(&mut self, mut old: BTreeMap<String, Value>, mut new: BTreeMap<String, Value>) {
        let mut keys: Vec<String> = old.keys().chain(new.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (old, new) = (old.remove(&key), new.remove(&key));
            self.value(key, old, new);
        }
    }

    fn value(&mut self, key: String, old: Option<Value>, new: Option<Value>) {
        if old != new {
            let excuse = self.excuse(&key, old.as_ref(), new.as_ref());
            self.changes.push(Change { key, old, new, excuse });
        }
    }

    fn excuse(&self, key: &str, old: Option<&Value>, new: Option<&Value>) -> Option<Excuse> {
        let (from, to) = (count(old), count(new));
        let is_count = [old, new].into_iter().flatten().all(|value| matches!(value, Value::Count(_)));
        let part = key.split('.').next().and_then(Part::named);
        let tolerance = part.and_then(|part| Some((part, *self.rules.tolerance.get(&part)?)));
        if let Some((part, share)) = tolerance {
            let of = if part == Part::Sis { from } else { self.decisions() };
            if !is_count || share.covers(from.abs_diff(to), of) {
                return Some(Excuse::Tolerance(share));
            }
        }
        let head = &self.new.head;
        let allows = |at: &usize| {
            let allow = &self.rules.allow[*at];
            let is_within = allow.within.is_none_or(|share| is_count && share.covers(from.abs_diff(to), from));
            allow.is_about(&head.trace, &head.pair, key) && is_within
        };
        (0..self.rules.allow.len()).find(allows).map(Excuse::Allowed)
    }

    /// Decisions of the old snapshot, all kinds: what shares are of.
    fn decisions(&self) -> u64 {
        let tables = self.old.tables.get(&Part::Placements);
        let row = tables.and_then(|table| table.rows.iter().find(|(name, _)| name == "decisions"));
        let exits = || self.old.tables.get(&Part::Exits).map(first_column);
        let agreement = || self.old.tables.get(&Part::Agreement).map(largest);
        row.map(|(_, counts)| counts.iter().sum()).or_else(exits).or_else(agreement).unwrap_or(0)
    }
}

fn first_column(table: &Table) -> u64 {
    table.rows.iter().filter_map(|(_, counts)| counts.first()).sum()
}

fn largest(table: &Table) -> u64 {
    table.rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0)
}

fn count(value: Option<&Value>) -> u64 {
    match value {
        Some(&Value::Count(n)) => n,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::allow::Allow;
    use globset::Glob;

    fn snapshot(same: u64, scanned: u64, digest: char) -> Snapshot {
        let mut placements = Table::new(&["wakeups", "forks"]);
        placements.row("decisions", &[1000, 0]);
        placements.row("same", &[same, 0]);
        let mut sis = Table::new(&["baseline", "patched"]);
        sis.row("scanned", &[500, scanned]);
        Snapshot {
            head: Head { trace: "a.dat".to_owned(), pair: "p".to_owned(), ..Head::default() },
            made_from: BTreeMap::new(),
            digests: [("placements.patched".to_owned(), format!("sha256:{}", digest.to_string().repeat(32)))].into(),
            tables: [(Part::Placements, placements), (Part::Sis, sis)].into(),
            differences: Some(vec![format!("#{same}")]),
        }
    }

    fn keys(changes: &[Change], counted: bool) -> Vec<&str> {
        changes.iter().filter(|one| one.excuse.is_none() == counted).map(|one| one.key.as_str()).collect()
    }

    #[test]
    fn everything_that_differs_is_named() {
        let (old, new) = (snapshot(900, 500, 'a'), snapshot(899, 510, 'b'));
        assert!(compare(&old, &old, &Rules::default()).is_empty());
        let changes = compare(&old, &new, &Rules::default());
        let expected =
            ["placements.digest.patched", "placements.same.wakeups", "sis.scanned.patched", "placements.differences"];
        assert_eq!(keys(&changes, true), expected);
        assert_eq!((&changes[2].old, &changes[2].new), (&Some(Value::Count(500)), &Some(Value::Count(510))));
    }

    #[test]
    fn another_spec_counts_and_another_checksum_does_not() {
        let old = snapshot(900, 500, 'a');
        let mut new = old.clone();
        new.head.sha256 = "1".to_owned();
        assert!(compare(&old, &new, &Rules::default()).is_empty());
        new.head.patched = "v6.1".to_owned();
        assert_eq!(keys(&compare(&old, &new, &Rules::default()), true), ["head.patched"]);
    }

    #[test]
    fn a_tolerance_is_of_all_decisions_or_of_the_counter() {
        let rules = |placements, sis| Rules {
            tolerance: [(Part::Placements, Share(placements)), (Part::Sis, Share(sis))].into(),
            allow: Vec::new(),
        };
        let (old, new) = (snapshot(900, 500, 'a'), snapshot(899, 510, 'b'));
        assert_eq!(keys(&compare(&old, &new, &rules(1_000, 20_000)), true), [""; 0]);
        assert_eq!(keys(&compare(&old, &new, &rules(999, 20_000)), true), ["placements.same.wakeups"]);
        assert_eq!(keys(&compare(&old, &new, &rules(1_000, 19_999)), true), ["sis.scanned.patched"]);
    }

    #[test]
    fn an_entry_excuses_what_it_is_about_as_far_as_it_says() {
        let entry = |within| Allow {
            trace: None,
            pair: None,
            what: Glob::new("sis.scanned").expect("a glob").compile_matcher(),
            within,
            reason: "known".to_owned(),
        };
        let rules = |within| Rules { tolerance: BTreeMap::new(), allow: vec![entry(within)] };
        let (old, new) = (snapshot(900, 500, 'a'), snapshot(900, 510, 'a'));
        let changes = compare(&old, &new, &rules(None));
        assert_eq!(changes[0].excuse, Some(Excuse::Allowed(0)));
        assert_eq!(keys(&compare(&old, &new, &rules(Some(Share(20_000)))), true), [""; 0]);
        assert_eq!(keys(&compare(&old, &new, &rules(Some(Share(10_000)))), true), ["sis.scanned.patched"]);
    }

    #[test]
    fn a_row_that_is_new_has_moved_from_nothing() {
        let old = snapshot(900, 500, 'a');
        let mut new = old.clone();
        new.tables.get_mut(&Part::Sis).expect("there").row("failed", &[0, 1]);
        let changes = compare(&old, &new, &Rules::default());
        assert_eq!(keys(&changes, true), ["sis.failed.patched"]);
        assert_eq!(changes[0].old, Some(Value::Count(0)));
        let rules = Rules { tolerance: [(Part::Sis, Share(500_000))].into(), allow: Vec::new() };
        assert_eq!(keys(&compare(&old, &new, &rules), true), ["sis.failed.patched"], "of nothing nothing is a share");
    }
}
