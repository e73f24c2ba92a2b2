// SPDX-License-Identifier: GPL-2.0-or-later
//! Plays a case with several implementations side by side and puts every oracle to every decision.

use std::collections::BTreeMap;

use crate::fair::model::Model;
use crate::fair::{Brief, Decision, Exit, Hidden, Implementation, Step, Walk};
use crate::machine::State;
use crate::oracle::quiet::{Panic, quietly};
use crate::oracle::tried::tried;
use crate::oracle::{Finding, TWINS, Trial, Twin, effects, explained, invariants_of};
use crate::scenario::{Case, CaseError, Played, Player, Settings, World};
use crate::spec::{ModelSpec, SpecError};
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// Makes implementations by their names.
pub trait Maker {
    /// One that knows nothing yet of the machine's past, with the case's switches and constants.
    ///
    /// # Errors
    /// [`Trouble`] where there is none of that name.
    fn make(&self, name: &str, case: &Case, world: &World) -> Result<Side, Trouble>;

    /// Makes `side` as [`make`](Self::make) would make it for this case, from what it is.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    fn restart(&self, side: &mut Side, case: &Case, world: &World) -> Result<(), Trouble> {
        *side = self.make(&side.name, case, world)?;
        Ok(())
    }
}

/// The models of [`crate::fair`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Models;

impl Maker for Models {
    fn make(&self, name: &str, case: &Case, world: &World) -> Result<Side, Trouble> {
        let spec: ModelSpec = name.parse()?;
        let settings = &case.settings;
        let mut model = Model::new(spec, &world.state().topology);
        model.set_features((spec.features() | settings.features.on) - settings.features.off);
        declare(&mut model.hidden, settings);
        Ok(Side { name: name.to_owned(), base: Some(spec), spec: Some(*model.spec()), implementation: Box::new(model) })
    }

    fn restart(&self, side: &mut Side, case: &Case, world: &World) -> Result<(), Trouble> {
        let settings = &case.settings;
        let (Some(base), Some(old)) = (side.base, side.spec) else {
            *side = self.make(&side.name, case, world)?;
            return Ok(());
        };
        let spec = base.with_features((base.features() | settings.features.on) - settings.features.off);
        if spec != old {
            *side = self.make(&side.name, case, world)?;
        } else if let Some(hidden) = side.implementation.hidden_mut() {
            hidden.forget(&world.state().topology);
            declare(hidden, settings);
        }
        Ok(())
    }
}

/// The constants that a case declares.
fn declare(hidden: &mut Hidden, settings: &Settings) {
    hidden.clock.probe_ns = settings.probe_ns;
    hidden.clock.clock_read_ns = settings.clock_read_ns;
    hidden.clock.mask_op_ns = settings.mask_op_ns;
    hidden.sysctl_sched_preferred = settings.sched_preferred;
    hidden.sysctl_sched_allowed = settings.sched_allowed;
}

/// One implementation on trial.
pub struct Side {
    /// Its name, without the case's switches.
    pub name: String,
    /// Its spec as it was named, where it is a model.
    pub base: Option<ModelSpec>,
    /// Its spec with the case's switches, where it is a model.
    pub spec: Option<ModelSpec>,
    /// Itself.
    pub implementation: Box<dyn Implementation>,
}

/// What the judge looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What a listed kernel bug explains is no finding.
    pub allow_known: bool,
    /// Any difference between the first implementation and another is a finding.
    pub expect_equal: bool,
    /// The kernel's counters of wakeups (schedstats) have to agree with the placement, too.
    pub schedstat: bool,
}

impl Default for Options {
    /// Known bugs are findings, differences are not.
    fn default() -> Self {
        Self { allow_known: false, expect_equal: false, schedstat: false }
    }
}

/// Why a case was not played to its end.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The case itself.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The name of an implementation.
    #[error(transparent)]
    Spec(Box<SpecError>),
    /// An implementation that cannot be made.
    #[error("implementation {name:?}: {why}")]
    Implementation {
        /// Its name.
        name: String,
        /// What hinders it.
        why: String,
    },
    /// Nobody to play the case with.
    #[error("the case names no implementations; add pair = [\"v5.11\", \"v6.1\"] to it, or say --pair v5.11,v6.1")]
    NoImplementation,
    /// An oracle spoke.
    #[error("{0}")]
    Finding(Box<Finding>),
}

impl From<SpecError> for Trouble {
    fn from(error: SpecError) -> Self {
        Self::Spec(Box::new(error))
    }
}

impl From<Box<Finding>> for Trouble {
    fn from(finding: Box<Finding>) -> Self {
        Self::Finding(finding)
    }
}

/// What happened in a case that was played to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Events played.
    pub events: u64,
    /// Of them, those that could not happen.
    pub skipped: u64,
    /// Wakeups that led to a decision.
    pub decisions: u64,
    /// Exits taken, by all implementations.
    pub exits: BTreeMap<Exit, u64>,
    /// Differences between the first implementation and another, by the other's place and both exits.
    pub divergences: BTreeMap<(usize, Exit, Exit), u64>,
    /// Findings that a known bug explains, where these are allowed.
    pub known: BTreeMap<&'static str, u64>,
    /// Every decision of every implementation, in order.
    pub trail: Vec<Decision>,
}

/// Hidden state is compared as a whole on machines up to this size: it is copied for each decision.
const EFFECTS_CPUS_MAX: usize = 16;

struct Judge {
    sides: Vec<Side>,
    walks: Vec<Walk>,
    /// Hidden state of each before the decision, on small machines.
    befores: Vec<Option<Hidden>>,
    twins: Vec<(usize, usize, &'static Twin)>,
    options: Options,
    event: usize,
    tally: Tally,
}

/// Plays `case` with the implementations in `names`, of which the first places the tasks.
///
/// # Errors
/// [`Trouble::Finding`] with the first finding; any other [`Trouble`] where the case cannot be played.
pub fn try_case<S: AsRef<str>>(
    case: &Case,
    names: &[S],
    maker: &dyn Maker,
    options: Options,
) -> Result<Tally, Trouble> {
    if names.is_empty() {
        return Err(Trouble::NoImplementation);
    }
    let mut world = World::new(case)?;
    let sides = names.iter().map(|name| maker.make(name.as_ref(), case, &world)).collect::<Result<Vec<_>, _>>()?;
    let place = |name: &str| sides.iter().position(|side| side.name == name);
    let twins = TWINS
        .iter()
        .filter_map(|twin| Some((place(twin.a)?, place(twin.b)?, twin)))
        .filter(|(_, _, twin)| (twin.when)(case))
        .collect();
    let walks = vec![Walk::default(); sides.len()];
    let befores = vec![None; sides.len()];
    let mut judge = Judge { sides, walks, befores, twins, options, event: 0, tally: Tally::default() };
    world.begin(&mut judge)?;
    for (at, event) in case.events.iter().enumerate() {
        judge.event = at + 1;
        judge.tally.events += 1;
        judge.tally.skipped += u64::from(world.play(event, &mut judge)? == Played::Skipped);
    }
    Ok(judge.tally)
}

/// [`try_case`], with a panic as one more finding.
///
/// # Errors
/// As [`try_case`].
pub fn attempt<S: AsRef<str>>(case: &Case, names: &[S], maker: &dyn Maker, options: Options) -> Result<Tally, Trouble> {
    quietly(|| try_case(case, names, maker, options))
        .unwrap_or_else(|panic| Err(Trouble::Finding(Box::new(panicked(panic, names)))))
}

/// A panic as a finding.
pub(super) fn panicked<S: AsRef<str>>(panic: Panic, names: &[S]) -> Finding {
    Finding {
        oracle: "panic",
        implementations: names.iter().map(|name| name.as_ref().to_owned()).collect(),
        exits: Vec::new(),
        condition: panic.place,
        known: None,
        text: panic.message,
        event: 0,
    }
}

impl Player for Judge {
    type Error = Box<Finding>;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Box<Finding>> {
        self.sides.iter_mut().for_each(|side| side.implementation.step(state, step));
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Box<Finding>> {
        let from = self.tally.trail.len();
        self.tally.decisions += 1;
        for at in 0..self.sides.len() {
            let decision = self.ask(at, state, wakeup)?;
            *self.tally.exits.entry(decision.exit).or_default() += 1;
            self.tally.trail.push(decision);
        }
        let decisions = self.tally.trail[from..].to_vec();
        for &(a, b, twin) in &self.twins {
            let result = twin.check((&decisions[a], &self.walks[a]), (&decisions[b], &self.walks[b]));
            result.map_err(|finding| placed(*finding, self.event))?;
        }
        self.explained(state, wakeup, &decisions)?;
        let first = decisions[0];
        for (at, other) in decisions.iter().enumerate().skip(1) {
            if (first.class_cpu, first.exit) != (other.class_cpu, other.exit) {
                if first.class_cpu != other.class_cpu {
                    *self.tally.divergences.entry((at, first.exit, other.exit)).or_default() += 1;
                }
                if self.options.expect_equal {
                    let finding = difference(&self.sides[0].name, &first, &self.sides[at].name, other);
                    return Err(placed(finding, self.event));
                }
            }
        }
        Ok(first.final_cpu)
    }
}

impl Judge {
    /// Every two bare releases, where hidden state is at hand.
    fn explained(&self, state: &State, wakeup: &Wakeup, decisions: &[Decision]) -> Result<(), Box<Finding>> {
        let side = |at: usize| {
            let spec = self.sides[at].spec.as_ref().filter(|spec| spec.info().name == self.sides[at].name)?;
            Some(explained::Side { spec, before: self.befores[at].as_ref()?, decision: &decisions[at] })
        };
        for a in 0..decisions.len() {
            for b in a + 1..decisions.len() {
                if let (Some(a), Some(b)) = (side(a), side(b)) {
                    explained::explained(state, wakeup, a, b).map_err(|finding| placed(*finding, self.event))?;
                }
            }
        }
        Ok(())
    }

    /// One implementation's decision, with every invariant put to it.
    fn ask(&mut self, at: usize, state: &State, wakeup: &Wakeup) -> Result<Decision, Box<Finding>> {
        let (event, known_seen) = (self.event, &mut self.tally.known);
        let (side, walk) = (&mut self.sides[at], &mut self.walks[at]);
        walk.clear();
        let small = state.topology.nr_cpu_ids() <= EFFECTS_CPUS_MAX;
        let before = side.implementation.hidden().filter(|_| small).cloned();
        let peeked = side.implementation.peek(state, wakeup, None);
        let peek_left_a_trace = before.as_ref().is_some_and(|before| side.implementation.hidden() != Some(before));
        let found_by_trying = match &before {
            Some(_) => tried(&mut *side.implementation, state, wakeup).err(),
            None => None,
        };
        let decision = side.implementation.select_task_rq(state, wakeup, Some(walk));
        let (name, spec) = (side.name.as_str(), side.spec.as_ref());
        let brief = Brief::of(walk);
        let trial = Trial { name, spec, state, wakeup, decision: &decision, brief: &brief };
        if let Some(fault) = side.implementation.fault() {
            return Err(placed(Finding::of("fault", &trial, "a fault in the code", fault), event));
        }
        if peeked != decision {
            let text = format!("{peeked:?} asked first, then {decision:?}");
            return Err(placed(Finding::of("determinism", &trial, "another answer when asked again", text), event));
        }
        if peek_left_a_trace {
            let text = "peek() changed hidden state".to_owned();
            return Err(placed(Finding::of("determinism", &trial, "a look that leaves a trace", text), event));
        }
        if let Some(finding) = found_by_trying {
            return Err(placed(*finding, event));
        }
        if let (Some(before), Some(after)) = (&before, side.implementation.hidden()) {
            effects(&trial, before, after).map_err(|finding| placed(*finding, event))?;
        }
        self.befores[at] = before;
        for (_, check) in invariants_of(&trial, self.options) {
            match check(&trial) {
                Ok(()) => {}
                Err(finding) => match finding.known.filter(|_| self.options.allow_known) {
                    Some(known) => *known_seen.entry(known.fix).or_default() += 1,
                    None => return Err(placed(*finding, event)),
                },
            }
        }
        Ok(decision)
    }
}

pub(super) fn placed(finding: Finding, event: usize) -> Box<Finding> {
    Box::new(Finding { event, ..finding })
}

pub(super) fn difference(a: &str, of_a: &Decision, b: &str, of_b: &Decision) -> Finding {
    Finding {
        oracle: "difference",
        implementations: vec![a.to_owned(), b.to_owned()],
        exits: vec![of_a.exit, of_b.exit],
        condition: if of_a.class_cpu == of_b.class_cpu { "another exit" } else { "another CPU" }.to_owned(),
        known: None,
        text: format!("CPU {} against CPU {}", of_a.class_cpu, of_b.class_cpu),
        event: 0,
    }
}
