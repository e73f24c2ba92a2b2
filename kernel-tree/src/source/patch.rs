// SPDX-License-Identifier: GPL-2.0-or-later
//! Patches, applied by `git apply` to copies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Files, Location, git, is_wanted, output, read, read_more};
use crate::error::TreeError;

/// Applies `patch`, a file or a revision of the same repository, to `files`.
pub(super) fn apply(location: &Location, patch: &str, files: &mut Files) -> Result<(), TreeError> {
    let dir = tempfile::Builder::new()
        .prefix("sisdiff-patch-")
        .tempdir()
        .map_err(|source| TreeError::Io { path: "a temporary directory".to_owned(), source })?;
    let text = patch_text(location, patch)?;
    let touched = touched(&text);
    let (wanted, other): (Vec<_>, Vec<_>) = touched.into_iter().partition(|path| is_taken(path));
    if wanted.is_empty() {
        return Err(TreeError::NoHunks { patch: patch.to_owned(), touched: other.join(", ") });
    }
    if !other.is_empty() {
        files.notes.push(format!("{patch}: changes outside the scheduler are left out: {}", other.join(", ")));
    }
    for path in &wanted {
        let known = files.texts.get(path).cloned();
        if let Some(text) = known.map_or_else(|| read_more(location, path), |text| Ok(Some(text)))? {
            write(&dir.path().join(path), &text)?;
        }
    }
    let file = dir.path().join("change.patch");
    write(&file, &text)?;
    run(dir.path(), &file, patch, &wanted)?;
    for path in wanted {
        let at = dir.path().join(&path);
        if at.is_file() {
            files.texts.insert(path, read(&at)?);
        } else {
            files.texts.remove(&path);
        }
    }
    Ok(())
}

/// Whether a file that a patch touches is taken: one that is read anyway, or any header it may add.
fn is_taken(path: &str) -> bool {
    is_wanted(path) || path.starts_with("include/") && path.ends_with(".h")
}

/// The change as a diff.
fn patch_text(location: &Location, patch: &str) -> Result<String, TreeError> {
    let path = PathBuf::from(patch);
    if path.is_file() {
        return read(&path);
    }
    let missing = || TreeError::NoPatch { patch: patch.to_owned(), path: location.path.display().to_string() };
    let repository = &location.path;
    if !git::is_repository(repository) {
        return Err(missing());
    }
    let tip = git::commit(repository, patch)?.ok_or_else(missing)?;
    let base = location.rev.as_deref().unwrap_or("HEAD");
    // What the branch holds since it left the base.
    let fork = output("git", git::git(repository).args(["merge-base", base, &tip]))?;
    let fork = fork.map(|text| String::from_utf8_lossy(&text).trim().to_owned()).ok_or_else(missing)?;
    let diff =
        output("git", git::git(repository).args(["diff", "--no-color", "--no-ext-diff", "--full-index", &fork, &tip]))?;
    Ok(String::from_utf8_lossy(&diff.ok_or_else(missing)?).into_owned())
}

/// Paths that a diff touches, without `a/` and `b/`.
fn touched(text: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for line in text.lines() {
        let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) else { continue };
        let path = path.split('\t').next().unwrap_or_default().trim();
        if let Some(path) = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")) {
            paths.insert(path.to_owned());
        }
    }
    paths
}

fn write(path: &Path, text: &str) -> Result<(), TreeError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| TreeError::Io { path: path.display().to_string(), source })
}

/// `git apply`; hunks that do not fit are named.
fn run(dir: &Path, file: &Path, patch: &str, wanted: &[String]) -> Result<(), TreeError> {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir)).env("LC_ALL", "C");
    command.args(["apply", "--reject", "--verbose", "--whitespace=nowarn", "--recount"]);
    command.args(wanted.iter().map(|path| format!("--include={path}"))).arg(file).stdin(Stdio::null());
    let output = command.output().map_err(|source| TreeError::Program { program: "git".to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TreeError::Patch { patch: patch.to_owned(), rejects: rejects(&log) })
}

/// `kernel/sched/fair.c hunk 2` for each hunk that was refused, from what git says.
fn rejects(log: &str) -> String {
    let mut file = String::new();
    let mut found = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("Applying patch ") {
            file = rest.split(" with ").next().unwrap_or(rest).trim_end_matches("...").to_owned();
        } else if let Some(hunk) = line.strip_prefix("Rejected hunk #") {
            found.push(format!("{file} hunk {}", hunk.trim_end_matches('.')));
        } else if let Some(error) = line.strip_prefix("error: ").filter(|_| !line.contains("patch failed")) {
            found.push(error.to_owned());
        }
    }
    if found.is_empty() { log.trim().lines().last().unwrap_or_default().to_owned() } else { found.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "From: somebody\n\nbody\n---\n kernel/sched/fair.c | 2 +-\n\ndiff --git a/kernel/sched/fair.c b/kernel/sched/fair.c\n--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

    fn tree(text: &str) -> (tempfile::TempDir, Location, Files) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let texts = [("kernel/sched/fair.c".to_owned(), text.to_owned())].into();
        let patch = dir.path().join("a.patch");
        std::fs::write(&patch, PATCH).expect("written");
        let location = Location { path: dir.path().to_owned(), ..Location::default() };
        (dir, location, Files { texts, ..Files::default() })
    }

    #[test]
    fn a_mailed_patch_applies_to_copies() {
        let (dir, location, mut files) = tree("one\ntwo\nthree\n");
        apply(&location, &dir.path().join("a.patch").display().to_string(), &mut files).expect("applies");
        assert_eq!(files.texts["kernel/sched/fair.c"], "one\nTWO\nthree\n");
    }

    #[test]
    fn a_hunk_that_does_not_fit_is_named() {
        let (dir, location, mut files) = tree("one\n2\nthree\n");
        let error =
            apply(&location, &dir.path().join("a.patch").display().to_string(), &mut files).expect_err("refused");
        let error = error.to_string();
        assert!(error.contains("kernel/sched/fair.c") && error.contains("hunk 1"), "{error}");
    }

    #[test]
    fn what_is_neither_file_nor_revision_is_named() {
        let (_dir, location, mut files) = tree("");
        let error = apply(&location, "no-such-branch", &mut files).expect_err("refused").to_string();
        assert!(error.contains("no-such-branch"), "{error}");
    }
}
