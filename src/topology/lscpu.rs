// SPDX-License-Identifier: GPL-2.0-or-later
//! What lscpu prints, of any version and option, read into a [`Table`] with a row for each CPU or a [`Summary`] of
//! fields.
//!
//! | printed by | form |
//! |---|---|
//! | `lscpu -p[=COLUMNS]` | comments, the last of which names the columns, then a line of values for each CPU |
//! | `lscpu -e[=COLUMNS]` | a line of column names, then one for each CPU |
//! | `lscpu -e -J` | JSON, `"cpus"` with an object for each CPU; values are strings, numbers or null by version |
//! | `lscpu -J` | JSON, `"lscpu"` with fields and data, nested under `"children"` since 2.37 on a terminal |
//! | `lscpu` | lines `Field: data` |

use super::load::LoadError;
use super::masks::excerpt;

/// Rows of a table: more than CPUs that are read, so that the error can name the CPU.
const MAX_ROWS: usize = 8192;
/// Columns of a table; lscpu has under 30.
const MAX_COLUMNS: usize = 64;
/// Fields of a summary; one for each node, and some 60 others.
const MAX_FIELDS: usize = 4096;

/// A table; empty cells stand for what is not told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Table {
    /// Lower-case names; a column `L1d:L1i:L2:L3` is four.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Whether the columns are those that `lscpu -p` prints by default, since no line names them.
    pub unnamed: bool,
}

/// Fields and data; names without their colon, lower-case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Summary {
    pub fields: Vec<(String, String)>,
}

impl Summary {
    /// The data of field `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, data)| data.as_str())
    }

    /// Adds a field; an error where there are more than any lscpu prints.
    pub fn push(&mut self, origin: &str, field: &str, data: &str) -> Result<(), LoadError> {
        if self.fields.len() == MAX_FIELDS {
            return Err(too_many(origin, "fields", MAX_FIELDS));
        }
        let field = field.trim().trim_end_matches(':').trim().to_lowercase();
        self.fields.push((field, data.trim().to_owned()));
        Ok(())
    }
}

impl Table {
    /// A table of these columns, before its rows.
    pub fn new(origin: &str, names: &[&str]) -> Result<Self, LoadError> {
        let columns: Vec<String> = names
            .iter()
            .flat_map(|name| name.split(':'))
            .take(MAX_COLUMNS + 1)
            .map(|n| n.trim().to_lowercase())
            .collect();
        if columns.len() > MAX_COLUMNS {
            return Err(too_many(origin, "columns", MAX_COLUMNS));
        }
        Ok(Self { columns, ..Self::default() })
    }

    /// Adds a row with a value for each name that [`Self::new`] was given; `names` says how many parts each has.
    pub fn push(&mut self, origin: &str, names: &[&str], values: &[&str], line: usize) -> Result<(), LoadError> {
        if self.rows.len() == MAX_ROWS {
            return Err(too_many(origin, "rows", MAX_ROWS));
        }
        let wrong =
            |found: String, expected| LoadError::File { file: format!("{origin}: row {line}"), found, expected };
        // Trailing empty cells are left out by some.
        if values.len() > names.len() {
            let found = format!("{} values for {} columns", values.len(), names.len());
            return Err(wrong(found, "one value for each column"));
        }
        let mut row = Vec::with_capacity(self.columns.len());
        for (at, name) in names.iter().enumerate() {
            let parts = name.split(':').count();
            let value = values.get(at).copied().unwrap_or("").trim();
            let cells: Vec<&str> = value.split(':').collect();
            match cells.len() {
                n if n == parts => row.extend(cells.into_iter().map(cell)),
                _ if cell(value).is_empty() => row.extend(std::iter::repeat_n(String::new(), parts)),
                // A CPU without the last caches.
                n if n < parts => {
                    row.extend(cells.into_iter().map(cell));
                    row.extend(std::iter::repeat_n(String::new(), parts - n));
                }
                _ => return Err(wrong(excerpt(value), "as many parts as its column has names")),
            }
        }
        self.rows.push(row);
        Ok(())
    }

    /// Index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }
}

fn cell(text: &str) -> String {
    match text.trim() {
        "-" | "null" | "?" => String::new(),
        text => text.to_owned(),
    }
}

/// The error for more of something than lscpu ever prints.
pub(super) fn too_many(origin: &str, what: &'static str, limit: usize) -> LoadError {
    LoadError::TooLarge { file: origin.to_owned(), what, limit: limit as u64 }
}

/// Whether `text` looks like the output of `lscpu -p`: comments, or numbers and commas.
pub(super) fn looks_parsable(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let values = |c: char| c.is_ascii_digit() || matches!(c, ',' | ':' | '-' | 'Y' | 'N' | '.');
    first.starts_with('#') || (first.contains(',') && first.chars().all(values))
}

/// Whether `text` looks like the output of `lscpu -e`: its first line is names of columns, CPU among them.
pub(super) fn looks_extended(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let name = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'%'));
    first.split_ascii_whitespace().any(|word| word == "CPU") && first.split_ascii_whitespace().all(name)
}

/// Whether `text` looks like the output of plain `lscpu`.
pub(super) fn looks_summary(text: &str) -> bool {
    text.lines().take(40).any(|line| line.starts_with("CPU(s):") || line.starts_with("Architecture:"))
}

/// `lscpu -p`.
pub(super) fn parsable(origin: &str, text: &str) -> Result<Table, LoadError> {
    // Columns that nobody names are those of `lscpu -p` before the caches.
    const DEFAULT: &str = "CPU,Core,Socket,Node,,L1d,L1i,L2,L3";
    let header = |line: &str| line.trim_start_matches('#').trim().to_owned();
    // The comments before are sentences; names have no blanks.
    let is_names = |line: &String| !line.is_empty() && !line.contains(char::is_whitespace);
    let named = text.lines().filter(|line| line.starts_with('#')).map(header).rfind(is_names);
    let names_line = named.as_deref().unwrap_or(DEFAULT);
    let names: Vec<&str> = names_line.split(',').take(MAX_COLUMNS + 1).collect();
    let mut table = Table::new(origin, &names)?;
    table.unnamed = named.is_none();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let values: Vec<&str> = line.split(',').take(MAX_COLUMNS + 1).collect();
        table.push(origin, &names, &values, at + 1)?;
    }
    Ok(table)
}

/// `lscpu -e`: a cell may be empty only as `-`, so that words are cells.
pub(super) fn extended(origin: &str, text: &str) -> Result<Table, LoadError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Ok(Table::default()) };
    let names: Vec<&str> = first.split_ascii_whitespace().take(MAX_COLUMNS + 1).collect();
    let mut table = Table::new(origin, &names)?;
    for (at, line) in lines {
        let values: Vec<&str> = line.split_ascii_whitespace().take(MAX_COLUMNS + 1).collect();
        table.push(origin, &names, &values, at + 1)?;
    }
    Ok(table)
}

/// Plain `lscpu`: lines `Field: data`, indented where they are nested.
pub(super) fn summary(origin: &str, text: &str) -> Result<Summary, LoadError> {
    let mut summary = Summary::default();
    for line in text.lines() {
        if let Some((field, data)) = line.split_once(':') {
            summary.push(origin, field, data)?;
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: &Table) -> Vec<String> {
        table.rows.iter().map(|row| row.join("|")).collect()
    }

    #[test]
    fn the_parsable_table_names_its_columns_in_its_last_comment() {
        let text = "# The following is the parsable format, which can be fed to other\n# programs. Each different item in \
                    every column has an unique ID\n# starting usually from zero.\n# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n\
                    0,0,0,0,,0,0,0,0\n1,0,0,0,,0,0,0\n";
        let table = parsable("t", text).expect("a table");
        assert_eq!(table.columns.join(" "), "cpu core socket node  l1d l1i l2 l3");
        assert_eq!(rows(&table), ["0|0|0|0||0|0|0|0", "1|0|0|0||0|0|0|"]);
        assert!(!table.unnamed);
        let few = parsable("t", "# Socket,CPU\n0,0\n1,1\n").expect("a table");
        assert_eq!(
            (few.columns.join(" "), rows(&few)),
            ("socket cpu".to_owned(), vec!["0|0".to_owned(), "1|1".to_owned()])
        );
        let bare = parsable("t", "0,0,0,0,,0,0,0,0\n").expect("a table");
        assert!(bare.unnamed && bare.column("l3") == Some(8));
    }

    #[test]
    fn the_extended_table_splits_its_caches() {
        let table =
            extended("t", "CPU NODE L1d:L1i:L2:L3 ONLINE\n  0    0 0:0:1:2          yes\n  5    - -        no\n")
                .expect("a table");
        assert_eq!(rows(&table), ["0|0|0|0|1|2|yes", "5||||||no"]);
        let error = extended("t", "CPU L1d:L2\n 0 1:2:3\n").expect_err("three parts for two").to_string();
        assert!(error.contains("t: row 2") && error.contains("1:2:3"), "{error}");
        assert!(extended("t", "CPU\n0 1\n").is_err(), "more values than columns");
    }

    #[test]
    fn forms_are_told_apart() {
        for (text, which) in [
            ("# CPU,Core\n", [true, false, false]),
            ("0,0,0,0,,0\n", [true, false, false]),
            ("CPU NODE\n0 0\n", [false, true, false]),
            ("Architecture:  x86_64\nCPU(s): 4\n", [false, false, true]),
            ("Hello, world\n", [false; 3]),
            ("", [false; 3]),
        ] {
            assert_eq!([looks_parsable(text), looks_extended(text), looks_summary(text)], which, "{text:?}");
        }
    }

    #[test]
    fn nothing_grows_without_bound() {
        let many = "CPU ".repeat(100_000);
        assert!(extended("t", &many).is_err());
        assert!(parsable("t", &format!("# CPU{}\n0\n", ",x".repeat(100_000))).is_err());
        assert!(parsable("t", &"0,0\n".repeat(MAX_ROWS + 1)).is_err());
        assert!(summary("t", &"CPU(s): 1\n".repeat(MAX_FIELDS + 1)).is_err());
    }
}
