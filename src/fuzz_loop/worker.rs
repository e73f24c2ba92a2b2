// SPDX-License-Identifier: GPL-2.0-or-later
//! One thread's part: litters played, what they reached and found.

use crate::fair::Edges;
use crate::fuzz_loop::breed::{LITTER, litter};
use crate::fuzz_loop::{Found, Outcome, Plan, Sizes, check};
use crate::oracle::{Counts, Finding, Maker, Scout, Trouble};
use crate::scenario::{Breed, Case};

/// Every so many cases one gets every oracle, whatever it reached.
const DEEP: u64 = 512;

/// What a litter gave.
pub(super) struct Harvest {
    pub cases: u64,
    pub useful: u64,
    pub deep: u64,
    pub counts: Counts,
    pub sizes: Sizes,
    pub edges: Vec<u64>,
    pub corpus: Vec<Vec<u8>>,
    pub found: Vec<Found>,
}

pub(super) struct Worker<'a> {
    plan: &'a Plan,
    maker: &'a dyn Maker,
    scout: Scout<'a>,
    breed: Option<Breed>,
}

impl<'a> Worker<'a> {
    pub fn new(plan: &'a Plan, maker: &'a (dyn Maker + Sync)) -> Self {
        Self { plan, maker, scout: Scout::new(&plan.names, maker, plan.options), breed: None }
    }

    /// Plays litter `number` against what `so_far` has reached.
    pub fn play(&mut self, number: u64, so_far: &Outcome) -> Result<Harvest, Trouble> {
        let mut harvest = Harvest {
            cases: 0,
            useful: 0,
            deep: 0,
            counts: Counts::default(),
            sizes: Sizes::default(),
            edges: Vec::new(),
            corpus: Vec::new(),
            found: Vec::new(),
        };
        self.scout.set_edges(Edges::beside(&so_far.edges));
        for (at, bytes) in litter(self.plan.seed, number, &so_far.corpus).enumerate() {
            let case_number = number * LITTER + at as u64 + 1;
            if self.plan.cases.is_some_and(|cases| case_number > cases) {
                break;
            }
            self.play_case(bytes, case_number, so_far, &mut harvest)?;
            if self.plan.first_only && !harvest.found.is_empty() {
                break;
            }
        }
        harvest.edges = self.scout.set_edges(Edges::default()).bits().to_vec();
        Ok(harvest)
    }

    fn play_case(
        &mut self,
        bytes: Vec<u8>,
        number: u64,
        so_far: &Outcome,
        harvest: &mut Harvest,
    ) -> Result<(), Trouble> {
        let case = Case::from_dna_again(&bytes, &mut self.breed);
        let (findings, is_fresh) = self.scout.play(&case)?;
        let counts = self.scout.take_counts();
        harvest.cases += 1;
        harvest.useful += u64::from(counts.decisions > 0);
        harvest.counts.add(&counts);
        harvest.sizes.add(case.machine.present().weight() as usize);
        let is_clean = findings.is_empty();
        for finding in findings {
            keep(harvest, finding, number, &case);
        }
        // What the scout found ends a deep play before it has seen more.
        if is_clean && (is_fresh || number.is_multiple_of(DEEP)) {
            harvest.deep += 1;
            match check(&case, &self.plan.names, self.maker, self.plan.options) {
                Ok(_) => {}
                Err(Trouble::Finding(finding)) => keep(harvest, *finding, number, &case),
                Err(trouble) => return Err(trouble),
            }
        }
        if is_fresh && so_far.corpus.len() < CORPUS_MAX {
            harvest.corpus.push(bytes);
        }
        Ok(())
    }
}

/// Most cases that are kept to be mutated.
const CORPUS_MAX: usize = 4096;

fn keep(harvest: &mut Harvest, finding: Finding, number: u64, case: &Case) {
    let key = finding.key();
    match harvest.found.iter_mut().find(|found| found.finding.key() == key) {
        // Several times in one case is one case.
        Some(found) => found.times += u64::from(found.last != number),
        None => harvest.found.push(Found { finding, number, last: number, case: case.clone(), times: 1 }),
    }
    if let Some(found) = harvest.found.iter_mut().find(|found| found.finding.key() == key) {
        found.last = number;
    }
}
