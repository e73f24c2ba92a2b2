// SPDX-License-Identifier: GPL-2.0-or-later
//! SIS rows as mmtests prints them: names and formulas of its schedstat comparison.

use crate::fair::SisCounters;

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

/// The rows of `counters`: mmtests' name, value, in mmtests' order.
///
/// Fast searches are those that ended before the LLC domain; domain scanned is what the rest looked at. A share of
/// nothing is 0, an efficiency of no scan 100.
pub fn rows(counters: &SisCounters) -> [(&'static str, Value); 13] {
    let &SisCounters { search, scanned, domain_search, failed, recent_hit, recent_miss, .. } = counters;
    // Counters summed over CPUs while they run can disagree by a few.
    let fast = search.saturating_sub(domain_search);
    let domain_scanned = scanned.saturating_sub(fast);
    let attempts = recent_hit + recent_miss;
    [
        ("SIS Search", Value::Count(search)),
        ("SIS Domain Search", Value::Count(domain_search)),
        ("SIS Scanned", Value::Count(scanned)),
        ("SIS Domain Scanned", Value::Count(domain_scanned)),
        ("SIS Failures", Value::Count(failed)),
        ("SIS Recent Used Hit", Value::Count(recent_hit)),
        ("SIS Recent Used Miss", Value::Count(recent_miss)),
        ("SIS Recent Attempts", Value::Count(attempts)),
        ("SIS Search Efficiency", Value::Percent(efficiency(search, scanned))),
        ("SIS Domain Search Eff", Value::Percent(efficiency(domain_search, domain_scanned))),
        ("SIS Fast Success Rate", Value::Percent(share(fast, search))),
        ("SIS Success Rate", Value::Percent(share(search.saturating_sub(failed), search))),
        ("SIS Recent Success Rate", Value::Percent(share(recent_hit, attempts))),
    ]
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

    fn printed(counters: SisCounters) -> Vec<String> {
        let print = |(_, value)| match value {
            Value::Count(count) => count.to_string(),
            Value::Percent(percent) => format!("{percent:.2}"),
        };
        rows(&counters).into_iter().map(print).collect()
    }

    fn counters(numbers: [u64; 6]) -> SisCounters {
        let [search, domain_search, scanned, failed, recent_hit, recent_miss] = numbers;
        SisCounters { search, domain_search, scanned, failed, recent_hit, recent_miss, recent_miss_2021: 0 }
    }

    /// Both columns of the table in the recent_used_cpu patch of December 2020.
    #[test]
    fn the_published_tbench_table_comes_out_to_the_digit() {
        let before = counters([5653107942, 3365067916, 112173512543, 2923185114, 56547, 1590899250]);
        assert_eq!(
            printed(before),
            [
                "5653107942",
                "3365067916",
                "112173512543",
                "109885472517",
                "2923185114",
                "56547",
                "1590899250",
                "1590955797",
                "5.04",
                "3.06",
                "40.47",
                "48.29",
                "0.00",
            ]
        );
        let after = counters([5726545742, 3319768543, 99194352541, 2950166441, 118064916, 354942791]);
        assert_eq!(
            printed(after),
            [
                "5726545742",
                "3319768543",
                "99194352541",
                "96787575342",
                "2950166441",
                "118064916",
                "354942791",
                "473007707",
                "5.77",
                "3.43",
                "42.03",
                "48.48",
                "24.96",
            ]
        );
    }

    #[test]
    fn the_second_set_comes_out_to_the_digit() {
        let set = counters([5596677950, 3268344934, 15909069113, 2944874939, 124265515, 338142547]);
        let printed = printed(set);
        assert_eq!(printed[3], "13580736097");
        assert_eq!(printed[8..], ["35.18", "24.07", "41.60", "47.38", "26.87"]);
    }

    #[test]
    fn nothing_searched_divides_by_nothing() {
        let printed = printed(SisCounters::default());
        assert_eq!(printed[8..], ["100.00", "100.00", "0.00", "0.00", "0.00"]);
        let fast_only = counters([10, 0, 10, 0, 0, 0]);
        assert_eq!(rows(&fast_only)[9].1, Value::Percent(100.0));
        assert_eq!(rows(&fast_only)[10].1, Value::Percent(100.0));
        let torn = counters([5, 7, 1, 9, 0, 0]);
        assert_eq!(rows(&torn)[3].1, Value::Count(1));
    }

    #[test]
    fn change_is_relative_to_the_baseline() {
        assert_eq!(change(Value::Count(200), Value::Count(150)), Some(-25.0));
        assert_eq!(change(Value::Count(0), Value::Count(0)), Some(0.0));
        assert_eq!(change(Value::Count(0), Value::Count(7)), None);
        assert_eq!(change(Value::Percent(50.0), Value::Percent(75.0)), Some(50.0));
    }
}
