// SPDX-License-Identifier: GPL-2.0-or-later
//! Which differences are worth to be explained, where not all can be: some of every kind, the first ones, wrong ones.

use std::collections::BTreeMap;

use crate::compare::Verdict;
use crate::fair::Exit;
use crate::replay::Row;

/// Decisions that are picked at most.
pub const PICKS_MAX: usize = 60;
/// Of each pair of returns.
const EACH_MAX: usize = 12;

/// Numbers of decisions, the first of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picks {
    wrong: Vec<u64>,
    groups: BTreeMap<(usize, Exit, Exit), Vec<u64>>,
}

impl Picks {
    /// Looks at a decision.
    pub fn add(&mut self, row: &Row) {
        let number = row.recorded.number;
        if row.wrong.contains(&true) && self.wrong.len() < EACH_MAX {
            self.wrong.push(number);
        }
        for (at, verdict) in row.verdicts.iter().enumerate() {
            let Verdict::Diverge { baseline, patched, .. } = *verdict else { continue };
            let group = self.groups.entry((at, baseline, patched)).or_default();
            if group.len() < EACH_MAX {
                group.push(number);
            }
        }
    }

    /// At most `max` numbers, ascending: wrong decisions, then the first of each pair of returns, the second of each, …
    pub fn numbers(&self, max: usize) -> Vec<u64> {
        let mut numbers: Vec<u64> = Vec::new();
        let rounds = (0..EACH_MAX).flat_map(|at| self.groups.values().filter_map(move |group| group.get(at)));
        for &number in self.wrong.iter().chain(rounds) {
            if numbers.len() >= max.min(PICKS_MAX) {
                break;
            }
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_there_before_one_is_there_twice() {
        let groups = [
            ((0, Exit::Prev, Exit::Target), vec![1, 2, 3, 9]),
            ((0, Exit::Prev, Exit::IdleCpu), vec![4, 5]),
            ((1, Exit::Prev, Exit::IdleCpu), vec![4, 7]),
        ];
        let picks = Picks { wrong: vec![8], groups: groups.into_iter().collect() };
        assert_eq!(picks.numbers(3), [1, 4, 8]);
        assert_eq!(picks.numbers(100), [1, 2, 3, 4, 5, 7, 8, 9]);
    }
}
