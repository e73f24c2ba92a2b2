// SPDX-License-Identifier: GPL-2.0-or-later
//! From what files hold to the columns of a table: readings of one boot in pairs, before and after.

use serde::{Deserialize, Serialize};

use super::{CountersError, Named, Raw, parse};

/// The text of one file, or the two readings of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A text in any of the forms.
    Text(String),
    /// /proc/schedstat before and after.
    Pair(String, String),
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Where its counters come from.
    pub name: String,
    /// They.
    pub raw: Raw,
}

/// The columns of `sources`, each with its name. Readings of /proc/schedstat are taken in pairs, before and after, unless
/// `each` of them is a column, or there is only one.
///
/// # Errors
/// A sentence that names the file.
pub fn columns(sources: &[(String, Source)], each: bool) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    let mut readings: Vec<(String, Raw)> = Vec::new();
    for (name, source) in sources {
        let wrong = |error: CountersError| format!("{name}: {error}");
        match source {
            Source::Pair(before, after) => {
                let raw = |text: &str| super::schedstat(text).map_err(wrong);
                columns.push(Column { name: name.clone(), raw: between(name, raw(before)?, name, raw(after)?)? });
            }
            Source::Text(text) => {
                for Named { name: own, raw, reading } in parse(text).map_err(wrong)? {
                    let name = own.unwrap_or_else(|| name.clone());
                    if reading && !each {
                        readings.push((name, raw));
                    } else {
                        columns.push(Column { name, raw });
                    }
                }
            }
        }
    }
    if let [(name, raw)] = readings.as_slice() {
        columns.push(Column { name: format!("{name}, since boot"), raw: *raw });
        return Ok(columns);
    }
    if readings.len() % 2 == 1 {
        return Err(format!(
            "{} readings of /proc/schedstat: expected pairs, before and after; --each makes a column of each",
            readings.len()
        ));
    }
    for pair in readings.chunks_exact(2) {
        let [(before, from), (after, to)] = pair else { continue };
        columns.push(Column { name: format!("{before} to {after}"), raw: between(before, *from, after, *to)? });
    }
    Ok(columns)
}

fn between(before: &str, from: Raw, after: &str, to: Raw) -> Result<Raw, String> {
    to.since(from).map_err(|counter| {
        format!(
            "{counter} goes back from {before} to {after}: not two readings of one boot, before and after; --each makes a \
             column of each"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, ttwu: u64) -> (String, Source) {
        (name.to_owned(), Source::Text(format!("cpu0 0 0 1 1 {ttwu} 0 1 1 1\n")))
    }

    fn counts(sources: &[(String, Source)], each: bool) -> Vec<(String, Option<u64>)> {
        let columns = columns(sources, each).expect("columns");
        columns.into_iter().map(|column| (column.name, column.raw.ttwu_count)).collect()
    }

    #[test]
    fn readings_pair_up() {
        let four = [reading("a", 10), reading("b", 30), reading("c", 5), reading("d", 6)];
        assert_eq!(counts(&four, false), [("a to b".to_owned(), Some(20)), ("c to d".to_owned(), Some(1))]);
        assert_eq!(counts(&four, true).len(), 4);
        assert_eq!(counts(&four[..1], false), [("a, since boot".to_owned(), Some(10))]);
        assert!(columns(&four[..3], false).expect_err("an odd one").contains("--each"));
        let error = columns(&[reading("b", 30), reading("a", 10)], false).expect_err("it goes back");
        assert!(error.starts_with("ttwu_count goes back from b to a"), "{error}");
    }

    #[test]
    fn archives_and_tables_are_columns_of_their_own() {
        let (before, after) = ("cpu0 0 0 1 1 4 0 1 1 1\n".to_owned(), "cpu0 0 0 1 1 9 0 1 1 1\n".to_owned());
        let sources = [
            ("x.tar.gz".to_owned(), Source::Pair(before, after)),
            ("t".to_owned(), Source::Text("TTWU Count 7 8\n".to_owned())),
        ];
        let expected = [("x.tar.gz", 5), ("t", 7), ("t", 8)].map(|(name, n)| (name.to_owned(), Some(n)));
        assert_eq!(counts(&sources, false), expected);
        let error = columns(&[("t".to_owned(), Source::Text("hello".to_owned()))], false).expect_err("nothing");
        assert!(error.starts_with("t: no counters"), "{error}");
    }
}
