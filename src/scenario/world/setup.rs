// SPDX-License-Identifier: GPL-2.0-or-later
//! The world as a case begins.

use std::sync::Arc;

use super::{Queue, Slot, World};
use crate::cpumask::Cpumask;
use crate::fair::HiddenFact;
use crate::machine::{State, Task, TaskFlags, TaskId};
use crate::scenario::{Case, CaseError, CpuState, TaskState};
use crate::units::{Comm, Pid};

impl World {
    /// The machine as the case begins.
    ///
    /// # Errors
    /// [`CaseError`] where the case is inconsistent.
    pub fn new(case: &Case) -> Result<Self, CaseError> {
        case.check()?;
        let topology = Arc::new(case.machine.topology()?);
        let mut state = State::new(Arc::clone(&topology));
        state.jiffies = case.settings.jiffies;
        state.hz = case.settings.hz.max(1);
        let llcs = case.machine.llcs.iter().map(|l| l.cpus().iter().find_map(|cpu| topology.llc_shared(cpu))).collect();
        let queues = vec![Queue::default(); topology.nr_cpu_ids()];
        // Late enough for every idle period of a case to have begun after 0.
        let now_ns = 1 << 40;
        let nr_tasks = case.tasks.len();
        let mut world = Self { state, queues, llcs, nr_tasks, now_ns, facts: Vec::new() };
        world.add_tasks(case);
        case.cpus.iter().for_each(|cpu| world.set_cpu(cpu));
        for (p, task) in case.tasks.iter().enumerate() {
            if task.queued && topology.online().test(task.cpu) {
                world.queues[task.cpu.index()].slots.push_back(Slot::Task(p));
                world.task_mut(p).on_rq = true;
            }
        }
        for cpu in topology.cpus() {
            if !world.queues[cpu.index()].slots.is_empty() {
                world.state.rq.idle_stamp_ns[cpu.index()] = 0;
            }
            world.refresh(cpu);
        }
        world.facts = world.hidden_facts(case);
        Ok(world)
    }

    fn add_tasks(&mut self, case: &Case) {
        let all = Cpumask::first_n(self.queues.len());
        for (p, task) in case.tasks.iter().enumerate() {
            let comm = Comm::new(format!("t{p}").as_bytes());
            self.state.tasks.0.push(named_task(task, Pid(1000 + p as i32), comm, all));
        }
        for cpu in self.state.topology.cpus() {
            let comm = Comm::new(format!("load/{cpu}").as_bytes());
            let task = Task::new(Pid(100_000 + i32::from(cpu.0)), comm, Cpumask::of(cpu), cpu);
            self.state.tasks.0.push(Task { on_rq: true, load_avg: 512, h_load: 512, ..task });
        }
    }

    fn set_cpu(&mut self, cpu: &CpuState) {
        let at = cpu.cpu.index();
        let rq = &mut self.state.rq;
        rq.avg_idle_ns[at] = cpu.avg_idle_ns;
        rq.cpu_capacity[at] = (rq.cpu_capacity_orig[at] * cpu.capacity_left / 1024).max(1);
        rq.idle_stamp_ns[at] = if cpu.idle_for_ns == 0 { 0 } else { self.now_ns.saturating_sub(cpu.idle_for_ns) };
        rq.exit_latency_us[at] = u32::try_from(cpu.exit_latency_us).ok();
        rq.vcpu_preempted.assign(cpu.cpu, cpu.preempted);
        if self.state.topology.online().test(cpu.cpu) {
            let queue = &mut self.queues[at];
            queue.set_load(cpu.load);
            queue.pending = cpu.pending;
            queue.load_avg = cpu.load_avg;
            queue.util_avg = cpu.util_avg;
        }
    }

    fn hidden_facts(&self, case: &Case) -> Vec<HiddenFact> {
        let jiffies = case.settings.jiffies;
        let mut facts = Vec::new();
        for (p, task) in case.tasks.iter().enumerate() {
            let id = self.task_id(p);
            let decayed = jiffies.saturating_sub(task.flips_decayed_ago);
            facts.push(HiddenFact::RecentUsedCpu(id, task.recent_used_cpu.unwrap_or(task.cpu)));
            facts.push(HiddenFact::WakeeFlips(id, task.wakee_flips, Some(decayed)));
            facts.push(HiddenFact::LastWakee(id, task.last_wakee.map(|wakee| self.task_id(wakee))));
        }
        for cpu in self.state.topology.cpus() {
            let load = TaskId((self.queues.len() + self.nr_tasks + cpu.index()) as u32);
            for id in [TaskId::swapper(cpu), load] {
                facts.push(HiddenFact::RecentUsedCpu(id, cpu));
                facts.push(HiddenFact::WakeeFlips(id, 0, Some(jiffies)));
                facts.push(HiddenFact::LastWakee(id, None));
            }
            let hidden = case.cpus.iter().find(|state| state.cpu == cpu).copied().unwrap_or_default();
            facts.push(HiddenFact::AvgScanCost(cpu, hidden.avg_scan_cost_ns));
            facts.push(HiddenFact::WakeAvgIdle(cpu, hidden.wake_avg_idle_ns));
        }
        for shared in 0..self.state.topology.nr_shared() {
            let span = self.state.topology.shared_span(shared);
            // An asymmetric domain's own state begins as that of its LLCs together.
            let llcs = case.machine.llcs.iter().filter(|llc| llc.cpus().intersects(span));
            let has_idle_cores = llcs.clone().any(|llc| llc.has_idle_cores);
            let nr_idle_scan: u32 = llcs.map(|llc| llc.nr_idle_scan.unwrap_or((llc.cpus() & *span).weight())).sum();
            facts.push(HiddenFact::HasIdleCores(shared, has_idle_cores));
            facts.push(HiddenFact::NrIdleScan(shared, nr_idle_scan));
        }
        facts
    }
}

fn named_task(task: &TaskState, pid: Pid, comm: Comm, all: Cpumask) -> Task {
    let cpus_ptr = task.cpus_ptr.unwrap_or(all);
    let cpus_preferred = task.cpus_preferred.unwrap_or(cpus_ptr);
    let mut flags = TaskFlags::empty();
    flags.set(TaskFlags::KTHREAD, task.kthread);
    flags.set(TaskFlags::EXITING, task.exiting);
    Task {
        cpus_preferred,
        affinity_unequal: cpus_preferred != cpus_ptr,
        flags,
        policy_idle: task.policy_idle,
        numa_preferred_nid: task.numa_preferred_nid,
        load_avg: task.load_avg,
        h_load: task.load_avg,
        util_avg: task.util_avg,
        util_est_ewma: task.util_est,
        util_est_enqueued: task.util_est,
        runnable_avg: task.runnable_avg,
        uclamp_min: task.uclamp_min,
        uclamp_max: task.uclamp_max,
        ..Task::new(pid, comm, cpus_ptr, task.cpu)
    }
}
