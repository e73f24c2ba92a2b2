// SPDX-License-Identifier: GPL-2.0-or-later
//! What fuzzing found, and the table of known bugs, as text.

use std::collections::BTreeMap;

use crate::fair::{Edges, Exit};
use crate::fuzz_loop::{Found, Outcome, Plan, Sizes};
use crate::oracle::{Finding, KNOWN, Key, KnownBug, Seen};
use crate::report::gate_sarif::Finding as Broken;
use crate::report::layout::{Align, BAD, HEADING, NOTABLE, columns, count, counted, indented, paint, percent};
use crate::report::shell::quoted;
use crate::scenario::Case;

/// The report of a run. The number of cases depends on the machine's speed where the plan has a time limit; all else
/// follows from the plan and that number.
///
/// `files`: where the case of each finding was written.
pub fn outcome(plan: &Plan, outcome: &Outcome, files: &BTreeMap<Key, String>) -> String {
    let title = format!("sisdiff {}: fuzz {}", env!("CARGO_PKG_VERSION"), plan.names.join(" against "));
    let mut out = format!("{}\n", paint(HEADING, &title));
    let counts = &outcome.counts;
    let rows = [
        ("seed", plan.seed.to_string()),
        ("cases", format!("{}; {} with a decision", count(outcome.cases), percent(outcome.useful, outcome.cases))),
        ("machines", sizes(&outcome.sizes)),
        ("events", format!("{}; {} could not happen", count(counts.events), percent(counts.skipped, counts.events))),
        ("decisions", format!("{}; {}", count(counts.decisions), counted(outcome.walks(), "walk", "walks"))),
        ("branches", branches(outcome)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect();
    out += &columns(2, &[Align::Left, Align::Wrap], &rows);
    out += &exits(outcome);
    out += &divergences(plan, outcome);
    out += &known(outcome);
    out += &findings(outcome, files);
    out
}

/// The findings for SARIF; `files`: where the case of each was written.
pub fn sarif(outcome: &Outcome, files: &BTreeMap<Key, String>) -> Vec<Broken> {
    let of = |(key, found): (&Key, &Found)| Broken {
        rule: found.finding.oracle.to_owned(),
        demands: format!("What the oracle \"{}\" of sisdiff fuzz demands of every decision.", found.finding.oracle),
        message: found.finding.to_string(),
        file: files.get(key).cloned().unwrap_or_default(),
        place: found.finding.implementations.join(" against "),
        is_known: None,
    };
    outcome.findings.iter().map(of).collect()
}

/// CPUs of the machines: the middle, and shares.
fn sizes(sizes: &Sizes) -> String {
    let share = |from, to| percent(sizes.within(from, to), sizes.all());
    format!(
        "CPUs: median {}; 1 {}, 2-7 {}, 8-31 {}, 32-63 {}, 64-256 {}",
        sizes.median(),
        share(0, 1),
        share(2, 7),
        share(8, 31),
        share(32, 63),
        share(64, 256)
    )
}

fn branches(outcome: &Outcome) -> String {
    format!(
        "{} taken, by {}; {} put to every oracle",
        count(Edges::count(&outcome.edges)),
        counted(outcome.corpus.len() as u64, "case that is kept", "cases that are kept"),
        counted(outcome.deep, "case", "cases")
    )
}

fn exits(outcome: &Outcome) -> String {
    let walks = outcome.walks();
    let all = || Exit::ALL.iter().zip(&outcome.counts.exits);
    let taken = all().filter(|(_, times)| **times > 0);
    let rows: Vec<Vec<String>> =
        taken.map(|(exit, times)| vec![format!("{exit:?}"), count(*times), percent(*times, walks)]).collect();
    let mut out = format!("\n{}\n", paint(HEADING, "returns taken"));
    out += &columns(2, &[Align::Left, Align::Right, Align::Right], &rows);
    // Kernel trees have returns of their own.
    let missing = all().filter(|(exit, times)| **times == 0 && **exit != Exit::Other);
    let never: Vec<String> = missing.map(|(exit, _)| format!("{exit:?}")).collect();
    if !never.is_empty() {
        out += &columns(2, &[Align::Left, Align::Wrap], &[vec!["never".to_owned(), never.join(", ")]]);
    }
    out
}

fn divergences(plan: &Plan, outcome: &Outcome) -> String {
    if plan.names.len() < 2 {
        return String::new();
    }
    let mut out = format!("\n{}\n", paint(HEADING, "differences"));
    if outcome.counts.divergences.is_empty() {
        return out + "  none\n";
    }
    let mut sorted: Vec<_> = outcome.counts.divergences.iter().collect();
    sorted.sort_by_key(|(kind, times)| (std::cmp::Reverse(**times), **kind));
    let mut rows = vec![["", "returns", "decisions", ""].map(str::to_owned).to_vec()];
    rows.extend(sorted.into_iter().map(|(&(at, first, other), &times)| {
        vec![
            if plan.names.len() > 2 { plan.names[at].clone() } else { String::new() },
            format!("{first:?} -> {other:?}"),
            count(times),
            percent(times, outcome.counts.decisions),
        ]
    }));
    out += &columns(2, &[Align::Left, Align::Left, Align::Right, Align::Right], &rows);
    out
}

fn known(outcome: &Outcome) -> String {
    if outcome.counts.known.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", paint(HEADING, "known kernel bugs seen"));
    let rows: Vec<Vec<String>> = outcome
        .counts
        .known
        .iter()
        .map(|(fix, times)| {
            let bug = KNOWN.iter().find(|bug| bug.fix == *fix);
            vec![(*fix).to_owned(), count(*times), bug.map_or_else(String::new, |bug| bug.mechanism.to_owned())]
        })
        .collect();
    out += &columns(2, &[Align::Left, Align::Right, Align::Wrap], &rows);
    out
}

fn findings(outcome: &Outcome, files: &BTreeMap<Key, String>) -> String {
    let mut out = format!("\n{}\n", paint(HEADING, "findings"));
    if outcome.allowed > 0 {
        out += &format!("  {} left aside by the allow file\n", counted(outcome.allowed, "case", "cases"));
    }
    if outcome.findings.is_empty() {
        return out + "  none\n";
    }
    for (key, found) in &outcome.findings {
        out += &finding(found, files.get(key).map(String::as_str));
    }
    out
}

/// A finding in one line.
pub fn line(found: &Found) -> String {
    let text = found.finding.to_string();
    let known = found.finding.known.map(|bug| format!(", known: {}", bug.fix)).unwrap_or_default();
    format!("case {}: {}{known}", found.number, painted(found, text.lines().next().unwrap_or_default()))
}

fn painted(found: &Found, text: &str) -> String {
    paint(if found.finding.known.is_some() { NOTABLE } else { BAD }, text)
}

/// One finding with its case.
pub fn finding(found: &Found, file: Option<&str>) -> String {
    let text = found.finding.to_string();
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let times = counted(found.times, "case", "cases");
    let again = file.map(|file| format!("  sisdiff repro {} --explain\n", quoted(file))).unwrap_or_default();
    format!(
        "{}\n{rest}\n  in {times}, first in case {}\n{again}{}",
        painted(found, first),
        found.number,
        indented(2, &picture(&found.case))
    )
}

/// The case without its names and note, which stand elsewhere.
fn picture(case: &Case) -> String {
    format!("{:?}", Case { pair: Vec::new(), note: String::new(), ..case.clone() })
}

/// What a case played again shows, above its picture.
pub fn repro(case: &Case, finding: Option<&Finding>) -> String {
    let title = format!("sisdiff {}: repro", env!("CARGO_PKG_VERSION"));
    let title = paint(HEADING, &title);
    match finding {
        None => format!("{title}\n  nothing: no oracle speaks, and {} decide alike\n", case.pair.join(", ")),
        Some(finding) => format!("{title}\n{}\n", indented(2, &finding.to_string()).trim_end()),
    }
}

/// The case as a file, for a mail.
pub fn case_file(case: &Case) -> String {
    format!("\n{}\n{}", paint(HEADING, "case file"), case.write())
}

/// The table of known bugs.
pub fn bugs() -> String {
    let mut out = format!("{}\n", paint(HEADING, "known bugs of the wakeup path"));
    let heads = ["bug", "found by", "cases", "smallest machine", "affected"].map(str::to_owned).to_vec();
    let rows = KNOWN.iter().map(|bug| {
        let found = match bug.seen {
            Seen::Invariant(_) => "invariant",
            Seen::Differential => "differential",
            Seen::OutOfReach(_) => "-",
        };
        let cases = if bug.cases > 0 { count(u64::from(bug.cases)) } else { "-".to_owned() };
        let affected = bug.affected.split([',', ';']).next().unwrap_or_default();
        vec![bug.fix.to_owned(), found.to_owned(), cases, smallest(bug), affected.to_owned()]
    });
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    out += &columns(2, &[Align::Left, Align::Left, Align::Right, Align::Left, Align::Left], &rows);
    out += "  cases: played from nothing until it was found, the median of five seeds\n";
    for bug in &KNOWN {
        let pair = match (bug.before, bug.after) {
            ("", _) => String::new(),
            (before, "") => before.to_owned(),
            (before, after) => format!("{before}, without it {after}"),
        };
        let rows = [
            ("affected", bug.affected.to_owned()),
            ("mechanism", bug.mechanism.to_owned()),
            ("shows as", bug.shows.to_owned()),
            ("found by", bug.seen.to_string()),
            ("here", pair),
        ];
        let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
        let rows: Vec<Vec<String>> = rows.map(|(key, value)| vec![key.to_owned(), value]).collect();
        out += &format!("\n{}\n{}", paint(HEADING, bug.fix), columns(2, &[Align::Left, Align::Wrap], &rows));
    }
    out
}

/// `3 CPUs, 2 wakeups`.
fn smallest(bug: &KnownBug) -> String {
    bug.case().map_or_else(
        || "-".to_owned(),
        |case| {
            let cpus = u64::from(case.machine.present().weight());
            format!("{}, {}", counted(cpus, "CPU", "CPUs"), counted(case.decisions() as u64, "wakeup", "wakeups"))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz_loop;
    use crate::oracle::{Allowed, Models, Options};

    #[test]
    fn the_report_tells_what_was_tried_and_found() {
        let names = ["v5.11", "v5.11+recent-used"].map(str::to_owned).to_vec();
        let options = Options::default();
        let plan = Plan {
            names,
            seed: 0,
            time: None,
            cases: Some(600),
            options,
            allowed: Allowed::default(),
            first_only: false,
        };
        let run = fuzz_loop::run(&plan, &Models, &mut |_| {}).expect("the models are there");
        let text = outcome(&plan, &run, &BTreeMap::new());
        for part in
            ["fuzz v5.11 against v5.11+recent-used", "cases      600;", "returns taken", "differences", "ae2ad293d6be"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.len() < 240), "{text}");
    }

    #[test]
    fn every_known_bug_is_listed() {
        let text = bugs();
        assert!(KNOWN.iter().all(|bug| text.contains(bug.fix)));
    }
}
