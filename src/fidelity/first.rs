// SPDX-License-Identifier: GPL-2.0-or-later
//! The first pass: every decision against the recorded choice.

use std::collections::{BTreeMap, VecDeque};

use crate::fair::{Decision, Exit, Step, Walk, WalkStep};
use crate::fidelity::figures::{Confusion, ExitShare, Ground, Implementation, InputFigures};
use crate::fidelity::told::{Scene, Told};
use crate::inputs::{Inputs, Provenance};
use crate::machine::{Notice, RecordedWakeup, State};
use crate::replay::driver::{Contestant, Decided, decide};
use crate::replay::totals::{Role, Share, input_names};
use crate::replay::{Choice, Insight};
use crate::topology::SharedId;
use crate::units::Cpu;
use crate::wakeup::WakeKind;

/// Decisions that may wait for their recorded choice.
const HELD_MAX: usize = 4096;
/// Disagreements of which the cause is looked for.
const DIFFER_MAX: usize = 20_000;
/// Calls of which the order of the scan is compared.
const CHOICES_MAX: usize = 200_000;

/// Decides with each implementation, and compares.
pub(super) struct First {
    seats: Vec<Seat>,
    insight: Insight,
    assumed: Inputs,
    keeps_choices: bool,
    held: VecDeque<Held>,
    /// Decisions in which the model of the recorded kernel differs, with the kernel's choice.
    pub(super) differ: BTreeMap<u64, Choice>,
    /// All choices, where answers of available_idle_cpu() were recorded.
    pub(super) choices: BTreeMap<u64, Choice>,
    /// nr_idle_scan of LLCs as a probe has just told it, to be compared at the decision.
    probed_nr_idle_scan: Vec<Option<u32>>,
    /// The model's nr_idle_scan: right, and right give or take 1.
    pub(super) nr_idle_scan: Share,
    pub(super) nr_idle_scan_near: Share,
}

/// An implementation with its figures.
struct Seat {
    one: Contestant,
    figures: Implementation,
    exits: BTreeMap<Exit, Share>,
    confusion: BTreeMap<(Told, Exit), u64>,
    inputs: Vec<InputFigures>,
}

/// A decision that waits for its choice.
struct Held {
    recorded: RecordedWakeup,
    scene: Scene,
    answers: Vec<Answer>,
}

struct Answer {
    decision: Decision,
    /// What it leaned on, the insensitive inputs included.
    leaned_on: Provenance,
    insensitive: Inputs,
    target: Option<Cpu>,
    recent: Option<Cpu>,
}

impl Answer {
    fn ground(&self) -> Ground {
        let part = self.decision.leaned_on;
        if !part.unknown.is_empty() {
            Ground::Unknown
        } else if !part.assumed.is_empty() {
            Ground::Assumed
        } else if !self.leaned_on.is_known() {
            Ground::Insensitive
        } else {
            Ground::Known
        }
    }
}

impl First {
    /// `contestants`: the model of the recorded kernel, if there is one, and others.
    pub(super) fn new(contestants: Vec<Contestant>, assumed: Inputs) -> Self {
        let seat = |one: Contestant| Seat {
            figures: Implementation {
                spec: one.implementation.name().to_owned(),
                recorded: one.role == Role::Recorded,
                ..Implementation::default()
            },
            one,
            exits: BTreeMap::new(),
            confusion: BTreeMap::new(),
            inputs: Inputs::all().iter().map(named).collect(),
        };
        Self {
            seats: contestants.into_iter().map(seat).collect(),
            insight: Insight::default(),
            assumed,
            keeps_choices: false,
            held: VecDeque::new(),
            differ: BTreeMap::new(),
            choices: BTreeMap::new(),
            probed_nr_idle_scan: Vec::new(),
            nr_idle_scan: Share::default(),
            nr_idle_scan_near: Share::default(),
        }
    }

    /// Keeps all choices from now on.
    pub(super) fn keep_choices(&mut self) {
        self.keeps_choices = true;
    }

    /// A probe told nr_idle_scan of an LLC.
    pub(super) fn probed(&mut self, shared: SharedId, nr_idle_scan: u32) {
        if self.probed_nr_idle_scan.len() <= shared {
            self.probed_nr_idle_scan.resize(shared + 1, None);
        }
        self.probed_nr_idle_scan[shared] = Some(nr_idle_scan);
    }

    pub(super) fn notice(&mut self, state: &State, notice: &Notice) {
        match notice {
            Notice::Wakeup(recorded) => self.wakeup(state, *recorded),
            Notice::Step(step) => self.step(state, step),
            Notice::NotSelected { .. } => {}
            &Notice::Chosen { number, class_cpu, final_cpu } => {
                let choice = Choice { class_cpu, final_cpu };
                self.insight.chosen(number, choice);
                self.settle(number, choice);
            }
            &Notice::NeverChosen { number } => self.settle(number, Choice::default()),
        }
    }

    fn step(&mut self, state: &State, step: &Step) {
        if !self.insight.step(step) {
            return;
        }
        for Seat { one, .. } in &mut self.seats {
            one.implementation.step(state, &one.role.hears(step));
        }
    }

    fn wakeup(&mut self, state: &State, mut recorded: RecordedWakeup) {
        for step in self.insight.prepare(state, &mut recorded) {
            let hears = |seat: &&mut Seat| seat.one.role == Role::Recorded || !matches!(step, Step::Learned(_));
            self.seats.iter_mut().filter(hears).for_each(|seat| seat.one.implementation.step(state, &step));
        }
        self.check_nr_idle_scan(state, &recorded);
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.one.role == Role::Recorded) {
            self.insight.ask(state, &recorded, seat.one.implementation.as_mut());
        }
        let assumed = self.assumed;
        let answer = |seat: &mut Seat| {
            let implementation = seat.one.implementation.as_mut();
            let recent = implementation.hidden().and_then(|hidden| hidden.tasks.get(recorded.wakeup.p.index()));
            let recent = recent.map(|task| task.recent_used_cpu);
            let mut walk = Walk::default();
            let mut decided = decide(implementation, state, &recorded, Some(&mut walk));
            decided.assume(assumed);
            let Decided { decision, leaned_on, insensitive } = decided;
            Answer { decision, leaned_on, insensitive, target: target(&walk), recent }
        };
        let answers = self.seats.iter_mut().map(answer).collect();
        self.held.push_back(Held { recorded, scene: Scene::new(state, &recorded.wakeup), answers });
        if self.held.len() > HELD_MAX
            && let Some(first) = self.held.front()
        {
            self.settle(first.recorded.number, Choice::default());
        }
    }

    /// What the model has, after all that earlier choices taught it, against what a probe just told.
    fn check_nr_idle_scan(&mut self, state: &State, recorded: &RecordedWakeup) {
        if self.probed_nr_idle_scan.is_empty() {
            return;
        }
        let model = self.seats.iter().find(|seat| seat.one.role == Role::Recorded);
        let Some(hidden) = model.and_then(|seat| seat.one.implementation.hidden()) else { return };
        let mut ids: Vec<SharedId> = [recorded.wakeup.this_cpu, recorded.wakeup.prev_cpu]
            .into_iter()
            .filter_map(|cpu| state.topology.llc_shared(cpu))
            .collect();
        ids.dedup();
        for id in ids {
            let shared = hidden.shared[id];
            let told = self.probed_nr_idle_scan.get_mut(id).and_then(Option::take);
            if let Some(told) = told.filter(|_| !shared.known.unknown.contains(Inputs::NR_IDLE_SCAN)) {
                self.nr_idle_scan.add(told == shared.nr_idle_scan);
                self.nr_idle_scan_near.add(told.abs_diff(shared.nr_idle_scan) <= 1);
            }
        }
    }

    fn settle(&mut self, number: u64, choice: Choice) {
        let Ok(at) = self.held.binary_search_by_key(&number, |held| held.recorded.number) else { return };
        let Some(held) = self.held.remove(at) else { return };
        if self.keeps_choices && choice.cpu().is_some() && self.choices.len() < CHOICES_MAX {
            self.choices.insert(number, choice);
        }
        for (seat, answer) in self.seats.iter_mut().zip(&held.answers) {
            let differs = seat.count(&held, answer, choice);
            if differs && seat.one.role == Role::Recorded && self.differ.len() < DIFFER_MAX {
                self.differ.insert(number, choice);
            }
        }
    }

    /// The trace has ended.
    pub(super) fn finish(&mut self) -> Vec<Implementation> {
        while let Some(held) = self.held.front() {
            self.settle(held.recorded.number, Choice::default());
        }
        std::mem::take(&mut self.seats).into_iter().map(Seat::finish).collect()
    }
}

impl Seat {
    /// Counts one decision; whether it differs from the kernel's.
    fn count(&mut self, held: &Held, answer: &Answer, choice: Choice) -> bool {
        let wakeup = &held.recorded.wakeup;
        let kind = self.figures.kinds.of(wakeup.kind);
        kind.decisions += 1;
        let (Some(same), Some(cpu)) = (choice.is(&answer.decision), choice.cpu()) else {
            kind.choice_unknown += 1;
            return false;
        };
        kind.agreement.of(answer.ground()).add(same);
        kind.always_prev.add(cpu == wakeup.prev_cpu);
        if cpu != wakeup.prev_cpu {
            kind.moved.add(same);
        }
        if let Some(target) = answer.target {
            kind.always_target.add(cpu == target);
        }
        self.exits.entry(answer.decision.exit).or_default().add(same);
        if wakeup.kind == WakeKind::Ttwu {
            let told = Told::of(&held.scene, answer.target, answer.recent, cpu);
            *self.confusion.entry((told, answer.decision.exit)).or_default() += 1;
        }
        self.count_inputs(answer, same);
        !same
    }

    fn count_inputs(&mut self, answer: &Answer, same: bool) {
        for (bit, figures) in Inputs::all().iter().zip(&mut self.inputs) {
            if !answer.decision.read.contains(bit) {
                continue;
            }
            let known = answer.leaned_on;
            let count = if answer.insensitive.contains(bit) {
                &mut figures.insensitive
            } else if known.unknown.contains(bit) {
                &mut figures.unknown
            } else if known.assumed.contains(bit) {
                &mut figures.assumed
            } else if known.derived.contains(bit) {
                &mut figures.derived
            } else {
                &mut figures.traced
            };
            *count += 1;
            figures.differ += u64::from(!same);
        }
    }

    fn finish(mut self) -> Implementation {
        let exits = self.exits.into_iter().map(|(exit, agreement)| ExitShare { exit, agreement });
        self.figures.exits = exits.collect();
        let confusion = self.confusion.into_iter();
        self.figures.confusion =
            confusion.map(|((recorded, model), count)| Confusion { recorded, model, count }).collect();
        self.inputs.retain(|one| one.traced + one.derived + one.insensitive + one.assumed + one.unknown > 0);
        self.figures.inputs = self.inputs;
        self.figures
    }
}

fn named(bit: Inputs) -> InputFigures {
    InputFigures { input: input_names(bit).collect(), ..InputFigures::default() }
}

/// Where the walk searched from.
pub(super) fn target(walk: &Walk) -> Option<Cpu> {
    walk.steps.iter().find_map(|step| match step {
        WalkStep::Value { name: "target", value } => usize::try_from(*value).ok().and_then(Cpu::new),
        _ => None,
    })
}
