// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording walked CPU by CPU into a new file.

use std::collections::BTreeSet;
use std::io::{self, Seek, Write};
use std::path::Path;

use tracecmd_parse::write::{Head, Shape, TraceWriter, WriteError};
use tracecmd_parse::{AnyTrace, Compression, Endian, Error, Item, RawEvent, Select, TraceFile, TraceReader, open_any};

use crate::cut::disguise::Disguise;
use crate::cut::kinds::{Kind, table};
use crate::cut::names::TaskNames;
use crate::cut::rewrite::rewrite;
use crate::cut::spool::Spool;
use crate::cut::{CutError, Done, Selection, Window};
use crate::units::{Cpu, seconds};

/// Events between two calls of `tick`.
const TICK: u64 = 4096;

impl From<io::Error> for CutError {
    fn from(error: io::Error) -> Self {
        Self::Spool(error)
    }
}

/// Where the events of one CPU come from.
enum Events<'a> {
    Dat(&'a TraceFile),
    Text(Spool),
}

/// Writes the selected part of `path` (`-`: standard input) to `to`, which errors call `to_name`. `window` hears the
/// time of the first event; `tick` now and then how many events were looked at.
///
/// # Errors
/// See [`CutError`].
pub fn cut<W: Write + Seek>(
    path: &Path,
    (to_name, to): (&str, W),
    selection: &Selection,
    window: impl Fn(u64) -> Window,
    tick: &mut dyn FnMut(u64),
) -> Result<Done, CutError> {
    cut_named(path, (to_name, to), selection, window, tick).map_err(|error| match error {
        // Cursors do not know the name.
        CutError::Read(error) if !matches!(error, Error::InFile { .. }) => {
            CutError::Read(Error::InFile { path: path.to_owned(), error: Box::new(error) })
        }
        error => error,
    })
}

fn cut_named<W: Write + Seek>(
    path: &Path,
    (to_name, to): (&str, W),
    selection: &Selection,
    window: impl Fn(u64) -> Window,
    tick: &mut dyn FnMut(u64),
) -> Result<Done, CutError> {
    let any = open_any(path)?;
    let reader = any.reader();
    let names = buffers(reader, selection)?;
    let mut sources = Vec::new();
    let mut comms = TaskNames::new(reader.formats());
    let mut done = Done::default();
    for name in &names {
        sources.push(match &any {
            AnyTrace::Dat(trace) => Events::Dat(trace),
            AnyTrace::Text(_) | AnyTrace::Library(_) => Events::Text(spooled(reader, name, &mut comms, &mut done)?),
        });
    }
    let first_ns = first(&names, &sources)?;
    let shape = match &any {
        AnyTrace::Dat(trace) => Shape::of(&**trace),
        // What our own reader does not know is not written either.
        AnyTrace::Library(trace) => Shape { version: 7, compression: Compression::Zstd, ..Shape::of(&**trace) },
        AnyTrace::Text(_) => Shape { compression: Compression::Zstd, ..Shape::default() },
    };
    let kinds = table(reader.formats(), selection, shape.endian);
    let mut disguise = Disguise::default();
    let mut head = head(&any, comms, selection, &kinds, &mut disguise)?;
    let highest = sources.iter().filter_map(|from| match from {
        Events::Text(spool) => spool.cpus().last().map(|cpu| cpu + 1),
        Events::Dat(_) => None,
    });
    head.cpus = head.cpus.max(highest.max().unwrap_or(0));

    let out_names: Vec<&str> = match selection.buffer {
        // What was asked for by name is what the new file is about.
        Some(_) => vec![""],
        None => names.iter().map(String::as_str).collect(),
    };
    let failed = |error: WriteError| CutError::Write { file: to_name.to_owned(), error };
    let writer = TraceWriter::new(to, &shape, &head, &out_names[1..]).map_err(failed)?;
    let done = Done { buffers: names.clone(), version: shape.version, compression: shape.compression.name(), ..done };
    let window = window(first_ns.unwrap_or(0));
    let endian = shape.endian;
    let mut cutter =
        Cutter { writer, kinds, selection, window, disguise, endian, out: Vec::new(), done, seen: 0, tick };
    for ((name, out_name), from) in names.iter().zip(&out_names).zip(&sources) {
        cutter.writer.start_buffer(out_name).map_err(failed)?;
        for cpu in cpus(reader, name, from, head.cpus) {
            cutter.writer.start_cpu(cpu).map_err(failed)?;
            cutter.cpu(name, from, cpu, &failed)?;
        }
    }
    let Cutter { writer, disguise, mut done, seen, .. } = cutter;
    if done.kept == 0 {
        return Err(nothing(path, &done, seen, first_ns));
    }
    writer.finish().map_err(failed)?;
    done.replaced = selection.anonymize.then(|| disguise.replaced());
    Ok(done)
}

/// Names of the buffers to write; the top one is first.
fn buffers(reader: &dyn TraceReader, selection: &Selection) -> Result<Vec<String>, Error> {
    if let Some(name) = &selection.buffer {
        if reader.meta().buffer(name).is_none() {
            // The reader's own words about the buffers that there are.
            reader.cursor(&Select::buffer(name)).map(drop)?;
        }
        return Ok(vec![name.clone()]);
    }
    let others = reader.meta().buffers.iter().map(|buffer| buffer.name.clone()).filter(|name| !name.is_empty());
    Ok(std::iter::once(String::new()).chain(others).collect())
}

fn spooled(trace: &dyn TraceReader, name: &str, comms: &mut TaskNames, done: &mut Done) -> Result<Spool, CutError> {
    let mut spool = Spool::new()?;
    let mut cursor = trace.cursor(&Select::buffer(name))?;
    while let Some(item) = cursor.next()? {
        if let Item::Event(raw) = &item {
            comms.event(raw);
        }
        spool.push(&item)?;
    }
    // A line belongs to no buffer if it cannot be read: every walk tells of the same ones.
    done.unreadable_lines = done.unreadable_lines.or(cursor.summary().unreadable_lines);
    Ok(spool)
}

/// Time of the first event: of the first buffer that has one.
fn first(names: &[String], sources: &[Events<'_>]) -> Result<Option<u64>, CutError> {
    for (name, from) in names.iter().zip(sources) {
        let found = match from {
            Events::Text(spool) => spool.first_ns,
            Events::Dat(trace) if trace.meta().buffer(name).is_none() => None,
            Events::Dat(trace) => {
                let mut cursor = trace.cursor(&Select::buffer(name))?;
                loop {
                    match cursor.next()? {
                        Some(Item::Event(raw)) => break Some(raw.ts_ns),
                        Some(_) => {}
                        None => break None,
                    }
                }
            }
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn cpus(reader: &dyn TraceReader, name: &str, from: &Events<'_>, all: u32) -> Vec<u32> {
    let listed: BTreeSet<u32> = match from {
        Events::Dat(_) => reader.meta().buffer(name).map(|buffer| buffer.cpus.iter().map(|data| data.cpu).collect()),
        Events::Text(_) => Some((0..all).collect()),
    }
    .unwrap_or_default();
    listed.into_iter().collect()
}

fn head(
    any: &AnyTrace,
    comms: TaskNames,
    selection: &Selection,
    kinds: &[Option<Kind>],
    disguise: &mut Disguise,
) -> Result<Head, CutError> {
    let reader = any.reader();
    let mut head = Head::of(reader);
    let meta = reader.meta();
    if matches!(any, AnyTrace::Text(_)) {
        head.comms = comms.into_names();
    }
    if meta.tsc_to_ns.is_some() {
        // The times that are written are nanoseconds already.
        head.clock = Some("tsc2nsec".to_owned());
    }
    let is_left = |id: u16| matches!(kinds.get(usize::from(id)), Some(Some(Kind::Left)));
    let left: BTreeSet<String> =
        reader.formats().iter().filter(|format| is_left(format.id)).map(|format| format.to_text()).collect();
    head.formats.retain(|format| !left.contains(&format.text));
    if !selection.sched_only
        && !selection.anonymize
        && let AnyTrace::Dat(trace) = any
    {
        head.kallsyms = trace.kallsyms()?.unwrap_or_default();
        head.printk_formats = trace.printk_formats()?.unwrap_or_default();
    }
    if selection.anonymize {
        let comms = std::mem::take(&mut head.comms);
        head.comms = comms
            .into_iter()
            .map(|(pid, comm)| {
                let pid = i32::try_from(disguise.pid(i64::from(pid))).unwrap_or(pid);
                (pid, disguise.comm(comm.as_bytes()).to_string())
            })
            .collect();
        head.uname = meta.kernel_release().map(|release| {
            let machine = meta.machine().unwrap_or("-");
            format!("Linux host {release} {machine}")
        });
        head.tracecmd_version =
            meta.tracecmd_version.as_deref().and_then(|text| text.split([' ', ';']).next()).map(str::to_owned);
        head.trace_id = None;
        head.proc_maps.clear();
    }
    head.tracecmd_version = Some(selection.version_text(head.tracecmd_version.as_deref()));
    Ok(head)
}

/// Says where the events are instead.
fn nothing(path: &Path, done: &Done, events: u64, first_ns: Option<u64>) -> CutError {
    let mut why = Vec::new();
    let mut part = |n: u64, what: &str| {
        if n > 0 {
            why.push(format!("{n} {what}"));
        }
    };
    part(done.out_of_window, "out of the time window");
    part(done.of_other_cpus, "of other CPUs");
    part(done.of_other_kinds, "of kinds that are left out");
    why.extend(first_ns.map(|first| format!("the first is at {} s", seconds(first))));
    CutError::Nothing { file: path.display().to_string(), events, why: why.join(", ") }
}

struct Cutter<'a, W> {
    writer: TraceWriter<W>,
    kinds: Vec<Option<Kind>>,
    selection: &'a Selection,
    window: Window,
    disguise: Disguise,
    endian: Endian,
    /// The event that is being made anew.
    out: Vec<u8>,
    done: Done,
    /// Events looked at.
    seen: u64,
    tick: &'a mut dyn FnMut(u64),
}

impl<W: Write + Seek> Cutter<'_, W> {
    fn cpu(
        &mut self,
        buffer: &str,
        from: &Events<'_>,
        cpu: u32,
        failed: &impl Fn(WriteError) -> CutError,
    ) -> Result<(), CutError> {
        match from {
            Events::Text(spool) => spool.cpu(cpu, |item| self.item(&item).map_err(failed)),
            Events::Dat(trace) => {
                let mut cursor = trace.cpu_cursor(&Select::buffer(buffer), cpu)?;
                while let Some(item) = cursor.next()? {
                    self.item(&item).map_err(failed)?;
                }
                for gap in cursor.summary().gaps.iter().map(ToString::to_string) {
                    if !self.done.gaps.contains(&gap) {
                        self.done.gaps.push(gap);
                    }
                }
                Ok(())
            }
        }
    }

    fn is_wanted(&self, cpu: u32) -> bool {
        let Some(cpus) = &self.selection.cpus else { return true };
        usize::try_from(cpu).ok().and_then(Cpu::new).is_some_and(|cpu| cpus.test(cpu))
    }

    fn item(&mut self, item: &Item<'_>) -> Result<(), WriteError> {
        match *item {
            Item::Event(raw) => self.event(&raw),
            Item::Lost { cpu, ts_ns, count } if self.window.has(ts_ns) && self.is_wanted(cpu) => {
                self.done.losses += 1;
                self.writer.lost(count)
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> Result<(), WriteError> {
        self.seen += 1;
        if self.seen.is_multiple_of(TICK) {
            (self.tick)(self.seen);
        }
        if !self.window.has(raw.ts_ns) {
            self.done.out_of_window += 1;
            return Ok(());
        }
        if !self.is_wanted(raw.cpu) {
            self.done.of_other_cpus += 1;
            return Ok(());
        }
        // An event without a format can be copied, but nobody knows who is in it.
        let unknown = if self.selection.anonymize || self.selection.sched_only { Kind::Left } else { Kind::AsIs };
        let kind = self.kinds.get(usize::from(raw.id)).and_then(Option::as_ref).unwrap_or(&unknown);
        match kind {
            Kind::Left => {
                self.done.of_other_kinds += 1;
                return Ok(());
            }
            Kind::AsIs => self.writer.event(raw.ts_ns, raw.data)?,
            Kind::Anew(parts) => {
                rewrite(raw, parts, &mut self.disguise, self.endian, &mut self.out);
                self.writer.event(raw.ts_ns, &self.out)?;
            }
        }
        let done = &mut self.done;
        done.kept += 1;
        done.first_ns = Some(done.first_ns.map_or(raw.ts_ns, |first| first.min(raw.ts_ns)));
        done.last_ns = done.last_ns.max(Some(raw.ts_ns));
        Ok(())
    }
}
