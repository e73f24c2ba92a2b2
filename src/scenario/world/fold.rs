// SPDX-License-Identifier: GPL-2.0-or-later
//! A moment of a played case as the beginning of another one.

use super::{Slot, World};
use crate::cpumask::Cpumask;
use crate::fair::Hidden;
use crate::machine::TaskFlags;
use crate::scenario::{Case, CpuState, Event, TaskIndex, TaskState};
use crate::units::Cpu;

impl World {
    /// A case that begins as things are now and goes on with `events`. `case`: what was played; `hidden`: what one of the
    /// implementations keeps.
    ///
    /// Nearly so: tasks on wake lists become wakeups of nobody in particular, and a CPU's unnamed tasks run first.
    pub fn as_beginning(&self, case: &Case, hidden: &Hidden, events: &[Event]) -> Case {
        let mut now = Case { events: events.to_vec(), ..case.clone() };
        let online = *self.online();
        now.settings.jiffies = self.state.jiffies;
        now.machine.offline = self.machine.present().and_not(&online);
        for at in 0..now.machine.llcs.len() {
            if let Some(shared) = self.shared_of(at).and_then(|id| hidden.shared.get(id)) {
                now.machine.llcs[at].has_idle_cores = shared.has_idle_cores;
                now.machine.llcs[at].nr_idle_scan = Some(shared.nr_idle_scan);
            }
        }
        let present = self.machine.present();
        let states = present.iter().map(|cpu| self.cpu_now(cpu, case, hidden));
        now.cpus = states.filter(|state| *state != CpuState { cpu: state.cpu, ..CpuState::default() }).collect();
        now.tasks = (0..case.tasks.len()).map(|p| self.task_now(p, &case.tasks[p], hidden)).collect();
        now.with_tasks_in(&self.order())
    }

    /// The tasks as they are queued, then the others: a case queues them in the order of its list.
    fn order(&self) -> Vec<TaskIndex> {
        let named = |slot: &Slot| match *slot {
            Slot::Task(p) => Some(p),
            Slot::Load => None,
        };
        let mut order: Vec<TaskIndex> =
            self.queues.iter().flat_map(|queue| queue.slots.iter().filter_map(named)).collect();
        order.extend((0..self.nr_tasks).filter(|p| !order.contains(p)).collect::<Vec<_>>());
        order
    }

    fn cpu_now(&self, cpu: Cpu, case: &Case, hidden: &Hidden) -> CpuState {
        let (at, rq, queue) = (cpu.index(), &self.state.rq, &self.queues[cpu.index()]);
        let was = case.cpus.iter().find(|state| state.cpu == cpu).copied();
        let idle_stamp_ns = rq.idle_stamp_ns[at];
        CpuState {
            cpu,
            load: queue.load,
            pending: queue.pending || !queue.landing.is_empty(),
            preempted: rq.vcpu_preempted.test(cpu),
            avg_idle_ns: rq.avg_idle_ns[at],
            avg_scan_cost_ns: hidden.cpus[at].avg_scan_cost_ns,
            wake_avg_idle_ns: hidden.cpus[at].wake_avg_idle_ns,
            load_avg: queue.load_avg,
            util_avg: queue.util_avg,
            capacity_left: was.unwrap_or_default().capacity_left,
            idle_for_ns: if idle_stamp_ns == 0 { 0 } else { self.now_ns.saturating_sub(idle_stamp_ns) },
            exit_latency_us: rq.exit_latency_us[at].and_then(|us| i32::try_from(us).ok()).unwrap_or(-1),
        }
    }

    fn task_now(&self, p: usize, was: &TaskState, hidden: &Hidden) -> TaskState {
        let id = self.task_id(p);
        let task = &self.state.tasks[id];
        let all = Cpumask::first_n(self.queues.len());
        let keeps = hidden.tasks.get(id.index());
        TaskState {
            cpu: task.task_cpu,
            queued: self.queues[task.task_cpu.index()].slots.contains(&Slot::Task(p)),
            cpus_ptr: (task.cpus_ptr != all).then_some(*task.cpus_ptr),
            cpus_preferred: task.affinity_unequal.then_some(*task.cpus_preferred),
            kthread: task.flags.contains(TaskFlags::KTHREAD),
            exiting: task.flags.contains(TaskFlags::EXITING),
            recent_used_cpu: keeps.map(|keeps| keeps.recent_used_cpu),
            wakee_flips: keeps.map_or(0, |keeps| keeps.wakee_flips),
            flips_decayed_ago: keeps.map_or(0, |k| self.state.jiffies.saturating_sub(k.wakee_flip_decay_jiffies)),
            last_wakee: keeps.and_then(|keeps| keeps.last_wakee).and_then(|id| self.task_index(id)),
            ..was.clone()
        }
    }
}
