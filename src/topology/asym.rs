// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs of different capacity: which domains are marked for it.

use super::SdFlags;
use super::hardware::Hardware;
use super::levels::Level;
use super::release::Release;
use crate::cpumask::Cpumask;

/// Which domains have CPUs of different capacity.
pub(super) enum Asymmetry {
    /// All CPUs are the same.
    None,
    /// Before 5.14: from this level on each CPU sees a biggest one.
    From(usize),
    /// Since 5.14: the CPUs of each capacity.
    Classes(Vec<Cpumask>, Cpumask),
}

impl Asymmetry {
    /// **Source**: asym_cpu_capacity_level(), v5.11; asym_cpu_capacity_scan(), v6.1.
    pub(super) fn new(hw: &Hardware, cpu_map: &Cpumask, levels: &[Level], release: Release) -> Self {
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
    pub(super) fn flags(&self, level: usize, span: &Cpumask) -> SdFlags {
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
