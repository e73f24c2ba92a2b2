// SPDX-License-Identifier: GPL-2.0-or-later
//! The small files of a machine description: from a directory tree such as `/`, or from a tar archive of one.
//!
//! Only files that `sysfs` or `snapshot` reads are kept, under their path from `sys/` or `proc/` on,
//! whatever folder the archive puts before it. Nothing is ever written to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;

use super::load::LoadError;
use super::unpack::broken;

/// Longest file that is kept whole, bytes. The scheduler's debug file of a machine with 1,024 CPUs has about 8 MB.
const MAX_FILE: u64 = 32 << 20;
/// All kept files together, bytes.
const MAX_TOTAL: u64 = 128 << 20;
/// What of an archive is kept however small it is, bytes; beyond that, and up to the same limit, twice its size.
const ALWAYS_KEPT: u64 = 32 << 20;
/// Entries of an archive or a directory.
const MAX_ENTRIES: usize = 1_000_000;

/// What a snapshot of the machine at `root` (`/`: this one) would have to be sent elsewhere: a gzip-compressed tar archive.
///
/// # Errors
/// If the machine's files are too large together.
pub fn snapshot_of(root: &Path) -> io::Result<Vec<u8>> {
    let files = Files::from_dir(root).map_err(io::Error::other)?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&files.to_tar()?)?;
    gzip.finish()
}

/// The files, by path from `sys/` or `proc/` on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Where they came from, for errors.
    pub(super) origin: String,
    files: BTreeMap<String, Vec<u8>>,
    /// Links and folders whose name alone tells something (`cpu3/node1`).
    names: BTreeSet<String>,
    total: u64,
}

impl Files {
    /// Reads a directory tree: one that has `sys` or `proc` in it.
    ///
    /// # Errors
    /// If the directory cannot be listed or its files are too large together. A file that cannot be read (debugfs wants
    /// root) is left out.
    pub fn from_dir(root: &Path) -> Result<Self, LoadError> {
        let mut files = Self { origin: root.display().to_string(), ..Self::default() };
        let mut seen = 0;
        for top in ["sys/devices/system/cpu", "sys/devices/system/node", "sys/kernel/debug", "proc"] {
            files.walk(root, top, &mut seen)?;
        }
        Ok(files)
    }

    /// Reads a directory tree or a tar archive of one, packed or not; `None`: the description is a single text.
    ///
    /// # Errors
    /// If it cannot be read, or is neither.
    pub fn open(path: &Path) -> Result<Option<Self>, LoadError> {
        if path.is_dir() {
            return Self::from_dir(path).map(Some);
        }
        let file = path.display().to_string();
        let unread = |error: std::io::Error| LoadError::Read { file: file.clone(), reason: error.to_string() };
        let bytes = std::fs::read(path).map_err(unread)?;
        match super::unpack::content(&file, &bytes)? {
            super::unpack::Content::Files(files) => Ok(Some(files)),
            super::unpack::Content::Text(_) => Ok(None),
        }
    }

    fn walk(&mut self, root: &Path, folder: &str, seen: &mut usize) -> Result<(), LoadError> {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Ok(()) };
        for entry in entries.flatten() {
            *seen += 1;
            if *seen > MAX_ENTRIES {
                return Err(self.too_large("entries", MAX_ENTRIES as u64));
            }
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{folder}/{name}");
            match (entry.file_type(), wanted(&path)) {
                (Ok(kind), Wanted::File) if kind.is_file() => {
                    let mut bytes = Vec::new();
                    let Ok(file) = std::fs::File::open(entry.path()) else { continue };
                    // A sysfs file may refuse to be read (an offline CPU's, for one): it is then as good as absent.
                    if file.take(MAX_FILE + 1).read_to_end(&mut bytes).is_ok() {
                        self.keep(path, bytes, MAX_TOTAL)?;
                    }
                }
                (Ok(kind), Wanted::Folder) if kind.is_dir() => self.walk(root, &path, seen)?,
                (Ok(_), Wanted::Name) => {
                    self.names.insert(path);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a tar archive that came out of `packed` bytes.
    ///
    /// # Errors
    /// If it breaks off or holds too much.
    pub fn from_tar(origin: &str, packed: u64, reader: impl Read) -> Result<Self, LoadError> {
        let limit = MAX_TOTAL.min(ALWAYS_KEPT + 2 * packed);
        let mut files = Self { origin: origin.to_owned(), ..Self::default() };
        let broken = |error: io::Error| broken(origin, "whole tar archive", &error);
        let mut archive = tar::Archive::new(reader);
        for (seen, entry) in archive.entries().map_err(broken)?.enumerate() {
            if seen > MAX_ENTRIES {
                return Err(files.too_large("entries", MAX_ENTRIES as u64));
            }
            let mut entry = entry.map_err(broken)?;
            let Some(path) = from_root(&String::from_utf8_lossy(&entry.path_bytes())) else { continue };
            match wanted(&path) {
                Wanted::File if entry.header().entry_type().is_file() => {
                    let mut bytes = Vec::new();
                    (&mut entry).take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(broken)?;
                    files.keep(path, bytes, limit)?;
                }
                Wanted::Name => {
                    files.names.insert(path);
                }
                _ => {}
            }
        }
        Ok(files)
    }

    /// The same files as a tar archive.
    ///
    /// # Errors
    /// None of a machine: of paths that no archive holds.
    pub(super) fn to_tar(&self) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        for (path, bytes) in &self.files {
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, path, bytes.as_slice())?;
        }
        for path in &self.names {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            archive.append_data(&mut header, path, io::empty())?;
        }
        archive.into_inner()
    }

    fn keep(&mut self, path: String, bytes: Vec<u8>, limit: u64) -> Result<(), LoadError> {
        self.total += bytes.len() as u64;
        if bytes.len() as u64 > MAX_FILE || self.total > limit {
            return Err(self.too_large("bytes of machine description", limit));
        }
        self.files.insert(path, bytes);
        Ok(())
    }

    fn too_large(&self, what: &'static str, limit: u64) -> LoadError {
        LoadError::TooLarge { file: self.origin.clone(), what, limit }
    }

    /// The text of a file without white space at its ends, nor the zero that hwloc's copies have there; `None` if
    /// absent or not UTF-8.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        let text = std::str::from_utf8(self.files.get(path)?).ok()?;
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0'))
    }

    /// Every file that was kept, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Links and folders whose name alone tells something.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether a file is there.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether something is there under a folder.
    pub(super) fn has_under(&self, folder: &str) -> bool {
        let start = format!("{folder}/");
        let first = |mut paths: std::collections::btree_set::Range<'_, String>| paths.next().cloned();
        first(self.names.range(start.clone()..)).is_some_and(|path| path.starts_with(&start))
    }

    /// Numbers N of the entries `PREFIX N` directly under `folder`, ascending: `cpu0`, `cpu1` …
    pub(super) fn numbered(&self, folder: &str, prefix: &str) -> Vec<usize> {
        let start = format!("{folder}/{prefix}");
        let paths = self.files.range(start.clone()..).map(|(path, _)| path);
        let names = self.names.range(start.clone()..);
        let number = |path: &String| {
            let rest = path.strip_prefix(&start)?;
            let digits = rest.split('/').next().filter(|name| name.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse().ok()
        };
        let under = |path: &&String| path.starts_with(&start);
        let mut numbers: Vec<usize> =
            paths.take_while(under).filter_map(number).chain(names.take_while(under).filter_map(number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Whether nothing was found that describes CPUs.
    pub fn has_no_cpus(&self) -> bool {
        let cpu = "sys/devices/system/cpu/";
        self.files.range(cpu.to_owned()..).next().is_none_or(|(path, _)| !path.starts_with(cpu))
    }

    /// Files with these texts; a path without text is a link.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut all = Self { origin: "test".to_owned(), ..Self::default() };
        for &(path, text) in files {
            match wanted(path) {
                Wanted::Name => drop(all.names.insert(path.to_owned())),
                _ => drop(all.files.insert(path.to_owned(), text.as_bytes().to_vec())),
            }
        }
        all
    }
}

/// The path from the first `sys` or `proc` on.
fn from_root(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let at = parts.iter().position(|&part| part == "sys" || part == "proc")?;
    Some(parts[at..].join("/"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    No,
    File,
    Folder,
    Name,
}

/// What of a machine description is read.
fn wanted(path: &str) -> Wanted {
    let parts: Vec<&str> = path.split('/').collect();
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let (cpu, node) = (|part: &str| numbered(part, "cpu"), |part: &str| numbered(part, "node"));
    let domain = |part: &str| numbered(part, "domain");
    match parts.as_slice() {
        ["sys", "devices", "system", "cpu", rest @ ..] => match rest {
            [one] if cpu(one) => Wanted::Folder,
            ["smt"] => Wanted::Folder,
            ["possible" | "present" | "online" | "isolated"] | ["smt", "active"] => Wanted::File,
            [one, "topology" | "cache"] if cpu(one) => Wanted::Folder,
            [one, name] if cpu(one) && node(name) => Wanted::Name,
            [one, "online" | "cpu_capacity"] if cpu(one) => Wanted::File,
            [one, "topology", _] if cpu(one) => Wanted::File,
            [one, "cache", index] if cpu(one) && numbered(index, "index") => Wanted::Folder,
            [one, "cache", _, "level" | "type" | "shared_cpu_list" | "shared_cpu_map"] if cpu(one) => Wanted::File,
            _ => Wanted::No,
        },
        ["sys", "devices", "system", "node", rest @ ..] => match rest {
            [one] if node(one) => Wanted::Folder,
            ["possible" | "online" | "has_cpu"] => Wanted::File,
            [one, "cpulist" | "cpumap" | "distance"] if node(one) => Wanted::File,
            _ => Wanted::No,
        },
        ["sys", "kernel", "debug", "sched_features"] => Wanted::File,
        // One folder for each performance domain.
        ["sys", "kernel", "debug", "energy_model"] => Wanted::Folder,
        ["sys", "kernel", "debug", "energy_model", _] | ["sys", "kernel", "debug", "energy_model", _, "cpus"] => {
            Wanted::Name
        }
        ["sys", "kernel", "debug", "sched"] | ["sys", "kernel", "debug", "sched", "domains"] => Wanted::Folder,
        ["sys", "kernel", "debug", "sched", "features" | "debug" | "migration_cost_ns"] => Wanted::File,
        ["sys", "kernel", "debug", "sched", "domains", rest @ ..]
        | ["proc", "sys", "kernel", "sched_domain", rest @ ..] => match rest {
            [] => Wanted::Folder,
            [one] if cpu(one) => Wanted::Folder,
            [one, level] if cpu(one) && domain(level) => Wanted::Folder,
            [one, level, "name" | "flags" | "imbalance_pct" | "max_newidle_lb_cost"] if cpu(one) && domain(level) => {
                Wanted::File
            }
            _ => Wanted::No,
        },
        ["proc", "version" | "cpuinfo" | "sched_debug"] => Wanted::File,
        ["proc", "sys"] | ["proc", "sys", "kernel"] => Wanted::Folder,
        ["proc", "sys", "kernel", "sched_autogroup_enabled" | "sched_migration_cost_ns" | "osrelease"] => Wanted::File,
        ["proc", "sys", "kernel", "sched_energy_aware"] => Wanted::File,
        _ => Wanted::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_before_sys_does_not_matter() {
        for path in ["./sys/devices/x", "dump/sys/devices/x", "/sys/devices//x", "sys/devices/x"] {
            assert_eq!(from_root(path).as_deref(), Some("sys/devices/x"), "{path}");
        }
        assert_eq!(from_root("lscpu.txt"), None);
    }

    #[test]
    fn numbered_folders_are_listed_in_order() {
        let files = Files::of(&[("a/cpu10/x", ""), ("a/cpu2/x", ""), ("a/cpufreq/x", ""), ("a/cpu2/y", "")]);
        assert_eq!(files.numbered("a", "cpu"), [2, 10]);
        assert_eq!(files.numbered("b", "cpu"), [0; 0]);
    }
}
