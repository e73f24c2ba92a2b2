// SPDX-License-Identifier: GPL-2.0-or-later
//! Columns, numbers and colours of the text reports. Colours are always written; who prints strips them where no
//! terminal shows them.

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

/// Headings of sections.
pub const HEADING: Style = Style::new().bold();
/// What deserves a second look.
pub const NOTABLE: Style = AnsiColor::Yellow.on_default();
/// What is wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is less important.
pub const FAINT: Style = Style::new().dimmed();

/// `text` in `style`.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The heading of a section, with an empty line before it.
pub fn section(title: &str) -> String {
    format!("\n{}\n", paint(HEADING, title))
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
    /// Text that wraps at the report's width.
    Wrap,
}

/// Width of a report, columns.
pub const WIDTH: usize = 80;

/// Rows in aligned columns, indented by `indent`, two spaces between columns, no space at a line's end.
pub fn columns(indent: usize, align: &[Align], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let wraps = align.contains(&Align::Wrap);
    table.set_content_arrangement(if wraps { ContentArrangement::Dynamic } else { ContentArrangement::Disabled });
    table.set_width((WIDTH - indent) as u16);
    for row in rows {
        table.add_row(row);
    }
    let last = align.len().saturating_sub(1);
    for (at, &align) in align.iter().enumerate() {
        let widest = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        if let Some(column) = table.column_mut(at) {
            let gap = if at == last { 0 } else { 2 };
            column.set_padding((0, gap));
            match align {
                Align::Left => column.set_cell_alignment(CellAlignment::Left),
                Align::Right => column.set_cell_alignment(CellAlignment::Right),
                Align::Wrap => column.set_cell_alignment(CellAlignment::Left),
            };
            if wraps && align != Align::Wrap {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(widest as u16 + gap)));
            }
        }
    }
    indented(indent, &table.trim_fmt())
}

/// Each line behind `indent` spaces, with a newline at its end.
pub fn indented(indent: usize, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.lines() {
        let line = line.trim_end();
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out += line;
        }
        out.push('\n');
    }
    out
}

pub use crate::units::separated as count;

/// `part` of `whole` in percent: `12.3%`, with two decimals where one would hide a difference from 0 or 100; `-` of
/// nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let value = 100.0 * part as f64 / whole as f64;
    let near_end = (part > 0 && value < 1.0) || (part < whole && value > 99.0);
    match near_end {
        true => format!("{value:.2}%"),
        false => format!("{value:.1}%"),
    }
}

/// `one` or `many` after a count: `1 CPU`, `1,024 CPUs`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(112_173_512_543), "112,173,512,543");
    }

    #[test]
    fn percents_never_round_a_difference_away() {
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(0, 7), "0.0%");
        assert_eq!(percent(7, 7), "100.0%");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(1, 2000), "0.05%");
        assert_eq!(percent(1999, 2000), "99.95%");
    }

    #[test]
    fn columns_align_and_leave_no_space_behind() {
        let rows = vec![
            vec!["a".to_owned(), "1".to_owned(), "x".to_owned()],
            vec!["long name".to_owned(), "1,234".to_owned(), String::new()],
        ];
        let text = columns(2, &[Align::Left, Align::Right, Align::Left], &rows);
        assert_eq!(text, "  a              1  x\n  long name  1,234\n");
    }

    #[test]
    fn long_text_wraps_within_the_report() {
        let rows = vec![vec!["key".to_owned(), "word ".repeat(40)], vec!["longer key".to_owned(), "b".to_owned()]];
        let text = columns(2, &[Align::Left, Align::Wrap], &rows);
        assert!(text.lines().count() > 3, "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.lines().nth(1).expect("a second line").starts_with("              word"), "{text}");
    }
}
