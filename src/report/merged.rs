// SPDX-License-Identifier: GPL-2.0-or-later
//! What `merge` prints: the sum, and quantiles that only a sum of histograms can tell.

use crate::histogram::Histogram;
use crate::replay::totals::Totals;
use crate::report::json::Report;
use crate::report::layout::{Align, HEADING, columns, count, counted, paint, section};
use crate::report::placements::label;
use crate::report::plot::axis::duration;
use crate::report::shards::listed;
use crate::report::text;

/// Quantiles that are shown.
const QUANTILES: [(f64, &str); 4] = [(0.5, "median"), (0.9, "p90"), (0.99, "p99"), (1.0, "max")];

/// The report.
pub fn text(report: &Report) -> String {
    let title = format!(
        "sisdiff {}: {} merged",
        env!("CARGO_PKG_VERSION"),
        counted(report.files.len() as u64, "recording", "recordings")
    );
    let mut out = format!("{}\n", paint(HEADING, &title));
    if let Some(shards) = &report.shards {
        let (there, missing) = (listed(&shards.parts), listed(&shards.missing()));
        let text = format!("shards {there} of {}; missing {missing}", shards.of);
        let row = vec!["not the whole run".to_owned(), text];
        out += &columns(2, &[Align::Left, Align::Left], &[row]);
    }
    match (report.files.as_slice(), &report.sum) {
        ([], _) => return out + "nothing to add up: the reports have no recordings\n",
        ([one], _) => out += &(text::body(one) + &quantiles(&one.totals)),
        (files, Some(sum)) => out += &(text::sum(files, sum) + &quantiles(sum)),
        (files, None) => out += &text::sum(files, &crate::report::json::sum(files)),
    }
    out
}

fn quantiles(totals: &Totals) -> String {
    let head = |unit: &str| {
        let mut row = vec![unit.to_owned(), "mean".to_owned()];
        row.extend(QUANTILES.map(|(_, name)| name.to_owned()));
        row
    };
    let mut rows = vec![head("CPUs scanned by a wakeup")];
    for column in &totals.columns {
        let of = &column.scanned;
        let mut row = vec![format!("  {}", label(totals, column)), mean(of, |mean| format!("{mean:.2}"))];
        row.extend(QUANTILES.map(|(q, _)| of.quantile(q).map_or_else(|| "-".to_owned(), count)));
        rows.push(row);
    }
    if let Some(latency) = &totals.latency {
        rows.push(head("wait, as recorded"));
        for (name, of) in
            [("  from sched_waking", &latency.from_waking_ns), ("  from sched_wakeup", &latency.from_wakeup_ns)]
        {
            let mut row = vec![name.to_owned(), mean(of, |mean| duration(mean as u64))];
            row.extend(QUANTILES.map(|(q, _)| of.quantile(q).map_or_else(|| "-".to_owned(), duration)));
            rows.push(row);
        }
    }
    let mut align = vec![Align::Left];
    align.resize(rows[0].len(), Align::Right);
    section("quantiles, at most 3.2% too small") + &columns(2, &align, &rows)
}

fn mean(of: &Histogram, show: impl Fn(f64) -> String) -> String {
    of.mean().map_or_else(|| "-".to_owned(), show)
}
