// SPDX-License-Identifier: GPL-2.0-or-later
//! Which rules can be about a task, without asking each of them: by number, and by all patterns at once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobSet, GlobSetBuilder};

use super::Rule;
use crate::units::{Comm, Pid};

/// Rules by what they ask for first.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Of rules with numbers.
    pids: BTreeMap<Pid, Vec<usize>>,
    /// The patterns of the other rules, and whose each is.
    comms: GlobSet,
    of_comm: Vec<usize>,
    /// Rules about every name and number.
    any: Vec<usize>,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        let mut patterns = GlobSetBuilder::new();
        let mut rest = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            if !rule.who.pids.is_empty() {
                rule.who.pids.iter().for_each(|&pid| index.pids.entry(pid).or_default().push(at));
            } else if rule.who.comms.is_empty() {
                index.any.push(at);
            } else {
                rest.push(at);
                for glob in &rule.who.comms {
                    patterns.add(glob.glob().clone());
                    index.of_comm.push(at);
                }
            }
        }
        match patterns.build() {
            Ok(comms) => index.comms = comms,
            // Too much for one automaton: these are asked one by one.
            Err(_) => index.any.extend(rest),
        }
        index
    }

    /// Places of the rules that may be about the task, ascending; each has still to be asked.
    pub(super) fn candidates(&self, pid: Pid, comm: &Comm) -> Vec<usize> {
        let mut found = self.any.clone();
        found.extend(self.pids.get(&pid).into_iter().flatten());
        let matches = self.comms.matches(OsStr::from_bytes(comm.as_bytes()));
        found.extend(matches.into_iter().map(|at| self.of_comm[at]));
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;

    #[test]
    fn the_index_finds_what_asking_each_rule_finds() {
        let mut text = String::new();
        let whos =
            ["comm = \"srv*\"", "pid = [5, 9]", "comm = [\"a?\", \"*7\"]", "comm = \"srv1\"\npid = 5", "comm = \"*\""];
        for n in 0..40 {
            let who = whos[n * 7 % whos.len()];
            text += &format!("[[rule]]\n{who}\nallowed = \"{}\"\n", n % 4);
        }
        let rules = Rules::parse(&text).expect("rules");
        let mut found = 0;
        for pid in [1, 5, 9, 77] {
            for comm in ["srv1", "srv", "ab", "x7", "none"] {
                let (pid, comm) = (Pid(pid), Comm::new(comm.as_bytes()));
                let asked: Vec<usize> = (0..40).filter(|&at| rules.rules[at].who.matches(pid, &comm)).collect();
                let told: Vec<usize> = rules.of(pid, &comm, 0).map(|(at, _)| at).collect();
                assert_eq!(told, asked, "{pid:?} {comm:?}");
                found += told.len();
            }
        }
        assert!(found > 160, "{found}");
    }

    #[test]
    fn many_rules_cost_little() {
        let rule =
            |n: usize| format!("[[rule]]\npid = {n}\nallowed = \"0\"\n[[rule]]\ncomm = \"t{n}\"\nallowed = \"0\"\n");
        let rules = Rules::parse(&(1..=20_000).map(rule).collect::<String>()).expect("rules");
        let start = std::time::Instant::now();
        for n in 1..=20_000 {
            let comm = Comm::new(format!("t{n}").as_bytes());
            assert_eq!(rules.of(Pid(n), &comm, 0).count(), 2);
        }
        // Asking each of 40,000 rules 20,000 times took more than a minute.
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }
}
