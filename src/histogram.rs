// SPDX-License-Identifier: GPL-2.0-or-later
//! A histogram that can be added to another one without losing anything: fixed buckets, exact up to 63, then 32 buckets
//! to each doubling.
//!
//! The buckets are stated, so that anybody can add up what several runs wrote. (The crate `hdrhistogram` writes bytes
//! that only itself can read.)

use serde::{Deserialize, Serialize};

/// Values below are counted one by one.
const EXACT: u64 = 64;
/// log2 of the buckets to a doubling.
const FINE: u32 = 5;

/// Counts of values. Quantiles are those of the buckets: at most 3.2 % too small.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Histogram {
    n: u64,
    sum: u64,
    max: u64,
    counts: Vec<u64>,
}

/// As JSON has it: only buckets that are not empty.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    n: u64,
    sum: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
}

/// The number of the bucket that holds `value`.
fn place(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - FINE;
    ((shift << FINE) as usize) + (value >> shift) as usize
}

/// The smallest value of bucket `place`.
fn lowest(place: usize) -> u64 {
    if place < EXACT as usize {
        return place as u64;
    }
    let shift = (place >> FINE) - 1;
    ((place - (shift << FINE)) as u64) << shift
}

impl Histogram {
    /// Counts `value`.
    pub fn add(&mut self, value: u64) {
        let at = place(value);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.n += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Adds what another one counted.
    pub fn absorb(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(ours, theirs)| *ours += theirs);
        self.n += other.n;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Their sum, exact (as far as 64 bits go).
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest, exact; 0 of nothing.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// The nearest-rank quantile (`q` from 0 to 1): the lowest value of its bucket; the last rank is exact. `None` of
    /// nothing.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.n == 0 {
            return None;
        }
        let rank = ((q * self.n as f64).ceil() as u64).clamp(1, self.n);
        if rank == self.n {
            return Some(self.max);
        }
        let mut seen = 0;
        self.buckets()
            .find(|&(_, n)| {
                seen += n;
                seen >= rank
            })
            .map(|(value, _)| value)
    }

    /// The buckets that are not empty: lowest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(at, &n)| (lowest(at), n))
    }
}

impl From<Histogram> for Written {
    fn from(histogram: Histogram) -> Self {
        let buckets = histogram.buckets().collect();
        Self { n: histogram.n, sum: histogram.sum, max: histogram.max, buckets }
    }
}

impl TryFrom<Written> for Histogram {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mut counts = Vec::new();
        let mut n = 0_u64;
        for &(value, count) in &written.buckets {
            let at = place(value);
            if lowest(at) != value || counts.len() > at {
                return Err(format!("{value} is no bucket of a histogram, or not in order"));
            }
            counts.resize(at, 0);
            counts.push(count);
            n = n.checked_add(count).ok_or("a histogram counts more than 64 bits hold")?;
        }
        if n != written.n {
            return Err(format!("the buckets of a histogram hold {n} values; it says {}", written.n));
        }
        Ok(Self { n, sum: written.sum, max: written.max, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_everything_once() {
        let values = (0..4096).chain((12..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        for value in values.chain([u64::MAX]) {
            let at = place(value);
            let low = lowest(at);
            assert!(low <= value && place(low) == at, "{value}");
            assert!(value < EXACT && low == value || value - low <= value / 32, "{value} {low}");
            assert!(at == 0 || lowest(at - 1) < low, "{value}");
        }
    }

    #[test]
    fn quantiles_are_of_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean()), (None, None));
        (1..=50).for_each(|value| histogram.add(value));
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| histogram.quantile(q)), [1, 25, 45, 50].map(Some));
        histogram.add(1_000_001);
        assert_eq!((histogram.quantile(1.0), histogram.max(), histogram.n()), (Some(1_000_001), 1_000_001, 51));
    }

    #[test]
    fn sums_are_those_of_all_values_in_any_order() {
        let values: Vec<u64> = (0..1000_u64).map(|n| n * n * 7 % 100_003).collect();
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            histogram
        };
        let (mut left, right) = (of(&values[..300]), of(&values[300..]));
        left.absorb(&right);
        assert_eq!(left, of(&values));
        let mut turned = right;
        turned.absorb(&of(&values[..300]));
        assert_eq!(turned, left);
    }

    #[test]
    fn histograms_survive_json_and_forged_ones_are_refused() {
        let mut histogram = Histogram::default();
        [0, 5, 5, 70, 12_345].into_iter().for_each(|value| histogram.add(value));
        let text = serde_json::to_string(&histogram).expect("plain data");
        assert_eq!(text, r#"{"n":5,"sum":12425,"max":12345,"buckets":[[0,1],[5,2],[70,1],[12288,1]]}"#);
        assert_eq!(serde_json::from_str::<Histogram>(&text).expect("what was written"), histogram);
        for wrong in [r#"[[12289,1]]"#, r#"[[5,1],[0,4]]"#, r#"[[5,2]]"#] {
            let forged = format!(r#"{{"n":5,"sum":1,"max":1,"buckets":{wrong}}}"#);
            assert!(serde_json::from_str::<Histogram>(&forged).is_err(), "{forged}");
        }
    }
}
