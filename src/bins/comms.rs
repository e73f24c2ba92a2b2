// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions by the name of the wakee.

use std::collections::BTreeMap;

use crate::compare::Verdict;
use crate::replay::Row;
use crate::units::Comm;

/// Names that are told apart; later ones are counted together.
const COMMS_MAX: usize = 512;

/// Decisions about the tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommRow {
    /// Decisions.
    pub decisions: u64,
    /// Decisions that differ, by comparison.
    pub different: Vec<u64>,
    /// CPUs scanned, by implementation.
    pub scanned: Vec<u64>,
    /// Decisions outside of the affinity, by implementation.
    pub wrong: Vec<u64>,
}

/// All names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comms {
    /// By name.
    pub named: BTreeMap<Comm, CommRow>,
    /// All names that came later.
    pub others: CommRow,
}

impl Comms {
    /// Counts a decision.
    pub fn add(&mut self, row: &Row) {
        let full = self.named.len() >= COMMS_MAX;
        let comm = &row.recorded.comm;
        let into = match self.named.get_mut(comm) {
            Some(into) => into,
            None if full => &mut self.others,
            None => self.named.entry(*comm).or_default(),
        };
        into.add(row);
    }
}

impl CommRow {
    fn add(&mut self, row: &Row) {
        self.decisions += 1;
        self.different.resize(row.verdicts.len(), 0);
        self.scanned.resize(row.decisions.len(), 0);
        self.wrong.resize(row.decisions.len(), 0);
        for (n, verdict) in self.different.iter_mut().zip(&row.verdicts) {
            *n += u64::from(matches!(verdict, Verdict::Diverge { .. }));
        }
        self.scanned.iter_mut().zip(&row.decisions).for_each(|(n, decision)| *n += decision.sis.scanned);
        self.wrong.iter_mut().zip(&row.wrong).for_each(|(n, &wrong)| *n += u64::from(wrong));
    }
}
