// SPDX-License-Identifier: GPL-2.0-or-later
//! Texts made by others, texts in pages and packed files, and texts that are none.

mod common;

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tracecmd_parse::text::{Form, LeftState, TextItem, TextTrace};
use tracecmd_parse::{AnyTrace, Error, Item, Select, TraceReader, open_any, open_repeatable};

/// A file of ../shared/public-traces.
fn public(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // In a git worktree `shared` may be one level further up.
    let places = ["../../shared/public-traces", "../../../shared/public-traces"];
    let found = places.iter().map(|place| root.join(place).join(name)).find(|path| path.exists());
    if found.is_none() {
        println!("skipped: no ../shared/public-traces/{name}");
    }
    found
}

fn text(path: &Path) -> TextTrace {
    match open_any(path).unwrap() {
        AnyTrace::Text(trace) => *trace,
        _ => panic!("{} is no text", path.display()),
    }
}

/// Number of events by name; nothing of the text may be unreadable.
fn counts(trace: &TextTrace) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut cursor = trace.events(&Select::top()).unwrap();
    while let Some(item) = cursor.next_item().unwrap() {
        let TextItem::Event(event) = item else { panic!("{item:?}") };
        *counts.entry(event.name.to_string()).or_default() += 1;
    }
    assert_eq!(cursor.summary().common.gaps, vec![]);
    assert_eq!((cursor.summary().malformed, cursor.summary().common.out_of_order), (0, 0));
    counts
}

fn count(counts: &BTreeMap<String, u64>, name: &str) -> u64 {
    counts.get(name).copied().unwrap_or(0)
}

/// What a replay sees of a text: times, CPUs and the bytes of its scheduler events.
fn raw(trace: &dyn TraceReader, from: usize) -> Vec<(u64, u32, u16, Vec<u8>)> {
    let mut cursor = trace.cursor(&Select::top()).unwrap();
    let mut all = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let Item::Event(event) = item else { panic!("{item:?}") };
        all.push((event.ts_ns, event.cpu, event.id, event.data[from..].to_vec()));
    }
    all
}

#[test]
fn three_atrace_files_of_one_recording() {
    let names = ["atrace_data", "atrace_missing_tgids", "atrace_fixed_tgids"];
    let paths: Vec<_> = names.iter().filter_map(|name| public(&format!("atrace-text-variants/{name}"))).collect();
    let traces: Vec<_> = paths.iter().map(|path| text(path)).collect();
    for trace in &traces {
        assert_eq!((trace.form(), trace.meta().cpus), (Form::Tracefs, 1));
        let counts = counts(trace);
        assert_eq!((count(&counts, "sched_switch"), count(&counts, "sched_wakeup")), (72, 44));
        assert_eq!(counts.values().sum::<u64>(), 116);
        assert_eq!(raw(trace, 0), raw(&traces[0], 0));
    }
}

#[test]
fn a_script_string_with_escaped_line_ends() {
    let Some(path) = public("atrace-text-variants/android_systrace.txt") else { return };
    let counts = counts(&text(&path));
    assert_eq!((count(&counts, "sched_switch"), count(&counts, "sched_wakeup")), (58, 33));
    assert_eq!(counts.values().sum::<u64>(), 91);
}

#[test]
fn syscalls_without_a_name() {
    let Some(path) = public("ftrace-text-desktop-waking/ftrace_syscalls.txt") else { return };
    let trace = text(&path);
    assert_eq!(trace.meta().cpus, 8);
    let counts = counts(&trace);
    let sched = ["sched_switch", "sched_wakeup", "sched_waking"].map(|name| count(&counts, name));
    assert_eq!((sched, count(&counts, "")), ([60, 30, 30], 842));
    assert_eq!(counts.values().sum::<u64>(), 1052);
}

#[test]
fn comms_with_a_space() {
    let Some(path) = public("ftrace-text-desktop-waking/trace-critical-path") else { return };
    let trace = text(&path);
    let counts = counts(&trace);
    let sched = ["sched_switch", "sched_wakeup", "sched_waking"].map(|name| count(&counts, name));
    assert_eq!((sched, counts.values().sum::<u64>()), ([28, 12, 12], 146));
    let mut cursor = trace.events(&Select::top()).unwrap();
    let Some(TextItem::Event(_)) = cursor.next_item().unwrap() else { panic!() };
    let Some(TextItem::Event(event)) = cursor.next_item().unwrap() else { panic!() };
    assert_eq!((event.comm, event.pid, event.cpu, event.name), (&b"Web Content"[..], 2711, 3, "sched_waking"));
    assert_eq!((event.ts_ns, event.line), (26_186_336_632_000, 11));
    assert_eq!((event.fields.get("comm"), event.fields.i64("target_cpu")), (Some(&b"Timer"[..]), Some(1)));
    assert_eq!(event.irq.unwrap().flags, 0x01);
}

#[test]
fn what_is_no_trace_is_told_what_it_is() {
    let refused = |bytes: &[u8]| match open_bytes(bytes) {
        Err(error) => error.inner().to_string(),
        Ok(_) => panic!("{:?} was read", String::from_utf8_lossy(bytes)),
    };
    for (bytes, expected) in [
        (&b"PERFILE2\x68\0\0\0"[..], "is perf.data"),
        (b"\xfd7zXZ\0\0", "is packed with xz"),
        (b"\x7fELF\x02", "is an ELF file"),
        (b"\x0a\xff\x01\x80abc", "Perfetto"),
        (b"ab\0cd", "is binary data that starts with"),
        (b"", "is empty"),
        (b"\n\n", "without a line of events"),
        (b"{\"traceEvents\": []}\n", "is JSON"),
        (b"<!DOCTYPE html>\n<html></html>\n", "is a page without ftrace text"),
        (
            b"<html><script class=\"trace-data\" type=\"application/octet-stream\">\nx\n",
            "whose trace data are not text",
        ),
        (b"# tracer: function_graph\n#\n 0)   1.234 us    |  f();\n", "function_graph"),
        (b"# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.18\n", "latency format"),
        (b"# tracer: nop\n#\n20854 0 2355483577807 type: 375\n", "in raw form"),
        (
            b"bash 22394  2396.535401: sched:sched_waking: comm=a pid=1 prio=120 target_cpu=000\n",
            "without the CPU column",
        ),
        (b"Dear all,\nsee below.\n", "its first line \"Dear all,\""),
    ] {
        let error = refused(bytes);
        assert!(error.contains(expected), "{error}");
    }
    if let Some(path) = public("atrace-text-variants/SOURCE.txt") {
        let error = open_any(path).unwrap_err().to_string();
        assert!(error.contains("SOURCE.txt: is text that is no known form of trace"), "{error}");
    }
    let error = open_any(env!("CARGO_MANIFEST_DIR")).unwrap_err().to_string();
    assert!(error.contains("is a directory"), "{error}");
}

fn open_bytes(bytes: &[u8]) -> Result<AnyTrace, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    open_any(path)
}

const TRACEFS: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 4/9   #P:2
#
          <idle>-0       [001] dNh3.    12.000001: sched_waking: comm=a b pid=7 prio=120 target_cpu=001
          <idle>-0       [001] dNh4.    12.000002: sched_wakeup: comm=a b pid=7 prio=120 target_cpu=001
CPU:0 [LOST 812 EVENTS]
          <idle>-0       [001] d..2.    12.000003: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=7 next_prio=120
             a b-7       [001] d..2.    12.000004: sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state=I ==> next_comm=swapper/1 next_pid=0 next_prio=120
 => schedule
";

#[test]
fn lost_events_states_and_notes() {
    let trace = TextTrace::from_bytes(TRACEFS.as_bytes()).unwrap();
    assert_eq!((trace.form(), trace.meta().cpus), (Form::Tracefs, 2));
    assert!(trace.meta().notes.iter().any(|note| note.starts_with("5 of 9 events")), "{:?}", trace.meta().notes);
    let mut cursor = trace.events(&Select::top()).unwrap();
    let mut states = Vec::new();
    let mut lost = Vec::new();
    while let Some(item) = cursor.next_item().unwrap() {
        match item {
            TextItem::Event(event) => states.extend(event.left_state()),
            TextItem::Lost { cpu, ts_ns, count } => lost.push((cpu, ts_ns, count)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(states, [LeftState::Runnable, LeftState::Blocked]);
    assert_eq!(lost, [(0, 12_000_002_000, Some(812))]);
    let summary = cursor.summary();
    assert_eq!((summary.common.events, summary.common.lost_events, summary.continued), (4, 812, 1));
}

#[test]
fn unreadable_lines_are_counted_and_named() {
    let text =
        format!("{TRACEFS}garbage\n          <idle>-0       [001] d..2.    12.000005: sched_switch: prev_comm=\n");
    // Without its line end the last line may have lost digits.
    let cut = format!(
        "{text}          <idle>-0       [001] d..2.    12.000006: sched_waking: comm=a pid=1 prio=120 target_cpu=00"
    );
    for (text, malformed) in [(text, 2), (cut, 3)] {
        let trace = TextTrace::from_bytes(text.into_bytes()).unwrap();
        let mut cursor = trace.events(&Select::top()).unwrap();
        while cursor.next_item().unwrap().is_some() {}
        let summary = cursor.summary();
        assert_eq!((summary.malformed, summary.common.events), (malformed, 4));
        let gaps: Vec<_> = summary.common.gaps.iter().map(|gap| gap.what.as_str()).collect();
        assert!(gaps[0].starts_with("line 11 is no event that can be read: no \"comm-pid"), "{gaps:?}");
        assert!(gaps[1].starts_with("line 12 is no event that can be read: fields are not those"), "{gaps:?}");
    }
}

#[test]
fn several_buffers() {
    let line = |buffer: &str, at: u32| {
        format!(
            "{buffer}            bash-7     [000]    12.00000{at}: sched_waking: comm=a pid={at} prio=120 target_cpu=001\n"
        )
    };
    let text = ["cpus=2\n".to_string(), line("", 1), line("wide: ", 2), line("wide: ", 3)].concat();
    let trace = TextTrace::from_bytes(text.into_bytes()).unwrap();
    let names: Vec<_> = trace.meta().buffers.iter().map(|b| b.name.as_str()).collect();
    assert_eq!((trace.form(), names), (Form::Report, vec!["", "wide"]));
    let events = |name: &str| raw_of(&trace, name).len();
    assert_eq!((events(""), events("wide")), (1, 2));
    assert!(matches!(trace.events(&Select::buffer("no")), Err(Error::NoBuffer { .. })));
}

fn raw_of(trace: &TextTrace, buffer: &str) -> Vec<u64> {
    let mut cursor = trace.cursor(&Select::buffer(buffer)).unwrap();
    let mut all = Vec::new();
    while let Some(Item::Event(event)) = cursor.next().unwrap() {
        all.push(event.ts_ns);
    }
    all
}

/// The text without its loss, which has no bytes to compare.
fn plain() -> String {
    TRACEFS.replace("CPU:0 [LOST 812 EVENTS]\n", "")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn packed_and_in_pages() {
    let plain = plain();
    let expected = raw(&TextTrace::from_bytes(plain.clone().into_bytes()).unwrap(), 0);
    assert_eq!(expected.len(), 4);
    let page = format!(
        "<!DOCTYPE html>\n<html><script>{}</script>\n<script class=\"trace-data\" type=\"application/text\">\n{plain}</script>\n</html>\n",
        "x".repeat(300_000)
    );
    let script =
        format!("<html>\n<script>\n  var linuxPerfData = \"\\\n{}\";\n</script>\n", plain.replace('\n', "\\n\\\n"));
    let mut zlib = b"capturing trace... done\nTRACE:\n".to_vec();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut zlib, flate2::Compression::default());
    encoder.write_all(plain.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let halves = plain.split_at(plain.len() / 2);
    let two = |pack: fn(&[u8]) -> Vec<u8>| [pack(halves.0.as_bytes()), pack(halves.1.as_bytes())].concat();
    let skippable = [&b"\x50\x2a\x4d\x18\x03\0\0\0abc"[..], &zstd(plain.as_bytes())].concat();
    let inputs: [(&str, Vec<u8>); 11] = [
        ("adb", format!("capturing trace... done\r\nTRACE:\r\n{}", plain.replace('\n', "\r\n")).into_bytes()),
        ("page", page.clone().into_bytes()),
        ("script", script.into_bytes()),
        ("atrace -z", zlib),
        ("gzip", gzip(plain.as_bytes())),
        ("two gzip members", two(gzip)),
        ("zstd", zstd(plain.as_bytes())),
        ("two zstd frames", two(zstd)),
        ("zstd after a skippable frame", skippable),
        ("gzip in zstd", zstd(&gzip(plain.as_bytes()))),
        ("packed page", gzip(page.as_bytes())),
    ];
    for (name, bytes) in inputs {
        match open_bytes_kept(&bytes).1 {
            AnyTrace::Text(trace) => assert_eq!(raw(&*trace, 0), expected, "{name}"),
            _ => panic!("{name}"),
        }
        let stream = TextTrace::from_stream(Box::new(Cursor::new(bytes))).unwrap();
        assert_eq!(raw(&stream, 0), expected, "{name} as a stream");
        let again = stream.events(&Select::top());
        assert!(matches!(again, Err(Error::ReadOnce)), "{name}");
    }
}

/// The folder must live as long as the trace is read from it.
fn open_bytes_kept(bytes: &[u8]) -> (tempfile::TempDir, AnyTrace) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    let trace = open_any(path).unwrap();
    (dir, trace)
}

#[test]
fn a_packed_text_that_is_cut_says_so() {
    let long = plain() + &plain().repeat(2000);
    for packed in [gzip(long.as_bytes()), zstd(long.as_bytes())] {
        let (_dir, trace) = open_bytes_kept(&packed[..packed.len() - packed.len() / 4]);
        let mut cursor = trace.reader().cursor(&Select::top()).unwrap();
        while cursor.next().unwrap().is_some() {}
        let summary = cursor.summary();
        assert!(summary.events > 1000, "{}", summary.events);
        let last = summary.gaps.last().unwrap().to_string();
        assert!(last.contains("the compressed input ends here"), "{last}");
    }
}

#[test]
fn a_packed_trace_dat_is_unpacked() {
    let Some(path) = common::recording("smp4-idle-light") else {
        println!("skipped: no recordings in traces or ../shared");
        return;
    };
    let bytes = std::fs::read(&path).unwrap();
    let expected = raw(open_any(&path).unwrap().reader(), 0);
    let (_dir, trace) = open_bytes_kept(&gzip(&bytes));
    assert!(matches!(trace, AnyTrace::Dat(_)));
    assert_eq!(raw(trace.reader(), 0), expected);
}

/// Not a test but what the next one runs: reads `-`.
#[test]
fn stdin_child() {
    if std::env::var_os("READ_STDIN").is_some() {
        let trace = open_repeatable("-").unwrap();
        let kind = if matches!(trace, AnyTrace::Dat(_)) { "dat" } else { "text" };
        let (first, second) = (raw(trace.reader(), 0), raw(trace.reader(), 0));
        assert_eq!(first, second);
        eprintln!("{kind} {}", first.len());
    }
}

#[test]
fn standard_input() {
    let feed = |bytes: &[u8]| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stdin_child", "--nocapture"])
            .env("READ_STDIN", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    assert_eq!(feed(plain().as_bytes()), "text 4\n");
    assert_eq!(feed(&gzip(plain().as_bytes())), "text 4\n");
    if let Some(path) = common::recording("smp4-idle-light") {
        let events = raw(open_any(&path).unwrap().reader(), 0).len();
        assert_eq!(feed(&std::fs::read(&path).unwrap()), format!("dat {events}\n"));
    }
}

/// A generator that needs no crate.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Walks whatever it is; gives lines, events and unreadable lines.
fn walk(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    let trace = TextTrace::from_bytes(bytes).ok()?;
    for buffer in &trace.meta().buffers {
        let mut cursor = trace.cursor(&Select::buffer(&buffer.name)).unwrap();
        while let Some(item) = cursor.next().unwrap() {
            if let Item::Event(event) = item
                && let Some(format) = trace.formats().of(&event)
            {
                for field in &format.fields {
                    let reference = format.field_ref(&field.name).unwrap();
                    // Whatever comes out, it must come out.
                    let _ = (reference.i64(&event), reference.bytes(&event));
                }
            }
        }
    }
    let mut cursor = trace.events(&Select::top()).unwrap();
    while let Some(item) = cursor.next_item().unwrap() {
        if let TextItem::Event(event) = item {
            let _ = (event.left_state(), event.fields.iter().count());
        }
    }
    let summary = cursor.summary();
    Some((summary.lines, summary.common.events, summary.malformed))
}

#[test]
fn cut_and_changed_texts_do_no_harm() {
    let report = "cpus=2\n          <idle>-0     [001]    12.007032: sched_switch:         swapper/7:0 [120] R ==> a b:309 [120]\n\
                  r2:             bash-216 [000]  2373.056723: sched_wakeup:         bash:216 [120] CPU:000\n";
    let perf = " a b=c [9] ==> x 22439 [001]  2396.811661:  1 sched:sched_switch: prev_comm=a prev_pid=2 prev_prio=120 \
                prev_state=S ==> next_comm=python3 next_pid=22440 next_prio=120\n\tffffffff813a89c4 f+0x3a4 ([k])\n";
    let latency = "run-work-291     7d..1.    11.535045: sis_rq7: (ffffffff810ea540) nr=1 h=1 comm=\"a b\" hic=1\n";
    let page = format!("<html>\n<script class=\"trace-data\" type=\"application/text\">\n{TRACEFS}</script>");
    let samples = [TRACEFS, report, perf, latency, &page];
    for sample in samples {
        for end in 0..sample.len() {
            if let Some((lines, events, malformed)) = walk(&sample.as_bytes()[..end]) {
                assert!(events + malformed <= lines);
            }
        }
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let bits = b" -[]()=:.,>\"'\\\n\r\t0189adxX+|#";
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = samples[random.below(samples.len())].as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] = bits[random.below(bits.len())],
                2 => bytes.insert(at, bits[random.below(bits.len())]),
                _ => drop(bytes.drain(at..(at + random.below(9)).min(bytes.len()))),
            }
            if bytes.is_empty() {
                break;
            }
        }
        read += u64::from(walk(&bytes).is_some());
    }
    // Most of them still look like a trace, or nothing was tested.
    assert!(read > 10_000, "{read}");
}

/// Lines that are as long as they may be, and repeat what a parser looks for.
#[test]
fn hostile_lines_cost_little() {
    let head = "          <idle>-0       [001] d..2.    12.000003: ";
    let repeated = [
        ("sched_process_fork: comm=a", " pid=1 child_comm=a"),
        ("sched_switch: prev_comm=a", " prev_pid=1 prev_prio=1 prev_state=S ==> next_comm="),
        ("sched_switch: a", ":1 [1] S ==> a"),
        ("sched_process_exec: filename=", " pid=1 old_pid=1 x"),
        ("x: ", "a=\"x"),
        ("x: ", "a=\" "),
        ("x: ", "-1 [000] 1.000001: "),
        ("", "-1 [000] 5"),
        ("", "x[1] 1.000001: "),
    ];
    let start = std::time::Instant::now();
    for (start, part) in repeated {
        let line = format!("{head}{start}{}\n", part.repeat(60_000 / part.len()));
        walk(format!("{TRACEFS}{}", line.repeat(20)).as_bytes());
        let perf = line.replace("<idle>-0 ", "<idle>  0 ").replace("d..2.", "");
        walk(perf.repeat(20).as_bytes());
    }
    // A second or two even where nothing is optimised and the machine is busy; minutes if anything is quadratic.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
