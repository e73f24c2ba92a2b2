// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line: parse, run, exit code; nothing else.

fn main() -> std::process::ExitCode {
    sisdiff::cli::main()
}
