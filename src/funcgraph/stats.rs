// SPDX-License-Identifier: GPL-2.0-or-later
//! Durations in a few numbers. Quantiles are statrs's (Hyndman and Fan's definition 8, `median_unbiased` of NumPy).

use oorandom::Rand64;
use statrs::statistics::{Data, OrderStatistics};

/// How intervals are made: by drawing anew from the calls and looking how the figure scatters (the percentile
/// bootstrap). Drawn from a fixed start, so that the same calls give the same interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// Where the random numbers start.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Self { seed: 0x5153 }
    }
}

/// Share of an interval: what is outside is half below, half above.
pub const CONFIDENCE: f64 = 0.95;
/// Share cut from each end for the trimmed mean.
pub const TRIM: f64 = 0.1;

const RESAMPLES_MAX: usize = 2000;
const RESAMPLES_MIN: usize = 200;
/// Draws that an interval may take in all: with many calls it is narrow, and fewer resamples will do.
const DRAWS: usize = 20_000_000;

/// A figure and where it may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// Lower end at [`CONFIDENCE`].
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// A figure that does not scatter.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

/// Which figure stands for many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Middle {
    /// The median: outliers do not move it.
    #[default]
    Median,
    /// The mean: adds up to the total.
    Mean,
}

impl Middle {
    /// Of `values`, which may be put in another order.
    pub fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Middle::Median => quantile(values, 0.5),
            Middle::Mean => mean(values),
        }
    }
}

/// The calls of one function in numbers, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Calls.
    pub calls: u64,
    /// Mean with its interval.
    pub mean: Interval,
    /// Mean without the [`TRIM`] shortest and longest share.
    pub trimmed_mean: f64,
    /// Half of the calls were shorter.
    pub median: f64,
    /// 90 % were shorter.
    pub p90: f64,
    /// 99 % were shorter.
    pub p99: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// All calls together.
    pub total: f64,
}

/// The calls in numbers; `None` of no calls.
pub fn summary(durations_ns: &[u64], resampling: Resampling) -> Option<Summary> {
    let mut values = floats(durations_ns);
    if values.is_empty() {
        return None;
    }
    let [median, p90, p99] = [0.5, 0.9, 0.99].map(|share| quantile(&mut values, share));
    values.sort_unstable_by(f64::total_cmp);
    Some(Summary {
        calls: values.len() as u64,
        mean: bootstrap(&[&values], resampling, |draws| mean(&draws[0])),
        trimmed_mean: trimmed_mean(&values),
        median,
        p90,
        p99,
        min: values[0],
        max: values[values.len() - 1],
        total: values.iter().sum(),
    })
}

/// Nanoseconds to reckon with: exact up to 2^53, which is 104 days.
pub fn floats(ns: &[u64]) -> Vec<f64> {
    ns.iter().map(|&ns| ns as f64).collect()
}

/// `share` of the values are below it. Puts them in another order.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    Data::new(values).quantile(share)
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Of sorted values; as `scipy.stats.trim_mean`, it cuts whole values.
fn trimmed_mean(sorted: &[f64]) -> f64 {
    let cut = (TRIM * sorted.len() as f64) as usize;
    mean(&sorted[cut..sorted.len() - cut])
}

/// `figure` of all `samples`, and of as many drawn anew from each, independently.
pub fn bootstrap(samples: &[&[f64]], resampling: Resampling, figure: impl Fn(&mut [Vec<f64>]) -> f64) -> Interval {
    let mut drawn: Vec<Vec<f64>> = samples.iter().map(|sample| sample.to_vec()).collect();
    let value = figure(&mut drawn);
    let size: usize = samples.iter().map(|sample| sample.len()).sum();
    let resamples = (DRAWS / size.max(1)).clamp(RESAMPLES_MIN, RESAMPLES_MAX);
    let mut random = Rand64::new(u128::from(resampling.seed));
    let mut figures: Vec<f64> = (0..resamples)
        .map(|_| {
            for (drawn, sample) in drawn.iter_mut().zip(samples) {
                let one = || sample[random.rand_range(0..sample.len() as u64) as usize];
                drawn.clear();
                drawn.extend(std::iter::repeat_with(one).take(sample.len()));
            }
            figure(&mut drawn)
        })
        .collect();
    let outside = (1.0 - CONFIDENCE) / 2.0;
    Interval { value, low: quantile(&mut figures, outside), high: quantile(&mut figures, 1.0 - outside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations of update_cfs_group() in the mail "sched/uclamp: Add a new sysctl to control RT default boost value"
    /// (June 2020), ns.
    const DURATIONS: [u64; 25] = [
        820, 840, 820, 820, 800, 1040, 920, 1040, 840, 1160, 1020, 880, 840, 1780, 1060, 880, 880, 800, 820, 840, 880,
        960, 960, 1080, 840,
    ];

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not within {within} of {b}");
    }

    /// Against NumPy 2 and SciPy 1.17: mean, trim_mean(0.1), quantile(method="median_unbiased"), and
    /// bootstrap(method="percentile") with 200,000 resamples, whose interval scatters a little.
    #[test]
    fn the_numbers_are_scipys() {
        let s = summary(&DURATIONS, Resampling::default()).expect("calls");
        near(s.mean.value, 944.8, 1e-9);
        near(s.trimmed_mean, 908.571_428_571_428_6, 1e-9);
        near(s.median, 880.0, 1e-9);
        near(s.p90, 1_090.666_666_666_666_5, 1e-9);
        near(s.p99, 1_780.0, 1e-9);
        assert_eq!((s.calls, s.min, s.max, s.total), (25, 800.0, 1_780.0, 23_620.0));
        near(s.mean.low, 880.8, 4.0);
        near(s.mean.high, 1_032.8, 4.0);
    }

    #[test]
    fn the_same_calls_give_the_same_interval() {
        let once = summary(&DURATIONS, Resampling::default());
        assert_eq!(once, summary(&DURATIONS, Resampling::default()));
        assert_ne!(once.map(|s| s.mean.low), summary(&DURATIONS, Resampling { seed: 7 }).map(|s| s.mean.low));
        assert_eq!(summary(&[], Resampling::default()), None);
        let one = summary(&[7], Resampling::default()).expect("a call");
        assert_eq!((one.mean, one.median, one.p99), (Interval::exact(7.0), 7.0, 7.0));
    }
}
