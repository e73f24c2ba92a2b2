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
    // A word that is longer than its column, such as a path, stays whole: the table would break it.
    let whole = whole_words(indent, align, rows);
    let rows = whole.as_deref().unwrap_or(rows);
    let wraps = align.contains(&Align::Wrap) && whole.is_none();
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

/// The rows with the cells of the column that wraps already wrapped, at spaces only; `None`: no word is too long for it.
fn whole_words(indent: usize, align: &[Align], rows: &[Vec<String>]) -> Option<Vec<Vec<String>>> {
    let wrapping = align.iter().position(|&align| align == Align::Wrap)?;
    let chars = |text: &str| text.chars().count();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| chars(cell)).max().unwrap_or(0);
    let others: usize = (0..align.len()).filter(|&at| at != wrapping).map(|at| widest(at) + 2).sum();
    let width = WIDTH.saturating_sub(indent + others).max(20);
    let is_long = |cell: &String| cell.split_whitespace().any(|word| chars(word) > width);
    if !rows.iter().filter_map(|row| row.get(wrapping)).any(is_long) {
        return None;
    }
    let wrapped = |cell: &str| {
        let mut lines = vec![String::new()];
        for word in cell.split_whitespace() {
            let line = lines.last_mut().expect("one line at least");
            if line.is_empty() {
                line.push_str(word);
            } else if chars(line) + 1 + chars(word) <= width {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.join("\n")
    };
    let row = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        cells.map(|(at, cell)| if at == wrapping { wrapped(cell) } else { cell.clone() }).collect()
    };
    Some(rows.iter().map(row).collect())
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
    fn a_long_path_stays_whole() {
        let path = format!("tree:/{}", "very/long/".repeat(12));
        let rows =
            [vec!["patched".to_owned(), format!("{path} beside some words that are more than a line has room for")]];
        let text = columns(2, &[Align::Left, Align::Wrap], &rows);
        assert!(text.lines().next().is_some_and(|line| line.ends_with(&path)), "{text}");
        assert!(text.lines().skip(1).all(|line| line.len() <= WIDTH) && text.lines().count() == 2, "{text}");
    }

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
