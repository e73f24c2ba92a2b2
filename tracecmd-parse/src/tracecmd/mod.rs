// SPDX-License-Identifier: GPL-2.0-or-later
//! The second reader: trace-cmd's own C library.
//!
//! [`TraceCmd`] reads through `libtracecmd.so.1` and `libtraceevent.so.1`, which are loaded at run time (`dlopen`):
//! nothing is needed to build, and a machine without them only lacks this reader. It is for a file version or a
//! compression that the native reader does not know, and to check the native reader.
//!
//! # In a child process
//! Version 3.1.6 of the library crashes on some damaged files (a version 6 file that was cut inside the events, for
//! one), prints to standard output, and reads formats and symbol tables with a parser that was not made for hostile
//! input. So it never runs in the process that asks: [`TraceCmd::open`] starts the program that is running once more
//! (`/proc/self/exe`), and the copy answers over a socket. A crash there is an [`Error`] here.
//!
//! The program must help with that, first thing in its `main`:
//!
//! ```no_run
//! tracecmd_parse::tracecmd::serve_if_asked();
//! // Everything else: arguments, threads, ...
//! ```
//!
//! A program that did not gets [`Error::TraceCmd`] from `open`, never a copy of itself that runs wild.
//!
//! # What it costs
//! The library needs 50 to 70 ms to open a file. Events come in batches over a socket and are not copied again. The
//! library keeps the decompressed events of a version 7 file in temporary files in `/tmp`, which a crash leaves
//! behind.

mod child;
#[allow(unsafe_code, reason = "declarations of C functions and structures")]
mod ffi;
#[allow(unsafe_code, reason = "calls C functions")]
mod handle;
#[allow(unsafe_code, reason = "walks C structures")]
mod print;
mod reader;
mod wire;

pub use reader::{Options, TraceCmd};

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Set in the environment of a child.
const ASKED: &str = "TRACECMD_PARSE_SERVE";

/// Whether this program called [`serve_if_asked`].
static PREPARED: AtomicBool = AtomicBool::new(false);

/// Whether the running program can serve.
pub(crate) fn prepared() -> bool {
    PREPARED.load(Ordering::Relaxed)
}

/// Names of the C libraries, as `dlopen` takes them: a soname that the loader looks for, or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libraries {
    /// `libtracecmd.so.1`
    pub tracecmd: String,
    /// `libtraceevent.so.1`
    pub traceevent: String,
}

impl Default for Libraries {
    fn default() -> Libraries {
        Libraries { tracecmd: "libtracecmd.so.1".into(), traceevent: "libtraceevent.so.1".into() }
    }
}

impl Libraries {
    /// Loads both and looks for every function that is needed, in this process; reads nothing with them.
    ///
    /// # Errors
    /// [`Error::Library`] with the one that is not there or too old.
    pub fn check(&self) -> Result<(), Error> {
        ffi::Api::load(self).map(drop)
    }
}

/// Answers [`TraceCmd::open`] if this process was started by it, and then ends the process; else returns at once.
///
/// To be called first thing in `main`.
pub fn serve_if_asked() {
    if std::env::var_os(ASKED).is_none() {
        PREPARED.store(true, Ordering::Relaxed);
        return;
    }
    let code = match child::serve() {
        Ok(()) => 0,
        // Where the parent has gone away there is nobody to tell.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    };
    std::process::exit(code);
}
