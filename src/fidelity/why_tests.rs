// SPDX-License-Identifier: GPL-2.0-or-later
use std::sync::Arc;

use super::*;
use crate::fair::Decision;
use crate::inputs::Provenance;
use crate::spec::ModelSpec;
use crate::topology::{self, TopologySource};

const THIS: Cpu = Cpu(0);
const PREV: Cpu = Cpu(1);

fn world() -> (State, Wakeup, Model) {
    let loaded = topology::load_for(&TopologySource::parse("1x4x1"), None).expect("a shorthand");
    let mut state = State::new(Arc::new(loaded.topology));
    for cpu in state.topology.clone().cpus() {
        set_idle(&mut state, cpu, false);
    }
    let spec: ModelSpec = "v6.1".parse().expect("a spec");
    let mut model = Model::new(spec, &state.topology);
    // Nothing is scanned.
    set_nr_idle_scan(&mut model, 0);
    let (p, current) = (TaskId(2), TaskId(3));
    for id in [p, current] {
        state.tasks[id].flags = crate::machine::TaskFlags::empty();
        state.tasks[id].cpus_ptr = (*state.topology.online()).into();
        state.tasks[id].nr_cpus_allowed = 4;
        model.hidden.task_mut(id, PREV);
    }
    let known = Provenance::TRACED;
    let kind = WakeKind::Ttwu;
    let wakeup = Wakeup { p, current, this_cpu: THIS, prev_cpu: PREV, kind, sync: false, in_task: true, known };
    (state, wakeup, model)
}

fn explained(state: &State, wakeup: &Wakeup, model: &Model, kernels: Cpu) -> Vec<Why> {
    let choice = Choice { class_cpu: Some(kernels), final_cpu: None };
    Trial { state, wakeup, model, choice }.explain()
}

fn decide(state: &State, wakeup: &Wakeup, model: &Model) -> Decision {
    model.clone().select_task_rq(state, wakeup, None)
}

#[test]
fn the_scan_limit_explains_an_idle_cpu_that_was_not_looked_for() {
    let (mut state, wakeup, model) = world();
    set_idle(&mut state, Cpu(3), true);
    let ours = decide(&state, &wakeup, &model).class_cpu;
    assert_ne!(ours, Cpu(3));
    let whys = explained(&state, &wakeup, &model, Cpu(3));
    assert!(whys.contains(&Why::NrIdleScan), "{whys:?}");
    assert!(!whys.contains(&Why::Context), "{whys:?}");
}

#[test]
fn idleness_explains_what_was_looked_at() {
    let (state, wakeup, model) = world();
    // The model stays where it searched from; the kernel found the other of both idle.
    let ours = decide(&state, &wakeup, &model).class_cpu;
    let other = if ours == THIS { PREV } else { THIS };
    let whys = explained(&state, &wakeup, &model, other);
    assert!(whys.contains(&Why::Idle) || whys.contains(&Why::Weight), "{whys:?}");
}

#[test]
fn affinity_explains_a_cpu_that_may_not_be_used() {
    let (mut state, wakeup, mut model) = world();
    set_nr_idle_scan(&mut model, 4);
    set_idle(&mut state, Cpu(2), true);
    set_idle(&mut state, Cpu(3), true);
    let ours = decide(&state, &wakeup, &model).class_cpu;
    let other = if ours == Cpu(2) { Cpu(3) } else { Cpu(2) };
    let whys = explained(&state, &wakeup, &model, other);
    assert!(whys.contains(&Why::Affinity) && whys.contains(&Why::Idle), "{whys:?}");
}

#[test]
fn a_choice_that_nothing_gives_is_unexplained() {
    let (state, wakeup, model) = world();
    // A CPU that is not there.
    assert_eq!(explained(&state, &wakeup, &model, Cpu(77)), []);
}

#[test]
fn flipping_twice_leaves_a_busy_cpu_busy() {
    let (mut state, ..) = world();
    flip_idle(&mut state, THIS);
    assert!(state.rq.curr_idle.test(THIS) && state.rq.nr_running[0] == 0);
    flip_idle(&mut state, THIS);
    assert!(!state.rq.curr_idle.test(THIS) && state.rq.nr_running[0] == 1);
}
