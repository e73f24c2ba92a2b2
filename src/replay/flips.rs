// SPDX-License-Identifier: GPL-2.0-or-later
//! What choices tell of wakee flips that are older than the recording.
//!
//! A fork copies the count and the stamp of its last halving, so tasks that have the same stamp lack the same part of
//! their counts. Where a wakeup of one of them went as only wake_wide() explains, twice and more often than not, all of
//! them are taken to have the least that it takes.

use std::collections::{BTreeMap, VecDeque};

use crate::fair::Implementation;
use crate::inputs::Inputs;
use crate::machine::{HiddenFact, RecordedWakeup, State, TaskId};
use crate::replay::driver::Choice;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// Wakeups that may wait for their choice.
const HELD_MAX: usize = 4096;
/// Stamps that something is known of; a recording begins with few.
const STAMPS_MAX: usize = 1024;
/// Choices that it takes.
const ENOUGH: i8 = 2;
/// More are not counted.
const MOST: i8 = 4;

/// A wakeup that wake_wide() decides, with flips that are not known.
#[derive(Debug, Clone, Copy)]
struct Question {
    number: u64,
    /// When the flips of the task that has fewer were halved last, jiffies.
    stamp_jiffies: u64,
    /// What it takes for wake_wide() to say yes; 0: it does.
    lacks: u32,
    narrow: (Cpu, Cpu),
    wide: (Cpu, Cpu),
}

#[derive(Debug, Clone, Copy, Default)]
struct Kin {
    score: i8,
    /// Flips that they were given.
    given: u32,
}

/// Takes choices, gives flips. Memory is bounded.
#[derive(Debug, Clone, Default)]
pub(super) struct Flips {
    held: VecDeque<Question>,
    kin: BTreeMap<u64, Kin>,
    lessons: Vec<HiddenFact>,
}

impl Flips {
    /// Before the model decides, where [`lacks`] says something.
    pub(super) fn ask(&mut self, state: &State, recorded: &RecordedWakeup, model: &mut dyn Implementation) {
        let Some((stamp_jiffies, lacks)) = lacks(state, &recorded.wakeup, model) else { return };
        let Some([narrow, wide]) = model.peek_wide(state, &recorded.wakeup) else { return };
        if narrow.is_same_choice(&wide) {
            return;
        }
        if self.held.len() >= HELD_MAX {
            self.held.pop_front();
        }
        let (narrow, wide) = (narrow.answer(), wide.answer());
        self.held.push_back(Question { number: recorded.number, stamp_jiffies, lacks, narrow, wide });
    }

    /// What the kernel chose.
    pub(super) fn chosen(&mut self, number: u64, choice: Choice) {
        let Ok(at) = self.held.binary_search_by_key(&number, |held| held.number) else { return };
        let Some(question) = self.held.remove(at) else { return };
        let is_wide = choice.is_answer(question.wide);
        if !is_wide && !choice.is_answer(question.narrow) {
            return;
        }
        if self.kin.len() >= STAMPS_MAX && !self.kin.contains_key(&question.stamp_jiffies) {
            return;
        }
        let kin = self.kin.entry(question.stamp_jiffies).or_default();
        kin.score = (kin.score + if is_wide { 1 } else { -1 }).clamp(-MOST, MOST);
        let stamp = question.stamp_jiffies;
        if is_wide && question.lacks > 0 && kin.score >= ENOUGH {
            kin.given = kin.given.saturating_add(question.lacks);
            self.lessons.push(HiddenFact::FlipsOfKin(stamp, i64::from(question.lacks)));
        } else if kin.score < 0 && kin.given > 0 {
            self.lessons.push(HiddenFact::FlipsOfKin(stamp, -i64::from(std::mem::take(&mut kin.given))));
        }
    }

    /// What was learned since the last time.
    pub(super) fn take(&mut self) -> Vec<HiddenFact> {
        std::mem::take(&mut self.lessons)
    }
}

/// The stamp of the one with fewer flips, if they are not known, and how many it takes for wake_wide() to say yes.
pub(super) fn lacks(state: &State, wakeup: &Wakeup, model: &dyn Implementation) -> Option<(u64, u32)> {
    let hidden = model.hidden().filter(|_| wakeup.kind == WakeKind::Ttwu)?;
    let factor = state.topology.sd_llc_size(wakeup.this_cpu);
    let task = |id: TaskId| hidden.tasks.get(id.index());
    let (mut slave, mut master) = (task(wakeup.p)?, task(wakeup.current)?);
    if slave.wakee_flips > master.wakee_flips {
        (slave, master) = (master, slave);
    }
    // With both of them short nothing tells which one is, and what is lacking at the larger one grows with the smaller.
    let least = slave.wakee_flips.max(factor).saturating_mul(factor);
    let is_open = slave.known.unknown.contains(Inputs::WAKEE_FLIPS) && slave.wakee_flip_decay_jiffies != 0;
    let lacks = factor.saturating_sub(slave.wakee_flips);
    (is_open && master.wakee_flips >= least).then_some((slave.wakee_flip_decay_jiffies, lacks))
}

#[cfg(test)]
#[path = "flips_tests.rs"]
mod tests;
