// SPDX-License-Identifier: GPL-2.0-or-later
//! Quantiles in constant memory.

/// Buckets of a power of two.
const SUB: u64 = 64;
const SUB_BITS: u32 = SUB.ilog2();
/// Values from here on share the last bucket: over four hours in ns.
const MAX_BITS: u32 = 44;

/// Counts of values, in buckets of which each is at most 1/64 wide of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; at(u64::MAX) + 1], count: 0, sum: 0, max: 0 }
    }
}

fn at(value: u64) -> usize {
    let value = value.min((1 << MAX_BITS) - 1);
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift) * SUB + (value >> shift)) as usize
}

/// The largest value of a bucket.
fn top(at: usize) -> u64 {
    let at = at as u64;
    if at < 2 * SUB {
        return at;
    }
    let shift = at / SUB - 1;
    ((at % SUB + SUB + 1) << shift) - 1
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.buckets[at(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that `share` (0 to 1) of all do not exceed, at most 1/64 too large; `None` of none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        for (at, &n) in self.buckets.iter().enumerate() {
            below += n;
            if n > 0 && below >= wanted {
                return Some(top(at).min(self.max));
            }
        }
        None
    }

    /// `n` values of which each stands for an equal part of all; empty of none.
    pub fn quantiles(&self, n: usize) -> Vec<u64> {
        (0..n).filter_map(|at| self.quantile((at as f64 + 0.5) / n as f64)).collect()
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *to += from;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for value in (0..5000).chain((10..40).map(|bits| (1u64 << bits) + 12345)) {
            assert!(at(value) >= at(last) && top(at(value)) >= value, "{value}");
            assert!(top(at(value)) - value <= value / 63, "{value} {}", top(at(value)));
            last = value;
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=1000u64).for_each(|value| histogram.add(value * 100));
        let near = |share: f64, value: u64| {
            let found = histogram.quantile(share).expect("values");
            assert!(found >= value && found <= value + value / 50, "{share}: {found}");
        };
        near(0.5, 50_000);
        near(0.99, 99_000);
        near(1.0, 100_000);
        assert_eq!(histogram.mean(), 50_050.0);
    }
}
