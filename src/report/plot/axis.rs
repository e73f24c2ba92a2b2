// SPDX-License-Identifier: GPL-2.0-or-later
//! Where ticks stand and what they say.

use crate::report::layout::count;
use crate::report::plot::svg::Tick;

/// About so many ticks.
const TICKS: f64 = 5.0;

/// 1, 2 or 5 times a power of ten: a step that gives `span` some ticks.
fn step(span: f64) -> f64 {
    let rough = span / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * power).find(|&step| step >= rough * 0.999).unwrap_or(10.0 * power)
}

/// The end of an axis for counts up to `max`, and its ticks: whole numbers.
pub fn counts(max: u64) -> (f64, Vec<Tick>) {
    let step = step(max.max(1) as f64).max(1.0);
    let end = (max.max(1) as f64 / step).ceil() * step;
    let ticks = (0..=(end / step).round() as u64).map(|at| at as f64 * step);
    (end, ticks.map(|value| Tick { at: value / end, label: count(value as u64) }).collect())
}

/// The end of an axis for percents up to `max`, and its ticks.
pub fn percents(max: f64) -> (f64, Vec<Tick>) {
    let max = if max > 0.0 { max } else { 1.0 };
    let step = step(max);
    let end = (max / step).ceil() * step;
    let decimals = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let label = |value: f64| format!("{value:.decimals$}%");
    let ticks = (0..=(end / step).round() as u64).map(|at| at as f64 * step);
    (end, ticks.map(|value| Tick { at: value / end, label: label(value) }).collect())
}

/// Ticks of a time axis from `from_ns` to `to_ns`: seconds of the trace's clock.
pub fn seconds(from_ns: u64, to_ns: u64) -> Vec<Tick> {
    let span = to_ns.saturating_sub(from_ns).max(1) as f64;
    let step_ns = step(span).max(1.0) as u64;
    let decimals = 9_usize.saturating_sub(step_ns.ilog10() as usize);
    let first = from_ns.div_ceil(step_ns);
    let ticks = (first..).map(|at| at.saturating_mul(step_ns)).take_while(|&ns| ns <= to_ns).take(20);
    let label = |ns: u64| {
        let text = format!("{}.{:09}", count(ns / 1_000_000_000), ns % 1_000_000_000);
        let keep = text.len() - 9 + decimals;
        text[..keep].trim_end_matches('.').to_owned()
    };
    ticks.map(|ns| Tick { at: (ns - from_ns) as f64 / span, label: label(ns) }).collect()
}

/// A duration in the unit that suits it: `850 ns`, `2.08 us`, `1.5 ms`, `3 s`.
pub fn duration(ns: u64) -> String {
    let (unit, by) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let value = ns as f64 / by;
    let text = if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    };
    format!("{text} {unit}")
}

/// Ticks of an axis of durations with its logarithm from `from_ns` (at least 1) to `to_ns`: powers of ten, and as many of
/// their multiples as a short axis needs.
pub fn log_durations(from_ns: u64, to_ns: u64) -> Vec<Tick> {
    /// Multiples of a power of ten, in tenths.
    const TENTHS: [&[u64]; 4] = [
        &[10],
        &[10, 20, 50],
        &[10, 20, 30, 40, 50, 60, 80],
        &[10, 12, 14, 16, 18, 20, 22, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90],
    ];
    let (from, to) = ((from_ns.max(1) as f64).ln(), (to_ns.max(2) as f64).ln());
    let ticks = |tenths: &[u64]| -> Vec<Tick> {
        let powers = (0..=13_u32).map(|power| 10_u64.pow(power));
        let values = powers.flat_map(|power| tenths.iter().map(move |by| power * by).filter(|tenth| tenth % 10 == 0));
        let inside = values.map(|tenth| tenth / 10).filter(|&ns| (from_ns.max(1)..=to_ns).contains(&ns));
        inside.map(|ns| Tick { at: ((ns as f64).ln() - from) / (to - from), label: round(ns) }).collect()
    };
    TENTHS.into_iter().map(ticks).find(|ticks| ticks.len() >= 3).unwrap_or_else(|| ticks(TENTHS[3]))
}

/// A duration with no more digits than it needs.
fn round(ns: u64) -> String {
    let (unit, by) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let text = format!("{}.{:03}", ns / by, ns % by * 1_000 / by);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn counts_have_whole_ticks() {
        assert_eq!(labels(&counts(0).1), ["0", "1"]);
        assert_eq!(labels(&counts(3).1), ["0", "1", "2", "3"]);
        assert_eq!(labels(&counts(4_321).1), ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]);
    }

    #[test]
    fn percents_have_the_decimals_of_their_step() {
        assert_eq!(labels(&percents(0.04).1), ["0.00%", "0.01%", "0.02%", "0.03%", "0.04%"]);
        assert_eq!(labels(&percents(37.0).1), ["0%", "10%", "20%", "30%", "40%"]);
    }

    #[test]
    fn times_are_those_of_the_trace() {
        let ticks = seconds(12_153_288_000, 13_053_288_000);
        assert_eq!(labels(&ticks), ["12.2", "12.4", "12.6", "12.8", "13.0"]);
        assert!((ticks[0].at - 0.0519).abs() < 0.001, "{ticks:?}");
        assert_eq!(labels(&seconds(5, 5)), ["0.000000005", "0.000000006"][..1]);
        assert_eq!(labels(&seconds(0, 40_000_000_000)), ["0", "10", "20", "30", "40"]);
    }

    #[test]
    fn durations_have_their_unit() {
        let texts = [7, 999, 2_080, 45_600, 123_456, 1_500_000, 12_000_000_000].map(duration);
        assert_eq!(texts, ["7 ns", "999 ns", "2.08 us", "45.6 us", "123 us", "1.50 ms", "12.0 s"]);
        assert_eq!(labels(&log_durations(900, 20_000_000)), ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        assert_eq!(
            labels(&log_durations(1_300, 3_200)),
            ["1.4 us", "1.6 us", "1.8 us", "2 us", "2.2 us", "2.5 us", "3 us"]
        );
        assert_eq!(labels(&log_durations(4_000, 60_000)), ["5 us", "10 us", "20 us", "50 us"]);
        assert!(log_durations(1, u64::MAX).iter().all(|tick| (0.0..=1.0).contains(&tick.at)));
    }
}
