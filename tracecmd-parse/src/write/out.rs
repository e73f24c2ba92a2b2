// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers in the byte order of the file, into memory or a file.

use std::io::{Seek, SeekFrom, Write};

use super::WriteError;
use crate::bytes::Endian;

/// Bytes in memory.
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    endian: Endian,
}

impl Bytes {
    pub(super) fn new(endian: Endian) -> Bytes {
        Bytes { bytes: Vec::new(), endian }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(&u16(self.endian, value));
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(&u32(self.endian, value));
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(&u64(self.endian, value));
    }

    /// Text and its NUL.
    pub(super) fn cstr(&mut self, text: &str) {
        self.put(text.as_bytes());
        self.put(&[0]);
    }

    /// Text behind its 8-byte length.
    pub(super) fn text8(&mut self, text: &[u8]) {
        self.u64(text.len() as u64);
        self.put(text);
    }
}

pub(super) fn u16(endian: Endian, value: u16) -> [u8; 2] {
    match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    }
}

pub(super) fn u32(endian: Endian, value: u32) -> [u8; 4] {
    match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    }
}

pub(super) fn u64(endian: Endian, value: u64) -> [u8; 8] {
    match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    }
}

/// A file that is written forward; words in it are filled in later.
pub(super) struct Out<W> {
    inner: W,
    pos: u64,
    pub(super) endian: Endian,
}

impl<W: Write + Seek> Out<W> {
    pub(super) fn new(inner: W, endian: Endian) -> Out<W> {
        Out { inner, pos: 0, endian }
    }

    pub(super) fn pos(&self) -> u64 {
        self.pos
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.inner.write_all(bytes)?;
        self.pos += bytes.len() as u64;
        Ok(())
    }

    /// Zeros up to the next multiple of `align`.
    pub(super) fn pad(&mut self, align: u64) -> Result<(), WriteError> {
        let missing = self.pos.next_multiple_of(align) - self.pos;
        self.put(&vec![0; missing as usize])
    }

    /// Overwrites bytes that were written before.
    pub(super) fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<(), WriteError> {
        self.inner.seek(SeekFrom::Start(at))?;
        self.inner.write_all(bytes)?;
        self.inner.seek(SeekFrom::Start(self.pos))?;
        Ok(())
    }

    pub(super) fn patch_u64(&mut self, at: u64, value: u64) -> Result<(), WriteError> {
        self.patch(at, &u64(self.endian, value))
    }

    pub(super) fn finish(mut self) -> Result<W, WriteError> {
        self.inner.flush()?;
        Ok(self.inner)
    }
}
