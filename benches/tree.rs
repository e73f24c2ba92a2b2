// SPDX-License-Identifier: GPL-2.0-or-later
//! What the seam to a kernel tree's C costs, and how our models compare with the C, in five states of a machine of two
//! sockets, twenty cores each, two threads a core.
//!
//!     cargo bench --bench tree -- SPEC TREE...      such as v6.1 /usr/src/linux-source-6.1.tar.xz
//!
//! For each state, medians of interleaved batches, as ratios: a decision through the seam, with ten CPUs changed since the
//! last, to the C alone; the model to the C alone. The C has our marks in it, as in every use.

mod five_states;

use std::time::Instant;

use five_states::{STATES, Scene, scene};
use sisdiff::fair::{Implementation, Model};
use sisdiff::tree::{Prepared, Tree};
use sisdiff::units::Cpu;
use sisdiff_tree::run::Isolation;
use sisdiff_tree::source::Location;
use sisdiff_tree::tree::{Plan, build};

/// Decisions of a batch.
const BATCH: u64 = 2_000;
/// Batches of each kind.
const BATCHES: usize = 41;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if arguments.len() < 2 {
        println!("bench tree: give a spec and its tree, such as v6.1 /usr/src/linux-source-6.1.tar.xz");
        return;
    }
    for pair in arguments.chunks_exact(2) {
        let (spec, path) = (&pair[0], &pair[1]);
        let plan = Plan { location: Location { path: path.into(), ..Location::default() }, ..Plan::default() };
        let built = build(&plan).unwrap_or_else(|error| panic!("{error}"));
        let prepared = Prepared::of(path, built, Isolation::InProcess);
        println!("{spec} and {path}: ns per decision, medians of {BATCHES} batches of {BATCH}");
        println!("  {:<20} {:>8} {:>8} {:>8} {:>9} {:>8}", "state", "C alone", "seam", "model", "seam/C", "model/C");
        for name in STATES {
            let mut scene = scene(name);
            let mut tree = prepared.open(&scene.state.topology).unwrap_or_else(|error| panic!("{error}"));
            let mut model = Model::new(spec.parse().expect("a spec"), &scene.state.topology);
            let [alone, seam, ours] = medians(&mut scene, &mut tree, &mut model);
            println!("  {name:<20} {alone:>8.0} {seam:>8.0} {ours:>8.0} {:>9.2} {:>8.2}", seam / alone, ours / alone);
        }
    }
}

/// Nanoseconds per decision of the C alone, through the seam, and of the model.
fn medians(scene: &mut Scene, tree: &mut Tree, model: &mut Model) -> [f64; 3] {
    let mut samples: [Vec<f64>; 3] = Default::default();
    let mut turn = 0;
    for _ in 0..BATCHES {
        scene.set(&mut tree.hidden);
        tree.select_task_rq(&scene.state, &scene.wakeup, None);
        samples[0].push(timed(|| tree.walk_again(BATCH)));
        samples[1].push(timed(|| {
            for _ in 0..BATCH {
                change_ten(scene, &mut turn);
                scene.set(&mut tree.hidden);
                tree.select_task_rq(&scene.state, &scene.wakeup, None);
            }
        }));
        samples[2].push(timed(|| {
            for _ in 0..BATCH {
                change_ten(scene, &mut turn);
                scene.set(&mut model.hidden);
                model.select_task_rq(&scene.state, &scene.wakeup, None);
            }
        }));
    }
    assert_eq!(tree.fault(), None);
    samples.map(|mut sample| {
        sample.sort_by(f64::total_cmp);
        sample[sample.len() / 2] / BATCH as f64
    })
}

/// Nanoseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// Ten CPUs are not as they were, in what no walk's outcome depends on here.
fn change_ten(scene: &mut Scene, turn: &mut usize) {
    *turn += 1;
    let n = scene.state.topology.nr_cpu_ids();
    for step in 0..10 {
        let cpu = Cpu(((*turn + step * 8) % n) as u16);
        scene.state.rq.runnable_avg[cpu.index()] = *turn as u64 % 1_000;
    }
}
