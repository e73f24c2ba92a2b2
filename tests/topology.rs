// SPDX-License-Identifier: GPL-2.0-or-later
//! Topologies of recorded and mailed machines: what is derived from the hardware equals what their kernels list.

use std::path::{Path, PathBuf};

use sisdiff::topology::{self, TopologySource};

/// Descriptions of recorded machines: the project's own, and those beside it.
fn recorded() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in [root.join("traces"), root.join("../shared/traces"), root.join("../../shared/traces")] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            println!("{} is not there: skipped", folder.display());
            continue;
        };
        found.extend(entries.flatten().map(|entry| entry.path().join("topology.tar.gz")).filter(|path| path.exists()));
    }
    found.sort();
    found
}

#[test]
fn derived_domains_are_the_kernels_own() {
    let recorded = recorded();
    assert!(recorded.len() >= 7, "the project's own recordings have topologies");
    for path in recorded {
        let loaded = topology::load(&TopologySource::Path(path.clone())).unwrap_or_else(|error| panic!("{error}"));
        let at = path.display();
        let differences = loaded.differences();
        assert!(differences.is_empty(), "{at}: {differences:#?}");
        let parts = loaded.topology.parts();
        let listed = &loaded.snapshot.domains;
        assert_eq!(listed.len(), parts.nr_cpu_ids, "{at}: the kernel lists domains of each CPU");
        for cpu in loaded.topology.cpus() {
            let (chain, listed) = (loaded.topology.hierarchy(cpu), &listed[cpu.index()]);
            assert_eq!(chain.len(), listed.len(), "{at}: CPU {cpu}");
            for (&id, want) in chain.iter().zip(listed) {
                let have = loaded.topology.domain(id);
                assert_eq!(Some(&have.name), want.name.as_ref(), "{at}: CPU {cpu}");
                assert_eq!(Some(have.imbalance_pct), want.imbalance_pct, "{at}: CPU {cpu} {}", have.name);
                assert!(want.flags.is_some() && want.max_newidle_lb_cost_ns.is_some(), "{at}: CPU {cpu}");
            }
        }
        assert_eq!(loaded.snapshot.hz, Some(250), "{at}");
        assert_eq!(loaded.snapshot.group_sched, Some(true), "{at}");
        assert!(loaded.snapshot.features.len() > 20, "{at}");
    }
}
