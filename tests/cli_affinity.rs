// SPDX-License-Identifier: GPL-2.0-or-later
//! `--affinity FILE` from outside: what a side file changes, what is said of it, what is refused.

use std::process::{Command, Output};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat");

/// Runs `sisdiff` with `args` and a side file of that text.
fn run(args: &[&str], side: &str) -> (Output, String) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("side.toml");
    std::fs::write(&path, side).expect("written");
    let path = path.display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(args)
        .args(["--affinity", &path])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout).replace(&path, "side.toml");
    (output, text)
}

fn fine(args: &[&str], side: &str) -> String {
    let (output, text) = run(args, side);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn trouble(side: &str) -> String {
    let (output, text) = run(&["replay", TRACE], side);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.as_str()), (Some(2), ""), "{error}");
    error
}

const SOFT: &[&str] = &["--baseline", "v5.2", "--patched", "v5.2+soft-affinity"];
const SIDE: &str = "[[rule]]\ncomm = \"srv*\"\npreferred = \"0-1\"\n[[rule]]\ncomm = \"tick*\"\npreferred = \"2-3\"\n";

#[test]
fn soft_affinity_changes_placements_and_says_so() {
    let args = [&["replay", TRACE, "--format", "json"], SOFT].concat();
    let report: serde_json::Value = serde_json::from_str(&fine(&args, SIDE)).expect("JSON");
    let file = &report["files"][0];
    let different = &file["totals"]["comparisons"][0]["verdicts"]["wakeups"]["different"];
    let sum = different["known"].as_u64().expect("a count") + different["assumed"].as_u64().expect("a count");
    assert!(sum > 300, "{different}");
    // Placed outside of its preferred CPUs or not: never outside of those that are allowed.
    assert_eq!(file["totals"]["columns"][1]["wrong"]["wakeups"], 0);
    let rules = &file["setup"]["affinity"]["rules"];
    assert_eq!(rules[0]["rule"], "rule 1 (comm \"srv*\")");
    assert!(rules[0]["tasks"].as_u64() >= Some(1) && rules[1]["tasks"].as_u64() >= Some(2), "{rules}");
    let inputs = file["totals"]["inputs"].as_array().expect("a list");
    let soft = inputs.iter().find(|input| input["input"] == "soft_affinity").expect("soft affinity is read");
    assert!(soft["stated"].as_u64() > Some(1000) && soft["derived"].as_u64() > Some(0), "{soft}");
    // Without the file nobody prefers anything, and the patch decides as the base does.
    let plain = Command::new(env!("CARGO_BIN_EXE_sisdiff")).args(&args).output().expect("the binary runs");
    let plain: serde_json::Value = serde_json::from_slice(&plain.stdout).expect("JSON");
    let different = &plain["files"][0]["totals"]["comparisons"][0]["verdicts"]["wakeups"]["different"];
    assert_eq!(different["known"].as_u64(), Some(0), "{different}");
}

#[test]
fn explain_shows_the_mask_of_each_scan() {
    let args = [&["explain", TRACE, "--wakeup", "119", "--width", "100"], SOFT].concat();
    let text = fine(&args, SIDE);
    for line in [
        "may run on 0-7, prefers 2-3 (stated)",
        "first level: cpus: 2-3",
        "scans p->cpus_allowed: 0-7",
        "scans p->cpus_preferred: 2-3",
        "scans siblings in p->cpus_preferred: 2-3",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn hard_affinity_is_for_any_implementation() {
    let args = ["replay", TRACE, "--comm", "srv*", "--format", "json", "--patched", "v5.11+recent-used"];
    let side = "[group.servers]\ncomm = \"srv*\"\ncpus = \"0-3\"\n[[rule]]\ngroup = \"servers\"\nallowed = \"1-5\"\n";
    let report: serde_json::Value = serde_json::from_str(&fine(&args, side)).expect("JSON");
    let file = &report["files"][0];
    let inputs = file["totals"]["inputs"].as_array().expect("a list");
    let affinity = inputs.iter().find(|input| input["input"] == "affinity").expect("affinity is read");
    assert_eq!((affinity["traced"].as_u64(), affinity["assumed"].as_u64()), (Some(0), Some(0)), "{affinity}");
    assert!(affinity["stated"].as_u64() > Some(100), "{affinity}");
    assert!(file["setup"]["affinity"]["groups"][0]["tasks"].as_u64() > Some(0));
    // CPUs 1 to 3 are left of 1-5 by the group's cpuset. The tasks ran on others, too: what is stated of them is false, and
    // nobody's placement wrong for it.
    let columns = file["totals"]["columns"].as_array().expect("a list");
    assert!(columns.iter().all(|column| column["wrong"]["wakeups"] == 0), "{columns:?}");
    let unknown = &file["totals"]["affinity"]["wakeups"]["unknown"];
    assert!(unknown.as_u64() > Some(100), "{}", file["totals"]["affinity"]);
    let notes = file["recording"]["notes"].to_string();
    assert!(notes.contains("is contradicted by the recording, first by decision #"), "{notes}");
    assert_eq!(run(&[&args[..], &["--fail-on", "wrong"]].concat(), side).0.status.code(), Some(0));
}

#[test]
fn what_is_stated_and_true_is_not_contradicted() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-affinity-truth/trace.dat");
    let args = ["replay", trace, "--ignore-probes", "--comm", "tick*", "--format", "json"];
    let side = "[[rule]]\ncomm = \"tick*\"\nallowed = \"2,5,7\"\n";
    let report: serde_json::Value = serde_json::from_str(&fine(&args, side)).expect("JSON");
    let file = &report["files"][0];
    assert!(!file["recording"]["notes"].to_string().contains("contradicted"), "{}", file["recording"]["notes"]);
    assert!(file["totals"]["affinity"]["wakeups"]["known"].as_u64() > Some(200), "{}", file["totals"]["affinity"]);
    assert!(file["totals"]["affinity"]["wakeups"]["unknown"].is_null(), "{}", file["totals"]["affinity"]);
}

#[test]
fn a_rule_without_tasks_is_warned_of() {
    let (output, text) = run(&["replay", TRACE], "[[rule]]\ncomm = \"nobody\"\nallowed = \"0\"\n");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("warning") && error.contains("rule 1 (comm \"nobody\") matched no task"), "{error}");
    assert!(text.contains("note      side.toml: rule 1 (comm \"nobody\") matched no task"), "{text}");
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let rule = |text: &str| format!("[[rule]]\ncomm = \"srv*\"\n{text}\n");
    assert!(trouble(&rule("alowed = \"0\"")).contains("did you mean \"allowed\""));
    assert!(trouble(&rule("allowed = \"0-3\"\npreferred = \"4-7\"")).contains("-EINVAL"));
    assert!(trouble(&rule("allowed = \"64-70\"")).contains("the machine has none of these CPUs, but 0-7"));
    let apart = rule("allowed = \"0-3\"") + &rule("preferred = \"4-7\"");
    assert!(trouble(&apart).contains("rule 2 (comm \"srv*\"): preferred = \"4-7\": -EINVAL"));
    let missing = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["replay", TRACE, "--affinity", "/nonexistent.toml"])
        .output()
        .expect("the binary runs");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("--affinity /nonexistent.toml: cannot be read"));
}
