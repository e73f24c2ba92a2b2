// SPDX-License-Identifier: GPL-2.0-or-later
//! A release with its patches and features, and the hidden state it keeps: one [`Implementation`].

use crate::fair::brief::Brief;
use crate::fair::decision::Decision;
use crate::fair::env::Env;
use crate::fair::hidden::Hidden;
use crate::fair::remember::Before;
use crate::fair::walk::{Quiet, Recorder, Walk};
use crate::fair::{Implementation, RecentRule, Step, Tried, v5_2, v5_10, v5_11, v6_1, v6_12, v7_3};
use crate::machine::{Inputs, Provenance, State, TaskId};
use crate::spec::{ModelSpec, Patch, Release, SchedFeat};
use crate::topology::Topology;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// One implementation of the wakeup path.
#[derive(Debug, Clone)]
pub struct Model {
    spec: ModelSpec,
    name: String,
    features: SchedFeat,
    /// What it keeps between calls.
    pub hidden: Hidden,
    /// What wake_wide() said in the last call, if it was asked.
    wide: Option<bool>,
}

/// What is asked of a release.
#[derive(Debug, Clone, Copy)]
enum Call {
    SelectTaskRqFair,
    SelectIdleSibling { target: Cpu },
    UpdateIdleCore { core: Cpu },
}

impl Model {
    /// The model named `spec`, knowing nothing yet of the machine's past.
    pub fn new(spec: ModelSpec, topology: &Topology) -> Self {
        Self { name: spec.to_string(), features: spec.features(), hidden: Hidden::new(topology), spec, wide: None }
    }

    /// Its spec.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// The same switches as the recorded kernel's; those that this release does not have are ignored.
    pub fn set_features(&mut self, features: SchedFeat) {
        self.spec = self.spec.with_features(features);
        self.features = self.spec.features();
        self.name = self.spec.to_string();
    }

    /// `select_idle_sibling(p, prev, target)` alone, without what select_task_rq_fair() does around it.
    pub fn select_idle_sibling(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        target: Cpu,
        walk: Option<&mut Walk>,
    ) -> Decision {
        self.call(state, wakeup, Call::SelectIdleSibling { target }, walk)
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
        self.call(state, &wakeup, Call::UpdateIdleCore { core }, walk)
    }

    fn call(&mut self, state: &State, wakeup: &Wakeup, call: Call, walk: Option<&mut Walk>) -> Decision {
        match walk {
            Some(walk) => self.run(state, wakeup, call, walk),
            None => self.run(state, wakeup, call, &mut Quiet),
        }
    }

    fn run<R: Recorder>(&mut self, state: &State, w: &Wakeup, call: Call, recorder: &mut R) -> Decision {
        let switches = (self.features, self.spec.patches());
        let mut env = Env::new(state, w, &mut self.hidden, switches, recorder);
        let e = &mut env;
        let (p, prev) = (w.p, w.prev_cpu);
        let class_cpu = match call {
            Call::SelectTaskRqFair => match self.spec.release() {
                Release::V5_2 => v5_2::select_task_rq_fair(e, p, prev),
                Release::V5_10 => v5_10::select_task_rq_fair(e, p, prev),
                Release::V5_11 => v5_11::select_task_rq_fair(e, p, prev),
                Release::V6_1 => v6_1::select_task_rq_fair(e, p, prev),
                Release::V6_12 => v6_12::select_task_rq_fair(e, p, prev),
                Release::V7_3 => v7_3::select_task_rq_fair(e, p, prev),
            },
            Call::SelectIdleSibling { target } => match self.spec.release() {
                Release::V5_2 => v5_2::select_idle_sibling(e, p, prev, target),
                Release::V5_10 => v5_10::select_idle_sibling(e, p, prev, target),
                Release::V5_11 => v5_11::select_idle_sibling(e, p, prev, target),
                Release::V6_1 => v6_1::select_idle_sibling(e, p, prev, target),
                Release::V6_12 => v6_12::select_idle_sibling(e, p, prev, target),
                Release::V7_3 => v7_3::select_idle_sibling(e, p, prev, target),
            },
            Call::UpdateIdleCore { core } => {
                match self.spec.release() {
                    Release::V5_2 | Release::V5_10 | Release::V5_11 => v5_2::update_idle_core(e, core),
                    Release::V6_1 | Release::V6_12 => v6_1::update_idle_core(e, core),
                    Release::V7_3 => v7_3::update_idle_core(e, core),
                }
                core
            }
        };
        let wide = env.books.wide;
        let decision = env.decide(class_cpu);
        self.wide = wide;
        decision
    }
}

impl Implementation for Model {
    fn name(&self) -> &str {
        &self.name
    }

    fn reads(&self) -> Inputs {
        self.spec.info().reads_with(self.spec.patches())
    }

    fn hidden(&self) -> Option<&Hidden> {
        Some(&self.hidden)
    }

    fn hidden_mut(&mut self) -> Option<&mut Hidden> {
        Some(&mut self.hidden)
    }

    fn recent_rule(&self) -> Option<RecentRule> {
        Some(match self.spec.release() {
            Release::V5_11 if self.spec.patches().intersects(Patch::RECENT_USED | Patch::RECENT_USED_V1) => {
                RecentRule::BeforeTest
            }
            Release::V5_2 | Release::V5_10 | Release::V5_11 => RecentRule::AtHit,
            Release::V6_1 | Release::V6_12 | Release::V7_3 => RecentRule::BeforeTest,
        })
    }

    fn step(&mut self, state: &State, step: &Step) {
        match *step {
            Step::EnterIdle(cpu) => {
                // update_idle_core(): behind the static key sched_smt_present.
                if state.topology.smt_present() {
                    self.update_idle_core(state, cpu, None);
                }
            }
            ref other => self.hidden.remember(state, other),
        }
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.call(state, wakeup, Call::SelectTaskRqFair, walk)
    }

    fn select_briefly(&mut self, state: &State, wakeup: &Wakeup, brief: &mut Brief) -> Decision {
        brief.begin();
        self.run(state, wakeup, Call::SelectTaskRqFair, brief)
    }

    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        let before = Before::of(&self.hidden, state, wakeup);
        let decision = self.select_task_rq(state, wakeup, walk);
        before.restore(&mut self.hidden);
        decision
    }

    fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
        if !self.hidden.is_wide_open(wakeup) {
            return None;
        }
        let before = Before::of(&self.hidden, state, wakeup);
        Some([false, true].map(|wide| {
            let decision = self.select_wide(state, wakeup, wide);
            before.restore(&mut self.hidden);
            decision
        }))
    }

    fn select_and_try(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        is_sync_open: bool,
        walk: Option<&mut Walk>,
    ) -> (Decision, Tried) {
        let open = Open { sync: is_sync_open, wide: self.hidden.is_wide_open(wakeup) };
        if !open.sync && !open.wide {
            return (self.select_task_rq(state, wakeup, walk), Tried::default());
        }
        let before = self.before(state, wakeup);
        let decision = self.select_task_rq(state, wakeup, walk);
        (decision, self.try_others(state, wakeup, open, &decision, &before))
    }

    fn select_and_try_unless(
        &mut self,
        inputs: Inputs,
        state: &State,
        wakeup: &Wakeup,
        is_sync_open: bool,
    ) -> Option<(Decision, Tried)> {
        let open = Open { sync: is_sync_open, wide: self.hidden.is_wide_open(wakeup) };
        let before = self.before(state, wakeup);
        let decision = self.select_task_rq(state, wakeup, None);
        if decision.read.intersects(inputs) {
            before.restore(&mut self.hidden);
            return None;
        }
        Some((decision, self.try_others(state, wakeup, open, &decision, &before)))
    }
}

/// What of a wakeup is assumed or unknown.
#[derive(Debug, Clone, Copy)]
struct Open {
    sync: bool,
    /// The wakee flips that wake_wide() would ask for.
    wide: bool,
}

impl Model {
    /// What is before a call that makes the entries of both tasks: it has them, too.
    fn before(&mut self, state: &State, wakeup: &Wakeup) -> Before {
        for id in [wakeup.p, wakeup.current] {
            self.hidden.task_mut(id, state.tasks[id].task_cpu);
        }
        Before::of(&self.hidden, state, wakeup)
    }

    /// What other values of what is open would have made of `decision`, which was just made. Each is tried only where the
    /// walk that was made shows that it could matter: a walk that did not ask for the sync flag, or for wake_wide(), goes
    /// the same way whatever they are.
    fn try_others(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        open: Open,
        decision: &Decision,
        before: &Before,
    ) -> Tried {
        let asked = |decision: &Decision| open.sync && decision.read.contains(Inputs::SYNC);
        let differs = |other: &Decision| !other.is_same_choice(decision);
        let other_wide = if open.wide { self.wide.map(|wide| !wide) } else { None };
        let mut tried = Tried {
            sync: open.sync.then_some(false),
            other_sync: None,
            flips: open.wide.then_some(false),
            both: false,
        };
        if !asked(decision) && other_wide.is_none() {
            return tried;
        }
        let after = Before::of(&self.hidden, state, wakeup);
        let flipped = Wakeup { sync: !wakeup.sync, ..*wakeup };
        if asked(decision) {
            before.restore(&mut self.hidden);
            let other = self.select_task_rq(state, &flipped, None);
            tried.sync = Some(differs(&other));
            tried.other_sync = Some(other.answer());
            // With wake_wide() as it is.
            tried.both = open.wide && differs(&other);
        }
        if let Some(wide) = other_wide {
            before.restore(&mut self.hidden);
            let other = self.select_wide(state, wakeup, wide);
            tried.flips = Some(differs(&other));
            if open.sync && !tried.both {
                tried.both = if asked(&other) {
                    before.restore(&mut self.hidden);
                    differs(&self.select_wide(state, &flipped, wide))
                } else {
                    differs(&other)
                };
            }
        }
        after.restore(&mut self.hidden);
        tried
    }

    /// The call with wakee flips with which wake_wide() says `wide`.
    fn select_wide(&mut self, state: &State, wakeup: &Wakeup, wide: bool) -> Decision {
        self.hidden.set_wide(state, wakeup, wide);
        self.select_task_rq(state, wakeup, None)
    }
}
