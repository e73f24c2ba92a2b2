// SPDX-License-Identifier: GPL-2.0-or-later
//! The bookkeeping behind a [`State`]: where each task is, and what a run queue's counters follow from.
//!
//! Every count is the number of tasks whose [`Place`] says so, and only [`Machine::place`] changes a place: no count can go
//! negative, no task can be in two queues.

use crate::cpumask::Cpumask;
use crate::inputs::{Inputs, Provenance};
use crate::machine::affinity::Habit;
use crate::machine::apply::Machine;
use crate::machine::loads::{Entity, WEIGHT_IDLE, weight_of};
use crate::machine::mask::SmallMask;
use crate::machine::names::bound_cpu;
use crate::machine::notice::Why;
use crate::machine::{Task, TaskFlags, TaskId};
use crate::trace::{Event, SisRq, Wakee};
use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::WakeKind;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Not queued: it sleeps, is gone, or was not seen yet.
    Off,
    /// On a run queue, running or not.
    On(Cpu),
    /// On a CPU's wake list: ttwu_pending, not in nr_running.
    Listed(Cpu),
}

impl Place {
    pub(super) fn cpu(self) -> Option<Cpu> {
        match self {
            Self::Off => None,
            Self::On(cpu) | Self::Listed(cpu) => Some(cpu),
        }
    }
}

/// A call of select_task_rq_fair() whose choice is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) class_cpu: Option<Cpu>,
    pub(super) kind: WakeKind,
    pub(super) this_cpu: Cpu,
    pub(super) prev_cpu: Cpu,
    /// CPUs that were idle then.
    pub(super) idle: SmallMask,
}

/// What the machine keeps of a task besides its facts.
#[derive(Debug, Clone)]
pub(super) struct TaskBook {
    pub(super) place: Place,
    /// An event of the task itself has shown it at its place; else it is there because of a decision.
    pub(super) confirmed: bool,
    /// A waking whose sched_wakeup has not come.
    pub(super) woken: bool,
    /// The CPU in whose context a decision about it is to be told.
    pub(super) asked_on: Option<Cpu>,
    /// Of the fair class by its priority.
    pub(super) fair: bool,
    pub(super) call: Option<Call>,
    /// When it was last switched out, ns; `None`: not seen.
    pub(super) left_ns: Option<u64>,
    /// It ran before its sched_wakeup was seen: that one will come late.
    pub(super) ahead: bool,
    /// When a sched_wakeup came without a sched_waking before it.
    pub(super) unannounced_ns: Option<u64>,
    /// Tasks that it shares its affinity with, as far as is assumed.
    pub(super) family: u32,
    /// Where it keeps to by itself.
    pub(super) habit: Habit,
    /// When it last went to sleep, or was made or first seen, ns.
    pub(super) slept_ns: u64,
    /// How often others were put beside it although idle CPUs were there; negative: where they were not.
    pub(super) shared: i8,
}

impl TaskBook {
    pub(super) const NEW: Self = Self {
        place: Place::Off,
        confirmed: false,
        woken: false,
        asked_on: None,
        fair: true,
        call: None,
        left_ns: None,
        ahead: false,
        unannounced_ns: None,
        family: u32::MAX,
        habit: Habit::NONE,
        slept_ns: 0,
        shared: 0,
    };
}

/// The call that is going on in a CPU's context. Interrupts are off during one, so there is at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    None,
    /// sched_waking came; unless it was told to be no decision, sis_in may follow.
    Waked {
        p: TaskId,
        ts_ns: u64,
        why: Why,
        told: bool,
    },
    /// The question is known, the decision not told yet.
    Asked {
        p: TaskId,
    },
    /// The decision was told; `answered`: sis_out came.
    Called {
        p: TaskId,
        kind: WakeKind,
        prev_cpu: Cpu,
        answered: bool,
    },
}

/// A question put to select_task_rq_fair().
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// When, where, and in whose context.
    pub(super) event: Event,
    pub(super) p: TaskId,
    pub(super) prev_cpu: Cpu,
    pub(super) kind: WakeKind,
    /// WF_SYNC, where a probe told.
    pub(super) sync: Option<bool>,
}

/// A probe of a run queue and what the books said at that moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) rq: SisRq,
    pub(super) seen: Counters,
}

/// The counters of a run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counters {
    pub(super) nr: u32,
    pub(super) nr_fair: u32,
    pub(super) nr_policy_idle: u32,
    pub(super) nr_listed: u32,
    /// Of `nr` those that are there by a decision only: on their way to the run queue.
    pub(super) nr_sent: u32,
    pub(super) curr: TaskId,
}

/// What the machine keeps of a CPU besides its run queue's columns.
#[derive(Debug, Clone)]
pub(super) struct CpuBook {
    pub(super) now: Counters,
    /// `next_pid` of its last sched_switch, unless events were lost since.
    pub(super) next_pid: Option<Pid>,
    /// Who runs is known.
    pub(super) curr_known: bool,
    pub(super) open: Open,
    /// Probes at the entry of the call that comes next in this CPU's context.
    pub(super) samples: Vec<Sample>,
    /// The question behind [`Open::Asked`].
    pub(super) asked: Option<Asked>,
    /// When it was asked, until something shows that it was decided.
    pub(super) asked_ns: Option<u64>,
}

impl CpuBook {
    pub(super) fn new(cpu: Cpu) -> Self {
        let now = Counters { curr: TaskId::swapper(cpu), ..Counters::default() };
        Self {
            now,
            next_pid: None,
            curr_known: false,
            open: Open::None,
            samples: Vec::new(),
            asked: None,
            asked_ns: None,
        }
    }
}

/// What is known of a task that only its name describes.
fn unknown_task() -> Provenance {
    Provenance {
        // No recorded kernel has soft affinity: nobody set it.
        derived: Inputs::TASK_FLAGS | Inputs::SOFT_AFFINITY,
        stated: Inputs::empty(),
        assumed: Inputs::AFFINITY | Inputs::POLICY | Inputs::NUMA | Inputs::UCLAMP,
        unknown: Inputs::TASK_LOAD | Inputs::TASK_UTIL,
    }
}

impl Machine {
    /// The task of that pid in the context of `cpu`; a pid not seen before gets a slot, last on `task_cpu`.
    pub(super) fn task_of(&mut self, pid: Pid, comm: Option<&Comm>, task_cpu: Cpu) -> TaskId {
        if pid == Pid::SWAPPER {
            return TaskId::swapper(task_cpu);
        }
        if let Some(id) = self.pids.get(pid) {
            if let Some(comm) = comm {
                self.rename(id, comm);
            }
            return id;
        }
        self.new_task(pid, comm.copied().unwrap_or_default(), task_cpu)
    }

    /// A slot for a task without history.
    pub(super) fn new_task(&mut self, pid: Pid, comm: Comm, task_cpu: Cpu) -> TaskId {
        let mut task = Task::new(pid, comm, self.online.clone(), task_cpu);
        task.known = unknown_task();
        let id = match self.pids.take_free() {
            Some(id) => {
                self.state.tasks[id] = task;
                self.books[id.index()] = TaskBook::NEW;
                self.loads.entities[id.index()] = Entity::NEW;
                id
            }
            None => {
                self.state.tasks.0.push(task);
                self.books.push(TaskBook::NEW);
                self.loads.entities.push(Entity::NEW);
                TaskId((self.books.len() - 1) as u32)
            }
        };
        self.loads.entities[id.index()].seen_ns = self.now_ns;
        self.books[id.index()].family = self.families.found();
        self.books[id.index()].slept_ns = self.now_ns;
        self.pids.insert(pid, id);
        self.bind_by_name(id);
        self.stated.forget(id);
        id
    }

    /// The task is gone: its slot may be used again.
    pub(super) fn drop_task(&mut self, id: TaskId) {
        self.place(id, Place::Off, true);
        self.loads.forget(id.index(), self.now_ns);
        self.families.leave(self.books[id.index()].family);
        self.pids.remove(self.state.tasks[id].pid, id);
    }

    fn rename(&mut self, id: TaskId, comm: &Comm) {
        if self.state.tasks[id].comm != *comm {
            self.state.tasks[id].comm = *comm;
            self.bind_by_name(id);
            self.stated.ask_again(id);
        }
    }

    /// Takes name and priority from an event.
    pub(super) fn meet(&mut self, wakee: &Wakee, task_cpu: Cpu) -> TaskId {
        let id = self.task_of(wakee.pid, Some(&wakee.comm), task_cpu);
        if wakee.pid != Pid::SWAPPER {
            self.set_fair(id, wakee.prio >= 100);
            let idle = self.state.tasks[id].policy_idle;
            self.loads.set_weight(id.index(), if idle { WEIGHT_IDLE } else { weight_of(wakee.prio) });
        }
        id
    }

    fn set_fair(&mut self, id: TaskId, fair: bool) {
        if self.books[id.index()].fair != fair {
            let place = self.books[id.index()].place;
            let confirmed = self.books[id.index()].confirmed;
            self.place(id, Place::Off, confirmed);
            self.books[id.index()].fair = fair;
            self.place(id, place, confirmed);
        }
    }

    /// Sets SCHED_IDLE.
    pub(super) fn set_policy_idle(&mut self, id: TaskId, policy_idle: bool) {
        if self.state.tasks[id].policy_idle != policy_idle {
            let place = self.books[id.index()].place;
            let confirmed = self.books[id.index()].confirmed;
            self.place(id, Place::Off, confirmed);
            self.state.tasks[id].policy_idle = policy_idle;
            // Of a task that is none the next event tells the weight that goes with its priority.
            self.loads.set_weight(id.index(), if policy_idle { WEIGHT_IDLE } else { weight_of(120) });
            self.place(id, place, confirmed);
        }
    }

    /// A kernel thread whose name carries a CPU number is bound to that CPU.
    fn bind_by_name(&mut self, id: TaskId) {
        let task = &mut self.state.tasks[id];
        if let Some(cpu) = bound_cpu(&task.comm).filter(|cpu| cpu.index() < self.state.topology.nr_cpu_ids()) {
            task.cpus_ptr = Cpumask::of(cpu).into();
            task.cpus_preferred = task.cpus_ptr.clone();
            task.nr_cpus_allowed = 1;
            task.flags |= TaskFlags::KTHREAD;
            task.known.set_derived(Inputs::AFFINITY | Inputs::TASK_FLAGS);
        }
    }

    /// Moves a task, and the counts with it.
    pub(super) fn place(&mut self, id: TaskId, to: Place, confirmed: bool) {
        let from = self.books[id.index()].place;
        self.track(id, to, confirmed);
        if from == to && self.books[id.index()].confirmed == confirmed {
            return;
        }
        self.count(id, from, u32::wrapping_sub);
        self.books[id.index()].place = to;
        self.books[id.index()].confirmed = confirmed;
        self.count(id, to, u32::wrapping_add);
        self.state.tasks[id].on_rq = matches!(to, Place::On(_));
        for cpu in [from.cpu(), to.cpu()].into_iter().flatten() {
            self.publish(cpu);
        }
    }

    /// Loads follow places that are confirmed.
    fn track(&mut self, id: TaskId, to: Place, confirmed: bool) {
        match to {
            Place::On(cpu) if confirmed && self.books[id.index()].fair => {
                self.loads.enqueue(id.index(), cpu, self.now_ns, &self.state.rq.curr_idle);
            }
            Place::On(_) if confirmed => {}
            _ => self.loads.dequeue(id.index(), self.now_ns, true),
        }
    }

    fn count(&mut self, id: TaskId, place: Place, add: fn(u32, u32) -> u32) {
        let fair = self.books[id.index()].fair;
        let policy_idle = fair && self.state.tasks[id].policy_idle;
        let sent = !self.books[id.index()].confirmed;
        match place {
            Place::Off => {}
            Place::Listed(cpu) => {
                let now = &mut self.cpus[cpu.index()].now;
                now.nr_listed = add(now.nr_listed, 1);
            }
            Place::On(cpu) => {
                let now = &mut self.cpus[cpu.index()].now;
                now.nr = add(now.nr, 1);
                now.nr_sent = add(now.nr_sent, u32::from(sent));
                now.nr_fair = add(now.nr_fair, u32::from(fair));
                now.nr_policy_idle = add(now.nr_policy_idle, u32::from(policy_idle));
            }
        }
    }

    /// Writes a CPU's counters into the state's columns.
    pub(super) fn publish(&mut self, cpu: Cpu) {
        let now = self.cpus[cpu.index()].now;
        self.write_columns(cpu, now);
    }

    pub(super) fn write_columns(&mut self, cpu: Cpu, now: Counters) {
        let rq = &mut self.state.rq;
        let at = cpu.index();
        rq.nr_running[at] = now.nr;
        rq.h_nr_running[at] = now.nr_fair;
        rq.h_nr_runnable[at] = now.nr_fair;
        rq.idle_h_nr_running[at] = now.nr_policy_idle;
        rq.ttwu_pending.assign(cpu, now.nr_listed > 0);
        rq.curr[at] = now.curr;
        rq.curr_idle.assign(cpu, now.curr == TaskId::swapper(cpu));
    }

    /// Who runs on a CPU from now on.
    pub(super) fn set_curr(&mut self, cpu: Cpu, id: TaskId) {
        self.cpus[cpu.index()].now.curr = id;
        self.cpus[cpu.index()].curr_known = true;
        self.publish(cpu);
    }

    /// Tasks whose place is `On(cpu)` and confirmed: what a CPU that goes idle cannot have.
    pub(super) fn queued_on(&self, cpu: Cpu) -> impl Iterator<Item = TaskId> + '_ {
        let book = |id: &TaskId| &self.books[id.index()];
        (0..self.books.len() as u32)
            .map(TaskId)
            .filter(move |id| book(id).place == Place::On(cpu) && book(id).confirmed)
    }
}
