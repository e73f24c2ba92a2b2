// SPDX-License-Identifier: GPL-2.0-or-later
//! Fuzzing without libFuzzer: cases from a seed, played until the time is up or something is found.
//!
//! A run is reproducible: what comes in round `n` follows from the seed and from what the rounds before it reached, at any
//! number of threads.

mod breed;
mod sizes;
mod target;
mod worker;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::fair::Edges;
use crate::fuzz_loop::worker::{Harvest, Worker};
use crate::oracle::{Allowed, Counts, Finding, Key, Maker, Options, Tally, Trouble, attempt, relabelled, replayed};
use crate::scenario::Case;

pub use sizes::Sizes;
pub use target::{Input, TARGET, must_hold};

/// Litters in a round: after each, what they reached is put together.
const ROUND: u64 = 32;

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
    /// Findings that are left aside.
    pub allowed: Allowed,
    /// Stop at the first finding; else go on, and keep one case for each kind of finding.
    pub first_only: bool,
}

/// One kind of finding, with the first case that showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was found.
    pub finding: Finding,
    /// Number of the first case, from 1.
    pub number: u64,
    /// The case.
    pub case: Case,
    /// Cases that showed it.
    pub times: u64,
    last: u64,
}

/// What a run saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Cases played.
    pub cases: u64,
    /// Of them, those with at least one decision.
    pub useful: u64,
    /// Of them, those that every oracle was put to, which plays them some times more.
    pub deep: u64,
    /// What happened in them. (What happens in deep plays is not counted again.)
    pub counts: Counts,
    /// Cases by the size of their machine.
    pub sizes: Sizes,
    /// Branches taken, as bits by a hash.
    pub edges: Vec<u64>,
    /// The bytes of cases that reached a new branch, oldest first.
    pub corpus: Vec<Vec<u8>>,
    /// Findings left aside by the allow file.
    pub allowed: u64,
    litters: u64,
    /// Findings by kind.
    pub findings: BTreeMap<Key, Found>,
}

/// Fresh case `number` of seed `seed`, without mutation.
pub fn case(seed: u64, number: u64) -> Case {
    Case::from_dna(&dna(seed, number))
}

/// The bytes of that case.
pub fn dna(seed: u64, number: u64) -> Vec<u8> {
    breed::fresh(&mut oorandom::Rand64::new(u128::from(seed) << 64 | u128::from(number)))
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

/// Fuzzes as planned. `progress` is told what happened so far, after each round.
///
/// Cases are played quickly first ([`crate::oracle::Scout`]); those that reach something new, and a few others, get every oracle. The
/// same plan gives the same outcome at any number of threads, but for where the time ends.
///
/// # Errors
/// [`Trouble`] other than a finding: an implementation that there is not.
pub fn run(plan: &Plan, maker: &(dyn Maker + Sync), progress: &mut dyn FnMut(&Outcome)) -> Result<Outcome, Trouble> {
    run_until(plan, maker, &mut |outcome| {
        progress(outcome);
        false
    })
}

/// The same until `is_enough`, which is asked after each round, too.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    plan: &Plan,
    maker: &(dyn Maker + Sync),
    is_enough: &mut dyn FnMut(&Outcome) -> bool,
) -> Result<Outcome, Trouble> {
    let start = Instant::now();
    let mut outcome = Outcome { edges: Edges::none(), ..Outcome::default() };
    loop {
        let left = plan.cases.map(|cases| cases - outcome.cases);
        let is_over = plan.time.is_some_and(|time| start.elapsed() >= time) || left == Some(0);
        if is_over || (plan.first_only && !outcome.findings.is_empty()) {
            return Ok(outcome);
        }
        let first = outcome.litters;
        let harvests: Vec<Result<Harvest, Trouble>> = (first..first + ROUND)
            .into_par_iter()
            .map_init(|| Worker::new(plan, maker), |worker, litter| worker.play(litter, &outcome))
            .collect();
        for harvest in harvests {
            outcome.add(plan, harvest?);
        }
        if is_enough(&outcome) {
            return Ok(outcome);
        }
    }
}

impl Outcome {
    fn add(&mut self, plan: &Plan, harvest: Harvest) {
        if plan.first_only && !self.findings.is_empty() {
            return;
        }
        self.litters += 1;
        self.cases += harvest.cases;
        self.useful += harvest.useful;
        self.deep += harvest.deep;
        self.counts.add(&harvest.counts);
        self.edges.iter_mut().zip(&harvest.edges).for_each(|(all, own)| *all |= own);
        self.sizes.extend_from(&harvest.sizes);
        self.corpus.extend(harvest.corpus);
        for found in harvest.found {
            if plan.allowed.entry(&found.finding).is_some() {
                self.allowed += found.times;
                continue;
            }
            let times = found.times;
            let first = self.findings.entry(found.finding.key()).or_insert(Found { times: 0, ..found });
            first.times += times;
        }
    }

    /// Walks: decisions of all implementations.
    pub fn walks(&self) -> u64 {
        self.counts.exits.iter().sum()
    }
}
