// SPDX-License-Identifier: GPL-2.0-or-later
//! Implementations of the wakeup path, one file per kernel release, behind one seam.
//!
//! A release is written in kernel order under kernel names, one Rust `return` per kernel `return`; a patch is a bit
//! tested where the patch has its hunk. Releases share leaf reads (`env`) only while they mean the same, and no
//! control flow. The kernel's bugs are kept and marked with the commit that fixed them.

pub mod brief;
pub mod changes;
pub mod decision;
pub mod env;
pub mod fallback;
pub mod groups;
pub mod hidden;
pub mod leaf;
pub mod model;
pub(crate) mod remember;
pub mod v5_10;
pub mod v5_11;
pub mod v5_2;
pub mod v6_1;
pub mod v6_12;
pub mod v7_3;
pub mod walk;

pub use brief::{Brief, Edges};
pub use decision::{Decision, Exit, ProbeKind, SisCounters, Writes};
pub use env::Env;
pub use hidden::{Clock, CpuHidden, Hidden, ProbeCosts, SharedHidden, TaskHidden};
pub use model::Model;
pub use walk::{Quiet, Recorder, Walk, WalkStep};

pub use crate::machine::{HiddenFact, Step};

use crate::machine::{Inputs, State};
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// Whether what is open about a wakeup makes a difference to where it goes; `None`: it is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tried {
    /// The sync flag alone.
    pub sync: Option<bool>,
    /// Where it goes with the other sync flag: what the class returns, and where the task ends. `None`: not tried, since
    /// the walk did not ask for the flag.
    pub other_sync: Option<(Cpu, Cpu)>,
    /// The wakee flips alone.
    pub flips: Option<bool>,
    /// The wakee flips, the sync flag being the other one.
    pub both: bool,
}

/// When select_idle_sibling() stores prev_cpu in the wakee's recent_used_cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecentRule {
    /// Where the recently used CPU is returned (to 5.14).
    AtHit,
    /// Before it is looked at, so whenever the search comes past target and prev (89aafd67f28c, 5.15).
    BeforeTest,
}

/// The seam: everything the rest of sisdiff knows of an implementation.
pub trait Implementation: Send {
    /// The name one would write in a mail: `v5.11+recent-used`.
    fn name(&self) -> &str;

    /// Kinds of input that the walk can read.
    fn reads(&self) -> Inputs;

    /// Takes note of a change outside of a decision.
    fn step(&mut self, state: &State, step: &Step);

    /// `select_task_rq_fair()`; records the walk if asked.
    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision;

    /// The same, noting only what oracles ask of a walk: for fuzzers, which make millions.
    fn select_briefly(&mut self, state: &State, wakeup: &Wakeup, brief: &mut Brief) -> Decision {
        let mut walk = Walk::default();
        let decision = self.select_task_rq(state, wakeup, Some(&mut walk));
        brief.read(&walk);
        decision
    }

    /// The decision as [`Self::select_task_rq`] would make it, with all hidden state left as it is: to try the same
    /// wakeup under another assumption.
    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision;

    /// The decisions as [`Self::peek`] would make them if wake_wide() said no, and if it said yes: to tell whether wakee
    /// flips that are assumed or unknown matter. `None`: they are known, or the implementation cannot be asked so.
    fn peek_wide(&mut self, _state: &State, _wakeup: &Wakeup) -> Option<[Decision; 2]> {
        None
    }

    /// [`Self::select_task_rq`], and what the same wakeup would have come to had it been synchronous or not, and wide or
    /// not, as far as these are open.
    fn select_and_try(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        is_sync_open: bool,
        walk: Option<&mut Walk>,
    ) -> (Decision, Tried) {
        let flipped = Wakeup { sync: !wakeup.sync, ..*wakeup };
        let other_sync = is_sync_open.then(|| self.peek(state, &flipped, None));
        let wide = self.peek_wide(state, wakeup);
        let both = if is_sync_open && wide.is_some() { self.peek_wide(state, &flipped) } else { None };
        let decision = self.select_task_rq(state, wakeup, walk);
        let matters = |others: &[Decision]| !others.iter().all(|other| other.is_same_choice(&decision));
        let tried = Tried {
            sync: other_sync.map(|other| matters(&[other])),
            other_sync: other_sync.map(|other| other.answer()),
            flips: wide.map(|wide| matters(&wide)),
            both: both.is_some_and(|both| matters(&both)),
        };
        (decision, tried)
    }

    /// [`Self::select_and_try`], but if the walk reads one of `inputs` nothing has happened.
    fn select_and_try_unless(
        &mut self,
        inputs: Inputs,
        state: &State,
        wakeup: &Wakeup,
        is_sync_open: bool,
    ) -> Option<(Decision, Tried)> {
        let reads = self.peek(state, wakeup, None).read;
        (!reads.intersects(inputs)).then(|| self.select_and_try(state, wakeup, is_sync_open, None))
    }

    /// Its hidden state, where it can be shown: for checks that nothing changes that a decision does not declare.
    fn hidden(&self) -> Option<&Hidden> {
        None
    }

    /// The same, to be set as a new case begins.
    fn hidden_mut(&mut self) -> Option<&mut Hidden> {
        None
    }

    /// When its select_idle_sibling() stores prev_cpu in the wakee's recent_used_cpu; `None`: not told.
    fn recent_rule(&self) -> Option<RecentRule> {
        None
    }

    /// What went wrong inside, in a sentence that names the call: a kernel tree's C can follow a null pointer or loop
    /// without end. From then on its decisions mean nothing; a model has no faults.
    fn fault(&self) -> Option<String> {
        None
    }
}
