// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff gate check` carried out.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::EXIT_TROUBLE;
use crate::cli::gate_args::{CheckArgs, GateFormat};
use crate::cli::gate_origin::made_from;
use crate::cli::gate_plan::{Loaded, Only, Product, Trace};
use crate::cli::gate_store::{Entry, Store, Stored};
use crate::cli::output::{Trouble as CliTrouble, print};
use crate::cli::progress::Many;
use crate::cli::replay::EXIT_FOUND;
use crate::cli::sink::{self, Sink};
use crate::gate::glean::{Named, violations};
use crate::gate::origin::MadeFrom;
use crate::gate::result::Verdict;
use crate::gate::{Check, Gate, Gleaner, Rules, Snapshot, SnapshotError, Status, Trouble, compare};
use crate::replay::run::{self, Job};
use crate::replay::{Filter, Outcome};
use crate::report::shell::printable;
use crate::report::{gate, gate_ci, gate_json, gate_junit, gate_sarif};

/// Replays, compares, reports, and says how the gate stands.
///
/// # Errors
/// Whatever keeps the gate from being checked at all, or a report from being written.
pub fn check(args: &CheckArgs) -> Result<ExitCode, CliTrouble> {
    let loaded = Loaded::new(&args.config.config)?;
    let only = Only::new(&args.only.only)?;
    let (traces, troubles) = loaded.traces();
    // Opened first: what cannot be written is told before the work, not after it.
    let reports = open_reports(args, &loaded, &traces)?;
    let products = loaded.products(&traces, |trace, pair| only.has(&trace.name, &pair.name))?;
    if products.is_empty() && troubles.is_empty() {
        return Err(loaded.has_none_of());
    }
    let mut result = replay_all(args, &loaded, &products);
    result.troubles.splice(0..0, troubles);
    result.is_part = only.is_part();
    if !only.is_part() {
        let orphans = orphans(&loaded, &traces, &result.troubles);
        result.troubles.extend(orphans);
    }
    let code = match result.verdict() {
        Verdict::Unchanged => ExitCode::SUCCESS,
        Verdict::Changed => ExitCode::from(EXIT_FOUND),
        Verdict::Trouble => ExitCode::from(EXIT_TROUBLE),
    };
    let is_told = args.format == GateFormat::Text && args.output.is_none() && !args.quiet;
    if !is_told {
        result.all_troubles().for_each(|one| anstream::eprintln!("sisdiff: {}", printable(&one.to_string())));
    }
    match write(args, &loaded, &result, reports) {
        // Nobody reads on, but somebody may wait for the exit code.
        Err(CliTrouble::BrokenPipe) => Ok(code),
        written => written.map(|()| code),
    }
}

type Reports = Vec<(GateFormat, PathBuf, Sink)>;

fn open_reports(args: &CheckArgs, loaded: &Loaded, traces: &[Trace]) -> Result<Reports, CliTrouble> {
    let mut wanted: Vec<(&str, GateFormat, &Path)> = Vec::new();
    wanted.extend(args.output.as_deref().map(|path| ("--output", args.format, path)));
    wanted.extend(args.report.iter().map(|(format, path)| ("--report", *format, path.as_path())));
    let mut inputs = vec![("the configuration", args.config.config.clone())];
    inputs.extend(traces.iter().map(|trace| ("the recording", trace.path.clone())));
    for entry in loaded.store.entries().unwrap_or_default() {
        inputs.push(("the snapshot", loaded.store.path(&entry.stem)));
    }
    let mut outputs: Vec<(&str, &Path)> = wanted.iter().map(|&(flag, _, path)| (flag, path)).collect();
    if args.output.is_none() && !args.quiet {
        outputs.push(("the report", Path::new("-")));
    }
    sink::check(&outputs, &inputs)?;
    wanted.into_iter().map(|(_, format, path)| Ok((format, path.to_owned(), Sink::open(path)?))).collect()
}

fn write(args: &CheckArgs, loaded: &Loaded, result: &Gate, reports: Reports) -> Result<(), CliTrouble> {
    for (format, path, mut sink) in reports {
        let report = render(format, result, loaded);
        if sink::is_stdout(&path) {
            print(&report)?;
            continue;
        }
        let plain = anstream::adapter::strip_str(&report).to_string();
        sink.write_all(plain.as_bytes()).map_err(|error| CliTrouble::write(&sink.name(), &error))?;
        sink.finish()?;
    }
    if args.quiet || args.output.is_some() { Ok(()) } else { print(&render(args.format, result, loaded)) }
}

fn render(format: GateFormat, result: &Gate, loaded: &Loaded) -> String {
    match format {
        GateFormat::Text => gate::text(result, &loaded.flag()),
        GateFormat::Json => gate_json::json(result),
        GateFormat::Junit => gate_junit::junit(result),
        GateFormat::Github => gate_ci::github(result),
        GateFormat::Markdown => gate_ci::markdown(result),
        GateFormat::Sarif => gate_sarif::sarif(&gate_sarif::of_gate(result)),
    }
}

fn replay_all(args: &CheckArgs, loaded: &Loaded, products: &[Product<'_>]) -> Gate {
    let threads = args.threads.map(usize::from);
    let bar = Many::new(args.quiet, products.len());
    let found = run::all(products, threads, |product| {
        let found = replay_one(loaded, product, products.len(), threads, &bar, !args.no_new);
        bar.done();
        found
    });
    bar.finish();
    let (mut checks, mut troubles) = (Vec::with_capacity(found.len()), Vec::new());
    for (check, trouble) in found {
        checks.push(check);
        troubles.extend(trouble);
    }
    let (config, rules) = (loaded.name.clone(), loaded.config.rules.clone());
    Gate { config, rules, checks, troubles, is_part: false }
}

/// Replays one recording with one pair; the second is trouble with what should be beside its snapshot.
fn replay_one(
    loaded: &Loaded,
    product: &Product<'_>,
    replays: usize,
    threads: Option<usize>,
    bar: &Many,
    writes: bool,
) -> (Check, Option<Trouble>) {
    let Product { trace, pair, options } = product;
    let stem = Store::stem(&trace.name, &pair.name);
    let specs = [pair.baseline.to_string(), pair.patched.to_string()];
    let mut check = Check {
        trace: trace.name.clone(),
        path: trace.path.display().to_string(),
        pair: pair.name.clone(),
        specs,
        snapshot: loaded.store.path(&stem).display().to_string(),
        status: Status::Same,
        changes: Vec::new(),
        texts: None,
        old_specs: None,
        violations: Vec::new(),
        is_pending: false,
    };
    // Read before the replay: what changes meanwhile makes the result stale.
    let made_from = if writes { made_from(loaded, product) } else { MadeFrom::new() };
    let mut gleaner = Gleaner::new(&loaded.config.lock, loaded.config.listed);
    let job = Job { options, filter: &|_| Filter::default(), filters: &[], progress: bar };
    let outcome = run::decisions_among(&trace.path, &job, replays, threads, &mut |_, row, _| {
        gleaner.row(row);
        Ok(())
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            check.status = Status::Trouble(Trouble::Other(error.to_string()));
            return (check, None);
        }
    };
    let mut new = glean(gleaner, &outcome, &check);
    check.violations = violations(&outcome.totals);
    judge(&mut check, loaded.store.read(&stem), &new, &loaded.config.rules);
    new.made_from = made_from;
    let trouble = if writes { leave(&mut check, &loaded.store, &stem, &new) } else { None };
    (check, trouble)
}

fn glean(gleaner: Gleaner, outcome: &Outcome, check: &Check) -> Snapshot {
    let [baseline, patched] = &check.specs;
    gleaner.snapshot(outcome, &Named { trace: &check.trace, pair: &check.pair, baseline, patched })
}

/// Compares what there is now with what was stored.
fn judge(check: &mut Check, stored: Stored, new: &Snapshot, rules: &Rules) {
    let snapshot = check.snapshot.clone();
    let text = new.print();
    let (status, old) = match stored {
        Stored::None => (Status::New, String::new()),
        Stored::Unreadable(why) => (Status::Trouble(Trouble::UnreadableSnapshot { snapshot, why }), String::new()),
        Stored::Not(SnapshotError::Version { found }) => {
            (Status::Trouble(Trouble::SnapshotVersion { snapshot, found }), String::new())
        }
        Stored::Not(error) => {
            (Status::Trouble(Trouble::UnreadableSnapshot { snapshot, why: error.to_string() }), String::new())
        }
        Stored::Snapshot(old, old_text) => {
            check.changes = compare(&old, new, rules);
            let specs = [old.head.baseline.clone(), old.head.patched.clone()];
            check.old_specs = (specs != check.specs).then_some(specs);
            check.violations.iter_mut().for_each(|one| one.is_known = old.knows(one.oracle, one.role));
            let status = if old.head.sha256 != new.head.sha256 {
                let (found, expected) = (new.head.sha256.clone(), old.head.sha256.clone());
                Status::Trouble(Trouble::ChangedTrace { trace: check.path.clone(), found, snapshot, expected })
            } else if check.counted().next().is_some() {
                Status::Changed
            } else {
                Status::Same
            };
            (status, old_text)
        }
    };
    check.texts = (status != Status::Same).then_some([old, text]);
    check.status = status;
}

/// Leaves the new text beside the snapshot, or takes an old one away.
fn leave(check: &mut Check, store: &Store, stem: &str, new: &Snapshot) -> Option<Trouble> {
    let done = match &check.texts {
        Some(_) => store.write_pending(stem, &new.print()),
        None => store.reject(stem),
    };
    check.is_pending = check.texts.is_some() && done.is_ok();
    let path = store.pending_path(stem);
    done.err().map(|error| Trouble::Other(format!("{}: cannot be written ({error})", path.display())))
}

/// Snapshots of recordings that are not there, and of what the configuration does not mean.
pub fn orphans(loaded: &Loaded, traces: &[Trace], told: &[Trouble]) -> Vec<Trouble> {
    let entries = match loaded.store.entries() {
        Ok(entries) => entries,
        Err(error) => return vec![Trouble::Other(format!("{}: cannot be listed ({error})", loaded.config.snapshots))],
    };
    let there: BTreeSet<&str> = traces.iter().map(|trace| trace.name.as_str()).collect();
    let checked: BTreeSet<String> = traces
        .iter()
        .flat_map(|trace| loaded.config.pairs.iter().map(|pair| Store::stem(&trace.name, &pair.name)))
        .collect();
    let mut found = Vec::new();
    let is_told = |entry: &Entry| {
        // What waits beside a snapshot goes with it.
        entry.is_pending && entries.iter().any(|other| !other.is_pending && other.stem == entry.stem)
    };
    for entry in entries.iter().filter(|entry| !checked.contains(&entry.stem) && !is_told(entry)) {
        if entry.is_pending {
            found.extend(waiting_orphan(loaded, &entry.stem));
            continue;
        }
        let snapshot = loaded.store.path(&entry.stem).display().to_string();
        let config = loaded.name.clone();
        let trouble = match loaded.store.read(&entry.stem) {
            // Somebody else's.
            Stored::None | Stored::Not(SnapshotError::Other) => continue,
            Stored::Snapshot(old, _) => {
                let (trace, pair) = (&old.head.trace, &old.head.pair);
                let path = loaded.folder.join(trace).display().to_string();
                if loaded.pair(pair).is_none() {
                    let why = format!("is of the pair {pair:?}, which {config} does not have");
                    Trouble::Orphan { snapshot, why, config }
                } else if there.contains(trace.as_str()) {
                    let why = format!("is of {trace} and {pair}, which have a snapshot of another name");
                    Trouble::Orphan { snapshot, why, config }
                } else if loaded.means(trace) {
                    let is_told = |one: &Trouble| matches!(one, Trouble::MissingTrace { trace, .. } if *trace == path);
                    if told.iter().chain(&found).any(is_told) {
                        continue;
                    }
                    loaded.unfound(trace, &snapshot)
                } else {
                    let why = format!("is of {trace}, which {config} does not mean");
                    Trouble::Orphan { snapshot, why, config }
                }
            }
            Stored::Not(SnapshotError::Version { found }) => Trouble::SnapshotVersion { snapshot, found },
            Stored::Not(error) => Trouble::UnreadableSnapshot { snapshot, why: error.to_string() },
            Stored::Unreadable(why) => Trouble::UnreadableSnapshot { snapshot, why },
        };
        found.push(trouble);
    }
    found
}

/// What waits to be accepted of an entry that was taken out of the configuration.
fn waiting_orphan(loaded: &Loaded, stem: &str) -> Option<Trouble> {
    // Anything else is somebody else's.
    let Stored::Snapshot(waiting, _) = loaded.store.read_pending(stem) else { return None };
    let (snapshot, config) = (loaded.store.pending_path(stem).display().to_string(), loaded.name.clone());
    let head = &waiting.head;
    let why = format!("waits to be accepted, and is of {} with {}", head.trace, head.pair);
    Some(Trouble::Orphan { snapshot, why, config })
}
