// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording beside its simulations: how far off they are, over seeds. A single seed says little where two tasks that
//! run all the time hang on one pass of load balancing.

use crate::simulate::extract::Figures;
use crate::simulate::trial::Row;

/// Least, median and greatest of the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// Half are not above.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        Some(Self { least, median: values[(values.len() - 1) / 2], greatest })
    }
}

/// A recording, and what its kernel's model made of it with each seed.
#[derive(Debug, Clone)]
pub struct Reality {
    /// The recording's name.
    pub label: String,
    /// The model.
    pub model: String,
    /// What the kernel made of it.
    pub recorded: Figures,
    /// What its model did, by seed.
    pub simulated: Vec<Figures>,
}

/// The most that a simulation may be off: busy share of a CPU on average, points.
pub const BUSY_MAX: f64 = 10.0;
/// And migrations, as a factor.
pub const FACTOR_MAX: f64 = 2.0;

impl Reality {
    /// From the rows of one recording, one for each seed; `None` of none.
    pub fn of(rows: &[Row]) -> Option<Self> {
        let first = rows.first()?;
        let simulated = rows.iter().filter_map(|row| row.cells.last()).map(|cell| cell.figures()).collect();
        let (label, model) = (first.label.clone(), first.names.last()?.clone());
        Some(Self { label, model, recorded: first.recorded.clone()?, simulated })
    }

    fn spread(&self, of: impl Fn(&Figures) -> f64) -> Option<Spread> {
        Spread::of(self.simulated.iter().map(of).collect())
    }

    /// Mean absolute error of the CPUs' busy shares, points.
    pub fn busy_error(&self) -> Option<Spread> {
        self.spread(|figures| self.recorded.busy_error(figures))
    }

    /// The same with the CPUs ranked by their share.
    pub fn busy_error_by_rank(&self) -> Option<Spread> {
        self.spread(|figures| self.recorded.busy_error_by_rank(figures))
    }

    /// Migrations by those recorded.
    pub fn factor(&self) -> Option<Spread> {
        self.spread(|figures| figures.migrations as f64 / self.recorded.migrations.max(1) as f64)
    }

    /// Seeds of which both are within bounds.
    pub fn within(&self) -> usize {
        let near = |figures: &&Figures| {
            let factor = figures.migrations as f64 / self.recorded.migrations.max(1) as f64;
            self.recorded.busy_error(figures) < BUSY_MAX && (1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor)
        };
        self.simulated.iter().filter(near).count()
    }

    /// A quantile of the wakeup latency, us: recorded, and the median of the seeds.
    pub fn latency_us(&self, share: f64) -> (f64, f64) {
        let us = |figures: &Figures| figures.latency.quantile(share).map_or(0.0, |ns| ns as f64 / 1000.0);
        (us(&self.recorded), self.spread(us).map_or(0.0, |spread| spread.median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_of_each_seed() {
        let figures = |busy: u64, migrations| Figures {
            wall_ns: 1_000,
            busy_ns: vec![busy, 0],
            migrations,
            ..Figures::default()
        };
        let reality = Reality {
            label: "one".to_owned(),
            model: "v6.1".to_owned(),
            recorded: figures(500, 10),
            simulated: vec![figures(520, 10), figures(500, 21), figures(100, 10), figures(400, 5)],
        };
        assert_eq!(reality.within(), 2);
        let error = reality.busy_error().expect("seeds");
        assert_eq!((error.least, error.median, error.greatest), (0.0, 1.0, 20.0));
    }
}
