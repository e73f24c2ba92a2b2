// SPDX-License-Identifier: GPL-2.0-or-later
//! Formats for a text, and its events in them: what reads a trace.dat reads a text, too.
//!
//! A text has no formats. They are made from the first lines and from what is known of the scheduler's events: those have
//! the fields that the kernel gives them ([`super::kernel`]); of others numbers are fields of 8 bytes, everything else is
//! text behind a `__data_loc`. `common_flags` has no bytes if the text has no
//! irq-info column, so that reading it gives nothing rather than a guess.

use std::collections::BTreeMap;

use crate::bytes::Endian;
use crate::cursor::{EventCursor, Item, Summary};
use crate::error::Error;
use crate::field::RawEvent;
use crate::format::{EventFormat, Field, FieldKind, Formats};

use super::event::TextEvent;
use super::events::{TextCursor, TextItem};
use super::kernel::{self, Type};
use super::scan::integer;
use super::template;

/// The id of events without a format of their own: unnamed, or not seen in the first lines.
const OTHER: u16 = u16::MAX;
/// Formats and fields that are made at most.
const NAMES_MAX: usize = 4096;
const FIELDS_MAX: usize = 64;
/// Bytes of the common fields.
const COMMON: u32 = 8;

/// One event's fields, as far as they were seen.
#[derive(Debug, Clone, Default)]
struct Shape {
    system: Option<String>,
    /// Name, how often, whether every value was a number.
    fields: Vec<(String, u64, bool)>,
    count: u64,
}

/// Collects what events look like.
#[derive(Debug, Clone, Default)]
pub(super) struct Survey {
    shapes: BTreeMap<String, Shape>,
    irq: bool,
}

impl Survey {
    pub(super) fn event(&mut self, event: &TextEvent<'_>) {
        self.irq |= event.irq.is_some();
        if event.name.is_empty() || (self.shapes.len() >= NAMES_MAX && !self.shapes.contains_key(event.name)) {
            return;
        }
        let shape = self.shapes.entry(event.name.to_string()).or_default();
        shape.count += 1;
        if shape.system.is_none() {
            shape.system = event.system.map(str::to_string);
        }
        for (name, value) in event.fields.iter() {
            // Of two fields with one name neither can be told.
            let number = integer(value).is_some();
            match shape.fields.iter().position(|(known, ..)| known == name) {
                Some(at) => {
                    let (_, seen, numbers) = &mut shape.fields[at];
                    *seen += 1;
                    *numbers &= number;
                }
                None if shape.fields.len() < FIELDS_MAX => shape.fields.push((name.to_string(), 1, number)),
                None => {}
            }
        }
    }

    /// The formats. A field is in one if every event of the name had it, once.
    pub(super) fn formats(&self) -> Formats {
        let mut formats = Formats::new(Endian::Little);
        let mut id = 0;
        for (name, templates) in template::TEMPLATES {
            let mut fields: Vec<(String, Type)> = kernel::fields(templates[0]);
            if let Some(shape) = self.shapes.get(*name) {
                for (name, numbers) in shape.stable() {
                    if !fields.iter().any(|(known, _)| known == name) {
                        fields.push((name.to_string(), Type::of(numbers)));
                    }
                }
            }
            id += 1;
            formats.add_format(self.format(id, "sched", name, &fields));
        }
        for (name, shape) in self.shapes.iter().filter(|(name, _)| template::of(name).is_none()) {
            let fields: Vec<_> = shape.stable().map(|(name, numbers)| (name.to_string(), Type::of(numbers))).collect();
            id += 1;
            formats.add_format(self.format(id, shape.system.as_deref().unwrap_or(system(name)), name, &fields));
        }
        formats.add_format(self.format(OTHER, "text", "other", &[]));
        formats
    }

    fn format(&self, id: u16, system: &str, name: &str, fields: &[(String, Type)]) -> EventFormat {
        let field = |name: &str, type_text: &str, offset, size, signed, kind| Field {
            name: name.into(),
            type_text: type_text.into(),
            offset,
            size,
            signed,
            kind,
        };
        let flags = u32::from(self.irq);
        let mut all = vec![
            field("common_type", "unsigned short", 0, 2, false, FieldKind::Scalar),
            field("common_flags", "unsigned char", 2, flags, false, FieldKind::Scalar),
            field("common_preempt_count", "unsigned char", 3, flags, false, FieldKind::Scalar),
            field("common_pid", "int", 4, 4, true, FieldKind::Scalar),
        ];
        let mut offset = COMMON;
        for (name, kind) in fields {
            offset = offset.next_multiple_of(kind.align());
            all.push(field(name, kind.text(), offset, kind.size(), kind.is_signed(), kind.field()));
            offset += kind.size();
        }
        EventFormat {
            id,
            system: system.into(),
            name: name.into(),
            fields: all,
            print_fmt: kernel::print_fmt(name, fields),
            endian: Endian::Little,
        }
    }
}

impl Shape {
    fn stable(&self) -> impl Iterator<Item = (&str, bool)> {
        self.fields
            .iter()
            .filter(|(_, seen, _)| *seen == self.count)
            .map(|(name, _, numbers)| (name.as_str(), *numbers))
    }
}

/// The system of an event by its name; what is not known is `text`.
fn system(name: &str) -> &'static str {
    const PREFIXES: [(&str, &str); 9] = [
        ("sched_", "sched"),
        ("cpu_idle", "power"),
        ("cpu_frequency", "power"),
        ("cpuhp_", "cpuhp"),
        ("softirq_", "irq"),
        ("irq_handler_", "irq"),
        ("hrtimer_", "timer"),
        ("timer_", "timer"),
        ("tick_", "timer"),
    ];
    PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or("text", |(_, system)| system)
}

/// The events of a text as bytes.
pub(super) struct Synth<'a> {
    events: TextCursor,
    formats: &'a Formats,
    /// The format of each name, for a quick look.
    by_name: BTreeMap<&'a str, &'a EventFormat>,
    data: Vec<u8>,
}

impl<'a> Synth<'a> {
    pub(super) fn new(events: TextCursor, formats: &'a Formats) -> Synth<'a> {
        let by_name = formats.iter().map(|format| (format.name.as_str(), format)).collect();
        Synth { events, formats, by_name, data: Vec::new() }
    }
}

impl EventCursor for Synth<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        Ok(Some(match self.events.next_item()? {
            None => return Ok(None),
            Some(TextItem::Lost { cpu, ts_ns, count }) => Item::Lost { cpu, ts_ns, count },
            Some(TextItem::Event(event)) => {
                let format = named(self.formats, &self.by_name, &event);
                let format = format.filter(|format| write(format, &event, &mut self.data));
                let id = format.map_or(OTHER, |format| format.id);
                if format.is_none() {
                    head(OTHER, &event, &mut self.data);
                }
                Item::Event(RawEvent { ts_ns: event.ts_ns, cpu: event.cpu, id, data: &self.data })
            }
        }))
    }

    fn summary(&self) -> Summary {
        self.events.summary().common.clone()
    }
}

fn named<'a>(
    formats: &'a Formats,
    by_name: &BTreeMap<&str, &'a EventFormat>,
    event: &TextEvent<'_>,
) -> Option<&'a EventFormat> {
    let format = *by_name.get(event.name)?;
    match event.system {
        // Of two systems with an event of this name.
        Some(system) if system != format.system => formats.by_name(system, event.name),
        _ => Some(format),
    }
}

fn head(id: u16, event: &TextEvent<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&id.to_le_bytes());
    out.push(event.irq.map_or(0, |irq| irq.flags));
    out.push(event.irq.map_or(0, |irq| irq.preempt_count));
    out.extend_from_slice(&event.pid.to_le_bytes());
}

/// The event in its format; `false` if it has not the fields.
fn write(format: &EventFormat, event: &TextEvent<'_>, out: &mut Vec<u8>) -> bool {
    head(format.id, event, out);
    let fields = &format.fields[4..];
    let size = fields.last().map_or(COMMON, |field| field.offset + field.size);
    out.resize(size as usize, 0);
    for field in fields {
        let at = field.offset as usize;
        let Some(value) = event.fields.get(&field.name) else {
            return false;
        };
        if field.kind == FieldKind::Scalar {
            let number = match field.name.as_str() {
                "prev_state" => event.state_bits().map(|bits| bits as i64),
                _ => integer(value),
            };
            let Some(number) = number else {
                return false;
            };
            match (field.size, i32::try_from(number)) {
                (4, Ok(number)) => out[at..at + 4].copy_from_slice(&number.to_le_bytes()),
                (4, Err(_)) => return false,
                _ => out[at..at + 8].copy_from_slice(&number.to_le_bytes()),
            }
            continue;
        }
        if let FieldKind::Array { .. } = field.kind {
            let len = value.len().min(field.size as usize);
            out[at..at + len].copy_from_slice(&value[..len]);
            continue;
        }
        // Offset in the low half, length (with a zero at the end) in the high half.
        let (Ok(from), Ok(len)) = (u16::try_from(out.len()), u16::try_from(value.len() + 1)) else {
            return false;
        };
        let word = u32::from(len) << 16 | u32::from(from);
        out[at..at + 4].copy_from_slice(&word.to_le_bytes());
        out.extend_from_slice(value);
        out.push(0);
    }
    true
}
