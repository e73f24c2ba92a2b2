// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fuzzing side promises: a known bug is found from nothing and made small; a case file brings it back.

use sisdiff::fuzz_loop::{self, Outcome, Plan};
use sisdiff::oracle::{Allowed, KNOWN, Models, Options};
use sisdiff::repro::{explain, minimized, repro};
use sisdiff::scenario::Case;

fn fuzz(names: &[&str], seed: u64, cases: u64, options: Options) -> Outcome {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    let plan =
        Plan { names, seed, time: None, cases: Some(cases), options, allowed: Allowed::default(), first_only: true };
    fuzz_loop::run(&plan, &Models, &mut |_| {}).expect("the models are there")
}

/// Patch 3/4 tests the affinity of prev where it means recent_used_cpu: found without being told where to look.
#[test]
fn the_bug_of_patch_3_is_found_and_made_small() {
    for seed in 0..5 {
        let outcome = fuzz(&["v5.11", "v5.11+recent-used"], seed, 5_000, Options::default());
        let found = outcome.findings.values().next().unwrap_or_else(|| panic!("seed {seed}: nothing in 5000 cases"));
        assert_eq!(found.finding.oracle, "affinity");
        assert_eq!(found.finding.known.map(|bug| bug.fix), Some(KNOWN[0].fix));
        assert_eq!(KNOWN[0].fix, "ae2ad293d6be");

        let names = ["v5.11".to_owned(), "v5.11+recent-used".to_owned()];
        let (small, finding) = minimized(&found.case, &names, &Models, Options::default(), found.finding.clone());
        assert_eq!(finding.key(), found.finding.key());
        let cpus = small.machine.present().weight();
        assert!(cpus <= 4 && small.decisions() == 1, "{cpus} CPUs, {} wakeups\n{small:?}", small.decisions());
        assert_eq!(small.pair, ["v5.11+recent-used"]);
        println!("seed {seed}, case {}:\n{small:?}{finding}\n", found.number);

        // As a file, and back.
        let text = small.write();
        let read = Case::parse(&text).expect("what was written");
        assert!(read == small, "{text}");
        let again = repro(&read, &[], &Models, Options::default(), false).expect("a playable case");
        assert!(again.is_wrong());
        assert_eq!(again.finding.map(|finding| finding.key()), Some(finding.key()));
        let told = explain(&read, &names, &Models, 100).expect("a playable case");
        assert!(told.contains("outside of cpus_ptr") && told.contains("RecentUsed"), "{told}");
    }
}

/// The one-operand fix mends it.
#[test]
fn with_the_fix_nothing_is_found() {
    let outcome = fuzz(&["v5.11", "v5.11+recent-used+fix-cpus-ptr"], 0, 2_000, Options::default());
    let findings: Vec<String> = outcome.findings.values().map(|found| found.finding.to_string()).collect();
    assert_eq!(findings, [""; 0]);
    assert!(outcome.counts.divergences.len() > 3, "{:?}", outcome.counts.divergences.keys());
}

/// A difference that is no fault is made small too.
#[test]
fn a_difference_is_made_small() {
    let options = Options { allow_known: true, expect_equal: true, ..Options::default() };
    let outcome = fuzz(&["v5.11", "v6.1"], 3, 50, options);
    let first = outcome.findings.values().min_by_key(|found| found.number).expect("two releases differ");
    let names = ["v5.11".to_owned(), "v6.1".to_owned()];
    let small = repro(&first.case, &names, &Models, Options::default(), true).expect("a playable case");
    assert!(!small.is_wrong());
    assert_eq!(small.finding.as_ref().map(|finding| finding.oracle), Some("difference"));
    assert!(small.case.decisions() <= 2, "{:?}", small.case);
}

/// The same plan gives the same outcome.
#[test]
fn a_run_is_reproducible() {
    let run = || fuzz(&["v5.11", "v6.1"], 9, 200, Options::default());
    assert_eq!(run(), run());
    assert!(fuzz_loop::case(9, 7) == fuzz_loop::case(9, 7) && fuzz_loop::case(9, 7) != fuzz_loop::case(9, 8));
}
