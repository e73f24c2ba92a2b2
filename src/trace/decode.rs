// SPDX-License-Identifier: GPL-2.0-or-later
//! [`RawEvent`] to [`Event`] by the trace's own formats, looked up once.

use std::collections::BTreeMap;
use std::fmt;

use tracecmd_parse::{CommonFields, EventFormat, FieldRef, Formats, RawEvent, TaskStates};

use crate::trace::event::{Context, Event, EventKind, PrevState, Wakee};
use crate::trace::probes::{RqFields, SisFields};
use crate::units::{Comm, Cpu, Pid};

/// Something that the format section of a trace does not have.
///
/// That an event has a format does not mean that it was recorded: see [`crate::trace::Summary`] for what occurred.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lack {
    /// The recorded kernel has no such event, or its format was not understood.
    Event(&'static str),
    /// The event has no such field.
    Field {
        /// The event.
        event: String,
        /// The field.
        field: &'static str,
    },
    /// The fields at the head of every event (`common_pid`, `common_flags`) are not described.
    CommonFields,
    /// Events do not say what they interrupted: [`Context::UNTOLD`].
    Context,
    /// sched_switch does not say which bits of prev_state mean what: the values of 4.14 to 7.3 are assumed.
    TaskStates,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "no format of {event}"),
            Self::Field { event, field } => write!(f, "{event} has no field {field}"),
            Self::CommonFields => f.write_str("events do not describe common_pid and common_flags"),
            Self::Context => f.write_str("events do not say whether they come from an interrupt"),
            Self::TaskStates => f.write_str("sched_switch does not describe the bits of prev_state"),
        }
    }
}

/// An event that a replay reads, recorded without a field that it is useless without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// System and name, `sched:sched_wakeup`.
    pub event: String,
    /// The field.
    pub field: &'static str,
}

impl Unreadable {
    /// What that does to `count` of them.
    pub fn note(&self, count: u64) -> String {
        format!("{} has no field {}: {count} events of it cannot be read", self.event, self.field)
    }
}

/// The fields of one event, by what they mean.
#[derive(Debug, Clone)]
enum Shape {
    Switch {
        prev: TaskFields,
        prev_state: FieldRef,
        next: TaskFields,
    },
    Waking {
        wakee: TaskFields,
        target_cpu: FieldRef,
        success: Option<FieldRef>,
    },
    Wakeup {
        wakee: TaskFields,
        target_cpu: FieldRef,
        success: Option<FieldRef>,
        new: bool,
    },
    Migrate {
        task: TaskFields,
        orig_cpu: FieldRef,
        dest_cpu: FieldRef,
    },
    Fork {
        parent_pid: FieldRef,
        child_pid: FieldRef,
        child_comm: Option<FieldRef>,
    },
    Exec {
        pid: FieldRef,
        old_pid: Option<FieldRef>,
    },
    Exit {
        pid: FieldRef,
    },
    Free {
        pid: FieldRef,
    },
    Hotplug {
        cpu: FieldRef,
        target: FieldRef,
    },
    IdleState {
        cpu: FieldRef,
        state: FieldRef,
    },
    SisIn(Box<SisFields>),
    SisRq {
        target: Cpu,
        fields: Box<RqFields>,
    },
    SisOut {
        ret: FieldRef,
    },
    AvailIn {
        cpu: FieldRef,
    },
    AvailOut {
        ret: FieldRef,
    },
    /// A field is missing that the event is useless without.
    Unreadable,
}

#[derive(Debug, Clone, Copy)]
struct TaskFields {
    pid: FieldRef,
    comm: Option<FieldRef>,
    prio: Option<FieldRef>,
}

impl TaskFields {
    #[inline]
    fn read(&self, raw: &RawEvent<'_>) -> Option<Wakee> {
        let comm = self.comm.and_then(|comm| comm.bytes(raw)).map_or_else(Comm::default, Comm::new);
        let prio = self.prio.and_then(|prio| prio.i64(raw)).map_or(Wakee::PRIO_UNKNOWN, |prio| prio as i32);
        Some(Wakee { pid: pid(self.pid, raw)?, comm, prio })
    }
}

impl Wakee {
    /// What stands for the priority where the event has none: nice 0.
    pub const PRIO_UNKNOWN: i32 = 120;
}

#[inline]
fn pid(field: FieldRef, raw: &RawEvent<'_>) -> Option<Pid> {
    let pid = i32::try_from(field.i64(raw)?).ok()?;
    (pid >= 0).then_some(Pid(pid))
}

#[inline]
fn cpu(field: FieldRef, raw: &RawEvent<'_>) -> Option<Cpu> {
    Cpu::new(usize::try_from(field.i64(raw)?).ok()?)
}

/// Bits of prev_state.
#[derive(Debug, Clone, Copy)]
struct StateBits {
    blocked: u64,
    dead: u64,
}

impl StateBits {
    /// **Source**: include/linux/sched.h, TASK_REPORT and EXIT_ZOMBIE | EXIT_DEAD as task_state_to_char() reports them.
    const USUAL: Self = Self { blocked: 0xff, dead: 0x30 };

    fn of(states: &TaskStates) -> Self {
        let dead = states.table.entries.iter().filter(|(_, name)| matches!(name.as_str(), "X" | "Z" | "x"));
        Self { blocked: states.table.mask & !states.preempted_bit, dead: dead.fold(0, |bits, (bit, _)| bits | bit) }
    }

    fn classify(self, prev_state: u64) -> PrevState {
        if prev_state & self.dead != 0 {
            PrevState::Dead
        } else if prev_state & self.blocked != 0 {
            PrevState::Blocked
        } else {
            PrevState::Runnable
        }
    }
}

/// What every event has at its head: whose context it happened in, and what that was interrupted by.
#[derive(Debug, Clone)]
struct Head {
    pid: Option<FieldRef>,
    flags: Option<FieldRef>,
    /// They are where mainline has them, and can be had with one read.
    mainline: bool,
}

impl Head {
    fn new(common: Option<&CommonFields>) -> Self {
        let pid = common.map(|common| common.common_pid);
        let flags = common.map(|common| common.common_flags);
        let is = |field: Option<FieldRef>, offset, size, signed| {
            field.is_some_and(|field| field.is_little(offset, size, signed))
        };
        Self { pid, flags, mainline: is(pid, 4, 4, true) && is(flags, 2, 1, false) }
    }

    #[inline]
    fn read(&self, raw: &RawEvent<'_>) -> (Pid, Context) {
        if self.mainline
            && let Some(&head) = raw.data.first_chunk()
        {
            let head = u64::from_le_bytes(head);
            return (Pid(((head >> 32) as i32).max(0)), Context::from_flags((head >> 16) as u8));
        }
        let flags = self.flags.and_then(|flags| flags.u64(raw));
        let context = flags.map_or(Context::UNTOLD, |flags| Context::from_flags(flags as u8));
        (self.pid.and_then(|field| pid(field, raw)).unwrap_or_default(), context)
    }
}

/// Turns the events of one trace into typed ones.
#[derive(Debug, Clone)]
pub struct Decoder {
    /// By event id; most have none.
    shapes: Vec<Option<Box<Shape>>>,
    head: Head,
    states: StateBits,
    lacks: Vec<Lack>,
    unreadable: Vec<Unreadable>,
    has_sis_in: bool,
    has_sis_rq: bool,
}

impl Decoder {
    /// Looks up the events and fields of `formats`. What is missing is told by [`Self::lacks`].
    pub fn new(formats: &Formats) -> Self {
        let common = formats.common();
        let mut found = Finder { formats, shapes: BTreeMap::new(), lacks: Vec::new(), unreadable: Vec::new() };
        if common.is_none() {
            found.lacks.push(Lack::CommonFields);
        }
        // A text without its irq-info column has a field without bytes.
        if common.is_some_and(|common| common.common_flags.size() == 0) {
            found.lacks.push(Lack::Context);
        }
        let states = found.sched_events();
        found.other_events();
        let (has_sis_in, has_sis_rq) = found.probes();
        let Finder { shapes: by_id, mut lacks, unreadable, .. } = found;
        lacks.sort();
        let mut shapes = vec![None; by_id.keys().last().map_or(0, |&id| usize::from(id) + 1)];
        for (id, shape) in by_id {
            shapes[usize::from(id)] = Some(Box::new(shape));
        }
        Self { shapes, head: Head::new(common), states, lacks, unreadable, has_sis_in, has_sis_rq }
    }

    /// What the formats do not have, in a stable order.
    pub fn lacks(&self) -> &[Lack] {
        &self.lacks
    }

    /// Events whose every occurrence is [`EventKind::Malformed`], in the order in which they were looked up.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Whether the trace has the entry probe of select_task_rq_fair(): then a waking without it was no decision.
    pub fn has_sis_in(&self) -> bool {
        self.has_sis_in
    }

    /// Whether the trace has probes of the run queues.
    pub fn has_sis_rq(&self) -> bool {
        self.has_sis_rq
    }

    /// The typed event. Never fails: an unneeded event is [`EventKind::Ignored`], one whose fields are cut off or
    /// impossible is [`EventKind::Malformed`].
    pub fn decode(&self, raw: &RawEvent<'_>) -> Event {
        let mut event = Event::default();
        self.decode_into(raw, &mut event);
        event
    }

    /// [`Self::decode`] into the place of the event before: most events are ignored ones, of which little has to be
    /// written there.
    #[inline]
    pub fn decode_into(&self, raw: &RawEvent<'_>, event: &mut Event) {
        event.ts_ns = raw.ts_ns;
        (event.pid, event.context) = self.head.read(raw);
        event.kind = match self.shapes.get(usize::from(raw.id)) {
            Some(Some(shape)) => self.kind(shape, raw).unwrap_or(EventKind::Malformed),
            _ => EventKind::Ignored,
        };
        match usize::try_from(raw.cpu).ok().and_then(Cpu::new) {
            Some(cpu) => event.cpu = cpu,
            None => (event.cpu, event.kind) = (Cpu(0), EventKind::Malformed),
        }
    }

    /// The event that stands for lost ones; `None` if `cpu` is too large to be one.
    pub fn lost(cpu: u32, ts_ns: u64, count: Option<u64>) -> Option<Event> {
        let cpu = Cpu::new(usize::try_from(cpu).ok()?)?;
        Some(Event { ts_ns, cpu, pid: Pid::SWAPPER, context: Context::empty(), kind: EventKind::Lost { count } })
    }

    #[inline]
    fn kind(&self, shape: &Shape, raw: &RawEvent<'_>) -> Option<EventKind> {
        // Before 4.3 sched_wakeup is emitted for failed wakeups, too.
        let succeeded = |success: &Option<FieldRef>| success.and_then(|field| field.i64(raw)) != Some(0);
        Some(match shape {
            Shape::Switch { prev, prev_state, next } => EventKind::Switch {
                prev: prev.read(raw)?,
                prev_state: self.states.classify(prev_state.u64(raw)?),
                next: next.read(raw)?,
            },
            Shape::Waking { success, .. } | Shape::Wakeup { success, .. } if !succeeded(success) => EventKind::Ignored,
            Shape::Waking { wakee, target_cpu, .. } => {
                EventKind::Waking { wakee: wakee.read(raw)?, target_cpu: cpu(*target_cpu, raw)? }
            }
            Shape::Wakeup { wakee, target_cpu, new, .. } => {
                EventKind::Wakeup { wakee: wakee.read(raw)?, target_cpu: cpu(*target_cpu, raw)?, new: *new }
            }
            Shape::Migrate { task, orig_cpu, dest_cpu } => EventKind::Migrate {
                task: task.read(raw)?,
                orig_cpu: cpu(*orig_cpu, raw)?,
                dest_cpu: cpu(*dest_cpu, raw)?,
            },
            Shape::Fork { parent_pid, child_pid, child_comm } => EventKind::Fork {
                parent: pid(*parent_pid, raw)?,
                child: pid(*child_pid, raw)?,
                child_comm: child_comm.and_then(|comm| comm.bytes(raw)).map_or_else(Comm::default, Comm::new),
            },
            Shape::Exec { pid: field, old_pid } => {
                let now = pid(*field, raw)?;
                EventKind::Exec { pid: now, old_pid: old_pid.and_then(|old| pid(old, raw)).unwrap_or(now) }
            }
            Shape::Exit { pid: field } => EventKind::Exit { pid: pid(*field, raw)? },
            Shape::Free { pid: field } => EventKind::Free { pid: pid(*field, raw)? },
            Shape::Hotplug { cpu: field, target } => {
                EventKind::Hotplug { target: cpu(*field, raw)?, online: target.i64(raw)? != 0 }
            }
            Shape::IdleState { cpu: field, state } => {
                let state = state.u64(raw)? as u32;
                EventKind::IdleState { target: cpu(*field, raw)?, state: (state != u32::MAX).then_some(state) }
            }
            Shape::SisIn(fields) => EventKind::SisIn(Box::new(fields.read(raw)?)),
            Shape::SisRq { target, fields } => EventKind::SisRq(Box::new(fields.read(*target, raw))),
            Shape::SisOut { ret } => EventKind::SisOut { ret: cpu(*ret, raw) },
            Shape::AvailIn { cpu: field } => EventKind::AvailIn { target: cpu(*field, raw)? },
            // The probe reads a register whose upper half a bool leaves undefined.
            Shape::AvailOut { ret } => EventKind::AvailOut { idle: ret.u64(raw)? as u8 != 0 },
            Shape::Unreadable => return None,
        })
    }
}

/// Collects shapes, and notes what is missing.
struct Finder<'a> {
    formats: &'a Formats,
    shapes: BTreeMap<u16, Shape>,
    lacks: Vec<Lack>,
    unreadable: Vec<Unreadable>,
}

impl<'a> Finder<'a> {
    /// The format of an event that a replay wants.
    fn wanted(&mut self, system: &'static str, name: &'static str) -> Option<&'a EventFormat> {
        let format = self.formats.by_name(system, name);
        if format.is_none() {
            self.lacks.push(Lack::Event(name));
        }
        format
    }

    /// A field that an event is useless without.
    fn field(&mut self, format: &EventFormat, field: &'static str) -> Option<FieldRef> {
        let found = format.field_ref(field).ok();
        if found.is_none() {
            self.lacks.push(Lack::Field { event: format.name.clone(), field });
        }
        found
    }

    /// Notes how an event is read, or that it cannot be for want of the field that was looked for last.
    fn found(&mut self, format: &EventFormat, shape: Option<Shape>) {
        if shape.is_none()
            && let Some(&Lack::Field { field, .. }) = self.lacks.last()
        {
            self.unreadable.push(Unreadable { event: format!("{}:{}", format.system, format.name), field });
        }
        self.shapes.insert(format.id, shape.unwrap_or(Shape::Unreadable));
    }

    fn task(&mut self, format: &EventFormat, names: [&'static str; 3]) -> Option<TaskFields> {
        let [pid, comm, prio] = names;
        Some(TaskFields {
            pid: self.field(format, pid)?,
            comm: self.field(format, comm),
            prio: self.field(format, prio),
        })
    }

    fn sched_events(&mut self) -> StateBits {
        let mut states = StateBits::USUAL;
        if let Some(format) = self.wanted("sched", "sched_switch") {
            match TaskStates::of(format) {
                Some(found) => states = StateBits::of(&found),
                None => self.lacks.push(Lack::TaskStates),
            }
            let shape = self.switch(format);
            self.found(format, shape);
        }
        for name in ["sched_waking", "sched_wakeup", "sched_wakeup_new"] {
            let Some(format) = self.wanted("sched", name) else { continue };
            let shape = self.wakeup(format, name);
            self.found(format, shape);
        }
        if let Some(format) = self.wanted("sched", "sched_migrate_task") {
            let shape = self.migrate(format);
            self.found(format, shape);
        }
        for name in ["sched_process_fork", "sched_process_exec", "sched_process_exit", "sched_process_free"] {
            let Some(format) = self.wanted("sched", name) else { continue };
            let shape = self.life(format, name);
            self.found(format, shape);
        }
        states
    }

    fn switch(&mut self, format: &EventFormat) -> Option<Shape> {
        Some(Shape::Switch {
            prev: self.task(format, ["prev_pid", "prev_comm", "prev_prio"])?,
            prev_state: self.field(format, "prev_state")?,
            next: self.task(format, ["next_pid", "next_comm", "next_prio"])?,
        })
    }

    fn wakeup(&mut self, format: &EventFormat, name: &str) -> Option<Shape> {
        let wakee = self.task(format, ["pid", "comm", "prio"])?;
        let target_cpu = self.field(format, "target_cpu")?;
        let success = format.field_ref("success").ok();
        Some(match name {
            "sched_waking" => Shape::Waking { wakee, target_cpu, success },
            _ => Shape::Wakeup { wakee, target_cpu, success, new: name == "sched_wakeup_new" },
        })
    }

    fn migrate(&mut self, format: &EventFormat) -> Option<Shape> {
        Some(Shape::Migrate {
            task: self.task(format, ["pid", "comm", "prio"])?,
            orig_cpu: self.field(format, "orig_cpu")?,
            dest_cpu: self.field(format, "dest_cpu")?,
        })
    }

    fn life(&mut self, format: &EventFormat, name: &str) -> Option<Shape> {
        Some(match name {
            "sched_process_fork" => Shape::Fork {
                parent_pid: self.field(format, "parent_pid")?,
                child_pid: self.field(format, "child_pid")?,
                child_comm: format.field_ref("child_comm").ok(),
            },
            "sched_process_exec" => {
                Shape::Exec { pid: self.field(format, "pid")?, old_pid: format.field_ref("old_pid").ok() }
            }
            "sched_process_exit" => Shape::Exit { pid: self.field(format, "pid")? },
            _ => Shape::Free { pid: self.field(format, "pid")? },
        })
    }

    /// Events that a recording may have or not: their absence is no lack.
    fn other_events(&mut self) {
        if let Some(format) = self.formats.by_name("cpuhp", "cpuhp_enter")
            && let (Ok(cpu), Ok(target)) = (format.field_ref("cpu"), format.field_ref("target"))
        {
            self.shapes.insert(format.id, Shape::Hotplug { cpu, target });
        }
        if let Some(format) = self.formats.by_name("power", "cpu_idle")
            && let (Ok(cpu), Ok(state)) = (format.field_ref("cpu_id"), format.field_ref("state"))
        {
            self.shapes.insert(format.id, Shape::IdleState { cpu, state });
        }
    }

    /// The kprobe events. Their system is whatever group the user gave them.
    fn probes(&mut self) -> (bool, bool) {
        let (mut has_in, mut has_rq) = (false, false);
        for format in self.formats.iter() {
            let shape = match format.name.as_str() {
                "sis_in" => SisFields::find(format, &mut self.lacks).map(|fields| Shape::SisIn(Box::new(fields))),
                "sis_out" => self.field(format, "ret").map(|ret| Shape::SisOut { ret }),
                "sis_avail_in" => self.field(format, "cpu").map(|cpu| Shape::AvailIn { cpu }),
                "sis_avail_out" => self.field(format, "ret").map(|ret| Shape::AvailOut { ret }),
                name => match name.strip_prefix("sis_rq").and_then(|cpu| cpu.parse().ok()).and_then(Cpu::new) {
                    Some(target) => Some(Shape::SisRq { target, fields: Box::new(RqFields::find(format)) }),
                    None => continue,
                },
            };
            has_in |= matches!(shape, Some(Shape::SisIn(_)));
            has_rq |= matches!(shape, Some(Shape::SisRq { .. }));
            self.found(format, shape);
        }
        (has_in, has_rq)
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
