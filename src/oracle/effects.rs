// SPDX-License-Identifier: GPL-2.0-or-later
//! Hidden state before and after a decision: what changed is what the decision says it wrote, and nothing else.

use crate::fair::{Hidden, TaskHidden};
use crate::machine::TaskId;
use crate::oracle::{Finding, Trial};
use crate::wakeup::WakeKind;

/// Compares all hidden state with the decision's [`Writes`](crate::fair::Writes): those of other LLCs, other CPUs and
/// other tasks are untouched.
pub fn effects(trial: &Trial<'_>, before: &Hidden, after: &Hidden) -> Result<(), Box<Finding>> {
    let (wakeup, writes) = (trial.wakeup, &trial.decision.writes);
    for (id, (old, new)) in before.shared.iter().zip(&after.shared).enumerate() {
        let declared = writes.has_idle_cores.filter(|(written, _)| *written == id).map(|(_, has)| has);
        let expected = (declared.unwrap_or(old.has_idle_cores), old.nr_idle_scan);
        if (new.has_idle_cores, new.nr_idle_scan) != expected {
            let text = format!("shared state {id}: {old:?} became {new:?}, declared {declared:?}");
            return trial.fail("effects", "shared state that was not declared", text);
        }
    }
    for (at, (old, new)) in before.cpus.iter().zip(&after.cpus).enumerate() {
        let own = at == wakeup.this_cpu.index();
        let cost = writes.avg_scan_cost_ns.filter(|_| own).unwrap_or(old.avg_scan_cost_ns);
        let idle = writes.wake_avg_idle_ns.filter(|_| own).unwrap_or(old.wake_avg_idle_ns);
        if (new.avg_scan_cost_ns, new.wake_avg_idle_ns) != (cost, idle) {
            let text = format!("CPU {at}: {old:?} became {new:?}, declared {writes:?}");
            return trial.fail("effects", "a CPU's state that was not declared", text);
        }
    }
    for (at, (old, new)) in before.tasks.iter().zip(&after.tasks).enumerate() {
        let expected = task_after(trial, TaskId(at as u32), old);
        if (new.recent_used_cpu, new.wakee_flips, new.last_wakee) != expected {
            let text = format!("task {at}: {old:?} became {new:?}, declared {writes:?}");
            return trial.fail("effects", "a task's state that was not declared", text);
        }
    }
    Ok(())
}

/// What a task's state has to be: recent_used_cpu, wakee_flips, last_wakee.
fn task_after(trial: &Trial<'_>, id: TaskId, old: &TaskHidden) -> (crate::units::Cpu, u32, Option<TaskId>) {
    let (wakeup, writes) = (trial.wakeup, &trial.decision.writes);
    let mut after = (old.recent_used_cpu, old.wakee_flips, old.last_wakee);
    if id == wakeup.p {
        after.0 = writes.p_recent_used_cpu.unwrap_or(after.0);
    }
    if id == wakeup.current {
        // select_task_rq_fair() writes the waker's last.
        after.0 = writes.current_recent_used_cpu.unwrap_or(after.0);
        after.1 = writes.wakee_flips.unwrap_or(after.1);
        if wakeup.kind == WakeKind::Ttwu {
            after.2 = Some(wakeup.p);
        }
    }
    after
}
