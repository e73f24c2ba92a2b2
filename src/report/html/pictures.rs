// SPDX-License-Identifier: GPL-2.0-or-later
//! The pictures of one recording: bins → plots, each with a sentence and, where it helps, its numbers.

use maud::{Markup, html};

use crate::bins::{Bins, TimeBins};
use crate::histogram::Histogram;
use crate::replay::totals::{Role, Totals};
use crate::replay::{Outcome, Setup};
use crate::report::html::tables::{Cell, Table};
use crate::report::layout::{count, percent};
use crate::report::placements::label;
use crate::report::plot::axis::duration;
use crate::report::plot::heat::{self, Group, Map, Maps};
use crate::report::plot::svg::{legend, series};
use crate::report::plot::{bars, steps};
use crate::topology::Topology;

/// Columns of a picture over time.
const COLUMNS: usize = 240;
/// Cells of all heat maps together: what bounds the size of the file.
const CELLS_MAX: usize = 100_000;
/// Patched implementations that get maps of their own.
const PATCHED_MAPS: usize = 3;
/// CPUs that are listed one by one.
const CPUS_LISTED: usize = 256;

/// All of them.
pub fn pictures(outcome: &Outcome, bins: &Bins) -> Markup {
    let Outcome { totals, setup, .. } = outcome;
    html! {
        (over_time(totals, setup, &bins.time))
        (scanned(totals))
        @if let Some(topology) = &bins.topology { (placements(totals, &bins.time, topology)) }
        (latency(bins))
    }
}

fn figure(id: &str, title: &str, caption: &str, content: &Markup, after: &Markup) -> Markup {
    html! {
        section id={ (id) "-1" } {
            h2 { (title) }
            figure {
                figcaption { (caption) }
                div.wide tabindex="0" role="region" aria-label=(title) { (content) }
                (after)
            }
        }
    }
}

/// How many bins become one column of at most `columns`.
fn every(bins: usize, columns: usize) -> usize {
    bins.div_ceil(columns.max(1)).max(1)
}

fn over_time(totals: &Totals, setup: &Setup, time: &TimeBins) -> Markup {
    let Some(from_ns) = time.origin_ns else { return html! {} };
    let every = every(time.bins.len(), COLUMNS);
    let sums = |of: &dyn Fn(&crate::bins::Bin) -> u32| -> Vec<u64> {
        time.bins.chunks(every).map(|chunk| chunk.iter().map(|bin| u64::from(of(bin))).sum()).collect()
    };
    let width_ns = time.width_ns.saturating_mul(every as u64);
    let decisions = steps::Panel {
        name: "decisions".to_owned(),
        series: vec![steps::Series { class: series(6), values: sums(&|bin| bin.decisions) }],
    };
    let different = |at: usize| steps::Series { class: series(at + 1), values: sums(&|bin| bin.different[at]) };
    let differences = steps::Panel {
        name: "of these, another CPU than the baseline".to_owned(),
        series: (0..totals.comparisons.len()).map(different).collect(),
    };
    let picture = steps::over_time(
        "Decisions and differences over time",
        &[decisions, differences],
        from_ns,
        width_ns,
        "per bin",
    );
    let names: Vec<_> = setup.patched.iter().enumerate().map(|(at, spec)| (series(at + 1), spec.clone())).collect();
    let caption = format!("Wakeups, forks and execs in bins of {}.", duration(width_ns));
    figure("time", "Decisions and differences over time", &caption, &picture, &legend(&names))
}

/// The series of a column: the baseline the first colour, patched ones the next, the recorded kernel grey.
fn class(totals: &Totals, at: usize) -> String {
    let is_recorded = totals.columns.get(at).is_none_or(|column| column.role == Role::Recorded);
    if is_recorded { series(6) } else { series(at % 6) }
}

/// Classes of numbers of CPUs from 2 on: one by one as far as that fits, then two to a doubling.
fn classes(max: u64) -> Vec<(u64, u64)> {
    let mut classes = Vec::new();
    let mut low = 2;
    while low <= max.max(2) {
        let width = if max <= 24 || low < 4 { 1 } else { 1 << (low.ilog2() - 1) };
        classes.push((low, low + width - 1));
        low += width;
    }
    classes
}

fn scanned(totals: &Totals) -> Markup {
    let max = totals.columns.iter().map(|column| column.scanned.max()).max().unwrap_or(0);
    let classes = classes(max);
    let share = |histogram: &Histogram, (low, high): (u64, u64)| {
        let n: u64 = histogram.buckets().filter(|(value, _)| (low..=high).contains(value)).map(|(_, n)| n).sum();
        100.0 * n as f64 / histogram.n().max(1) as f64
    };
    let quantile = |histogram: &Histogram, q| histogram.quantile(q).unwrap_or(0);
    let fast = |histogram: &Histogram| histogram.buckets().take_while(|&(value, _)| value < 2).map(|(_, n)| n).sum();
    let panels: Vec<bars::Panel> = totals
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| bars::Panel {
            name: label(totals, column),
            class: class(totals, at),
            shares: classes.iter().map(|&class| share(&column.scanned, class)).collect(),
            figures: format!(
                "at most one {} · mean {:.2} · p90 {} · p99 {} · max {}",
                percent(fast(&column.scanned), column.scanned.n()),
                column.scanned.mean().unwrap_or(0.0),
                count(quantile(&column.scanned, 0.9)),
                count(quantile(&column.scanned, 0.99)),
                count(column.scanned.max()),
            ),
        })
        .collect();
    let names: Vec<String> = classes
        .iter()
        .map(|&(low, high)| if low == high { count(low) } else { format!("{}–{}", count(low), count(high)) })
        .collect();
    let title = "CPUs scanned per wakeup";
    let picture = bars::panels(title, &panels, &names, "CPUs scanned by one wakeup (SIS Scanned)", "% of wakeups");
    let caption = "Distribution of SIS Scanned over wakeups. Most wakeups look at the target only: those that scanned at \
                   most one CPU are told at the right, not drawn. The line is the outline of the baseline.";
    figure("scanned", title, caption, &picture, &html! {})
}

/// CPUs by last-level cache, in the order of nodes.
fn groups(topology: &Topology) -> Vec<Group> {
    let mut groups: Vec<(u32, usize, Vec<usize>)> = Vec::new();
    for cpu in topology.cpus() {
        let id = topology.sd_llc_id(cpu).index();
        match groups.iter_mut().find(|(_, of, _)| *of == id) {
            Some((_, _, cpus)) => cpus.push(cpu.index()),
            None => groups.push((topology.node(cpu), id, vec![cpu.index()])),
        }
    }
    groups.sort();
    groups.into_iter().map(|(_, _, cpus)| Group { name: range(&cpus), rows: cpus }).collect()
}

/// `0–19, 40–59`: as many as fit beside a map.
fn range(cpus: &[usize]) -> String {
    let mask: crate::cpumask::Cpumask = cpus.iter().filter_map(|&cpu| crate::units::Cpu::new(cpu)).collect();
    let text = mask.to_string();
    match text.char_indices().nth(10) {
        Some(_) => format!("{}…", text.split(',').next().unwrap_or(&text)),
        None => text,
    }
}

fn placements(totals: &Totals, time: &TimeBins, topology: &Topology) -> Markup {
    let Some(from_ns) = time.origin_ns else { return html! {} };
    let cpus = topology.nr_cpu_ids();
    let shown: Vec<usize> = (0..totals.columns.len())
        .filter(|&at| totals.columns[at].role == Role::Baseline)
        .chain((0..totals.columns.len()).filter(|&at| totals.columns[at].role == Role::Patched).take(PATCHED_MAPS))
        .collect();
    let maps = 2 * shown.len();
    let columns = (CELLS_MAX / maps.max(1) / cpus.max(1)).clamp(24, COLUMNS);
    let every = every(time.bins.len(), columns);
    let cells = |row: usize| -> Vec<Vec<i64>> {
        let sum =
            |chunk: &[crate::bins::Bin], cpu: usize| chunk.iter().map(|bin| i64::from(bin.placed[row][cpu])).sum();
        (0..cpus).map(|cpu| time.bins.chunks(every).map(|chunk| sum(chunk, cpu)).collect()).collect()
    };
    let mut all: Vec<Map> = Vec::new();
    let baseline = cells(0);
    for &at in &shown {
        all.push(Map { name: label(totals, &totals.columns[at]), cells: cells(at), signed: false });
        if at > 0 {
            let minus = |(to, from): (Vec<i64>, &Vec<i64>)| to.iter().zip(from).map(|(to, from)| to - from).collect();
            let cells = cells(at).into_iter().zip(&baseline).map(minus).collect();
            let name = format!("difference: {} − {}", totals.columns[at].spec, totals.columns[0].spec);
            all.push(Map { name, cells, signed: true });
        }
    }
    all.push(Map { name: "recorded choices".to_owned(), cells: cells(totals.columns.len()), signed: false });
    let width_ns = time.width_ns.saturating_mul(every as u64);
    let groups = groups(topology);
    let title = "Placements by CPU and time";
    let picture = heat::draw(title, &Maps { maps: &all, groups: &groups, from_ns, width_ns });
    let caption = format!(
        "Decisions that place a task on a CPU, in cells of {} by one CPU; rows are CPUs in ascending order, in groups that \
         share a last-level cache, node by node. Open loop: every decision starts from the recorded state of the machine.",
        duration(width_ns)
    );
    figure("heat", title, &caption, &picture, &by_cpu(totals, time, &shown, &groups))
}

/// The numbers over the whole time, CPU by CPU.
fn by_cpu(totals: &Totals, time: &TimeBins, shown: &[usize], groups: &[Group]) -> Markup {
    let recorded = totals.columns.len();
    let sums: Vec<Vec<u64>> = shown.iter().chain([&recorded]).map(|&row| time.by_cpu(row)).collect();
    let mut head = vec![("CPU".to_owned(), true)];
    head.extend(shown.iter().map(|&at| (label(totals, &totals.columns[at]), true)));
    head.push(("recorded".to_owned(), true));
    let most = sums.iter().flatten().max().copied().unwrap_or(0);
    let cpus = groups.iter().flat_map(|group| &group.rows).take(CPUS_LISTED);
    let row = |&cpu: &usize| {
        let mut cells = vec![Cell::number(&cpu.to_string())];
        cells.extend(sums.iter().map(|sums| Cell::number(&count(sums[cpu])).with_bar(sums[cpu], most)));
        cells
    };
    let table = Table {
        caption: "Placements by CPU, over the whole time".to_owned(),
        head,
        rows: cpus.map(row).collect(),
        sortable: true,
        ..Table::default()
    };
    html! { details { summary { "The numbers, CPU by CPU" } (table.draw()) } }
}

fn latency(bins: &Bins) -> Markup {
    let latency = &bins.latencies.all;
    let named = [
        ("from sched_waking", series(0), &latency.from_waking_ns),
        ("from sched_wakeup", series(1), &latency.from_wakeup_ns),
    ];
    let named: Vec<_> = named.into_iter().filter(|(_, _, histogram)| histogram.n() > 0).collect();
    if named.is_empty() {
        return html! {};
    }
    let histograms: Vec<(String, &Histogram)> = named.iter().map(|(_, class, of)| (class.clone(), *of)).collect();
    let title = "Wakeup latency, as recorded";
    let picture = steps::durations(title, &histograms);
    let legend = legend(&named.iter().map(|(name, class, _)| (class.clone(), (*name).to_owned())).collect::<Vec<_>>());
    let head = ["", "wakeups", "mean", "median", "p90", "p99", "p99.9", "max"];
    let rows = named.iter().map(|(name, _, of)| {
        let mut cells = vec![Cell::text(name), Cell::number(&count(of.n()))];
        cells.push(Cell::number(&of.mean().map_or_else(|| "-".to_owned(), |mean| duration(mean as u64))));
        cells.extend(
            [0.5, 0.9, 0.99, 0.999, 1.0]
                .map(|q| of.quantile(q).map_or(Cell::number("-"), |ns| Cell::number(&duration(ns)))),
        );
        cells
    });
    let table = Table {
        caption: title.to_owned(),
        is_named: true,
        head: head.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at > 0)).collect(),
        rows: rows.collect(),
        ..Table::default()
    };
    let caption = "From sched_waking, or sched_wakeup, to the sched_switch that let the task run: what the recorded kernel \
                   did, whatever the implementations here would have chosen. Quantiles are at most 3% too small.";
    figure("latency", title, caption, &picture, &html! { (legend) (table.draw()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_cpus_have_no_gaps() {
        for max in [0, 1, 2, 7, 24, 25, 100, 1023] {
            let classes = classes(max);
            assert_eq!(classes[0].0, 2);
            assert!(classes.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "{classes:?}");
            assert!(classes.last().expect("a class").1 >= max && classes.len() <= 24, "{max}: {classes:?}");
        }
        assert_eq!(classes(40), [(2, 2), (3, 3), (4, 5), (6, 7), (8, 11), (12, 15), (16, 23), (24, 31), (32, 47)]);
    }
}
