// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware facts from hwloc's objects.

use super::hardware::{Arch, Hardware, LOCAL_DISTANCE};
use super::hwloc::{Distances, Objects};
use super::load::LoadError;
use super::nodes::{NO_DISTANCES, memory_only};
use super::release::Release;
use super::sysfs;
use crate::cpumask::Cpumask;

/// The hardware that `objects` describe, and what had to be assumed, in full sentences.
///
/// # Errors
/// If there is no CPU.
pub(super) fn hardware(
    origin: &str,
    objects: &Objects,
    release: Release,
) -> Result<(Hardware, Vec<String>), LoadError> {
    let online = objects.online.map_or(objects.pus, |online| online & objects.pus);
    let all = objects.complete | objects.pus;
    let Some(highest) = all.iter().last().filter(|_| !online.is_empty()) else {
        return Err(LoadError::NoCpus { file: origin.to_owned() });
    };
    let mut notes = Vec::new();
    let mut hw = Hardware::separate(highest.index() + 1);
    hw.online = online;
    let missing = all.and_not(&online);
    if !missing.is_empty() {
        notes.push(format!(
            "CPUs {missing} are of the machine, but offline or not allowed to whoever ran lstopo: they are taken for offline"
        ));
    }
    let x86 = architecture(objects, &mut hw, release, &mut notes);
    groups(objects, &mut hw, x86, &mut notes);
    nodes(objects, &mut hw, &mut notes);
    for (cpus, capacity) in objects.capacities.iter().filter(|(_, capacity)| *capacity > 0) {
        (*cpus & online).iter().for_each(|cpu| hw.capacity[cpu.index()] = *capacity);
    }
    if objects.capacities.iter().all(|(_, capacity)| *capacity == 0) {
        notes.push("no CPU capacities are told: 1024 is taken for each".to_owned());
    }
    Ok((hw, notes))
}

/// Lays groups over the columns of their CPUs; says whether there was one.
fn lay(column: &mut [Cpumask], online: &Cpumask, groups: &[Cpumask]) -> bool {
    for group in groups {
        let cpus = *group & *online;
        cpus.iter().for_each(|cpu| column[cpu.index()] = cpus);
    }
    !groups.is_empty()
}

/// Masks of all levels. `x86` says whether the machine is known to be of that architecture.
fn groups(objects: &Objects, hw: &mut Hardware, x86: bool, notes: &mut Vec<String>) {
    let online = hw.online;
    let of_level = |level| objects.caches.iter().filter(move |cache| cache.level == level).map(|cache| cache.cpus);
    if !lay(&mut hw.smt, &online, &objects.cores) {
        notes.push("no cores are described: each CPU is taken for a core of its own".to_owned());
    }
    // Each half of a Bulldozer module is a core to hwloc; to the kernel they are threads of one (`cu_id` in match_smt()).
    let family = (objects.info("CPUVendor"), objects.info("CPUFamilyNumber"));
    if family == (Some("AuthenticAMD"), Some("21")) && of_level(2).all(|cpus| (cpus & online).weight() <= 2) {
        let modules: Vec<Cpumask> = of_level(2).collect();
        if lay(&mut hw.smt, &online, &modules) {
            notes.push(
                "hwloc takes the halves of an AMD module (one L2) for cores, the kernel for threads of a core, as is done \
                 here"
                    .to_owned(),
            );
        }
    }
    hw.package = vec![online; hw.nr_cpu_ids];
    lay(&mut hw.package, &online, &objects.packages);
    hw.die = hw.package.clone();
    lay(&mut hw.die, &online, &objects.dies);
    hw.cluster = hw.smt.clone();
    // The kernel's clusters on x86 are the CPUs of one L2. Elsewhere an L2 is no cluster, and may be the last level.
    let second = hw.arch == Arch::X86 && (x86 || objects.caches.iter().any(|cache| cache.level > 2));
    let clusters = match objects.clusters.is_empty() {
        true if second => of_level(2).collect(),
        _ => objects.clusters.clone(),
    };
    lay(&mut hw.cluster, &online, &clusters);
    let mut levels: Vec<u32> = objects.caches.iter().map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    hw.llc = hw.package.clone();
    let mut cached = Cpumask::EMPTY;
    for level in levels {
        let caches: Vec<Cpumask> = of_level(level).collect();
        lay(&mut hw.llc, &online, &caches);
        cached = caches.iter().fold(cached, |all, cache| all | *cache);
    }
    let without = online.and_not(&cached);
    if !without.is_empty() {
        notes.push(sysfs::no_cache(&without));
    }
}

fn nodes(objects: &Objects, hw: &mut Hardware, notes: &mut Vec<String>) {
    if objects.nodes.is_empty() {
        notes.push("no NUMA nodes are described: all CPUs are taken to be on node 0".to_owned());
    }
    for node in &objects.nodes {
        // A node with the CPUs of another is memory of another kind (HBM beside DRAM): the CPUs are the first one's.
        let of_others = objects.nodes.iter().filter(|other| other.number < node.number).map(|other| other.cpus);
        let own = node.cpus.and_not(&of_others.fold(Cpumask::EMPTY, |all, cpus| all | cpus));
        (own & hw.online).iter().for_each(|cpu| hw.node[cpu.index()] = node.number);
    }
    let size = objects.nodes.iter().map(|node| node.number as usize + 1).max().unwrap_or(0);
    let tables = objects.distances.iter().filter(|table| table.size > 0);
    let mut unusable = false;
    for table in tables {
        match matrix(table, objects, size) {
            Some(matrix) => {
                hw.distance = matrix;
                break;
            }
            None => unusable = true,
        }
    }
    if hw.distance.is_empty() && unusable {
        notes.push(
            "the distances of the nodes cannot be used: 10 within a node and 20 between nodes are assumed".to_owned(),
        );
    } else if hw.distance.is_empty() && objects.nodes.len() > 1 {
        notes.push(NO_DISTANCES.to_owned());
    }
    notes.extend(memory_only(hw, objects.nodes.iter().map(|node| node.number)));
}

/// The table by the kernel's numbers of nodes; `None` if it does not fit the nodes, or has values that no kernel has.
fn matrix(table: &Distances, objects: &Objects, size: usize) -> Option<Vec<Vec<u32>>> {
    let numbers: Vec<usize> = if table.indexes.is_empty() {
        objects.nodes.iter().map(|node| node.number as usize).collect()
    } else {
        let number = |index: &u64| {
            let of = |node: &&super::hwloc::Node| match table.by_gp_index {
                true => node.gp_index == Some(*index),
                false => u64::from(node.number) == *index,
            };
            objects.nodes.iter().find(of).map(|node| node.number as usize)
        };
        table.indexes.iter().map(number).collect::<Option<_>>()?
    };
    if numbers.len() != table.size || table.values.len() != table.size.checked_mul(table.size)? {
        return None;
    }
    let value = |value: f64| {
        let scaled = (value * table.base).round();
        (f64::from(LOCAL_DISTANCE)..=255.0).contains(&scaled).then_some(scaled as u32)
    };
    let mut rows = vec![Vec::new(); size];
    for (&from, values) in numbers.iter().zip(table.values.chunks(table.size)) {
        let mut row: Vec<u32> = (0..size).map(|to| Hardware::default().node_distance(from as u32, to as u32)).collect();
        for (&to, &told) in numbers.iter().zip(values) {
            row[to] = value(told)?;
        }
        rows[from] = row;
    }
    Some(rows)
}

/// What the machine is, x86 where nothing tells; returns whether x86 is told.
fn architecture(objects: &Objects, hw: &mut Hardware, release: Release, notes: &mut Vec<String>) -> bool {
    let vendor = objects.info("CPUVendor");
    let x86 = ["GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "  Shanghai  "];
    let told = match (objects.info("Architecture"), vendor) {
        (Some("x86_64" | "i686" | "i586" | "i386"), _) => Some(Arch::X86),
        (Some(_), _) => Some(Arch::Generic),
        (None, Some(vendor)) if x86.contains(&vendor) => Some(Arch::X86),
        // x86 tells no capacities.
        _ if objects.info("CPUImplementer").is_some() => Some(Arch::Generic),
        _ if objects.capacities.iter().any(|(_, capacity)| *capacity > 0) => Some(Arch::Generic),
        _ => None,
    };
    if told.is_none() {
        notes.push("the architecture is not told: x86 is taken".to_owned());
    }
    hw.arch = told.unwrap_or(Arch::X86);
    let family = objects.info("CPUFamilyNumber").and_then(|family| family.parse().ok()).unwrap_or(0);
    hw.reclaim_distance = sysfs::reclaim_distance(vendor, family, release);
    told == Some(Arch::X86)
}

#[cfg(test)]
mod tests {
    use super::super::hwloc;
    use super::*;

    const MACHINE: &str = r#"cpuset="0xff" complete_cpuset="0xff""#;

    fn try_read(xml: &str) -> Result<(Hardware, Vec<String>), LoadError> {
        hwloc::read("t.xml", xml).and_then(|objects| hardware("t.xml", &objects, Release::new(6, 1)))
    }

    fn read(xml: &str) -> (Hardware, Vec<String>) {
        try_read(xml).unwrap_or_else(|error| panic!("{error}"))
    }

    fn pus(cpus: std::ops::Range<usize>) -> String {
        cpus.map(|cpu| format!(r#"<object type="PU" os_index="{cpu}" cpuset="0x{:x}"/>"#, 1u64 << cpu)).collect()
    }

    #[test]
    fn the_last_cache_of_data_counts() {
        let (hw, notes) = read(&format!(
            r#"<topology version="2.0"><object type="Machine" {MACHINE}>
            <object type="L2Cache" cpuset="0x0f" depth="2"/><object type="L2Cache" cpuset="0xf0" depth="2"/>
            <object type="L3iCache" cpuset="0xff" depth="3" cache_type="2"/>
            <object type="MemCache" cpuset="0xff" depth="4"/>
            <object type="L3Cache" cpuset="0x3f" depth="3"/>{}</object></topology>"#,
            pus(0..8)
        ));
        assert_eq!((hw.llc[0].to_string(), hw.llc[7].to_string()), ("0-5".to_owned(), "4-7".to_owned()));
        assert_eq!(hw.cluster[0].to_string(), "0-3");
        for what in ["no cores", "no NUMA nodes", "architecture is not told", "no CPU capacities"] {
            assert!(notes.iter().any(|note| note.contains(what)), "{what}: {notes:?}");
        }
    }

    #[test]
    fn cpus_that_may_not_be_used_are_offline() {
        let (hw, notes) = read(&format!(
            r#"<topology version="2.0"><object type="Machine" cpuset="0x0f" complete_cpuset="0xff">{}</object></topology>"#,
            pus(0..4)
        ));
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (8, "0-3".to_owned()));
        assert!(notes[0].starts_with("CPUs 4-7 are of the machine"), "{notes:?}");
        let (hw, _) = read(&format!(
            r#"<topology><object type="Machine" {MACHINE} online_cpuset="0x3">{}</object></topology>"#,
            pus(0..8)
        ));
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (8, "0-1".to_owned()), "version 1 tells");
    }

    #[test]
    fn distances_are_in_the_order_that_the_file_says() {
        let nodes = r#"<object type="NUMANode" os_index="0" cpuset="0x0f" gp_index="70"/>
            <object type="NUMANode" os_index="5" cpuset="0x0" gp_index="71"/>
            <object type="NUMANode" os_index="2" cpuset="0xf0" gp_index="72"/>"#;
        let two = |by: &str, indexes: &str, kind: u32| {
            read(&format!(
                r#"<topology version="2.0"><object type="Machine" {MACHINE}>{nodes}{}</object>
                <distances2 type="NUMANode" nbobjs="3" kind="{kind}" indexing="{by}"><indexes length="5">{indexes}</indexes>
                <u64values length="9">10 17 21 </u64values><u64values length="9">17 10 28 21 28 10</u64values></distances2>
                </topology>"#,
                pus(0..8)
            ))
        };
        for (by, indexes) in [("os", "0 5 2"), ("gp", "70 71 72")] {
            let (hw, notes) = two(by, indexes, 5);
            let distance = |a, b| hw.node_distance(a, b);
            assert_eq!((distance(0, 5), distance(0, 2), distance(5, 2), distance(2, 2)), (17, 21, 28, 10), "{by}");
            assert_eq!((hw.node[4], hw.nodes()), (2, vec![0, 2, 5]));
            assert!(notes.iter().any(|note| note.starts_with("node 5 has memory only")), "{notes:?}");
        }
        let (hw, notes) = two("os", "0 5 7", 5);
        assert!(hw.distance.is_empty() && notes.iter().any(|note| note.contains("cannot be used")), "{notes:?}");
        assert!(two("os", "0 5 2", 9).0.distance.is_empty(), "bandwidths");
        // Version 1: a factor, and the order of the file.
        let one: String =
            [1.0, 1.7, 2.1, 1.7, 1.0, 2.8, 2.1, 2.8, 1.0].map(|v| format!(r#"<latency value="{v}"/>"#)).concat();
        let (hw, _) = read(&format!(
            r#"<topology><object type="Machine" {MACHINE}><distances nbobjs="3" relative_depth="2" latency_base="10.0">{one}
            </distances>{nodes}{}</object></topology>"#,
            pus(0..8)
        ));
        assert_eq!((hw.node_distance(0, 5), hw.node_distance(0, 2), hw.node_distance(2, 5)), (17, 21, 28));
    }

    #[test]
    fn kinds_of_cpus_tell_capacities() {
        let (hw, _) = read(&format!(
            r#"<topology version="2.0"><object type="Machine" {MACHINE}><info name="Architecture" value="aarch64"/>
            <object type="Group" subtype="Cluster" cpuset="0x0f"/><object type="Group" cpuset="0xff"/>{}</object>
            <cpukind cpuset="0x0f"><info name="LinuxCapacity" value="446"/></cpukind>
            <cpukind cpuset="0xf0"><info name="LinuxCapacity" value="1024"/></cpukind></topology>"#,
            pus(0..8)
        ));
        assert_eq!((hw.capacity[3], hw.capacity[4], hw.arch), (446, 1024, Arch::Generic));
        assert_eq!(hw.cluster[0].to_string(), "0-3");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let machine =
            |inside: &str| format!(r#"<topology><object type="Machine" {MACHINE}>{inside}</object></topology>"#);
        let deep = "<object>".repeat(1_000_000);
        for (xml, expected) in [
            (machine(""), "no online CPU"),
            (machine(r#"<object type="PU" os_index="1000000000" cpuset="0x1"/>"#), "below 1024"),
            (machine(r#"<object type="PU" os_index="1" cpuset="0x1"/>"#), "that CPU alone"),
            (machine(&(pus(0..2) + &pus(1..2))), "each CPU once"),
            (machine(r#"<object type="Core" cpuset="0xf...f"/>"#), "a mask of CPUs"),
            (machine(r#"<object type="NUMANode" os_index="4294967296" cpuset="0x1"/>"#), "a node below 1024"),
            (machine(&r#"<object type="Core" cpuset="0x1"/>"#.repeat(9000)), "objects of a kind"),
            (machine(r#"<distances nbobjs="1"><latency value="x"/></distances>"#), "a number"),
            ("<topology><object".to_owned(), "whole XML file"),
            ("<topology></object>".to_owned(), "whole XML file"),
            ("<topology>".to_owned(), "breaks off"),
            ("<!-- nothing -->".to_owned(), "no element"),
            ("<html></html>".to_owned(), "topology, as"),
            (format!("<topology>{deep}"), "elements within each other"),
        ] {
            let error = try_read(&xml).expect_err(expected).to_string();
            assert!(error.contains("t.xml") && error.contains(expected), "{error}");
        }
        // Entities that would be a bomb are not expanded.
        let bomb =
            format!(r#"<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>{}"#, machine(&(pus(0..1) + "&b;")));
        assert_eq!(read(&bomb).0.online.to_string(), "0");
    }
}
