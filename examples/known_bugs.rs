// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for each known bug from nothing on one core, with five seeds, and prints how long it took. With `--write` the
//! smallest case of each goes to `fuzz/known-bugs/`.
//!
//! `RAYON_NUM_THREADS=1 cargo run --release --example known_bugs -- [--write] [FIX…]`

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sisdiff::fuzz_loop::{self, Found, Plan};
use sisdiff::oracle::{Allowed, KNOWN, KnownBug, Models, Scout, Seen, canary};
use sisdiff::repro::minimized_where;
use sisdiff::scenario::Case;

/// How long a search may take.
const LIMIT: Duration = Duration::from_secs(60);

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let write = args.iter().any(|arg| arg == "--write");
    let wanted: Vec<&String> = args.iter().filter(|arg| *arg != "--write").collect();
    for bug in KNOWN.iter().filter(|bug| wanted.is_empty() || wanted.iter().any(|fix| *fix == bug.fix)) {
        if matches!(bug.seen, Seen::OutOfReach(_)) {
            println!("{:24} {}", bug.fix, bug.seen);
            continue;
        }
        let runs: Vec<Option<Run>> = (1..=5).map(|seed| search(bug, seed)).collect();
        report(bug, &runs);
        let smallest = runs.iter().flatten().map(|run| &run.case).min_by_key(|case| size(case));
        if let Some(case) =
            smallest.filter(|case| write && bug.case().is_none_or(|old| size(case) < size(&old) || !is_seen(bug, &old)))
        {
            let name: String =
                bug.fix.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
            let name = match bug.fix {
                "soft-affinity RFC 1/3" => "soft-affinity-1",
                "soft-affinity RFC 2/3" => "soft-affinity-2",
                _ => name.trim_end_matches('-'),
            };
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/known-bugs");
            fs::write(folder.join(format!("{name}.toml")), case.write())?;
        }
    }
    if wanted.is_empty() {
        let times: Vec<f64> = (1..=5).map(canary).collect();
        println!("canary: found after {times:.2?} s");
    }
    Ok(())
}

struct Run {
    cases: u64,
    seconds: f64,
    case: Case,
}

/// Whether the case shows the bug.
fn is_seen(bug: &KnownBug, case: &Case) -> bool {
    let played = Scout::new(&bug.pair(), &Models, bug.options()).play(case);
    played.is_ok_and(|(findings, _)| findings.iter().any(|finding| bug.is_seen_in(finding)))
}

/// CPUs, decisions, then everything else that is written down.
fn size(case: &Case) -> (u32, usize, usize) {
    (case.machine.present().weight(), case.decisions(), case.write().len())
}

/// Until the bug is found; minimised.
fn search(bug: &KnownBug, seed: u64) -> Option<Run> {
    let start = Instant::now();
    let (mut seconds, mut cases) = (0.0, 0);
    let names = bug.pair();
    let mut plan = Plan {
        names: names.clone(),
        seed,
        time: None,
        cases: Some(1024),
        options: bug.options(),
        allowed: Allowed::default(),
        first_only: false,
    };
    // Other bugs of the same implementation may come first: a longer run of the same seed begins with the same cases.
    let found: Option<Found> = loop {
        let outcome = fuzz_loop::run(&plan, &Models, &mut |outcome| {
            if cases == 0 && outcome.findings.values().any(|found| bug.is_seen_in(&found.finding)) {
                (seconds, cases) = (start.elapsed().as_secs_f64(), outcome.cases);
            }
        });
        let found = outcome
            .ok()?
            .findings
            .into_values()
            .filter(|found| bug.is_seen_in(&found.finding))
            .min_by_key(|found| found.number);
        if found.is_some() || start.elapsed() > LIMIT {
            break found;
        }
        plan.cases = plan.cases.map(|cases| cases * 4);
    };
    let found = found?;
    let (case, finding) =
        minimized_where(&found.case, &names, &Models, bug.options(), found.finding.clone(), &|finding| {
            bug.is_seen_in(finding)
        });
    let note = format!("{}: {}", bug.fix, finding.to_string().lines().next().unwrap_or_default());
    Some(Run { cases: found.number, seconds, case: Case { note, ..case } })
}

fn report(bug: &KnownBug, runs: &[Option<Run>]) {
    let mut cases: Vec<u64> = runs.iter().map(|run| run.as_ref().map_or(u64::MAX, |run| run.cases)).collect();
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.as_ref().map_or(f64::MAX, |run| run.seconds)).collect();
    cases.sort_unstable();
    seconds.sort_by(f64::total_cmp);
    let sizes: Vec<String> =
        runs.iter().flatten().map(|run| format!("{}/{}", size(&run.case).0, size(&run.case).1)).collect();
    println!(
        "{:24} {:22} cases {:6} (worst {}), seconds {:.2} (worst {:.2}), CPUs/wakeups {}",
        bug.fix,
        bug.seen.to_string(),
        cases[2],
        cases[4],
        seconds[2],
        seconds[4],
        sizes.join(" ")
    );
}

/// Seconds until the planted off-by-one is found.
fn canary(seed: u64) -> f64 {
    let start = Instant::now();
    let names = vec!["v5.11".to_owned(), "v6.1".to_owned()];
    let options = sisdiff::oracle::Options { allow_known: true, ..Default::default() };
    let plan =
        Plan { names, seed, time: Some(LIMIT), cases: None, options, allowed: Allowed::default(), first_only: true };
    let outcome = fuzz_loop::run(&plan, &canary::Planted(canary::off_by_one), &mut |_| {});
    match outcome {
        Ok(outcome) if !outcome.findings.is_empty() => start.elapsed().as_secs_f64(),
        _ => f64::INFINITY,
    }
}
