// SPDX-License-Identifier: GPL-2.0-or-later
//! Two sets of calls of one function beside each other.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::funcgraph::stats::{Interval, Middle, Resampling, bootstrap, floats};

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Median (or mean) of the baseline, ns.
    pub baseline_ns: f64,
    /// Of the other, ns.
    pub other_ns: f64,
    /// Other less baseline, ns, with its interval.
    pub difference_ns: Interval,
    /// How likely ranks as far apart are if nothing changed.
    pub rank: RankTest,
}

/// Mann and Whitney's U test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// U of the first sample: how often one of its values is above one of the second, ties half.
    pub u: f64,
    /// Probability of a U at least as far from the middle if both came from one distribution.
    pub p: f64,
    /// Effect size: probability that a call of the second takes longer than one of the first, ties half (Vargha and
    /// Delaney's A). 0.5: neither.
    pub longer: f64,
}

/// Compares the calls of one function; `None` if one side has none.
pub fn compare(baseline_ns: &[u64], other_ns: &[u64], by: Middle, resampling: Resampling) -> Option<Change> {
    if baseline_ns.is_empty() || other_ns.is_empty() {
        return None;
    }
    let (baseline, other) = (floats(baseline_ns), floats(other_ns));
    let difference_ns = bootstrap(&[&baseline, &other], resampling, |drawn| {
        let [baseline, other] = drawn else { return f64::NAN };
        by.of(other) - by.of(baseline)
    });
    Some(Change {
        baseline_ns: by.of(&mut baseline.clone()),
        other_ns: by.of(&mut other.clone()),
        difference_ns,
        rank: rank_test(&baseline, &other),
    })
}

/// The rank test with the normal approximation, corrected for ties and continuity, as `scipy.stats.mannwhitneyu` with
/// `method="asymptotic"`. statrs has one, too, which compares each value with every other.
pub fn rank_test(first: &[f64], second: &[f64]) -> RankTest {
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    let n = n1 + n2;
    let (rank_sum, ties) = ranks(first, second);
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;
    let spread = (n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)))).sqrt();
    let from_middle = (u - n1 * n2 / 2.0).abs();
    // All values equal: nothing is apart.
    let p = if spread > 0.0 { 2.0 * Normal::standard().sf((from_middle - 0.5) / spread) } else { 1.0 };
    RankTest { u, p: p.min(1.0), longer: 1.0 - u / (n1 * n2) }
}

/// Sum of the first sample's ranks among both, ties sharing the middle of theirs; and the sum of t³ − t over groups of
/// t equal values.
fn ranks(first: &[f64], second: &[f64]) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> =
        first.iter().map(|&value| (value, true)).chain(second.iter().map(|&value| (value, false))).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut rank_sum, mut ties, mut below) = (0.0, 0.0, 0usize);
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let size = group.len() as f64;
        let rank = below as f64 + (size + 1.0) / 2.0;
        rank_sum += rank * group.iter().filter(|(_, is_first)| *is_first).count() as f64;
        ties += size.powi(3) - size;
        below += group.len();
    }
    (rank_sum, ties)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: [u64; 7] = [2_080, 2_220, 2_160, 2_260, 2_160, 2_200, 3_160];
    const NONE: [u64; 6] = [1_380, 1_400, 1_500, 1_380, 1_380, 1_400];

    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not within {within} of {b}");
    }

    /// Both samples; U, p and effect size.
    type Case<'a> = (&'a [f64], &'a [f64], f64, f64, f64);

    /// Against scipy.stats.mannwhitneyu(method="asymptotic") of SciPy 1.17.
    #[test]
    fn the_rank_test_is_scipys() {
        let rows: [Case<'_>; 4] = [
            (&floats(&GROUP), &floats(&NONE), 42.0, 0.003_146_912_009_250_229, 0.0),
            (
                &floats(&NONE),
                &[1_580.0, 1_580.0, 1_700.0, 1_540.0, 1_560.0, 1_600.0],
                0.0,
                0.004_624_228_801_499_123,
                1.0,
            ),
            (&[1.0, 2.0, 3.0, 4.0], &[3.0, 4.0, 5.0, 6.0, 7.0], 2.0, 0.063_936_746_004_236_06, 0.9),
            (&[5.0, 5.0], &[5.0, 5.0, 5.0], 3.0, 1.0, 0.5),
        ];
        for (first, second, u, p, longer) in rows {
            let test = rank_test(first, second);
            near(test.u, u, 1e-9);
            near(test.p, p, 1e-9);
            near(test.longer, longer, 1e-12);
        }
    }

    /// The interval against scipy.stats.bootstrap: 710 to 880 less.
    #[test]
    fn a_difference_has_an_interval() {
        let change = compare(&GROUP, &NONE, Middle::Median, Resampling::default()).expect("calls on both sides");
        near(change.difference_ns.value, -810.0, 1e-9);
        near(change.difference_ns.low, -880.0, 20.0);
        near(change.difference_ns.high, -710.0, 20.0);
        assert_eq!((change.baseline_ns, change.other_ns), (2_200.0, 1_390.0));
        assert_eq!(compare(&[], &NONE, Middle::Median, Resampling::default()), None);
    }
}
