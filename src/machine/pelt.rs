// SPDX-License-Identifier: GPL-2.0-or-later
//! Per-entity load tracking: the kernel's recurrence in the kernel's integers.
//!
//! History is cut into periods of 1024 µs (of 1024 ns each); what happened n periods ago counts y^n, with y^32 = 1/2.
//!
//! **Source**: kernel/sched/pelt.c and kernel/sched/pelt.h, v5.11 and v6.1 (the same).

/// Periods after which a contribution has halved (`LOAD_AVG_PERIOD`).
const HALF_LIFE: u64 = 32;
/// What an infinite history of running sums up to, in the kernel's rounding (`LOAD_AVG_MAX`).
const SUM_MAX: u64 = 47_742;
/// Length of a period in units of 1024 ns.
const PERIOD: u64 = 1024;
/// `SCHED_CAPACITY_SHIFT`.
const CAPACITY_SHIFT: u32 = 10;

/// y^n in 32 bits: the integer part of (2^32 - 1)·2^(-n/32), for n below 32 (`runnable_avg_yN_inv`).
const INVERSE: [u32; HALF_LIFE as usize] = inverses();

/// Square roots of square roots of 1/2 give y with 62 bits, whose powers are exact far beyond the 32 bits kept.
const fn inverses() -> [u32; HALF_LIFE as usize] {
    const BITS: u32 = 62;
    let mut y: u128 = 1 << (BITS - 1);
    let mut root = 0;
    while root < 5 {
        y = (y << BITS).isqrt();
        root += 1;
    }
    let mut table = [0; HALF_LIFE as usize];
    let mut power: u128 = 1 << BITS;
    let mut n = 0;
    while n < table.len() {
        table[n] = ((power * (u32::MAX as u128)) >> BITS) as u32;
        power = (power * y) >> BITS;
        n += 1;
    }
    table
}

/// `value`·y^n.
fn decay(value: u64, n: u64) -> u64 {
    if n > HALF_LIFE * 63 {
        return 0;
    }
    let value = value >> (n / HALF_LIFE);
    ((u128::from(value) * u128::from(INVERSE[(n % HALF_LIFE) as usize])) >> 32) as u64
}

/// The load of `d1` units in the oldest period, `periods` - 1 full ones, and `d3` in the current one.
fn segments(periods: u64, d1: u64, d3: u64) -> u64 {
    decay(d1, periods) + (SUM_MAX - decay(SUM_MAX, periods) - PERIOD) + d3
}

/// What an entity did over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Did {
    /// Weight that was queued: of a task 1 or 0, of a run queue the sum of weights.
    pub(super) load: u64,
    /// Tasks that were queued.
    pub(super) runnable: u64,
    /// Whether one ran.
    pub(super) running: bool,
}

impl Did {
    pub(super) const NOTHING: Self = Self { load: 0, runnable: 0, running: false };
}

/// `struct sched_avg`: sums, and the averages as of the last period's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pelt {
    pub(crate) last_update_ns: u64,
    pub(super) load_sum: u64,
    pub(super) runnable_sum: u64,
    pub(super) util_sum: u64,
    /// Units of the current period that have passed.
    pub(super) period_contrib: u64,
    pub(crate) load_avg: u64,
    pub(crate) runnable_avg: u64,
    pub(crate) util_avg: u64,
}

impl Pelt {
    pub(super) const ZERO: Self = Self {
        last_update_ns: 0,
        load_sum: 0,
        runnable_sum: 0,
        util_sum: 0,
        period_contrib: 0,
        load_avg: 0,
        runnable_avg: 0,
        util_avg: 0,
    };
    /// The divider at the start of a period (`PELT_MIN_DIVIDER`).
    pub(super) const MIN_DIVIDER: u64 = SUM_MAX - PERIOD;

    /// Adds what was done since the last update; whether a period ended.
    ///
    /// **Source**: ___update_load_sum(), accumulate_sum().
    pub(super) fn accumulate(&mut self, now_ns: u64, did: Did) -> bool {
        let delta = now_ns.saturating_sub(self.last_update_ns) >> 10;
        if delta == 0 {
            return false;
        }
        self.last_update_ns += delta << 10;
        let did = if did.load == 0 { Did::NOTHING } else { did };
        let mut contribution = delta;
        let delta = delta + self.period_contrib;
        let periods = delta / PERIOD;
        let current = delta % PERIOD;
        if periods > 0 {
            self.load_sum = decay(self.load_sum, periods);
            self.runnable_sum = decay(self.runnable_sum, periods);
            self.util_sum = decay(self.util_sum, periods);
            contribution = segments(periods, PERIOD - self.period_contrib, current);
        }
        self.period_contrib = current;
        self.load_sum += did.load * contribution;
        self.runnable_sum += (did.runnable * contribution) << CAPACITY_SHIFT;
        self.util_sum += (u64::from(did.running) * contribution) << CAPACITY_SHIFT;
        periods > 0
    }

    /// The largest sum possible at this point of the period.
    ///
    /// **Source**: get_pelt_divider().
    pub(super) fn divider(&self) -> u64 {
        SUM_MAX - PERIOD + self.period_contrib
    }

    /// Averages from sums; `weight` is the task's, 1 for a run queue (whose sum has the weights in it).
    ///
    /// **Source**: ___update_load_avg().
    pub(super) fn average(&mut self, weight: u64) {
        let divider = self.divider();
        self.load_avg = weight * self.load_sum / divider;
        self.runnable_avg = self.runnable_sum / divider;
        self.util_avg = self.util_sum / divider;
    }

    /// [`Self::accumulate`], then [`Self::average`] if a period ended.
    pub(super) fn update(&mut self, now_ns: u64, did: Did, weight: u64) {
        if self.accumulate(now_ns, did) {
            self.average(weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: Did = Did { load: 1, runnable: 1, running: true };

    #[test]
    fn powers_are_the_kernels_integers() {
        // 2^32 - 1 times 2^(-1/32), 2^(-1/4), 2^(-1/2), 2^(-31/32).
        assert_eq!(INVERSE[0], u32::MAX);
        assert_eq!(INVERSE[1], 0xfa83_b2da);
        assert_eq!(INVERSE[8], 0xd744_fcc9);
        assert_eq!(INVERSE[16], 0xb504_f333);
        assert_eq!(INVERSE[31], 0x82cd_8698);
        let by_floats = |n: usize| ((f64::from(u32::MAX)) * 0.5f64.powf(n as f64 / 32.0)) as i64;
        assert!((0..32).all(|n| (by_floats(n) - i64::from(INVERSE[n])).abs() <= 1));
    }

    #[test]
    fn the_largest_sum_is_where_adding_a_period_changes_nothing() {
        let mut sum = PERIOD;
        for _ in 0..1000 {
            sum = decay(sum, 1) + PERIOD;
        }
        assert_eq!(sum, SUM_MAX);
    }

    #[test]
    fn a_task_that_always_ran_has_full_averages() {
        let mut pelt = Pelt::default();
        pelt.update(2_000_000_000, RUNNING, 1024);
        assert_eq!((pelt.load_avg, pelt.util_avg, pelt.runnable_avg), (1024, 1024, 1024));
        // Half of it after 32 periods of sleep.
        pelt.update(2_000_000_000 + 32 * 1024 * 1024, Did::NOTHING, 1024);
        assert!((510..=513).contains(&pelt.util_avg), "{pelt:?}");
    }

    #[test]
    fn updates_in_steps_come_to_the_same() {
        let mut once = Pelt::default();
        once.update(50_000_000, RUNNING, 1024);
        let mut often = Pelt::default();
        for step in 1..=50_000 {
            often.update(step * 1_000, RUNNING, 1024);
        }
        // The averages are those of the last period's end, the sums go on.
        assert!(once.util_sum.abs_diff(often.util_sum) < once.util_sum / 10_000, "{once:?} {often:?}");
        assert!(once.load_sum.abs_diff(often.load_sum) < once.load_sum / 1_000, "{once:?} {often:?}");
        assert!(once.util_avg.abs_diff(often.util_avg) <= 8, "{once:?} {often:?}");
        assert_eq!(once.period_contrib, often.period_contrib);
    }

    #[test]
    fn averages_never_exceed_what_is_possible() {
        let mut random = oorandom::Rand64::new(7);
        let mut pelt = Pelt::default();
        let mut now = 0;
        for _ in 0..10_000 {
            now += random.rand_range(0..20_000_000);
            let ran = random.rand_range(0..2) == 1;
            pelt.update(now, if ran { RUNNING } else { Did::NOTHING }, 1024);
            assert!(pelt.util_avg <= 1024 && pelt.load_avg <= 1024 && pelt.runnable_avg <= 1024, "{pelt:?}");
        }
    }
}
