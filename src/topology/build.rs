// SPDX-License-Identifier: GPL-2.0-or-later
//! From hardware facts to sched domains, as the kernel builds them at boot.
//!
//! Each CPU gets a chain of domains, one per level of `levels` up to the first that spans all balanced CPUs;
//! then flags, imbalance_pct and imb_numa_nr are set on the whole chain, and at last levels that add nothing are taken
//! out. The kernel has one `struct sched_domain` per CPU and level; equal ones are one [`Domain`] here.

use super::asym::Asymmetry;
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
        "level {level} is no partition: CPU {a} has {a_mask} and CPU {b} has {b_mask}, expected the same or \
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
    #[error("{what} of the hardware description does not fit its {nr_cpu_ids} CPUs")]
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
pub(crate) fn set_chains(parts: &mut Parts, chains: Vec<Vec<Domain>>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::hardware::Arch;
    use crate::topology::{Topology, shorthand};

    fn hardware(text: &str) -> Hardware {
        shorthand::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The domains of `cpu` as `NAME:span:imb_numa_nr`.
    fn chain_of(hw: &Hardware, major: u16, minor: u16, cpu: u16) -> String {
        let parts = build(hw, Release::new(major, minor)).unwrap_or_else(|error| panic!("{error}"));
        let topology = Topology::new(parts).expect("a topology");
        let domains = topology.hierarchy(Cpu(cpu)).iter().map(|&id| topology.domain(id));
        domains.map(|d| format!("{}:{}:{}", d.name, d.span, d.imb_numa_nr)).collect::<Vec<_>>().join(" ")
    }

    fn domain_of(hw: &Hardware, major: u16, minor: u16, cpu: u16, name: &str) -> Domain {
        let parts = build(hw, Release::new(major, minor)).unwrap_or_else(|error| panic!("{error}"));
        let ids = &parts.hierarchy[usize::from(cpu)];
        let found = ids.iter().map(|&id| parts.domains[id].clone()).find(|domain| domain.name == name);
        found.unwrap_or_else(|| panic!("CPU {cpu} has a domain {name}"))
    }

    #[test]
    fn levels_that_add_nothing_are_left_out() {
        assert_eq!(chain_of(&hardware("1x4x1"), 6, 1, 0), "MC:0-3:0");
        assert_eq!(chain_of(&hardware("1x4x2"), 6, 1, 1), "SMT:1,5:0 MC:0-7:0");
        assert_eq!(chain_of(&hardware("2x4x2:adjacent"), 5, 11, 9), "SMT:8-9:0 MC:8-15:0 NUMA:0-15:0");
        assert_eq!(chain_of(&hardware("1x2d3x2:adjacent"), 6, 1, 0), "SMT:0-1:0 MC:0-5:0 DIE:0-11:2");
        assert_eq!(chain_of(&hardware("1x2d3x2:adjacent"), 6, 12, 0), "SMT:0-1:0 MC:0-5:0 PKG:0-11:2");
        assert_eq!(chain_of(&hardware("2x2x1:nonuma"), 6, 1, 0), "MC:0-1:0 DIE:0-3:2");
        assert_eq!(chain_of(&hardware("1x1x1"), 6, 1, 0), "");
    }

    #[test]
    fn imb_numa_nr_counts_levels_that_are_left_out_later() {
        let numa80 = hardware("2x20x2:adjacent");
        assert_eq!(chain_of(&numa80, 5, 11, 0), "SMT:0-1:0 MC:0-39:0 NUMA:0-79:0");
        assert_eq!(chain_of(&numa80, 5, 18, 0), "SMT:0-1:0 MC:0-39:0 NUMA:0-79:10");
        assert_eq!(chain_of(&numa80, 6, 1, 0), "SMT:0-1:0 MC:0-39:0 NUMA:0-79:5");
        // Eight LLCs of a node, as Zen 3 with one node per socket.
        assert_eq!(domain_of(&hardware("2x8d8x2"), 6, 1, 0, "NUMA").imb_numa_nr, 8);
        // An eighth of a small node is still one.
        assert_eq!(domain_of(&hardware("2x2x1"), 6, 1, 0, "NUMA").imb_numa_nr, 1);
        assert_eq!(domain_of(&hardware("2x2x1"), 5, 18, 0, "NUMA").imb_numa_nr, 0);
    }

    #[test]
    fn a_package_of_several_nodes_has_no_package_level() {
        let hw = hardware("2x4d4x1:nodes=2:near=12:distance=32");
        assert_eq!(chain_of(&hw, 6, 1, 0), "MC:0-3:0 NODE:0-7:2 NUMA:0-15:2 NUMA:0-31:4");
        let far = domain_of(&hw, 6, 1, 0, "NUMA");
        assert!(far.flags.contains(SdFlags::WAKE_AFFINE), "distance 12");
        let parts = build(&hw, Release::new(6, 1)).expect("domains");
        let machine = parts.domains.iter().find(|domain| domain.span.weight() == 32).expect("a domain of all CPUs");
        assert!(!machine.flags.intersects(SdFlags::WAKE_AFFINE | SdFlags::BALANCE_FORK), "distance 32 is far");
    }

    #[test]
    fn an_llc_that_spans_nodes_ends_at_the_node() {
        let mut hw = hardware("1x4x1:nodes=2");
        hw.llc = vec![Cpumask::first_n(4); 4];
        assert_eq!(chain_of(&hw, 6, 1, 3), "MC:2-3:0 NUMA:0-3:1");
    }

    #[test]
    fn overlapping_nodes_have_domains_of_their_own() {
        // A ring of four nodes, one CPU each: two neighbours near, the one across far.
        let mut hw = Hardware::separate(4);
        hw.node = vec![0, 1, 2, 3];
        hw.distance = (0..4).map(|a: u32| (0..4).map(|b| [10, 20, 30, 20][a.abs_diff(b) as usize]).collect()).collect();
        for (cpu, chain) in [(0, "NUMA:0-1,3:0 NUMA:0-3:0"), (1, "NUMA:0-2:0 NUMA:0-3:0")] {
            assert_eq!(chain_of(&hw, 5, 11, cpu), chain);
        }
        assert!(domain_of(&hw, 6, 12, 0, "NUMA").flags.contains(SdFlags::OVERLAP));
        assert!(!domain_of(&hw, 7, 3, 0, "NUMA").flags.contains(SdFlags::OVERLAP));
    }

    #[test]
    fn nodes_without_cpus_make_levels_before_5_18_only() {
        // Node 2 has memory only and is the only one at distance 17.
        let mut hw = hardware("2x2x1");
        hw.distance = vec![vec![10, 20, 17], vec![20, 10, 17], vec![17, 17, 10]];
        let levels = |major, minor| levels(&hw, Release::new(major, minor)).len();
        assert_eq!(levels(5, 17) - levels(5, 18), 1);
        assert_eq!(chain_of(&hw, 5, 17, 0), chain_of(&hw, 5, 17, 1), "it adds no domain");
        assert_eq!(chain_of(&hw, 5, 17, 0), "MC:0-1:0 NUMA:0-3:0");
    }

    #[test]
    fn clusters_are_a_level_since_5_16() {
        let mut hw = hardware("1x8x1");
        hw.cluster = (0..8u16).map(|cpu| [Cpu(cpu & !1), Cpu(cpu | 1)].into_iter().collect()).collect();
        assert_eq!(chain_of(&hw, 5, 11, 2), "MC:0-7:0");
        assert_eq!(chain_of(&hw, 6, 1, 2), "CLS:2-3:0 MC:0-7:0");
        assert!(!domain_of(&hw, 6, 1, 2, "CLS").flags.contains(SdFlags::CLUSTER));
        assert!(domain_of(&hw, 6, 12, 2, "CLS").flags.contains(SdFlags::CLUSTER));
    }

    #[test]
    fn capacities_mark_the_domains_that_see_them_all() {
        let mut hw = hardware("1x2d4x1:capacity=0-3@446");
        hw.arch = Arch::Generic;
        let die = |major, minor| domain_of(&hw, major, minor, 0, if (major, minor) < (6, 7) { "DIE" } else { "PKG" });
        let asym = SdFlags::ASYM_CPUCAPACITY;
        assert_eq!(die(5, 11).flags & (asym | SdFlags::ASYM_CPUCAPACITY_FULL), asym);
        assert!(die(6, 1).flags.contains(asym | SdFlags::ASYM_CPUCAPACITY_FULL));
        assert!(die(5, 2).flags.contains(SdFlags::BALANCE_WAKE) && !die(6, 1).flags.contains(SdFlags::BALANCE_WAKE));
        let mc = domain_of(&hw, 6, 1, 0, "MC");
        assert!(!mc.flags.intersects(asym | SdFlags::PREFER_SIBLING), "no spreading to CPUs of another capacity");
        let parts = build(&hw, Release::new(6, 1)).expect("domains");
        assert!(parts.asym_cpucapacity);
        assert_eq!(parts.asym_spans, [Cpumask::first_n(8)]);
    }

    #[test]
    fn isolated_and_offline_cpus_are_in_no_domain() {
        let hw = hardware("1x4x2:offline=5:isolated=2-3");
        assert_eq!(chain_of(&hw, 6, 1, 2), "");
        assert_eq!(chain_of(&hw, 6, 1, 5), "");
        assert_eq!(chain_of(&hw, 6, 1, 1), "MC:0-1,4,6-7:0", "its sibling is offline");
        assert_eq!(chain_of(&hw, 6, 1, 6), "MC:0-1,4,6-7:0", "its sibling is isolated");
        let parts = build(&hw, Release::new(6, 1)).expect("domains");
        assert_eq!(parts.smt[6].to_string(), "2,6", "the SMT mask does not care for isolation");
        assert_eq!(parts.smt[5].to_string(), "5");
        assert!(parts.smt_present);
    }

    #[test]
    fn older_kernels_start_from_125_percent() {
        let hw = hardware("2x2d4x2");
        let pct = |major, minor| {
            let parts = build(&hw, Release::new(major, minor)).expect("domains");
            parts.hierarchy[0].iter().map(|&id| parts.domains[id].imbalance_pct).collect::<Vec<_>>()
        };
        assert_eq!(pct(5, 9), [110, 117, 125, 125]);
        assert_eq!(pct(5, 10), [110, 117, 117, 117]);
    }

    #[test]
    fn groups_that_overlap_in_part_are_refused() {
        let mut hw = hardware("1x4x1");
        hw.smt[0] = "0-1".parse().expect("a cpulist");
        hw.smt[1] = "1-2".parse().expect("a cpulist");
        let error = build(&hw, Release::new(6, 1)).expect_err("no partition");
        assert!(error.to_string().contains("level SMT is no partition: CPU 0 has 0-1 and CPU 1 has 1-2"), "{error}");
        hw.smt.pop();
        let error = build(&hw, Release::new(6, 1)).expect_err("no shape");
        assert!(error.to_string().contains("the list of SMT masks"), "{error}");
    }
}
