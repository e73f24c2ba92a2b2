// SPDX-License-Identifier: GPL-2.0-or-later
//! Bars in classes, one panel above the other, so that distributions can be compared.

use maud::{Markup, html};

use crate::report::plot::axis;
use crate::report::plot::svg::{BOTTOM, Frame, Tick, heading, n, picture, x_axis, y_axis};

/// Height of a panel's plot.
const PANEL: f64 = 84.0;
/// Room above it for its name.
const HEAD: f64 = 32.0;

/// One distribution.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its name.
    pub name: String,
    /// The class of its colour.
    pub class: String,
    /// The share of each class of values, percent.
    pub shares: Vec<f64>,
    /// What stands beside the name: mean, quantiles.
    pub figures: String,
}

/// The panels with one x axis; the outline of the first one is drawn into each other one. `classes` are the names of the
/// classes of values.
pub fn panels(title: &str, panels: &[Panel], classes: &[String], x_title: &str, y_title: &str) -> Markup {
    let max = panels.iter().flat_map(|panel| &panel.shares).fold(0.0, |a: f64, &b| a.max(b));
    let (end, y_ticks) = axis::percents(max);
    let every = (classes.len() / 24 + 1).max(1);
    let step = 1.0 / classes.len().max(1) as f64;
    let labels = classes.iter().enumerate().filter(|(at, _)| at % every == 0);
    let x_ticks: Vec<Tick> =
        labels.map(|(at, label)| Tick { at: (at as f64 + 0.5) * step, label: label.clone() }).collect();
    let height = (HEAD + PANEL) * panels.len() as f64 + BOTTOM;
    let content = html! {
        @for (at, panel) in panels.iter().enumerate() {
            @let frame = Frame::at(HEAD + at as f64 * (HEAD + PANEL), PANEL);
            (heading(frame.x, frame.y - 9.0, &panel.name))
            text.note x=(n(frame.x + frame.w)) y=(n(frame.y - 9.0)) text-anchor="end" { (panel.figures) }
            @if at + 1 == panels.len() { (x_axis(&frame, &x_ticks, x_title)) }
            @else { path.base d={ "M" (n(frame.x)) " " (n(frame.bottom())) "h" (n(frame.w)) } {} }
            // The numbers of every second line are enough where panels are low.
            (y_axis(&frame, &thinned(&y_ticks), if at == 0 { y_title } else { "" }))
            path.fill.(panel.class) d=(filled(&frame, &panel.shares, end)) {}
            @if let Some(first) = panels.first().filter(|_| at > 0) {
                path.outline.(first.class) d=(outline(&frame, &first.shares, end)) {}
            }
        }
    };
    picture(height, title, &content)
}

fn thinned(ticks: &[Tick]) -> Vec<Tick> {
    let every = ticks.len().div_ceil(4).max(1);
    ticks.iter().step_by(every).cloned().collect()
}

fn filled(frame: &Frame, shares: &[f64], end: f64) -> String {
    let step = frame.w / shares.len().max(1) as f64;
    let gap = (step * 0.12).min(4.0);
    let mut d = String::new();
    for (at, share) in shares.iter().enumerate().filter(|&(_, &share)| share > 0.0) {
        // What is there shall be seen.
        let h = (share / end * frame.h).max(1.0);
        let x = frame.x + at as f64 * step + gap;
        d += &format!("M{} {}h{}v{}h{}z", n(x), n(frame.bottom()), n(step - 2.0 * gap), n(-h), n(2.0 * gap - step));
    }
    d
}

fn outline(frame: &Frame, shares: &[f64], end: f64) -> String {
    let step = frame.w / shares.len().max(1) as f64;
    let mut d = format!("M{} {}", n(frame.x), n(frame.bottom()));
    for (at, share) in shares.iter().enumerate() {
        let y = frame.bottom() - share / end * frame.h;
        d += &format!("V{}H{}", n(y), n(frame.x + (at + 1) as f64 * step));
    }
    d + &format!("V{}", n(frame.bottom()))
}
