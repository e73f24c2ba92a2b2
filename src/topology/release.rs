// SPDX-License-Identifier: GPL-2.0-or-later
//! What differs between kernel releases when sched domains are built.

use std::fmt;

/// A kernel release, as far as building sched domains depends on it: `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
}

impl Release {
    /// Taken when nothing tells the kernel.
    pub const DEFAULT: Self = Self::new(6, 1);

    /// Release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The release in a uname such as `6.1.0-57-amd64`, or behind "Linux version " in the text of /proc/version.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("Linux version ").unwrap_or(text);
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = text.split_once('.')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some(Self::new(major.parse().ok()?, rest[..digits].parse().ok()?))
    }

    /// Whether there is a level of clusters (CONFIG_SCHED_CLUSTER, taken as set).
    pub fn has_cluster_level(self) -> bool {
        self >= Self::new(5, 16)
    }

    /// Whether clusters are marked SD_CLUSTER.
    pub fn has_cluster_flag(self) -> bool {
        self >= Self::new(6, 7)
    }

    /// Name of the level of all CPUs of a node: `DIE`, since 6.7 `PKG`.
    pub fn package_name(self) -> &'static str {
        if self >= Self::new(6, 7) { "PKG" } else { "DIE" }
    }

    /// What imbalance_pct starts from: 117, before 5.10 125.
    pub fn base_imbalance_pct(self) -> u32 {
        if self >= Self::new(5, 10) { 117 } else { 125 }
    }

    /// How imb_numa_nr is computed.
    pub fn imb_numa(self) -> ImbNuma {
        match self {
            r if r >= Self::new(6, 0) => ImbNuma::Eighth,
            r if r >= Self::new(5, 18) => ImbNuma::Quarter,
            _ => ImbNuma::Absent,
        }
    }

    /// Whether asymmetric capacity is classified per domain, with SD_ASYM_CPUCAPACITY_FULL.
    pub fn classifies_asym_per_domain(self) -> bool {
        self >= Self::new(5, 14)
    }

    /// Whether domains below an asymmetric one balance on wakeup.
    pub fn asym_balances_on_wake(self) -> bool {
        self < Self::new(5, 7)
    }

    /// Which distances make NUMA levels.
    pub fn numa_distances(self) -> NumaDistances {
        match self {
            r if r >= Self::new(5, 18) => NumaDistances::NodesWithCpus,
            r if r >= Self::new(5, 12) => NumaDistances::AllNodes,
            _ => NumaDistances::FromNodeZero,
        }
    }

    /// Whether NUMA levels carry SD_OVERLAP.
    pub fn has_overlap_flag(self) -> bool {
        self < Self::new(6, 17)
    }

    /// Whether SD_NUMA, SD_OVERLAP and SD_SERIALIZE need two groups to keep a level alive.
    pub fn numa_flags_need_groups(self) -> bool {
        self >= Self::new(5, 10)
    }

    /// Whether AMD's Zen takes nodes up to distance 32 for near.
    pub fn has_zen_reclaim_distance(self) -> bool {
        self >= Self::new(5, 4)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// How a release computes `imb_numa_nr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImbNuma {
    /// Before 5.18: there is none.
    Absent,
    /// 5.18 and 5.19: a quarter of a node with a single LLC.
    Quarter,
    /// Since 6.0: an eighth of a node with a single LLC, and at least 1.
    Eighth,
}

/// Which node distances a release makes NUMA levels of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumaDistances {
    /// Before 5.12: those from node 0.
    FromNodeZero,
    /// 5.12 to 5.17: those between any two nodes.
    AllNodes,
    /// Since 5.18: those between nodes that have CPUs.
    NodesWithCpus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_what_kernels_print() {
        for (text, major, minor) in [
            ("6.1.0-57-amd64", 6, 1),
            ("Linux version 5.10.0-46-amd64 (debian-kernel@lists.debian.org) (gcc-10) #1 SMP", 5, 10),
            ("5.3.0-rc7", 5, 3),
            ("v6.12", 6, 12),
            ("7.3.4+deb13-amd64\n", 7, 3),
        ] {
            assert_eq!(Release::parse(text), Some(Release::new(major, minor)), "{text}");
        }
        for text in ["", "6", "x.y", "6.", "Linux version "] {
            assert_eq!(Release::parse(text), None, "{text}");
        }
    }
}
