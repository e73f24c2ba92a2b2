// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tests share: where recordings are, and whether trace-cmd is there.
#![allow(dead_code, reason = "each test uses its own part")]

pub mod model;
pub mod random;
pub mod structure;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Every trace.dat beside the project: the recordings in `../shared` and the
/// project's own in `traces/`.
pub fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // In a git worktree `shared` may be one level further up.
    let places = [
        root.join("traces"),
        root.join("../shared/traces"),
        root.join("../shared/public-traces"),
        root.join("../../shared/traces"),
        root.join("../../shared/public-traces"),
    ];
    let mut found = Vec::new();
    for place in places {
        collect(&place, 2, &mut found);
    }
    found.sort();
    found
}

fn collect(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
        } else if path.extension().is_some_and(|e| e == "dat") {
            found.push(path);
        }
    }
}

/// The recording of that folder name, if it is there.
pub fn recording(name: &str) -> Option<PathBuf> {
    recordings().into_iter().find(|path| path.components().any(|c| c.as_os_str() == name))
}

/// Whether trace-cmd can be run.
pub fn have_tracecmd() -> bool {
    Command::new("trace-cmd")
        .arg("--version")
        .output()
        .is_ok_and(|out| out.stdout.starts_with(b"trace-cmd") || !out.stdout.is_empty())
}
