// SPDX-License-Identifier: GPL-2.0-or-later
//! Unit tests of the advice.

use super::*;
use crate::info::beside::Machine;
use crate::info::tally::{CpuInfo, EventCount};

struct Case {
    main: BufferInfo,
    recorded: Recorded,
    beside: Beside,
    probes: Vec<Probe>,
}

fn good() -> Case {
    let by_type = EVENTS.iter().map(|(event, ..)| EventCount { event: format!("sched:{event}"), count: 3 }).collect();
    let main = BufferInfo {
        events: 24,
        by_type,
        cpus: vec![CpuInfo { cpu: 3, events: 24, ..CpuInfo::default() }],
        ..BufferInfo::default()
    };
    let recorded = Recorded {
        kernel: Some("6.1.0".to_owned()),
        cpus: 4,
        clock: Some("mono".to_owned()),
        clock_is_ns: Some(true),
        overrun: Some(0),
        ..Recorded::default()
    };
    let machine = Machine {
        online_cpus: 4,
        possible_cpus: 4,
        features: 20,
        hz: Some(250),
        has_domains: true,
        ..Machine::default()
    };
    let probe = |event: &str, fields: &[&str]| Probe {
        event: format!("kprobes:{event}"),
        what: String::new(),
        count: 3,
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        cpus: None,
    };
    let probes = vec![
        probe("sis_in", &["pid", "flags", "mask0", "ruc", "wflips", "load", "util", "policy"]),
        probe("sis_rqN", &["load", "util", "avgidle", "hic"]),
        probe("sis_out", &["ret"]),
    ];
    Case { main, recorded, beside: Beside { machine: Some(machine), ..Beside::default() }, probes }
}

fn facts(case: &Case) -> Facts<'_> {
    Facts {
        main: &case.main,
        buffers: std::slice::from_ref(&case.main),
        recorded: &case.recorded,
        beside: &case.beside,
        probes: &case.probes,
        told: crate::info::probes::told(&case.probes),
        form: None,
        unreadable: &[],
        has_context: true,
        has_micros: false,
        is_cut: false,
        cut: None,
    }
}

/// What is missing in `good()` after a change.
fn after(change: impl FnOnce(&mut Case)) -> Vec<String> {
    let mut case = good();
    change(&mut case);
    missing(&facts(&case)).into_iter().map(|missing| missing.what).collect()
}

#[test]
fn nothing_is_missing_in_a_full_recording() {
    let case = good();
    assert_eq!(missing(&facts(&case)), []);
    let replay = replayable(&facts(&case));
    assert!(replay.possible && replay.why.starts_with("fully"), "{replay:?}");
    let record = record(&facts(&case));
    assert!(record.starts_with("trace-cmd record -C mono -b 8192 --no-filter -e sched:sched_switch"), "{record}");
    assert!(record.ends_with(" -e kprobes -o trace.dat YOUR-WORKLOAD"), "{record}");
}

#[test]
fn each_thing_that_is_missing_is_named() {
    for (event, ..) in EVENTS {
        let what = after(|case| case.main.by_type.retain(|one| one.event != format!("sched:{event}")));
        assert!(what[0] == format!("no {event} recorded"), "{what:?}");
    }
    let one = |change: fn(&mut Case), want: &str| {
        let what = after(change);
        assert!(what.len() == 1 && what[0].contains(want), "{want}: {what:?}");
    };
    one(|case| case.main.losses = 2, "lost at 2 places");
    one(|case| case.recorded.overrun = Some(7), "dropped 7");
    one(
        |case| {
            case.main.unmarked_breaks = 5;
            case.main.cpus[0].unmarked_breaks = 5;
        },
        "5 contradict the one before, on 1 CPU",
    );
    one(|case| case.recorded.clock_is_ns = Some(false), "nanoseconds");
    one(|case| case.recorded.kernel = None, "the kernel");
    one(|case| case.beside.machine = None, "no topology");
    one(|case| case.beside.machine.as_mut().expect("one").features = 0, "features");
    one(|case| case.beside.machine.as_mut().expect("one").hz = None, "HZ");
    one(|case| drop(case.probes.remove(2)), "sis_out");
    one(|case| drop(case.probes.remove(1)), "sis_rqN");
    one(|case| case.probes[0].fields.retain(|field| field != "mask0"), "fields of the kprobe sis_in");
    let lost = good();
    let lost = Case { recorded: Recorded { overrun: Some(9), ..lost.recorded.clone() }, ..lost };
    assert!(record(&facts(&lost)).contains("-b 32768"));
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let why = |change: fn(&mut Case)| {
        let mut case = good();
        change(&mut case);
        let replay = replayable(&facts(&case));
        assert!(!replay.possible, "{replay:?}");
        replay.why
    };
    assert!(why(|case| case.main = BufferInfo::default()).contains("no events"));
    assert!(why(|case| case.main.by_type.retain(|one| !one.event.contains("switch"))).contains("no sched_switch"));
    assert!(why(|case| case.main.by_type.retain(|one| !one.event.contains("wak"))).contains("no sched_waking and"));
    assert!(why(|case| case.recorded.cpus = 8).contains("of one with 8"));
    assert!(why(|case| case.main.unread = Some("it broke".to_owned())).contains("it broke"));
}

#[test]
fn events_that_cannot_be_read_are_as_none() {
    let case = good();
    let unreadable =
        ["sched_switch", "sched_wakeup"].map(|event| Unreadable { event: format!("sched:{event}"), field: "pid" });
    let facts = Facts { unreadable: &unreadable, ..facts(&case) };
    let all = missing(&facts);
    assert!(all[0].what.contains("sched:sched_switch has no field pid") && all[0].weight == Weight::Needed, "{all:?}");
    assert!(all[1].what.contains("sched:sched_wakeup") && all[1].weight == Weight::Grave, "{all:?}");
    let told = replayable(&facts);
    assert!(!told.possible && told.why.contains("no field pid"), "{told:?}");
}
