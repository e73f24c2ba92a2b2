// SPDX-License-Identifier: GPL-2.0-or-later
//! Every difference between neighbouring releases is explained by a change on the list.

mod support;

use std::collections::BTreeMap;

use rayon::prelude::*;
use sisdiff::fair::changes::{self, Change, Site};
use sisdiff::fair::{Decision, Hidden, Implementation, Model};
use sisdiff::spec::{ModelSpec, RELEASES, SchedFeat};
use support::{Scene, Scenes};

/// How often a change could matter, and what came of it.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    held: usize,
    differed: usize,
    alone: usize,
}

fn decide(spec: ModelSpec, scene: &Scene, hidden: &Hidden) -> Decision {
    let mut model = Model::new(spec, &scene.state.topology);
    model.hidden = hidden.clone();
    model.select_task_rq(&scene.state, &scene.wakeups[0], None)
}

fn compare(specs: (ModelSpec, ModelSpec), scene: &Scene) -> (bool, Vec<&'static Change>) {
    let (older, newer) = (decide(specs.0, scene, &scene.hidden), decide(specs.1, scene, &scene.hidden));
    let site = Site {
        state: &scene.state,
        wakeup: &scene.wakeups[0],
        older: &scene.hidden,
        newer: &scene.hidden,
        older_spec: &specs.0,
        newer_spec: &specs.1,
    };
    let reasons = changes::that_can_matter(&site);
    let differ = older.class_cpu != newer.class_cpu;
    let exits = (older.class_cpu, older.exit, newer.class_cpu, newer.exit);
    let wakeup = &scene.wakeups[0];
    assert!(!differ || !reasons.is_empty(), "{} and {} differ for no reason: {exits:?} {wakeup:?}", specs.0, specs.1);
    (differ, reasons)
}

#[test]
fn every_difference_is_explained() {
    let mut too_often: Vec<String> = Vec::new();
    for pair in RELEASES.windows(2) {
        let defaults = (ModelSpec::of(&pair[0]), ModelSpec::of(&pair[1]));
        let chunks: Vec<(usize, BTreeMap<&str, Count>)> = (0..40u128)
            .into_par_iter()
            .map(|chunk| {
                let mut scenes = Scenes::new(5_000_000 + chunk);
                let mut differences = 0;
                let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
                for i in 0..2500 {
                    // Half of them with scheduler features as they come.
                    let switches = SchedFeat::from_bits_truncate(scenes.bits());
                    let mut specs = defaults;
                    if i % 2 == 0 {
                        specs = (specs.0.with_features(switches), specs.1.with_features(switches));
                    }
                    let (differ, reasons) = compare(specs, &scenes.scene());
                    differences += usize::from(differ);
                    for change in &reasons {
                        let count = counts.entry(change.name).or_default();
                        count.held += 1;
                        count.differed += usize::from(differ);
                        count.alone += usize::from(differ && reasons.len() == 1);
                    }
                }
                (differences, counts)
            })
            .collect();
        let differences: usize = chunks.iter().map(|(differences, _)| differences).sum();
        let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
        for (name, count) in chunks.into_iter().flat_map(|(_, counts)| counts) {
            let sum = counts.entry(name).or_default();
            sum.held += count.held;
            sum.differed += count.differed;
            sum.alone += count.alone;
        }
        let agreeing = 100_000 - differences;
        println!("{} to {}: {differences} of 100000 decisions differ", defaults.0, defaults.1);
        for (name, Count { held, differed, alone }) in counts {
            assert!(differed > 0, "{name} could matter {held} times and never did");
            let idle = held - differed;
            let share = 100.0 * idle as f64 / agreeing as f64;
            println!(
                "  {name:<22} explains {differed:>6}, as the only reason {alone:>6}; held {idle:>6} times without a \
                 difference, {share:.1} % of those that agree"
            );
            if 4 * idle >= agreeing {
                too_often.push(name.to_owned());
            }
        }
        assert!(differences > 0, "{} and {} never differ", defaults.0, defaults.1);
    }
    assert_eq!(too_often, [""; 0], "hold in a quarter of the agreeing cases: they explain too little");
}
