// SPDX-License-Identifier: GPL-2.0-or-later
//! The record of a walk of the C, each step with its line in the tree's source.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock};

use sisdiff_tree::extract::instrument::{self, Table};

use super::answer::{Answer, Event};
use super::exit::Exits;
use super::prepare::Prepared;
use crate::fair::{Decision, Exit, Walk, WalkStep};
use crate::units::Cpu;

/// Function names live as long as the process; there are a few dozen of each tree.
fn name_of(name: &str) -> &'static str {
    static NAMES: OnceLock<Mutex<BTreeSet<&'static str>>> = OnceLock::new();
    let names = NAMES.get_or_init(Mutex::default);
    let mut names = names.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(leaked);
    leaked
}

/// Writes the walk behind `answer` down.
pub(super) fn record(answer: &Answer<'_>, tree: &Prepared, decision: &Decision, walk: &mut Walk) {
    let events: Vec<Event> = answer.events().collect();
    let (table, exits) = (&tree.built.meta.table, &*tree.exits);
    let mut writer = Writer { tree, table, walk, place: None };
    let deciding = events.iter().rposition(|event| match event {
        Event::Return { statement, .. } => writer.function(*statement) == "select_idle_sibling",
        _ => false,
    });
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Enter { function } => {
                writer.enter(table.functions.get(function as usize).map_or("", String::as_str))
            }
            Event::Search { target } => {
                writer.enter("select_idle_sibling");
                writer.walk.steps.push(WalkStep::Value { name: "target", value: target });
            }
            Event::Probe { kind, cpu, idle, file, line } => {
                writer.at(table.files.get(file as usize).map_or("", String::as_str), line);
                writer.walk.steps.push(WalkStep::Probe { kind, cpu, idle });
            }
            Event::Return { statement, value } if Some(at) == deciding => {
                writer.at_statement(statement);
                writer.deciding(decision.exit, value);
            }
            Event::Return { statement, value } => writer.returned(exits, statement, value),
            Event::Miss => {}
            Event::Warn { line } => {
                writer.at("kernel/sched/fair.c", line);
                writer.walk.steps.push(WalkStep::Check { what: "WARN_ON()".to_owned(), holds: true });
            }
        }
    }
    if deciding.is_none() {
        writer.deciding(decision.exit, answer.cpu());
    }
}

struct Writer<'a> {
    tree: &'a Prepared,
    table: &'a Table,
    walk: &'a mut Walk,
    place: Option<(&'a str, u32)>,
}

impl<'a> Writer<'a> {
    fn function(&self, statement: u32) -> &'a str {
        let statement = self.table.statements.get(statement as usize);
        statement.and_then(|found| self.table.functions.get(found.function as usize)).map_or("", String::as_str)
    }

    fn path_of(&self, statement: u32) -> &'a str {
        self.table.statements.get(statement as usize).map_or("", |found| found.path.as_str())
    }

    /// The place of the next step, where it is another than that of the last.
    fn at(&mut self, path: &'a str, line: u32) {
        if !path.is_empty() && self.place != Some((path, line)) {
            self.place = Some((path, line));
            self.walk.steps.push(WalkStep::At { place: self.tree.place(path, line) });
        }
    }

    fn at_statement(&mut self, statement: u32) {
        let table = self.table;
        if let Some(found) = table.statements.get(statement as usize) {
            self.at(&found.path, found.line);
        }
    }

    fn enter(&mut self, function: &str) {
        if !instrument::LEAVES.contains(&function) && self.is_of_fair(function) {
            self.walk.steps.push(WalkStep::Enter { function: name_of(function) });
        }
    }

    fn is_of_fair(&self, function: &str) -> bool {
        let number = self.table.functions.iter().position(|name| name == function);
        let first = self.table.statements.iter().find(|found| Some(found.function as usize) == number);
        first.is_some_and(|found| found.path == "kernel/sched/fair.c")
    }

    fn returned(&mut self, exits: &Exits, statement: u32, value: i64) {
        let function = self.function(statement);
        if self.path_of(statement) != "kernel/sched/fair.c" {
            return;
        }
        self.at_statement(statement);
        let step = match exits.stage(statement, function) {
            Some(exit) if value < 0 => WalkStep::Return { exit, cpu: None },
            _ => WalkStep::Value { name: name_of(function), value },
        };
        self.walk.steps.push(step);
    }

    fn deciding(&mut self, exit: Exit, value: i64) {
        let cpu = usize::try_from(value).ok().and_then(Cpu::new);
        self.walk.steps.push(WalkStep::Return { exit, cpu });
    }
}
