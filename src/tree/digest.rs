// SPDX-License-Identifier: GPL-2.0-or-later
//! What a decision needs of a walk's record, in one pass over it.

use super::answer::{Answer, Event};
use super::exit::{Deciding, Exits};
use crate::fair::{Exit, ProbeKind};
use crate::machine::{Inputs, Provenance, State};
use crate::units::Cpu;

/// The sums over a record.
#[derive(Debug)]
pub(super) struct Digest {
    /// The deciding `return`.
    pub(super) exit: Exit,
    /// Where the search began, if there was one.
    pub(super) target: Option<Cpu>,
    /// The recently used CPU was given up for good.
    pub(super) missed: bool,
    /// Idle checks.
    pub(super) probes: u32,
    /// What the checks read.
    pub(super) read: Inputs,
    /// How well that was known.
    pub(super) leaned_on: Provenance,
}

impl Digest {
    /// Reads the record of `answer`, given on `state` by the tree with these `exits`.
    #[inline]
    pub(super) fn of(answer: &Answer<'_>, exits: &Exits, state: &State) -> Self {
        let mut deciding = Deciding::new(state.topology.nr_cpu_ids());
        let (mut target, mut missed, mut probes) = (None, false, 0);
        // By what a check reads: idleness, the number of tasks, that and their policies.
        let mut known = [Provenance::TRACED; 3];
        let mut read = Inputs::empty();
        let kinds = [Inputs::IDLE, Inputs::NR_RUNNING, Inputs::NR_RUNNING | Inputs::POLICY];
        for event in answer.events() {
            match event {
                Event::Probe { kind, cpu, .. } => {
                    let cpu = cpu as usize;
                    probes += 1;
                    // Policies are looked at only where something is queued.
                    let empty = || state.rq.nr_running.get(cpu).is_some_and(|&nr| nr == 0);
                    let which = match kind {
                        ProbeKind::SchedIdle if empty() => 1,
                        ProbeKind::SchedIdle => 2,
                        _ => 0,
                    };
                    read |= kinds[which];
                    if let Some(&of_cpu) = state.rq.known.get(cpu) {
                        known[which] |= of_cpu;
                    }
                }
                Event::Return { statement, value } => deciding.returned(exits, statement, value),
                Event::Search { target: cpu } => {
                    target = target.or_else(|| usize::try_from(cpu).ok().and_then(Cpu::new));
                }
                Event::Miss => missed = true,
                Event::Enter { .. } | Event::Warn { .. } => {}
            }
        }
        let leaned_on =
            known.into_iter().zip(kinds).fold(Provenance::TRACED, |all, (known, kinds)| all | known.of(kinds));
        Self { exit: deciding.exit(), target, missed, probes, read, leaned_on }
    }
}
