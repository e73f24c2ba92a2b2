// SPDX-License-Identifier: GPL-2.0-or-later
//! Events built by a format text, decoded by the same text.

use tracecmd_parse::{Endian, Formats, RawEvent};

use super::*;
use crate::trace::{EventKind, SisIn};
use crate::wakeup::WakeKind;

/// Writes format texts and events that fit them.
struct Bench {
    formats: Formats,
}

impl Bench {
    fn new() -> Self {
        Self { formats: Formats::new(Endian::Little) }
    }

    /// An event of `fields` (name, bytes), after the 8 common bytes.
    fn add(&mut self, system: &str, name: &str, id: u16, fields: &[(&str, usize)], print_fmt: &str) {
        let mut text = format!("name: {name}\nID: {id}\nformat:\n");
        text += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
        text += "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n";
        text += "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n";
        text += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        let mut offset = 8;
        for &(field, size) in fields {
            let declared = if size == 16 { format!("char {field}[16]") } else { format!("int {field}") };
            text += &format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
            offset += size;
        }
        text += &format!("\nprint fmt: {print_fmt}\n");
        self.formats.add(system, &text);
    }

    fn wakeup_events(&mut self) {
        let fields = [("comm", 16), ("pid", 4), ("prio", 4), ("target_cpu", 4)];
        for (at, name) in ["sched_waking", "sched_wakeup", "sched_wakeup_new"].into_iter().enumerate() {
            self.add("sched", name, 20 + at as u16, &fields, "\"\"");
        }
    }

    fn switch(&mut self, print_fmt: &str) {
        let task = |who: &str| [format!("{who}_comm"), format!("{who}_pid"), format!("{who}_prio")];
        let (prev, next) = (task("prev"), task("next"));
        let fields = [
            (prev[0].as_str(), 16),
            (prev[1].as_str(), 4),
            (prev[2].as_str(), 4),
            ("prev_state", 8),
            (next[0].as_str(), 16),
            (next[1].as_str(), 4),
            (next[2].as_str(), 4),
        ];
        self.add("sched", "sched_switch", 10, &fields, print_fmt);
    }

    fn decode(&self, id: u16, flags: u8, values: &[Value]) -> Event {
        let mut data = Vec::new();
        data.extend(id.to_le_bytes());
        data.extend([flags, 0]);
        data.extend(77i32.to_le_bytes());
        for value in values {
            match *value {
                Value::Int(value) => data.extend(value.to_le_bytes()),
                Value::Long(value) => data.extend(value.to_le_bytes()),
                Value::Comm(name) => {
                    let mut comm = [0u8; 16];
                    comm[..name.len()].copy_from_slice(name.as_bytes());
                    data.extend(comm);
                }
            }
        }
        let raw = RawEvent { ts_ns: 5, cpu: 3, id, data: &data };
        Decoder::new(&self.formats).decode(&raw)
    }
}

enum Value {
    Int(i32),
    Long(i64),
    Comm(&'static str),
}

use Value::{Comm as Name, Int, Long};

const STATES_6_1: &str = r#""prev_state=%s%s", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x1, "S" }, { 0x2, "D" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x80, "I" }) : "R", REC->prev_state & 0x100 ? "+" : """#;
/// As 4.9 has it: dead and parked tasks have other bits, `+` is 0x800.
const STATES_4_9: &str = r#""prev_state=%s%s", REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 512, "P" }) : "R", REC->prev_state & 2048 ? "+" : """#;

fn state(print_fmt: &str, prev_state: i64) -> PrevState {
    let mut bench = Bench::new();
    bench.switch(print_fmt);
    let task = [Name("a"), Int(1), Int(120)];
    let [a, b, c] = task;
    let event = bench.decode(10, 0, &[a, b, c, Long(prev_state), Name("b"), Int(2), Int(120)]);
    match event.kind {
        EventKind::Switch { prev_state, .. } => prev_state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn prev_state_is_read_by_the_traces_own_table() {
    assert_eq!(state(STATES_6_1, 0), PrevState::Runnable);
    assert_eq!(state(STATES_6_1, 0x100), PrevState::Runnable);
    assert_eq!(state(STATES_6_1, 0x80), PrevState::Blocked);
    assert_eq!(state(STATES_6_1, 0x10), PrevState::Dead);
    assert_eq!(state(STATES_4_9, 64), PrevState::Dead);
    assert_eq!(state(STATES_4_9, 512), PrevState::Blocked);
    assert_eq!(state(STATES_4_9, 2048), PrevState::Runnable);
    assert_eq!(state("\"no table\"", 1), PrevState::Blocked);
}

#[test]
fn wakeups_carry_context_and_wakee() {
    let mut bench = Bench::new();
    bench.wakeup_events();
    let event = bench.decode(20, 0x10 | 0x80, &[Name("a b"), Int(9), Int(139), Int(6)]);
    assert_eq!((event.ts_ns, event.cpu, event.pid), (5, Cpu(3), Pid(77)));
    assert_eq!(event.context, Context::SOFTIRQ);
    let wakee = Wakee { pid: Pid(9), comm: Comm::new(b"a b"), prio: 139 };
    assert_eq!(event.kind, EventKind::Waking { wakee, target_cpu: Cpu(6) });
    let new = bench.decode(22, 0, &[Name("a b"), Int(9), Int(139), Int(6)]);
    assert_eq!(new.kind, EventKind::Wakeup { wakee, target_cpu: Cpu(6), new: true });
}

#[test]
fn a_failed_wakeup_of_an_old_kernel_is_none() {
    let mut bench = Bench::new();
    let fields = [("comm", 16), ("pid", 4), ("prio", 4), ("success", 4), ("target_cpu", 4)];
    bench.add("sched", "sched_wakeup", 21, &fields, "\"\"");
    let of = |success| bench.decode(21, 0, &[Name("a"), Int(9), Int(120), Int(success), Int(6)]).kind;
    assert_eq!(of(0), EventKind::Ignored);
    assert!(matches!(of(1), EventKind::Wakeup { target_cpu: Cpu(6), .. }));
}

#[test]
fn values_that_cannot_be_are_malformed() {
    let mut bench = Bench::new();
    bench.wakeup_events();
    for values in [[Name("a"), Int(9), Int(120), Int(-1)], [Name("a"), Int(-9), Int(120), Int(1)]] {
        assert_eq!(bench.decode(20, 0, &values).kind, EventKind::Malformed);
    }
    assert_eq!(bench.decode(20, 0, &[Name("a"), Int(9)]).kind, EventKind::Malformed, "cut off");
    assert_eq!(bench.decode(999, 0, &[]).kind, EventKind::Ignored);
}

#[test]
fn what_a_trace_lacks_is_told() {
    let mut bench = Bench::new();
    bench.add("sched", "sched_waking", 20, &[("comm", 16), ("pid", 4), ("prio", 4)], "\"\"");
    let decoder = Decoder::new(&bench.formats);
    assert!(decoder.lacks().contains(&Lack::Event("sched_switch")));
    assert!(decoder.lacks().contains(&Lack::Field { event: "sched_waking".to_owned(), field: "target_cpu" }));
    let unreadable = [Unreadable { event: "sched:sched_waking".to_owned(), field: "target_cpu" }];
    assert_eq!(decoder.unreadable(), unreadable);
    assert_eq!(bench.decode(20, 0, &[Name("a"), Int(9), Int(120)]).kind, EventKind::Malformed);
    assert!(!decoder.has_sis_in());
    assert_eq!(Lack::Event("sched_switch").to_string(), "no format of sched_switch");
}

fn probe(fields: &[(&str, usize)], values: &[Value]) -> SisIn {
    let mut bench = Bench::new();
    bench.add("kprobes", "sis_in", 30, fields, "\"\"");
    assert!(Decoder::new(&bench.formats).has_sis_in());
    match bench.decode(30, 0, values).kind {
        EventKind::SisIn(sis) => *sis,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wake_flags_differ_before_5_12() {
    let new = |flags| probe(&[("pid", 4), ("prev", 4), ("flags", 4)], &[Int(9), Int(2), Int(flags)]);
    assert_eq!((new(0x18).kind, new(0x18).sync), (WakeKind::Ttwu, true));
    assert_eq!((new(8).kind, new(8).sync), (WakeKind::Ttwu, false));
    assert_eq!(new(4).kind, WakeKind::Fork);
    assert_eq!(new(2).kind, WakeKind::Exec);
    let old = |sdflag, flags| {
        let fields = [("pid", 4), ("prev", 4), ("sdflag", 4), ("flags", 4)];
        probe(&fields, &[Int(9), Int(2), Int(sdflag), Int(flags)])
    };
    assert_eq!((old(8, 1).kind, old(8, 1).sync), (WakeKind::Ttwu, true));
    assert_eq!((old(8, 8).kind, old(8, 8).sync), (WakeKind::Ttwu, false));
    assert_eq!(old(4, 2).kind, WakeKind::Fork);
}

#[test]
fn members_that_a_kernel_lacks_are_none() {
    let sis = probe(&[("pid", 4), ("prev", 4), ("flags", 4), ("ruc", 4)], &[Int(9), Int(2), Int(8), Int(-1)]);
    assert_eq!((sis.pid, sis.prev_cpu), (Pid(9), Cpu(2)));
    assert_eq!((sis.recent_used_cpu, sis.load_avg, sis.delayed), (None, None, None));
}

#[test]
fn what_newer_probes_have_is_read() {
    let fields = [("pid", 4), ("prev", 4), ("flags", 4), ("jiffies", 8)];
    assert_eq!(probe(&fields, &[Int(9), Int(2), Int(8), Long(4_294_892_296)]).jiffies, Some(4_294_892_296));
    let mut bench = Bench::new();
    let fields = [("curr", 4), ("cwdecay", 8), ("cload", 8), ("cflags", 4), ("cncpus", 4), ("cpolicy", 4)];
    let own = [("istamp", 8), ("hload", 8), ("lhload", 8)];
    let values = [Int(1), Long(2), Long(3), Int(4), Int(5), Int(6), Long(7), Long(8), Long(9)];
    bench.add("kprobes", "sis_rq3", 31, &[&fields[..], &own[..]].concat(), "\"\"");
    match bench.decode(31, 0, &values).kind {
        EventKind::SisRq(rq) => {
            assert_eq!((rq.curr, rq.curr_wakee_flip_decay_jiffies, rq.curr_load_avg), (Some(Pid(1)), Some(2), Some(3)));
            assert_eq!((rq.curr_flags, rq.curr_nr_cpus_allowed, rq.curr_policy), (Some(4), Some(5), Some(6)));
            assert_eq!((rq.idle_stamp_ns, rq.h_load, rq.last_h_load_jiffies), (Some(7), Some(8), Some(9)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_queue_probe_is_named_by_its_cpu() {
    let mut bench = Bench::new();
    bench.add("probes_of_mine", "sis_rq12", 31, &[("nr", 4), ("hic", 4)], "\"\"");
    assert!(Decoder::new(&bench.formats).has_sis_rq());
    match bench.decode(31, 0, &[Int(2), Int(1)]).kind {
        EventKind::SisRq(rq) => {
            assert_eq!((rq.target, rq.nr_running, rq.has_idle_cores), (Cpu(12), Some(2), Some(true)));
            assert_eq!((rq.curr, rq.nr_idle_scan), (None, None));
        }
        other => panic!("{other:?}"),
    }
}
