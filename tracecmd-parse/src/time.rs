// SPDX-License-Identifier: GPL-2.0-or-later
//! From raw clock values to nanoseconds, as trace-cmd does it.
//!
//! trace-cmd 3.1.6 leaves a guest's TIME_SHIFT out in other buffers than the top one, whose clock is the same; here it is
//! applied to all of them. Times before 0, which wrap around there, are 0.
//!
//! **Source**: `timestamp_calc()`, `timestamp_host_sync()` in trace-cmd's
//! lib/trace-cmd/trace-input.c; the order of steps is theirs.

use crate::bytes::Walk;
use crate::error::Error;
use crate::meta::Meta;

/// The TSC2NSEC option. trace-cmd stores an offset with it and does not use it;
/// nor does this reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscToNs {
    /// Multiplier.
    pub mult: u32,
    /// Right shift after the multiplication.
    pub shift: u32,
    /// As stored.
    pub offset: u64,
}

/// The TIME_SHIFT option of a guest's trace: samples for each guest CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeShift {
    /// Session number of the host's trace.
    pub peer_trace_id: u64,
    /// Bit 0: interpolate between samples.
    pub flags: u32,
    /// Samples of each CPU, by time.
    pub cpus: Vec<Vec<TimeSample>>,
}

/// One correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSample {
    /// Guest time at which it was measured.
    pub time: i64,
    /// To be added.
    pub offset: i64,
    /// To be multiplied with, then shifted right by `fraction`.
    pub scaling: i64,
    /// Fraction bits of `scaling`.
    pub fraction: i64,
}

const INTERPOLATE: u32 = 1;

impl TimeShift {
    /// Reads the option's data.
    pub(crate) fn read(walk: &mut Walk<'_>) -> Result<TimeShift, Error> {
        const WHAT: &str = "TIME_SHIFT option";
        let peer_trace_id = walk.u64(WHAT)?;
        let flags = walk.u32(WHAT)?;
        let count = walk.u32(WHAT)?;
        let mut cpus = Vec::new();
        for _ in 0..count {
            let samples = u64::from(walk.u32(WHAT)?);
            // Three columns of 8 bytes each.
            if samples * 24 > walk.left() {
                return Err(Error::Truncated {
                    what: WHAT,
                    offset: walk.offset(),
                    need: samples * 24,
                    have: walk.left(),
                });
            }
            let mut column =
                || -> Result<Vec<i64>, Error> { (0..samples).map(|_| Ok(walk.u64(WHAT)? as i64)).collect() };
            let (times, offsets, scalings) = (column()?, column()?, column()?);
            cpus.push(
                times
                    .into_iter()
                    .zip(offsets)
                    .zip(scalings)
                    .map(|((time, offset), scaling)| TimeSample { time, offset, scaling, fraction: 0 })
                    .collect::<Vec<_>>(),
            );
        }
        // Newer files have the fraction bits behind all of that.
        for cpu in &mut cpus {
            for sample in cpu.iter_mut() {
                if walk.left() < 8 {
                    break;
                }
                sample.fraction = walk.u64(WHAT)? as i64;
            }
        }
        Ok(TimeShift { peer_trace_id, flags, cpus })
    }

    fn apply(&self, cpu: u32, ts: i128) -> i128 {
        let Some(samples) = self.cpus.get(cpu as usize) else {
            return ts;
        };
        match samples.as_slice() {
            [] => ts,
            [one] => ts + i128::from(one.offset),
            many => {
                // The last sample not later than `ts`, but never the very last
                // one: it needs a neighbour to interpolate to.
                let after = many.partition_point(|s| i128::from(s.time) <= ts);
                let at = after.saturating_sub(1).min(many.len() - 2);
                self.between(ts, many[at], many[at + 1])
            }
        }
    }

    fn between(&self, ts: i128, a: TimeSample, b: TimeSample) -> i128 {
        let mut correction = i128::from(a.offset);
        let delta = i128::from(b.time) - i128::from(a.time);
        if self.flags & INTERPOLATE != 0 && delta != 0 {
            let rise = i128::from(b.offset) - i128::from(a.offset);
            let part = (ts - i128::from(a.time)).saturating_mul(rise);
            correction += (part + delta / 2) / delta;
        }
        let fraction = u32::try_from(a.fraction.clamp(0, 63)).unwrap_or(0);
        (ts.saturating_mul(i128::from(a.scaling)) >> fraction).saturating_add(correction)
    }
}

/// All corrections of one trace, applied to each event.
#[derive(Debug, Clone)]
pub(crate) struct TimeMap {
    shift: Option<TimeShift>,
    tsc: Option<TscToNs>,
    offset: i64,
    identity: bool,
}

impl TimeMap {
    pub(crate) fn new(meta: &Meta) -> TimeMap {
        TimeMap {
            identity: meta.time_shift.is_none() && meta.tsc_to_ns.is_none() && meta.ts_offset_ns == 0,
            shift: meta.time_shift.clone(),
            tsc: meta.tsc_to_ns,
            offset: meta.ts_offset_ns,
        }
    }

    /// Times before 0 become 0, times beyond 64 bits the largest there is.
    #[inline]
    pub(crate) fn ns(&self, cpu: u32, raw: u64) -> u64 {
        if self.identity {
            return raw;
        }
        self.correct(cpu, raw)
    }

    fn correct(&self, cpu: u32, raw: u64) -> u64 {
        let mut ts = i128::from(raw);
        if let Some(shift) = &self.shift {
            ts = shift.apply(cpu, ts);
        }
        if let Some(tsc) = self.tsc {
            ts = ts.saturating_mul(i128::from(tsc.mult)) >> tsc.shift.min(127);
        }
        ts = ts.saturating_add(i128::from(self.offset));
        u64::try_from(ts.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: i64, offset: i64) -> TimeSample {
        TimeSample { time, offset, scaling: 1, fraction: 0 }
    }

    fn shift(flags: u32, samples: Vec<TimeSample>) -> TimeMap {
        let shift = TimeShift { peer_trace_id: 0, flags, cpus: vec![samples] };
        TimeMap { shift: Some(shift), tsc: None, offset: 0, identity: false }
    }

    #[test]
    fn ticks_become_nanoseconds_then_the_offset_is_added() {
        let tsc = Some(TscToNs { mult: 3 << 9, shift: 10, offset: 77 });
        let map = TimeMap { shift: None, tsc, offset: -5, identity: false };
        assert_eq!(map.ns(0, 1000), 1495);
        assert_eq!(map.ns(0, 0), 0);
        let wide = TimeMap { tsc: Some(TscToNs { mult: u32::MAX, shift: 0, offset: 0 }), ..map };
        assert_eq!(wide.ns(0, u64::MAX), u64::MAX);
    }

    #[test]
    fn one_sample_is_an_offset() {
        let map = shift(0, vec![sample(0, -100)]);
        assert_eq!((map.ns(0, 1000), map.ns(0, 10), map.ns(1, 1000)), (900, 0, 1000));
    }

    #[test]
    fn the_sample_before_the_event_counts() {
        let map = shift(0, vec![sample(100, 1), sample(200, 2), sample(300, 3), sample(400, 4)]);
        assert_eq!([50, 150, 250, 350].map(|ts| map.ns(0, ts)), [51, 151, 252, 353]);
        // Behind the last sample the one before it counts, as in trace-cmd.
        assert_eq!(map.ns(0, 500), 503);
    }

    #[test]
    fn between_samples_the_offset_is_interpolated() {
        let map = shift(INTERPOLATE, vec![sample(100, 0), sample(200, 10)]);
        assert_eq!([100, 150, 200].map(|ts| map.ns(0, ts)), [100, 155, 210]);
        let same_time = shift(INTERPOLATE, vec![sample(100, 7), sample(100, 10)]);
        assert_eq!(same_time.ns(0, 150), 157);
    }

    #[test]
    fn scaling_has_fraction_bits() {
        let double = TimeSample { time: 0, offset: 1, scaling: 2 << 32, fraction: 32 };
        let map = shift(0, vec![double, TimeSample { time: 10, ..double }]);
        assert_eq!(map.ns(0, 21), 43);
    }
}
