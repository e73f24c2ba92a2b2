// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulated wakeups per second of one core: tbench on 80 CPUs.

use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use sisdiff::fair::Model;
use sisdiff::simulate::models::Model as Workload;
use sisdiff::simulate::{Setup, run};
use sisdiff::spec::Spec;
use sisdiff::topology::{TopologySource, load};

fn main() {
    divan::main();
}

#[divan::bench(args = ["1", "16", "64", "320"], sample_count = 5, sample_size = 1)]
fn tbench_wakeups_on_80_cpus(bencher: Bencher<'_, '_>, clients: &str) {
    let topology = Arc::new(load(&TopologySource::parse("2x20x2")).expect("a machine").topology);
    let Ok(Spec::Model(spec)) = "v5.11".parse() else { panic!("a model") };
    let tbench = Workload::named("tbench").expect("a workload");
    let workload = tbench.build(&tbench.values(&[("clients", clients)]).expect("values"));
    let setup = Setup { warmup_ns: 0, measure_ns: 200_000_000, ..Setup::new(Arc::clone(&topology)) };
    let play = || run(&setup, &workload, &mut Model::new(spec, &topology), 1).expect("a simulation");
    let wakeups = play().wakeups;
    bencher.counter(ItemsCount::new(wakeups)).bench(play);
}
