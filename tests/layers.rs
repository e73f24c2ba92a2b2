// SPDX-License-Identifier: GPL-2.0-or-later
//! The module graph has no circle: each module uses only modules below it.

use std::fs;
use std::path::{Path, PathBuf};

/// Top-level modules, lowest first. A new module gets its place here, and with it the right to use what stands before.
const ORDER: &[&str] = &[
    "units",
    "column",
    "cpumask",
    "inputs",
    "hint",
    "spec",
    "histogram",
    "counters",
    "affinity",
    "wakeup",
    "funcgraph",
    "topology",
    "trace",
    "machine",
    "fair",
    "vectors",
    "tree",
    "scenario",
    "compare",
    "record",
    "replay",
    "scan_cost",
    "bins",
    "info",
    "cut",
    "fidelity",
    "simulate",
    "export",
    "oracle",
    "fuzz_loop",
    "shrink",
    "gate",
    "report",
    "repro",
    "cli",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of src/") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

/// The top-level module that a file of src/ belongs to.
fn module_of(path: &Path, src: &Path) -> String {
    let first = path.strip_prefix(src).expect("a file of src/").iter().next().expect("a name");
    first.to_string_lossy().trim_end_matches(".rs").to_owned()
}

/// Modules that a text names as `crate::module`, outside of comments and of its unit tests, which may look anywhere.
fn uses(text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.match_indices("crate::").map(move |(at, found)| &line[at + found.len()..]))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn each_module_uses_only_modules_below_it() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut files = Vec::new();
    sources(src, &mut files);
    let mut seen = 0;
    for file in files {
        let module = module_of(&file, src);
        let is_test = file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_tests"));
        if module == "lib" || module == "main" || is_test {
            continue;
        }
        let rank = |name: &str| ORDER.iter().position(|other| *other == name);
        let own = rank(&module).unwrap_or_else(|| panic!("module {module} has no place in the order"));
        for used in uses(&fs::read_to_string(&file).expect("a source file")) {
            let Some(other) = rank(&used) else { continue };
            seen += 1;
            assert!(other <= own, "{}: {module} uses {used}, which stands above it", file.display());
        }
    }
    assert!(seen > 100, "only {seen} uses found: does this test still read the sources?");
}
