// SPDX-License-Identifier: GPL-2.0-or-later
//! What one wants to know first, where it comes from, and the table of names.

use maud::{Markup, html};

use crate::bins::Bins;
use crate::compare::Verdict;
use crate::counters::{Value, change};
use crate::replay::totals::{Comparison, Totals};
use crate::replay::{Outcome, Setup};
use crate::report::counters::change_cell;
use crate::report::html::explained::Explanation;
use crate::report::html::tables::{Cell, Table};
use crate::report::layout::{count, counted, percent};
use crate::report::plot::axis::duration;
use crate::report::text;

/// A figure that stands out.
struct Figure {
    name: &'static str,
    value: String,
    note: String,
    /// Deserves a second look.
    bad: bool,
}

/// Each comparison in a sentence and in figures.
pub fn headline(totals: &Totals, setup: &Setup) -> Markup {
    html! {
        section.headline {
            @for (at, comparison) in totals.comparisons.iter().enumerate() {
                h2 { code { (setup.baseline) } " → " code { (comparison.patched) } }
                p.lead { (sentence(totals, comparison)) }
                div.figures {
                    @for figure in figures(totals, comparison, setup, at == 0) {
                        div.figure.bad[figure.bad] {
                            span.name { (figure.name) } strong { (figure.value) } span.note { (figure.note) }
                        }
                    }
                }
            }
        }
    }
}

fn different(comparison: &Comparison) -> (u64, u64, u64) {
    let tallies = comparison.verdicts.named();
    let sum = |of: fn(&crate::replay::totals::Tally) -> u64| tallies.iter().map(|(_, tally)| of(tally)).sum::<u64>();
    (sum(|tally| tally.different.sum()), sum(|tally| tally.compared()), sum(|tally| tally.unknown))
}

fn sentence(totals: &Totals, comparison: &Comparison) -> String {
    let (different, compared, unknown) = different(comparison);
    let patched = totals.patched().find(|column| column.spec == comparison.patched);
    let wrong = patched.map_or(0, |column| column.wrong.sum());
    let mut text = match different {
        0 => format!("None of {} goes to another CPU", counted(compared, "decision", "decisions")),
        _ => format!(
            "{} of {} ({}) go to another CPU",
            count(different),
            counted(compared, "decision", "decisions"),
            percent(different, compared)
        ),
    };
    text += &match wrong {
        0 => "; no placement is outside of cpus_ptr".to_owned(),
        _ => format!("; {} outside of cpus_ptr", counted(wrong, "placement is", "placements are")),
    };
    if unknown > 0 {
        text += &format!("; {} without a verdict, as inputs are unknown", count(unknown));
    }
    text + "."
}

/// `first`: with what does not depend on the comparison.
fn figures(totals: &Totals, comparison: &Comparison, setup: &Setup, first: bool) -> Vec<Figure> {
    let (different, compared, _) = self::different(comparison);
    let mut figures = vec![Figure {
        name: "another CPU",
        value: percent(different, compared),
        note: format!("{} of {}", count(different), count(compared)),
        bad: false,
    }];
    let patched = totals.patched().find(|column| column.spec == comparison.patched);
    if let (Some(baseline), Some(patched)) = (totals.baseline(), patched) {
        let wrong = patched.wrong.sum();
        figures.push(Figure {
            name: "outside cpus_ptr",
            value: count(wrong),
            note: format!("baseline {}", count(baseline.wrong.sum())),
            bad: wrong > 0,
        });
        let pair = |name, from: u64, to: u64| Figure {
            name,
            value: signed(from, to),
            note: format!("{} → {}", count(from), count(to)),
            bad: false,
        };
        figures.push(pair("SIS Scanned", baseline.sis.scanned, patched.sis.scanned));
        figures.push(pair("SIS Domain Search", baseline.sis.domain_search, patched.sis.domain_search));
        figures.push(pair("SIS Failures", baseline.sis.failed, patched.sis.failed));
    }
    let is_exact = setup.recorded.as_ref().is_some_and(|recorded| recorded.exact);
    let model = totals.recorded().filter(|_| is_exact && first);
    if let Some(model) = model {
        let share = model.agreement.wakeups.sum();
        figures.push(Figure {
            name: "recorded kernel's model",
            value: percent(share.same, share.of),
            note: format!("{} chose as it did", model.spec),
            bad: false,
        });
    }
    figures
}

fn signed(from: u64, to: u64) -> String {
    match change(Value::Count(from), Value::Count(to)) {
        None if to > 0 => "from 0".to_owned(),
        _ => change_cell(Value::Count(from), Value::Count(to)).replace('-', "−"),
    }
}

/// Everything that a replay needs to be done again, and how well inputs are known.
pub fn provenance(outcome: &Outcome) -> Markup {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for [key, value] in text::head_rows(outcome) {
        match rows.last_mut() {
            Some((_, values)) if key.is_empty() => values.push(value),
            _ => rows.push((key, vec![value])),
        }
    }
    let decisions = text::decision_rows(&outcome.totals);
    let decisions: Vec<Vec<Cell>> = decisions
        .iter()
        .map(|row| row.iter().enumerate().map(|(at, text)| if at == 0 { Cell::text(text) } else { Cell::number(text) }))
        .map(Iterator::collect)
        .collect();
    let table = Table { caption: "Decisions".to_owned(), is_named: true, rows: decisions, ..Table::default() };
    html! {
        section id="about-1" {
            div.columns {
                div {
                    h3 { "Provenance" }
                    dl.facts {
                        @for (key, values) in &rows {
                            dt { (key) }
                            @for value in values { dd.hash[key == "sha256"].notable[key == "note"] { (value) } }
                        }
                    }
                }
                div { h3 { "Decisions" } (table.draw()) }
            }
        }
    }
}

/// The recordings of a sum.
pub fn recordings(outcomes: &[&Outcome]) -> Markup {
    let mut head = vec![("recording".to_owned(), false)];
    head.extend(["events", "decisions"].map(|name| (name.to_owned(), true)));
    let first = outcomes.first().map(|outcome| outcome.totals.comparisons.as_slice()).unwrap_or_default();
    head.extend(first.iter().map(|comparison| (format!("{}: another CPU", comparison.patched), true)));
    head.push(("wrong".to_owned(), true));
    let rows = outcomes.iter().map(|outcome| {
        let totals = &outcome.totals;
        let mut row = vec![Cell::text(&outcome.recording.file), Cell::number(&count(outcome.recording.events))];
        row.push(Cell::number(&count(totals.decisions.sum())));
        row.extend(totals.comparisons.iter().map(|comparison| {
            let (different, compared, _) = different(comparison);
            Cell::number(&percent(different, compared)).with_bar(different, compared)
        }));
        row.push(Cell::number(&count(totals.patched().map(|column| column.wrong.sum()).sum())));
        row
    });
    let table = Table {
        id: "recordings".to_owned(),
        caption: "Recordings".to_owned(),
        is_named: true,
        head,
        rows: rows.collect(),
        sortable: true,
    };
    html! { section { h2 { "Recordings" } (table.draw()) } }
}

/// Names of a table at most; the rest is summed up.
const NAMES_MAX: usize = 200;

/// Decisions, differences, scanning and latency by the name of the wakee.
pub fn comms(totals: &Totals, bins: &Bins, setup: &Setup, at: usize) -> Markup {
    let number = |name: &str| (name.to_owned(), true);
    let mut head = vec![("wakee".to_owned(), false), number("decisions")];
    for patched in &setup.patched {
        head.push(number(&if setup.patched.len() > 1 {
            format!("{patched}: another CPU")
        } else {
            "another CPU".to_owned()
        }));
        head.push(number("share"));
    }
    head.push(number("scanned, baseline"));
    head.extend(setup.patched.iter().map(|spec| {
        number(&match setup.patched.len() {
            1 => "patched".to_owned(),
            _ => spec.clone(),
        })
    }));
    head.extend(["wait, median", "p99"].map(number));
    let compared = setup.patched.len();
    let mut named: Vec<_> = bins.comms.named.iter().collect();
    let differing = |row: &crate::bins::CommRow| row.different.iter().sum::<u64>();
    named.sort_by(|(a, left), (b, right)| {
        (differing(right), right.decisions).cmp(&(differing(left), left.decisions)).then_with(|| a.cmp(b))
    });
    let most = named.iter().map(|(_, row)| differing(row)).max().unwrap_or(0);
    let rows = named.iter().take(NAMES_MAX).map(|(comm, row)| {
        let name = html! { @if comm.as_bytes().is_empty() { em { "no name" } } @else { code { (comm.to_string()) } } };
        let mut cells = vec![Cell::of(name), Cell::number(&count(row.decisions))];
        for n in &row.different {
            cells.push(Cell::number(&count(*n)).with_bar(*n, most));
            cells.push(Cell::number(&percent(*n, row.decisions)));
        }
        let mean = |n: &u64| Cell::number(&format!("{:.2}", *n as f64 / row.decisions.max(1) as f64));
        cells.extend(row.scanned.iter().take(1 + compared).map(mean));
        let waits = bins.latencies.by_comm.get(comm);
        for q in [0.5, 0.99] {
            let wait = waits.and_then(|waits| waits.quantile(q));
            cells.push(wait.map_or_else(|| Cell::number("-"), |ns| Cell::keyed(&duration(ns), ns)));
        }
        cells
    });
    let table = Table {
        id: format!("comms-{}", at + 1),
        caption: "Decisions by name of the wakee".to_owned(),
        is_named: true,
        head,
        rows: rows.collect(),
        sortable: true,
    };
    let left = named.len().saturating_sub(NAMES_MAX) as u64;
    let others = bins.comms.others.decisions;
    html! {
        section id={ "names-" (at + 1) } {
            h2 { "By name" }
            p.note {
                "Scanned: CPUs looked at by searches, mean over decisions. Wait: from sched_waking to running, as recorded, \
                 the same whatever would have been chosen."
            }
            (table.draw())
            @if left > 0 || others > 0 {
                p.note { (counted(left, "name", "names")) " and " (counted(others, "decision", "decisions"))
                    " of names beyond those are not listed." }
            }
            @if totals.decisions.sum() == 0 { p { "No decision." } }
        }
    }
}

/// What kind of difference an explained decision is, in a word for each comparison.
pub fn kind(explanation: &Explanation) -> bool {
    explanation.verdicts.iter().any(|verdict| matches!(verdict, Verdict::Diverge { .. }))
}
