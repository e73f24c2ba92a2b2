// SPDX-License-Identifier: GPL-2.0-or-later
//! `traces/MANIFEST.toml` and the folders beside it say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    trace: Vec<Trace>,
}

/// Every entry has every field: a recording without its command cannot be made again.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    name: String,
    why: String,
    kernel: String,
    topology: String,
    workload: String,
    mode: String,
    command: String,
    sha256: String,
    licence: String,
}

fn traces() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/traces"))
}

fn manifest() -> Manifest {
    let text = fs::read_to_string(traces().join("MANIFEST.toml")).expect("traces/MANIFEST.toml is there");
    toml::from_str(&text).expect("traces/MANIFEST.toml is a manifest")
}

#[test]
fn every_entry_describes_the_file_that_is_there() {
    for trace in manifest().trace {
        let folder = traces().join(&trace.name);
        let bytes = fs::read(folder.join("trace.dat")).unwrap_or_else(|error| panic!("{}: {error}", trace.name));
        let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sha256, trace.sha256, "checksum of {}", trace.name);
        for beside in ["topology.tar.gz", "notes.txt"] {
            assert!(folder.join(beside).is_file(), "{} has no {beside}", trace.name);
        }
        let texts = [trace.why, trace.kernel, trace.topology, trace.workload, trace.mode, trace.command, trace.licence];
        assert!(texts.iter().all(|text| !text.trim().is_empty()), "{} has an empty field", trace.name);
    }
}

#[test]
fn every_recording_has_an_entry() {
    let listed: BTreeSet<String> = manifest().trace.into_iter().map(|trace| trace.name).collect();
    let found: BTreeSet<String> = fs::read_dir(traces())
        .expect("traces/ is there")
        .map(|entry| entry.expect("an entry of traces/"))
        .filter(|entry| entry.path().join("trace.dat").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, found);
}
