// SPDX-License-Identifier: GPL-2.0-or-later
//! Running a built tree: in this process, or in one of its own.

mod ffi;

pub use ffi::Object;

/// Why a request had no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The processor refused: a null pointer, a division by zero.
    #[error("{what} at line {line}, address {address:#x}")]
    Signal {
        /// The signal in words.
        what: String,
        /// The line of the kernel's text that was being run, from 1; 0: none.
        line: u64,
        /// The address, where there is one.
        address: u64,
    },
    /// BUG(), or a request that makes no sense.
    #[error("stopped at line {line}: {what}")]
    Bug {
        /// What was tested.
        what: String,
        /// The line.
        line: u64,
    },
    /// A loop without end.
    #[error("a loop without end, last seen at line {line}")]
    Loop {
        /// The line.
        line: u64,
    },
    /// The answer was longer than there is room for.
    #[error("an answer that is too long")]
    Answer,
    /// The helper process is gone.
    #[error("the helper process ended: {how}")]
    Helper {
        /// Its exit status, and the last it said.
        how: String,
    },
}

impl Fault {
    /// The fault that an object reports as `kind`, with its words.
    fn from_words(kind: i64, words: &[u64]) -> Self {
        let at = |i: usize| words.get(i).copied().unwrap_or(0);
        let bytes: Vec<u8> = words.iter().skip(4).take(12).flat_map(|word| word.to_le_bytes()).collect();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let what = String::from_utf8_lossy(text).into_owned();
        match kind {
            1 => Self::Signal { what, line: at(1), address: at(2) },
            2 => Self::Bug { what, line: at(1) },
            3 => Self::Loop { line: at(1) },
            _ => Self::Answer,
        }
    }
}
