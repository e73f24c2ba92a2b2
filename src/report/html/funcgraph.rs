// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff funcgraph` as a page: for each function the distribution of its durations beside its figures.

use maud::{Markup, html};

use crate::funcgraph::Analysis;
use crate::funcgraph::analysis::{FunctionRow, SetRow};
use crate::histogram::Histogram;
use crate::report::funcgraph as rows;
use crate::report::html::page;
use crate::report::html::tables::{Cell, Table};
use crate::report::layout::count;
use crate::report::plot::steps;
use crate::report::plot::svg::{legend, series};
use crate::scan_cost::ScanCost;

/// Functions that have a picture; the others are in the tables of `--format text`.
const FUNCTIONS_MAX: usize = 60;

/// The durations of one function, ns, by set: in the order of the analysis's sets, empty where it has no calls.
pub struct Durations {
    /// Its name.
    pub function: String,
    /// By set.
    pub by_set: Vec<Histogram>,
}

/// The page.
pub fn report(analysis: &Analysis, durations: &[Durations], costs: &[ScanCost]) -> String {
    let body = html! {
        (sets(&analysis.sets))
        @for comparison in &analysis.comparisons {
            section {
                h2 { code { (comparison.baseline) } " → " code { (comparison.set) } ", by " (analysis.by) }
                (Table::of_text("Durations, us", &rows::change_rows(comparison)).draw())
                p.note { "longer: how likely a call of the second is the longer; p: Mann-Whitney" }
            }
        }
        @for operation in &analysis.operations {
            section {
                h2 { "One operation = " code { (operation.operation) } ", by " (analysis.by) }
                (Table::of_text("Traced, us", &rows::cost_rows(operation)).draw())
                @if operation.sets.iter().any(|row| row.measured_ns.is_some()) {
                    (Table::of_text("Measured, us", &rows::measured_rows(operation)).draw())
                }
            }
        }
        @for cost in costs {
            section {
                h2 { "Time of select_task_rq_fair() by idle checks, " (cost.file) }
                (Table::of_text("Fixed cost and cost of a check", &rows::scan_cost_rows(cost)).draw())
            }
        }
        @for (at, one) in durations.iter().take(FUNCTIONS_MAX).enumerate() { (function(analysis, one, at)) }
        @if durations.len() > FUNCTIONS_MAX {
            p.note { "Pictures of the first " (FUNCTIONS_MAX) " of " (count(durations.len() as u64)) " functions." }
        }
        p.note { "[low, high]: 95% of what calls drawn anew from these would give." }
    };
    let nav: Vec<_> = durations.iter().take(12).enumerate().map(|(at, one)| (id(at), one.function.clone())).collect();
    page("durations by the function_graph tracer", &nav, &body)
}

fn id(at: usize) -> String {
    format!("function-{}", at + 1)
}

fn sets(sets: &[SetRow]) -> Markup {
    html! {
        section {
            h2 { "Sets" }
            dl.facts {
                @for set in sets {
                    dt { code { (set.label) } }
                    dd { (set.source) @if let Some(title) = &set.title { ": “" (title) "”" } }
                    @for note in rows::note_rows(set) { dd.notable[note[0] == "unpaired"] { (note[0]) ": " (note[1]) } }
                }
            }
        }
    }
}

fn function(analysis: &Analysis, durations: &Durations, at: usize) -> Markup {
    let own = |set: &SetRow| set.functions.iter().find(|row| row.function == durations.function).cloned();
    let found: Vec<(usize, &SetRow, FunctionRow)> =
        analysis.sets.iter().enumerate().filter_map(|(at, set)| Some((at, set, own(set)?))).collect();
    let drawn: Vec<(String, &Histogram)> = found
        .iter()
        .filter_map(|(at, _, _)| Some((series(*at), durations.by_set.get(*at)?)))
        .filter(|(_, histogram)| histogram.n() > 0)
        .collect();
    let names: Vec<_> = found.iter().map(|(at, set, _)| (series(*at), set.label.clone())).collect();
    let head = ["set", "calls", "median", "mean", "", "trimmed", "p90", "p99", "max", "total", "self"];
    let row = |(_, set, row): &(usize, &SetRow, FunctionRow)| {
        let mut cells = vec![Cell::text(&set.label), Cell::number(&count(row.calls))];
        cells.extend(rows::figures(row).iter().map(|text| Cell::number(text)));
        cells
    };
    let table = Table {
        caption: format!("{}, us", durations.function),
        head: head.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at > 0)).collect(),
        rows: found.iter().map(row).collect(),
        ..Table::default()
    };
    let title = format!("Durations of {}()", durations.function);
    html! {
        section id=(id(at)) {
            h2 { code { (durations.function) "()" } }
            figure {
                @if !drawn.is_empty() {
                    div.wide tabindex="0" role="region" aria-label=(title) {
                        (steps::durations(&title, &drawn))
                    }
                    (legend(&names))
                }
                (table.draw())
            }
        }
    }
}
