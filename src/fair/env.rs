// SPDX-License-Identifier: GPL-2.0-or-later
//! What a walk runs in: the state it reads, the hidden state it changes, and the books it keeps.
//!
//! A release's functions take an [`Env`] first and then the kernel's arguments in the kernel's order. Every read goes
//! through a leaf under its kernel name (see [`super::leaf`]), which books what kind of input it was and how well that is
//! known; what a walk does not read is not booked.

use crate::cpumask::Cpumask;
use crate::fair::decision::{Decision, Exit, ProbeKind, SisCounters, Writes};
use crate::fair::fallback::select_fallback_rq;
use crate::fair::hidden::Hidden;
use crate::fair::walk::{Recorder, WalkStep};
use crate::machine::{Inputs, Provenance, State, TaskId};
use crate::spec::{Patch, SchedFeat};
use crate::topology::{SharedId, Topology};
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// One call of the wakeup path.
pub struct Env<'a, R: Recorder> {
    /// The machine.
    pub state: &'a State,
    /// The question.
    pub wakeup: &'a Wakeup,
    /// Hidden state of this implementation; both tasks of the wakeup have their entries.
    pub(super) hidden: &'a mut Hidden,
    features: SchedFeat,
    patches: Patch,
    recorder: &'a mut R,
    pub(super) books: Books,
}

/// What goes into the [`Decision`].
#[derive(Debug)]
pub(super) struct Books {
    pub(super) exit: Exit,
    pub(super) gave_up: bool,
    pub(super) probes: u32,
    pub(super) mask_ops: u32,
    pub(super) sis: SisCounters,
    pub(super) read: Inputs,
    pub(super) leaned_on: Provenance,
    pub(super) faults: u32,
    pub(super) writes: Writes,
    /// What wake_wide() said, if it was asked.
    pub(super) wide: Option<bool>,
}

impl<'a, R: Recorder> Env<'a, R> {
    /// Prepares a call.
    #[inline]
    pub(super) fn new(
        state: &'a State,
        wakeup: &'a Wakeup,
        hidden: &'a mut Hidden,
        (features, patches): (SchedFeat, Patch),
        recorder: &'a mut R,
    ) -> Self {
        for id in [wakeup.p, wakeup.current] {
            hidden.task_mut(id, state.tasks[id].task_cpu);
        }
        let books = Books {
            exit: Exit::NewCpu,
            gave_up: false,
            probes: 0,
            mask_ops: 0,
            sis: SisCounters::default(),
            read: Inputs::PREV_CPU,
            leaned_on: wakeup.known.of(Inputs::PREV_CPU),
            faults: 0,
            writes: Writes::default(),
            wide: None,
        };
        Self { state, wakeup, hidden, features, patches, recorder, books }
    }

    /// Closes the books: the class returned `class_cpu`.
    pub(super) fn decide(&self, class_cpu: Cpu) -> Decision {
        let Books { exit, probes, mask_ops, sis, read, leaned_on, faults, writes, .. } = self.books;
        let final_cpu = select_fallback_rq(self.state, self.wakeup.p, class_cpu);
        Decision { class_cpu, final_cpu, exit, probes, mask_ops, sis, read, leaned_on, faults, writes }
    }

    /// The machine's shape.
    #[inline]
    pub fn topology(&self) -> &'a Topology {
        &self.state.topology
    }

    /// `current`.
    #[inline]
    pub fn current(&self) -> TaskId {
        self.wakeup.current
    }

    /// `smp_processor_id()`.
    #[inline]
    pub fn this_cpu(&self) -> Cpu {
        self.wakeup.this_cpu
    }

    /// `sched_feat()`.
    #[inline]
    pub fn sched_feat(&mut self, feature: SchedFeat) -> bool {
        self.books.read |= Inputs::FEATURES;
        self.features.contains(feature)
    }

    /// Whether a patch (or one of several) is applied.
    #[inline]
    pub fn patched(&self, patch: Patch) -> bool {
        self.patches.intersects(patch)
    }

    /// A kernel function is entered.
    #[inline]
    pub fn enter(&mut self, function: &'static str) {
        self.recorder.step(|| WalkStep::Enter { function });
    }

    /// A condition that is no idle check; `what` in the kernel's words. Returns `holds`.
    #[inline]
    #[track_caller]
    pub fn check(&mut self, holds: bool, what: impl FnOnce() -> String) -> bool {
        self.recorder.check(holds, what);
        holds
    }

    /// A number under its kernel name.
    #[inline]
    pub fn value(&mut self, name: &'static str, value: impl TryInto<i64>) {
        self.recorder.step(|| WalkStep::Value { name, value: value.try_into().unwrap_or(i64::MAX) });
    }

    /// A mask that the walk goes by; `what` in the kernel's words.
    #[inline]
    pub fn mask(&mut self, what: &'static str, cpus: &Cpumask) {
        self.recorder.step(|| WalkStep::Mask { what, cpus: *cpus });
    }

    /// Hidden state is written; `what` in the kernel's words.
    #[inline]
    pub(super) fn wrote(&mut self, what: impl FnOnce() -> String) {
        self.recorder.wrote(what);
    }

    /// The deciding return: the walk ends with `cpu`.
    #[inline]
    pub fn exit(&mut self, exit: Exit, cpu: Cpu) -> Cpu {
        self.books.exit = exit;
        self.recorder.step(|| WalkStep::Return { exit, cpu: Some(cpu) });
        cpu
    }

    /// A stage returns without a CPU, and the walk goes on.
    #[inline]
    pub fn nothing<T>(&mut self, stage: Exit) -> Option<T> {
        self.recorder.step(|| WalkStep::Return { exit: stage, cpu: None });
        None
    }

    /// The scan of single CPUs stops at its limit, or does not begin because of it.
    #[inline]
    pub fn give_up<T>(&mut self) -> Option<T> {
        self.books.gave_up = true;
        self.nothing(Exit::BudgetSpent)
    }

    /// The last `return target`.
    #[inline]
    pub fn fallback(&mut self, target: Cpu) -> Cpu {
        self.books.sis.failed += 1;
        let exit = if self.books.gave_up { Exit::BudgetSpent } else { Exit::Fallback };
        self.exit(exit, target)
    }

    /// The counters of Mel Gorman's schedstat patches.
    #[inline]
    pub fn sis(&mut self) -> &mut SisCounters {
        &mut self.books.sis
    }

    /// Counts `sd->ttwu_move_affine` and `p->stats.nr_wakeups_affine` for a wakee that goes to `target`.
    #[inline]
    pub fn ttwu_move_affine(&mut self, target: Cpu) {
        self.recorder.moved_affine(target);
    }

    /// Books a read of a CPU's facts.
    #[inline]
    pub(super) fn book_rq(&mut self, cpu: Cpu, inputs: Inputs) {
        self.book(inputs, self.state.rq.known.get(cpu.index()).copied().unwrap_or_default());
    }

    /// Books a read of a task's facts.
    #[inline]
    pub(super) fn book_task(&mut self, id: TaskId, inputs: Inputs) {
        self.book(inputs, self.state.tasks[id].known);
    }

    /// Books a read of what the wakeup itself carries.
    #[inline]
    pub(super) fn book_wakeup(&mut self, inputs: Inputs) {
        self.book(inputs, self.wakeup.known);
    }

    /// Books a read of a task's hidden state.
    #[inline]
    pub(super) fn book_task_hidden(&mut self, id: TaskId, inputs: Inputs) {
        self.book(inputs, self.hidden.tasks[id.index()].known);
    }

    /// Books a read of an LLC's hidden state.
    #[inline]
    pub(super) fn book_shared(&mut self, id: SharedId, inputs: Inputs) {
        self.book(inputs, self.hidden.shared[id].known);
    }

    /// Books a read of a CPU's hidden state.
    #[inline]
    pub(super) fn book_cpu_hidden(&mut self, cpu: Cpu, inputs: Inputs) {
        self.book(inputs, self.hidden.cpus[cpu.index()].known);
    }

    #[inline]
    fn book(&mut self, inputs: Inputs, known: Provenance) {
        self.books.read |= inputs;
        self.books.leaned_on |= known.of(inputs);
    }

    /// An idle check begins: the declared clock advances.
    #[inline]
    pub(super) fn probe_begins(&mut self, cpu: Cpu) {
        let ns = match &self.hidden.clock.by_distance {
            None => self.hidden.clock.probe_ns,
            Some(costs) => costs.of(self.state.topology.distance(self.wakeup.this_cpu, cpu)),
        };
        let clock = &mut self.hidden.clock;
        clock.now_ns = clock.now_ns.wrapping_add(ns);
    }

    /// The same of another question about a CPU whose run queue was just looked at: where distances count, its cache line
    /// is there.
    #[inline]
    pub(super) fn looks_again(&mut self) {
        let clock = &mut self.hidden.clock;
        if clock.by_distance.is_none() {
            clock.now_ns = clock.now_ns.wrapping_add(clock.probe_ns);
        }
    }

    /// An idle check has its answer.
    #[inline]
    pub(super) fn probed(&mut self, kind: ProbeKind, cpu: Cpu, idle: bool) -> bool {
        self.books.probes += 1;
        self.recorder.step(|| WalkStep::Probe { kind, cpu: u32::from(cpu.0), idle });
        idle
    }
}
