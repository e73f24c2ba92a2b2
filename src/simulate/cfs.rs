// SPDX-License-Identifier: GPL-2.0-or-later
//! The order of a run queue: who runs next, for how long, and who takes the CPU from whom. CFS as in 5.2 to 6.5, behind
//! an interface small enough for another order.
//!
//! Left out: the skip buddy (nobody yields), NEXT_BUDDY (off by default), bandwidth; groups are assumed flat.

use crate::machine::TaskId;

/// What an order knows of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entity {
    /// Virtual run time, ns of a task of nice 0.
    pub vruntime: u64,
    /// `se.load.weight`, 1024 for nice 0.
    pub weight: u64,
    /// SCHED_IDLE.
    pub policy_idle: bool,
    /// Run time since it was last picked, ns.
    pub ran_ns: u64,
}

/// How a task comes to a run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It slept.
    Woken,
    /// It is new.
    New,
    /// It was moved while it waited.
    Moved,
}

/// What the rest of the simulation asks of a run queue's order.
pub trait Order: Default {
    /// Gives a task that was not here its place in time.
    fn place(&self, tunables: &Tunables, entity: &mut Entity, arrival: Arrival);
    /// The task's time without this run queue's, for [`Self::place`] on another.
    fn leave(&self, entity: &mut Entity);
    /// Queues a task that does not run.
    fn insert(&mut self, id: TaskId, entity: &Entity);
    /// Takes one out of the middle.
    fn remove(&mut self, id: TaskId, entity: &Entity) -> bool;
    /// Takes out who runs next.
    fn pick(&mut self, tunables: &Tunables) -> Option<TaskId>;
    /// The running task has run for so long.
    fn ran(&mut self, curr: &mut Entity, ns: u64);
    /// A tick: whether the running task has had enough.
    fn is_over(&self, tunables: &Tunables, curr: &Entity) -> bool;
    /// Whether a task that just came takes the CPU from the running one.
    fn preempts(&mut self, tunables: &Tunables, curr: (TaskId, &Entity), woken: (TaskId, &Entity)) -> bool;
    /// Tasks that wait, in their order.
    fn waiting(&self) -> impl DoubleEndedIterator<Item = TaskId>;
    /// How many wait.
    fn len(&self) -> usize;
    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The scheduler's lengths of time, which grow with the number of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunables {
    /// `sysctl_sched_latency`, ns.
    pub latency_ns: u64,
    /// `sysctl_sched_min_granularity`, ns.
    pub min_granularity_ns: u64,
    /// `sysctl_sched_wakeup_granularity`, ns.
    pub wakeup_granularity_ns: u64,
}

impl Tunables {
    /// **Source**: kernel/sched/fair.c, get_update_sysctl_factor(), SCHED_TUNABLESCALING_LOG, v5.2 to v6.1.
    pub fn of(cpus: u32) -> Self {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Self {
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
        }
    }
}

/// `sched_nr_latency`.
const NR_LATENCY: u64 = 8;
const NICE_0: u64 = 1024;

/// **Source**: kernel/sched/fair.c, calc_delta_fair().
fn delta_fair(ns: u64, weight: u64) -> u64 {
    if weight == NICE_0 { ns } else { ns * NICE_0 / weight.max(1) }
}

/// Where virtual time begins: far enough from 0 for no difference to go below it.
const BEGIN: u64 = 1 << 56;

impl Default for Cfs {
    fn default() -> Self {
        Self { min_vruntime: BEGIN, waiting: Vec::new(), weight: 0, next: None, last: None }
    }
}

/// A CFS run queue: the tasks that wait, by virtual run time.
#[derive(Debug, Clone)]
pub struct Cfs {
    min_vruntime: u64,
    /// Last is next.
    waiting: Vec<(u64, TaskId)>,
    /// Weights of those that wait.
    weight: u64,
    /// Who preempted, and who was preempted where many wait.
    next: Option<TaskId>,
    last: Option<TaskId>,
}

impl Cfs {
    fn position(&self, id: TaskId, vruntime: u64) -> usize {
        // Of the same time, who came first goes first: it is nearer to the end.
        self.waiting.partition_point(|&(other, at)| other > vruntime || (other == vruntime && at.0 > id.0))
    }

    fn first(&self) -> Option<u64> {
        self.waiting.last().map(|&(vruntime, _)| vruntime)
    }

    /// **Source**: update_min_vruntime().
    fn advance(&mut self, curr: Option<u64>) {
        let least = match (curr, self.first()) {
            (Some(curr), Some(first)) => curr.min(first),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.min_vruntime = self.min_vruntime.max(least);
    }

    /// **Source**: sched_slice(): the share of a period, which is longer where many wait.
    fn slice(&self, tunables: &Tunables, entity: &Entity, nr: u64) -> u64 {
        let period = if nr > NR_LATENCY { nr * tunables.min_granularity_ns } else { tunables.latency_ns };
        period * entity.weight / (self.weight + entity.weight).max(1)
    }

    /// **Source**: wakeup_preempt_entity().
    fn is_behind(tunables: &Tunables, curr: u64, vruntime: u64, weight: u64) -> bool {
        curr > vruntime && curr - vruntime > delta_fair(tunables.wakeup_granularity_ns, weight)
    }
}

impl Order for Cfs {
    /// **Source**: place_entity(), GENTLE_FAIR_SLEEPERS and START_DEBIT on.
    fn place(&self, tunables: &Tunables, entity: &mut Entity, arrival: Arrival) {
        match arrival {
            // A light task can have left a run queue further behind than this one has come.
            Arrival::Moved => {
                entity.vruntime = (entity.vruntime.wrapping_add(self.min_vruntime) as i64).max(0) as u64;
            }
            Arrival::Woken => {
                entity.vruntime = entity.vruntime.max(self.min_vruntime - tunables.latency_ns / 2);
            }
            Arrival::New => {
                let slice = self.slice(tunables, entity, self.waiting.len() as u64 + 1);
                entity.vruntime = self.min_vruntime + delta_fair(slice, entity.weight);
            }
        }
    }

    fn leave(&self, entity: &mut Entity) {
        entity.vruntime = entity.vruntime.wrapping_sub(self.min_vruntime);
    }

    fn insert(&mut self, id: TaskId, entity: &Entity) {
        let at = self.position(id, entity.vruntime);
        self.waiting.insert(at, (entity.vruntime, id));
        self.weight += entity.weight;
    }

    fn remove(&mut self, id: TaskId, entity: &Entity) -> bool {
        let Some(at) = self.waiting.iter().position(|&(_, other)| other == id) else { return false };
        self.waiting.remove(at);
        self.weight -= entity.weight;
        for buddy in [&mut self.next, &mut self.last] {
            if *buddy == Some(id) {
                *buddy = None;
            }
        }
        true
    }

    /// **Source**: pick_next_entity(): the one that preempted goes first, else the one that was preempted, unless that is
    /// too unfair.
    fn pick(&mut self, tunables: &Tunables) -> Option<TaskId> {
        let &(first, id) = self.waiting.last()?;
        for buddy in [self.next, self.last].into_iter().flatten() {
            let vruntime = self.waiting.iter().rev().find(|&&(_, other)| other == buddy).map(|&(vruntime, _)| vruntime);
            if vruntime.is_some_and(|vruntime| !Self::is_behind(tunables, vruntime, first, NICE_0)) {
                return Some(buddy);
            }
        }
        Some(id)
    }

    fn ran(&mut self, curr: &mut Entity, ns: u64) {
        curr.vruntime += delta_fair(ns, curr.weight);
        curr.ran_ns += ns;
        self.advance(Some(curr.vruntime));
    }

    /// **Source**: check_preempt_tick().
    fn is_over(&self, tunables: &Tunables, curr: &Entity) -> bool {
        let Some(first) = self.first() else { return false };
        let slice = self.slice(tunables, curr, self.waiting.len() as u64 + 1);
        if curr.ran_ns > slice {
            return true;
        }
        curr.ran_ns >= tunables.min_granularity_ns && curr.vruntime > first && curr.vruntime - first > slice
    }

    /// **Source**: check_preempt_wakeup(), WAKEUP_PREEMPTION and LAST_BUDDY on, NEXT_BUDDY off.
    fn preempts(&mut self, tunables: &Tunables, curr: (TaskId, &Entity), woken: (TaskId, &Entity)) -> bool {
        let ((curr_id, curr), (id, woken)) = (curr, woken);
        if curr.policy_idle != woken.policy_idle {
            return curr.policy_idle;
        }
        let preempts = !woken.policy_idle && Self::is_behind(tunables, curr.vruntime, woken.vruntime, woken.weight);
        if preempts {
            self.next = Some(id);
            // Those that wait, and the running one.
            if self.waiting.len() as u64 + 1 >= NR_LATENCY {
                self.last = Some(curr_id);
            }
        }
        preempts
    }

    fn waiting(&self) -> impl DoubleEndedIterator<Item = TaskId> {
        self.waiting.iter().rev().map(|&(_, id)| id)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(vruntime: u64) -> Entity {
        Entity { vruntime, weight: 1024, ..Entity::default() }
    }

    #[test]
    fn lengths_grow_with_the_machine() {
        assert_eq!(Tunables::of(1).latency_ns, 6_000_000);
        assert_eq!(Tunables::of(80).latency_ns, 24_000_000);
        assert_eq!(Tunables::of(4).wakeup_granularity_ns, 3_000_000);
    }

    #[test]
    fn a_sleeper_gets_half_a_period_at_most_and_a_new_task_pays_for_a_slice() {
        let tunables = Tunables::of(8);
        let mut cfs = Cfs::default();
        let mut curr = entity(BEGIN);
        cfs.ran(&mut curr, 1_000_000_000);
        let mut sleeper = entity(BEGIN);
        cfs.place(&tunables, &mut sleeper, Arrival::Woken);
        assert_eq!(sleeper.vruntime, BEGIN + 1_000_000_000 - 12_000_000);
        let mut new = entity(0);
        cfs.place(&tunables, &mut new, Arrival::New);
        assert_eq!(new.vruntime, BEGIN + 1_000_000_000 + 24_000_000);
        let mut moved = entity(BEGIN - 5);
        Cfs::default().leave(&mut moved);
        cfs.place(&tunables, &mut moved, Arrival::Moved);
        assert_eq!(moved.vruntime, BEGIN + 1_000_000_000 - 5);
        assert!(cfs.preempts(&tunables, (TaskId(1), &curr), (TaskId(9), &sleeper)));
        assert!(!cfs.preempts(&tunables, (TaskId(1), &curr), (TaskId(9), &new)));
    }

    #[test]
    fn the_least_run_goes_first_and_weight_counts() {
        let tunables = Tunables::of(1);
        let mut cfs = Cfs::default();
        for (id, vruntime) in [(1, 50), (2, 10), (3, 10)] {
            cfs.insert(TaskId(id), &entity(vruntime));
        }
        let mut order = Vec::new();
        while let Some(id) = cfs.pick(&tunables) {
            assert!(cfs.remove(id, &entity(0)));
            order.push(id.0);
        }
        assert_eq!(order, [2, 3, 1]);
        let mut light = Entity { weight: 512, ..entity(0) };
        cfs.ran(&mut light, 1_000);
        assert_eq!(light.vruntime, 2_000);
    }

    #[test]
    fn who_was_preempted_comes_back_where_many_wait() {
        let tunables = Tunables::of(1);
        for (waiting, expected) in [(6, 2), (7, 1)] {
            let mut cfs = Cfs::default();
            for id in 0..waiting {
                cfs.insert(TaskId(2 + id), &entity(1_000));
            }
            // The one that preempts is picked and sleeps, the preempted one waits, a little behind the others.
            assert!(cfs.preempts(&tunables, (TaskId(1), &entity(2_000_000)), (TaskId(2 + waiting - 1), &entity(0))));
            assert!(cfs.remove(TaskId(2 + waiting - 1), &entity(0)));
            cfs.insert(TaskId(1), &entity(500_000));
            assert_eq!(cfs.pick(&tunables), Some(TaskId(expected)), "{waiting}");
        }
    }

    #[test]
    fn a_slice_ends_when_others_wait() {
        let tunables = Tunables::of(1);
        let mut cfs = Cfs::default();
        let mut curr = entity(0);
        cfs.ran(&mut curr, 100_000_000);
        assert!(!cfs.is_over(&tunables, &curr));
        cfs.insert(TaskId(1), &entity(100_000_000));
        assert!(cfs.is_over(&tunables, &curr));
        curr.ran_ns = 1_000_000;
        assert!(!cfs.is_over(&tunables, &curr));
    }
}
