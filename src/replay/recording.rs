// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording opened: what it is, checked for what a replay needs, and walked for the replay itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tracecmd_parse::text::TextTrace;
use tracecmd_parse::tracecmd::TraceCmd;
use tracecmd_parse::{AnyTrace, Error, Item, Select, TraceFile, TraceReader, open_any};

use crate::replay::ahead::{Given, ahead};
use crate::replay::error::ReplayError;
use crate::replay::outcome::Recording;
use crate::trace::cut_mark::{cut_mark, is_by_cpus};
use crate::trace::{Decoder, Event, EventKind, Summary};
use crate::units::Cpu;

/// Events between two looks at the clock of a progress bar.
const TICK: u64 = 4096;
/// Events of a CPU that are looked at before all of the recording is.
const GLANCE: u32 = 4096;
/// How much of a pipe is looked at before all of it is copied, bytes.
const PEEK: u64 = 256 << 10;

/// Who reads a trace.dat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReaderKind {
    /// Our own; it also reads text.
    #[default]
    Native,
    /// trace-cmd's C library.
    TraceCmd,
}

enum Reader {
    Any(AnyTrace),
    TraceCmd(Box<TraceCmd>),
}

impl Reader {
    fn get(&self) -> &dyn TraceReader {
        match self {
            Self::Any(trace) => trace.reader(),
            Self::TraceCmd(trace) => &**trace,
        }
    }
}

/// What to know of a recording that was read with trace-cmd's library.
pub const LIBRARY_NOTE: &str =
    "trace-cmd's library passes over damage without a word: what is damaged here, the native reader would tell";

/// An opened recording.
pub struct Source {
    /// As it was named.
    path: PathBuf,
    /// What is read: `path`, or the copy of what came through a pipe.
    content: Content,
    reader: Reader,
    decoder: Decoder,
    select: Select,
    /// The first event of each CPU.
    pub first_events: Vec<Event>,
    /// CPUs of which something was recorded: the highest one's number and one.
    pub cpus: usize,
    /// Decisions can be told: the entry probe of select_task_rq_fair() was recorded.
    pub has_sis_in: bool,
    /// sched_migrate_task was recorded, or could have been.
    pub has_migrate: bool,
    /// A walk may use a second thread.
    reads_ahead: bool,
}

/// What a walk over all events counts.
#[derive(Debug)]
pub struct Counted {
    /// The counts.
    pub summary: Summary,
    /// Parts of the file that are cut or damaged.
    gaps: Vec<String>,
    /// Events that were earlier than the one before them on the same CPU.
    backward: u64,
}

impl Counted {
    /// Counts `item`, and puts it into `event`; whether it is one that can be told.
    #[inline]
    fn item(&mut self, decoder: &Decoder, item: &Item<'_>, event: &mut Event) -> bool {
        match item {
            Item::Event(raw) => {
                decoder.decode_into(raw, event);
                self.summary.event(raw, event);
                true
            }
            &Item::Lost { cpu, ts_ns, count } => {
                let Some(lost) = Decoder::lost(cpu, ts_ns, count) else { return false };
                self.summary.lost(lost.cpu, count);
                *event = lost;
                true
            }
            _ => false,
        }
    }
}

/// What has to be known of a recording before it is replayed, as far as it was seen.
#[derive(Default)]
struct Seen {
    first: BTreeMap<Cpu, Event>,
    cpus: usize,
    switch: bool,
    waking: bool,
    migrate: bool,
    sis_in: bool,
}

impl Seen {
    fn event(&mut self, event: Event) {
        self.cpu(event.cpu);
        match event.kind {
            EventKind::Switch { .. } => self.switch = true,
            EventKind::Waking { .. } | EventKind::Wakeup { new: false, .. } => self.waking = true,
            EventKind::Migrate { .. } => self.migrate = true,
            EventKind::SisIn(_) => self.sis_in = true,
            _ => {}
        }
        self.first.entry(event.cpu).or_insert(event);
    }

    fn cpu(&mut self, cpu: Cpu) {
        self.cpus = self.cpus.max(cpu.index() + 1);
    }

    /// Whether everything that can be seen was.
    fn is_all(&self, has_sis_in: bool) -> bool {
        self.switch && self.waking && self.migrate && (self.sis_in || !has_sis_in)
    }
}

/// Opens `path` with trace-cmd's library, which takes no text, nothing packed and no pipe.
///
/// # Errors
/// The library's.
pub fn library(path: &Path) -> Result<TraceCmd, Error> {
    let other =
        path == Path::new("-") || matches!(TraceFile::open(path), Err(Error::NotTraceDat { .. } | Error::Empty));
    if other {
        let what = "reads a trace.dat that is a file and not packed; leave out '--reader tracecmd' for anything else";
        return Err(Error::TraceCmd { what: what.to_owned() });
    }
    TraceCmd::open(path)
}

impl Source {
    /// Opens `path` (`-`: standard input) and looks at what is in it.
    ///
    /// # Errors
    /// The reader's, and [`ReplayError::NoEvents`], [`ReplayError::NotRecorded`] where a replay has nothing to work with.
    pub fn open(path: &Path, buffer: Option<&str>, kind: ReaderKind) -> Result<Self, ReplayError> {
        let content = Content::of(path)?;
        let reader = match kind {
            ReaderKind::Native => open_any(content.path()).map(Reader::Any),
            ReaderKind::TraceCmd => library(content.path()).map(|trace| Reader::TraceCmd(Box::new(trace))),
        };
        let reader = reader.map_err(|error| named(path, error))?;
        let decoder = Decoder::new(reader.get().formats());
        let select = buffer.map_or_else(Select::top, Select::buffer);
        let mut source = Self {
            path: path.to_owned(),
            content,
            reader,
            decoder,
            select,
            first_events: Vec::new(),
            cpus: 0,
            has_sis_in: false,
            has_migrate: false,
            reads_ahead: false,
        };
        let seen = match source.glance()? {
            Some(seen) => seen,
            None => source.survey()?,
        };
        source.first_events = seen.first.into_values().collect();
        source.cpus = seen.cpus;
        source.has_sis_in = seen.sis_in;
        source.has_migrate = seen.migrate;
        Ok(source)
    }

    /// Lets walks use a second thread, which reads ahead.
    pub fn read_ahead(&mut self, yes: bool) {
        self.reads_ahead = yes;
    }

    /// The first events of each CPU show what a replay has to know of an ordinary recording; `None` of any other.
    fn glance(&self) -> Result<Option<Seen>, ReplayError> {
        let Reader::Any(AnyTrace::Dat(trace)) = &self.reader else { return Ok(None) };
        let Some(buffer) = trace.meta().buffer(&self.select.buffer) else { return Ok(None) };
        let of = |error| named(&self.path, error);
        let mut seen = Seen::default();
        for data in buffer.cpus.iter().filter(|data| data.size > 0) {
            let Some(cpu) = usize::try_from(data.cpu).ok().and_then(Cpu::new) else { return Ok(None) };
            let mut cursor = trace.cpu_cursor(&self.select, data.cpu).map_err(of)?;
            let mut looked_at = 0;
            while let Some(item) = cursor.next().map_err(of)? {
                match item {
                    Item::Event(raw) => seen.event(self.decoder.decode(&raw)),
                    _ => seen.cpu(cpu),
                }
                looked_at += 1;
                let enough = looked_at >= GLANCE || seen.is_all(self.decoder.has_sis_in());
                if enough && seen.first.contains_key(&cpu) {
                    break;
                }
            }
        }
        Ok(seen.is_all(self.decoder.has_sis_in()).then_some(seen))
    }

    /// Walks over everything, and refuses what cannot be replayed.
    fn survey(&self) -> Result<Seen, ReplayError> {
        let mut seen = Seen::default();
        let each = |event: &Event| {
            match event.kind {
                EventKind::Lost { .. } => seen.cpu(event.cpu),
                _ => seen.event(event.clone()),
            }
            true
        };
        let counted = self.walk(each, |_, _| ())?;
        self.check(&counted)?;
        Ok(seen)
    }

    fn check(&self, counted: &Counted) -> Result<(), ReplayError> {
        let file = || self.path.display().to_string();
        let events = counted.summary.events;
        if events == 0 {
            return Err(ReplayError::NoEvents { file: file(), gaps: counted.gaps.join("; ") });
        }
        let counts = counted.summary.by_name(self.reader.get().formats());
        let unreadable: Vec<_> =
            self.decoder.unreadable().iter().filter(|one| counts.contains_key(&one.event)).collect();
        let recorded = |event: &str| {
            let event = format!("sched:{event}");
            counts.contains_key(&event) && unreadable.iter().all(|one| one.event != event)
        };
        let missing = if !recorded("sched_switch") {
            "sched_switch"
        } else if !recorded("sched_waking") && !recorded("sched_wakeup") {
            "sched_waking and sched_wakeup"
        } else {
            return Ok(());
        };
        if let Some(first) = unreadable.first() {
            return Err(ReplayError::Unreadable { file: file(), what: first.note(counts[&first.event]) });
        }
        let mut found: Vec<(u64, String)> = counts.into_iter().map(|(name, n)| (n, name)).collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let found: Vec<String> = found.into_iter().take(3).map(|(n, name)| format!("{n} {name}")).collect();
        Err(ReplayError::NotRecorded { file: file(), missing, events, found: found.join(", ") })
    }

    /// Time of the first event, ns of the trace's clock.
    pub fn first_ns(&self) -> u64 {
        self.first_events.iter().map(|event| event.ts_ns).min().unwrap_or(0)
    }

    /// The reader.
    pub fn reader(&self) -> &dyn TraceReader {
        self.reader.get()
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every event, in order; `tick` hears now and then how many there were, and about how many there are in all (0: not
    /// known).
    ///
    /// # Errors
    /// The reader's. `each` ends the walk with `false`.
    pub fn walk(
        &self,
        mut each: impl FnMut(&Event) -> bool,
        mut tick: impl FnMut(u64, u64),
    ) -> Result<Counted, ReplayError> {
        let path = &self.path;
        match &self.reader {
            // What is read ahead has to be readable from another thread.
            Reader::Any(AnyTrace::Dat(trace)) if self.reads_ahead => {
                let (select, decoder) = (&self.select, &self.decoder);
                ahead(|take| read(&**trace, select, decoder, path, take), each, tick)
            }
            reader => read(reader.get(), &self.select, &self.decoder, path, |given| match given {
                Given::Event(event) => each(event),
                Given::Progress(events, all) => {
                    tick(events, all);
                    true
                }
            }),
        }
    }

    /// What a report says about the recording.
    ///
    /// # Errors
    /// Where the file cannot be read again for its checksum.
    pub fn describe(&self, counted: &Counted) -> Result<Recording, ReplayError> {
        let meta = self.reader.get().meta();
        let (sha256, bytes) = checksum(self.content.path()).map_err(|error| unreadable(&self.path, &error))?;
        let summary = &counted.summary;
        let (first_ns, last_ns) = summary.span_ns.unwrap_or_default();
        let uncounted = summary.losses > 0 && summary.lost_events == 0;
        Ok(Recording {
            file: self.path.display().to_string(),
            sha256,
            bytes,
            kernel: meta.kernel_release().map(str::to_owned),
            cpus: u64::from(meta.cpus),
            clock: meta.clock.clone(),
            events: summary.events,
            first_ns,
            last_ns,
            lost_events: if uncounted { None } else { Some(summary.lost_events) },
            notes: self.notes(counted),
        })
    }

    fn notes(&self, counted: &Counted) -> Vec<String> {
        let summary = &counted.summary;
        let mut notes = self.reader().meta().notes.clone();
        let cut = cut_mark(self.reader().meta().tracecmd_version.as_deref());
        if let Some(cut) = cut.filter(|cut| is_by_cpus(cut)) {
            notes.push(format!("it is {cut}: nothing is known of the other CPUs"));
        }
        if matches!(self.reader, Reader::TraceCmd(_) | Reader::Any(AnyTrace::Library(_))) {
            notes.push(LIBRARY_NOTE.to_owned());
        }
        notes.extend(counted.gaps.iter().map(|gap| format!("cut or damaged: {gap}")));
        if summary.losses > 0 {
            let count =
                if summary.lost_events > 0 { format!(", {} events", summary.lost_events) } else { String::new() };
            notes.push(format!("events were lost at {} places{count}: state is unknown after each", summary.losses));
        }
        let unmarked: u64 = summary.cpus().map(|(_, cpu)| cpu.unmarked_breaks).sum();
        if unmarked > 0 {
            notes.push(format!(
                "{unmarked} sched_switch events contradict the one before on their CPU: events are missing there \
                 though nothing marks it"
            ));
        }
        if counted.backward > 0 {
            let places =
                if counted.backward == 1 { "1 event".to_owned() } else { format!("{} events", counted.backward) };
            notes.push(format!(
                "times go backward on a CPU at {places}: what lies between is computed from times that are not true"
            ));
        }
        if summary.malformed > 0 {
            notes.push(format!("{} events are cut off or impossible and were passed over", summary.malformed));
        }
        let counts = summary.by_name(self.reader.get().formats());
        for unreadable in self.decoder.unreadable() {
            notes.extend(counts.get(&unreadable.event).map(|&count| unreadable.note(count)));
        }
        if !self.has_migrate {
            let what = match counts.contains_key("sched:sched_migrate_task") {
                true => "no sched_migrate_task that can be read",
                false => "no sched_migrate_task",
            };
            notes.push(format!("{what}: choices come from sched_wakeup alone"));
        }
        if !counts.contains_key("sched:sched_waking") {
            notes.push(
                "no sched_waking: a wakeup's decision cannot be placed; record with -e sched_waking, too".to_owned(),
            );
        }
        if self.reader.get().meta().clock_is_ns() == Some(false) {
            notes.push("the trace clock does not count nanoseconds: times and averages are not true".to_owned());
        }
        notes
    }
}

/// Reads every event, counts it, and gives it to `take`.
fn read(
    trace: &dyn TraceReader,
    select: &Select,
    decoder: &Decoder,
    path: &Path,
    mut take: impl FnMut(Given<'_>) -> bool,
) -> Result<Counted, ReplayError> {
    let of = |error| named(path, error);
    let mut cursor = trace.cursor(select).map_err(of)?;
    let mut counted = Counted { summary: Summary::new(trace.meta()), gaps: Vec::new(), backward: 0 };
    let all = cursor.left();
    let mut event = Event::default();
    while let Some(item) = cursor.next().map_err(of)? {
        if counted.item(decoder, &item, &mut event) && !take(Given::Event(&mut event)) {
            break;
        }
        let events = counted.summary.events;
        if events.is_multiple_of(TICK) {
            take(Given::Progress(events, estimate(events, all, cursor.left())));
        }
    }
    let walked = cursor.summary();
    counted.gaps = walked.gaps.iter().map(ToString::to_string).collect();
    counted.backward = walked.out_of_order;
    take(Given::Progress(counted.summary.events, counted.summary.events));
    Ok(counted)
}

/// How many events there are in all, if `events` were in the part of `all` bytes that is not `left`.
fn estimate(events: u64, all: Option<u64>, left: Option<u64>) -> u64 {
    let (Some(all), Some(left)) = (all, left) else { return 0 };
    let read = all.saturating_sub(left).max(1);
    (u128::from(events) * u128::from(all) / u128::from(read)) as u64 + 1
}

/// Where the bytes are. A replay reads them more than once, which a pipe does not allow.
enum Content {
    Path(PathBuf),
    /// A copy without a name, which goes when the last who has it open goes.
    Copy {
        path: PathBuf,
        _file: File,
    },
}

impl Content {
    fn of(path: &Path) -> Result<Self, ReplayError> {
        let is_pipe = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if path == Path::new("-") {
            Self::copy(path, std::io::stdin().lock())
        } else if is_pipe(path) {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            Self::copy(path, file)
        } else {
            Ok(Self::Path(path.to_owned()))
        }
    }

    fn copy(path: &Path, mut from: impl Read) -> Result<Self, ReplayError> {
        let broken = |error: std::io::Error| unreadable(path, &error);
        let mut first = Vec::new();
        from.by_ref().take(PEEK).read_to_end(&mut first).map_err(broken)?;
        // What never ends must not fill the disk before it is refused.
        refuse(path, &first)?;
        let mut file = tempfile::tempfile().map_err(broken)?;
        std::io::copy(&mut first.as_slice().chain(from), &mut file).map_err(broken)?;
        // By the process's number: trace-cmd's library reads in another process.
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self::Copy { path, _file: file })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Path(path) | Self::Copy { path, .. } => path,
        }
    }
}

/// Refuses what cannot be a trace, by its first bytes.
fn refuse(path: &Path, first: &[u8]) -> Result<(), ReplayError> {
    const TRACE_DAT: &[u8] = b"\x17\x08\x44";
    const GZIP: &[u8] = b"\x1f\x8b";
    const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
    // Readers tell of these themselves, and they cannot be told from a part.
    if [TRACE_DAT, GZIP, ZSTD].iter().any(|magic| first.starts_with(magic)) {
        return Ok(());
    }
    match TextTrace::from_stream(Box::new(std::io::Cursor::new(first.to_vec()))) {
        Err(error @ (tracecmd_parse::Error::Form { .. } | tracecmd_parse::Error::Empty)) => {
            Err(named(path, error).into())
        }
        _ => Ok(()),
    }
}

/// `error` of a copy, under the name that its user knows.
fn named(path: &Path, error: tracecmd_parse::Error) -> tracecmd_parse::Error {
    match error {
        tracecmd_parse::Error::InFile { error, .. } => tracecmd_parse::Error::InFile { path: path.to_owned(), error },
        error => tracecmd_parse::Error::InFile { path: path.to_owned(), error: Box::new(error) },
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> ReplayError {
    ReplayError::Checksum { file: path.display().to_string(), reason: error.to_string() }
}

/// SHA-256 of a file, hexadecimal, and its size, bytes.
///
/// # Errors
/// The system's.
pub fn checksum(path: &Path) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        bytes += n as u64;
    }
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hex, bytes))
}
