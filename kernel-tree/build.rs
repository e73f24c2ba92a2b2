// SPDX-License-Identifier: GPL-2.0-or-later
//! A digest of this crate's own sources: a build in the cache is found again only by the version that made it.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files);
    files.sort();
    let mut digest = DefaultHasher::new();
    for file in &files {
        digest.write(&std::fs::read(file).unwrap_or_default());
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=SISDIFF_TREE_SOURCES={:016x}", digest.finish());
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
