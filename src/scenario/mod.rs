// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios: a machine, its tasks, and a sequence of wakeups, invented rather than recorded.
//!
//! A [`Case`] is the whole of it as a value. It comes from bytes ([`Case::from_dna`], what fuzzers mutate), from a case
//! file ([`Case::parse`], what people edit), or from the shrinker. A [`World`] plays it: it holds the
//! [`State`](crate::machine::State) that implementations look at, asks them at each wakeup, and puts the task where the
//! first of them said.

mod distances;
mod dna;
mod domains;
pub mod event;
mod file;
mod genes;
mod overlap;
mod picture;
mod relabel;
pub mod shape;
mod world;

pub use distances::{Distances, Links};
pub use dna::{Breed, genes_of_cpu_states, genes_of_events, genes_of_tasks};
pub use event::{Event, Load, TaskIndex};
pub use file::VERSION;
pub use shape::{Core, Llc, Shape};
pub use world::{Play, Played, Player, World};

use serde::{Deserialize, Serialize};

use crate::cpumask::{CpulistError, Cpumask};
use crate::fair::Clock;
use crate::spec::SchedFeat;
use crate::topology::TopologyError;
use crate::units::Cpu;

/// Why a case cannot be read or played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// A line in one of the small notations.
    #[error("case: {line:?}: expected {expected}")]
    Line {
        /// The line or word.
        line: String,
        /// What should have been there.
        expected: String,
    },
    /// A machine that cannot be.
    #[error("case: machine: {what}")]
    Shape {
        /// What is wrong.
        what: String,
    },
    /// Something that names a CPU, a task or an LLC that is not there.
    #[error("case: {what} names {found}, but there are only {there}")]
    Missing {
        /// Who names it.
        what: String,
        /// What is named.
        found: String,
        /// What there is.
        there: String,
    },
    /// A number that no kernel would hold.
    #[error("case: {what} is {found}, expected at most {limit}")]
    Number {
        /// Which number.
        what: String,
        /// Its value.
        found: u64,
        /// The largest.
        limit: u64,
    },
    /// A file of another version.
    #[error("case: version {found}, expected {VERSION}; a newer sisdiff wrote it")]
    Version {
        /// The file's version.
        found: u32,
    },
    /// Text that is no TOML, or has an unknown key or a wrong type.
    #[error("case: {0}")]
    Toml(String),
    /// A cpulist.
    #[error("case: {0}")]
    Cpulist(#[from] CpulistError),
    /// A topology that implementations cannot take.
    #[error("case: {0}")]
    Topology(#[from] TopologyError),
}

impl CaseError {
    fn line(line: &str, expected: &str) -> Self {
        Self::Line { line: line.to_owned(), expected: expected.to_owned() }
    }
}

/// Switches and constants of the modelled kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Jiffies per second.
    pub hz: u32,
    /// `jiffies` when the case begins.
    pub jiffies: u64,
    /// Scheduler features switched on that are off by default, and the reverse: `SIS_AVG_CPU`, `NO_SIS_PROP`.
    #[serde(skip_serializing_if = "Switches::is_empty")]
    pub features: Switches,
    /// Declared cost of an idle check, ns.
    pub probe_ns: u64,
    /// Declared cost of reading the clock, ns.
    pub clock_read_ns: u64,
    /// Declared cost of a mask operation, ns.
    pub mask_op_ns: u64,
    /// `sysctl_sched_preferred` of the soft-affinity RFC.
    pub sched_preferred: u32,
    /// `sysctl_sched_allowed` of the soft-affinity RFC.
    pub sched_allowed: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let clock = Clock::default();
        Self {
            hz: 250,
            jiffies: 1_000_000,
            features: Switches::default(),
            probe_ns: clock.probe_ns,
            clock_read_ns: clock.clock_read_ns,
            mask_op_ns: clock.mask_op_ns,
            sched_preferred: 1,
            sched_allowed: 100,
        }
    }
}

/// Features that a case switches; what is in neither set is left at the release's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches {
    /// Switched on.
    pub on: SchedFeat,
    /// Switched off.
    pub off: SchedFeat,
}

impl Switches {
    /// Whether everything is left at its default.
    pub fn is_empty(&self) -> bool {
        self.on.is_empty() && self.off.is_empty()
    }
}

/// A CPU's facts when the case begins, where they are not those of an idle CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CpuState {
    /// Which CPU.
    pub cpu: Cpu,
    /// Tasks that it runs beside those the case names.
    pub load: Load,
    /// A wakeup is on its wake list (`ttwu_pending`) until the first tick or switch.
    pub pending: bool,
    /// `vcpu_is_preempted()`.
    pub preempted: bool,
    /// `rq->avg_idle`, ns.
    pub avg_idle_ns: u64,
    /// `sd_llc->avg_scan_cost`, ns.
    pub avg_scan_cost_ns: u64,
    /// `rq->wake_avg_idle`, ns (6.1).
    pub wake_avg_idle_ns: u64,
    /// `cfs.avg.load_avg` of the unnamed tasks.
    pub load_avg: u64,
    /// `cfs.avg.util_avg` of the unnamed tasks.
    pub util_avg: u64,
    /// What is left of its capacity for fair tasks, in 1/1024 of `cpu_capacity_orig`.
    pub capacity_left: u64,
    /// For how long it has been idle, ns; 0: `idle_stamp` is 0, as after a pull.
    pub idle_for_ns: u64,
    /// Exit latency of its idle state, µs; -1: none.
    pub exit_latency_us: i32,
}

impl Default for CpuState {
    fn default() -> Self {
        Self {
            cpu: Cpu(0),
            load: Load::default(),
            pending: false,
            preempted: false,
            avg_idle_ns: 1_000_000,
            avg_scan_cost_ns: 0,
            wake_avg_idle_ns: 500_000,
            load_avg: 0,
            util_avg: 0,
            capacity_left: 1024,
            idle_for_ns: 0,
            exit_latency_us: -1,
        }
    }
}

/// A task when the case begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskState {
    /// `task_cpu()`.
    pub cpu: Cpu,
    /// Queued there; else asleep. The first queued task of a CPU without unnamed tasks is running.
    pub queued: bool,
    /// Affinity; `None`: every CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_ptr: Option<Cpumask>,
    /// Soft affinity of the RFC; `None`: the same as `cpus_ptr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_preferred: Option<Cpumask>,
    /// PF_KTHREAD.
    pub kthread: bool,
    /// PF_EXITING.
    pub exiting: bool,
    /// SCHED_IDLE.
    pub policy_idle: bool,
    /// `recent_used_cpu`; `None`: the same as `cpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_used_cpu: Option<Cpu>,
    /// `wakee_flips`.
    pub wakee_flips: u32,
    /// Jiffies since `wakee_flip_decay_ts`.
    pub flips_decayed_ago: u64,
    /// `last_wakee`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_wakee: Option<TaskIndex>,
    /// `numa_preferred_nid`, -1 for none.
    pub numa_preferred_nid: i32,
    /// `se.avg.load_avg`.
    pub load_avg: u64,
    /// `se.avg.util_avg`.
    pub util_avg: u64,
    /// `util_est` (both of its values where there are two).
    pub util_est: u64,
    /// `se.avg.runnable_avg`.
    pub runnable_avg: u64,
    /// Effective minimum utilisation clamp.
    pub uclamp_min: u64,
    /// Effective maximum utilisation clamp.
    pub uclamp_max: u64,
}

impl Default for TaskState {
    fn default() -> Self {
        Self {
            cpu: Cpu(0),
            queued: false,
            cpus_ptr: None,
            cpus_preferred: None,
            kthread: false,
            exiting: false,
            policy_idle: false,
            recent_used_cpu: None,
            wakee_flips: 0,
            flips_decayed_ago: 0,
            last_wakee: None,
            numa_preferred_nid: -1,
            load_avg: 0,
            util_avg: 0,
            util_est: 0,
            runnable_avg: 0,
            uclamp_min: 0,
            uclamp_max: 1024,
        }
    }
}

/// A scenario.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Case {
    /// The implementations it is about, the first of which places the tasks; empty: whoever plays it decides.
    pub pair: Vec<String>,
    /// What it shows, for people.
    pub note: String,
    /// Switches and constants.
    pub settings: Settings,
    /// The machine.
    pub machine: Shape,
    /// CPUs that do not begin idle and fresh, ascending.
    pub cpus: Vec<CpuState>,
    /// The tasks; [`TaskIndex`] is their place here.
    pub tasks: Vec<TaskState>,
    /// What happens.
    pub events: Vec<Event>,
}

impl Case {
    /// Number of events at which implementations are asked.
    pub fn decisions(&self) -> usize {
        self.events.iter().filter(|event| event.is_decision()).count()
    }

    /// Checks that the case is about CPUs, tasks and LLCs that exist.
    ///
    /// # Errors
    /// [`CaseError::Missing`] names the first that is not there, [`CaseError::Shape`] what is wrong with the machine.
    pub fn check(&self) -> Result<(), CaseError> {
        self.machine.check()?;
        let (cpus, present) = (self.machine.nr_cpu_ids(), self.machine.present());
        let cpu = |what: &dyn Fn() -> String, cpu: Cpu| {
            let there = || format!("{cpus} CPUs");
            (cpu.index() < cpus).then_some(()).ok_or_else(|| CaseError::Missing {
                what: what(),
                found: format!("cpu{cpu}"),
                there: there(),
            })
        };
        let task = |what: &dyn Fn() -> String, p: TaskIndex| {
            (p < self.tasks.len()).then_some(()).ok_or_else(|| CaseError::Missing {
                what: what(),
                found: format!("t{p}"),
                there: format!("{} tasks", self.tasks.len()),
            })
        };
        self.check_numbers()?;
        let mut seen = Cpumask::EMPTY;
        for state in &self.cpus {
            cpu(&|| "a [[cpu]] section".to_owned(), state.cpu)?;
            if seen.test(state.cpu) {
                return Err(CaseError::Shape { what: format!("cpu{} has two sections", state.cpu) });
            }
            seen.set(state.cpu);
        }
        for (i, state) in self.tasks.iter().enumerate() {
            let what = || format!("task t{i}");
            cpu(&what, state.cpu)?;
            if state.cpus_ptr.is_some_and(|cpus| !cpus.intersects(&present)) {
                return Err(CaseError::Shape {
                    what: format!("cpus_ptr of task t{i} has none of its CPUs, {present}"),
                });
            }
            state.recent_used_cpu.map_or(Ok(()), |recent| cpu(&what, recent))?;
            state.last_wakee.map_or(Ok(()), |wakee| task(&what, wakee))?;
        }
        for event in &self.events {
            let what = || format!("event {event:?}", event = event.to_string());
            match *event {
                Event::Wake { p, from, .. } | Event::Fork { p, from } => {
                    task(&what, p)?;
                    cpu(&what, from)?;
                }
                Event::Move(p, to) => {
                    task(&what, p)?;
                    cpu(&what, to)?;
                }
                Event::Sleep(p) | Event::Affine(p, _) => task(&what, p)?,
                Event::Exec(on)
                | Event::Idle(on)
                | Event::Load(on, _)
                | Event::Switch(on)
                | Event::Preempt(on, _)
                | Event::Hotplug(on, _) => {
                    cpu(&what, on)?;
                }
                Event::Balance(llc, _) if llc >= self.machine.llcs.len() => {
                    let there = format!("{} LLCs", self.machine.llcs.len());
                    return Err(CaseError::Missing { what: what(), found: format!("llc{llc}"), there });
                }
                Event::Tick(_) | Event::Balance(..) => {}
            }
        }
        Ok(())
    }

    /// The kernel's sums and products of these stay far below 2^63, and so must a case's.
    fn check_numbers(&self) -> Result<(), CaseError> {
        let check = |what: &str, found: u64, limit: u64| {
            (found <= limit).then_some(()).ok_or_else(|| CaseError::Number { what: what.to_owned(), found, limit })
        };
        let Settings { jiffies, probe_ns, clock_read_ns, mask_op_ns, .. } = self.settings;
        check("jiffies", jiffies, 1 << 60)?;
        [probe_ns, clock_read_ns, mask_op_ns].into_iter().try_for_each(|ns| check("a cost", ns, 1 << 40))?;
        for cpu in &self.cpus {
            for ns in [cpu.avg_idle_ns, cpu.avg_scan_cost_ns, cpu.wake_avg_idle_ns] {
                check("an average", ns, 1 << 40)?;
            }
            check("idle_for_ns", cpu.idle_for_ns, 1 << 39)?;
            check("load_avg", cpu.load_avg, 1 << 32)?;
            check("util_avg", cpu.util_avg, 1 << 20)?;
            check("capacity_left", cpu.capacity_left, 1024)?;
        }
        for task in &self.tasks {
            check("load_avg", task.load_avg, 1 << 32)?;
            for util in [task.util_avg, task.util_est, task.runnable_avg] {
                check("a utilisation", util, 1 << 20)?;
            }
            check("uclamp", task.uclamp_min.max(task.uclamp_max), 1024)?;
        }
        Ok(())
    }
}
