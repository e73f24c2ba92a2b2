// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff replay` and `sisdiff explain` carried out.

use std::io::Write;
use std::process::ExitCode;

use crate::bins::{Bins, Collector};
use crate::cli::EXIT_TROUBLE;
use crate::cli::args::ReplayFormat;
use crate::cli::output::{Trouble, print};
use crate::cli::plan::{ExplainPlan, ReplayPlan};
use crate::cli::progress::Bars;
use crate::cli::replay_export;
use crate::cli::replay_html;
use crate::cli::sink::{Patient, Sink};
use crate::cli::trees;
use crate::cli::values::FailOn;
use crate::replay::run::{self, Job};
use crate::replay::{Outcome, ReplayError, Totals};
use crate::report::explain::{Names, explain as explain_text};
use crate::report::json::{Report, sum};
use crate::report::shell::printable;
use crate::report::{decisions, text};

/// A gate: differences were found that `--fail-on` asked for.
pub const EXIT_FOUND: u8 = 1;

/// Width of an explanation where there is no terminal.
pub const DEFAULT_WIDTH: usize = 100;

/// Replays, reports, and says whether `--fail-on` holds.
///
/// # Errors
/// Whatever keeps a recording from being replayed or the report from being written.
pub fn replay(plan: &ReplayPlan) -> Result<ExitCode, Trouble> {
    if plan.files.is_empty() && plan.format != ReplayFormat::Json {
        anstream::eprintln!("sisdiff: no recording is in this shard");
        return Ok(ExitCode::SUCCESS);
    }
    // Opened first: what cannot be written is told before the work, not after it.
    let mut decisions = plan.decisions.as_deref().map(Sink::open).transpose()?;
    if replay_export::is_export(plan.format) {
        return exported(plan, decisions);
    }
    let output = plan.output.as_deref().map(Sink::open).transpose()?;
    let (outcomes, bins) = run_all(plan, decisions.as_mut())?;
    warn(&outcomes);
    trees::write_coverage(&plan.trees, plan.options.entrants())?;
    let code = verdict(&outcomes, plan);
    let written = decisions.map_or(Ok(()), Sink::finish).and_then(|()| write_report(plan, outcomes, &bins, output));
    match written {
        // Nobody reads on, but somebody may wait for the exit code.
        Err(Trouble::BrokenPipe) => Ok(code),
        written => written.map(|()| code),
    }
}

/// The same, where every decision is written as it comes.
fn exported(plan: &ReplayPlan, mut decisions: Option<Sink>) -> Result<ExitCode, Trouble> {
    let written =
        with_job(plan, |job| with_sink(plan, decisions.as_mut(), |to| Ok(replay_export::write(plan, job, to))));
    let outcomes = match written? {
        Err(Trouble::BrokenPipe) => return Ok(ExitCode::SUCCESS),
        written => written?,
    };
    warn(&outcomes);
    trees::write_coverage(&plan.trees, plan.options.entrants())?;
    let code = verdict(&outcomes, plan);
    decisions.map_or(Ok(()), Sink::finish)?;
    Ok(code)
}

/// Rules of a side file that matched in no recording: likely a mistake in it.
fn warn(outcomes: &[Outcome]) {
    let used: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.setup.affinity.as_ref()).collect();
    let Some(first) = used.first() else { return };
    for (at, rule) in first.rules.iter().enumerate() {
        if used.iter().all(|using| using.rules.get(at).is_none_or(|rule| rule.tasks == 0)) {
            let text = format!("warning: {}: {} matched no task", first.file, rule.rule);
            anstream::eprintln!("sisdiff: {}", printable(&text));
        }
    }
}

fn run_all(plan: &ReplayPlan, decisions: Option<&mut Sink>) -> Result<(Vec<Outcome>, Vec<Bins>), Trouble> {
    let (files, threads, line) = (&plan.files, plan.threads, decisions::line);
    let seen = with_job(plan, |job| {
        with_sink(plan, decisions, |to| match plan.format {
            ReplayFormat::Json | ReplayFormat::Html => {
                let seen = run::observe(files, job, threads, line, to, |_| Ok(Collector::default()))?;
                Ok(seen.into_iter().map(collected).unzip())
            }
            _ => Ok((run::replay(files, job, threads, line, to)?, Vec::new())),
        })
    });
    Ok(seen?)
}

/// What to do with each recording, with bars while it is done.
fn with_job<T>(plan: &ReplayPlan, act: impl FnOnce(&Job<'_>) -> T) -> T {
    let bars = Bars::new(plan.quiet);
    let filter = |first_ns| plan.filter.of(first_ns);
    let job = Job { options: &plan.options, filter: &filter, filters: &plan.filter.given, progress: &bars };
    let done = act(&job);
    bars.finish();
    done
}

/// With where decisions go; where an exit code is wanted all the same, nobody needs to read them to the end.
fn with_sink<T>(
    plan: &ReplayPlan,
    decisions: Option<&mut Sink>,
    act: impl FnOnce(Option<(&str, &mut (dyn Write + Send))>) -> Result<T, ReplayError>,
) -> Result<T, ReplayError> {
    let Some(sink) = decisions else { return act(None) };
    let name = sink.name();
    match plan.fail_on {
        None => act(Some((&name, sink))),
        Some(_) => act(Some((&name, &mut Patient::new(sink)))),
    }
}

/// What bins tell that a report has, too.
fn collected((mut outcome, collector): (Outcome, Collector)) -> (Outcome, Bins) {
    let bins = collector.bins();
    outcome.totals.latency = Some(bins.latencies.all.clone());
    (outcome, bins)
}

fn write_report(plan: &ReplayPlan, outcomes: Vec<Outcome>, bins: &[Bins], output: Option<Sink>) -> Result<(), Trouble> {
    if plan.quiet && output.is_none() {
        return Ok(());
    }
    let report = match plan.format {
        ReplayFormat::Json => {
            Report::new(outcomes, plan.shards.clone()).to_json().map_err(|error| Trouble::Usage(error.to_string()))?
        }
        ReplayFormat::Html => replay_html::page(plan, &outcomes, bins)?,
        _ => text_report(plan, &outcomes),
    };
    let Some(mut sink) = output else { return print(&report) };
    if plan.output.as_deref().is_some_and(crate::cli::sink::is_stdout) {
        return print(&report);
    }
    let plain = anstream::adapter::strip_str(&report).to_string();
    sink.write_all(plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}

fn text_report(plan: &ReplayPlan, outcomes: &[Outcome]) -> String {
    let files = outcomes.iter().zip(&plan.files);
    let mut parts: Vec<String> =
        files.map(|(outcome, file)| text::outcome(outcome, plan.again(file).as_deref())).collect();
    if outcomes.len() > 1 {
        parts.push(text::sum(outcomes, &sum(outcomes)));
    }
    parts.join("\n")
}

/// The exit code, and a word on stderr where there was nothing to judge by.
fn verdict(outcomes: &[Outcome], plan: &ReplayPlan) -> ExitCode {
    if outcomes.is_empty() {
        // A shard without a recording.
        return ExitCode::SUCCESS;
    }
    let totals = sum(outcomes);
    let decisions = totals.decisions.sum();
    let compared: u64 = shares(&totals).map(|(_, compared)| compared).sum();
    let filters = if plan.filter.given.is_empty() { "" } else { " that the filters let through" };
    let Some(fail_on) = plan.fail_on else {
        if decisions == 0 && !plan.quiet {
            anstream::eprintln!("sisdiff: no decision{filters}: nothing was compared");
        }
        return ExitCode::SUCCESS;
    };
    if is_found(&totals, fail_on) {
        return ExitCode::from(EXIT_FOUND);
    }
    if compared > 0 {
        return ExitCode::SUCCESS;
    }
    let why = match decisions {
        0 => format!("no decision{filters}"),
        n => format!("none of {n} decisions has a verdict, as their inputs are unknown"),
    };
    anstream::eprintln!("sisdiff: --fail-on: nothing was compared: {why}");
    ExitCode::from(EXIT_TROUBLE)
}

/// Whether `totals` have what `fail_on` asks for: wakeups, forks and execs together, the worst patched implementation.
pub fn is_found(totals: &Totals, fail_on: FailOn) -> bool {
    match fail_on {
        FailOn::Wrong => totals.patched().any(|column| column.wrong.sum() > 0 || column.faults > 0),
        FailOn::Any => shares(totals).any(|(different, _)| different > 0),
        FailOn::Share(limit) => {
            shares(totals).any(|(different, compared)| 100.0 * different as f64 > limit * compared as f64)
        }
    }
}

/// Of each patched implementation how many decisions differ, out of how many with a verdict.
fn shares(totals: &Totals) -> impl Iterator<Item = (u64, u64)> + '_ {
    totals.comparisons.iter().map(|comparison| {
        let tallies = comparison.verdicts.named();
        let different = tallies.iter().map(|(_, tally)| tally.different.sum()).sum();
        (different, tallies.iter().map(|(_, tally)| tally.compared()).sum())
    })
}

/// Explains one decision.
///
/// # Errors
/// Whatever keeps the recording from being replayed, and that it has no such decision.
pub fn explain(plan: &ExplainPlan) -> Result<(), Trouble> {
    let bars = Bars::new(false);
    let explanation = run::explain(&plan.file, &plan.options, |first_ns| plan.which(first_ns), &bars);
    bars.finish();
    let explanation = explanation?;
    trees::write_coverage(&plan.trees, plan.options.entrants())?;
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let width = plan.width.map(usize::from).or_else(terminal).unwrap_or(DEFAULT_WIDTH).clamp(60, 400);
    let names = Names { columns: explanation.columns };
    let file = printable(&plan.file.display().to_string());
    print(&explain_text(&file, &explanation.explained, &names, &explanation.setup, width))
}
