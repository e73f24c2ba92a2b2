// SPDX-License-Identifier: GPL-2.0-or-later
//! A topology as text of at most 80 columns: the machine, one line per last-level cache, then the sched domains.
//!
//! ```text
//! node 0
//!   LLC 0    40 CPUs  20 cores  0-19 / 40-59
//! node 1
//!   LLC 1    40 CPUs  20 cores  20-39 / 60-79
//! ```
//!
//! Cores are written by their threads: `0-19 / 40-59` are the first and the second threads of 20 cores (0 and 40 are
//! siblings), `0-15 by 2` are 8 cores of two neighbours each (0 and 1), and cores of no such order stand one by one.

use std::fmt::Write as _;

use super::hardware::Hardware;
use super::load::Loaded;
use super::{Domain, SdFlags, Topology};
use crate::cpumask::Cpumask;
use crate::units::{Cpu, is_unseen};

/// Columns of a terminal.
const WIDTH: usize = 80;

/// All that is known of a loaded topology: its source (a line of its own, of any length), the machine, its domains, the kernel's settings and the notes.
/// This is what `sisdiff topology` prints.
pub fn describe(loaded: &Loaded) -> String {
    let origin: String = loaded.origin().chars().map(printable).collect();
    let mut text = origin + "\n";
    text += &paragraph("", &summary(&loaded.topology));
    text.push('\n');
    text += &machine(&loaded.topology, &loaded.hardware.isolated);
    text += &clusters(&loaded.hardware);
    text.push('\n');
    text += &domains(&loaded.topology);
    let known = settings(loaded);
    if !known.is_empty() {
        text.push('\n');
        text += &known;
    }
    text.push('\n');
    for note in &loaded.notes {
        text += &paragraph("note: ", note);
    }
    text
}

/// The machine and its domains, without where they came from. `isolated` CPUs are marked.
pub fn draw(topology: &Topology, isolated: &Cpumask) -> String {
    format!("{}\n{}", machine(topology, isolated), domains(topology))
}

/// `80 CPUs, 40 cores of 2 threads, 2 LLCs, 2 nodes`.
pub fn summary(topology: &Topology) -> String {
    let online = topology.online();
    let cores = cores(topology, online);
    let widest = cores.iter().map(Cpumask::weight).max().unwrap_or(1);
    let (llcs, _) = llcs(topology, online);
    let mut nodes: Vec<u32> = online.iter().map(|cpu| topology.node(cpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut text = count(online.weight() as usize, "CPU");
    let _ = write!(text, ", {}", count(cores.len(), "core"));
    let same = cores.iter().all(|core| core.weight() == widest);
    match (widest, same) {
        (1, _) => text += " without SMT",
        (_, true) => text += &format!(" of {widest} threads"),
        (_, false) => text += &format!(" of 1 to {widest} threads"),
    }
    let _ = write!(text, ", {}, {}", count(llcs.len(), "LLC"), count(nodes.len(), "node"));
    let missing = topology.nr_cpu_ids() - online.weight() as usize;
    if missing > 0 {
        let _ = write!(text, ", {missing} of {} CPUs offline", topology.nr_cpu_ids());
    }
    if topology.asym_cpucapacity() {
        text += ", asymmetric capacity";
    }
    text
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// One line per LLC, under its node.
fn machine(topology: &Topology, isolated: &Cpumask) -> String {
    let online = topology.online();
    let mut nodes: Vec<u32> = topology.cpus().map(|cpu| topology.node(cpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let (llcs, alone) = llcs(topology, online);
    let mut text = String::new();
    for node in nodes {
        let of_node: Cpumask = topology.cpus().filter(|&cpu| topology.node(cpu) == node).collect();
        let _ = writeln!(text, "node {node}");
        for (at, llc) in llcs.iter().enumerate() {
            if llc.first().is_some_and(|cpu| of_node.test(cpu)) {
                text += &llc_line(topology, &format!("LLC {at}"), llc);
            }
        }
        for (what, mask) in [
            ("alone", alone.and_not(isolated)),
            ("isolated", *isolated & *online),
            ("offline", Cpumask::first_n(topology.nr_cpu_ids()).and_not(online)),
        ] {
            let mask = mask & of_node;
            if !mask.is_empty() {
                text += &llc_line(topology, what, &mask);
            }
        }
    }
    text += &capacities(topology);
    text
}

/// The spans of the LLC domains, ascending, and the online CPUs that have none.
fn llcs(topology: &Topology, online: &Cpumask) -> (Vec<Cpumask>, Cpumask) {
    let mut spans = topology.parts().llcs.clone();
    spans.sort_by_key(|span| (span.first(), *span));
    let alone = online.iter().filter(|&cpu| topology.sd_llc(cpu).is_none()).collect();
    (spans, alone)
}

fn llc_line(topology: &Topology, name: &str, cpus: &Cpumask) -> String {
    let cores = cores(topology, cpus);
    let head = format!("  {name:<8} {:>9} {:>10}  ", count(cpus.weight() as usize, "CPU"), count(cores.len(), "core"));
    paragraph(&head, &cores_text(&cores))
}

/// The cores of `cpus`, each as the threads that are in `cpus`, in the order of their first CPU.
fn cores(topology: &Topology, cpus: &Cpumask) -> Vec<Cpumask> {
    let mut left = *cpus;
    let mut cores = Vec::new();
    while let Some(cpu) = left.first() {
        let core = (*topology.smt_mask(cpu) & left) | Cpumask::of(cpu);
        left = left.and_not(&core);
        cores.push(core);
    }
    cores
}

/// Cores by their threads, see the head of this file.
fn cores_text(cores: &[Cpumask]) -> String {
    let threads = cores.first().map_or(0, Cpumask::weight) as usize;
    if threads == 0 || cores.iter().any(|core| core.weight() as usize != threads) {
        return one_by_one(cores);
    }
    let all = cores.iter().fold(Cpumask::EMPTY, |all, core| all | *core);
    if threads == 1 {
        return all.to_string();
    }
    let neighbours =
        |core: &Cpumask| core.iter().last().map(Cpu::index) == core.first().map(|c| c.index() + threads - 1);
    if cores.iter().all(neighbours) {
        return format!("{all} by {threads}");
    }
    let strand = |at: usize| cores.iter().filter_map(|core| core.iter().nth(at)).collect::<Cpumask>();
    let strands: Vec<Cpumask> = (0..threads).map(strand).collect();
    // Written by threads, the nth CPUs of all strands must be siblings.
    let mut rows = strands.iter().map(Cpumask::iter).collect::<Vec<_>>();
    let in_order = cores.iter().all(|core| rows.iter_mut().filter_map(Iterator::next).collect::<Cpumask>() == *core);
    let text = strands.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / ");
    let cores = one_by_one(cores);
    if in_order && text.len() <= cores.len() { text } else { cores }
}

/// `0,5 1,6 2`.
fn one_by_one(cores: &[Cpumask]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The clusters, where they are something between a core and a last-level cache.
fn clusters(hw: &Hardware) -> String {
    let of = |cpu: Cpu| hw.cluster[cpu.index()] & hw.online;
    let between = |cpu: Cpu| of(cpu) != hw.smt[cpu.index()] & hw.online && of(cpu) != hw.llc[cpu.index()] & hw.online;
    if !hw.online.iter().any(between) {
        return String::new();
    }
    let mut clusters: Vec<Cpumask> = hw.online.iter().map(of).collect();
    clusters.sort_by_key(|cluster| (cluster.first(), *cluster));
    clusters.dedup();
    paragraph("clusters  ", &one_by_one(&clusters))
}

/// The CPUs of each capacity, if there is more than one.
fn capacities(topology: &Topology) -> String {
    let of = |cpu: Cpu| topology.parts().capacity_orig[cpu.index()];
    let mut all: Vec<u64> = topology.cpus().map(of).collect();
    all.sort_unstable();
    all.dedup();
    let mut text = String::new();
    if all.len() > 1 {
        for capacity in all {
            let cpus: Cpumask = topology.cpus().filter(|&cpu| of(cpu) == capacity).collect();
            text += &paragraph(&format!("capacity {capacity:>4}  "), &cpus.to_string());
        }
    }
    text
}

/// The domains of a CPU bottom up, CPUs whose domains have the same shape together.
fn domains(topology: &Topology) -> String {
    let mut groups: Vec<(Vec<Shape<'_>>, Cpumask)> = Vec::new();
    for cpu in topology.online().iter() {
        let chain: Vec<Shape<'_>> = topology.hierarchy(cpu).iter().map(|&id| Shape::new(topology.domain(id))).collect();
        match groups.iter_mut().find(|(have, _)| *have == chain) {
            Some((_, cpus)) => cpus.set(cpu),
            None => groups.push((chain, Cpumask::of(cpu))),
        }
    }
    let with_imb = topology.domains().iter().any(|domain| domain.imb_numa_nr > 0);
    let mut text = String::new();
    for (chain, cpus) in &groups {
        text += &paragraph("sched domains of CPUs ", &cpus.to_string());
        if chain.is_empty() {
            text += "  none\n";
        }
        for shape in chain {
            text += &shape.text(with_imb);
        }
    }
    text
}

/// What domains of different CPUs have in common.
#[derive(PartialEq, Eq)]
struct Shape<'a> {
    name: &'a str,
    weight: u32,
    flags: SdFlags,
    imbalance_pct: u32,
    imb_numa_nr: u32,
}

impl<'a> Shape<'a> {
    fn new(domain: &'a Domain) -> Self {
        Self {
            name: &domain.name,
            weight: domain.span.weight(),
            flags: domain.flags,
            imbalance_pct: domain.imbalance_pct,
            imb_numa_nr: domain.imb_numa_nr,
        }
    }

    fn text(&self, with_imb: bool) -> String {
        let name: String = self.name.chars().take(8).collect();
        let mut text =
            format!("  {name:<4} {:>9}  imbalance_pct {}", count(self.weight as usize, "CPU"), self.imbalance_pct);
        if with_imb {
            let _ = write!(text, "  imb_numa_nr {}", self.imb_numa_nr);
        }
        text.push('\n');
        text + &paragraph("       ", &self.flags.to_string())
    }
}

/// The kernel's settings, one line each.
fn settings(loaded: &Loaded) -> String {
    let snapshot = &loaded.snapshot;
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &paragraph(&format!("{name:<16} "), &value);
        }
    };
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    line("kernel", snapshot.kernel_release.clone());
    line("HZ", snapshot.hz.map(|hz| format!("{hz} (from jiffies and uptime)")));
    line("group scheduling", snapshot.group_sched.map(on));
    line("autogroup", snapshot.autogroup.map(on));
    line("migration cost", snapshot.migration_cost_ns.map(|ns| format!("{ns} ns")));
    let costs = snapshot.max_idle_balance_cost_ns.iter().flatten();
    line("avg_idle at most", costs.max().map(|&ns| format!("{} ns (2 * max_idle_balance_cost)", ns.saturating_mul(2))));
    let features = snapshot.features.iter().map(|(name, on)| format!("{}{name}", if *on { "" } else { "NO_" }));
    let features = features.collect::<Vec<_>>().join(" ");
    line("features", Some(features).filter(|features| !features.is_empty()));
    text
}

/// `text` behind `head`, broken at blanks, commas and hyphens before column 80; further lines are indented like the
/// first. Characters that could upset a terminal come out as `?`.
fn paragraph(head: &str, text: &str) -> String {
    let clean: String = text.chars().map(printable).collect();
    let room = WIDTH - head.chars().count().min(WIDTH / 2);
    let indent = " ".repeat(head.chars().count());
    let mut lines: Vec<String> = vec![String::new()];
    for piece in pieces(&clean) {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + piece.trim_end().chars().count() > room {
            lines.push(piece.to_owned());
        } else {
            line.push_str(piece);
        }
    }
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let line = format!("{}{line}", if at == 0 { head } else { &indent });
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn printable(c: char) -> char {
    if is_unseen(c) { '?' } else { c }
}

/// Pieces that end where a line may break: behind a blank, or behind the comma of a cpulist.
fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive([' ', ',']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Release, TopologySource, load_for};

    fn loaded(shorthand: &str) -> Loaded {
        let source = TopologySource::Shorthand(shorthand.to_owned());
        load_for(&source, Some(Release::new(6, 1))).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn cores_are_written_by_their_threads() {
        let cores = |lists: &[&str]| lists.iter().map(|list| list.parse().expect("a cpulist")).collect::<Vec<_>>();
        for (lists, text) in [
            (&["0,4", "1,5", "2,6", "3,7"][..], "0-3 / 4-7"),
            (&["0-1", "2-3", "6-7"], "0-3,6-7 by 2"),
            (&["0-3", "4-7"], "0-7 by 4"),
            (&["0", "1", "5"], "0-1,5"),
            (&["0,5", "1"], "0,5 1"),
            // The second threads are not in the order of the first ones.
            (&["0,3", "1,2"], "0,3 1-2"),
            (&["0,40", "4,44"], "0,40 4,44"),
        ] {
            assert_eq!(cores_text(&cores(lists)), text);
        }
    }

    #[test]
    fn nothing_is_wider_than_a_terminal() {
        for text in ["16x8x8", "1x64x1:offline=1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31", "4x4d8x2:nodes=4:adjacent"]
        {
            let loaded = loaded(text);
            for line in describe(&loaded).lines().skip(1).chain(draw(&loaded.topology, &Cpumask::EMPTY).lines()) {
                assert!(line.chars().count() <= WIDTH, "{text}: {line:?}");
            }
        }
    }

    #[test]
    fn offline_isolated_and_lonely_cpus_have_lines_of_their_own() {
        let loaded = loaded("1x4x2:offline=5:isolated=2-3");
        let text = describe(&loaded);
        assert!(text.contains("7 CPUs, 4 cores of 1 to 2 threads, 1 LLC, 1 node, 1 of 8 CPUs offline"), "{text}");
        assert!(text.contains("  isolated    2 CPUs    2 cores  2-3\n"), "{text}");
        assert!(text.contains("  offline      1 CPU     1 core  5\n"), "{text}");
        assert!(text.contains("sched domains of CPUs 2-3\n  none\n"), "{text}");
        let lonely = describe(&super::tests::loaded("2x1x1"));
        assert!(lonely.contains("  alone        1 CPU     1 core  0\n"), "{lonely}");
    }

    #[test]
    fn names_cannot_upset_the_terminal() {
        let mut loaded = loaded("1x2x1");
        loaded.snapshot.kernel_release = Some("6.1\u{1b}[31m\n".to_owned());
        assert!(describe(&loaded).contains("6.1?[31m?\n"));
    }
}
