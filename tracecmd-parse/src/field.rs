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

    /// Whether it is a number with the least significant byte first, of that offset and size in bytes, and signed or not.
    pub fn is_little(&self, offset: u32, size: u32, signed: bool) -> bool {
        let kind = FieldKind::Scalar;
        *self == FieldRef { offset, size, signed, kind, endian: Endian::Little }
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
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(size: u32, signed: bool, kind: FieldKind, endian: Endian) -> FieldRef {
        FieldRef { offset: 4, size, signed, kind, endian }
    }

    fn event(data: &[u8]) -> RawEvent<'_> {
        RawEvent { ts_ns: 0, cpu: 0, id: 0, data }
    }

    #[test]
    fn numbers_of_every_size() {
        let data = [0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for (size, unsigned) in [(1, 0xfe), (2, 0xfffe), (4, 0xffff_fffe), (8, 0xffff_ffff_ffff_fffe)] {
            let field = reference(size, true, FieldKind::Scalar, Endian::Little);
            assert_eq!((field.u64(&event(&data)), field.i64(&event(&data))), (Some(unsigned), Some(-2)));
            let field = reference(size, false, FieldKind::Scalar, Endian::Little);
            assert_eq!(field.i64(&event(&data)), Some(unsigned as i64));
        }
        let big = reference(2, false, FieldKind::Scalar, Endian::Big);
        assert_eq!(big.u64(&event(&data)), Some(0xfeff));
        assert_eq!(reference(3, false, FieldKind::Scalar, Endian::Big).u64(&event(&data)), None);
    }

    #[test]
    fn a_number_reads_the_same_with_and_without_bytes_behind_it() {
        let data: Vec<u8> = (0xf1..=0xff).collect();
        for size in 0..=9 {
            let bytes = data[4..4 + size].iter().copied().map(u64::from);
            let little = bytes.clone().rev().fold(0, |sum, byte| sum << 8 | byte);
            let big = bytes.fold(0, |sum, byte| sum << 8 | byte);
            for (endian, value) in [(Endian::Little, little), (Endian::Big, big)] {
                let field = reference(size as u32, false, FieldKind::Scalar, endian);
                for len in 0..=data.len() {
                    let wanted = (matches!(size, 1 | 2 | 4 | 8) && len >= 4 + size).then_some(value);
                    assert_eq!(field.u64(&event(&data[..len])), wanted, "{endian:?}, {size} of {len} bytes");
                }
            }
        }
    }

    #[test]
    fn a_short_event_gives_nothing() {
        for len in 0..8 {
            let field = reference(4, true, FieldKind::Scalar, Endian::Little);
            assert_eq!(field.i64(&event(&[0; 8][..len])), None);
            assert_eq!(field.bytes(&event(&[0; 8][..len])), None);
        }
    }

    #[test]
    fn strings_of_fixed_size_end_at_nul() {
        let field = reference(8, false, FieldKind::Array { len: 8 }, Endian::Little);
        let data = b"\0\0\0\0a b=c\0xx";
        assert_eq!(field.bytes(&event(data)), Some(&b"a b=c\0xx"[..]));
        assert_eq!(field.text(&event(data)).unwrap(), "a b=c");
        assert_eq!(field.cstr(&event(b"\0\0\0\0\xffbcdefgh")), Some(&b"\xffbcdefgh"[..]));
    }

    #[test]
    fn dynamic_strings() {
        let at_10 = [0, 0, 0, 0, 10, 0, 3, 0, 9, 9, b'h', b'i', 0];
        let field = reference(4, true, FieldKind::DataLoc, Endian::Little);
        assert_eq!(field.text(&event(&at_10)).unwrap(), "hi");
        // Two bytes behind the word.
        let relative = [0, 0, 0, 0, 2, 0, 3, 0, 9, 9, b'h', b'i', 0];
        let field = reference(4, true, FieldKind::RelLoc, Endian::Little);
        assert_eq!(field.text(&event(&relative)).unwrap(), "hi");
        let outside = [0, 0, 0, 0, 10, 0, 4, 0, 9, 9, b'h', b'i', 0];
        let field = reference(4, true, FieldKind::DataLoc, Endian::Little);
        assert_eq!(field.bytes(&event(&outside)), None);
        assert_eq!(field.bytes(&event(&[0, 0, 0, 0, 255, 255, 255, 255])), None);
    }

    #[test]
    fn the_rest_of_the_event() {
        let field = reference(0, false, FieldKind::Array { len: 0 }, Endian::Little);
        assert_eq!(field.cstr(&event(b"\0\0\0\0ab\n\0")), Some(&b"ab\n"[..]));
        assert_eq!(field.element(&event(b"\0\0\0\0ab\n\0"), 0), None);
    }

    #[test]
    fn elements_of_an_array() {
        let field = reference(8, false, FieldKind::Array { len: 4 }, Endian::Big);
        let data = [0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4];
        assert_eq!((field.element(&event(&data), 3), field.element(&event(&data), 4)), (Some(4), None));
    }
}
