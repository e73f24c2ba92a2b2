// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording and its texts have the same events, up to what the text leaves out.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use tracecmd_parse::text::{LeftState, TextItem, TextTrace};
use tracecmd_parse::{EventFormat, FieldKind, Formats, Item, RawEvent, Select, TaskStates, TraceFile, TraceReader};

/// Events whose fields a text must give.
const SCHED: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_process_free",
];

/// Small ones of each kind of recording; the rest differs in length.
const RECORDINGS: &[&str] = &[
    "smt8-affinity-truth",
    "smp4-idle-light",
    "smt8-pipe-v6",
    "smt8-pipe-fgraph",
    "k510-smt8-affinity-truth",
    "k73-smt8-affinity-truth",
    "v6-arm64-6cpu-schedload",
];

/// Of each kernel that prints in another way.
const PRINTED: &[&str] =
    &["smt8-affinity-truth", "k510-smt8-affinity-truth", "k73-smt8-affinity-truth", "v6-arm64-6cpu-schedload"];

/// Bits of common_flags that `report -l` tells: interrupts off, need_resched, hard interrupt, softirq.
const REPORT_FLAGS: u64 = 0x1d;

/// An event as both sides can tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    ts_ns: u64,
    cpu: u32,
    pid: i64,
    name: String,
    flags: Option<u64>,
    fields: Vec<(String, String)>,
}

/// What a text tells.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// ns that times are rounded to.
    unit: u64,
    /// Bits of common_flags.
    flags: u64,
    /// Task states as the kernel's letters.
    letters: bool,
}

/// All events of a reader, as far as a text tells them.
fn seen(reader: &dyn TraceReader, told: Told) -> Vec<Seen> {
    let formats = reader.formats();
    let states = formats.by_name("sched", "sched_switch").and_then(TaskStates::of);
    let mut cursor = reader.cursor(&Select::top()).unwrap();
    let mut all = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        match item {
            // A report prints leaves of the function graph as one line.
            Item::Event(event) if formats.of(&event).unwrap().name.starts_with("funcgraph_") => {}
            Item::Event(event) => all.push(see(formats, states.as_ref(), &event, told)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(cursor.summary().gaps, vec![]);
    all
}

fn see(formats: &Formats, states: Option<&TaskStates>, event: &RawEvent<'_>, told: Told) -> Seen {
    let format = formats.of(event).unwrap();
    let common = formats.common().unwrap();
    let mut fields = Vec::new();
    if SCHED.contains(&format.name.as_str()) {
        for field in format.fields.iter().filter(|f| !f.name.starts_with("common_")) {
            let reference = format.field_ref(&field.name).unwrap();
            let value = match field.name.as_str() {
                // A field of sched_process_exit since 6.16 that is printed as a word, and one that is not printed since
                // 4.3 but stayed a field until 5.10.
                "group_dead" | "success" => continue,
                "prev_state" => left(states.unwrap(), reference.u64(event).unwrap(), told.letters),
                _ if field.kind == FieldKind::Scalar => reference.i64(event).unwrap().to_string(),
                _ => reference.text(event).unwrap().into_owned(),
            };
            fields.push((field.name.clone(), value));
        }
        fields.sort();
    }
    Seen {
        ts_ns: (event.ts_ns + told.unit / 2) / told.unit * told.unit,
        cpu: event.cpu,
        pid: common.common_pid.i64(event).unwrap(),
        name: format.name.clone(),
        flags: common.common_flags.u64(event).filter(|_| told.flags != 0).map(|bits| bits & told.flags),
        fields,
    }
}

/// The bits' letters are the trace's own. `x` (0x40, TASK_DEAD) is of kernels before 4.14; later the bit means parked,
/// and a text that has the bits only cannot tell.
fn left(states: &TaskStates, prev_state: u64, letters_told: bool) -> String {
    let letters = states.letters(prev_state);
    let state = match letters.as_str() {
        "R" => LeftState::Runnable,
        "R+" => LeftState::Preempted,
        letters if letters.contains(['X', 'Z']) => LeftState::Dead,
        "x" if letters_told => LeftState::Dead,
        _ => LeftState::Blocked,
    };
    // The report's plugin prints no `+`.
    format!("{state:?}").replace("Preempted", "Runnable")
}

fn compare(native: &[Seen], text: &[Seen], what: &str) {
    for (at, (ours, theirs)) in native.iter().zip(text).enumerate() {
        let mut theirs = theirs.clone();
        // Events that are not the scheduler's may have no format in the text.
        if theirs.name == "other" && !SCHED.contains(&ours.name.as_str()) {
            theirs.name.clone_from(&ours.name);
        }
        assert_eq!(*ours, theirs, "{what}: event {at}");
    }
    assert_eq!(native.len(), text.len(), "{what}");
}

/// The output of `trace-cmd report`.
fn report(path: &Path, options: &[&str]) -> Vec<u8> {
    let out = Command::new("trace-cmd").arg("report").args(options).arg("-i").arg(path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

#[test]
fn trace_cmd_report() {
    if !common::have_tracecmd() {
        println!("skipped: no trace-cmd");
        return;
    }
    let mut events = 0;
    for path in RECORDINGS.iter().filter_map(|name| common::recording(name)) {
        let native = TraceFile::open(&path).unwrap();
        for (options, unit, flags, letters) in [
            (&[][..], 1000, 0, false),
            (&["-R", "-t"], 1, 0, false),
            (&["-t", "-l"], 1, REPORT_FLAGS, false),
            (&["-N"], 1000, 0, true),
        ] {
            let told = Told { unit, flags, letters };
            let text = TextTrace::from_bytes(report(&path, options)).unwrap();
            let what = format!("{} {options:?}", path.display());
            assert_eq!(text.meta().cpus, native.meta().cpus, "{what}");
            let expected = seen(&native, told);
            compare(&expected, &seen(&text, Told { letters: true, ..told }), &what);
            events += expected.len();
        }
    }
    println!("{events} events equal");
    if events == 0 {
        println!("skipped: no recordings in traces or ../shared");
    }
}

/// How a printer is set.
#[derive(Debug, Clone, Copy)]
struct Print {
    irq: bool,
    tgid: bool,
    perf: bool,
    ns: bool,
}

impl Print {
    fn told(self) -> Told {
        Told { unit: if self.ns { 1 } else { 1000 }, flags: if self.irq { 0xff } else { 0 }, letters: true }
    }
}

/// A recording's scheduler events as the kernel or perf prints them.
fn print(reader: &TraceFile, how: Print) -> (Vec<Seen>, String) {
    let formats = reader.formats();
    let states = formats.by_name("sched", "sched_switch").and_then(TaskStates::of).unwrap();
    let common = formats.common().unwrap();
    let mut cursor = reader.cursor(&Select::top()).unwrap();
    let mut comms: BTreeMap<i64, String> = BTreeMap::new();
    let mut out = String::new();
    if !how.perf {
        writeln!(out, "# tracer: nop\n#\n# entries-in-buffer/entries-written: 1/1   #P:{}\n#", reader.meta().cpus)
            .unwrap();
    }
    let mut all = Vec::new();
    while let Some(Item::Event(event)) = cursor.next().unwrap() {
        let format = formats.of(&event).unwrap();
        if !SCHED.contains(&format.name.as_str()) {
            continue;
        }
        let text = event_text(format, &states, &event);
        let unit = if how.ns { 1 } else { 1000 };
        let ts = (event.ts_ns + unit / 2) / unit;
        let (seconds, rest) = (ts * unit / 1_000_000_000, ts * unit % 1_000_000_000 / unit);
        let width = if how.ns { 9 } else { 6 };
        let pid = common.common_pid.i64(&event).unwrap();
        let comm = comms.entry(pid).or_insert_with(|| comm_of(pid)).clone();
        let cpu = event.cpu;
        let name = format!("{}{}", if how.perf { "sched:" } else { "" }, format.name);
        if how.perf {
            writeln!(out, "{comm:>16} {pid:5} [{cpu:03}] {seconds:5}.{rest:0width$}: {name:>30}: {text}").unwrap();
        } else {
            let tgid = if how.tgid {
                format!("({:>7}) ", if pid == 0 { "-------".into() } else { pid.to_string() })
            } else {
                String::new()
            };
            let irq = if how.irq {
                column(common.common_flags.u64(&event).unwrap(), common.common_preempt_count.u64(&event).unwrap())
            } else {
                String::new()
            };
            writeln!(out, "{comm:>16}-{pid:<7} {tgid}[{cpu:03}] {irq} {seconds:5}.{rest:0width$}: {name}: {text}")
                .unwrap();
        }
        all.push(see(formats, Some(&states), &event, how.told()));
    }
    (all, out)
}

/// Names that a parser likes least.
fn comm_of(pid: i64) -> String {
    const NAMES: [&str; 8] =
        ["a b=c [9] ==> x", "-7 [001] 1.0: y", "Web Content", "<...>", "x-1 [000] d..1", "(1) [2]", "k/0:1-ev", ":"];
    match pid {
        0 => "<idle>".into(),
        pid => NAMES[pid as usize % NAMES.len()].into(),
    }
}

fn column(flags: u64, preempt_count: u64) -> String {
    let has = |bit| flags & bit != 0;
    let off = match (has(1), has(0x80)) {
        (true, true) => 'D',
        (true, false) => 'd',
        (false, true) => 'b',
        _ => '.',
    };
    // NEED_RESCHED_LAZY (0x02, since 6.13), NEED_RESCHED, PREEMPT_RESCHED.
    let resched = match (has(2), has(4), has(0x20)) {
        (false, false, false) => '.',
        (false, true, true) => 'N',
        (false, true, false) => 'n',
        (false, false, true) => 'p',
        (true, false, false) => 'l',
        (true, true, false) => 'b',
        (true, false, true) => 'L',
        (true, true, true) => 'B',
    };
    let inside = match (has(0x40), has(8), has(0x10)) {
        (true, true, _) => 'Z',
        (true, false, _) => 'z',
        (_, true, true) => 'H',
        (_, true, false) => 'h',
        (_, false, true) => 's',
        _ => '.',
    };
    let digit = |n: u64| if n == 0 { ".".to_string() } else { format!("{n:x}") };
    format!("{off}{resched}{inside}{}{}", digit(preempt_count & 0xf), digit(preempt_count >> 4))
}

/// As the print format of the event says.
fn event_text(format: &EventFormat, states: &TaskStates, event: &RawEvent<'_>) -> String {
    let word = |name: &str| {
        let reference = format.field_ref(name).unwrap();
        match format.field(name).unwrap().kind {
            FieldKind::Scalar => reference.i64(event).unwrap().to_string(),
            _ => reference.text(event).unwrap().into_owned(),
        }
    };
    let keys = |keys: &[&str]| keys.iter().map(|key| format!("{key}={}", word(key))).collect::<Vec<_>>().join(" ");
    match format.name.as_str() {
        "sched_switch" => format!(
            "{} prev_state={} ==> {}",
            keys(&["prev_comm", "prev_pid", "prev_prio"]),
            states.letters(format.field_ref("prev_state").unwrap().u64(event).unwrap()),
            keys(&["next_comm", "next_pid", "next_prio"])
        ),
        "sched_migrate_task" => keys(&["comm", "pid", "prio", "orig_cpu", "dest_cpu"]),
        "sched_process_fork" => {
            format!("comm={} pid={} {}", word("parent_comm"), word("parent_pid"), keys(&["child_comm", "child_pid"]))
        }
        "sched_process_exec" => keys(&["filename", "pid", "old_pid"]),
        "sched_process_exit" | "sched_process_free" => keys(&["comm", "pid", "prio"]),
        _ => format!("{} target_cpu={:03}", keys(&["comm", "pid", "prio"]), word("target_cpu").parse::<u32>().unwrap()),
    }
}

#[test]
fn kernel_and_perf_print_the_same() {
    let mut events = 0;
    for path in PRINTED.iter().filter_map(|name| common::recording(name)) {
        let native = TraceFile::open(&path).unwrap();
        for irq in [false, true] {
            for tgid in [false, true] {
                for ns in [false, true] {
                    let how = Print { irq, tgid, perf: false, ns };
                    events += reads_back(&native, how, &path);
                }
            }
        }
        for ns in [false, true] {
            events += reads_back(&native, Print { irq: false, tgid: false, perf: true, ns }, &path);
        }
    }
    println!("{events} events equal");
    if events == 0 {
        println!("skipped: no recordings in traces or ../shared");
    }
}

fn reads_back(native: &TraceFile, how: Print, path: &Path) -> usize {
    let (expected, text) = print(native, how);
    let what = format!("{} {how:?}", path.display());
    let read = TextTrace::from_bytes(text.into_bytes()).unwrap();
    compare(&expected, &seen(&read, how.told()), &what);
    // The task of each line, which a comm must not disturb.
    let mut cursor = read.events(&Select::top()).unwrap();
    while let Some(item) = cursor.next_item().unwrap() {
        let TextItem::Event(event) = item else { panic!("{what}") };
        assert_eq!(String::from_utf8_lossy(event.comm), comm_of(event.pid.into()), "{what}");
        assert_eq!(event.tgid.is_some(), how.tgid && event.pid != 0, "{what}");
    }
    expected.len()
}
