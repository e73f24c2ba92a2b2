// SPDX-License-Identifier: GPL-2.0-or-later
//! NUMA domains of a machine whose nodes have distances of their own: a level for each distance, and in it for each node
//! the CPUs up to that far. What two nodes see may overlap, so that a domain belongs to the CPUs it was built for.
//!
//! **Source**: kernel/sched/topology.c, sched_init_numa(), sd_init(), build_sched_domains(), v6.1. **Departs**: the
//! distances that make levels are those between nodes with online CPUs, as since 5.18, for older releases too.

use crate::cpumask::Cpumask;
use crate::scenario::Shape;
use crate::scenario::domains::{Asymmetric, NUMA_FLAGS, far};
use crate::topology::hardware::RECLAIM_DISTANCE;
use crate::topology::{Domain, SdFlags};
use crate::units::Cpu;

/// What lies below the NUMA levels of one CPU.
pub(super) struct Below {
    /// Its domains, bottom up.
    pub chain: Vec<Domain>,
    /// `imb_numa_nr` of its package level.
    pub imb: u32,
}

/// The levels, as distances with the mask of each node at each.
pub(super) struct NumaLevels {
    distances: Vec<u32>,
    /// By node, then by distance.
    masks: Vec<Vec<Cpumask>>,
}

impl NumaLevels {
    pub fn new(shape: &Shape) -> Self {
        let online = shape.online();
        let nodes: Vec<(u32, Cpumask)> = shape.nodes().into_iter().map(|node| (node, of_node(shape, node))).collect();
        let with_cpus = || nodes.iter().filter(|(_, cpus)| cpus.intersects(&online)).map(|(node, _)| *node);
        let table = &shape.distances;
        let mut distances: Vec<u32> =
            with_cpus().flat_map(|a| with_cpus().filter(move |&b| a != b).map(move |b| table.between(a, b))).collect();
        distances.sort_unstable();
        distances.dedup();
        let mut masks = vec![Vec::new(); nodes.last().map_or(0, |(node, _)| *node as usize + 1)];
        for &(a, own) in &nodes {
            let near = |limit: &u32| {
                let near = nodes.iter().filter(|(b, _)| a == *b || table.between(a, *b) <= *limit);
                near.fold(own, |all, (_, cpus)| all | *cpus)
            };
            masks[a as usize] = distances.iter().map(near).collect();
        }
        Self { distances, masks }
    }

    /// The whole chain of a CPU of `node`; `first` is the number of the first of these levels.
    pub fn chain(
        &self,
        shape: &Shape,
        asym: &Asymmetric,
        active: &Cpumask,
        (node, below, first): (u32, Below, usize),
    ) -> Vec<Domain> {
        let Below { mut chain, imb } = below;
        let spans: Vec<Cpumask> = self.masks[node as usize].iter().map(|mask| *mask & *active).collect();
        let imb_span = spans.first().map_or(1, Cpumask::weight).max(1);
        for (at, (&distance, &span)) in self.distances.iter().zip(&spans).enumerate() {
            if span.weight() <= 1 || chain.last().is_some_and(|below| below.span == span) {
                continue;
            }
            let mut flags = NUMA_FLAGS;
            if shape.balance_wake {
                flags |= SdFlags::BALANCE_WAKE;
            }
            let flags = if distance > RECLAIM_DISTANCE { far(flags) } else { flags };
            chain.push(Domain {
                level: (first + at) as u32,
                name: "NUMA".to_owned(),
                span,
                flags: flags | asym.flags(shape, &span),
                imbalance_pct: 117,
                imb_numa_nr: imb * (span.weight() / imb_span).max(1),
            });
            if span == *active {
                break;
            }
        }
        chain
    }
}

fn of_node(shape: &Shape, node: u32) -> Cpumask {
    shape.llcs.iter().filter(|llc| llc.node == node).fold(Cpumask::EMPTY, |all, llc| all | llc.cpus())
}

/// The node of `cpu`.
pub(super) fn node_of(shape: &Shape, cpu: Cpu) -> u32 {
    shape.llcs.iter().find(|llc| llc.cpus().test(cpu)).map_or(0, |llc| llc.node)
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Distances, Links, Shape};
    use crate::topology::{Hardware, Release, SdFlags, Topology, build};
    use crate::units::Cpu;

    fn nodes(links: Links, nodes: u32, step: u32) -> Shape {
        let llcs = (0..nodes).map(|n| format!("node{n}: {} {}", 2 * n, 2 * n + 1).parse().expect("a line")).collect();
        Shape { llcs, distances: Distances::linked(links, nodes, step), ..Shape::default() }
    }

    fn spans(topology: &Topology, cpu: u16) -> Vec<String> {
        topology.hierarchy(Cpu(cpu)).iter().map(|&id| topology.domain(id).span.to_string()).collect()
    }

    #[test]
    fn a_ring_has_domains_that_overlap() {
        let topology = nodes(Links::Ring, 4, 6).topology().expect("a topology");
        assert_eq!(spans(&topology, 0), ["0-1", "0-3,6-7", "0-7"]);
        assert_eq!(spans(&topology, 5), ["4-5", "2-7", "0-7"]);
        let line = nodes(Links::Line, 4, 15).topology().expect("a topology");
        assert_eq!(spans(&line, 0), ["0-1", "0-3", "0-5", "0-7"]);
        assert_eq!(spans(&line, 3), ["2-3", "0-5", "0-7"]);
        let affine = |cpu: u16| {
            let chain = line.hierarchy(Cpu(cpu)).iter();
            chain.map(|&id| line.domain(id).flags.contains(SdFlags::WAKE_AFFINE)).collect::<Vec<_>>()
        };
        assert_eq!(affine(0), [true, true, false, false], "distances 10, 25, 40, 55");
        assert_eq!(affine(3), [true, true, false], "distances 10, 25, 40");
    }

    #[test]
    fn an_offline_node_takes_its_level_along() {
        let mut shape = nodes(Links::Line, 3, 6);
        shape.offline = "4-5".parse().expect("a list");
        assert_eq!(spans(&shape.topology().expect("a topology"), 0), ["0-1", "0-3"]);
        shape.offline = "2-3".parse().expect("a list");
        assert_eq!(spans(&shape.topology().expect("a topology"), 0), ["0-1", "0-1,4-5"]);
    }

    /// The other builder, which is held against the kernel's own, makes the same domains.
    #[test]
    fn the_builder_of_recorded_machines_agrees() {
        for links in [Links::Ring, Links::Line, Links::Mesh, Links::Cube] {
            for (count, step) in [(3, 6), (4, 10), (6, 6), (8, 15)] {
                let shape = nodes(links, count, step);
                let mut hw = Hardware::separate(2 * count as usize);
                let pair = |cpu: usize| [Cpu(cpu as u16 & !1), Cpu(cpu as u16 | 1)].into_iter().collect();
                hw.llc = (0..2 * count as usize).map(pair).collect();
                hw.package.clone_from(&hw.llc);
                hw.node = (0..2 * count).map(|cpu| cpu / 2).collect();
                let row = |a| (0..count).map(|b| shape.distances.between(a, b)).collect();
                hw.distance = (0..count).map(row).collect();
                let theirs = Topology::new(build(&hw, Release::new(6, 1)).expect("domains")).expect("a topology");
                let ours = shape.topology().expect("a topology");
                let told = |topology: &Topology| -> Vec<Vec<_>> {
                    let domain = |&id| {
                        let sd = topology.domain(id);
                        (sd.span, sd.flags - SdFlags::OVERLAP, sd.imbalance_pct, sd.imb_numa_nr)
                    };
                    topology.cpus().map(|cpu| topology.hierarchy(cpu).iter().map(domain).collect()).collect()
                };
                assert_eq!(told(&ours), told(&theirs), "{links:?} of {count} nodes, step {step}");
            }
        }
    }
}
