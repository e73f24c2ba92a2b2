// SPDX-License-Identifier: GPL-2.0-or-later
//! Every oracle on a fixed number of pseudo-random cases, with the toolchain at hand.

use sisdiff::fuzz_loop::{self, Plan};
use sisdiff::oracle::{DEFAULT_NAMES, Models, Options};

#[test]
fn no_oracle_speaks() {
    let plan = Plan {
        names: DEFAULT_NAMES.iter().map(|&name| name.to_owned()).collect(),
        seed: 1,
        time: None,
        cases: Some(3_000),
        options: Options { allow_known: true, ..Options::default() },
        first_only: false,
    };
    let outcome = fuzz_loop::run(&plan, &Models, &mut |_| {}).expect("the implementations are there");
    for found in outcome.findings.values() {
        println!("case {}, {} times: {}\n{:?}", found.number, found.times, found.finding, found.case);
    }
    println!("{} cases, {} of {} events skipped", outcome.cases, outcome.skipped, outcome.events);
    println!("{} decisions, exits {:?}", outcome.decisions, outcome.exits);
    println!("known {:?}", outcome.known);
    assert!(outcome.findings.is_empty(), "{} kinds of finding", outcome.findings.len());
    assert!(outcome.decisions > 10_000, "{}", outcome.decisions);
}
