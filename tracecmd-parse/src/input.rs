// SPDX-License-Identifier: GPL-2.0-or-later
//! Any input: a file, a pipe or `-`, compressed or not, trace.dat or text.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::header::MAGIC;
use crate::packed::{Method, Unpacking, counted};
use crate::reader::{TraceFile, TraceReader};
use crate::text::TextTrace;
use crate::tracecmd::{self, TraceCmd};

/// A stream of bytes that can be handed to another thread.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// How much is looked at to tell what an input is.
const PEEK: usize = 4096;
/// A file compressed more often than that is not a trace.
const LAYERS_MAX: usize = 4;
/// What `atrace -z` writes before its zlib stream.
const ATRACE: &[u8] = b"TRACE:\n";

/// A trace of any form.
#[derive(Debug)]
pub enum AnyTrace {
    /// A trace.dat, read by the native reader.
    Dat(Box<TraceFile>),
    /// Text.
    Text(Box<TextTrace>),
    /// A trace.dat of a version or a compression that the native reader does not know, read by trace-cmd's library.
    Library(Box<TraceCmd>),
}

impl AnyTrace {
    /// As events by format.
    pub fn reader(&self) -> &dyn TraceReader {
        match self {
            AnyTrace::Dat(trace) => &**trace,
            AnyTrace::Text(trace) => &**trace,
            AnyTrace::Library(trace) => &**trace,
        }
    }
}

/// An input with all packing taken away.
pub enum Unpacked {
    /// A trace.dat.
    Dat(Box<TraceFile>),
    /// Text of any kind, from its first byte.
    Text(Box<dyn Read + Send>),
}

/// Opens a file or `-` as [`open_any`] does, and leaves text to the caller: for text that is no list of events.
///
/// # Errors
/// As [`open_any`], but for what it says of texts.
pub fn open_unpacked(path: impl AsRef<Path>) -> Result<Unpacked, Error> {
    let path = path.as_ref();
    let opened = || {
        let stream: Bytes = if path.as_os_str() == "-" {
            Box::new(io::stdin())
        } else if path.is_dir() {
            return Err(Error::NotAFile { found: "directory" });
        } else {
            let mut file = File::open(path)?;
            let mut first = [0; MAGIC.len()];
            let n = if file.metadata()?.is_file() { read_up_to(&mut file, &mut first)? } else { 0 };
            if n > 0 && MAGIC.starts_with(&first[..n]) {
                return TraceFile::open(path).map(|trace| Unpacked::Dat(Box::new(trace)));
            }
            Box::new(Cursor::new(first[..n].to_vec()).chain(file))
        };
        match unpack(stream)? {
            (stream, true) => TraceFile::from_file(nameless(stream)?).map(|trace| Unpacked::Dat(Box::new(trace))),
            (stream, false) => Ok(Unpacked::Text(stream)),
        }
    };
    opened().map_err(|error| match error {
        named @ Error::InFile { .. } => named,
        error => Error::InFile { path: path.to_path_buf(), error: Box::new(error) },
    })
}

/// How often the events will be walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walks {
    Once,
    /// What cannot be read again is written to a temporary file.
    Many,
}

/// Opens a trace.dat or a text by what is in it; `-` is the standard input. Either may be packed with gzip or zstd.
///
/// Text is read as it comes; out of a pipe it can be walked once ([`Error::ReadOnce`]). A trace.dat out of a pipe or a
/// packed file is written to a temporary file first, as it cannot be read from front to back.
///
/// A trace.dat of a version or a compression that the native reader does not know goes to trace-cmd's library, if this
/// program is prepared for it ([`crate::tracecmd::serve_if_asked`]); [`crate::Meta::notes`] says so.
///
/// # Errors
/// [`Error::InFile`] with what is wrong, and what the input looks like if it is no trace; [`Error::NoReader`] where the
/// library cannot read the file either.
pub fn open_any(path: impl AsRef<Path>) -> Result<AnyTrace, Error> {
    open_input(path.as_ref(), Walks::Once)
}

/// As [`open_any`], for those who walk the events more than once: a text out of a pipe, too, is written to a temporary
/// file first.
///
/// # Errors
/// As [`open_any`].
pub fn open_repeatable(path: impl AsRef<Path>) -> Result<AnyTrace, Error> {
    open_input(path.as_ref(), Walks::Many)
}

fn open_input(path: &Path, walks: Walks) -> Result<AnyTrace, Error> {
    let opened = match path.to_str() {
        Some("-") => from_stream(Box::new(io::stdin()), walks),
        _ => open(path, walks),
    };
    opened.map_err(|error| match error {
        named @ Error::InFile { .. } => named,
        error => Error::InFile { path: path.to_path_buf(), error: Box::new(error) },
    })
}

fn open(path: &Path, walks: Walks) -> Result<AnyTrace, Error> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(Error::NotAFile { found: "directory" });
    }
    if !kind.is_file() {
        // A pipe can be read once only.
        return from_stream(Box::new(File::open(path)?), walks);
    }
    let mut first = [0; MAGIC.len()];
    let n = read_up_to(&mut File::open(path)?, &mut first)?;
    // An empty file and one that was cut inside the magic are the native reader's to explain.
    if MAGIC.starts_with(&first[..n]) {
        return TraceFile::open(path).map(|trace| AnyTrace::Dat(Box::new(trace))).or_else(|error| library(error, path));
    }
    let (stream, is_dat) = unpack(Box::new(File::open(path)?))?;
    match is_dat {
        true => spool(stream),
        false => TextTrace::open(path).map(|trace| AnyTrace::Text(Box::new(trace))),
    }
}

fn from_stream(stream: Bytes, walks: Walks) -> Result<AnyTrace, Error> {
    let (stream, is_dat) = unpack(stream)?;
    match (is_dat, walks) {
        (true, _) => spool(stream),
        (false, Walks::Once) => TextTrace::from_stream(stream).map(|trace| AnyTrace::Text(Box::new(trace))),
        (false, Walks::Many) => TextTrace::from_file(nameless(stream)?).map(|trace| AnyTrace::Text(Box::new(trace))),
    }
}

/// Writes a trace.dat to a file without a name and opens that.
fn spool(stream: Bytes) -> Result<AnyTrace, Error> {
    let file = nameless(stream)?;
    match TraceFile::from_file(file.try_clone()?) {
        Ok(trace) => Ok(AnyTrace::Dat(Box::new(trace))),
        Err(error) => {
            // Another process finds a file without a name here, as long as this one has it open.
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            let trace = library(error, Path::new(&path))?;
            Ok(match trace {
                AnyTrace::Library(trace) => AnyTrace::Library(Box::new(trace.keeping(file))),
                other => other,
            })
        }
    }
}

/// Asks trace-cmd's library about what the native reader does not know; every other error stays what it is.
fn library(native: Error, path: &Path) -> Result<AnyTrace, Error> {
    let unknown = matches!(native.inner(), Error::Version { .. } | Error::Compression { .. });
    if !unknown || !tracecmd::prepared() {
        return Err(native);
    }
    match TraceCmd::open(path) {
        Ok(trace) => Ok(AnyTrace::Library(Box::new(trace.instead_of(native.inner())))),
        Err(library) => {
            Err(Error::NoReader { native: Box::new(native.unnamed()), library: Box::new(library.unnamed()) })
        }
    }
}

fn nameless(mut stream: Bytes) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut stream, &mut file)?;
    Ok(file)
}

/// Takes all compression away; says whether a trace.dat is below it.
pub(crate) fn unpack(stream: Bytes) -> Result<(Bytes, bool), Error> {
    let (mut stream, file) = counted(stream);
    for _ in 0..LAYERS_MAX {
        let (first, mut whole) = peek(stream)?;
        let method = match first.as_slice() {
            [0x1f, 0x8b, ..] => Method::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Method::Zstd,
            first if zlib_at(first).is_some() => {
                let mut before = vec![0; zlib_at(first).unwrap_or(0)];
                whole.read_exact(&mut before)?;
                Method::Zlib
            }
            first if first.starts_with(MAGIC) => return Ok((Box::new(whole), true)),
            first => {
                refuse(first)?;
                return Ok((Box::new(whole), false));
            }
        };
        stream = Box::new(Unpacking::new(method, Box::new(whole), Arc::clone(&file)));
    }
    Err(Error::Form { found: format!("packed more than {LAYERS_MAX} times"), hint: "unpack it first" })
}

/// Where the zlib stream of `atrace -z` starts.
fn zlib_at(first: &[u8]) -> Option<usize> {
    let head = &first[..first.len().min(256)];
    let at = head.windows(ATRACE.len()).position(|window| window == ATRACE)? + ATRACE.len();
    let &[method, flags] = first.get(at..at + 2)? else {
        return None;
    };
    (method == 0x78 && u16::from_be_bytes([method, flags]).is_multiple_of(31)).then_some(at)
}

/// Says of inputs that are no text what they are.
fn refuse(first: &[u8]) -> Result<(), Error> {
    let form = |found: &str, hint| Err(Error::Form { found: found.into(), hint });
    if first.is_empty() {
        return Err(Error::Empty);
    }
    if first.starts_with(b"PERFILE2") || first.starts_with(b"2ELIFREP") {
        return form("perf.data", "print it with 'perf script --ns' and name that text");
    }
    if first.starts_with(b"\xfd7zXZ\0") {
        return form("packed with xz", "unpack it first, or pipe it: 'xz -dc FILE', with '-' as the file to read");
    }
    if first.starts_with(b"BZh") {
        return form(
            "packed with bzip2",
            "unpack it first, or pipe it: 'bzip2 -dc FILE', with '-' as the file to read",
        );
    }
    if first.starts_with(b"PK\x03\x04") {
        return form("a zip archive", "unpack it, and name the trace in it");
    }
    if first.get(257..262) == Some(b"ustar") {
        return form(
            "a tar archive",
            "unpack it, and name the trace in it; a machine's description goes to --topology",
        );
    }
    if first.starts_with(b"\x7fELF") {
        return form("an ELF file", "name a recording");
    }
    if first.contains(&0) || first.starts_with(b"\x0a") && std::str::from_utf8(first).is_err() {
        let start = crate::bytes::quote(first);
        return form(
            &format!("binary data that starts with {start}"),
            "known are trace.dat and text; a Perfetto trace becomes text with 'traceconv systrace'",
        );
    }
    Ok(())
}

/// A stream with the bytes that were taken from it put back.
type Whole = Chain<Cursor<Vec<u8>>, Bytes>;

/// The first bytes, and a stream that has them still.
fn peek(mut stream: Bytes) -> io::Result<(Vec<u8>, Whole)> {
    let mut first = vec![0; PEEK];
    let n = read_up_to(&mut stream, &mut first)?;
    first.truncate(n);
    Ok((first.clone(), Cursor::new(first).chain(stream)))
}

pub(crate) fn read_up_to(stream: &mut dyn Read, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match stream.read(&mut out[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
