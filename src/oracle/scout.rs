// SPDX-License-Identifier: GPL-2.0-or-later
//! The quick judge: plays a case once, without recorded walks, and puts every invariant to every decision.
//!
//! What it leaves to [`attempt`](super::attempt): asking each implementation twice, hidden state as a whole, twins,
//! explained differences. It does not stop at what it finds, and tells which branches were new.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::fair::{Brief, Decision, Edges, Exit, Step};
use crate::machine::State;
use crate::oracle::judge::{difference, placed};
use crate::oracle::quiet::quietly;
use crate::oracle::{Finding, Maker, Options, Side, Trial, Trouble, invariants_of, panicked};
use crate::scenario::{Case, Played, Player, World};
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// Most findings kept of one case.
const FINDINGS_MAX: usize = 32;

/// Sites of branches from here on are pairs of exits.
const PAIRS: u32 = 1 << 30;

/// What happened in cases that a scout played.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events played.
    pub events: u64,
    /// Of them, those that could not happen.
    pub skipped: u64,
    /// Wakeups that led to a decision.
    pub decisions: u64,
    /// Exits taken, by all implementations, at the place of each [`Exit`].
    pub exits: [u64; Exit::ALL.len()],
    /// Differences between the first implementation and another, by the other's place and both exits.
    pub divergences: BTreeMap<(usize, Exit, Exit), u64>,
    /// Findings that a known bug explains, where these are allowed.
    pub known: BTreeMap<&'static str, u64>,
}

/// Plays one case after another; what can be kept from one to the next is.
pub struct Scout<'a> {
    names: &'a [String],
    maker: &'a dyn Maker,
    options: Options,
    world: Option<World>,
    bench: Bench,
}

/// The implementations, and what they are judged by.
struct Bench {
    sides: Vec<Side>,
    decisions: Vec<Decision>,
    brief: Brief,
    options: Options,
    event: usize,
    counts: Counts,
    findings: Vec<Finding>,
}

impl<'a> Scout<'a> {
    /// For the implementations in `names`, of which the first places the tasks.
    pub fn new(names: &'a [String], maker: &'a dyn Maker, options: Options) -> Self {
        let bench = Bench {
            sides: Vec::new(),
            decisions: Vec::new(),
            brief: Brief::default(),
            options,
            event: 0,
            counts: Counts::default(),
            findings: Vec::new(),
        };
        Self { names, maker, options, world: None, bench }
    }

    /// Marks branches in `edges` from now on.
    pub fn set_edges(&mut self, edges: Edges) -> Edges {
        std::mem::replace(&mut self.bench.brief.edges, edges)
    }

    /// What happened since the last question.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.bench.counts)
    }

    /// Plays `case` to its end; what was found, and whether a branch was new.
    ///
    /// # Errors
    /// [`Trouble`] where the case cannot be played.
    pub fn play(&mut self, case: &Case) -> Result<(Vec<Finding>, bool), Trouble> {
        if self.names.is_empty() {
            return Err(Trouble::NoImplementation);
        }
        self.bench.options = self.options;
        let panic = match quietly(|| self.play_through(case)) {
            Ok(played) => played.map(|()| None)?,
            Err(panic) => Some(panicked(panic, self.names)),
        };
        if panic.is_some() {
            // Whatever it was in the middle of.
            self.world = None;
            self.bench.sides.clear();
        }
        let mut findings = std::mem::take(&mut self.bench.findings);
        findings.extend(panic);
        Ok((findings, self.bench.brief.edges.take_fresh()))
    }

    fn play_through(&mut self, case: &Case) -> Result<(), Trouble> {
        match &mut self.world {
            Some(world) => world.restart(case)?,
            none => *none = Some(World::new(case)?),
        }
        let world = self.world.as_mut().expect("it was made");
        if self.bench.sides.is_empty() {
            let sides = self.names.iter().map(|name| self.maker.make(name, case, world));
            self.bench.sides = sides.collect::<Result<Vec<_>, _>>()?;
        } else {
            for side in &mut self.bench.sides {
                self.maker.restart(side, case, world)?;
            }
        }
        let Ok(()) = self.bench.begin(world);
        for (at, event) in case.events.iter().enumerate() {
            self.bench.event = at + 1;
            let Ok(played) = world.play(event, &mut self.bench);
            self.bench.counts.events += 1;
            self.bench.counts.skipped += u64::from(played == Played::Skipped);
        }
        Ok(())
    }
}

/// The first finding in `case` that is the one wanted.
///
/// # Errors
/// As [`Scout::play`].
pub fn spot(
    case: &Case,
    names: &[String],
    maker: &dyn Maker,
    options: Options,
    is_wanted: &dyn Fn(&Finding) -> bool,
) -> Result<Option<Finding>, Trouble> {
    let (findings, _) = Scout::new(names, maker, options).play(case)?;
    Ok(findings.into_iter().find(is_wanted))
}

impl Bench {
    /// Tells the hidden state that the case begins with: once, and the others get a copy.
    fn begin(&mut self, world: &World) -> Result<(), Infallible> {
        let Some((first, others)) = self.sides.split_first_mut() else { return Ok(()) };
        let Ok(()) = world.begin(&mut Told(first));
        for side in others {
            match (first.implementation.hidden(), side.implementation.hidden_mut()) {
                (Some(told), Some(hidden)) => hidden.learn_as(told),
                _ => world.begin(&mut Told(side))?,
            }
        }
        Ok(())
    }

    fn keep(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(*placed(finding, self.event));
        }
    }
}

/// One implementation, told what the case begins with.
struct Told<'a>(&'a mut Side);

impl Player for Told<'_> {
    type Error = Infallible;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Infallible> {
        self.0.implementation.step(state, step);
        Ok(())
    }

    fn decide(&mut self, _state: &State, wakeup: &Wakeup) -> Result<Cpu, Infallible> {
        Ok(wakeup.prev_cpu)
    }
}

impl Player for Bench {
    type Error = Infallible;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Infallible> {
        self.sides.iter_mut().for_each(|side| side.implementation.step(state, step));
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Infallible> {
        self.counts.decisions += 1;
        self.decisions.clear();
        for at in 0..self.sides.len() {
            let decision = self.sides[at].implementation.select_briefly(state, wakeup, &mut self.brief);
            self.counts.exits[decision.exit as usize] += 1;
            self.decisions.push(decision);
            self.judge(at, state, wakeup, &decision);
        }
        let first = self.decisions[0];
        for at in 1..self.decisions.len() {
            let other = self.decisions[at];
            if (first.class_cpu, first.exit) == (other.class_cpu, other.exit) {
                continue;
            }
            if first.class_cpu != other.class_cpu {
                *self.counts.divergences.entry((at, first.exit, other.exit)).or_default() += 1;
            }
            let pair = (first.exit as u32) << 10 | (other.exit as u32) << 4 | (at as u32) << 16;
            self.brief.edges.restart();
            self.brief.edges.mark(PAIRS | pair | u32::from(first.class_cpu != other.class_cpu));
            if self.options.expect_equal {
                let (a, b) = (&self.sides[0].name, &self.sides[at].name);
                self.keep(difference(a, &first, b, &other));
            }
        }
        Ok(first.final_cpu)
    }
}

impl Bench {
    fn judge(&mut self, at: usize, state: &State, wakeup: &Wakeup, decision: &Decision) {
        let side = &self.sides[at];
        let (name, spec) = (side.name.as_str(), side.spec.as_ref());
        let trial = Trial { name, spec, state, wakeup, decision, brief: &self.brief };
        let fault = side.implementation.fault();
        let fault = fault.map(|fault| Finding::of("fault", &trial, "a fault in the code", fault));
        let wrong =
            invariants_of(&trial, self.options).filter_map(|(_, check)| check(&trial).err().map(|finding| *finding));
        let found: Vec<Finding> = wrong.chain(fault).collect();
        for finding in found {
            match finding.known.filter(|_| self.options.allow_known) {
                Some(known) => *self.counts.known.entry(known.fix).or_default() += 1,
                None => self.keep(finding),
            }
        }
    }
}

impl Counts {
    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.skipped += other.skipped;
        self.decisions += other.decisions;
        self.exits.iter_mut().zip(&other.exits).for_each(|(sum, n)| *sum += n);
        for (&kind, n) in &other.divergences {
            *self.divergences.entry(kind).or_default() += n;
        }
        for (&fix, n) in &other.known {
            *self.known.entry(fix).or_default() += n;
        }
    }
}
