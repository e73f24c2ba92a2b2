// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts over the events of one buffer. Memory is bounded by the number of CPUs and kinds of events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracecmd_parse::{Formats, RawEvent};

use crate::trace::{Event, EventKind};
use crate::units::{Cpu, Pid};

/// What one walk over a buffer counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferInfo {
    /// Name of the ftrace instance; the top buffer's is empty.
    pub name: String,
    /// Events, all kinds.
    pub events: u64,
    /// Time of the earliest event, ns of the trace's clock.
    pub first_ns: Option<u64>,
    /// Time of the latest event, ns of the trace's clock.
    pub last_ns: Option<u64>,
    /// Time from which on every CPU that has events has begun, ns; a replay is complete from here.
    pub all_begun_ns: Option<u64>,
    /// Events by `system:name`, the most frequent first.
    pub by_type: Vec<EventCount>,
    /// Marks of lost events.
    pub losses: u64,
    /// Lost events of the marks that have a count.
    pub lost_events: u64,
    /// Events earlier than the one before them on their CPU.
    pub out_of_order: u64,
    /// sched_switch events whose prev_pid is not the next_pid of the one before on their CPU.
    pub breaks: u64,
    /// Those without a mark of lost events in between.
    pub unmarked_breaks: u64,
    /// Events whose fields are cut off or impossible.
    pub malformed: u64,
    /// Per CPU, those that have events or losses.
    pub cpus: Vec<CpuInfo>,
    /// Why this buffer was not (wholly) read, if it was not.
    pub unread: Option<String>,
}

/// How many events of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCount {
    /// `system:name`.
    pub event: String,
    /// How many.
    pub count: u64,
}

/// What the events of one CPU tell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuInfo {
    /// The CPU.
    pub cpu: u32,
    /// Events.
    pub events: u64,
    /// Time of the first, ns.
    pub first_ns: u64,
    /// Time of the last, ns.
    pub last_ns: u64,
    /// sched_switch events.
    pub switches: u64,
    /// Those whose prev_pid is not the next_pid of the one before.
    pub breaks: u64,
    /// Those without a mark of lost events in between.
    pub unmarked_breaks: u64,
    /// The first break.
    pub first_break: Option<Break>,
    /// Marks of lost events.
    pub losses: u64,
    /// Lost events of the marks that have a count.
    pub lost_events: u64,
    /// Events earlier than the one before them.
    pub out_of_order: u64,
}

/// A sched_switch that contradicts the one before it on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Break {
    /// When, ns.
    pub ts_ns: u64,
    /// next_pid of the switch before.
    pub next_pid: i32,
    /// prev_pid of this one.
    pub prev_pid: i32,
}

#[derive(Debug, Clone, Default)]
struct Running {
    info: CpuInfo,
    next_pid: Option<Pid>,
    lost_since: bool,
}

/// Counts.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    by_id: Vec<u64>,
    events: u64,
    malformed: u64,
    cpus: BTreeMap<u32, Running>,
}

impl Tally {
    /// Counts an event.
    pub fn event(&mut self, raw: &RawEvent<'_>, event: &Event) {
        let id = usize::from(raw.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        self.by_id[id] += 1;
        self.events += 1;
        self.malformed += u64::from(event.kind == EventKind::Malformed);
        let running = self.cpu(raw.cpu);
        let cpu = &mut running.info;
        if cpu.events == 0 {
            cpu.first_ns = raw.ts_ns;
        } else if raw.ts_ns < cpu.last_ns {
            cpu.out_of_order += 1;
        }
        cpu.first_ns = cpu.first_ns.min(raw.ts_ns);
        cpu.last_ns = if cpu.events == 0 { raw.ts_ns } else { cpu.last_ns.max(raw.ts_ns) };
        cpu.events += 1;
        if let EventKind::Switch { prev, next, .. } = &event.kind {
            running.switch(raw.ts_ns, prev.pid, next.pid);
        }
    }

    /// Counts a mark of lost events.
    pub fn lost(&mut self, cpu: u32, count: Option<u64>) {
        let running = self.cpu(cpu);
        running.info.losses += 1;
        running.info.lost_events = running.info.lost_events.saturating_add(count.unwrap_or(0));
        running.lost_since = true;
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn cpu(&mut self, cpu: u32) -> &mut Running {
        let running = self.cpus.entry(cpu).or_default();
        running.info.cpu = cpu;
        running
    }

    /// What was counted of the buffer `name`.
    pub fn finish(self, name: &str, formats: &Formats) -> BufferInfo {
        let cpus: Vec<CpuInfo> = self.cpus.into_values().map(|running| running.info).collect();
        let begun = || cpus.iter().filter(|cpu| cpu.events > 0);
        let sum = |of: fn(&CpuInfo) -> u64| cpus.iter().map(of).fold(0, u64::saturating_add);
        BufferInfo {
            name: name.to_owned(),
            events: self.events,
            first_ns: begun().map(|cpu| cpu.first_ns).min(),
            last_ns: begun().map(|cpu| cpu.last_ns).max(),
            all_begun_ns: begun().map(|cpu| cpu.first_ns).max(),
            by_type: by_type(&self.by_id, formats),
            losses: sum(|cpu| cpu.losses),
            lost_events: sum(|cpu| cpu.lost_events),
            out_of_order: sum(|cpu| cpu.out_of_order),
            breaks: sum(|cpu| cpu.breaks),
            unmarked_breaks: sum(|cpu| cpu.unmarked_breaks),
            malformed: self.malformed,
            cpus,
            unread: None,
        }
    }
}

impl Running {
    fn switch(&mut self, ts_ns: u64, prev: Pid, next: Pid) {
        self.info.switches += 1;
        if let Some(last) = self.next_pid.filter(|&last| last != prev) {
            self.info.breaks += 1;
            self.info.unmarked_breaks += u64::from(!self.lost_since);
            self.info.first_break.get_or_insert(Break { ts_ns, next_pid: last.0, prev_pid: prev.0 });
        }
        self.next_pid = Some(next);
        self.lost_since = false;
    }
}

fn by_type(by_id: &[u64], formats: &Formats) -> Vec<EventCount> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (id, &count) in by_id.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let format = u16::try_from(id).ok().and_then(|id| formats.by_id(id));
        let name = format.map_or_else(|| format!("event {id}"), |f| format!("{}:{}", f.system, f.name));
        *counts.entry(name).or_insert(0) += count;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(event, count)| EventCount { event, count }).collect();
    counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.event.cmp(&b.event)));
    counts
}

impl BufferInfo {
    /// How many events of `system:name`.
    pub fn count(&self, event: &str) -> u64 {
        self.by_type.iter().find(|one| one.event == event).map_or(0, |one| one.count)
    }

    /// Time from the first to the last event, ns.
    pub fn span_ns(&self) -> u64 {
        self.last_ns.unwrap_or(0).saturating_sub(self.first_ns.unwrap_or(0))
    }

    /// Whether the CPU has events.
    pub fn has(&self, cpu: Cpu) -> bool {
        self.cpus.iter().any(|info| info.cpu == u32::from(cpu.0) && info.events > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Context, PrevState, Wakee};
    use crate::units::Comm;

    fn switch(tally: &mut Tally, ts_ns: u64, prev: i32, next: i32) {
        let task = |pid| Wakee { pid: Pid(pid), comm: Comm::default(), prio: 120 };
        let kind = EventKind::Switch { prev: task(prev), prev_state: PrevState::Blocked, next: task(next) };
        let event = Event { ts_ns, cpu: Cpu(1), pid: Pid(prev), context: Context::empty(), kind };
        tally.event(&RawEvent { ts_ns, cpu: 1, id: 7, data: &[] }, &event);
    }

    #[test]
    fn breaks_are_counted_with_and_without_a_mark() {
        let mut tally = Tally::default();
        switch(&mut tally, 10, 0, 5);
        switch(&mut tally, 20, 5, 6);
        switch(&mut tally, 30, 7, 0);
        tally.lost(1, Some(4));
        switch(&mut tally, 40, 9, 0);
        switch(&mut tally, 35, 0, 9);
        let info = tally.finish("", &Formats::new(tracecmd_parse::Endian::Little));
        let cpu = &info.cpus[0];
        assert_eq!((cpu.cpu, cpu.switches, cpu.breaks, cpu.unmarked_breaks), (1, 5, 2, 1));
        assert_eq!(cpu.first_break, Some(Break { ts_ns: 30, next_pid: 6, prev_pid: 7 }));
        assert_eq!((info.losses, info.lost_events, info.out_of_order), (1, 4, 1));
        assert_eq!((info.first_ns, info.last_ns, info.span_ns()), (Some(10), Some(40), 30));
        assert_eq!(info.by_type, [EventCount { event: "event 7".to_owned(), count: 5 }]);
        assert!(info.has(Cpu(1)) && !info.has(Cpu(0)));
    }
}
