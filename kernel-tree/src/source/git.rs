// SPDX-License-Identifier: GPL-2.0-or-later
//! Files of a revision, by git itself; nothing in the repository or its work tree is touched.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{FOLDERS, Files, HEADERS, is_wanted, output, version};
use crate::error::TreeError;

/// `git` in `repository`, without the user's pagers and hooks in the way.
pub(super) fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C").stdin(Stdio::null());
    command.stderr(Stdio::null());
    command
}

/// Whether `path` is in a git repository, or is one.
pub(super) fn is_repository(path: &Path) -> bool {
    matches!(output("git", git(path).args(["rev-parse", "--git-dir"])), Ok(Some(_)))
}

/// The commit that `rev` names.
pub(super) fn commit(repository: &Path, rev: &str) -> Result<Option<String>, TreeError> {
    let found = output(
        "git",
        git(repository).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(format!("{rev}^{{commit}}")),
    )?;
    Ok(found.map(|text| String::from_utf8_lossy(&text).trim().to_owned()))
}

/// One file of a commit.
pub(super) fn show(repository: &Path, rev: &str, name: &str) -> Result<Option<String>, TreeError> {
    let Some(commit) = commit(repository, rev)? else { return Ok(None) };
    let bytes = output("git", git(repository).arg("show").arg(format!("{commit}:{name}")))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The wanted files of `rev`.
pub(super) fn load(repository: &Path, rev: &str) -> Result<Files, TreeError> {
    let path = repository.display().to_string();
    let unknown = || TreeError::NoRevision { path: path.clone(), rev: rev.to_owned() };
    if !is_repository(repository) {
        return Err(TreeError::NoGit { path: path.clone(), rev: rev.to_owned() });
    }
    let commit = commit(repository, rev)?.ok_or_else(unknown)?;
    let list = output(
        "git",
        git(repository)
            .args(["ls-tree", "-r", "-z", "--full-tree", &commit, "--"])
            .args(FOLDERS)
            .args(HEADERS)
            .arg("Makefile"),
    )?;
    let list = list.ok_or_else(unknown)?;
    // MODE TYPE OBJECT TAB PATH, ended by NUL.
    let entries: Vec<(String, String)> = String::from_utf8_lossy(&list)
        .split('\0')
        .filter_map(|entry| {
            let (head, path) = entry.split_once('\t')?;
            let object = head.split(' ').nth(2)?;
            (is_wanted(path) || path == "Makefile").then(|| (object.to_owned(), path.to_owned()))
        })
        .collect();
    let mut files = Files::default();
    for (text, (_, path)) in objects(repository, &entries)?.into_iter().zip(&entries) {
        if path == "Makefile" {
            files.version = version(&text);
        } else {
            files.texts.insert(path.clone(), text);
        }
    }
    Ok(files)
}

/// The texts of many objects in one run of git.
fn objects(repository: &Path, entries: &[(String, String)]) -> Result<Vec<String>, TreeError> {
    let program = |source| TreeError::Program { program: "git".to_owned(), source };
    let mut child = git(repository)
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(program)?;
    let wanted: String = entries.iter().map(|(object, _)| format!("{object}\n")).collect();
    let mut stdin = child.stdin.take().expect("piped above");
    // A thread of its own: git answers while it is still being asked.
    let asking = std::thread::spawn(move || stdin.write_all(wanted.as_bytes()));
    let answer = child.wait_with_output().map_err(program)?.stdout;
    // A broken pipe shows below, as an answer that is too short.
    let _ = asking.join();
    let mut texts = Vec::with_capacity(entries.len());
    let mut rest = answer.as_slice();
    for (_, path) in entries {
        let text = next_object(&mut rest).ok_or_else(|| TreeError::Io {
            path: format!("{}:{path}", repository.display()),
            source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "git has no such object"),
        })?;
        texts.push(text);
    }
    Ok(texts)
}

/// `OBJECT SP TYPE SP SIZE LF CONTENTS LF` at the start of `rest`.
fn next_object(rest: &mut &[u8]) -> Option<String> {
    let head = rest.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&rest[..head]).ok()?.split(' ').nth(2)?.parse().ok()?;
    let contents = rest.get(head + 1..head + 1 + size)?;
    *rest = rest.get(head + 2 + size..)?;
    Some(String::from_utf8_lossy(contents).into_owned())
}
