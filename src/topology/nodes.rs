// SPDX-License-Identifier: GPL-2.0-or-later
//! NUMA nodes and their distances from a copy of sysfs.

use super::files::Files;
use super::hardware::{Hardware, LOCAL_DISTANCE};
use super::load::LoadError;
use super::masks::{self, excerpt};
use super::sysfs::CPU;
use crate::cpumask::Cpumask;
use crate::units::Cpu;

const NODE: &str = "sys/devices/system/node";
/// **Source**: include/linux/numa.h, MAX_NUMNODES with NODES_SHIFT 10.
const MAX_NODES: usize = 1024;
/// What is said where no table of distances is found.
pub(super) const NO_DISTANCES: &str = "no node distances are told: 10 within a node and 20 between nodes are assumed";

/// Nodes without CPUs, as a full sentence; `None` if there is none.
pub(super) fn memory_only(hw: &Hardware, nodes: impl Iterator<Item = u32>) -> Option<String> {
    let with_cpus = hw.nodes_with_cpus();
    let mut without: Vec<u32> = nodes.filter(|node| !with_cpus.contains(node)).collect();
    without.sort_unstable();
    without.dedup();
    let list = without.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match without.len() {
        0 => None,
        1 => Some(format!("node {list} has memory only, or CPUs that are all offline")),
        _ => Some(format!("nodes {list} have memory only, or CPUs that are all offline")),
    }
}

/// Nodes and their distances.
///
/// # Errors
/// If a file makes no sense, or a node cannot be.
pub(super) fn nodes(files: &Files, hw: &mut Hardware, notes: &mut Vec<String>) -> Result<(), LoadError> {
    let nodes: Vec<usize> = files.numbered(NODE, "node");
    if nodes.is_empty() {
        notes.push("no NUMA nodes are described: all CPUs are taken to be on node 0".to_owned());
    }
    let possible = Cpumask::first_n(hw.nr_cpu_ids);
    let (mut listed, mut mapped) = (Vec::new(), Vec::new());
    for &node in &nodes {
        if node >= MAX_NODES {
            let (file, found) = (format!("{}: {NODE}", files.origin), format!("node {node}"));
            return Err(LoadError::File { file, found, expected: "nodes below 1024" });
        }
        let read = |list: &str, map: &str| -> Result<Option<Cpumask>, LoadError> {
            let path = |name: &str| if name.is_empty() { String::new() } else { format!("{NODE}/node{node}/{name}") };
            Ok(masks::read(files, &path(list), &path(map))?.map(|mask| mask & possible))
        };
        let list = read("cpulist", "cpumap")?.unwrap_or_default();
        let map = read("", "cpumap")?.unwrap_or(list);
        if (list & hw.online) != (map & hw.online) {
            notes.push(format!(
                "node {node} has the CPUs {list} by its cpulist and {map} by its cpumap: the list is taken"
            ));
        }
        listed.push(list);
        mapped.push(map);
    }
    // Kernels differ in which of the two files has the offline CPUs: what one lacks the other tells, and then the CPU's
    // own link, which is there for offline CPUs too.
    let named = listed.iter().fold(Cpumask::EMPTY, |all, list| all | *list);
    for ((&node, list), map) in nodes.iter().zip(&listed).zip(&mapped) {
        (*list | map.and_not(&named)).iter().for_each(|cpu| hw.node[cpu.index()] = node as u32);
    }
    for cpu in hw.cpus() {
        if let Some(&node) = files.numbered(&format!("{CPU}/cpu{cpu}"), "node").first().filter(|&&n| n < MAX_NODES) {
            hw.node[cpu.index()] = node as u32;
        }
    }
    distances(files, hw, &nodes, notes)?;
    notes.extend(memory_only(hw, nodes.iter().map(|&node| node as u32)));
    Ok(())
}

/// `node_distance()`: row A of the table stands in node A's file, one column for each online node, in node order.
///
/// A copy may have lost the folders of some nodes but not their columns. Then a node's column is where its own row has
/// the local distance.
fn distances(files: &Files, hw: &mut Hardware, nodes: &[usize], notes: &mut Vec<String>) -> Result<(), LoadError> {
    let online: Vec<usize> = match masks::read(files, &format!("{NODE}/online"), "")? {
        Some(mask) => mask.iter().map(Cpu::index).collect(),
        None => nodes.to_vec(),
    };
    let size = nodes.iter().chain(&online).max().map_or(0, |&node| node + 1);
    let (rows, mut unusable) = rows(files, nodes)?;
    let own = own_columns(&rows);
    let mut longer = Vec::new();
    for (node, row) in &rows {
        let columns: Vec<(usize, usize)> = match (row.len(), &own) {
            (n, _) if n == online.len() => online.iter().copied().enumerate().collect(),
            (n, _) if n == nodes.len() => nodes.iter().copied().enumerate().collect(),
            (n, Some(own)) if n > online.len() => {
                longer.push(*node);
                own.clone()
            }
            _ => {
                unusable.push(*node);
                continue;
            }
        };
        if hw.distance.is_empty() {
            hw.distance = vec![Vec::new(); size];
        }
        let mut full: Vec<u32> = (0..size).map(|to| hw.node_distance(*node as u32, to as u32)).collect();
        columns.into_iter().for_each(|(at, to)| full[to] = row[at]);
        hw.distance[*node] = full;
    }
    if !longer.is_empty() {
        notes.push(format!(
            "the distances of nodes {longer:?} have more columns than there are nodes: a node's column is taken to be where \
             its own row has 10"
        ));
    }
    if !unusable.is_empty() {
        unusable.sort_unstable();
        notes.push(format!(
            "the distances of nodes {unusable:?} are below 10 or have not one column per online node: 10 and 20 are assumed"
        ));
    }
    if hw.distance.is_empty() && hw.nodes_with_cpus().len() > 1 {
        notes.push(NO_DISTANCES.to_owned());
    }
    Ok(())
}

/// The rows that have distances, and the nodes whose rows have none that a kernel has.
#[expect(clippy::type_complexity, reason = "the two lists are taken apart at once")]
fn rows(files: &Files, nodes: &[usize]) -> Result<(Vec<(usize, Vec<u32>)>, Vec<usize>), LoadError> {
    let (mut rows, mut unusable) = (Vec::new(), Vec::new());
    for &node in nodes {
        let path = format!("{NODE}/node{node}/distance");
        let Some(text) = files.text(&path) else { continue };
        let row: Result<Vec<u8>, _> = text.split_ascii_whitespace().take(2 * MAX_NODES).map(str::parse).collect();
        let Ok(row) = row else {
            let (file, found) = (format!("{}: {path}", files.origin), excerpt(text));
            return Err(LoadError::File { file, found, expected: "distances from 10 to 255, such as 10 21" });
        };
        let row: Vec<u32> = row.into_iter().map(u32::from).collect();
        if row.iter().any(|&distance| distance < LOCAL_DISTANCE) {
            unusable.push(node);
        } else {
            rows.push((node, row));
        }
    }
    Ok((rows, unusable))
}

/// Column and node of each row, by the one place where it has the local distance; `None` unless each row has one, all
/// rows are as long, and columns ascend as nodes do.
fn own_columns(rows: &[(usize, Vec<u32>)]) -> Option<Vec<(usize, usize)>> {
    let column = |(node, row): &(usize, Vec<u32>)| {
        let mut local = row.iter().enumerate().filter(|(_, distance)| **distance == LOCAL_DISTANCE);
        local.next().filter(|_| local.next().is_none()).map(|(at, _)| (at, *node))
    };
    let own: Vec<(usize, usize)> = rows.iter().map(column).collect::<Option<_>>()?;
    let fits = rows.windows(2).all(|pair| pair[0].1.len() == pair[1].1.len()) && own.is_sorted_by(|a, b| a.0 < b.0);
    fits.then_some(own)
}

#[cfg(test)]
mod tests {
    use super::super::release::Release;
    use super::super::sysfs;
    use super::*;

    fn read(files: &[(&str, &str)]) -> (Hardware, Vec<String>) {
        sysfs::hardware(&Files::of(files), Release::new(6, 1)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn distance_columns_are_the_online_nodes() {
        let (hw, notes) = read(&[
            ("sys/devices/system/cpu/online", "0-2"),
            ("sys/devices/system/node/online", "0,2-3"),
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node0/distance", "10 21 17\n"),
            ("sys/devices/system/node/node2/cpulist", "1-2"),
            ("sys/devices/system/node/node2/distance", "21 10 28\n"),
            // Memory only.
            ("sys/devices/system/node/node3/cpulist", "\n"),
            ("sys/devices/system/node/node3/distance", "17 28\n"),
        ]);
        assert_eq!((hw.node_distance(0, 2), hw.node_distance(0, 3), hw.node_distance(2, 3)), (21, 17, 28));
        assert_eq!((hw.node_distance(3, 0), hw.node_distance(3, 3)), (20, 10), "its row has a column too few");
        assert!(notes.iter().any(|note| note.contains("nodes [3]")), "{notes:?}");
        assert!(notes.iter().any(|note| note.starts_with("node 3 has memory only")), "{notes:?}");
        assert_eq!(hw.nodes_with_cpus(), [0, 2]);
        assert_eq!(hw.nodes(), [0, 2]);
    }

    #[test]
    fn rows_longer_than_the_list_of_nodes_are_read_by_their_own_column() {
        // Nodes 1 and 3 are not in the copy, and neither is the list of those online.
        let mut files = vec![
            ("sys/devices/system/cpu/online", "0-2"),
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node0/distance", "10 16 22 28\n"),
            ("sys/devices/system/node/node2/cpulist", "1"),
            ("sys/devices/system/node/node2/distance", "22 24 10 30\n"),
        ];
        let (hw, notes) = read(&files);
        assert_eq!((hw.node_distance(0, 2), hw.node_distance(2, 0), hw.node_distance(0, 0)), (22, 22, 10));
        assert!(notes.iter().any(|note| note.contains("more columns than there are nodes")), "{notes:?}");
        // Two places could be node 2's own.
        files[4].1 = "22 10 10 30\n";
        let (hw, notes) = read(&files);
        assert_eq!((hw.node_distance(0, 2), hw.distance.len()), (20, 0));
        assert!(notes.iter().any(|note| note.contains("nodes [0, 2]")), "{notes:?}");
    }

    #[test]
    fn offline_cpus_are_in_the_list_or_in_the_map() {
        let (hw, notes) = read(&[
            ("sys/devices/system/cpu/possible", "0-7"),
            ("sys/devices/system/cpu/online", "0-1,4-5"),
            ("sys/devices/system/node/node0/cpulist", "0-1"),
            ("sys/devices/system/node/node0/cpumap", "0f"),
            ("sys/devices/system/node/node1/cpulist", "4-7"),
            ("sys/devices/system/node/node1/cpumap", "30"),
        ]);
        assert_eq!(hw.node, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(!notes.iter().any(|note| note.contains("by its cpulist")), "{notes:?}");
    }

    #[test]
    fn a_list_and_a_map_that_disagree_about_online_cpus_are_told_of() {
        let (hw, notes) = read(&[
            ("sys/devices/system/cpu/online", "0-3"),
            ("sys/devices/system/node/node0/cpulist", "0-1"),
            ("sys/devices/system/node/node0/cpumap", "7"),
            ("sys/devices/system/node/node1/cpulist", "2-3"),
        ]);
        assert_eq!(hw.node, [0, 0, 1, 1]);
        assert!(notes.iter().any(|note| note.contains("0-1 by its cpulist and 0-2 by its cpumap")), "{notes:?}");
    }
}
