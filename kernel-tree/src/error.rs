// SPDX-License-Identifier: GPL-2.0-or-later
//! What can go wrong with a tree: one sentence each, with the next step.

use crate::c::conditional::ConditionalError;

/// Why a tree gives no implementation.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The path leads nowhere.
    #[error("{path}: no such file or directory; expected a kernel tree (git or unpacked) or a linux-source-*.tar.xz")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// There is no kernel in it.
    #[error("{path}: no kernel tree, {missing} is not there")]
    NoKernel {
        /// The tree.
        path: String,
        /// The file that every kernel tree has.
        missing: String,
    },
    /// A kernel from before the wakeup path had its present shape.
    #[error("{path}: Linux {version}; sisdiff runs the wakeup path of Linux 4.9 and later")]
    TooOld {
        /// The tree.
        path: String,
        /// Its version.
        version: String,
    },
    /// An `#if` that cannot be followed.
    #[error("{path}: {source}")]
    Conditional {
        /// The file.
        path: String,
        /// Where and why.
        source: ConditionalError,
    },
    /// A function that the tree lacks.
    #[error("{path}: {function}() is not defined; sisdiff knows the wakeup path of Linux 4.9 and later")]
    NoFunction {
        /// The tree.
        path: String,
        /// The function.
        function: String,
    },
    /// A symbol that nobody defines.
    #[error(
        "{path}:{line}: {symbol} is used in {by} and defined neither in the tree's scheduler files nor in the stand-ins; write a stand-in for it into a header and give it with --shim"
    )]
    Unresolved {
        /// The symbol.
        symbol: String,
        /// The definition that uses it.
        by: String,
        /// Its file.
        path: String,
        /// The line of the use.
        line: usize,
    },
    /// There is no C compiler.
    #[error("{cc}: {source}; a kernel tree is built with the system's C compiler, install one or name it in CC")]
    NoCompiler {
        /// The compiler.
        cc: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// The compiler refuses the tree's code.
    #[error("{path}: {cc} refuses it: {error}")]
    Compile {
        /// The tree.
        path: String,
        /// The compiler.
        cc: String,
        /// Its first complaint.
        error: String,
    },
    /// The built object cannot be opened.
    #[error("{path}: {source}")]
    Load {
        /// The object.
        path: String,
        /// The linker's word.
        source: libloading::Error,
    },
    /// A program that is needed is not there.
    #[error("{program}: {source}; install it to read this kind of tree")]
    Program {
        /// The program.
        program: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// A revision that the repository does not know.
    #[error("{path}: git knows no revision {rev:?} there")]
    NoRevision {
        /// The repository.
        path: String,
        /// The revision.
        rev: String,
    },
    /// A revision of something that is no repository.
    #[error("{path}: no git repository, so there is no revision {rev:?}; leave @{rev} out")]
    NoGit {
        /// The path.
        path: String,
        /// The revision.
        rev: String,
    },
    /// A patch that is neither a file nor a revision.
    #[error("patch {patch}: no such file, and no revision of {path}")]
    NoPatch {
        /// The patch.
        patch: String,
        /// The tree.
        path: String,
    },
    /// A patch that changes nothing that is read.
    #[error("patch {patch}: it changes nothing in kernel/sched or include (it touches: {touched})")]
    NoHunks {
        /// The patch.
        patch: String,
        /// What it does touch.
        touched: String,
    },
    /// A patch that does not apply.
    #[error("patch {patch} does not apply: {rejects}")]
    Patch {
        /// The patch.
        patch: String,
        /// The hunks.
        rejects: String,
    },
}
