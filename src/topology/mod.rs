// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine's shape as the scheduler sees it: SMT masks, nodes, and the hierarchy of sched domains.
//!
//! A [`Topology`] is a value. However it was described (sysfs, lscpu, hwloc, shorthand, a vector, a fuzzed scenario), it is built by
//! [`Topology::new`] from [`Parts`], which checks them and derives what the kernel derives in
//! `update_top_cache_domain()` and `build_sched_domains()`.

mod asym;
pub mod build;
pub mod domain;
pub mod draw;
pub mod files;
pub mod form;
pub mod guess;
pub mod hardware;
mod hwloc;
mod hwloc_hw;
mod levels;
mod listed;
pub mod load;
mod lscpu;
mod lscpu_json;
mod masks;
mod nodes;
pub mod release;
pub mod shorthand;
pub mod snapshot;
mod summary;
mod sysfs;
mod table;
mod unpack;

pub use build::{BuildError, build};
pub use domain::{Domain, SdFlags};
pub use draw::{describe, draw, summary};
pub use files::snapshot_of;
pub use form::Form;
pub use hardware::{Arch, Hardware};
pub use load::{LoadError, Loaded, TopologySource, load, load_for};
pub use release::Release;
pub use snapshot::Snapshot;

use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// What a topology is built from; everything indexed by CPU has `nr_cpu_ids` entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// CPUs `0..nr_cpu_ids` are possible.
    pub nr_cpu_ids: usize,
    /// CPUs that are online (and active).
    pub online: Cpumask,
    /// Per CPU its hardware threads, itself included (`cpu_smt_mask()`).
    pub smt: Vec<Cpumask>,
    /// Per CPU its NUMA node (`cpu_to_node()`).
    pub node: Vec<u32>,
    /// Per CPU its original capacity, 1024 for the biggest (`arch_scale_cpu_capacity()`).
    pub capacity_orig: Vec<u64>,
    /// The static key `sched_smt_present`.
    pub smt_present: bool,
    /// The static key `sched_asym_cpucapacity`.
    pub asym_cpucapacity: bool,
    /// Every domain once, without degenerate ones, sorted by level within any CPU.
    pub domains: Vec<Domain>,
    /// Per CPU its domains bottom up, as indexes into `domains`. Empty: every domain whose span holds the CPU, which is
    /// the same unless domains overlap (a NUMA domain belongs to the CPUs it was built for, not to all it spans).
    pub hierarchy: Vec<Vec<DomainId>>,
    /// Spans of the LLC domains in the order of their shared state; empty: in order of their first CPU.
    pub llcs: Vec<Cpumask>,
    /// Spans of the asymmetric-capacity domains that are no LLC domain and have shared state of their own (7.3).
    pub asym_spans: Vec<Cpumask>,
}

/// Why parts make no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// More CPUs than a mask holds, or none.
    #[error("topology: {found} CPUs, expected 1 to {MAX_CPUS}")]
    CpuCount {
        /// Number of CPUs found.
        found: usize,
    },
    /// A per-CPU list of the wrong length.
    #[error("topology: {what} has {found} entries, expected one for each of {expected} CPUs")]
    Column {
        /// Which list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// Number of CPUs.
        expected: usize,
    },
    /// A mask with a CPU that is not there.
    #[error("topology: {what} {mask} has a CPU at or above the {nr_cpu_ids} that are possible")]
    Mask {
        /// Which mask.
        what: String,
        /// The mask, as a cpulist.
        mask: String,
        /// Number of possible CPUs.
        nr_cpu_ids: usize,
    },
    /// An LLC domain that the list of LLCs lacks.
    #[error("topology: the LLC domain {span} of CPU {cpu} is not in the list of LLCs")]
    UnlistedLlc {
        /// The CPU.
        cpu: Cpu,
        /// Its LLC domain's span, as a cpulist.
        span: String,
    },
    /// A CPU's list of domains names one that is not there or does not span the CPU.
    #[error("topology: the hierarchy of CPU {cpu} names domain {id}, which does not exist or does not span that CPU")]
    Hierarchy {
        /// The CPU.
        cpu: Cpu,
        /// The index.
        id: DomainId,
    },
}

/// Index into [`Topology::domains`].
pub type DomainId = usize;
/// Index of a shared state (`sched_domain_shared`): the LLCs, then the asymmetric spans.
pub type SharedId = usize;

/// Sched domains and what the scheduler caches of them per CPU. Built by [`Topology::new`], then never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    parts: Parts,
    hierarchy: Vec<Vec<DomainId>>,
    sd_llc: Vec<Option<DomainId>>,
    sd_llc_id: Vec<Cpu>,
    sd_llc_size: Vec<u32>,
    llc_shared: Vec<Option<SharedId>>,
    asym_flag: SdFlags,
    sd_asym: Vec<Option<DomainId>>,
    balance_shared: Vec<Option<SharedId>>,
    has_clusters: bool,
}

impl Topology {
    /// Checks `parts` and derives the per-CPU caches.
    ///
    /// **Source**: kernel/sched/topology.c, update_top_cache_domain(), v5.11 and v6.1 (the same).
    ///
    /// # Errors
    /// See [`TopologyError`].
    pub fn new(mut parts: Parts) -> Result<Self, TopologyError> {
        check(&parts)?;
        let n = parts.nr_cpu_ids;
        let cpus = || (0..n).map(|cpu| Cpu(cpu as u16));
        let by_span = |cpu| (0..parts.domains.len()).filter(|&id| parts.domains[id].span.test(cpu)).collect();
        let hierarchy: Vec<Vec<DomainId>> =
            if parts.hierarchy.is_empty() { cpus().map(by_span).collect() } else { parts.hierarchy.clone() };
        let sd_llc: Vec<Option<DomainId>> = hierarchy.iter().map(|chain| highest_llc(&parts.domains, chain)).collect();
        let span = |id: DomainId| &parts.domains[id].span;
        let sd_llc_id = cpus().map(|cpu| sd_llc[cpu.index()].and_then(|id| span(id).first()).unwrap_or(cpu)).collect();
        let sd_llc_size = sd_llc.iter().map(|llc| llc.map_or(1, |id| span(id).weight())).collect();
        if parts.llcs.is_empty() {
            let mut spans: Vec<Cpumask> = sd_llc.iter().flatten().map(|&id| *span(id)).collect();
            spans.sort_by_key(Cpumask::first);
            spans.dedup();
            parts.llcs = spans;
        }
        let mut llc_shared = Vec::with_capacity(n);
        for cpu in cpus() {
            let shared = match sd_llc[cpu.index()] {
                None => None,
                Some(id) => {
                    let span = parts.domains[id].span;
                    let at = parts.llcs.iter().position(|llc| *llc == span);
                    Some(at.ok_or(TopologyError::UnlistedLlc { cpu, span: span.to_string() })?)
                }
            };
            llc_shared.push(shared);
        }
        let asym = asym_flag(&parts.domains);
        let sd_asym: Vec<Option<DomainId>> = hierarchy
            .iter()
            .map(|chain| chain.iter().copied().find(|&id| parts.domains[id].flags.contains(asym)))
            .collect();
        let balance_shared =
            cpus().map(|cpu| balance_shared(&parts, sd_asym[cpu.index()], llc_shared[cpu.index()])).collect();
        let has_clusters = parts.domains.iter().any(|domain| domain.flags.contains(SdFlags::CLUSTER));
        Ok(Self {
            hierarchy,
            sd_llc,
            sd_llc_id,
            sd_llc_size,
            llc_shared,
            asym_flag: asym,
            sd_asym,
            balance_shared,
            has_clusters,
            parts,
        })
    }

    /// What the topology was built from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// CPUs `0..nr_cpu_ids` are possible.
    pub fn nr_cpu_ids(&self) -> usize {
        self.parts.nr_cpu_ids
    }

    /// CPUs that are online.
    pub fn online(&self) -> &Cpumask {
        &self.parts.online
    }

    /// All possible CPUs in ascending order.
    pub fn cpus(&self) -> impl DoubleEndedIterator<Item = Cpu> + use<> {
        (0..self.parts.nr_cpu_ids).map(|cpu| Cpu(cpu as u16))
    }

    /// Every domain, sorted by level within any CPU.
    pub fn domains(&self) -> &[Domain] {
        &self.parts.domains
    }

    /// The domain with index `id`.
    #[inline]
    pub fn domain(&self, id: DomainId) -> &Domain {
        &self.parts.domains[id]
    }

    /// `for_each_domain(cpu)`: the domains of `cpu`, bottom up.
    #[inline]
    pub fn hierarchy(&self, cpu: Cpu) -> &[DomainId] {
        self.hierarchy.get(cpu.index()).map_or(&[], Vec::as_slice)
    }

    /// `per_cpu(sd_llc, cpu)`.
    #[inline]
    pub fn sd_llc(&self, cpu: Cpu) -> Option<DomainId> {
        self.sd_llc.get(cpu.index()).copied().flatten()
    }

    /// `per_cpu(sd_llc_id, cpu)`: the first CPU of the LLC domain, the CPU itself without one.
    #[inline]
    pub fn sd_llc_id(&self, cpu: Cpu) -> Cpu {
        self.sd_llc_id.get(cpu.index()).copied().unwrap_or(cpu)
    }

    /// `per_cpu(sd_llc_size, cpu)`: CPUs in the LLC domain, 1 without one.
    #[inline]
    pub fn sd_llc_size(&self, cpu: Cpu) -> u32 {
        self.sd_llc_size.get(cpu.index()).copied().unwrap_or(1)
    }

    /// `per_cpu(sd_llc_shared, cpu)`.
    #[inline]
    pub fn llc_shared(&self, cpu: Cpu) -> Option<SharedId> {
        self.llc_shared.get(cpu.index()).copied().flatten()
    }

    /// `per_cpu(sd_asym_cpucapacity, cpu)`.
    #[inline]
    pub fn sd_asym(&self, cpu: Cpu) -> Option<DomainId> {
        self.sd_asym.get(cpu.index()).copied().flatten()
    }

    /// `per_cpu(sd_balance_shared, cpu)` of 7.3: the shared state that holds has_idle_cores.
    #[inline]
    pub fn balance_shared(&self, cpu: Cpu) -> Option<SharedId> {
        self.balance_shared.get(cpu.index()).copied().flatten()
    }

    /// Number of shared states: one per LLC, then one per asymmetric span.
    pub fn nr_shared(&self) -> usize {
        self.parts.llcs.len() + self.parts.asym_spans.len()
    }

    /// The span that shared state `id` belongs to.
    pub fn shared_span(&self, id: SharedId) -> &Cpumask {
        let llcs = self.parts.llcs.len();
        if id < llcs { &self.parts.llcs[id] } else { &self.parts.asym_spans[id - llcs] }
    }

    /// `cpu_smt_mask(cpu)`.
    #[inline]
    pub fn smt_mask(&self, cpu: Cpu) -> &Cpumask {
        &self.parts.smt[cpu.index()]
    }

    /// `cpu_to_node(cpu)`.
    #[inline]
    pub fn node(&self, cpu: Cpu) -> u32 {
        self.parts.node[cpu.index()]
    }

    /// The static key `sched_smt_present`.
    #[inline]
    pub fn smt_present(&self) -> bool {
        self.parts.smt_present
    }

    /// The static key `sched_asym_cpucapacity`.
    #[inline]
    pub fn asym_cpucapacity(&self) -> bool {
        self.parts.asym_cpucapacity
    }

    /// Whether `sd` has SD_ASYM_CPUCAPACITY as kernels before 5.14 set it: where every capacity of the machine is seen.
    /// Since then domains that see only some have it too, and SD_ASYM_CPUCAPACITY_FULL tells.
    #[inline]
    pub fn has_asym_before_5_14(&self, sd: &Domain) -> bool {
        sd.flags.contains(self.asym_flag)
    }

    /// Whether some domain is a cluster (the static key `sched_cluster_active`, since 6.7).
    #[inline]
    pub fn has_clusters(&self) -> bool {
        self.has_clusters
    }

    /// Whether both CPUs have the same `sd_llc_id`.
    ///
    /// **Source**: kernel/sched/core.c, cpus_share_cache(). Since 5.16 a CPU shares cache with itself without a look at
    /// the ids, which is the same answer.
    #[inline]
    pub fn cpus_share_cache(&self, a: Cpu, b: Cpu) -> bool {
        self.sd_llc_id(a) == self.sd_llc_id(b)
    }

    /// How far apart two CPUs are.
    #[inline]
    pub fn distance(&self, a: Cpu, b: Cpu) -> Distance {
        if a == b {
            Distance::Same
        } else if self.smt_mask(a).test(b) {
            Distance::Core
        } else if self.cpus_share_cache(a, b) {
            Distance::Llc
        } else if self.node(a) == self.node(b) {
            Distance::Node
        } else {
            Distance::Remote
        }
    }
}

/// How far apart two CPUs are, by the nearest thing that they have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// They are one and the same.
    Same,
    /// A core.
    Core,
    /// A last-level cache.
    Llc,
    /// A NUMA node.
    Node,
    /// The machine.
    Remote,
}

impl Distance {
    /// Each of them, near to far: a distance's place is its number.
    pub const ALL: [Self; 5] = [Self::Same, Self::Core, Self::Llc, Self::Node, Self::Remote];
}

/// The highest domain reached from the bottom while each one on the way shares the LLC.
fn highest_llc(domains: &[Domain], chain: &[DomainId]) -> Option<DomainId> {
    chain.iter().copied().take_while(|&id| domains[id].flags.contains(SdFlags::SHARE_LLC)).last()
}

/// The flag that marks `sd_asym_cpucapacity`: since 5.14 the lowest domain with every capacity of the machine; before,
/// there was one flag only, set from the level on where each CPU sees the biggest.
fn asym_flag(domains: &[Domain]) -> SdFlags {
    let full = SdFlags::ASYM_CPUCAPACITY_FULL;
    if domains.iter().any(|domain| domain.flags.contains(full)) { full } else { SdFlags::ASYM_CPUCAPACITY }
}

fn balance_shared(parts: &Parts, asym: Option<DomainId>, llc: Option<SharedId>) -> Option<SharedId> {
    let Some(asym) = asym else { return llc };
    let span = &parts.domains[asym].span;
    let of_llc = parts.llcs.iter().position(|llc| llc == span);
    let of_asym = || parts.asym_spans.iter().position(|asym| asym == span).map(|at| parts.llcs.len() + at);
    of_llc.or_else(of_asym).or(llc)
}

fn check(parts: &Parts) -> Result<(), TopologyError> {
    let n = parts.nr_cpu_ids;
    if n == 0 || n > MAX_CPUS {
        return Err(TopologyError::CpuCount { found: n });
    }
    let column = |what, found| (found == n).then_some(()).ok_or(TopologyError::Column { what, found, expected: n });
    column("cpu_smt_mask", parts.smt.len())?;
    column("cpu_to_node", parts.node.len())?;
    column("cpu_capacity_orig", parts.capacity_orig.len())?;
    let possible = Cpumask::first_n(n);
    let mask = |what: &str, mask: &Cpumask| {
        mask.is_subset(&possible).then_some(()).ok_or_else(|| TopologyError::Mask {
            what: what.to_owned(),
            mask: mask.to_string(),
            nr_cpu_ids: n,
        })
    };
    mask("the online mask", &parts.online)?;
    parts.smt.iter().try_for_each(|smt| mask("an SMT mask", smt))?;
    parts.domains.iter().try_for_each(|domain| mask("a domain span", &domain.span))?;
    parts.llcs.iter().chain(&parts.asym_spans).try_for_each(|span| mask("a shared span", span))?;
    check_hierarchy(parts)
}

fn check_hierarchy(parts: &Parts) -> Result<(), TopologyError> {
    if parts.hierarchy.is_empty() {
        return Ok(());
    }
    if parts.hierarchy.len() != parts.nr_cpu_ids {
        let (found, expected) = (parts.hierarchy.len(), parts.nr_cpu_ids);
        return Err(TopologyError::Column { what: "the hierarchy", found, expected });
    }
    for (cpu, chain) in parts.hierarchy.iter().enumerate() {
        let cpu = Cpu(cpu as u16);
        let spans = |id: DomainId| parts.domains.get(id).is_some_and(|domain| domain.span.test(cpu));
        if let Some(&id) = chain.iter().find(|&&id| !spans(id)) {
            return Err(TopologyError::Hierarchy { cpu, id });
        }
    }
    Ok(())
}
