// SPDX-License-Identifier: GPL-2.0-or-later
//! Distances between the nodes of a case's machine, where they are more than near and far.
//!
//! One row per node, as `/sys/devices/system/node/nodeN/distance` has it. A ring of four:
//!
//! ```text
//! distances = ["10 16 22 16", "16 10 16 22", "22 16 10 16", "16 22 16 10"]
//! ```
//!
//! A node's NUMA domains hold what is near *it*: those of neighbours overlap.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::CaseError;
use crate::topology::hardware::LOCAL_DISTANCE;

/// A table of distances; without rows: none is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distances(Vec<Vec<u32>>);

/// How nodes are linked; the distance is the number of links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Each with the next, the last with the first.
    Ring,
    /// Each with the next.
    Line,
    /// Two rows of equal length, each node with its neighbours in its row and across.
    Mesh,
    /// Those whose numbers differ in one bit.
    Cube,
}

impl Links {
    /// Links on the shortest way.
    fn hops(self, nodes: u32, a: u32, b: u32) -> u32 {
        let apart = a.abs_diff(b);
        match self {
            Self::Ring => apart.min(nodes - apart),
            Self::Line => apart,
            Self::Mesh => (a / 2).abs_diff(b / 2) + (a % 2).abs_diff(b % 2),
            Self::Cube => (a ^ b).count_ones(),
        }
    }
}

impl Distances {
    /// `nodes` nodes, linked so, `step` for each link.
    pub fn linked(links: Links, nodes: u32, step: u32) -> Self {
        let row = |a| (0..nodes).map(|b| LOCAL_DISTANCE + step * links.hops(nodes, a, b)).collect();
        Self((0..nodes).map(row).collect())
    }

    /// Whether none is told.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `node_distance()` of two nodes of the table.
    pub fn between(&self, from: u32, to: u32) -> u32 {
        self.0[from as usize][to as usize]
    }

    /// The table of these nodes alone, in this order.
    pub fn of(&self, nodes: &[u32]) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        Self(nodes.iter().map(|&a| nodes.iter().map(|&b| self.between(a, b)).collect()).collect())
    }

    /// Checks that the table is one, and has `nodes` nodes or more.
    ///
    /// # Errors
    /// [`CaseError::Shape`] names what is wrong.
    pub fn check(&self, nodes: u32) -> Result<(), CaseError> {
        let wrong = |what: String| Err(CaseError::Shape { what });
        let (rows, least) = (self.0.len(), nodes as usize);
        if self.is_empty() {
            return Ok(());
        }
        if rows < least || rows > 256 {
            return wrong(format!("{rows} rows of distances, expected {least} to 256: one for each node"));
        }
        for (node, row) in self.0.iter().enumerate() {
            if row.len() != rows {
                return wrong(format!("node {node} has {} distances, expected {rows}", row.len()));
            }
            let is_off = |&(to, &distance): &(usize, &u32)| match to == node {
                true => distance != LOCAL_DISTANCE,
                false => !(LOCAL_DISTANCE + 1..=255).contains(&distance),
            };
            if let Some(to) = (0..rows).find(|&to| row[to] != self.0[to].get(node).copied().unwrap_or(row[to])) {
                return wrong(format!("the distances between nodes {node} and {to} differ by direction"));
            }
            if let Some((to, distance)) = row.iter().enumerate().find(is_off) {
                return wrong(format!(
                    "distance {distance} from node {node} to node {to}, expected 10 to itself and 11 to 255 to others"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Distances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|row| row_text(row)).collect::<Vec<_>>().join(" / "))
    }
}

fn row_text(row: &[u32]) -> String {
    row.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

impl Serialize for Distances {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|row| row_text(row)))
    }
}

impl<'de> Deserialize<'de> for Distances {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let row = |text: String| {
            let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>();
            numbers.map_err(|_| serde::de::Error::custom(CaseError::line(&text, "distances such as 10 16 22 16")))
        };
        Vec::<String>::deserialize(from)?.into_iter().map(row).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_make_the_tables_one_knows() {
        for (links, nodes, expected) in [
            (Links::Ring, 4, "10 16 22 16 / 16 10 16 22 / 22 16 10 16 / 16 22 16 10"),
            (Links::Line, 3, "10 16 22 / 16 10 16 / 22 16 10"),
            (Links::Mesh, 4, "10 16 16 22 / 16 10 22 16 / 16 22 10 16 / 22 16 16 10"),
            (Links::Cube, 4, "10 16 16 22 / 16 10 22 16 / 16 22 10 16 / 22 16 16 10"),
        ] {
            let table = Distances::linked(links, nodes, 6);
            assert_eq!(table.to_string(), expected, "{links:?}");
            assert_eq!(table.check(nodes), Ok(()));
        }
        assert_eq!(Distances::linked(Links::Ring, 8, 10).of(&[0, 3, 4]).to_string(), "10 40 50 / 40 10 20 / 50 20 10");
    }

    #[test]
    fn a_table_is_checked() {
        let table = |rows: &[&[u32]]| Distances(rows.iter().map(|row| row.to_vec()).collect());
        for (table, expected) in [
            (table(&[&[10]]), "1 rows of distances"),
            (table(&[&[10, 20], &[20]]), "node 1 has 1 distances"),
            (table(&[&[10, 10], &[10, 10]]), "distance 10 from node 0 to node 1"),
            (table(&[&[11, 20], &[20, 10]]), "distance 11 from node 0 to node 0"),
            (table(&[&[10, 256], &[256, 10]]), "distance 256"),
            (table(&[&[10, 21], &[20, 10]]), "nodes 0 and 1 differ by direction"),
        ] {
            let error = table.check(2).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
