// SPDX-License-Identifier: GPL-2.0-or-later
//! What the user's side file says of tasks, laid over what the recording tells of them.
//!
//! A rule is obeyed once for each task that it matches: when the task is first asked about under that name and number.
//! What it said stays with the task and goes to its children, as sched_setaffinity() would have it; a probe of the task's
//! affinity does not undo it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::affinity::{Einval, Masks, Rules};
use crate::cpumask::Cpumask;
use crate::inputs::Inputs;
use crate::machine::apply::Machine;
use crate::machine::{TaskFlags, TaskId};
use crate::units::Pid;

/// What the file says of one task.
#[derive(Debug, Clone, Copy, Default)]
struct Statement {
    /// The rules were asked under its present name and number.
    asked: bool,
    /// Groups that it is a member of, one bit each.
    groups: u64,
    /// Hard affinity.
    hard: Option<Cpumask>,
    /// Soft affinity and the rule that gave it.
    soft: Option<(Cpumask, usize)>,
    uclamp_min: Option<u64>,
    uclamp_max: Option<u64>,
}

/// What became of one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleUse {
    /// Tasks that it matched.
    pub tasks: BTreeSet<Pid>,
    /// Tasks for which the kernel would have answered -EINVAL.
    pub refused: BTreeMap<Einval, BTreeSet<Pid>>,
    /// Of those, tasks whose allowed CPUs the file itself had stated.
    pub contradicted: BTreeSet<Pid>,
}

/// The side file and how far it was used.
#[derive(Debug, Clone, Default)]
pub struct Stated {
    rules: Option<Arc<Rules>>,
    tasks: Vec<Statement>,
    uses: Vec<RuleUse>,
    members: Vec<BTreeSet<Pid>>,
}

impl Stated {
    /// What became of each rule.
    pub fn uses(&self) -> &[RuleUse] {
        &self.uses
    }

    /// The members of each group, forked ones included.
    pub fn members(&self) -> &[BTreeSet<Pid>] {
        &self.members
    }

    /// The slot is another task's from now on.
    pub(super) fn forget(&mut self, id: TaskId) {
        if let Some(statement) = self.tasks.get_mut(id.index()) {
            *statement = Statement::default();
        }
    }

    /// The task has another name or number: other rules may match.
    pub(super) fn ask_again(&mut self, id: TaskId) {
        if let Some(statement) = self.tasks.get_mut(id.index()) {
            statement.asked = false;
        }
    }

    /// A child has its parent's affinity, bounds and groups.
    pub(super) fn inherit(&mut self, parent: TaskId, child: TaskId) {
        if self.rules.is_some() {
            let from = self.tasks.get(parent.index()).copied().unwrap_or_default();
            *self.statement(child) = Statement { asked: false, ..from };
        }
    }

    fn statement(&mut self, id: TaskId) -> &mut Statement {
        if self.tasks.len() <= id.index() {
            self.tasks.resize(id.index() + 1, Statement::default());
        }
        &mut self.tasks[id.index()]
    }
}

impl Machine {
    /// Lays a side file over what the recording tells, before the first event.
    pub fn state_rules(&mut self, rules: Arc<Rules>) {
        self.stated.uses = vec![RuleUse::default(); rules.rules.len()];
        self.stated.members = vec![BTreeSet::new(); rules.groups.len()];
        self.stated.rules = Some(rules);
    }

    /// The side file and how far it was used.
    pub fn stated(&self) -> &Stated {
        &self.stated
    }

    /// Puts what the side file says of a task into its facts.
    pub(super) fn apply_stated(&mut self, id: TaskId) {
        let Some(rules) = self.stated.rules.clone() else { return };
        if self.state.tasks[id].pid == Pid::SWAPPER {
            return;
        }
        if !self.stated.statement(id).asked {
            self.obey(id, &rules);
        }
        let Statement { hard, soft, uclamp_min, uclamp_max, .. } = *self.stated.statement(id);
        let online = *self.state.topology.online();
        let task = &mut self.state.tasks[id];
        let allowed = hard.unwrap_or(*task.cpus_ptr);
        let mut masks = Masks { allowed, preferred: allowed, unequal: false };
        if hard.is_some() {
            task.known.set_stated(Inputs::AFFINITY | Inputs::SOFT_AFFINITY);
        }
        if let Some((mask, rule)) = soft {
            task.known.set_stated(Inputs::SOFT_AFFINITY);
            if let Err(einval) = masks.set_soft(&mask, &allowed, &online) {
                let using = &mut self.stated.uses[rule];
                using.refused.entry(einval).or_default().insert(task.pid);
                if hard.is_some() {
                    using.contradicted.insert(task.pid);
                }
            }
        }
        if hard.is_some() || soft.is_some() {
            task.cpus_ptr = masks.allowed.into();
            task.cpus_preferred = masks.preferred.into();
            task.affinity_unequal = masks.unequal;
            task.nr_cpus_allowed = if hard.is_some() { masks.allowed.weight() } else { task.nr_cpus_allowed };
        }
        if uclamp_min.is_some() || uclamp_max.is_some() {
            task.uclamp_min = uclamp_min.unwrap_or(task.uclamp_min);
            task.uclamp_max = uclamp_max.unwrap_or(task.uclamp_max);
            task.known.set_stated(Inputs::UCLAMP);
        }
    }

    /// Asks the rules about a task under its present name and number.
    fn obey(&mut self, id: TaskId, rules: &Rules) {
        let task = &self.state.tasks[id];
        let online = *self.state.topology.online();
        let (pid, comm, fair) = (task.pid, task.comm, self.books[id.index()].fair);
        let mut now = *self.stated.statement(id);
        now.asked = true;
        let joined = rules.groups_of(pid, &comm) & !now.groups;
        now.groups |= joined;
        let cpuset = rules.cpuset(now.groups);
        let bound = task.flags.contains(TaskFlags::KTHREAD) && task.nr_cpus_allowed == 1 && now.hard.is_none();
        for (at, members) in self.stated.members.iter_mut().enumerate() {
            if now.groups & (1 << at) != 0 {
                members.insert(pid);
            }
        }
        let limits = |at: usize| joined & (1 << at) != 0 && rules.groups[at].cpus.is_some();
        if !bound && (0..rules.groups.len()).any(limits) && cpuset.intersects(&online) {
            (now.hard, now.soft) = (Some(cpuset), None);
        }
        let possible = Cpumask::first_n(self.state.topology.nr_cpu_ids());
        for (at, rule) in rules.of(pid, &comm, now.groups) {
            let using = &mut self.stated.uses[at];
            using.tasks.insert(pid);
            let mut refuse = |einval| {
                using.refused.entry(einval).or_default().insert(pid);
            };
            if let Some(mask) = rule.allowed {
                let mut masks = Masks { allowed: possible, preferred: possible, unequal: false };
                match masks.set_hard(&(mask & possible), &cpuset, &online) {
                    _ if bound => refuse(Einval::Bound),
                    Ok(()) => (now.hard, now.soft) = (Some(masks.allowed), None),
                    Err(einval) => refuse(einval),
                }
            }
            if let Some(mask) = rule.preferred {
                match () {
                    () if bound => refuse(Einval::Bound),
                    () if !fair => refuse(Einval::NotFair),
                    () => now.soft = Some((mask & cpuset, at)),
                }
            }
            now.uclamp_min = rule.uclamp_min.or(now.uclamp_min);
            now.uclamp_max = rule.uclamp_max.or(now.uclamp_max);
        }
        if let Some(hard) = &mut now.hard {
            *hard = *hard & possible;
        }
        *self.stated.statement(id) = now;
    }
}
