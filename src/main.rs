// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line: parse, run, exit code; nothing else.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks whether there is a stdout (`>&-`) before the Rust runtime opens /dev/null in its place: what is written there
/// is lost, and no write fails.
extern "C" fn look_at_stdout() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    STDOUT_IS_CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the loader calls what this section names, as C functions, once and before main; this one makes one system call,
// which needs nothing that the runtime sets up, and stores a byte. Arguments that the loader passes are ignored.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_at_stdout;

fn main() -> std::process::ExitCode {
    // Where trace-cmd's library is asked, a copy of this program does the asking.
    tracecmd_parse::tracecmd::serve_if_asked();
    sisdiff::cli::main(STDOUT_IS_CLOSED.load(Ordering::Relaxed))
}
