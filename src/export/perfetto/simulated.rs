// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulations as one Perfetto trace: the schedule of each implementation as tracks of CPUs on one axis of time, its
//! placements and SIS counters; the baseline's schedule also as Perfetto's own CPU tracks.

use std::io::Write;

use super::{ROOT, Writer, decided, instant, number, placements, text};
use crate::export::proto::Message;
use crate::export::words;
use crate::replay::{ReplayError, Role};
use crate::simulate::{Decided, Watch};
use crate::trace::{Event, EventKind};
use crate::units::{Cpu, Pid};

/// TrackEvent.Type.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// Numbers of tracks: of an implementation's CPUs together, of one of them.
fn machine(at: usize) -> u64 {
    20_000 + at as u64
}
fn cpu_track(at: usize, cpu: usize) -> u64 {
    100_000 + ((at as u64) << 12) + cpu as u64
}

/// Writes simulations as they go, one implementation after the other.
pub struct Simulated<W> {
    writer: Writer<W>,
    at: usize,
    cpus: usize,
    /// By CPU: a slice is open.
    runs: Vec<bool>,
}

impl<W: Write> Simulated<W> {
    /// Into `out`, which is called `name` in errors; the first of the implementations' names is the baseline's.
    pub fn new(out: W, name: &str, implementations: &[String], cpus: usize) -> Self {
        let mut writer = Writer::new(out, name);
        let role = |at: usize| if at == 0 { Role::Baseline } else { Role::Patched };
        writer.columns = implementations.iter().enumerate().map(|(at, name)| (name.clone(), role(at))).collect();
        writer.counted = vec![Default::default(); implementations.len()];
        writer.simulated_tracks(cpus);
        Self { writer, at: 0, cpus, runs: vec![false; cpus] }
    }

    /// What comes now is of implementation number `at`; the one before ended at `ns`.
    pub fn next(&mut self, at: usize, ns: u64) {
        for cpu in 0..self.cpus {
            if std::mem::take(&mut self.runs[cpu]) {
                self.writer.slice_ends(ns, cpu_track(self.at, cpu));
            }
        }
        self.writer.last_counters(self.at, ns);
        self.at = at;
        self.writer.counted_ns = 0;
    }

    /// Writes what is left, and gives back where it went.
    ///
    /// # Errors
    /// [`ReplayError::Write`].
    pub fn finish(mut self, ns: u64) -> Result<W, ReplayError> {
        self.next(self.at, ns);
        self.writer.counted.clear();
        self.writer.finish()
    }

    fn switch(&mut self, ts_ns: u64, cpu: Cpu, next: (Pid, &str)) {
        let (at, track) = (cpu.index(), cpu_track(self.at, cpu.index()));
        if std::mem::take(&mut self.runs[at]) {
            self.writer.slice_ends(ts_ns, track);
        }
        if next.0 != Pid::SWAPPER {
            self.runs[at] = true;
            let name = format!("{} [{}]", next.1, next.0);
            let event = Message::default().uint(9, SLICE_BEGIN).uint(11, track).text(22, "sched").text(23, &name);
            self.writer.track_event(ts_ns, event);
        }
    }
}

impl<W: Write> Watch for Simulated<W> {
    fn event(&mut self, event: &Event) {
        if self.at == 0 {
            self.writer.event(event);
        }
        if let EventKind::Switch { next, .. } = &event.kind {
            self.switch(event.ts_ns, event.cpu, (next.pid, &next.comm.to_string()));
        }
    }

    fn decision(&mut self, one: &Decided<'_>) {
        let name = format!("CPU {}: {:?}", one.decision.class_cpu, one.decision.exit);
        let event = instant(placements(self.at), &name);
        let event = text(event, "kind", words::kind(one.kind));
        let event = text(event, "wakee", &format!("{} ({})", one.wakee.0, one.wakee.1));
        let event = text(event, "waker", &format!("{} ({})", one.waker.0, one.waker.1));
        let event = number(event, "this_cpu", u64::from(one.this_cpu.0));
        let event = number(event, "prev_cpu", u64::from(one.prev_cpu.0));
        self.writer.track_event(one.ts_ns, decided(event, "", one.decision, one.is_wrong));
        self.writer.counted[self.at] += one.decision.sis;
        if one.ts_ns >= self.writer.counted_ns.saturating_add(super::COUNTER_NS) {
            self.writer.last_counters(self.at, one.ts_ns);
        }
    }
}

impl<W: Write> Writer<W> {
    fn simulated_tracks(&mut self, cpus: usize) {
        let told = "Closed loop: what an implementation chose decides what follows. Perfetto's own CPU tracks show the baseline.";
        self.group(ROOT, None, "sisdiff", told);
        for (at, (name, role)) in self.columns.clone().into_iter().enumerate() {
            let title = format!("{name} ({}): placements", words::role(role));
            self.track(placements(at), Some(ROOT), &title, 10 * at, false);
            let title = format!("{name} ({}): what runs", words::role(role));
            self.group(machine(at), Some((ROOT, 10 * at + 1)), &title, "A track for each CPU.");
            for cpu in 0..cpus {
                self.track(cpu_track(at, cpu), Some(machine(at)), &format!("CPU {cpu}"), cpu, false);
            }
            for (number, (counted, _)) in super::COUNTERS.iter().enumerate() {
                let (track, title) = (super::counter(at, number), format!("{counted}, {name}"));
                self.track(track, Some(ROOT), &title, 1_000 + 10 * number + at, true);
            }
        }
    }

    fn slice_ends(&mut self, ts_ns: u64, track: u64) {
        self.track_event(ts_ns, Message::default().uint(9, SLICE_END).uint(11, track));
    }

    /// The counters of one implementation.
    fn last_counters(&mut self, at: usize, ts_ns: u64) {
        self.counted_ns = ts_ns;
        let Some(counted) = self.counted.get(at).copied() else { return };
        for (number, (_, of)) in super::COUNTERS.iter().enumerate() {
            let event = Message::default()
                .uint(9, super::COUNTER)
                .uint(11, super::counter(at, number))
                .int(30, of(&counted) as i64);
            self.track_event(ts_ns, event);
        }
    }
}
