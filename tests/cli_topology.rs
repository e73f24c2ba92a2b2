// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff topology` and `--topology` with what lscpu and hwloc write, from files and from standard input.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sample(name: &str) -> PathBuf {
    root().join("tests/topologies").join(name)
}

fn run(args: &[&str], stdin: Option<PathBuf>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.args(args).stdin(Stdio::null());
    if let Some(path) = stdin {
        command.stdin(std::fs::File::open(path).expect("a sample"));
    }
    command.output().expect("sisdiff runs")
}

/// Standard output with runs of white space as one blank.
fn fine(args: &[&str], stdin: Option<PathBuf>) -> String {
    let output = run(args, stdin);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn trouble(args: &[&str], stdin: Option<PathBuf>) -> String {
    let output = run(args, stdin);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn standard_input_may_be_any_form() {
    for (name, form) in [
        ("odd.lscpu-e.json", "standard input (a table of lscpu) 6 CPUs"),
        ("odd.lscpu-p.txt", "standard input (a table of lscpu) 6 CPUs"),
        ("odd.lscpu.json", "standard input (a summary of lscpu) 6 CPUs"),
        ("odd.hwloc2.xml.gz", "standard input (XML of hwloc) 6 CPUs"),
        ("odd.tar.xz", "standard input 6 CPUs"),
    ] {
        let text = fine(&["topology", "-"], Some(sample(name)));
        assert!(text.starts_with(form), "{name}: {text}");
        let same = fine(&["topology", &sample(name).display().to_string()], None);
        let after = |text: &str| text.split_once("6 CPUs").map(|(_, rest)| rest.to_owned());
        assert_eq!(after(&text), after(&same), "{name}");
    }
    let text = trouble(&["topology", "-"], None);
    assert!(text.contains("standard input") && text.contains("an empty file"), "{text}");
}

#[test]
fn a_replay_says_what_its_topology_lacks() {
    let trace = root().join("traces/dies12-truth/trace.dat").display().to_string();
    let table = sample("dies12-truth.hwloc2.xml.gz");
    let text = fine(&["replay", &trace, "--topology", "-"], Some(table.clone()));
    assert!(text.contains("from standard input (XML of hwloc)"), "{text}");
    assert!(text.contains("the topology: hwloc's XML does not tell isolated CPUs"), "{text}");
    let text = fine(&["explain", &trace, "--wakeup", "3", "--topology", "-"], Some(table.clone()));
    assert!(text.contains("from standard input (XML of hwloc)"), "{text}");
    let text = fine(&["info", &trace, "--topology", "-"], Some(table));
    assert!(text.contains("standard input (XML of hwloc): 12 CPUs"), "{text}");
    let text = trouble(&["replay", "-", "--topology", "-"], None);
    assert!(text.contains("--topology -: standard input holds the recording already"), "{text}");
}

/// What is beside a trace is found by name, and a summary's guess is stated.
#[test]
fn a_guess_beside_a_trace_is_stated() {
    let folder = std::env::temp_dir().join(format!("sisdiff-cli-topology-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let trace = folder.join("trace.dat");
    std::fs::copy(root().join("traces/dies12-truth/trace.dat"), &trace).expect("a copy");
    let summary =
        "Architecture: x86_64\nCPU(s): 12\nThread(s) per core: 1\nSocket(s): 1\nL3 cache: 32 MiB (3 instances)\n";
    std::fs::write(folder.join("topology.txt"), summary).expect("a file");
    let text = fine(&["replay", &trace.display().to_string()], None);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(text.contains("from topology.txt (a summary of lscpu) beside the recording"), "{text}");
    assert!(text.contains("the topology is a guess from what lscpu counts"), "{text}");
}
