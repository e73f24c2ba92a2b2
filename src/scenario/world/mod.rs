// SPDX-License-Identifier: GPL-2.0-or-later
//! The world of a case: run queues that change as events happen and as the first implementation decides.
//!
//! Its rules, each simpler than a kernel and stated here because cases rest on them:
//!
//! * A task that is woken or forked while it is queued leaves its queue first.
//! * A task goes where the player says. If that CPU is not online, it goes to the lowest online CPU of its affinity,
//!   and without one to the waker's CPU.
//! * A task that may run on one CPU only is placed there and nobody is asked (`select_task_rq()` in core.c).
//! * On an idle CPU it runs at once; elsewhere it queues behind the others. A remote one waits on the wake list.
//! * The unnamed tasks of a CPU take turns as if they were one task, which is bound to the CPU.
//! * A CPU whose queue has emptied is idle from then on: `__update_idle_core()`. The event `idle` says so even of a CPU
//!   that was idle already.
//! * Each event takes 10 µs, a tick as long as its jiffies. `avg_idle` follows the idle periods that wakeups end.
//! * A CPU that goes down leaves all domains first; then its named tasks go where select_fallback_rq() puts them, one that
//!   may go nowhere gives up its affinity, and the unnamed ones end. It comes up idle. The last CPU stays. Domains built
//!   anew share nothing with the old ones: no idle cores, nr_idle_scan 0, no scan cost. Who sleeps there stays there.
//! * Loads and utilisations of tasks do not change; a run queue's are the sums over its tasks, plus a constant.

mod fold;
mod hotplug;
mod setup;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cpumask::Cpumask;
use crate::fair::{HiddenFact, Step};
use crate::machine::{Provenance, RunQueues, State, Task, TaskFlags, TaskId};
use crate::scenario::{Event, Load, Shape, TaskIndex};
use crate::topology::Topology;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// How long an event takes, ns.
const EVENT_NS: u64 = 10_000;
/// `rq->avg_idle` is at most twice the cost of a balance, which the kernel takes to be at least 500 µs.
const AVG_IDLE_MAX_NS: u64 = 1_000_000;

/// Who takes part in a case: told what happens, asked where tasks go.
pub trait Player {
    /// Why the player wants to stop.
    type Error;

    /// Something that implementations take note of.
    ///
    /// # Errors
    /// Ends the case.
    fn step(&mut self, state: &State, step: &Step) -> Result<(), Self::Error>;

    /// A decision: answers with the CPU the task goes to.
    ///
    /// # Errors
    /// Ends the case.
    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Self::Error>;
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// Implementations decided.
    Decided,
    /// The task may run on one CPU only.
    NotSelected,
    /// The state changed.
    Happened,
    /// It could not happen: a CPU that is not online, a task that is not queued.
    Skipped,
}

/// Shorthand for what playing returns.
pub type Play<P> = Result<Played, <P as Player>::Error>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Task(TaskIndex),
    /// All unnamed tasks of the CPU.
    Load,
}

#[derive(Debug, Clone, Default)]
struct Queue {
    /// The first one runs.
    slots: VecDeque<Slot>,
    load: Load,
    /// Tasks on the wake list.
    landing: Vec<TaskIndex>,
    /// A wakeup of nobody in particular is on the wake list.
    pending: bool,
    load_avg: u64,
    util_avg: u64,
}

/// The machine of a case while it is played.
#[derive(Debug, Clone)]
pub struct World {
    machine: Shape,
    state: State,
    /// The run queues of the idle machine.
    idle: RunQueues,
    queues: Vec<Queue>,
    /// The domains that the case begins with.
    home: Arc<Topology>,
    /// The domains with other CPUs online, as far as they were needed.
    others: Vec<Arc<Topology>>,
    nr_tasks: usize,
    now_ns: u64,
    facts: Vec<HiddenFact>,
}

impl World {
    /// What implementations look at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The task at `index` of the case's list.
    pub fn task_id(&self, index: TaskIndex) -> TaskId {
        TaskId((2 * self.queues.len() + index) as u32)
    }

    /// The unnamed tasks of `cpu`.
    fn load_id(&self, cpu: Cpu) -> TaskId {
        TaskId((self.queues.len() + cpu.index()) as u32)
    }

    /// Where in the case's list a task is; `None`: a swapper or the unnamed tasks of a CPU.
    pub fn task_index(&self, id: TaskId) -> Option<TaskIndex> {
        id.index().checked_sub(2 * self.queues.len()).filter(|&index| index < self.nr_tasks)
    }

    /// Tells the player the hidden state that the case begins with.
    ///
    /// # Errors
    /// Whatever the player returns.
    pub fn begin<P: Player>(&self, player: &mut P) -> Result<(), P::Error> {
        self.facts.iter().try_for_each(|&fact| player.step(&self.state, &Step::Fact(fact)))
    }

    /// Plays one event.
    ///
    /// # Errors
    /// Whatever the player returns.
    pub fn play<P: Player>(&mut self, event: &Event, player: &mut P) -> Play<P> {
        self.now_ns += EVENT_NS;
        match *event {
            Event::Wake { p, from, sync, irq, remote } => {
                if !self.online().test(from) {
                    return Ok(Played::Skipped);
                }
                self.dequeue(p, player)?;
                let mut wakeup = self.wakeup(p, from, WakeKind::Ttwu);
                wakeup.sync = sync;
                wakeup.in_task = !irq;
                self.place(wakeup, remote, player)
            }
            Event::Fork { p, from } => self.fork(p, from, player),
            Event::Exec(cpu) => self.exec(cpu, player),
            Event::Sleep(p) => {
                let was_queued = self.dequeue(p, player)?;
                Ok(if was_queued { Played::Happened } else { Played::Skipped })
            }
            Event::Idle(cpu) => self.idle(cpu, player),
            Event::Load(cpu, load) => self.set_load(cpu, load, player),
            Event::Move(p, to) => self.migrate(p, to, player),
            Event::Affine(p, cpus) => self.set_affinity(p, &cpus, player),
            Event::Switch(cpu) => {
                self.land(cpu, player)?;
                let slots = &mut self.queues[cpu.index()].slots;
                if let Some(first) = slots.pop_front() {
                    slots.push_back(first);
                }
                self.refresh(cpu);
                Ok(Played::Happened)
            }
            Event::Tick(jiffies) => {
                self.state.jiffies += u64::from(jiffies);
                self.now_ns += u64::from(jiffies) * (1_000_000_000 / u64::from(self.state.hz));
                for cpu in self.state.topology.cpus() {
                    self.land(cpu, player)?;
                }
                Ok(Played::Happened)
            }
            Event::Balance(llc, nr_idle_scan) => match self.shared_of(llc) {
                None => Ok(Played::Skipped),
                Some(shared) => {
                    player.step(&self.state, &Step::Balance { shared, nr_idle_scan })?;
                    Ok(Played::Happened)
                }
            },
            Event::Preempt(cpu, preempted) => {
                self.state.rq.vcpu_preempted.assign(cpu, preempted);
                Ok(Played::Happened)
            }
            Event::Hotplug(cpu, online) => self.hotplug(cpu, online, player),
        }
    }

    fn online(&self) -> &Cpumask {
        self.state.topology.online()
    }

    fn task_mut(&mut self, p: TaskIndex) -> &mut Task {
        let id = self.task_id(p);
        &mut self.state.tasks[id]
    }

    fn wakeup(&self, p: TaskIndex, this_cpu: Cpu, kind: WakeKind) -> Wakeup {
        let p = self.task_id(p);
        Wakeup {
            p,
            current: self.state.rq.curr[this_cpu.index()],
            this_cpu,
            prev_cpu: self.state.tasks[p].task_cpu,
            kind,
            sync: false,
            in_task: true,
            known: Provenance::TRACED,
        }
    }

    /// Asks the player, unless the task is bound to one CPU, and puts the task there.
    fn place<P: Player>(&mut self, wakeup: Wakeup, remote: bool, player: &mut P) -> Play<P> {
        let task = &self.state.tasks[wakeup.p];
        let bound = task.nr_cpus_allowed == 1;
        let (to, played) = match task.cpus_ptr.first() {
            Some(only) if bound => (only, Played::NotSelected),
            _ => (player.decide(&self.state, &wakeup)?, Played::Decided),
        };
        let allowed = *self.state.tasks[wakeup.p].cpus_ptr & *self.online();
        let to = if self.online().test(to) { to } else { allowed.first().unwrap_or(wakeup.this_cpu) };
        let p = self.task_index(wakeup.p).expect("the world wakes named tasks only");
        let task = self.task_mut(p);
        task.task_cpu = to;
        task.last_update_time_ns = 1;
        if remote && to != wakeup.this_cpu {
            self.queues[to.index()].landing.push(p);
            self.refresh(to);
        } else {
            self.enqueue_woken(p, to, player)?;
        }
        Ok(played)
    }

    /// The end of a wakeup: enqueued, and if that ends an idle period, it counts.
    fn enqueue_woken<P: Player>(&mut self, p: TaskIndex, cpu: Cpu, player: &mut P) -> Result<(), P::Error> {
        let at = cpu.index();
        let idle_stamp_ns = std::mem::take(&mut self.state.rq.idle_stamp_ns[at]);
        self.enqueue(p, cpu);
        if idle_stamp_ns > 0 {
            let idle_ns = self.now_ns.saturating_sub(idle_stamp_ns);
            let avg = &mut self.state.rq.avg_idle_ns[at];
            let moved = (*avg as i64) + (idle_ns as i64 - *avg as i64) / 8;
            *avg = (moved.max(0) as u64).min(AVG_IDLE_MAX_NS);
            player.step(&self.state, &Step::LeaveIdle { cpu, idle_ns })?;
        }
        Ok(())
    }

    fn enqueue(&mut self, p: TaskIndex, cpu: Cpu) {
        let task = self.task_mut(p);
        task.on_rq = true;
        task.task_cpu = cpu;
        self.queues[cpu.index()].slots.push_back(Slot::Task(p));
        self.refresh(cpu);
    }

    /// Takes `p` off its queue or wake list; whether it was on one.
    fn dequeue<P: Player>(&mut self, p: TaskIndex, player: &mut P) -> Result<bool, P::Error> {
        let task = self.task_mut(p);
        task.on_rq = false;
        let cpu = task.task_cpu;
        let queue = &mut self.queues[cpu.index()];
        let waiting = queue.landing.len();
        queue.landing.retain(|&landing| landing != p);
        if let Some(at) = queue.slots.iter().position(|slot| *slot == Slot::Task(p)) {
            queue.slots.remove(at);
            self.refresh_or_idle(cpu, player)?;
            return Ok(true);
        }
        let was_landing = queue.landing.len() < waiting;
        self.refresh(cpu);
        Ok(was_landing)
    }

    fn fork<P: Player>(&mut self, p: TaskIndex, from: Cpu, player: &mut P) -> Play<P> {
        // The idle task makes no tasks.
        if !self.online().test(from) || self.state.rq.curr_idle.test(from) {
            return Ok(Played::Skipped);
        }
        self.dequeue(p, player)?;
        if self.state.rq.curr_idle.test(from) {
            return Ok(Played::Happened);
        }
        let task = self.task_mut(p);
        task.task_cpu = from;
        task.last_update_time_ns = 0;
        let id = self.task_id(p);
        let parent = Some(self.state.rq.curr[from.index()]);
        player.step(&self.state, &Step::Fork { p: id, parent, cpu: from })?;
        self.place(self.wakeup(p, from, WakeKind::Fork), false, player)
    }

    fn exec<P: Player>(&mut self, cpu: Cpu, player: &mut P) -> Play<P> {
        let Some(&Slot::Task(p)) = self.queues[cpu.index()].slots.front() else { return Ok(Played::Skipped) };
        if self.task_mut(p).flags.contains(TaskFlags::KTHREAD) {
            return Ok(Played::Skipped);
        }
        let to = player.decide(&self.state, &self.wakeup(p, cpu, WakeKind::Exec))?;
        if to != cpu && self.online().test(to) {
            self.dequeue(p, player)?;
            self.enqueue_pulled(p, to);
        }
        Ok(Played::Decided)
    }

    fn idle<P: Player>(&mut self, cpu: Cpu, player: &mut P) -> Play<P> {
        if !self.online().test(cpu) {
            return Ok(Played::Skipped);
        }
        let queue = &mut self.queues[cpu.index()];
        queue.pending = false;
        queue.load = Load::default();
        let mut gone = std::mem::take(&mut queue.landing);
        gone.extend(queue.slots.drain(..).filter_map(|slot| match slot {
            Slot::Task(p) => Some(p),
            Slot::Load => None,
        }));
        gone.into_iter().for_each(|p| self.task_mut(p).on_rq = false);
        self.refresh_or_idle(cpu, player)?;
        Ok(Played::Happened)
    }

    fn set_load<P: Player>(&mut self, cpu: Cpu, load: Load, player: &mut P) -> Play<P> {
        if !self.online().test(cpu) {
            return Ok(Played::Skipped);
        }
        let queue = &mut self.queues[cpu.index()];
        let was_idle = queue.slots.is_empty();
        queue.set_load(load);
        if queue.slots.is_empty() && !was_idle {
            self.refresh_or_idle(cpu, player)?;
        } else {
            if was_idle && !queue.slots.is_empty() {
                self.state.rq.idle_stamp_ns[cpu.index()] = 0;
            }
            self.refresh(cpu);
        }
        Ok(Played::Happened)
    }

    fn migrate<P: Player>(&mut self, p: TaskIndex, to: Cpu, player: &mut P) -> Play<P> {
        let online = self.online().test(to);
        let task = self.task_mut(p);
        if !task.on_rq || !online || !task.cpus_ptr.test(to) || task.task_cpu == to {
            return Ok(Played::Skipped);
        }
        self.dequeue(p, player)?;
        self.enqueue_pulled(p, to);
        Ok(Played::Happened)
    }

    /// Enqueued by something that is not a wakeup: an idle period that ends so does not count.
    fn enqueue_pulled(&mut self, p: TaskIndex, to: Cpu) {
        self.state.rq.idle_stamp_ns[to.index()] = 0;
        self.enqueue(p, to);
    }

    fn set_affinity<P: Player>(&mut self, p: TaskIndex, cpus: &Cpumask, player: &mut P) -> Play<P> {
        let Some(first) = (*cpus & *self.online()).first() else { return Ok(Played::Skipped) };
        let task = self.task_mut(p);
        if task.cpus_preferred == task.cpus_ptr {
            task.cpus_preferred = (*cpus).into();
        }
        task.cpus_ptr = (*cpus).into();
        task.nr_cpus_allowed = cpus.weight();
        task.affinity_unequal = task.cpus_preferred != task.cpus_ptr;
        let (on_rq, cpu) = (task.on_rq, task.task_cpu);
        if !cpus.test(cpu) {
            if on_rq {
                self.dequeue(p, player)?;
                self.enqueue_pulled(p, first);
            } else if self.dequeue(p, player)? {
                self.task_mut(p).task_cpu = first;
                self.enqueue_woken(p, first, player)?;
            }
        }
        Ok(Played::Happened)
    }

    /// What waits on the wake list of `cpu` is enqueued.
    fn land<P: Player>(&mut self, cpu: Cpu, player: &mut P) -> Result<(), P::Error> {
        let queue = &mut self.queues[cpu.index()];
        if !queue.pending && queue.landing.is_empty() {
            return Ok(());
        }
        queue.pending = false;
        for p in std::mem::take(&mut queue.landing) {
            self.enqueue_woken(p, cpu, player)?;
        }
        self.refresh(cpu);
        Ok(())
    }

    /// After something left the queue of `cpu`: idle now if nothing is left.
    fn refresh_or_idle<P: Player>(&mut self, cpu: Cpu, player: &mut P) -> Result<(), P::Error> {
        self.refresh(cpu);
        if self.queues[cpu.index()].slots.is_empty() {
            self.state.rq.idle_stamp_ns[cpu.index()] = self.now_ns;
            player.step(&self.state, &Step::EnterIdle(cpu))?;
        }
        Ok(())
    }

    /// Writes the columns of `cpu` from its queue.
    fn refresh(&mut self, cpu: Cpu) {
        let (at, nr_cpus) = (cpu.index(), self.queues.len());
        let queue = &self.queues[at];
        let Load { fair, idle, rt, delayed } = queue.load;
        let mut h_nr = u32::from(fair);
        let mut idle_nr = u32::from(idle);
        let (mut load_avg, mut util_avg, mut util_est, mut runnable) = (queue.load_avg, queue.util_avg, 0, 0);
        for slot in &queue.slots {
            if let Slot::Task(p) = *slot {
                let task = &self.state.tasks[TaskId((2 * nr_cpus + p) as u32)];
                h_nr += 1;
                idle_nr += u32::from(task.policy_idle);
                load_avg += task.load_avg;
                util_avg += task.util_avg;
                util_est += task.util_est_enqueued;
                runnable += task.runnable_avg;
            }
        }
        let rq = &mut self.state.rq;
        rq.nr_running[at] = h_nr + u32::from(rt);
        rq.h_nr_running[at] = h_nr;
        rq.h_nr_runnable[at] = h_nr - u32::from(delayed);
        rq.idle_h_nr_running[at] = idle_nr;
        rq.load_avg[at] = load_avg;
        rq.runnable_load_avg[at] = load_avg;
        rq.util_avg[at] = util_avg;
        rq.runnable_avg[at] = util_avg + runnable;
        rq.util_est_enqueued[at] = util_est;
        rq.curr_idle.assign(cpu, queue.slots.is_empty());
        rq.ttwu_pending.assign(cpu, queue.pending || !queue.landing.is_empty());
        rq.curr[at] = match queue.slots.front() {
            None => TaskId::swapper(cpu),
            Some(Slot::Task(p)) => TaskId((2 * nr_cpus + p) as u32),
            Some(Slot::Load) => TaskId((nr_cpus + at) as u32),
        };
    }
}

impl Queue {
    fn clear(&mut self) {
        self.slots.clear();
        self.landing.clear();
        (self.load, self.pending, self.load_avg, self.util_avg) = (Load::default(), false, 0, 0);
    }

    /// Replaces the unnamed tasks.
    fn set_load(&mut self, load: Load) {
        self.load = load.normal();
        let there = self.slots.contains(&Slot::Load);
        if self.load.is_none() {
            self.slots.retain(|slot| *slot != Slot::Load);
        } else if !there {
            self.slots.push_back(Slot::Load);
        }
    }
}
