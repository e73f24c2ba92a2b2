// SPDX-License-Identifier: GPL-2.0-or-later
//! Offsets of struct members from the running kernel's type information (BTF).
//!
//! **Source**: Documentation/bpf/btf.rst. Only what a path through structs needs is read.

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
/// Kinds of types, by their number.
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FUNC_PROTO: u32 = 13;
/// typedef, volatile, const, restrict, type tag: a name for another type.
const ALIASES: [u32; 5] = [8, 9, 10, 11, 18];
/// Types within types that are followed; no kernel has as many.
const DEPTH_MAX: usize = 64;

/// Why type information cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// No BTF.
    #[error("{found} bytes that are no BTF; expected /sys/kernel/btf/vmlinux, which CONFIG_DEBUG_INFO_BTF makes")]
    NotBtf {
        /// Their number.
        found: usize,
    },
    /// A type beyond the end.
    #[error("BTF ends at byte {at}, within a type")]
    Cut {
        /// Where.
        at: usize,
    },
}

/// A member found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Bytes from the start of the struct.
    pub offset: u64,
    /// Its size, bytes.
    pub size: u64,
}

#[derive(Debug, Clone, Copy)]
struct Type {
    kind: u32,
    /// Size, or the type that it speaks of.
    value: u32,
    /// Where what belongs to it begins.
    at: usize,
    len: u32,
    /// Member offsets are in 24 bits.
    bitfields: bool,
}

/// Type information.
#[derive(Debug, Clone)]
pub struct Btf {
    bytes: Vec<u8>,
    strings: usize,
    types: Vec<Type>,
    structs: BTreeMap<String, u32>,
}

impl Btf {
    /// Reads type information of a little-endian kernel.
    ///
    /// # Errors
    /// [`BtfError`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        let header = |at| u32_at(&bytes, at).map(|value| value as usize);
        let not = BtfError::NotBtf { found: bytes.len() };
        let is_btf = bytes.get(..2).is_some_and(|magic| magic == MAGIC.to_le_bytes());
        let fields = [4, 8, 12, 16].map(header);
        let [Some(length), Some(types), Some(types_len), Some(strings)] = fields else { return Err(not) };
        if !is_btf {
            return Err(not);
        }
        let (mut at, end) = (length + types, length + types + types_len);
        let mut btf = Self { strings: length + strings, bytes, types: Vec::new(), structs: BTreeMap::new() };
        // Type 0 is void.
        btf.types.push(Type { kind: 0, value: 0, at: 0, len: 0, bitfields: false });
        while at < end {
            let cut = || BtfError::Cut { at };
            let [Some(name), Some(info), Some(value)] = [0, 4, 8].map(|n| u32_at(&btf.bytes, at + n)) else {
                return Err(cut());
            };
            let (kind, len) = ((info >> 24) & 0x1f, info & 0xffff);
            let one = Type { kind, value, at: at + 12, len, bitfields: info >> 31 == 1 };
            if kind == STRUCT && name != 0 {
                let id = btf.types.len() as u32;
                btf.structs.entry(btf.string(name)).or_insert(id);
            }
            btf.types.push(one);
            at += 12 + one.trailing();
        }
        if at > btf.bytes.len() { Err(BtfError::Cut { at }) } else { Ok(btf) }
    }

    /// The member at the end of `path`: `task_struct.se.avg.util_avg`. Anonymous structs are looked through, of an array
    /// it is the first element. `None`: this kernel has no such member.
    pub fn member(&self, path: &str) -> Option<Member> {
        let (offset, id) = self.walk(path)?;
        Some(Member { offset, size: self.size(id, 0)? })
    }

    /// The number of parameters of the function that the member at the end of `path` points to.
    pub fn parameters(&self, path: &str) -> Option<u32> {
        let (_, id) = self.walk(path)?;
        let pointer = self.of(self.plain(id)?)?;
        let function = self.of(self.plain(pointer.value)?)?;
        (pointer.kind == PTR && function.kind == FUNC_PROTO).then_some(function.len)
    }

    fn walk(&self, path: &str) -> Option<(u64, u32)> {
        let mut parts = path.split('.');
        let mut id = *self.structs.get(parts.next()?)?;
        let mut offset = 0;
        for name in parts {
            let (at, next) = self.find(id, name, 0)?;
            offset += at;
            id = next;
        }
        Some((offset, id))
    }

    fn find(&self, id: u32, name: &str, depth: usize) -> Option<(u64, u32)> {
        let mut one = self.of(self.plain(id)?)?;
        while one.kind == ARRAY {
            one = self.of(self.plain(u32_at(&self.bytes, one.at)?)?)?;
        }
        if !matches!(one.kind, STRUCT | UNION) || depth > DEPTH_MAX {
            return None;
        }
        for at in (0..one.len as usize).map(|n| one.at + 12 * n) {
            let [own, inner, bits] = [0, 4, 8].map(|n| u32_at(&self.bytes, at + n));
            let (own, inner, bits) = (own?, inner?, bits?);
            let offset = u64::from(if one.bitfields { bits & 0xff_ffff } else { bits }) / 8;
            if own != 0 && self.string(own) == name {
                return Some((offset, inner));
            }
            if own == 0
                && let Some((further, found)) = self.find(inner, name, depth + 1)
            {
                return Some((offset + further, found));
            }
        }
        None
    }

    fn size(&self, id: u32, depth: usize) -> Option<u64> {
        let one = self.of(self.plain(id)?)?;
        match one.kind {
            PTR => Some(8),
            ARRAY if depth < DEPTH_MAX => {
                let (element, n) = (u32_at(&self.bytes, one.at)?, u32_at(&self.bytes, one.at + 8)?);
                Some(u64::from(n) * self.size(element, depth + 1)?)
            }
            _ => Some(u64::from(one.value)),
        }
    }

    /// The type behind its names.
    fn plain(&self, mut id: u32) -> Option<u32> {
        for _ in 0..DEPTH_MAX {
            let one = self.of(id)?;
            if !ALIASES.contains(&one.kind) {
                return Some(id);
            }
            id = one.value;
        }
        None
    }

    fn of(&self, id: u32) -> Option<Type> {
        self.types.get(id as usize).copied()
    }

    fn string(&self, at: u32) -> String {
        let bytes = self.bytes.get(self.strings + at as usize..).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

impl Type {
    /// Bytes that follow the first twelve.
    fn trailing(&self) -> usize {
        let each = self.len as usize;
        match self.kind {
            // int, var, declaration tag
            1 | 14 | 17 => 4,
            ARRAY => 12,
            // data section, 64-bit enum
            STRUCT | UNION | 15 | 19 => 12 * each,
            // enum
            FUNC_PROTO | 6 => 8 * each,
            _ => 0,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types as little-endian words, and their strings.
    fn btf(words: &[u32], strings: &[u8]) -> Vec<u8> {
        let types = words.len() as u32 * 4;
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, types, types, strings.len() as u32].iter().chain(words) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    fn info(kind: u32, len: u32) -> u32 {
        kind << 24 | len
    }

    #[test]
    fn members_are_found_through_names_arrays_and_anonymous_structs() {
        let strings = b"\0int\0outer\0a\0inner\0b\0alias\0";
        let (int, outer, a, inner, b, alias) = (1, 5, 11, 13, 19, 21);
        let words = [
            // 1: int of 4 bytes
            int,
            info(1, 0),
            4,
            32,
            // 2: an anonymous struct of 8 bytes with b at bit 32
            0,
            info(STRUCT, 1),
            8,
            b,
            1,
            32,
            // 3: inner[3] of the anonymous struct
            0,
            info(ARRAY, 0),
            0,
            2,
            1,
            3,
            // 4: a name for 3
            alias,
            info(8, 0),
            3,
            // 5: outer { int a; struct { int b; } (at 64 bits); alias inner (at 128 bits) }
            outer,
            info(STRUCT, 3),
            40,
            a,
            1,
            0,
            0,
            2,
            64,
            inner,
            4,
            128,
        ];
        let btf = Btf::parse(btf(&words, strings)).expect("BTF");
        assert_eq!(btf.member("outer.a"), Some(Member { offset: 0, size: 4 }));
        assert_eq!(btf.member("outer.b"), Some(Member { offset: 12, size: 4 }));
        assert_eq!(btf.member("outer.inner"), Some(Member { offset: 16, size: 24 }));
        assert_eq!(btf.member("outer.inner.b"), Some(Member { offset: 20, size: 4 }));
        assert_eq!(btf.member("outer.c"), None);
        assert_eq!(btf.member("other.a"), None);
        assert_eq!(btf.parameters("outer.a"), None);
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(Btf::parse(b"ELF".to_vec()).err(), Some(BtfError::NotBtf { found: 3 }));
        let whole = btf(&[1, info(STRUCT, 9), 8], b"\0s\0");
        assert!(matches!(Btf::parse(whole), Err(BtfError::Cut { .. })));
    }

    #[test]
    fn a_type_that_names_itself_ends() {
        let words = [1, info(STRUCT, 1), 8, 3, 2, 0, 0, info(8, 0), 2];
        let btf = Btf::parse(btf(&words, b"\0s\0a\0")).expect("BTF");
        assert_eq!(btf.member("s.a"), None);
    }

    #[test]
    fn the_running_kernel_has_a_task_struct() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            eprintln!("skipped: this kernel has no BTF");
            return;
        };
        let btf = Btf::parse(bytes).expect("the kernel's own BTF");
        assert_eq!(btf.member("task_struct.pid").map(|pid| pid.size), Some(4));
        assert_eq!(btf.member("task_struct.se.avg.util_avg").map(|util| util.size), Some(8));
        assert!(btf.parameters("sched_class.select_task_rq").is_some_and(|n| n >= 3));
    }
}
