// SPDX-License-Identifier: GPL-2.0-or-later
//! Cluster domains, which no vector has: each `return` that v6.12 and v7.3 added for them.

mod support;

use sisdiff::cpumask::Cpumask;
use sisdiff::fair::{Decision, Exit, Hidden, Implementation, Model};
use sisdiff::machine::{State, Task, TaskId};
use sisdiff::spec::ModelSpec;
use sisdiff::units::{Comm, Cpu, Pid};
use sisdiff::wakeup::{WakeKind, Wakeup};

/// LLC 0 is CPUs 0-7 in clusters 0-3 and 4-7. CPU 1 wakes a task that was last on `prev` and before on `recent`; only the
/// CPUs of `idle` are idle, and the scan may look at `nr_idle_scan` CPUs.
fn decide(spec: &str, idle: &str, prev: u16, recent: u16, nr_idle_scan: u32) -> Decision {
    let spec: ModelSpec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
    let topology = support::clustered();
    let mut state = State::new(topology.clone());
    state.rq.curr_idle = idle.parse().expect("a cpulist");
    for cpu in topology.cpus() {
        state.rq.nr_running[cpu.index()] = u32::from(!state.rq.curr_idle.test(cpu));
    }
    let mut model = Model::new(spec, &topology);
    let mut add = |name: &[u8]| {
        let id = TaskId(state.tasks.0.len() as u32);
        state.tasks.0.push(Task::new(Pid(id.0 as i32), Comm::new(name), Cpumask::first_n(16), Cpu(prev)));
        model.hidden.task_mut(id, Cpu(recent));
        id
    };
    let (p, current) = (add(b"wakee"), add(b"waker"));
    let known: &mut Hidden = &mut model.hidden;
    known.shared[0].nr_idle_scan = nr_idle_scan;
    // The sync rule makes CPU 1 the target.
    let wakeup = Wakeup {
        p,
        current,
        this_cpu: Cpu(1),
        prev_cpu: Cpu(prev),
        kind: WakeKind::Ttwu,
        sync: true,
        in_task: true,
        known: Default::default(),
    };
    model.select_task_rq(&state, &wakeup, None)
}

fn chosen(spec: &str, idle: &str, prev: u16, recent: u16, nr_idle_scan: u32) -> (u16, Exit) {
    let decision = decide(spec, idle, prev, recent, nr_idle_scan);
    (decision.class_cpu.0, decision.exit)
}

#[test]
fn prev_of_the_same_cluster_is_taken_at_once() {
    for spec in ["v6.1", "v6.12", "v6.12.117", "v7.3"] {
        assert_eq!(chosen(spec, "2-3,5", 3, 5, 8), (3, Exit::Prev), "{spec}");
    }
}

#[test]
fn a_cpu_of_the_targets_cluster_comes_before_prev_of_another() {
    assert_eq!(chosen("v6.1", "2,5", 5, 5, 8), (5, Exit::Prev));
    for spec in ["v6.12", "v6.12.117", "v7.3"] {
        assert_eq!(chosen(spec, "2,5", 5, 5, 8), (2, Exit::IdleCluster), "{spec}");
        assert_eq!(decide(spec, "2,5", 5, 5, 8).sis.recent_hit, 0, "{spec}");
    }
}

#[test]
fn the_rest_of_the_llc_comes_after_the_cluster() {
    for spec in ["v6.12", "v6.12.117", "v7.3"] {
        assert_eq!(chosen(spec, "6,8", 5, 5, 8), (6, Exit::IdleCpu), "{spec}");
    }
}

#[test]
fn prev_of_another_cluster_is_better_than_nothing() {
    // Two looks: CPUs 2 and 3, then the limit.
    for spec in ["v6.12", "v6.12.117", "v7.3"] {
        assert_eq!(chosen(spec, "5", 5, 5, 2), (5, Exit::ClusterPrev), "{spec}");
        assert_eq!(chosen(spec, "8", 5, 5, 2), (1, Exit::BudgetSpent), "{spec}");
    }
}

#[test]
fn then_the_recently_used_cpu_of_another_cluster() {
    assert_eq!(chosen("v6.1", "6", 5, 6, 2), (6, Exit::RecentUsed));
    for spec in ["v6.12", "v6.12.117", "v7.3"] {
        assert_eq!(chosen(spec, "6", 5, 6, 2), (6, Exit::ClusterRecentUsed), "{spec}");
        assert_eq!(chosen(spec, "3", 5, 3, 0), (3, Exit::RecentUsed), "{spec}");
        let sis = decide(spec, "6", 5, 6, 2).sis;
        assert_eq!((sis.recent_hit, sis.recent_miss, sis.failed), (1, 0, 0), "{spec}");
    }
}
