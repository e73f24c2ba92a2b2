// SPDX-License-Identifier: GPL-2.0-or-later
//! Function graph as text: `trace-cmd report` (also `-R`), the tracefs file `trace`, and what people paste into mails
//! from either, with prose around it and spaces lost.
//!
//! A line is read as a whole or not at all. What is not read is counted and named with its number.

mod column;
mod graph;
mod report;

use crate::funcgraph::stacks::{Edge, Spot, Task};

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A record of the tracer.
    Graph {
        /// Where.
        spot: Spot,
        /// The task's name, if told.
        comm: Option<&'a str>,
        /// What.
        edge: Edge<'a>,
        /// What stands behind it that is no part of it.
        behind: Option<&'a str>,
    },
    /// Another event.
    Event,
    /// Headings, separators, comments.
    Heading,
    /// Records of a CPU are missing here.
    Lost,
    /// Words of a person.
    Prose(&'a str),
    /// A damaged record: why it is not read.
    Bad(&'static str),
}

/// Reads lines; knows from those before who runs on each CPU.
#[derive(Debug, Default)]
pub struct Lines {
    running: std::collections::BTreeMap<u32, (Task, Option<String>)>,
}

impl Lines {
    /// Reads one line.
    pub fn read<'a>(&'a mut self, line: &'a str) -> Line<'a> {
        let line = line.trim_end();
        if let Some(found) = heading(line) {
            return found;
        }
        if let Some(found) = report::line(line) {
            return found;
        }
        if let Some(found) = graph::line(line, &mut self.running) {
            return found;
        }
        other(line)
    }
}

/// Lines that every form has around its records.
fn heading(line: &str) -> Option<Line<'_>> {
    let text = line.trim_start();
    let lost = text.contains("EVENTS DROPPED]") || text.contains("[LOST ") && text.contains(" EVENTS]");
    if lost {
        return Some(Line::Lost);
    }
    let starts = ["#", "cpus=", "version =", "CPU ", "-----"];
    (text.is_empty() || starts.iter().any(|start| text.starts_with(start))).then_some(Line::Heading)
}

/// A line of no form: words, or the rest of a record.
fn other(line: &str) -> Line<'_> {
    let looks_cut = line.contains("funcgraph_")
        || line.contains('|') && (line.contains("();") || line.contains(") {") || line.contains('}'))
        || has_cpu(line);
    let words = line.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    match looks_cut {
        true => Line::Bad("part of a record"),
        false if words < 2 => Line::Bad("neither a record nor words"),
        false => Line::Prose(line.trim()),
    }
}

/// `[003]` somewhere in the line.
fn has_cpu(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        let inside = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        inside.is_some_and(|cpu| cpu.len() >= 3 && cpu.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests;
