// SPDX-License-Identifier: GPL-2.0-or-later
//! Results of simulations as mmtests prints them: rows, the baseline, each patched implementation with its change.

use crate::counters::{Column, RecentMiss};
use crate::fair::SisCounters;
use crate::report::counters;
use crate::report::layout::{Align, columns, count, section};
use crate::report::sis;
use crate::simulate::extract::Figures;
use crate::simulate::trial::{Cell, Row};
use crate::simulate::{Histogram, Stats};
use crate::topology::Distance;

/// What a report says before its tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// What runs.
    pub title: String,
    /// Lines of name and text.
    pub lines: Vec<(&'static str, String)>,
    /// The implementations' names.
    pub names: Vec<String>,
    /// Definition of a recent_used_cpu that missed.
    pub recent_miss: RecentMiss,
}

/// The whole report.
pub fn text(head: &Head, rows: &[Row]) -> String {
    let mut out = format!("sisdiff {}: simulation of {}\n", env!("CARGO_PKG_VERSION"), head.title);
    let lines: Vec<Vec<String>> =
        head.lines.iter().map(|(name, text)| vec![(*name).to_owned(), text.clone()]).collect();
    out += &columns(2, &[Align::Left, Align::Wrap], &lines);
    // A recording does not say what a request is.
    if rows.iter().any(|row| row.recorded.is_none()) {
        let unit = rows.first().map_or("units", |row| row.unit);
        out += &section(&format!(
            "throughput: {unit} a second, harmonic mean over seeds; * the 95 % intervals do not overlap"
        ));
        out += &columns(2, &align(head), &throughput_rows(head, rows));
    }
    if rows.iter().any(|row| row.recorded.is_some()) {
        out += &section("reality check: what the recorded kernel made of it");
        out += &reality(rows);
    }
    out += &section("wakeup latency, us");
    out += &(columns(2, &align(head), &latency_rows(head, rows)) + LATENCY_NOTE);
    out += &section("scheduling");
    out += &columns(2, &align(head), &scheduling_rows(head, rows));
    out += &section("SIS counters, all loads and seeds together");
    out += &counters_table(head, rows);
    out += &section("by task name");
    let mut align = vec![Align::Left; 3];
    align.extend([Align::Right; 5]);
    out += &columns(2, &align, &by_comm_rows(head, rows));
    out
}

fn header(head: &Head) -> Vec<String> {
    let mut row = vec![String::new(), String::new()];
    row.extend(head.names.iter().cloned());
    row
}

fn align(head: &Head) -> Vec<Align> {
    let mut align = vec![Align::Left, Align::Left];
    align.extend(std::iter::repeat_n(Align::Right, head.names.len()));
    align
}

/// A value with its change from the baseline's, in percent.
fn with_change(value: f64, base: f64, decimals: usize, star: bool) -> String {
    let change = if base != 0.0 { 100.0 * (value - base) / base } else { 0.0 };
    let change = if change == 0.0 { 0.0 } else { change };
    if star { format!("{value:.decimals$} *{change:7.2}%*") } else { format!("{value:.decimals$} ({change:7.2}%)") }
}

/// Throughput by load: the first row is the head.
pub fn throughput_rows(head: &Head, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = vec![header(head)];
    for row in rows {
        let Some(first) = row.cells.first() else { continue };
        let cell = |cell: &Cell| with_change(cell.hmean(), first.hmean(), 2, cell.differs(first));
        let mut line = vec!["Hmean".to_owned(), row.label.clone()];
        line.extend(row.cells.iter().map(cell));
        table.push(line);
        if row.cells.iter().any(|cell| cell.interval().is_some()) {
            let mut line = vec!["  +-95%".to_owned(), row.label.clone()];
            let width = |cell: &Cell| cell.interval().map_or("-".to_owned(), |part| format!("{:.2}%", 100.0 * part));
            line.extend(row.cells.iter().map(width));
            table.push(line);
        }
    }
    table
}

type Times = fn(&Stats) -> &Histogram;

/// The quantiles that reports show.
pub const QUANTILES: [(&str, f64); 4] = [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999)];

/// Quantiles of latencies by load: the first row is the head.
pub fn latency_rows(head: &Head, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = vec![header(head)];
    for row in rows {
        let any = |of: fn(&Stats) -> u64| row.cells.iter().any(|cell| of(&cell.stats) > 0);
        let groups: [(&str, Times, bool); 2] = [
            ("Lat", |stats| &stats.latency, any(|stats| stats.latency.count())),
            ("Req", |stats| &stats.requests, any(|stats| stats.requests.count())),
        ];
        for (name, of, shown) in groups {
            for (title, share) in QUANTILES.iter().filter(|_| shown) {
                let us = |cell: &Cell| of(&cell.stats).quantile(*share).map_or(0.0, |ns| ns as f64 / 1000.0);
                let base = row.cells.first().map_or(0.0, us);
                let mut line = vec![format!("{name} {title}%"), row.label.clone()];
                line.extend(row.cells.iter().map(|cell| with_change(us(cell), base, 1, false)));
                table.push(line);
            }
        }
    }
    table
}

/// What latencies are.
pub const LATENCY_NOTE: &str =
    "  Lat: from a wakeup to the wakee's first instruction. Req: from a request's begin to its end.\n";

/// The recorded kernel's figures beside each implementation's.
pub fn reality(rows: &[Row]) -> String {
    let mut align = vec![Align::Left; 2];
    align.extend([Align::Right; 8]);
    columns(2, &align, &reality_rows(rows)) + REALITY_NOTE
}

/// What the columns of the check against reality are.
pub const REALITY_NOTE: &str = "  error: mean absolute difference of the CPUs' busy shares, in points; by rank: the same, busiest against busiest;\n  factor: migrations by those recorded.\n";

/// The recorded kernel's figures beside each implementation's: the first row is the head.
pub fn reality_rows(rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = vec![
        ["", "", "busy", "error", "by rank", "migrations", "factor", "p50 us", "p90 us", "p99 us"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for row in rows {
        let Some(recorded) = &row.recorded else { continue };
        table.push(reality_line(&row.label, "recorded", recorded, None));
        for (name, cell) in row.names.iter().zip(&row.cells) {
            table.push(reality_line("", name, &cell.figures(), Some(recorded)));
        }
    }
    table
}

fn reality_line(label: &str, name: &str, figures: &Figures, recorded: Option<&Figures>) -> Vec<String> {
    let us = |share| figures.latency.quantile(share).map_or("-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1000.0));
    let dash = || "-".to_owned();
    vec![
        label.to_owned(),
        name.to_owned(),
        format!("{:.1}%", figures.busy()),
        recorded.map_or_else(dash, |recorded| format!("{:.1}", recorded.busy_error(figures))),
        recorded.map_or_else(dash, |recorded| format!("{:.1}", recorded.busy_error_by_rank(figures))),
        count(figures.migrations),
        recorded.map_or_else(dash, |recorded| format!("{:.2}", part(figures.migrations, recorded.migrations))),
        us(0.5),
        us(0.9),
        us(0.99),
    ]
}

type Figure = (&'static str, fn(&Stats) -> f64, usize);

/// What is shown of the scheduler's doing.
const FIGURES: &[Figure] = &[
    ("busy, % of all CPUs", |s| 100.0 * s.utilisation(), 2),
    ("idle while work waits, %", |s| percent(s.wasted_ns, s.measured_ns * u64::from(s.cpus)), 3),
    ("fast success, %", |s| s.fast_success().map_or(0.0, |share| 100.0 * share), 2),
    ("CPUs looked at a search", |s| part(s.sis.scanned, s.sis.search), 2),
    ("searching, % of busy", |s| percent(s.scan_ns, s.busy_ns.iter().sum()), 3),
    ("caches refilled, % of busy", |s| percent(s.cache_ns, s.busy_ns.iter().sum()), 3),
    ("woken elsewhere, %", |s| percent(s.migrations(), s.wakeups), 2),
    ("  same core", |s| percent(s.woken_to[Distance::Core as usize], s.wakeups), 2),
    ("  same LLC", |s| percent(s.woken_to[Distance::Llc as usize], s.wakeups), 2),
    ("  same node", |s| percent(s.woken_to[Distance::Node as usize], s.wakeups), 2),
    ("  other node", |s| percent(s.woken_to[Distance::Remote as usize], s.wakeups), 2),
    ("moved by balancing, a second", |s| part(s.pulled.iter().sum::<u64>() * 1_000_000_000, s.measured_ns), 1),
    ("switches a second", |s| part(s.switches.saturating_mul(1_000_000_000), s.measured_ns), 0),
    ("outside the affinity", |s| s.wrong as f64, 0),
];

fn part(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn percent(one: u64, whole: u64) -> f64 {
    100.0 * part(one, whole)
}

/// What the scheduler did by load: the first row is the head.
pub fn scheduling_rows(head: &Head, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = vec![header(head)];
    for row in rows {
        for &(name, of, decimals) in FIGURES {
            let values: Vec<f64> = row.cells.iter().map(|cell| of(&cell.stats)).collect();
            if values.iter().all(|value| *value == 0.0) {
                continue;
            }
            let mut line = vec![name.to_owned(), row.label.clone()];
            line.extend(values.iter().map(|&value| with_change(value, values[0], decimals, false)));
            table.push(line);
        }
    }
    table
}

/// The SIS counters of each implementation over all loads.
pub fn sis_sums(names: &[String], rows: &[Row]) -> Vec<(String, SisCounters)> {
    let sum = |at: usize| {
        let mut sum = SisCounters::default();
        rows.iter().filter_map(|row| row.cells.get(at)).for_each(|cell| sum += cell.stats.sis);
        sum
    };
    names.iter().enumerate().map(|(at, name)| (name.clone(), sum(at))).collect()
}

/// SIS rows over all loads and seeds: the first row is the head.
pub fn counter_rows(head: &Head, rows: &[Row]) -> Vec<Vec<String>> {
    let sums: Vec<_> =
        sis_sums(&head.names, rows).into_iter().map(|(_, sum)| sis::raw(&sum, head.recent_miss).rows()).collect();
    let mut table = vec![std::iter::once(String::new()).chain(head.names.iter().cloned()).collect()];
    let Some(base) = sums.first() else { return table };
    for (at, &(name, from)) in base.iter().enumerate() {
        let Some(from) = from else { continue };
        let mut line = vec![name.to_owned(), counters::cell(from)];
        line.extend(sums[1..].iter().map(|sum| match sum[at].1 {
            Some(to) => format!("{} {}", counters::cell(to), counters::change_cell(from, to)),
            None => "-".to_owned(),
        }));
        table.push(line);
    }
    table
}

fn counters_table(head: &Head, rows: &[Row]) -> String {
    let sums = sis_sums(&head.names, rows).into_iter();
    let table: Vec<Column> = sums.map(|(name, sum)| Column { name, raw: sis::raw(&sum, head.recent_miss) }).collect();
    // Without its heading: there is one.
    counters::table(&table).split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

/// What became of tasks by name: the first row is the head.
pub fn by_comm_rows(head: &Head, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = vec![vec![
        String::new(),
        "task".to_owned(),
        "implementation".to_owned(),
        "woken".to_owned(),
        "p50 us".to_owned(),
        "p99 us".to_owned(),
        "elsewhere".to_owned(),
        "work, ms".to_owned(),
    ]];
    for row in rows {
        for (cell, name) in row.cells.iter().zip(&head.names) {
            for (comm, by) in &cell.stats.comms {
                let us = |share| {
                    by.latency.quantile(share).map_or("-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1000.0))
                };
                table.push(vec![
                    row.label.clone(),
                    comm.to_string(),
                    name.clone(),
                    count(by.latency.count()),
                    us(0.5),
                    us(0.99),
                    count(by.migrations),
                    format!("{:.1}", by.work_ns as f64 / 1e6),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_from_the_baseline() {
        assert_eq!(with_change(110.0, 100.0, 2, false), "110.00 (  10.00%)");
        assert_eq!(with_change(95.0, 100.0, 1, true), "95.0 *  -5.00%*");
        assert_eq!(with_change(0.0, 0.0, 1, false), "0.0 (   0.00%)");
    }

    #[test]
    fn an_empty_result_still_prints() {
        let head = Head {
            title: "nothing".to_owned(),
            lines: Vec::new(),
            names: vec!["v5.11".to_owned()],
            recent_miss: RecentMiss::Of2020,
        };
        let row = Row {
            label: "1".to_owned(),
            workload: "nothing".to_owned(),
            unit: "rounds",
            names: head.names.clone(),
            recorded: None,
            cells: vec![Cell { throughput: vec![0.0], stats: Stats::new(1) }],
        };
        let text = text(&head, &[row]);
        assert!(text.contains("rounds a second") && text.contains("0.00 (   0.00%)"), "{text}");
    }
}
