// SPDX-License-Identifier: GPL-2.0-or-later
//! Which lines of a tree's functions were reached, in lcov's format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sisdiff_tree::extract::instrument::Table;

/// How often each statement was reached, over everything that ran.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Vec<u64>>);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what an object tells: a statement's number, and how often it was reached, by turns.
    pub(super) fn add(&self, words: &[u64]) {
        let mut counts = self.lock();
        for pair in words.chunks_exact(2) {
            let at = pair[0] as usize;
            if counts.len() <= at {
                counts.resize(at + 1, 0);
            }
            counts[at] += pair[1];
        }
    }

    /// The counts so far as a tracefile; `root` is put before the files' names.
    pub(super) fn lcov(&self, root: &str, table: &Table) -> String {
        lcov(root, table, &self.lock())
    }
}

/// Of a file, by line: how often it was reached, and the functions that begin there, each with its calls.
#[derive(Debug, Default)]
struct Reached<'a> {
    lines: BTreeMap<u32, u64>,
    functions: BTreeMap<u32, (&'a str, u64)>,
}

fn lcov(root: &str, table: &Table, counts: &[u64]) -> String {
    let mut files: BTreeMap<&str, Reached<'_>> = BTreeMap::new();
    let mut last = None;
    for (at, statement) in table.statements.iter().enumerate() {
        let reached = counts.get(at).copied().unwrap_or(0);
        let Reached { lines, functions } = files.entry(&statement.path).or_default();
        let line = lines.entry(statement.line).or_default();
        *line = (*line).max(reached);
        // A function's statements stand together; it is entered as often as its first is reached.
        if last.replace(statement.function) != Some(statement.function) {
            let name = table.functions.get(statement.function as usize).map_or("", String::as_str);
            functions.insert(statement.line, (name, reached));
        }
    }
    let mut out = String::new();
    for (path, Reached { lines, functions }) in files {
        let _ = writeln!(out, "TN:\nSF:{root}{path}");
        functions.iter().for_each(|(line, (name, _))| out += &format!("FN:{line},{name}\n"));
        functions.values().for_each(|(name, reached)| out += &format!("FNDA:{reached},{name}\n"));
        let hit = functions.values().filter(|(_, reached)| *reached > 0).count();
        let _ = writeln!(out, "FNF:{}\nFNH:{hit}", functions.len());
        lines.iter().for_each(|(line, reached)| out += &format!("DA:{line},{reached}\n"));
        let hit = lines.values().filter(|&&reached| reached > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use sisdiff_tree::extract::instrument::Statement;

    use super::*;

    #[test]
    fn lines_and_functions_are_counted() {
        let statement = |function, line| Statement { function, path: "fair.c".to_owned(), line, returns: None };
        let table = Table {
            files: vec!["fair.c".to_owned()],
            functions: vec!["one".to_owned(), "two".to_owned()],
            statements: vec![statement(0, 3), statement(0, 4), statement(0, 4), statement(1, 9)],
        };
        let counts = Counts::default();
        counts.add(&[0, 2, 2, 1]);
        counts.add(&[0, 1]);
        assert_eq!(
            counts.lcov("/linux/", &table),
            "TN:\nSF:/linux/fair.c\nFN:3,one\nFN:9,two\nFNDA:3,one\nFNDA:0,two\nFNF:2\nFNH:1\nDA:3,3\nDA:4,1\nDA:9,0\n\
             LF:3\nLH:2\nend_of_record\n"
        );
    }
}
