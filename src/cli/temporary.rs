// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that lie beside an output until it is complete, and go when a signal ends the program before that.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::{Builder, NamedTempFile};

/// The files that are there now. Whoever makes, renames or removes one holds the lock.
static THERE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static WATCH: Once = Once::new();

/// A file with a name of its own, which goes with it unless it is given its place.
pub struct Temporary(Option<NamedTempFile>);

impl Temporary {
    /// Makes one in `folder`, or (`None`) where the system has temporary files.
    ///
    /// # Errors
    /// The system's.
    pub fn new(builder: &Builder<'_, '_>, folder: Option<&Path>) -> io::Result<Self> {
        WATCH.call_once(watch);
        let mut there = there();
        let made = match folder {
            Some(folder) => builder.tempfile_in(folder),
            None => builder.tempfile(),
        };
        let file = made.map_err(|error| plain(&error, folder))?;
        there.insert(file.path().to_owned());
        Ok(Self(Some(file)))
    }

    fn named(&self) -> &NamedTempFile {
        self.0.as_ref().expect("only persist() takes it, and itself with it")
    }

    /// The file.
    pub fn as_file(&self) -> &File {
        self.named().as_file()
    }

    /// Gives it the name `path`, in one step; what was there is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        self.end(|file| file.persist(path).map(drop).map_err(|error| error.error))
    }

    /// Gives it the name `path` if nothing is there.
    ///
    /// # Errors
    /// The system's, [`io::ErrorKind::AlreadyExists`].
    pub fn persist_noclobber(self, path: &Path) -> io::Result<()> {
        self.end(|file| file.persist_noclobber(path).map(drop).map_err(|error| error.error))
    }

    fn end<T>(mut self, end: impl FnOnce(NamedTempFile) -> io::Result<T>) -> io::Result<T> {
        let file = self.0.take().expect("only persist() takes it, and itself with it");
        let name = file.path().to_owned();
        let mut there = there();
        let done = end(file);
        there.remove(&name);
        done
    }
}

/// The system's error without the temporary file's name, which nobody asked for; a folder that is missing is named.
fn plain(error: &io::Error, folder: Option<&Path>) -> io::Error {
    match folder {
        Some(folder) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}; make it first", folder.display()))
        }
        _ => error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error),
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Some(file) = self.0.take() else { return };
        let name = file.path().to_owned();
        let mut there = there();
        drop(file);
        there.remove(&name);
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.as_file().flush()
    }
}

fn there() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set of names is whole at every moment.
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals in a thread of its own, and lets them do what they do where nobody waits, once the files are gone.
fn watch() {
    let Ok(mut signals) = Signals::new(heard()) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let files = there();
            for file in files.iter() {
                let _ = std::fs::remove_file(file);
            }
            // Nothing can be made or renamed any more: the lock is kept to the end.
            let _ = emulate_default_handler(signal);
        }
    });
}

/// The signals that end this program. Who was started with one ignored (`nohup`) goes on ignoring it.
pub fn heard() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn it_is_known_while_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = || Temporary::new(Builder::new().prefix(".test-"), Some(folder.path())).expect("a file");
        let known = || there().iter().any(|name| name.starts_with(folder.path()));
        let mut file = make();
        file.write_all(b"whole").expect("written");
        assert!(known());
        file.persist(&folder.path().join("out")).expect("renamed");
        assert!(!known());
        assert_eq!(std::fs::read(folder.path().join("out")).expect("there"), b"whole");
        let error = make().persist_noclobber(&folder.path().join("out")).expect_err("there already");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        drop(make());
        assert_eq!((names(folder.path()), known()), (vec!["out".to_owned()], false));
    }
}
