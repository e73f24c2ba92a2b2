// SPDX-License-Identifier: GPL-2.0-or-later
//! The five states that benches look at.

use std::sync::Arc;

use sisdiff::fair::Hidden;
use sisdiff::machine::{Provenance, State, TaskId};
use sisdiff::topology::{TopologySource, load};
use sisdiff::units::{Comm, Cpu, Pid};
use sisdiff::wakeup::{WakeKind, Wakeup};

/// The five states. In each, task 0 wakes on CPU 0 and last ran on CPU 1.
pub const STATES: &[&str] = &["all-idle", "half-busy", "throttled", "full-scan", "failing-core-search"];

pub struct Scene {
    pub state: State,
    pub wakeup: Wakeup,
    has_idle_cores: bool,
    nr_idle_scan: u32,
    avg_scan_cost_ns: u64,
}

impl Scene {
    /// Sets the hidden state that walks change.
    pub fn set(&self, hidden: &mut Hidden) {
        for shared in &mut hidden.shared {
            shared.has_idle_cores = self.has_idle_cores;
            shared.nr_idle_scan = self.nr_idle_scan;
        }
        hidden.cpus[0].avg_scan_cost_ns = self.avg_scan_cost_ns;
    }
}

pub fn scene(name: &str) -> Scene {
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
