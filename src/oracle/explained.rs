// SPDX-License-Identifier: GPL-2.0-or-later
//! Where two releases decide differently from the same hidden state, a listed change is the reason.

use crate::fair::changes::{Site, that_can_matter};
use crate::fair::{Decision, Hidden};
use crate::machine::State;
use crate::oracle::Finding;
use crate::spec::ModelSpec;
use crate::wakeup::Wakeup;

/// One release's part: its spec with the case's switches, its hidden state before the decision, the decision.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its spec.
    pub spec: &'a ModelSpec,
    /// What it kept from earlier decisions.
    pub before: &'a Hidden,
    /// Its answer.
    pub decision: &'a Decision,
}

/// Checks two releases, patches and all.
///
/// Where hidden state differs already, an earlier difference was the reason, and that one had been checked.
pub fn explained(state: &State, wakeup: &Wakeup, a: Side<'_>, b: Side<'_>) -> Result<(), Box<Finding>> {
    if a.decision.class_cpu == b.decision.class_cpu || !same_past(wakeup, a.before, b.before) {
        return Ok(());
    }
    let (older, newer) = if a.spec.info().version <= b.spec.info().version { (a, b) } else { (b, a) };
    let site = Site {
        state,
        wakeup,
        older: older.before,
        newer: newer.before,
        older_spec: older.spec,
        newer_spec: newer.spec,
    };
    if !that_can_matter(&site).is_empty() {
        return Ok(());
    }
    Err(Box::new(Finding {
        oracle: "explained",
        implementations: [older, newer].map(|side| side.spec.info().name.to_owned()).to_vec(),
        exits: vec![older.decision.exit, newer.decision.exit],
        condition: "a difference without a listed change".to_owned(),
        known: None,
        text: format!("CPU {} against CPU {}", older.decision.class_cpu, newer.decision.class_cpu),
        event: 0,
    }))
}

/// Whether all hidden state that the decision can read is the same.
fn same_past(wakeup: &Wakeup, a: &Hidden, b: &Hidden) -> bool {
    let tasks = [wakeup.p, wakeup.current].into_iter().all(|id| {
        let of = |hidden: &Hidden| {
            hidden
                .tasks
                .get(id.index())
                .map(|task| (task.recent_used_cpu, task.wakee_flips, task.wakee_flip_decay_jiffies, task.last_wakee))
        };
        of(a) == of(b)
    });
    let shared = a.shared.iter().zip(&b.shared);
    let shared =
        shared.into_iter().all(|(a, b)| (a.has_idle_cores, a.nr_idle_scan) == (b.has_idle_cores, b.nr_idle_scan));
    let cpu = |hidden: &Hidden| {
        let cpu = &hidden.cpus[wakeup.this_cpu.index()];
        (cpu.avg_scan_cost_ns, cpu.wake_avg_idle_ns, cpu.wake_stamp_jiffies)
    };
    tasks && shared && cpu(a) == cpu(b)
}
