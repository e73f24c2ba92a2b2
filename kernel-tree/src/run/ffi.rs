// SPDX-License-Identifier: GPL-2.0-or-later
//! The one place with `unsafe`: opening a built tree and calling it.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;

use super::Fault;
use crate::error::TreeError;

type Request = unsafe extern "C" fn(*const u64, usize, *mut u64, usize) -> i64;

/// A built tree in this process, with state of its own.
pub struct Object {
    // Never unloaded: its signal handlers stay in the chain of handlers.
    _library: ManuallyDrop<Library>,
    request: Request,
}

impl Object {
    /// Opens a private copy of the object at `path`, so that two of the same tree share nothing.
    ///
    /// # Errors
    /// The copy cannot be made or opened.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
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
        Ok(Self { _library: ManuallyDrop::new(library), request })
    }

    /// Puts `question` to the tree; the words of the answer are at the start of `answer`.
    ///
    /// # Errors
    /// The tree's code faulted. Its state is no longer to be trusted.
    pub fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        // SAFETY: both slices are valid for the lengths given and do not overlap; the object reads and writes within
        // them only. `&mut self` keeps a second call out, and faults inside return here through the runtime's guard.
        let words = unsafe { (self.request)(question.as_ptr(), question.len(), answer.as_mut_ptr(), answer.len()) };
        usize::try_from(words).map_err(|_| Fault::from_words(-words, answer))
    }
}
