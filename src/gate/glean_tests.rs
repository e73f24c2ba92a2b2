// SPDX-License-Identifier: GPL-2.0-or-later

use std::path::Path;

use super::*;
use crate::replay::run::{Job, Progress, decisions_among};
use crate::replay::{Filter, Options};
use crate::spec::ModelSpec;

struct Silent;

impl Progress for Silent {
    fn at(&self, _file: &Path, _events: u64, _all: u64) {}
}

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat");

fn glean(lock: &[Part], listed: usize, patched: &str) -> (Snapshot, Totals) {
    let spec = |name: &str| name.parse::<ModelSpec>().expect("a spec").into();
    let options = Options::new(spec("v5.11"), vec![spec(patched)]);
    let job = Job { options: &options, filter: &|_| Filter::default(), filters: &[], progress: &Silent };
    let mut gleaner = Gleaner::new(&lock.iter().copied().collect(), listed);
    let outcome = decisions_among(Path::new(TRACE), &job, 1, Some(1), &mut |_, row, _| {
        gleaner.row(row);
        Ok(())
    });
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    let named = Named { trace: "t", pair: "p", baseline: "v5.11", patched };
    (gleaner.snapshot(&outcome, &named), outcome.totals)
}

#[test]
fn a_snapshot_has_the_sums_of_the_replay() {
    let (snapshot, totals) = glean(&Part::ALL, 3, "v5.11+mel-v2");
    let row = |part: Part, name: &str| {
        let table = &snapshot.tables[&part];
        table.rows.iter().find(|(row, _)| row == name).map(|(_, counts)| counts.clone()).unwrap_or_default()
    };
    assert_eq!(row(Part::Placements, "decisions"), kinds(totals.decisions));
    let different = totals.comparisons[0].verdicts.wakeups.different.sum();
    assert!(different > 3 && row(Part::Placements, "different")[0] == different);
    assert_eq!(snapshot.differences.as_ref().map(Vec::len), Some(3));
    let exits: u64 = snapshot.tables[&Part::Exits].rows.iter().map(|(_, counts)| counts[1]).sum();
    assert_eq!(exits, totals.decisions.sum(), "every decision has a return");
    let scanned: Vec<u64> = totals.columns[..2].iter().map(|column| column.sis.scanned).collect();
    assert_eq!(row(Part::Sis, "scanned"), scanned);
    let model = totals.recorded().expect("a model of the recorded kernel").agreement.wakeups.sum();
    assert_eq!(row(Part::Agreement, "recorded.wakeups"), [model.same, model.of]);
    assert_eq!(Snapshot::parse(&snapshot.print()), Ok(snapshot.clone()));
    assert!(snapshot.print().lines().count() < 90, "{}", snapshot.print());
}

#[test]
fn digests_tell_implementations_apart_and_only_them() {
    let digest = |snapshot: &Snapshot, name: &str| snapshot.digests[name].clone();
    let (one, _) = glean(&Part::ALL, 0, "v5.11+mel-v2");
    let (again, _) = glean(&Part::ALL, 20, "v5.11+mel-v2");
    let (other, _) = glean(&Part::ALL, 0, "v5.11+recent-used");
    assert_eq!(one.digests, again.digests);
    for name in ["placements.baseline", "exits.baseline", "agreement.recorded"] {
        assert_eq!(digest(&one, name), digest(&other, name), "{name}");
    }
    for name in ["placements.patched", "exits.patched"] {
        assert_ne!(digest(&one, name), digest(&other, name), "{name}");
    }
    assert_ne!(digest(&one, "placements.baseline"), digest(&one, "placements.patched"));
}

#[test]
fn what_is_not_locked_is_not_there() {
    let (snapshot, _) = glean(&[Part::Sis], 20, "v5.11+mel-v2");
    assert!(snapshot.digests.is_empty() && snapshot.differences.is_none());
    assert_eq!(snapshot.tables.keys().collect::<Vec<_>>(), [&Part::Sis]);
}
