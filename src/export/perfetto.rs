// SPDX-License-Identifier: GPL-2.0-or-later
//! A replay as a Perfetto trace: what ran on each CPU as recorded, and beside it a track of each implementation's
//! placements, of what differs, and of its SIS counters. `simulated.rs` writes simulations with the same writer.
//!
//! **Source**: protos/perfetto/trace of Perfetto v59 (trace_packet.proto, track_event, ftrace_event.proto, sched.proto).

pub mod simulated;

use std::cell::RefCell;
use std::io::Write;

use crate::compare::{Class, Verdict};
use crate::export::proto::Message;
use crate::export::words;
use crate::fair::{Decision, SisCounters};
use crate::replay::run::Observer;
use crate::replay::setup::Bench;
use crate::replay::{Filter, ReplayError, Role, Row};
use crate::trace::{Event, EventKind, PrevState, Wakee};

/// Fields of TracePacket.
mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// TrackEvent.Type.
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// Events of a CPU that are packed together.
const BUNDLE: usize = 256;
/// Between two values of a counter at least, ns.
const COUNTER_NS: u64 = 1_000_000;
/// The track that all others are below of.
const ROOT: u64 = 1;
/// Reads one counter.
type Counter = fn(&SisCounters) -> u64;
/// Counters of an implementation.
const COUNTERS: [(&str, Counter); 6] = [
    ("SIS Search", |sis| sis.search),
    ("SIS Domain Search", |sis| sis.domain_search),
    ("SIS Scanned", |sis| sis.scanned),
    ("SIS Failures", |sis| sis.failed),
    ("SIS Recent Used Hit", |sis| sis.recent_hit),
    ("SIS Recent Used Miss", |sis| sis.recent_miss),
];

/// Numbers of tracks: of an implementation, of what it does otherwise than the baseline, of its counters.
fn placements(at: usize) -> u64 {
    100 + at as u64
}
fn differences(at: usize) -> u64 {
    1_100 + at as u64
}
fn counter(at: usize, number: usize) -> u64 {
    2_100 + (at * COUNTERS.len() + number) as u64
}

/// Writes a trace as the replay goes.
pub struct Perfetto<W>(RefCell<Writer<W>>);

impl<W: Write> Perfetto<W> {
    /// Into `out`, which is called `name` in errors.
    pub fn new(out: W, name: &str) -> Self {
        Self(RefCell::new(Writer::new(out, name)))
    }

    /// Writes what is left, and gives back where it went.
    ///
    /// # Errors
    /// [`ReplayError::Write`].
    pub fn finish(self) -> Result<W, ReplayError> {
        self.0.into_inner().finish()
    }
}

struct Writer<W> {
    out: W,
    name: String,
    failed: Option<ReplayError>,
    begun: bool,
    columns: Vec<(String, Role)>,
    /// By CPU: events that wait to be packed together.
    bundles: Vec<(Message, usize)>,
    /// By implementation.
    counted: Vec<SisCounters>,
    counted_ns: u64,
    last_ns: u64,
    filter: Filter,
}

impl<W: Write> Observer for Perfetto<W> {
    fn begin(&self, bench: &Bench, filter: &Filter) {
        let writer = &mut *self.0.borrow_mut();
        writer.columns = bench.contestants.iter().map(|one| (one.implementation.name().to_owned(), one.role)).collect();
        writer.counted = vec![SisCounters::default(); writer.columns.len()];
        writer.filter = filter.clone();
        writer.tracks("Open loop: each decision starts from the recorded state of the machine.");
    }

    fn event(&self, event: &Event) {
        self.0.borrow_mut().event(event);
    }

    fn decision(&self, row: &Row) -> Result<(), ReplayError> {
        let writer = &mut *self.0.borrow_mut();
        writer.decision(row);
        writer.failed.take().map_or(Ok(()), Err)
    }
}

impl<W: Write> Writer<W> {
    fn new(out: W, name: &str) -> Self {
        Self {
            out,
            name: name.to_owned(),
            failed: None,
            begun: false,
            columns: Vec::new(),
            bundles: Vec::new(),
            counted: Vec::new(),
            counted_ns: 0,
            last_ns: 0,
            filter: Filter::default(),
        }
    }

    fn finish(mut self) -> Result<W, ReplayError> {
        for cpu in 0..self.bundles.len() {
            self.flush(cpu);
        }
        self.counters(self.last_ns);
        self.failed.map_or(Ok(self.out), Err)
    }

    /// Writes a packet; Trace has them as its field 1.
    fn packet(&mut self, packet: Message) {
        if self.failed.is_some() {
            return;
        }
        let flags = u64::from(!std::mem::replace(&mut self.begun, true));
        // SEQ_INCREMENTAL_STATE_CLEARED, once: nothing is interned.
        let packet = if flags > 0 { packet.uint(packet::SEQUENCE_FLAGS, flags) } else { packet };
        let framed = Message::default().message(1, &packet.uint(packet::SEQUENCE, 1));
        let written = self.out.write_all(framed.as_bytes());
        self.failed = written.err().map(|error| ReplayError::write(&self.name, &error));
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, rank: usize, is_counter: bool) {
        let mut track = Message::default().uint(1, uuid).text(2, name);
        if let Some(parent) = parent {
            track = track.uint(5, parent).int(12, rank as i64);
        }
        if is_counter {
            track = track.message(8, &Message::default());
        }
        self.packet(Message::default().message(packet::TRACK_DESCRIPTOR, &track));
    }

    /// A track whose children are in the order of their ranks.
    fn group(&mut self, uuid: u64, parent: Option<(u64, usize)>, name: &str, description: &str) {
        let mut track = Message::default().uint(1, uuid).text(2, name);
        if let Some((parent, rank)) = parent {
            track = track.uint(5, parent).int(12, rank as i64);
        }
        track = track.uint(11, 3).text(14, description);
        self.packet(Message::default().message(packet::TRACK_DESCRIPTOR, &track));
    }

    fn tracks(&mut self, description: &str) {
        self.group(ROOT, None, "sisdiff", description);
        let columns = self.columns.clone();
        let baseline = columns.iter().find(|(_, role)| *role == Role::Baseline).map_or("", |(name, _)| name).to_owned();
        for (at, (name, role)) in columns.iter().enumerate() {
            let title = format!("{name} ({})", words::role(*role));
            self.track(placements(at), Some(ROOT), &title, 10 * at, false);
            if *role == Role::Patched {
                let title = format!("differs: {name} from {baseline}");
                self.track(differences(at), Some(ROOT), &title, 10 * at + 1, false);
            }
            for (number, (counted, _)) in COUNTERS.iter().enumerate() {
                let rank = 1_000 + 10 * number + at;
                self.track(counter(at, number), Some(ROOT), &format!("{counted}, {name}"), rank, true);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let is_in = |ns: u64| {
            self.filter.since_ns.is_none_or(|since| ns >= since) && self.filter.until_ns.is_none_or(|until| ns < until)
        };
        let wanted = is_in(event.ts_ns);
        let Some((field, content)) = wanted.then(|| ftrace(&event.kind)).flatten() else { return };
        self.last_ns = self.last_ns.max(event.ts_ns);
        let one = Message::default().uint(1, event.ts_ns).uint(2, event.pid.0 as u32 as u64).message(field, &content);
        let cpu = event.cpu.index();
        if self.bundles.len() <= cpu {
            self.bundles.resize_with(cpu + 1, || (Message::default(), 0));
        }
        let (bundle, n) = &mut self.bundles[cpu];
        *bundle = std::mem::take(bundle).message(2, &one);
        *n += 1;
        if *n >= BUNDLE {
            self.flush(cpu);
        }
    }

    fn flush(&mut self, cpu: usize) {
        let (events, n) = std::mem::take(&mut self.bundles[cpu]);
        if n > 0 {
            let bundle = Message::default().uint(1, cpu as u64).joined(&events);
            self.packet(Message::default().message(packet::FTRACE_EVENTS, &bundle));
        }
    }

    fn decision(&mut self, row: &Row) {
        let ts_ns = row.recorded.ts_ns;
        self.last_ns = self.last_ns.max(ts_ns);
        let baseline = self.columns.iter().position(|(_, role)| *role == Role::Baseline);
        let mut verdicts = row.verdicts.iter();
        for at in 0..self.columns.len() {
            let Some(decision) = row.decisions.get(at) else { continue };
            let name = format!("CPU {}: {:?}", decision.class_cpu, decision.exit);
            let event = asked(instant(placements(at), &name), row);
            let event = decided(event, "", decision, row.wrong.get(at) == Some(&true));
            self.track_event(ts_ns, event);
            if self.columns[at].1 == Role::Patched
                && let Some(verdict) = verdicts.next()
                && let Some(from) = baseline.and_then(|at| row.decisions.get(at))
            {
                self.difference(at, row, verdict, from, decision);
            }
            self.counted[at] += decision.sis;
        }
        if ts_ns >= self.counted_ns.saturating_add(COUNTER_NS) {
            self.counters(ts_ns);
        }
    }

    fn difference(&mut self, at: usize, row: &Row, verdict: &Verdict, from: &Decision, to: &Decision) {
        let &Verdict::Diverge { difference, .. } = verdict else { return };
        let name = format!("CPU {} → {}: {:?} → {:?}", from.class_cpu, to.class_cpu, from.exit, to.exit);
        let event = asked(instant(differences(at), &name), row);
        let event = decided(decided(event, "baseline ", from, false), "patched ", to, difference.outside.is_patched());
        let event =
            text(text(event, "distance", words::distance(difference.distance)), "load", words::load(difference.load));
        self.track_event(row.recorded.ts_ns, text(event, "outside cpus_ptr", words::outside(difference.outside)));
    }

    fn counters(&mut self, ts_ns: u64) {
        self.counted_ns = ts_ns;
        for at in 0..self.counted.len() {
            for (number, (_, of)) in COUNTERS.iter().enumerate() {
                let value = of(&self.counted[at]);
                let event = Message::default().uint(9, COUNTER).uint(11, counter(at, number)).int(30, value as i64);
                self.track_event(ts_ns, event);
            }
        }
    }

    fn track_event(&mut self, ts_ns: u64, event: Message) {
        self.packet(Message::default().uint(packet::TIMESTAMP, ts_ns).message(packet::TRACK_EVENT, &event));
    }
}

fn instant(track: u64, name: &str) -> Message {
    Message::default().uint(9, INSTANT).uint(11, track).text(22, "sisdiff").text(23, name)
}

fn number(event: Message, name: &str, value: u64) -> Message {
    event.message(4, &Message::default().text(10, name).uint(3, value))
}

fn text(event: Message, name: &str, value: &str) -> Message {
    event.message(4, &Message::default().text(10, name).text(6, value))
}

/// The question, as arguments.
fn asked(event: Message, row: &Row) -> Message {
    let recorded = &row.recorded;
    let wakeup = &recorded.wakeup;
    let event = number(event, "wakeup", recorded.number);
    let event = text(event, "kind", words::kind(wakeup.kind));
    let event = text(event, "wakee", &format!("{} ({})", recorded.comm, recorded.pid));
    let event = text(event, "waker", &format!("{} ({})", recorded.waker_comm, recorded.waker_pid));
    let event = number(event, "this_cpu", u64::from(wakeup.this_cpu.0));
    let event = number(event, "prev_cpu", u64::from(wakeup.prev_cpu.0));
    match row.choice.cpu() {
        Some(cpu) => number(event, "recorded choice", u64::from(cpu.0)),
        None => event,
    }
}

/// An answer, as arguments.
fn decided(event: Message, whose: &str, decision: &Decision, wrong: bool) -> Message {
    let event = number(event, &format!("{whose}cpu"), u64::from(decision.class_cpu.0));
    let event = text(event, &format!("{whose}return"), &format!("{:?}", decision.exit));
    let event = number(event, &format!("{whose}idle checks"), u64::from(decision.probes));
    let event = number(event, &format!("{whose}SIS Scanned"), decision.sis.scanned);
    let event = text(event, &format!("{whose}inputs"), words::class(Class::of(decision.leaned_on)));
    if wrong { text(event, &format!("{whose}wrong"), "outside of cpus_ptr") } else { event }
}

/// The field of FtraceEvent and its content, of what Perfetto shows.
fn ftrace(kind: &EventKind) -> Option<(u32, Message)> {
    let task = |task: &Wakee, cpu: crate::units::Cpu| {
        let comm = task.comm.to_string();
        Message::default()
            .text(1, &comm)
            .int(2, task.pid.0.into())
            .int(3, task.prio.into())
            .int(4, 1)
            .int(5, cpu.0.into())
    };
    match kind {
        EventKind::Switch { prev, prev_state, next } => {
            // The recording's letters are read as three classes: R, S for all that sleeps, X.
            let state = match prev_state {
                PrevState::Runnable => 0,
                PrevState::Blocked => 1,
                PrevState::Dead => 0x10,
            };
            let switch = Message::default().text(1, &prev.comm.to_string()).int(2, prev.pid.0.into());
            let switch = switch.int(3, prev.prio.into()).int(4, state).text(5, &next.comm.to_string());
            Some((4, switch.int(6, next.pid.0.into()).int(7, next.prio.into())))
        }
        EventKind::Waking { wakee, target_cpu } => Some((20, task(wakee, *target_cpu))),
        EventKind::Wakeup { wakee, target_cpu, .. } => Some((17, task(wakee, *target_cpu))),
        _ => None,
    }
}
