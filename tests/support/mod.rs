// SPDX-License-Identifier: GPL-2.0-or-later
//! Random machines, small and deterministic: a seed means the same state for ever.

// Each test uses a part of it.
#![allow(dead_code)]

use std::sync::Arc;

use oorandom::Rand64;
use sisdiff::cpumask::Cpumask;
use sisdiff::fair::{Clock, CpuHidden, Hidden, SharedHidden, TaskHidden};
use sisdiff::machine::{Provenance, State, Task, TaskFlags, TaskId};
use sisdiff::topology::{Domain, Parts, SdFlags, Topology};
use sisdiff::units::{Comm, Cpu, Pid};
use sisdiff::wakeup::{WakeKind, Wakeup};

/// A machine at a moment, and the wakeups asked of it one after another.
pub struct Scene {
    pub state: State,
    pub hidden: Hidden,
    pub wakeups: Vec<Wakeup>,
}

/// Makes scenes.
pub struct Scenes {
    rand: Rand64,
    topologies: Vec<Arc<Topology>>,
}

impl Scenes {
    pub fn new(seed: u128) -> Self {
        let shape = |nodes, llcs, cores, threads, asym, isolated| {
            Arc::new(machine(Shape { nodes, llcs, cores, threads, asym, isolated, clusters: false }))
        };
        let topologies = vec![
            shape(1, 1, 4, 1, false, false),
            shape(1, 1, 4, 2, false, false),
            shape(1, 2, 4, 2, false, false),
            shape(2, 1, 4, 2, false, false),
            shape(2, 2, 2, 2, false, true),
            shape(1, 1, 4, 4, false, true),
            shape(1, 1, 8, 1, true, false),
            shape(1, 2, 3, 2, true, false),
            clustered(),
        ];
        Self { rand: Rand64::new(seed), topologies }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.rand.rand_range(0..end)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn mask(&mut self, all: &Cpumask) -> Cpumask {
        let keep = self.of(&[2, 3, 4]);
        let some: Cpumask = all.iter().filter(|_| self.one_in(keep)).collect();
        if some.is_empty() { *all } else { some }
    }

    /// Random bits.
    pub fn bits(&mut self) -> u32 {
        self.rand.rand_u64() as u32
    }

    /// The next scene.
    pub fn scene(&mut self) -> Scene {
        let shape = self.below(self.topologies.len() as u64) as usize;
        let topology = self.topologies[shape].clone();
        let n = topology.nr_cpu_ids() as u64;
        let all = *topology.online();
        let mut state = State::new(topology.clone());
        let mut hidden = Hidden::new(&topology);
        state.jiffies = 1_000_000 + self.below(1000);
        let busy = self.of(&[1, 2, 4, 8, 16]);
        for cpu in topology.cpus() {
            let i = cpu.index();
            let nr = if self.one_in(busy) { 0 } else { 1 + self.below(2) as u32 };
            state.rq.nr_running[i] = nr;
            state.rq.idle_h_nr_running[i] = if self.one_in(4) { nr } else { 0 };
            state.rq.h_nr_running[i] = nr;
            state.rq.h_nr_runnable[i] = nr.saturating_sub(u32::from(self.one_in(3)));
            state.rq.curr_idle.assign(cpu, nr == 0 || self.one_in(20));
            state.rq.ttwu_pending.assign(cpu, self.one_in(20));
            state.rq.vcpu_preempted.assign(cpu, self.one_in(30));
            state.rq.avg_idle_ns[i] = self.of(&[0, 500, 5_000, 50_000, 500_000, 1_000_000]);
            state.rq.load_avg[i] = self.below(3) * self.below(1024);
            state.rq.runnable_load_avg[i] = if self.one_in(2) { state.rq.load_avg[i] } else { self.below(1024) };
            state.rq.runnable_avg[i] = self.below(2048);
            state.rq.util_avg[i] = self.below(1100);
            state.rq.util_est_enqueued[i] = self.below(1100);
            state.rq.cpu_capacity[i] = state.rq.cpu_capacity_orig[i] - self.below(100);
            state.rq.idle_stamp_ns[i] = self.below(4);
            state.rq.exit_latency_us[i] = self.of(&[None, Some(1), Some(50)]);
            hidden.cpus[i] = CpuHidden {
                avg_scan_cost_ns: self.of(&[0, 10, 100, 1000, 10_000]),
                wake_stamp_jiffies: state.jiffies - self.below(4),
                wake_avg_idle_ns: self.of(&[0, 500, 5_000, 500_000]),
                known: Provenance::TRACED,
            };
        }
        for shared in &mut hidden.shared {
            *shared = SharedHidden {
                has_idle_cores: self.one_in(2),
                nr_idle_scan: self.below(n + 1) as u32,
                known: Provenance::TRACED,
            };
        }
        let (probe_ns, clock_read_ns) = (self.of(&[20, 50]), self.of(&[0, 25]));
        hidden.clock = Clock { now_ns: 1_000_000_000, probe_ns, clock_read_ns, mask_op_ns: 0, by_distance: None };
        for id in 0..3 {
            let task = self.task(id, &all, n);
            state.tasks.0.push(task);
            hidden.tasks.push(TaskHidden {
                recent_used_cpu: Cpu(self.below(n) as u16),
                wakee_flips: self.of(&[0, 1, 5, 30, 1000]),
                wakee_flip_decay_jiffies: state.jiffies - self.of(&[0, 249, 250, 251]),
                last_wakee: None,
                known: Provenance::TRACED,
            });
        }
        let wakeups = (0..3).map(|_| self.wakeup(&state, n)).collect();
        Scene { state, hidden, wakeups }
    }

    fn task(&mut self, id: i32, all: &Cpumask, n: u64) -> Task {
        let cpus_ptr = if self.one_in(2) { *all } else { self.mask(all) };
        let mut task = Task::new(Pid(100 + id), Comm::new(b"task"), cpus_ptr, Cpu(self.below(n) as u16));
        if self.one_in(6) {
            task.flags = TaskFlags::KTHREAD;
            task.nr_cpus_allowed = 1;
        }
        if self.one_in(10) {
            task.flags |= TaskFlags::EXITING;
        }
        task.cpus_preferred = if self.one_in(2) { cpus_ptr.into() } else { self.mask(all).into() };
        task.affinity_unequal = self.one_in(2);
        task.policy_idle = self.one_in(6);
        task.numa_preferred_nid = self.of(&[-1, 0, 1]);
        task.load_avg = self.below(1024);
        task.h_load = task.load_avg;
        task.util_avg = self.below(1024);
        task.util_est_ewma = self.below(1024);
        task.util_est_enqueued = if self.one_in(2) { task.util_est_ewma } else { self.below(1024) };
        if self.one_in(4) {
            task.uclamp_min = self.below(1025);
            task.uclamp_max = self.below(1025);
        }
        task.on_rq = self.one_in(8);
        task.runnable_avg = self.below(1024);
        task
    }

    fn wakeup(&mut self, state: &State, n: u64) -> Wakeup {
        let first = n as u32;
        let p = TaskId(first + self.below(3) as u32);
        let current = TaskId(first + self.below(3) as u32);
        let allowed = *state.tasks[p].cpus_ptr;
        // A wakee can have a prev outside its mask: affinity changed while it slept.
        let prev =
            if self.one_in(8) { self.below(n) as usize } else { self.below(u64::from(allowed.weight())) as usize };
        let prev_cpu =
            if self.one_in(8) { Cpu(self.below(n) as u16) } else { allowed.iter().nth(prev).unwrap_or(Cpu(0)) };
        let kind = if self.one_in(8) { self.of(&[WakeKind::Fork, WakeKind::Exec]) } else { WakeKind::Ttwu };
        Wakeup {
            p,
            current,
            this_cpu: Cpu(self.below(n) as u16),
            prev_cpu,
            kind,
            sync: self.one_in(3),
            in_task: !self.one_in(3),
            known: Provenance::TRACED,
        }
    }
}

/// Two LLCs of eight cores in clusters of four.
pub fn clustered() -> Arc<Topology> {
    let shape = Shape { nodes: 1, llcs: 2, cores: 8, threads: 1, asym: false, isolated: false, clusters: true };
    Arc::new(machine(shape))
}

struct Shape {
    nodes: usize,
    llcs: usize,
    cores: usize,
    threads: usize,
    asym: bool,
    /// The last CPU is in no domain.
    isolated: bool,
    /// Four cores share a cluster.
    clusters: bool,
}

/// Nodes of LLCs of cores of threads; CPU numbers go through the first threads of all cores, then the second.
fn machine(shape: Shape) -> Topology {
    let nr_cores = shape.nodes * shape.llcs * shape.cores;
    let n = nr_cores * shape.threads;
    let core_of = |cpu: usize| cpu % nr_cores;
    let cpus =
        |of: &dyn Fn(usize) -> bool| -> Cpumask { (0..n).filter(|&cpu| of(cpu)).map(|cpu| Cpu(cpu as u16)).collect() };
    let isolated = if shape.isolated { Cpumask::of(Cpu(n as u16 - 1)) } else { Cpumask::EMPTY };
    let balance = SdFlags::BALANCE_NEWIDLE | SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE;
    let asym_flag = |level| {
        if shape.asym && level == 2 + u32::from(shape.llcs > 1) {
            SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL
        } else {
            SdFlags::empty()
        }
    };
    let mut domains = Vec::new();
    let mut level = |level: u32, name: &str, per: usize, flags: SdFlags, imbalance_pct| {
        for group in 0..nr_cores / per {
            let span = cpus(&|cpu| core_of(cpu) / per == group).and_not(&isolated);
            if span.weight() > 1 {
                let flags = balance | flags | asym_flag(level);
                domains.push(Domain { level, name: name.into(), span, flags, imbalance_pct, imb_numa_nr: 2 });
            }
        }
    };
    if shape.threads > 1 {
        level(0, "SMT", 1, SdFlags::SHARE_CPUCAPACITY | SdFlags::SHARE_LLC, 110);
    }
    if shape.clusters {
        level(1, "CLS", 4, SdFlags::CLUSTER | SdFlags::SHARE_LLC, 117);
    }
    level(2, "MC", shape.cores, SdFlags::SHARE_LLC, 117);
    if shape.llcs > 1 {
        level(3, "DIE", shape.cores * shape.llcs, SdFlags::empty(), 117);
    }
    if shape.nodes > 1 {
        level(4, "NUMA", nr_cores, SdFlags::NUMA, 117);
    }
    let per_node = nr_cores / shape.nodes;
    let parts = Parts {
        nr_cpu_ids: n,
        online: Cpumask::first_n(n),
        smt: (0..n).map(|cpu| cpus(&|other| core_of(other) == core_of(cpu))).collect(),
        node: (0..n).map(|cpu| (core_of(cpu) / per_node) as u32).collect(),
        capacity_orig: (0..n).map(|cpu| if shape.asym && core_of(cpu) % 2 == 0 { 512 } else { 1024 }).collect(),
        smt_present: shape.threads > 1,
        asym_cpucapacity: shape.asym,
        domains,
        ..Parts::default()
    };
    Topology::new(parts).expect("a shape is a topology")
}
