// SPDX-License-Identifier: GPL-2.0-or-later
//! Affinity that nobody traced: a program that keeps to some CPUs while others stand idle is taken to be bound to them.
//!
//! Tasks that come from one exec share their affinity (fork copies it, and who sets it does so before the exec or for all
//! threads, more often than not). Where the kernel stacks one of them on a busy CPU although CPUs that the family never
//! used are idle, its affinity is the likeliest reason; after a few such placements it is assumed.

use crate::cpumask::Cpumask;
use crate::inputs::Inputs;
use crate::machine::apply::Machine;
use crate::machine::book::Call;
use crate::machine::mask::SmallMask;
use crate::machine::{TaskId, TaskMask};
use crate::units::Cpu;

/// Placements on a busy CPU that it takes to assume an affinity.
const ENOUGH: u32 = 8;
/// The same for a single CPU: such tasks are not even decided about any more.
const ENOUGH_FOR_ONE: u32 = 12;

/// Where a task, or a family of tasks, keeps to.
#[derive(Debug, Clone, Default)]
pub(super) struct Habit {
    /// CPUs that it was placed on or ran on.
    seen: SmallMask,
    /// Placements on a busy CPU while others stood idle, since a CPU was seen for the first time.
    stacked: u32,
}

impl Habit {
    pub(super) const NONE: Self = Self { seen: SmallMask::EMPTY, stacked: 0 };

    fn see(&mut self, cpu: Cpu) {
        if !self.seen.test(cpu) {
            self.seen.set(cpu);
            self.stacked = 0;
        }
    }

    /// `idle` CPUs it could have gone to instead.
    fn stack(&mut self, idle: &Cpumask) {
        self.stacked += u32::from(!idle.and_not(&self.seen.mask()).is_empty());
    }

    fn affinity(&self) -> Option<Cpumask> {
        let enough = if self.seen.weight() == 1 { ENOUGH_FOR_ONE } else { ENOUGH };
        (self.stacked >= enough).then(|| self.seen.mask())
    }
}

/// Tasks that are assumed to share their affinity.
#[derive(Debug, Clone, Default)]
struct Family {
    members: u32,
    habit: Habit,
}

/// All families, by the index that a task's book has.
#[derive(Debug, Clone, Default)]
pub(super) struct Families {
    list: Vec<Family>,
    free: Vec<u32>,
}

impl Families {
    pub(super) fn found(&mut self) -> u32 {
        let family = Family { members: 1, ..Family::default() };
        match self.free.pop() {
            Some(at) => {
                self.list[at as usize] = family;
                at
            }
            None => {
                self.list.push(family);
                (self.list.len() - 1) as u32
            }
        }
    }

    pub(super) fn join(&mut self, at: u32) -> u32 {
        if let Some(family) = self.list.get_mut(at as usize) {
            family.members += 1;
        }
        at
    }

    pub(super) fn leave(&mut self, at: u32) {
        let Some(family) = self.list.get_mut(at as usize) else { return };
        family.members = family.members.saturating_sub(1);
        if family.members == 0 {
            self.free.push(at);
        }
    }

    fn habit(&mut self, at: u32) -> Option<&mut Habit> {
        self.list.get_mut(at as usize).map(|family| &mut family.habit)
    }
}

impl Machine {
    /// The task runs on `cpu`.
    pub(super) fn seen_on(&mut self, id: TaskId, cpu: Cpu) {
        if self.config.probed() {
            return;
        }
        let book = &mut self.books[id.index()];
        book.habit.see(cpu);
        if let Some(family) = self.families.habit(book.family) {
            family.see(cpu);
        }
    }

    /// What the choice of a call tells of the wakee's affinity.
    pub(super) fn weigh_affinity(&mut self, id: TaskId, call: &Call, cpu: Cpu) {
        if self.config.probed() || !self.state.tasks[id].known.assumed.contains(Inputs::AFFINITY) {
            return;
        }
        self.seen_on(id, cpu);
        let Some(shared) = self.state.topology.llc_shared(cpu) else { return };
        let scans = !self.config.has_sis_util() || self.balancer.told(shared).is_some_and(|nr| nr > 0);
        if !scans || call.idle.test(cpu) {
            return;
        }
        let idle = call.idle.mask() & *self.state.topology.shared_span(shared);
        let book = &mut self.books[id.index()];
        book.habit.stack(&idle);
        if let Some(family) = self.families.habit(book.family) {
            family.stack(&idle);
        }
    }

    /// The affinity of a wakee before it is decided about.
    pub(super) fn assume_affinity(&mut self, id: TaskId) {
        if self.config.probed() || !self.state.tasks[id].known.assumed.contains(Inputs::AFFINITY) {
            return;
        }
        let book = &self.books[id.index()];
        let family = self.families.habit(book.family).and_then(|habit| habit.affinity());
        let mask = family.or(book.habit.affinity()).unwrap_or(*self.state.topology.online());
        let task = &mut self.state.tasks[id];
        if task.cpus_ptr != mask {
            task.nr_cpus_allowed = mask.weight();
            task.cpus_ptr = TaskMask::from(mask);
            task.cpus_preferred = task.cpus_ptr.clone();
        }
    }

    /// CPUs that are idle as available_idle_cpu() would tell.
    pub(super) fn idle_cpus(&self) -> Cpumask {
        let mut idle = *self.state.topology.online() & self.state.rq.curr_idle;
        for (at, cpu) in self.cpus.iter().enumerate() {
            if (cpu.now.nr != 0 || cpu.now.nr_listed != 0)
                && let Some(cpu) = Cpu::new(at)
            {
                idle.clear(cpu);
            }
        }
        idle
    }
}
