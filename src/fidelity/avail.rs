// SPDX-License-Identifier: GPL-2.0-or-later
//! The order of the scan, held against the recorded answers of available_idle_cpu() (`sis_avail_in`, `sis_avail_out`).
//!
//! Those recordings have no run queues, so that some inputs are not probed. For each call it is asked which of them have
//! to be other than the books say for the model to look at the same CPUs in the same order, get the same answers and
//! choose the same CPU: first nothing, then the idleness of the CPUs as the kernel itself saw it, then that and the fewest
//! others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fair::{Implementation, Model, ProbeKind, Walk, WalkStep};
use crate::fidelity::why::{Trial, WIDE, set_flips, set_idle, set_nr_idle_scan, slow_variants, weigh};
use crate::machine::State;
use crate::trace::{Event, EventKind};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

/// Answers kept of one call: more are no call's.
const ANSWERS_MAX: usize = 4096;

/// What came of comparing the orders.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanFigures {
    /// Calls with a choice.
    pub calls: u64,
    /// The same order, answers and choice at once.
    pub same: u64,
    /// The kernel's own answers contradict the recorded state: a CPU was seen idle that the books have busy, or the other
    /// way round.
    pub contradicted: u64,
    /// Of those, proven to be races: an event between entry and answer shows the change.
    pub contradicted_races: u64,
    /// With other values of the named inputs, by those.
    pub with: BTreeMap<String, u64>,
    /// Calls that nothing reproduces.
    pub not: Vec<u64>,
}

impl ScanFigures {
    /// Calls that some value of the unprobed inputs reproduces.
    pub fn reproduced(&self) -> u64 {
        self.same + self.with.values().sum::<u64>()
    }

    /// Adds those of another recording.
    pub fn absorb(&mut self, other: &Self) {
        self.calls += other.calls;
        self.same += other.same;
        self.contradicted += other.contradicted;
        self.contradicted_races += other.contradicted_races;
        other.with.iter().for_each(|(name, n)| *self.with.entry(name.clone()).or_default() += n);
        self.not.extend(&other.not);
    }
}

/// The answers of the call open on each CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    cpus: Vec<Open>,
}

#[derive(Debug, Clone, Default)]
struct Open {
    is_open: bool,
    asked: Option<Cpu>,
    answers: Vec<(Cpu, bool)>,
}

impl Answers {
    /// Takes an event, before the machine does.
    pub(super) fn event(&mut self, event: &Event) {
        let at = event.cpu.index();
        if self.cpus.len() <= at {
            self.cpus.resize(at + 1, Open::default());
        }
        let open = &mut self.cpus[at];
        match event.kind {
            EventKind::SisIn(_) => *open = Open { is_open: true, ..Open::default() },
            EventKind::AvailIn { target } => open.asked = Some(target),
            EventKind::AvailOut { idle } => {
                if let Some(cpu) = open.asked.take().filter(|_| open.is_open && open.answers.len() < ANSWERS_MAX) {
                    open.answers.push((cpu, idle));
                }
            }
            // The decision is told while this event is applied.
            EventKind::SisOut { .. } => open.is_open = false,
            _ => {}
        }
    }

    /// Those of the call that `cpu` has just answered.
    pub(super) fn of(&self, cpu: Cpu) -> &[(Cpu, bool)] {
        self.cpus.get(cpu.index()).map_or(&[], |open| &open.answers)
    }
}

/// Compares one call; whether the kernel's answers contradict the books, and about which CPUs.
pub(super) fn compare(figures: &mut ScanFigures, number: u64, trial: &Trial<'_>, answers: &[(Cpu, bool)]) -> Vec<Cpu> {
    figures.calls += 1;
    let walked = |state: &State, model: &Model| {
        let mut walk = Walk::default();
        let decision = model.clone().select_task_rq(state, trial.wakeup, Some(&mut walk));
        trial.choice.is(&decision) == Some(true) && is_order(&walk, answers)
    };
    let contradicted = contradicted(trial.state, answers);
    figures.contradicted += u64::from(!contradicted.is_empty());
    if walked(trial.state, trial.model) {
        figures.same += 1;
        return contradicted;
    }
    let mut seen = trial.state.clone();
    answers.iter().for_each(|&(cpu, idle)| set_idle(&mut seen, cpu, idle));
    let mut variants = variants(trial, &seen);
    variants.sort_by_key(|variant| variant.names.len());
    match variants.iter().find(|variant| walked(&variant.state, &variant.model)) {
        Some(variant) => {
            let idle = (!contradicted.is_empty()).then_some("idle");
            let names: Vec<&str> = idle.into_iter().chain(variant.names.iter().copied()).collect();
            *figures.with.entry(names.join(" + ")).or_default() += 1;
        }
        None => figures.not.push(number),
    }
    contradicted
}

/// CPUs of which the kernel's answer is another than the state's.
fn contradicted(state: &State, answers: &[(Cpu, bool)]) -> Vec<Cpu> {
    let rq = &state.rq;
    let is_idle = |cpu: Cpu| rq.curr_idle.test(cpu) && rq.nr_running[cpu.index()] == 0 && !rq.ttwu_pending.test(cpu);
    let differs = |&&(cpu, idle): &&(Cpu, bool)| is_idle(cpu) != idle;
    let mut cpus: Vec<Cpu> = answers.iter().filter(differs).map(|&(cpu, _)| cpu).collect();
    cpus.sort();
    cpus.dedup();
    cpus
}

fn is_order(walk: &Walk, answers: &[(Cpu, bool)]) -> bool {
    let asked = walk.steps.iter().filter_map(|step| match *step {
        WalkStep::Probe { kind: ProbeKind::Available, cpu, idle } => Some((cpu, idle)),
        _ => None,
    });
    asked.eq(answers.iter().map(|&(cpu, idle)| (u32::from(cpu.0), idle)))
}

struct Variant {
    names: Vec<&'static str>,
    state: State,
    model: Model,
}

/// Puts another value in.
type Change<'a> = dyn Fn(&mut State, &mut Model) + 'a;

/// `seen` with every combination of the inputs that these recordings do not tell.
fn variants(trial: &Trial<'_>, seen: &State) -> Vec<Variant> {
    let w = trial.wakeup;
    if w.kind != WakeKind::Ttwu {
        let states = trial.choice.cpu().map(|cpu| slow_variants(seen, cpu)).unwrap_or_default();
        let variant = |state| Variant { names: vec!["loads and idle stamps"], state, model: trial.model.clone() };
        return states.into_iter().map(variant).collect();
    }
    let mut all = vec![Variant { names: Vec::new(), state: seen.clone(), model: trial.model.clone() }];
    let mut extend = |name: &'static str, changes: &[&Change<'_>]| {
        for at in 0..all.len() {
            for change in changes {
                let mut names = all[at].names.clone();
                names.push(name);
                let (mut state, mut model) = (all[at].state.clone(), all[at].model.clone());
                change(&mut state, &mut model);
                all.push(Variant { names, state, model });
            }
        }
    };
    extend(
        "wake_affine_weight",
        &[&|state, _| weigh(state, w.this_cpu, w.prev_cpu), &|state, _| weigh(state, w.prev_cpu, w.this_cpu)],
    );
    extend("wake_wide", &[&|_, model| set_flips(model, w, WIDE[0]), &|_, model| set_flips(model, w, WIDE[1])]);
    extend("has_idle_cores", &[&|_, model| model.hidden.shared.iter_mut().for_each(|one| one.has_idle_cores ^= true)]);
    extend(
        "policy",
        &[&|state, _| {
            if let Some(cpu) = trial.choice.cpu() {
                state.rq.idle_h_nr_running[cpu.index()] = state.rq.nr_running[cpu.index()];
            }
        }],
    );
    extend(
        "nr_running",
        &[&|state, _| state.rq.nr_running[w.this_cpu.index()] = 1, &|state, _| {
            state.rq.nr_running[w.this_cpu.index()] = 2;
        }],
    );
    let weight = trial.state.topology.sd_llc_size(w.this_cpu).max(trial.state.topology.sd_llc_size(w.prev_cpu));
    let limits: Vec<Box<Change<'_>>> = (0..=weight)
        .map(|nr| Box::new(move |_: &mut State, model: &mut Model| set_nr_idle_scan(model, nr)) as Box<_>)
        .collect();
    let limits: Vec<&Change<'_>> = limits.iter().map(AsRef::as_ref).collect();
    extend("nr_idle_scan", &limits);
    all
}
