// SPDX-License-Identifier: GPL-2.0-or-later
//! The options of both versions.
//!
//! **Source**: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5) and `handle_options()`
//! in trace-cmd's lib/trace-cmd/trace-input.c.

use crate::bytes::{Endian, Walk, text};
use crate::error::Error;
use crate::meta::{Meta, OptionSeen};
use crate::option_check;
use crate::time::{TimeShift, TscToNs};

pub(crate) const DONE: u16 = 0;
pub(crate) const BUFFER: u16 = 3;
pub(crate) const TRACECLOCK: u16 = 4;
pub(crate) const CPUCOUNT: u16 = 8;
pub(crate) const HEADER_INFO: u16 = 16;
pub(crate) const FTRACE_EVENTS: u16 = 17;
pub(crate) const EVENT_FORMATS: u16 = 18;
pub(crate) const KALLSYMS: u16 = 19;
pub(crate) const PRINTK: u16 = 20;
pub(crate) const CMDLINES: u16 = 21;
pub(crate) const BUFFER_TEXT: u16 = 22;

pub(crate) const DATE: u16 = 1;
pub(crate) const CPUSTAT: u16 = 2;
pub(crate) const UNAME: u16 = 5;
pub(crate) const OFFSET: u16 = 7;
pub(crate) const VERSION: u16 = 9;
pub(crate) const PROCMAPS: u16 = 10;
pub(crate) const TRACEID: u16 = 11;
pub(crate) const TIME_SHIFT: u16 = 12;
pub(crate) const GUEST: u16 = 13;
pub(crate) const TSC2NSEC: u16 = 14;

const NAMES: [(u16, &str); 26] = [
    (DONE, "DONE"),
    (DATE, "DATE"),
    (CPUSTAT, "CPUSTAT"),
    (BUFFER, "BUFFER"),
    (TRACECLOCK, "TRACECLOCK"),
    (UNAME, "UNAME"),
    (6, "HOOK"),
    (OFFSET, "OFFSET"),
    (CPUCOUNT, "CPUCOUNT"),
    (VERSION, "VERSION"),
    (PROCMAPS, "PROCMAPS"),
    (TRACEID, "TRACEID"),
    (TIME_SHIFT, "TIME_SHIFT"),
    (GUEST, "GUEST"),
    (TSC2NSEC, "TSC2NSEC"),
    (15, "STRINGS"),
    (HEADER_INFO, "HEADER_INFO"),
    (FTRACE_EVENTS, "FTRACE_EVENTS"),
    (EVENT_FORMATS, "EVENT_FORMATS"),
    (KALLSYMS, "KALLSYMS"),
    (PRINTK, "PRINTK"),
    (CMDLINES, "CMDLINES"),
    (BUFFER_TEXT, "BUFFER_TEXT"),
    (23, "BTF_FILE"),
    (24, "LAST_BOOT_INFO"),
    (25, "MODULES_FILE"),
];

/// One option as read: number, place and data.
pub(crate) struct Opt {
    pub(crate) id: u16,
    pub(crate) offset: u64,
    pub(crate) data: Vec<u8>,
}

impl Opt {
    /// The place in the file that the option begins with.
    pub(crate) fn target(&self, endian: Endian, what: &'static str) -> Result<u64, Error> {
        Walk::memory(&self.data, self.offset, endian).u64(what)
    }
}

/// Whether the option leads to a section with formats or texts.
pub(crate) fn names_section(id: u16) -> bool {
    (HEADER_INFO..=CMDLINES).contains(&id)
}

/// A file without events.
pub(crate) fn latency_only() -> Error {
    Error::Unsupported {
        what: "only a latency trace (text, no events)".into(),
        hint: "record events with 'trace-cmd record -e sched'",
    }
}

/// Reads the next option. The end mark of version 6 has no size word.
pub(crate) fn next(walk: &mut Walk<'_>, v6: bool) -> Result<Opt, Error> {
    let id = walk.u16("option number")?;
    if v6 && id == DONE {
        return Ok(Opt { id, offset: walk.offset(), data: Vec::new() });
    }
    let size = walk.u32("option size")?;
    let offset = walk.offset();
    Ok(Opt { id, offset, data: walk.take(u64::from(size), "option data")? })
}

/// What the number means, if it is known.
pub(crate) fn name(id: u16) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

/// Notes that the option is there.
pub(crate) fn note(meta: &mut Meta, opt: &Opt) {
    option_check::check(meta, opt);
    meta.options.push(OptionSeen { id: opt.id, name: name(opt.id), size: opt.data.len() as u32, offset: opt.offset });
}

/// Notes the option, and takes what does not depend on the version.
pub(crate) fn apply(meta: &mut Meta, opt: &Opt) -> Result<(), Error> {
    note(meta, opt);
    let data = opt.data.as_slice();
    let mut walk = Walk::memory(data, opt.offset, meta.endian);
    match opt.id {
        // Stored in microseconds.
        DATE => add_offset(meta, text(data), 1000),
        OFFSET => add_offset(meta, text(data), 1),
        CPUSTAT => meta.cpustat.push(text(data)),
        UNAME => meta.uname = Some(text(data)),
        VERSION => meta.tracecmd_version = Some(text(data)),
        PROCMAPS => meta.proc_maps.push(text(data)),
        TRACECLOCK => {
            if let Some(clock) = chosen_clock(&text(data)) {
                meta.clock = Some(clock);
            }
        }
        CPUCOUNT => meta.cpus = walk.u32("CPUCOUNT option")?,
        TRACEID => meta.trace_id = Some(walk.u64("TRACEID option")?),
        TIME_SHIFT => {
            meta.time_shift = Some(TimeShift::read(&mut walk)?);
            meta.notes.push("recorded in a guest: its times are corrected to the clock of its host".into());
        }
        GUEST => {
            let name = walk.cstr(4096, "GUEST option")?;
            meta.notes.push(format!("recorded on the host of guest {name:?}, whose events are in a file of their own"));
        }
        TSC2NSEC => {
            let tsc = TscToNs {
                mult: walk.u32("TSC2NSEC option")?,
                shift: walk.u32("TSC2NSEC option")?,
                offset: walk.u64("TSC2NSEC option")?,
            };
            // A multiplier of 0 says that there is no conversion.
            meta.tsc_to_ns = (tsc.mult != 0).then_some(tsc);
        }
        _ => {}
    }
    Ok(())
}

fn add_offset(meta: &mut Meta, text: String, unit: i64) {
    let value = strtoll(&text).saturating_mul(unit);
    meta.ts_offset_ns = meta.ts_offset_ns.saturating_add(value);
}

/// As C's `strtoll(text, NULL, 0)`: sign, `0x` or leading 0, as many digits as there are.
fn strtoll(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let value = digits
        .chars()
        .map_while(|c| c.to_digit(base))
        .fold(0i64, |v, d| v.saturating_mul(i64::from(base)).saturating_add(i64::from(d)));
    if negative { -value } else { value }
}

/// The clock in brackets: `local global [mono] boot` → `mono`.
pub(crate) fn chosen_clock(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (clock, _) = rest.split_once(']')?;
    let clock = clock.trim();
    (!clock.is_empty()).then(|| clock.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_strtoll_does() {
        for (text, value) in [
            ("100", 100),
            ("-100", -100),
            (" +7", 7),
            ("0x10", 16),
            ("-0x10", -16),
            ("010", 8),
            ("12ns", 12),
            ("", 0),
            ("x", 0),
            ("99999999999999999999", i64::MAX),
        ] {
            assert_eq!(strtoll(text), value, "{text:?}");
        }
    }

    #[test]
    fn the_clock_in_brackets_is_the_chosen_one() {
        assert_eq!(chosen_clock("local global [mono] boot").as_deref(), Some("mono"));
        assert_eq!(chosen_clock("[x86-tsc]").as_deref(), Some("x86-tsc"));
        assert_eq!(chosen_clock("local"), None);
        assert_eq!(chosen_clock("[ ]"), None);
        assert_eq!(chosen_clock("[local"), None);
    }
}
