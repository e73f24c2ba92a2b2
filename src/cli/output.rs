// SPDX-License-Identifier: GPL-2.0-or-later
//! Printing, and what can go wrong on the way to it.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::oracle;
use crate::replay::ReplayError;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The reader of the output has gone: no trouble at all.
    #[error("the output was closed")]
    BrokenPipe,
    /// The command line asks for something that there is not.
    #[error("{0}")]
    Usage(String),
    /// Several things are wrong, each a sentence of its own.
    #[error("{}", .0.join("; "))]
    Several(Vec<String>),
    /// A recording cannot be replayed.
    #[error(transparent)]
    Replay(ReplayError),
    /// An input cannot be read.
    #[error("{what}: cannot be read ({reason})")]
    Read {
        /// The file, or stdin.
        what: String,
        /// The system's reason.
        reason: String,
    },
    /// A case or an implementation cannot be played.
    #[error(transparent)]
    Play(#[from] oracle::Trouble),
    /// The costs of scanning cannot be told.
    #[error(transparent)]
    ScanCost(#[from] crate::scan_cost::ScanCostError),
    /// A function graph cannot be read.
    #[error(transparent)]
    Funcgraph(#[from] crate::funcgraph::FuncgraphError),
    /// Output cannot be written.
    #[error("{what}: cannot be written ({reason}); nothing more was done")]
    Write {
        /// The file, or stdout.
        what: String,
        /// The system's reason.
        reason: String,
    },
}

impl From<ReplayError> for Trouble {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Write { closed: true, .. } => Self::BrokenPipe,
            error => Self::Replay(error),
        }
    }
}

impl Trouble {
    /// From an error of writing to `what`.
    pub fn write(what: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Write { what: what.to_owned(), reason: error.to_string() },
        }
    }
}

/// The program was started without a stdout.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Says whether the program was started without a stdout: writes would succeed, and nothing would be there.
pub(super) fn stdout_is_closed(closed: bool) {
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether what is written to stdout arrives anywhere; to be asked before each write.
///
/// # Errors
/// What a write would give without the runtime's /dev/null.
pub fn there_is_a_stdout() -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("it was closed when the program started; open it, or name a file with -o")),
        false => Ok(()),
    }
}

/// Prints `text` on stdout, with its colours where a terminal shows them.
///
/// # Errors
/// [`Trouble::BrokenPipe`] or [`Trouble::Write`].
pub fn print(text: &str) -> Result<(), Trouble> {
    let mut out = anstream::stdout().lock();
    there_is_a_stdout()
        .and_then(|()| out.write_all(text.as_bytes()))
        .and_then(|()| out.flush())
        .map_err(|error| Trouble::write("stdout", &error))
}
