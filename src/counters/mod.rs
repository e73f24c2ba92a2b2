// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduler counters as Mel Gorman's schedstat patches count them and mmtests prints them: raw counters in, rows out.
//! Pure.

mod columns;
mod parse;

pub use columns::{Column, Source, columns};
pub use parse::{CountersError, Named, json, mmtests, parse, schedstat};

use serde::{Deserialize, Serialize};

/// Raw counters; `None`: the source does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Raw {
    /// `ttwu_count`: wakeups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttwu_count: Option<u64>,
    /// `ttwu_local`: those that ended on the waker's CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttwu_local: Option<u64>,
    /// `sis_search`: calls of select_idle_sibling().
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<u64>,
    /// `sis_domain_search`: searches that went on to the LLC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_search: Option<u64>,
    /// `sis_scanned`: CPUs looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scanned: Option<u64>,
    /// `sis_failed`: searches without an idle CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// `sis_recent_hit`: recent_used_cpu returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_hit: Option<u64>,
    /// `sis_recent_miss`: recent_used_cpu was a candidate but not usable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_miss: Option<u64>,
    /// `sis_core_search`: searches for an idle core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_search: Option<u64>,
    /// `sis_core_failed`: those without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_failed: Option<u64>,
}

/// Which patches' definition of a recent_used_cpu that missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RecentMiss {
    /// December 2020: it shares cache with the target, but was not usable.
    #[default]
    #[serde(rename = "2020")]
    Of2020,
    /// 2021: also where it does not share cache.
    #[serde(rename = "2021")]
    Of2021,
}

/// A counter of [`Raw`] by name: mmtests' row, the kernel's field, the counter.
pub(crate) type Field = (&'static str, &'static str, fn(&mut Raw) -> &mut Option<u64>);

/// Every counter that can be given.
pub(crate) const FIELDS: [Field; 10] = [
    ("TTWU Count", "ttwu_count", |raw| &mut raw.ttwu_count),
    ("TTWU Local", "ttwu_local", |raw| &mut raw.ttwu_local),
    ("SIS Search", "sis_search", |raw| &mut raw.search),
    ("SIS Domain Search", "sis_domain_search", |raw| &mut raw.domain_search),
    ("SIS Scanned", "sis_scanned", |raw| &mut raw.scanned),
    ("SIS Failures", "sis_failed", |raw| &mut raw.failed),
    ("SIS Recent Used Hit", "sis_recent_hit", |raw| &mut raw.recent_hit),
    ("SIS Recent Used Miss", "sis_recent_miss", |raw| &mut raw.recent_miss),
    ("SIS Core Search", "sis_core_search", |raw| &mut raw.core_search),
    ("SIS Core Miss", "sis_core_failed", |raw| &mut raw.core_failed),
];

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A share in percent.
    Percent(f64),
}

impl Value {
    /// The value as a number.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Percent(percent) => percent,
        }
    }
}

/// A row: mmtests' name and the value, `None` where its counters are not there.
pub type Row = (&'static str, Option<Value>);

impl Raw {
    /// What was counted between two readings of the same boot; the name of the first counter that went back.
    ///
    /// # Errors
    /// The name of a counter that is smaller in `self` than in `before`.
    pub fn since(mut self, mut before: Self) -> Result<Self, &'static str> {
        let mut between = Self::default();
        for (_, name, field) in FIELDS {
            *field(&mut between) = match (*field(&mut self), *field(&mut before)) {
                (Some(after), Some(before)) => Some(after.checked_sub(before).ok_or(name)?),
                _ => None,
            };
        }
        Ok(between)
    }

    /// Adds the counters of another CPU.
    pub fn add(&mut self, mut other: Self) {
        for (_, _, field) in FIELDS {
            if let Some(more) = *field(&mut other) {
                let sum = field(self).get_or_insert(0);
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// The rows under mmtests' names in mmtests' order.
    ///
    /// Fast searches are those that ended before the LLC domain; domain scanned is what the rest looked at. A share of
    /// nothing is 0, an efficiency of no scan 100.
    ///
    /// **Source**: mmtests, the extraction of its schedstat monitor.
    pub fn rows(&self) -> [Row; 18] {
        let Self { search, domain_search, scanned, failed, recent_hit, recent_miss, .. } = *self;
        let count = |counter: Option<u64>| counter.map(Value::Count);
        let with = |a: Option<u64>, b: Option<u64>, of: fn(u64, u64) -> u64| Some(of(a?, b?));
        // Counters summed over CPUs while they run can disagree by a few.
        let fast = with(search, domain_search, u64::saturating_sub);
        let domain_scanned = with(scanned, fast, u64::saturating_sub);
        let attempts = with(recent_hit, recent_miss, u64::saturating_add);
        let core_hit = with(self.core_search, self.core_failed, u64::saturating_sub);
        let found = with(search, failed, u64::saturating_sub);
        let percent =
            |part: Option<u64>, whole: Option<u64>, of: fn(u64, u64) -> f64| Some(Value::Percent(of(part?, whole?)));
        [
            ("TTWU Count", count(self.ttwu_count)),
            ("TTWU Local", count(self.ttwu_local)),
            ("SIS Search", count(search)),
            ("SIS Domain Search", count(domain_search)),
            ("SIS Scanned", count(scanned)),
            ("SIS Domain Scanned", count(domain_scanned)),
            ("SIS Failures", count(failed)),
            ("SIS Core Search", count(self.core_search)),
            ("SIS Core Hit", count(core_hit)),
            ("SIS Core Miss", count(self.core_failed)),
            ("SIS Recent Used Hit", count(recent_hit)),
            ("SIS Recent Used Miss", count(recent_miss)),
            ("SIS Recent Attempts", count(attempts)),
            ("SIS Search Efficiency", percent(search, scanned, efficiency)),
            ("SIS Domain Search Eff", percent(domain_search, domain_scanned, efficiency)),
            ("SIS Fast Success Rate", percent(fast, search, share)),
            ("SIS Success Rate", percent(found, search, share)),
            ("SIS Recent Success Rate", percent(recent_hit, attempts, share)),
        ]
    }
}

/// Change from `from` to `to` in percent; `None` from nothing.
pub fn change(from: Value, to: Value) -> Option<f64> {
    let (from, to) = (from.as_f64(), to.as_f64());
    if from == to {
        return Some(0.0);
    }
    (from != 0.0).then(|| 100.0 * (to - from) / from)
}

fn efficiency(searches: u64, scanned: u64) -> f64 {
    if scanned == 0 { 100.0 } else { 100.0 * searches as f64 / scanned as f64 }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(numbers: [u64; 6]) -> Raw {
        let [search, domain_search, scanned, failed, recent_hit, recent_miss] = numbers.map(Some);
        Raw { search, domain_search, scanned, failed, recent_hit, recent_miss, ..Raw::default() }
    }

    fn printed(raw: Raw) -> Vec<(&'static str, String)> {
        let print = |(name, value): Row| match value? {
            Value::Count(count) => Some((name, count.to_string())),
            Value::Percent(percent) => Some((name, format!("{percent:.2}"))),
        };
        raw.rows().into_iter().filter_map(print).collect()
    }

    /// Both columns of the table in the recent_used_cpu patch of December 2020, and the second set.
    #[test]
    fn the_published_tables_come_out_to_the_digit() {
        let sets = [
            (
                [5653107942, 3365067916, 112173512543, 2923185114, 56547, 1590899250],
                ["109885472517", "1590955797", "5.04", "3.06", "40.47", "48.29", "0.00"],
            ),
            (
                [5726545742, 3319768543, 99194352541, 2950166441, 118064916, 354942791],
                ["96787575342", "473007707", "5.77", "3.43", "42.03", "48.48", "24.96"],
            ),
            (
                [5596677950, 3268344934, 15909069113, 2944874939, 124265515, 338142547],
                ["13580736097", "462408062", "35.18", "24.07", "41.60", "47.38", "26.87"],
            ),
        ];
        let derived = [
            "SIS Domain Scanned",
            "SIS Recent Attempts",
            "SIS Search Efficiency",
            "SIS Domain Search Eff",
            "SIS Fast Success Rate",
            "SIS Success Rate",
            "SIS Recent Success Rate",
        ];
        for (numbers, expected) in sets {
            let printed = printed(raw(numbers));
            for (name, expected) in derived.into_iter().zip(expected) {
                let found = printed.iter().find(|(row, _)| *row == name).map(|(_, value)| value.as_str());
                assert_eq!(found, Some(expected), "{name}");
            }
        }
    }

    #[test]
    fn rows_without_their_counters_are_left_out() {
        let ttwu = Raw { ttwu_count: Some(7), ttwu_local: Some(3), ..Raw::default() };
        assert_eq!(printed(ttwu), [("TTWU Count", "7".to_owned()), ("TTWU Local", "3".to_owned())]);
        let core = Raw { core_search: Some(10), core_failed: Some(4), ..Raw::default() };
        let expected = [("SIS Core Search", "10"), ("SIS Core Hit", "6"), ("SIS Core Miss", "4")];
        assert_eq!(printed(core), expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn two_readings_make_a_difference_unless_they_go_back() {
        let (before, after) = (raw([1, 1, 2, 0, 0, 0]), raw([11, 4, 30, 2, 1, 5]));
        assert_eq!(after.since(before), Ok(raw([10, 3, 28, 2, 1, 5])));
        assert_eq!(before.since(after), Err("sis_search"));
        let mut sum = before;
        sum.add(after);
        assert_eq!(sum, raw([12, 5, 32, 2, 1, 5]));
    }

    #[test]
    fn change_is_relative_to_the_baseline() {
        assert_eq!(change(Value::Count(200), Value::Count(150)), Some(-25.0));
        assert_eq!(change(Value::Count(0), Value::Count(0)), Some(0.0));
        assert_eq!(change(Value::Count(0), Value::Count(7)), None);
        assert_eq!(change(Value::Percent(50.0), Value::Percent(75.0)), Some(50.0));
    }
}
