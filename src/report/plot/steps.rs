// SPDX-License-Identifier: GPL-2.0-or-later
//! Steps: counts over time, and densities of durations on a logarithmic axis.

use maud::{Markup, html};

use crate::histogram::Histogram;
use crate::report::plot::axis;
use crate::report::plot::svg::{BOTTOM, Frame, Tick, heading, n, picture, x_axis, y_axis};

/// Height of a panel's plot.
const PANEL: f64 = 104.0;
/// Room above it for its name.
const HEAD: f64 = 32.0;

/// One series.
#[derive(Debug, Clone)]
pub struct Series {
    /// The class of its colour.
    pub class: String,
    /// Its values, evenly spaced.
    pub values: Vec<u64>,
}

/// A part of a picture with a y axis of its own.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// What is drawn in it, the first one below the others.
    pub series: Vec<Series>,
}

/// Counts over time, panels above each other; values are of `width_ns` each, from `from_ns` on.
pub fn over_time(title: &str, panels: &[Panel], from_ns: u64, width_ns: u64, y_title: &str) -> Markup {
    let longest = panels.iter().flat_map(|panel| &panel.series).map(|series| series.values.len()).max().unwrap_or(0);
    let x_ticks = axis::seconds(from_ns, from_ns.saturating_add(width_ns.saturating_mul(longest as u64)));
    let content = html! {
        @for (at, panel) in panels.iter().enumerate() {
            @let frame = Frame::at(HEAD + at as f64 * (HEAD + PANEL), PANEL);
            @let max = panel.series.iter().flat_map(|series| &series.values).max().copied().unwrap_or(0);
            @let (end, y_ticks) = axis::counts(max);
            (heading(frame.x, frame.y - 9.0, &panel.name))
            @if at + 1 == panels.len() { (x_axis(&frame, &x_ticks, "time, s of the trace's clock")) }
            @else { path.base d={ "M" (n(frame.x)) " " (n(frame.bottom())) "h" (n(frame.w)) } {} }
            (y_axis(&frame, &y_ticks, y_title))
            @for (number, series) in panel.series.iter().enumerate() {
                @let values: Vec<f64> = series.values.iter().map(|&value| value as f64 / end).collect();
                @let d = steps(&frame, longest, &values);
                @if number == 0 { path.fill.(series.class) d={ (d) "z" } {} }
                @else { path.outline.(series.class) d=(d) {} }
            }
        }
    };
    picture((HEAD + PANEL) * panels.len() as f64 + BOTTOM, title, &content)
}

/// Values of 0 to 1 as steps from the base line and back to it.
fn steps(frame: &Frame, all: usize, values: &[f64]) -> String {
    let step = frame.w / all.max(1) as f64;
    let mut d = format!("M{} {}", n(frame.x), n(frame.bottom()));
    let mut last = 0.0;
    for (at, &value) in values.iter().enumerate() {
        if value != last {
            d += &format!("H{}V{}", n(frame.x + at as f64 * step), n(frame.bottom() - value * frame.h));
            last = value;
        }
    }
    d + &format!("H{}V{}", n(frame.x + values.len() as f64 * step), n(frame.bottom()))
}

/// Densities of durations: each histogram with its class, in one panel; shares are for a bar of the usual width.
pub fn durations(title: &str, histograms: &[(String, &Histogram)]) -> Markup {
    let lowest = |histogram: &Histogram| histogram.quantile(0.001);
    let from = histograms.iter().filter_map(|(_, histogram)| lowest(histogram)).min().unwrap_or(1).max(1);
    let to = histograms.iter().map(|(_, histogram)| histogram.max()).max().unwrap_or(1);
    let fine = fine(from, to);
    let edges = edges(from, to, fine);
    let (Some(&first), Some(&last)) = (edges.first(), edges.last()) else { return html! {} };
    let ln = |ns: u64| (ns as f64).ln();
    let (start, span) = (ln(first), ln(last) - ln(first));
    let densities: Vec<Vec<f64>> = histograms.iter().map(|(_, histogram)| density(histogram, &edges, fine)).collect();
    let max = densities.iter().flatten().fold(0.0, |a: f64, &b| a.max(b));
    let (end, y_ticks) = axis::percents(max);
    let frame = Frame::at(14.0, 168.0);
    let y_title = format!("% per 1/{fine} doubling");
    let x = |ns: u64| n(frame.x + (ln(ns) - start) / span * frame.w);
    let x_ticks: Vec<Tick> = axis::log_durations(first, last);
    let d = |values: &[f64]| {
        let mut d = format!("M{} {}", n(frame.x), n(frame.bottom()));
        for (value, edge) in values.iter().zip(&edges[1..]) {
            d += &format!("V{}H{}", n(frame.bottom() - value / end * frame.h), x(*edge));
        }
        d + &format!("V{}", n(frame.bottom()))
    };
    let content = html! {
        (x_axis(&frame, &x_ticks, "duration, logarithmic"))
        (y_axis(&frame, &y_ticks, &y_title))
        @for (at, ((class, _), values)) in histograms.iter().zip(&densities).enumerate() {
            @if at == 0 && histograms.len() < 3 { path.fill.(class) d={ (d(values)) "z" } {} }
            @else { path.outline.(class) d=(d(values)) {} }
        }
    };
    picture(14.0 + 168.0 + BOTTOM, title, &content)
}

/// Bars of a doubling: 4 where many doublings are to be drawn, more where there are few; 32 is what a histogram has.
fn fine(from: u64, to: u64) -> u64 {
    let doublings = (to.max(2) as f64 / from.max(1) as f64).log2();
    [4, 8, 16, 32].into_iter().find(|&fine| doublings * fine as f64 >= 32.0).unwrap_or(32)
}

/// Parts of doublings around everything from `from` to `to`, ns; no bucket of a histogram is cut by them.
fn edges(from: u64, to: u64, fine: u64) -> Vec<u64> {
    let (low, high) = (from.max(fine).ilog2(), to.max(fine).ilog2());
    let doubling = |power: u32| (fine..2 * fine).map(move |part| ((1_u64 << power.min(58)) / fine) * part);
    let all: Vec<u64> = (low..=high + 1).flat_map(doubling).collect();
    let first = all.partition_point(|&edge| edge <= from).saturating_sub(1);
    let last = all.partition_point(|&edge| edge <= to);
    all[first..(last + 1).min(all.len())].to_vec()
}

/// Percent of all values for each part of a doubling, between the edges.
fn density(histogram: &Histogram, edges: &[u64], fine: u64) -> Vec<f64> {
    let mut counts = vec![0; edges.len().saturating_sub(1)];
    for (value, count) in histogram.buckets() {
        let at = edges.partition_point(|&edge| edge <= value).saturating_sub(1);
        if let Some(into) = counts.get_mut(at) {
            *into += count;
        }
    }
    let all = histogram.n().max(1) as f64;
    let widths = edges.windows(2).map(|pair| (pair[1] as f64 / pair[0] as f64).log2() * fine as f64);
    counts.into_iter().zip(widths).map(|(count, width): (u64, f64)| 100.0 * count as f64 / all / width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_enclose_all_values_and_densities_are_of_all() {
        let mut histogram = Histogram::default();
        (0..1000_u64).for_each(|value| histogram.add(900 + value * value));
        for fine in [4, 8, 16, 32] {
            let edges = edges(900, histogram.max(), fine);
            assert!(edges[0] <= 900 && edges[1] > 900 && *edges.last().expect("edges") > histogram.max(), "{edges:?}");
            assert!(edges.is_sorted_by(|a, b| a < b), "{edges:?}");
            let density = density(&histogram, &edges, fine);
            let widths = edges.windows(2).map(|pair| (pair[1] as f64 / pair[0] as f64).log2() * fine as f64);
            let all: f64 = density.iter().zip(widths).map(|(density, width)| density * width).sum();
            assert!((all - 100.0).abs() < 1e-9, "{all}");
        }
        assert_eq!([fine(1_000, 1_000_000), fine(1_000, 2_000), fine(1_000, 8_000)], [4, 32, 16]);
    }

    #[test]
    fn steps_begin_and_end_on_the_base_line() {
        let frame = Frame { x: 0.0, y: 0.0, w: 40.0, h: 10.0 };
        assert_eq!(steps(&frame, 4, &[0.0, 1.0, 1.0, 0.5]), "M0 10H10V0H30V5H40V10");
    }
}
