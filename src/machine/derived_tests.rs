// SPDX-License-Identifier: GPL-2.0-or-later
//! What no event says and the machine derives: affinity from habit, utilisation, load, late ticks.

use super::*;

#[test]
fn a_program_that_keeps_to_its_cpus_is_taken_to_be_bound_to_them() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.run(2, 20);
    while s.not_selected().is_empty() && s.calls().len() < 20 {
        // Woken on the busy CPU 2 every time, while the whole LLC around it is idle.
        s.waking(1, 10, task(11), 2);
        s.wakeup(1, 10, task(11), 2);
        s.switch(2, task(20), PrevState::Runnable, task(11));
        s.switch(2, task(11), PrevState::Blocked, task(20));
        s.later(5_000_000);
    }
    assert_eq!(s.not_selected(), [Why::Bound]);
    let before = s.calls().len();
    assert!((12..16).contains(&before), "{before} calls");
    // Seen elsewhere: not bound after all.
    s.migrate(3, IDLE, task(11), 2, 3);
    s.run(3, 11);
    s.sleep(3, 11);
    s.later(5_000_000);
    s.waking(1, 10, task(11), 3);
    s.finish();
    assert_eq!(s.calls().len(), before + 1);
}

#[test]
fn threads_of_one_program_share_what_is_assumed() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.event(1, 10, EventKind::Exec { pid: Pid(10), old_pid: Pid(10) });
    for pid in [30, 31] {
        s.event(1, 10, EventKind::Fork { parent: Pid(10), child: Pid(pid), child_comm: task(pid).comm });
        let cpu = if pid == 30 { 1 } else { 2 };
        s.event(1, 10, EventKind::Wakeup { wakee: task(pid), target_cpu: Cpu(cpu), new: true });
    }
    s.run(2, 31);
    s.switch(1, task(10), PrevState::Runnable, task(30));
    s.switch(1, task(30), PrevState::Blocked, task(10));
    for _ in 0..9 {
        s.later(5_000_000);
        s.waking(1, 10, task(30), 1);
        s.wakeup(1, 10, task(30), 1);
        s.switch(1, task(10), PrevState::Runnable, task(30));
        s.switch(1, task(30), PrevState::Blocked, task(10));
    }
    s.sleep(2, 31);
    s.later(5_000_000);
    s.waking(1, 10, task(31), 2);
    let mask = *s.machine.state().tasks.0.iter().find(|t| t.pid == Pid(31)).expect("forked").cpus_ptr;
    assert_eq!(mask.iter().collect::<Vec<_>>(), [Cpu(1), Cpu(2)]);
}

/// The utilisation that a decision about a task last on `cpu` sees there.
fn util_seen(s: &mut Scene, cpu: u16) -> u64 {
    s.waking(6, IDLE, task(77), cpu);
    s.migrate(6, IDLE, task(77), cpu, 7);
    s.wakeup(7, IDLE, task(77), 7);
    s.run(7, 77);
    s.sleep(7, 77);
    s.machine.state().rq.util_avg[usize::from(cpu)]
}

#[test]
fn a_task_that_runs_uses_its_cpu() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.later(32 * 1024 * 1024);
    let half = util_seen(&mut s, 2);
    assert!((480..540).contains(&half), "after a half-life: {half}");
    s.later(1_000_000_000);
    let full = util_seen(&mut s, 2);
    assert!(full > 1000, "{full}");
    assert!(!s.machine.state().rq.known[2].unknown.contains(Inputs::RQ_UTIL), "warm");
}

#[test]
fn a_sleeper_takes_its_load_along() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.later(400_000_000);
    s.sleep(2, 11);
    let before = util_seen(&mut s, 2);
    assert!(before > 900, "{before}");
    s.waking(1, IDLE, task(11), 2);
    s.migrate(1, IDLE, task(11), 2, 3);
    s.wakeup(3, IDLE, task(11), 3);
    s.run(3, 11);
    s.later(10_000_000);
    // The old run queue forgets it at its next update.
    s.run(2, 12);
    s.later(1_000_000);
    assert!(util_seen(&mut s, 2) < 100);
    assert!(util_seen(&mut s, 3) > 900);
}

#[test]
fn an_emulated_cpu_takes_its_tick_when_it_is_seen_to_run() {
    let mut s = Scene::new(MachineConfig { emulated: true, ..MachineConfig::default() });
    for cpu in 1..6 {
        s.run(cpu, 10 + i32::from(cpu));
        // One virtual CPU at a time.
        s.later(1_000_000);
    }
    s.later(100_000_000);
    let late = util_seen(&mut s, 1);
    s.switch(1, task(11), PrevState::Runnable, task(11));
    let now = util_seen(&mut s, 1);
    assert!(late < now && now > 800, "{late} {now}");
}

#[test]
fn load_limits_the_scan() {
    let mut s = Scene::plain();
    let limit = |s: &Scene| {
        s.steps().into_iter().rev().find_map(|step| match step {
            Step::Balance { shared: 0, nr_idle_scan } => Some(nr_idle_scan),
            _ => None,
        })
    };
    s.run(0, 10);
    s.run(1, 11);
    s.later(20_000_000);
    util_seen(&mut s, 0);
    assert_eq!(limit(&s), Some(3));
    s.run(2, 12);
    s.run(3, 13);
    s.later(1_000_000_000);
    util_seen(&mut s, 0);
    assert_eq!(limit(&s), Some(0), "four busy CPUs of four");
}

/// Any events in any order: no panic, and every count is what counting the tasks gives.
#[test]
fn random_events_keep_the_books_balanced() {
    for seed in 0..300 {
        let mut random = oorandom::Rand32::new(seed);
        let config = MachineConfig {
            has_sis_in: seed % 2 == 0,
            release: if seed % 3 == 0 { Release::new(5, 10) } else { Release::new(6, 12) },
            ..MachineConfig::default()
        };
        let mut s = Scene::new(config);
        for _ in 0..400 {
            random_event(&mut s, &mut random);
            check_counts(&s.machine);
        }
        s.finish();
        let told = s.notices.iter().filter(|n| matches!(n, Notice::Chosen { .. } | Notice::NeverChosen { .. })).count();
        assert_eq!(told, s.calls().len(), "seed {seed}: each call has one end");
    }
}

fn random_event(s: &mut Scene, random: &mut oorandom::Rand32) {
    let mut pick = |n: u32| random.rand_range(0..n) as i32;
    let pids = 12;
    let cpu = pick(9) as u16;
    let other = pick(9) as u16;
    let (a, b) = (pick(pids), pick(pids));
    let prio = [120, 120, 120, 139, 49][pick(5) as usize];
    let wakee = Wakee { prio, ..task(b) };
    let states = [PrevState::Runnable, PrevState::Blocked, PrevState::Blocked, PrevState::Dead];
    let prev_state = states[pick(4) as usize];
    let kinds = [WakeKind::Ttwu, WakeKind::Ttwu, WakeKind::Fork, WakeKind::Exec];
    let kind = match pick(16) {
        0..4 => EventKind::Switch { prev: task(a), prev_state, next: wakee },
        4..6 => EventKind::Waking { wakee, target_cpu: Cpu(other) },
        6..8 => EventKind::Wakeup { wakee, target_cpu: Cpu(other), new: pick(6) == 0 },
        8 => EventKind::Migrate { task: wakee, orig_cpu: Cpu(cpu), dest_cpu: Cpu(other) },
        9 => EventKind::Fork { parent: Pid(a), child: Pid(b), child_comm: wakee.comm },
        10 => EventKind::Exit { pid: Pid(b) },
        11 => EventKind::Free { pid: Pid(b) },
        12 => EventKind::SisIn(Box::new(SisIn {
            policy: Some([0, 5][pick(2) as usize]),
            ..sis_in(b, other, kinds[pick(4) as usize])
        })),
        13 => EventKind::SisOut { ret: Cpu::new(pick(10) as usize) },
        14 => EventKind::SisRq(Box::new(SisRq { curr: Some(Pid(a)), ..sis_rq(other) })),
        _ => match pick(4) {
            0 => EventKind::Lost { count: None },
            1 => EventKind::Exec { pid: Pid(a), old_pid: Pid(b) },
            2 => EventKind::Hotplug { target: Cpu(other), online: pick(2) == 0 },
            _ => EventKind::IdleState { target: Cpu(cpu), state: None },
        },
    };
    s.event(cpu, a, kind);
}

fn check_counts(machine: &Machine) {
    use crate::machine::book::Place;
    let state = machine.state();
    for cpu in state.topology.cpus() {
        let count = |wanted: &dyn Fn(usize) -> bool| {
            machine.books.iter().enumerate().filter(|(at, _)| wanted(*at)).count() as u32
        };
        let on = |at: usize| machine.books[at].place == Place::On(cpu);
        let fair = |at: usize| on(at) && machine.books[at].fair;
        assert_eq!(state.rq.nr_running[cpu.index()], count(&on));
        assert_eq!(state.rq.h_nr_running[cpu.index()], count(&fair));
        assert_eq!(state.rq.idle_h_nr_running[cpu.index()], count(&|at| fair(at) && state.tasks.0[at].policy_idle));
        let listed = count(&|at| machine.books[at].place == Place::Listed(cpu));
        assert_eq!(state.rq.ttwu_pending.test(cpu), listed > 0);
    }
}

fn is_policy_idle(s: &Scene, pid: i32) -> bool {
    let id = s.machine.pids.get(Pid(pid)).expect("was seen");
    s.machine.state().tasks[id].policy_idle
}

/// Task 20 runs alone on CPU 1; the kernel moves two others there.
fn stacked(awake_ns: u64) -> Scene {
    let mut s = Scene::new(MachineConfig { release: Release::new(5, 10), ..MachineConfig::default() });
    s.run(1, 20);
    s.run(3, 12);
    for (pid, prev) in [(11, 2), (13, 0)] {
        s.run(prev, pid);
        s.sleep(prev, pid);
    }
    s.later(awake_ns);
    for (pid, prev) in [(11, 2), (13, 0)] {
        s.waking(3, 12, task(pid), prev);
        s.migrate(3, 12, task(pid), prev, 1);
        s.wakeup(3, 12, task(pid), 1);
        s.switch(1, task(20), PrevState::Runnable, task(pid));
        s.later(3_000_000);
        s.switch(1, task(pid), PrevState::Blocked, task(20));
        s.later(3_000_000);
    }
    s
}

#[test]
fn a_task_beside_which_others_are_put_is_taken_for_sched_idle() {
    let s = stacked(150_000_000);
    assert!(is_policy_idle(&s, 20));
    assert!(!is_policy_idle(&s, 12) && !is_policy_idle(&s, 11));
    assert_eq!(s.machine.state().rq.idle_h_nr_running[1], 1);
    assert!(!is_policy_idle(&stacked(10_000_000), 20), "it may be about to sleep");
}

#[test]
fn one_whose_cpu_is_left_for_an_idle_one_is_not() {
    let mut s = stacked(150_000_000);
    // An interrupt on its CPU wakes what slept there, and the kernel looks for another.
    s.waking(1, 20, task(11), 1);
    s.migrate(1, 20, task(11), 1, 2);
    s.wakeup(1, 20, task(11), 2);
    assert!(!is_policy_idle(&s, 20));
    assert_eq!(s.machine.state().rq.idle_h_nr_running[1], 0);
}

#[test]
fn before_5_19_a_task_that_left_an_idle_cpu_kept_what_it_had_there() {
    let util = |release| {
        let mut s = Scene::new(MachineConfig { release, ..MachineConfig::default() });
        s.run(2, 11);
        s.later(500_000_000);
        s.sleep(2, 11);
        // No CPU is busy: nobody brings the idle one's averages up to date.
        s.later(100_000_000);
        s.waking(3, IDLE, task(11), 2);
        s.migrate(3, IDLE, task(11), 2, 1);
        s.wakeup(3, IDLE, task(11), 1);
        let id = s.machine.pids.get(Pid(11)).expect("was seen");
        s.machine.loads.entities[id.index()].avg.util_avg
    };
    assert!(util(Release::new(5, 10)) > 900);
    assert!(util(Release::new(6, 1)) < 300);
}
