// SPDX-License-Identifier: GPL-2.0-or-later
//! What probes tell, and what they override.

use super::*;

#[test]
fn a_probed_call_is_told_with_its_facts_first() {
    let mut s = Scene::probed();
    s.run(1, 10);
    s.run(2, 11);
    s.sleep(2, 11);
    s.notices.clear();
    s.waking(1, 10, task(11), 2);
    assert!(s.notices.is_empty(), "no decision before sis_in");
    for target in (0..8).rev() {
        let mut rq = sis_rq(target);
        if target == 1 {
            (rq.nr_running, rq.h_nr_running, rq.curr) = (Some(1), Some(1), Some(Pid(10)));
        }
        s.event(1, 10, EventKind::SisRq(Box::new(rq)));
    }
    s.sis_in(1, 10, 11, 2, WakeKind::Ttwu);
    assert!(s.calls().is_empty(), "what happens until sis_out, the kernel may have seen");
    s.sis_out(1, 10, 6);
    let [call] = s.calls()[..] else { panic!("one call: {:?}", s.notices) };
    assert!(call.wakeup.sync && call.wakeup.known.is_known());
    let at = s.notices.iter().position(|notice| matches!(notice, Notice::Wakeup(_))).expect("the call");
    let facts: Vec<_> = s.notices[..at]
        .iter()
        .filter_map(|notice| match notice {
            Notice::Step(Step::Fact(fact)) => Some(*fact),
            _ => None,
        })
        .collect();
    let (p, current) = (call.wakeup.p, call.wakeup.current);
    for fact in [
        HiddenFact::RecentUsedCpu(p, Cpu(5)),
        HiddenFact::WakeeFlips(p, 3, Some(77)),
        HiddenFact::LastWakee(p, None),
        HiddenFact::WakeeFlips(current, 9, None),
        HiddenFact::HasIdleCores(0, true),
        HiddenFact::HasIdleCores(1, true),
        HiddenFact::NrIdleScan(1, 3),
        HiddenFact::WakeAvgIdle(Cpu(1), 200_000),
    ] {
        assert!(facts.contains(&fact), "{fact:?} in {facts:?}");
    }
    assert_eq!(s.notices.len() - 1, at, "nothing between the call and its choice");
    s.migrate(1, 10, task(11), 2, 3);
    assert_eq!(s.chosen(), [(1, Some(6), Some(3))], "the class's answer and the fallback differ");
    let task = &s.machine.state().tasks[p];
    assert_eq!((task.util_est_enqueued, task.load_avg, *task.cpus_ptr), (90, 200, Cpumask::first_n(4)));
}

#[test]
fn tasks_on_their_way_count_once_they_arrive() {
    let seen = |arrives: bool| {
        let mut s = Scene::probed();
        s.run(1, 10);
        s.run(3, 12);
        // Another CPU's wakeup was decided for CPU 5, which a probe does not see yet.
        s.waking(3, 12, task(13), 5);
        s.sis_in(3, 12, 13, 5, WakeKind::Ttwu);
        s.sis_out(3, 12, 1);
        s.waking(1, 10, task(11), 2);
        s.event(1, 10, EventKind::SisRq(Box::new(SisRq { nr_running: Some(1), curr: Some(Pid(10)), ..sis_rq(1) })));
        if arrives {
            s.wakeup(1, 10, task(13), 1);
            s.waking(1, 10, task(11), 2);
        }
        s.sis_in(1, 10, 11, 2, WakeKind::Ttwu);
        let mut nr = None;
        s.now_ns += 1_000;
        let kind = EventKind::SisOut { ret: Some(Cpu(2)) };
        let event = Event { ts_ns: s.now_ns, cpu: Cpu(1), pid: Pid(10), context: Context::empty(), kind };
        s.machine.apply(&event, &mut |state: &State, notice| {
            if let Notice::Wakeup(_) = notice {
                nr = Some(state.rq.nr_running[1]);
            }
        });
        nr
    };
    assert_eq!(seen(false), Some(1));
    assert_eq!(seen(true), Some(2));
}

#[test]
fn a_probe_overrides_the_books_for_its_decision_only() {
    let mut s = Scene::probed();
    s.run(1, 10);
    s.run(2, 11);
    s.sleep(2, 11);
    s.waking(1, 10, task(11), 2);
    let rq = SisRq { nr_running: Some(4), h_nr_running: Some(3), ..sis_rq(5) };
    s.event(1, 10, EventKind::SisRq(Box::new(rq)));
    s.now_ns += 1_000;
    let kind = EventKind::SisIn(Box::new(sis_in(11, 2, WakeKind::Ttwu)));
    let event = Event { ts_ns: s.now_ns, cpu: Cpu(1), pid: Pid(10), context: Context::empty(), kind };
    let mut seen = None;
    let mut see = |state: &State, notice| {
        if let Notice::Wakeup(_) = notice {
            seen = Some((state.rq.nr_running[5], state.rq.h_nr_running[5], state.rq.load_avg[5]));
        }
    };
    s.machine.apply(&event, &mut see);
    s.now_ns += 1_000;
    s.machine.apply(&Event { ts_ns: s.now_ns, kind: EventKind::SisOut { ret: Some(Cpu(2)) }, ..event }, &mut see);
    assert_eq!(seen, Some((4, 3, 20)));
    assert_eq!(s.nr(5), 0);
}

#[test]
fn what_probes_tell_of_the_waker_its_run_queue_and_the_jiffies_is_used() {
    let mut s = Scene::probed();
    s.run(1, 10);
    s.run(2, 11);
    s.sleep(2, 11);
    s.waking(1, 10, task(11), 2);
    let rq = SisRq {
        curr: Some(Pid(10)),
        curr_flags: Some(0x0020_0000),
        curr_nr_cpus_allowed: Some(1),
        curr_policy: Some(5),
        curr_load_avg: Some(3),
        curr_wakee_flip_decay_jiffies: Some(4_000_000_321),
        idle_stamp_ns: Some(77),
        h_load: Some(512),
        last_h_load_jiffies: Some(4_000_000_400),
        load_avg: Some(1023),
        ..sis_rq(1)
    };
    s.event(1, 10, EventKind::SisRq(Box::new(rq)));
    s.now_ns += 1_000;
    let kind = EventKind::SisIn(Box::new(SisIn { jiffies: Some(4_000_000_400), ..sis_in(11, 2, WakeKind::Ttwu) }));
    let event = Event { ts_ns: s.now_ns, cpu: Cpu(1), pid: Pid(10), context: Context::empty(), kind };
    let mut seen = None;
    let mut decay = None;
    let stamp_ns = s.machine.state().rq.idle_stamp_ns[1];
    let mut see = |state: &State, notice| match notice {
        Notice::Wakeup(recorded) => {
            let waker = &state.tasks[recorded.wakeup.current];
            let facts = (waker.flags, waker.nr_cpus_allowed, waker.policy_idle, waker.load_avg);
            seen = Some((facts, state.jiffies, state.rq.idle_stamp_ns[1], waker.h_load));
        }
        Notice::Step(Step::Fact(HiddenFact::WakeeFlips(_, 9, since))) => decay = since,
        _ => {}
    };
    s.machine.apply(&event, &mut see);
    s.now_ns += 1_000;
    s.machine.apply(&Event { ts_ns: s.now_ns, kind: EventKind::SisOut { ret: Some(Cpu(2)) }, ..event }, &mut see);
    // h_load is not refreshed within its jiffy: 3 * 512 / 1024.
    assert_eq!(seen, Some(((TaskFlags::KTHREAD, 1, true, 3), 4_000_000_400, 77, 1)));
    assert_eq!(decay, Some(4_000_000_321));
    assert_eq!(s.machine.state().rq.idle_stamp_ns[1], stamp_ns, "of another clock than the books");
}

#[test]
fn with_the_entry_probe_a_waking_without_it_is_no_decision() {
    let mut s = Scene::probed();
    s.run(2, 11);
    s.sleep(2, 11);
    s.later(10_000_000);
    s.waking(1, IDLE, task(11), 2);
    s.wakeup(2, IDLE, task(11), 2);
    s.run(1, 10);
    assert!(s.calls().is_empty());
    assert_eq!(s.not_selected(), [Why::Unexplained]);
    assert_eq!(s.nr(2), 1);
}

#[test]
fn ignoring_probes_is_as_if_there_were_none() {
    let mut s = Scene::new(MachineConfig { has_sis_in: true, ignore_probes: true, ..MachineConfig::default() });
    s.run(2, 11);
    s.sleep(2, 11);
    s.waking(1, IDLE, task(11), 2);
    s.sis_in(1, IDLE, 11, 2, WakeKind::Ttwu);
    s.sis_out(1, IDLE, 3);
    s.wakeup(2, IDLE, task(11), 2);
    assert_eq!(s.calls().len(), 1);
    assert_eq!(s.chosen(), [(1, None, Some(2))]);
}
