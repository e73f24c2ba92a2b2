// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a tree's files come from: a directory, a git revision, a Debian source package; with patches on top.

mod archive;
mod git;
mod patch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::TreeError;

/// Single headers beside those of the scheduler in which names are looked up.
const HEADERS: &[&str] = &[
    "include/linux/cpumask.h",
    "include/linux/cpumask_types.h",
    "include/linux/energy_model.h",
    "include/linux/list.h",
    "include/linux/llist.h",
    "include/linux/nodemask.h",
    "include/linux/nodemask_types.h",
    "include/linux/rculist.h",
    "include/linux/sched.h",
    "include/linux/topology.h",
    "include/uapi/linux/sched.h",
];

/// Folders whose C files and headers are taken.
const FOLDERS: &[&str] = &["kernel/sched", "include/linux/sched"];

/// The file without which nothing is a kernel tree.
const FAIR: &str = "kernel/sched/fair.c";

/// What to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// The tree: a directory, a git directory, or a `linux-source-*.tar.xz`.
    pub path: PathBuf,
    /// A revision; `None`: the files as they are (of a bare repository, HEAD).
    pub rev: Option<String>,
    /// Patch files, or revisions of the same repository that hold a change.
    pub patches: Vec<String>,
}

/// The files of a tree, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Path in the tree to text.
    pub texts: BTreeMap<String, String>,
    /// `VERSION.PATCHLEVEL.SUBLEVEL` of its Makefile, where there is one.
    pub version: Option<String>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Whether file `path` is one that names are looked up in.
fn is_wanted(path: &str) -> bool {
    let in_folder = |folder: &&str| {
        let rest = path.strip_prefix(*folder).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|name| !name.contains('/') && (name.ends_with(".c") || name.ends_with(".h")))
    };
    HEADERS.contains(&path) || FOLDERS.iter().any(in_folder)
}

/// Reads the files at `location`, patched. `cache` keeps what was unpacked.
///
/// # Errors
/// No tree there, or a patch that does not apply.
pub fn load(location: &Location, cache: &Path) -> Result<Files, TreeError> {
    let Location { path, rev, patches } = location;
    if !path.exists() {
        return Err(TreeError::NotFound { path: path.display().to_string() });
    }
    if let (true, Some(rev)) = (path.is_file(), rev) {
        return Err(TreeError::NoGit { path: path.display().to_string(), rev: rev.clone() });
    }
    let mut files = if path.is_file() {
        archive::load(path, cache)?
    } else if rev.is_some() || !path.join(FAIR).exists() && git::is_repository(path) {
        git::load(path, rev.as_deref().unwrap_or("HEAD"))?
    } else {
        directory(path)?
    };
    if !files.texts.contains_key(FAIR) {
        return Err(TreeError::NoKernel { path: path.display().to_string(), missing: FAIR.to_owned() });
    }
    for patch in patches {
        patch::apply(location, patch, &mut files)?;
    }
    Ok(files)
}

/// One more file of the tree, for a patch that touches it.
fn read_more(location: &Location, name: &str) -> Result<Option<String>, TreeError> {
    let on_disk = location.path.join(name);
    if location.rev.is_none() && on_disk.is_file() {
        return read(&on_disk).map(Some);
    }
    if git::is_repository(&location.path) {
        return git::show(&location.path, location.rev.as_deref().unwrap_or("HEAD"), name);
    }
    Ok(None)
}

/// The text of a file; bytes that are no UTF-8 (names in comments) are replaced.
fn read(path: &Path) -> Result<String, TreeError> {
    let bytes = std::fs::read(path).map_err(|source| TreeError::Io { path: path.display().to_string(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The wanted files below a directory.
fn directory(root: &Path) -> Result<Files, TreeError> {
    let mut files = Files::default();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let entry = entry.map_err(|source| TreeError::Io { path: root.display().to_string(), source })?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if is_wanted(&name) && entry.path().is_file() {
                files.texts.insert(name, read(&entry.path())?);
            }
        }
    }
    for name in HEADERS {
        let path = root.join(name);
        if path.is_file() {
            files.texts.insert((*name).to_owned(), read(&path)?);
        }
    }
    files.version = root
        .join("Makefile")
        .is_file()
        .then(|| read(&root.join("Makefile")))
        .transpose()?
        .and_then(|text| version(&text));
    Ok(files)
}

/// The version that a kernel's Makefile states.
fn version(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        let line = makefile.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))?;
        Some(line.trim().to_owned())
    };
    Some(format!(
        "{}.{}.{}",
        value("VERSION")?,
        value("PATCHLEVEL")?,
        value("SUBLEVEL").unwrap_or_else(|| "0".to_owned())
    ))
}

/// Runs a program and takes what it prints; `None`: it ended with an error.
fn output(program: &str, command: &mut std::process::Command) -> Result<Option<Vec<u8>>, TreeError> {
    let output = command.output().map_err(|source| TreeError::Program { program: program.to_owned(), source })?;
    Ok(output.status.success().then_some(output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_wanted() {
        assert!(is_wanted("kernel/sched/fair.c") && is_wanted("include/linux/sched/topology.h"));
        assert!(is_wanted("include/linux/sched.h") && !is_wanted("include/linux/mm.h"));
        assert!(!is_wanted("kernel/sched/Makefile") && !is_wanted("kernel/sched/deep/fair.c"));
        assert!(!is_wanted("kernel/schedule.c"));
    }

    #[test]
    fn the_makefile_has_the_version() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n";
        assert_eq!(version(text).as_deref(), Some("6.1.192"));
        assert_eq!(version("all:\n"), None);
    }

    #[test]
    fn what_is_no_tree_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |path: PathBuf| {
            load(&Location { path, ..Location::default() }, dir.path()).expect_err("no tree").to_string()
        };
        assert!(at(dir.path().join("gone")).contains("no such file or directory"));
        assert!(at(dir.path().to_owned()).contains(FAIR));
    }
}
