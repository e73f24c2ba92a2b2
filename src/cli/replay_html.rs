// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff replay --format html`: what was collected, and a second replay for the differences to explain.

use std::path::Path;

use crate::bins::{Bins, PICKS_MAX};
use crate::cli::output::Trouble;
use crate::cli::plan::ReplayPlan;
use crate::cli::progress::Bars;
use crate::replay::{Outcome, run};
use crate::report::html::{Explanation, PARTS_MAX, Part, report};
use crate::report::json::sum;

/// The page. Recordings that cannot be read twice (a pipe) are explained nowhere.
///
/// # Errors
/// As of the replay itself.
pub fn page(plan: &ReplayPlan, outcomes: &[Outcome], bins: &[Bins]) -> Result<String, Trouble> {
    let own = outcomes.len().min(PARTS_MAX);
    let each = PICKS_MAX / own.max(1);
    let mut parts = Vec::new();
    for ((outcome, bins), file) in outcomes.iter().zip(bins).zip(&plan.files).take(own) {
        let again = plan.again(file);
        let numbers = bins.picks.numbers(each);
        let explained = if again.is_some() { explained(plan, file, outcome, &numbers)? } else { Vec::new() };
        parts.push(Part { outcome, bins, explained, again });
    }
    let sum = (outcomes.len() > 1).then(|| sum(outcomes));
    Ok(report(&parts, &outcomes.iter().collect::<Vec<_>>(), sum.as_ref()))
}

fn explained(plan: &ReplayPlan, file: &Path, outcome: &Outcome, numbers: &[u64]) -> Result<Vec<Explanation>, Trouble> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let bars = Bars::new(plan.quiet);
    let mut found = Vec::new();
    let columns: Vec<_> = outcome.totals.columns.iter().map(|column| (column.spec.clone(), column.role)).collect();
    let each = &mut |explained| found.push(Explanation::new(&explained, &columns, &outcome.setup));
    let seen = run::explain_each(file, &plan.options, numbers, &bars, each);
    bars.finish();
    seen?;
    Ok(found)
}
