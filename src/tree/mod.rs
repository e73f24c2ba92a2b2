// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel tree of the user's as an implementation: its own C, beside our models.
//!
//! The crate `sisdiff-tree` cuts the wakeup path out, builds it and runs it; here the state is mirrored into it and the
//! decision read back. Hidden state is kept here as every implementation keeps it, and given to the C at each call.

mod answer;
mod words;

use std::sync::Arc;

use sisdiff_tree::run::{Fault, Object};
use sisdiff_tree::tree::Built;

use crate::fair::fallback::select_fallback_rq;
use crate::fair::{Decision, Exit, Hidden, Implementation, SchedFeat, SisCounters, Step, Walk, WalkStep, Writes};
use crate::machine::{Inputs, Provenance, State, TaskId};
use crate::topology::Topology;
use crate::units::Cpu;
use crate::vectors::check::Subject;
use crate::wakeup::{WakeKind, Wakeup};

use answer::{Answer, Event};
use words::{Mirror, Question};

/// Words of room for an answer: more than the record of the longest walk.
const ANSWER_WORDS: usize = 80_000;

/// One kernel tree with the hidden state it keeps: an [`crate::fair::Implementation`].
pub struct Tree {
    name: String,
    object: Object,
    /// The tree's own list of features, and whether each is on.
    features: Vec<(String, bool)>,
    features_told: bool,
    topology: Option<Arc<Topology>>,
    mirror: Mirror,
    question: Vec<u64>,
    room: Vec<u64>,
    answer: Answer,
    fault: Option<Fault>,
    /// What it keeps between calls.
    pub hidden: Hidden,
}

impl Tree {
    /// The tree `built` under `name`, knowing nothing yet of the machine's past.
    ///
    /// # Errors
    /// The object cannot be opened.
    pub fn new(name: &str, built: &Built, topology: &Topology) -> Result<Self, sisdiff_tree::error::TreeError> {
        let features = built.meta.features.iter().map(|feature| (feature.name.clone(), feature.default)).collect();
        Ok(Self {
            name: name.to_owned(),
            object: built.open()?,
            features,
            features_told: false,
            topology: None,
            mirror: Mirror::default(),
            question: Vec::new(),
            room: vec![0; ANSWER_WORDS],
            answer: Answer::default(),
            fault: None,
            hidden: Hidden::new(topology),
        })
    }

    /// Switches feature `name`; whether the tree has it.
    pub fn set_feature(&mut self, name: &str, on: bool) -> bool {
        let found = self.features.iter_mut().find(|(known, _)| known == name);
        self.features_told &= found.is_none();
        found.map(|(_, now)| *now = on).is_some()
    }

    /// The same switches as the recorded kernel's; those that the tree does not have are ignored.
    pub fn set_features(&mut self, features: SchedFeat) {
        for (name, feature) in SchedFeat::all().iter_names() {
            self.set_feature(name, features.contains(feature));
        }
    }

    /// What went wrong inside the tree's code, if anything did: from then on its answers mean nothing.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// `__update_idle_core()` of `core`, without the static key before it.
    pub fn update_idle_core(&mut self, state: &State, core: Cpu, walk: Option<&mut Walk>) -> Decision {
        let swapper = TaskId::swapper(core);
        let wakeup = Wakeup {
            p: swapper,
            current: swapper,
            this_cpu: core,
            prev_cpu: core,
            kind: WakeKind::Ttwu,
            sync: false,
            in_task: true,
            known: Provenance::TRACED,
        };
        self.call(state, &wakeup, Question::UpdateIdleCore, walk)
    }

    fn call(&mut self, state: &State, w: &Wakeup, question: Question, walk: Option<&mut Walk>) -> Decision {
        for id in [w.p, w.current] {
            self.hidden.task_mut(id, state.tasks[id].task_cpu);
        }
        if self.fault.is_none()
            && let Err(fault) = self.ask(state, w, question, walk.is_some())
        {
            self.fault = Some(fault);
        }
        if self.fault.is_some() {
            return faulted(state, w);
        }
        self.store(w);
        if let Some(walk) = walk {
            record(&self.answer, walk);
        }
        self.decision(state, w)
    }

    fn send(&mut self) -> Result<usize, Fault> {
        self.object.request(&self.question, &mut self.room)
    }

    fn ask(&mut self, state: &State, w: &Wakeup, question: Question, record: bool) -> Result<(), Fault> {
        if !self.features_told {
            let switches: Vec<bool> = self.features.iter().map(|(_, on)| *on).collect();
            self.question.clear();
            words::features(&switches, &mut self.question);
            self.send()?;
            self.features_told = true;
        }
        let same = self.topology.as_ref().is_some_and(|known| Arc::ptr_eq(known, &state.topology));
        if !same {
            self.question.clear();
            self.mirror.machine(&state.topology, &mut self.question);
            self.send()?;
            self.topology = Some(Arc::clone(&state.topology));
        }
        self.question.clear();
        self.mirror.call((state, &self.hidden), w, question, record, &mut self.question);
        let words = self.send()?;
        self.answer.read(&self.room[..words], state.topology.nr_shared());
        self.mirror.forget(w);
        Ok(())
    }

    /// Takes over what the walk wrote.
    fn store(&mut self, w: &Wakeup) {
        let answer = &self.answer;
        self.hidden.clock.now_ns = answer.clock_ns;
        for (id, after) in [w.p, w.current].into_iter().zip(answer.tasks) {
            if let Some(after) = after {
                after.store(&mut self.hidden.tasks[id.index()]);
            }
        }
        let cpu = &mut self.hidden.cpus[w.this_cpu.index()];
        cpu.avg_scan_cost_ns = answer.avg_scan_cost_ns.unwrap_or(cpu.avg_scan_cost_ns);
        cpu.wake_stamp_jiffies = answer.wake_stamp_jiffies;
        cpu.wake_avg_idle_ns = answer.wake_avg_idle_ns;
        for (shared, &(has_idle_cores, nr_idle_scan)) in self.hidden.shared.iter_mut().zip(&answer.shared) {
            shared.has_idle_cores = has_idle_cores;
            shared.nr_idle_scan = nr_idle_scan;
        }
    }

    fn decision(&self, state: &State, w: &Wakeup) -> Decision {
        let class_cpu = Cpu(self.answer.cpu as u16);
        let probes = self.answer.events.iter().filter(|event| matches!(event, Event::Probe { .. })).count();
        Decision {
            class_cpu,
            final_cpu: select_fallback_rq(state, w.p, class_cpu),
            exit: Exit::NewCpu,
            probes: probes as u32,
            mask_ops: self.answer.mask_ops as u32,
            sis: SisCounters::default(),
            read: Inputs::empty(),
            leaned_on: Provenance::TRACED,
            faults: self.answer.oob as u32,
            writes: Writes::default(),
        }
    }
}

impl Implementation for Tree {
    fn name(&self) -> &str {
        &self.name
    }

    fn reads(&self) -> Inputs {
        Inputs::all()
    }

    fn step(&mut self, state: &State, step: &Step) {
        if let Step::EnterIdle(cpu) = *step
            && state.topology.smt_present()
        {
            self.update_idle_core(state, cpu, None);
        }
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.call(state, wakeup, Question::SelectTaskRqFair, walk)
    }

    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        let before = self.hidden.clone();
        let decision = self.select_task_rq(state, wakeup, walk);
        self.hidden = before;
        decision
    }
}

impl Subject for Tree {
    fn hidden(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    fn set_features(&mut self, features: SchedFeat) {
        self.set_features(features);
    }

    fn select_idle_sibling(&mut self, state: &State, wakeup: &Wakeup, target: Cpu, walk: &mut Walk) -> Decision {
        self.call(state, wakeup, Question::SelectIdleSibling { target }, Some(walk))
    }

    fn update_idle_core(&mut self, state: &State, core: Cpu, walk: &mut Walk) -> Decision {
        self.update_idle_core(state, core, Some(walk))
    }
}

/// The decision of a tree that cannot decide any more.
fn faulted(state: &State, w: &Wakeup) -> Decision {
    Decision {
        class_cpu: w.prev_cpu,
        final_cpu: select_fallback_rq(state, w.p, w.prev_cpu),
        exit: Exit::NewCpu,
        probes: 0,
        mask_ops: 0,
        sis: SisCounters::default(),
        read: Inputs::empty(),
        leaned_on: Provenance::TRACED,
        faults: 1,
        writes: Writes::default(),
    }
}

fn record(answer: &Answer, walk: &mut Walk) {
    for event in &answer.events {
        if let Event::Probe { kind, cpu, idle, .. } = *event {
            walk.steps.push(WalkStep::Probe { kind, cpu, idle });
        }
    }
}
