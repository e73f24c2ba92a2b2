// SPDX-License-Identifier: GPL-2.0-or-later
//! Sched groups, which the slow path chooses among.

use crate::cpumask::Cpumask;
use crate::fair::env::Env;
use crate::fair::walk::Recorder;
use crate::topology::{DomainId, Topology};
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

/// `sd->groups` as seen from `cpu`: its own group first, then around.
///
/// From `cpu` upward with wrap, each CPU not covered yet opens a group: its own child domain below `sd`, or itself alone.
///
/// **Source**: kernel/sched/topology.c, build_sched_groups() and build_overlap_sched_groups(), v5.2 to v7.3. Departs: the
/// capacities are those of the moment, while the kernel updates them at periodic balance; an overlapping group counts
/// capacity of its whole span, not of its balance mask.
pub fn groups<R: Recorder>(e: &mut Env<'_, R>, cpu: Cpu, sd: DomainId) -> Vec<Group> {
    let topology = e.topology();
    let mut covered = Cpumask::EMPTY;
    let mut groups = Vec::new();
    for i in topology.domain(sd).span.iter_wrap(cpu.index()) {
        if covered.test(i) {
            continue;
        }
        let span = child_span(topology, i, sd);
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

fn child_span(topology: &Topology, cpu: Cpu, sd: DomainId) -> Cpumask {
    let level = topology.domain(sd).level;
    let mut chain = topology.hierarchy(cpu).iter().rev().map(|&id| topology.domain(id));
    chain.find(|domain| domain.level < level).map_or(Cpumask::of(cpu), |child| child.span)
}
