// SPDX-License-Identifier: GPL-2.0-or-later
//! From a case's shape to sched domains, as `build_sched_domains()` would lay them.
//!
//! ```text
//! NUMA   all nodes, above it nothing
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
use crate::scenario::shape::{FULL_CAPACITY, Shape};
use crate::topology::{Domain, Parts, SdFlags, Topology};

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
        Ok(Topology::new(Parts {
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
        })?)
    }

    /// CPUs that are in sched domains.
    fn active(&self) -> Cpumask {
        self.online().and_not(&self.isolated)
    }

    fn levels(&self) -> Vec<Level> {
        let base = SdFlags::BALANCE_NEWIDLE
            | SdFlags::BALANCE_EXEC
            | SdFlags::BALANCE_FORK
            | SdFlags::WAKE_AFFINE
            | SdFlags::PREFER_SIBLING;
        let base = if self.balance_wake { base | SdFlags::BALANCE_WAKE } else { base };
        let numa = (base - SdFlags::PREFER_SIBLING) | SdFlags::NUMA | SdFlags::SERIALIZE;
        let far = numa - (SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE | SdFlags::BALANCE_WAKE);
        let union = |masks: &mut dyn Iterator<Item = Cpumask>| masks.fold(Cpumask::EMPTY, |all, mask| all | mask);
        let near = |group: u32| {
            union(&mut self.llcs.iter().filter(|l| l.node / self.near_nodes.max(1) == group).map(|l| l.cpus()))
        };
        let mut nodes: Vec<u32> = self.llcs.iter().map(|llc| llc.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
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
        if self.near_nodes > 1 {
            let mut groups: Vec<u32> = nodes.iter().map(|node| node / self.near_nodes).collect();
            groups.dedup();
            levels.push(Level { name: "NUMA", flags: numa, spans: groups.into_iter().map(near).collect() });
        }
        if nodes.len() > 1 {
            let flags = if self.far { far } else { numa };
            levels.push(Level { name: "NUMA", flags, spans: vec![self.present()] });
        }
        levels
    }

    fn domains(&self) -> Vec<Domain> {
        let active = self.active();
        let levels = self.levels();
        let mut domains: Vec<Domain> = Vec::new();
        let capacities = self.capacities(&active);
        for (at, level) in levels.iter().enumerate() {
            for span in level.spans.iter().map(|span| *span & active) {
                // Degenerate: one CPU, or the same span as the domain below (flags that need groups do not count).
                if span.weight() <= 1 || domains.iter().any(|below| below.span == span) {
                    continue;
                }
                let mut flags = level.flags;
                let inside = self.capacities(&span);
                if inside.len() > 1 && !flags.contains(SdFlags::SHARE_CPUCAPACITY) {
                    flags |= SdFlags::ASYM_CPUCAPACITY;
                    flags.set(SdFlags::ASYM_CPUCAPACITY_FULL, inside == capacities);
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
    const PKG: usize = 3;
    if at < PKG {
        return 0;
    }
    let Some(cpu) = span.first() else { return 0 };
    let weight = |level: usize| {
        let own = levels[level].spans.iter().find(|span| span.test(cpu));
        own.map_or(1, |span| (*span & *active).weight()).max(1)
    };
    let pkg = weight(PKG);
    let imb = match pkg / weight(PKG - 1) {
        1 => pkg >> 3,
        nr_llcs => nr_llcs,
    }
    .max(1);
    if at == PKG {
        return imb;
    }
    let imb_span = weight(PKG + 1);
    imb * (weight(at) / imb_span).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Cpu;

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
