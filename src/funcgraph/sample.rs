// SPDX-License-Identifier: GPL-2.0-or-later
//! The calls of one recording, by function.

use std::collections::BTreeMap;

use crate::funcgraph::stacks::{Call, Lag, Task};

/// A call worth naming: the longest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Longest {
    /// How long it ran, ns.
    pub duration_ns: u64,
    /// Time of its entry's record, ns, if told.
    pub enter_ns: Option<u64>,
    /// Who ran it.
    pub task: Task,
    /// The CPU that it returned on.
    pub cpu: u32,
}

/// The calls of one function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// How long each ran, ns, in the order of their returns.
    pub durations_ns: Vec<u64>,
    /// Time in the function itself, without traced functions that it called, ns, all calls together.
    pub self_total_ns: u64,
    /// Calls that called traced functions.
    pub with_children: u64,
    /// Calls by traced functions.
    pub nested: u64,
    /// The longest; of several the first.
    pub longest: Option<Longest>,
}

/// All calls that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// By name.
    pub functions: BTreeMap<String, Function>,
    /// Calls that filters left out.
    pub filtered: u64,
    /// Lags of all calls that say so, for [`crate::funcgraph::overhead`].
    pub lags: Vec<Lag>,
    /// Whether the trace's clock is the tracer's own, so that lags are the tracer's work alone.
    pub is_same_clock: bool,
}

impl Sample {
    /// Adds a call.
    pub fn add(&mut self, call: &Call<'_>) {
        self.lags.extend(call.lag);
        if !self.functions.contains_key(call.function) {
            self.functions.insert(call.function.to_owned(), Function::default());
        }
        let Some(function) = self.functions.get_mut(call.function) else { return };
        function.durations_ns.push(call.duration_ns);
        function.self_total_ns = function.self_total_ns.saturating_add(call.self_ns);
        function.with_children += u64::from(call.children > 0);
        function.nested += u64::from(call.is_nested);
        if function.longest.as_ref().is_none_or(|longest| call.duration_ns > longest.duration_ns) {
            let &Call { duration_ns, enter_ns, task, cpu, .. } = call;
            function.longest = Some(Longest { duration_ns, enter_ns, task, cpu });
        }
    }

    /// Calls that count, all functions.
    pub fn calls(&self) -> u64 {
        self.functions.values().map(|function| function.durations_ns.len() as u64).sum()
    }
}
