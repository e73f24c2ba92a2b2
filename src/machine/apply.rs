// SPDX-License-Identifier: GPL-2.0-or-later
//! [`Machine`]: one event in, the state changed, and what that means told.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::inputs::{Inputs, Provenance};
use crate::machine::affinity::Families;
use crate::machine::audit::Audit;
use crate::machine::balance::Balancer;
use crate::machine::book::{CpuBook, Open, Place, TaskBook};
use crate::machine::config::{MachineConfig, Release};
use crate::machine::loads::Loads;
use crate::machine::notice::Notice;
use crate::machine::stated::Stated;
use crate::machine::tasks::PidMap;
use crate::machine::wake::DECIDES_NS;
use crate::machine::{State, TaskId, TaskMask};
use crate::topology::Topology;
use crate::trace::{Event, EventKind};
use crate::units::Cpu;

/// Contradictions that the machine met and got over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubts {
    /// sched_switch events whose prev is not who the one before left running.
    pub breaks: u64,
    /// Tasks that were still booked on a CPU when it went idle.
    pub forgotten: u64,
    /// Tasks that ran on another CPU than the one they were booked on.
    pub misplaced: u64,
    /// sched_wakeup events that came after the task had already run.
    pub late_wakeups: u64,
    /// Events of CPUs that the topology does not have.
    pub foreign: u64,
    /// Marks of lost events.
    pub losses: u64,
}

/// The recorded machine, as far as events tell. Pure: time comes from the events alone.
#[derive(Debug, Clone)]
pub struct Machine {
    pub(super) state: State,
    pub(super) config: MachineConfig,
    pub(super) pids: PidMap,
    /// By task id, parallel to the state's tasks.
    pub(super) books: Vec<TaskBook>,
    pub(super) cpus: Vec<CpuBook>,
    pub(super) loads: Loads,
    pub(super) balancer: Balancer,
    pub(super) families: Families,
    /// What a task may use as far as nothing is known: one mask for all of them.
    pub(super) online: TaskMask,
    /// What the user's side file says.
    pub(super) stated: Stated,
    /// When decisions without an answer of their own have been made, and in which CPU's context.
    pub(super) due: VecDeque<(u64, Cpu)>,
    /// How long a decision is seen to take, ns.
    pub(super) decides_ns: u64,
    /// Calls of select_task_rq_fair() told so far.
    pub(super) calls: u64,
    pub(super) now_ns: u64,
    /// By how much the recorded kernel's jiffies are ahead of those that follow from the trace's clock; wraps.
    pub(super) jiffies_lead: u64,
    /// Time of the first event.
    pub(super) start_ns: Option<u64>,
    pub(super) doubts: Doubts,
    pub(super) audit: Audit,
}

/// `idle_stamp` of a CPU that was idle when the trace began: older than any that the trace tells, and yet not 0.
pub(super) const IDLE_BEFORE_NS: u64 = 1;

/// Who hears of what the machine notices.
pub(super) type Out<'a> = &'a mut dyn FnMut(&State, Notice);

impl Machine {
    /// A machine of which nothing is known but its shape.
    pub fn new(topology: Arc<Topology>, config: MachineConfig) -> Self {
        let mut state = State::new(topology);
        state.hz = config.hz;
        let unknown = Provenance {
            derived: Inputs::empty(),
            stated: Inputs::empty(),
            assumed: Inputs::CAPACITY | Inputs::AVG_IDLE | Inputs::POLICY,
            unknown: Inputs::IDLE | Inputs::NR_RUNNING | Inputs::RQ_LOAD | Inputs::RQ_UTIL | Inputs::IDLE_STATE,
        };
        state.rq.known.fill(unknown);
        let cpus: Vec<CpuBook> = state.topology.cpus().map(CpuBook::new).collect();
        let books = vec![TaskBook::NEW; state.tasks.0.len()];
        let mut loads = Loads::new(cpus.len(), books.len());
        loads.has_lag = config.release >= Release::new(5, 19);
        let online = TaskMask::from(*state.topology.online());
        Self {
            state,
            config,
            pids: PidMap::default(),
            books,
            cpus,
            loads,
            balancer: Balancer::default(),
            families: Families::default(),
            online,
            stated: Stated::default(),
            due: VecDeque::new(),
            decides_ns: DECIDES_NS,
            calls: 0,
            now_ns: 0,
            jiffies_lead: 0,
            start_ns: None,
            doubts: Doubts::default(),
            audit: Audit::default(),
        }
    }

    /// The state as of the last event.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What did not fit together so far.
    pub fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// Takes one event, in the order of time; events out of order by the skew of the CPUs' clocks are tolerated.
    pub fn apply(&mut self, event: &Event, out: &mut impl FnMut(&State, Notice)) {
        if !self.has_cpu(event.cpu) {
            self.doubts.foreign += 1;
            return;
        }
        self.decide_due(event.ts_ns, out);
        self.now_ns = self.now_ns.max(event.ts_ns);
        self.start_ns.get_or_insert(event.ts_ns);
        self.tick_to(event.cpu, event.ts_ns, out);
        if !self.cpus[event.cpu.index()].curr_known {
            self.learn_curr(event);
        }
        // Of most events only the time counts.
        if !matches!(event.kind, EventKind::Ignored | EventKind::Malformed) {
            self.dispatch(event, out);
        }
    }

    /// Tells who ran on a CPU from the start of the trace to its first event: that event shows it, but the events of
    /// other CPUs before it want to know, too.
    pub fn prime(&mut self, first: &Event) {
        if self.has_cpu(first.cpu) && !self.cpus[first.cpu.index()].curr_known {
            self.now_ns = *self.start_ns.get_or_insert(first.ts_ns);
            self.learn_curr(first);
        }
    }

    /// An event of a CPU of which nothing is known (any more) shows who runs there.
    fn learn_curr(&mut self, event: &Event) {
        let cpu = event.cpu;
        let id = match &event.kind {
            EventKind::Lost { .. } => return,
            EventKind::Switch { prev, .. } => self.meet(prev, cpu),
            _ => self.task_of(event.pid, None, cpu),
        };
        self.set_curr(cpu, id);
        let known = &mut self.state.rq.known[cpu.index()];
        known.set_derived(Inputs::IDLE);
        if id == TaskId::swapper(cpu) {
            known.set_derived(Inputs::NR_RUNNING);
            let stamp = &mut self.state.rq.idle_stamp_ns[cpu.index()];
            *stamp = (*stamp).max(IDLE_BEFORE_NS);
        } else {
            self.state.tasks[id].task_cpu = cpu;
            self.place(id, Place::On(cpu), true);
            self.loads.run(id.index(), cpu, self.now_ns);
        }
    }

    /// Ends the replay: calls whose choice never came are told.
    pub fn finish(&mut self, out: &mut impl FnMut(&State, Notice)) {
        for cpu in self.state.topology.cpus() {
            self.close(cpu, out);
        }
        for at in 0..self.books.len() {
            if let Some(call) = self.books[at].call.take() {
                out(&self.state, Notice::NeverChosen { number: call.number });
            }
        }
    }

    fn dispatch(&mut self, event: &Event, out: Out<'_>) {
        let probes = self.config.probed();
        match &event.kind {
            EventKind::Ignored | EventKind::Malformed => {}
            EventKind::SisRq(rq) if !probes || self.config.ignore_rq_probes => {
                if self.has_cpu(rq.target) {
                    self.audit_rq(rq);
                }
            }
            EventKind::SisIn(sis) if !probes => self.audit_task(sis),
            EventKind::SisOut { .. } | EventKind::AvailIn { .. } | EventKind::AvailOut { .. } if !probes => {}
            EventKind::AvailIn { .. } | EventKind::AvailOut { .. } => {}
            EventKind::SisRq(rq) => self.on_sis_rq(event, rq, out),
            EventKind::SisIn(sis) => self.on_sis_in(event, sis, out),
            EventKind::SisOut { ret } => self.on_sis_out(event, *ret, out),
            EventKind::Migrate { task, orig_cpu, dest_cpu } => self.on_migrate(event, task, *orig_cpu, *dest_cpu, out),
            EventKind::Wakeup { wakee, target_cpu, new } => self.on_wakeup(event, wakee, *target_cpu, *new, out),
            EventKind::Switch { prev, prev_state, next } => {
                self.close(event.cpu, out);
                self.on_switch(event, prev, *prev_state, next, out);
            }
            EventKind::Waking { wakee, target_cpu } => {
                self.close(event.cpu, out);
                self.on_waking(event, wakee, *target_cpu, out);
            }
            EventKind::Fork { parent, child, child_comm } => {
                self.close(event.cpu, out);
                self.on_fork(event, *parent, *child, child_comm, out);
            }
            EventKind::Exec { pid, old_pid } => {
                self.close(event.cpu, out);
                self.on_exec(*pid, *old_pid, out);
            }
            EventKind::Exit { pid } => {
                self.close(event.cpu, out);
                self.on_exit(*pid);
            }
            EventKind::Free { pid } => self.on_free(*pid, out),
            EventKind::Lost { .. } => self.on_lost(event.cpu, out),
            EventKind::Hotplug { target, online } => {
                self.close(event.cpu, out);
                self.on_hotplug(*target, *online);
            }
            EventKind::IdleState { .. } => self.close(event.cpu, out),
        }
    }

    #[inline]
    pub(super) fn has_cpu(&self, cpu: Cpu) -> bool {
        cpu.index() < self.cpus.len()
    }

    /// Events of `cpu` are missing: what ran and is queued there has to be seen anew.
    fn on_lost(&mut self, cpu: Cpu, out: Out<'_>) {
        self.doubts.losses += 1;
        self.decide(cpu, out);
        if let Open::Called { p, .. } = self.cpus[cpu.index()].open
            && let Some(call) = self.books[p.index()].call.take()
        {
            out(&self.state, Notice::NeverChosen { number: call.number });
        }
        let book = &mut self.cpus[cpu.index()];
        book.open = Open::None;
        book.samples.clear();
        book.next_pid = None;
        book.curr_known = false;
        self.state.rq.known[cpu.index()].set_unknown(Inputs::IDLE | Inputs::NR_RUNNING);
        // The sched_wakeup of a task on its way here may be among the lost: it counts as queued until the CPU goes idle.
        for at in 0..self.books.len() {
            if self.books[at].place.cpu() == Some(cpu) {
                self.books[at].woken = false;
                self.place(TaskId(at as u32), Place::On(cpu), true);
            }
        }
    }
}
