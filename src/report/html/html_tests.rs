// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use crate::bins::Bins;
use crate::compare::{Class, Difference, Distance, Load, Outside};
use crate::fair::Exit;
use crate::replay::totals::{Column, Comparison, Role};
use crate::units::Comm;

const EVIL: &str = "<script>alert(1)</script>";

fn outcome() -> Outcome {
    let mut outcome = Outcome::default();
    outcome.recording.file = EVIL.to_owned();
    outcome.recording.notes = vec![EVIL.to_owned()];
    outcome.recording.kernel = Some(EVIL.to_owned());
    outcome.setup.baseline = "base".to_owned();
    outcome.setup.patched = vec![EVIL.to_owned()];
    let totals = &mut outcome.totals;
    totals.decisions.wakeups = 3;
    totals.columns = [("base", Role::Baseline), (EVIL, Role::Patched)]
        .map(|(spec, role)| Column::new(spec.to_owned(), role))
        .to_vec();
    let mut comparison = Comparison { patched: EVIL.to_owned(), ..Comparison::default() };
    let difference = Difference { distance: Distance::OtherCore, load: Load::Alike, outside: Outside::Patched };
    comparison.group(Exit::Prev, Exit::IdleCpu, 2).add(Class::Known, difference);
    totals.comparisons = vec![comparison];
    outcome
}

fn bins() -> Bins {
    let mut bins = Bins::default();
    let row = bins.comms.named.entry(Comm::new(b"<script>\"&'")).or_default();
    row.decisions = 3;
    row.different = vec![1];
    row.scanned = vec![4, 5];
    bins
}

#[test]
fn nothing_of_a_recording_becomes_markup() {
    let (outcome, bins) = (outcome(), bins());
    let part = Part { outcome: &outcome, bins: &bins, explained: Vec::new(), again: Some(EVIL.to_owned()) };
    let text = report(&[part], &[&outcome], None);
    // The page's own script is the only one.
    assert_eq!(text.matches("<script").count(), 1, "{text}");
    assert!(text.matches("&lt;script&gt;alert(1)").count() > 5, "{text}");
    assert!(text.contains("&lt;script&gt;&quot;&amp;'"), "{text}");
    let quotes = text.split("<style>").next().expect("a head").matches('"').count();
    assert_eq!(quotes % 2, 0);
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    let (outcome, bins) = (outcome(), bins());
    let part = Part { outcome: &outcome, bins: &bins, explained: Vec::new(), again: None };
    let text = report(&[part], &[&outcome], None);
    for asks in ["src=", "http:", "https:", "@import", "url("] {
        assert!(!text.contains(asks), "{asks}");
    }
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
}

#[test]
fn a_recording_without_decisions_is_no_trouble() {
    let outcome = Outcome::default();
    let bins = Bins::default();
    let part = Part { outcome: &outcome, bins: &bins, explained: Vec::new(), again: None };
    let text = report(&[part], &[&outcome], None);
    assert!(text.contains("Nothing to compare"), "{text}");
}

#[test]
fn a_sum_names_the_files_of_its_examples() {
    let (outcome, bins) = (outcome(), bins());
    let parts = || vec![Part { outcome: &outcome, bins: &bins, explained: Vec::new(), again: None }];
    let both = [outcome.clone(), outcome.clone()];
    let sum = crate::report::json::sum(&both);
    let text = report(&parts(), &[&outcome, &outcome], Some(&sum));
    assert!(text.contains("#2 of &lt;script&gt;"), "{text}");
    assert!(text.contains("the others are in the sum"), "{text}");
}
