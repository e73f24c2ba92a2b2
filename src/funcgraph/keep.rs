// SPDX-License-Identifier: GPL-2.0-or-later
//! Which calls count.

use crate::cpumask::Cpumask;
use crate::funcgraph::stacks::Call;
use crate::units::Cpu;

/// A condition on a name.
pub type OnName = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A moment of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// On the trace's clock, ns.
    At(u64),
    /// After the first record, ns.
    After(u64),
}

impl Moment {
    fn resolve(self, first_ns: u64) -> u64 {
        match self {
            Moment::At(ns) => ns,
            Moment::After(ns) => first_ns.saturating_add(ns),
        }
    }
}

/// Conditions on calls; all must hold. Calls that do not count are paired all the same.
#[derive(Default)]
pub struct Keep {
    /// On the function.
    pub function: Option<OnName>,
    /// On the task's name.
    pub comm: Option<OnName>,
    /// The task is one of these, unless empty.
    pub pids: Vec<i32>,
    /// The CPU that the call returned on is one of these.
    pub cpus: Option<Cpumask>,
    /// The call was entered then or later.
    pub since: Option<Moment>,
    /// The call was entered before.
    pub until: Option<Moment>,
}

impl Keep {
    /// Whether a call of a task with that name counts, where the first record is at `first_ns`. What a recording does
    /// not say fulfils no condition.
    pub fn holds(&self, call: &Call<'_>, comm: Option<&[u8]>, first_ns: u64) -> bool {
        let named = |condition: &Option<OnName>, name: Option<&[u8]>| {
            condition.as_ref().is_none_or(|holds| name.is_some_and(holds))
        };
        let in_time = match (self.since, self.until) {
            (None, None) => true,
            (since, until) => call.enter_ns.is_some_and(|at| {
                since.is_none_or(|since| at >= since.resolve(first_ns))
                    && until.is_none_or(|until| at < until.resolve(first_ns))
            }),
        };
        let cpu = Cpu::new(call.cpu as usize);
        named(&self.function, Some(call.function.as_bytes()))
            && named(&self.comm, comm)
            && (self.pids.is_empty() || call.task.pid().is_some_and(|pid| self.pids.contains(&pid)))
            && self.cpus.as_ref().is_none_or(|cpus| cpu.is_some_and(|cpu| cpus.test(cpu)))
            && in_time
    }
}
