// SPDX-License-Identifier: GPL-2.0-or-later
//! The driver against an implementation that does as it is told.

use std::sync::{Arc, Mutex};

use super::*;
use crate::cpumask::Cpumask;
use crate::fair::{Exit, HiddenFact, SisCounters, Writes};
use crate::machine::{TaskId, Why};
use crate::topology::{Parts, Topology};
use crate::units::Pid;
use crate::wakeup::{WakeKind, Wakeup};

/// Chooses `cpu`, or `sync_cpu` for sync wakeups, and remembers what it was told.
struct Mock {
    name: &'static str,
    cpu: u16,
    sync_cpu: u16,
    leaned_on: Provenance,
    /// What it chooses if wake_wide() holds; `None`: its wakee flips are known.
    wide_cpu: Option<u16>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Mock {
    fn new(name: &'static str, cpu: u16) -> Self {
        Self { name, cpu, sync_cpu: cpu, leaned_on: Provenance::TRACED, wide_cpu: None, log: Arc::default() }
    }

    fn is(self, role: Role) -> Contestant {
        Contestant { role, implementation: Box::new(self) }
    }
}

impl Implementation for Mock {
    fn name(&self) -> &str {
        self.name
    }

    fn reads(&self) -> Inputs {
        Inputs::all()
    }

    fn step(&mut self, _state: &State, step: &Step) {
        self.log.lock().expect("one thread").push(format!("{step:?}"));
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.log.lock().expect("one thread").push(format!("select sync={}", wakeup.sync));
        self.peek(state, wakeup, walk)
    }

    fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
        let narrow = self.peek(state, wakeup, None);
        let wide = Cpu(self.wide_cpu?);
        Some([narrow, Decision { class_cpu: wide, final_cpu: wide, ..narrow }])
    }

    fn peek(&mut self, _state: &State, wakeup: &Wakeup, _walk: Option<&mut Walk>) -> Decision {
        let cpu = Cpu(if wakeup.sync { self.sync_cpu } else { self.cpu });
        Decision {
            class_cpu: cpu,
            final_cpu: cpu,
            exit: if wakeup.sync { Exit::Target } else { Exit::Prev },
            probes: 1,
            mask_ops: 0,
            sis: SisCounters { search: 1, scanned: 1, ..SisCounters::default() },
            read: Inputs::IDLE | Inputs::SYNC,
            leaned_on: self.leaned_on | wakeup.known.of(Inputs::SYNC),
            faults: 0,
            writes: Writes::default(),
        }
    }
}

fn state() -> State {
    let parts = Parts {
        nr_cpu_ids: 4,
        online: Cpumask::first_n(4),
        smt: (0..4).map(|cpu| Cpumask::of(Cpu(cpu))).collect(),
        node: vec![0; 4],
        capacity_orig: vec![1024; 4],
        ..Parts::default()
    };
    State::new(Arc::new(Topology::new(parts).expect("a topology")))
}

fn recorded(number: u64) -> RecordedWakeup {
    let known = Provenance::TRACED;
    let wakeup = Wakeup {
        p: TaskId(0),
        current: TaskId(1),
        this_cpu: Cpu(1),
        prev_cpu: Cpu(0),
        kind: WakeKind::Ttwu,
        sync: false,
        in_task: true,
        known,
    };
    let (comm, waker_comm) = (Comm::new(b"wakee"), Comm::new(b"waker"));
    RecordedWakeup { number, ts_ns: number * 10, pid: Pid(7), comm, waker_pid: Pid(8), waker_comm, wakeup }
}

fn chosen(number: u64, cpu: u16) -> Notice {
    Notice::Chosen { number, class_cpu: None, final_cpu: Some(Cpu(cpu)) }
}

/// A state in which the wakee, a swapper here, may run anywhere.
fn open_state() -> State {
    let mut state = state();
    state.tasks[TaskId(0)].cpus_ptr = Cpumask::first_n(4).into();
    state
}

fn replay(contestants: Vec<Contestant>, filter: Filter, notices: &[Notice]) -> (Totals, Vec<(u64, Option<Cpu>)>) {
    let state = open_state();
    let mut rows = Vec::new();
    let mut driver = Driver::new(contestants, filter, |row, _| rows.push((row.recorded.number, row.choice.cpu())));
    notices.iter().for_each(|notice| driver.notice(&state, notice));
    let totals = driver.finish().totals;
    (totals, rows)
}

#[test]
fn facts_overwrite_only_the_model_of_the_recorded_kernel() {
    let mocks = [Mock::new("a", 0), Mock::new("b", 0), Mock::new("m", 0)];
    let logs = mocks.each_ref().map(|mock| Arc::clone(&mock.log));
    let [a, b, m] = mocks;
    let contestants = vec![a.is(Role::Baseline), b.is(Role::Patched), m.is(Role::Recorded)];
    let fact = Step::Fact(HiddenFact::NrIdleScan(0, 3));
    let mut driver = Driver::new(contestants, Filter::default(), |_, _| ());
    for step in [fact, Step::EnterIdle(Cpu(2))] {
        driver.notice(&state(), &Notice::Step(step));
    }
    assert_eq!(driver.finish().facts, 1);
    let logs = logs.map(|log| log.lock().expect("one thread").clone());
    for log in [&logs[0], &logs[1]] {
        assert_eq!(*log, ["Seed(NrIdleScan(0, 3))", "EnterIdle(cpu2)"]);
    }
    assert_eq!(logs[2], ["Fact(NrIdleScan(0, 3))", "EnterIdle(cpu2)"]);
}

#[test]
fn late_choices_find_their_wakeup_and_the_order_stays() {
    let contestants = vec![Mock::new("a", 0).is(Role::Baseline), Mock::new("m", 2).is(Role::Recorded)];
    let wakeups = [1, 2, 3, 4].map(|number| Notice::Wakeup(recorded(number)));
    let notices = [
        wakeups[0],
        wakeups[1],
        chosen(2, 0),
        wakeups[2],
        chosen(1, 2),
        Notice::NeverChosen { number: 3 },
        wakeups[3],
        chosen(99, 1),
    ];
    let (totals, rows) = replay(contestants, Filter::default(), &notices);
    assert_eq!(rows, [(1, Some(Cpu(2))), (2, Some(Cpu(0))), (3, None), (4, None)]);
    assert_eq!(totals.decisions.wakeups, 4);
    assert_eq!(totals.choice_unknown.wakeups, 2);
    let agreement = totals.recorded().expect("a model").agreement.wakeups.known;
    assert_eq!((agreement.same, agreement.of), (1, 2));
    assert_eq!((totals.always_prev.wakeups.same, totals.always_prev.wakeups.of), (1, 2));
    assert_eq!(totals.recorded().expect("a model").disagreement_example, Some(2));
}

#[test]
fn what_waits_is_bounded() {
    let mut released = 0;
    let contestants = vec![Mock::new("a", 0).is(Role::Baseline)];
    let mut driver = Driver::new(contestants, Filter::default(), |_, _| released += 1);
    let state = open_state();
    for number in 1..=3 * PENDING_MAX as u64 {
        driver.notice(&state, &Notice::Wakeup(recorded(number)));
        assert!(driver.pending.len() <= PENDING_MAX);
    }
    assert_eq!(driver.finish().totals.choice_unknown.wakeups, 3 * PENDING_MAX as u64);
    assert_eq!(released, 3 * PENDING_MAX);
}

#[test]
fn an_open_sync_flag_counts_only_where_it_decides() {
    let mut open = recorded(1);
    open.wakeup.known.set_assumed(Inputs::SYNC);
    let mut unknown = recorded(2);
    unknown.wakeup.known.set_unknown(Inputs::SYNC);
    let notices = [Notice::Wakeup(open), chosen(1, 0), Notice::Wakeup(unknown), chosen(2, 0)];

    let insensitive = vec![Mock::new("a", 0).is(Role::Baseline), Mock::new("b", 0).is(Role::Patched)];
    let (totals, _) = replay(insensitive, Filter::default(), &notices);
    assert_eq!(totals.sync_insensitive, 2);
    assert_eq!(totals.comparisons[0].verdicts.wakeups.same.known, 2);
    let sync = totals.inputs.iter().find(|input| input.input == "sync").expect("was read");
    assert_eq!((sync.traced, sync.assumed, sync.unknown), (0, 1, 1), "insensitive is not traced");

    let sensitive = Mock { sync_cpu: 3, ..Mock::new("b", 0) };
    let log = Arc::clone(&sensitive.log);
    let contestants = vec![Mock::new("a", 0).is(Role::Baseline), sensitive.is(Role::Patched)];
    let (totals, _) = replay(contestants, Filter::default(), &notices);
    assert_eq!(totals.sync_insensitive, 0);
    let verdicts = totals.comparisons[0].verdicts.wakeups;
    assert_eq!((verdicts.same.assumed, verdicts.unknown, verdicts.same.known), (1, 1, 0));
    assert_eq!(*log.lock().expect("one thread"), ["select sync=false", "select sync=false"], "trying leaves no trace");
    let sync = totals.inputs.iter().find(|input| input.input == "sync").expect("was read");
    assert_eq!((sync.traced, sync.assumed, sync.unknown), (0, 1, 1));
}

#[test]
fn open_wakee_flips_count_only_where_wake_wide_decides() {
    let flips = Provenance { unknown: Inputs::WAKEE_FLIPS, ..Provenance::TRACED };
    let mock = |wide_cpu| Mock { leaned_on: flips, wide_cpu: Some(wide_cpu), ..Mock::new("b", 0) };
    let notices = [Notice::Wakeup(recorded(1)), chosen(1, 0)];
    let verdicts = |wide_cpu| {
        let contestants = vec![mock(0).is(Role::Baseline), mock(wide_cpu).is(Role::Patched)];
        let (totals, _) = replay(contestants, Filter::default(), &notices);
        (totals.wide_insensitive, totals.comparisons[0].verdicts.wakeups)
    };
    let (insensitive, same) = verdicts(0);
    assert_eq!((insensitive, same.same.known, same.unknown), (1, 1, 0));
    let (insensitive, open) = verdicts(3);
    assert_eq!((insensitive, open.same.known, open.unknown), (0, 0, 1));
}

#[test]
fn sync_and_wakee_flips_are_tried_together() {
    // Each alone changes nothing; sync and wide together do.
    struct Both(Mock);
    impl Implementation for Both {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn reads(&self) -> Inputs {
            self.0.reads()
        }
        fn step(&mut self, _state: &State, _step: &Step) {}
        fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
            self.0.select_task_rq(state, wakeup, walk)
        }
        fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
            self.0.peek(state, wakeup, walk)
        }
        fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
            let [narrow, wide] = self.0.peek_wide(state, wakeup)?;
            Some([narrow, if wakeup.sync { wide } else { narrow }])
        }
    }
    let mock =
        Mock { leaned_on: Provenance { unknown: Inputs::WAKEE_FLIPS, ..Provenance::TRACED }, ..Mock::new("b", 0) };
    let both = Both(Mock { wide_cpu: Some(3), ..mock });
    let mut open = recorded(1);
    open.wakeup.known.set_assumed(Inputs::SYNC);
    let contestants =
        vec![Mock::new("a", 0).is(Role::Baseline), Contestant { role: Role::Patched, implementation: Box::new(both) }];
    let (totals, _) = replay(contestants, Filter::default(), &[Notice::Wakeup(open), chosen(1, 0)]);
    assert_eq!((totals.sync_insensitive, totals.wide_insensitive), (0, 0));
    assert_eq!(totals.comparisons[0].verdicts.wakeups.unknown, 1);
}

#[test]
fn differences_are_grouped_with_their_first_example() {
    let contestants = vec![Mock::new("a", 0).is(Role::Baseline), Mock::new("b", 2).is(Role::Patched)];
    let notices: Vec<Notice> =
        (5..8).flat_map(|number| [Notice::Wakeup(recorded(number)), chosen(number, 0)]).collect();
    let (totals, _) = replay(contestants, Filter::default(), &notices);
    let comparison = &totals.comparisons[0];
    assert_eq!(comparison.groups.len(), 1);
    assert_eq!((comparison.groups[0].example, comparison.groups[0].count.known), (5, 3));
    assert_eq!((comparison.comms[0].compared, comparison.comms[0].different), (3, 3));
    assert_eq!(totals.columns[0].sis.search, 3);
}

#[test]
fn filters_count_less_and_decide_all_the_same() {
    let mock = Mock::new("a", 0);
    let log = Arc::clone(&mock.log);
    let filter = Filter { since_ns: Some(20), ..Filter::default() };
    let skipped =
        |ts_ns| Notice::NotSelected { ts_ns, pid: Pid(7), comm: Comm::default(), this_cpu: Cpu(0), why: Why::Current };
    let notices = [
        Notice::Wakeup(recorded(1)),
        chosen(1, 0),
        skipped(11),
        Notice::Wakeup(recorded(2)),
        chosen(2, 0),
        skipped(21),
    ];
    let (totals, rows) = replay(vec![mock.is(Role::Baseline)], filter, &notices);
    assert_eq!(rows, [(2, Some(Cpu(0)))]);
    assert_eq!((totals.decisions.wakeups, totals.not_selected_sum()), (1, 1));
    assert_eq!(log.lock().expect("one thread").len(), 2);
}

#[test]
fn a_watched_wakeup_keeps_its_state_and_gets_its_choice() {
    let contestants = vec![Mock::new("a", 0).is(Role::Baseline)];
    let filter = Filter { pids: vec![Pid(1)], ..Filter::default() };
    let mut driver = Driver::new(contestants, filter, |_, _| panic!("filtered"));
    driver.watch([2, 3]);
    let state = open_state();
    for number in 1..=3 {
        driver.notice(&state, &Notice::Wakeup(recorded(number)));
    }
    assert!(driver.take_explained().is_none());
    driver.notice(&state, &chosen(2, 3));
    let explained = driver.take_explained().expect("was watched");
    assert_eq!(explained.row.recorded.number, 2);
    assert_eq!((explained.row.choice.cpu(), explained.walks.len()), (Some(Cpu(3)), 1));
    assert!(driver.take_explained().is_none(), "its choice may still come");
    let left: Vec<u64> = driver.finish().explained.iter().map(|it| it.row.recorded.number).collect();
    assert_eq!(left, [3]);
}

#[test]
fn what_nothing_tells_of_the_kernel_is_assumed_where_it_is_read() {
    let count = |inputs| {
        let mut unsure = Mock::new("b", 0);
        unsure.leaned_on.set_unknown(Inputs::IDLE);
        let contestants = vec![Mock::new("a", 0).is(Role::Baseline), unsure.is(Role::Patched)];
        let mut driver = Driver::new(contestants, Filter::default(), |_, _| ());
        driver.assume(inputs);
        let state = open_state();
        [Notice::Wakeup(recorded(4)), chosen(4, 0)].iter().for_each(|notice| driver.notice(&state, notice));
        let totals = driver.finish().totals;
        assert_eq!((totals.first.wakeups, totals.first.forks), (Some(4), None));
        totals.columns.into_iter().map(|column| column.classes.wakeups.into_keys().collect::<Vec<_>>()).collect()
    };
    let of = |inputs| -> Vec<Vec<Class>> { count(inputs) };
    assert_eq!(of(Inputs::empty()), [[Class::Known], [Class::Unknown]]);
    assert_eq!(of(Inputs::FEATURES), [[Class::Known], [Class::Unknown]], "not read");
    assert_eq!(of(Inputs::IDLE), [[Class::Assumed], [Class::Unknown]], "what is unknown stays so");
}
