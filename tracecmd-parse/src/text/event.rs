// SPDX-License-Identifier: GPL-2.0-or-later
//! One event of a text.

use super::fields::{Fields, Style};
use super::irq::IrqInfo;
use super::scan::integer;

/// One event as a line tells it.
#[derive(Debug, Clone, Copy)]
pub struct TextEvent<'a> {
    /// Number of the line, from 1.
    pub line: u64,
    /// Time in nanoseconds, as far as the line has them; in ticks if the clock counts ticks ([`crate::Meta::clock_is_ns`]).
    pub ts_ns: u64,
    /// Decimals of the printed time: 6, 9, or 0 if the clock counts ticks.
    pub decimals: u8,
    /// The CPU that it happened on.
    pub cpu: u32,
    /// Thread id of the task in whose context it happened; -1 if perf does not know it.
    pub pid: i32,
    /// Process id of that task, if there is a column of it.
    pub tgid: Option<i32>,
    /// Name of that task: any bytes; `<idle>` of a swapper, `<...>` if unknown.
    pub comm: &'a [u8],
    /// What the irq-info column says, if there is one.
    pub irq: Option<IrqInfo>,
    /// The system, which perf prints.
    pub system: Option<&'a str>,
    /// The event's name; empty where the text has none (`sys_x(...)`, the function tracer).
    pub name: &'a str,
    /// The rest of the line.
    pub text: &'a [u8],
    /// The fields in it.
    pub fields: Fields<'a>,
    /// How they are written.
    pub style: Style,
}

/// The state in which sched_switch left a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeftState {
    /// Runnable (`R`).
    Runnable,
    /// Runnable, and preempted (`R+`).
    Preempted,
    /// Asleep, stopped, parked, idle.
    Blocked,
    /// Gone (`X`, `Z`).
    Dead,
}

impl TextEvent<'_> {
    /// `prev_state` of sched_switch; `None` in other events and where it makes no sense.
    ///
    /// Letters are taken for what they are in the style of the line. Numbers are taken for those of 4.14 and later:
    /// 0x10 and 0x20 dead, 0x100 preempted; no text says which kernel it is from.
    pub fn left_state(&self) -> Option<LeftState> {
        self.state_bits().map(classify)
    }

    /// The same as bits of `prev_state`, as 4.14 and later have them.
    pub(super) fn state_bits(&self) -> Option<u64> {
        state_bits(self.fields.get("prev_state")?, self.style)
    }
}

/// TASK_REPORT_MAX since 4.14.
const PREEMPTED: u64 = 0x100;
const DEAD: u64 = 0x30;

fn classify(bits: u64) -> LeftState {
    match bits & (PREEMPTED - 1) {
        0 if bits & PREEMPTED != 0 => LeftState::Preempted,
        0 => LeftState::Runnable,
        state if state & DEAD != 0 => LeftState::Dead,
        _ => LeftState::Blocked,
    }
}

fn state_bits(text: &[u8], style: Style) -> Option<u64> {
    if let Some(bits) = integer(text) {
        return Some(bits as u64);
    }
    let (letters, plus) = match text.strip_suffix(b"+") {
        Some(letters) => (letters, PREEMPTED),
        None => (text, 0),
    };
    let mut bits = plus;
    for part in letters.split(|&b| b == b'|') {
        bits |= match part {
            b"R" => 0,
            &[letter] => letter_bit(letter, style)?,
            // Bits without a letter: no state of its own.
            _ => integer(part)? as u64 & !(PREEMPTED | DEAD),
        };
    }
    Some(bits)
}

/// **Source**: fs/proc and sched_switch's print format, v4.13 and v4.14; plugin_sched_switch.c of libtraceevent 1.7.
fn letter_bit(letter: u8, style: Style) -> Option<u64> {
    Some(match (letter, style) {
        (b'S', _) => 0x01,
        (b'D', _) => 0x02,
        (b'T', _) => 0x04,
        (b't', _) => 0x08,
        (b'Z', Style::Plugin) => 0x10,
        (b'X', Style::Plugin) => 0x20,
        (b'x', Style::Plugin) => 0x40,
        (b'W', Style::Plugin) => 0x80,
        (b'X', _) => 0x10,
        (b'Z', _) => 0x20,
        (b'P', _) => 0x40,
        (b'I', _) => 0x80,
        // Before 4.14 TASK_DEAD.
        (b'x', _) => 0x10,
        // Before 4.14 modes of sleep, beside S or D.
        (b'K' | b'W' | b'N', _) => 0x02,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        use LeftState::{Blocked, Dead, Preempted, Runnable};
        for (text, style, expected) in [
            ("R", Style::Keys, Some(Runnable)),
            ("R+", Style::Keys, Some(Preempted)),
            ("S", Style::Keys, Some(Blocked)),
            ("I", Style::Keys, Some(Blocked)),
            ("D|K", Style::Keys, Some(Blocked)),
            ("P", Style::Keys, Some(Blocked)),
            ("Z|K", Style::Keys, Some(Dead)),
            ("S|0x800", Style::Keys, Some(Blocked)),
            ("X", Style::Keys, Some(Dead)),
            ("Z", Style::Keys, Some(Dead)),
            ("Z|S", Style::Keys, Some(Dead)),
            ("x", Style::Keys, Some(Dead)),
            ("x", Style::Plugin, Some(Blocked)),
            ("W", Style::Plugin, Some(Blocked)),
            ("Z", Style::Plugin, Some(Dead)),
            ("0", Style::Keys, Some(Runnable)),
            ("0x100", Style::Keys, Some(Preempted)),
            ("256", Style::Keys, Some(Preempted)),
            ("1", Style::Keys, Some(Blocked)),
            ("0x80", Style::Keys, Some(Blocked)),
            ("16", Style::Keys, Some(Dead)),
            ("32", Style::Keys, Some(Dead)),
            ("", Style::Keys, None),
            ("SS", Style::Keys, None),
        ] {
            assert_eq!(state_bits(text.as_bytes(), style).map(classify), expected, "{text:?} {style:?}");
        }
    }
}
