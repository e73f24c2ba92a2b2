// SPDX-License-Identifier: GPL-2.0-or-later
//! Comms that try hard to be something else.

use super::*;

/// Style and `name=value` of each field.
fn read(event: &str, text: &str) -> Result<(Style, Vec<String>), &'static str> {
    let mut pairs = Vec::new();
    let style = parse(event, text.as_bytes(), 0, &mut pairs)?;
    let fields = Fields { line: text.as_bytes(), pairs: &pairs };
    let text = |(name, value): (&str, &[u8])| format!("{name}={}", String::from_utf8_lossy(value));
    Ok((style, fields.iter().map(text).collect()))
}

/// 15 bytes at most, as the kernel keeps them.
const COMMS: &[&str] = &[
    "bash",
    "Web Content",
    "a=b",
    "prev_pid=1",
    " pid=7 prio=1",
    "x pid=1 prio=2",
    "==> next_comm=",
    "next_comm=x",
    "a b=c [9] ==> x",
    ":1 [9] R ==> x",
    "x:1 [2] S",
    "CPU:001",
    "success=1",
    " lead",
    "trail ",
    "[0]",
    "",
    "kworker/u16:2",
    "\"q",
    "ö",
];

#[test]
fn switch_with_any_two_comms() {
    for prev in COMMS {
        for next in COMMS {
            let text = format!(
                "prev_comm={prev} prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm={next} next_pid=8 next_prio=-1"
            );
            let expected = [
                format!("prev_comm={prev}"),
                "prev_pid=7".into(),
                "prev_prio=120".into(),
                "prev_state=R+".into(),
                format!("next_comm={next}"),
                "next_pid=8".into(),
                "next_prio=-1".into(),
            ];
            assert_eq!(read("sched_switch", &text), Ok((Style::Keys, expected.to_vec())), "{text}");
            // As -R prints it.
            let raw = text.replacen("==> next", "next", if prev.contains("==> next") { 0 } else { 1 });
            assert_eq!(read("sched_switch", &raw.replace("R+ ==>", "R+")).unwrap().1, expected, "{raw}");
        }
    }
}

#[test]
fn plugin_switch_is_right_or_refused() {
    let mut refused = 0;
    for prev in COMMS {
        for next in COMMS {
            let text = format!("{prev}:7 [120] S ==> {next}:8 [-1]");
            let expected = [
                format!("prev_comm={prev}"),
                "prev_pid=7".into(),
                "prev_prio=120".into(),
                "prev_state=S".into(),
                format!("next_comm={next}"),
                "next_pid=8".into(),
                "next_prio=-1".into(),
            ];
            match read("sched_switch", &text) {
                Ok((style, fields)) => assert_eq!((style, fields), (Style::Plugin, expected.to_vec()), "{text}"),
                Err(_) => refused += 1,
            }
        }
    }
    // Only where the next comm is itself the end of a switch and both readings have comms that can be.
    assert!(refused <= COMMS.len(), "{refused}");
}

#[test]
fn wakeups() {
    for comm in COMMS {
        let wakee = [format!("comm={comm}"), "pid=79".into(), "prio=120".into()];
        let with = |more: &[&str]| [&wakee[..], &more.iter().map(|s| s.to_string()).collect::<Vec<_>>()].concat();
        let old = format!("comm={comm} pid=79 prio=120 success=1 target_cpu=002");
        assert_eq!(read("sched_wakeup", &old), Ok((Style::Keys, with(&["success=1", "target_cpu=002"]))));
        let new = format!("comm={comm} pid=79 prio=120 target_cpu=002");
        assert_eq!(read("sched_waking", &new), Ok((Style::Keys, with(&["target_cpu=002"]))));
        let plugin = format!("{comm}:79 [120] CPU:002");
        assert_eq!(read("sched_wakeup", &plugin), Ok((Style::Plugin, with(&["target_cpu=002"]))));
        let plugin = format!("{comm}:79 [120] success=1 CPU:002");
        assert_eq!(read("sched_wakeup_new", &plugin), Ok((Style::Plugin, with(&["success=1", "target_cpu=002"]))));
    }
}

#[test]
fn fork_has_one_set_of_names() {
    let expected = ["parent_comm=a b", "parent_pid=1", "child_comm=pid=2", "child_pid=3"].map(str::to_string);
    for text in
        ["comm=a b pid=1 child_comm=pid=2 child_pid=3", "parent_comm=a b parent_pid=1 child_comm=pid=2 child_pid=3"]
    {
        assert_eq!(read("sched_process_fork", text), Ok((Style::Keys, expected.to_vec())));
    }
}

#[test]
fn more_behind_the_last_field() {
    let (_, fields) = read("sched_process_exit", "comm=a b pid=1 prio=120 group_dead=true").unwrap();
    assert_eq!(fields, ["comm=a b", "pid=1", "prio=120", "group_dead=true"]);
    // What fits to the end goes before what leaves something over.
    let (_, fields) = read("sched_process_exec", "filename=/a pid=1 old_pid=2 pid=3 old_pid=4").unwrap();
    assert_eq!(fields, ["filename=/a pid=1 old_pid=2", "pid=3", "old_pid=4"]);
    let (_, fields) = read("sched_stat_runtime", "comm=a pid=1 runtime=5 [ns] vruntime=6 [ns]").unwrap();
    assert_eq!(fields, ["comm=a", "pid=1", "runtime=5", "vruntime=6 [ns]"]);
}

#[test]
fn the_fields_option_of_tracefs() {
    let text = "prev_comm=a prev_pid=0x46 (70) prev_prio=0x78 (120) prev_state=0x100 (256) next_comm=b next_pid=0x0 (0) \
                next_prio=0xffffffff (-1)";
    let (_, fields) = read("sched_switch", text).unwrap();
    let expected =
        ["prev_comm=a", "prev_pid=70", "prev_prio=120", "prev_state=256", "next_comm=b", "next_pid=0", "next_prio=-1"];
    assert_eq!(fields, expected);
}

#[test]
fn other_events() {
    let sis = "(ffffffff810ea540 <- ffffffff810e181b) pid=56 prev=7 flags=0x8 comm=\"a b=1\" nid=-1";
    let (_, fields) = read("sis_in", sis).unwrap();
    assert_eq!(fields, ["pid=56", "prev=7", "flags=0x8", "comm=a b=1", "nid=-1"]);
    let (_, fields) = read("softirq_raise", "vec=1 [action=TIMER]").unwrap();
    assert_eq!(fields, ["vec=1 [action=TIMER]"]);
    let (_, fields) = read("cpuhp_enter", "cpu: 0001 target: 169 step: 168 (smpboot_park_threads)").unwrap();
    assert_eq!(fields, ["cpu=0001", "target=169", "step=168"]);
    assert_eq!(read("x", ""), Ok((Style::Keys, vec![])));
    assert_eq!(read("x", "a= b=\"").unwrap().1, ["a=", "b=\""]);
}

#[test]
fn the_same_name_twice_is_no_answer() {
    let mut pairs = Vec::new();
    let line = b"a=1 b=2 a=3";
    parse("x", line, 0, &mut pairs).unwrap();
    let fields = Fields { line, pairs: &pairs };
    assert_eq!((fields.get("a"), fields.i64("b"), fields.get("c")), (None, Some(2), None));
}

#[test]
fn cut_and_foreign_texts_are_refused() {
    let text = "prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120";
    let last = text.find("next_prio=").unwrap() + "next_prio=".len();
    for end in 0..=last {
        assert!(read("sched_switch", &text[..end]).is_err(), "{}", &text[..end]);
    }
    for (event, text) in [
        ("sched_switch", "task swapper:0 [140] (R) ==> sshd:1 [120]"),
        ("sched_switch", "prev_comm=a prev_pid=x prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120"),
        ("sched_switch", "prev_comm=a prev_pid=1 prev_prio=120 prev_state= ==> next_comm=b next_pid=8 next_prio=120"),
        ("sched_wakeup", "comm=a pid=1 prio=120 target_cpu="),
        ("sched_wakeup", "a:1 [120] CPU:"),
        ("sched_wakeup", ""),
        ("sched_migrate_task", "comm=a pid=1 prio=120 orig_cpu=1"),
    ] {
        assert!(read(event, text).is_err(), "{event} {text}");
    }
}
