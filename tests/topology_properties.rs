// SPDX-License-Identifier: GPL-2.0-or-later
//! Sched domains of random machines keep the kernel's invariants, and random bytes never bring the reader down.

use std::io::Read;

use oorandom::Rand32;
use sisdiff::cpumask::Cpumask;
use sisdiff::topology::load::from_bytes;
use sisdiff::topology::{self, Arch, Hardware, Release, SdFlags, Topology, TopologySource};
use sisdiff::units::Cpu;

const RELEASES: [(u16, u16); 8] = [(5, 2), (5, 10), (5, 11), (5, 18), (6, 1), (6, 12), (6, 17), (7, 3)];

fn release(rand: &mut Rand32) -> Release {
    let (major, minor) = RELEASES[rand.rand_range(0..RELEASES.len() as u32) as usize];
    Release::new(major, minor)
}

fn shorthand(rand: &mut Rand32) -> String {
    let (sockets, dies, cores) = (rand.rand_range(1..4), rand.rand_range(1..4), rand.rand_range(1..7));
    let threads = [1, 2, 2, 4][rand.rand_range(0..4) as usize];
    let nr = sockets * dies * cores * threads;
    let mut text = format!("{sockets}x{dies}dx{cores}x{threads}");
    if rand.rand_range(0..2) == 0 {
        text += ":adjacent";
    }
    if dies > 1 && rand.rand_range(0..2) == 0 {
        text += &format!(":nodes={dies}:near={}", rand.rand_range(11..20));
    }
    if rand.rand_range(0..4) == 0 {
        text += ":distance=40";
    }
    for option in ["offline", "isolated"] {
        if nr > 2 && rand.rand_range(0..3) == 0 {
            text += &format!(":{option}={}", rand.rand_range(1..nr));
        }
    }
    if nr > 1 && rand.rand_range(0..4) == 0 {
        text += &format!(":capacity=0-{}@446", rand.rand_range(0..nr));
    }
    text
}

#[test]
fn domains_of_regular_machines_keep_the_invariants() {
    let mut rand = Rand32::new(1);
    for _ in 0..400 {
        let (text, release) = (shorthand(&mut rand), release(&mut rand));
        let source = TopologySource::Shorthand(text.clone());
        let loaded = topology::load_for(&source, Some(release)).unwrap_or_else(|error| panic!("{error}"));
        invariants(&loaded.topology, &loaded.hardware, release, &format!("{text} on {release}"));
    }
}

#[test]
fn domains_of_odd_machines_keep_the_invariants() {
    let mut rand = Rand32::new(2);
    let mut built = 0;
    for _ in 0..400 {
        let (hw, release) = (odd_machine(&mut rand), release(&mut rand));
        // Groups that overlap in part are refused, as the kernel does.
        let Ok(parts) = topology::build(&hw, release) else { continue };
        let topology = Topology::new(parts).unwrap_or_else(|error| panic!("{error}"));
        invariants(&topology, &hw, release, &format!("{hw:?} on {release}"));
        built += 1;
    }
    assert!(built > 100, "only {built} odd machines could be built");
}

/// Random groups on every level, random nodes and distances. Hardware threads of a core share all else.
fn odd_machine(rand: &mut Rand32) -> Hardware {
    let nr = rand.rand_range(1..20) as usize;
    let mut hw = Hardware::separate(nr);
    let threads = rand.rand_range(1..4) as usize;
    let mut column = |of: u32| {
        let of_core: Vec<u32> = (0..nr).map(|_| rand.rand_range(0..of)).collect();
        (0..nr).map(|cpu| of_core[cpu / threads]).collect::<Vec<u32>>()
    };
    let groups = |of: &[u32]| -> Vec<Cpumask> {
        of.iter().map(|id| (0..nr).filter(|&cpu| of[cpu] == *id).filter_map(Cpu::new).collect()).collect()
    };
    let cores: Vec<u32> = (0..nr).map(|cpu| (cpu / threads) as u32).collect();
    (hw.smt, hw.llc, hw.package) = (groups(&cores), groups(&column(3)), groups(&column(2)));
    hw.cluster = hw.smt.clone();
    let nodes = 4;
    hw.node = column(nodes);
    let mut row = |node| (0..nodes).map(|to| if to == node { 10 } else { rand.rand_range(11..14) * 3 - 13 }).collect();
    hw.distance = (0..nodes).map(&mut row).collect();
    hw.isolated = (0..nr).filter(|_| rand.rand_range(0..9) == 0).filter_map(Cpu::new).collect();
    hw.online = (1..nr).filter(|_| rand.rand_range(0..9) != 0).chain([0]).filter_map(Cpu::new).collect();
    hw.capacity = (0..nr).map(|_| [1024, 1024, 446][rand.rand_range(0..3) as usize]).collect();
    hw.arch = if rand.rand_range(0..2) == 0 { Arch::X86 } else { Arch::Generic };
    hw
}

fn invariants(topology: &Topology, hw: &Hardware, release: Release, at: &str) {
    let balanced = hw.online.and_not(&hw.isolated);
    for cpu in topology.cpus() {
        let chain: Vec<_> = topology.hierarchy(cpu).iter().map(|&id| topology.domain(id)).collect();
        if !balanced.test(cpu) {
            assert!(chain.is_empty(), "{at}: CPU {cpu} is offline or isolated");
            continue;
        }
        for domain in &chain {
            assert!(domain.span.test(cpu), "{at}: CPU {cpu} in its own {}", domain.name);
            assert!(domain.span.is_subset(&balanced), "{at}: {} of balanced CPUs only", domain.name);
            assert!(domain.span.weight() > 1, "{at}: {} of one CPU", domain.name);
            let numa = domain.flags.contains(SdFlags::NUMA);
            assert_eq!(numa, domain.name == "NUMA", "{at}");
            for other in domain.span.iter().filter(|_| !numa) {
                let has = topology.hierarchy(other).iter().any(|&id| topology.domain(id).span == domain.span);
                assert!(has, "{at}: CPU {other} shares the {} of CPU {cpu}", domain.name);
            }
        }
        for pair in chain.windows(2) {
            assert!(pair[0].level < pair[1].level, "{at}: levels ascend");
            assert!(pair[0].span.is_subset(&pair[1].span), "{at}: spans are nested");
            // Before 5.10 the first NUMA level stays even where it adds no CPU.
            let kept = release < Release::new(5, 10) && pair[1].flags.contains(SdFlags::NUMA);
            assert!(pair[0].span != pair[1].span || kept, "{at}: {} adds CPUs", pair[1].name);
            let llc = |at: usize| pair[at].flags.contains(SdFlags::SHARE_LLC);
            assert!(llc(0) || !llc(1), "{at}: nothing above shares what is not shared below");
        }
        llc_is_consistent(topology, cpu, at);
        let smt = topology.smt_mask(cpu);
        assert!(smt.iter().all(|sibling| topology.smt_mask(sibling) == smt), "{at}: SMT siblings of CPU {cpu}");
    }
    assert_eq!(topology.nr_shared(), topology.parts().llcs.len() + topology.parts().asym_spans.len(), "{at}");
}

fn llc_is_consistent(topology: &Topology, cpu: Cpu, at: &str) {
    let span = topology.sd_llc(cpu).map_or_else(|| Cpumask::of(cpu), |id| topology.domain(id).span);
    assert_eq!(topology.sd_llc_size(cpu), span.weight(), "{at}");
    assert_eq!(Some(topology.sd_llc_id(cpu)), span.first(), "{at}");
    for other in topology.cpus() {
        assert_eq!(topology.cpus_share_cache(cpu, other), span.test(other), "{at}: CPUs {cpu} and {other}");
    }
    match topology.llc_shared(cpu) {
        Some(shared) => assert_eq!(topology.shared_span(shared), &span, "{at}"),
        None => assert_eq!(span.weight(), 1, "{at}"),
    }
}

#[test]
fn broken_archives_are_errors_and_never_panics() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/dies12-truth/topology.tar.gz");
    let packed = std::fs::read(path).expect("the project's own recording");
    let mut tar = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut tar).expect("gzip");
    let mut rand = Rand32::new(3);
    let (mut loaded, mut refused) = (0, 0);
    let mut read = |bytes: &[u8]| match from_bytes("box.tar", bytes, None) {
        Ok(machine) => {
            assert!(!topology::describe(&machine).is_empty());
            loaded += 1;
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            refused += 1;
        }
    };
    for _ in 0..60 {
        read(&packed[..rand.rand_range(0..packed.len() as u32) as usize]);
        let mut bytes = tar.clone();
        // Short files are what is read: hit the first bytes of blocks, but of headers only now and then, or their
        // checksums end the archive.
        for _ in 0..40 {
            let block = rand.rand_range(0..bytes.len() as u32 / 512) as usize * 512;
            if bytes[block + 257..].starts_with(b"ustar") && rand.rand_range(0..100) != 0 {
                continue;
            }
            let byte = block + rand.rand_range(0..8) as usize;
            bytes[byte] = b"0123456789,-xf \n\0\xff"[rand.rand_range(0..18) as usize];
        }
        read(&bytes);
    }
    assert!(loaded > 0 && refused > 0, "{loaded} loaded, {refused} refused");
}
