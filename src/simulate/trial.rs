// SPDX-License-Identifier: GPL-2.0-or-later
//! Many simulations: implementations, loads and seeds, in parallel, their results in order.

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::replay::Entrant;
use crate::simulate::extract::Figures;
use crate::simulate::{Cost, Setup, SimulateError, Stats, Watch, Workload, run, run_watched};

/// What is compared.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The machine and the time.
    pub setup: Setup,
    /// The implementations; the first is the baseline.
    pub entrants: Vec<Entrant>,
    /// The loads.
    pub points: Vec<Point>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, one after the other.
    pub repeat: u64,
}

/// One load.
#[derive(Debug, Clone)]
pub struct Point {
    /// In a word or two, for rows of tables: `64`, `64 ipi_ns=0`.
    pub label: String,
    /// What runs.
    pub workload: Workload,
    /// What things cost.
    pub cost: Cost,
    /// What the recorded kernel made of it, if it comes from a recording.
    pub recorded: Option<Figures>,
}

/// What one implementation did under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Throughput of each seed, units a second.
    pub throughput: Vec<f64>,
    /// Everything counted, over all seeds.
    pub stats: Stats,
}

/// Results of one load, by implementation.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The load's.
    pub label: String,
    /// The workload's.
    pub workload: String,
    /// What throughput is counted in.
    pub unit: &'static str,
    /// The implementations.
    pub names: Vec<String>,
    /// What each did.
    pub cells: Vec<Cell>,
    /// What the recorded kernel made of it, if it comes from a recording.
    pub recorded: Option<Figures>,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// An implementation cannot be opened.
    #[error("{0}")]
    Open(String),
    /// A simulation failed.
    #[error("{name}, seed {seed}: {error}")]
    Run {
        /// The implementation.
        name: String,
        /// The seed.
        seed: u64,
        /// Why.
        error: SimulateError,
    },
}

/// Plays every load with every implementation and every seed; the number of threads changes nothing but the time.
///
/// # Errors
/// The first simulation that failed, in order.
pub fn play(trial: &Trial) -> Result<Vec<Row>, TrialError> {
    let mut jobs = Vec::new();
    for point in &trial.points {
        for entrant in &trial.entrants {
            jobs.extend((trial.seed..trial.seed + trial.repeat).map(|seed| (point, entrant, seed)));
        }
    }
    let played: Vec<Result<Stats, TrialError>> =
        jobs.par_iter().map(|&(point, entrant, seed)| one(trial, point, entrant, seed)).collect();
    let mut played = played.into_iter();
    let mut rows = Vec::new();
    for point in &trial.points {
        let mut cells = Vec::new();
        for _ in &trial.entrants {
            let of_seeds: Vec<Stats> = played.by_ref().take(trial.repeat as usize).collect::<Result<_, _>>()?;
            cells.push(Cell::of(&of_seeds, trial.setup.topology.nr_cpu_ids()));
        }
        let (label, workload) = (point.label.clone(), point.workload.name.clone());
        let names = trial.entrants.iter().map(Entrant::name).collect();
        rows.push(Row { label, workload, unit: point.workload.unit, names, cells, recorded: point.recorded.clone() });
    }
    Ok(rows)
}

/// Plays one load with implementation number `at` and the first seed, everything told to `watch`.
///
/// # Errors
/// As [`play`].
pub fn watched(trial: &Trial, point: &Point, at: usize, watch: &mut dyn Watch) -> Result<Stats, TrialError> {
    let (entrant, seed) = (&trial.entrants[at], trial.seed);
    let opened = entrant.open(&trial.setup.topology, point.cost.probe_llc_ns, None);
    let mut implementation = opened.map_err(|error| TrialError::Open(error.to_string()))?;
    let setup = Setup { cost: point.cost, ..trial.setup.clone() };
    let name = entrant.name();
    run_watched(&setup, &point.workload, &mut *implementation, seed, watch).map_err(|error| TrialError::Run {
        name,
        seed,
        error,
    })
}

fn one(trial: &Trial, point: &Point, entrant: &Entrant, seed: u64) -> Result<Stats, TrialError> {
    let topology = &trial.setup.topology;
    let opened = entrant.open(topology, point.cost.probe_llc_ns, None);
    let mut implementation = opened.map_err(|error| TrialError::Open(error.to_string()))?;
    let setup = Setup { cost: point.cost, ..trial.setup.clone() };
    let name = entrant.name();
    run(&setup, &point.workload, &mut *implementation, seed).map_err(|error| TrialError::Run { name, seed, error })
}

impl Cell {
    fn of(seeds: &[Stats], cpus: usize) -> Self {
        let mut stats = Stats::new(cpus);
        for one in seeds {
            stats.merge(one);
            stats.cpus = one.cpus;
        }
        Self { throughput: seeds.iter().map(Stats::throughput).collect(), stats }
    }

    /// The same figures as are known of a recorded kernel.
    pub fn figures(&self) -> Figures {
        let stats = &self.stats;
        Figures {
            wall_ns: stats.measured_ns,
            busy_ns: stats.busy_ns.clone(),
            migrations: stats.migrations() + stats.pulled.iter().sum::<u64>(),
            latency: stats.latency.clone(),
        }
    }

    /// Harmonic mean of the throughputs.
    pub fn hmean(&self) -> f64 {
        let reciprocals: f64 = self.throughput.iter().map(|one| 1.0 / one).sum();
        if reciprocals > 0.0 && reciprocals.is_finite() { self.throughput.len() as f64 / reciprocals } else { 0.0 }
    }

    /// Half the width of the 95 % interval of the mean (Student's t over the seeds), as a share of it; `None` of one seed.
    pub fn interval(&self) -> Option<f64> {
        let n = self.throughput.len();
        let mean = self.throughput.iter().sum::<f64>() / n as f64;
        if n < 2 || mean <= 0.0 {
            return None;
        }
        let squares: f64 = self.throughput.iter().map(|one| (one - mean).powi(2)).sum();
        let error = (squares / (n - 1) as f64 / n as f64).sqrt();
        let student = StudentsT::new(0.0, 1.0, (n - 1) as f64).ok()?;
        Some(student.inverse_cdf(0.975) * error / mean)
    }

    /// Whether the intervals of both do not overlap: mmtests marks such a change with stars.
    pub fn differs(&self, other: &Self) -> bool {
        match (self.interval(), other.interval()) {
            (Some(ours), Some(theirs)) => {
                let (a, b) = (self.hmean(), other.hmean());
                (a - b).abs() > a * ours + b * theirs
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_intervals() {
        let cell = |throughput: &[f64]| Cell { throughput: throughput.to_vec(), stats: Stats::new(1) };
        let one = cell(&[100.0, 100.0, 50.0]);
        assert!((one.hmean() - 75.0).abs() < 1e-9);
        let narrow = cell(&[99.0, 100.0, 101.0]);
        // t of 2 degrees of freedom at 97.5 % is 4.303.
        let interval = narrow.interval().expect("three seeds");
        assert!((interval - 4.3027 * (1.0f64 / 3.0).sqrt() / 100.0).abs() < 1e-4, "{interval}");
        assert!(narrow.differs(&cell(&[109.0, 110.0, 111.0])) && !narrow.differs(&cell(&[101.0, 102.0, 103.0])));
        assert_eq!((cell(&[5.0]).interval(), cell(&[0.0]).hmean()), (None, 0.0));
    }
}
