// SPDX-License-Identifier: GPL-2.0-or-later
//! Sched groups, which the slow path chooses among.

use crate::cpumask::Cpumask;
use crate::fair::env::Env;
use crate::fair::walk::Recorder;
use crate::topology::{Domain, DomainId, Topology};
use crate::units::Cpu;

/// One `sched_group` with its `sched_group_capacity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// `sched_group_span()`.
    pub span: Cpumask,
    /// `group_weight`.
    pub weight: u32,
    /// `sgc->capacity`: the sum over the group's CPUs.
    pub capacity: u64,
    /// `sgc->max_capacity`.
    pub max_capacity: u64,
}

/// How far a group may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Before 5.13: beyond its domain, where nodes are three links apart.
    // Kernel bug, kept: fixed by 585b6d2723dc (find_descended_sibling()).
    Beyond,
    /// Since 5.13: a smaller descendant is taken, which stays in the domain.
    Inside,
}

/// `sd->groups` as seen from `cpu`: its own group first, then around.
///
/// From `cpu` upward with wrap, each CPU not covered yet opens a group: its own child domain below `sd`, or itself alone.
/// Where nodes are three links apart that child can reach beyond `sd`; `Reach` tells what a release makes of it.
///
/// **Source**: kernel/sched/topology.c, build_sched_groups() and build_overlap_sched_groups(), v5.2 to v7.3. Departs: the
/// capacities are those of the moment, while the kernel updates them at periodic balance; an overlapping group counts
/// capacity of its whole span, not of its balance mask.
pub fn groups<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, sd: DomainId, reach: Reach) -> Vec<Group> {
    let topology = e.topology();
    let mut covered = Cpumask::EMPTY;
    let mut groups = Vec::new();
    for i in topology.domain(sd).span.iter_wrap(cpu.index()) {
        if covered.test(i) {
            continue;
        }
        let span = child_span(topology, i, sd, reach);
        covered = covered | span;
        let (mut capacity, mut max_capacity) = (0, 0);
        for cpu in span.iter() {
            let of_cpu = e.capacity_of(cpu);
            capacity = of_cpu.wrapping_add(capacity);
            max_capacity = of_cpu.max(max_capacity);
        }
        groups.push(Group { span, weight: span.weight(), capacity, max_capacity });
    }
    groups
}

fn child_span(topology: &Topology, cpu: Cpu, sd: DomainId, reach: Reach) -> Cpumask {
    let sd = topology.domain(sd);
    let mut chain = topology.hierarchy(cpu).iter().rev().map(|&id| topology.domain(id));
    let is_child =
        |child: &&Domain| child.level < sd.level && (reach == Reach::Beyond || child.span.is_subset(&sd.span));
    chain.find(is_child).map_or(Cpumask::of(cpu), |child| child.span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Case;

    /// Nodes 0, 1, 2, 3 in a line, a CPU each: as the comment above build_overlap_sched_groups() draws it.
    const LINE: &str = r#"
        version = 1
        [machine]
        llcs = ["node0: 0", "node1: 1", "node2: 2", "node3: 3"]
        distances = ["10 20 30 40", "20 10 20 30", "30 20 10 20", "40 30 20 10"]
        [sequence]
        events = []
    "#;

    fn spans(cpu: u16, level: usize, reach: Reach) -> Vec<String> {
        let topology = Case::parse(LINE).expect("a case").machine.topology().expect("a topology");
        let sd = topology.hierarchy(Cpu(cpu))[level];
        let mut covered = Cpumask::EMPTY;
        let mut spans = Vec::new();
        for i in topology.domain(sd).span.iter_wrap(usize::from(cpu)) {
            if !covered.test(i) {
                let span = child_span(&topology, i, sd, reach);
                covered = covered | span;
                spans.push(span.to_string());
            }
        }
        spans
    }

    #[test]
    fn groups_of_a_line_of_nodes_are_the_kernels() {
        assert_eq!(spans(0, 0, Reach::Inside), ["0", "1"]);
        assert_eq!(spans(1, 0, Reach::Inside), ["1", "2", "0"]);
        assert_eq!(spans(1, 1, Reach::Inside), ["0-2", "2-3"]);
        assert_eq!(spans(0, 1, Reach::Beyond), ["0-1", "1-3"], "beyond the domain, which is 0-2");
        assert_eq!(spans(0, 1, Reach::Inside), ["0-1", "2"]);
        assert_eq!(spans(0, 2, Reach::Inside), ["0-2", "1-3"]);
        assert_eq!(spans(3, 2, Reach::Inside), ["1-3", "0-2"]);
    }
}
