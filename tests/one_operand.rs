// SPDX-License-Identifier: GPL-2.0-or-later
//! The bug that one operand made, end to end: since 89aafd67f28c the kernel stored `p->recent_used_cpu = prev` and then
//! tested the affinity of `p->recent_used_cpu`, which is prev's. ae2ad293d6be mended it. A written recording of four CPUs
//! shows it: the wakee may run on CPUs 0 and 1, both busy, and its recently used CPU 3 is idle.

use std::path::Path;
use std::process::Command;

#[path = "support/one_operand.rs"]
mod written;

const BUGGY: &str = "v5.11+recent-used";
const FIXED: &str = "v5.11+recent-used+fix-cpus-ptr";

fn sisdiff(args: &[&str], [baseline, patched]: [&str; 2], trace: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(args)
        .args(["--topology", "1x4x1", "--baseline", baseline, "--patched", patched])
        .arg(trace)
        .output()
        .expect("sisdiff runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn the_wrong_placement_is_found_and_its_step_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = written::recording(folder.path());

    let (code, report) = sisdiff(&["replay"], [BUGGY, FIXED], &trace);
    assert_eq!(code, 0, "{report}");
    assert!(report.contains("WRONG: v5.11+recent-used put 1 task outside of cpus_ptr; the first is #1"), "{report}");

    let (code, report) = sisdiff(&["replay", "--fail-on", "wrong"], [FIXED, BUGGY], &trace);
    assert_eq!(code, 1, "a patch that places wrongly fails the gate: {report}");

    let (code, walks) = sisdiff(&["explain", "--wakeup", "1"], [BUGGY, FIXED], &trace);
    assert_eq!(code, 0, "{walks}");
    assert!(walks.contains("WRONG"), "{walks}");
    // The buggy one asks for prev's affinity, the fixed one for that of the CPU it is about to return.
    let first_different = walks.lines().find(|line| line.contains(" | ") || line.contains(" > ")).unwrap_or("");
    assert!(first_different.contains("cpumask_test_cpu(1, p->cpus_ptr): yes"), "{walks}");
    assert!(first_different.contains("cpumask_test_cpu(3, p->cpus_ptr): no"), "{walks}");
}
