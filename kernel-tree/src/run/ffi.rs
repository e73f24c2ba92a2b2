// SPDX-License-Identifier: GPL-2.0-or-later
//! Opening a built tree and calling it.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use libloading::Library;

use super::watch::Beat;
use super::{Fault, request};
use crate::error::TreeError;

type Request = unsafe extern "C" fn(*const u64, usize, *mut u64, usize) -> i64;

/// A loaded object. It is never unloaded, since its signal handlers stay in the chain of handlers; it is used again.
struct Loaded {
    _library: ManuallyDrop<Library>,
    request: Request,
    beat: Arc<Beat>,
}

/// Objects that nobody uses at the moment, by the file they are copies of.
static IDLE: Mutex<BTreeMap<PathBuf, Vec<Loaded>>> = Mutex::new(BTreeMap::new());

fn idle() -> MutexGuard<'static, BTreeMap<PathBuf, Vec<Loaded>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loaded {
    fn open(path: &Path) -> Result<Self, TreeError> {
        let io = |source| TreeError::Io { path: path.display().to_string(), source };
        let dir = tempfile::Builder::new().prefix("sisdiff-tree-").tempdir().map_err(io)?;
        let copy = dir.path().join("tree.so");
        std::fs::copy(path, &copy).map_err(io)?;
        let load = |source| TreeError::Load { path: path.display().to_string(), source };
        // SAFETY: the object is one that this crate built; it has no constructors, and its only side effect on loading is
        // the mapping itself.
        let library = unsafe { Library::new(&copy) }.map_err(load)?;
        // SAFETY: `sd_request` in the runtime stand-in has exactly this signature.
        let request = *unsafe { library.get::<Request>(b"sd_request\0") }.map_err(load)?;
        static FIRST: Once = Once::new();
        FIRST.call_once(|| {
            // SAFETY: `sd_last_resort` in the runtime stand-in has this signature.
            if let Ok(last_resort) = unsafe { library.get::<unsafe extern "C" fn()>(b"sd_last_resort\0") } {
                // SAFETY: all it does is to set handlers of signals, which stay valid as the library is never unloaded.
                unsafe { last_resort() };
            }
        });
        Ok(Self { _library: ManuallyDrop::new(library), request, beat: Beat::watched() })
    }

    fn call(&self, question: &[u64], answer: &mut [u64]) -> i64 {
        self.beat.begin();
        // SAFETY: both slices are valid for the lengths given and do not overlap; the object reads and writes within
        // them only. An object is in one `Object` or in `IDLE`, so that no second call can be under way. Faults inside
        // return here through the runtime's guard, over frames of C only.
        let words = unsafe { (self.request)(question.as_ptr(), question.len(), answer.as_mut_ptr(), answer.len()) };
        self.beat.end();
        words
    }
}

/// A built tree in this process, with state of its own.
pub struct Object {
    path: PathBuf,
    loaded: Option<Loaded>,
    faulted: bool,
}

impl Object {
    /// Opens a private copy of the object at `path`, so that two of the same tree share nothing.
    ///
    /// # Errors
    /// The copy cannot be made or opened.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        let used = idle().get_mut(path).and_then(Vec::pop);
        let loaded = match used {
            Some(loaded) if loaded.call(&[request::RESET], &mut [0; 16]) == 0 => loaded,
            _ => Loaded::open(path)?,
        };
        Ok(Self { path: path.to_owned(), loaded: Some(loaded), faulted: false })
    }

    /// Puts `question` to the tree; the words of the answer are at the start of `answer`.
    ///
    /// # Errors
    /// The tree's code faulted. Its state is no longer to be trusted.
    pub fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        let words = self.loaded.as_ref().map_or(0, |loaded| loaded.call(question, answer));
        self.faulted |= words < 0;
        usize::try_from(words).map_err(|_| Fault::from_words(-words, answer))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(loaded) = self.loaded.take().filter(|_| !self.faulted) {
            idle().entry(std::mem::take(&mut self.path)).or_default().push(loaded);
        }
    }
}
