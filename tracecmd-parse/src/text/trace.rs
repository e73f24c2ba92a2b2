// SPDX-License-Identifier: GPL-2.0-or-later
//! A text as a trace: what its first lines say of it, and cursors over its events.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Cursor};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::bytes::Endian;
use crate::compress::Compression;
use crate::cursor::EventCursor;
use crate::error::Error;
use crate::format::Formats;
use crate::input::{Bytes, unpack};
use crate::meta::{Buffer, Meta};
use crate::packed::is_damage;
use crate::page::PageLayout;
use crate::reader::{Select, TraceReader};

use super::events::{Kept, TextCursor, TextItem};
use super::form::{self, Form, Seen};
use super::lines::{Lines, find};
use super::scan::{Scan, decimal};
use super::synth::{Survey, Synth};

/// Bytes of lines that are looked at before anything is said of the text.
const AHEAD_MAX: usize = 4 << 20;

/// A trace as text.
///
/// It can be read event by event as lines tell them ([`TextTrace::events`]), or like any trace ([`TraceReader`]): then
/// formats are made from the first 4 MB of lines. Memory does not grow with the length of the text.
#[derive(Debug)]
pub struct TextTrace {
    path: Option<PathBuf>,
    source: Source,
    form: Form,
    meta: Meta,
    formats: Formats,
}

/// Where the lines come from.
enum Source {
    File(PathBuf),
    /// A file without a name, read by position: two cursors do not disturb each other.
    Open(Arc<File>),
    Memory(Arc<[u8]>),
    /// A pipe: what was read ahead, and the rest. Taken by the first cursor.
    Once(Mutex<Option<(Lines, VecDeque<Kept>)>>),
}

/// A file read by position.
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl io::Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(out, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::File(path) => write!(f, "File({})", path.display()),
            Source::Open(_) => f.write_str("Open"),
            Source::Memory(bytes) => write!(f, "Memory({} bytes)", bytes.len()),
            Source::Once(_) => f.write_str("Once"),
        }
    }
}

impl TextTrace {
    /// Opens a file, packed with gzip or zstd or not.
    ///
    /// # Errors
    /// [`Error::InFile`] with what is wrong; [`Error::Form`] if it is no text of a trace.
    pub fn open(path: impl AsRef<Path>) -> Result<TextTrace, Error> {
        let path = path.as_ref();
        let read = || -> Result<TextTrace, Error> {
            let size = std::fs::metadata(path)?.len();
            let mut lines = lines(Box::new(File::open(path)?))?;
            let ahead = read_ahead(&mut lines)?;
            TextTrace::read(Source::File(path.to_path_buf()), lines, &ahead, size)
        };
        let named = |error| Error::InFile { path: path.to_path_buf(), error: Box::new(error) };
        read().map(|trace| TextTrace { path: Some(path.to_path_buf()), ..trace }).map_err(named)
    }

    /// Reads an open file, from its start.
    ///
    /// # Errors
    /// As [`TextTrace::open`], without a file name.
    pub fn from_file(file: File) -> Result<TextTrace, Error> {
        let size = file.metadata()?.len();
        let file = Arc::new(file);
        let mut lines = lines(Box::new(FromStart { file: Arc::clone(&file), at: 0 }))?;
        let ahead = read_ahead(&mut lines)?;
        TextTrace::read(Source::Open(file), lines, &ahead, size)
    }

    /// Reads a text in memory.
    ///
    /// # Errors
    /// As [`TextTrace::open`], without a file name.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<TextTrace, Error> {
        let bytes = bytes.into();
        let mut lines = lines(Box::new(Cursor::new(Arc::clone(&bytes))))?;
        let ahead = read_ahead(&mut lines)?;
        let size = bytes.len() as u64;
        TextTrace::read(Source::Memory(bytes), lines, &ahead, size)
    }

    /// Reads a stream; its events can be walked once.
    ///
    /// # Errors
    /// As [`TextTrace::open`], without a file name.
    pub fn from_stream(stream: Box<dyn io::Read + Send>) -> Result<TextTrace, Error> {
        let mut lines = lines(stream)?;
        let ahead = read_ahead(&mut lines)?;
        // Replaced below: the lines are needed here first.
        let mut trace = TextTrace::read(Source::Memory(Arc::from([])), Lines::new(Box::new(io::empty())), &ahead, 0)?;
        trace.source = Source::Once(Mutex::new(Some((lines, ahead))));
        Ok(trace)
    }

    fn read(source: Source, lines: Lines, ahead: &VecDeque<Kept>, size: u64) -> Result<TextTrace, Error> {
        let form = match form::detect(ahead.iter().map(|kept| kept.bytes.as_slice())) {
            Seen::Events(form) => form,
            Seen::NoEvents => Form::Tracefs,
            Seen::Other(..) if lines.page => return Err(page_without_data(&lines)),
            Seen::Other(found, hint) => return Err(Error::Form { found, hint }),
        };
        let mut first = First { head: Header::read(ahead), ..First::default() };
        first.buffers(ahead, form);
        for name in first.names.clone() {
            let nothing = Lines::new(Box::new(io::empty()));
            let mut events = TextCursor::new(nothing, ahead.clone(), form, &name);
            while let Some(item) = events.next_item()? {
                first.item(&item);
            }
            first.plugin_style += events.summary().plugin_style;
        }
        let meta = first.meta(form, size);
        Ok(TextTrace { path: None, source, form, meta, formats: first.survey.formats() })
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// A walk over the events of one buffer as lines tell them, from the start.
    ///
    /// # Errors
    /// [`Error::NoBuffer`]; [`Error::ReadOnce`] for the second walk over a pipe; what opening the file again gives.
    pub fn events(&self, select: &Select) -> Result<TextCursor, Error> {
        self.walk(select).map_err(|error| match &self.path {
            Some(path) => Error::InFile { path: path.clone(), error: Box::new(error) },
            None => error,
        })
    }

    fn walk(&self, select: &Select) -> Result<TextCursor, Error> {
        if self.meta.buffer(&select.buffer).is_none() {
            let have: Vec<String> = self.meta.buffers.iter().map(|b| format!("{:?}", b.name)).collect();
            return Err(Error::NoBuffer { wanted: format!("{:?}", select.buffer), have: have.join(", ") });
        }
        let (lines, ahead) = match &self.source {
            Source::File(path) => (lines(Box::new(File::open(path)?))?, VecDeque::new()),
            Source::Open(file) => (lines(Box::new(FromStart { file: Arc::clone(file), at: 0 }))?, VecDeque::new()),
            Source::Memory(bytes) => (lines(Box::new(Cursor::new(Arc::clone(bytes))))?, VecDeque::new()),
            Source::Once(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Error::ReadOnce)?,
        };
        Ok(TextCursor::new(lines, ahead, self.form, &select.buffer))
    }
}

impl TraceReader for TextTrace {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn formats(&self) -> &Formats {
        &self.formats
    }

    fn cursor(&self, select: &Select) -> Result<Box<dyn EventCursor + '_>, Error> {
        Ok(Box::new(Synth::new(self.events(select)?, &self.formats)))
    }
}

fn lines(stream: Bytes) -> Result<Lines, Error> {
    match unpack(stream)? {
        (_, true) => Err(Error::Form { found: "a trace.dat".into(), hint: "open it with the native reader" }),
        (stream, false) => Ok(Lines::new(stream)),
    }
}

/// The first lines. What is damaged further on is for the cursor to tell.
fn read_ahead(lines: &mut Lines) -> Result<VecDeque<Kept>, Error> {
    let mut ahead = VecDeque::new();
    let mut size = 0;
    while size < AHEAD_MAX {
        match lines.next() {
            Ok(Some(line)) => {
                size += line.bytes.len() + size_of::<Kept>();
                let (number, offset, whole) = (line.number, line.offset, line.whole);
                ahead.push_back(Kept { number, offset, bytes: line.bytes.to_vec(), whole });
            }
            Ok(None) => break,
            Err(error) if ahead.is_empty() || !is_damage(&error) => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(ahead)
}

fn page_without_data(lines: &Lines) -> Error {
    match &lines.other_data {
        Some(tag) => Error::Form {
            found: format!("a page whose trace data are not text: {tag:?}"),
            hint: "name the trace that the page was made from",
        },
        None => Error::Form {
            found: "a page without ftrace text in it".into(),
            hint: "pages of systrace hold it in <script class=\"trace-data\">",
        },
    }
}

/// What comments and banners say.
#[derive(Debug, Default)]
struct Header {
    cpus: Option<u32>,
    /// Events in the buffer, and events that were written to it.
    entries: Option<(u64, u64)>,
    release: Option<String>,
    machine: Option<String>,
}

impl Header {
    fn read(ahead: &VecDeque<Kept>) -> Header {
        let mut head = Header::default();
        for line in ahead.iter().map(|kept| kept.bytes.as_slice()).take(1000) {
            if let Some(number) = line.strip_prefix(b"cpus=") {
                head.cpus = decimal(number.trim_ascii()).and_then(|n| u32::try_from(n).ok());
            } else if let Some(rest) = line.strip_prefix(b"# entries-in-buffer/entries-written: ") {
                head.entries(rest);
            } else if let Some(rest) = line.strip_prefix(b"# os release : ") {
                head.release = Some(String::from_utf8_lossy(rest.trim_ascii()).into_owned());
            } else if let Some(rest) = line.strip_prefix(b"# arch : ") {
                head.machine = Some(String::from_utf8_lossy(rest.trim_ascii()).into_owned());
            }
        }
        head.cpus = head.cpus.filter(|&cpus| u64::from(cpus) <= super::head::CPUS_MAX);
        head
    }

    /// `1238/1238   #P:2`
    fn entries(&mut self, rest: &[u8]) {
        let mut scan = Scan::new(rest, 0);
        if let (Some(kept), true) = (scan.number(), scan.eat(b"/"))
            && let Some(written) = scan.number()
        {
            self.entries = Some((kept, written));
        }
        if let Some(at) = find(rest, b"#P:") {
            self.cpus = Scan::new(rest, at + 3).number().and_then(|n| u32::try_from(n).ok());
        }
    }
}

/// What the first lines tell.
#[derive(Debug, Default)]
struct First {
    head: Header,
    survey: Survey,
    /// Names of buffers; the top one first, always.
    names: Vec<String>,
    cpus: u32,
    events: u64,
    with_irq: u64,
    ticks: u64,
    micros: u64,
    plugin_style: u64,
}

impl First {
    /// Which buffers the lines name.
    fn buffers(&mut self, ahead: &VecDeque<Kept>, form: Form) {
        const BUFFERS_MAX: usize = 64;
        self.names.push(String::new());
        if form == Form::Perf {
            return;
        }
        for line in ahead.iter().map(|kept| kept.bytes.as_slice()) {
            let Ok(super::head::Head { buffer: Some((from, to)), .. }) = super::head::parse(form, line) else {
                continue;
            };
            let name = String::from_utf8_lossy(&line[from..to]).into_owned();
            if !self.names.contains(&name) && self.names.len() < BUFFERS_MAX {
                self.names.push(name);
            }
        }
    }

    fn item(&mut self, item: &TextItem<'_>) {
        let TextItem::Event(event) = item else {
            return;
        };
        self.survey.event(event);
        self.events += 1;
        self.cpus = self.cpus.max(event.cpu + 1);
        self.with_irq += u64::from(event.irq.is_some());
        match event.decimals {
            0 => self.ticks += 1,
            6 => self.micros += 1,
            _ => {}
        }
    }

    fn meta(&self, form: Form, size: u64) -> Meta {
        let layout = PageLayout { endian: Endian::Little, page_size: 4096, commit_size: 8, data_offset: 16 };
        let ticks = self.ticks > 0;
        let uname = self.head.release.as_ref().map(|release| {
            let machine = self.head.machine.as_deref().unwrap_or("-");
            format!("Linux - {release} {machine}")
        });
        let buffer =
            |name: &String| Buffer { name: name.clone(), clock: None, layout, compressed: false, cpus: Vec::new() };
        Meta {
            version: 0,
            endian: Endian::Little,
            long_size: 8,
            page_size: layout.page_size,
            file_size: size,
            compression: Compression::None,
            compression_version: String::new(),
            cpus: self.head.cpus.unwrap_or(self.cpus),
            clock: ticks.then(|| "ticks".to_string()),
            uname,
            tracecmd_version: None,
            cpustat: Vec::new(),
            trace_id: None,
            ts_offset_ns: 0,
            tsc_to_ns: None,
            time_shift: None,
            proc_maps: Vec::new(),
            comms: BTreeMap::new(),
            options: Vec::new(),
            buffers: self.names.iter().map(buffer).collect(),
            kallsyms: None,
            printk_formats: None,
            gaps: Vec::new(),
            notes: self.notes(form),
        }
    }

    fn notes(&self, form: Form) -> Vec<String> {
        let mut notes = vec![format!("read as text of {}", form.name())];
        if self.micros > 0 {
            notes.push("times have 6 decimals: events of the same microsecond keep the order of their lines".into());
        }
        if self.ticks > 0 {
            notes.push("times are ticks of the trace's clock, not nanoseconds".into());
        }
        if self.plugin_style > 0 {
            notes.push(
                "states of sched_switch are printed by libtraceevent's plugin: since kernel 4.14 its Z is X, its X is \
                 Z, its x is P and its W is I; the states here are by the bits"
                    .into(),
            );
        }
        if self.events > 0 && self.with_irq == 0 {
            notes.push("no irq-info column: whether a wakeup came from an interrupt is not known".into());
        }
        if let Some((kept, written)) = self.head.entries.filter(|(kept, written)| kept < written) {
            notes.push(format!("{} of {written} events were overwritten before the text was taken", written - kept));
        }
        if self.head.cpus.is_none() {
            notes.push(
                "the text does not say how many CPUs there are: those seen in its first lines are counted".into(),
            );
        }
        notes
    }
}
