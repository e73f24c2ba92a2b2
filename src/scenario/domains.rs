// SPDX-License-Identifier: GPL-2.0-or-later
//! From a case's shape to sched domains, as `build_sched_domains()` would lay them.
//!
//! ```text
//! NUMA   all nodes, above it nothing; where distances are told, overlap.rs has what is above PKG
//! NUMA   near nodes, where the shape has them
//! PKG    a node
//! MC     an LLC
//! CLS    a cluster
//! SMT    a core
//! ```
//!
//! **Source**: kernel/sched/topology.c, sd_init(), build_sched_domains(), cpu_attach_domain(), v6.1. **Departs**: the
//! flags of asymmetric capacity are set as 6.1 does, for older releases too.

use crate::cpumask::Cpumask;
use crate::scenario::CaseError;
use crate::scenario::overlap::{Below, NumaLevels, node_of};
use crate::scenario::shape::{FULL_CAPACITY, Shape};
use crate::topology::build::set_chains;
use crate::topology::{Domain, Parts, SdFlags, Topology};
use crate::units::Cpu;

/// What every domain does.
const BASE_FLAGS: SdFlags = SdFlags::BALANCE_NEWIDLE
    .union(SdFlags::BALANCE_EXEC)
    .union(SdFlags::BALANCE_FORK)
    .union(SdFlags::WAKE_AFFINE)
    .union(SdFlags::PREFER_SIBLING);

/// What a NUMA domain does.
pub(super) const NUMA_FLAGS: SdFlags =
    BASE_FLAGS.difference(SdFlags::PREFER_SIBLING).union(SdFlags::NUMA).union(SdFlags::SERIALIZE);

/// What is left of that beyond RECLAIM_DISTANCE.
pub(super) fn far(numa: SdFlags) -> SdFlags {
    numa - (SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE | SdFlags::BALANCE_WAKE)
}

/// One level of the table, with the spans it has on this machine.
struct Level {
    name: &'static str,
    flags: SdFlags,
    spans: Vec<Cpumask>,
}

impl Shape {
    /// The topology that an implementation sees.
    ///
    /// # Errors
    /// [`CaseError`] where the shape is inconsistent.
    pub fn topology(&self) -> Result<Topology, CaseError> {
        self.check()?;
        let n = self.nr_cpu_ids();
        let mut node = vec![0; n];
        let mut capacity_orig = vec![FULL_CAPACITY; n];
        for llc in &self.llcs {
            for core in llc.cores() {
                for cpu in core.cpus.iter() {
                    node[cpu.index()] = llc.node;
                    capacity_orig[cpu.index()] = core.capacity;
                }
            }
        }
        let domains = self.domains();
        let asym_spans = asym_spans(&domains);
        let smt = self.smt_masks(n);
        let mut parts = Parts {
            nr_cpu_ids: n,
            online: self.online(),
            smt_present: smt.iter().any(|mask| mask.weight() > 1),
            smt,
            node,
            capacity_orig,
            asym_cpucapacity: domains.iter().any(|domain| domain.flags.contains(SdFlags::ASYM_CPUCAPACITY)),
            domains,
            llcs: Vec::new(),
            asym_spans,
            hierarchy: Vec::new(),
        };
        if !self.distances.is_empty() {
            self.overlap(&mut parts);
        }
        Ok(Topology::new(parts)?)
    }

    /// CPUs that are in sched domains.
    fn active(&self) -> Cpumask {
        self.online().and_not(&self.isolated)
    }

    /// Puts the NUMA domains of each CPU on top of the others in `parts`, and tells whose each domain is.
    fn overlap(&self, parts: &mut Parts) {
        let active = self.active();
        let (levels, numa) = (self.levels(), NumaLevels::new(self));
        let asym = Asymmetric(self.capacities(&active));
        let mut chains = vec![Vec::new(); parts.nr_cpu_ids];
        for cpu in active.iter() {
            let below = parts.domains.iter().filter(|domain| domain.span.test(cpu)).cloned().collect();
            let below = Below { chain: below, imb: package_imb(&levels, cpu, &active) };
            let numbered = (node_of(self, cpu), below, levels.len());
            chains[cpu.index()] = numa.chain(self, &asym, &active, numbered);
        }
        set_chains(parts, chains);
    }

    fn levels(&self) -> Vec<Level> {
        let wake = if self.balance_wake { SdFlags::BALANCE_WAKE } else { SdFlags::empty() };
        let (base, numa) = (BASE_FLAGS | wake, NUMA_FLAGS | wake);
        let union = |masks: &mut dyn Iterator<Item = Cpumask>| masks.fold(Cpumask::EMPTY, |all, mask| all | mask);
        let near = |group: u32| {
            union(&mut self.llcs.iter().filter(|l| l.node / self.near_nodes.max(1) == group).map(|l| l.cpus()))
        };
        let nodes = self.nodes();
        let of_node = |node: u32| union(&mut self.llcs.iter().filter(|llc| llc.node == node).map(|llc| llc.cpus()));
        let clusters = self.llcs.iter().filter(|llc| llc.clusters.len() > 1).flat_map(|llc| &llc.clusters);
        let mut levels = vec![
            Level {
                name: "SMT",
                flags: base | SdFlags::SHARE_CPUCAPACITY | SdFlags::SHARE_LLC,
                spans: self.cores().map(|core| core.cpus).collect(),
            },
            Level {
                name: "CLS",
                flags: base | SdFlags::CLUSTER | SdFlags::SHARE_LLC,
                spans: clusters.map(|cores| union(&mut cores.iter().map(|core| core.cpus))).collect(),
            },
            Level {
                name: "MC",
                flags: base | SdFlags::SHARE_LLC,
                spans: self.llcs.iter().map(|llc| llc.cpus()).collect(),
            },
            Level { name: "PKG", flags: base, spans: nodes.iter().map(|&node| of_node(node)).collect() },
        ];
        if !self.distances.is_empty() {
            return levels;
        }
        if self.near_nodes > 1 {
            let mut groups: Vec<u32> = nodes.iter().map(|node| node / self.near_nodes).collect();
            groups.dedup();
            levels.push(Level { name: "NUMA", flags: numa, spans: groups.into_iter().map(near).collect() });
        }
        if nodes.len() > 1 {
            let flags = if self.far { far(numa) } else { numa };
            levels.push(Level { name: "NUMA", flags, spans: vec![self.present()] });
        }
        levels
    }

    fn domains(&self) -> Vec<Domain> {
        let active = self.active();
        let levels = self.levels();
        let mut domains: Vec<Domain> = Vec::new();
        let asym = Asymmetric(self.capacities(&active));
        for (at, level) in levels.iter().enumerate() {
            for span in level.spans.iter().map(|span| *span & active) {
                // Degenerate: one CPU, or the same span as the domain below (flags that need groups do not count).
                if span.weight() <= 1 || domains.iter().any(|below| below.span == span) {
                    continue;
                }
                let mut flags = level.flags;
                if !flags.contains(SdFlags::SHARE_CPUCAPACITY) {
                    flags |= asym.flags(self, &span);
                }
                domains.push(Domain {
                    level: at as u32,
                    name: level.name.to_owned(),
                    span,
                    flags,
                    imbalance_pct: if flags.contains(SdFlags::SHARE_CPUCAPACITY) { 110 } else { 117 },
                    imb_numa_nr: imb_numa_nr(&levels, at, &span, &active),
                });
            }
        }
        domains
    }

    /// The different capacities within `span`, ascending.
    fn capacities(&self, span: &Cpumask) -> Vec<u64> {
        let mut found: Vec<u64> =
            self.cores().filter(|core| core.cpus.intersects(span)).map(|core| core.capacity).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The capacities of a machine.
pub(super) struct Asymmetric(Vec<u64>);

impl Asymmetric {
    /// What a domain of that span has of them.
    pub fn flags(&self, shape: &Shape, span: &Cpumask) -> SdFlags {
        let inside = shape.capacities(span);
        let mut flags = SdFlags::empty();
        if inside.len() > 1 {
            flags |= SdFlags::ASYM_CPUCAPACITY;
            flags.set(SdFlags::ASYM_CPUCAPACITY_FULL, inside == self.0);
        }
        flags
    }
}

/// Spans of the lowest domain with every capacity, where that is no LLC: 7.3 gives it shared state of its own.
fn asym_spans(domains: &[Domain]) -> Vec<Cpumask> {
    let asym = |sd: &&Domain| sd.flags.contains(SdFlags::ASYM_CPUCAPACITY);
    let mut spans: Vec<Cpumask> = Vec::new();
    for sd in domains.iter().filter(asym) {
        let lowest = !domains.iter().filter(asym).any(|below| below.level < sd.level && below.span.is_subset(&sd.span));
        let llc = sd.flags.contains(SdFlags::SHARE_LLC);
        if lowest && !llc {
            spans.push(sd.span);
        }
    }
    spans
}

/// `sd->imb_numa_nr`, computed before degenerate levels are removed.
///
/// **Source**: kernel/sched/topology.c, build_sched_domains(), v6.1.
fn imb_numa_nr(levels: &[Level], at: usize, span: &Cpumask, active: &Cpumask) -> u32 {
    if at < PKG {
        return 0;
    }
    let Some(cpu) = span.first() else { return 0 };
    let imb = package_imb(levels, cpu, active);
    if at == PKG {
        return imb;
    }
    let imb_span = weight(levels, PKG + 1, cpu, active);
    imb * (weight(levels, at, cpu, active) / imb_span).max(1)
}

/// The level above the LLC.
const PKG: usize = 3;

/// That of the level above the LLC.
fn package_imb(levels: &[Level], cpu: Cpu, active: &Cpumask) -> u32 {
    let pkg = weight(levels, PKG, cpu, active);
    let imb = match pkg / weight(levels, PKG - 1, cpu, active) {
        1 => pkg >> 3,
        nr_llcs => nr_llcs,
    };
    imb.max(1)
}

/// CPUs of a level as `cpu` sees it.
fn weight(levels: &[Level], level: usize, cpu: Cpu, active: &Cpumask) -> u32 {
    let own = levels[level].spans.iter().find(|span| span.test(cpu));
    own.map_or(1, |span| (*span & *active).weight()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(lines: &[&str]) -> Shape {
        Shape { llcs: lines.iter().map(|line| line.parse().expect("a line")).collect(), ..Shape::default() }
    }

    fn names(topology: &Topology, cpu: u16) -> Vec<&str> {
        topology.hierarchy(Cpu(cpu)).iter().map(|&id| topology.domain(id).name.as_str()).collect()
    }

    #[test]
    fn levels_of_one_group_are_left_out() {
        let one = shape(&["node0: 0,2 1,3"]).topology().expect("a topology");
        assert_eq!(names(&one, 0), ["SMT", "MC"]);
        let two = shape(&["node0: 0 1", "node1: 2 3"]).topology().expect("a topology");
        assert_eq!(names(&two, 3), ["MC", "NUMA"]);
        let chiplets = shape(&["node0: 0 1", "node0: 2 3"]).topology().expect("a topology");
        assert_eq!(names(&chiplets, 0), ["MC", "PKG"]);
        let cluster = shape(&["node0: 0,1 2,3 / 4,5 6,7"]).topology().expect("a topology");
        assert_eq!(names(&cluster, 0), ["SMT", "CLS", "MC"]);
        // One core is its LLC: the SMT domain is the highest that shares it.
        let core = shape(&["node0: 0,1", "node0: 2,3"]).topology().expect("a topology");
        assert_eq!(names(&core, 0), ["SMT", "PKG"]);
        assert_eq!(core.sd_llc_size(Cpu(0)), 2);
    }

    #[test]
    fn isolated_and_offline_cpus_are_in_no_domain() {
        let shape = Shape {
            isolated: "2".parse().expect("a list"),
            offline: "3".parse().expect("a list"),
            ..shape(&["node0: 0,2 1,3"])
        };
        let topology = shape.topology().expect("a topology");
        assert_eq!(names(&topology, 2), [""; 0]);
        assert_eq!(topology.sd_llc(Cpu(3)), None);
        assert_eq!(topology.smt_mask(Cpu(0)).to_string(), "0,2", "an isolated CPU stays a sibling");
        assert_eq!(topology.smt_mask(Cpu(1)).to_string(), "1");
        assert_eq!(topology.sd_llc_size(Cpu(0)), 2);
    }

    #[test]
    fn capacities_mark_the_domains_that_hold_them() {
        let topology = shape(&["node0: 0@446 1@446", "node0: 2 3"]).topology().expect("a topology");
        assert!(topology.asym_cpucapacity());
        let asym = topology.sd_asym(Cpu(0)).expect("an asymmetric domain");
        assert_eq!(topology.domain(asym).span.to_string(), "0-3");
    }

    #[test]
    fn near_and_far_nodes_are_two_levels() {
        let shape =
            Shape { near_nodes: 2, far: true, ..shape(&["node0: 0 1", "node1: 2 3", "node2: 4 5", "node3: 6 7"]) };
        let topology = shape.topology().expect("a topology");
        assert_eq!(names(&topology, 0), ["MC", "NUMA", "NUMA"]);
        let top = topology.domain(topology.hierarchy(Cpu(0))[2]);
        assert!(!top.flags.contains(SdFlags::WAKE_AFFINE));
        assert_eq!(top.span.weight(), 8);
    }
}
