// SPDX-License-Identifier: GPL-2.0-or-later
//! Every implementation against the answers of the kernel's own code: all fields, all of them equal.
//!
//! The vectors are in the folder named by SISDIFF_VECTORS, else the project's own subset in tests/vectors, and the whole
//! set in ../shared/vectors where that is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sisdiff::vectors::{check, read, spec_of};

fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("SISDIFF_VECTORS") {
        return vec![folder.into()];
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![project.join("tests/vectors")];
    let shared = project.ancestors().map(|dir| dir.join("shared/vectors")).find(|dir| dir.is_dir());
    match shared {
        Some(shared) => folders.push(shared),
        None => println!("no ../shared/vectors here: only the project's own subset is checked"),
    }
    folders
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
        paths.sort();
        paths
    };
    let families = entries(folder).into_iter().filter(|path| path.is_dir());
    families.flat_map(|family| entries(&family)).filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect()
}

/// Cases of the whole set whose answer hangs on the vectors' abs(): a wakeup on a NUMA domain that allows an imbalance,
/// where the local group has at least three idle CPUs less than the idlest.
fn stand_in_cases(family: &str, level: &str) -> usize {
    match (family, level) {
        ("c-v6.1", "3") => 20,
        ("d-v6.12", "3") => 5,
        ("f-v6.12.117", "3") => 11,
        ("g-v7.3.4", "3") => 14,
        _ => 0,
    }
}

#[test]
fn every_field_of_every_vector() {
    let mut wrong = 0;
    let mut compared = 0;
    for folder in folders() {
        let files = files(&folder);
        assert!(!files.is_empty(), "{}: no vectors", folder.display());
        for file in &files {
            let vectors = read(file).unwrap_or_else(|error| panic!("{error}"));
            let results: Vec<_> = vectors.items.par_iter().map(check::check).collect();
            let items = results.iter().filter(|checked| checked.compared > 0).count();
            let total: usize = results.iter().map(|checked| checked.compared).sum();
            let by_stand_in: usize = results.iter().map(|checked| checked.by_stand_in).sum();
            let mut by_variant: BTreeMap<&str, usize> = BTreeMap::new();
            for mismatch in results.iter().flat_map(|checked| &checked.mismatches) {
                *by_variant.entry(&mismatch.variant).or_default() += 1;
            }
            let bad: usize = by_variant.values().sum();
            let known = vectors.header.variants.iter().filter(|variant| spec_of(variant).is_some()).count();
            println!(
                "{:<20} level {:<5} {items:>4} of {:>4} cases, {known} of {} variants: {} of {total} answers equal{}{}",
                vectors.header.family,
                vectors.header.level.to_string(),
                vectors.items.len(),
                vectors.header.variants.len(),
                total - bad,
                if by_stand_in == 0 { String::new() } else { format!(" ({by_stand_in} with the vectors' abs())") },
                if bad == 0 { String::new() } else { format!("; differing: {by_variant:?}") },
            );
            for mismatch in results.iter().flat_map(|checked| &checked.mismatches).take(2) {
                println!("{mismatch}");
            }
            // What the stand-in may decide is known to a case; anything more is ours to explain.
            let expected = stand_in_cases(&vectors.header.family, &vectors.header.level.to_string());
            if vectors.items.len() > 900 {
                assert_eq!(by_stand_in, expected, "{}: answers that hang on abs()", file.display());
            }
            compared += total;
            wrong += bad;
        }
    }
    assert!(compared > 0, "nothing was compared");
    assert_eq!(wrong, 0, "answers differ from the kernel's");
}
