// SPDX-License-Identifier: GPL-2.0-or-later
//! Hardware facts from a table of lscpu.

use std::collections::BTreeMap;

use super::hardware::Hardware;
use super::load::LoadError;
use super::lscpu::Table;
use super::masks::excerpt;
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// **Source**: include/linux/numa.h, MAX_NUMNODES with NODES_SHIFT 10.
const MAX_NODES: u32 = 1024;

/// The hardware that a table describes, and what had to be assumed, in full sentences.
///
/// # Errors
/// If the table has no CPU, or one that cannot be.
pub(super) fn hardware(origin: &str, table: &Table) -> Result<(Hardware, Vec<String>), LoadError> {
    let reader = Reader { origin, table };
    let (rows, listed) = reader.cpus()?;
    let online: Cpumask = rows.iter().filter(|&(_, row)| reader.is_online(row)).map(|(&cpu, _)| cpu).collect();
    let (Some(&highest), Some(_)) = (rows.keys().last(), online.first()) else {
        return Err(LoadError::NoCpus { file: origin.to_owned() });
    };
    let mut hw = Hardware::separate(highest.index() + 1);
    hw.online = online;
    let mut notes = Vec::new();
    if table.unnamed {
        notes.push(
            "no line names the columns: they are taken for those of `lscpu -p` (CPU, core, socket, node, caches)"
                .to_owned(),
        );
    }
    let holes = Cpumask::first_n(hw.nr_cpu_ids).and_not(&listed);
    if !holes.is_empty() {
        notes.push(format!("CPUs {holes} have no line: they are taken for offline"));
    }
    let rows: Vec<(Cpu, &[String])> = rows.into_iter().filter(|(cpu, _)| online.test(*cpu)).collect();
    groups(&reader, &mut hw, &rows, &mut notes);
    reader.nodes(&mut hw, &rows, &mut notes)?;
    Ok((hw, notes))
}

struct Reader<'a> {
    origin: &'a str,
    table: &'a Table,
}

type Rows<'a> = BTreeMap<Cpu, &'a [String]>;

impl<'a> Reader<'a> {
    /// The rows by CPU, and the CPUs that have one.
    fn cpus(&self) -> Result<(Rows<'a>, Cpumask), LoadError> {
        let bad = |row: usize, found: String, expected| {
            Err(LoadError::File { file: format!("{}: row {row}", self.origin), found, expected })
        };
        let Some(at) = self.table.column("cpu") else {
            let found = format!("the columns {}", excerpt(&self.table.columns.join(",")));
            let expected = "a column CPU; make it with: lscpu -p=CPU,CORE,SOCKET,NODE,CACHE,ONLINE";
            return Err(LoadError::File { file: self.origin.to_owned(), found, expected });
        };
        let (mut rows, mut listed) = (Rows::new(), Cpumask::EMPTY);
        for (number, row) in self.table.rows.iter().enumerate() {
            let text = &row[at];
            // lscpu prints rows of dashes for a machine that it does not understand.
            if text.is_empty() {
                continue;
            }
            let Some(cpu) = text.parse().ok().and_then(Cpu::new) else {
                return bad(number + 1, format!("CPU {}", excerpt(text)), "a number of a CPU below 1024");
            };
            if rows.insert(cpu, row.as_slice()).is_some() {
                return bad(number + 1, format!("CPU {cpu} again"), "one row for each CPU");
            }
            listed.set(cpu);
        }
        debug_assert!(rows.len() <= MAX_CPUS);
        Ok((rows, listed))
    }

    fn cell(&self, row: &'a [String], name: &str) -> Option<&'a str> {
        let at = self.table.column(name)?;
        row.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
    }

    /// By its column; without one, CPUs that lscpu knows nothing of are offline.
    fn is_online(&self, row: &'a [String]) -> bool {
        if self.table.column("online").is_some() {
            return self.cell(row, "online").is_some_and(|text| matches!(text, "yes" | "Y" | "y" | "true" | "1"));
        }
        let places = ["core", "socket", "node"].map(|name| self.table.column(name));
        places.iter().all(Option::is_none) || places.iter().flatten().any(|&at| !row[at].is_empty())
    }

    /// The columns of caches that hold data, as (level, column), the highest level first.
    fn caches(&self) -> Vec<(u32, usize)> {
        let level = |name: &str| name.strip_prefix('l')?.trim_end_matches(['d', 'i']).parse::<u32>().ok();
        let columns = self.table.columns.iter().enumerate().filter(|(_, name)| !name.ends_with('i'));
        let mut caches: Vec<(u32, usize)> = columns.filter_map(|(at, name)| Some((level(name)?, at))).collect();
        caches.sort_unstable_by(|a, b| b.cmp(a));
        caches
    }

    fn nodes(&self, hw: &mut Hardware, rows: &[(Cpu, &'a [String])], notes: &mut Vec<String>) -> Result<(), LoadError> {
        if !rows.iter().any(|(_, row)| self.cell(row, "node").is_some()) {
            notes.push("no NUMA nodes are described: all CPUs are taken to be on node 0".to_owned());
        }
        for &(cpu, row) in rows {
            let Some(text) = self.cell(row, "node") else { continue };
            let Some(node) = text.parse().ok().filter(|&node: &u32| node < MAX_NODES) else {
                let (file, found) = (format!("{}: CPU {cpu}", self.origin), format!("node {}", excerpt(text)));
                return Err(LoadError::File { file, found, expected: "a number of a node below 1024" });
            };
            hw.node[cpu.index()] = node;
        }
        Ok(())
    }
}

/// Cores, clusters, caches and packages: CPUs with the same number in a column.
fn groups<'a>(reader: &Reader<'a>, hw: &mut Hardware, rows: &[(Cpu, &'a [String])], notes: &mut Vec<String>) {
    // Numbers of cores begin anew in each socket where lscpu prints physical ones.
    let package = |row: &'a [String]| {
        let socket = reader.cell(row, "socket")?;
        Some(["drawer", "book"].map(|name| reader.cell(row, name).unwrap_or("")).into_iter().chain([socket]).collect())
    };
    let within = |row: &'a [String], name: &str| {
        let mut key: Vec<&str> = package(row).unwrap_or_default();
        key.push(reader.cell(row, name)?);
        Some(key)
    };
    if let Some(smt) = grouped(hw, rows, |row| within(row, "core")) {
        hw.smt = smt;
    } else {
        notes.push("no cores are described: each CPU is taken for a core of its own".to_owned());
    }
    hw.package = grouped(hw, rows, package).unwrap_or_else(|| {
        notes.push("no sockets are described: one is taken for all CPUs".to_owned());
        vec![hw.online; hw.nr_cpu_ids]
    });
    hw.die = hw.package.clone();
    // CPUs with a cache of the same number and level; a CPU without the last level has another.
    let caches = reader.caches();
    let key = |row: &'a [String], up_to: u32| {
        let of = |&(level, at): &(u32, usize)| (!row[at].is_empty()).then(|| vec![level.to_string(), row[at].clone()]);
        caches.iter().filter(|&&(level, _)| level <= up_to).find_map(of)
    };
    // The kernel's clusters on x86 are the CPUs of one L2. Where that is the last level, it is rather another
    // architecture, on which an L2 is no cluster.
    let has_third = caches.iter().any(|&(level, at)| level > 2 && rows.iter().any(|(_, row)| !row[at].is_empty()));
    let second = |row: &'a [String]| key(row, 2).filter(|key| has_third && key[0] == "2");
    hw.cluster = grouped(hw, rows, |row| within(row, "cluster"))
        .or_else(|| grouped(hw, rows, second))
        .unwrap_or_else(|| hw.smt.clone());
    let last = grouped(hw, rows, |row| key(row, u32::MAX));
    let without: Cpumask = rows.iter().filter(|(_, row)| key(row, u32::MAX).is_none()).map(|&(cpu, _)| cpu).collect();
    hw.llc = last.unwrap_or_else(|| hw.package.clone());
    if !without.is_empty() {
        without.iter().for_each(|cpu| hw.llc[cpu.index()] = hw.package[cpu.index()]);
        notes.push(super::sysfs::no_cache(&without));
    }
}

/// Per CPU those with the same key; `None` if no CPU has one. CPUs without are alone.
fn grouped<'a, K: Ord>(
    hw: &Hardware,
    rows: &[(Cpu, &'a [String])],
    key: impl Fn(&'a [String]) -> Option<K>,
) -> Option<Vec<Cpumask>> {
    let mut groups: BTreeMap<K, Cpumask> = BTreeMap::new();
    for &(cpu, row) in rows {
        if let Some(key) = key(row) {
            groups.entry(key).or_default().set(cpu);
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut masks: Vec<Cpumask> = hw.cpus().map(Cpumask::of).collect();
    for mask in groups.values() {
        mask.iter().for_each(|cpu| masks[cpu.index()] = *mask);
    }
    Some(masks)
}

#[cfg(test)]
mod tests {
    use super::super::lscpu;
    use super::*;

    fn read(text: &str) -> (Hardware, Vec<String>) {
        let table = if lscpu::looks_parsable(text) { lscpu::parsable("t", text) } else { lscpu::extended("t", text) };
        hardware("t", &table.expect("a table")).unwrap_or_else(|error| panic!("{error}"))
    }

    fn fails(text: &str) -> String {
        hardware("t", &lscpu::parsable("t", text).expect("a table")).expect_err("no hardware").to_string()
    }

    #[test]
    fn columns_make_groups() {
        let (hw, notes) = read(
            "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,0,0\n2,2,1,3,,2,2,2,1\n\
             4,0,0,0,,0,0,0,0\n5,1,0,0,,1,1,0,0\n6,2,1,3,,2,2,2,1\n",
        );
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (7, "0-2,4-6".to_owned()));
        assert_eq!((hw.smt[4].to_string(), hw.cluster[0].to_string()), ("0,4".to_owned(), "0-1,4-5".to_owned()));
        assert_eq!((hw.llc[5].to_string(), hw.package[6].to_string()), ("0-1,4-5".to_owned(), "2,6".to_owned()));
        assert_eq!(hw.node, [0, 0, 3, 0, 0, 0, 3]);
        assert_eq!(notes, ["CPUs 3 have no line: they are taken for offline"]);
    }

    #[test]
    fn physical_cores_begin_anew_in_each_socket() {
        let (hw, _) = read("# CPU,Core,Socket\n0,0,0\n1,0,1\n2,0,0\n3,0,1\n");
        assert_eq!((hw.smt[0].to_string(), hw.smt[1].to_string()), ("0,2".to_owned(), "1,3".to_owned()));
    }

    #[test]
    fn offline_cpus_are_told_by_a_column_or_by_dashes() {
        let (hw, _) =
            read("CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n0 0 0 0 0:0:0:0 yes\n1 - - - - no\n2 0 0 1 1:1:1:0 yes\n");
        assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (3, "0,2".to_owned()));
        assert_eq!(read("# CPU,Core\n0,0\n1,\n").0.online.to_string(), "0");
        assert_eq!(read("# CPU\n0\n1\n").0.online.to_string(), "0-1", "nothing tells");
    }

    #[test]
    fn what_no_column_tells_is_said() {
        let (hw, notes) = read("# CPU\n0\n1\n");
        assert_eq!((hw.smt[0].weight(), hw.llc[0].weight(), hw.package[0].weight()), (1, 2, 2));
        for what in ["no cores", "no sockets", "no NUMA nodes", "caches of CPUs 0-1"] {
            assert!(notes.iter().any(|note| note.contains(what)), "{what}: {notes:?}");
        }
        let (hw, notes) = read("0,0,0,0,,0,0,0,0\n1,0,0,0,,0,0,0,0\n");
        assert_eq!(hw.smt[0].weight(), 2);
        assert!(notes[0].starts_with("no line names the columns"), "{notes:?}");
        // One CPU without an L3: its last cache is its L2.
        let (hw, _) = read("# CPU,Core,Socket,Node,,L2,L3\n0,0,0,0,,0,0\n1,1,0,0,,1,0\n2,2,0,0,,2,\n");
        assert_eq!((hw.llc[0].to_string(), hw.llc[2].to_string()), ("0-1".to_owned(), "2".to_owned()));
    }

    #[test]
    fn rows_that_make_no_sense_are_named() {
        assert!(fails("# CPU,Core\n1000000000,0\n").contains("row 1: found CPU \"1000000000\""));
        assert!(fails("# CPU,Core\n0,0\n0,1\n").contains("row 2: found CPU 0 again"));
        assert!(fails("# CPU,Node\n0,99999\n").contains("CPU 0: found node \"99999\""));
        assert!(fails("# Core\n0\n").contains("a column CPU"), "{}", fails("# Core\n0\n"));
        assert!(fails("# CPU,Core\n,\n-,-\n").contains("no online CPU"));
    }
}
