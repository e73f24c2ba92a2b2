// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording → its calls. The only part that opens files.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use tracecmd_parse::{TraceFile, TraceReader, Unpacked, open_unpacked};

use crate::funcgraph::dat::{self, Record};
use crate::funcgraph::keep::Keep;
use crate::funcgraph::sample::Sample;
use crate::funcgraph::stacks::{Call, Edge, Spot, Stacks, Unpaired};
use crate::funcgraph::text::{Line, Lines};

/// Lines that are not read and named one by one; more are counted.
const NAMED: usize = 10;
/// A line longer than that is none of a trace.
const LINE_MAX: usize = 1 << 16;
/// How much of the words before a part serves as its title, bytes.
const TITLE: usize = 72;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// What reports call it.
    pub label: String,
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// Only this part of a text that has several, from 1.
    pub part: Option<usize>,
}

/// Why there are no calls.
#[derive(Debug, thiserror::Error)]
pub enum FuncgraphError {
    /// The reader's.
    #[error(transparent)]
    Trace(#[from] tracecmd_parse::Error),
    /// The system's.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// No record of the tracer.
    #[error("{}: no function graph: {found}; record one with trace-cmd record -p function_graph -l FUNCTION", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// The text has no such part.
    #[error("{}: no part {part}: found {found}, counted from 1", path.display())]
    NoPart {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        part: usize,
        /// What there is.
        found: String,
    },
}

/// Records between two stretches of words; a recording is one part.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its number in the file, from 1.
    pub number: usize,
    /// The words before it.
    pub title: Option<String>,
    /// Its first and last line; of a text.
    pub lines: Option<(u64, u64)>,
    /// The calls.
    pub sample: Sample,
    /// Records without a partner, by function.
    pub unpaired: BTreeMap<String, Unpaired>,
    /// Exits without a partner that do not say of what.
    pub nameless_exits: u64,
}

/// A file read.
#[derive(Debug, Default)]
pub struct Reading {
    /// Its form in words.
    pub form: &'static str,
    /// Its parts, at least one.
    pub parts: Vec<Part>,
    /// Records that could not be read.
    pub bad: u64,
    /// The first of them: line (0: a trace.dat has none) and why.
    pub named_bad: Vec<(u64, &'static str)>,
    /// Other events.
    pub events: u64,
    /// Places where events are missing.
    pub losses: u64,
    /// Gaps and oddities of the file.
    pub notes: Vec<String>,
}

impl Reading {
    fn bad(&mut self, line: u64, why: &'static str) {
        self.bad += 1;
        if self.named_bad.len() < NAMED {
            self.named_bad.push((line, why));
        }
    }
}

/// Reads the calls of `path` that `keep` lets through.
///
/// # Errors
/// [`FuncgraphError`].
pub fn read(path: &Path, buffer: &str, keep: &Keep) -> Result<Reading, FuncgraphError> {
    let reading = match open_unpacked(path)? {
        Unpacked::Dat(trace) => trace_dat(path, &trace, buffer, keep)?,
        Unpacked::Text(stream) => {
            let io = |error| FuncgraphError::Io { path: path.to_owned(), error };
            text(BufReader::new(stream), keep).map_err(io)?
        }
    };
    if reading.parts.is_empty() {
        let found = format!("{} other events, {} unreadable records", reading.events, reading.bad);
        return Err(FuncgraphError::Nothing { path: path.to_owned(), found });
    }
    Ok(reading)
}

/// One call of a function that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallAt {
    /// The CPU that it returned on.
    pub cpu: u32,
    /// Time of its entry's record, ns of the trace's clock.
    pub enter_ns: u64,
    /// How long it ran, ns.
    pub duration_ns: u64,
}

/// The calls of one function in a trace.dat, in the order of their returns; none of a text.
///
/// # Errors
/// [`FuncgraphError`].
pub fn calls(path: &Path, buffer: &str, function: &str) -> Result<Vec<CallAt>, FuncgraphError> {
    let Unpacked::Dat(trace) = open_unpacked(path)? else { return Ok(Vec::new()) };
    let (mut stacks, mut calls) = (Stacks::default(), Vec::new());
    dat::walk(&trace, buffer, |record| match record {
        Record::Graph { spot, edge, .. } => {
            let call = stacks.take(&spot, &edge).filter(|call| call.function == function);
            let at = |call: Call<'_>| {
                Some(CallAt { cpu: call.cpu, enter_ns: call.enter_ns?, duration_ns: call.duration_ns })
            };
            calls.extend(call.and_then(at));
        }
        Record::Lost => stacks.lost(),
        Record::Event | Record::Bad(_) => {}
    })?;
    Ok(calls)
}

/// A part in the making.
#[derive(Default)]
struct Making {
    part: Part,
    stacks: Stacks,
    records: u64,
    first_ns: Option<u64>,
}

impl Making {
    fn take(&mut self, spot: &Spot, comm: Option<&str>, edge: &Edge<'_>, keep: &Keep) {
        self.records += 1;
        let first_ns = *self.first_ns.get_or_insert(spot.ts_ns.unwrap_or(0));
        let Some(call) = self.stacks.take(spot, edge) else { return };
        match keep.holds(&call, comm.map(str::as_bytes), first_ns) {
            true => self.part.sample.add(&call),
            false => self.part.sample.filtered += 1,
        }
    }

    fn finish(self) -> Part {
        let (unpaired, nameless_exits) = self.stacks.finish();
        Part { unpaired, nameless_exits, ..self.part }
    }
}

fn trace_dat(path: &Path, trace: &TraceFile, buffer: &str, keep: &Keep) -> Result<Reading, FuncgraphError> {
    let mut reading = Reading { form: "trace.dat", ..Reading::default() };
    let mut making = Making { part: Part { number: 1, ..Part::default() }, ..Making::default() };
    making.part.sample.is_same_clock = trace.meta().clock.as_deref() == Some("local");
    let has_graph = dat::walk(trace, buffer, |record| match record {
        Record::Graph { spot, comm, edge } => making.take(&spot, comm, &edge, keep),
        Record::Event => reading.events += 1,
        Record::Bad(why) => reading.bad(0, why),
        Record::Lost => {
            reading.losses += 1;
            making.stacks.lost();
        }
    })?;
    if !has_graph {
        let found = "its formats have no funcgraph_entry and funcgraph_exit".to_owned();
        return Err(FuncgraphError::Nothing { path: path.to_owned(), found });
    }
    if making.records > 0 {
        reading.parts.push(making.finish());
    }
    Ok(reading)
}

fn text(mut stream: impl BufRead, keep: &Keep) -> std::io::Result<Reading> {
    let mut reading = Reading { form: "text", ..Reading::default() };
    let (mut lines, mut number, mut bytes) = (Lines::default(), 0u64, Vec::new());
    let (mut making, mut words) = (None::<Making>, String::new());
    while next_line(&mut stream, &mut bytes)? {
        number += 1;
        let line = String::from_utf8_lossy(&bytes);
        match lines.read(&line) {
            Line::Graph { spot, comm, edge, behind } => {
                if !words.is_empty() {
                    // Words end a part: what follows may be of another run.
                    reading.parts.extend(making.take().map(Making::finish));
                }
                let part = making.get_or_insert_with(|| begin(reading.parts.len() + 1, number, &words));
                words.clear();
                part.part.lines = part.part.lines.map(|(first, _)| (first, number));
                part.take(&spot, comm, &edge, keep);
                words.push_str(behind.unwrap_or(""));
            }
            Line::Prose(text) => {
                words.push(' ');
                words.push_str(text);
            }
            Line::Event => reading.events += 1,
            // The title is the last paragraph.
            Line::Heading if line.trim().is_empty() && !words.is_empty() => words.push('\n'),
            Line::Heading => {}
            Line::Bad(why) => reading.bad(number, why),
            Line::Lost => {
                reading.losses += 1;
                making.iter_mut().for_each(|making| making.stacks.lost());
            }
        }
    }
    reading.parts.extend(making.map(Making::finish));
    Ok(reading)
}

fn begin(number: usize, line: u64, words: &str) -> Making {
    let part = Part { number, title: title(words), lines: Some((line, line)), ..Part::default() };
    Making { part, ..Making::default() }
}

/// The last of the words, from the start of one.
fn title(words: &str) -> Option<String> {
    let words = words.trim_end().rsplit('\n').next().unwrap_or("").trim();
    let mut from = words.len().saturating_sub(TITLE);
    while !words.is_char_boundary(from) {
        from += 1;
    }
    let text = match from {
        0 => words,
        from => words[from..].split_once(' ').map_or("", |(_, rest)| rest),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

/// The next line without its end; `false` at the end. What is longer than a line can be is cut there.
fn next_line(stream: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    loop {
        let available = stream.fill_buf()?;
        if available.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.unwrap_or(available.len());
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend_from_slice(&available[..taken.min(room)]);
        stream.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}
