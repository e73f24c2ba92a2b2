// SPDX-License-Identifier: GPL-2.0-or-later
//! Placements outside of the wakee's affinity, whoever made them, and how far the trace can tell.

use crate::compare::Class;
use crate::replay::totals::{Column, Role, Totals};
use crate::report::layout::{Align, BAD, columns, count, counted, paint, percent, section};

/// The section on wrong placements: there also where none is wrong, for that is an answer.
pub fn wrong(totals: &Totals) -> String {
    let number = |column: &Column| format!("{} {}", label(totals, column), count(column.wrong.sum()));
    let counts: Vec<String> = totals.columns.iter().map(number).collect();
    let all = count(totals.decisions.sum());
    let rows = [["outside cpus_ptr", &format!("{} of {all}", counts.join(", "))], ["affinity", &affinity(totals)]];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec());
    let mut out = section("wrong placements") + &columns(2, &[Align::Left, Align::Wrap], &rows);
    for column in totals.columns.iter().filter(|column| column.wrong.sum() > 0) {
        let first = column.wrong_example.map(|number| format!("; the first is #{number}")).unwrap_or_default();
        let tasks = counted(column.wrong.sum(), "task", "tasks");
        let text = format!("WRONG: {} put {tasks} outside of cpus_ptr{first}", label(totals, column));
        out += &format!("{}\n", paint(BAD, &text));
    }
    for column in totals.columns.iter().filter(|column| column.faults > 0) {
        let first = column.fault_example.map(|number| format!("; the first in #{number}")).unwrap_or_default();
        let times = counted(column.faults, "time", "times");
        let name = label(totals, column);
        let text = format!("WRONG: {name} took run queues at an index beyond nr_cpu_ids, {times}{first}");
        out += &format!("{}\n", paint(BAD, &text));
    }
    out
}

/// How a column is called where all are listed: the model of the recorded kernel and one that is compared can be of the
/// same release.
pub fn label(totals: &Totals, column: &Column) -> String {
    let is_recorded = totals.recorded().is_some_and(|recorded| recorded.spec == column.spec);
    match column.role {
        Role::Recorded => format!("{} (recorded kernel)", column.spec),
        Role::Baseline | Role::Patched if is_recorded => format!("{} (free)", column.spec),
        Role::Baseline | Role::Patched => column.spec.clone(),
    }
}

/// How far the wakees' affinities are known.
pub(super) fn affinity(totals: &Totals) -> String {
    let of =
        |class: Class| -> u64 { totals.affinity.kinds().iter().filter_map(|(_, counts)| counts.get(&class)).sum() };
    let (known, assumed, unknown) = (of(Class::Known), of(Class::Assumed), of(Class::Unknown));
    let all = known + assumed + unknown;
    if known == all {
        return "known for all".to_owned();
    }
    let guesses = [("assumed", assumed), ("unknown", unknown)].into_iter().filter(|&(_, n)| n > 0);
    let guesses: Vec<String> = guesses
        .map(|(name, n)| match n == all {
            true => format!("{name} for all"),
            false => format!("{name} for {}", percent(n, all)),
        })
        .collect();
    let guesses = guesses.join(", ");
    match known {
        0 => format!("{guesses}: whether any is wrong cannot be told"),
        _ => format!("known for {}; {guesses}: whether those are wrong cannot be told", percent(known, all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::totals::ByKind;

    fn totals(known: u64, assumed: u64) -> Totals {
        let mut totals = Totals {
            decisions: ByKind { wakeups: known + assumed, ..ByKind::default() },
            columns: [("v5.11", Role::Baseline), ("v6.1", Role::Patched), ("v6.1", Role::Recorded)]
                .map(|(spec, role)| Column::new(spec.to_owned(), role))
                .to_vec(),
            ..Totals::default()
        };
        totals.affinity.wakeups = [(Class::Known, known), (Class::Assumed, assumed)].into_iter().collect();
        totals
    }

    fn text(totals: &Totals) -> String {
        anstream::adapter::strip_str(&wrong(totals)).to_string()
    }

    #[test]
    fn nothing_wrong_is_an_answer() {
        let text = text(&totals(7, 0));
        assert!(text.contains("v5.11 0, v6.1 (free) 0, v6.1 (recorded kernel) 0 of 7"), "{text}");
        assert!(text.contains("known for all") && !text.contains("WRONG"), "{text}");
    }

    #[test]
    fn an_assumed_affinity_tells_nothing() {
        let some = text(&totals(1, 3));
        assert!(some.contains("known for 25.0%; assumed for 75.0%: whether those"), "{some}");
        let none = text(&totals(0, 3));
        assert!(none.contains("assumed for all: whether any is wrong cannot be told"), "{none}");
    }

    #[test]
    fn a_wrong_one_is_named() {
        let mut totals = totals(7, 0);
        totals.columns[1].wrong.wakeups = 2;
        totals.columns[1].wrong_example = Some(5);
        let text = text(&totals);
        assert!(text.contains("WRONG: v6.1 (free) put 2 tasks outside of cpus_ptr; the first is #5"), "{text}");
    }
}
