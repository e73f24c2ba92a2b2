// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine of a case: last-level caches, one line each, and what lies above them.
//!
//! ```text
//! node0 has_idle_cores nr_idle_scan=3: 0,4 1,5 / 2,6 3,7
//!   │         │             │           │   └── the second cluster of the LLC
//!   │         │             │           └────── cores: their CPUs as a cpulist, `@446` for a capacity below 1024
//!   └─────────┴─────────────┴────────────────── NUMA node; the LLC's hidden state when the case begins
//! ```
//!
//! CPUs below the highest one named that are in no line are holes in the numbering: possible, never online.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpumask::Cpumask;
use crate::scenario::{CaseError, Distances};
use crate::units::Cpu;

/// The capacity of a biggest CPU (`SCHED_CAPACITY_SCALE`).
pub const FULL_CAPACITY: u64 = 1024;

/// One core: an SMT group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// Its hardware threads.
    pub cpus: Cpumask,
    /// `cpu_capacity_orig` of each, 1 to 1024.
    pub capacity: u64,
}

/// One last-level cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Llc {
    /// NUMA node.
    pub node: u32,
    /// has_idle_cores when the case begins; need not be true to the state.
    pub has_idle_cores: bool,
    /// nr_idle_scan when the case begins; `None`: as many as the LLC has CPUs.
    pub nr_idle_scan: Option<u32>,
    /// Cores, by cluster. One cluster means that the machine has none.
    pub clusters: Vec<Vec<Core>>,
}

impl Llc {
    /// The cores of all clusters.
    pub fn cores(&self) -> impl Iterator<Item = &Core> {
        self.clusters.iter().flatten()
    }

    /// Every CPU of the LLC, online or not.
    pub fn cpus(&self) -> Cpumask {
        self.cores().fold(Cpumask::EMPTY, |all, core| all | core.cpus)
    }
}

/// The machine's shape.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// One line per LLC.
    pub llcs: Vec<Llc>,
    /// CPUs that are present and offline.
    #[serde(default, skip_serializing_if = "Cpumask::is_empty")]
    pub offline: Cpumask,
    /// CPUs that are online and in no sched domain (`isolcpus=`).
    #[serde(default, skip_serializing_if = "Cpumask::is_empty")]
    pub isolated: Cpumask,
    /// Nodes per near group; 0: all nodes are equally far from each other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub near_nodes: u32,
    /// The top NUMA level is beyond RECLAIM_DISTANCE: no affine wakeups across it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub far: bool,
    /// Distances between the nodes; empty: as `near_nodes` and `far` say.
    #[serde(default, skip_serializing_if = "Distances::is_empty")]
    pub distances: Distances,
    /// Domains have SD_BALANCE_WAKE: wakeups can take the slow path (mainline sets it nowhere).
    #[serde(default, skip_serializing_if = "is_false")]
    pub balance_wake: bool,
}

pub(crate) fn is_zero(n: &u32) -> bool {
    *n == 0
}

pub(crate) fn is_false(b: &bool) -> bool {
    !*b
}

impl Shape {
    /// Whether `other` is the same machine but for the hidden state of its LLCs: it has the same topology then.
    pub fn is_built_as(&self, other: &Self) -> bool {
        let settings = |shape: &Self| (shape.near_nodes, shape.far, shape.balance_wake);
        let distances = self.distances == other.distances;
        let llcs = |shape: &Self| shape.llcs.len();
        let pairs = || self.llcs.iter().zip(&other.llcs);
        distances
            && (settings(self), llcs(self)) == (settings(other), llcs(other))
            && (self.offline, self.isolated) == (other.offline, other.isolated)
            && pairs().all(|(a, b)| a.node == b.node && a.clusters == b.clusters)
    }

    /// Every CPU named, online or not.
    pub fn present(&self) -> Cpumask {
        self.llcs.iter().fold(Cpumask::EMPTY, |all, llc| all | llc.cpus())
    }

    /// CPUs that run tasks.
    pub fn online(&self) -> Cpumask {
        self.present().and_not(&self.offline)
    }

    /// One above the highest CPU named.
    pub fn nr_cpu_ids(&self) -> usize {
        self.present().iter().last().map_or(0, |cpu| cpu.index() + 1)
    }

    /// The nodes of all LLCs, ascending.
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.llcs.iter().map(|llc| llc.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The cores of all LLCs.
    pub fn cores(&self) -> impl Iterator<Item = &Core> {
        self.llcs.iter().flat_map(Llc::cores)
    }

    /// Checks what [`topology`](Self::topology) does not: each CPU in one core, somebody online.
    ///
    /// # Errors
    /// [`CaseError::Shape`] names what is wrong.
    pub fn check(&self) -> Result<(), CaseError> {
        let wrong = |what: String| Err(CaseError::Shape { what });
        let mut seen = Cpumask::EMPTY;
        for core in self.cores() {
            if core.cpus.is_empty() {
                return wrong("a core has no CPU".to_owned());
            }
            if core.cpus.intersects(&seen) {
                return wrong(format!("CPU {} is in two cores", core.cpus & seen));
            }
            if core.capacity == 0 || core.capacity > FULL_CAPACITY {
                return wrong(format!("capacity {} of core {}, expected 1 to 1024", core.capacity, core.cpus));
            }
            seen = seen | core.cpus;
        }
        if self.online().is_empty() {
            return wrong("no CPU is online".to_owned());
        }
        let named = self.offline | self.isolated;
        if !named.is_subset(&seen) {
            return wrong(format!("CPU {} is offline or isolated, but in no LLC", named.and_not(&seen)));
        }
        if let Some(llc) = self.llcs.iter().find(|llc| llc.node > 255) {
            return wrong(format!("node {}, expected at most 255", llc.node));
        }
        if !self.distances.is_empty() && (self.near_nodes > 0 || self.far) {
            return wrong("distances beside near_nodes or far: they say the same".to_owned());
        }
        self.distances.check(self.nodes().last().map_or(0, |node| node + 1))?;
        Ok(())
    }

    /// `0: smt siblings` as one mask per CPU: what is online of its core; an absent or offline CPU has itself.
    pub(crate) fn smt_masks(&self, nr_cpu_ids: usize) -> Vec<Cpumask> {
        let online = self.online();
        let mut masks: Vec<Cpumask> = (0..nr_cpu_ids).map(|cpu| Cpumask::of(Cpu(cpu as u16))).collect();
        for core in self.cores() {
            let siblings = core.cpus & online;
            siblings.iter().for_each(|cpu| masks[cpu.index()] = siblings);
        }
        masks
    }
}

impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cpus)?;
        if self.capacity != FULL_CAPACITY { write!(f, "@{}", self.capacity) } else { Ok(()) }
    }
}

impl FromStr for Core {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        let (cpus, capacity) = match text.split_once('@') {
            Some((cpus, capacity)) => (cpus, capacity.parse().map_err(|_| CaseError::line(text, "a capacity"))?),
            None => (text, FULL_CAPACITY),
        };
        Ok(Self { cpus: cpus.parse()?, capacity })
    }
}

impl fmt::Display for Llc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node{}", self.node)?;
        if self.has_idle_cores {
            f.write_str(" has_idle_cores")?;
        }
        if let Some(nr) = self.nr_idle_scan {
            write!(f, " nr_idle_scan={nr}")?;
        }
        f.write_str(":")?;
        for (i, cluster) in self.clusters.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " /" })?;
            cluster.iter().try_for_each(|core| write!(f, " {core}"))?;
        }
        Ok(())
    }
}

impl FromStr for Llc {
    type Err = CaseError;

    fn from_str(line: &str) -> Result<Self, CaseError> {
        let bad = |what| CaseError::line(line, what);
        let (head, cores) = line.split_once(':').ok_or_else(|| bad("`node0: 0,4 1,5`"))?;
        let mut llc = Self { node: 0, has_idle_cores: false, nr_idle_scan: None, clusters: Vec::new() };
        for word in head.split_whitespace() {
            if let Some(node) = word.strip_prefix("node") {
                llc.node = node.parse().map_err(|_| bad("node and a number"))?;
            } else if let Some(nr) = word.strip_prefix("nr_idle_scan=") {
                llc.nr_idle_scan = Some(nr.parse().map_err(|_| bad("a number after nr_idle_scan="))?);
            } else if word == "has_idle_cores" {
                llc.has_idle_cores = true;
            } else {
                return Err(bad("node, has_idle_cores or nr_idle_scan= before the colon"));
            }
        }
        for cluster in cores.split('/') {
            let cores = cluster.split_whitespace().map(str::parse).collect::<Result<Vec<Core>, _>>()?;
            if cores.is_empty() {
                return Err(bad("at least one core in each cluster"));
            }
            llc.clusters.push(cores);
        }
        Ok(llc)
    }
}

impl Serialize for Llc {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Llc {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_print_as_they_were_read() {
        for line in [
            "node0: 0",
            "node3 has_idle_cores: 0,4 1,5 / 2,6 3,7",
            "node0 nr_idle_scan=0: 0-7@446",
            "node1 has_idle_cores nr_idle_scan=12: 0 1@512 2,130",
        ] {
            assert_eq!(line.parse::<Llc>().expect(line).to_string(), line);
        }
    }

    #[test]
    fn bad_lines_are_refused_with_what_was_expected() {
        for (line, expected) in [
            ("node0 0,1", "`node0: 0,4 1,5`"),
            ("nodeX: 0", "node and a number"),
            ("node0 idle: 0", "before the colon"),
            ("node0: 0 /", "at least one core"),
            ("node0: 0@much", "a capacity"),
        ] {
            let error = line.parse::<Llc>().expect_err(line).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_shape_is_checked() {
        let shape = |lines: &[&str]| Shape {
            llcs: lines.iter().map(|line| line.parse().expect("a line")).collect(),
            ..Shape::default()
        };
        assert_eq!(shape(&["node0: 0,1", "node1: 4,5"]).nr_cpu_ids(), 6);
        assert!(shape(&["node0: 0,1", "node1: 1,2"]).check().is_err());
        assert!(shape(&[]).check().is_err());
        let offline = Shape { offline: Cpumask::first_n(2), ..shape(&["node0: 0 1"]) };
        assert!(offline.check().is_err());
    }
}
