// SPDX-License-Identifier: GPL-2.0-or-later
//! Every oracle on a fixed number of pseudo-random cases, with the toolchain at hand.

use sisdiff::fuzz_loop::{self, Plan};
use sisdiff::oracle::{Models, Options};

/// The implementations that the oracles are put to, those of the table of twins among them.
const NAMES: &[&str] = &[
    "v5.11",
    "v5.11+no-sis-avg-cpu",
    "v5.11+scan-cost",
    "v5.11+recent-used",
    "v5.11+recent-used-v1",
    "v5.11+recent-used+fix-cpus-ptr",
    "v5.11+idle-candidate",
    "v5.11+fix-cpus-ptr",
    "v5.11+mel-v2",
    "v5.11:NO_WA_WEIGHT",
    "v5.11:NO_WA_WEIGHT:NO_WA_BIAS",
    "v6.1",
    "v6.1:SIS_PROP:NO_SIS_UTIL",
];

#[test]
fn no_oracle_speaks() {
    let plan = Plan {
        names: NAMES.iter().map(|&name| name.to_owned()).collect(),
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
