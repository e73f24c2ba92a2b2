// SPDX-License-Identifier: GPL-2.0-or-later
//! What the core does with the class's answer.

use crate::machine::{State, TaskId};
use crate::units::Cpu;

/// Where the task ends when the class returned `class_cpu`: there if it is allowed and online, else the first allowed
/// CPU of the node it is on, else the first allowed one at all, else (its affinity is given up) the first online CPU.
///
/// **Source**: kernel/sched/core.c, select_task_rq() and select_fallback_rq(), v5.2 to v7.3. Departs: the cpuset step
/// between the last two is left out, since a trace tells nothing of cpusets.
pub fn select_fallback_rq(state: &State, p: TaskId, class_cpu: Cpu) -> Cpu {
    let topology = &state.topology;
    let task = &state.tasks[p];
    let is_cpu_allowed = |cpu: Cpu| topology.online().test(cpu) && task.cpus_ptr.test(cpu);
    if is_cpu_allowed(class_cpu) {
        return class_cpu;
    }
    let node = topology.node(task.task_cpu);
    let of_node = topology.cpus().find(|&cpu| topology.node(cpu) == node && is_cpu_allowed(cpu));
    let allowed = of_node.or_else(|| task.cpus_ptr.iter().find(|&cpu| is_cpu_allowed(cpu)));
    allowed.or_else(|| topology.online().first()).unwrap_or(class_cpu)
}
