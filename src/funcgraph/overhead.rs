// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tracer itself costs, as far as a recording shows it.
//!
//! At entry the tracer reads its clock, then writes the entry's record; at return it reads its clock again, then writes
//! the exit's. So a duration holds the writing of its own entry, and that of everything traced inside; and a call adds
//! more to its callers than its own duration says: the writing of its exit. How long after the reading of the clock a
//! record got its own time is a lower bound of both.

use crate::funcgraph::sample::Sample;
use crate::funcgraph::stats::quantile;

/// The tracer's work, ns; lower bounds, medians over all calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overhead {
    /// Calls that it was told from.
    pub calls: u64,
    /// In each call's own duration.
    pub inside_ns: f64,
    /// What a traced call adds to its callers' durations above its own.
    pub outside_ns: f64,
}

/// Told from the records' lags. Where the trace has another clock than the tracer, the smallest lag stands for the
/// difference of the two. `None`: the records do not say (text), or there are none.
pub fn overhead(sample: &Sample) -> Option<Overhead> {
    let clocks = match sample.is_same_clock {
        true => 0,
        false => sample.lags.iter().map(|lag| lag.enter_ns.min(lag.exit_ns)).min()?,
    };
    let median = |lags: Vec<i64>| {
        let mut lags: Vec<f64> = lags.into_iter().map(|lag| lag.saturating_sub(clocks).max(0) as f64).collect();
        quantile(&mut lags, 0.5)
    };
    (!sample.lags.is_empty()).then(|| Overhead {
        calls: sample.lags.len() as u64,
        inside_ns: median(sample.lags.iter().map(|lag| lag.enter_ns).collect()),
        outside_ns: median(sample.lags.iter().map(|lag| lag.exit_ns).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::funcgraph::stacks::Lag;

    #[test]
    fn the_smallest_lag_is_the_difference_of_the_clocks() {
        let lags = vec![(1_010, 1_025), (1_030, 1_000), (1_020, 1_035)];
        let lags = lags.into_iter().map(|(enter_ns, exit_ns)| Lag { enter_ns, exit_ns }).collect();
        let sample = Sample { lags, ..Sample::default() };
        assert_eq!(overhead(&sample), Some(Overhead { calls: 3, inside_ns: 20.0, outside_ns: 25.0 }));
        let local = Sample { is_same_clock: true, ..sample };
        assert_eq!(overhead(&local).map(|o| o.inside_ns), Some(1_020.0));
        assert_eq!(overhead(&Sample::default()), None);
    }
}
