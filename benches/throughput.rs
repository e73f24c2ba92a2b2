// SPDX-License-Identifier: GPL-2.0-or-later
//! Events per second decoded, events per second through the machine, events per second of a whole replay, wakeups per
//! second of each implementation in five states of a machine of two sockets, twenty cores each, two threads a core.
//!
//! Single absolute figures mean nothing on a shared machine: compare ratios within one run.

use std::path::Path;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use sisdiff::fair::{Implementation, Model, RELEASES};
use sisdiff::machine::{Machine, MachineConfig, Notice, Provenance, State, TaskId};
use sisdiff::replay::recording::{ReaderKind, Source};
use sisdiff::replay::run::{Job, Progress, replay};
use sisdiff::replay::{Filter, Options};
use sisdiff::report::decisions;
use sisdiff::topology::{TopologySource, load};
use sisdiff::trace::Event;
use sisdiff::units::{Comm, Cpu, Pid};
use sisdiff::wakeup::{WakeKind, Wakeup};

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
    let spec = |name: &str| name.parse::<sisdiff::fair::ModelSpec>().expect("a spec").into();
    let options = Options::new(spec("v5.11"), vec![spec("v5.11+mel-v2")]);
    let job = Job { options: &options, filter: &|_| Filter::default(), filters: &[], progress: &Silent };
    bencher.counter(ItemsCount::new(events(&source))).bench(|| {
        replay(&[source.path().to_owned()], &job, Some(1), decisions::line, None).expect("it was replayed before")
    });
}

/// The five states. In each, task 0 wakes on CPU 0 and last ran on CPU 1.
const STATES: &[&str] = &["all-idle", "half-busy", "throttled", "full-scan", "failing-core-search"];

struct Scene {
    state: State,
    wakeup: Wakeup,
    has_idle_cores: bool,
    nr_idle_scan: u32,
    avg_scan_cost_ns: u64,
}

fn scene(name: &str) -> Scene {
    let topology = Arc::new(load(&TopologySource::parse("2x20x2")).expect("a shorthand").topology);
    let mut state = State::new(Arc::clone(&topology));
    let all = *topology.online();
    let p = TaskId(state.tasks.0.len() as u32);
    for pid in [100, 101] {
        state.tasks.0.push(sisdiff::machine::Task::new(Pid(pid), Comm::new(b"bench"), all, Cpu(1)));
    }
    let current = TaskId(p.0 + 1);
    // Which CPUs run something: siblings are N and N + 40.
    let busy: Box<dyn Fn(usize) -> bool> = match name {
        "all-idle" => Box::new(|_| false),
        "half-busy" => Box::new(|cpu| cpu < 40),
        "failing-core-search" => Box::new(|cpu| cpu < 40 || cpu % 20 != 19),
        _ => Box::new(|_| true),
    };
    for cpu in topology.cpus() {
        if busy(cpu.index()) {
            state.rq.curr_idle.clear(cpu);
            state.rq.curr[cpu.index()] = current;
            state.rq.nr_running[cpu.index()] = 1;
            state.rq.h_nr_running[cpu.index()] = 1;
            state.rq.h_nr_runnable[cpu.index()] = 1;
            state.rq.load_avg[cpu.index()] = 1024;
        }
        state.rq.avg_idle_ns[cpu.index()] = if name == "throttled" { 600 } else { 1_000_000 };
    }
    let wakeup = Wakeup {
        p,
        current,
        this_cpu: Cpu(0),
        prev_cpu: Cpu(1),
        kind: WakeKind::Ttwu,
        sync: false,
        in_task: true,
        known: Provenance::TRACED,
    };
    Scene {
        state,
        wakeup,
        has_idle_cores: name == "failing-core-search",
        nr_idle_scan: if name == "throttled" { 4 } else { 40 },
        avg_scan_cost_ns: if name == "throttled" { 10_000 } else { 10 },
    }
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
        for shared in &mut model.hidden.shared {
            shared.has_idle_cores = scene.has_idle_cores;
            shared.nr_idle_scan = scene.nr_idle_scan;
        }
        model.hidden.cpus[0].avg_scan_cost_ns = scene.avg_scan_cost_ns;
        model.select_task_rq(&scene.state, &scene.wakeup, None)
    });
}
