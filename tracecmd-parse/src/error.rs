// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be wrong with a trace.dat, said with the place in the file.

use std::path::PathBuf;

/// Why a file, a section or a field cannot be read.
///
/// Offsets are bytes from the start of the file; inside a compressed section
/// they are the section's place plus the bytes into what was decompressed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The error happened in this file.
    #[error("{}: {error}", path.display())]
    InFile {
        /// The file as it was named.
        path: PathBuf,
        /// What is wrong in it.
        #[source]
        error: Box<Error>,
    },
    /// The operating system refused to open or read it.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// The packing around a trace cannot be taken away.
    #[error("is packed with {method}; the packed stream, {unpacked} bytes unpacked, {fault}")]
    Packed {
        /// "gzip", "zstd" or "zlib".
        method: &'static str,
        /// Bytes that came out before.
        unpacked: u64,
        /// What is wrong.
        fault: PackedFault,
    },
    /// Not a regular file.
    #[error(
        "is a {found}, expected a trace.dat file; name a file recorded by 'trace-cmd record' or 'trace-cmd extract'"
    )]
    NotAFile {
        /// "directory", "pipe", ...
        found: &'static str,
    },
    /// The file has no bytes at all.
    #[error("is empty, expected a trace.dat file; was the recording ended, or the disk full?")]
    Empty,
    /// The first bytes are not those of a trace.dat file.
    #[error("starts with {found}, expected the trace.dat magic 17 08 44 \"tracing\"")]
    NotTraceDat {
        /// The first bytes, or what they look like.
        found: String,
    },
    /// A trace.dat of a version this reader does not know.
    #[error("is trace.dat version {found}, expected 6 or 7; 'trace-cmd convert --file-version 7' may help")]
    Version {
        /// The version text of the file.
        found: String,
    },
    /// A trace.dat that is compressed in a way this reader does not know.
    #[error(
        "has compression {found}, expected none, zlib or zstd; 'trace-cmd convert --compression none' makes a file that can be read"
    )]
    Compression {
        /// The name in the file.
        found: String,
    },
    /// The native reader does not know the version or the compression, and trace-cmd's library does not help.
    #[error("{native}; asked instead, trace-cmd's library does not help: {library}")]
    NoReader {
        /// What the native reader does not know.
        native: Box<Error>,
        /// What the library said.
        library: Box<Error>,
    },
    /// Neither a trace.dat nor a text of a trace.
    #[error("is {found}, which is no trace that can be read; {hint}")]
    Form {
        /// What it is, or looks like.
        found: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A pipe was to be read a second time.
    #[error("was read to its end and is no file that can be read again; write it to a file first")]
    ReadOnce,
    /// The file ends inside something that is needed.
    #[error(
        "ends too early: {what} at byte {offset} needs {need} bytes, {have} are left; the file was cut, record or copy it again"
    )]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// How many bytes it takes.
        need: u64,
        /// How many bytes there are.
        have: u64,
    },
    /// A value that the format does not allow.
    #[error("is damaged at byte {offset}: {what}: expected {expected}, found {found}")]
    Invalid {
        /// What was being read.
        what: &'static str,
        /// Where it is.
        offset: u64,
        /// What would have been right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A declared size or count is beyond what this reader accepts.
    #[error("is damaged or hostile at byte {offset}: {what} is {found}, the limit is {limit}")]
    Limit {
        /// What was being read.
        what: &'static str,
        /// Where it is declared.
        offset: u64,
        /// The declared value.
        found: u64,
        /// The largest value accepted.
        limit: u64,
    },
    /// A compressed block does not decompress to what it declares.
    #[error("is damaged at byte {offset}: {what} does not decompress: {message}")]
    Decompress {
        /// What was being read.
        what: &'static str,
        /// Where the block is.
        offset: u64,
        /// What the decompressor said.
        message: String,
    },
    /// Something that the format allows and this reader does not do.
    #[error("has {what}, which this reader does not support; {hint}")]
    Unsupported {
        /// What it is.
        what: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// A C library that the tracecmd reader needs is not there, or is too old.
    #[error(
        "cannot be read with trace-cmd's library: {name} cannot be loaded: {why}; install it (Debian, Ubuntu: package libtracecmd1; Fedora: libtracecmd) or use the native reader"
    )]
    Library {
        /// The library's file name.
        name: String,
        /// What the loader said.
        why: String,
    },
    /// trace-cmd's library failed; in its own process, so nothing else is harmed.
    #[error("cannot be read with trace-cmd's library: it {what}")]
    TraceCmd {
        /// What it did: "refused the file", "crashed on it (signal 11)", ...
        what: String,
    },
    /// No buffer of that name.
    #[error("has no buffer {wanted}; it has {have}")]
    NoBuffer {
        /// The buffer asked for.
        wanted: String,
        /// The names there are.
        have: String,
    },
    /// No event format of that name.
    #[error("has no event {wanted}; record it with 'trace-cmd record -e {wanted}'")]
    NoEvent {
        /// `system:name`.
        wanted: String,
    },
    /// The event has no such field.
    #[error("event {event} has no field {wanted}; it has {have}")]
    NoField {
        /// `system:name`.
        event: String,
        /// The field asked for.
        wanted: String,
        /// The fields there are.
        have: String,
    },
}

/// What is wrong with a packed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedFault {
    /// It is not all there.
    #[error("ends early where the rest of the stream is expected: the file was cut, copy it again")]
    Cut,
    /// It holds what no packer writes, or something else came out than went in.
    #[error("goes on with bytes that do not unpack: the file is damaged, copy it again")]
    Damaged,
    /// It grows beyond what any recording does.
    #[error(
        "came from {packed} bytes, expected at most {times} times as much as those: no recording packs like that; if it is one, unpack it yourself and name the unpacked file"
    )]
    Absurd {
        /// Bytes of the file up to there.
        packed: u64,
        /// How many times a stretch may grow.
        times: u64,
    },
}

impl Error {
    pub(crate) fn invalid(
        what: &'static str,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        Error::Invalid { what, offset, expected: expected.into(), found: found.into() }
    }

    /// The same, owned.
    pub(crate) fn unnamed(self) -> Error {
        match self {
            Error::InFile { error, .. } => error.unnamed(),
            error => error,
        }
    }

    /// The error itself, without the name of the file around it.
    pub fn inner(&self) -> &Error {
        let mut error = self;
        while let Error::InFile { error: within, .. } = error {
            error = within;
        }
        error
    }
}
