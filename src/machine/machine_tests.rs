// SPDX-License-Identifier: GPL-2.0-or-later
//! One behaviour of the machine per test, on events written by hand.

#[path = "derived_tests.rs"]
mod derived;
#[path = "probe_tests.rs"]
mod probes;

use std::sync::Arc;

use super::*;
use crate::cpumask::Cpumask;
use crate::machine::{HiddenFact, Step};
use crate::topology::{Domain, Parts, SdFlags, Topology};
use crate::trace::{Context, Event, EventKind, PrevState, SisIn, SisRq, Wakee};
use crate::units::{Comm, Cpu, Pid};
use crate::wakeup::WakeKind;

const IDLE: i32 = 0;

/// Two LLCs of four CPUs each.
fn topology() -> Arc<Topology> {
    let llc = |from: u16| {
        let mut span = Cpumask::EMPTY;
        (from..from + 4).for_each(|cpu| span.set(Cpu(cpu)));
        Domain {
            level: 1,
            name: "MC".to_owned(),
            span,
            flags: SdFlags::SHARE_LLC | SdFlags::WAKE_AFFINE,
            imbalance_pct: 117,
            imb_numa_nr: 0,
        }
    };
    let parts = Parts {
        nr_cpu_ids: 8,
        online: Cpumask::first_n(8),
        smt: (0..8).map(|cpu| Cpumask::of(Cpu(cpu))).collect(),
        node: vec![0; 8],
        capacity_orig: vec![1024; 8],
        domains: vec![llc(0), llc(4)],
        ..Parts::default()
    };
    Arc::new(Topology::new(parts).expect("a proper topology"))
}

fn task(pid: i32) -> Wakee {
    let name = if pid == IDLE { "swapper".to_owned() } else { format!("t{pid}") };
    Wakee { pid: Pid(pid), comm: Comm::new(name.as_bytes()), prio: 120 }
}

fn named(pid: i32, name: &str, prio: i32) -> Wakee {
    Wakee { pid: Pid(pid), comm: Comm::new(name.as_bytes()), prio }
}

/// A machine and what it noticed.
struct Scene {
    machine: Machine,
    notices: Vec<Notice>,
    now_ns: u64,
}

impl Scene {
    fn new(config: MachineConfig) -> Self {
        let mut scene = Self { machine: Machine::new(topology(), config), notices: Vec::new(), now_ns: 1_000_000_000 };
        for cpu in 0..8 {
            scene.switch(cpu, task(999), PrevState::Blocked, task(IDLE));
        }
        scene.notices.clear();
        scene
    }

    fn plain() -> Self {
        Self::new(MachineConfig::default())
    }

    fn probed() -> Self {
        Self::new(MachineConfig { has_sis_in: true, ..MachineConfig::default() })
    }

    fn event(&mut self, cpu: u16, pid: i32, kind: EventKind) {
        self.now_ns += 1_000;
        let event = Event { ts_ns: self.now_ns, cpu: Cpu(cpu), pid: Pid(pid), context: Context::empty(), kind };
        let notices = &mut self.notices;
        self.machine.apply(&event, &mut |_: &State, notice| notices.push(notice));
    }

    fn later(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    fn switch(&mut self, cpu: u16, prev: Wakee, prev_state: PrevState, next: Wakee) {
        self.event(cpu, prev.pid.0, EventKind::Switch { prev, prev_state, next });
    }

    /// `pid` gets `cpu`, which was idle.
    fn run(&mut self, cpu: u16, pid: i32) {
        self.switch(cpu, task(IDLE), PrevState::Runnable, task(pid));
    }

    /// `pid` goes to sleep on `cpu`, which goes idle.
    fn sleep(&mut self, cpu: u16, pid: i32) {
        self.switch(cpu, task(pid), PrevState::Blocked, task(IDLE));
    }

    fn waking(&mut self, cpu: u16, waker: i32, wakee: Wakee, target: u16) {
        self.event(cpu, waker, EventKind::Waking { wakee, target_cpu: Cpu(target) });
    }

    fn wakeup(&mut self, cpu: u16, in_task: i32, wakee: Wakee, target: u16) {
        self.event(cpu, in_task, EventKind::Wakeup { wakee, target_cpu: Cpu(target), new: false });
    }

    fn migrate(&mut self, cpu: u16, in_task: i32, task: Wakee, orig: u16, dest: u16) {
        self.event(cpu, in_task, EventKind::Migrate { task, orig_cpu: Cpu(orig), dest_cpu: Cpu(dest) });
    }

    fn finish(&mut self) {
        let notices = &mut self.notices;
        self.machine.finish(&mut |_: &State, notice| notices.push(notice));
    }

    fn nr(&self, cpu: u16) -> u32 {
        self.machine.state().rq.nr_running[usize::from(cpu)]
    }

    fn pending(&self, cpu: u16) -> bool {
        self.machine.state().rq.ttwu_pending.test(Cpu(cpu))
    }

    fn idle(&self, cpu: u16) -> bool {
        self.nr(cpu) == 0 && !self.pending(cpu) && self.machine.state().rq.curr_idle.test(Cpu(cpu))
    }

    fn calls(&self) -> Vec<RecordedWakeup> {
        let call = |notice: &Notice| match notice {
            Notice::Wakeup(recorded) => Some(*recorded),
            _ => None,
        };
        self.notices.iter().filter_map(call).collect()
    }

    fn not_selected(&self) -> Vec<Why> {
        let why = |notice: &Notice| match notice {
            Notice::NotSelected { why, .. } => Some(*why),
            _ => None,
        };
        self.notices.iter().filter_map(why).collect()
    }

    fn chosen(&self) -> Vec<(u64, Option<u16>, Option<u16>)> {
        let choice = |notice: &Notice| match notice {
            Notice::Chosen { number, class_cpu, final_cpu } => {
                Some((*number, class_cpu.map(|cpu| cpu.0), final_cpu.map(|cpu| cpu.0)))
            }
            _ => None,
        };
        self.notices.iter().filter_map(choice).collect()
    }

    fn steps(&self) -> Vec<Step> {
        let step = |notice: &Notice| match notice {
            Notice::Step(step) => Some(*step),
            _ => None,
        };
        self.notices.iter().filter_map(step).collect()
    }

    fn sis_in(&mut self, cpu: u16, waker: i32, pid: i32, prev: u16, kind: WakeKind) {
        self.event(cpu, waker, EventKind::SisIn(Box::new(sis_in(pid, prev, kind))));
    }

    fn sis_out(&mut self, cpu: u16, waker: i32, ret: u16) {
        self.event(cpu, waker, EventKind::SisOut { ret: Some(Cpu(ret)) });
    }
}

fn sis_in(pid: i32, prev: u16, kind: WakeKind) -> SisIn {
    SisIn {
        pid: Pid(pid),
        prev_cpu: Cpu(prev),
        kind,
        sync: true,
        recent_used_cpu: Some(Cpu(5)),
        on_cpu: Some(false),
        wakee_flips: Some(3),
        wakee_flip_decay_jiffies: Some(77),
        last_wakee: Some(Pid(0)),
        util_avg: Some(100),
        util_est: Some(0x8000_0000 | 90),
        load_avg: Some(200),
        last_update_time_ns: Some(12_345),
        weight: Some(1024),
        nr_cpus_allowed: Some(4),
        cpus_ptr: Some([0x0f, u64::MAX]),
        policy: Some(0),
        flags: Some(0x0040_0040),
        depth: Some(0),
        numa_preferred_nid: Some(-1),
        delayed: None,
        jiffies: None,
    }
}

fn sis_rq(target: u16) -> SisRq {
    SisRq {
        target: Cpu(target),
        nr_running: Some(0),
        h_nr_running: Some(0),
        h_nr_runnable: None,
        h_nr_delayed: None,
        idle_h_nr_running: Some(0),
        ttwu_pending: Some(false),
        util_avg: Some(10),
        util_est: Some(0),
        load_avg: Some(20),
        runnable_avg: Some(30),
        cpu_capacity: Some(1000),
        avg_idle_ns: Some(400_000),
        wake_avg_idle_ns: Some(200_000),
        curr: Some(Pid(0)),
        curr_wakee_flips: Some(9),
        curr_last_wakee: Some(Pid(0)),
        curr_wakee_flip_decay_jiffies: None,
        curr_load_avg: None,
        curr_flags: None,
        curr_nr_cpus_allowed: None,
        curr_policy: None,
        idle_stamp_ns: None,
        h_load: None,
        last_h_load_jiffies: None,
        avg_scan_cost_ns: None,
        has_idle_cores: Some(true),
        nr_idle_scan: Some(3),
    }
}

#[test]
fn a_wakeup_is_told_when_the_kernel_is_seen_to_have_decided() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.run(2, 11);
    s.sleep(2, 11);
    s.waking(1, 10, task(11), 2);
    let asked_ns = s.now_ns;
    assert!(s.calls().is_empty());
    s.migrate(1, 10, task(11), 2, 3);
    let [call] = s.calls()[..] else { panic!("one call: {:?}", s.notices) };
    assert_eq!((call.number, call.pid, call.waker_pid), (1, Pid(11), Pid(10)));
    assert_eq!((call.wakeup.this_cpu, call.wakeup.prev_cpu, call.wakeup.kind), (Cpu(1), Cpu(2), WakeKind::Ttwu));
    assert!(call.wakeup.in_task && !call.wakeup.sync);
    assert!(call.wakeup.known.assumed.contains(Inputs::SYNC));
    assert_eq!(call.ts_ns, asked_ns);
    assert_eq!(s.chosen(), [(1, None, Some(3))]);
    assert!(s.idle(2) && !s.idle(3));
    s.wakeup(3, IDLE, task(11), 3);
    assert_eq!((s.nr(3), s.pending(3)), (1, false));
    assert_eq!(s.chosen().len(), 1);
}

#[test]
fn no_migration_means_the_task_stayed() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.sleep(2, 11);
    s.run(1, 10);
    s.waking(1, 10, task(11), 2);
    s.sleep(1, 10);
    assert_eq!(s.chosen(), [(1, None, Some(2))]);
    assert!(s.pending(2), "on the wake list until its sched_wakeup");
}

#[test]
fn the_decision_sees_the_state_before_it() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.sleep(2, 11);
    s.run(1, 10);
    let mut idle_then = None;
    s.now_ns += 1_000;
    let kind = EventKind::Waking { wakee: task(11), target_cpu: Cpu(2) };
    let event = Event { ts_ns: s.now_ns, cpu: Cpu(1), pid: Pid(10), context: Context::SOFTIRQ, kind };
    s.machine.apply(&event, &mut |state: &State, notice| {
        assert!(!matches!(notice, Notice::Wakeup(_)), "{state:?}");
    });
    s.now_ns += 50_000;
    let event = Event { ts_ns: s.now_ns, cpu: Cpu(7), pid: Pid(0), ..event };
    let event = Event { kind: EventKind::IdleState { target: Cpu(7), state: None }, ..event };
    s.machine.apply(&event, &mut |state: &State, notice| {
        if let Notice::Wakeup(call) = notice {
            assert!(!call.wakeup.in_task);
            idle_then = Some(state.rq.nr_running[2] == 0 && !state.rq.ttwu_pending.test(Cpu(2)));
        }
    });
    assert_eq!(idle_then, Some(true), "an event long after the waking shows that it was decided");
    assert!(!s.idle(2), "occupied from the decision on");
}

#[test]
fn an_untold_context_is_an_assumption() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.sleep(2, 11);
    s.run(1, 10);
    s.now_ns += 1_000;
    for (cpu, pid, in_task) in [(1, 10, true), (3, 0, false)] {
        let kind = EventKind::Waking { wakee: task(11), target_cpu: Cpu(2) };
        let event = Event { ts_ns: s.now_ns, cpu: Cpu(cpu), pid: Pid(pid), context: Context::UNTOLD, kind };
        let mut seen = None;
        let mut see = |_: &State, notice| {
            if let Notice::Wakeup(call) = notice {
                seen = Some((call.wakeup.in_task, call.wakeup.known.assumed.contains(Inputs::CONTEXT)));
            }
        };
        let mut machine = s.machine.clone();
        machine.apply(&event, &mut see);
        machine.finish(&mut see);
        assert_eq!(seen, Some((in_task, true)), "pid {pid}");
    }
}

#[test]
fn where_the_wake_list_is_used_follows_cache_and_release() {
    let place = |release, this: u16, target: u16, busy: bool| {
        let mut s = Scene::new(MachineConfig { release, ..MachineConfig::default() });
        if busy {
            s.run(target, 20);
        }
        s.run(7, 11);
        s.sleep(7, 11);
        if this != target {
            s.run(this, 10);
        }
        s.waking(this, if this == target { IDLE } else { 10 }, task(11), 7);
        s.migrate(this, 10, task(11), 7, target);
        (s.pending(target), s.nr(target))
    };
    let (old, new) = (Release::new(5, 10), Release::new(6, 1));
    assert_eq!(place(new, 1, 2, false), (true, 0), "same LLC, idle");
    // Without a wake list it is on no run queue before its sched_wakeup.
    assert_eq!(place(new, 1, 2, true), (false, 1), "same LLC, busy");
    assert_eq!(place(new, 1, 1, false), (false, 0), "this CPU");
    assert_eq!(place(new, 1, 5, true), (true, 1), "another LLC");
    assert_eq!(place(old, 1, 2, false), (false, 0), "same LLC, idle, before 6.0");
    assert_eq!(place(old, 1, 5, false), (true, 0), "another LLC, before 6.0");
}

#[test]
fn a_waking_of_current_selects_nothing() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(1, 10, task(10), 1);
    s.wakeup(1, 10, task(10), 1);
    assert_eq!(s.not_selected(), [Why::Current]);
    assert!(s.calls().is_empty());
    assert_eq!(s.nr(1), 1);
}

#[test]
fn a_preempted_task_is_still_queued() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(2, IDLE, task(11), 1);
    s.wakeup(2, IDLE, task(11), 1);
    s.switch(1, task(10), PrevState::Runnable, task(11));
    assert_eq!(s.nr(1), 2);
    s.waking(2, IDLE, task(10), 1);
    s.wakeup(2, IDLE, task(10), 1);
    assert_eq!(s.not_selected(), [Why::StillQueued]);
    assert_eq!(s.nr(1), 2);
}

#[test]
fn a_task_woken_while_it_switches_out_goes_to_its_wake_list() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(2, IDLE, task(10), 1);
    s.sleep(1, 10);
    assert_eq!((s.nr(1), s.pending(1)), (0, true));
    s.wakeup(1, IDLE, task(10), 1);
    assert_eq!((s.nr(1), s.pending(1)), (1, false));
    assert!(s.calls().is_empty());
}

#[test]
fn bound_kernel_threads_and_real_time_tasks_are_no_decision() {
    let mut s = Scene::plain();
    s.waking(2, IDLE, named(20, "kworker/3:1", 120), 3);
    s.waking(2, IDLE, named(21, "kworker/u8:1", 120), 3);
    s.waking(2, IDLE, named(22, "rcuop/3", 120), 3);
    s.waking(2, IDLE, named(23, "irq/24-nvme", 49), 3);
    assert_eq!(s.not_selected(), [Why::Bound, Why::NotFair]);
    assert_eq!(s.calls().iter().map(|call| call.pid.0).collect::<Vec<_>>(), [21, 22]);
    assert!(s.pending(3), "the bound ones occupy its wake list");
}

#[test]
fn fork_is_a_decision_at_the_first_wakeup() {
    let mut s = Scene::plain();
    s.run(1, 10);
    let fork = EventKind::Fork { parent: Pid(10), child: Pid(30), child_comm: task(30).comm };
    s.event(1, 10, fork);
    let parent = s.calls().first().map(|call| call.wakeup.current);
    assert_eq!(parent, None);
    let Some(&Step::Fork { p, parent: Some(_), cpu: Cpu(1) }) = s.steps().first() else {
        panic!("a fork step: {:?}", s.notices)
    };
    let new = EventKind::Wakeup { wakee: task(30), target_cpu: Cpu(4), new: true };
    s.event(1, 10, new);
    let [call] = s.calls()[..] else { panic!("one call") };
    assert_eq!((call.wakeup.kind, call.wakeup.p, call.wakeup.prev_cpu), (WakeKind::Fork, p, Cpu(1)));
    assert_eq!(s.chosen(), [(1, None, Some(4))]);
    assert_eq!((s.nr(1), s.nr(4)), (1, 1));
}

#[test]
fn a_child_has_its_parents_affinity() {
    let mut s = Scene::probed();
    s.run(1, 10);
    s.waking(2, IDLE, task(11), 1);
    s.sis_in(2, IDLE, 11, 1, WakeKind::Ttwu);
    s.sis_out(2, IDLE, 1);
    s.wakeup(1, 10, task(11), 1);
    s.switch(1, task(10), PrevState::Blocked, task(11));
    s.event(1, 11, EventKind::Fork { parent: Pid(11), child: Pid(30), child_comm: task(30).comm });
    let state = s.machine.state();
    let child = state.tasks.0.iter().find(|task| task.pid == Pid(30)).expect("the child");
    assert_eq!(child.cpus_ptr, Cpumask::first_n(4));
    assert_eq!(child.nr_cpus_allowed, 4);
}

#[test]
fn a_pid_comes_back_as_another_task() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.event(1, 10, EventKind::Fork { parent: Pid(10), child: Pid(30), child_comm: task(30).comm });
    s.event(1, 10, EventKind::Wakeup { wakee: task(30), target_cpu: Cpu(2), new: true });
    s.run(2, 30);
    s.event(2, 30, EventKind::Exit { pid: Pid(30) });
    s.switch(2, task(30), PrevState::Dead, task(IDLE));
    assert!(s.idle(2));
    s.event(1, 10, EventKind::Fork { parent: Pid(10), child: Pid(30), child_comm: task(30).comm });
    let forks: Vec<_> = s.steps().into_iter().filter(|step| matches!(step, Step::Fork { .. })).collect();
    assert_eq!(forks.len(), 2);
    assert_ne!(forks[0], forks[1], "another slot while the old one rests");
    s.event(1, 10, EventKind::Wakeup { wakee: task(30), target_cpu: Cpu(3), new: true });
    assert_eq!((s.nr(2), s.nr(3)), (0, 1));
}

#[test]
fn tasks_that_end_leave_no_slots_behind() {
    let mut s = Scene::plain();
    s.run(1, 10);
    for pid in 100..2100 {
        s.event(1, 10, EventKind::Fork { parent: Pid(10), child: Pid(pid), child_comm: task(pid).comm });
        s.event(1, 10, EventKind::Wakeup { wakee: task(pid), target_cpu: Cpu(2), new: true });
        s.run(2, pid);
        s.event(2, pid, EventKind::Exit { pid: Pid(pid) });
        s.switch(2, task(pid), PrevState::Dead, task(IDLE));
    }
    assert!(s.machine.state().tasks.0.len() < 120, "{} slots", s.machine.state().tasks.0.len());
}

#[test]
fn lost_events_make_a_cpu_unknown_until_its_next_switch() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(2, IDLE, task(11), 1);
    s.event(1, 0, EventKind::Lost { count: Some(7) });
    assert!(s.machine.state().rq.known[1].unknown.contains(Inputs::IDLE));
    s.switch(1, task(12), PrevState::Blocked, task(IDLE));
    assert!(!s.machine.state().rq.known[1].unknown.contains(Inputs::IDLE));
    assert!(s.idle(1), "whoever was booked there is not queued on an idle CPU");
    assert_eq!(s.machine.doubts().losses, 1);
    assert_eq!(s.machine.doubts().breaks, 0, "a switch after lost events contradicts nothing");
}

#[test]
fn lost_events_end_the_call_they_hit() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(1, 10, task(11), 2);
    s.event(1, 0, EventKind::Lost { count: None });
    assert!(s.notices.contains(&Notice::NeverChosen { number: 1 }));
}

#[test]
fn a_contradicting_switch_is_counted() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.sleep(1, 11);
    assert_eq!(s.machine.doubts().breaks, 1);
    assert!(s.idle(1));
}

#[test]
fn the_first_switch_tells_who_ran_before() {
    let mut machine = Machine::new(topology(), MachineConfig::default());
    assert!(machine.state().rq.known[3].unknown.contains(Inputs::IDLE));
    let kind = EventKind::Switch { prev: task(10), prev_state: PrevState::Blocked, next: task(IDLE) };
    let first = Event { ts_ns: 50, cpu: Cpu(3), pid: Pid(10), context: Context::empty(), kind };
    machine.prime(&first);
    let state = machine.state();
    assert_eq!(state.tasks[state.rq.curr[3]].pid, Pid(10));
    assert_eq!(state.rq.nr_running[3], 1);
    assert!(!state.rq.known[3].unknown.contains(Inputs::IDLE));
    assert!(state.rq.known[3].unknown.contains(Inputs::NR_RUNNING), "who else is queued is not known");
    machine.apply(&first, &mut |_: &State, _| {});
    assert_eq!(machine.state().rq.nr_running[3], 0);
    assert!(!machine.state().rq.known[3].unknown.contains(Inputs::NR_RUNNING));
}

#[test]
fn a_wakeup_seen_before_its_waking_counts_once() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.sleep(2, 11);
    s.wakeup(2, IDLE, task(11), 2);
    s.waking(1, IDLE, task(11), 2);
    assert_eq!(s.not_selected(), [Why::Unknown]);
    assert_eq!(s.nr(2), 1);
    s.run(2, 11);
    s.sleep(2, 11);
    assert!(s.idle(2), "no wake list entry is left behind");
}

#[test]
fn a_task_that_runs_before_its_wakeup_was_seen_is_not_queued_again() {
    let mut s = Scene::plain();
    s.run(2, 11);
    s.sleep(2, 11);
    s.waking(1, IDLE, task(11), 2);
    s.run(2, 11);
    s.sleep(2, 11);
    s.wakeup(2, IDLE, task(11), 2);
    assert!(s.idle(2));
    assert_eq!(s.machine.doubts().late_wakeups, 1);
}

#[test]
fn balance_moves_a_queued_task() {
    let mut s = Scene::plain();
    s.run(1, 10);
    s.waking(2, IDLE, task(11), 1);
    s.wakeup(2, IDLE, task(11), 1);
    assert_eq!((s.nr(1), s.nr(3)), (2, 0));
    s.migrate(3, IDLE, task(11), 1, 3);
    assert_eq!((s.nr(1), s.nr(3)), (1, 1));
    s.run(3, 11);
    assert_eq!(s.machine.doubts().misplaced, 0);
}

#[test]
fn idle_periods_are_averaged_and_clamped() {
    let config = MachineConfig { max_idle_balance_cost_ns: vec![700_000; 8], ..MachineConfig::default() };
    let mut s = Scene::new(config);
    let avg = |s: &Scene| s.machine.state().rq.avg_idle_ns[2];
    assert_eq!(avg(&s), 1_000_000);
    s.run(2, 11);
    s.sleep(2, 11);
    s.later(198_000);
    s.waking(1, IDLE, task(11), 2);
    s.wakeup(2, IDLE, task(11), 2);
    assert_eq!(avg(&s), 1_000_000 - 100_000, "200 us idle: an eighth of the way");
    let idle = s.steps().into_iter().rev().find_map(|step| match step {
        Step::LeaveIdle { cpu, idle_ns } => Some((cpu, idle_ns)),
        _ => None,
    });
    assert_eq!(idle, Some((Cpu(2), 200_000)));
    s.run(2, 11);
    s.sleep(2, 11);
    s.later(1_000_000_000);
    s.waking(1, IDLE, task(11), 2);
    s.wakeup(2, IDLE, task(11), 2);
    assert_eq!(avg(&s), 1_400_000, "twice max_idle_balance_cost");
}

#[test]
fn exec_is_a_decision_about_current() {
    let mut s = Scene::probed();
    s.run(1, 10);
    s.sis_in(1, 10, 10, 1, WakeKind::Exec);
    s.sis_out(1, 10, 4);
    let [call] = s.calls()[..] else { panic!("one call") };
    assert_eq!((call.wakeup.kind, call.wakeup.p), (WakeKind::Exec, call.wakeup.current));
    assert_eq!(s.chosen(), [(1, Some(4), None)]);
    assert_eq!((s.nr(1), s.nr(4)), (1, 0), "the stopper has not moved it yet");
    s.migrate(1, 19, task(10), 1, 4);
    assert_eq!((s.nr(1), s.nr(4)), (0, 1));
}

#[test]
fn the_end_tells_what_never_came() {
    let mut s = Scene::new(MachineConfig { has_migrate: false, ..MachineConfig::default() });
    s.waking(1, IDLE, task(11), 2);
    s.finish();
    assert!(s.notices.contains(&Notice::NeverChosen { number: 1 }));
}

#[test]
fn events_of_cpus_that_the_topology_lacks_are_counted() {
    let mut s = Scene::plain();
    s.run(500, 10);
    s.waking(1, IDLE, task(11), 600);
    s.migrate(1, IDLE, task(11), 2, 600);
    assert_eq!(s.machine.doubts().foreign, 3);
}

#[test]
fn a_cpu_that_goes_down_is_not_online() {
    let mut s = Scene::plain();
    s.event(1, IDLE, EventKind::Hotplug { target: Cpu(3), online: false });
    assert!(!s.machine.state().topology.online().test(Cpu(3)));
    s.event(1, IDLE, EventKind::Hotplug { target: Cpu(3), online: true });
    assert!(s.machine.state().topology.online().test(Cpu(3)));
}
