// SPDX-License-Identifier: GPL-2.0-or-later
//! Costs per call → the cost of an operation that makes several calls: `2*activate_task + 2*deactivate_task`.

use std::fmt;
use std::str::FromStr;

use crate::funcgraph::sample::Sample;
use crate::funcgraph::stats::{Interval, Middle, Resampling, bootstrap, floats};

/// How often an operation calls which function.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    terms: Vec<(f64, String)>,
}

impl Operation {
    /// The functions that it calls.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(_, function)| function.as_str())
    }
}

impl FromStr for Operation {
    type Err = String;

    /// Reads a sum of functions, each with or without a number of calls before it.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut terms: Vec<(f64, String)> = Vec::new();
        for term in text.split('+').map(str::trim) {
            let (times, function) = term.split_once('*').map_or(("1", term), |(times, f)| (times.trim(), f.trim()));
            let times: f64 =
                times.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0).ok_or_else(|| {
                    format!("{times:?} is no number of calls; expected something like 2*activate_task")
                })?;
            let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            if function.is_empty() || !function.chars().all(valid) {
                return Err(format!("{function:?} is no function; expected something like 2*activate_task + schedule"));
            }
            if terms.iter().any(|(_, other)| other == function) {
                return Err(format!("{function} stands there twice"));
            }
            terms.push((times, function.to_owned()));
        }
        Ok(Self { terms })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (times, function)) in self.terms.iter().enumerate() {
            let plus = if at == 0 { "" } else { " + " };
            match *times == 1.0 {
                true => write!(f, "{plus}{function}")?,
                false => write!(f, "{plus}{times}*{function}")?,
            }
        }
        Ok(())
    }
}

/// What an operation costs in traced functions, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// With its interval: the calls of all functions drawn anew together.
    pub cost_ns: Interval,
    /// Less that of the baseline, both drawn anew; `None` of the baseline itself.
    pub difference_ns: Option<Interval>,
}

/// The cost of `operation` in `sample`, and how much that is more than in `baseline`. `Err`: the function that has no
/// calls in one of them.
pub fn costs(
    operation: &Operation,
    sample: &Sample,
    baseline: Option<&Sample>,
    by: Middle,
    resampling: Resampling,
) -> Result<Costs, String> {
    let times: Vec<f64> = operation.terms.iter().map(|(times, _)| *times).collect();
    let weigh =
        |drawn: &mut [Vec<f64>]| drawn.iter_mut().zip(&times).map(|(calls, times)| times * by.of(calls)).sum::<f64>();
    let own = calls(operation, sample)?;
    let cost_ns = bootstrap(&slices(&own), resampling, |drawn| weigh(drawn));
    let difference_ns = match baseline {
        None => None,
        Some(baseline) => {
            let mut both = own;
            both.extend(calls(operation, baseline)?);
            Some(bootstrap(&slices(&both), resampling, |drawn| {
                let (own, baseline) = drawn.split_at_mut(times.len());
                weigh(own) - weigh(baseline)
            }))
        }
    };
    Ok(Costs { cost_ns, difference_ns })
}

fn slices(all: &[Vec<f64>]) -> Vec<&[f64]> {
    all.iter().map(Vec::as_slice).collect()
}

fn calls(operation: &Operation, sample: &Sample) -> Result<Vec<Vec<f64>>, String> {
    let of = |function: &str| {
        let found = sample.functions.get(function).map(|found| floats(&found.durations_ns));
        found.filter(|calls| !calls.is_empty()).ok_or_else(|| function.to_owned())
    };
    operation.functions().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_a_sum_of_calls() {
        let read = |text: &str| text.parse::<Operation>().map(|operation| operation.to_string());
        assert_eq!(read("2*activate_task + 2 * deactivate_task"), Ok("2*activate_task + 2*deactivate_task".to_owned()));
        assert_eq!(read("schedule"), Ok("schedule".to_owned()));
        assert_eq!(read("0.5*f+g"), Ok("0.5*f + g".to_owned()));
        for bad in ["", "+", "2*", "x*f", "-1*f", "0*f", "f + f", "2 f", "inf*f", "f()"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
