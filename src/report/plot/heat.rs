// SPDX-License-Identifier: GPL-2.0-or-later
//! Heat maps: rows of cells in groups, a colour for each class of counts, runs of one colour drawn as one line.

use maud::{Markup, html};

use crate::report::layout::count;
use crate::report::plot::axis;
use crate::report::plot::svg::{BOTTOM, Frame, LEFT, RIGHT, WIDTH, heading, n, picture, x_axis, y_axis};

/// Colours of counts.
const LEVELS: usize = 7;
/// Colours of differences, on each side.
const SIDES: usize = 4;
/// Room above a map for its name.
const HEAD: f64 = 32.0;

/// Rows that belong together, such as the CPUs of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its rows by number.
    pub rows: Vec<usize>,
}

/// One map.
#[derive(Debug, Clone)]
pub struct Map {
    /// Its name.
    pub name: String,
    /// By row, then by column.
    pub cells: Vec<Vec<i64>>,
    /// Whether cells are differences.
    pub signed: bool,
}

/// The lowest values of the classes of counts up to `max`, ascending: about evenly spaced logarithms.
pub fn levels(max: u64, classes: usize) -> Vec<u64> {
    let mut levels = Vec::new();
    for at in 0..classes {
        let value = (max.max(1) as f64).powf(at as f64 / classes as f64).round() as u64;
        let next = levels.last().map_or(1, |last| last + 1);
        if value.max(next) <= max.max(1) {
            levels.push(value.max(next));
        }
    }
    levels
}

fn class(levels: &[u64], value: u64) -> usize {
    levels.partition_point(|&low| low <= value)
}

/// What is to be drawn.
#[derive(Debug, Clone)]
pub struct Maps<'a> {
    /// The maps, above each other.
    pub maps: &'a [Map],
    /// Their rows.
    pub groups: &'a [Group],
    /// When the first column begins, ns.
    pub from_ns: u64,
    /// How long a column is, ns.
    pub width_ns: u64,
}

/// The maps with one time axis, and their legend; counts have one scale for all maps, differences another.
pub fn draw(title: &str, what: &Maps<'_>) -> Markup {
    let rows: usize = what.groups.iter().map(|group| group.rows.len()).sum();
    let columns = what.maps.iter().flat_map(|map| &map.cells).map(Vec::len).max().unwrap_or(0).max(1);
    let cell_h = (230.0 / rows.max(1) as f64).clamp(0.7, 15.0);
    // Groups are apart by some whole rows, so that coordinates stay whole numbers.
    let gap = (4.0 / cell_h).ceil().max(1.0) as usize;
    let all_rows = rows + gap * what.groups.len().saturating_sub(1);
    let plot_h = all_rows as f64 * cell_h;
    let largest = |signed: bool| {
        let maps = what.maps.iter().filter(move |map| map.signed == signed);
        maps.flat_map(|map| map.cells.iter().flatten()).map(|cell| cell.unsigned_abs()).max().unwrap_or(0)
    };
    let counts = levels(largest(false), LEVELS);
    let sides = levels(largest(true), SIDES);
    let end_ns = what.from_ns.saturating_add(what.width_ns.saturating_mul(columns as u64));
    let x_ticks = axis::seconds(what.from_ns, end_ns);
    let cell_w = (WIDTH - LEFT - RIGHT) / columns as f64;
    let content = html! {
        @for (at, map) in what.maps.iter().enumerate() {
            @let frame = Frame::at(HEAD + at as f64 * (HEAD + plot_h), plot_h);
            (heading(frame.x, frame.y - 9.0, &map.name))
            @if at + 1 == what.maps.len() { (x_axis(&frame, &x_ticks, "time, s of the trace's clock")) }
            (y_axis(&frame, &[], "CPU"))
            (group_names(&frame, what.groups, cell_h, gap))
            g.heat transform={ "translate(" (n(frame.x)) " " (n(frame.y)) ") scale(" (format!("{cell_w:.4} {cell_h:.4}")) ")" } {
                @for (y, height) in grounds(what.groups, gap) { rect.ground y=(y) width=(columns) height=(height) {} }
                @for (class, d) in paths(map, what.groups, gap, if map.signed { &sides } else { &counts }) {
                    path.(class) d=(d) {}
                }
            }
        }
    };
    let height = (HEAD + plot_h) * what.maps.len() as f64 + BOTTOM;
    let has = |signed: bool| what.maps.iter().any(|map| map.signed == signed);
    html! {
        (picture(height, title, &content))
        @if has(false) { (scale("placements in a cell", &counts, |at| format!("q{}", spread(at, counts.len(), LEVELS)))) }
        @if has(true) {
            (scale("fewer with the patch", &sides, |at| format!("m{}", spread(at, sides.len(), SIDES))))
            (scale("more with the patch", &sides, |at| format!("p{}", spread(at, sides.len(), SIDES))))
        }
    }
}

/// Class `at` of `classes`, spread over `colours` so that the last one has the strongest colour.
fn spread(at: usize, classes: usize, colours: usize) -> usize {
    (at * colours).div_ceil(classes.max(1)).clamp(1, colours)
}

/// Row and height of what lies behind each group.
fn grounds(groups: &[Group], gap: usize) -> Vec<(usize, usize)> {
    let mut y = 0;
    let each = |group: &Group| {
        let own = (y, group.rows.len());
        y += group.rows.len() + gap;
        own
    };
    groups.iter().map(each).collect()
}

fn group_names(frame: &Frame, groups: &[Group], cell_h: f64, gap: usize) -> Markup {
    let mut row = 0;
    let mut last = f64::MIN;
    let mut texts = Vec::new();
    for group in groups {
        // Where there is room, each row has its own name.
        if cell_h >= 12.0 {
            let middle = |at: usize| frame.y + ((row + at) as f64 + 0.5) * cell_h;
            texts.extend(group.rows.iter().enumerate().map(|(at, cpu)| (middle(at) + 4.0, cpu.to_string())));
            row += group.rows.len() + gap;
            continue;
        }
        let middle = frame.y + (row as f64 + group.rows.len() as f64 / 2.0) * cell_h;
        // Names that would overlap are left out.
        if middle - last >= 12.0 {
            texts.push((middle + 4.0, group.name.clone()));
            last = middle;
        }
        row += group.rows.len() + gap;
    }
    html! {
        g.axis { @for (y, name) in texts { text x=(n(frame.x - 8.0)) y=(n(y)) text-anchor="end" { (name) } } }
    }
}

/// For each colour the lines to draw.
fn paths(map: &Map, groups: &[Group], gap: usize, levels: &[u64]) -> Vec<(String, String)> {
    let colours = if map.signed { SIDES } else { LEVELS };
    let mut paths: Vec<(String, String)> = Vec::new();
    let mut into = |class: String, text: &str| match paths.iter_mut().find(|(own, _)| *own == class) {
        Some((_, d)) => *d += text,
        None => paths.push((class, text.to_owned())),
    };
    let name = |cell: i64| {
        let class = class(levels, cell.unsigned_abs());
        let side = if !map.signed {
            'q'
        } else if cell < 0 {
            'm'
        } else {
            'p'
        };
        (class > 0).then(|| format!("{side}{}", spread(class, levels.len(), colours)))
    };
    let mut y = 0;
    for group in groups {
        for row in &group.rows {
            let cells = map.cells.get(*row).map(Vec::as_slice).unwrap_or_default();
            let mut at = 0;
            while at < cells.len() {
                let own = name(cells[at]);
                let run = cells[at..].iter().take_while(|&&cell| name(cell) == own).count();
                if let Some(own) = own {
                    into(own, &format!("M{at} {y}h{run}"));
                }
                at += run;
            }
            y += 1;
        }
        y += gap;
    }
    paths.sort();
    paths
}

fn scale(title: &str, levels: &[u64], class: impl Fn(usize) -> String) -> Markup {
    let range = |at: usize| match levels.get(at + 1) {
        Some(&next) if next == levels[at] + 1 => count(levels[at]),
        Some(&next) => format!("{}–{}", count(levels[at]), count(next - 1)),
        None => format!("{} and more", count(levels[at])),
    };
    html! {
        ul.legend {
            li { (title) ":" }
            @for at in 0..levels.len() { li { span.key.(class(at + 1)) {} (range(at)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_counts_ascend_and_begin_with_one() {
        assert_eq!(levels(0, 7), [1]);
        assert_eq!(levels(3, 7), [1, 2, 3]);
        assert_eq!(levels(7, 7), [1, 2, 3, 4, 5, 6, 7]);
        let many = levels(1000, 7);
        assert_eq!((many.len(), many[0]), (7, 1));
        assert!(many.is_sorted_by(|a, b| a < b), "{many:?}");
        assert_eq!([0, 1, 1000].map(|value| class(&many, value)), [0, 1, 7]);
    }

    #[test]
    fn runs_of_a_colour_are_one_line() {
        let map = Map { name: String::new(), cells: vec![vec![0, 5, 5, 1], vec![1, 1, 1, 1]], signed: false };
        let groups = [Group { name: "a".to_owned(), rows: vec![1] }, Group { name: "b".to_owned(), rows: vec![0] }];
        let paths = paths(&map, &groups, 2, &levels(5, 7));
        let all: String = paths.iter().map(|(class, d)| format!("{class}:{d} ")).collect();
        assert_eq!(all, "q2:M0 0h4M3 3h1 q7:M1 3h2 ");
    }

    #[test]
    fn differences_have_two_sides() {
        let map = Map { name: String::new(), cells: vec![vec![-2, 0, 2]], signed: true };
        let groups = [Group { name: String::new(), rows: vec![0] }];
        let classes: Vec<String> = paths(&map, &groups, 1, &levels(2, 4)).into_iter().map(|(class, _)| class).collect();
        assert_eq!(classes, ["m4", "p4"]);
    }
}
