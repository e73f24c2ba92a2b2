// SPDX-License-Identifier: GPL-2.0-or-later
//! The events of a text, line after line.

use std::collections::VecDeque;
use std::io;

use crate::cursor::Summary;
use crate::error::Error;
use crate::meta::Gap;
use crate::packed::is_damage;

use super::event::TextEvent;
use super::fields::{self, Fields, Pair, Style};
use super::form::Form;
use super::head::{self, Head, Span};
use super::lines::{Line, Lines, Whole, find};
use super::scan::{Scan, decimal};

/// Unreadable lines that are named; the rest is counted.
const NAMED_MAX: u64 = 10;

/// What a cursor over a text gives.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum TextItem<'a> {
    /// An event.
    Event(TextEvent<'a>),
    /// Events are missing here.
    Lost {
        /// The CPU whose buffer overran.
        cpu: u32,
        /// Time of the event before.
        ts_ns: u64,
        /// How many, if the text says so.
        count: Option<u64>,
    },
}

/// What was counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextSummary {
    /// Events, losses and gaps. Lines that could not be read are gaps; the first ten are named, the rest counted.
    pub common: Summary,
    /// Lines of the input that hold a trace, comments and blank ones among them.
    pub lines: u64,
    /// Lines that should be events and could not be read.
    pub malformed: u64,
    /// Lines that belong to an event before them: call chains.
    pub continued: u64,
    /// Events of other buffers, which were passed over.
    pub other_buffers: u64,
    /// Events written as libtraceevent's sched_switch plugin does.
    pub plugin_style: u64,
}

/// A line kept from looking ahead.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) whole: Whole,
}

/// Walks the events of a text, in the order of its lines.
pub struct TextCursor {
    lines: Lines,
    ahead: VecDeque<Kept>,
    form: Form,
    /// Empty: lines without a buffer name.
    buffer: Vec<u8>,
    line: Vec<u8>,
    pairs: Vec<Pair>,
    /// By CPU.
    last_ts: Vec<u64>,
    latest_ts: u64,
    ended: bool,
    summary: TextSummary,
}

/// What a line is.
enum Step {
    Event(Places),
    Lost { cpu: u32, count: Option<u64> },
    Nothing,
}

/// An event by places in the line, so that the line can be borrowed again.
struct Places {
    number: u64,
    head: Head,
    style: Style,
    system: Option<Span>,
    name: Span,
    text_at: usize,
}

impl TextCursor {
    pub(super) fn new(lines: Lines, ahead: VecDeque<Kept>, form: Form, buffer: &str) -> TextCursor {
        TextCursor {
            lines,
            ahead,
            form,
            buffer: buffer.as_bytes().to_vec(),
            line: Vec::new(),
            pairs: Vec::new(),
            last_ts: Vec::new(),
            latest_ts: 0,
            ended: false,
            summary: TextSummary::default(),
        }
    }

    /// What was counted so far; complete after [`TextCursor::next_item`] gave `None`.
    pub fn summary(&self) -> &TextSummary {
        &self.summary
    }

    /// The next item, `None` at the end.
    ///
    /// # Errors
    /// The operating system's. A compressed input that is cut or damaged ends early, with a gap in the summary.
    pub fn next_item(&mut self) -> Result<Option<TextItem<'_>>, Error> {
        loop {
            let Some((number, offset, whole)) = self.load()? else {
                return Ok(None);
            };
            self.summary.lines += 1;
            let step = match whole {
                Whole::Yes => self.look(number),
                Whole::TooLong => Err("line is too long"),
                Whole::NoEnd => match self.look(number) {
                    Ok(Step::Event(_)) => Err("the text ends inside this line"),
                    other => other,
                },
            };
            match step {
                Ok(Step::Nothing) => {}
                Ok(Step::Lost { cpu, count }) => {
                    let common = &mut self.summary.common;
                    common.losses += 1;
                    common.lost_events = common.lost_events.saturating_add(count.unwrap_or(0));
                    return Ok(Some(TextItem::Lost { cpu, ts_ns: self.latest_ts, count }));
                }
                Ok(Step::Event(places)) => return Ok(Some(self.event(&places))),
                Err(why) => self.malformed(number, offset, why),
            }
        }
    }

    /// Brings the next line into `line`: its number, its offset, and whether all of it is there.
    fn load(&mut self) -> Result<Option<(u64, u64, Whole)>, Error> {
        if self.ended {
            return Ok(None);
        }
        if let Some(kept) = self.ahead.pop_front() {
            self.line = kept.bytes;
            return Ok(Some((kept.number, kept.offset, kept.whole)));
        }
        match self.lines.next() {
            Ok(Some(Line { number, offset, bytes, whole })) => {
                self.line.clear();
                self.line.extend_from_slice(bytes);
                Ok(Some((number, offset, whole)))
            }
            Ok(None) => {
                self.end(None);
                Ok(None)
            }
            Err(error) if is_damage(&error) => {
                self.end(Some(&error));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn end(&mut self, error: Option<&io::Error>) {
        self.ended = true;
        let what = match error {
            Some(error) => format!("the compressed input ends here: {error}"),
            None if self.summary.malformed > NAMED_MAX => {
                format!("{} more lines could not be read", self.summary.malformed - NAMED_MAX)
            }
            None => return,
        };
        self.summary.common.gaps.push(Gap { buffer: None, cpu: None, offset: 0, bytes: None, what });
    }

    fn malformed(&mut self, number: u64, offset: u64, why: &str) {
        self.summary.malformed += 1;
        let first = self.summary.common.unreadable_lines.map_or(number, |(_, first)| first);
        self.summary.common.unreadable_lines = Some((self.summary.malformed, first));
        if self.summary.malformed > NAMED_MAX {
            return;
        }
        let start = String::from_utf8_lossy(&self.line[..self.line.len().min(100)]).into_owned();
        let what = format!("line {number} is no event that can be read: {why}: {start:?}");
        self.summary.common.gaps.push(Gap { buffer: None, cpu: None, offset, bytes: None, what });
    }

    /// What the loaded line is.
    fn look(&mut self, number: u64) -> Result<Step, &'static str> {
        let line = self.line.as_slice();
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || line.starts_with(b"#") || is_banner(trimmed) {
            return Ok(Step::Nothing);
        }
        if let Some(step) = lost(trimmed) {
            return Ok(step);
        }
        let head = match head::parse(self.form, line) {
            Ok(head) => head,
            Err(_) if is_continued(line, self.form) => {
                self.summary.continued += 1;
                return Ok(Step::Nothing);
            }
            Err(why) => return Err(why),
        };
        // Empty ones are not compared: reading nothing at an empty Vec's address takes glibc's memcmp as long as
        // all the rest of this function.
        let same = match head.buffer {
            Some((from, to)) => line[from..to] == *self.buffer,
            None => self.buffer.is_empty(),
        };
        if !same {
            self.summary.other_buffers += 1;
            return Ok(Step::Nothing);
        }
        if self.form == Form::Perf
            && let Some(step) = perf_record(&line[head.event_at..], head.cpu)
        {
            return Ok(step);
        }
        let (system, name, text_at) = event_name(line, head.event_at, self.form);
        let ascii = std::str::from_utf8(&line[name.0..name.1]).map_err(|_| "event name is not ASCII")?;
        let style = fields::parse(ascii, line, text_at, &mut self.pairs)?;
        Ok(Step::Event(Places { number, head, style, system, name, text_at }))
    }

    fn event(&mut self, places: &Places) -> TextItem<'_> {
        let line = self.line.as_slice();
        let head = &places.head;
        let common = &mut self.summary.common;
        common.events += 1;
        self.summary.plugin_style += u64::from(places.style == Style::Plugin);
        let cpu = head.cpu as usize;
        if self.last_ts.len() <= cpu {
            self.last_ts.resize(cpu + 1, 0);
        }
        common.out_of_order += u64::from(head.stamp.value < self.last_ts[cpu]);
        self.last_ts[cpu] = head.stamp.value;
        self.latest_ts = head.stamp.value;
        let text = |(from, to): Span| std::str::from_utf8(&line[from..to]).unwrap_or("");
        TextItem::Event(TextEvent {
            line: places.number,
            ts_ns: head.stamp.value,
            decimals: head.stamp.decimals,
            cpu: head.cpu,
            pid: head.pid,
            tgid: head.tgid,
            comm: &line[head.comm.0..head.comm.1],
            irq: head.irq,
            system: places.system.map(text),
            name: text(places.name),
            text: &line[places.text_at..],
            fields: Fields { line, pairs: &self.pairs },
            style: places.style,
        })
    }
}

/// Lines that name things around the events.
pub(super) fn is_banner(line: &[u8]) -> bool {
    // trace-cmd's, atrace's, and the kernel's mark of where a CPU's buffer begins.
    line.starts_with(b"cpus=")
        || line.starts_with(b"version = ")
        || (line.starts_with(b"CPU ") && line.ends_with(b" is empty"))
        || line.starts_with(b"capturing trace...")
        || line == b"TRACE:"
        || (line.starts_with(b"##### CPU ") && line.ends_with(b" ####"))
}

/// `CPU:3 [LOST 812 EVENTS]`, `CPU:3 [812 EVENTS DROPPED]`, `CPU:3 [EVENTS DROPPED]`.
fn lost(line: &[u8]) -> Option<Step> {
    // Asked of every line.
    if !line.ends_with(b"EVENTS]") && !line.ends_with(b"DROPPED]") {
        return None;
    }
    let mut scan = Scan::new(line, 0);
    // Behind the name of its buffer in a report of several.
    if let Some(at) = find(line, b"CPU:").filter(|&at| at < 64 && line[..at].ends_with(b": ")) {
        scan = Scan::new(line, at);
    }
    if !scan.eat(b"CPU:") {
        return None;
    }
    let cpu = u32::try_from(scan.number()?).ok().filter(|&cpu| cpu < head::CPUS_MAX as u32)?;
    let words = scan.rest().strip_prefix(b" [")?.strip_suffix(b"]")?;
    let count = match words {
        b"EVENTS DROPPED" | b"LOST EVENTS" => None,
        _ => {
            let number = words.strip_prefix(b"LOST ").and_then(|rest| rest.strip_suffix(b" EVENTS"));
            Some(decimal(number.or_else(|| words.strip_suffix(b" EVENTS DROPPED"))?)?)
        }
    };
    Some(Step::Lost { cpu, count })
}

/// `PERF_RECORD_LOST lost 5` and other records of perf.
fn perf_record(text: &[u8], cpu: u32) -> Option<Step> {
    let record = text.strip_prefix(b"PERF_RECORD_")?;
    let after = match find(record, b" lost ") {
        Some(at) if record.starts_with(b"LOST") => &record[at + b" lost ".len()..],
        _ => return Some(Step::Nothing),
    };
    Some(Step::Lost { cpu, count: Scan::new(after, 0).number() })
}

/// Lines of a call chain: ` => schedule`, and perf's addresses behind a tab.
fn is_continued(line: &[u8], form: Form) -> bool {
    let trimmed = line.trim_ascii_start();
    match form {
        Form::Perf => line.starts_with(b"\t") && trimmed.first().is_some_and(u8::is_ascii_hexdigit),
        _ => trimmed.starts_with(b"=> "),
    }
}

/// System, name and start of the text of the event at `at`. The name is empty where there is none.
fn event_name(line: &[u8], at: usize, form: Form) -> (Option<Span>, Span, usize) {
    let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let mut scan = Scan::new(line, at);
    let mut name = (at, at + scan.all(word).len());
    let mut system = None;
    if form == Form::Perf && scan.eat(b":") && scan.peek().is_some_and(word) {
        system = Some(name);
        let from = scan.at();
        name = (from, from + scan.all(word).len());
    } else if form == Form::Perf {
        scan = Scan::new(line, name.1);
    }
    if name.0 == name.1 || !scan.eat(b":") || !matches!(scan.peek(), None | Some(b' ')) {
        return (None, (at, at), at);
    }
    // trace-cmd pads the name to a column; the kernel and perf write one space.
    let padded = 22usize.saturating_sub(name.1 - name.0 + 1).max(1);
    let spaces = Scan::new(line, scan.at()).spaces();
    let gap = match form {
        Form::Report | Form::ReportLatency if spaces >= padded => padded,
        _ => spaces.min(1),
    };
    (system, name, scan.at() + gap)
}
