// SPDX-License-Identifier: GPL-2.0-or-later
//! A guess at the hardware from what plain `lscpu` counts.
//!
//! Told are the CPUs, how many threads a core, cores a socket and sockets there are, which CPUs a node has and how many
//! last-level caches there are. Which CPUs share a core or a cache is guessed by how kernels usually number them.

use super::hardware::{Arch, Hardware};
use super::load::LoadError;
use super::lscpu::Summary;
use super::masks::{self, excerpt};
use super::release::Release;
use super::sysfs;
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// The hardware that a summary hints at, and what was guessed, in full sentences; the first says that it is a guess.
///
/// # Errors
/// If it tells no CPUs, or a list in it cannot be understood.
pub(super) fn hardware(
    origin: &str,
    summary: &Summary,
    release: Release,
) -> Result<(Hardware, Vec<String>), LoadError> {
    let told = Told::read(origin, summary)?;
    let mut hw = Hardware::separate(told.nr);
    hw.online = told.online;
    hw.arch = told.arch;
    let family = summary.get("cpu family").and_then(|family| family.parse().ok()).unwrap_or(0);
    hw.reclaim_distance = sysfs::reclaim_distance(summary.get("vendor id"), family, release);
    for (node, cpus) in &told.nodes {
        cpus.iter().filter(|cpu| cpu.index() < told.nr).for_each(|cpu| hw.node[cpu.index()] = *node);
    }
    let nodes: Vec<Cpumask> = hw.nodes_with_cpus().into_iter().map(|node| hw.cpus_of_node(node)).collect();
    let (cores, numbering) = cores(&told, &nodes);
    let set = |masks: &mut Vec<Cpumask>, groups: &[Cpumask]| {
        groups.iter().for_each(|group| group.iter().for_each(|cpu| masks[cpu.index()] = *group));
    };
    let all: Vec<Cpumask> = cores.iter().flatten().copied().collect();
    set(&mut hw.smt, &all);
    hw.cluster = hw.smt.clone();
    let packages = pieces(&cores, told.sockets);
    set(&mut hw.package, &packages);
    hw.die = hw.package.clone();
    let (llcs, caches) = match told.caches {
        Some(1) => (pieces(&cores, 1), "one last-level cache".to_owned()),
        Some(count) => (pieces(&cores, count), format!("{count} last-level caches of neighbouring cores")),
        None => (packages, "a last-level cache for each socket (how many there are is not told)".to_owned()),
    };
    set(&mut hw.llc, &llcs);
    let note = format!(
        "the topology is a guess from what lscpu counts: {numbering}, {caches}; give the machine's own: a copy of /sys, \
         or what `lscpu -J -e` prints"
    );
    let mut notes = vec![note];
    if told.nodes.is_empty() {
        notes.push("no NUMA nodes are described: all CPUs are taken to be on node 0".to_owned());
    }
    Ok((hw, notes))
}

/// What a summary tells.
struct Told {
    nr: usize,
    online: Cpumask,
    threads: usize,
    sockets: usize,
    nodes: Vec<(u32, Cpumask)>,
    caches: Option<usize>,
    virtual_machine: bool,
    arch: Arch,
}

impl Told {
    fn read(origin: &str, summary: &Summary) -> Result<Self, LoadError> {
        let list = |name: &str| summary.get(name).map(|text| cpus(origin, name, text)).transpose();
        let either =
            |a: &str, b: &str| Ok::<_, LoadError>(if let Some(mask) = list(a)? { Some(mask) } else { list(b)? });
        let number = |names: &[&str]| {
            let count = names.iter().find_map(|name| summary.get(name))?.parse::<usize>().ok()?;
            (1..=MAX_CPUS).contains(&count).then_some(count)
        };
        let online = either("on-line cpu(s) list", "on-line cpu(s) mask")?;
        let offline = either("off-line cpu(s) list", "off-line cpu(s) mask")?.unwrap_or_default();
        let count = summary.get("cpu(s)").map(str::parse::<usize>);
        let online = match (online, count) {
            (Some(online), _) => online.and_not(&offline),
            (None, Some(Ok(count))) if (1..=MAX_CPUS).contains(&count) => Cpumask::first_n(count).and_not(&offline),
            (None, Some(_)) => {
                let found = format!("CPU(s): {}", excerpt(summary.get("cpu(s)").unwrap_or_default()));
                return Err(LoadError::File { file: origin.to_owned(), found, expected: "1 to 1024 CPUs" });
            }
            (None, None) => Cpumask::EMPTY,
        };
        let Some(highest) = (online | offline).iter().last().filter(|_| !online.is_empty()) else {
            return Err(LoadError::NoCpus { file: origin.to_owned() });
        };
        let mut nodes = Vec::new();
        for (field, data) in &summary.fields {
            let node = field.strip_prefix("numa node").and_then(|rest| rest.strip_suffix(" cpu(s)"));
            if let Some(node) = node.and_then(|node| node.parse().ok()).filter(|&node: &u32| node < 1024) {
                nodes.push((node, cpus(origin, field, data)?));
            }
        }
        let arch = match summary.get("architecture") {
            None | Some("x86_64" | "i686" | "i586" | "i386") => Arch::X86,
            Some(_) => Arch::Generic,
        };
        Ok(Self {
            nr: highest.index() + 1,
            online,
            threads: number(&["thread(s) per core"]).unwrap_or(1),
            sockets: number(&["socket(s)", "cluster(s)"]).unwrap_or(1),
            nodes,
            caches: last_level_caches(summary),
            virtual_machine: summary.get("hypervisor vendor").is_some(),
            arch,
        })
    }
}

/// A list `0-3`, or a mask `0xf` (`lscpu -x`).
fn cpus(origin: &str, field: &str, text: &str) -> Result<Cpumask, LoadError> {
    let mask = match text.strip_prefix("0x") {
        Some(_) => masks::hwloc(text),
        None if text.len() <= masks::MAX_TEXT => text.parse().ok(),
        None => None,
    };
    mask.ok_or_else(|| LoadError::File {
        file: format!("{origin}: {field}"),
        found: excerpt(text),
        expected: "CPUs below 1024 such as 0-3,8",
    })
}

/// `L3 cache: 32 MiB (2 instances)` → 2, of the highest level.
fn last_level_caches(summary: &Summary) -> Option<usize> {
    let cache = |(field, data): &(String, String)| {
        let level: u32 = field.strip_prefix('l')?.strip_suffix(" cache")?.trim_end_matches('d').parse().ok()?;
        let (_, count) = data.split_once('(')?;
        let count = count.split_ascii_whitespace().next()?.parse().ok()?;
        Some((level, count))
    };
    let (_, count) = summary.fields.iter().filter_map(cache).max_by_key(|&(level, _)| level)?;
    (1..=MAX_CPUS).contains(&count).then_some(count)
}

/// The cores of each node, and how they were told apart.
fn cores(told: &Told, nodes: &[Cpumask]) -> (Vec<Vec<Cpumask>>, String) {
    let threads = told.threads;
    let of: Vec<Vec<Cpu>> = nodes.iter().map(|node| node.iter().collect()).collect();
    if threads < 2 || of.iter().any(|cpus| !cpus.len().is_multiple_of(threads)) {
        let cores = of.into_iter().map(|cpus| cpus.into_iter().map(Cpumask::of).collect()).collect();
        let why = if threads < 2 { "no SMT" } else { "no SMT, since the CPUs of a node are no whole cores" };
        return (cores, why.to_owned());
    }
    let run = |cpus: &Vec<Cpu>| cpus.windows(2).all(|pair| pair[1].index() == pair[0].index() + 1);
    // Where each of several nodes has CPUs in a row, siblings cannot be far apart. Virtual machines number so too.
    let neighbours = of.iter().all(run) && (of.len() > 1 || told.virtual_machine);
    let core = |cpus: &[Cpu], at: usize| -> Cpumask {
        let step = cpus.len() / threads;
        if neighbours {
            cpus[at * threads..(at + 1) * threads].iter().copied().collect()
        } else {
            (0..threads).map(|thread| cpus[at + thread * step]).collect()
        }
    };
    let cores = of.iter().map(|cpus| (0..cpus.len() / threads).map(|at| core(cpus, at)).collect()).collect();
    let how = if neighbours { "CPUs in a row" } else { "a CPU of the first and of each further part of a node's list" };
    (cores, format!("the {threads} threads of a core are {how}"))
}

/// `count` groups of neighbouring cores: whole nodes where they can be, else parts of nodes.
fn pieces(cores: &[Vec<Cpumask>], count: usize) -> Vec<Cpumask> {
    let union = |cores: &[Cpumask]| cores.iter().fold(Cpumask::EMPTY, |all, core| all | *core);
    let nodes = cores.len().max(1);
    if count <= nodes && nodes.is_multiple_of(count) {
        return cores.chunks(nodes / count).map(|nodes| union(&nodes.concat())).collect();
    }
    let whole =
        count.is_multiple_of(nodes) && cores.iter().all(|of| of.len().is_multiple_of(count / nodes) && !of.is_empty());
    if whole {
        return cores.iter().flat_map(|of| of.chunks(of.len() / (count / nodes))).map(union).collect();
    }
    // It does not work out: one for each node.
    cores.iter().map(|of| union(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lscpu;
    use super::*;

    fn read(text: &str) -> (Hardware, Vec<String>) {
        let summary = lscpu::summary("t", text).expect("a summary");
        hardware("t", &summary, Release::DEFAULT).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn servers_split_siblings_and_virtual_machines_pair_them() {
        let server = "CPU(s): 80\nOn-line CPU(s) list: 0-79\nThread(s) per core: 2\nSocket(s): 2\nL2 cache: 4 MiB (40 \
                      instances)\nL3 cache: 55 MiB (2 instances)\nNUMA node0 CPU(s): 0-19,40-59\nNUMA node1 CPU(s): \
                      20-39,60-79\n";
        let (hw, notes) = read(server);
        assert_eq!((hw.smt[3].to_string(), hw.llc[3].to_string()), ("3,43".to_owned(), "0-19,40-59".to_owned()));
        assert!(notes[0].starts_with("the topology is a guess"), "{notes:?}");
        let guest = "CPU(s): 8\nThread(s) per core: 2\nSocket(s): 1\nHypervisor vendor: KVM\n";
        assert_eq!(read(guest).0.smt[2].to_string(), "2-3");
        let rows = "CPU(s): 8\nThread(s) per core: 2\nNUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\n";
        assert_eq!(read(rows).0.smt[5].to_string(), "4-5");
        let robin =
            "CPU(s): 8\nThread(s) per core: 2\nSocket(s): 2\nNUMA node0 CPU(s): 0,2,4,6\nNUMA node1 CPU(s): 1,3,5,7\n";
        let (hw, _) = read(robin);
        assert_eq!((hw.smt[1].to_string(), hw.package[1].to_string()), ("1,5".to_owned(), "1,3,5,7".to_owned()));
    }

    #[test]
    fn caches_are_shared_out() {
        let text =
            |llcs| format!("CPU(s): 16\nThread(s) per core: 2\nSocket(s): 1\nL3 cache: 64 MiB ({llcs} instances)\n");
        assert_eq!(read(&text(2)).0.llc[0].to_string(), "0-3,8-11");
        assert_eq!(read(&text(1)).0.llc[0].to_string(), "0-15");
        assert_eq!(read(&text(3)).0.llc[0].to_string(), "0-15", "three do not divide eight cores");
        let (hw, notes) = read("CPU(s): 4\nSocket(s): 2\nL3 cache: 32768K\n");
        assert_eq!((hw.llc[0].to_string(), hw.smt[0].weight()), ("0-1".to_owned(), 1));
        assert!(notes[0].contains("not told"), "{notes:?}");
    }

    #[test]
    fn offline_cpus_and_masks_are_understood() {
        let (hw, _) = read("CPU(s): 8\nOn-line CPU(s) mask: 0x5f\nOff-line CPU(s) mask: 0xa0\nThread(s) per core: 1\n");
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (8, "0-4,6".to_owned()));
        let (hw, _) = read("Architecture: aarch64\nCPU(s): 4\nOn-line CPU(s) list: 0,2\nOff-line CPU(s) list: 1,3\n");
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string(), hw.arch), (4, "0,2".to_owned(), Arch::Generic));
        // Seven CPUs of two threads each are no whole cores.
        assert_eq!(read("CPU(s): 7\nThread(s) per core: 2\n").0.smt[0].weight(), 1);
    }

    #[test]
    fn counts_that_make_no_sense_are_named() {
        for text in [
            "CPU(s): 1000000000\n",
            "CPU(s): 0\n",
            "CPU(s): x\n",
            "On-line CPU(s) list: 0-x\n",
            "Model: 3\n",
            "CPU(s): 4\nNUMA node0 CPU(s): 0-99999999999\n",
        ] {
            let summary = lscpu::summary("box.txt", text).expect("a summary");
            let error = hardware("box.txt", &summary, Release::DEFAULT).expect_err(text).to_string();
            assert!(error.contains("box.txt"), "{error}");
        }
    }
}
