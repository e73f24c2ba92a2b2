// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulations as a page: throughput and the fast success rate over the load and against utilisation, counts over time,
//! and the tables of the text report.

use maud::{Markup, html};

use crate::report::html::page;
use crate::report::html::tables::Table;
use crate::report::plot::axis;
use crate::report::plot::curves::{Curve, curves, loads};
use crate::report::plot::steps::{Panel, Series, over_time};
use crate::report::plot::svg::{legend, series};
use crate::report::simulate::{
    Head, LATENCY_NOTE, REALITY_NOTE, by_comm_rows, counter_rows, latency_rows, reality_rows, scheduling_rows,
    throughput_rows,
};
use crate::simulate::Stats;
use crate::simulate::stats::{BINS, Bin};
use crate::simulate::trial::{Cell, Row};

/// Loads that have pictures over time: the first ones, and the last.
const OVER_TIME_MAX: usize = 12;

/// The page.
pub fn report(head: &Head, rows: &[Row]) -> String {
    let body = html! {
        section id="about" {
            dl.facts { @for (name, text) in &head.lines { dt { (name) } dd { (text) } } }
        }
        (over_load(head, rows))
        section id="throughput" {
            h2 { "Throughput" }
            (Table::of_text(&caption(rows), &throughput_rows(head, rows)).draw())
        }
        @if rows.iter().any(|row| row.recorded.is_some()) {
            section id="reality" {
                h2 { "Beside the recorded kernel" }
                (Table::of_text("Reality check", &reality_rows(rows)).draw())
                p.note { (REALITY_NOTE) }
            }
        }
        (times(head, rows))
        section id="latency" {
            h2 { "Latency" }
            (Table::of_text("us", &latency_rows(head, rows)).draw())
            p.note { (LATENCY_NOTE) }
        }
        section id="scheduling" {
            h2 { "Scheduling" }
            (Table::of_text("By load", &scheduling_rows(head, rows)).draw())
        }
        section id="counters" {
            h2 { "SIS counters" }
            (Table::of_text("All loads and seeds together", &counter_rows(head, rows)).draw())
        }
        section id="names" {
            h2 { "By task name" }
            (Table { id: "comms".to_owned(), sortable: true, ..Table::of_text("tasks", &by_comm_rows(head, rows)) }.draw())
        }
    };
    let nav = [
        ("load", "Over the load"),
        ("throughput", "Throughput"),
        ("time", "Over time"),
        ("latency", "Latency"),
        ("scheduling", "Scheduling"),
        ("counters", "SIS counters"),
        ("names", "By name"),
    ];
    let nav: Vec<_> = nav.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect();
    page(&format!("simulation of {}", head.title), &nav, &body)
}

fn caption(rows: &[Row]) -> String {
    let unit = rows.first().map_or("units", |row| row.unit);
    format!("{unit} a second, harmonic mean over seeds; * the 95 % intervals do not overlap")
}

fn names(head: &Head) -> Markup {
    let names: Vec<_> = head.names.iter().enumerate().map(|(at, name)| (series(at), name.clone())).collect();
    legend(&names)
}

fn figure(title: &str, told: &str, picture: &Markup, head: &Head) -> Markup {
    html! {
        figure {
            h3 { (title) }
            figcaption { (told) }
            div.wide tabindex="0" role="region" aria-label=(title) { (picture) }
            (names(head))
        }
    }
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// Pictures with the load on the x axis; of one load there is nothing to see.
fn over_load(head: &Head, rows: &[Row]) -> Markup {
    if rows.len() < 2 {
        return html! {};
    }
    let labels: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
    let (ticks, at) = loads(&labels);
    let curve = |nth: usize, of: &dyn Fn(&Cell) -> Option<f64>| {
        let cells = rows.iter().zip(&at).filter_map(|(row, &at)| Some((at, of(row.cells.get(nth)?)?)));
        Curve { class: series(nth), points: cells.collect() }
    };
    let all =
        |of: &dyn Fn(&Cell) -> Option<f64>| -> Vec<Curve> { (0..head.names.len()).map(|nth| curve(nth, of)).collect() };
    let over = |title: &str, y: &str, is_percent: bool, of: &dyn Fn(&Cell) -> Option<f64>| {
        curves(title, &all(of), (&ticks, "load"), y, is_percent)
    };
    let per_search = |cell: &Cell| {
        let sis = cell.stats.sis;
        (sis.search > 0).then(|| sis.scanned as f64 / sis.search as f64)
    };
    let unit = rows.first().map_or("units", |row| row.unit);
    html! {
        section id="load" {
            h2 { "Over the load" }
            (figure("Throughput", "Harmonic mean over seeds.",
                &over("Throughput over the load", &format!("{unit} a second"), false, &|cell| Some(cell.hmean())), head))
            (figure("Fast success rate against utilisation",
                "Searches that ended before the LLC was scanned; a point is a load.", &against_utilisation(head, rows), head))
            (figure("Fast success rate", "The same over the load.",
                &over("Fast success rate over the load", "fast success", true, &|cell| cell.stats.fast_success().map(percent)), head))
            (figure("CPUs looked at a search", "Every call of select_idle_sibling() is a search.",
                &over("CPUs looked at a search over the load", "CPUs", false, &per_search), head))
            (figure("Busy CPUs", "Share of the time of all CPUs.",
                &over("Busy CPUs over the load", "busy", true, &|cell| Some(percent(cell.stats.utilisation()))), head))
        }
    }
}

fn against_utilisation(head: &Head, rows: &[Row]) -> Markup {
    // A little room behind the last tick, whose text is wider than the margin.
    let (end, mut ticks) = axis::percents(100.0);
    let end = end / 0.98;
    ticks.iter_mut().for_each(|tick| tick.at *= 0.98);
    let one = |nth: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(nth));
        let point = |cell: &Cell| Some((percent(cell.stats.utilisation()) / end, percent(cell.stats.fast_success()?)));
        let mut points: Vec<(f64, f64)> = cells.filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve { class: series(nth), points }
    };
    let all: Vec<Curve> = (0..head.names.len()).map(one).collect();
    curves("Fast success rate against utilisation", &all, (&ticks, "busy, of all CPUs"), "fast success", true)
}

/// One of the counts over time.
type Over = (&'static str, fn(&Bin) -> u64);
const OVER: [Over; 4] = [
    ("searches", |bin| bin.search),
    ("of them in the LLC", |bin| bin.domain_search),
    ("CPUs looked at", |bin| bin.scanned),
    ("requests done", |bin| bin.done),
];

fn times(head: &Head, rows: &[Row]) -> Markup {
    let drawn = |stats: &Stats, of: fn(&Bin) -> u64| stats.series.iter().map(of).collect();
    let one = |row: &Row| {
        let width_ns = row.cells.first().map_or(0, |cell| cell.stats.measured_ns / BINS as u64).max(1);
        let seeds = row.cells.first().map_or(1, |cell| cell.throughput.len().max(1)) as u64;
        let panels: Vec<Panel> = OVER
            .iter()
            .filter(|(_, of)| row.cells.iter().any(|cell| cell.stats.series.iter().any(|bin| of(bin) > 0)))
            .map(|&(name, of)| Panel {
                name: name.to_owned(),
                series: row
                    .cells
                    .iter()
                    .enumerate()
                    .map(|(at, cell)| Series { class: series(at), values: drawn(&cell.stats, of) })
                    .collect(),
            })
            .collect();
        let title = format!("Over time, load {}", row.label);
        let picture = over_time(&title, &panels, 0, width_ns / seeds, "per bin");
        let told = format!("{BINS} bins of the measured time, all seeds together.");
        html! { @if !panels.is_empty() { (figure(&format!("Load {}", row.label), &told, &picture, head)) } }
    };
    html! {
        section id="time" {
            h2 { "Over time" }
            @for (at, row) in rows.iter().enumerate() {
                @if at < OVER_TIME_MAX || at + 1 == rows.len() { (one(row)) }
            }
            @if rows.len() > OVER_TIME_MAX + 1 {
                p.note { "Of " (rows.len()) " loads the first " (OVER_TIME_MAX) " and the last are drawn; --format json has all." }
            }
        }
    }
}
