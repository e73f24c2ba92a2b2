// SPDX-License-Identifier: GPL-2.0-or-later

use std::collections::BTreeMap;

use super::*;
use crate::gate::{Allow, Oracle, Rules, Trouble, Violation};
use crate::replay::Role;
use crate::report::gate_samples as samples;

/// A check of `a.dat`, as it was.
fn check(status: Status) -> Check {
    samples::check("t/a.dat", "ci/t/a.dat", "ci/s/t__a.dat@p.snap", status)
}

fn gate(checks: Vec<Check>) -> Gate {
    Gate { config: "ci/gate.toml".to_owned(), checks, ..Gate::default() }
}

fn plain(gate: &Gate) -> String {
    anstream::adapter::strip_str(&text(gate, " --config ci/gate.toml")).to_string()
}

#[test]
fn nothing_changed_is_two_lines() {
    let text = plain(&gate(vec![check(Status::Same), check(Status::Same)]));
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["  2 replays: 2 unchanged"]);
}

#[test]
fn a_change_is_a_diff_and_what_to_do() {
    let mut changed = check(Status::Changed);
    changed.texts = Some(["a\nb\nc\nd\ne\nf\ng\n".to_owned(), "a\nb\nc\nd\ne\nF\ng\n".to_owned()]);
    changed.old_specs = Some(["v5.11".to_owned(), "v6.12".to_owned()]);
    changed.is_pending = true;
    let text = plain(&gate(vec![changed]));
    let expected = "changed: t/a.dat with p\n  patched  was v6.12, is v6.1\n  @@ lines 3 to 7 @@\n   c\n   d\n   e\n  -f\n  +F\n   g\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("sisdiff replay ci/t/a.dat --baseline v6.12 --patched v6.1"), "{text}");
    assert!(text.contains("sisdiff gate accept --config ci/gate.toml"), "{text}");
}

#[test]
fn excuses_have_their_reasons_and_idle_entries_are_told() {
    let entry = |reason: &str| Allow {
        trace: None,
        pair: None,
        what: globset::Glob::new("sis").expect("a glob").compile_matcher(),
        within: None,
        reason: reason.to_owned(),
    };
    let mut one = check(Status::Same);
    one.changes = vec![Change {
        key: "sis.scanned.patched".to_owned(),
        old: Some(Value::Count(1000)),
        new: Some(Value::Count(1010)),
        excuse: Some(Excuse::Allowed(1)),
    }];
    let mut gate = gate(vec![one]);
    gate.rules = Rules { tolerance: BTreeMap::new(), allow: vec![entry("old"), entry("the scan moved")] };
    let text = plain(&gate);
    assert!(text.contains("allowed  sis.scanned.patched 1,000 -> 1,010 (+1.00%): the scan moved"), "{text}");
    assert!(text.contains("allow 1: nothing to allow (old); take it out"), "{text}");
    gate.is_part = true;
    assert!(!plain(&gate).contains("nothing to allow"), "a part does not know");
}

#[test]
fn wrong_placements_are_named_also_where_nothing_changed() {
    let mut one = check(Status::Same);
    let violation = |oracle, example| {
        let is_known = oracle == Oracle::Affinity;
        Violation { oracle, spec: "v6.1".to_owned(), role: Role::Patched, count: 2, example, is_known }
    };
    one.violations = vec![violation(Oracle::Affinity, Some(5)), violation(Oracle::RunQueue, None)];
    let text = plain(&gate(vec![one]));
    assert!(
        text.contains("WRONG: v6.1 put 2 tasks outside of cpus_ptr; the first is #5; the snapshot knows"),
        "{text}"
    );
    assert!(text.contains("WRONG: v6.1 took run queues at an index beyond nr_cpu_ids, 2 times"), "{text}");
}

#[test]
fn control_characters_of_names_do_nothing() {
    let mut one = check(Status::Trouble(Trouble::Other("\u{1b}[31mx".to_owned())));
    one.trace = "a\u{1b}[2J".to_owned();
    assert!(!plain(&gate(vec![one.clone()])).contains('\u{1b}'));
    assert!(!text(&gate(vec![one]), "").contains("\u{1b}[2J"));
}
