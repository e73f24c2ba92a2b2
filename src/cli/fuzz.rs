// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff fuzz` and `sisdiff repro` carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::case_kind::mistaken;
use crate::cli::fuzz_args::{FuzzArgs, OracleArgs, ReproArgs};
use crate::cli::output::{Trouble, print};
use crate::cli::progress::Bar;
use crate::cli::replay::{DEFAULT_WIDTH, EXIT_FOUND};
use crate::cli::sink::{self, Sink};
use crate::cli::trees;
use crate::fuzz_loop::{self, Found, Input, Outcome, Plan};
use crate::oracle::{Allowed, Key, Maker, Options};
use crate::report::fuzz as report;
use crate::report::gate_sarif;
use crate::report::shell::printable;
use crate::repro::{self, minimized};
use crate::scenario::Case;
use crate::spec::Spec;

/// How long a run takes where nobody says.
const DEFAULT_TIME: Duration = Duration::from_secs(60);

/// The largest case that is read, bytes: 200 events on 256 CPUs take a tenth of it.
const CASE_MAX: u64 = 1 << 20;

/// Fuzzes, minimises what was found, writes each case, and reports.
///
/// # Errors
/// Whatever keeps cases from being played or written.
pub fn fuzz(args: FuzzArgs) -> Result<ExitCode, Trouble> {
    let plan = plan(&args)?;
    let sarif = args.sarif.as_deref().map(Sink::open).transpose()?;
    let players = trees::players(&plan.names, &args.trees)?;
    let maker = &*players.maker;
    let bar = Bar::new(args.quiet, plan.time, plan.cases);
    let mut told = BTreeSet::new();
    let mut outcome = fuzz_loop::run(&plan, maker, &mut |outcome: &Outcome| {
        bar.at(outcome.cases, outcome.findings.len());
        if outcome.findings.len() > told.len() && !args.quiet {
            for (key, found) in &outcome.findings {
                if told.insert(key.clone()) {
                    bar.line(&report::line(found));
                }
            }
        }
    })?;
    bar.minimizing();
    for found in outcome.findings.values_mut() {
        minimize(found, &plan, maker);
    }
    bar.finish();
    trees::write_coverage(&args.trees, players.trees.iter())?;
    let files = write_cases(&outcome.findings, &args.output)?;
    if let Some(mut sink) = sarif {
        let log = gate_sarif::sarif(&report::sarif(&outcome, &files));
        sink.write_all(log.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
        sink.finish()?;
    }
    let code = if outcome.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) };
    match print(&report::outcome(&plan, &outcome, &files)) {
        // Nobody reads on, but somebody may wait for the exit code.
        Err(Trouble::BrokenPipe) => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn plan(args: &FuzzArgs) -> Result<Plan, Trouble> {
    let allowed = match &args.allow {
        None => Allowed::default(),
        Some(path) => {
            let what = printable(&path.display().to_string());
            let text = String::from_utf8_lossy(&bytes(path)?).into_owned();
            Allowed::parse(&text).map_err(|error| Trouble::Usage(format!("{what}: {error}")))?
        }
    };
    Ok(Plan {
        names: names(&args.pair),
        seed: args.seed,
        time: args.time.or_else(|| args.cases.is_none().then_some(DEFAULT_TIME)),
        cases: args.cases,
        options: options(&args.oracles),
        allowed,
        first_only: args.first,
    })
}

fn options(args: &OracleArgs) -> Options {
    Options { allow_known: args.allow_known, expect_equal: args.expect_equal, schedstat: args.schedstat }
}

fn names(pair: &[Spec]) -> Vec<String> {
    pair.iter().map(ToString::to_string).collect()
}

fn minimize(found: &mut Found, plan: &Plan, maker: &dyn Maker) {
    let (case, finding) = minimized(&found.case, &plan.names, maker, plan.options, found.finding.clone());
    let note = finding.to_string().lines().next().unwrap_or_default().to_owned();
    found.case = Case { note, ..case };
    found.finding = finding;
}

/// Writes each case to a file named by its finding; returns the names.
fn write_cases(findings: &BTreeMap<Key, Found>, folder: &Path) -> Result<BTreeMap<Key, String>, Trouble> {
    let mut files = BTreeMap::new();
    if findings.is_empty() {
        return Ok(files);
    }
    let failed = |path: &Path, error: &io::Error| Trouble::write(&path.display().to_string(), error);
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut taken = BTreeSet::new();
    for (key, found) in findings {
        let slug = found.finding.slug();
        let mut names = std::iter::once(slug.clone()).chain((2..).map(|n| format!("{slug}-{n}")));
        let name = names.find(|name| taken.insert(name.clone())).expect("numbers do not run out");
        let path = folder.join(name + ".toml");
        fs::write(&path, found.case.write()).map_err(|error| failed(&path, &error))?;
        files.insert(key.clone(), path.display().to_string());
    }
    Ok(files)
}

/// Plays one case, and shows what it shows.
///
/// # Errors
/// Whatever keeps it from being read, played or written.
pub fn repro(args: &ReproArgs) -> Result<ExitCode, Trouble> {
    if let Some(output) = &args.output {
        sink::check(&[("--output", output)], &[("the case", args.case.clone())])?;
    }
    let case = read(&args.case)?;
    let names = names(&args.pair);
    let players = trees::players(if names.is_empty() { &case.pair } else { &names }, &args.trees)?;
    let maker = &*players.maker;
    let repro = repro::repro(&case, &names, maker, options(&args.oracles), args.minimize)?;
    trees::write_coverage(&args.trees, players.trees.iter())?;
    let code = if repro.is_wrong() { ExitCode::from(EXIT_FOUND) } else { ExitCode::SUCCESS };
    let to_stdout = args.output.as_deref().is_some_and(sink::is_stdout);
    if let Some(output) = &args.output {
        let mut sink = Sink::open(output)?;
        let written = sink.write_all(repro.case.write().as_bytes());
        written.map_err(|error| Trouble::write(&sink.name(), &error))?;
        sink.finish()?;
    }
    if to_stdout {
        return Ok(code);
    }
    let mut text = report::repro(&repro.case, repro.finding.as_ref());
    if args.explain {
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = args.width.map(usize::from).or_else(terminal).unwrap_or(DEFAULT_WIDTH).clamp(60, 400);
        text += &format!("\n{}", repro::explain(&repro.case, &names, maker, width)?);
    } else {
        text += &format!("\n{:?}", repro.case);
    }
    if args.minimize && args.output.is_none() {
        text += &report::case_file(&repro.case);
    }
    match print(&text) {
        Err(Trouble::BrokenPipe) => Ok(code),
        printed => printed.map(|()| code),
    }
}

fn read(path: &Path) -> Result<Case, Trouble> {
    let what = printable(&path.display().to_string());
    Input::read(&bytes(path)?).map(|input| input.0).map_err(|error| Trouble::Usage(format!("{what}: {error}")))
}

/// What is in a file, or comes on stdin.
fn bytes(path: &Path) -> Result<Vec<u8>, Trouble> {
    let stdin = path == Path::new("-");
    let what = if stdin { "stdin".to_owned() } else { path.display().to_string() };
    let input: io::Result<Box<dyn Read>> =
        if stdin { Ok(Box::new(io::stdin())) } else { File::open(path).map(|file| Box::new(file) as Box<dyn Read>) };
    let mut bytes = Vec::new();
    let read = input.and_then(|input| input.take(CASE_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| Trouble::Read { what: what.clone(), reason: error.to_string() })?;
    if let Some((found, next)) = mistaken(&bytes) {
        return Err(Trouble::Usage(format!("{what}: is {found}, expected a case file or what a fuzzer left; {next}")));
    }
    if bytes.len() as u64 > CASE_MAX {
        return Err(Trouble::Usage(format!(
            "{what}: larger than {CASE_MAX} bytes: no case; expected a case file or what a fuzzer left"
        )));
    }
    Ok(bytes)
}
