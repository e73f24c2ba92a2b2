// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts over time. How long a recording is, is known at its end only: bins begin narrow, and whenever they are used
//! up two become one.

/// Bins at most; at least half of them are used in the end.
pub const BINS_MAX: usize = 240;
/// Width at first, ns.
const WIDTH_NS: u64 = 1 << 16;

/// What one bin counts; every list has its own order, the same in each bin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bin {
    /// Decisions.
    pub decisions: u32,
    /// Decisions that differ, by comparison.
    pub different: Vec<u32>,
    /// Decisions by where they place the task: a row of CPUs for each implementation, the last one for the recorded
    /// choices.
    pub placed: Vec<Vec<u32>>,
}

impl Bin {
    fn new(comparisons: usize, rows: usize, cpus: usize) -> Self {
        Self { decisions: 0, different: vec![0; comparisons], placed: vec![vec![0; cpus]; rows] }
    }

    fn absorb(&mut self, other: &Self) {
        self.decisions += other.decisions;
        let add = |ours: &mut [u32], theirs: &[u32]| ours.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        add(&mut self.different, &other.different);
        self.placed.iter_mut().zip(&other.placed).for_each(|(ours, theirs)| add(ours, theirs));
    }
}

/// Bins from the first decision on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeBins {
    /// When the first one begins, ns of the trace's clock; `None`: there is none.
    pub origin_ns: Option<u64>,
    /// How long each is, ns.
    pub width_ns: u64,
    /// The bins, without gaps.
    pub bins: Vec<Bin>,
    comparisons: usize,
    rows: usize,
    cpus: usize,
}

impl TimeBins {
    /// No bins yet, for so many comparisons, rows of placements and CPUs.
    pub fn new(comparisons: usize, rows: usize, cpus: usize) -> Self {
        Self { width_ns: WIDTH_NS, comparisons, rows, cpus, ..Self::default() }
    }

    /// The bin of a time. Times before the first one's belong to the first bin.
    pub fn at(&mut self, ts_ns: u64) -> &mut Bin {
        let after = ts_ns.saturating_sub(*self.origin_ns.get_or_insert(ts_ns));
        while after / self.width_ns >= BINS_MAX as u64 {
            self.halve();
        }
        let at = (after / self.width_ns) as usize;
        let (comparisons, rows, cpus) = (self.comparisons, self.rows, self.cpus);
        if self.bins.len() <= at {
            self.bins.resize_with(at + 1, || Bin::new(comparisons, rows, cpus));
        }
        &mut self.bins[at]
    }

    fn halve(&mut self) {
        for at in 0..self.bins.len().div_ceil(2) {
            self.bins.swap(at, 2 * at);
            if let Some((left, [second, ..])) = self.bins.split_at_mut_checked(2 * at + 1) {
                left[at].absorb(second);
            }
        }
        self.bins.truncate(self.bins.len().div_ceil(2));
        self.width_ns *= 2;
    }

    /// Of row `row` how many decisions placed a task on each CPU, over all times.
    pub fn by_cpu(&self, row: usize) -> Vec<u64> {
        let mut sums = vec![0; self.cpus];
        for bin in &self.bins {
            let placed = bin.placed.get(row).into_iter().flatten();
            sums.iter_mut().zip(placed).for_each(|(sum, &n)| *sum += u64::from(n));
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_bins_grow() {
        let mut bins = TimeBins::new(1, 2, 4);
        let times: Vec<u64> = (0..5000).map(|n| 1_000 + n * n * 977).collect();
        for (n, &ts_ns) in times.iter().enumerate() {
            let bin = bins.at(ts_ns);
            bin.decisions += 1;
            bin.placed[1][n % 4] += 1;
        }
        assert_eq!(bins.bins.iter().map(|bin| bin.decisions).sum::<u32>(), 5000);
        assert_eq!(bins.by_cpu(1), [1250; 4]);
        assert_eq!(bins.by_cpu(0), [0; 4]);
        assert!((BINS_MAX / 2..=BINS_MAX).contains(&bins.bins.len()), "{}", bins.bins.len());
        // Each decision is where its time says.
        let mut expected = vec![0; bins.bins.len()];
        times.iter().for_each(|ts_ns| expected[((ts_ns - 1_000) / bins.width_ns) as usize] += 1);
        assert_eq!(bins.bins.iter().map(|bin| bin.decisions).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_long_gap_and_a_time_before_the_first_are_counted() {
        let mut bins = TimeBins::new(0, 0, 0);
        bins.at(u64::MAX / 2).decisions += 1;
        bins.at(5).decisions += 1;
        bins.at(u64::MAX).decisions += 1;
        assert_eq!(bins.bins.first().map(|bin| bin.decisions), Some(2));
        assert_eq!(bins.bins.last().map(|bin| bin.decisions), Some(1));
        assert!(bins.bins.len() <= BINS_MAX);
    }
}
