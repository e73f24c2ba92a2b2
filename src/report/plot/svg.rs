// SPDX-License-Identifier: GPL-2.0-or-later
//! What all pictures have in common: coordinates, the frame with its axes, the legend.

use maud::{Markup, html};

/// Width of a picture in its own units; a page scales it.
pub const WIDTH: f64 = 880.0;
/// Room for the numbers of the y axis and its title.
pub const LEFT: f64 = 74.0;
/// Room behind the plot.
pub const RIGHT: f64 = 14.0;
/// Room for the numbers of the x axis and its title.
pub const BOTTOM: f64 = 44.0;

/// A coordinate with at most one decimal.
pub fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").map_or(text.clone(), str::to_owned);
    if text == "-0" { "0".to_owned() } else { text }
}

/// The rectangle in which values are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Frame {
    /// Of the usual width, with its upper edge at `y`.
    pub fn at(y: f64, h: f64) -> Self {
        Self { x: LEFT, y, w: WIDTH - LEFT - RIGHT, h }
    }

    /// Its lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.h
    }
}

/// One tick: where it is, as a share of the axis, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// 0 to 1.
    pub at: f64,
    /// Its text.
    pub label: String,
}

/// A picture of height `h`; `title` is what a screen reader says.
pub fn picture(h: f64, title: &str, content: &Markup) -> Markup {
    html! {
        svg viewBox={ "0 0 " (n(WIDTH)) " " (n(h)) } role="img" aria-label=(title) { (content) }
    }
}

/// Grid lines, numbers and the title of an x axis.
pub fn x_axis(frame: &Frame, ticks: &[Tick], title: &str) -> Markup {
    let bottom = frame.bottom();
    html! {
        g.axis {
            @for tick in ticks {
                @let x = n(frame.x + tick.at * frame.w);
                path d={ "M" (x) " " (n(frame.y)) "V" (n(bottom + 4.0)) } {}
                text x=(x) y=(n(bottom + 17.0)) text-anchor="middle" { (tick.label) }
            }
            path.base d={ "M" (n(frame.x)) " " (n(bottom)) "h" (n(frame.w)) } {}
            text.unit x=(n(frame.x + frame.w / 2.0)) y=(n(bottom + 35.0)) text-anchor="middle" { (title) }
        }
    }
}

/// Grid lines, numbers and the title of a y axis.
pub fn y_axis(frame: &Frame, ticks: &[Tick], title: &str) -> Markup {
    let middle = n(frame.y + frame.h / 2.0);
    html! {
        g.axis {
            @for tick in ticks {
                @let y = frame.bottom() - tick.at * frame.h;
                path d={ "M" (n(frame.x - 4.0)) " " (n(y)) "H" (n(frame.x + frame.w)) } {}
                text x=(n(frame.x - 8.0)) y=(n(y + 4.0)) text-anchor="end" { (tick.label) }
            }
            text.unit transform={ "translate(14 " (middle) ") rotate(-90)" } text-anchor="middle" { (title) }
        }
    }
}

/// A heading inside of a picture.
pub fn heading(x: f64, y: f64, text: &str) -> Markup {
    html! { text.head x=(n(x)) y=(n(y)) { (text) } }
}

/// Names of series with their colours, below a picture: as text of the page, so that it wraps on a phone.
pub fn legend(names: &[(String, String)]) -> Markup {
    html! {
        ul.legend {
            @for (class, name) in names { li { span.key.(class) {} (name) } }
        }
    }
}

/// The class that gives series number `at` its colour.
pub fn series(at: usize) -> String {
    format!("s{}", at % 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([n(3.0), n(3.04), n(3.25), n(-0.01), n(1234.56)], ["3", "3", "3.2", "0", "1234.6"]);
    }

    #[test]
    fn text_is_escaped() {
        let frame = Frame::at(0.0, 10.0);
        let ticks = [Tick { at: 0.5, label: "<b>".to_owned() }];
        let text = picture(10.0, "\"><script>", &x_axis(&frame, &ticks, "a & b")).into_string();
        assert!(text.contains("&lt;b&gt;") && text.contains("a &amp; b") && !text.contains("<script"), "{text}");
    }
}
