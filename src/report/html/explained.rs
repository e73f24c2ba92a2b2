// SPDX-License-Identifier: GPL-2.0-or-later
//! Differences explained one by one: each opens without a script.

use maud::{Markup, html};

use crate::compare::Verdict;
use crate::replay::driver::Explained;
use crate::replay::totals::Totals;
use crate::replay::{Role, Setup};
use crate::report::explain::{self, Names};
use crate::report::html::tables::{Cell, Table, filter};
use crate::report::layout::{count, counted};
use crate::report::picture::{LEGEND, picture};
use crate::report::text::difference;
use crate::report::walks::{Line, Pair, aligned, first_difference, lines};
use crate::units::seconds;

/// Width of the picture of a machine, characters.
const PICTURE: usize = 96;

/// A decision that was explained.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// Its number.
    pub number: u64,
    /// Its verdicts.
    pub verdicts: Vec<Verdict>,
    head: Markup,
    body: Markup,
}

impl Explanation {
    /// Rendered at once: the state of the machine is not kept.
    pub fn new(explained: &Explained, columns: &[(String, Role)], setup: &Setup) -> Self {
        let names = Names { columns: columns.to_vec() }.told_apart();
        Self {
            number: explained.row.recorded.number,
            verdicts: explained.row.verdicts.clone(),
            head: head(explained, &names),
            body: body(explained, &names, setup),
        }
    }
}

/// All that were explained of part `at`.
pub fn section(explained: &[Explanation], again: Option<&str>, totals: &Totals, at: usize) -> Markup {
    let differing = explained.iter().filter(|one| super::summary::kind(one)).count() as u64;
    let groups = totals.comparisons.iter().flat_map(|comparison| &comparison.groups);
    let all: u64 = groups.map(|group| group.count.sum()).sum();
    let list = format!("explained-list-{}", at + 1);
    html! {
        section id={ "explained-" (at + 1) } {
            h2 { "Differences, explained" }
            @if explained.is_empty() && all == 0 { p { "Nothing differs." } }
            @else if explained.is_empty() { p { "None: this recording cannot be read a second time." } }
            @else {
                p.note {
                    (counted(differing, "difference", "differences")) " of " (count(all))
                    ": wrong ones first, then the first of each pair of returns, the second of each, and so on. \
                     Open one to see the machine at its moment and both walks."
                }
                (filter(&list, "explained differences"))
                div.list id=(list) {
                    @for one in explained {
                        details.one {
                            summary { (one.head) }
                            div.body id={ "w" (at + 1) "-" (one.number) } { (one.body) }
                        }
                    }
                }
            }
            @if let Some(again) = again { p.note { "Any other: " code { (again) " --wakeup N" } } }
        }
    }
}

fn head(explained: &Explained, names: &Names) -> Markup {
    let row = &explained.row;
    let baseline = names.columns.iter().zip(&row.decisions).find(|((_, role), _)| *role == Role::Baseline);
    let patched: Vec<_> =
        names.columns.iter().zip(&row.decisions).filter(|((_, role), _)| *role == Role::Patched).collect();
    let differing = patched.iter().zip(&row.verdicts).filter_map(|(((spec, _), decision), verdict)| match verdict {
        Verdict::Diverge { difference, .. } => Some((spec, *decision, *difference)),
        _ => None,
    });
    html! {
        span.no { "#" (row.recorded.number) }
        span.at { (seconds(row.recorded.ts_ns)) " s" }
        span.who { code { (row.recorded.comm.to_string()) } " (" (row.recorded.pid.to_string()) ")" }
        span.what {
            @for (spec, decision, how) in differing {
                @if let Some((_, from)) = baseline {
                    span {
                        @if patched.len() > 1 { (spec) ": " }
                        "CPU " (from.class_cpu.to_string()) " → " (decision.class_cpu.to_string()) ", "
                        (format!("{:?}", from.exit)) " → " (format!("{:?}", decision.exit)) ", "
                        span.bad[how.outside.is_patched()] { (difference(how)) }
                    }
                }
            }
            @if row.wrong.contains(&true) { span.bad { "wrong placement" } }
        }
    }
}

fn body(explained: &Explained, names: &Names, setup: &Setup) -> Markup {
    let row = &explained.row;
    let marks = explain::marks(row);
    let decisions = explain::decision_rows(row, names, setup);
    let mut legend: Vec<String> = LEGEND.map(str::to_owned).to_vec();
    legend.extend(explain::mark_legend(names));
    html! {
        dl.facts {
            @for [key, value] in explain::question_rows(explained, setup) { dt { (key) } dd { (value) } }
        }
        div.wide tabindex="0" role="region" aria-label="The machine" {
            pre { (picture(&explained.state, &marks, PICTURE)) }
        }
        p.note { @for (at, part) in legend.iter().enumerate() { @if at > 0 { " · " } span.nowrap { (part) } } }
        (decision_table(&decisions))
        @for note in explain::decision_notes(row, names, setup) { p.note { (note) } }
        (walks(explained, names))
    }
}

fn decision_table(rows: &[Vec<String>]) -> Markup {
    let Some((head, rows)) = rows.split_first() else { return html! {} };
    let is_number = |at: usize| at == 4;
    let cell = |(at, text): (usize, &String)| match at {
        4 => Cell::number(text),
        2 => Cell::of(html! { span.bad[text.contains("WRONG")] { (text) } }),
        _ => Cell::text(text),
    };
    let padded = |row: &Vec<String>| {
        let mut row = row.clone();
        row.resize(head.len(), String::new());
        row.iter().enumerate().map(cell).collect()
    };
    let table = Table {
        caption: "Decisions".to_owned(),
        head: head.iter().enumerate().map(|(at, name)| (name.clone(), is_number(at))).collect(),
        rows: rows.iter().map(padded).collect(),
        ..Table::default()
    };
    table.draw()
}

fn walks(explained: &Explained, names: &Names) -> Markup {
    let texts: Vec<Vec<Line>> = explained.walks.iter().map(lines).collect();
    let of = |role: Role| names.columns.iter().zip(&texts).filter(move |((_, of), _)| *of == role);
    let baseline = of(Role::Baseline).next();
    html! {
        @if let Some(((base, _), left)) = baseline {
            @for ((spec, _), right) in of(Role::Patched) {
                @if first_difference(left, right).is_none() {
                    p.note { "The walk of " code { (spec) } " is the same as that of " code { (base) } "." }
                } @else { (side_by_side(base, left, spec, right)) }
            }
        }
        @for ((spec, _), walk) in of(Role::Recorded) {
            details {
                summary { "Walk of " code { (spec) } ", the model of the recorded kernel" }
                div.walk { @for line in walk { (self::line(Some(line))) } }
            }
        }
    }
}

fn side_by_side(base: &str, left: &[Line], spec: &str, right: &[Line]) -> Markup {
    let pairs = aligned(left, right);
    let first = pairs.iter().position(|pair| !pair.same);
    let row = |at: usize, pair: &Pair<'_>| {
        let class = match (pair.same, first == Some(at)) {
            (true, _) => None,
            (false, true) => Some("d first"),
            (false, false) => Some("d"),
        };
        html! {
            tr class=[class] { td { (line(pair.left)) } td { (line(pair.right)) } }
        }
    };
    html! {
        div.wide tabindex="0" role="region" aria-label="Walks side by side" {
            table.walk {
                caption { "Walks; the first step that differs is marked" }
                thead { tr { th scope="col" { code { (base) } } th scope="col" { code { (spec) } } } }
                tbody { @for (at, pair) in pairs.iter().enumerate() { (row(at, pair)) } }
            }
        }
    }
}

/// A step, without its indent where it is a function's name.
fn line(line: Option<&Line>) -> Markup {
    let Some(line) = line else { return html! {} };
    let is_function = !line.text.starts_with(' ');
    html! {
        @if is_function { b { (line.text) } } @else { i { (line.text.trim_start()) } }
        @if let Some(place) = &line.place { small { (place.trim()) } }
    }
}
