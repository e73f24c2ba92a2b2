// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line: parse, run, exit code; nothing else.

fn main() -> std::process::ExitCode {
    // Where trace-cmd's library is asked, a copy of this program does the asking.
    tracecmd_parse::tracecmd::serve_if_asked();
    sisdiff::cli::main()
}
