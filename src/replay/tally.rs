// SPDX-License-Identifier: GPL-2.0-or-later
//! Small counts: by kind of decision, by how well it was known, by agreement.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::compare::Class;
use crate::wakeup::WakeKind;

/// One value for each kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByKind<T> {
    /// WF_TTWU.
    pub wakeups: T,
    /// WF_FORK.
    pub forks: T,
    /// WF_EXEC.
    pub execs: T,
}

impl<T> ByKind<T> {
    /// The value of `kind`.
    pub fn of(&mut self, kind: WakeKind) -> &mut T {
        match kind {
            WakeKind::Ttwu => &mut self.wakeups,
            WakeKind::Fork => &mut self.forks,
            WakeKind::Exec => &mut self.execs,
        }
    }

    /// The values with their kind.
    pub fn kinds(&self) -> [(WakeKind, &T); 3] {
        [(WakeKind::Ttwu, &self.wakeups), (WakeKind::Fork, &self.forks), (WakeKind::Exec, &self.execs)]
    }

    /// The values with the plural of their kind's name.
    pub fn named(&self) -> [(&'static str, &T); 3] {
        [("wakeups", &self.wakeups), ("forks", &self.forks), ("execs", &self.execs)]
    }
}

impl ByKind<u64> {
    /// Over all kinds.
    pub fn sum(&self) -> u64 {
        self.wakeups + self.forks + self.execs
    }
}

impl<T: AddAssign> AddAssign for ByKind<T> {
    fn add_assign(&mut self, other: Self) {
        self.wakeups += other.wakeups;
        self.forks += other.forks;
        self.execs += other.execs;
    }
}

/// A count split by how well the decisions were known; what leaned on something unknown is counted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Everything traced or derived.
    pub known: u64,
    /// Something assumed.
    pub assumed: u64,
}

impl Split {
    /// Both together.
    pub fn sum(&self) -> u64 {
        self.known + self.assumed
    }

    /// Counts one decision of `class`.
    pub fn add(&mut self, class: Class) {
        match class {
            Class::Known => self.known += 1,
            Class::Assumed | Class::Unknown => self.assumed += 1,
        }
    }
}

impl AddAssign for Split {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.assumed += other.assumed;
    }
}

/// Verdicts of one pair of implementations over decisions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// The same CPU.
    pub same: Split,
    /// Of these, by another `return`.
    pub same_by_another_return: u64,
    /// Another CPU.
    pub different: Split,
    /// Something unknown was leaned on: no verdict.
    pub unknown: u64,
    /// Of these, how many placeholders led to different CPUs.
    pub unknown_differs: u64,
    /// Different, and the patched CPU is outside of the wakee's affinity.
    pub wrong: u64,
}

impl Tally {
    /// Decisions with a verdict.
    pub fn compared(&self) -> u64 {
        self.same.sum() + self.different.sum()
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.same += other.same;
        self.same_by_another_return += other.same_by_another_return;
        self.different += other.different;
        self.unknown += other.unknown;
        self.unknown_differs += other.unknown_differs;
        self.wrong += other.wrong;
    }
}

/// How often one and the same CPU was chosen as the recorded kernel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The same CPU.
    pub same: u64,
    /// Out of so many.
    pub of: u64,
}

impl Share {
    /// Counts one.
    pub fn add(&mut self, same: bool) {
        self.same += u64::from(same);
        self.of += 1;
    }

    /// In percent; `None` of nothing.
    pub fn percent(&self) -> Option<f64> {
        (self.of > 0).then(|| 100.0 * self.same as f64 / self.of as f64)
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.same += other.same;
        self.of += other.of;
    }
}

/// Agreement with the recorded choices by how well the decisions were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Everything traced or derived.
    pub known: Share,
    /// Something assumed, nothing unknown.
    pub assumed: Share,
    /// Something unknown.
    pub unknown: Share,
}

impl Agreement {
    /// The share of `class`.
    pub fn of(&mut self, class: Class) -> &mut Share {
        match class {
            Class::Known => &mut self.known,
            Class::Assumed => &mut self.assumed,
            Class::Unknown => &mut self.unknown,
        }
    }

    /// Over all classes.
    pub fn sum(&self) -> Share {
        let mut sum = self.known;
        sum += self.assumed;
        sum += self.unknown;
        sum
    }
}

impl AddAssign for Agreement {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.assumed += other.assumed;
        self.unknown += other.unknown;
    }
}
