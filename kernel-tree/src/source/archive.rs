// SPDX-License-Identifier: GPL-2.0-or-later
//! A source package: `linux-source-6.1.tar.xz` as Debian installs it, or a kernel.org tarball.

use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::{FOLDERS, Files, HEADERS, directory, output};
use crate::error::TreeError;

/// The wanted files of an archive. Unpacking one takes some ten seconds, so what was taken out is kept in `cache`.
pub(super) fn load(archive: &Path, cache: &Path) -> Result<Files, TreeError> {
    let path = archive.display().to_string();
    let io = |source| TreeError::Io { path: path.clone(), source };
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.contains(".tar") {
        return Err(TreeError::NotFound { path });
    }
    let meta = archive.metadata().map_err(io)?;
    let age = meta.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let full = archive.canonicalize().map_err(io)?;
    let key = Sha256::digest(format!("{} {} {}", full.display(), meta.len(), age.as_nanos()));
    let key: String = key.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let kept = cache.join("sources").join(key);
    if !kept.join("kernel").is_dir() {
        unpack(archive, &path, &kept)?;
    }
    directory(&kept)
}

fn unpack(archive: &Path, path: &str, to: &Path) -> Result<(), TreeError> {
    let parent = to.parent().unwrap_or(to);
    let io = |source| TreeError::Io { path: parent.display().to_string(), source };
    std::fs::create_dir_all(parent).map_err(io)?;
    let fresh = tempfile::Builder::new().prefix("unpack-").tempdir_in(parent).map_err(io)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(fresh.path()).args(["--strip-components=1", "--wildcards"]);
    tar.args(FOLDERS.iter().map(|folder| format!("*/{folder}/*.[ch]")));
    tar.args(HEADERS.iter().map(|header| format!("*/{header}"))).arg("*/Makefile");
    // Debian's archives are compressed in blocks, which xz can unpack side by side.
    tar.arg("--no-wildcards-match-slash").env("LC_ALL", "C").env("XZ_DEFAULTS", "--threads=0").stderr(Stdio::null());
    // tar complains of headers that an old kernel does not have; what is needed is tested below.
    output("tar", &mut tar)?;
    if !fresh.path().join("kernel/sched/fair.c").is_file() {
        return Err(TreeError::NoKernel { path: path.to_owned(), missing: "kernel/sched/fair.c".to_owned() });
    }
    match std::fs::rename(fresh.path(), to) {
        Ok(()) => {
            // It is at its place now; nothing is left to remove.
            let _ = fresh.keep();
            Ok(())
        }
        // Somebody else was faster.
        Err(_) if to.join("kernel").is_dir() => Ok(()),
        Err(source) => Err(io(source)),
    }
}
