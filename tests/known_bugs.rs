// SPDX-License-Identifier: GPL-2.0-or-later
//! Each known bug has a small case that tells the kernels with it from those without, seen by the oracle that the table
//! names.

use rayon::prelude::*;
use sisdiff::fuzz_loop::{self, Plan};
use sisdiff::oracle::{Allowed, Finding, KNOWN, KnownBug, Models, Options, Scout, Seen};
use sisdiff::repro::{minimized, minimized_where};
use sisdiff::scenario::Case;

fn findings(bug: &KnownBug, case: &Case, names: &[String]) -> Vec<Finding> {
    Scout::new(names, &Models, bug.options()).play(case).expect("a playable case").0
}

fn in_reach() -> impl Iterator<Item = (&'static KnownBug, Case)> {
    let bugs = KNOWN.iter().filter(|bug| !matches!(bug.seen, Seen::OutOfReach(_)));
    bugs.map(|bug| (bug, bug.case().unwrap_or_else(|| panic!("{}: no case in fuzz/known-bugs/", bug.fix))))
}

#[test]
fn each_bug_is_seen_by_its_oracle_and_not_without_it() {
    for (bug, case) in in_reach() {
        let found = findings(bug, &case, &bug.pair());
        assert!(found.iter().any(|finding| bug.is_seen_in(finding)), "{}: {found:?}\n{case:?}", bug.fix);
        if bug.after.is_empty() {
            continue;
        }
        let found = findings(bug, &case, &[bug.after.to_owned()]);
        assert!(
            !found.iter().any(|finding| bug.is_seen_in(finding)),
            "{} in {}: {found:?}\n{case:?}",
            bug.fix,
            bug.after
        );
    }
}

#[test]
fn the_cases_are_as_small_as_they_get() {
    for (bug, case) in in_reach() {
        let found = findings(bug, &case, &bug.pair());
        let found = found.into_iter().find(|finding| bug.is_seen_in(finding)).expect("it is seen");
        let (small, _) = minimized(&case, &bug.pair(), &Models, bug.options(), found);
        let size = |case: &Case| (case.machine.present().weight(), case.decisions());
        assert_eq!(size(&small), size(&case), "{}: {small:?}", bug.fix);
        assert!(size(&case).0 <= 8 && size(&case).1 <= 4, "{}: {case:?}", bug.fix);
    }
}

/// Found anew from nothing and minimised: at most half as large again as the smallest case known, in CPUs and in wakeups.
#[test]
fn what_is_found_anew_becomes_nearly_as_small() {
    let searches: Vec<_> =
        in_reach().flat_map(|(bug, case)| [11, 12, 13].map(|seed| (bug, case.clone(), seed))).collect();
    searches.par_iter().for_each(|(bug, smallest, seed)| {
        // The rarest takes tens of thousands of cases, which is minutes here; its case is tried by the example.
        if bug.cases > 5_000 {
            return;
        }
        let plan = Plan {
            names: bug.pair(),
            seed: *seed,
            time: None,
            cases: Some(12_000),
            options: bug.options(),
            allowed: Allowed::default(),
            first_only: false,
        };
        let outcome = fuzz_loop::run_until(&plan, &Models, &mut |outcome| {
            outcome.findings.values().any(|found| bug.is_seen_in(&found.finding))
        });
        let findings = outcome.expect("the models are there").findings;
        let found = findings.values().filter(|found| bug.is_seen_in(&found.finding)).min_by_key(|found| found.number);
        let found = found.unwrap_or_else(|| panic!("{}: not found by seed {seed}", bug.fix));
        let (finding, options) = (found.finding.clone(), bug.options());
        let is_it = |finding: &Finding| bug.is_seen_in(finding);
        let (small, finding) = minimized_where(&found.case, &plan.names, &Models, options, finding, &is_it);
        assert!(bug.is_seen_in(&finding), "{}", bug.fix);
        let size = |case: &Case| [case.machine.present().weight(), case.decisions() as u32];
        let (size, known) = (size(&small), size(smallest));
        let fits = size.iter().zip(known).all(|(&size, known)| 2 * size <= 3 * known);
        assert!(fits, "{} by seed {seed}: {size:?} CPUs and wakeups, known {known:?}\n{small:?}", bug.fix);
    });
}

/// What docs/fuzzing.md tells of two series.
#[test]
fn the_cases_of_the_review_show_what_is_told_of_them() {
    for (name, differs) in [
        ("soft-affinity-cost", "another exit"),
        ("soft-affinity-preempted", "another exit"),
        ("scan-cost-avg-cpu", "another CPU"),
        ("idle-candidate-no-scan", "another CPU"),
        ("idle-candidate-budget", "another CPU"),
    ] {
        let path = format!("{}/fuzz/review/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let case = Case::parse(&std::fs::read_to_string(&path).expect("a file of the project")).expect("a case");
        assert!(case.tasks.iter().all(|task| task.cpus_preferred.is_none()), "{name}");
        let equal = Options { allow_known: true, expect_equal: true, ..Options::default() };
        let (found, _) = Scout::new(&case.pair, &Models, equal).play(&case).expect("a playable case");
        assert!(found.iter().any(|finding| finding.condition == differs), "{name}: {found:?}");
    }
}
