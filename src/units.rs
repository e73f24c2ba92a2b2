// SPDX-License-Identifier: GPL-2.0-or-later
//! The small types that cross module borders. Durations and stamps are plain `u64` with the unit in the name.

use std::fmt;

/// Number of CPUs a [`crate::cpumask::Cpumask`] can hold. Debian's kernels have `NR_CPUS` 8192; the largest machine
/// people mail traces of has under a thousand CPUs, and a fixed size keeps the mask free of allocation.
pub const MAX_CPUS: usize = 1024;

/// A logical CPU (one hardware thread), numbered as the kernel numbers it.
///
/// Range: below [`MAX_CPUS`]. "No CPU" (the kernel's `-1` or `>= nr_cpumask_bits`) is `None`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Cpu(pub u16);

impl Cpu {
    /// The index of this CPU's entry in a per-CPU column.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The CPU with number `index`, if a mask can hold it.
    #[inline]
    pub fn new(index: usize) -> Option<Self> {
        (index < MAX_CPUS).then_some(Self(index as u16))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

/// A thread id as ftrace prints it. Every CPU's swapper has pid 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle task's pid, the same on every CPU.
    pub const SWAPPER: Self = Self(0);
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid{}", self.0)
    }
}

/// Index of a task in [`crate::machine::Tasks`]. `0..nr_cpu_ids` are the swappers, by CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The idle task of `cpu`.
    pub fn swapper(cpu: Cpu) -> Self {
        Self(u32::from(cpu.0))
    }
}

/// Whether a character cannot be seen, or moves what is around it: control characters, those that turn the direction of
/// text, other format characters, line separators and what is no character. A report shows such ones escaped.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// A task's name: `TASK_COMM_LEN` (16) bytes with a terminating zero, any bytes at all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// The first 16 bytes of `bytes`, cut at the first zero.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        // The kernel's fields have all of them.
        let mut comm = bytes.first_chunk().copied().unwrap_or_else(|| {
            let mut comm = [0; 16];
            comm[..bytes.len()].copy_from_slice(bytes);
            comm
        });
        let word = u128::from_le_bytes(comm);
        // The lowest set bit is in the first zero byte (those above it may be wrong).
        const ONES: u128 = u128::from_le_bytes([1; 16]);
        let zeroes = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeroes != 0 {
            comm = (word & ((1 << (zeroes.trailing_zeros() - 7)) - 1)).to_le_bytes();
        }
        Self(comm)
    }

    /// The name without its trailing zeroes.
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        &self.0[..len]
    }
}

impl Ord for Comm {
    /// Byte by byte, as one number each: names are what maps of tasks are searched by.
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for Comm {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Comm {
    /// Bytes that are not UTF-8 or not printable come out escaped, so that a name cannot break a line of a report.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(self.as_bytes());
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            if is_unseen(c) {
                clean.extend(c.escape_default());
            } else {
                clean.push(c);
            }
        }
        f.pad(&clean)
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A time of the trace as ftrace prints it: seconds with six decimals, the rest cut.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// `1234567` as `1,234,567`.
pub fn separated(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_its_first_zero_or_the_sixteenth_byte() {
        for (bytes, name) in [
            (&b""[..], &b""[..]),
            (b"a", b"a"),
            (b"a\0b", b"a"),
            (b"\0b", b""),
            (b"fifteen letters\0", b"fifteen letters"),
            (b"a\0bcdefghijklmno", b"a"),
            (b"sixteen letters.and more", b"sixteen letters."),
        ] {
            let comm = Comm::new(bytes);
            assert_eq!(comm.as_bytes(), name, "{bytes:?}");
            assert!(comm.0[name.len()..].iter().all(|&byte| byte == 0), "{bytes:?}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_their_bytes() {
        let names: [&[u8]; 7] = [b"", b"a", b"a b", b"aa", b"b", b"sixteen letters.", b"\xff"];
        for pair in names.windows(2) {
            assert!(Comm::new(pair[0]) < Comm::new(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn times_print_as_ftrace_prints_them() {
        assert_eq!(seconds(7_392_517_999), "7.392517");
        assert_eq!(seconds(1), "0.000000");
    }
}
