// SPDX-License-Identifier: GPL-2.0-or-later
//! From hardware facts to sched domains, as the kernel builds them at boot.
//!
//! Each CPU gets a chain of domains, one per level of `levels` up to the first that spans all balanced CPUs;
//! then flags, imbalance_pct and imb_numa_nr are set on the whole chain, and at last levels that add nothing are taken
//! out. The kernel has one `struct sched_domain` per CPU and level; equal ones are one [`Domain`] here.

use super::hardware::Hardware;
use super::levels::{Level, levels};
use super::release::{ImbNuma, Release};
use super::{Domain, Parts, SdFlags};
use crate::cpumask::Cpumask;
use crate::units::Cpu;

/// Why hardware facts make no domains.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Two CPUs see partly overlapping groups on a level that must partition the machine. The kernel warns and builds
    /// no domain at all.
    #[error(
        "topology: level {level} is no partition: CPU {a} has {a_mask} and CPU {b} has {b_mask}, expected the same or \
         nothing in common"
    )]
    NotAPartition {
        /// Name of the level.
        level: &'static str,
        /// One CPU.
        a: Cpu,
        /// Its mask, as a cpulist.
        a_mask: String,
        /// The other CPU.
        b: Cpu,
        /// Its mask, as a cpulist.
        b_mask: String,
    },
    /// A column of the wrong length, or a CPU that is not possible.
    #[error("topology: {what} of the hardware description does not fit its {nr_cpu_ids} CPUs")]
    Shape {
        /// What.
        what: &'static str,
        /// Number of CPUs.
        nr_cpu_ids: usize,
    },
}

/// One domain of one CPU while its chain is being built.
#[derive(Debug, Clone)]
struct Sd {
    level: usize,
    span: Cpumask,
    flags: SdFlags,
    imbalance_pct: u32,
    imb_numa_nr: u32,
    /// Whether the domain has two sched groups or more.
    groups: bool,
}

impl Sd {
    fn domain(&self, levels: &[Level]) -> Domain {
        Domain {
            level: self.level as u32,
            name: levels[self.level].name.to_owned(),
            span: self.span,
            flags: self.flags,
            imbalance_pct: self.imbalance_pct,
            imb_numa_nr: self.imb_numa_nr,
        }
    }
}

/// The parts of the topology that a kernel of `release` makes of `hw`.
///
/// **Source**: kernel/sched/topology.c, build_sched_domains(), sd_init(), cpu_attach_domain(), v5.11 and v6.1.
/// **Departs**: one set of balanced CPUs (no cpuset partitions), no relax_domain_level, no SD_ASYM_PACKING.
///
/// # Errors
/// See [`BuildError`].
pub fn build(hw: &Hardware, release: Release) -> Result<Parts, BuildError> {
    check(hw)?;
    let levels = levels(hw, release);
    let cpu_map = hw.online.and_not(&hw.isolated);
    let asym = Asymmetry::new(hw, &cpu_map, &levels, release);
    let mut parts = Parts {
        nr_cpu_ids: hw.nr_cpu_ids,
        online: hw.online,
        smt: hw.cpus().map(|cpu| smt_mask(hw, cpu)).collect(),
        node: hw.node.clone(),
        capacity_orig: hw.capacity.clone(),
        smt_present: hw.smt_present(),
        ..Parts::default()
    };
    for (at, level) in levels.iter().enumerate() {
        span_sane(level, &cpu_map, cpu_map.iter().filter(|&cpu| reaches(&levels[..at], &cpu_map, cpu)))?;
    }
    let mut chains = vec![Vec::new(); hw.nr_cpu_ids];
    for cpu in cpu_map.iter() {
        let mut chain = chain(&levels, &cpu_map, &asym, hw, release, cpu);
        imb_numa_nr(&mut chain, release);
        remove_degenerate(&mut chain, release);
        chains[cpu.index()] = chain.iter().map(|sd| sd.domain(&levels)).collect();
    }
    set_chains(&mut parts, chains);
    Ok(parts)
}

fn check(hw: &Hardware) -> Result<(), BuildError> {
    let n = hw.nr_cpu_ids;
    let possible = Cpumask::first_n(n);
    let fits = |what, holds: bool| if holds { Ok(()) } else { Err(BuildError::Shape { what, nr_cpu_ids: n }) };
    fits("the online mask", hw.online.is_subset(&possible))?;
    fits("the list of nodes", hw.node.len() == n)?;
    fits("the list of capacities", hw.capacity.len() == n)?;
    let columns = [
        ("the list of SMT masks", &hw.smt),
        ("the list of clusters", &hw.cluster),
        ("the list of LLC masks", &hw.llc),
        ("the list of dies", &hw.die),
        ("the list of packages", &hw.package),
    ];
    columns
        .into_iter()
        .try_for_each(|(what, masks)| fits(what, masks.len() == n && masks.iter().all(|m| m.is_subset(&possible))))
}

fn smt_mask(hw: &Hardware, cpu: Cpu) -> Cpumask {
    if hw.online.test(cpu) { (hw.smt[cpu.index()] & hw.online) | Cpumask::of(cpu) } else { Cpumask::of(cpu) }
}

/// Whether the chain of `cpu` goes on above `levels`.
fn reaches(levels: &[Level], cpu_map: &Cpumask, cpu: Cpu) -> bool {
    levels.iter().all(|level| (level.masks[cpu.index()] & *cpu_map) != *cpu_map)
}

/// **Source**: topology_span_sane().
fn span_sane(level: &Level, cpu_map: &Cpumask, cpus: impl Iterator<Item = Cpu>) -> Result<(), BuildError> {
    if level.distance.is_some() {
        return Ok(());
    }
    for a in cpus {
        let mask = level.masks[a.index()];
        // CPUs that see another mask must not see this CPU's.
        for b in cpu_map.iter() {
            let other = level.masks[b.index()];
            if mask != other && mask.intersects(&other) {
                let (a_mask, b_mask) = (mask.to_string(), other.to_string());
                return Err(BuildError::NotAPartition { level: level.name, a, a_mask, b, b_mask });
            }
        }
    }
    Ok(())
}

/// The chain of `cpu`, degenerate levels included.
fn chain(levels: &[Level], cpu_map: &Cpumask, asym: &Asymmetry, hw: &Hardware, release: Release, cpu: Cpu) -> Vec<Sd> {
    let mut chain: Vec<Sd> = Vec::new();
    for (at, level) in levels.iter().enumerate() {
        let mut span = level.masks[cpu.index()] & *cpu_map;
        if let Some(child) = chain.last() {
            // The kernel says "arch topology borken" and repairs it so.
            span = span | child.span;
        } else {
            span.set(cpu);
        }
        let mut sd = sd_init(level, at, span, hw, release);
        sd.flags |= asym.flags(at, &span);
        sd.groups = chain.last().map_or(span.weight() > 1, |child| !span.is_subset(&child.span));
        if sd.flags.contains(SdFlags::ASYM_CPUCAPACITY) {
            if let Some(child) = chain.last_mut() {
                child.flags -= SdFlags::PREFER_SIBLING;
            }
            if release.asym_balances_on_wake() {
                chain.iter_mut().for_each(|child| child.flags |= SdFlags::BALANCE_WAKE);
                sd.flags |= SdFlags::BALANCE_WAKE;
            }
        }
        chain.push(sd);
        if span == *cpu_map {
            break;
        }
    }
    chain
}

/// **Source**: sd_init(), the part that turns what a level is into how it behaves.
fn sd_init(level: &Level, at: usize, span: Cpumask, hw: &Hardware, release: Release) -> Sd {
    let mut flags = level.flags
        | SdFlags::BALANCE_NEWIDLE
        | SdFlags::BALANCE_EXEC
        | SdFlags::BALANCE_FORK
        | SdFlags::WAKE_AFFINE
        | SdFlags::PREFER_SIBLING;
    let mut imbalance_pct = release.base_imbalance_pct();
    if flags.contains(SdFlags::SHARE_CPUCAPACITY) {
        imbalance_pct = 110;
    } else if flags.contains(SdFlags::SHARE_LLC) {
        imbalance_pct = 117;
    } else if flags.contains(SdFlags::NUMA) {
        flags -= SdFlags::PREFER_SIBLING;
        flags |= SdFlags::SERIALIZE;
        if level.distance.is_some_and(|distance| distance > hw.reclaim_distance) {
            flags -= SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE;
        }
        if release.has_overlap_flag() {
            flags |= SdFlags::OVERLAP;
        }
    }
    Sd { level: at, span, flags, imbalance_pct, imb_numa_nr: 0, groups: false }
}

/// **Source**: build_sched_domains(), "allowed NUMA imbalance"; on the whole chain, before degenerate levels go.
fn imb_numa_nr(chain: &mut [Sd], release: Release) {
    let formula = release.imb_numa();
    if formula == ImbNuma::Absent {
        return;
    }
    let (mut imb, mut imb_span) = (0, 1);
    for at in 0..chain.len() {
        let weight = chain[at].span.weight();
        let llc = |sd: &Sd| sd.flags.contains(SdFlags::SHARE_LLC);
        if at > 0 && !llc(&chain[at]) && llc(&chain[at - 1]) {
            let nr_llcs = weight / chain[at - 1].span.weight().max(1);
            imb = match (formula, nr_llcs) {
                (ImbNuma::Quarter, 1) => weight >> 2,
                (ImbNuma::Quarter, _) => nr_llcs,
                (_, 1) => (weight >> 3).max(1),
                _ => nr_llcs.max(1),
            };
            chain[at].imb_numa_nr = imb;
            let numa = chain[at + 1..].iter().find(|sd| sd.flags.contains(SdFlags::NUMA));
            imb_span = numa.map_or(weight, |sd| sd.span.weight()).max(1);
        } else {
            chain[at].imb_numa_nr = imb * (weight / imb_span).max(1);
        }
    }
}

/// Flags that count only where a domain has two groups.
fn needs_groups(release: Release) -> SdFlags {
    let mut flags = SdFlags::all() - SdFlags::WAKE_AFFINE;
    if !release.numa_flags_need_groups() {
        flags -= SdFlags::NUMA | SdFlags::OVERLAP | SdFlags::SERIALIZE;
    }
    flags
}

/// **Source**: sd_degenerate().
fn degenerate(sd: &Sd, release: Release) -> bool {
    if sd.span.weight() == 1 {
        return true;
    }
    let contributes = sd.groups && sd.flags.intersects(needs_groups(release));
    !contributes && !sd.flags.contains(SdFlags::WAKE_AFFINE)
}

/// **Source**: sd_parent_degenerate().
fn parent_degenerate(sd: &Sd, parent: &Sd, release: Release) -> bool {
    if degenerate(parent, release) {
        return true;
    }
    if sd.span != parent.span {
        return false;
    }
    let flags = if parent.groups { parent.flags } else { parent.flags - needs_groups(release) };
    sd.flags.contains(flags)
}

/// **Source**: cpu_attach_domain().
fn remove_degenerate(chain: &mut Vec<Sd>, release: Release) {
    let mut at = 0;
    while at + 1 < chain.len() {
        if parent_degenerate(&chain[at], &chain[at + 1], release) {
            let parent = chain.remove(at + 1);
            if parent.flags.contains(SdFlags::PREFER_SIBLING) {
                chain[at].flags |= SdFlags::PREFER_SIBLING;
            }
        } else {
            at += 1;
        }
    }
    if chain.first().is_some_and(|sd| degenerate(sd, release)) {
        chain.remove(0);
    }
}

/// Puts each CPU's chain of domains into `parts`: equal ones become one, sorted by level and first CPU.
pub(super) fn set_chains(parts: &mut Parts, chains: Vec<Vec<Domain>>) {
    let key = |domain: &Domain| {
        let (level, name, span) = (domain.level, domain.name.clone(), domain.span);
        (level, span.first(), span, name, domain.flags, domain.imbalance_pct, domain.imb_numa_nr)
    };
    let mut domains: Vec<Domain> = chains.iter().flatten().cloned().collect();
    domains.sort_by_cached_key(key);
    domains.dedup();
    let id = |wanted: &Domain| {
        domains.binary_search_by(|have| key(have).cmp(&key(wanted))).expect("the table was made of these very domains")
    };
    parts.hierarchy = chains.iter().map(|chain| chain.iter().map(id).collect()).collect();
    parts.asym_cpucapacity = domains.iter().any(|domain| domain.flags.contains(SdFlags::ASYM_CPUCAPACITY));
    parts.domains = domains;
    parts.asym_spans = asym_spans(parts);
}

/// Spans of `sd_asym_cpucapacity` domains that are not LLC domains.
fn asym_spans(parts: &Parts) -> Vec<Cpumask> {
    let flag = super::asym_flag(&parts.domains);
    let mut spans: Vec<Cpumask> = Vec::new();
    for chain in &parts.hierarchy {
        let lowest = chain.iter().map(|&id| &parts.domains[id]).find(|domain| domain.flags.contains(flag));
        let llc = super::highest_llc(&parts.domains, chain).map(|id| parts.domains[id].span);
        if let Some(asym) = lowest.filter(|asym| Some(asym.span) != llc) {
            spans.push(asym.span);
        }
    }
    spans.sort_by_key(|span| (span.first(), *span));
    spans.dedup();
    spans
}

/// Which domains have CPUs of different capacity.
enum Asymmetry {
    /// All CPUs are the same.
    None,
    /// Before 5.14: from this level on each CPU sees a biggest one.
    From(usize),
    /// Since 5.14: the CPUs of each capacity.
    Classes(Vec<Cpumask>, Cpumask),
}

impl Asymmetry {
    /// **Source**: asym_cpu_capacity_level(), v5.11; asym_cpu_capacity_scan(), v6.1.
    fn new(hw: &Hardware, cpu_map: &Cpumask, levels: &[Level], release: Release) -> Self {
        if release.classifies_asym_per_domain() {
            // Offline CPUs count: the list is made of the possible ones that are not isolated.
            let mut capacities: Vec<u64> =
                hw.cpus().filter(|&cpu| !hw.isolated.test(cpu)).map(|cpu| hw.capacity[cpu.index()]).collect();
            capacities.sort_unstable();
            capacities.dedup();
            if capacities.len() < 2 {
                return Self::None;
            }
            let class = |&capacity: &u64| {
                hw.cpus().filter(|&cpu| !hw.isolated.test(cpu) && hw.capacity[cpu.index()] == capacity).collect()
            };
            return Self::Classes(capacities.iter().map(class).collect(), *cpu_map);
        }
        let mut level = None;
        for cpu in cpu_map.iter() {
            let mut biggest = hw.capacity[cpu.index()];
            for (at, tl) in levels.iter().enumerate().skip(level.unwrap_or(0)) {
                for other in (tl.masks[cpu.index()] & *cpu_map).iter() {
                    if hw.capacity[other.index()] > biggest {
                        biggest = hw.capacity[other.index()];
                        level = Some(at);
                    }
                }
            }
        }
        level.map_or(Self::None, Self::From)
    }

    /// **Source**: asym_cpu_capacity_classify(), v6.1.
    fn flags(&self, level: usize, span: &Cpumask) -> SdFlags {
        match self {
            Self::None => SdFlags::empty(),
            Self::From(from) if level >= *from => SdFlags::ASYM_CPUCAPACITY,
            Self::From(_) => SdFlags::empty(),
            Self::Classes(classes, cpu_map) => {
                let count = classes.iter().filter(|class| class.intersects(span)).count();
                let missed = classes.iter().any(|class| !class.intersects(span) && class.intersects(cpu_map));
                match (count, missed) {
                    (0 | 1, _) => SdFlags::empty(),
                    (_, true) => SdFlags::ASYM_CPUCAPACITY,
                    (_, false) => SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL,
                }
            }
        }
    }
}
