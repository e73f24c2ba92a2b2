// SPDX-License-Identifier: GPL-2.0-or-later
//! What the seam to a kernel tree's C costs, and how our models compare with the C, in five states of a machine of two
//! sockets, twenty cores each, two threads a core.
//!
//!     cargo bench --bench tree -- SPEC TREE...      such as v6.1 /usr/src/linux-source-6.1.tar.xz
//!
//! For each state, medians of interleaved batches, as ratios: a decision through the seam, with ten CPUs changed since the
//! last, to the C alone; the same with the C in a process of its own; the model to the C alone. The C has our marks in it,
//! as in every use. What it takes to change ten CPUs is measured apart and not counted, as it is not the seam's.

mod five_states;

use std::time::Instant;

use five_states::{STATES, Scene, scene};
use sisdiff::fair::{Hidden, Implementation, Model};
use sisdiff::tree::{Prepared, Tree};
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
        let apart = Prepared::of(path, built.clone(), Isolation::Process);
        let prepared = Prepared::of(path, built, Isolation::InProcess);
        println!("{spec} and {path}: ns per decision, medians of {BATCHES} batches of {BATCH}");
        let head = ["state", "C alone", "seam", "process", "model", "seam/C", "process/C", "model/C"];
        let [state, columns @ ..] = head.map(|name| format!("{name:>10}"));
        println!("  {:<20}{}", state.trim(), columns.concat());
        for name in STATES {
            let mut scene = scene(name);
            let mut tree = prepared.open(&scene.state.topology).unwrap_or_else(|error| panic!("{error}"));
            let mut apart = apart.open(&scene.state.topology).unwrap_or_else(|error| panic!("{error}"));
            let mut model = Model::new(spec.parse().expect("a spec"), &scene.state.topology);
            let [alone, changing, sides @ ..] = medians(&mut scene, &mut tree, &mut apart, &mut model);
            let times = sides.map(|side| side - changing);
            let of = |values: [f64; 3], digits| values.map(|value| format!("{value:>10.digits$}")).concat();
            println!("  {name:<20}{alone:>10.0}{}{}", of(times, 0), of(times.map(|time| time / alone), 2));
        }
    }
}

/// Nanoseconds per decision: of the C alone; of changing ten CPUs, alone; and with that through the seam, through the seam
/// to a process, and of the model.
fn medians(scene: &mut Scene, tree: &mut Tree, apart: &mut Tree, model: &mut Model) -> [f64; 5] {
    let mut samples: [Vec<f64>; 5] = Default::default();
    let mut turn = 0;
    for _ in 0..BATCHES {
        scene.set(&mut tree.hidden);
        tree.select_task_rq(&scene.state, &scene.wakeup, None);
        samples[0].push(timed(BATCH, || tree.walk_again(BATCH)));
        samples[1].push(timed(BATCH, || {
            for _ in 0..BATCH {
                change_ten(scene, &mut turn);
                scene.set(&mut tree.hidden);
                std::hint::black_box(&mut *scene);
            }
        }));
        samples[2].push(decisions(BATCH, scene, &mut turn, tree, |tree| &mut tree.hidden));
        samples[3].push(decisions(BATCH / 10, scene, &mut turn, apart, |tree| &mut tree.hidden));
        samples[4].push(decisions(BATCH, scene, &mut turn, model, |model| &mut model.hidden));
    }
    assert_eq!((tree.fault(), apart.fault()), (None, None));
    samples.map(|mut sample| {
        sample.sort_by(f64::total_cmp);
        sample[sample.len() / 2]
    })
}

/// Nanoseconds of each of `count` decisions, with ten CPUs changed before it.
fn decisions<I: Implementation>(
    count: u64,
    scene: &mut Scene,
    turn: &mut usize,
    side: &mut I,
    hidden: impl Fn(&mut I) -> &mut Hidden,
) -> f64 {
    timed(count, || {
        for _ in 0..count {
            change_ten(scene, turn);
            scene.set(hidden(side));
            std::hint::black_box(side.select_task_rq(&scene.state, &scene.wakeup, None));
        }
    })
}

/// Nanoseconds of each of `count` turns of `work`.
fn timed(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Ten CPUs are not as they were, in what no walk's outcome depends on here.
fn change_ten(scene: &mut Scene, turn: &mut usize) {
    *turn += 1;
    let first = *turn % 8;
    for step in 0..10 {
        scene.state.rq.runnable_avg[first + step * 8] = *turn as u64 & 1_023;
    }
}
