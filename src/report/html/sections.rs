// SPDX-License-Identifier: GPL-2.0-or-later
//! The sections that the text report has, too: differences, counters, wrong placements, agreement.

use maud::{Markup, html};

use crate::counters::RecentMiss;
use crate::replay::totals::{Comparison, Group, Totals};
use crate::replay::{Outcome, Setup};
use crate::report::html::explained::Explanation;
use crate::report::html::tables::{Cell, Table};
use crate::report::layout::{count, counted, percent};
use crate::report::placements::{affinity, label};
use crate::report::{agreement as agreement_rows, text};

/// Where numbers of decisions lead.
pub struct Place {
    /// The number of the part, from 1.
    part: usize,
    /// The decisions that are explained there.
    explained: Vec<u64>,
    /// Names of the files, in a sum.
    files: Vec<String>,
}

impl Place {
    /// Of part `at`.
    pub fn of(at: usize, explained: &[Explanation]) -> Self {
        Self { part: at + 1, explained: explained.iter().map(|one| one.number).collect(), files: Vec::new() }
    }

    /// Of a sum.
    pub fn sum(outcomes: &[&Outcome]) -> Self {
        let files = outcomes.iter().map(|outcome| outcome.recording.file.clone()).collect();
        Self { part: 0, explained: Vec::new(), files }
    }

    fn link(&self, group: &Group) -> Markup {
        match group.example_file.and_then(|at| self.files.get(at)) {
            Some(file) => html! { "#" (group.example) " of " (file) },
            None if self.explained.contains(&group.example) => html! {
                a href={ "#w" (self.part) "-" (group.example) } { "#" (group.example) }
            },
            None => html! { "#" (group.example) },
        }
    }
}

/// Each comparison: verdicts, groups of differences, counters.
pub fn differences(totals: &Totals, setup: &Setup, place: &Place) -> Markup {
    html! {
        section id={ "differences-" (place.part) } {
            h2 { "Differences" }
            @for comparison in &totals.comparisons {
                @if totals.comparisons.len() > 1 { h3 { code { (setup.baseline) } " → " code { (comparison.patched) } } }
                div.columns.even {
                    div { (counters(totals, comparison, setup)) }
                    div { (Table::of_text("Verdicts", &text::verdict_rows(comparison)).draw()) }
                }
                (groups(comparison, place))
            }
        }
    }
}

fn counters(totals: &Totals, comparison: &Comparison, setup: &Setup) -> Markup {
    let rows = text::counter_rows(totals, comparison, setup);
    html! {
        (Table::of_text("SIS counters, modelled, as mmtests prints them", &rows).draw())
        @if setup.recent_miss == RecentMiss::Of2021 {
            p.note { "Recent Used Miss as in 2021: also where it does not share cache." }
        }
        @if let Some(counted) = &setup.schedstat {
            p.note { "schedstat: " (counted.name) "; from before the recording to after it, nothing filtered." }
        }
    }
}

fn groups(comparison: &Comparison, place: &Place) -> Markup {
    let sorted = text::largest_first(comparison);
    let all: u64 = sorted.iter().map(|group| group.count.sum()).sum();
    let most = sorted.first().map_or(0, |group| group.count.sum());
    let row = |group: &&Group| {
        let n = group.count.sum();
        vec![
            Cell { is_number: true, ..Cell::text(&count(n)) }.with_bar(n, most),
            Cell::number(&percent(n, all)),
            Cell::of(
                html! { code { (format!("{:?}", group.baseline)) } " → " code { (format!("{:?}", group.patched)) } },
            ),
            Cell::of(html! { span.bad[group.wrong > 0] { (text::kinds(group)) } }),
            Cell { key: Some(group.example.to_string()), ..Cell::of(place.link(group)) },
        ]
    };
    let head = [("count", true), ("share", true), ("by return", false), ("kinds", false), ("first", false)];
    let table = Table {
        is_named: false,
        id: format!("groups-{}-{}", place.part, comparison.patched.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
        caption: "Groups of differences, by the return that each side took".to_owned(),
        head: head.map(|(name, is_number)| (name.to_owned(), is_number)).to_vec(),
        rows: sorted.iter().map(row).collect(),
        sortable: true,
    };
    html! {
        @if sorted.is_empty() { p { "No differences." } } @else {
            (table.draw())
            p.note { "core: a whole idle core; sibling: an idle thread beside a busy one" }
        }
    }
}

/// Placements outside of the affinity.
pub fn wrong(totals: &Totals) -> Markup {
    let all = totals.decisions.sum();
    html! {
        section {
            h2 { "Wrong placements" }
            ul.plain {
                @for column in &totals.columns {
                    @let n = column.wrong.sum();
                    li.bad[n > 0] {
                        code { (label(totals, column)) } ": " (count(n)) " of " (count(all)) " outside of cpus_ptr"
                        @if let Some(number) = column.wrong_example { "; the first is #" (number) }
                        @if column.faults > 0 {
                            "; took run queues beyond nr_cpu_ids " (counted(column.faults, "time", "times"))
                        }
                    }
                }
            }
            p.note { "Affinity: " (affinity(totals)) "." }
        }
    }
}

/// Agreement with the recorded choices.
pub fn agreement(totals: &Totals, setup: &Setup) -> Markup {
    let recorded: u64 = totals.always_prev.named().iter().map(|(_, share)| share.of).sum();
    let (rows, sentences) = agreement_rows::rows(totals, setup);
    html! {
        section {
            h2 { "Agreement with the recorded kernel" }
            @if recorded == 0 { p { "No recorded choice is known." } } @else {
                (Table::of_text("Decisions as the recorded kernel chose", &rows).draw())
                @for [key, text] in &sentences {
                    p.note { @if !key.is_empty() { strong { (key) ": " } } (text) "." }
                }
            }
        }
    }
}
