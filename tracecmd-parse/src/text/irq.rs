// SPDX-License-Identifier: GPL-2.0-or-later
//! The irq-info column (`d.h2.`) back to `common_flags` and `common_preempt_count`.
//!
//! **Source**: `trace_print_lat_fmt()`, kernel/trace/trace_output.c, v3.0 to v6.18; `enum trace_flag_type`,
//! include/linux/trace_events.h.

const IRQS_OFF: u8 = 0x01;
/// Until 5.17 IRQS_NOSUPPORT, since 6.13 NEED_RESCHED_LAZY.
const SECOND: u8 = 0x02;
const NEED_RESCHED: u8 = 0x04;
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

/// What the irq-info column of a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IrqInfo {
    /// The bits of `common_flags`: 0x01 interrupts off, 0x04 need_resched, 0x08 hard interrupt, 0x10 softirq, 0x20
    /// preempt_resched, 0x40 NMI, 0x80 bottom halves off.
    pub flags: u8,
    /// `common_preempt_count`: preemption depth in the low half, since 5.18 migration-disable depth in the high half.
    pub preempt_count: u8,
}

impl IrqInfo {
    /// Reads the column: three letters, the preemption depth, and in newer kernels the migration-disable depth.
    pub(super) fn parse(column: &[u8]) -> Option<IrqInfo> {
        let (&[off, resched, inside], depths) = column.split_first_chunk::<3>()?;
        let mut flags = match off {
            b'.' => 0,
            b'd' => IRQS_OFF,
            b'X' => SECOND,
            b'b' => BH_OFF,
            b'D' => IRQS_OFF | BH_OFF,
            _ => return None,
        };
        flags |= match resched {
            b'.' => 0,
            b'N' => NEED_RESCHED | PREEMPT_RESCHED,
            b'n' => NEED_RESCHED,
            b'p' => PREEMPT_RESCHED,
            b'l' => SECOND,
            b'b' => SECOND | NEED_RESCHED,
            b'L' => SECOND | PREEMPT_RESCHED,
            b'B' => SECOND | NEED_RESCHED | PREEMPT_RESCHED,
            _ => return None,
        };
        flags |= match inside {
            b'.' => 0,
            b's' => SOFTIRQ,
            b'h' => HARDIRQ,
            b'H' => HARDIRQ | SOFTIRQ,
            b'z' => NMI,
            b'Z' => NMI | HARDIRQ,
            _ => return None,
        };
        let depth = |b: u8| match b {
            b'.' => Some(0),
            _ => (b as char).to_digit(16).map(|d| d as u8),
        };
        let preempt_count = match *depths {
            [preempt] => depth(preempt)?,
            [preempt, migrate] => depth(migrate)? << 4 | depth(preempt)?,
            _ => return None,
        };
        Some(IrqInfo { flags, preempt_count })
    }

    /// As libtraceevent prints it: `N` says nothing of preempt_resched.
    pub(super) fn of_report(self) -> IrqInfo {
        IrqInfo { flags: self.flags & !PREEMPT_RESCHED, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(column: &str) -> Option<(u8, u8)> {
        IrqInfo::parse(column.as_bytes()).map(|info| (info.flags, info.preempt_count))
    }

    #[test]
    fn columns() {
        assert_eq!(parse("...."), Some((0, 0)));
        assert_eq!(parse("d..2"), Some((0x01, 2)));
        assert_eq!(parse("dNh3."), Some((0x2d, 3)));
        assert_eq!(parse(".Ns1."), Some((0x34, 1)));
        assert_eq!(parse("b..11"), Some((0x80, 0x11)));
        assert_eq!(parse("D.Ha2"), Some((0x99, 0x2a)));
        assert_eq!(parse("..Z.."), Some((0x48, 0)));
    }

    #[test]
    fn a_report_does_not_tell_who_wants_to_preempt() {
        assert_eq!(IrqInfo::parse(b"dNs1.").unwrap().of_report().flags, 0x15);
    }

    #[test]
    fn what_is_no_column() {
        for column in ["", "...", "......", "q...", ".q..", "..q.", "...q", "12.34"] {
            assert_eq!(parse(column), None, "{column}");
        }
    }
}
