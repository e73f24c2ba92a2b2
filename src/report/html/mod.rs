// SPDX-License-Identifier: GPL-2.0-or-later
//! The report of a replay as one HTML file: no network, readable without scripts, every text of a recording escaped.

mod explained;
pub mod funcgraph;
mod page;
mod pictures;
mod sections;
pub mod simulate;
mod style;
mod summary;
mod tables;

use maud::{Markup, html};

use crate::bins::Bins;
use crate::replay::totals::Totals;
use crate::replay::{Outcome, Setup};

pub use explained::Explanation;
use page::page;

/// Recordings whose own sections a report has; of further ones it has the row of the table and their part of the sum.
pub const PARTS_MAX: usize = 8;

/// One recording.
pub struct Part<'a> {
    /// What came out.
    pub outcome: &'a Outcome,
    /// What pictures are drawn from.
    pub bins: &'a Bins,
    /// Differences explained.
    pub explained: Vec<Explanation>,
    /// The command that explains a decision, without its number.
    pub again: Option<String>,
}

/// The report; `sum`: over several recordings.
pub fn report(parts: &[Part<'_>], outcomes: &[&Outcome], sum: Option<&Totals>) -> String {
    let title = match outcomes {
        [one] => format!("replay of {}", one.recording.file),
        all => format!("replay of {} recordings", all.len()),
    };
    let body = html! {
        @if let (Some(sum), Some(first)) = (sum, outcomes.first()) {
            (summary::headline(sum, &first.setup))
            (summary::recordings(outcomes))
            (sections::differences(sum, &first.setup, &sections::Place::sum(outcomes)))
            (sections::wrong(sum))
            @if outcomes.len() > parts.len() {
                p.note { "The first " (parts.len()) " recordings follow one by one; the others are in the sum." }
            }
        }
        @for (at, part) in parts.iter().enumerate() {
            @if sum.is_some() { h2.part id=(format!("f{}", at + 1)) { (part.outcome.recording.file) } }
            (self::part(part, at))
        }
    };
    page(&title, &nav(parts.len(), sum.is_some()), &body)
}

/// The sections of one recording; `at`: its number, for links.
fn part(part: &Part<'_>, at: usize) -> Markup {
    let Part { outcome, bins, explained, again } = part;
    let (totals, setup): (&Totals, &Setup) = (&outcome.totals, &outcome.setup);
    let place = sections::Place::of(at, explained);
    html! {
        (summary::headline(totals, setup))
        (summary::provenance(outcome))
        @if totals.decisions.sum() == 0 {
            p { "Nothing to compare: no call of select_task_rq_fair() in what was counted." }
        } @else {
            (sections::differences(totals, setup, &place))
            (sections::wrong(totals))
            (sections::agreement(totals, setup))
            (pictures::pictures(outcome, bins))
            (summary::comms(totals, bins, setup, at))
            (explained::section(explained, again.as_deref(), totals, at))
        }
    }
}

fn nav(parts: usize, has_sum: bool) -> Vec<(String, String)> {
    let own = |(id, name): (&str, &str)| (format!("{id}-1"), name.to_owned());
    if has_sum {
        return (1..=parts).map(|at| (format!("f{at}"), format!("recording {at}"))).collect();
    }
    let sections = [
        ("about", "Provenance"),
        ("differences", "Differences"),
        ("time", "Over time"),
        ("scanned", "Scanning"),
        ("heat", "Placements"),
        ("latency", "Latency"),
        ("names", "By name"),
        ("explained", "Explained"),
    ];
    sections.map(own).to_vec()
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
