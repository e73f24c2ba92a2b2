// SPDX-License-Identifier: GPL-2.0-or-later
//! Topologies of recorded and mailed machines: what is derived from the hardware equals what their kernels list.

use std::path::{Path, PathBuf};

use sisdiff::topology::{self, Arch, Loaded, TopologySource};
use sisdiff::units::Cpu;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of the material beside the project; `None`, with a message, without it.
fn shared(folder: &str) -> Option<PathBuf> {
    let found =
        ["../shared", "../../shared"].into_iter().map(|shared| root().join(shared).join(folder)).find(|f| f.is_dir());
    if found.is_none() {
        println!("skipped: ../shared/{folder} is not there");
    }
    found
}

fn load(path: &Path) -> Loaded {
    topology::load(&TopologySource::Path(path.to_owned())).unwrap_or_else(|error| panic!("{error}"))
}

/// Descriptions of recorded machines: the project's own, and those beside it.
fn recorded() -> Vec<PathBuf> {
    let folders = [Some(root().join("traces")), shared("traces")];
    let entries =
        folders.into_iter().flatten().flat_map(|folder| std::fs::read_dir(folder).expect("a folder").flatten());
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path().join("topology.tar.gz")).filter(|path| path.exists()).collect();
    found.sort();
    found
}

#[test]
fn derived_domains_are_the_kernels_own() {
    let recorded = recorded();
    assert!(recorded.len() >= 7, "the project's own recordings have topologies");
    for path in recorded {
        let (loaded, at) = (load(&path), path.display());
        let differences = loaded.differences();
        assert!(differences.is_empty(), "{at}: {differences:#?}");
        assert_eq!(loaded.snapshot.domains.len(), loaded.topology.nr_cpu_ids(), "{at}");
        for cpu in loaded.topology.cpus() {
            let (chain, listed) = (loaded.topology.hierarchy(cpu), &loaded.snapshot.domains[cpu.index()]);
            assert_eq!(chain.len(), listed.len(), "{at}: CPU {cpu}");
            for (&id, want) in chain.iter().zip(listed) {
                let have = loaded.topology.domain(id);
                assert_eq!(Some(&have.name), want.name.as_ref(), "{at}: CPU {cpu}");
                assert_eq!(Some(have.imbalance_pct), want.imbalance_pct, "{at}: CPU {cpu} {}", have.name);
                // Flags that could not be read would not differ either.
                assert!(want.flags.is_some() && want.max_newidle_lb_cost_ns.is_some(), "{at}: CPU {cpu}");
            }
        }
    }
}

#[test]
fn recorded_machines_tell_their_settings() {
    for path in recorded() {
        let (snapshot, at) = (load(&path).snapshot, path.display());
        assert_eq!(snapshot.hz, Some(250), "{at}");
        assert_eq!(snapshot.group_sched, Some(true), "{at}");
        assert_eq!(snapshot.autogroup, Some(false), "{at}");
        assert_eq!(snapshot.migration_cost_ns, Some(500_000), "{at}");
        assert!(snapshot.max_idle_balance_cost_ns.iter().all(Option::is_some), "{at}");
        let minor = snapshot.release().map(|release| (release.major, release.minor));
        let sis_util = if minor < Some((5, 19)) { None } else { Some(true) };
        assert_eq!(snapshot.feature("SIS_UTIL"), sis_util, "{at}");
    }
}

/// `NAME:span weight` of the domains of `cpu`.
fn chain(loaded: &Loaded, cpu: u16) -> String {
    let domains = loaded.topology.hierarchy(Cpu(cpu)).iter().map(|&id| loaded.topology.domain(id));
    domains.map(|domain| format!("{}:{}", domain.name, domain.span.weight())).collect::<Vec<_>>().join(" ")
}

#[test]
fn mailed_machines_are_understood() {
    let Some(folder) = shared("topologies") else { return };
    let intel = load(&folder.join("intel-8cpu-linux6.2/x86_64-64cpu-linux6.2.tar.gz"));
    assert_eq!(chain(&intel, 7), "SMT:2 MC:8");
    assert_eq!(intel.topology.smt_mask(Cpu(7)).to_string(), "3,7");
    let riscv = load(&folder.join("riscv-visionfive2-4cpu/rv64-visionfive2.tar.gz"));
    assert_eq!(chain(&riscv, 0), "MC:4");
    assert_eq!(riscv.hardware.arch, Arch::Generic);
    assert!(!riscv.topology.smt_present());
    let opteron = load(&folder.join("opteron-bulldozer-64cpu/64amd64-4s2n4ca2co.tar.bz2"));
    assert_eq!(chain(&opteron, 0), "SMT:2 MC:8 NUMA:40 NUMA:64");
    assert_eq!(chain(&opteron, 16), "SMT:2 MC:8 NUMA:56 NUMA:64", "node 2 is near to all but node 1");
    assert_eq!(opteron.topology.parts().llcs.len(), 8);
    let xeon = load(&folder.join("xeon-2s-subnuma-80cpu/memorysidecaches.tar.bz2"));
    assert_eq!(chain(&xeon, 79), "SMT:2 MC:20 NUMA:40 NUMA:80", "an LLC of two nodes is cut at the node");
    assert!(xeon.notes.iter().any(|note| note.contains("span several nodes")), "{:?}", xeon.notes);
    assert_eq!((xeon.topology.node(Cpu(6)), xeon.hardware.node_distance(0, 2)), (2, 11));
}

#[test]
fn the_machine_this_runs_on_is_understood() {
    if !Path::new("/sys/devices/system/cpu").exists() {
        println!("skipped: /sys is not there");
        return;
    }
    let live = topology::load(&TopologySource::Live).unwrap_or_else(|error| panic!("{error}"));
    let cpus = std::thread::available_parallelism().expect("a number of CPUs");
    assert!(live.topology.online().weight() as usize >= cpus.get());
    assert!(live.snapshot.kernel_release.is_some());
}

#[test]
fn descriptions_read_as_reviewed() {
    let describe =
        |source: TopologySource| topology::describe(&topology::load(&source).unwrap_or_else(|error| panic!("{error}")));
    let recorded = |name: &str| {
        let path = format!("traces/{name}/topology.tar.gz");
        let bytes = std::fs::read(root().join(&path)).expect("the project's own recording");
        let loaded = topology::load::from_bytes(&path, &bytes, None).unwrap_or_else(|error| panic!("{error}"));
        topology::describe(&loaded)
    };
    let shorthand = |text: &str| describe(TopologySource::Shorthand(text.to_owned()));
    let settings = {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings
    };
    settings.bind(|| {
        insta::assert_snapshot!("topology-numa80-truth", recorded("numa80-truth"));
        insta::assert_snapshot!("topology-dies12-truth", recorded("dies12-truth"));
        insta::assert_snapshot!("topology-2x20x2", shorthand("2x20x2"));
        insta::assert_snapshot!("topology-odd", shorthand("2x2d3x2:nodes=2:near=12:offline=5:isolated=2-3,14-15"));
        insta::assert_snapshot!("topology-guess-12", describe(TopologySource::Guess(12)));
    });
}
