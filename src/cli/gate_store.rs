// SPDX-License-Identifier: GPL-2.0-or-later
//! The folder of snapshots. A snapshot is replaced as a whole or not at all: whoever is interrupted, at whatever moment,
//! leaves the old one or the new one.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::temporary::Temporary;
use crate::gate::name::{ENDING, PENDING, stem};
use crate::gate::{Snapshot, SnapshotError};

/// No snapshot is longer, bytes: what is, is something else.
const LENGTH_MAX: u64 = 4 << 20;

/// A folder of snapshots.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// What there is of a recording and a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// Nothing.
    None,
    /// A snapshot and its text.
    Snapshot(Box<Snapshot>, String),
    /// A file that is none.
    Not(SnapshotError),
    /// A file that cannot be read, and why.
    Unreadable(String),
}

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name without the ending.
    pub stem: String,
    /// Whether it waits to be accepted.
    pub is_pending: bool,
}

impl Store {
    /// The folder; it need not be there.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The snapshot's file.
    pub fn path(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}{ENDING}"))
    }

    /// The file beside it that waits to be accepted.
    pub fn pending_path(&self, stem: &str) -> PathBuf {
        self.folder.join(format!("{stem}{PENDING}"))
    }

    /// The name for `trace` and `pair`.
    pub fn stem(trace: &str, pair: &str) -> String {
        stem(trace, pair)
    }

    /// Reads a snapshot.
    pub fn read(&self, stem: &str) -> Stored {
        Self::read_file(&self.path(stem))
    }

    /// Reads what waits to be accepted.
    pub fn read_pending(&self, stem: &str) -> Stored {
        Self::read_file(&self.pending_path(stem))
    }

    fn read_file(path: &Path) -> Stored {
        let bytes = match read_bounded(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Stored::None,
            Err(error) => return Stored::Unreadable(format!("cannot be read ({error})")),
        };
        let Ok(text) = String::from_utf8(bytes) else { return Stored::Not(SnapshotError::Other) };
        match Snapshot::parse(&text) {
            Ok(snapshot) => Stored::Snapshot(Box::new(snapshot), text),
            Err(error) => Stored::Not(error),
        }
    }

    /// Puts `text` beside the snapshot.
    ///
    /// # Errors
    /// The system's.
    pub fn write_pending(&self, stem: &str, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        self.replace(&self.pending_path(stem), text)
    }

    /// Puts `text` at `path`, as a whole.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let permissions = Permissions::from_mode(0o666);
        // What a killed run leaves of it is left out of commits as what waits is.
        let mut builder = tempfile::Builder::new();
        builder.prefix(".sisdiff-gate-").suffix(PENDING).permissions(permissions);
        let mut file = Temporary::new(&builder, Some(&self.folder))?;
        file.write_all(text.as_bytes())?;
        // On the disk before it has its name: a name may survive a power cut that bytes do not.
        file.as_file().sync_all()?;
        file.persist(path)?;
        self.sync()
    }

    /// Makes `text`, which waited, the snapshot; then nothing waits any more.
    ///
    /// # Errors
    /// The system's.
    pub fn accept(&self, stem: &str, text: &str) -> io::Result<()> {
        self.replace(&self.path(stem), text)?;
        self.reject(stem)
    }

    /// Removes what waits; nothing there is as good.
    ///
    /// # Errors
    /// The system's.
    pub fn reject(&self, stem: &str) -> io::Result<()> {
        remove(&self.pending_path(stem))
    }

    /// Removes a snapshot and what waits beside it.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, stem: &str) -> io::Result<()> {
        remove(&self.path(stem))?;
        remove(&self.pending_path(stem))
    }

    /// Names are on the disk, too.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    /// The files of the folder, by name. A folder that is not there has none.
    ///
    /// # Errors
    /// The system's.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let list = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            list => list?,
        };
        let mut entries = Vec::new();
        for file in list {
            let name = file?.file_name();
            let Some(name) = name.to_str().filter(|name| name.contains('@')) else { continue };
            let entry = |stem: &str, is_pending| Entry { stem: stem.to_owned(), is_pending };
            entries.extend(name.strip_suffix(PENDING).map(|stem| entry(stem, true)));
            entries.extend(name.strip_suffix(ENDING).map(|stem| entry(stem, false)));
        }
        entries.sort_by(|a, b| (&a.stem, a.is_pending).cmp(&(&b.stem, b.is_pending)));
        Ok(entries)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(LENGTH_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LENGTH_MAX {
        return Err(io::Error::other("longer than any snapshot"));
    }
    Ok(bytes)
}
