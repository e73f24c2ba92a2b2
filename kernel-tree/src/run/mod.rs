// SPDX-License-Identifier: GPL-2.0-or-later
//! Running a built tree: in this process, or in one of its own.

mod ffi;
mod helper;
pub mod protocol;
mod ring;
mod watch;

use std::path::Path;

use crate::build::Target;
use crate::error::TreeError;

pub use ffi::Object;
pub use helper::Helper;

/// Requests of one word, beside those that the caller makes up.
pub mod request {
    /// Which statements were reached since this was last asked: their numbers, each with how often.
    pub const HITS: u64 = 4;
    /// Keep all state.
    pub const SAVE: u64 = 5;
    /// Put the kept state back.
    pub const RESTORE: u64 = 6;
    /// The state of an object that was just opened.
    pub const RESET: u64 = 7;
    /// The last walk again, as often as the next word says: nothing is told before and nothing answered after.
    pub const AGAIN: u64 = 8;
}

/// Where a tree's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// In this process: the fastest. A null pointer, a division by zero, BUG() and a loop without end are caught; a stray
    /// write is not.
    #[default]
    InProcess,
    /// In a process of its own, which can only hurt itself.
    Process,
    /// The same, built with the compiler's address and undefined-behaviour checks.
    Sanitized,
}

impl Isolation {
    /// What has to be built for it.
    pub fn target(self) -> Target {
        match self {
            Self::InProcess => Target::Object,
            Self::Process => Target::Helper,
            Self::Sanitized => Target::Sanitized,
        }
    }
}

/// A tree that answers.
pub enum Runner {
    /// In this process.
    Object(Object),
    /// In its own.
    Helper(Helper),
}

impl Runner {
    /// Starts what was built at `path`.
    ///
    /// # Errors
    /// It cannot be opened or started.
    pub fn start(path: &Path, isolation: Isolation) -> Result<Self, TreeError> {
        match isolation {
            Isolation::InProcess => Object::open(path).map(Self::Object),
            Isolation::Process | Isolation::Sanitized => Helper::start(path).map(Self::Helper),
        }
    }

    /// Puts `question` to the tree; the words of the answer are at the start of `answer`.
    ///
    /// # Errors
    /// The tree's code faulted. Its state is no longer to be trusted.
    pub fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        match self {
            Self::Object(object) => object.request(question, answer),
            Self::Helper(helper) => helper.request(question, answer),
        }
    }
}

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
    /// The walk, or the answer, was longer than there is room for.
    #[error("a walk of more than 30000 steps")]
    Answer,
    /// The helper process is gone.
    #[error("its process ended: {how}")]
    Helper {
        /// Its exit status, and the last it said.
        how: String,
    },
}

impl Fault {
    /// The line of the kernel's text where it was met.
    pub fn line(&self) -> Option<u64> {
        match *self {
            Self::Signal { line, .. } | Self::Bug { line, .. } | Self::Loop { line } => {
                Some(line).filter(|&line| line > 0)
            }
            Self::Answer | Self::Helper { .. } => None,
        }
    }

    /// The fault that an object reports as `kind`, with its words.
    fn from_words(kind: i64, words: &[u64]) -> Self {
        let at = |i: usize| words.get(i).copied().unwrap_or(0);
        let bytes: Vec<u8> = words.iter().skip(4).take(12).flat_map(|word| word.to_ne_bytes()).collect();
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
