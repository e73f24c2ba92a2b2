// SPDX-License-Identifier: GPL-2.0-or-later
//! Clusters: CPUs that share a level-2 cache or a tag of the last-level cache, below the LLC domain.

use crate::cpumask::Cpumask;
use crate::fair::env::Env;
use crate::fair::walk::Recorder;
use crate::topology::{Domain, SdFlags, Topology};
use crate::units::Cpu;

/// The static key `sched_cluster_active`: some domain is a cluster. **Source**: kernel/sched/topology.c,
/// build_sched_domains(), v6.7 to v7.3.
pub fn sched_cluster_active<R: Recorder>(e: &Env<'_, R>) -> bool {
    e.topology().has_clusters()
}

/// Whether both CPUs are of one cluster, or of one LLC where a CPU has no cluster.
///
/// **Source**: kernel/sched/core.c, cpus_share_resources(), v6.7 to v7.3.
pub fn cpus_share_resources<R: Recorder>(e: &mut Env<'_, R>, this_cpu: Cpu, that_cpu: Cpu) -> bool {
    let share = this_cpu == that_cpu || sd_share_id(e.topology(), this_cpu) == sd_share_id(e.topology(), that_cpu);
    e.check(share, || format!("cpus_share_resources({this_cpu}, {that_cpu})"))
}

/// `per_cpu(sd_share_id, cpu)`: the first CPU of the lowest cluster domain, else of the LLC domain.
///
/// **Source**: kernel/sched/topology.c, update_top_cache_domain(), v6.7 to v7.3.
fn sd_share_id(topology: &Topology, cpu: Cpu) -> Cpu {
    let mut domains = topology.hierarchy(cpu).iter().map(|&id| topology.domain(id));
    let cluster = domains.find(|domain| domain.flags.contains(SdFlags::CLUSTER));
    cluster.and_then(|domain| domain.span.first()).unwrap_or_else(|| topology.sd_llc_id(cpu))
}

/// The span of the first group of `sd` as seen from `target`, if that group is a cluster: a group has the flags of the
/// child domain it was made of.
pub(crate) fn first_group<R: Recorder>(e: &Env<'_, R>, sd: &Domain, target: Cpu) -> Option<Cpumask> {
    let topology = e.topology();
    let mut chain = topology.hierarchy(target).iter().rev().map(|&id| topology.domain(id));
    let child = chain.find(|domain| domain.level < sd.level)?;
    child.flags.contains(SdFlags::CLUSTER).then_some(child.span)
}
