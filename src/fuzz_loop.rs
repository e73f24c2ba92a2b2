// SPDX-License-Identifier: GPL-2.0-or-later
//! Fuzzing without libFuzzer: cases from a seed, played until the time is up or something is found.
//!
//! A run is reproducible: case `n` of seed `s` is the same case for ever, whatever came before it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::fair::Exit;
use crate::oracle::{FAMILIES, Finding, Key, Maker, Options, Tally, Trouble, attempt, relabelled, replayed};
use crate::scenario::Case;

/// What to fuzz, and for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Names of the implementations; the first places the tasks.
    pub names: Vec<String>,
    /// Where cases come from.
    pub seed: u64,
    /// When to stop; `None`: no limit.
    pub time: Option<Duration>,
    /// After how many cases to stop; `None`: no limit.
    pub cases: Option<u64>,
    /// What counts as a finding.
    pub options: Options,
    /// Stop at the first finding; else go on, and keep one case for each kind of finding.
    pub first_only: bool,
}

/// One kind of finding, with the first case that showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was found.
    pub finding: Finding,
    /// Number of the case, from 0.
    pub number: u64,
    /// The case.
    pub case: Case,
    /// Cases that showed it.
    pub times: u64,
}

/// One kind of difference between two implementations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// Decisions that differed so.
    pub times: u64,
    /// Number of the first case.
    pub first: u64,
}

/// What a run saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Cases played.
    pub cases: u64,
    /// Of them, those with at least one decision.
    pub useful: u64,
    /// Events played, and of them those that could not happen: a fuzzer that mostly skips is noticed.
    pub events: u64,
    /// See [`events`](Self::events).
    pub skipped: u64,
    /// Wakeups that led to decisions.
    pub decisions: u64,
    /// Walks: decisions of all implementations.
    pub walks: u64,
    /// Exits taken: one that is never reached is a gap.
    pub exits: BTreeMap<Exit, u64>,
    /// Differences by place of the other implementation in the plan and both exits.
    pub divergences: BTreeMap<(usize, Exit, Exit), Divergence>,
    /// Decisions that a known bug explains, where these are allowed.
    pub known: BTreeMap<&'static str, u64>,
    /// Findings by kind.
    pub findings: BTreeMap<Key, Found>,
}

/// Case `number` of seed `seed`.
pub fn case(seed: u64, number: u64) -> Case {
    Case::from_dna(&dna(seed, number))
}

/// The bytes of case `number` of seed `seed`.
pub fn dna(seed: u64, number: u64) -> Vec<u8> {
    let mut rng = oorandom::Rand64::new(u128::from(seed) << 64 | u128::from(number));
    // Most cases are short: an oracle speaks at the first fault, and a short case is quickly played.
    let events = match rng.rand_u64() % 16 {
        0..=9 => 1 + rng.rand_u64() % 16,
        10..=14 => 1 + rng.rand_u64() % 64,
        _ => 1 + rng.rand_u64() % 200,
    };
    let len = Case::dna_len(events as usize);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.rand_u64().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Every oracle on one case, those of the whole case included.
///
/// # Errors
/// As [`attempt`].
pub fn check<S: AsRef<str>>(case: &Case, names: &[S], maker: &dyn Maker, options: Options) -> Result<Tally, Trouble> {
    let tally = attempt(case, names, maker, options)?;
    relabelled(case, &tally, names, maker, options)?;
    replayed(case, &tally, names, maker, options)?;
    Ok(tally)
}

/// The family of implementations that fuzz targets play a case with: by a rule of the case alone.
pub fn family(case: &Case) -> &'static [&'static str] {
    FAMILIES[case.events.len() % FAMILIES.len()]
}

/// For fuzz targets, which tell by a panic: every oracle on one case with one of the [`FAMILIES`], known bugs left aside.
///
/// # Panics
/// With the finding and the case as a file.
pub fn must_hold(case: &Case, maker: &dyn Maker) {
    let options = Options { allow_known: true, ..Options::default() };
    let names = family(case);
    // By a rule of the case alone, so that a case found so is found again.
    let result = if case.decisions().is_multiple_of(4) {
        check(case, names, maker, options)
    } else {
        attempt(case, names, maker, options)
    };
    if let Err(trouble) = result {
        let pair = names.iter().map(|&name| name.to_owned()).collect();
        panic!("{trouble}\n\n{}", Case { pair, ..case.clone() }.write());
    }
}

/// Fuzzes as planned. `progress` is told the number of cases played, after each.
///
/// # Errors
/// [`Trouble`] other than a finding: an implementation that there is not.
pub fn run(plan: &Plan, maker: &dyn Maker, progress: &mut dyn FnMut(&Outcome)) -> Result<Outcome, Trouble> {
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let more = |outcome: &Outcome| {
        plan.time.is_none_or(|time| start.elapsed() < time) && plan.cases.is_none_or(|cases| outcome.cases < cases)
    };
    while more(&outcome) {
        let number = outcome.cases;
        let case = case(plan.seed, number);
        outcome.cases += 1;
        // The checks of whole cases play them twice more, for faults that are rare: every eighth case gets them.
        let result = if number.is_multiple_of(8) {
            check(&case, &plan.names, maker, plan.options)
        } else {
            attempt(&case, &plan.names, maker, plan.options)
        };
        match result {
            Ok(tally) => outcome.add(number, &tally, plan.names.len() as u64),
            Err(Trouble::Finding(finding)) => {
                outcome.useful += 1;
                let key = finding.key();
                let found = || Found { finding: *finding, number, case, times: 0 };
                outcome.findings.entry(key).or_insert_with(found).times += 1;
                if plan.first_only {
                    progress(&outcome);
                    break;
                }
            }
            Err(trouble) => return Err(trouble),
        }
        progress(&outcome);
    }
    Ok(outcome)
}

impl Outcome {
    fn add(&mut self, number: u64, tally: &Tally, sides: u64) {
        self.useful += u64::from(tally.decisions > 0);
        self.events += tally.events;
        self.skipped += tally.skipped;
        self.decisions += tally.decisions;
        self.walks += tally.decisions * sides;
        for (&exit, times) in &tally.exits {
            *self.exits.entry(exit).or_default() += times;
        }
        for (&kind, times) in &tally.divergences {
            self.divergences.entry(kind).or_insert(Divergence { times: 0, first: number }).times += times;
        }
        for (&fix, times) in &tally.known {
            *self.known.entry(fix).or_default() += times;
        }
    }
}
