// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scan costs: in a recording that holds both, the time of select_task_rq_fair() by function_graph against the
//! CPUs that the model of the recorded kernel looked at. The rise of the line is what `replay --scan-cost` declares.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::fair::Exit;
use crate::funcgraph::fit::{Line, line};
use crate::funcgraph::{CallAt, FuncgraphError, calls};
use crate::replay::filter::Filter;
use crate::replay::run::{self, Job, Progress};
use crate::replay::setup::Options;
use crate::replay::{ReplayError, Role};

/// The function whose time is taken.
pub const FUNCTION: &str = "select_task_rq_fair";

/// Why there is no fit.
#[derive(Debug, thiserror::Error)]
pub enum ScanCostError {
    /// The function graph's.
    #[error(transparent)]
    Funcgraph(#[from] FuncgraphError),
    /// The replay's.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A decision as the model makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// Time of its waking, ns of the trace's clock.
    pub ts_ns: u64,
    /// The waking CPU.
    pub cpu: u32,
    /// Idle checks that the model made.
    pub probes: u32,
    /// The return that it took.
    pub exit: Exit,
}

/// A decision with the time that the kernel took for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// Idle checks.
    pub probes: u32,
    /// The return.
    pub exit: Exit,
    /// The call's duration, ns.
    pub duration_ns: u64,
}

/// A fixed cost and a cost for each idle check, ns with standard errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Without a check.
    pub fixed_ns: f64,
    /// Its error.
    pub fixed_error_ns: f64,
    /// For each check.
    pub per_probe_ns: f64,
    /// Its error.
    pub per_probe_error_ns: f64,
    /// Share of the scatter that the line explains.
    pub r2: f64,
}

impl From<Line> for Cost {
    fn from(line: Line) -> Self {
        Self {
            fixed_ns: line.fixed,
            fixed_error_ns: line.fixed_error,
            per_probe_ns: line.slope,
            per_probe_error_ns: line.slope_error,
            r2: line.r2,
        }
    }
}

/// One return, or all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The return; nothing: all together.
    pub exit: Option<Exit>,
    /// Calls.
    pub calls: u64,
    /// Their mean number of idle checks.
    pub mean_probes: f64,
    /// Their mean duration, ns.
    pub mean_ns: f64,
    /// The line; nothing where all calls made as many checks, or there are fewer than three.
    pub cost: Option<Cost>,
}

/// What a recording tells of the costs of scanning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanCost {
    /// The recording.
    pub file: String,
    /// The model whose checks are counted.
    pub model: String,
    /// Decisions of that model.
    pub decisions: u64,
    /// Calls of [`FUNCTION`].
    pub calls: u64,
    /// Decisions with a call of their own.
    pub joined: u64,
    /// All of them, then by return.
    pub rows: Vec<Row>,
}

/// Fits a recording. `None`: it has no model or no call of the function.
///
/// # Errors
/// [`ScanCostError`].
pub fn scan_cost(file: &Path, options: &Options, progress: &dyn Progress) -> Result<Option<ScanCost>, ScanCostError> {
    let calls = calls(file, options.buffer.as_deref().unwrap_or(""), FUNCTION)?;
    if calls.is_empty() {
        return Ok(None);
    }
    let (mut decided, mut model) = (Vec::new(), None);
    let filter = |_| Filter::default();
    let job = Job { options, filter: &filter, filters: &[], progress };
    run::decisions(file, &job, &mut |_, row, contestants| {
        if let Some(at) = contestants.iter().position(|one| one.role == Role::Recorded) {
            model.get_or_insert_with(|| contestants[at].implementation.name().to_owned());
            let (recorded, decision) = (&row.recorded, &row.decisions[at]);
            let cpu = u32::from(recorded.wakeup.this_cpu.0);
            decided.push(Decided { ts_ns: recorded.ts_ns, cpu, probes: decision.probes, exit: decision.exit });
        }
        Ok(())
    })?;
    let Some(model) = model else { return Ok(None) };
    let timed = join(&decided, &calls);
    Ok(Some(ScanCost {
        file: file.display().to_string(),
        model,
        decisions: decided.len() as u64,
        calls: calls.len() as u64,
        joined: timed.len() as u64,
        rows: rows(&timed),
    }))
}

/// Gives each decision the first call on its CPU after its waking and before that CPU's next one. A wakee that may use
/// one CPU only is not asked for, so not every decision has a call.
pub fn join(decided: &[Decided], calls: &[CallAt]) -> Vec<Timed> {
    let mut wakings: BTreeMap<u32, Vec<&Decided>> = BTreeMap::new();
    decided.iter().for_each(|one| wakings.entry(one.cpu).or_default().push(one));
    let mut by_cpu: BTreeMap<u32, Vec<&CallAt>> = BTreeMap::new();
    calls.iter().for_each(|call| by_cpu.entry(call.cpu).or_default().push(call));
    let mut timed = Vec::new();
    for (cpu, wakings) in &mut wakings {
        let Some(calls) = by_cpu.get_mut(cpu) else { continue };
        wakings.sort_by_key(|one| one.ts_ns);
        calls.sort_by_key(|call| call.enter_ns);
        for (at, one) in wakings.iter().enumerate() {
            let next_ns = wakings.get(at + 1).map_or(u64::MAX, |next| next.ts_ns);
            let first = calls.partition_point(|call| call.enter_ns < one.ts_ns);
            let own = calls.get(first).filter(|call| call.enter_ns < next_ns);
            timed.extend(own.map(|call| Timed { probes: one.probes, exit: one.exit, duration_ns: call.duration_ns }));
        }
    }
    timed
}

fn rows(timed: &[Timed]) -> Vec<Row> {
    let mut by_exit: BTreeMap<Exit, Vec<Timed>> = BTreeMap::new();
    timed.iter().for_each(|one| by_exit.entry(one.exit).or_default().push(*one));
    let all = (!timed.is_empty()).then(|| row(None, timed));
    all.into_iter().chain(by_exit.iter().map(|(exit, timed)| row(Some(*exit), timed))).collect()
}

fn row(exit: Option<Exit>, timed: &[Timed]) -> Row {
    let points: Vec<(f64, f64)> = timed.iter().map(|one| (f64::from(one.probes), one.duration_ns as f64)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    Row {
        exit,
        calls: timed.len() as u64,
        mean_probes: mean(|point| point.0),
        mean_ns: mean(|point| point.1),
        cost: line(&points).map(Cost::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(ts_ns: u64, cpu: u32, probes: u32) -> Decided {
        Decided { ts_ns, cpu, probes, exit: Exit::IdleCpu }
    }

    fn call(enter_ns: u64, cpu: u32, duration_ns: u64) -> CallAt {
        CallAt { cpu, enter_ns, duration_ns }
    }

    #[test]
    fn a_decision_takes_the_call_between_its_waking_and_the_next() {
        let all = [decided(100, 0, 1), decided(200, 0, 2), decided(150, 1, 3), decided(300, 0, 4)];
        let calls = [call(110, 0, 10), call(160, 1, 30), call(310, 0, 40), call(320, 0, 99), call(90, 0, 99)];
        let timed: Vec<_> = join(&all, &calls).iter().map(|one| (one.probes, one.duration_ns)).collect();
        assert_eq!(timed, [(1, 10), (4, 40), (3, 30)]);
    }

    #[test]
    fn the_rise_is_the_cost_of_a_check() {
        let timed: Vec<Timed> = (0..10)
            .map(|probes| Timed { probes, exit: Exit::IdleCpu, duration_ns: 1000 + 50 * u64::from(probes) })
            .collect();
        let rows = rows(&timed);
        let cost = rows[0].cost.expect("a line");
        assert!((cost.per_probe_ns - 50.0).abs() < 1e-9 && (cost.fixed_ns - 1000.0).abs() < 1e-9, "{cost:?}");
        assert_eq!((rows.len(), rows[1].exit, rows[1].calls), (2, Some(Exit::IdleCpu), 10));
    }
}
