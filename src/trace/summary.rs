// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts over a whole trace: what is in it, what is missing, where it contradicts itself.

use std::collections::BTreeMap;

use tracecmd_parse::{Formats, Meta, RawEvent};

use crate::trace::event::{Event, EventKind};
use crate::units::{Cpu, Pid};

/// What one pass over a trace counts. Memory is bounded by the number of CPUs and kinds of events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// `uname` text of the recorded machine.
    pub uname: Option<String>,
    /// The trace clock.
    pub clock: Option<String>,
    /// Events by id.
    by_id: Vec<u64>,
    /// Events in all.
    pub events: u64,
    /// Times of the earliest and the latest event, ns.
    pub span_ns: Option<(u64, u64)>,
    /// Marks of lost events.
    pub losses: u64,
    /// Lost events of the marks that have a count.
    pub lost_events: u64,
    /// Events whose fields are cut off or impossible.
    pub malformed: u64,
    /// By CPU.
    cpus: Vec<CpuSummary>,
}

/// What the events of one CPU tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSummary {
    /// Events.
    pub events: u64,
    /// Time of the first event, ns.
    pub first_ns: u64,
    /// sched_switch events.
    pub switches: u64,
    /// sched_switch events whose prev_pid is not the next_pid of the one before: events are missing there, whatever
    /// the marks say.
    pub breaks: u64,
    /// Breaks without a mark of lost events in between.
    pub unmarked_breaks: u64,
    next_pid: Option<Pid>,
    lost_since: bool,
    lost: bool,
}

impl Summary {
    /// An empty summary of the trace that `meta` belongs to.
    pub fn new(meta: &Meta) -> Self {
        Self { uname: meta.uname.clone(), clock: meta.clock.clone(), ..Self::default() }
    }

    /// Counts one event.
    #[inline]
    pub fn event(&mut self, raw: &RawEvent<'_>, event: &Event) {
        let id = usize::from(raw.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        self.by_id[id] += 1;
        self.events += 1;
        let (first, last) = self.span_ns.unwrap_or((event.ts_ns, event.ts_ns));
        self.span_ns = Some((first.min(event.ts_ns), last.max(event.ts_ns)));
        let cpu = self.cpu_mut(event.cpu);
        if cpu.events == 0 {
            cpu.first_ns = event.ts_ns;
        }
        cpu.events += 1;
        match &event.kind {
            EventKind::Switch { prev, next, .. } => cpu.switch(prev.pid, next.pid),
            EventKind::Malformed => self.malformed += 1,
            _ => {}
        }
    }

    #[inline]
    fn cpu_mut(&mut self, cpu: Cpu) -> &mut CpuSummary {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, CpuSummary::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// What the events of each CPU tell that had any, or lost some.
    pub fn cpus(&self) -> impl Iterator<Item = (Cpu, &CpuSummary)> {
        let had = |(at, cpu)| Cpu::new(at).map(|at| (at, cpu));
        self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.events > 0 || cpu.lost).filter_map(had)
    }

    /// Counts one mark of lost events.
    pub fn lost(&mut self, cpu: Cpu, count: Option<u64>) {
        self.losses += 1;
        self.lost_events = self.lost_events.saturating_add(count.unwrap_or(0));
        let cpu = self.cpu_mut(cpu);
        (cpu.lost_since, cpu.lost) = (true, true);
    }

    /// Events by `system:name`, sorted by name; ids without a format under their number.
    pub fn by_name(&self, formats: &Formats) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (id, &count) in self.by_id.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let format = u16::try_from(id).ok().and_then(|id| formats.by_id(id));
            let name = format.map_or_else(|| format!("event {id}"), |f| format!("{}:{}", f.system, f.name));
            *counts.entry(name).or_insert(0) += count;
        }
        counts
    }

    /// Breaks of all CPUs: sched_switch events that contradict the one before.
    pub fn breaks(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.breaks).sum()
    }
}

impl CpuSummary {
    fn switch(&mut self, prev: Pid, next: Pid) {
        self.switches += 1;
        let broken = self.next_pid.is_some_and(|last| last != prev);
        self.breaks += u64::from(broken);
        self.unmarked_breaks += u64::from(broken && !self.lost_since);
        self.next_pid = Some(next);
        self.lost_since = false;
    }
}
