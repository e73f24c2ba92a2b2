// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers in the byte order of the file, and a checked walk over bytes.

use crate::error::Error;
use crate::source::Source;

/// Byte order of the recorded machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The 2-byte number at `at`, if it is inside `data`.
    #[inline]
    pub fn u16(self, data: &[u8], at: usize) -> Option<u16> {
        let b: [u8; 2] = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(b),
            Endian::Big => u16::from_be_bytes(b),
        })
    }

    /// The 4-byte number at `at`, if it is inside `data`.
    #[inline]
    pub fn u32(self, data: &[u8], at: usize) -> Option<u32> {
        let b: [u8; 4] = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(b),
            Endian::Big => u32::from_be_bytes(b),
        })
    }

    /// The 8-byte number at `at`, if it is inside `data`.
    #[inline]
    pub fn u64(self, data: &[u8], at: usize) -> Option<u64> {
        let b: [u8; 8] = data.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(match self {
            Endian::Little => u64::from_le_bytes(b),
            Endian::Big => u64::from_be_bytes(b),
        })
    }

    /// The number of `size` bytes (1, 2, 4 or 8) at `at`.
    #[inline]
    pub fn uint(self, data: &[u8], at: usize, size: usize) -> Option<u64> {
        match size {
            // Most numbers are ints.
            4 => self.u32(data, at).map(u64::from),
            1 => data.get(at).map(|&b| u64::from(b)),
            2 => self.u16(data, at).map(u64::from),
            8 => self.u64(data, at),
            _ => None,
        }
    }
}

/// Bytes of a file that are read at once for small values.
const AHEAD: usize = 4096;

/// Where a [`Walk`] takes its bytes from.
enum Bytes<'a> {
    /// A file, with the bytes from `at` on that were read ahead.
    File { source: &'a Source, ahead: Vec<u8>, at: u64 },
    /// A decompressed section; `base` is the file offset of the section.
    Memory { bytes: &'a [u8], base: u64 },
}

/// Reads one thing after the other, and never beyond `end`.
pub(crate) struct Walk<'a> {
    from: Bytes<'a>,
    pos: u64,
    end: u64,
    endian: Endian,
}

impl<'a> Walk<'a> {
    pub(crate) fn file(source: &'a Source, pos: u64, end: u64, endian: Endian) -> Walk<'a> {
        let from = Bytes::File { source, ahead: Vec::new(), at: 0 };
        Walk { from, pos, end: end.min(source.len()), endian }
    }

    pub(crate) fn memory(bytes: &'a [u8], base: u64, endian: Endian) -> Walk<'a> {
        Walk { from: Bytes::Memory { bytes, base }, pos: 0, end: bytes.len() as u64, endian }
    }

    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.pos)
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// Where the walk stands, for messages and for positions in the file.
    pub(crate) fn offset(&self) -> u64 {
        match self.from {
            Bytes::File { .. } => self.pos,
            Bytes::Memory { base, .. } => base.saturating_add(self.pos),
        }
    }

    /// Whether that many bytes are left.
    pub(crate) fn check(&self, need: u64, what: &'static str) -> Result<(), Error> {
        if need > self.left() {
            return Err(Error::Truncated { what, offset: self.offset(), need, have: self.left() });
        }
        Ok(())
    }

    fn fill(&mut self, out: &mut [u8], what: &'static str) -> Result<(), Error> {
        self.check(out.len() as u64, what)?;
        match &mut self.from {
            Bytes::File { source, .. } if out.len() > AHEAD / 2 => source.read_exact(self.pos, out, what)?,
            Bytes::File { source, ahead, at } => {
                let known = self.pos.checked_sub(*at).is_some_and(|skip| skip + out.len() as u64 <= ahead.len() as u64);
                if !known {
                    let len = self.end.saturating_sub(self.pos).min(AHEAD as u64) as usize;
                    ahead.resize(len, 0);
                    *at = self.pos;
                    // What a failed read left is not known to be the file's.
                    source.read_exact(self.pos, ahead, what).inspect_err(|_| ahead.clear())?;
                }
                // Inside `ahead`: either it was known to be, or check() bounds the length by `end`.
                let from = (self.pos - *at) as usize;
                out.copy_from_slice(&ahead[from..from + out.len()]);
            }
            Bytes::Memory { bytes, .. } => {
                // Inside `bytes`: check() bounds pos + len by end.
                let at = self.pos as usize;
                out.copy_from_slice(&bytes[at..at + out.len()]);
            }
        }
        self.pos += out.len() as u64;
        Ok(())
    }

    /// The next `n` bytes; nothing is allocated before they are known to be there.
    pub(crate) fn take(&mut self, n: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        self.check(n, what)?;
        let mut out = vec![0; n as usize];
        self.fill(&mut out, what)?;
        Ok(out)
    }

    pub(crate) fn skip(&mut self, n: u64, what: &'static str) -> Result<(), Error> {
        self.check(n, what)?;
        self.pos += n;
        Ok(())
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        let mut b = [0; 1];
        self.fill(&mut b, what)?;
        Ok(b[0])
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        let mut b = [0; 2];
        self.fill(&mut b, what)?;
        Ok(self.endian.u16(&b, 0).expect("two bytes were read"))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        let mut b = [0; 4];
        self.fill(&mut b, what)?;
        Ok(self.endian.u32(&b, 0).expect("four bytes were read"))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        let mut b = [0; 8];
        self.fill(&mut b, what)?;
        Ok(self.endian.u64(&b, 0).expect("eight bytes were read"))
    }

    /// A string up to its NUL, of at most `max` bytes.
    pub(crate) fn cstr(&mut self, max: u64, what: &'static str) -> Result<String, Error> {
        let start = self.offset();
        let mut out = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(String::from_utf8_lossy(&out).into_owned()),
                b => out.push(b),
            }
            if out.len() as u64 > max {
                return Err(Error::invalid(what, start, format!("a NUL within {max} bytes"), quote(&out)));
            }
        }
    }

    /// The next bytes must be exactly `want`.
    pub(crate) fn expect(&mut self, want: &[u8], what: &'static str) -> Result<(), Error> {
        let at = self.offset();
        let found = self.take(want.len() as u64, what)?;
        if found != want {
            return Err(Error::invalid(what, at, quote(want), quote(&found)));
        }
        Ok(())
    }
}

/// Up to 16 bytes as text for a message.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(16)];
    let dots = if cut.len() < bytes.len() { "..." } else { "" };
    format!("\"{}{dots}\"", cut.escape_ascii())
}

/// Text up to the first NUL, bytes that are not UTF-8 replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
