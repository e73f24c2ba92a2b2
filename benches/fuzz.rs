// SPDX-License-Identifier: GPL-2.0-or-later
//! Walks per second and core of the fuzz loop, for one fixed pair, with the sizes of the machines that it played.
//!
//! Counted are the walks of the quick judge, two for each decision; timed is everything: making the cases, the world between
//! decisions, all invariants, and the deep plays, whose own walks are not counted.

use std::time::Instant;

use sisdiff::fuzz_loop::{self, Plan};
use sisdiff::oracle::{Allowed, Models, Options};

fn main() {
    let cases = if std::env::args().any(|arg| arg == "--test") { 1_000 } else { 100_000 };
    let plan = Plan {
        names: ["v5.11", "v5.11+mel-v2"].map(str::to_owned).to_vec(),
        seed: 1,
        time: None,
        cases: Some(cases),
        options: Options { allow_known: true, ..Options::default() },
        allowed: Allowed::default(),
        first_only: false,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    for round in 1..=5 {
        let start = Instant::now();
        let outcome = pool.install(|| fuzz_loop::run(&plan, &Models, &mut |_| {})).expect("the models are there");
        let seconds = start.elapsed().as_secs_f64();
        if round == 1 {
            println!("machines by CPUs, of {cases}: median {}", outcome.sizes.median());
            for (from, to) in [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127), (128, 256)] {
                println!(
                    "  {from:3} to {to:3}  {:5.1} %",
                    100.0 * outcome.sizes.within(from, to) as f64 / cases as f64
                );
            }
        }
        let million = outcome.walks() as f64 / seconds / 1e6;
        println!("run {round}: {} walks in {seconds:.2} s: {million:.2} million a second", outcome.walks());
    }
}
