// SPDX-License-Identifier: GPL-2.0-or-later
//! Bytes as genes: each element of a case has bytes of its own, at a place of its own.
//!
//! ```text
//! machine 24 │ LLCs 8×2 │ CPUs 32×4 │ tasks 16×16 │ events 8 each, to the end
//! ```
//!
//! So a small edit of the bytes is a small change of the case, and bytes cut off or added at the end are events. Zeroes
//! mean the plainest choice everywhere. An input too short for one event is read again and again, its bits turned each
//! time, so that a fuzzer that begins with few bytes sees more than the plainest cases.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::scenario::{Case, CaseError, genes};

/// Most events in a generated case.
pub const EVENTS_MAX: usize = 200;
const EVENT: usize = 8;

/// The machine of the last case, for others like it.
pub struct Breed {
    key: [u8; 24 + 32],
    machine: genes::Machine,
}

/// Where the tasks' genes are.
pub fn genes_of_tasks() -> std::ops::Range<usize> {
    let start = 24 + 8 * 2 + 32 * 4;
    start..start + 16 * 16
}

/// Where the genes of event `number` are.
pub fn genes_of_events(number: usize) -> std::ops::Range<usize> {
    let start = Case::dna_len(number);
    start..start + EVENT
}

/// Where genes are that say what CPUs do and what LLCs remember, not which there are.
pub fn genes_of_cpu_states() -> impl Iterator<Item = usize> {
    (24..24 + 8 * 2).chain((0..32 * 4).filter(|at| at % 4 != 3).map(|at| 24 + 8 * 2 + at))
}

/// The bytes of a case, by element.
pub struct Dna {
    pub machine: [u8; 24],
    pub llcs: [[u8; 2]; 8],
    pub cpus: [[u8; 4]; 32],
    pub tasks: [[u8; 16]; 16],
    pub events: Vec<[u8; EVENT]>,
}

impl Dna {
    fn read(u: &mut Unstructured<'_>) -> Result<Self> {
        let short = u.len() < Case::dna_len(1);
        let long = if short { turned(u.bytes(u.len())?) } else { Vec::new() };
        if short { Self::split(&mut Unstructured::new(&long)) } else { Self::split(u) }
    }

    fn split(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut dna =
            Self { machine: [0; 24], llcs: [[0; 2]; 8], cpus: [[0; 4]; 32], tasks: [[0; 16]; 16], events: Vec::new() };
        u.fill_buffer(&mut dna.machine)?;
        u.fill_buffer(dna.llcs.as_flattened_mut())?;
        u.fill_buffer(dna.cpus.as_flattened_mut())?;
        u.fill_buffer(dna.tasks.as_flattened_mut())?;
        while !u.is_empty() && dna.events.len() < EVENTS_MAX {
            let mut event = [0; EVENT];
            u.fill_buffer(&mut event)?;
            dna.events.push(event);
        }
        Ok(dna)
    }

    /// What the machine's shape depends on.
    fn machine_key(&self) -> [u8; 24 + 32] {
        let mut key = [0; 24 + 32];
        key[..24].copy_from_slice(&self.machine);
        key[24..].iter_mut().zip(&self.cpus).for_each(|(key, cpu)| *key = cpu[3]);
        key
    }

    /// The genes of CPU `number`: machines of more CPUs than genes use each again, stirred.
    pub fn cpu(&self, number: usize) -> [u8; 4] {
        let turn = (number / self.cpus.len()) as u8;
        self.cpus[number % self.cpus.len()].map(|byte| byte ^ turn.wrapping_mul(0x9d))
    }
}

/// Genes for up to eight events from fewer bytes: these over and over, all bits of a byte turned by one more each time.
fn turned(bytes: &[u8]) -> Vec<u8> {
    let events = 1 + bytes.len() % 8;
    let byte = |i: usize| match bytes.len() {
        0 => 0,
        n => bytes[i % n].rotate_left((i / n) as u32 % 8),
    };
    (0..Case::dna_len(events)).map(byte).collect()
}

/// Choices made from the bytes of one gene.
pub struct Gene<'a>(Unstructured<'a>);

impl<'a> Gene<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// A number below `n`, 0 from a zero byte; `n` is at most 256 and so one byte is read.
    pub fn below(&mut self, n: usize) -> Result<usize> {
        if n <= 1 {
            self.byte()?;
            return Ok(0);
        }
        Ok(usize::from(self.byte()?) % n)
    }

    /// One of `of`, the first from a zero byte.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Result<T> {
        Ok(of[self.below(of.len())?])
    }

    /// True for `of_256` of the 256 bytes, false from a zero byte.
    pub fn odds(&mut self, of_256: u8) -> Result<bool> {
        Ok(self.byte()? > 255 - of_256)
    }

    pub fn byte(&mut self) -> Result<u8> {
        self.0.arbitrary()
    }
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        genes::case(&Dna::read(u)?)
    }
}

impl Case {
    /// The case that `bytes` stand for. Any bytes make one.
    pub fn from_dna(bytes: &[u8]) -> Self {
        let mut u = Unstructured::new(bytes);
        Self::arbitrary(&mut u).expect("what is missing counts as zeroes, so bytes never run out")
    }

    /// The case in a file: a case file, or bytes that a fuzzer left.
    ///
    /// # Errors
    /// As [`Case::parse`], where the file is text.
    pub fn read(bytes: &[u8]) -> std::result::Result<Self, CaseError> {
        match std::str::from_utf8(bytes) {
            Ok(text) if Self::is_text(bytes) => Self::parse(text),
            _ => Ok(Self::from_dna(bytes)),
        }
    }

    /// Whether `bytes` are meant as a case file.
    pub fn is_text(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(|text| text.contains("version"))
    }

    /// The case that `bytes` stand for, on the same machine as the last one where that has the same genes.
    pub fn from_dna_again(bytes: &[u8], last: &mut Option<Breed>) -> Self {
        let mut u = Unstructured::new(bytes);
        let dna = Dna::read(&mut u).expect("what is missing counts as zeroes, so bytes never run out");
        let key = dna.machine_key();
        if last.as_ref().is_none_or(|breed| breed.key != key) {
            *last = Some(Breed { key, machine: genes::machine_of(&dna).expect("as above") });
        }
        let breed = last.as_ref().expect("it was set");
        genes::case_on(&dna, &breed.machine).expect("as above")
    }

    /// Bytes that a case with `events` events reads.
    pub const fn dna_len(events: usize) -> usize {
        24 + 8 * 2 + 32 * 4 + 16 * 16 + events * EVENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Event, World};

    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut rng = oorandom::Rand32::new(seed);
        (0..len).map(|_| rng.rand_u32() as u8).collect()
    }

    #[test]
    fn no_bytes_are_the_plainest_case() {
        let case = Case::from_dna(&[]);
        assert_eq!((case.machine.nr_cpu_ids(), case.tasks.len(), case.events.len()), (1, 1, 1));
        assert_eq!(case.events[0].to_string(), "wake t0 from cpu0");
    }

    #[test]
    fn every_case_is_playable_and_survives_its_file() {
        for seed in 0..400 {
            let case = Case::from_dna(&bytes(seed, 200 + 7 * seed as usize % 1500));
            World::new(&case).unwrap_or_else(|error| panic!("{error}\n{case:?}"));
            let text = case.write();
            let read = Case::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(read == case, "{case:?}\n{read:?}\n{text}");
        }
    }

    #[test]
    fn an_edit_of_one_event_gene_changes_that_event_only() {
        let dna = bytes(7, Case::dna_len(20));
        let case = Case::from_dna(&dna);
        assert_eq!(case.events.len(), 20);
        let mut edited = dna.clone();
        edited[Case::dna_len(4) + 1] ^= 0x55;
        let edited = Case::from_dna(&edited);
        assert_eq!((&case.machine, &case.tasks), (&edited.machine, &edited.tasks));
        let differ = case.events.iter().zip(&edited.events).filter(|(a, b)| a != b).count();
        assert!(differ <= 1, "{differ} events changed");
        let shorter = Case::from_dna(&dna[..Case::dna_len(19)]);
        assert_eq!(shorter.events, case.events[..19]);
    }

    #[test]
    fn linked_nodes_and_hotplug_come_up_and_leave_the_rest_as_it_was() {
        let cases: Vec<Case> = (0..1500).map(|seed| Case::from_dna(&bytes(seed, Case::dna_len(60)))).collect();
        let count = |holds: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| holds(case)).count();
        let linked = count(&|case| !case.machine.distances.is_empty());
        let hotplug =
            |online| count(&|case| case.events.iter().any(|e| matches!(*e, Event::Hotplug(_, up) if up == online)));
        assert!((30..150).contains(&linked), "{linked}");
        assert!(hotplug(false) > 200 && hotplug(true) > 100, "{} {}", hotplug(false), hotplug(true));
        // The genes that these took: for near nodes from 216 on, for preempted CPUs from 254 on.
        let mut dna = bytes(11, Case::dna_len(8));
        let near = 21;
        for (byte, expected) in [(0, 0), (2, 2), (215, 2), (214, 0)] {
            dna[near] = byte;
            let machine = Case::from_dna(&dna).machine;
            assert!(machine.distances.is_empty());
            assert_eq!(machine.near_nodes, expected, "{byte}");
        }
        for (byte, expected) in
            [(252, "preempt"), (253, "preempt"), (251, "balance"), (254, "offline"), (255, "offline")]
        {
            let event = genes_of_events(3);
            dna[event.clone()].copy_from_slice(&[byte, 0, 0, 0, 0, 0, 0, 0]);
            let event = Case::from_dna(&dna).events[3].to_string();
            assert!(event.starts_with(expected), "{byte}: {event}");
        }
    }

    #[test]
    fn short_inputs_make_rich_cases() {
        let cases = (0..300).map(|seed| Case::from_dna(&bytes(seed, 1 + seed as usize % 24)));
        let rich =
            cases.filter(|case| case.machine.present().weight() > 1 && case.tasks.len() > 1 && case.decisions() > 1);
        let rich = rich.count();
        assert!(rich > 150, "{rich}");
    }

    #[test]
    fn small_machines_are_far_more_often_and_large_ones_there() {
        let sizes: Vec<usize> =
            (0..600).map(|seed| Case::from_dna(&bytes(seed, 500)).machine.present().weight() as usize).collect();
        let at_most = |n| sizes.iter().filter(|&&size| size <= n).count();
        assert!(at_most(8) > 300, "{}", at_most(8));
        assert!(sizes.iter().max() > Some(&128), "{:?}", sizes.iter().max());
        assert!(sizes.iter().max() <= Some(&256), "{:?}", sizes.iter().max());
    }
}
