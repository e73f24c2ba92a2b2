// SPDX-License-Identifier: GPL-2.0-or-later
//! Golden vectors: machine states with the answers of the kernel's own C functions, format `sis-vectors/1` (gzip-compressed
//! JSON lines).
//!
//! [`read`] makes states and calls of a file, [`check`] holds an implementation against its answers.

pub mod check;
mod json;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::column::Column;
use crate::fair::{Clock, CpuHidden, Hidden, SharedHidden, TaskHidden};
use crate::machine::{Provenance, RunQueues, State, Task, TaskFlags, TaskId, Tasks};
use crate::spec::SchedFeat;
use crate::topology::{Domain, Parts, SdFlags, Topology, TopologyError};
use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::{WakeKind, Wakeup};

pub use json::Header;

/// Why a file of vectors could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not of the format.
    #[error("{}, line {line}: {source}; expected format sis-vectors/1", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A topology that makes no sense.
    #[error("{}, line {line}: {source}", path.display())]
    Topology {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: TopologyError,
    },
    /// Anything else that a line says.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// One file: a family at one level.
#[derive(Debug)]
pub struct Vectors {
    /// What the file says of itself.
    pub header: Header,
    /// Its cases and sequences.
    pub items: Vec<Item>,
}

/// One case, or one sequence of steps.
#[derive(Debug)]
pub struct Item {
    /// Its number in the file.
    pub id: u32,
    /// How it came in: `random`, `divergent`, `long`; `sequence`.
    pub sample: String,
    /// Where it starts.
    pub start: Start,
    /// What happens; a case has one step.
    steps: Vec<Step>,
    /// The answers by group of variants: one for each step.
    answers: Vec<Answers>,
}

#[derive(Debug)]
struct Answers {
    variants: Vec<String>,
    outcomes: Vec<Option<json::Outcome>>,
}

#[derive(Debug)]
enum Step {
    Cpu(json::CpuStep),
    Wake { jiffies: Option<u64>, call: Call },
}

/// A state with the hidden state beside it.
#[derive(Debug, Clone)]
pub struct Start {
    /// The machine; task `i` of the file is [`TaskId`] `nr_cpu_ids + i`.
    pub state: State,
    /// Hidden state.
    pub hidden: Hidden,
    /// The scheduler features that are on.
    pub features: SchedFeat,
    /// The fields that the family has.
    in_task: bool,
}

#[derive(Debug, Clone)]
struct Call {
    p: TaskId,
    current: TaskId,
    this_cpu: Cpu,
    /// `None`: where the task was put last.
    prev: Option<Cpu>,
    sync: bool,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    SelectIdleSibling { target: Cpu },
    SelectTaskRqFair(WakeKind),
}

impl Item {
    /// The topology.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.start.state.topology
    }

    /// The first call of the item as a wakeup, with prev_cpu where it is given; `None` for a call of
    /// select_idle_sibling() alone. For generators that take vectors as seeds.
    pub fn wakeup(&self) -> Option<Wakeup> {
        self.steps.iter().find_map(|step| match step {
            Step::Wake { call: Call { prev: Some(prev), what: What::SelectTaskRqFair(kind), .. }, .. } => {
                let Step::Wake { call, .. } = step else { return None };
                Some(call.wakeup(*prev, *kind, self.start.in_task))
            }
            _ => None,
        })
    }
}

impl Call {
    fn wakeup(&self, prev_cpu: Cpu, kind: WakeKind, in_task: bool) -> Wakeup {
        let Self { p, current, this_cpu, sync, .. } = *self;
        Wakeup { p, current, this_cpu, prev_cpu, kind, sync, in_task, known: Provenance::TRACED }
    }
}

/// The spec of a variant of the vectors; `None` for a variant that has none.
pub fn spec_of(variant: &str) -> Option<&'static str> {
    Some(match variant {
        "a0" => "v5.11",
        "a1" => "v5.11+no-sis-avg-cpu",
        "a2" => "v5.11+no-sis-avg-cpu+scan-cost",
        "a3" => "v5.11+no-sis-avg-cpu+scan-cost+recent-used",
        "a4" => "v5.11+mel-v2",
        "p2" => "v5.11+scan-cost",
        "p3" => "v5.11+recent-used",
        "p4" => "v5.11+idle-candidate",
        "a3fix" => "v5.11+no-sis-avg-cpu+scan-cost+recent-used+fix-cpus-ptr",
        "b0" => "v5.2",
        "b1" => "v5.2+soft-affinity",
        "b2" => "v5.2+soft-affinity+tunables",
        "c0" => "v6.1",
        "d0" => "v6.12",
        "e0" => "v5.10",
        "f0" => "v6.12.117",
        "g0" => "v7.3",
        _ => return None,
    })
}

/// Reads a file of vectors.
///
/// # Errors
/// See [`VectorError`].
pub fn read(path: &Path) -> Result<Vectors, VectorError> {
    let io = |source| VectorError::Io { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(io)?;
    let lines = BufReader::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(file))).lines();
    let mut header = None;
    let mut topologies = BTreeMap::new();
    let mut items = Vec::new();
    for (at, text) in lines.enumerate() {
        let line = at + 1;
        let wrong = |what: String| VectorError::Line { path: path.to_owned(), line, what };
        let json = |source| VectorError::Json { path: path.to_owned(), line, source };
        match serde_json::from_str(&text.map_err(io)?).map_err(json)? {
            json::Line::Header(found) => header = Some(found),
            json::Line::Topology(raw) => {
                let id = raw.id;
                let topology = topology(raw).map_err(wrong)?;
                topologies.insert(id, topology);
            }
            json::Line::Case(raw) => {
                let hz = header.as_ref().map_or(250, |header| header.hz);
                let parts = topologies.get(&raw.topology).ok_or_else(|| wrong("unknown topology".to_owned()))?;
                items.push(case(raw, parts, hz).map_err(wrong)?);
            }
            json::Line::Sequence(raw) => {
                let hz = header.as_ref().map_or(250, |header| header.hz);
                let parts = topologies.get(&raw.topology).ok_or_else(|| wrong("unknown topology".to_owned()))?;
                items.push(sequence(raw, parts, hz).map_err(wrong)?);
            }
        }
    }
    let header = header.ok_or_else(|| VectorError::Line {
        path: path.to_owned(),
        line: 1,
        what: "no header; expected a file of golden vectors".to_owned(),
    })?;
    Ok(Vectors { header, items })
}

fn topology(raw: json::Topology) -> Result<Parts, String> {
    let mut domains = Vec::with_capacity(raw.domains.len());
    for domain in raw.domains {
        let mut flags = SdFlags::empty();
        for name in &domain.flags {
            flags |= match name.strip_prefix("SD_").unwrap_or(name) {
                "SHARE_PKG_RESOURCES" => SdFlags::SHARE_LLC,
                // Every domain has it, and so it decides nothing.
                "LOAD_BALANCE" => SdFlags::empty(),
                name => SdFlags::from_name(name).ok_or_else(|| format!("domain flag {name:?} is not known"))?,
            };
        }
        let json::Domain { level, name, span, imbalance_pct, imb_numa_nr, .. } = domain;
        domains.push(Domain { level, name, span: span.0, flags, imbalance_pct, imb_numa_nr });
    }
    Ok(Parts {
        nr_cpu_ids: raw.nr_cpu_ids,
        online: raw.online.0,
        smt: raw.cpu_smt_mask.iter().map(|mask| mask.0).collect(),
        node: raw.cpu_to_node,
        capacity_orig: vec![1024; raw.nr_cpu_ids],
        smt_present: raw.sched_smt_present,
        asym_cpucapacity: raw.sched_asym_cpucapacity,
        domains,
        llcs: raw.llcs.iter().map(|mask| mask.0).collect(),
        asym_spans: raw.asym_spans.iter().map(|mask| mask.0).collect(),
        ..Parts::default()
    })
}

fn case(raw: json::Case, parts: &Parts, hz: u32) -> Result<Item, String> {
    let start = start(raw.state, parts, hz)?;
    let call = call(raw.call, &start)?;
    let answers = raw
        .results
        .into_iter()
        .map(|outcome| Answers { variants: outcome.variants.clone(), outcomes: vec![Some(outcome)] })
        .collect();
    Ok(Item { id: raw.id, sample: raw.sample, start, steps: vec![Step::Wake { jiffies: None, call }], answers })
}

fn sequence(raw: json::Sequence, parts: &Parts, hz: u32) -> Result<Item, String> {
    let start = start(raw.state, parts, hz)?;
    let mut steps = Vec::with_capacity(raw.steps.len());
    for step in raw.steps {
        steps.push(match step {
            json::Step::Cpu(step) => Step::Cpu(step),
            json::Step::Wake(step) => Step::Wake { jiffies: Some(step.jiffies), call: call(step.call.into(), &start)? },
        });
    }
    let answers =
        raw.results.into_iter().map(|group| Answers { variants: group.variants, outcomes: group.steps }).collect();
    Ok(Item { id: raw.id, sample: "sequence".to_owned(), start, steps, answers })
}

fn call(raw: json::Call, start: &Start) -> Result<Call, String> {
    let nr_cpu_ids = start.state.topology.nr_cpu_ids() as u32;
    let prev = match raw.prev {
        json::Prev::Cpu(cpu) => Some(Cpu(cpu)),
        json::Prev::Word(word) if word == "last" => None,
        json::Prev::Word(word) => return Err(format!("prev {word:?}: expected a CPU or \"last\"")),
    };
    let what = match (raw.function.as_str(), raw.target, raw.wake_flags.as_deref()) {
        ("select_idle_sibling", Some(target), _) => What::SelectIdleSibling { target: Cpu(target) },
        ("select_task_rq_fair", _, Some("WF_TTWU")) => What::SelectTaskRqFair(WakeKind::Ttwu),
        ("select_task_rq_fair", _, Some("WF_FORK")) => What::SelectTaskRqFair(WakeKind::Fork),
        ("select_task_rq_fair", _, Some("WF_EXEC")) => What::SelectTaskRqFair(WakeKind::Exec),
        (function, ..) => return Err(format!("call of {function:?}: not a known call")),
    };
    let task = |id: u32| TaskId(nr_cpu_ids + id);
    let Call { p, current, .. } =
        Call { p: task(raw.p), current: task(raw.current), this_cpu: Cpu(raw.this_cpu), prev, sync: raw.sync, what };
    Ok(Call { p, current, this_cpu: Cpu(raw.this_cpu), prev, sync: raw.sync, what })
}

fn start(raw: json::State, parts: &Parts, hz: u32) -> Result<Start, String> {
    let mut parts = parts.clone();
    if let Some(capacity) = &raw.cpu.cpu_capacity_orig {
        parts.capacity_orig.clone_from(capacity);
    }
    let topology = Arc::new(Topology::new(parts).map_err(|error| error.to_string())?);
    let mut features = SchedFeat::TTWU_QUEUE;
    for (name, on) in &raw.features {
        let feature = SchedFeat::from_name(name).ok_or_else(|| format!("feature {name:?} is not known"))?;
        features.set(feature, *on);
    }
    let hidden = hidden(&raw, &topology);
    let state = State {
        rq: run_queues(raw.cpu, &topology),
        tasks: tasks(&raw.tasks, &topology)?,
        jiffies: raw.jiffies,
        hz,
        ..State::new(topology)
    };
    Ok(Start { state, hidden, features, in_task: raw.in_task })
}

fn hidden(raw: &json::State, topology: &Topology) -> Hidden {
    let n = topology.nr_cpu_ids();
    let mut hidden = Hidden::new(topology);
    let known = Provenance::TRACED;
    hidden.shared = (0..topology.nr_shared())
        .map(|id| SharedHidden {
            has_idle_cores: raw.has_idle_cores.get(id).is_some_and(|&has| has != 0),
            nr_idle_scan: raw.nr_idle_scan.get(id).copied().unwrap_or(0),
            known,
        })
        .collect();
    let at = |column: &Option<Vec<u64>>, i: usize| column.as_ref().map_or(0, |column| column[i]);
    hidden.cpus = (0..n)
        .map(|i| CpuHidden {
            avg_scan_cost_ns: at(&raw.cpu.avg_scan_cost, i),
            wake_stamp_jiffies: at(&raw.cpu.wake_stamp, i),
            wake_avg_idle_ns: at(&raw.cpu.wake_avg_idle, i),
            known,
        })
        .collect();
    for task in &raw.tasks {
        hidden.tasks.push(TaskHidden {
            recent_used_cpu: Cpu(task.recent_used_cpu),
            wakee_flips: task.wakee_flips,
            wakee_flip_decay_jiffies: task.wakee_flip_decay_ts,
            last_wakee: u32::try_from(task.last_wakee).ok().map(|id| TaskId(n as u32 + id)),
            known,
        });
    }
    hidden.clock = Clock {
        now_ns: raw.clock,
        probe_ns: raw.probe_ns,
        clock_read_ns: raw.clock_read_ns,
        mask_op_ns: raw.mask_op_ns,
        by_distance: None,
    };
    hidden.sysctl_sched_preferred = raw.sysctl_sched_preferred.unwrap_or(hidden.sysctl_sched_preferred);
    hidden.sysctl_sched_allowed = raw.sysctl_sched_allowed.unwrap_or(hidden.sysctl_sched_allowed);
    hidden
}

fn run_queues(raw: json::Columns, topology: &Topology) -> RunQueues {
    let mut rq = RunQueues::new(topology);
    let set = |to: &mut Column<u32>, from: Option<Vec<u32>>| *to = from.map_or_else(|| to.clone(), Column::from);
    let set_long = |to: &mut Column<u64>, from: Option<Vec<u64>>| *to = from.map_or_else(|| to.clone(), Column::from);
    set(&mut rq.nr_running, raw.nr_running);
    set(&mut rq.h_nr_running, raw.h_nr_queued.or(raw.h_nr_running));
    set(&mut rq.h_nr_runnable, raw.h_nr_runnable.or_else(|| Some(rq.h_nr_running.to_vec())));
    set(&mut rq.idle_h_nr_running, raw.idle_h_nr_running);
    rq.curr_idle = raw.curr_idle.0;
    rq.ttwu_pending = raw.ttwu_pending.0;
    rq.vcpu_preempted = raw.vcpu_preempted.0;
    set_long(&mut rq.avg_idle_ns, raw.avg_idle);
    set_long(&mut rq.load_avg, raw.load_avg);
    set_long(&mut rq.runnable_load_avg, raw.runnable_load_avg);
    set_long(&mut rq.runnable_avg, raw.runnable_avg);
    set_long(&mut rq.util_avg, raw.util_avg);
    set_long(&mut rq.util_est_enqueued, raw.util_est_enqueued);
    set_long(&mut rq.cpu_capacity, raw.cpu_capacity);
    set_long(&mut rq.cpu_capacity_orig, raw.cpu_capacity_orig);
    set_long(&mut rq.idle_stamp_ns, raw.idle_stamp);
    if let Some(latencies) = raw.exit_latency {
        rq.exit_latency_us = latencies.into_iter().map(|latency| u32::try_from(latency).ok()).collect();
    }
    rq
}

fn tasks(raw: &[json::Task], topology: &Topology) -> Result<Tasks, String> {
    let mut tasks: Vec<Task> = topology.cpus().map(Task::swapper).collect();
    for (i, task) in raw.iter().enumerate() {
        let mut flags = TaskFlags::empty();
        for name in &task.flags {
            flags |= match name.as_str() {
                "PF_KTHREAD" => TaskFlags::KTHREAD,
                "PF_EXITING" => TaskFlags::EXITING,
                name => return Err(format!("task flag {name:?} is not known")),
            };
        }
        let comm = Comm::new(format!("task{i}").as_bytes());
        let base = Task::new(Pid(1000 + i as i32), comm, task.cpus_ptr.0, Cpu(task.task_cpu));
        tasks.push(Task {
            nr_cpus_allowed: task.nr_cpus_allowed,
            cpus_preferred: task.cpus_preferred.map_or_else(|| base.cpus_preferred.clone(), |mask| mask.0.into()),
            affinity_unequal: task.affinity_unequal,
            flags,
            on_rq: task.on_rq != 0,
            policy_idle: task.policy_idle,
            numa_preferred_nid: task.numa_preferred_nid,
            last_update_time_ns: task.last_update_time,
            load_avg: task.load_avg,
            h_load: task.load_avg,
            util_avg: task.util_avg,
            util_est_ewma: task.util_est,
            util_est_enqueued: task.util_est,
            runnable_avg: task.runnable_avg,
            ..base
        });
    }
    Ok(Tasks(tasks))
}
