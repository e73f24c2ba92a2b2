// SPDX-License-Identifier: GPL-2.0-or-later
//! Laying the kernel's own list of sched domains over the derived ones.
//!
//! debugfs tells name, flags and imbalance_pct of every domain and is the authority for them; it does not tell the
//! span, which comes from the hardware.

use super::build::set_chains;
use super::hardware::Hardware;
use super::snapshot::{DomainSource, ListedDomain, Snapshot};
use super::{Domain, Parts, SdFlags};
use crate::cpumask::Cpumask;
use crate::units::Cpu;

/// Online CPUs for which the kernel lists no domain while it does for others: isolated, or a cpuset of their own.
pub(super) fn in_no_domain(hw: &Hardware, snapshot: &Snapshot) -> Cpumask {
    let listed = |cpu: &Cpu| snapshot.domains.get(cpu.index()).is_some_and(|domains| !domains.is_empty());
    let online = hw.online.and_not(&hw.isolated);
    if online.iter().any(|cpu| listed(&cpu)) {
        online.iter().filter(|cpu| !listed(cpu)).collect()
    } else {
        Cpumask::EMPTY
    }
}

/// Where the derivation and the kernel's list are not the same, in full sentences; empty if they agree.
pub(super) fn differences(parts: &Parts, snapshot: &Snapshot) -> Vec<String> {
    if snapshot.domain_source == DomainSource::Derived {
        return Vec::new();
    }
    let nothing = Vec::new();
    let of = |cpu: usize| snapshot.domains.get(cpu).unwrap_or(&nothing);
    let mut texts: Vec<(String, Vec<usize>)> = Vec::new();
    for (cpu, chain) in parts.hierarchy.iter().enumerate() {
        let derived: Vec<&Domain> = chain.iter().map(|&id| &parts.domains[id]).collect();
        for text in of_cpu(&derived, of(cpu)) {
            match texts.iter_mut().find(|(have, _)| *have == text) {
                Some((_, cpus)) => cpus.push(cpu),
                None => texts.push((text, vec![cpu])),
            }
        }
    }
    let cpus = |cpus: Vec<usize>| cpus.into_iter().filter_map(Cpu::new).collect::<Cpumask>().to_string();
    texts.into_iter().map(|(text, list)| format!("CPUs {}: {text}", cpus(list))).collect()
}

fn of_cpu(derived: &[&Domain], listed: &[ListedDomain]) -> Vec<String> {
    let name = |domain: &ListedDomain| domain.name.clone().unwrap_or_else(|| "?".to_owned());
    if derived.len() != listed.len() {
        let have: Vec<&str> = derived.iter().map(|domain| domain.name.as_str()).collect();
        let want: Vec<String> = listed.iter().map(name).collect();
        return vec![format!(
            "the hardware gives the domains [{}], the kernel lists [{}]",
            have.join(" "),
            want.join(" ")
        )];
    }
    let mut texts = Vec::new();
    for (have, want) in derived.iter().zip(listed) {
        if want.name.as_ref().is_some_and(|name| *name != have.name) {
            texts.push(format!("the hardware gives a domain {}, the kernel lists {}", have.name, name(want)));
        }
        if let Some(flags) = want.flags.as_ref().map(|names| flags(names)).filter(|flags| *flags != have.flags) {
            let (more, less) = (flags - have.flags, have.flags - flags);
            texts.push(format!("{} flags: the kernel lists also [{more}] and not [{less}]", have.name));
        }
        if let Some(pct) = want.imbalance_pct.filter(|&pct| pct != have.imbalance_pct) {
            texts.push(format!("{} imbalance_pct: {} derived, {pct} listed", have.name, have.imbalance_pct));
        }
    }
    texts
}

/// Takes names, flags and imbalance_pct from the kernel's list. Returns what could not be laid over each other.
///
/// A derived domain that the kernel does not list is dropped; a listed one without a derived one is left out, since its
/// span is not known.
pub(super) fn overlay(parts: &mut Parts, snapshot: &Snapshot) -> Vec<String> {
    let notes = differences(parts, snapshot);
    if snapshot.domain_source == DomainSource::Derived || notes.is_empty() {
        return notes;
    }
    let nothing = Vec::new();
    let chain_of = |(cpu, chain): (usize, &Vec<usize>)| {
        let listed = snapshot.domains.get(cpu).unwrap_or(&nothing);
        let derived: Vec<&Domain> = chain.iter().map(|&id| &parts.domains[id]).collect();
        pairs(&derived, listed).into_iter().map(|(have, want)| laid_over(have, want)).collect()
    };
    let chains = parts.hierarchy.iter().enumerate().map(chain_of).collect();
    set_chains(parts, chains);
    notes
}

/// Which derived domain is which listed one: one by one if there are as many, else by name.
fn pairs<'a>(derived: &[&'a Domain], listed: &'a [ListedDomain]) -> Vec<(&'a Domain, &'a ListedDomain)> {
    if derived.len() == listed.len() {
        return derived.iter().copied().zip(listed).collect();
    }
    let mut listed = listed.iter().peekable();
    let mut pairs = Vec::new();
    for &have in derived {
        let mut rest = listed.clone();
        if let Some(want) = rest.by_ref().find(|want| want.name.as_ref() == Some(&have.name)) {
            pairs.push((have, want));
            listed = rest;
        }
    }
    pairs
}

fn laid_over(have: &Domain, want: &ListedDomain) -> Domain {
    Domain {
        level: have.level,
        name: want.name.clone().unwrap_or_else(|| have.name.clone()),
        span: have.span,
        flags: want.flags.as_ref().map_or(have.flags, |names| flags(names)),
        imbalance_pct: want.imbalance_pct.unwrap_or(have.imbalance_pct),
        imb_numa_nr: have.imb_numa_nr,
    }
}

/// The flags of these names. Names that nothing on the wakeup path reads (SD_SHARE_POWERDOMAIN) are passed over.
fn flags(names: &[String]) -> SdFlags {
    names.iter().filter_map(|name| SdFlags::from_kernel_name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Release, build, shorthand};

    /// Two nodes: SMT, MC, NUMA.
    fn parts() -> Parts {
        let hw = shorthand::parse("2x2x2").expect("a shorthand");
        build(&hw, Release::new(6, 1)).expect("domains")
    }

    fn listed(name: &str, flags: &str, pct: u32) -> ListedDomain {
        let flags = flags.split_ascii_whitespace().map(|flag| format!("SD_{flag}")).collect();
        ListedDomain {
            name: Some(name.to_owned()),
            flags: Some(flags),
            imbalance_pct: Some(pct),
            max_newidle_lb_cost_ns: None,
        }
    }

    /// What a kernel would list that agrees with `parts`.
    fn agreeing(parts: &Parts) -> Snapshot {
        let of = |chain: &Vec<usize>| {
            let domains = chain.iter().map(|&id| &parts.domains[id]);
            domains.map(|d| listed(&d.name, &d.flags.to_string(), d.imbalance_pct)).collect()
        };
        let domains = parts.hierarchy.iter().map(of).collect();
        Snapshot { domain_source: DomainSource::Debugfs, domains, ..Snapshot::default() }
    }

    #[test]
    fn agreement_changes_nothing() {
        let (before, mut after) = (parts(), parts());
        assert_eq!(overlay(&mut after, &agreeing(&before)), [""; 0]);
        assert_eq!(after, before);
    }

    #[test]
    fn flags_and_imbalance_pct_are_the_kernels() {
        let mut parts = parts();
        let mut snapshot = agreeing(&parts);
        for chain in &mut snapshot.domains {
            chain[1].imbalance_pct = Some(130);
            chain[2].flags.as_mut().expect("flags").retain(|flag| flag != "SD_WAKE_AFFINE");
        }
        let notes = overlay(&mut parts, &snapshot);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("CPUs 0-7: MC imbalance_pct: 117 derived, 130 listed"), "{notes:?}");
        let chain: Vec<&Domain> = parts.hierarchy[5].iter().map(|&id| &parts.domains[id]).collect();
        assert_eq!(chain[1].imbalance_pct, 130);
        assert!(!chain[2].flags.contains(SdFlags::WAKE_AFFINE) && chain[2].flags.contains(SdFlags::NUMA));
        assert_eq!(parts.domains.len(), 4 + 2 + 1);
    }

    #[test]
    fn a_level_that_the_kernel_lacks_goes() {
        let mut parts = parts();
        let mut snapshot = agreeing(&parts);
        snapshot.domains.iter_mut().for_each(|chain| drop(chain.remove(0)));
        let notes = overlay(&mut parts, &snapshot);
        assert!(
            notes[0].contains("the hardware gives the domains [SMT MC NUMA], the kernel lists [MC NUMA]"),
            "{notes:?}"
        );
        let names = |cpu: usize| parts.hierarchy[cpu].iter().map(|&id| &*parts.domains[id].name).collect::<Vec<_>>();
        assert_eq!(names(0), ["MC", "NUMA"]);
    }

    #[test]
    fn cpus_that_the_kernel_leaves_out_are_isolated() {
        let hw = shorthand::parse("2x2x2").expect("a shorthand");
        let mut snapshot = agreeing(&parts());
        assert!(in_no_domain(&hw, &snapshot).is_empty());
        snapshot.domains[7].clear();
        assert_eq!(in_no_domain(&hw, &snapshot).to_string(), "7");
        assert!(in_no_domain(&hw, &Snapshot::default()).is_empty(), "nothing is listed");
    }

    #[test]
    fn a_listed_level_without_hardware_is_left_out() {
        let mut parts = parts();
        let mut snapshot = agreeing(&parts);
        snapshot.domains[0].insert(1, listed("BOOK", "BALANCE_FORK", 117));
        let notes = overlay(&mut parts, &snapshot);
        assert!(
            notes[0]
                .contains("CPUs 0: the hardware gives the domains [SMT MC NUMA], the kernel lists [SMT BOOK MC NUMA]")
        );
        assert_eq!(parts.hierarchy[0].len(), 3);
    }
}
