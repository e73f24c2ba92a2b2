// SPDX-License-Identifier: GPL-2.0-or-later
//! The parent: starts the child and gives its events as a [`TraceReader`].

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::compress::Compression;
use crate::cursor::{EventCursor, Item, Summary};
use crate::error::Error;
use crate::field::RawEvent;
use crate::format::Formats;
use crate::header;
use crate::meta::{Buffer, Meta};
use crate::page::PageLayout;
use crate::reader::{Select, TraceFile, TraceReader};
use crate::source::Source;

use super::wire::{self, In, Opened, Sent};
use super::{ASKED, Libraries, PREPARED, child};

/// How long a child may say nothing.
const PATIENCE: Duration = Duration::from_secs(600);
/// A child that is no longer needed has so long to remove its temporary files.
const END_MAX: Duration = Duration::from_secs(5);
/// NR_CPUS of any kernel built so far is 8192 at most.
const CPUS_MAX: u32 = 1 << 16;

/// How the library is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// The libraries.
    pub libraries: Libraries,
    /// The program that serves, with its arguments: one that calls [`super::serve_if_asked`]. The running program
    /// by default.
    pub program: Option<(PathBuf, Vec<OsString>)>,
    /// A child that says nothing for so long hangs: 10 minutes by default, as opening decompresses the whole file.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { libraries: Libraries::default(), program: None, patience: PATIENCE }
    }
}

/// The reader that asks trace-cmd's library.
///
/// Formats and events are the library's. [`Meta`] is the native reader's where that can read the file's head, as
/// the library tells only a part of it; else it has that part: sizes, CPUs, uname, clock, names of buffers.
#[derive(Debug)]
pub struct TraceCmd {
    path: PathBuf,
    options: Options,
    meta: Meta,
    formats: Formats,
    /// The child that opened the file, for the first cursor.
    opened: Mutex<Option<Server>>,
    /// A file without a name, which is there as long as it is open.
    _kept: Option<File>,
}

impl TraceCmd {
    /// Opens a trace.dat in a child process.
    ///
    /// # Errors
    /// [`Error::Library`] if the library is not installed; [`Error::TraceCmd`] if it refuses the file, crashes on it
    /// or the program did not call [`super::serve_if_asked`].
    pub fn open(path: impl AsRef<Path>) -> Result<TraceCmd, Error> {
        TraceCmd::open_with(path, Options::default())
    }

    /// As [`TraceCmd::open`], with other libraries or another program.
    ///
    /// # Errors
    /// As [`TraceCmd::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<TraceCmd, Error> {
        let path = path.as_ref();
        read(path, options).map_err(|error| in_file(path, error))
    }

    /// Holds the file that `path` leads to.
    pub(crate) fn keeping(self, file: File) -> TraceCmd {
        TraceCmd { _kept: Some(file), ..self }
    }

    /// Notes why the native reader was not asked.
    pub(crate) fn instead_of(mut self, native: &Error) -> TraceCmd {
        self.meta.notes.push(format!("read by trace-cmd's library, which this reader cannot check: the file {native}"));
        self
    }
}

fn read(path: &Path, options: Options) -> Result<TraceCmd, Error> {
    // Asked first: the library says nothing of why it cannot open a file.
    let file_size = File::open(path)?.metadata()?.len();
    let (server, told) = Server::start(path, &options)?;
    let mut formats = Formats::new(told.endian);
    let meta = match TraceFile::open(path) {
        Ok(native) => native.meta().clone(),
        Err(_) => told_meta(&told, header::version_of(&Source::open(path)?), file_size),
    };
    for format in told.formats {
        formats.add_format(format);
    }
    Ok(TraceCmd { path: path.to_path_buf(), options, meta, formats, opened: Mutex::new(Some(server)), _kept: None })
}

impl TraceReader for TraceCmd {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn formats(&self) -> &Formats {
        &self.formats
    }

    fn cursor(&self, select: &Select) -> Result<Box<dyn EventCursor + '_>, Error> {
        if self.meta.buffer(&select.buffer).is_none() {
            let have: Vec<String> = self.meta.buffers.iter().map(|b| format!("{:?}", b.name)).collect();
            let error = Error::NoBuffer { wanted: format!("{:?}", select.buffer), have: have.join(", ") };
            return Err(in_file(&self.path, error));
        }
        let kept = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let server = match kept {
            Some(server) => Ok(server),
            None => Server::start(&self.path, &self.options).map(|(server, _)| server),
        };
        let start = |mut server: Server| {
            server.ask(wire::EVENTS, select.buffer.as_bytes())?;
            Ok(Cursor {
                path: &self.path,
                server,
                batch: Vec::new(),
                at: 0,
                waiting: false,
                ended: false,
                last_ts: Vec::new(),
                summary: Summary { gaps: self.meta.gaps.clone(), ..Summary::default() },
            })
        };
        let cursor = server.and_then(start).map_err(|error| in_file(&self.path, error))?;
        Ok(Box::new(cursor))
    }
}

/// The running child.
#[derive(Debug)]
struct Server {
    socket: UnixStream,
    child: Child,
    stderr: File,
    patience: Duration,
}

impl Server {
    fn start(path: &Path, options: &Options) -> Result<(Server, Opened), Error> {
        let (program, arguments) = match &options.program {
            Some((program, arguments)) => (program.clone(), arguments.clone()),
            None if PREPARED.load(Ordering::Relaxed) => (PathBuf::from("/proc/self/exe"), Vec::new()),
            None => {
                return Err(tracecmd("cannot be asked: the program did not call serve_if_asked() in its main".into()));
            }
        };
        let (socket, theirs) = UnixStream::pair()?;
        // Nothing would be forever.
        let patience = options.patience.max(Duration::from_millis(1));
        socket.set_read_timeout(Some(patience))?;
        let stderr = tempfile::tempfile()?;
        let child = Command::new(program)
            .args(arguments)
            .env(ASKED, "1")
            .stdin(OwnedFd::from(theirs))
            // The library prints some of its warnings there.
            .stdout(Stdio::null())
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let mut server = Server { socket, child, stderr, patience };
        server.ask(wire::OPEN, &child::write_request(&options.libraries, path))?;
        let mut bytes = Vec::new();
        match server.receive(&mut bytes)? {
            wire::OPENED => {}
            other => return Err(server.told(other, &bytes)),
        }
        let opened = Opened::read(&bytes).ok_or_else(garbled)?;
        if opened.cpus > CPUS_MAX {
            return Err(tracecmd(format!("says that there are {} CPUs", opened.cpus)));
        }
        Ok((server, opened))
    }

    fn ask(&mut self, kind: u8, bytes: &[u8]) -> Result<(), Error> {
        wire::send(&self.socket, kind, bytes).map_err(|_| self.gone())
    }

    fn receive(&mut self, bytes: &mut Vec<u8>) -> Result<u8, Error> {
        match wire::receive(&self.socket, bytes) {
            Ok(Some(kind)) => Ok(kind),
            Ok(None) => Err(self.gone()),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                // It hangs: there is nothing to wait for when this is dropped.
                let _ = self.child.kill();
                Err(tracecmd(format!("said nothing for {} s", self.patience.as_secs())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Err(self.gone()),
            Err(error) => Err(error.into()),
        }
    }

    /// What a frame says that is not the expected one.
    fn told(&mut self, kind: u8, bytes: &[u8]) -> Error {
        match kind {
            wire::NO_LIBRARY => {
                let mut from = In(bytes);
                match (from.text(), from.text()) {
                    (Some(name), Some(why)) => Error::Library { name, why },
                    _ => garbled(),
                }
            }
            wire::FAILED => {
                let what = String::from_utf8_lossy(bytes).into_owned();
                tracecmd(what + &self.said())
            }
            _ => garbled(),
        }
    }

    /// The child ended without a word.
    fn gone(&mut self) -> Error {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let how = match self.wait(END_MAX) {
            None => "does not answer".to_string(),
            Some(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("crashed on it (signal {signal})"),
                (None, Some(code)) => format!("ended early (exit code {code})"),
                (None, None) => "ended early".to_string(),
            },
        };
        tracecmd(how + &self.said())
    }

    /// The first line that the library wrote to stderr.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        if self.stderr.rewind().is_err() || (&self.stderr).take(4096).read_to_end(&mut text).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        match text.lines().map(str::trim).find(|line| !line.is_empty()) {
            Some(line) => format!(" and said {line:?}"),
            None => String::new(),
        }
    }

    fn wait(&mut self, limit: Duration) -> Option<std::process::ExitStatus> {
        let end = Instant::now() + limit;
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(status) = self.child.try_wait().ok()? {
                return Some(status);
            }
            if Instant::now() >= end {
                return None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The child finds nobody to write to, closes the file (which removes its temporary files) and ends.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if self.wait(END_MAX).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Events out of batches.
struct Cursor<'a> {
    path: &'a Path,
    server: Server,
    batch: Vec<u8>,
    /// The next event in `batch`.
    at: usize,
    /// The loss before that event was given.
    waiting: bool,
    ended: bool,
    /// By CPU.
    last_ts: Vec<u64>,
    summary: Summary,
}

impl Cursor<'_> {
    /// Loads the next batch that has events; `false` at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        while self.at >= self.batch.len() {
            if self.ended {
                return Ok(false);
            }
            self.at = 0;
            match self.server.receive(&mut self.batch)? {
                wire::BATCH => {}
                wire::END => {
                    self.ended = true;
                    self.batch.clear();
                }
                other => {
                    let error = self.server.told(other, &self.batch);
                    self.batch.clear();
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Item<'_>>, Error> {
        if !self.fill()? {
            return Ok(None);
        }
        let mut from = In(&self.batch[self.at..]);
        let Sent { ts, cpu, id, missed, data } = Sent::read(&mut from).ok_or_else(garbled)?;
        if missed != 0 && !self.waiting {
            self.waiting = true;
            let count = u64::try_from(missed).ok();
            self.summary.losses += 1;
            self.summary.lost_events = self.summary.lost_events.saturating_add(count.unwrap_or(0));
            return Ok(Some(Item::Lost { cpu, ts_ns: ts, count }));
        }
        self.waiting = false;
        self.at = self.batch.len() - from.0.len();
        if cpu >= CPUS_MAX {
            return Err(tracecmd(format!("gave an event of CPU {cpu}")));
        }
        if self.last_ts.len() <= cpu as usize {
            self.last_ts.resize(cpu as usize + 1, 0);
        }
        let last = &mut self.last_ts[cpu as usize];
        if ts < *last {
            self.summary.out_of_order += 1;
        }
        *last = ts;
        self.summary.events += 1;
        Ok(Some(Item::Event(RawEvent { ts_ns: ts, cpu, id, data })))
    }
}

impl EventCursor for Cursor<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let path = self.path;
        self.step().map_err(|error| in_file(path, error))
    }

    fn summary(&self) -> Summary {
        self.summary.clone()
    }
}

/// What the library tells of a file that the native reader cannot read.
fn told_meta(told: &Opened, version: u32, file_size: u64) -> Meta {
    let layout = PageLayout {
        endian: told.endian,
        page_size: told.page_size,
        commit_size: told.commit_size,
        data_offset: 8 + told.commit_size,
    };
    let names = std::iter::once(String::new()).chain(told.instances.iter().cloned());
    Meta {
        version,
        endian: told.endian,
        long_size: u8::try_from(told.long_size).unwrap_or(0),
        page_size: told.page_size,
        file_size,
        compression: Compression::None,
        compression_version: String::new(),
        cpus: told.cpus,
        clock: told.clock.clone(),
        uname: told.uname.clone(),
        tracecmd_version: None,
        cpustat: Vec::new(),
        trace_id: None,
        ts_offset_ns: 0,
        tsc_to_ns: None,
        time_shift: None,
        proc_maps: Vec::new(),
        comms: Default::default(),
        options: Vec::new(),
        buffers: names.map(|name| Buffer { name, clock: None, layout, compressed: false, cpus: Vec::new() }).collect(),
        kallsyms: None,
        printk_formats: None,
        gaps: Vec::new(),
        notes: Vec::new(),
    }
}

fn tracecmd(what: String) -> Error {
    Error::TraceCmd { what }
}

fn garbled() -> Error {
    tracecmd("gave an answer that makes no sense; it may have damaged its own memory".into())
}

fn in_file(path: &Path, error: Error) -> Error {
    Error::InFile { path: path.to_path_buf(), error: Box::new(error) }
}
