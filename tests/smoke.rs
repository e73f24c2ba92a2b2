// SPDX-License-Identifier: GPL-2.0-or-later
//! Every oracle on a fixed number of pseudo-random cases, with the toolchain at hand.

use sisdiff::fuzz_loop::{self, Plan};
use sisdiff::oracle::{Allowed, FAMILIES, Models, Options};
use sisdiff::report;

#[test]
fn no_oracle_speaks() {
    for names in FAMILIES {
        let plan = Plan {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            seed: 1,
            time: None,
            cases: Some(2_000),
            options: Options { allow_known: true, ..Options::default() },
            allowed: Allowed::default(),
            first_only: false,
        };
        let outcome = fuzz_loop::run(&plan, &Models, &mut |_| {}).expect("the implementations are there");
        println!("{}", report::fuzz::outcome(&plan, &outcome, &std::collections::BTreeMap::new()));
        assert!(outcome.findings.is_empty(), "{} kinds of finding", outcome.findings.len());
        // A generator that mostly makes events that cannot happen would find nothing either.
        let counts = &outcome.counts;
        assert!(counts.decisions > 10_000 && counts.skipped < counts.events / 5, "{counts:?}");
    }
}
