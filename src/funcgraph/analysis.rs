// SPDX-License-Identifier: GPL-2.0-or-later
//! Sets of calls → everything a report says of them. What it holds is what `--format json` prints:
//! `docs/funcgraph.schema.json`.

use serde::{Deserialize, Serialize};

use crate::funcgraph::compare::compare;
use crate::funcgraph::ops::{Operation, costs};
use crate::funcgraph::overhead::overhead;
use crate::funcgraph::read::Part;
use crate::funcgraph::sample::{Function, Sample};
use crate::funcgraph::stacks::Task;
use crate::funcgraph::stats::{Interval, Middle, Resampling, floats, quantile, summary};

/// The calls of one recording, with a name.
#[derive(Debug)]
pub struct Set {
    /// What reports call it.
    pub label: String,
    /// File and lines, as people would look for them.
    pub source: String,
    /// The calls.
    pub part: Part,
}

/// What to reckon.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Place of the baseline among the sets.
    pub baseline: usize,
    /// Which figure stands for many calls.
    pub by: Middle,
    /// Operations to cost.
    pub operations: Vec<Operation>,
    /// Measured cost of an operation, us, by the set's label.
    pub measured_us: Vec<(String, f64)>,
    /// A function that is known to do nothing: what it takes is the tracer's.
    pub empty_function: Option<String>,
    /// How intervals are made.
    pub resampling: Resampling,
}

/// A figure and where it may lie, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The figure.
    pub value_ns: f64,
    /// Lower end at 95 %.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
}

impl From<Interval> for Estimate {
    fn from(interval: Interval) -> Self {
        Self { value_ns: interval.value, low_ns: interval.low, high_ns: interval.high }
    }
}

/// One function of one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionRow {
    /// Its name.
    pub function: String,
    /// Calls that count.
    pub calls: u64,
    /// Mean, ns.
    pub mean: Estimate,
    /// Mean without the tenth of the calls at either end, ns.
    pub trimmed_mean_ns: f64,
    /// Median, ns.
    pub median_ns: f64,
    /// 90 % were shorter, ns.
    pub p90_ns: f64,
    /// 99 % were shorter, ns.
    pub p99_ns: f64,
    /// The shortest, ns.
    pub min_ns: f64,
    /// The longest, ns.
    pub max_ns: f64,
    /// All together, ns.
    pub total_ns: f64,
    /// Of that, outside of traced functions that it called, ns.
    pub self_ns: u64,
    /// Calls that called traced functions.
    pub with_children: u64,
    /// Calls by traced functions.
    pub nested: u64,
    /// The longest call: its time, ns of the trace's clock, if told.
    pub longest_at_ns: Option<u64>,
    /// Its thread, if told.
    pub longest_pid: Option<i32>,
    /// Its CPU.
    pub longest_cpu: u32,
}

/// Records of a function without a partner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnpairedRow {
    /// Its name.
    pub function: String,
    /// Exits without an entry.
    pub exits: u64,
    /// Entries without an exit.
    pub entries: u64,
}

/// The tracer's own cost, ns; lower bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadRow {
    /// How it was told: `records` or `empty function`.
    pub told_by: String,
    /// From so many calls.
    pub calls: u64,
    /// In each call's own duration.
    pub inside_ns: f64,
    /// What a traced call adds to its callers above its own duration; unknown from an empty function.
    pub outside_ns: Option<f64>,
}

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRow {
    /// Its label.
    pub label: String,
    /// File and lines.
    pub source: String,
    /// Words before it, of pasted text.
    pub title: Option<String>,
    /// Its functions, by name.
    pub functions: Vec<FunctionRow>,
    /// Calls that filters left out.
    pub filtered: u64,
    /// Records without a partner.
    pub unpaired: Vec<UnpairedRow>,
    /// Exits without a partner that do not name their function.
    pub nameless_exits: u64,
    /// The tracer's own cost, as far as told.
    pub overhead: Vec<OverheadRow>,
}

/// One function of a set against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRow {
    /// The function.
    pub function: String,
    /// Median or mean of the baseline, ns.
    pub baseline_ns: f64,
    /// Of the set, ns.
    pub other_ns: f64,
    /// Set less baseline, ns.
    pub difference: Estimate,
    /// Mann and Whitney's U of the baseline.
    pub u: f64,
    /// Two-sided probability of ranks as far apart.
    pub p: f64,
    /// Probability that a call of the set takes longer than one of the baseline.
    pub longer: f64,
}

/// A set against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonRow {
    /// The baseline's label.
    pub baseline: String,
    /// The set's label.
    pub set: String,
    /// Functions with calls in both.
    pub functions: Vec<ChangeRow>,
    /// Functions with calls in one of them only.
    pub only_in_one: Vec<String>,
}

/// An operation in one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostRow {
    /// The set's label.
    pub set: String,
    /// Its traced cost, ns; nothing if a function has no calls.
    pub cost: Option<Estimate>,
    /// Less the baseline's.
    pub difference: Option<Estimate>,
    /// The function that has no calls.
    pub missing: Option<String>,
    /// What was measured, ns.
    pub measured_ns: Option<f64>,
    /// Less what was measured of the baseline, ns.
    pub measured_difference_ns: Option<f64>,
}

/// An operation in all sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationRow {
    /// As it was asked for.
    pub operation: String,
    /// Each set's costs.
    pub sets: Vec<CostRow>,
}

/// All that is said of the sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// Which figure stands for many calls: median or mean.
    pub by: String,
    /// The sets.
    pub sets: Vec<SetRow>,
    /// Each but the baseline against it.
    pub comparisons: Vec<ComparisonRow>,
    /// Operations.
    pub operations: Vec<OperationRow>,
}

/// Reckons everything. The baseline must be one of the sets.
pub fn analyse(sets: &[Set], plan: &Plan) -> Analysis {
    let baseline = &sets[plan.baseline];
    let others = || sets.iter().enumerate().filter(|(at, _)| *at != plan.baseline).map(|(_, set)| set);
    Analysis {
        by: match plan.by {
            Middle::Median => "median".to_owned(),
            Middle::Mean => "mean".to_owned(),
        },
        sets: sets.iter().map(|set| set_row(set, plan)).collect(),
        comparisons: others().map(|set| comparison(baseline, set, plan)).collect(),
        operations: plan.operations.iter().map(|operation| operation_row(operation, sets, plan)).collect(),
    }
}

fn set_row(set: &Set, plan: &Plan) -> SetRow {
    let part = &set.part;
    let functions = part.sample.functions.iter().filter_map(|(name, f)| function_row(name, f, plan.resampling));
    let unpaired = part.unpaired.iter().map(|(function, unpaired)| UnpairedRow {
        function: function.clone(),
        exits: unpaired.exits,
        entries: unpaired.entries,
    });
    SetRow {
        label: set.label.clone(),
        source: set.source.clone(),
        title: part.title.clone(),
        functions: functions.collect(),
        filtered: part.sample.filtered,
        unpaired: unpaired.collect(),
        nameless_exits: part.nameless_exits,
        overhead: overheads(&part.sample, plan.empty_function.as_deref()),
    }
}

fn function_row(name: &str, function: &Function, resampling: Resampling) -> Option<FunctionRow> {
    let s = summary(&function.durations_ns, resampling)?;
    let longest = function.longest.as_ref()?;
    Some(FunctionRow {
        function: name.to_owned(),
        calls: s.calls,
        mean: s.mean.into(),
        trimmed_mean_ns: s.trimmed_mean,
        median_ns: s.median,
        p90_ns: s.p90,
        p99_ns: s.p99,
        min_ns: s.min,
        max_ns: s.max,
        total_ns: s.total,
        self_ns: function.self_total_ns,
        with_children: function.with_children,
        nested: function.nested,
        longest_at_ns: longest.enter_ns,
        longest_pid: Task::pid(longest.task),
        longest_cpu: longest.cpu,
    })
}

fn overheads(sample: &Sample, empty_function: Option<&str>) -> Vec<OverheadRow> {
    let told = overhead(sample).map(|told| OverheadRow {
        told_by: "records".to_owned(),
        calls: told.calls,
        inside_ns: told.inside_ns,
        outside_ns: Some(told.outside_ns),
    });
    let empty = empty_function.and_then(|name| sample.functions.get(name)).map(|function| OverheadRow {
        told_by: "empty function".to_owned(),
        calls: function.durations_ns.len() as u64,
        inside_ns: quantile(&mut floats(&function.durations_ns), 0.5),
        outside_ns: None,
    });
    told.into_iter().chain(empty).collect()
}

fn comparison(baseline: &Set, set: &Set, plan: &Plan) -> ComparisonRow {
    let (ours, theirs) = (&baseline.part.sample.functions, &set.part.sample.functions);
    let change = |(name, function): (&String, &Function)| {
        let change = compare(&function.durations_ns, &theirs.get(name)?.durations_ns, plan.by, plan.resampling)?;
        Some(ChangeRow {
            function: name.clone(),
            baseline_ns: change.baseline_ns,
            other_ns: change.other_ns,
            difference: change.difference_ns.into(),
            u: change.rank.u,
            p: change.rank.p,
            longer: change.rank.longer,
        })
    };
    let mut only_in_one: Vec<String> = ours.keys().filter(|name| !theirs.contains_key(*name)).cloned().collect();
    only_in_one.extend(theirs.keys().filter(|name| !ours.contains_key(*name)).cloned());
    only_in_one.sort();
    ComparisonRow {
        baseline: baseline.label.clone(),
        set: set.label.clone(),
        functions: ours.iter().filter_map(change).collect(),
        only_in_one,
    }
}

fn operation_row(operation: &Operation, sets: &[Set], plan: &Plan) -> OperationRow {
    let measured =
        |set: &Set| plan.measured_us.iter().find(|(label, _)| *label == set.label).map(|(_, us)| us * 1000.0);
    let baseline = &sets[plan.baseline];
    let row = |(at, set): (usize, &Set)| {
        let against = (at != plan.baseline).then_some(baseline);
        let sample = against.map(|baseline| &baseline.part.sample);
        let costs = costs(operation, &set.part.sample, sample, plan.by, plan.resampling);
        let measured_ns = measured(set);
        CostRow {
            set: set.label.clone(),
            cost: costs.as_ref().ok().map(|costs| costs.cost_ns.into()),
            difference: costs.as_ref().ok().and_then(|costs| costs.difference_ns).map(Estimate::from),
            missing: costs.err(),
            measured_ns,
            measured_difference_ns: against.and_then(|baseline| Some(measured_ns? - measured(baseline)?)),
        }
    };
    OperationRow { operation: operation.to_string(), sets: sets.iter().enumerate().map(row).collect() }
}
