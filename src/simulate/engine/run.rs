// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks carry out their programs, piece by piece: a piece is overhead, then work, and can be interrupted.

use super::{Place, Sim, SimulateError, What};
use crate::machine::TaskId;
use crate::simulate::program::{BarrierId, ChannelId, Dist, How, Op};
use crate::units::Cpu;

/// Operations at one moment after which a program counts as stuck.
const STEPS_MAX: u32 = 2_000_000;

/// What an operation led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Time passes.
    Passes,
    /// The next operation of whoever runs on the CPU now.
    GoesOn,
}

impl Sim<'_> {
    /// The current piece ran to its end.
    pub(super) fn step_ends(&mut self, cpu: Cpu) {
        self.piece_done(cpu);
        self.go_on(cpu);
    }

    fn piece_done(&mut self, cpu: Cpu) {
        let Some(id) = self.cpus[cpu.index()].curr else { return };
        let book = &mut self.books[id.index()];
        book.overhead_ns = 0;
        if let Some(left) = book.left_ns.take() {
            book.at += 1;
            self.worked(id, left);
        }
    }

    fn worked(&mut self, id: TaskId, ns: u64) {
        self.worked_ns += ns;
        self.stats.work_ns += ns;
        self.by_comm[self.books[id.index()].comm].work_ns += ns;
    }

    /// Begins what the task has to do next; whether that takes time.
    fn begin_piece(&mut self, cpu: Cpu) -> bool {
        let Some(id) = self.cpus[cpu.index()].curr else { return false };
        let is_slow = self.is_sibling_busy(cpu);
        let book = &self.books[id.index()];
        let left = book.left_ns.unwrap_or(0);
        let ns = book.overhead_ns + if is_slow { self.cost.beside_sibling(left) } else { left };
        let cpu_book = &mut self.cpus[cpu.index()];
        cpu_book.step = cpu_book.step.wrapping_add(1);
        cpu_book.began_ns = self.now_ns;
        cpu_book.is_slow = is_slow;
        if ns == 0 {
            self.piece_done(cpu);
            return false;
        }
        let step = cpu_book.step;
        self.at(self.now_ns + ns, What::Step(cpu, step));
        true
    }

    pub(super) fn is_sibling_busy(&self, cpu: Cpu) -> bool {
        self.cost.smt_slowdown_percent > 0
            && self.topology.smt_present()
            && self.topology.smt_mask(cpu).iter().any(|other| other != cpu && !self.is_idle(other))
    }

    /// Books how far the current piece got, and ends it.
    pub(super) fn interrupt_piece(&mut self, cpu: Cpu) {
        let Some(id) = self.cpus[cpu.index()].curr else { return };
        let cpu_book = &mut self.cpus[cpu.index()];
        cpu_book.step = cpu_book.step.wrapping_add(1);
        let passed = self.now_ns - cpu_book.began_ns;
        let is_slow = cpu_book.is_slow;
        cpu_book.began_ns = self.now_ns;
        let percent = 100 + self.cost.smt_slowdown_percent;
        let book = &mut self.books[id.index()];
        let overhead = book.overhead_ns.min(passed);
        book.overhead_ns -= overhead;
        if let Some(left) = &mut book.left_ns {
            let passed = passed - overhead;
            let done = if is_slow { passed * 100 / percent } else { passed }.min(*left);
            *left -= done;
            self.worked(id, done);
        }
    }

    /// An interrupt takes so much of the running task's time.
    pub(super) fn steal(&mut self, cpu: Cpu, ns: u64) {
        let Some(id) = self.cpus[cpu.index()].curr else { return };
        if ns > 0 {
            self.interrupt_piece(cpu);
            self.books[id.index()].overhead_ns += ns;
            self.begin_piece(cpu);
        }
    }

    /// The sibling's state has changed since the piece began.
    pub(super) fn look_at_sibling(&mut self, cpu: Cpu) {
        if !self.is_idle(cpu) && self.cpus[cpu.index()].is_slow != self.is_sibling_busy(cpu) {
            self.interrupt_piece(cpu);
            if !self.begin_piece(cpu) {
                self.go_on(cpu);
            }
        }
    }

    /// Whoever runs on `cpu` goes on, until time passes or the CPU is idle.
    pub(super) fn go_on(&mut self, cpu: Cpu) {
        let mut steps = 0;
        while let Some(id) = self.cpus[cpu.index()].curr {
            if self.cpus[cpu.index()].need_resched {
                let book = &self.books[id.index()];
                if book.overhead_ns > 0 && book.left_ns.is_none() && self.begin_piece(cpu) {
                    return;
                }
                self.preempt(cpu);
                continue;
            }
            if self.operation(cpu, id) == After::Passes || self.error.is_some() {
                return;
            }
            steps += 1;
            if steps > STEPS_MAX {
                let task = self.state.tasks[id].comm.to_string();
                let workload = self.workload.name.clone();
                self.error = Some(SimulateError::Stuck { workload, task, steps });
                return;
            }
        }
    }

    /// The task's next operation; `None` past the end of its program.
    fn op(&self, id: TaskId) -> Option<Op> {
        let book = &self.books[id.index()];
        match self.workload.programs.get(book.program) {
            Some(program) => program.get(book.at).copied(),
            None => {
                let mut launched = self
                    .workload
                    .tasks
                    .iter()
                    .enumerate()
                    .filter(|(_, task)| task.start == crate::simulate::Start::Launched);
                launched.nth(book.at).map(|(spec, _)| Op::Fork(spec))
            }
        }
    }

    fn operation(&mut self, cpu: Cpu, id: TaskId) -> After {
        let op = self.op(id).unwrap_or(Op::Exit);
        let passes = |time: bool| if time { After::Passes } else { After::GoesOn };
        match op {
            Op::Run(dist) => {
                self.begin_work(id, dist);
                return passes(self.begin_piece(cpu));
            }
            Op::Loop(times) => {
                let book = &mut self.books[id.index()];
                book.at += 1;
                book.loops.push((book.at, times));
                return After::GoesOn;
            }
            Op::End => {
                self.end_of_loop(id);
                return After::GoesOn;
            }
            _ if self.books[id.index()].overhead_ns > 0 => return passes(self.begin_piece(cpu)),
            _ => {}
        }
        self.books[id.index()].at += 1;
        match op {
            Op::Mark => self.books[id.index()].mark_ns = self.now_ns,
            Op::MarkToken => self.books[id.index()].mark_ns = self.books[id.index()].token_ns,
            Op::Done => self.done(id),
            Op::Signal(channel, how) => {
                let cost = self.signal(channel, how, cpu);
                self.books[id.index()].overhead_ns += cost;
            }
            Op::Broadcast(channel, how) => {
                for _ in 0..self.channels[channel].waiters.len() {
                    let cost = self.signal(channel, how, cpu);
                    self.books[id.index()].overhead_ns += cost;
                }
            }
            Op::Wait(channel) => self.wait(cpu, id, channel),
            Op::Barrier(barrier) => self.barrier(cpu, id, barrier),
            Op::Sleep(dist) => {
                let ns = dist.draw(&mut self.books[id.index()].random);
                self.sleep_until(cpu, id, self.now_ns + ns);
            }
            Op::Period(ns) => {
                let next = self.books[id.index()].period_ns.unwrap_or(self.now_ns) + ns;
                self.books[id.index()].period_ns = Some(next);
                self.sleep_until(cpu, id, next);
            }
            Op::Until(ns) => self.sleep_until(cpu, id, ns),
            Op::Fork(spec) => self.fork(cpu, id, spec),
            Op::Exec => self.exec(cpu, id),
            Op::Exit => self.exit(cpu, id),
            Op::Run(_) | Op::Loop(_) | Op::End => {}
        }
        After::GoesOn
    }

    fn begin_work(&mut self, id: TaskId, dist: Dist) {
        let book = &mut self.books[id.index()];
        if book.left_ns.is_none() {
            let ns = dist.draw(&mut book.random);
            book.left_ns = Some(ns);
            self.asked_ns += ns;
        }
    }

    fn end_of_loop(&mut self, id: TaskId) {
        let book = &mut self.books[id.index()];
        match book.loops.last_mut() {
            Some((begin, 0)) => book.at = *begin,
            Some((begin, times)) if *times > 1 => {
                *times -= 1;
                book.at = *begin;
            }
            _ => {
                book.loops.pop();
                book.at += 1;
            }
        }
    }

    fn done(&mut self, id: TaskId) {
        let book = &self.books[id.index()];
        self.stats.requests.add(self.now_ns - book.mark_ns);
        self.stats.done += 1;
        self.by_comm[book.comm].done += 1;
        let bin = self.bin();
        self.stats.series[bin].done += 1;
    }

    /// Puts a token into a channel from the context of `cpu`; what that costs.
    pub(super) fn signal(&mut self, channel: ChannelId, how: How, cpu: Cpu) -> u64 {
        self.signalled += 1;
        match self.channels[channel].waiters.pop_front() {
            Some(wakee) => {
                self.delivered += 1;
                let book = &mut self.books[wakee.index()];
                book.token_ns = self.now_ns;
                book.waits = false;
                if how.data {
                    book.data_from = Some(cpu);
                }
                self.wake_from_task(wakee, cpu, how)
            }
            None => {
                let book = &mut self.channels[channel];
                book.tokens += 1;
                if let Some(times) = &mut book.times {
                    times.push_back(self.now_ns);
                }
                0
            }
        }
    }

    fn wait(&mut self, cpu: Cpu, id: TaskId, channel: ChannelId) {
        let book = &mut self.channels[channel];
        if book.tokens > 0 {
            book.tokens -= 1;
            let since = book.times.as_mut().and_then(std::collections::VecDeque::pop_front);
            self.books[id.index()].token_ns = since.unwrap_or(self.now_ns);
            self.delivered += 1;
            return;
        }
        book.waiters.push_back(id);
        self.books[id.index()].waits = true;
        self.block(cpu, id);
    }

    fn barrier(&mut self, cpu: Cpu, id: TaskId, barrier: BarrierId) {
        let (expected, there) = &mut self.barriers[barrier];
        if (there.len() as u32) + 1 < *expected {
            there.push(id);
            self.books[id.index()].waits = true;
            return self.block(cpu, id);
        }
        for wakee in std::mem::take(there) {
            self.books[wakee.index()].waits = false;
            let cost = self.wake_from_task(wakee, cpu, How::default());
            self.books[id.index()].overhead_ns += cost;
        }
    }

    fn sleep_until(&mut self, cpu: Cpu, id: TaskId, ns: u64) {
        if ns > self.now_ns {
            self.at(ns, What::Timer(id));
            self.block(cpu, id);
        }
    }

    /// The running task goes to sleep.
    fn block(&mut self, cpu: Cpu, id: TaskId) {
        self.stop(cpu, id);
        self.books[id.index()].place = Place::Asleep;
        self.schedule(cpu, Some(id));
    }

    fn exit(&mut self, cpu: Cpu, id: TaskId) {
        self.stop(cpu, id);
        self.loads.forget(id.index(), self.now_ns);
        self.books[id.index()].place = Place::Gone;
        self.gone.push(id);
        self.schedule(cpu, Some(id));
    }
}
