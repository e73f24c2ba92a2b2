// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff funcgraph`: durations per function, what changed between sets, and what an operation costs.

use crate::funcgraph::analysis::{
    Analysis, ChangeRow, ComparisonRow, CostRow, Estimate, FunctionRow, OperationRow, OverheadRow, SetRow,
};
use crate::report::layout::{Align, FAINT, columns, count, counted, paint, section};
use crate::scan_cost::{Row, ScanCost};
use crate::units::seconds;

/// Functions that are named one by one where a list could be long.
const NAMED: usize = 6;

/// The whole report.
pub fn text(analysis: &Analysis) -> String {
    let mut out = format!("sisdiff {}: function graph; durations in us\n", env!("CARGO_PKG_VERSION"));
    for set in &analysis.sets {
        out += &set_text(set);
    }
    for comparison in &analysis.comparisons {
        out += &comparison_text(comparison, &analysis.by);
    }
    for operation in &analysis.operations {
        out += &operation_text(operation, &analysis.by);
    }
    out += &format!("\n{}\n", paint(FAINT, "[low, high]: 95% of what calls drawn anew from these would give."));
    out
}

/// What scanning costs in a recording.
pub fn scan_cost(cost: &ScanCost) -> String {
    let mut out = section(&format!("time of select_task_rq_fair() by idle checks, {}", cost.file));
    let rows = scan_cost_rows(cost);
    use Align::{Left, Right};
    out += &columns(2, &[Left, Right, Right, Right, Right, Left, Right, Left, Right], &rows);
    let asked = format!(
        "{} of {} calls belong to one of {} decisions of {}; +-: standard error; the model's checks, the kernel's time \
         with the tracer's in it",
        count(cost.joined),
        count(cost.calls),
        count(cost.decisions),
        cost.model
    );
    out + &columns(2, &[Align::Wrap], &[vec![asked]])
}

/// By return; the first row is the head.
pub(super) fn scan_cost_rows(cost: &ScanCost) -> Vec<Vec<String>> {
    let mut rows = vec![head(&["return", "calls", "checks", "mean", "fixed", "", "ns per check", "", "R2"])];
    rows.extend(cost.rows.iter().map(scan_cost_cells));
    rows
}

fn scan_cost_cells(row: &Row) -> Vec<String> {
    let exit = row.exit.map_or_else(|| "all".to_owned(), |exit| format!("{exit:?}"));
    let mut cells = vec![exit, count(row.calls), format!("{:.1}", row.mean_probes), us(row.mean_ns)];
    cells.extend(match &row.cost {
        None => ["-".to_owned(), String::new(), "-".to_owned(), String::new(), "-".to_owned()],
        Some(cost) => [
            us(cost.fixed_ns),
            format!("+-{}", us(cost.fixed_error_ns)),
            format!("{:.1}", cost.per_probe_ns),
            format!("+-{:.1}", cost.per_probe_error_ns),
            format!("{:.2}", cost.r2),
        ],
    });
    cells
}

/// ns as us with three decimals, as the tracer prints them.
fn us(ns: f64) -> String {
    let text = format!("{:.3}", ns.abs() / 1000.0);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "000"));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let sign = if ns < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) { "-" } else { "" };
    format!("{sign}{whole}.{fraction}")
}

fn range(estimate: &Estimate) -> String {
    format!("[{}, {}]", us(estimate.low_ns), us(estimate.high_ns))
}

fn signed(ns: f64) -> String {
    let text = us(ns);
    if ns > 0.0 { format!("+{text}") } else { text }
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn set_text(set: &SetRow) -> String {
    let title = set.title.as_ref().map_or_else(String::new, |title| format!("\n  \"{title}\""));
    let mut out = section(&format!("{}  {}", set.label, set.source)).trim_end().to_owned() + &title + "\n";
    let mut rows = vec![head(&["function", "calls", "median", "mean", "", "trimmed"])];
    rows.extend(set.functions.iter().map(|f| {
        let [median, mean, range, trimmed, ..] = figures(f);
        vec![f.function.clone(), count(f.calls), median, mean, range, trimmed]
    }));
    use Align::{Left, Right};
    out += &columns(2, &[Left, Right, Right, Right, Left, Right], &rows);
    let mut rows = vec![head(&["function", "p90", "p99", "max", "total", "self"])];
    rows.extend(set.functions.iter().map(|f| {
        let [.., p90, p99, max, total, own] = figures(f);
        vec![f.function.clone(), p90, p99, max, total, own]
    }));
    out += "\n";
    out += &columns(2, &[Left, Right, Right, Right, Right, Right], &rows);
    out + &notes(set)
}

/// Figures of a function, us: median, mean and its interval, trimmed mean, p90, p99, longest, total, self time.
pub(super) fn figures(f: &FunctionRow) -> [String; 9] {
    let own = if f.with_children > 0 { us(f.self_ns as f64) } else { "=".to_owned() };
    let [median, trimmed] = [f.median_ns, f.trimmed_mean_ns].map(us);
    let [p90, p99, max, total] = [f.p90_ns, f.p99_ns, f.max_ns, f.total_ns].map(us);
    [median, us(f.mean.value_ns), range(&f.mean), trimmed, p90, p99, max, total, own]
}

/// What does not fit a table.
fn notes(set: &SetRow) -> String {
    let rows: Vec<Vec<String>> = note_rows(set).into_iter().map(Vec::from).collect();
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

/// The same, each with its key.
pub(super) fn note_rows(set: &SetRow) -> Vec<[String; 2]> {
    let mut rows: Vec<(String, String)> = Vec::new();
    if let Some(longest) = set.functions.iter().max_by(|a, b| a.max_ns.total_cmp(&b.max_ns)) {
        rows.push(("longest".to_owned(), longest_text(longest)));
    }
    if set.filtered > 0 {
        rows.push(("filtered".to_owned(), counted(set.filtered, "call left out", "calls left out")));
    }
    let part = |n: u64, one: &str, many: &str| (n > 0).then(|| counted(n, one, many));
    let unpaired: Vec<String> = set
        .unpaired
        .iter()
        .map(|row| {
            let parts = [
                part(row.exits, "exit without its entry", "exits without their entry"),
                part(row.entries, "entry without its exit", "entries without their exit"),
            ];
            format!("{}: {}", row.function, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
        })
        .chain(part(set.nameless_exits, "exit of an unknown function", "exits of unknown functions"))
        .collect();
    if !unpaired.is_empty() {
        rows.push(("unpaired".to_owned(), unpaired.join("; ")));
    }
    rows.extend(set.overhead.iter().map(|row| ("tracer".to_owned(), overhead_text(row))));
    if set.overhead.is_empty() {
        rows.push(("tracer".to_owned(), "its own cost is in each duration; nothing here tells how much".to_owned()));
    }
    rows.into_iter().map(|(key, value)| [key, value]).collect()
}

fn longest_text(longest: &FunctionRow) -> String {
    let at = longest.longest_at_ns.map_or_else(String::new, |ns| format!(" at {} s", seconds(ns)));
    let pid = longest.longest_pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    format!("{} {} us{at} on CPU {}{pid}", longest.function, us(longest.max_ns), longest.longest_cpu)
}

fn overhead_text(row: &OverheadRow) -> String {
    let inside = us(row.inside_ns);
    match row.outside_ns {
        Some(outside) => format!(
            "at least {inside} us of each duration is the tracer's; a traced call adds at least {} us more to its \
             callers (medians of {}, by when records were written)",
            us(outside),
            counted(row.calls, "call", "calls")
        ),
        None => format!(
            "about {inside} us of each duration is the tracer's (median of {} of a function that does nothing)",
            counted(row.calls, "call", "calls")
        ),
    }
}

fn comparison_text(comparison: &ComparisonRow, by: &str) -> String {
    let ComparisonRow { baseline, set, functions, only_in_one } = comparison;
    let mut out = section(&format!("{baseline} -> {set}, by {by}"));
    if functions.is_empty() {
        out += "  no function has calls in both\n";
    } else {
        let rows = change_rows(comparison);
        use Align::{Left, Right};
        out += &columns(2, &[Left, Right, Right, Right, Left, Right, Right], &rows);
        out += "  longer: how likely a call of the second is the longer; p: Mann-Whitney\n";
    }
    if !only_in_one.is_empty() {
        let more = only_in_one.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", … {more} more") } else { String::new() };
        let names = only_in_one.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        out += &columns(2, &[Align::Left, Align::Wrap], &[vec!["in one only".to_owned(), names + &more]]);
    }
    out
}

/// By function; the first row is the head.
pub(super) fn change_rows(comparison: &ComparisonRow) -> Vec<Vec<String>> {
    let names = ["function", &comparison.baseline, &comparison.set, "difference", "", "longer", "p"];
    std::iter::once(head(&names)).chain(comparison.functions.iter().map(change_cells)).collect()
}

fn change_cells(row: &ChangeRow) -> Vec<String> {
    let difference = &row.difference;
    vec![
        row.function.clone(),
        us(row.baseline_ns),
        us(row.other_ns),
        signed(difference.value_ns),
        range(difference),
        format!("{:.0}%", 100.0 * row.longer),
        if row.p < 0.0001 { "<0.0001".to_owned() } else { format!("{:.4}", row.p) },
    ]
}

fn operation_text(operation: &OperationRow, by: &str) -> String {
    let mut out = section(&format!("one operation = {}, by {by}", operation.operation));
    let rows = cost_rows(operation);
    use Align::{Left, Right};
    out += &columns(2, &[Left, Right, Left, Right, Left], &rows);
    if operation.sets.iter().any(|row| row.measured_ns.is_some()) {
        let rows = measured_rows(operation);
        out += "\n";
        out += &columns(2, &[Left, Right, Right, Right], &rows);
    }
    for row in &operation.sets {
        if let Some(function) = &row.missing {
            out += &format!("  {}: no calls of {function} there or in the baseline\n", row.set);
        }
    }
    out
}

/// What an operation costs, by set; the first row is the head.
pub(super) fn cost_rows(operation: &OperationRow) -> Vec<Vec<String>> {
    let head = head(&["set", "traced", "", "difference", ""]);
    std::iter::once(head).chain(operation.sets.iter().map(cost_cells)).collect()
}

/// What was measured of it, by set; the first row is the head.
pub(super) fn measured_rows(operation: &OperationRow) -> Vec<Vec<String>> {
    let head = head(&["set", "measured", "difference", "of that traced"]);
    std::iter::once(head).chain(operation.sets.iter().map(measured_cells)).collect()
}

fn cost_cells(row: &CostRow) -> Vec<String> {
    let estimate = |estimate: &Option<Estimate>, show: fn(f64) -> String| match estimate {
        Some(estimate) => [show(estimate.value_ns), range(estimate)],
        None => ["-".to_owned(), String::new()],
    };
    let mut cells = vec![row.set.clone()];
    cells.extend(estimate(&row.cost, us));
    cells.extend(estimate(&row.difference, signed));
    cells
}

fn measured_cells(row: &CostRow) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let share = row.difference.zip(row.measured_difference_ns).filter(|(_, measured)| *measured != 0.0);
    vec![
        row.set.clone(),
        or_dash(row.measured_ns.map(us)),
        or_dash(row.measured_difference_ns.map(signed)),
        or_dash(share.map(|(traced, measured)| format!("{:.0}%", 100.0 * traced.value_ns / measured))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_as_the_tracer_prints_them() {
        assert_eq!(us(2_080.0), "2.080");
        assert_eq!(us(-810.0), "-0.810");
        assert_eq!(us(1_234_567_890.0), "1,234,567.890");
        assert_eq!(us(-0.1), "0.000");
        assert_eq!(signed(190.0), "+0.190");
    }
}
