// SPDX-License-Identifier: GPL-2.0-or-later
//! The second pass: back to the decisions that differ, with the kernel's choice known.

use std::collections::BTreeMap;

use crate::fair::{Implementation as _, Model, Step};
use crate::fidelity::avail::{Answers, ScanFigures, compare};
use crate::fidelity::figures::{Cause, Implementation, RaceProof};
use crate::fidelity::race::{Watch, prove};
use crate::fidelity::why::{Trial, Why};
use crate::machine::{Notice, RecordedWakeup, State};
use crate::replay::totals::input_names;
use crate::replay::{Choice, Insight};
use crate::trace::Event;
use crate::wakeup::WakeKind;

/// Goes the same way as the first pass with the model of the recorded kernel alone.
pub(super) struct Second {
    model: Model,
    insight: Insight,
    /// Decisions to look at.
    differ: BTreeMap<u64, Choice>,
    /// All choices, where the order of each scan is compared.
    choices: Option<BTreeMap<u64, Choice>>,
    watch: Watch,
    answers: Answers,
    causes: BTreeMap<Why, Vec<u64>>,
    explains: BTreeMap<Why, u64>,
    races: Vec<(WakeKind, RaceProof)>,
    pub(super) scan: ScanFigures,
}

impl Second {
    pub(super) fn new(model: Model, differ: BTreeMap<u64, Choice>, choices: Option<BTreeMap<u64, Choice>>) -> Self {
        Self {
            model,
            insight: Insight::default(),
            differ,
            choices,
            watch: Watch::default(),
            answers: Answers::default(),
            causes: BTreeMap::new(),
            explains: BTreeMap::new(),
            races: Vec::new(),
            scan: ScanFigures::default(),
        }
    }

    /// Takes an event, before the machine does.
    pub(super) fn event(&mut self, event: &Event) {
        self.watch.event(event);
        if self.choices.is_some() {
            self.answers.event(event);
        }
    }

    pub(super) fn notice(&mut self, state: &State, notice: &Notice) {
        match notice {
            Notice::Wakeup(recorded) => self.wakeup(state, *recorded),
            Notice::Step(step) => {
                if self.insight.step(step) {
                    let step = if let Step::Seed(fact) = *step { Step::Fact(fact) } else { *step };
                    self.model.step(state, &step);
                }
            }
            &Notice::Chosen { number, class_cpu, final_cpu } => {
                self.insight.chosen(number, Choice { class_cpu, final_cpu });
            }
            Notice::NotSelected { .. } | Notice::NeverChosen { .. } => {}
        }
    }

    fn wakeup(&mut self, state: &State, mut recorded: RecordedWakeup) {
        for step in self.insight.prepare(state, &mut recorded) {
            self.model.step(state, &step);
        }
        self.insight.ask(state, &recorded, &mut self.model);
        let wakeup = recorded.wakeup;
        let window = self.watch.window(wakeup.this_cpu, recorded.ts_ns);
        self.watch.close(wakeup.this_cpu);
        // Both tasks have an entry, as in the decision itself.
        for id in [wakeup.p, wakeup.current] {
            self.model.hidden.task_mut(id, state.tasks[id].task_cpu);
        }
        if let Some(&choice) = self.differ.get(&recorded.number) {
            let trial = Trial { state, wakeup: &wakeup, model: &self.model, choice };
            let changes = self.watch.changes(wakeup.this_cpu, window);
            let why = match prove(&trial, recorded.number, &changes, window) {
                Some(proof) => {
                    self.races.push((wakeup.kind, proof));
                    *self.explains.entry(Why::Idle).or_default() += 1;
                    Why::Race
                }
                None => {
                    let whys = trial.explain();
                    whys.iter().for_each(|&why| *self.explains.entry(why).or_default() += 1);
                    whys.first().copied().unwrap_or(Why::Unexplained)
                }
            };
            self.causes.entry(why).or_default().push(recorded.number);
        }
        let choice = self.choices.as_ref().and_then(|choices| choices.get(&recorded.number)).copied();
        if let Some(choice) = choice {
            let trial = Trial { state, wakeup: &wakeup, model: &self.model, choice };
            let answers = self.answers.of(wakeup.this_cpu);
            let contradicted = compare(&mut self.scan, recorded.number, &trial, answers);
            let changes = self.watch.changes(wakeup.this_cpu, window);
            let is_race = contradicted.iter().any(|cpu| changes.iter().any(|change| change.cpu == *cpu));
            self.scan.contradicted_races += u64::from(is_race);
        }
        self.model.select_task_rq(state, &wakeup, None);
    }

    /// Puts what was found into the figures of the model.
    pub(super) fn finish(self, figures: &mut Implementation) {
        for (kind, proof) in self.races {
            figures.kinds.of(kind).races += 1;
            figures.races.push(proof);
        }
        for (&why, &count) in &self.explains {
            let name: String = input_names(why.input()).collect();
            if let Some(input) = figures.inputs.iter_mut().find(|input| input.input == name) {
                input.explains += count;
            }
        }
        let cause = |(why, decisions): (Why, Vec<u64>)| Cause {
            cause: why.name().to_owned(),
            meaning: why.meaning().to_owned(),
            decisions,
        };
        figures.residue = self.causes.into_iter().map(cause).collect();
        figures.residue.sort_by(|a, b| b.decisions.len().cmp(&a.decisions.len()).then_with(|| a.cause.cmp(&b.cause)));
    }
}
