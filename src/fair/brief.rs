// SPDX-License-Identifier: GPL-2.0-or-later
//! The record of a walk in a few words: what oracles ask of it, and which branches it took.
//!
//! A whole [`Walk`] has texts of everything that was tested and read; a fuzzer that makes millions of walks cannot pay for
//! those, and needs them only of the few that are worth a second look.

use std::panic::Location;

use crate::fair::decision::Exit;
use crate::fair::walk::{Recorder, Walk, WalkStep};
use crate::units::Cpu;

/// The function whose scan has a limit.
const SCAN: &str = "select_idle_cpu";

/// What oracles ask of a walk.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// The target that select_idle_sibling() began with; `None`: it was not called.
    pub target: Option<Cpu>,
    /// Idle checks.
    pub probes: u32,
    /// A scan stopped at its limit, or did not begin because of it.
    pub gave_up: bool,
    /// The limit `nr` of the first select_idle_cpu(), as it was last computed.
    pub scan_limit: Option<i64>,
    /// CPUs that it looked at; one after another counts once.
    pub scan_looks: u32,
    /// Where ttwu_move_affine was counted: the CPU that wake_affine() chose.
    pub moved_affine: Option<Cpu>,
    /// The branches taken, where somebody wants to know.
    pub edges: Edges,
    scan: Scan,
    last_look: Option<u32>,
}

/// Whether the walk is in the first select_idle_cpu().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Scan {
    #[default]
    Before,
    Inside,
    After,
}

/// Branches that walks took: each condition with its answer and the condition before it, as bits by a hash.
#[derive(Debug, Clone, Default)]
pub struct Edges {
    bits: Vec<u64>,
    seen: Vec<u64>,
    last: u32,
    fresh: bool,
}

impl Edges {
    /// Bits of the map: some thousand branches leave it mostly empty.
    const BITS: usize = 1 << 15;

    /// A map in which nothing is marked yet but `seen`, which is no news.
    pub fn beside(seen: &[u64]) -> Self {
        Self { bits: vec![0; Self::BITS / 64], seen: seen.to_vec(), last: 0, fresh: false }
    }

    /// An empty map to give to [`beside`](Self::beside).
    pub fn none() -> Vec<u64> {
        vec![0; Self::BITS / 64]
    }

    /// Whether something was marked since the last question that was not seen before.
    pub fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// What was marked.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Branches in a map.
    pub fn count(bits: &[u64]) -> u64 {
        bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Marks `site` after the one before it.
    #[inline]
    pub fn mark(&mut self, site: u32) {
        if self.bits.is_empty() {
            return;
        }
        let at = (site ^ self.last.rotate_left(5)).wrapping_mul(0x9e37_79b1) as usize >> (32 - Self::BITS.ilog2());
        self.last = site;
        let (word, bit) = (at / 64, 1 << (at % 64));
        self.fresh |= (self.bits[word] | self.seen[word]) & bit == 0;
        self.bits[word] |= bit;
    }

    /// The next site follows no other.
    pub fn restart(&mut self) {
        self.last = 0;
    }
}

impl Brief {
    /// A new walk begins.
    #[inline]
    pub fn begin(&mut self) {
        self.target = None;
        self.probes = 0;
        self.gave_up = false;
        self.scan_limit = None;
        self.scan_looks = 0;
        self.moved_affine = None;
        self.scan = Scan::Before;
        self.last_look = None;
        self.edges.restart();
    }

    /// A walk that was recorded as a whole.
    pub fn of(walk: &Walk) -> Self {
        let mut brief = Self::default();
        brief.read(walk);
        brief
    }

    /// Takes `walk` in place of what was there.
    pub fn read(&mut self, walk: &Walk) {
        self.begin();
        self.moved_affine = walk.moved_affine;
        for step in &walk.steps {
            self.take(step);
        }
    }

    #[inline]
    fn take(&mut self, step: &WalkStep) {
        match *step {
            WalkStep::Enter { function } => {
                self.scan = match self.scan {
                    Scan::Before if function == SCAN => Scan::Inside,
                    Scan::Before => Scan::Before,
                    Scan::Inside | Scan::After => Scan::After,
                };
            }
            WalkStep::Probe { cpu, idle, kind } => {
                self.probes += 1;
                if self.scan == Scan::Inside && self.last_look != Some(cpu) {
                    self.scan_looks += 1;
                    self.last_look = Some(cpu);
                }
                self.edges.mark(1 + 2 * kind as u32 + u32::from(idle));
            }
            WalkStep::Value { name: "target", value } if self.target.is_none() => {
                self.target = usize::try_from(value).ok().and_then(Cpu::new);
            }
            WalkStep::Value { name: "nr", value } if self.scan == Scan::Inside => self.scan_limit = Some(value),
            WalkStep::Return { exit, cpu } => {
                self.gave_up |= exit == Exit::BudgetSpent && cpu.is_none();
                self.edges.mark(16 + 2 * exit as u32 + u32::from(cpu.is_some()));
            }
            WalkStep::At { .. }
            | WalkStep::Value { .. }
            | WalkStep::Check { .. }
            | WalkStep::Mask { .. }
            | WalkStep::Write { .. } => {}
        }
    }
}

impl Recorder for Brief {
    const RECORDS: bool = false;

    #[inline]
    fn step(&mut self, step: impl FnOnce() -> WalkStep) {
        self.take(&step());
    }

    #[inline]
    #[track_caller]
    fn check(&mut self, holds: bool, _what: impl FnOnce() -> String) {
        let at = Location::caller();
        // The same in every build: lines and columns, not addresses. Files differ by their names' lengths mostly.
        let site = at.line() << 9 ^ at.column() << 2 ^ (at.file().len() as u32) << 22;
        self.edges.mark((site ^ u32::from(holds)).wrapping_add(64));
    }

    #[inline]
    fn wrote(&mut self, _what: impl FnOnce() -> String) {}

    #[inline]
    fn moved_affine(&mut self, target: Cpu) {
        self.moved_affine = Some(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::ProbeKind;

    fn probe(cpu: u32) -> WalkStep {
        WalkStep::Probe { kind: ProbeKind::Available, cpu, idle: false }
    }

    #[test]
    fn a_walk_in_a_few_words() {
        let enter = |function| WalkStep::Enter { function };
        let value = |name, value| WalkStep::Value { name, value };
        let steps = vec![
            enter("select_idle_sibling"),
            value("target", 3),
            value("nr", 9),
            probe(3),
            enter("select_idle_cpu"),
            value("nr", 4),
            value("nr", 5),
            probe(3),
            probe(3),
            probe(4),
            WalkStep::Return { exit: Exit::BudgetSpent, cpu: None },
            enter("select_idle_cpu"),
            value("nr", 7),
            probe(5),
        ];
        let brief = Brief::of(&Walk { steps, moved_affine: None });
        assert_eq!((brief.target, brief.probes, brief.gave_up), (Some(Cpu(3)), 5, true));
        assert_eq!((brief.scan_limit, brief.scan_looks), (Some(5), 2));
    }

    #[test]
    fn a_branch_is_news_once() {
        let mut edges = Edges::beside(&Edges::none());
        edges.mark(7);
        assert!(edges.take_fresh());
        edges.restart();
        edges.mark(7);
        assert!(!edges.take_fresh());
        let mut later = Edges::beside(edges.bits());
        later.mark(7);
        assert!(!later.take_fresh(), "it was seen");
        later.mark(7);
        assert!(later.take_fresh(), "after itself it is another");
        assert_eq!(Edges::count(edges.bits()), 1);
    }
}
