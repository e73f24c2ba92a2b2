// SPDX-License-Identifier: GPL-2.0-or-later
//! `docs/reality.md`: recordings beside their simulations.

use crate::report::layout::count;
use crate::simulate::reality::{BUSY_MAX, FACTOR_MAX, Reality, Spread};

/// The document.
pub fn markdown(rows: &[Reality], command: &str) -> String {
    let seeds = rows.iter().map(|row| row.simulated.len()).max().unwrap_or(0);
    let mut out = format!(
        "# Recordings, simulated\n\nWritten by `{command}`; do not edit. Each recording's tasks run closed loop on its own \
         machine under the model of its kernel: what they do, how long, whom they wake and which interrupts come when is the \
         recording's, where they run is the simulation's. Not fed in: any placement but where a task was first seen and \
         where a new one began.\n\n\
         {seeds} seeds, which differ in how long idle CPUs take to begin. *Error*: mean absolute difference of the CPUs' \
         busy shares, in points: the median of the seeds, and least to greatest. *By rank*: the same, busiest CPU against \
         busiest. *Factor*: migrations by those recorded. *Within*: seeds with an error under {BUSY_MAX:.0} points and a \
         factor of at most {FACTOR_MAX:.0} either way.\n\n\
         | recording | model | CPUs | busy, % | error | by rank | migrations | factor | within | p50, us | p99, us |\n\
         |---|---|---:|---:|---|---:|---:|---|---:|---:|---:|\n"
    );
    for row in rows {
        let three = |spread: Option<Spread>, decimals: usize| {
            spread.map_or("-".to_owned(), |Spread { least, median, greatest }| {
                format!("{median:.decimals$} ({least:.decimals$} to {greatest:.decimals$})")
            })
        };
        let pair = |(recorded, simulated): (f64, f64)| format!("{recorded:.0} → {simulated:.0}");
        out += &format!(
            "| {} | {} | {} | {:.1} | {} | {} | {} | {} | {} of {} | {} | {} |\n",
            row.label,
            row.model,
            row.recorded.busy_ns.len(),
            row.recorded.busy(),
            three(row.busy_error(), 1),
            row.busy_error_by_rank().map_or("-".to_owned(), |spread| format!("{:.1}", spread.median)),
            count(row.recorded.migrations),
            three(row.factor(), 2),
            row.within(),
            row.simulated.len(),
            pair(row.latency_us(0.5)),
            pair(row.latency_us(0.99)),
        );
    }
    let met = rows.iter().filter(|row| 2 * row.within() > row.simulated.len()).count();
    out += &format!(
        "\n{met} of {} recordings are within the bounds with most seeds. Which of several like CPUs a task ends on is chance \
         where few tasks run for long: there the error by CPU is large and by rank small.\n",
        rows.len()
    );
    out
}
