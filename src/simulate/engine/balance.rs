// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing, simplified.
//!
//! What is as in the kernel: who balances when (`machine`'s intervals of a balanced machine; the first idle CPU of a group,
//! else its first; idle CPUs when a busy one's tick asks for it), that nr_idle_scan is written there, that only tasks that
//! wait are moved, allowed ones, and hot ones (ran within half a millisecond) only after failures; that new-idle balancing
//! needs a long average idle time and an overloaded run queue, and takes one task.
//!
//! What is simplified: groups are compared by numbers of tasks and idle CPUs, not by load and utilisation. A group with
//! more tasks than CPUs gives its excess to one with idle CPUs; two overloaded groups meet in the middle where the
//! difference is above imbalance_pct; groups with room give half of the difference, where siblings are preferred, and half
//! of the difference in idle CPUs elsewhere; between nodes a difference of two tasks is let be. A running task is pushed
//! only if that failed three times, as by the stopper.

use super::wake::MIGRATION_COST_NS;
use super::{Sim, What};
use crate::cpumask::Cpumask;
use crate::fair::Step;
use crate::machine::{TaskId, intervals, nr_idle_scan};
use crate::simulate::cfs::Order;
use crate::topology::{SdFlags, Topology};
use crate::units::Cpu;

/// Failures after which hot tasks are moved, and after which running ones.
const HOT_AFTER: u32 = 1;
const PUSH_AFTER: u32 = 3;
/// Most tasks that one pass moves (`sysctl_sched_nr_migrate`).
const MOVES_MAX: u32 = 32;

#[derive(Debug, Clone, Default)]
struct CpuBalance {
    next: u64,
    /// Parallel to the CPU's hierarchy.
    last: Vec<u64>,
    failed: Vec<u32>,
}

/// When which CPU balances, in jiffies.
#[derive(Debug, Clone, Default)]
pub(super) struct Balancer {
    cpus: Vec<CpuBalance>,
    nohz_next: u64,
    /// An idle CPU is on its way to balance for the others.
    is_kicked: bool,
    /// By domain, of an idle and of a busy CPU.
    intervals: Vec<[u64; 2]>,
    nr_idle_scan: Vec<Option<u32>>,
}

impl Balancer {
    pub(super) fn new(topology: &Topology, hz: u32, jiffies: u64) -> Self {
        let cpu = |cpu: Cpu| {
            let levels = topology.hierarchy(cpu).len();
            CpuBalance { next: jiffies + u64::from(cpu.0) % 4, last: vec![jiffies; levels], failed: vec![0; levels] }
        };
        Self {
            cpus: topology.cpus().map(cpu).collect(),
            nohz_next: jiffies,
            is_kicked: false,
            intervals: topology.domains().iter().map(|domain| intervals(&domain.span, hz)).collect(),
            nr_idle_scan: vec![None; topology.nr_shared()],
        }
    }
}

/// What is known of a group of CPUs.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    span: Cpumask,
    tasks: u32,
    idle: u32,
    weight: u32,
}

impl Group {
    fn is_overloaded(&self) -> bool {
        self.tasks > self.weight
    }
}

impl Sim<'_> {
    /// **Source**: trigger_load_balance(), nohz_balancer_kick(): the first idle CPU gets an interrupt.
    pub(super) fn balance_at_tick(&mut self, cpu: Cpu) {
        let now = self.state.jiffies;
        if now >= self.balancer.cpus[cpu.index()].next {
            self.rebalance(cpu, false);
        }
        let idle = *self.topology.online() & self.state.rq.curr_idle;
        if idle.is_empty() || now < self.balancer.nohz_next {
            return;
        }
        let llc = self.topology.sd_llc(cpu).map_or_else(|| Cpumask::of(cpu), |sd| self.domain_span(sd));
        let busy = llc.and_not(&self.state.rq.curr_idle).weight();
        if self.state.rq.nr_running[cpu.index()] < 2 && busy <= 1 {
            return;
        }
        // Another kick before that one is answered is none (NOHZ_BALANCE_KICK).
        self.balancer.nohz_next = now + 1;
        let Some(ilb) = idle.first().filter(|_| !std::mem::replace(&mut self.balancer.is_kicked, true)) else { return };
        let reach = self.reach_ns(ilb);
        self.at(self.now_ns + reach, What::Nohz(ilb));
    }

    /// **Source**: nohz_idle_balance(): of all idle CPUs, from the next one on, its own last; over when it has work itself.
    pub(super) fn nohz_balance(&mut self, ilb: Cpu) {
        self.balancer.is_kicked = false;
        let now = self.state.jiffies;
        let idle = *self.topology.online() & self.state.rq.curr_idle;
        let mut next = now + 60 * u64::from(self.setup.hz);
        let (before, after): (Vec<Cpu>, Vec<Cpu>) = idle.iter().partition(|&cpu| cpu <= ilb);
        for cpu in after.into_iter().chain(before) {
            if self.state.rq.nr_running[ilb.index()] > 0 {
                next = now + 1;
                break;
            }
            if now >= self.balancer.cpus[cpu.index()].next && self.is_free(cpu) {
                self.rebalance(cpu, true);
            }
            next = next.min(self.balancer.cpus[cpu.index()].next);
        }
        self.balancer.nohz_next = next.max(now + 1);
    }

    /// **Source**: rebalance_domains().
    fn rebalance(&mut self, cpu: Cpu, idle: bool) {
        let topology = self.topology.clone();
        let now = self.state.jiffies;
        let mut next = now + 60 * u64::from(self.setup.hz);
        for (level, &sd) in topology.hierarchy(cpu).iter().enumerate() {
            let interval = self.balancer.intervals[sd][usize::from(!idle)];
            let mut balances = true;
            if now >= self.balancer.cpus[cpu.index()].last[level] + interval {
                balances = self.should_we_balance(cpu, level);
                if balances {
                    if topology.sd_llc(cpu) == Some(sd) {
                        self.write_nr_idle_scan(cpu);
                    }
                    self.load_balance(cpu, level);
                }
                self.balancer.cpus[cpu.index()].last[level] = now;
            }
            next = next.min(self.balancer.cpus[cpu.index()].last[level] + interval);
            if !balances {
                break;
            }
        }
        self.balancer.cpus[cpu.index()].next = next;
    }

    fn is_free(&self, cpu: Cpu) -> bool {
        self.is_idle(cpu) && self.state.rq.nr_running[cpu.index()] == 0 && !self.state.rq.ttwu_pending.test(cpu)
    }

    fn group_of(&self, cpu: Cpu, level: usize) -> Cpumask {
        let below = level.checked_sub(1).and_then(|below| self.topology.hierarchy(cpu).get(below));
        below.map_or_else(|| Cpumask::of(cpu), |&sd| self.domain_span(sd))
    }

    fn should_we_balance(&self, cpu: Cpu, level: usize) -> bool {
        let group = self.group_of(cpu, level);
        let first = group.iter().find(|&cpu| self.is_free(cpu)).or_else(|| group.first());
        first == Some(cpu)
    }

    fn write_nr_idle_scan(&mut self, cpu: Cpu) {
        let (Some(shared), Some(sd)) = (self.topology.llc_shared(cpu), self.topology.sd_llc(cpu)) else { return };
        let domain = self.topology.domain(sd);
        let capacity = &self.state.rq.cpu_capacity_orig;
        let sum = domain.span.iter().map(|cpu| self.loads.cfs[cpu.index()].util(capacity[cpu.index()])).sum();
        let value = nr_idle_scan(sum, u64::from(domain.span.weight()), u64::from(domain.imbalance_pct));
        if self.balancer.nr_idle_scan[shared] != Some(value) {
            self.balancer.nr_idle_scan[shared] = Some(value);
            self.tell(&Step::Balance { shared, nr_idle_scan: value });
        }
    }

    fn look_at(&self, span: Cpumask) -> Group {
        let mut group = Group { span, ..Group::default() };
        for cpu in span.iter() {
            group.weight += 1;
            group.tasks += self.state.rq.nr_running[cpu.index()];
            group.idle += u32::from(self.is_free(cpu));
        }
        group
    }

    /// The local group, and the busiest other one.
    fn groups(&self, cpu: Cpu, level: usize) -> Option<(Group, Group)> {
        let span = self.domain_span(self.topology.hierarchy(cpu)[level]) & *self.topology.online();
        let local = self.group_of(cpu, level);
        let mut rest = span.and_not(&local);
        let mut busiest: Option<Group> = None;
        while let Some(first) = rest.first() {
            let one = self.group_of(first, level) & rest;
            rest = rest.and_not(&one);
            rest.clear(first);
            let group = self.look_at(one);
            // More tasks a CPU first; of the same, fewer idle CPUs.
            let key = |group: &Group| {
                (u64::from(group.tasks) * 1024 / u64::from(group.weight.max(1)), group.weight - group.idle)
            };
            if busiest.is_none_or(|busiest| key(&group) > key(&busiest)) {
                busiest = Some(group);
            }
        }
        Some((self.look_at(local & span), busiest?))
    }

    /// How many tasks should move. **Source**: calculate_imbalance(), by numbers alone.
    fn imbalance(&self, cpu: Cpu, level: usize, local: &Group, busiest: &Group) -> u32 {
        let sd = self.topology.domain(self.topology.hierarchy(cpu)[level]);
        if busiest.is_overloaded() {
            if !local.is_overloaded() {
                return (busiest.tasks - busiest.weight).min(local.idle.max(1));
            }
            let (here, there) = (
                u64::from(local.tasks) * u64::from(busiest.weight),
                u64::from(busiest.tasks) * u64::from(local.weight),
            );
            if there * 100 <= here * u64::from(sd.imbalance_pct) {
                return 0;
            }
            return ((there - here) / 2 / u64::from(local.weight.max(1))) as u32;
        }
        if local.is_overloaded() {
            return 0;
        }
        let child = level.checked_sub(1).map(|below| self.topology.domain(self.topology.hierarchy(cpu)[below]));
        let siblings = child.is_some_and(|child| child.flags.contains(SdFlags::PREFER_SIBLING));
        let moves = if siblings && busiest.tasks > local.tasks + 1 {
            (busiest.tasks - local.tasks) / 2
        } else if busiest.weight == 1 && local.weight == 1 {
            u32::from(busiest.tasks > 1 && local.tasks == 0)
        } else {
            local.idle.saturating_sub(busiest.idle) / 2
        };
        if sd.flags.contains(SdFlags::NUMA) && moves <= 2 { 0 } else { moves }
    }

    fn load_balance(&mut self, cpu: Cpu, level: usize) {
        let Some((local, busiest)) = self.groups(cpu, level) else { return };
        let wanted = self.imbalance(cpu, level, &local, &busiest).min(MOVES_MAX);
        if wanted == 0 {
            self.balancer.cpus[cpu.index()].failed[level] = 0;
            return;
        }
        let failed = self.balancer.cpus[cpu.index()].failed[level];
        let mut moved = 0;
        while moved < wanted {
            let Some((id, from)) = self.candidate(&busiest.span, cpu, failed > HOT_AFTER) else { break };
            self.pull(id, from, cpu);
            moved += 1;
        }
        if moved > 0 {
            self.balancer.cpus[cpu.index()].failed[level] = 0;
        } else if failed >= PUSH_AFTER && self.is_free(cpu) {
            self.balancer.cpus[cpu.index()].failed[level] = 0;
            self.push_one(&busiest.span, cpu);
        } else {
            self.balancer.cpus[cpu.index()].failed[level] += 1;
        }
    }

    /// A task that waits in the longest run queue of `span` and may move to `to`.
    fn candidate(&self, span: &Cpumask, to: Cpu, also_hot: bool) -> Option<(TaskId, Cpu)> {
        let waits = |cpu: &Cpu| {
            let book = &self.cpus[cpu.index()];
            // The only task of an idle CPU is on its way there.
            book.queue.len() > usize::from(book.curr.is_none())
        };
        let nr = |cpu: Cpu| self.state.rq.nr_running[cpu.index()];
        let mut tried = Cpumask::EMPTY;
        loop {
            let left = span.and_not(&tried);
            let from = left.iter().filter(waits).max_by_key(|&cpu| (nr(cpu), std::cmp::Reverse(cpu)))?;
            tried.set(from);
            // From the tail: those that ran least recently are last in virtual time as often as not.
            let found = self.cpus[from.index()].queue.waiting().rev().find(|&id| self.may_move(id, from, to, also_hot));
            if let Some(id) = found {
                return Some((id, from));
            }
        }
    }

    /// **Source**: can_migrate_task(), task_hot().
    fn may_move(&self, id: TaskId, from: Cpu, to: Cpu, also_hot: bool) -> bool {
        let book = &self.books[id.index()];
        let hot = book.ran_on == Some(from) && self.now_ns - book.ran_until_ns < MIGRATION_COST_NS;
        self.state.tasks[id].cpus_ptr.test(to) && (also_hot || !hot || self.topology.smt_mask(from).test(to))
    }

    fn pull(&mut self, id: TaskId, from: Cpu, to: Cpu) {
        self.book_run(from);
        self.stats.pulled[self.topology.distance(from, to) as usize] += 1;
        self.move_queued(id, from, to);
        if self.is_idle(to) {
            let exit = self.exit_ns(to, false);
            self.kick(to, self.now_ns + exit);
        }
    }

    fn push_one(&mut self, span: &Cpumask, to: Cpu) {
        let allowed = |&cpu: &Cpu| self.cpus[cpu.index()].curr.is_some_and(|id| self.state.tasks[id].cpus_ptr.test(to));
        let nr = |cpu: Cpu| self.state.rq.nr_running[cpu.index()];
        let from = span.iter().filter(allowed).max_by_key(|&cpu| (nr(cpu), std::cmp::Reverse(cpu)));
        if let Some(from) = from {
            self.stats.pulled[self.topology.distance(from, to) as usize] += 1;
            self.push_running(from, to);
            self.go_on(from);
        }
    }

    /// What looking around a domain of so many CPUs costs: its share of what the CPU's domains cost together, if known.
    fn newidle_cost(&self, cpu: Cpu, weight: u32) -> u64 {
        let known = self.setup.max_idle_balance_cost_ns.get(cpu.index());
        known.map_or(self.cost.balance_ns_per_cpu * u64::from(weight), |&all| {
            let spans =
                self.topology.hierarchy(cpu).iter().map(|&sd| u64::from(self.topology.domain(sd).span.weight()));
            all * u64::from(weight) / spans.sum::<u64>().max(1)
        })
    }

    /// A CPU that is about to go idle looks for a task to take; whether it has one now.
    ///
    /// **Source**: newidle_balance(): v5.11 wants an average idle time of half a millisecond, since 5.17 one that pays for
    /// what looking around costs.
    pub(super) fn newidle(&mut self, cpu: Cpu) -> bool {
        if self.overloaded == 0 {
            return false;
        }
        let avg_idle = self.state.rq.avg_idle_ns[cpu.index()];
        let by_cost = self.setup.release >= (5, 17);
        if !by_cost && avg_idle < MIGRATION_COST_NS {
            return false;
        }
        let topology = self.topology.clone();
        let mut spent = 0;
        for &sd in topology.hierarchy(cpu) {
            let domain = topology.domain(sd);
            let cost = self.newidle_cost(cpu, domain.span.weight());
            if by_cost && avg_idle < spent + cost {
                break;
            }
            spent += cost;
            if !domain.flags.contains(SdFlags::BALANCE_NEWIDLE) {
                continue;
            }
            let mut span = domain.span & *topology.online();
            span.clear(cpu);
            if let Some((id, from)) = self.candidate(&span, cpu, false) {
                self.book_run(from);
                self.stats.pulled[topology.distance(from, cpu) as usize] += 1;
                self.move_queued(id, from, cpu);
                if self.setup.max_idle_balance_cost_ns.is_empty() {
                    self.cpus[cpu.index()].debt_ns += spent;
                }
                return true;
            }
        }
        false
    }
}
