// SPDX-License-Identifier: GPL-2.0-or-later
//! Where cases come from: fresh bytes, and mutations of bytes that reached something new.
//!
//! Cases come in litters, whose members have the machine in common: a topology is dear, and a walk is cheap.

use crate::scenario::{Case, genes_of_events, genes_of_tasks};

/// Cases in a litter.
pub(super) const LITTER: u64 = 16;

/// Most events of a mutated case.
const EVENTS_MAX: usize = 120;

/// The bytes of the cases of litter `number` of `seed`. `corpus`: what reached something new so far, oldest first.
pub(super) fn litter(seed: u64, number: u64, corpus: &[Vec<u8>]) -> Litter<'_> {
    let mut rng = oorandom::Rand64::new(u128::from(seed) << 64 | u128::from(number));
    let parent = (!corpus.is_empty() && !rng.rand_u64().is_multiple_of(4)).then(|| {
        // The later half of it twice as often: it took more to get there.
        let newest = rng.rand_u64().is_multiple_of(2);
        let from = if newest { corpus.len() / 2 } else { 0 };
        &corpus[from + below(&mut rng, corpus.len() - from)]
    });
    let base = match parent {
        Some(bytes) => bytes.clone(),
        None => fresh(&mut rng),
    };
    Litter { rng, base, is_mutated: parent.is_some(), corpus, left: LITTER }
}

/// Bytes of cases, one after another.
pub(super) struct Litter<'a> {
    rng: oorandom::Rand64,
    base: Vec<u8>,
    is_mutated: bool,
    corpus: &'a [Vec<u8>],
    left: u64,
}

impl Iterator for Litter<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(1)?;
        let mut bytes = self.base.clone();
        match self.is_mutated {
            // The last of a litter may have another machine.
            true => self.mutate(&mut bytes),
            false => self.redraw(&mut bytes),
        }
        Some(bytes)
    }
}

fn below(rng: &mut oorandom::Rand64, n: usize) -> usize {
    (rng.rand_u64() % n.max(1) as u64) as usize
}

/// Random bytes of a random length.
pub(super) fn fresh(rng: &mut oorandom::Rand64) -> Vec<u8> {
    let events = match rng.rand_u64() % 16 {
        0..=5 => 1 + rng.rand_u64() % 16,
        6..=13 => 1 + rng.rand_u64() % 64,
        _ => 1 + rng.rand_u64() % 200,
    };
    let mut bytes = vec![0; Case::dna_len(events as usize)];
    fill(rng, &mut bytes);
    bytes
}

fn fill(rng: &mut oorandom::Rand64, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let random = rng.rand_u64().to_le_bytes();
        chunk.copy_from_slice(&random[..chunk.len()]);
    }
}

impl Litter<'_> {
    /// Everything anew but the machine.
    fn redraw(&mut self, bytes: &mut [u8]) {
        let tasks = genes_of_tasks().start.min(bytes.len());
        fill(&mut self.rng, &mut bytes[tasks..]);
        for at in crate::scenario::genes_of_cpu_states().filter(|at| *at < tasks) {
            bytes[at] = self.rng.rand_u64() as u8;
        }
    }

    /// A few changes: of single bytes, of whole events, of events from elsewhere.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(6) {
            self.change(bytes);
        }
        if self.left == 0 {
            let at = self.below(40.min(bytes.len()));
            bytes[at] = self.rng.rand_u64() as u8;
        }
    }

    fn below(&mut self, n: usize) -> usize {
        below(&mut self.rng, n)
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let events = genes_of_events(0).start;
        let nr_events = (bytes.len().saturating_sub(events)) / genes_of_events(0).len();
        let tasks = genes_of_tasks();
        match self.below(10) {
            0 | 1 => {
                // Any byte behind the machine's.
                let states: Vec<usize> = crate::scenario::genes_of_cpu_states().collect();
                let at = states[self.below(states.len())];
                self.draw(bytes, at);
            }
            2 | 3 => {
                let at = tasks.start + self.below(tasks.len());
                self.draw(bytes, at);
            }
            4..=6 if nr_events > 0 => {
                let at = events + self.below(bytes.len() - events);
                self.draw(bytes, at);
            }
            7 if nr_events > 0 => {
                // An event again, somewhere.
                let event = bytes[genes_of_events(self.below(nr_events))].to_vec();
                self.insert(bytes, &event, nr_events);
            }
            8 if nr_events > 1 => {
                let gone = genes_of_events(self.below(nr_events));
                bytes.drain(gone);
            }
            9 if nr_events > 0 => {
                // Events of another case.
                let other = &self.corpus[below(&mut self.rng, self.corpus.len())];
                let theirs = other.len().saturating_sub(events) / genes_of_events(0).len();
                let from = genes_of_events(self.below(theirs)).start.min(other.len());
                let to = (from + genes_of_events(0).len() * (1 + self.below(8))).min(other.len());
                self.insert(bytes, &other[from..to], nr_events);
            }
            _ => {
                let mut event = [0; 8];
                fill(&mut self.rng, &mut event);
                self.insert(bytes, &event, nr_events);
            }
        }
    }

    fn draw(&mut self, bytes: &mut [u8], at: usize) {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = match self.rng.rand_u64() % 3 {
                0 => *byte ^ 1 << (self.rng.rand_u64() % 8),
                _ => self.rng.rand_u64() as u8,
            };
        }
    }

    fn insert(&mut self, bytes: &mut Vec<u8>, events: &[u8], nr_events: usize) {
        if nr_events < EVENTS_MAX {
            let at = genes_of_events(self.below(nr_events + 1)).start.min(bytes.len());
            bytes.splice(at..at, events.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_litter_is_the_same_again_and_shares_its_machine() {
        let corpus: Vec<Vec<u8>> = (0..20).map(|n| super::super::dna(3, n)).collect();
        for number in 0..40 {
            let cases: Vec<Vec<u8>> = litter(1, number, &corpus).collect();
            assert_eq!(cases, litter(1, number, &corpus).collect::<Vec<_>>());
            assert_eq!(cases.len() as u64, LITTER);
            let machines: Vec<_> = cases.iter().map(|bytes| Case::from_dna(bytes).machine).collect();
            let same = machines.iter().filter(|machine| machine.is_built_as(&machines[0])).count();
            assert!(same >= cases.len() - 1, "{same} of {}", cases.len());
            let differ = cases.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(differ > 12, "{differ}");
        }
    }

    #[test]
    fn litters_differ_by_seed_and_number() {
        let first = |seed, number| litter(seed, number, &[]).next();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
    }
}
