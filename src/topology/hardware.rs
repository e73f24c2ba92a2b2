// SPDX-License-Identifier: GPL-2.0-or-later
//! The hardware facts from which the kernel builds sched domains.

use crate::cpumask::Cpumask;
use crate::units::Cpu;

/// Distance of a node to itself. **Source**: include/linux/topology.h, LOCAL_DISTANCE.
pub const LOCAL_DISTANCE: u32 = 10;
/// Distance to another node where no table tells one. **Source**: include/linux/topology.h, REMOTE_DISTANCE.
pub const REMOTE_DISTANCE: u32 = 20;
/// Nodes farther than this are not balanced on exec, fork and wakeup. **Source**: include/linux/topology.h,
/// RECLAIM_DISTANCE, the start value of node_reclaim_distance.
pub const RECLAIM_DISTANCE: u32 = 30;
/// The same on AMD's Zen. **Source**: arch/x86/kernel/cpu/amd.c, since v5.4.
pub const RECLAIM_DISTANCE_ZEN: u32 = 32;
/// Capacity of the biggest CPU. **Source**: include/linux/sched.h, SCHED_CAPACITY_SCALE.
pub const SCHED_CAPACITY_SCALE: u64 = 1024;

/// How an architecture makes the masks of its topology levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arch {
    /// x86: LLC siblings of one node; no package level where a package holds several nodes.
    #[default]
    X86,
    /// drivers/base/arch_topology.c (arm64, riscv): the smallest of node, package, LLC and cluster.
    Generic,
}

/// What the kernel knows of the hardware; masks and columns are indexed by CPU and have `nr_cpu_ids` entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    /// CPUs `0..nr_cpu_ids` are possible.
    pub nr_cpu_ids: usize,
    /// CPUs that are online.
    pub online: Cpumask,
    /// CPUs taken out of balancing at boot (isolcpus).
    pub isolated: Cpumask,
    /// Per CPU its hardware threads, itself included.
    pub smt: Vec<Cpumask>,
    /// Per CPU its cluster (on x86: the CPUs of one L2).
    pub cluster: Vec<Cpumask>,
    /// Per CPU the CPUs that share its last-level cache.
    pub llc: Vec<Cpumask>,
    /// Per CPU its die.
    pub die: Vec<Cpumask>,
    /// Per CPU its package (socket).
    pub package: Vec<Cpumask>,
    /// Per CPU its node.
    pub node: Vec<u32>,
    /// `distance[a][b]` from node a to node b; nodes beyond the table are local or remote.
    pub distance: Vec<Vec<u32>>,
    /// Per CPU its capacity, 1024 for the biggest.
    pub capacity: Vec<u64>,
    /// How the masks are combined.
    pub arch: Arch,
    /// Distance beyond which a node is far (`node_reclaim_distance`).
    pub reclaim_distance: u32,
}

impl Hardware {
    /// `nr` CPUs, all online, each a package of its own on node 0 and of full capacity.
    pub fn separate(nr: usize) -> Self {
        let own: Vec<Cpumask> = (0..nr).filter_map(Cpu::new).map(Cpumask::of).collect();
        Self {
            nr_cpu_ids: nr,
            online: Cpumask::first_n(nr),
            isolated: Cpumask::EMPTY,
            smt: own.clone(),
            cluster: own.clone(),
            llc: own.clone(),
            die: own.clone(),
            package: own,
            node: vec![0; nr],
            distance: Vec::new(),
            capacity: vec![SCHED_CAPACITY_SCALE; nr],
            arch: Arch::X86,
            reclaim_distance: RECLAIM_DISTANCE,
        }
    }

    /// All possible CPUs in ascending order.
    pub fn cpus(&self) -> impl DoubleEndedIterator<Item = Cpu> + use<> {
        (0..self.nr_cpu_ids).map(|cpu| Cpu(cpu as u16))
    }

    /// `node_distance(from, to)`.
    pub fn node_distance(&self, from: u32, to: u32) -> u32 {
        let told = self.distance.get(from as usize).and_then(|row| row.get(to as usize)).copied();
        told.unwrap_or(if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE })
    }

    /// The online CPUs of `node` (`cpumask_of_node()`).
    pub fn cpus_of_node(&self, node: u32) -> Cpumask {
        self.cpus().filter(|&cpu| self.online.test(cpu) && self.node[cpu.index()] == node).collect()
    }

    /// Nodes with an online CPU, ascending (`N_CPU`).
    pub fn nodes_with_cpus(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.online.iter().filter_map(|cpu| self.node.get(cpu.index()).copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Nodes that the distance table or a CPU names, ascending: nodes without CPUs too.
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes = self.nodes_with_cpus();
        let listed = self.distance.iter().enumerate().filter(|(_, row)| !row.is_empty());
        nodes.extend(listed.map(|(node, _)| node as u32));
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether some core has two threads online (`sched_smt_present`).
    pub fn smt_present(&self) -> bool {
        self.online.iter().any(|cpu| (self.smt[cpu.index()] & self.online).weight() > 1)
    }
}
