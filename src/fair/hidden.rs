// SPDX-License-Identifier: GPL-2.0-or-later
//! State that the wakeup path keeps for itself. Each implementation has its own, or the difference under test would be
//! erased.

use crate::column::Column;
use crate::machine::{Inputs, Provenance, TaskId};
use crate::topology::{Distance, Topology};
use crate::units::Cpu;

/// A task's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskHidden {
    /// `recent_used_cpu`; the kernel starts it at the CPU the task was forked on.
    pub recent_used_cpu: Cpu,
    /// `wakee_flips`.
    pub wakee_flips: u32,
    /// `wakee_flip_decay_ts`, jiffies.
    pub wakee_flip_decay_jiffies: u64,
    /// `last_wakee`.
    pub last_wakee: Option<TaskId>,
    /// How well these are known: [`Inputs::RECENT_USED_CPU`], [`Inputs::WAKEE_FLIPS`].
    pub known: Provenance,
}

/// The part of an LLC (or, in 7.3, of an asymmetric domain): `sched_domain_shared`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SharedHidden {
    /// `has_idle_cores`: a hint, often stale. Never recompute it from the state.
    pub has_idle_cores: bool,
    /// `nr_idle_scan`: CPUs a scan may look at; 0: no scan.
    pub nr_idle_scan: u32,
    /// How well these are known.
    pub known: Provenance,
}

/// A CPU's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CpuHidden {
    /// `sd_llc->avg_scan_cost` of the CPU's own copy, ns.
    pub avg_scan_cost_ns: u64,
    /// `rq->wake_stamp`, jiffies (6.1).
    pub wake_stamp_jiffies: u64,
    /// `rq->wake_avg_idle`, ns (6.1).
    pub wake_avg_idle_ns: u64,
    /// How well these are known.
    pub known: Provenance,
}

/// The declared clock: old kernels measured their own scans, which no trace can tell.
///
/// It advances by `probe_ns` before each idle check, by `clock_read_ns` before each clock read, by `mask_op_ns` at each
/// cpumask_and() or cpumask_andnot(), and by nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clock {
    /// The counter, ns.
    pub now_ns: u64,
    /// Cost of an idle check, ns.
    pub probe_ns: u64,
    /// Cost of reading the clock, ns.
    pub clock_read_ns: u64,
    /// Cost of a mask operation, ns.
    pub mask_op_ns: u64,
    /// Cost of an idle check by how far away the CPU is, in place of `probe_ns`; `None`: the same everywhere. Only a
    /// simulation declares it.
    pub by_distance: Option<ProbeCosts>,
}

/// What an idle check costs by the distance from the CPU that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProbeCosts {
    /// Of the CPU itself or a sibling of its core, ns.
    pub core_ns: u64,
    /// Of another core with the same last-level cache, ns.
    pub llc_ns: u64,
    /// Of another last-level cache in the same node, ns.
    pub node_ns: u64,
    /// Of another node, ns.
    pub remote_ns: u64,
}

impl ProbeCosts {
    /// The cost at `distance`, ns.
    #[inline]
    pub fn of(&self, distance: Distance) -> u64 {
        match distance {
            Distance::Same | Distance::Core => self.core_ns,
            Distance::Llc => self.llc_ns,
            Distance::Node => self.node_ns,
            Distance::Remote => self.remote_ns,
        }
    }
}

impl Default for Clock {
    /// 50 ns an idle check (our guess: one or two cache lines of another CPU), all else free.
    fn default() -> Self {
        Self { now_ns: 0, probe_ns: 50, clock_read_ns: 0, mask_op_ns: 0, by_distance: None }
    }
}

/// Hidden state of one implementation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hidden {
    /// By [`TaskId`]; grows as tasks appear.
    pub tasks: Vec<TaskHidden>,
    /// By [`crate::topology::SharedId`].
    pub shared: Vec<SharedHidden>,
    /// By CPU.
    pub cpus: Column<CpuHidden>,
    /// The declared clock.
    pub clock: Clock,
    /// `sysctl_sched_preferred` of the soft-affinity RFC, default 1.
    pub sysctl_sched_preferred: u32,
    /// `sysctl_sched_allowed` of the soft-affinity RFC, default 100.
    pub sysctl_sched_allowed: u32,
}

impl Hidden {
    /// Nothing known yet: values as after boot, marked unknown.
    pub fn new(topology: &Topology) -> Self {
        let mut hidden = Self {
            tasks: Vec::new(),
            shared: Vec::new(),
            cpus: Column::default(),
            clock: Clock::default(),
            sysctl_sched_preferred: 1,
            sysctl_sched_allowed: 100,
        };
        hidden.forget(topology);
        hidden
    }

    /// Everything unknown again, on a machine that may be another one.
    pub fn forget(&mut self, topology: &Topology) {
        let unknown = Provenance { unknown: Inputs::all(), ..Provenance::default() };
        self.tasks.clear();
        self.tasks.extend(topology.cpus().map(|cpu| TaskHidden::new(cpu, unknown)));
        self.shared.clear();
        self.shared.resize(topology.nr_shared(), SharedHidden { known: unknown, ..SharedHidden::default() });
        let at_boot = CpuHidden { known: unknown, ..CpuHidden::AT_BOOT };
        self.cpus.refill(std::iter::repeat_n(at_boot, topology.nr_cpu_ids()));
        self.clock = Clock::default();
        (self.sysctl_sched_preferred, self.sysctl_sched_allowed) = (1, 100);
    }

    /// Takes what `other` keeps of tasks, LLCs and CPUs; the declared constants stay.
    pub fn learn_as(&mut self, other: &Self) {
        self.tasks.clone_from(&other.tasks);
        self.shared.clone_from(&other.shared);
        self.cpus.clone_from(&other.cpus);
    }

    /// The entry of task `id`, made (unknown, on `cpu`) if there is none.
    #[inline]
    pub fn task_mut(&mut self, id: TaskId, cpu: Cpu) -> &mut TaskHidden {
        if self.tasks.len() <= id.index() {
            let unknown = Provenance { unknown: Inputs::all(), ..Provenance::default() };
            self.tasks.resize(id.index() + 1, TaskHidden::new(cpu, unknown));
        }
        &mut self.tasks[id.index()]
    }
}

impl CpuHidden {
    /// As it is at boot: rq->wake_avg_idle is set to sysctl_sched_migration_cost (6.1, sched_init()).
    const AT_BOOT: Self =
        Self { avg_scan_cost_ns: 0, wake_stamp_jiffies: 0, wake_avg_idle_ns: 500_000, known: Provenance::TRACED };
}

impl TaskHidden {
    /// A task that was just made on `cpu`.
    pub fn new(cpu: Cpu, known: Provenance) -> Self {
        Self { recent_used_cpu: cpu, wakee_flips: 0, wakee_flip_decay_jiffies: 0, last_wakee: None, known }
    }
}
