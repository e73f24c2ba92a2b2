// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of a snapshot read back. Anything may be in a file that a merge went wrong in.

use std::collections::BTreeMap;

use crate::gate::origin::MadeFrom;
use crate::gate::snapshot::{FORMAT, Head, MADE_FROM, Part, Snapshot, Table};
use crate::units::is_unseen;

/// Why a text is no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Something else.
    #[error("is no snapshot of a gate: expected --- and format: {FORMAT} in its first lines")]
    Other,
    /// A snapshot of another version of the format.
    #[error("has the format {found}, and this sisdiff reads and writes {FORMAT}")]
    Version {
        /// What it says.
        found: String,
    },
    /// One line cannot be read.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

type Lines<'a> = std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>;

fn wrong(at: usize, what: impl Into<String>) -> SnapshotError {
    SnapshotError::Line { line: at + 1, what: what.into() }
}

pub(super) fn parse(text: &str) -> Result<Snapshot, SnapshotError> {
    let mut lines: Lines<'_> = text.lines().enumerate().peekable();
    if lines.next().map(|(_, line)| line) != Some("---") {
        return Err(SnapshotError::Other);
    }
    let format = lines.next().and_then(|(_, line)| line.strip_prefix("format: ")).ok_or(SnapshotError::Other)?;
    if format != FORMAT {
        let found = format.chars().take(40).map(|c| if is_unseen(c) { '?' } else { c }).collect();
        return Err(SnapshotError::Version { found });
    }
    if !text.ends_with('\n') {
        return Err(wrong(text.lines().count() - 1, "ends in the middle of the line; expected a newline"));
    }
    let (head, made_from) = head(&mut lines)?;
    let mut snapshot = Snapshot { head, made_from, ..Snapshot::default() };
    let mut before = None;
    while let Some((at, line)) = lines.next() {
        if line.is_empty() && before.is_some() && lines.peek().is_some() {
            continue;
        }
        let mut words = line.split_whitespace();
        let name = words.next().filter(|_| !line.starts_with(char::is_whitespace));
        let name = name.ok_or_else(|| wrong(at, "expected the name of a section"))?;
        let columns: Vec<String> = words.map(str::to_owned).collect();
        let rank = match (name, Part::named(name)) {
            ("digests", _) => 0,
            (_, Some(part)) => 1 + part as usize,
            ("differences", _) => 1 + Part::ALL.len(),
            _ => return Err(wrong(at, format!("no section {:?}; expected {}", shown(name), sections()))),
        };
        if before.replace(rank).is_some_and(|before| before >= rank) {
            return Err(wrong(at, format!("the section {name} is there already, or stands too late")));
        }
        match (name, Part::named(name)) {
            (_, Some(part)) => {
                snapshot.tables.insert(part, table(&mut lines, columns)?);
            }
            _ if !columns.is_empty() => return Err(wrong(at, format!("{name} has no columns"))),
            ("digests", _) => snapshot.digests = digests(&mut lines)?,
            _ => snapshot.differences = Some(differences(&mut lines)?),
        }
    }
    Ok(snapshot)
}

fn sections() -> String {
    format!("digests, {} or differences", Part::NAMES.join(", "))
}

/// A word of a file as a message may show it.
fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

fn head(lines: &mut Lines<'_>) -> Result<(Head, MadeFrom), SnapshotError> {
    let mut last = 1;
    let mut values: [String; 9] = Default::default();
    for (key, value) in Head::KEYS.into_iter().zip(&mut values) {
        let (at, line) = lines.next().ok_or_else(|| wrong(last, format!("ends before {key}:")))?;
        last = at;
        let found = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": "));
        *value = unquoted(at, found.ok_or_else(|| wrong(at, format!("expected {key}: and its value")))?)?;
    }
    let mut made_from = MadeFrom::new();
    while let Some((at, line)) = lines.next_if(|(_, line)| line.starts_with(MADE_FROM)) {
        last = at;
        let pair = line[MADE_FROM.len()..].split_once(": ");
        let (name, value) = pair.ok_or_else(|| wrong(at, format!("expected {MADE_FROM}NAME: and its value")))?;
        if made_from.insert(name.to_owned(), unquoted(at, value)?).is_some() {
            return Err(wrong(at, format!("{:?} is there already", shown(name))));
        }
    }
    match lines.next() {
        Some((_, "---")) => Ok((Head::from_values(values), made_from)),
        Some((at, _)) => Err(wrong(at, "expected --- after the head")),
        None => Err(wrong(last, "ends before the --- after the head")),
    }
}

fn unquoted(at: usize, value: &str) -> Result<String, SnapshotError> {
    if !value.starts_with('"') {
        return Ok(value.to_owned());
    }
    serde_json::from_str(value).map_err(|error| wrong(at, format!("a value in quotes is cut or damaged ({error})")))
}

/// The next line of a section, without its indent.
fn row<'a>(lines: &mut Lines<'a>) -> Option<(usize, &'a str)> {
    lines.next_if(|(_, line)| line.starts_with("  ")).map(|(at, line)| (at, &line[2..]))
}

fn digests(lines: &mut Lines<'_>) -> Result<BTreeMap<String, String>, SnapshotError> {
    let mut digests = BTreeMap::new();
    while let Some((at, line)) = row(lines) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(digest), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong(at, "expected a name and a digest"));
        };
        let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|c| c.is_ascii_hexdigit());
        if !digest.strip_prefix("sha256:").is_some_and(is_hex) {
            return Err(wrong(at, format!("{:?} is no digest; expected sha256: and 32 digits", shown(digest))));
        }
        if digests.insert(name.to_owned(), digest.to_owned()).is_some() {
            return Err(wrong(at, format!("{:?} is there already", shown(name))));
        }
    }
    Ok(digests)
}

fn table(lines: &mut Lines<'_>, columns: Vec<String>) -> Result<Table, SnapshotError> {
    let mut table = Table { columns, rows: Vec::new() };
    while let Some((at, line)) = row(lines) {
        let mut words = line.split_whitespace();
        let name = words.next().ok_or_else(|| wrong(at, "expected a row"))?;
        let counts = words.map(|word| count(at, word)).collect::<Result<Vec<u64>, _>>()?;
        if counts.len() != table.columns.len() {
            let (found, expected) = (counts.len(), table.columns.len());
            return Err(wrong(at, format!("{:?} has {found} counts; expected {expected}", shown(name))));
        }
        if table.rows.iter().any(|(other, _)| other == name) {
            return Err(wrong(at, format!("{:?} is there already", shown(name))));
        }
        table.rows.push((name.to_owned(), counts));
    }
    Ok(table)
}

fn count(at: usize, word: &str) -> Result<u64, SnapshotError> {
    word.replace(',', "").parse().map_err(|_| wrong(at, format!("{:?} is no count", shown(word))))
}

fn differences(lines: &mut Lines<'_>) -> Result<Vec<String>, SnapshotError> {
    let mut differences = Vec::new();
    while let Some((at, line)) = row(lines) {
        differences.push(unquoted(at, line)?);
    }
    Ok(differences)
}
