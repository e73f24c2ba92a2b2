// SPDX-License-Identifier: GPL-2.0-or-later
//! Where capacities differ a report says that energy-aware placement is not modelled.

use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smp4-idle-light");

fn replay(topology: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["replay", &format!("{FOLDER}/trace.dat"), "--topology"])
        .arg(topology)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn energy_aware_placement_is_said_where_capacities_differ() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = dir.path();
    let bytes = fs::read(format!("{FOLDER}/topology.tar.gz")).expect("a snapshot");
    tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..])).unpack(root).expect("unpacked");
    let said = "energy-aware placement (find_energy_efficient_cpu()) is not modelled";
    assert!(!replay(root).contains(said), "all CPUs are the same");

    // The kernel's own list of domains says that they are not marked for it.
    fs::remove_dir_all(root.join("sys/kernel/debug/sched/domains")).expect("a folder");
    for (cpu, capacity) in [(0, "446"), (1, "446"), (2, "1024"), (3, "1024")] {
        fs::write(root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity")), capacity).expect("written");
    }
    let text = replay(root);
    assert!(text.contains(said) && text.contains("whether there is an energy model is not told"), "{text}");

    fs::create_dir_all(root.join("sys/kernel/debug/energy_model/pd0")).expect("a folder");
    let text = replay(root);
    assert!(text.contains(said) && text.contains("there is an energy model: the kernel uses it"), "{text}");

    fs::create_dir_all(root.join("proc/sys/kernel")).expect("a folder");
    fs::write(root.join("proc/sys/kernel/sched_energy_aware"), "0\n").expect("written");
    assert!(!replay(root).contains(said), "it is switched off");
}
