// SPDX-License-Identifier: GPL-2.0-or-later
//! Curves: measured points, joined by lines.

use maud::{Markup, html};

use crate::report::plot::axis;
use crate::report::plot::svg::{BOTTOM, Frame, Tick, n, picture, x_axis, y_axis};

/// Height of the plot.
const HEIGHT: f64 = 240.0;
/// Room above it.
const TOP: f64 = 14.0;
/// Most labels of an axis of loads.
const LABELS_MAX: usize = 24;

/// One series of points.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The class of its colour.
    pub class: String,
    /// x as a share of the axis, y as a value.
    pub points: Vec<(f64, f64)>,
}

/// An axis of loads that are evenly spaced, and where each stands on it.
pub fn loads(labels: &[String]) -> (Vec<Tick>, Vec<f64>) {
    let step = 1.0 / labels.len().max(1) as f64;
    let at: Vec<f64> = (0..labels.len()).map(|nth| (nth as f64 + 0.5) * step).collect();
    let every = labels.len().div_ceil(LABELS_MAX).max(1);
    let ticks = labels.iter().zip(&at).step_by(every);
    (ticks.map(|(label, &at)| Tick { at, label: label.clone() }).collect(), at)
}

/// Curves over `x_ticks`; values are percents, or whole numbers.
pub fn curves(title: &str, curves: &[Curve], x: (&[Tick], &str), y_title: &str, is_percent: bool) -> Markup {
    let max = curves.iter().flat_map(|curve| &curve.points).map(|&(_, y)| y).fold(0.0, f64::max);
    // Numbers of more than six digits leave no room for the title of their axis.
    let by = if !is_percent && max >= 1e6 { 1000.0 } else { 1.0 };
    let (end, y_ticks) = if is_percent { axis::percents(max) } else { axis::counts((max / by).ceil() as u64) };
    let y_title = if by > 1.0 { format!("thousand {y_title}") } else { y_title.to_owned() };
    let frame = Frame::at(TOP, HEIGHT);
    let place = |&(x, y): &(f64, f64)| (frame.x + x * frame.w, frame.bottom() - y / by / end * frame.h);
    let content = html! {
        (x_axis(&frame, x.0, x.1))
        (y_axis(&frame, &y_ticks, &y_title))
        @for curve in curves {
            path.outline.(curve.class) d=(line(curve.points.iter().map(place))) {}
            @for (x, y) in curve.points.iter().map(place) {
                path.fill.(curve.class) d={ "M" (n(x - 3.0)) " " (n(y - 3.0)) "h6v6h-6z" } {}
            }
        }
    };
    picture(TOP + HEIGHT + BOTTOM, title, &content)
}

fn line(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (at, (x, y)) in points.enumerate() {
        d += &format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, n(x), n(y));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_where_they_should() {
        let (ticks, at) = loads(&["1".to_owned(), "<2>".to_owned()]);
        assert_eq!(at, [0.25, 0.75]);
        let curve = Curve { class: "s1".to_owned(), points: vec![(0.0, 0.0), (1.0, 100.0)] };
        let text = curves("t", &[curve], (&ticks, "clients"), "share", true).into_string();
        // From the lower left to the upper right corner.
        assert!(text.contains("d=\"M74 254L866 14\"") && text.contains("&lt;2&gt;"), "{text}");
    }
}
