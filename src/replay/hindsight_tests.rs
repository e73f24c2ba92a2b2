// SPDX-License-Identifier: GPL-2.0-or-later
use std::sync::Arc;

use super::*;
use crate::fair::Model;
use crate::inputs::Provenance;
use crate::spec::ModelSpec;
use crate::topology::{self, TopologySource};
use crate::units::{Comm, Pid};

const PREV: Cpu = Cpu(1);
const BEFORE: Cpu = Cpu(5);

fn question(rule: RecentRule, written: bool, ours: u16) -> RecentQuestion {
    let ours = (Cpu(ours), Cpu(ours));
    RecentQuestion { p: TaskId(9), rule, this_cpu: Cpu(0), prev_cpu: PREV, before: BEFORE, written, ours }
}

fn chose(cpu: u16) -> Choice {
    Choice { class_cpu: None, final_cpu: Some(Cpu(cpu)) }
}

#[test]
fn a_recently_used_cpu_that_was_not_returned_stays() {
    let ours = question(RecentRule::AtHit, true, BEFORE.0);
    assert_eq!(ours.lesson(chose(3)), Some(HiddenFact::RecentUsedCpu(TaskId(9), BEFORE)));
    assert_eq!(ours.lesson(chose(BEFORE.0)), None, "the model is right");
    assert_eq!(ours.lesson(Choice::default()), None, "nothing is known");
}

#[test]
fn one_that_was_returned_is_replaced() {
    let ours = question(RecentRule::AtHit, false, 3);
    assert_eq!(ours.lesson(chose(BEFORE.0)), Some(HiddenFact::RecentUsedCpu(TaskId(9), PREV)));
    assert_eq!(ours.lesson(chose(4)), None);
}

#[test]
fn since_5_15_whatever_was_searched_for_shows_that_it_was_replaced() {
    let ours = question(RecentRule::BeforeTest, false, PREV.0);
    assert_eq!(ours.lesson(chose(4)), Some(HiddenFact::RecentUsedCpu(TaskId(9), PREV)));
    assert_eq!(ours.lesson(chose(0)), None, "the target may have been idle");
    assert_eq!(question(RecentRule::BeforeTest, true, 3).lesson(chose(0)), None);
}

/// 16 CPUs of one LLC without threads, all busy but the last one.
struct Bench {
    state: State,
    model: Model,
    hindsight: Hindsight,
    number: u64,
}

impl Bench {
    fn new() -> Self {
        let loaded = topology::load_for(&TopologySource::parse("1x16x1"), None).expect("a shorthand");
        let mut state = State::new(Arc::new(loaded.topology));
        for at in 0..15 {
            state.rq.nr_running[at] = 1;
            state.rq.h_nr_running[at] = 1;
            state.rq.curr_idle.clear(Cpu(at as u16));
            state.rq.curr[at] = TaskId(17);
        }
        let spec: ModelSpec = "v5.10".parse().expect("a spec");
        let model = Model::new(spec, &state.topology);
        Self { state, model, hindsight: Hindsight::default(), number: 0 }
    }

    /// One wakeup on CPU 0, of which the kernel chooses `kernel`; what the model chose.
    fn wake(&mut self, kernel: u16) -> u16 {
        for step in self.hindsight.take().collect::<Vec<_>>() {
            self.model.step(&self.state, &step);
        }
        self.number += 1;
        let wakeup = Wakeup {
            p: TaskId(1),
            current: TaskId(0),
            this_cpu: Cpu(0),
            prev_cpu: Cpu(0),
            kind: WakeKind::Ttwu,
            sync: false,
            in_task: false,
            known: Provenance::TRACED,
        };
        let task = &mut self.state.tasks[TaskId(1)];
        task.cpus_ptr = (*self.state.topology.online()).into();
        task.nr_cpus_allowed = 16;
        self.model.hidden.task_mut(TaskId(1), Cpu(0)).recent_used_cpu = Cpu(0);
        let comm = Comm::new(b"wakee");
        let recorded = RecordedWakeup {
            number: self.number,
            ts_ns: self.number,
            pid: Pid(9),
            comm,
            waker_pid: Pid(0),
            waker_comm: comm,
            wakeup,
        };
        let decision = self.model.peek(&self.state, &wakeup, None);
        self.hindsight.ask(&self.state, &recorded, &decision, &mut self.model);
        self.model.select_task_rq(&self.state, &wakeup, None);
        self.hindsight.chosen(self.number, chose(kernel));
        decision.class_cpu.0
    }
}

#[test]
fn a_scan_that_ended_early_shows_that_scans_cost_more() {
    let mut bench = Bench::new();
    assert_eq!(bench.wake(0), 15, "scans cost next to nothing, as declared");
    assert_eq!(bench.wake(0), 0, "the kernel's did not come so far");
    assert!(bench.model.hidden.clock.probe_ns > 50);
    let dear = bench.model.hidden.clock.probe_ns;
    assert_eq!(bench.wake(15), 0);
    assert_eq!(bench.wake(15), 15, "and now it did");
    assert!(bench.model.hidden.clock.probe_ns < dear);
}

#[test]
fn a_cost_that_a_probe_tells_is_left_alone() {
    let mut bench = Bench::new();
    let fact = Step::Fact(HiddenFact::AvgScanCost(Cpu(0), 60));
    bench.model.step(&bench.state, &fact);
    assert_eq!(bench.wake(0), 15);
    assert_eq!(bench.wake(0), 15);
}

#[test]
fn what_waits_for_a_choice_is_bounded() {
    let mut bench = Bench::new();
    for number in 0..2 * HELD_MAX as u64 {
        bench.hindsight.hold(number, Some(question(RecentRule::AtHit, true, 3)), None);
    }
    assert_eq!(bench.hindsight.held.len(), HELD_MAX);
}
