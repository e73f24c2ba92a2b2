// SPDX-License-Identifier: GPL-2.0-or-later
//! What hidden state takes from outside of decisions, the same for every implementation, and how it is put back.

use crate::fair::hidden::{Clock, CpuHidden, Hidden, SharedHidden, TaskHidden};
use crate::fair::{HiddenFact, Step};
use crate::machine::{Inputs, Provenance, State, TaskId};
use crate::topology::SharedId;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

impl Hidden {
    /// Takes in `step`. A CPU that goes idle is not this one's business: __update_idle_core() is the implementation's.
    pub fn remember(&mut self, state: &State, step: &Step) {
        match *step {
            Step::EnterIdle(_) => {}
            Step::LeaveIdle { cpu, .. } => {
                // ttwu_do_wakeup(), 6.1: from rq->avg_idle, which has this idle period already.
                let hidden = &mut self.cpus[cpu.index()];
                hidden.wake_stamp_jiffies = state.jiffies;
                hidden.wake_avg_idle_ns = state.rq.avg_idle_ns[cpu.index()] / 2;
                hidden.known.set_traced(Inputs::AVG_IDLE);
                hidden.known |= state.rq.known[cpu.index()].of(Inputs::AVG_IDLE);
            }
            Step::Fork { p, parent, cpu } => {
                let unknown = Provenance { unknown: Inputs::all(), ..Provenance::default() };
                let mut child = match parent {
                    Some(id) => *self.task_mut(id, state.tasks[id].task_cpu),
                    None => TaskHidden::new(cpu, unknown),
                };
                child.recent_used_cpu = cpu;
                child.known.set_derived(Inputs::RECENT_USED_CPU);
                *self.task_mut(p, cpu) = child;
            }
            Step::Balance { shared, nr_idle_scan } => {
                let hidden = &mut self.shared[shared];
                hidden.nr_idle_scan = nr_idle_scan;
                hidden.known.set_derived(Inputs::NR_IDLE_SCAN);
            }
            Step::Domains => self.domains(state),
            Step::Fact(fact) => self.fact(state, fact, false),
            Step::Seed(fact) => self.fact(state, fact, true),
            Step::Learned(fact) => self.learn(state, fact),
        }
    }

    /// **Source**: kernel/sched/topology.c, __sdt_alloc() and sd_init(), v5.2 to v7.3: shared state and domains begin with
    /// zeroes. has_idle_cores comes with the next CPU that goes idle, nr_idle_scan with the next periodic balance.
    fn domains(&mut self, state: &State) {
        let mut shared = SharedHidden::default();
        shared.known.set_derived(Inputs::HAS_IDLE_CORES | Inputs::NR_IDLE_SCAN);
        self.shared.clear();
        self.shared.resize(state.topology.nr_shared(), shared);
        for cpu in &mut self.cpus {
            cpu.avg_scan_cost_ns = 0;
            cpu.known.set_derived(Inputs::SCAN_COST);
        }
    }

    /// A choice is no measurement: what scans cost stays as well known as it was.
    fn learn(&mut self, state: &State, fact: HiddenFact) {
        match fact {
            HiddenFact::RecentUsedCpu(id, cpu) => {
                let task = self.task_mut(id, state.tasks[id].task_cpu);
                task.recent_used_cpu = cpu;
                task.known.set_derived(Inputs::RECENT_USED_CPU);
            }
            HiddenFact::AvgScanCost(cpu, ns) => self.cpus[cpu.index()].avg_scan_cost_ns = ns,
            fact => self.fact(state, fact, false),
        }
    }

    fn fact(&mut self, state: &State, fact: HiddenFact, only_unknown: bool) {
        let wanted = |known: &Provenance, inputs| !only_unknown || known.unknown.intersects(inputs);
        match fact {
            HiddenFact::RecentUsedCpu(id, cpu) => {
                let task = self.task_mut(id, state.tasks[id].task_cpu);
                if wanted(&task.known, Inputs::RECENT_USED_CPU) {
                    task.recent_used_cpu = cpu;
                    task.known.set_traced(Inputs::RECENT_USED_CPU);
                }
            }
            HiddenFact::WakeeFlips(id, flips, decay_jiffies) => {
                let task = self.task_mut(id, state.tasks[id].task_cpu);
                if wanted(&task.known, Inputs::WAKEE_FLIPS) {
                    task.wakee_flips = flips;
                    task.wakee_flip_decay_jiffies = decay_jiffies.unwrap_or(task.wakee_flip_decay_jiffies);
                    task.known.set_traced(Inputs::WAKEE_FLIPS);
                }
            }
            HiddenFact::LastWakee(id, last_wakee) => {
                let task = self.task_mut(id, state.tasks[id].task_cpu);
                if wanted(&task.known, Inputs::WAKEE_FLIPS) {
                    task.last_wakee = last_wakee;
                }
            }
            HiddenFact::HasIdleCores(id, has) => {
                let shared = &mut self.shared[id];
                if wanted(&shared.known, Inputs::HAS_IDLE_CORES) {
                    shared.has_idle_cores = has;
                    shared.known.set_traced(Inputs::HAS_IDLE_CORES);
                }
            }
            HiddenFact::NrIdleScan(id, nr) => {
                let shared = &mut self.shared[id];
                if wanted(&shared.known, Inputs::NR_IDLE_SCAN) {
                    shared.nr_idle_scan = nr;
                    shared.known.set_traced(Inputs::NR_IDLE_SCAN);
                }
            }
            HiddenFact::AvgScanCost(cpu, ns) => {
                let hidden = &mut self.cpus[cpu.index()];
                if wanted(&hidden.known, Inputs::SCAN_COST) {
                    hidden.avg_scan_cost_ns = ns;
                    hidden.known.set_traced(Inputs::SCAN_COST);
                }
            }
            HiddenFact::WakeAvgIdle(cpu, ns) => {
                let hidden = &mut self.cpus[cpu.index()];
                if wanted(&hidden.known, Inputs::AVG_IDLE) {
                    hidden.wake_avg_idle_ns = ns;
                    hidden.wake_stamp_jiffies = state.jiffies;
                    hidden.known.set_traced(Inputs::AVG_IDLE);
                }
            }
            HiddenFact::FlipsOfKin(stamp_jiffies, more) => {
                let is_kin = |task: &&mut TaskHidden| {
                    task.known.unknown.contains(Inputs::WAKEE_FLIPS) && task.wakee_flip_decay_jiffies == stamp_jiffies
                };
                for task in self.tasks.iter_mut().filter(is_kin) {
                    let flips = i64::from(task.wakee_flips).saturating_add(more);
                    task.wakee_flips = u32::try_from(flips.max(0)).unwrap_or(u32::MAX);
                }
            }
            HiddenFact::ProbeCost(ns) => self.clock.probe_ns = ns,
        }
    }
}

impl Hidden {
    /// Whether the wakee flips that wake_wide() would ask for are assumed or unknown.
    pub(crate) fn is_wide_open(&self, wakeup: &Wakeup) -> bool {
        let is_open =
            |id: &TaskId| self.tasks.get(id.index()).is_none_or(|task| !task.known.of(Inputs::WAKEE_FLIPS).is_known());
        wakeup.kind == WakeKind::Ttwu && [wakeup.p, wakeup.current].iter().any(is_open)
    }

    /// Wakee flips with which wake_wide() says `wide`.
    pub(crate) fn set_wide(&mut self, state: &State, wakeup: &Wakeup, wide: bool) {
        // Whatever record_wakee() adds or halves, these stay below and above what wake_wide() asks of any LLC.
        let flips = if wide { [1 << 12, 1 << 30] } else { [0, 0] };
        for (id, flips) in [wakeup.p, wakeup.current].into_iter().zip(flips) {
            self.task_mut(id, state.tasks[id].task_cpu).wakee_flips = flips;
        }
    }
}

/// All hidden state that one call can change: of its two tasks, of the waking CPU, of the LLCs of both CPUs, the clock.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    nr_tasks: usize,
    tasks: [Option<(TaskId, TaskHidden)>; 2],
    cpu: (Cpu, CpuHidden),
    /// Mostly one and the same, which does no harm.
    shared: [Option<(SharedId, SharedHidden)>; 4],
    clock: Clock,
}

impl Before {
    #[inline]
    pub(crate) fn of(hidden: &Hidden, state: &State, w: &Wakeup) -> Self {
        let topology = &state.topology;
        let task = |id: TaskId| hidden.tasks.get(id.index()).map(|task| (id, *task));
        let shared = |id: Option<SharedId>| id.map(|id| (id, hidden.shared[id]));
        Self {
            nr_tasks: hidden.tasks.len(),
            tasks: [task(w.p), task(w.current)],
            cpu: (w.this_cpu, hidden.cpus[w.this_cpu.index()]),
            shared: [
                shared(topology.llc_shared(w.this_cpu)),
                shared(topology.llc_shared(w.prev_cpu)),
                shared(topology.balance_shared(w.this_cpu)),
                shared(topology.balance_shared(w.prev_cpu)),
            ],
            clock: hidden.clock,
        }
    }

    #[inline]
    pub(crate) fn restore(&self, hidden: &mut Hidden) {
        hidden.tasks.truncate(self.nr_tasks);
        for (id, task) in self.tasks.iter().flatten() {
            hidden.tasks[id.index()] = *task;
        }
        hidden.cpus[self.cpu.0.index()] = self.cpu.1;
        for (id, shared) in self.shared.iter().flatten() {
            hidden.shared[*id] = *shared;
        }
        hidden.clock = self.clock;
    }
}
