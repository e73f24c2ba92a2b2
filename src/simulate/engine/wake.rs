// SPDX-License-Identifier: GPL-2.0-or-later
//! Wakeups: a CPU is chosen, and the task gets there. Forks and execs, too.

use super::{Place, Sim, What};
use crate::fair::{Decision, Step};
use crate::inputs::Provenance;
use crate::machine::TaskId;
use crate::simulate::cfs::{Arrival, Order};
use crate::simulate::program::{How, SpecId};
use crate::topology::Distance;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// `max_idle_balance_cost` is never below this, ns (`sysctl_sched_migration_cost`).
pub(super) const MIGRATION_COST_NS: u64 = 500_000;

impl Sim<'_> {
    /// The running task of `cpu` wakes another; what that costs it.
    pub(super) fn wake_from_task(&mut self, id: TaskId, cpu: Cpu, how: How) -> u64 {
        self.books[id.index()].woken_ns = Some(self.now_ns);
        self.wake(id, cpu, how.sync, !how.softirq, 0)
    }

    /// Wakes a task; what that costs in the context of `this_cpu`, `delay_ns` from now.
    fn wake(&mut self, id: TaskId, this_cpu: Cpu, sync: bool, in_task: bool, delay_ns: u64) -> u64 {
        let prev_cpu = self.state.tasks[id].task_cpu;
        self.tell_waking(id, this_cpu, prev_cpu);
        let task = &self.state.tasks[id];
        let (cpu, scan) = if task.nr_cpus_allowed > 1 {
            let (decision, scan) = self.decide(id, this_cpu, prev_cpu, WakeKind::Ttwu, sync, in_task);
            let bin = self.bin();
            let moved = self.topology.distance(prev_cpu, decision.final_cpu);
            self.stats.decided(&decision, moved, bin);
            self.stats.wrong += u64::from(decision.is_outside(&self.state.tasks[id].cpus_ptr));
            (decision.final_cpu, scan)
        } else {
            self.stats.wakeups += 1;
            self.stats.woken_to[Distance::Same as usize] += 1;
            (task.cpus_ptr.first().unwrap_or(prev_cpu), 0)
        };
        let local = cpu == this_cpu;
        let cost = scan + if local { self.cost.wakeup_local_ns } else { self.cost.wakeup_remote_ns };
        self.put_woken(id, prev_cpu, cpu, this_cpu, delay_ns + cost);
        cost
    }

    /// Asks the implementation; its answer, and how long it searched by its own declared clock.
    fn decide(
        &mut self,
        p: TaskId,
        this_cpu: Cpu,
        prev_cpu: Cpu,
        kind: WakeKind,
        sync: bool,
        in_task: bool,
    ) -> (Decision, u64) {
        let current = self.state.rq.curr[this_cpu.index()];
        self.book_run(this_cpu);
        self.show_task(p, prev_cpu, this_cpu != prev_cpu);
        self.show_task(current, this_cpu, sync && this_cpu != prev_cpu);
        let wakeup = Wakeup { p, current, this_cpu, prev_cpu, kind, sync, in_task, known: Provenance::TRACED };
        let clock = |sim: &Self| sim.implementation.hidden().map(|hidden| hidden.clock.now_ns);
        let before = clock(self);
        let decision = self.implementation.select_task_rq(&self.state, &wakeup, None);
        let scan = match (before, clock(self)) {
            (Some(before), Some(after)) => after.wrapping_sub(before),
            _ => u64::from(decision.probes) * self.cost.probe_llc_ns,
        };
        self.stats.scan_ns += scan;
        self.tell_decision(&wakeup, &decision);
        (decision, scan)
    }

    /// A task's averages as of its last update.
    fn show_task(&mut self, id: TaskId, cpu: Cpu, asks: bool) {
        if id.index() < self.cpus.len() {
            return;
        }
        let load_avg = self.loads.entities[id.index()].avg.load_avg;
        let h_load = self.loads.h_load(load_avg, cpu, self.state.jiffies, asks);
        let entity = &self.loads.entities[id.index()];
        let task = &mut self.state.tasks[id];
        task.load_avg = load_avg;
        task.h_load = h_load;
        task.util_avg = entity.avg.util_avg;
        task.runnable_avg = entity.avg.runnable_avg;
        task.util_est_enqueued = entity.util_est;
        task.util_est_ewma = entity.util_est_ewma;
        if task.last_update_time_ns != 0 {
            task.last_update_time_ns = entity.avg.last_update_ns.max(1);
        }
    }

    /// The task goes to the run queue of `cpu`, or on its wake list; the CPU hears of it after `delay_ns`.
    ///
    /// **Source**: ttwu_queue_cond(): the wake list where no cache is shared, since 6.0 also of an idle CPU.
    fn put_woken(&mut self, id: TaskId, prev_cpu: Cpu, cpu: Cpu, this_cpu: Cpu, delay_ns: u64) {
        let moved = prev_cpu != cpu;
        let mut entity = self.books[id.index()].entity;
        if moved {
            self.cpus[prev_cpu.index()].queue.leave(&mut entity);
            self.books[id.index()].entity = entity;
            self.state.tasks[id].task_cpu = cpu;
            let comm = self.books[id.index()].comm;
            self.by_comm[comm].migrations += 1;
        }
        let far = !self.topology.cpus_share_cache(this_cpu, cpu);
        let empty = self.state.rq.nr_running[cpu.index()] == 0;
        let listed = cpu != this_cpu && (far || (empty && self.setup.release >= (6, 0)));
        if listed {
            self.cpus[cpu.index()].listed += 1;
            self.state.rq.ttwu_pending.set(cpu);
            self.books[id.index()].place = Place::Listed;
            let reach = self.reach_ns(cpu);
            self.at(self.now_ns + delay_ns + reach, What::Land(cpu, id));
            self.books[id.index()].moved = moved;
            return self.settle(cpu);
        }
        self.activate(id, cpu, moved, Arrival::Woken);
        self.check_preempt(id, cpu, this_cpu, delay_ns);
    }

    /// From sending an interrupt to its handler.
    pub(super) fn reach_ns(&self, cpu: Cpu) -> u64 {
        let book = &self.cpus[cpu.index()];
        match (book.curr, book.idle.depth) {
            (None, 0) => 0,
            (None, _) => self.cost.ipi_ns + self.exit_ns(cpu, false),
            (Some(_), _) => self.cost.ipi_ns,
        }
    }

    /// The task is on the run queue from now on. **Source**: ttwu_do_activate(), enqueue_task_fair().
    fn activate(&mut self, id: TaskId, cpu: Cpu, moved: bool, arrival: Arrival) {
        self.book_run(cpu);
        if arrival == Arrival::Woken {
            self.leave_idle(cpu);
        }
        let tunables = self.tunables;
        let book = &mut self.books[id.index()];
        let queue = &mut self.cpus[cpu.index()].queue;
        if moved {
            queue.place(&tunables, &mut book.entity, Arrival::Moved);
        }
        queue.place(&tunables, &mut book.entity, arrival);
        queue.insert(id, &book.entity);
        book.place = Place::Queued;
        self.state.tasks[id].on_rq = true;
        self.count(cpu, id, u32::wrapping_add);
        self.loads.enqueue(id.index(), cpu, self.now_ns, &self.state.rq.curr_idle);
        self.show(cpu);
        self.settle(cpu);
        self.tell_wakeup(id, cpu, arrival == Arrival::New);
    }

    /// A task that waited for its CPU when the simulation began.
    pub(super) fn begin_queued(&mut self, id: TaskId) {
        let cpu = self.state.tasks[id].task_cpu;
        self.activate(id, cpu, false, Arrival::New);
        self.kick(cpu, self.now_ns);
    }

    /// **Source**: ttwu_do_wakeup(): update_avg(), then the clamp.
    fn leave_idle(&mut self, cpu: Cpu) {
        let at = cpu.index();
        let stamp = std::mem::take(&mut self.state.rq.idle_stamp_ns[at]);
        if stamp <= 1 {
            return;
        }
        let idle_ns = self.now_ns.saturating_sub(stamp);
        let avg = self.state.rq.avg_idle_ns[at] as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        let cost = self.setup.max_idle_balance_cost_ns.get(at).copied().unwrap_or(0);
        self.state.rq.avg_idle_ns[at] = (avg.max(0) as u64).min(2 * cost.max(MIGRATION_COST_NS));
        self.tell(&Step::LeaveIdle { cpu, idle_ns });
    }

    /// A queued task makes an idle CPU look, and may take a busy one.
    fn check_preempt(&mut self, id: TaskId, cpu: Cpu, this_cpu: Cpu, delay_ns: u64) {
        let at = cpu.index();
        let reach = match cpu == this_cpu {
            false => self.reach_ns(cpu),
            true if self.setup.idle_exits.is_some() && self.is_idle(cpu) => self.exit_ns(cpu, true),
            true => 0,
        };
        match self.cpus[at].curr {
            None => self.kick(cpu, self.now_ns + delay_ns + reach),
            Some(curr) => {
                let tunables = self.tunables;
                let (running, woken) = (self.books[curr.index()].entity, self.books[id.index()].entity);
                if self.cpus[at].queue.preempts(&tunables, (curr, &running), (id, &woken)) {
                    self.stats.preempted += 1;
                    self.cpus[at].need_resched = true;
                    if cpu != this_cpu {
                        self.kick(cpu, self.now_ns + delay_ns + reach);
                    }
                }
            }
        }
    }

    pub(super) fn kick(&mut self, cpu: Cpu, ns: u64) {
        if !std::mem::replace(&mut self.cpus[cpu.index()].kicked, true) {
            self.at(ns, What::Kick(cpu));
        }
    }

    /// The interrupt for a CPU's wake list is there.
    pub(super) fn land(&mut self, cpu: Cpu, id: TaskId) {
        let book = &mut self.cpus[cpu.index()];
        book.listed -= 1;
        let pending = book.listed > 0;
        self.state.rq.ttwu_pending.assign(cpu, pending);
        let moved = std::mem::take(&mut self.books[id.index()].moved);
        self.activate(id, cpu, moved, Arrival::Woken);
        if let Some(curr) = self.cpus[cpu.index()].curr {
            let tunables = self.tunables;
            let (running, woken) = (self.books[curr.index()].entity, self.books[id.index()].entity);
            if self.cpus[cpu.index()].queue.preempts(&tunables, (curr, &running), (id, &woken)) {
                self.stats.preempted += 1;
                self.cpus[cpu.index()].need_resched = true;
            }
        }
        self.look(cpu);
    }

    /// A sleeping task's timer expires on the CPU where it went to sleep.
    pub(super) fn timer(&mut self, id: TaskId) {
        let cpu = self.state.tasks[id].task_cpu;
        match self.interrupt_delay(cpu) {
            0 => self.fire(id, cpu, self.now_ns),
            ns => self.at(self.now_ns + ns, What::Fire(id, cpu, self.now_ns)),
        }
    }

    /// How long a CPU needs to wake for an interrupt.
    fn interrupt_delay(&self, cpu: Cpu) -> u64 {
        let book = &self.cpus[cpu.index()];
        if book.curr.is_none() && self.setup.idle_exits.is_none() { book.idle.exit_ns } else { 0 }
    }

    /// How long an idle CPU takes to begin: its idle state's exit, or as recorded.
    pub(super) fn exit_ns(&self, cpu: Cpu, is_local: bool) -> u64 {
        let book = &self.cpus[cpu.index()];
        match &self.setup.idle_exits {
            None => book.idle.exit_ns,
            Some(exits) => exits.draw(is_local, self.now_ns - book.booked_ns, book.exit_draw),
        }
    }

    /// The timer's handler.
    pub(super) fn fire(&mut self, id: TaskId, cpu: Cpu, since_ns: u64) {
        self.books[id.index()].woken_ns = Some(since_ns);
        let cost = self.wake(id, cpu, false, false, self.cost.interrupt_ns);
        self.end_of_interrupt(cpu, cost + self.cost.interrupt_ns);
    }

    /// Something from outside wants a channel to have a token.
    pub(super) fn arrive(&mut self, source: u32) {
        let cpu = self.workload.arrivals[source as usize].cpu;
        match self.interrupt_delay(cpu) {
            0 => self.arrived(source, self.now_ns),
            ns => self.at(self.now_ns + ns, What::Arrived(source, self.now_ns)),
        }
        self.next_arrival(source);
    }

    pub(super) fn arrived(&mut self, source: u32, since_ns: u64) {
        let workload = self.workload;
        let source = &workload.arrivals[source as usize];
        self.signalled += 1;
        let channel = &mut self.channels[source.channel];
        let cost = match channel.waiters.pop_front() {
            None => {
                channel.tokens += 1;
                if let Some(times) = &mut channel.times {
                    times.push_back(since_ns);
                }
                0
            }
            Some(wakee) => {
                self.delivered += 1;
                let book = &mut self.books[wakee.index()];
                (book.token_ns, book.waits, book.woken_ns) = (since_ns, false, Some(since_ns));
                self.wake(wakee, source.cpu, false, false, self.cost.interrupt_ns)
            }
        };
        self.end_of_interrupt(source.cpu, cost + self.cost.interrupt_ns);
    }

    /// The interrupted task pays, or who takes the CPU from it.
    fn end_of_interrupt(&mut self, cpu: Cpu, ns: u64) {
        if self.is_idle(cpu) {
            return;
        }
        if self.cpus[cpu.index()].need_resched {
            self.cpus[cpu.index()].debt_ns = ns;
            self.look(cpu);
        } else {
            self.steal(cpu, ns);
        }
    }

    /// **Source**: wake_up_new_task().
    pub(super) fn fork(&mut self, cpu: Cpu, parent: TaskId, spec: SpecId) {
        let child = match self.make(spec, Some(parent), cpu) {
            Ok(child) => child,
            Err(error) => return self.error = Some(error),
        };
        self.stats.forks += 1;
        let (to, scan) = if self.state.tasks[child].nr_cpus_allowed > 1 {
            let (decision, scan) = self.decide(child, cpu, cpu, WakeKind::Fork, false, true);
            (decision.final_cpu, scan)
        } else {
            (self.state.tasks[child].cpus_ptr.first().unwrap_or(cpu), 0)
        };
        let recorded = self.workload.tasks[spec].begins_on;
        let to = recorded.filter(|&cpu| self.state.tasks[child].cpus_ptr.test(cpu)).unwrap_or(to);
        self.state.tasks[child].task_cpu = to;
        self.state.tasks[child].last_update_time_ns = 1;
        let cost = self.cost.fork_ns + scan;
        self.activate(child, to, false, Arrival::New);
        self.check_preempt(child, to, cpu, cost);
        self.books[parent.index()].overhead_ns += cost;
    }

    /// **Source**: sched_exec().
    pub(super) fn exec(&mut self, cpu: Cpu, id: TaskId) {
        self.stats.execs += 1;
        if self.state.tasks[id].nr_cpus_allowed <= 1 {
            return;
        }
        let (decision, scan) = self.decide(id, cpu, cpu, WakeKind::Exec, false, true);
        self.books[id.index()].overhead_ns += scan;
        if decision.final_cpu != cpu {
            self.push_running(cpu, decision.final_cpu);
        }
    }

    /// The stopper moves the running task of a CPU to another one.
    pub(super) fn push_running(&mut self, from: Cpu, to: Cpu) {
        let Some(id) = self.cpus[from.index()].curr else { return };
        self.interrupt_piece(from);
        self.book_run(from);
        self.loads.put(from, self.now_ns);
        let mut entity = self.books[id.index()].entity;
        self.cpus[from.index()].queue.leave(&mut entity);
        let book = &mut self.books[id.index()];
        book.ran_on = Some(from);
        book.ran_until_ns = self.now_ns;
        self.move_entity(id, entity, from, to);
        self.schedule(from, Some(id));
        if self.is_idle(to) {
            let reach = self.reach_ns(to);
            self.kick(to, self.now_ns + reach);
        }
    }
}
