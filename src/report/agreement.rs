// SPDX-License-Identifier: GPL-2.0-or-later
//! How often each implementation chose as the recorded kernel did, and what of that measures sisdiff.

use crate::replay::Setup;
use crate::replay::totals::{Agreement, Role, Share, Totals};
use crate::report::layout::{Align, columns, count, counted, indented, percent, section};
use crate::report::placements::label;

const TITLE: &str = "agreement with the recorded kernel";

/// The section on agreement.
pub fn agreement(totals: &Totals, setup: &Setup) -> String {
    let recorded_choices = totals.always_prev.named().iter().map(|(_, share)| share.of).sum::<u64>();
    if recorded_choices == 0 {
        return section(TITLE) + "  no recorded choice is known\n";
    }
    let (rows, sentences) = rows(totals, setup);
    let mut out = section(TITLE) + &columns(2, &[Align::Left, Align::Right, Align::Right, Align::Right], &rows);
    for [key, text] in sentences {
        out += &match key.as_str() {
            "" => indented(2, &text),
            _ => columns(2, &[Align::Left, Align::Wrap], &[vec![key, text]]),
        };
    }
    out
}

/// The table with its head, and sentences about it, some with a key.
pub(super) fn rows(totals: &Totals, setup: &Setup) -> (Vec<Vec<String>>, Vec<[String; 2]>) {
    let mut rows = vec![["", "same", "of", "agree"].map(str::to_owned).to_vec()];
    let exact = setup.recorded.as_ref().is_some_and(|recorded| recorded.exact);
    let mut example = None;
    if let Some(model) = totals.recorded().filter(|_| exact) {
        rows.extend(shares(&format!("its model {}, wakeups", model.spec), model.agreement.wakeups));
        rows.extend(shares("its model, forks", model.agreement.forks));
        rows.extend(shares("its model, execs", model.agreement.execs));
        example = model.disagreement_example;
    }
    rows.extend(row("trivially: always prev_cpu", totals.always_prev.wakeups));
    for column in totals.columns.iter().filter(|column| column.role != Role::Recorded) {
        rows.extend(row(&format!("compared here: {}", label(totals, column)), column.agreement.wakeups.sum()));
    }
    let mut sentences = Vec::new();
    let mut sentence = |key: &str, text: String| sentences.push([key.to_owned(), text]);
    let compared = compared_here(totals);
    match setup.recorded.as_ref().filter(|recorded| !recorded.exact) {
        Some(recorded) => sentence("no fidelity", format!("{}; compared here are {compared}", recorded.why)),
        None if exact => sentence("fidelity", format!("only \"its model\" measures it; compared here are {compared}")),
        None => {}
    }
    if let Some(number) = example {
        sentence("", format!("first disagreement with all inputs known: #{number}"));
    }
    let untold = totals.choice_unknown.sum();
    if untold > 0 {
        sentence("", format!("the choice is not recorded for {}", counted(untold, "decision", "decisions")));
    }
    (rows, sentences)
}

fn row(name: &str, share: Share) -> Option<Vec<String>> {
    (share.of > 0).then(|| vec![name.to_owned(), count(share.same), count(share.of), percent(share.same, share.of)])
}

/// All, then by how well they were known.
fn shares(name: &str, agreement: Agreement) -> Vec<Vec<String>> {
    let parts = [
        (name, agreement.sum()),
        ("  all inputs known", agreement.known),
        ("  leaned on assumed inputs", agreement.assumed),
        ("  leaned on unknown inputs", agreement.unknown),
    ];
    parts.into_iter().filter_map(|(name, share)| row(name, share)).collect()
}

/// What the compared implementations are beside the recorded kernel.
fn compared_here(totals: &Totals) -> String {
    let recorded = totals.recorded().and_then(|column| release(&column.spec).map(|at| (column.spec.as_str(), at)));
    let Some((spec, at)) = recorded else { return "other kernels than the recorded ones".to_owned() };
    let mut parts: Vec<String> = Vec::new();
    for column in totals.columns.iter().filter(|column| column.role != Role::Recorded) {
        let base = base(&column.spec);
        let part = match release(base) {
            Some(own) if own < at => format!("{base} is {} before {spec}", counted(at - own, "release", "releases")),
            Some(own) if own > at => format!("{base} is {} after {spec}", counted(own - at, "release", "releases")),
            Some(_) if column.spec == spec => {
                format!("{spec} (free) keeps hidden state of its own, its model follows the probes")
            }
            _ => continue,
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    match parts.as_slice() {
        [] => "other kernels than the recorded one".to_owned(),
        parts => format!("other kernels than the recorded one: {}", parts.join("; ")),
    }
}

/// `v5.11` of `v5.11+mel-v2:NO_SIS_PROP`.
fn base(spec: &str) -> &str {
    spec.split(['+', ':']).next().unwrap_or(spec)
}

/// The place of a mainline release in their row: 5.x and 6.x went up to .19.
fn release(spec: &str) -> Option<u64> {
    let (major, minor) = base(spec).strip_prefix('v')?.split_once('.')?;
    let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
    (major >= 5).then(|| (major - 5) * 20 + minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::totals::Column;

    fn totals(recorded: &str, compared: &[&str]) -> Totals {
        let mut columns: Vec<Column> =
            compared.iter().map(|spec| Column::new((*spec).to_owned(), Role::Patched)).collect();
        columns.push(Column::new(recorded.to_owned(), Role::Recorded));
        Totals { columns, ..Totals::default() }
    }

    #[test]
    fn releases_are_counted_across_majors() {
        let text = compared_here(&totals("v6.1", &["v5.11", "v5.11+mel-v2", "v6.12"]));
        assert_eq!(
            text,
            "other kernels than the recorded one: v5.11 is 10 releases before v6.1; v6.12 is 11 releases after v6.1"
        );
    }

    #[test]
    fn the_recorded_release_beside_its_own_model_is_explained() {
        let text = compared_here(&totals("v6.1", &["v6.1"]));
        assert!(text.contains("v6.1 (free) keeps hidden state of its own"), "{text}");
        assert_eq!(
            compared_here(&totals("models of the recorded kernels", &["v6.1"])),
            "other kernels than the recorded ones"
        );
    }

    #[test]
    fn forks_are_split_as_wakeups_are() {
        let part = Share { same: 1, of: 2 };
        let rows = shares("its model, forks", Agreement { known: part, unknown: part, ..Agreement::default() });
        let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["its model, forks", "  all inputs known", "  leaned on unknown inputs"]);
    }
}
