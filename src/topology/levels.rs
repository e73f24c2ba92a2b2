// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of topology levels, bottom up, before any domain is built.

use super::SdFlags;
use super::hardware::{Arch, Hardware};
use super::release::{NumaDistances, Release};
use crate::cpumask::Cpumask;
use crate::units::Cpu;

/// One topology level (`struct sched_domain_topology_level`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Level {
    /// As in debugfs.
    pub name: &'static str,
    /// What the level itself says of its domains (`tl->sd_flags()`).
    pub flags: SdFlags,
    /// Per CPU its mask (`tl->mask(cpu)`).
    pub masks: Vec<Cpumask>,
    /// Distance up to which nodes belong to a NUMA level's masks.
    pub distance: Option<u32>,
}

/// The levels of `hw` in the order and with the masks of `release`.
///
/// **Source**: kernel/sched/topology.c, default_topology and sched_init_numa(), v5.11 and v6.1;
/// arch/x86/kernel/smpboot.c, x86_topology; drivers/base/arch_topology.c, cpu_coregroup_mask(). The configuration is
/// taken to have SCHED_SMT, SCHED_CLUSTER, SCHED_MC and NUMA set, as distributions' kernels have.
pub(super) fn levels(hw: &Hardware, release: Release) -> Vec<Level> {
    let shares_llc = SdFlags::SHARE_LLC;
    let level = |name, flags, masks| Level { name, flags, masks, distance: None };
    let core_group = core_group(hw, release);
    let mut levels = vec![level(
        "SMT",
        shares_llc | SdFlags::SHARE_CPUCAPACITY,
        hw.smt.iter().map(|smt| *smt & hw.online).collect(),
    )];
    if release.has_cluster_level() {
        let cluster = if release.has_cluster_flag() { SdFlags::CLUSTER } else { SdFlags::empty() };
        levels.push(level("CLS", shares_llc | cluster, cluster_group(hw, &core_group)));
    }
    levels.push(level("MC", shares_llc, core_group));
    if !numa_in_package(hw) {
        let nodes = node_masks(hw);
        levels.push(level(release.package_name(), SdFlags::empty(), nodes));
    }
    levels.extend(numa_levels(hw, release));
    levels
}

/// `cpu_coregroup_mask()` of each CPU.
fn core_group(hw: &Hardware, release: Release) -> Vec<Cpumask> {
    let nodes = node_masks(hw);
    let of = |cpu: usize| {
        let node = nodes[cpu];
        let llc = hw.llc[cpu] & hw.online;
        match hw.arch {
            // A cache that spans nodes is cut at the node's border (topology_sane() of match_llc()).
            Arch::X86 => llc & node,
            Arch::Generic => {
                let mut mask = node;
                let package = hw.package[cpu] & hw.online;
                if package.is_subset(&mask) {
                    mask = package;
                }
                if llc.is_subset(&mask) {
                    mask = llc;
                }
                let cluster = hw.cluster[cpu] & hw.online;
                if release.has_cluster_level() && mask.is_subset(&cluster) { cluster } else { mask }
            }
        }
    };
    (0..hw.nr_cpu_ids).map(of).collect()
}

/// `cpu_clustergroup_mask()` of each CPU.
fn cluster_group(hw: &Hardware, core_group: &[Cpumask]) -> Vec<Cpumask> {
    let of = |cpu: usize| match hw.arch {
        Arch::Generic if core_group[cpu].is_subset(&hw.cluster[cpu]) => hw.smt[cpu] & hw.online,
        _ => hw.cluster[cpu] & hw.online,
    };
    (0..hw.nr_cpu_ids).map(of).collect()
}

/// Per CPU the online CPUs of its node (`cpu_cpu_mask()`).
fn node_masks(hw: &Hardware) -> Vec<Cpumask> {
    let nodes = hw.nodes_with_cpus();
    let masks: Vec<Cpumask> = nodes.iter().map(|&node| hw.cpus_of_node(node)).collect();
    hw.node.iter().map(|node| nodes.binary_search(node).map_or(Cpumask::EMPTY, |i| masks[i])).collect()
}

/// Whether a package holds CPUs of several nodes; x86 then has no package level (`x86_has_numa_in_package`).
fn numa_in_package(hw: &Hardware) -> bool {
    let mixed = |cpu: Cpu| {
        let node = hw.node[cpu.index()];
        (hw.package[cpu.index()] & hw.online).iter().any(|other| hw.node.get(other.index()) != Some(&node))
    };
    hw.arch == Arch::X86 && hw.online.iter().any(mixed)
}

/// The levels that sched_init_numa() appends: NODE, then one per distance above the local one.
fn numa_levels(hw: &Hardware, release: Release) -> Vec<Level> {
    let with_cpus = hw.nodes_with_cpus();
    let nodes = if release.numa_distances() == NumaDistances::NodesWithCpus { with_cpus.clone() } else { hw.nodes() };
    let from =
        if release.numa_distances() == NumaDistances::FromNodeZero { &nodes[..nodes.len().min(1)] } else { &nodes };
    let mut distances: Vec<u32> =
        from.iter().flat_map(|&a| nodes.iter().map(move |&b| hw.node_distance(a, b))).collect();
    distances.sort_unstable();
    distances.dedup();
    let near = near_masks(hw, &with_cpus, &distances);
    let level = |at: usize, name, flags, distance| {
        let of = |node: &u32| with_cpus.binary_search(node).map_or(Cpumask::EMPTY, |i| near[i][at]);
        Level { name, flags, masks: hw.node.iter().map(of).collect(), distance }
    };
    let mut levels = Vec::new();
    for (at, &distance) in distances.iter().enumerate() {
        levels.push(match at {
            0 => level(at, "NODE", SdFlags::empty(), None),
            _ => level(at, "NUMA", SdFlags::NUMA, Some(distance)),
        });
    }
    levels
}

/// Per node with CPUs and per distance the CPUs of all nodes up to that distance (`sched_domains_numa_masks`).
fn near_masks(hw: &Hardware, with_cpus: &[u32], distances: &[u32]) -> Vec<Vec<Cpumask>> {
    let cpus: Vec<Cpumask> = with_cpus.iter().map(|&node| hw.cpus_of_node(node)).collect();
    let of = |&node: &u32| {
        let mut others: Vec<(u32, Cpumask)> =
            with_cpus.iter().zip(&cpus).map(|(&other, &mask)| (hw.node_distance(node, other), mask)).collect();
        others.sort_unstable();
        let (mut others, mut mask) = (others.into_iter().peekable(), Cpumask::EMPTY);
        let up_to = |&limit: &u32| {
            while let Some((_, more)) = others.next_if(|&(distance, _)| distance <= limit) {
                mask = mask | more;
            }
            mask
        };
        distances.iter().map(up_to).collect()
    };
    with_cpus.iter().map(of).collect()
}
