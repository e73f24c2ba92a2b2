// SPDX-License-Identifier: GPL-2.0-or-later
//! One sched domain and its flags.

use crate::cpumask::Cpumask;

bitflags::bitflags! {
    /// Flags of a sched domain. **Source**: include/linux/sched/sd_flags.h; the names are the kernel's, the bit values ours.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub struct SdFlags: u32 {
        /// Balance when about to become idle.
        const BALANCE_NEWIDLE = 1 << 0;
        /// Balance on exec.
        const BALANCE_EXEC = 1 << 1;
        /// Balance on fork.
        const BALANCE_FORK = 1 << 2;
        /// Balance on wakeup: the slow path.
        const BALANCE_WAKE = 1 << 3;
        /// Consider waking the task on the waking CPU.
        const WAKE_AFFINE = 1 << 4;
        /// Members have different CPU capacities.
        const ASYM_CPUCAPACITY = 1 << 5;
        /// Members have every CPU capacity of the machine.
        const ASYM_CPUCAPACITY_FULL = 1 << 6;
        /// Members share CPU capacity: SMT siblings.
        const SHARE_CPUCAPACITY = 1 << 7;
        /// Members share a cluster (an L2 or a bus).
        const CLUSTER = 1 << 8;
        /// Members share the last-level cache (SD_SHARE_PKG_RESOURCES, since 6.9 SD_SHARE_LLC).
        const SHARE_LLC = 1 << 9;
        /// Only a single load-balancing instance.
        const SERIALIZE = 1 << 10;
        /// Pack busy tasks onto the higher-priority CPUs.
        const ASYM_PACKING = 1 << 11;
        /// Prefer to spread tasks to sibling domains.
        const PREFER_SIBLING = 1 << 12;
        /// Members overlap with those of other domains of the level.
        const OVERLAP = 1 << 13;
        /// Members are in different NUMA nodes.
        const NUMA = 1 << 14;
    }
}

impl SdFlags {
    /// The flag that the kernel calls `name`, such as `SD_NUMA`; `None` for one that nothing here reads.
    pub fn from_kernel_name(name: &str) -> Option<Self> {
        match name.strip_prefix("SD_")? {
            "SHARE_PKG_RESOURCES" => Some(Self::SHARE_LLC),
            name => Self::from_name(name),
        }
    }
}

impl std::fmt::Display for SdFlags {
    /// The kernel's names without their `SD_`, with blanks between.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.iter_names().map(|(name, _)| name).collect();
        f.pad(&names.join(" "))
    }
}

/// One sched domain: shared by the CPUs of its span that have it in their hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Position in the table of topology levels, SMT lowest. Orders a CPU's hierarchy.
    pub level: u32,
    /// The level's name as in debugfs: `SMT`, `CLS`, `MC`, `DIE` or `PKG`, `NUMA`.
    pub name: String,
    /// The CPUs of the domain (`sched_domain_span()`).
    pub span: Cpumask,
    /// The domain's flags.
    pub flags: SdFlags,
    /// Percent above which an imbalance counts (110 for SMT, else 117; before 5.10 125 above the LLC).
    pub imbalance_pct: u32,
    /// Tasks up to which an imbalance between NUMA nodes is allowed (since 5.18; 0 elsewhere).
    pub imb_numa_nr: u32,
}
