// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables: text left, numbers right, rows that are part of the one above indented.

use maud::{Markup, html};

/// A cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What it shows.
    pub content: Markup,
    /// A number: aligned right.
    pub is_number: bool,
    /// What it is sorted by, where that is not its text.
    pub key: Option<String>,
    /// A bar behind the number, percent of the cell.
    pub bar: Option<f64>,
}

impl Cell {
    /// Text.
    pub fn text(text: &str) -> Self {
        Self { content: html! { (text) }, ..Self::default() }
    }

    /// A number.
    pub fn number(text: &str) -> Self {
        Self { is_number: true, ..Self::text(text) }
    }

    /// A number with what it is sorted by.
    pub fn keyed(text: &str, key: u64) -> Self {
        Self { key: Some(key.to_string()), ..Self::number(text) }
    }

    /// Anything.
    pub fn of(content: Markup) -> Self {
        Self { content, ..Self::default() }
    }

    /// With a bar of `part` of `whole`.
    pub fn with_bar(self, part: u64, whole: u64) -> Self {
        Self { bar: (whole > 0).then(|| 100.0 * part as f64 / whole as f64), ..self }
    }
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its id; with one it can be filtered.
    pub id: String,
    /// What it shows, for screen readers and above it.
    pub caption: String,
    /// Whether a heading above says what it shows, so that the caption is for screen readers alone.
    pub is_named: bool,
    /// Names of columns; whether they are of numbers.
    pub head: Vec<(String, bool)>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
    /// Whether readers may sort it.
    pub sortable: bool,
}

impl Table {
    /// From rows of text as the text report has them: the first is the head, the first column text, the others numbers;
    /// a row that begins with spaces is part of the one above.
    pub fn of_text(caption: &str, rows: &[Vec<String>]) -> Self {
        let Some((head, rows)) = rows.split_first() else { return Self::default() };
        let cell = |(at, text): (usize, &String)| if at == 0 { Cell::text(text) } else { Cell::number(text) };
        Self {
            caption: caption.to_owned(),
            head: head.iter().enumerate().map(|(at, name)| (name.clone(), at > 0)).collect(),
            rows: rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect(),
            ..Self::default()
        }
    }

    /// The table in a box that scrolls sideways where the page is too narrow.
    pub fn draw(&self) -> Markup {
        if self.rows.is_empty() {
            return html! {};
        }
        let class = |holds: bool, name: &'static str| holds.then_some(name);
        html! {
            @if !self.id.is_empty() { (filter(&self.id, &self.caption)) }
            div.wide tabindex="0" role="region" aria-label=(self.caption) {
                table class=[class(self.sortable, "sortable")] id=[(!self.id.is_empty()).then_some(&self.id)] {
                    caption class=[class(self.is_named, "unseen")] { (self.caption) }
                    @if !self.head.is_empty() {
                        thead {
                            tr {
                                @for (name, is_number) in &self.head {
                                    th class=[class(*is_number, "num")] scope="col" { (name) }
                                }
                            }
                        }
                    }
                    tbody { @for row in &self.rows { (self::row(row)) } }
                }
            }
        }
    }
}

/// The field that filters the rows of `id`; a script shows it.
pub fn filter(id: &str, what: &str) -> Markup {
    html! {
        p.filter hidden data-for=(id) {
            label { "Filter " input type="search" aria-label={ "Filter: " (what) } autocomplete="off" spellcheck="false"; }
            " " output aria-live="polite" {}
        }
    }
}

fn row(cells: &[Cell]) -> Markup {
    let is_part = cells.first().is_some_and(|cell| cell.content.0.starts_with("  "));
    let class = |cell: &Cell| match (cell.is_number, cell.bar) {
        (_, Some(_)) => Some("num bar"),
        (true, None) => Some("num"),
        (false, None) => None,
    };
    html! {
        tr class=[is_part.then_some("sub")] {
            @for (at, cell) in cells.iter().enumerate() {
                @if at == 0 && !cell.is_number { th scope="row" { (cell.content) } }
                @else {
                    td class=[class(cell)] data-v=[cell.key.as_ref()]
                        style=[cell.bar.map(|bar| format!("--p:{bar:.1}%"))] { (cell.content) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_and_parts_are_marked() {
        let rows = [["", "n"], ["<a>", "1"], ["  of it", "2"]].map(|row| row.map(str::to_owned).to_vec());
        let text = Table::of_text("a & b", &rows).draw().into_string();
        assert!(text.contains("<caption>a &amp; b</caption>") && text.contains("&lt;a&gt;"), "{text}");
        assert!(text.contains("<tr class=\"sub\"><th scope=\"row\">  of it</th><td class=\"num\">2</td>"), "{text}");
    }
}
