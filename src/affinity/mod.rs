// SPDX-License-Identifier: GPL-2.0-or-later
//! What a side file states about tasks: hard and soft affinity, utilisation bounds. Pure: text in, rules out; who the
//! tasks are and when they are asked about is the machine's business.
//!
//! A rule is a system call made for every task that it matches, in the order of the file: `allowed` is
//! `sched_setaffinity()`, `preferred` is the soft-affinity RFC's `sched_setaffinity2(…, SCHED_SOFT_AFFINITY)`. So hard
//! affinity resets soft affinity, children inherit both, and what the kernel would refuse with -EINVAL is refused here.

mod file;
mod index;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use globset::GlobMatcher;

use crate::cpumask::Cpumask;
use crate::units::{Comm, Pid};

/// The highest utilisation: `SCHED_CAPACITY_SCALE`.
pub const UTIL_MAX: u64 = 1024;

/// Tasks by name or number.
#[derive(Debug, Clone, Default)]
pub struct Who {
    /// Shell patterns of which the name matches one; empty: any name.
    pub comms: Vec<GlobMatcher>,
    /// Numbers of which the task's is one; empty: any number.
    pub pids: Vec<Pid>,
}

impl Who {
    fn is_comm(&self, comm: &Comm) -> bool {
        self.comms.iter().any(|glob| glob.is_match(OsStr::from_bytes(comm.as_bytes())))
    }

    /// Whether every condition that there is holds.
    fn matches(&self, pid: Pid, comm: &Comm) -> bool {
        (self.comms.is_empty() || self.is_comm(comm)) && (self.pids.is_empty() || self.pids.contains(&pid))
    }

    /// Whether any condition holds.
    fn has(&self, pid: Pid, comm: &Comm) -> bool {
        self.is_comm(comm) || self.pids.contains(&pid)
    }
}

/// A group of tasks like a cgroup: its members and everything that they fork.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its name in rules.
    pub name: String,
    /// Its first members: those of the names or the numbers.
    pub members: Who,
    /// `cpuset.cpus`: no mask of a member goes beyond these; `None`: all.
    pub cpus: Option<Cpumask>,
}

/// One rule.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// Which tasks by name and number.
    pub who: Who,
    /// And of which group, by its place in [`Rules::groups`].
    pub group: Option<usize>,
    /// Hard affinity.
    pub allowed: Option<Cpumask>,
    /// Soft affinity.
    pub preferred: Option<Cpumask>,
    /// `uclamp_eff_value(p, UCLAMP_MIN)`, 0 to 1024.
    pub uclamp_min: Option<u64>,
    /// `uclamp_eff_value(p, UCLAMP_MAX)`, 0 to 1024.
    pub uclamp_max: Option<u64>,
    /// As reports name it: `rule 2 (comm "srv*")`.
    pub title: String,
}

/// A side file.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Groups in the order of the file.
    pub groups: Vec<Group>,
    /// Rules in the order of the file.
    pub rules: Vec<Rule>,
    /// Made when they are first asked for.
    index: OnceLock<index::Index>,
}

/// Number of groups that a file can have: membership is a set of bits.
pub const GROUPS_MAX: usize = 64;

/// The affinity of a task as `sched_setaffinity2()` keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masks {
    /// `cpus_allowed`.
    pub allowed: Cpumask,
    /// `cpus_preferred`: always a part of `allowed`.
    pub preferred: Cpumask,
    /// `affinity_unequal`.
    pub unequal: bool,
}

/// Why the kernel would answer -EINVAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Einval {
    /// No CPU is left of the mask.
    Empty,
    /// Soft affinity of a task that is not of the fair class.
    NotFair,
    /// PF_NO_SETAFFINITY: a kernel thread that is bound to its CPU.
    Bound,
}

impl Masks {
    /// Sets hard affinity, which resets soft affinity.
    ///
    /// **Source**: kernel/sched/core.c, sched_setaffinity() and do_set_cpus_allowed(), v5.2 with the RFC's 1/3. (There a
    /// hard mask that is set already leaves `cpus_preferred` as it is; here it is reset, as the patch says.)
    ///
    /// # Errors
    /// [`Einval::Empty`] where neither `cpuset` nor `online` leaves a CPU.
    pub fn set_hard(&mut self, mask: &Cpumask, cpuset: &Cpumask, online: &Cpumask) -> Result<(), Einval> {
        let mask = *mask & *cpuset;
        if !mask.intersects(online) {
            return Err(Einval::Empty);
        }
        *self = Self { allowed: mask, preferred: mask, unequal: false };
        Ok(())
    }

    /// Sets soft affinity: what of `mask` is allowed.
    ///
    /// **Source**: kernel/sched/core.c, sched_setaffinity() and __set_cpus_preferred_ptr(), v5.2 with the RFC's 1/3. (There
    /// the mask is cut to the cpuset only; here to `cpus_allowed`, of which the patch says it is always a part.)
    ///
    /// # Errors
    /// [`Einval::Empty`] where nothing is left that is allowed and online.
    pub fn set_soft(&mut self, mask: &Cpumask, cpuset: &Cpumask, online: &Cpumask) -> Result<(), Einval> {
        let mask = *mask & *cpuset & self.allowed;
        if !mask.intersects(online) {
            return Err(Einval::Empty);
        }
        self.preferred = mask;
        self.unequal = mask != self.allowed;
        Ok(())
    }
}

impl Rules {
    /// Reads a side file; see the README for its form.
    ///
    /// # Errors
    /// [`AffinityError`] names the rule or group, the key, what stands there and what is expected.
    pub fn parse(text: &str) -> Result<Self, AffinityError> {
        file::parse(text)
    }

    /// Whether each mask leaves a CPU of a machine with those online CPUs.
    ///
    /// # Errors
    /// [`AffinityError::Einval`] for the first one that does not.
    pub fn check(&self, online: &Cpumask) -> Result<(), AffinityError> {
        let groups = self.groups.iter().map(|group| (format!("group {:?}", group.name), "cpus", group.cpus));
        let rules = self.rules.iter().flat_map(|rule| {
            [(rule.title.clone(), "allowed", rule.allowed), (rule.title.clone(), "preferred", rule.preferred)]
        });
        for (place, key, mask) in groups.chain(rules) {
            if let Some(mask) = mask.filter(|mask| !mask.intersects(online)) {
                let why = format!("the machine has none of these CPUs, but {online}");
                return Err(AffinityError::Einval { place, key, mask: mask.to_string(), why });
            }
        }
        Ok(())
    }

    /// The groups that a task belongs to by itself, one bit each.
    pub fn groups_of(&self, pid: Pid, comm: &Comm) -> u64 {
        let bit = |(at, group): (usize, &Group)| u64::from(group.members.has(pid, comm)) << at;
        self.groups.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// The rules for a task of those groups, with their places.
    pub fn of(&self, pid: Pid, comm: &Comm, groups: u64) -> impl Iterator<Item = (usize, &Rule)> {
        let member = move |rule: &Rule| rule.group.is_none_or(|at| groups & (1 << at) != 0);
        let comm = *comm;
        let candidates = self.index.get_or_init(|| index::Index::new(&self.rules)).candidates(pid, &comm);
        let rules = candidates.into_iter().map(|at| (at, &self.rules[at]));
        rules.filter(move |(_, rule)| member(rule) && rule.who.matches(pid, &comm))
    }

    /// What the cpusets of those groups leave of all CPUs.
    pub fn cpuset(&self, groups: u64) -> Cpumask {
        let all = Cpumask::first_n(crate::cpumask::MAX_CPUS);
        let of = |(at, group): (usize, &Group)| group.cpus.filter(|_| groups & (1 << at) != 0);
        self.groups.iter().enumerate().filter_map(of).fold(all, |left, cpus| left & cpus)
    }
}

/// Why a text is no side file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// No TOML.
    #[error("no TOML: {0}")]
    Toml(String),
    /// A key that means nothing.
    #[error("{place}: no key {found:?}{hint}; there are {possible}")]
    Key {
        /// The file, the rule or the group.
        place: String,
        /// The key.
        found: String,
        /// The nearest key, or nothing.
        hint: String,
        /// The keys there are.
        possible: String,
    },
    /// A value that does not fit its key.
    #[error("{place}: {key} = {found}: {expected}")]
    Value {
        /// The rule or the group.
        place: String,
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// What should stand there.
        expected: String,
    },
    /// A rule that names no tasks, or says nothing about them; a file without rules.
    #[error("{place}: {what}")]
    Nothing {
        /// The file, the rule or the group.
        place: String,
        /// What is missing.
        what: &'static str,
    },
    /// What sched_setaffinity2() answers with -EINVAL.
    #[error("{place}: {key} = \"{mask}\": -EINVAL: {why}")]
    Einval {
        /// The rule or the group.
        place: String,
        /// The key.
        key: &'static str,
        /// The mask.
        mask: String,
        /// What leaves no CPU of it.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Cpumask {
        list.parse().expect(list)
    }

    #[test]
    fn hard_affinity_resets_soft_affinity() {
        let (all, online) = (cpus("0-7"), cpus("0-7"));
        let mut masks = Masks { allowed: all, preferred: all, unequal: false };
        masks.set_soft(&cpus("0-3"), &all, &online).expect("four CPUs");
        assert_eq!(masks, Masks { allowed: all, preferred: cpus("0-3"), unequal: true });
        masks.set_hard(&cpus("2-5"), &all, &online).expect("four CPUs");
        assert_eq!(masks, Masks { allowed: cpus("2-5"), preferred: cpus("2-5"), unequal: false });
    }

    #[test]
    fn soft_affinity_is_cut_to_what_is_allowed() {
        let (all, online) = (cpus("0-7"), cpus("0-7"));
        let mut masks = Masks { allowed: cpus("2-5"), preferred: cpus("2-5"), unequal: false };
        masks.set_soft(&cpus("0-3"), &all, &online).expect("two CPUs");
        assert_eq!(masks, Masks { allowed: cpus("2-5"), preferred: cpus("2-3"), unequal: true });
        let before = masks;
        assert_eq!(masks.set_soft(&cpus("6-7"), &all, &online), Err(Einval::Empty));
        assert_eq!(masks, before, "a refused call changes nothing");
        masks.set_soft(&cpus("0-7"), &all, &online).expect("four CPUs");
        assert!(!masks.unequal, "{masks:?}");
    }

    #[test]
    fn cpusets_and_offline_cpus_cut_both() {
        let mut masks = Masks { allowed: cpus("0-7"), preferred: cpus("0-7"), unequal: false };
        assert_eq!(masks.set_hard(&cpus("0-3"), &cpus("4-7"), &cpus("0-7")), Err(Einval::Empty));
        assert_eq!(masks.set_hard(&cpus("6-7"), &cpus("0-7"), &cpus("0-5")), Err(Einval::Empty));
        masks.set_hard(&cpus("2-7"), &cpus("0-3"), &cpus("0-5")).expect("two CPUs");
        assert_eq!(masks.allowed, cpus("2-3"));
    }
}
