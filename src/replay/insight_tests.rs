// SPDX-License-Identifier: GPL-2.0-or-later
//! What is learned from choices, against an implementation that shows what it reads.

use std::sync::Arc;

use super::*;
use crate::cpumask::Cpumask;
use crate::fair::{Exit, SisCounters, Walk, Writes};
use crate::inputs::Provenance;
use crate::machine::TaskId;
use crate::topology::{Domain, Parts, SdFlags, Topology};
use crate::units::Pid;

/// CPU 3 with an nr_idle_scan of 4 or more, CPU 1 for sync wakeups, else CPU 0.
#[derive(Default)]
struct Mock {
    nr_idle_scan: u32,
}

impl Implementation for Mock {
    fn name(&self) -> &str {
        "mock"
    }

    fn reads(&self) -> Inputs {
        Inputs::all()
    }

    fn step(&mut self, _state: &State, step: &Step) {
        if let Step::Balance { nr_idle_scan, .. } | Step::Fact(HiddenFact::NrIdleScan(_, nr_idle_scan)) = step {
            self.nr_idle_scan = *nr_idle_scan;
        }
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.peek(state, wakeup, walk)
    }

    fn peek(&mut self, _state: &State, wakeup: &Wakeup, _walk: Option<&mut Walk>) -> Decision {
        let cpu = Cpu(match wakeup.sync {
            true => 1,
            false if self.nr_idle_scan >= 4 => 3,
            false => 0,
        });
        Decision {
            class_cpu: cpu,
            final_cpu: cpu,
            exit: Exit::NewCpu,
            probes: 0,
            mask_ops: 0,
            sis: SisCounters::default(),
            read: Inputs::NR_IDLE_SCAN | Inputs::SYNC,
            leaned_on: Provenance::TRACED,
            faults: 0,
            writes: Writes::default(),
        }
    }
}

fn state() -> State {
    let llc = Domain {
        level: 1,
        name: "MC".to_owned(),
        span: Cpumask::first_n(8),
        flags: SdFlags::SHARE_LLC,
        imbalance_pct: 117,
        imb_numa_nr: 0,
    };
    let parts = Parts {
        nr_cpu_ids: 8,
        online: Cpumask::first_n(8),
        smt: (0..8).map(|cpu| Cpumask::of(Cpu(cpu))).collect(),
        node: vec![0; 8],
        capacity_orig: vec![1024; 8],
        domains: vec![llc],
        ..Parts::default()
    };
    State::new(Arc::new(Topology::new(parts).expect("a topology")))
}

fn wakeup(number: u64, sync_is_open: bool) -> RecordedWakeup {
    let mut known = Provenance::TRACED;
    if sync_is_open {
        known.set_assumed(Inputs::SYNC);
    }
    let wakeup = Wakeup {
        p: TaskId(9),
        current: TaskId(8),
        this_cpu: Cpu(1),
        prev_cpu: Cpu(0),
        kind: WakeKind::Ttwu,
        sync: false,
        in_task: true,
        known,
    };
    let (comm, waker_comm) = (Comm::new(b"reader"), Comm::new(b"writer"));
    RecordedWakeup { number, ts_ns: number, pid: Pid(9), comm, waker_pid: Pid(8), waker_comm, wakeup }
}

struct Bench {
    insight: Insight,
    model: Mock,
    state: State,
    number: u64,
}

impl Bench {
    fn new() -> Self {
        Self { insight: Insight::default(), model: Mock::default(), state: state(), number: 0 }
    }

    fn machine_tells(&mut self, step: Step) {
        if self.insight.step(&step) {
            self.model.step(&self.state, &step);
        }
    }

    /// One wakeup, of which the kernel then chooses `kernel`; what the model chose.
    fn wake(&mut self, sync_is_open: bool, kernel: u16) -> u16 {
        self.number += 1;
        let mut recorded = wakeup(self.number, sync_is_open);
        for step in self.insight.prepare(&self.state, &mut recorded) {
            self.model.step(&self.state, &step);
        }
        self.insight.ask(&self.state, &recorded, &mut self.model);
        let ours = self.model.select_task_rq(&self.state, &recorded.wakeup, None).class_cpu;
        self.insight.chosen(self.number, Choice { class_cpu: None, final_cpu: Some(Cpu(kernel)) });
        ours.0
    }
}

#[test]
fn a_scan_that_hit_shows_how_far_scans_may_go() {
    let mut bench = Bench::new();
    bench.machine_tells(Step::Balance { shared: 0, nr_idle_scan: 2 });
    assert_eq!(bench.wake(false, 3), 0, "as derived");
    assert_eq!(bench.wake(false, 3), 3, "the kernel's scan went at least to 4");
    bench.machine_tells(Step::Balance { shared: 0, nr_idle_scan: 3 });
    assert_eq!(bench.wake(false, 3), 3, "for a while");
    bench.state.jiffies += 100;
    assert_eq!(bench.wake(false, 0), 0, "then what is derived");
}

#[test]
fn a_scan_that_missed_shows_it_too() {
    let mut bench = Bench::new();
    bench.machine_tells(Step::Balance { shared: 0, nr_idle_scan: 8 });
    assert_eq!(bench.wake(false, 0), 3);
    assert_eq!(bench.wake(false, 0), 3, "one that is so far from what is derived may have another cause");
    assert_eq!(bench.wake(false, 0), 0, "two are believed");
    assert_eq!(bench.wake(false, 3), 0);
    assert_eq!(bench.wake(false, 3), 3, "the newer of two that contradict each other");
}

#[test]
fn a_choice_that_is_neither_shows_nothing() {
    let mut bench = Bench::new();
    bench.machine_tells(Step::Balance { shared: 0, nr_idle_scan: 8 });
    assert_eq!(bench.wake(false, 5), 3);
    assert_eq!(bench.wake(false, 5), 3);
}

#[test]
fn where_the_trace_tells_the_limit_nothing_is_learned() {
    let mut bench = Bench::new();
    bench.machine_tells(Step::Fact(HiddenFact::NrIdleScan(0, 8)));
    assert_eq!(bench.wake(false, 0), 3);
    assert_eq!(bench.wake(false, 0), 3);
    assert_eq!(bench.model.nr_idle_scan, 8);
}

#[test]
fn a_kind_of_wakeup_is_learned_to_be_synchronous() {
    let mut bench = Bench::new();
    assert_eq!(bench.wake(true, 1), 0);
    assert_eq!(bench.wake(true, 1), 1);
    assert_eq!(bench.wake(true, 0), 1);
    assert_eq!(bench.wake(true, 0), 1, "one exception is not the rule");
    for _ in 0..20 {
        bench.wake(true, 0);
    }
    assert_eq!(bench.wake(true, 0), 0, "many are");
    assert_eq!(bench.wake(false, 1), 0, "a flag that is told is not learned");
}

#[test]
fn what_is_not_known_of_a_waker_comes_from_its_wakees_and_from_all() {
    let mut bench = Bench::new();
    bench.wake(true, 1);
    bench.number += 1;
    let mut other = RecordedWakeup { waker_comm: Comm::new(b"another"), ..wakeup(bench.number, true) };
    bench.insight.prepare(&bench.state, &mut other);
    assert!(other.wakeup.sync);
    let mut in_irq = wakeup(bench.number, true);
    in_irq.wakeup.in_task = false;
    bench.insight.prepare(&bench.state, &mut in_irq);
    assert!(!in_irq.wakeup.sync, "interrupts are another matter");
}

#[test]
fn memory_is_bounded() {
    let mut bench = Bench::new();
    bench.machine_tells(Step::Balance { shared: 0, nr_idle_scan: 8 });
    for number in 1..10_000 {
        let mut recorded = wakeup(number, true);
        recorded.comm = Comm::new(format!("t{number}").as_bytes());
        bench.insight.prepare(&bench.state, &mut recorded);
        bench.insight.ask(&bench.state, &recorded, &mut bench.model);
        if number % 2 == 0 {
            bench.insight.chosen(number, Choice { class_cpu: Some(Cpu(1)), final_cpu: None });
        }
    }
    assert!(bench.insight.asked.len() <= HELD_MAX);
    assert!(bench.insight.sync.len() <= KINDS_MAX);
}
