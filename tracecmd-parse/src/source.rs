// SPDX-License-Identifier: GPL-2.0-or-later
//! The bytes of a trace file, read by position.
//!
//! Positioned reads, not a mapping: a file that shrinks while it is mapped
//! ends the process with SIGBUS, and a mapping cannot be had without `unsafe`.

use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use crate::error::Error;

/// A file, or bytes in memory.
#[derive(Debug)]
pub(crate) struct Source {
    inner: Inner,
    len: u64,
}

#[derive(Debug)]
enum Inner {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Source, Error> {
        // Asked before the open: opening a pipe would wait for its writer.
        let kind = std::fs::metadata(path)?.file_type();
        if !kind.is_file() {
            let found = if kind.is_dir() {
                "directory"
            } else if kind.is_fifo() {
                "pipe"
            } else if kind.is_socket() {
                "socket"
            } else {
                "device"
            };
            return Err(Error::NotAFile { found });
        }
        Source::file(File::open(path)?)
    }

    pub(crate) fn file(file: File) -> Result<Source, Error> {
        let len = file.metadata()?.len();
        Ok(Source { inner: Inner::File(file), len })
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> Source {
        Source { len: bytes.len() as u64, inner: Inner::Memory(bytes) }
    }

    /// Bytes in it when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads at `offset` as much of `out` as there is; returns how much.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize, Error> {
        // The operating system takes offsets beyond 63 bits for an error.
        if offset >= self.len {
            return Ok(0);
        }
        match &self.inner {
            Inner::File(file) => {
                let mut done = 0;
                while done < out.len() {
                    let at = offset.saturating_add(done as u64);
                    match file.read_at(&mut out[done..], at) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                Ok(done)
            }
            Inner::Memory(bytes) => {
                let Ok(at) = usize::try_from(offset) else {
                    return Ok(0);
                };
                let from = bytes.get(at..).unwrap_or(&[]);
                let n = from.len().min(out.len());
                out[..n].copy_from_slice(&from[..n]);
                Ok(n)
            }
        }
    }

    /// Fills `out` from `offset`, or says how much was missing.
    pub(crate) fn read_exact(&self, offset: u64, out: &mut [u8], what: &'static str) -> Result<(), Error> {
        let have = self.read_at(offset, out)?;
        if have < out.len() {
            return Err(Error::Truncated { what, offset, need: out.len() as u64, have: have as u64 });
        }
        Ok(())
    }
}
