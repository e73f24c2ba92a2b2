// SPDX-License-Identifier: GPL-2.0-or-later
//! Virtual CPUs that share fewer real ones: under emulation most of them stand still at any moment, and take no ticks.
//!
//! How many run at a time shows in the events: within a few microseconds only so many CPUs have any.

use crate::units::Cpu;

/// Events this close together come from CPUs that run at the same time, ns.
const TOGETHER_NS: u64 = 20_000;
/// One event in so many may belong to a change of who runs.
const STRAY: u64 = 50;

/// Who had events when, and how many CPUs had some together.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    /// CPUs in the order of their last event, the latest first, with its time.
    latest: Vec<(Cpu, u64)>,
    /// Events by the number of CPUs that had one within [`TOGETHER_NS`] before.
    together: Vec<u64>,
}

impl Pace {
    #[inline]
    pub(super) fn event(&mut self, cpu: Cpu, ts_ns: u64) {
        match self.latest.first_mut() {
            // Events of one CPU come in runs.
            Some(first) if first.0 == cpu => first.1 = ts_ns,
            _ => self.move_up(cpu, ts_ns),
        }
        let recent = |&&(_, other_ns): &&(Cpu, u64)| ts_ns.saturating_sub(other_ns) < TOGETHER_NS;
        let together = self.latest.iter().take_while(recent).count();
        match self.together.get_mut(together) {
            Some(events) => *events += 1,
            None => {
                self.together.resize(together, 0);
                self.together.push(1);
            }
        }
    }

    /// Entries move down by one place until that of `cpu` is found.
    fn move_up(&mut self, cpu: Cpu, ts_ns: u64) {
        let mut moved = (cpu, ts_ns);
        for entry in &mut self.latest {
            std::mem::swap(entry, &mut moved);
            if moved.0 == cpu {
                return;
            }
        }
        self.latest.push(moved);
    }

    /// How many CPUs run at a time; at least 1.
    fn width(&self) -> usize {
        let all: u64 = self.together.iter().sum();
        let mut above = 0;
        for (width, &events) in self.together.iter().enumerate().rev() {
            above += events;
            if above * STRAY > all {
                return width.max(1);
            }
        }
        1
    }

    /// Of how many turns a CPU gets one, where `busy` of them have something to do.
    pub(super) fn turns(&self, busy: u32) -> u64 {
        u64::from(busy).div_ceil(self.width() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_how_many_have_events_together() {
        let mut pace = Pace::default();
        let mut now = 0;
        for turn in 0..1000u16 {
            // Two at a time, another pair every millisecond.
            for cpu in [turn % 4 * 2, turn % 4 * 2 + 1] {
                now += 5_000;
                pace.event(Cpu(cpu), now);
            }
            now += 1_000_000;
        }
        assert_eq!(pace.width(), 2);
        assert_eq!((pace.turns(0), pace.turns(2), pace.turns(3), pace.turns(8)), (1, 1, 2, 4));
    }
}
