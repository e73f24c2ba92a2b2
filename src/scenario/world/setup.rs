// SPDX-License-Identifier: GPL-2.0-or-later
//! The world as a case begins.

use std::sync::Arc;

use super::{Queue, Slot, World};
use crate::cpumask::Cpumask;
use crate::fair::HiddenFact;
use crate::machine::{RunQueues, State, Task, TaskFlags, TaskId};
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
        for cpu in topology.cpus() {
            let comm = Comm::new(format!("load/{cpu}").as_bytes());
            let task = Task::new(Pid(100_000 + i32::from(cpu.0)), comm, Cpumask::of(cpu), cpu);
            state.tasks.0.push(Task { on_rq: true, load_avg: 512, h_load: 512, ..task });
        }
        let mut world = Self {
            machine: case.machine.clone(),
            idle: state.rq.clone(),
            queues: vec![Queue::default(); topology.nr_cpu_ids()],
            state,
            home: topology,
            others: Vec::new(),
            nr_tasks: 0,
            now_ns: 0,
            facts: Vec::new(),
        };
        world.set(case);
        Ok(world)
    }

    /// Begins another case, on the same machine if that has the same shape: the topology is kept then.
    ///
    /// # Errors
    /// [`CaseError`] where the case is inconsistent; the world is as it was.
    pub fn restart(&mut self, case: &Case) -> Result<(), CaseError> {
        if !self.machine.is_built_as(&case.machine) {
            *self = Self::new(case)?;
            return Ok(());
        }
        case.check()?;
        self.machine.clone_from(&case.machine);
        self.set(case);
        Ok(())
    }

    /// Everything but the machine's shape.
    fn set(&mut self, case: &Case) {
        self.state.topology = Arc::clone(&self.home);
        self.state.jiffies = case.settings.jiffies;
        self.state.hz = case.settings.hz.max(1);
        // Late enough for every idle period of a case to have begun after 0.
        self.now_ns = 1 << 40;
        self.nr_tasks = case.tasks.len();
        self.queues.iter_mut().for_each(Queue::clear);
        make_idle(&mut self.state.rq, &self.idle);
        self.add_tasks(case);
        case.cpus.iter().for_each(|cpu| self.set_cpu(cpu));
        let topology = Arc::clone(&self.state.topology);
        for (p, task) in case.tasks.iter().enumerate() {
            if task.queued && topology.online().test(task.cpu) {
                self.queues[task.cpu.index()].slots.push_back(Slot::Task(p));
                self.task_mut(p).on_rq = true;
            }
        }
        for cpu in topology.cpus() {
            if !self.queues[cpu.index()].slots.is_empty() {
                self.state.rq.idle_stamp_ns[cpu.index()] = 0;
            }
            self.refresh(cpu);
        }
        self.set_facts(case);
    }

    /// The named tasks come last: the others are the machine's.
    fn add_tasks(&mut self, case: &Case) {
        let all = Cpumask::first_n(self.queues.len());
        self.state.tasks.0.truncate(2 * self.queues.len());
        for (p, task) in case.tasks.iter().enumerate() {
            self.state.tasks.0.push(named_task(task, Pid(1000 + p as i32), name(p), all));
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

    fn set_facts(&mut self, case: &Case) {
        let jiffies = case.settings.jiffies;
        let mut facts = std::mem::take(&mut self.facts);
        facts.clear();
        for (p, task) in case.tasks.iter().enumerate() {
            let id = self.task_id(p);
            let decayed = jiffies.saturating_sub(task.flips_decayed_ago);
            facts.push(HiddenFact::RecentUsedCpu(id, task.recent_used_cpu.unwrap_or(task.cpu)));
            facts.push(HiddenFact::WakeeFlips(id, task.wakee_flips, Some(decayed)));
            facts.push(HiddenFact::LastWakee(id, task.last_wakee.map(|wakee| self.task_id(wakee))));
        }
        let default = CpuState::default();
        for cpu in self.state.topology.cpus() {
            for id in [TaskId::swapper(cpu), self.load_id(cpu)] {
                facts.push(HiddenFact::RecentUsedCpu(id, cpu));
                facts.push(HiddenFact::WakeeFlips(id, 0, Some(jiffies)));
                facts.push(HiddenFact::LastWakee(id, None));
            }
            facts.push(HiddenFact::AvgScanCost(cpu, default.avg_scan_cost_ns));
            facts.push(HiddenFact::WakeAvgIdle(cpu, default.wake_avg_idle_ns));
        }
        for hidden in &case.cpus {
            facts.push(HiddenFact::AvgScanCost(hidden.cpu, hidden.avg_scan_cost_ns));
            facts.push(HiddenFact::WakeAvgIdle(hidden.cpu, hidden.wake_avg_idle_ns));
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
        self.facts = facts;
    }
}

/// `t7`.
fn name(p: usize) -> Comm {
    Comm::new(format!("t{p}").as_bytes())
}

/// Every run queue as it is on an idle machine, without new lists.
fn make_idle(rq: &mut RunQueues, idle: &RunQueues) {
    let RunQueues {
        nr_running,
        h_nr_running,
        h_nr_runnable,
        idle_h_nr_running,
        curr_idle,
        ttwu_pending,
        vcpu_preempted,
        curr,
        avg_idle_ns,
        load_avg,
        runnable_load_avg,
        runnable_avg,
        util_avg,
        util_est_enqueued,
        cpu_capacity,
        cpu_capacity_orig,
        idle_stamp_ns,
        exit_latency_us,
        known,
    } = idle;
    rq.nr_running.clone_from(nr_running);
    rq.h_nr_running.clone_from(h_nr_running);
    rq.h_nr_runnable.clone_from(h_nr_runnable);
    rq.idle_h_nr_running.clone_from(idle_h_nr_running);
    (rq.curr_idle, rq.ttwu_pending, rq.vcpu_preempted) = (*curr_idle, *ttwu_pending, *vcpu_preempted);
    rq.curr.clone_from(curr);
    rq.avg_idle_ns.clone_from(avg_idle_ns);
    rq.load_avg.clone_from(load_avg);
    rq.runnable_load_avg.clone_from(runnable_load_avg);
    rq.runnable_avg.clone_from(runnable_avg);
    rq.util_avg.clone_from(util_avg);
    rq.util_est_enqueued.clone_from(util_est_enqueued);
    rq.cpu_capacity.clone_from(cpu_capacity);
    rq.cpu_capacity_orig.clone_from(cpu_capacity_orig);
    rq.idle_stamp_ns.clone_from(idle_stamp_ns);
    rq.exit_latency_us.clone_from(exit_latency_us);
    rq.known.clone_from(known);
}

fn named_task(task: &TaskState, pid: Pid, comm: Comm, all: Cpumask) -> Task {
    let cpus_ptr = task.cpus_ptr.unwrap_or(all);
    let cpus_preferred = task.cpus_preferred.unwrap_or(cpus_ptr);
    let mut flags = TaskFlags::empty();
    flags.set(TaskFlags::KTHREAD, task.kthread);
    flags.set(TaskFlags::EXITING, task.exiting);
    Task {
        cpus_preferred: cpus_preferred.into(),
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
