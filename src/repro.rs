// SPDX-License-Identifier: GPL-2.0-or-later
//! One case again: does it still show something, what is the smallest case that does, and how do the walks go?

use crate::fair::{Decision, Step, Walk};
use crate::fuzz_loop;
use crate::machine::State;
use crate::oracle::{Finding, INVARIANTS, Maker, Options, Side, Tally, Trouble, attempt, lineup, spot};
use crate::report::layout::{HEADING, paint};
use crate::report::picture::{LEGEND, picture};
use crate::report::walks::{Line, first_difference, lines, side_by_side, stacked};
use crate::scenario::{Case, Event, Played, Player, World};
use crate::shrink::shrink;
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// From this width on two walks stand side by side.
const SIDE_BY_SIDE: usize = 100;

/// What a case showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repro {
    /// The case, smaller where that was asked for; its pair and note tell what it shows.
    pub case: Case,
    /// The finding; where no oracle speaks, the first difference between the implementations.
    pub finding: Option<Finding>,
}

impl Repro {
    /// Whether an oracle spoke; two implementations that merely differ are none.
    pub fn is_wrong(&self) -> bool {
        self.finding.as_ref().is_some_and(|finding| finding.oracle != "difference")
    }
}

/// Plays `case` with the implementations in `names`; where that is empty, with those it names, or with all releases.
///
/// # Errors
/// [`Trouble`] other than a finding.
pub fn repro(
    case: &Case,
    names: &[String],
    maker: &dyn Maker,
    options: Options,
    minimize: bool,
) -> Result<Repro, Trouble> {
    let names = players(case, names);
    let finding = match found(fuzz_loop::check(case, &names, maker, options))? {
        Some(finding) => Some(finding),
        None => found(attempt(case, &names, maker, Options { expect_equal: true, ..options }))?,
    };
    let Some(finding) = finding else { return Ok(Repro { case: Case { pair: names, ..case.clone() }, finding: None }) };
    let (case, finding) =
        if minimize { minimized(case, &names, maker, options, finding) } else { (case.clone(), finding) };
    let pair = if case.pair.is_empty() || !minimize { names } else { case.pair.clone() };
    let note = finding.to_string().lines().next().unwrap_or_default().to_owned();
    Ok(Repro { case: Case { pair, note, ..case }, finding: Some(finding) })
}

/// The implementations asked for, else those that the case names, else all releases.
fn players(case: &Case, names: &[String]) -> Vec<String> {
    match (names, case.pair.as_slice()) {
        ([], []) => lineup(0).to_vec(),
        ([], pair) => pair.to_vec(),
        (names, _) => names.to_vec(),
    }
}

fn found(result: Result<Tally, Trouble>) -> Result<Option<Finding>, Trouble> {
    match result {
        Ok(_) => Ok(None),
        Err(Trouble::Finding(finding)) => Ok(Some(*finding)),
        Err(trouble) => Err(trouble),
    }
}

/// Whether the quick judge puts this oracle to every decision.
fn is_seen_at_once(oracle: &str) -> bool {
    matches!(oracle, "difference" | "fault") || INVARIANTS.iter().any(|(name, _)| *name == oracle)
}

/// The smallest case found in which the same oracle fails the same way, with the finding as it shows there. The case's
/// pair is reduced to the implementations concerned where these show it alone.
pub fn minimized(
    case: &Case,
    names: &[String],
    maker: &dyn Maker,
    options: Options,
    finding: Finding,
) -> (Case, Finding) {
    let key = finding.key();
    minimized_where(case, names, maker, options, finding, &|other| other.key() == key)
}

/// The same for a finding of a sort: whatever `is_same` takes for it.
pub fn minimized_where(
    case: &Case,
    names: &[String],
    maker: &dyn Maker,
    options: Options,
    finding: Finding,
    is_same: &dyn Fn(&Finding) -> bool,
) -> (Case, Finding) {
    let options = Options { expect_equal: finding.oracle == "difference", ..options };
    let whole = matches!(finding.oracle, "relabel" | "replay");
    let again = |case: &Case, names: &[String]| {
        // Quick, and past what else the case shows; what the quick judge leaves out needs the others.
        if let Some(finding) = spot(case, names, maker, options, is_same).ok().flatten() {
            return Some(finding);
        }
        if is_seen_at_once(finding.oracle) {
            return None;
        }
        let result =
            if whole { fuzz_loop::check(case, names, maker, options) } else { attempt(case, names, maker, options) };
        found(result).ok().flatten().filter(is_same)
    };
    let mut fewer = names[..1].to_vec();
    fewer.extend(finding.implementations.iter().filter(|name| **name != names[0]).cloned());
    let candidates = [finding.implementations.clone(), fewer];
    let names = candidates.into_iter().find(|fewer| again(case, fewer).is_some()).unwrap_or_else(|| names.to_vec());
    let mut small = shrink(case, &mut |candidate| again(candidate, &names).is_some());
    // What led to it becomes the beginning, where the finding does not need the way.
    loop {
        let folded = folded(&small, &names, maker).find(|folded| again(folded, &names).is_some());
        let Some(folded) = folded else { break };
        small = shrink(&folded, &mut |candidate| again(candidate, &names).is_some());
    }
    let finding = again(&small, &names).unwrap_or(finding);
    (Case { pair: names, ..small }, finding)
}

/// The case from each moment on at which a decision is left, latest first.
fn folded<'a>(case: &'a Case, names: &'a [String], maker: &'a dyn Maker) -> impl Iterator<Item = Case> + 'a {
    let moments = (1..case.events.len()).rev().filter(|&at| case.events[at..].iter().any(Event::is_decision));
    moments.filter_map(move |at| fold(case, at, names, maker).ok())
}

/// The case from its event `at` (from 0) on, with the state and the first implementation's memory of that moment.
fn fold(case: &Case, at: usize, names: &[String], maker: &dyn Maker) -> Result<Case, Trouble> {
    let mut world = World::new(case)?;
    let mut alone = Alone(maker.make(&names[0], case, &world)?);
    let Ok(()) = world.begin(&mut alone);
    for event in &case.events[..at] {
        let Ok(_) = world.play(event, &mut alone);
    }
    let hidden = alone.0.implementation.hidden().ok_or(Trouble::NoImplementation)?;
    let folded = world.as_beginning(case, hidden, &case.events[at..]);
    folded.check()?;
    Ok(folded)
}

/// One implementation that decides.
struct Alone(Side);

impl Player for Alone {
    type Error = std::convert::Infallible;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Self::Error> {
        self.0.implementation.step(state, step);
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Self::Error> {
        Ok(self.0.implementation.select_task_rq(state, wakeup, None).final_cpu)
    }
}

/// The case played event by event, with a picture and the walks at each decision, in at most `width` columns.
///
/// # Errors
/// [`Trouble`] where the case or an implementation is not as it should be.
pub fn explain(case: &Case, names: &[String], maker: &dyn Maker, width: usize) -> Result<String, Trouble> {
    let names = players(case, names);
    let mut world = World::new(case)?;
    let sides = names.iter().map(|name| maker.make(name, case, &world)).collect::<Result<Vec<_>, _>>()?;
    let mut narrator = Narrator { sides, width, out: format!("{case:?}\n{}\n", LEGEND.join("  ")) };
    let Ok(()) = world.begin(&mut narrator);
    for (at, event) in case.events.iter().enumerate() {
        narrator.out += &format!("\n{}\n", paint(HEADING, &format!("event {}: {event}", at + 1)));
        let Ok(played) = world.play(event, &mut narrator);
        narrator.out += match played {
            Played::Decided | Played::Happened => "",
            Played::NotSelected => "  no decision: it may run on one CPU only\n",
            Played::Skipped => "  cannot happen here: skipped\n",
        };
    }
    Ok(narrator.out)
}

struct Narrator {
    sides: Vec<Side>,
    width: usize,
    out: String,
}

impl Player for Narrator {
    type Error = std::convert::Infallible;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Self::Error> {
        self.sides.iter_mut().for_each(|side| side.implementation.step(state, step));
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Self::Error> {
        let mut asked: Vec<(Decision, Vec<Line>)> = Vec::new();
        for side in &mut self.sides {
            let mut walk = Walk::default();
            let decision = side.implementation.select_task_rq(state, wakeup, Some(&mut walk));
            asked.push((decision, lines(&walk)));
        }
        let letter = |at: usize| (b'a'..=b'o').nth(at).map_or('?', char::from);
        let mut marks = vec![(wakeup.prev_cpu, 'p'), (wakeup.this_cpu, 'w')];
        marks.extend(asked.iter().enumerate().map(|(at, (decision, _))| (decision.class_cpu, letter(at))));
        self.out += &picture(state, &marks, self.width);
        let cpus_ptr = *state.tasks[wakeup.p].cpus_ptr;
        for (at, (decision, _)) in asked.iter().enumerate() {
            let wrong = if decision.is_outside(&cpus_ptr) {
                format!(", outside of cpus_ptr {cpus_ptr}: runs on {}", decision.final_cpu)
            } else {
                String::new()
            };
            let Decision { class_cpu, exit, .. } = decision;
            self.out += &format!("{} {}: CPU {class_cpu} by {exit:?}{wrong}\n", letter(at), self.sides[at].name);
        }
        self.walks(&asked);
        Ok(asked[0].0.final_cpu)
    }
}

impl Narrator {
    /// The first walk, and beside it each other one that goes another way.
    fn walks(&mut self, asked: &[(Decision, Vec<Line>)]) {
        let left = &asked[0].1;
        let others = asked.iter().enumerate().skip(1);
        let different: Vec<_> = others.filter(|(_, (_, right))| first_difference(left, right).is_some()).collect();
        if different.is_empty() {
            self.out += &stacked(left, None, self.width);
        }
        for (at, (_, right)) in different {
            let (a, b) = (&self.sides[0].name, &self.sides[at].name);
            if self.width >= SIDE_BY_SIDE {
                let column = self.width.saturating_sub(3) / 2;
                self.out += &format!("{}\n", paint(HEADING, &format!("{a:column$}   {b}")));
                self.out += &side_by_side(left, right, self.width);
            } else {
                let mark = first_difference(left, right);
                self.out += &format!("{}\n{}", paint(HEADING, a), stacked(left, mark, self.width));
                self.out += &format!("{}\n{}", paint(HEADING, b), stacked(right, mark, self.width));
            }
        }
    }
}
