// SPDX-License-Identifier: GPL-2.0-or-later
//! The machines of the golden vectors, taken apart into hardware facts and built anew, have the same domain spans.
//!
//! Which levels are left out, where isolated and offline CPUs are, and how nodes stack is thereby checked against an
//! independent construction. Flags, imbalance_pct and imb_numa_nr of the vectors are drawn at random and say nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;
use sisdiff::cpumask::Cpumask;
use sisdiff::topology::{self, Hardware, Release, SdFlags, Topology};
use sisdiff::units::Cpu;

const FAMILIES: [(&str, Release); 7] = [
    ("a-v5.11-sis-series", Release::new(5, 11)),
    ("b-v5.2-soft-affinity", Release::new(5, 2)),
    ("c-v6.1", Release::new(6, 1)),
    ("d-v6.12", Release::new(6, 12)),
    ("e-v5.10.262", Release::new(5, 10)),
    ("f-v6.12.117", Release::new(6, 12)),
    ("g-v7.3.4", Release::new(7, 3)),
];

#[test]
fn machines_of_the_vectors_have_the_same_spans() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = ["../shared", "../../shared"].into_iter().map(|shared| root.join(shared).join("vectors"));
    let Some(vectors) = found.into_iter().find(|folder| folder.is_dir()) else {
        println!("skipped: ../shared/vectors is not there");
        return;
    };
    for (family, release) in FAMILIES {
        let file = std::fs::File::open(vectors.join(family).join("l1.jsonl.gz")).expect("a file of vectors");
        let mut machines = 0;
        for line in BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines() {
            let line = line.expect("gzip");
            if !line.starts_with("{\"kind\":\"topology\"") {
                continue;
            }
            compare(&serde_json::from_str(&line).expect("JSON"), release, family);
            machines += 1;
        }
        assert!(machines > 50, "{family} has {machines} machines");
    }
}

struct Told {
    span: Cpumask,
    llc: bool,
    numa: bool,
}

fn compare(machine: &Value, release: Release, family: &str) {
    let told: Vec<Told> = list(machine, "domains").iter().map(domain).collect();
    let at = format!("{family} topology {}", machine["id"]);
    let parts = topology::build(&hardware(machine, &told), release).unwrap_or_else(|error| panic!("{at}: {error}"));
    let topology = Topology::new(parts).unwrap_or_else(|error| panic!("{at}: {error}"));
    for cpu in topology.cpus() {
        let built: Vec<Cpumask> = topology.hierarchy(cpu).iter().map(|&id| topology.domain(id).span).collect();
        let told: Vec<Cpumask> = told.iter().map(|told| told.span).filter(|span| span.test(cpu)).collect();
        assert_eq!(built, told, "{at}, CPU {cpu}");
    }
}

/// The machine behind the domains: caches from the LLC domains, distances from the NUMA domains.
fn hardware(machine: &Value, told: &[Told]) -> Hardware {
    let mut hw = Hardware::separate(machine["nr_cpu_ids"].as_u64().expect("a number") as usize);
    hw.online = mask(&machine["online"]);
    hw.smt = list(machine, "cpu_smt_mask").iter().map(mask).collect();
    hw.cluster = hw.smt.clone();
    hw.node = list(machine, "cpu_to_node").iter().map(|node| node.as_u64().expect("a number") as u32).collect();
    let balanced = told.iter().fold(Cpumask::EMPTY, |all, domain| all | domain.span);
    hw.isolated = hw.online.and_not(&balanced);
    let llc = |cpu: Cpu| told.iter().rfind(|domain| domain.llc && domain.span.test(cpu)).map(|domain| domain.span);
    hw.llc = hw.cpus().map(|cpu| llc(cpu).unwrap_or(hw.smt[cpu.index()])).collect();
    hw.package = hw.node.iter().map(|&node| hw.cpus_of_node(node)).collect();
    let first = |node: u32| balanced.iter().find(|cpu| hw.node[cpu.index()] == node);
    let distance = |a: u32, b: u32| match (first(a), first(b)) {
        _ if a == b => 10,
        (Some(a), Some(b)) => {
            let mut of_a = told.iter().filter(|domain| domain.numa && domain.span.test(a));
            20 + of_a.position(|domain| domain.span.test(b)).unwrap_or(0) as u32
        }
        _ => 20,
    };
    let nodes = hw.node.iter().max().map_or(0, |&node| node + 1);
    hw.distance = (0..nodes).map(|a| (0..nodes).map(|b| distance(a, b)).collect()).collect();
    hw
}

fn domain(value: &Value) -> Told {
    let flags = list(value, "flags").iter().filter_map(|name| SdFlags::from_kernel_name(name.as_str()?));
    let flags: SdFlags = flags.collect();
    Told { span: mask(&value["span"]), llc: flags.contains(SdFlags::SHARE_LLC), numa: flags.contains(SdFlags::NUMA) }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().expect("a list")
}

/// `0x1f`.
fn mask(value: &Value) -> Cpumask {
    let digits = value.as_str().expect("a text").trim_start_matches("0x");
    let words: Vec<u64> = digits
        .as_bytes()
        .rchunks(16)
        .map(|word| u64::from_str_radix(std::str::from_utf8(word).expect("ASCII"), 16).expect("hexadecimal"))
        .collect();
    Cpumask::from_words(&words).expect("a mask")
}
