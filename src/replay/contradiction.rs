// SPDX-License-Identifier: GPL-2.0-or-later
//! What is stated of a task's affinity and the recording shows to be false: no implementation is to blame for it.

use std::collections::BTreeMap;

use crate::compare::{Class, Verdict};
use crate::inputs::Inputs;
use crate::replay::driver::Row;
use crate::units::Pid;

/// Tasks that ended outside of the CPUs that are stated to be theirs, and the first decision that shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contradicted(BTreeMap<Pid, u64>);

impl Contradicted {
    /// Notes whether the recorded choice contradicts the statement. From then on the task's affinity counts as unknown:
    /// no placement is wrong, no difference known.
    pub(super) fn weigh(&mut self, row: &mut Row) {
        let Some(stated) = &row.stated else { return };
        let (pid, number) = (row.recorded.pid, row.recorded.number);
        if row.choice.final_cpu.is_some_and(|cpu| !stated.test(cpu)) {
            self.0.entry(pid).or_insert(number);
        }
        if !self.0.contains_key(&pid) {
            return;
        }
        row.affinity = Class::Unknown;
        row.wrong.fill(false);
        for verdict in &mut row.verdicts {
            if let Verdict::Diverge { .. } = verdict {
                *verdict = Verdict::Unknown { inputs: Inputs::AFFINITY, differs: true };
            }
        }
    }

    /// What a reader has to know of it.
    pub fn note(&self, file: &str) -> Option<String> {
        let (pid, number) = self.0.iter().min_by_key(|&(_, number)| number)?;
        let tasks = if self.0.len() == 1 { "1 task".to_owned() } else { format!("{} tasks", self.0.len()) };
        Some(format!(
            "{file}: what is stated of {tasks} is contradicted by the recording, first by decision #{number} (thread \
             {pid}), after which the task ran on a CPU outside of it: from there on their affinity counts as unknown, and \
             no placement of theirs as wrong"
        ))
    }
}
