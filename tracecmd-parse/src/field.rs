// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading one field of an event by the offsets of its format.

use std::borrow::Cow;

use crate::bytes::Endian;
use crate::format::{Field, FieldKind};

/// One event as it lies in the ring buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Time in nanoseconds (in ticks of the clock, if that does not count
    /// nanoseconds: see [`crate::Meta::clock_is_ns`]), corrected as
    /// `trace-cmd report` does.
    pub ts_ns: u64,
    /// The CPU whose buffer it was in.
    pub cpu: u32,
    /// `common_type`: which format it has.
    pub id: u16,
    /// The event with its common fields, in the byte order of the file.
    pub data: &'a [u8],
}

/// A field whose place was looked up once.
///
/// Every read is checked: `None` where the event is shorter than its format
/// says, or the field is not of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldRef {
    offset: u32,
    size: u32,
    signed: bool,
    kind: FieldKind,
    endian: Endian,
}

impl FieldRef {
    /// For a field of a format in a file of that byte order.
    pub fn new(field: &Field, endian: Endian) -> FieldRef {
        FieldRef { offset: field.offset, size: field.size, signed: field.signed, kind: field.kind, endian }
    }

    /// Bytes from the start of the event.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// Bytes that the field takes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The value, not sign-extended. Fields of 1, 2, 4 and 8 bytes.
    #[inline]
    pub fn u64(&self, event: &RawEvent<'_>) -> Option<u64> {
        self.endian.uint(event.data, self.offset as usize, self.size as usize)
    }

    /// The value, sign-extended if the format says that it is signed.
    #[inline]
    pub fn i64(&self, event: &RawEvent<'_>) -> Option<i64> {
        let value = self.u64(event)?;
        if !self.signed {
            return Some(value as i64);
        }
        let unused = 64 - 8 * self.size;
        Some((value << unused) as i64 >> unused)
    }

    /// The bytes of the field: of a fixed array all of them, of `__data_loc` and
    /// `__rel_loc` fields those they point to, of an array without a size those
    /// up to the end of the event.
    pub fn bytes<'a>(&self, event: &RawEvent<'a>) -> Option<&'a [u8]> {
        let at = self.offset as usize;
        let (from, len) = match self.kind {
            FieldKind::Array { len: 0 } => return event.data.get(at..),
            FieldKind::Scalar | FieldKind::Array { .. } => (at, self.size as usize),
            FieldKind::DataLoc | FieldKind::RelLoc => {
                let word = self.endian.u32(event.data, at)?;
                let base = match self.kind {
                    FieldKind::RelLoc => at.checked_add(self.size as usize)?,
                    _ => 0,
                };
                (base + (word & 0xffff) as usize, (word >> 16) as usize)
            }
        };
        event.data.get(from..from.checked_add(len)?)
    }

    /// The bytes of the field up to the first NUL.
    pub fn cstr<'a>(&self, event: &RawEvent<'a>) -> Option<&'a [u8]> {
        let bytes = self.bytes(event)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }

    /// The text of the field up to the first NUL; bytes that are not UTF-8 are replaced.
    pub fn text<'a>(&self, event: &RawEvent<'a>) -> Option<Cow<'a, str>> {
        self.cstr(event).map(String::from_utf8_lossy)
    }

    /// Element `index` of a fixed array of numbers.
    pub fn element(&self, event: &RawEvent<'_>, index: u32) -> Option<u64> {
        let FieldKind::Array { len } = self.kind else {
            return None;
        };
        if index >= len {
            return None;
        }
        let width = self.size / len;
        let at = self.offset.checked_add(index.checked_mul(width)?)?;
        self.endian.uint(event.data, at as usize, width as usize)
    }
}
