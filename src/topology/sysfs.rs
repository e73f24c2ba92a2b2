// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware facts from a copy of sysfs, or from the live one.

use super::files::Files;
use super::hardware::{Arch, Hardware, LOCAL_DISTANCE, RECLAIM_DISTANCE, RECLAIM_DISTANCE_ZEN};
use super::load::LoadError;
use super::masks::{self, excerpt};
use super::release::Release;
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";
/// **Source**: include/linux/numa.h, MAX_NUMNODES with NODES_SHIFT 10.
const MAX_NODES: usize = 1024;

/// The hardware that `files` describe, and what had to be assumed, in full sentences.
///
/// Missing files are filled in from what is there: masks from their hexadecimal twin, the online CPUs from per-CPU
/// files, nodes from links. Files that are there but make no sense are errors.
///
/// # Errors
/// If there is no description of CPUs or a file in it cannot be understood.
pub(super) fn hardware(files: &Files, release: Release) -> Result<(Hardware, Vec<String>), LoadError> {
    let mut notes = Vec::new();
    let nr = nr_cpu_ids(files)?;
    let mut hw = Hardware::separate(nr);
    hw.online = online(files, nr)?;
    hw.isolated = list(files, "isolated")?.unwrap_or_default() & Cpumask::first_n(nr);
    hw.arch = arch(files, &hw.online);
    nodes(files, &mut hw, &mut notes)?;
    hw.reclaim_distance = reclaim_distance(files, release);
    let mut without_cache = Cpumask::EMPTY;
    let online = hw.online;
    for cpu in online.iter() {
        one_cpu(files, &mut hw, cpu, &mut without_cache)?;
    }
    if !without_cache.is_empty() {
        notes.push(format!(
            "nothing tells the caches of CPUs {without_cache}: the last-level cache is assumed to be the package's"
        ));
    }
    let cut: Cpumask = online.iter().filter(|&cpu| !hw.llc[cpu.index()].is_subset(&of_node(&hw, cpu))).collect();
    if !cut.is_empty() {
        notes.push(format!(
            "the last-level caches of CPUs {cut} span several nodes; the kernel ends an LLC domain at the node"
        ));
    }
    capacities(files, &mut hw)?;
    Ok((hw, notes))
}

fn of_node(hw: &Hardware, cpu: Cpu) -> Cpumask {
    let node = hw.node[cpu.index()];
    hw.llc[cpu.index()].iter().filter(|other| hw.node[other.index()] == node).collect()
}

fn list(files: &Files, name: &str) -> Result<Option<Cpumask>, LoadError> {
    masks::read(files, &format!("{CPU}/{name}"), "")
}

fn nr_cpu_ids(files: &Files) -> Result<usize, LoadError> {
    let mut highest = files.numbered(CPU, "cpu").last().copied();
    for name in ["possible", "present", "online"] {
        if let Some(mask) = list(files, name)? {
            highest = highest.max(mask.iter().last().map(Cpu::index));
        }
    }
    match highest {
        None => Err(LoadError::NoCpus { file: files.origin.clone() }),
        Some(highest) if highest >= MAX_CPUS => Err(LoadError::File {
            file: format!("{}: {CPU}", files.origin),
            found: format!("CPU {highest}"),
            expected: "CPUs below 1024",
        }),
        Some(highest) => Ok(highest + 1),
    }
}

/// The online CPUs: from `online`, else the CPUs with a folder that do not say they are offline.
fn online(files: &Files, nr: usize) -> Result<Cpumask, LoadError> {
    let online = match list(files, "online")? {
        Some(mask) => mask,
        None => {
            let says_offline = |cpu: &usize| files.text(&format!("{CPU}/cpu{cpu}/online")) == Some("0");
            let folders = files.numbered(CPU, "cpu");
            folders.into_iter().filter(|cpu| !says_offline(cpu)).filter_map(Cpu::new).collect()
        }
    };
    if online.is_empty() {
        return Err(LoadError::NoCpus { file: files.origin.clone() });
    }
    Ok(online & Cpumask::first_n(nr))
}

/// x86, unless /proc/cpuinfo is another architecture's or, without it, CPUs tell a capacity.
fn arch(files: &Files, online: &Cpumask) -> Arch {
    match files.text("proc/cpuinfo") {
        Some(text) if text.lines().any(|line| line.starts_with("vendor_id")) => Arch::X86,
        Some(_) => Arch::Generic,
        None if online.first().is_some_and(|cpu| files.has(&format!("{CPU}/cpu{cpu}/cpu_capacity"))) => Arch::Generic,
        None => Arch::X86,
    }
}

/// **Source**: arch/x86/kernel/cpu/amd.c and hygon.c, node_reclaim_distance.
fn reclaim_distance(files: &Files, release: Release) -> u32 {
    let field = |name: &str| {
        let line = files.text("proc/cpuinfo")?.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let family: u32 = field("cpu family").and_then(|family| family.parse().ok()).unwrap_or(0);
    let zen = matches!(field("vendor_id"), Some("AuthenticAMD" | "HygonGenuine")) && family >= 0x17;
    if zen && release.has_zen_reclaim_distance() { RECLAIM_DISTANCE_ZEN } else { RECLAIM_DISTANCE }
}

/// Topology and cache masks of an online CPU.
fn one_cpu(files: &Files, hw: &mut Hardware, cpu: Cpu, without_cache: &mut Cpumask) -> Result<(), LoadError> {
    let (at, own, online) = (cpu.index(), Cpumask::of(cpu), hw.online);
    let topology = |names: &[&str]| -> Result<Option<Cpumask>, LoadError> {
        for name in names {
            let map = format!("{CPU}/cpu{cpu}/topology/{name}");
            if let Some(mask) = masks::read(files, &format!("{map}_list"), &map)? {
                return Ok(Some((mask & online) | own));
            }
        }
        Ok(None)
    };
    hw.smt[at] = topology(&["core_cpus", "thread_siblings"])?.unwrap_or(own);
    let package = topology(&["package_cpus", "core_siblings"])?;
    hw.package[at] = package.unwrap_or(online);
    hw.die[at] = topology(&["die_cpus"])?.unwrap_or(hw.package[at]);
    hw.cluster[at] = topology(&["cluster_cpus"])?.unwrap_or(hw.smt[at]);
    hw.llc[at] = match last_level_cache(files, cpu)? {
        Some(mask) => (mask & online) | own,
        None => {
            without_cache.set(cpu);
            hw.package[at]
        }
    };
    Ok(())
}

/// The CPUs that share the data or unified cache of the highest level.
///
/// **Source**: cpu_llc_shared_mask() on x86 (L3, else L2), cache_shared_cpu_map of the last level elsewhere.
fn last_level_cache(files: &Files, cpu: Cpu) -> Result<Option<Cpumask>, LoadError> {
    let folder = format!("{CPU}/cpu{cpu}/cache");
    let mut last = None;
    for index in files.numbered(&folder, "index") {
        let file = |name: &str| format!("{folder}/index{index}/{name}");
        if files.text(&file("type")) == Some("Instruction") {
            continue;
        }
        let Some(level) = files.text(&file("level")) else { continue };
        let Ok(level) = level.parse::<u32>() else {
            let (file, found) = (format!("{}: {}", files.origin, file("level")), excerpt(level));
            return Err(LoadError::File { file, found, expected: "the level of a cache, a number" });
        };
        let Some(mask) = masks::read(files, &file("shared_cpu_list"), &file("shared_cpu_map"))? else { continue };
        if last.is_none_or(|(highest, _)| level >= highest) {
            last = Some((level, mask));
        }
    }
    Ok(last.map(|(_, mask)| mask))
}

/// Nodes and their distances.
fn nodes(files: &Files, hw: &mut Hardware, notes: &mut Vec<String>) -> Result<(), LoadError> {
    let nodes: Vec<usize> = files.numbered(NODE, "node");
    if nodes.is_empty() {
        notes.push("no NUMA nodes are described: all CPUs are taken to be on node 0".to_owned());
    }
    for &node in &nodes {
        if node >= MAX_NODES {
            let (file, found) = (format!("{}: {NODE}", files.origin), format!("node {node}"));
            return Err(LoadError::File { file, found, expected: "nodes below 1024" });
        }
        let folder = format!("{NODE}/node{node}");
        let cpus = masks::read(files, &format!("{folder}/cpulist"), &format!("{folder}/cpumap"))?.unwrap_or_default();
        for cpu in (cpus & Cpumask::first_n(hw.nr_cpu_ids)).iter() {
            hw.node[cpu.index()] = node as u32;
        }
    }
    for cpu in hw.cpus() {
        // cpulist has online CPUs only; the link is there for offline ones too.
        if let Some(&node) = files.numbered(&format!("{CPU}/cpu{cpu}"), "node").first().filter(|&&n| n < MAX_NODES) {
            hw.node[cpu.index()] = node as u32;
        }
    }
    distances(files, hw, &nodes, notes)
}

/// `node_distance()`: row A of the table stands in node A's file, one column for each online node.
fn distances(files: &Files, hw: &mut Hardware, nodes: &[usize], notes: &mut Vec<String>) -> Result<(), LoadError> {
    let online: Vec<usize> = match masks::read(files, &format!("{NODE}/online"), "")? {
        Some(mask) => mask.iter().map(Cpu::index).collect(),
        None => nodes.to_vec(),
    };
    let size = nodes.iter().chain(&online).max().map_or(0, |&node| node + 1);
    let mut unusable = Vec::new();
    for &node in nodes {
        let path = format!("{NODE}/node{node}/distance");
        let Some(text) = files.text(&path) else { continue };
        let row: Result<Vec<u8>, _> = text.split_ascii_whitespace().map(str::parse).collect();
        let Ok(row) = row else {
            let (file, found) = (format!("{}: {path}", files.origin), excerpt(text));
            return Err(LoadError::File { file, found, expected: "distances from 10 to 255, such as 10 21" });
        };
        // The columns are the online nodes; a copy may also have lost a node's folder but not its column.
        let columns: Vec<usize> = match row.len() {
            _ if row.iter().any(|&distance| u32::from(distance) < LOCAL_DISTANCE) => {
                unusable.push(node);
                continue;
            }
            n if n == online.len() => online.clone(),
            n if n == nodes.len() => nodes.to_vec(),
            n if n == size => (0..n).collect(),
            _ => {
                unusable.push(node);
                continue;
            }
        };
        if hw.distance.is_empty() {
            hw.distance = vec![Vec::new(); size];
        }
        let mut full: Vec<u32> = (0..size).map(|to| hw.node_distance(node as u32, to as u32)).collect();
        for (&to, &distance) in columns.iter().zip(&row) {
            full[to] = u32::from(distance);
        }
        hw.distance[node] = full;
    }
    if !unusable.is_empty() {
        notes.push(format!(
            "the distances of nodes {unusable:?} are below 10 or have not one column per online node: 10 and 20 are assumed"
        ));
    }
    if hw.distance.is_empty() && hw.nodes_with_cpus().len() > 1 {
        notes.push("no node distances are told: 10 within a node and 20 between nodes are assumed".to_owned());
    }
    Ok(())
}

fn capacities(files: &Files, hw: &mut Hardware) -> Result<(), LoadError> {
    for cpu in hw.cpus() {
        let path = format!("{CPU}/cpu{cpu}/cpu_capacity");
        let Some(text) = files.text(&path) else { continue };
        match text.parse::<u64>() {
            // The kernel scales to 1024; leave room for a table that does not.
            Ok(capacity) if (1..=1 << 20).contains(&capacity) => hw.capacity[cpu.index()] = capacity,
            _ => {
                let (file, found) = (format!("{}: {path}", files.origin), excerpt(text));
                return Err(LoadError::File { file, found, expected: "a CPU capacity, 1024 for the biggest" });
            }
        }
    }
    Ok(())
}
