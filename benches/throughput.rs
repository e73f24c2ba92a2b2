// SPDX-License-Identifier: GPL-2.0-or-later
//! Events per second decoded, events per second through the machine, events per second of a whole replay, wakeups per
//! second of each implementation in five states of a machine of two sockets, twenty cores each, two threads a core.
//!
//! Single absolute figures mean nothing on a shared machine: compare ratios within one run.

mod five_states;

use std::path::Path;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use five_states::{STATES, scene};
use sisdiff::fair::{Implementation, Model};
use sisdiff::machine::{Machine, MachineConfig, Notice, State};
use sisdiff::replay::recording::{ReaderKind, Source};
use sisdiff::replay::run::{Job, Progress, replay};
use sisdiff::replay::{Filter, Options};
use sisdiff::report::decisions;
use sisdiff::spec::RELEASES;
use sisdiff::topology::{TopologySource, load};
use sisdiff::trace::Event;
use sisdiff::units::Pid;

fn main() {
    divan::main();
}

/// A recording with full probes: the heaviest events there are.
fn recording() -> Source {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat"));
    Source::open(path, None, ReaderKind::Native).expect("a recording of the project")
}

fn events(source: &Source) -> u64 {
    source.walk(|_| true, |_, _| {}).expect("a recording of the project").summary.events
}

#[divan::bench]
fn decode_events(bencher: Bencher) {
    let source = recording();
    bencher.counter(ItemsCount::new(events(&source))).bench(|| {
        let mut wakings = 0u64;
        source
            .walk(
                |event| {
                    wakings += u64::from(event.pid == Pid::SWAPPER);
                    true
                },
                |_, _| {},
            )
            .expect("it was read before");
        wakings
    });
}

#[divan::bench]
fn machine_events(bencher: Bencher) {
    let source = recording();
    let mut events: Vec<Event> = Vec::new();
    source
        .walk(
            |event| {
                events.push(event.clone());
                true
            },
            |_, _| {},
        )
        .expect("it was read before");
    let beside = TopologySource::beside(source.path()).expect("the topology beside the recording");
    let topology = Arc::new(load(&beside).expect("a topology of the project").topology);
    bencher.counter(ItemsCount::new(events.len())).bench(|| {
        let mut machine = Machine::new(Arc::clone(&topology), MachineConfig::default());
        let mut decisions = 0u64;
        for event in &events {
            machine.apply(event, &mut |_: &State, notice: Notice| {
                decisions += u64::from(matches!(notice, Notice::Wakeup(_)));
            });
        }
        decisions
    });
}

struct Silent;

impl Progress for Silent {
    fn at(&self, _file: &Path, _events: u64, _all: u64) {}
}

/// From the file to the sums, with two implementations and the recorded kernel's model.
#[divan::bench]
fn end_to_end(bencher: Bencher) {
    let source = recording();
    let spec = |name: &str| name.parse::<sisdiff::spec::ModelSpec>().expect("a spec").into();
    let options = Options::new(spec("v5.11"), vec![spec("v5.11+mel-v2")]);
    let job = Job { options: &options, filter: &|_| Filter::default(), filters: &[], progress: &Silent };
    bencher.counter(ItemsCount::new(events(&source))).bench(|| {
        replay(&[source.path().to_owned()], &job, Some(1), decisions::line, None).expect("it was replayed before")
    });
}

/// Every implementation in its plain form, and the series that the replay compares by default.
fn specs() -> impl Iterator<Item = String> {
    RELEASES.iter().map(|release| release.name.to_owned()).chain(["v5.11+mel-v2".to_owned()])
}

fn cases() -> Vec<(String, &'static str)> {
    specs().flat_map(|spec| STATES.iter().map(move |state| (spec.clone(), *state))).collect()
}

#[divan::bench(args = cases().into_iter().map(|(spec, state)| format!("{spec} {state}")))]
fn wakeups(bencher: Bencher, case: &str) {
    let (spec, name) = case.split_once(' ').expect("two words");
    let scene = scene(name);
    let spec = spec.parse().expect("a spec of the table");
    let mut model = Model::new(spec, &scene.state.topology);
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        scene.set(&mut model.hidden);
        model.select_task_rq(&scene.state, &scene.wakeup, None)
    });
}
