// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware facts from a copy of sysfs, or from the live one.

use super::files::Files;
use super::hardware::{Arch, Hardware, RECLAIM_DISTANCE, RECLAIM_DISTANCE_ZEN};
use super::load::LoadError;
use super::masks::{self, excerpt};
use super::nodes;
use super::release::Release;
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

pub(super) const CPU: &str = "sys/devices/system/cpu";

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
    hw.arch = arch(files, &hw.online, &mut notes);
    nodes::nodes(files, &mut hw, &mut notes)?;
    hw.reclaim_distance = reclaim_distance_of(files, release);
    let mut without_cache = Cpumask::EMPTY;
    let online = hw.online;
    for cpu in online.iter() {
        one_cpu(files, &mut hw, cpu, &mut without_cache)?;
    }
    if !without_cache.is_empty() {
        notes.push(no_cache(&without_cache));
    }
    capacities(files, &mut hw)?;
    Ok((hw, notes))
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

/// The architecture by /proc/cpuinfo; without it x86, unless CPUs tell a capacity.
fn arch(files: &Files, online: &Cpumask, notes: &mut Vec<String>) -> Arch {
    let Some(text) = files.text("proc/cpuinfo") else {
        let tells = online.first().is_some_and(|cpu| files.has(&format!("{CPU}/cpu{cpu}/cpu_capacity")));
        return if tells { Arch::Generic } else { Arch::X86 };
    };
    let has = |name: &str| text.lines().any(|line| line.starts_with(name));
    if has("vendor_id") && has("cpu family") {
        return Arch::X86;
    }
    if !has("CPU implementer") && !has("hart") {
        notes.push(
            "this architecture has its own rules for sched domains, not modelled here: arm64's are taken".to_owned(),
        );
    }
    Arch::Generic
}

/// The same from /proc/cpuinfo.
fn reclaim_distance_of(files: &Files, release: Release) -> u32 {
    let field = |name: &str| {
        let line = files.text("proc/cpuinfo")?.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let family: u32 = field("cpu family").and_then(|family| family.parse().ok()).unwrap_or(0);
    reclaim_distance(field("vendor_id"), family, release)
}

/// **Source**: arch/x86/kernel/cpu/amd.c and hygon.c, node_reclaim_distance.
pub(super) fn reclaim_distance(vendor: Option<&str>, family: u32, release: Release) -> u32 {
    let zen = matches!(vendor, Some("AuthenticAMD" | "HygonGenuine")) && family >= 0x17;
    if zen && release.has_zen_reclaim_distance() { RECLAIM_DISTANCE_ZEN } else { RECLAIM_DISTANCE }
}

/// What is said of CPUs without a description of their caches.
pub(super) fn no_cache(cpus: &Cpumask) -> String {
    format!("nothing tells the caches of CPUs {cpus}: the last-level cache is assumed to be the package's")
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
    let cluster = match topology(&["cluster_cpus"])? {
        // Kernels before 5.16 have no such file; later ones make clusters of x86 of its second-level caches.
        None if hw.arch == Arch::X86 => cache(files, cpu, 2)?.filter(|&(level, _)| level == 2).map(|(_, mask)| mask),
        cluster => cluster,
    };
    hw.cluster[at] = cluster.map_or(hw.smt[at], |mask| (mask & online) | own);
    hw.llc[at] = match cache(files, cpu, u32::MAX)?.map(|(_, mask)| mask) {
        Some(mask) => (mask & online) | own,
        None => {
            without_cache.set(cpu);
            hw.package[at]
        }
    };
    Ok(())
}

/// The CPUs that share the data or unified cache of the highest level up to `limit`, and that level.
///
/// **Source**: cpu_llc_shared_mask() on x86 (L3, else L2), cache_shared_cpu_map of the last level elsewhere;
/// cpu_l2c_shared_mask().
fn cache(files: &Files, cpu: Cpu, limit: u32) -> Result<Option<(u32, Cpumask)>, LoadError> {
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
        if level > limit {
            continue;
        }
        let Some(mask) = masks::read(files, &file("shared_cpu_list"), &file("shared_cpu_map"))? else { continue };
        if last.is_none_or(|(highest, _)| level >= highest) {
            last = Some((level, mask));
        }
    }
    Ok(last)
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

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Release = Release::new(6, 1);

    fn read(files: &[(&str, &str)]) -> (Hardware, Vec<String>) {
        hardware(&Files::of(files), RELEASE).unwrap_or_else(|error| panic!("{error}"))
    }

    fn fails(files: &[(&str, &str)]) -> String {
        hardware(&Files::of(files), RELEASE).expect_err("no hardware").to_string()
    }

    #[test]
    fn masks_may_be_hexadecimal_and_lists_missing() {
        let (hw, _) = read(&[
            ("sys/devices/system/cpu/possible", "0-3\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings", "00000000,00000005\n"),
            ("sys/devices/system/cpu/cpu2/topology/thread_siblings", "5\n"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
            ("sys/devices/system/cpu/cpu1/cache/index0/level", "1\n"),
            ("sys/devices/system/cpu/cpu1/cache/index0/type", "Instruction\n"),
            ("sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_map", "f\n"),
            ("sys/devices/system/cpu/cpu1/cache/index2/level", "2\n"),
            ("sys/devices/system/cpu/cpu1/cache/index2/type", "Unified\n"),
            ("sys/devices/system/cpu/cpu1/cache/index2/shared_cpu_map", "a\n"),
            ("sys/devices/system/cpu/cpu3/topology/core_siblings_list", "1,3\n"),
        ]);
        assert_eq!(hw.online.to_string(), "0-3", "CPUs with a folder");
        assert_eq!((hw.smt[0].to_string(), hw.smt[1].to_string()), ("0,2".to_owned(), "1,3".to_owned()));
        assert_eq!(hw.llc[1].to_string(), "1,3");
        assert_eq!(hw.llc[3].to_string(), "1,3", "without caches the package's");
    }

    #[test]
    fn holes_and_offline_cpus_are_kept_apart() {
        let (hw, notes) = read(&[
            ("sys/devices/system/cpu/possible", "0-7"),
            ("sys/devices/system/cpu/online", "0,2,7"),
            ("sys/devices/system/cpu/isolated", "2"),
            ("sys/devices/system/cpu/cpu2/topology/core_cpus_list", "2-3"),
            ("sys/devices/system/cpu/cpu3/node1", ""),
            ("sys/devices/system/node/node0/cpulist", "0,2"),
            ("sys/devices/system/node/node1/cpulist", "7"),
            ("sys/devices/system/node/node2/cpulist", ""),
        ]);
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (8, "0,2,7".to_owned()));
        assert_eq!(hw.smt[2].to_string(), "2", "CPU 3 is offline");
        assert_eq!(hw.node, [0, 0, 0, 1, 0, 0, 0, 1], "an offline CPU's node by its link");
        assert_eq!(hw.isolated.to_string(), "2");
        assert!(notes.iter().any(|note| note.starts_with("no node distances are told")), "{notes:?}");
    }

    #[test]
    fn capacities_may_differ() {
        let (hw, _) = read(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/cpu/cpu0/cpu_capacity", "446"),
            ("sys/devices/system/cpu/cpu1/cpu_capacity", "446"),
            ("sys/devices/system/cpu/cpu3/cpu_capacity", "1024"),
        ]);
        assert_eq!(hw.capacity, [446, 446, 1024, 1024]);
        assert_eq!(hw.arch, Arch::Generic, "x86 has no such file");
    }

    #[test]
    fn clusters_have_a_file_or_are_those_of_the_second_cache() {
        let cache = |level: &'static str| -> [(&str, &str); 3] {
            match level {
                "2" => [
                    ("sys/devices/system/cpu/cpu0/cache/index2/level", "2"),
                    ("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified"),
                    ("sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_map", "f"),
                ],
                _ => [
                    ("sys/devices/system/cpu/cpu0/cache/index3/level", "3"),
                    ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified"),
                    ("sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-7"),
                ],
            }
        };
        let x86 = ("proc/cpuinfo", "vendor_id : GenuineIntel\ncpu family : 6\n");
        let mut files = vec![("sys/devices/system/cpu/online", "0-7"), x86];
        files.extend(cache("2").into_iter().chain(cache("3")));
        let (hw, _) = read(&files);
        assert_eq!((hw.cluster[0].to_string(), hw.llc[0].to_string()), ("0-3".to_owned(), "0-7".to_owned()));
        files.push(("sys/devices/system/cpu/cpu0/topology/cluster_cpus_list", "0-1"));
        assert_eq!(read(&files).0.cluster[0].to_string(), "0-1");
        // Elsewhere a second-level cache is no cluster.
        let arm = ("proc/cpuinfo", "CPU implementer : 0x41\n");
        let files: Vec<_> = [files[0], arm].into_iter().chain(cache("2")).collect();
        assert_eq!(read(&files).0.cluster[0].to_string(), "0");
    }

    #[test]
    fn numbers_may_have_holes() {
        let (hw, _) = read(&[
            ("sys/devices/system/cpu/possible", "0,2,4-6"),
            ("sys/devices/system/cpu/online", "0,2,4-6"),
            ("sys/devices/system/cpu/cpu4/topology/package_cpus_list", "4-6"),
        ]);
        assert_eq!(
            (hw.nr_cpu_ids, hw.online.to_string()),
            (7, "0,2,4-6".to_owned()),
            "nr_cpu_ids is one past the last"
        );
        assert_eq!(hw.package[4].to_string(), "4-6");
    }

    #[test]
    fn zen_has_a_reclaim_distance_of_its_own() {
        let cpuinfo = "processor : 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n";
        let files = [("sys/devices/system/cpu/online", "0"), ("proc/cpuinfo", cpuinfo)];
        assert_eq!(read(&files).0.reclaim_distance, 32);
        let old = hardware(&Files::of(&files), Release::new(5, 3)).expect("hardware").0;
        assert_eq!(old.reclaim_distance, 30);
        let intel = [files[0], ("proc/cpuinfo", "vendor_id : GenuineIntel\ncpu family : 25\n")];
        assert_eq!(read(&intel).0.reclaim_distance, 30);
    }

    #[test]
    fn architectures_are_told_apart_by_cpuinfo() {
        let arch = |cpuinfo| {
            let (hw, notes) = read(&[("sys/devices/system/cpu/online", "0"), ("proc/cpuinfo", cpuinfo)]);
            (hw.arch, notes.iter().any(|note| note.contains("not modelled")))
        };
        assert_eq!(arch("vendor_id : GenuineIntel\ncpu family : 6\n"), (Arch::X86, false));
        assert_eq!(arch("CPU implementer : 0x41\n"), (Arch::Generic, false));
        assert_eq!(arch("hart : 1\n"), (Arch::Generic, false));
        assert_eq!(arch("vendor_id : IBM/S390\n"), (Arch::Generic, true));
    }

    #[test]
    fn files_that_make_no_sense_are_named() {
        let online = ("sys/devices/system/cpu/online", "0-1");
        for (path, text, expected) in [
            ("sys/devices/system/cpu/possible", "0-x", "a list of CPUs"),
            ("sys/devices/system/cpu/possible", "0-5000", "below 1024"),
            ("sys/devices/system/cpu/cpu1/topology/core_cpus", "xyz", "a hexadecimal mask"),
            ("sys/devices/system/cpu/cpu1/cpu_capacity", "0", "a CPU capacity"),
            ("sys/devices/system/node/node0/distance", "10 300", "distances from 10 to 255"),
            ("sys/devices/system/node/node5000/cpulist", "0", "nodes below 1024"),
        ] {
            let error = fails(&[online, (path, text)]);
            let path = path.split("/node5000").next().expect("a path");
            assert!(error.contains(path) && error.contains(expected), "{error}");
        }
        assert!(fails(&[("sys/devices/system/cpu/cpu2000/online", "1")]).contains("CPU 2000"));
        assert!(fails(&[("sys/devices/system/cpu/online", "")]).contains("no online CPU is described"));
    }
}
