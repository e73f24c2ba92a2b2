// SPDX-License-Identifier: GPL-2.0-or-later
//! Who runs: tasks leave CPUs and get them, CPUs go idle.

use super::{Place, Sim};
use crate::fair::Step;
use crate::machine::TaskId;
use crate::simulate::cfs::Order;
use crate::simulate::cost::IdleState;
use crate::units::Cpu;

impl Sim<'_> {
    /// **Source**: update_curr().
    pub(super) fn book_run(&mut self, cpu: Cpu) {
        let book = &mut self.cpus[cpu.index()];
        let Some(id) = book.curr else { return };
        let ns = self.now_ns - book.booked_ns;
        book.booked_ns = self.now_ns;
        if ns > 0 {
            book.queue.ran(&mut self.books[id.index()].entity, ns);
        }
    }

    /// The running task leaves its run queue; who runs next is not decided yet.
    pub(super) fn stop(&mut self, cpu: Cpu, id: TaskId) {
        self.book_run(cpu);
        self.count(cpu, id, u32::wrapping_sub);
        self.loads.dequeue(id.index(), self.now_ns, true);
        self.show(cpu);
        self.state.tasks[id].on_rq = false;
        let book = &mut self.books[id.index()];
        book.ran_on = Some(cpu);
        book.ran_until_ns = self.now_ns;
    }

    /// The running task waits in its run queue, and another may run.
    pub(super) fn preempt(&mut self, cpu: Cpu) {
        let Some(id) = self.cpus[cpu.index()].curr else { return };
        self.book_run(cpu);
        self.loads.put(cpu, self.now_ns);
        let book = &mut self.books[id.index()];
        book.place = Place::Queued;
        book.ran_on = Some(cpu);
        book.ran_until_ns = self.now_ns;
        let entity = book.entity;
        self.cpus[cpu.index()].queue.insert(id, &entity);
        self.schedule(cpu, Some(id));
    }

    /// Gives the CPU, which `prev` has left, to who is next. **Source**: __schedule(), pick_next_task_fair().
    pub(super) fn schedule(&mut self, cpu: Cpu, prev: Option<TaskId>) {
        loop {
            let tunables = self.tunables;
            let queue = &mut self.cpus[cpu.index()].queue;
            if let Some(id) = queue.pick(&tunables) {
                queue.remove(id, &self.books[id.index()].entity);
                return self.switch_to(cpu, id, prev);
            }
            // newidle_balance() sets idle_stamp before it looks around.
            self.state.rq.idle_stamp_ns[cpu.index()] = self.now_ns.max(2);
            if !self.newidle(cpu) {
                break;
            }
        }
        self.tell_switch(cpu, prev, None);
        self.enter_idle(cpu);
    }

    fn switch_to(&mut self, cpu: Cpu, id: TaskId, prev: Option<TaskId>) {
        self.tell_switch(cpu, prev, Some(id));
        let at = cpu.index();
        let was_idle = self.cpus[at].curr.is_none();
        if was_idle {
            self.account(cpu);
            let book = &mut self.cpus[at];
            let idle = self.now_ns.saturating_sub(book.booked_ns);
            book.idle_ns = (book.idle_ns * 7 + idle) / 8;
        }
        self.state.rq.curr[at] = id;
        self.state.rq.curr_idle.clear(cpu);
        self.state.rq.exit_latency_us[at] = None;
        self.loads.run(id.index(), cpu, self.now_ns);
        self.show(cpu);
        let cpu_book = &mut self.cpus[at];
        cpu_book.curr = Some(id);
        cpu_book.booked_ns = self.now_ns;
        cpu_book.need_resched = false;
        cpu_book.began_ns = self.now_ns;
        let debt = std::mem::take(&mut cpu_book.debt_ns);
        self.arrive_on(cpu, id, prev, debt);
        self.settle(cpu);
    }

    /// What it costs a task to run here, and how long it waited.
    fn arrive_on(&mut self, cpu: Cpu, id: TaskId, prev: Option<TaskId>, debt_ns: u64) {
        let switches = prev != Some(id);
        let direct = debt_ns + if switches { self.cost.context_switch_ns } else { 0 };
        let book = &mut self.books[id.index()];
        book.place = Place::Running;
        book.entity.ran_ns = 0;
        let refill =
            book.ran_on.map_or(0, |from| self.cost.refill(self.topology.distance(from, cpu), book.footprint_kib));
        let exchange = book.data_from.take().map_or(0, |from| self.cost.exchange(self.topology.distance(from, cpu)));
        book.ran_on = Some(cpu);
        book.overhead_ns += direct + refill + exchange;
        self.stats.switches += u64::from(switches);
        self.stats.cache_ns += refill + exchange;
        if let Some(since) = book.woken_ns.take() {
            let ns = self.now_ns + direct - since;
            self.stats.latency.add(ns);
            self.by_comm[book.comm].latency.add(ns);
        }
    }

    fn enter_idle(&mut self, cpu: Cpu) {
        let at = cpu.index();
        self.account(cpu);
        let book = &mut self.cpus[at];
        book.curr = None;
        book.step = book.step.wrapping_add(1);
        book.need_resched = false;
        book.booked_ns = self.now_ns;
        book.idle = self.cost.idle_state(book.idle_ns);
        if self.setup.idle_exits.is_some() {
            book.exit_draw = self.random.rand_u64();
            book.idle = IdleState { depth: 1, exit_ns: 0 };
        }
        let IdleState { depth, exit_ns } = book.idle;
        self.state.rq.exit_latency_us[at] = (depth > 0).then_some((exit_ns / 1000) as u32);
        self.state.rq.curr[at] = TaskId::swapper(cpu);
        self.state.rq.curr_idle.set(cpu);
        self.tell(&Step::EnterIdle(cpu));
        self.settle(cpu);
    }

    /// An interrupt makes the CPU look at its run queue.
    pub(super) fn kick_comes(&mut self, cpu: Cpu) {
        self.cpus[cpu.index()].kicked = false;
        self.look(cpu);
    }

    /// The end of an interrupt: an idle CPU takes up work, a busy one changes tasks if it has to.
    pub(super) fn look(&mut self, cpu: Cpu) {
        let book = &self.cpus[cpu.index()];
        if book.curr.is_none() {
            if !book.queue.is_empty() {
                self.schedule(cpu, None);
                self.go_on(cpu);
            }
        } else if book.need_resched {
            self.interrupt_piece(cpu);
            self.preempt(cpu);
            self.go_on(cpu);
        }
    }

    /// A task that waits is moved to another run queue.
    pub(super) fn move_queued(&mut self, id: TaskId, from: Cpu, to: Cpu) {
        let mut entity = self.books[id.index()].entity;
        let queue = &mut self.cpus[from.index()].queue;
        queue.remove(id, &entity);
        queue.leave(&mut entity);
        self.move_entity(id, entity, from, to);
    }

    /// The rest of a move: the task is in no queue's order.
    pub(super) fn move_entity(&mut self, id: TaskId, mut entity: crate::simulate::cfs::Entity, from: Cpu, to: Cpu) {
        self.count(from, id, u32::wrapping_sub);
        self.loads.dequeue(id.index(), self.now_ns, false);
        self.show(from);
        self.book_run(to);
        self.state.tasks[id].task_cpu = to;
        let tunables = self.tunables;
        let queue = &mut self.cpus[to.index()].queue;
        queue.place(&tunables, &mut entity, crate::simulate::cfs::Arrival::Moved);
        queue.insert(id, &entity);
        self.books[id.index()].entity = entity;
        self.books[id.index()].place = Place::Queued;
        self.count(to, id, u32::wrapping_add);
        self.loads.enqueue(id.index(), to, self.now_ns, &self.state.rq.curr_idle);
        self.show(to);
        self.state.rq.idle_stamp_ns[to.index()] = 0;
        self.settle(from);
        self.settle(to);
    }
}
