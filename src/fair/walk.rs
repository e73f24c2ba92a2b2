// SPDX-License-Identifier: GPL-2.0-or-later
//! The record of a walk, step by step, for `explain`, the vectors' probe order, and coverage.
//!
//! Walks are generic over [`Recorder`], so that a replay that only wants decisions pays nothing.

use crate::cpumask::Cpumask;
use crate::fair::decision::{Exit, ProbeKind};
use crate::units::Cpu;

/// One step of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkStep {
    /// A kernel function was entered.
    Enter {
        /// The function.
        function: &'static str,
    },
    /// A place in the source of a kernel tree: what follows happened there.
    At {
        /// File and line: `kernel/sched/fair.c:6935`.
        place: String,
    },
    /// An idle check.
    Probe {
        /// Which check.
        kind: ProbeKind,
        /// The CPU looked at (beyond nr_cpu_ids where the kernel's bug does that).
        cpu: u32,
        /// Its answer.
        idle: bool,
    },
    /// Any other condition the walk tested.
    Check {
        /// What was asked, in the kernel's words: `cpus_share_cache(3, 7)`.
        what: String,
        /// The answer.
        holds: bool,
    },
    /// A number the walk computed or read.
    Value {
        /// Its kernel name: `nr`, `span_avg`, `this_eff_load`.
        name: &'static str,
        /// The number.
        value: i64,
    },
    /// A mask that the walk goes by.
    Mask {
        /// What it is for, in the kernel's words: `scans p->cpus_preferred`.
        what: &'static str,
        /// Its CPUs.
        cpus: Cpumask,
    },
    /// Hidden state written.
    Write {
        /// What was written, in the kernel's words: `p->recent_used_cpu = 3`.
        what: String,
    },
    /// A return that decides.
    Return {
        /// Which.
        exit: Exit,
        /// With which CPU; `None` where the stage found nothing and the walk went on.
        cpu: Option<Cpu>,
    },
}

/// Who listens to a walk.
pub trait Recorder {
    /// Whether steps are wanted at all: where not, their texts are not even made.
    const RECORDS: bool;
    /// Takes one step.
    fn step(&mut self, step: impl FnOnce() -> WalkStep);

    /// A condition was tested; `what` makes its text.
    #[inline]
    #[track_caller]
    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.step(|| WalkStep::Check { what: what(), holds });
    }

    /// The schedstats counter ttwu_move_affine went up, wake_affine() having chosen `target`.
    #[inline]
    fn moved_affine(&mut self, _target: Cpu) {}

    /// Hidden state was written; `what` makes the text.
    #[inline]
    fn wrote(&mut self, what: impl FnOnce() -> String) {
        self.step(|| WalkStep::Write { what: what() });
    }
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Recorder for Quiet {
    const RECORDS: bool = false;

    #[inline]
    fn step(&mut self, _step: impl FnOnce() -> WalkStep) {}
}

/// Every step in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// The steps.
    pub steps: Vec<WalkStep>,
    /// Where ttwu_move_affine was counted: the CPU that wake_affine() chose.
    pub moved_affine: Option<Cpu>,
}

impl Recorder for Walk {
    const RECORDS: bool = true;

    fn step(&mut self, step: impl FnOnce() -> WalkStep) {
        self.steps.push(step());
    }

    fn moved_affine(&mut self, target: Cpu) {
        self.moved_affine = Some(target);
    }
}

impl Walk {
    /// As before the walk.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.moved_affine = None;
    }

    /// The idle checks in the notation of the golden vectors: `A3+ S3- A7-`.
    pub fn probes(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            if let WalkStep::Probe { kind, cpu, idle } = step {
                let sep = if text.is_empty() { "" } else { " " };
                text += &format!("{sep}{}{cpu}{}", kind.letter(), if *idle { '+' } else { '-' });
            }
        }
        text
    }
}
