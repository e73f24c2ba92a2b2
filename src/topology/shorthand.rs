// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines in a word: `2x20x2` is two sockets of 20 cores with two threads each.
//!
//! ```text
//! SOCKETSx[DIESdx]CORESxTHREADS[:option…]
//! ```
//!
//! | part | meaning |
//! |---|---|
//! | `SOCKETS` | packages |
//! | `DIESd` | dies in a package, each with a last-level cache of its own; 1 if left out |
//! | `CORES` | cores in a die |
//! | `THREADS` | hardware threads of a core |
//! | `:split` | siblings are numbered `N` and `N + number of cores`, as servers do (the default) |
//! | `:adjacent` | siblings are numbered one after the other: 0-1, 2-3 |
//! | `:nodes=N` | NUMA nodes in a package (1); must divide the dies, or the cores of a single die |
//! | `:nonuma` | the whole machine is one node |
//! | `:distance=N` | distance to a node of another package (20), 11 to 255 |
//! | `:near=N` | distance to another node of the same package (12), 11 to 255 |
//! | `:offline=LIST` | CPUs that are offline |
//! | `:isolated=LIST` | CPUs that are in no sched domain (isolcpus) |
//! | `:capacity=LIST@N` | CPUs with a capacity of N of 1024; may be given several times |
//!
//! `1x2dx4x2` and `1x2d4x2` are the same: one socket, two dies, 4 cores in each, 2 threads.

use super::hardware::{Arch, Hardware};
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// Why a text is no shorthand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "topology {text:?}: {problem}; expected SOCKETSx[DIESdx]CORESxTHREADS such as 2x20x2 or 1x2dx4x2, with options \
         such as :adjacent"
)]
pub struct ShorthandError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The numbers of a shorthand.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    sockets: usize,
    dies: usize,
    cores: usize,
    threads: usize,
    adjacent: bool,
    nodes: usize,
    numa: bool,
    remote: u32,
    near: u32,
    offline: Cpumask,
    isolated: Cpumask,
    capacities: Vec<(Cpumask, u64)>,
}

/// Whether `text` looks like a shorthand (starts with `NUMBERx`) rather than a file's name.
pub fn looks_like(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text[digits..].starts_with('x')
}

/// The hardware that `text` describes.
///
/// # Errors
/// If the text is no shorthand, or describes no CPU or more than [`MAX_CPUS`].
pub fn parse(text: &str) -> Result<Hardware, ShorthandError> {
    let shape = shape(text).map_err(|problem| ShorthandError { text: text.to_owned(), problem })?;
    Ok(shape.hardware())
}

fn shape(text: &str) -> Result<Shape, String> {
    let mut parts = text.trim().split(':');
    let numbers = parts.next().unwrap_or_default();
    let mut shape = counts(numbers)?;
    let nr = shape.nr_cpus();
    if nr == 0 || nr > MAX_CPUS {
        return Err(format!("{nr} CPUs are not between 1 and {MAX_CPUS}"));
    }
    for option in parts {
        shape.option(option)?;
    }
    let (places, what) = if shape.dies > 1 { (shape.dies, "dies") } else { (shape.cores, "cores") };
    if shape.nodes == 0 || places % shape.nodes != 0 {
        return Err(format!("{} nodes do not divide the {places} {what} of a package", shape.nodes));
    }
    if (shape.online()).is_empty() {
        return Err("all CPUs are offline".to_owned());
    }
    Ok(shape)
}

/// `2x20x2`, `1x2dx4x2` or `1x2d4x2`.
fn counts(text: &str) -> Result<Shape, String> {
    let text = text.replace("dx", "d").replace('d', "dx");
    let number = |part: &str| match part.parse::<usize>() {
        Ok(n) if (1..=MAX_CPUS).contains(&n) => Ok(n),
        _ => Err(format!("{part:?} is not a number from 1 to {MAX_CPUS}")),
    };
    let parts: Vec<&str> = text.split('x').collect();
    let (sockets, dies, cores, threads) = match parts.as_slice() {
        [sockets, cores, threads] => (number(sockets)?, 1, number(cores)?, number(threads)?),
        [sockets, dies, cores, threads] => {
            let dies = dies.strip_suffix('d').ok_or_else(|| format!("{dies:?} is not a number of dies such as 2d"))?;
            (number(sockets)?, number(dies)?, number(cores)?, number(threads)?)
        }
        _ => return Err(format!("{} numbers with x between them", parts.len())),
    };
    Ok(Shape {
        sockets,
        dies,
        cores,
        threads,
        adjacent: false,
        nodes: 1,
        numa: true,
        remote: 20,
        near: 12,
        offline: Cpumask::EMPTY,
        isolated: Cpumask::EMPTY,
        capacities: Vec::new(),
    })
}

impl Shape {
    fn nr_cpus(&self) -> usize {
        // At most 1024 each, so that this cannot wrap.
        self.sockets * self.dies * self.cores * self.threads
    }

    fn online(&self) -> Cpumask {
        Cpumask::first_n(self.nr_cpus()).and_not(&self.offline)
    }

    fn option(&mut self, option: &str) -> Result<(), String> {
        let possible = Cpumask::first_n(self.nr_cpus());
        let cpus = |list: &str| match list.parse::<Cpumask>() {
            Ok(mask) if mask.is_subset(&possible) && !mask.is_empty() => Ok(mask),
            _ => Err(format!("{list:?} is not a list of CPUs below {}", possible.weight())),
        };
        let distance = |text: &str| match text.parse::<u32>() {
            Ok(distance) if (11..=255).contains(&distance) => Ok(distance),
            _ => Err(format!("{text:?} is not a distance from 11 to 255")),
        };
        match option.split_once('=').unwrap_or((option, "")) {
            ("split", "") => self.adjacent = false,
            ("adjacent", "") => self.adjacent = true,
            ("nonuma", "") => self.numa = false,
            ("nodes", n) => self.nodes = n.parse().map_err(|_| format!("{n:?} is not a number of nodes"))?,
            ("distance", n) => self.remote = distance(n)?,
            ("near", n) => self.near = distance(n)?,
            ("offline", list) => self.offline = self.offline | cpus(list)?,
            ("isolated", list) => self.isolated = self.isolated | cpus(list)?,
            ("capacity", text) => {
                let (list, capacity) = text.split_once('@').ok_or_else(|| format!("{text:?} is not LIST@CAPACITY"))?;
                let capacity = capacity.parse().ok().filter(|capacity| (1..=1024).contains(capacity));
                let capacity = capacity.ok_or_else(|| format!("{text:?} has no capacity from 1 to 1024"))?;
                self.capacities.push((cpus(list)?, capacity));
            }
            _ => return Err(format!("there is no option {option:?}")),
        }
        Ok(())
    }

    fn hardware(&self) -> Hardware {
        let cores = self.sockets * self.dies * self.cores;
        let core_of = |cpu: usize| if self.adjacent { cpu / self.threads } else { cpu % cores };
        let mut hw = Hardware::separate(self.nr_cpus());
        hw.online = self.online();
        hw.isolated = self.isolated;
        hw.arch = Arch::X86;
        let group = |cores: usize| self.groups(&hw.online, |cpu| core_of(cpu) / cores);
        let (smt, die, package) = (group(1), group(self.cores), group(self.cores * self.dies));
        hw.cluster = smt.clone();
        hw.smt = smt;
        hw.llc = die.clone();
        hw.die = die;
        hw.package = package;
        let cores_of_node = self.cores * self.dies / self.nodes;
        let node = |cpu| if self.numa { (core_of(cpu) / cores_of_node) as u32 } else { 0 };
        hw.node = (0..self.nr_cpus()).map(node).collect();
        if self.numa {
            hw.distance = self.distances();
        }
        for (cpus, capacity) in &self.capacities {
            cpus.iter().for_each(|cpu| hw.capacity[cpu.index()] = *capacity);
        }
        hw
    }

    /// Per CPU the online CPUs with the same `group_of`, itself included.
    fn groups(&self, online: &Cpumask, group_of: impl Fn(usize) -> usize) -> Vec<Cpumask> {
        let nr = self.nr_cpus();
        let mut groups = vec![Cpumask::EMPTY; nr];
        online.iter().for_each(|cpu| groups[group_of(cpu.index())].set(cpu));
        (0..nr).map(|cpu| groups[group_of(cpu)] | Cpumask::of(Cpu(cpu as u16))).collect()
    }

    fn distances(&self) -> Vec<Vec<u32>> {
        let nodes = self.sockets * self.nodes;
        let distance = |a: usize, b: usize| match (a == b, a / self.nodes == b / self.nodes) {
            (true, _) => super::hardware::LOCAL_DISTANCE,
            (_, true) => self.near,
            _ => self.remote,
        };
        (0..nodes).map(|a| (0..nodes).map(|b| distance(a, b)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_split_siblings_and_adjacent_pairs_them() {
        let split = parse("2x20x2").expect("a shorthand");
        assert_eq!(split.nr_cpu_ids, 80);
        assert_eq!(split.smt[3].to_string(), "3,43");
        assert_eq!(split.llc[0].to_string(), "0-19,40-59");
        assert_eq!(split.node[25], 1);
        assert_eq!(split.node_distance(0, 1), 20);
        let adjacent = parse("1x2d4x2:adjacent").expect("a shorthand");
        assert_eq!(adjacent.smt[3].to_string(), "2-3");
        assert_eq!(adjacent.llc[9].to_string(), "8-15");
        assert_eq!(adjacent.package[0].to_string(), "0-15");
        assert_eq!(parse("1x2dx4x2:adjacent").expect("a shorthand"), adjacent);
    }

    #[test]
    fn nodes_divide_a_package() {
        let hw = parse("2x4d8x2:nodes=2:near=11:distance=32:adjacent").expect("a shorthand");
        assert_eq!(hw.nodes_with_cpus(), [0, 1, 2, 3]);
        assert_eq!(hw.cpus_of_node(1).to_string(), "32-63");
        assert_eq!((hw.node_distance(0, 1), hw.node_distance(0, 2)), (11, 32));
        let one = parse("2x4x1:nonuma").expect("a shorthand");
        assert_eq!(one.nodes_with_cpus(), [0]);
    }

    #[test]
    fn offline_isolated_and_small_cpus_are_listed() {
        let hw = parse("1x4x2:offline=5:isolated=2-3:capacity=0-1@430").expect("a shorthand");
        assert_eq!(hw.online.to_string(), "0-4,6-7");
        assert_eq!(hw.smt[1].to_string(), "1");
        assert_eq!(hw.isolated.to_string(), "2-3");
        assert_eq!(hw.capacity[..3], [430, 430, 1024]);
    }

    #[test]
    fn what_is_no_shorthand_is_refused_with_the_grammar() {
        for text in [
            "",
            "2",
            "2x",
            "2x2",
            "2x2x2x2",
            "0x1x1",
            "1x1x0",
            "64x64x2",
            "1x4x2:foo",
            "1x4x2:nodes=3",
            "1x4x2:nodes=0",
            "1x4x2:offline=9",
            "1x4x1:offline=0-3",
            "1x4x2:distance=10",
            "1x4x2:capacity=0@0",
            "1x4x2:capacity=0",
            "-1x2x2",
            "1xdx2x2",
            "1x2d",
            "99999999999999999999x1x1",
            "1x4x2:offline=",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.to_string().contains("SOCKETSx[DIESdx]CORESxTHREADS"), "{error}");
        }
    }

    #[test]
    fn file_names_do_not_look_like_a_shorthand() {
        assert!(looks_like("2x20x2") && looks_like("1x"));
        for text in ["topology.tar.gz", "x2", "20", "/2x20x2", "", "2-x"] {
            assert!(!looks_like(text), "{text}");
        }
    }
}
