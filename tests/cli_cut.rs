// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff cut` from outside: what it writes is read again by sisdiff and by trace-cmd, and replays as it should.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tracecmd_parse::write::{FormatText, Head, Shape, TraceWriter};
use tracecmd_parse::{Compression, Endian, Item, Select, TraceFile, TraceReader, TscToNs};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const FULL: &str = "traces/smt8-light-state-truth/trace.dat";
const SMALL: &str = "traces/dies12-truth/trace.dat";
const IDLE: &str = "traces/smp4-idle-light/trace.dat";

fn sisdiff(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(args)
        .stdin(Stdio::null())
        .current_dir(ROOT)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Runs, and expects exit code 0.
fn fine(args: &[&str]) -> String {
    let output = sisdiff(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs, and expects one message and exit code 2.
fn trouble(args: &[&str]) -> String {
    let output = sisdiff(args);
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{args:?}: {error}");
    error
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }
}

#[derive(Debug, PartialEq, Eq, Clone)]
enum Seen {
    Event(u64, u32, Vec<u8>),
    Lost(u32, Option<u64>),
}

fn events(file: &str, buffer: &str) -> Vec<Seen> {
    let trace = TraceFile::open(Path::new(ROOT).join(file)).expect("a trace");
    let mut cursor = trace.cursor(&Select::buffer(buffer)).expect("a buffer");
    let mut seen = Vec::new();
    while let Some(item) = cursor.next().expect("readable") {
        match item {
            Item::Event(raw) => seen.push(Seen::Event(raw.ts_ns, raw.cpu, raw.data.to_vec())),
            Item::Lost { cpu, count, .. } => seen.push(Seen::Lost(cpu, count)),
            _ => {}
        }
    }
    assert_eq!(cursor.summary().gaps, []);
    seen
}

/// The decisions of a replay without what names who it was.
fn decisions(file: &str, topology: Option<&str>) -> Vec<Value> {
    let mut args = vec!["replay", file, "--quiet", "--decisions", "-"];
    args.extend(topology.iter().flat_map(|topology| ["--topology", topology]));
    let lines = fine(&args);
    let names = ["file", "pid", "comm", "waker_pid", "waker_comm"];
    lines
        .lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("JSON");
            let object = value.as_object_mut().expect("an object");
            names.iter().for_each(|name| drop(object.remove(*name).expect("is there")));
            value
        })
        .collect()
}

fn has_tracecmd() -> bool {
    let found = Command::new("trace-cmd").arg("--version").output().is_ok();
    if !found {
        println!("trace-cmd is not installed: what it says of the files is not looked at");
    }
    found
}

fn report(file: &str) -> String {
    let output = Command::new("trace-cmd").args(["report", "-t", "-i", file]).current_dir(ROOT).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_whole_copy_is_the_same_recording() {
    let dir = Dir::new();
    let copy = dir.path("copy.dat");
    let out = fine(&["cut", SMALL, "-o", &copy]);
    assert!(out.contains("13,601 of 13,601 events"), "{out}");
    assert_eq!(events(&copy, ""), events(SMALL, ""));
    let topology = "traces/dies12-truth/topology.tar.gz";
    assert_eq!(decisions(&copy, Some(topology)), decisions(SMALL, None));
    if has_tracecmd() {
        assert!(report(&copy) == report(SMALL), "trace-cmd reads the copy otherwise");
    }
}

#[test]
fn windows_and_cpus_are_cut_exactly() {
    let dir = Dir::new();
    let all = events(SMALL, "");
    let Seen::Event(first, ..) = all[0] else { panic!("an event comes first") };
    let (since, until) = (first + 1_000_000_000, first + 2_500_000_000);
    let within = |ts: u64| (since..until).contains(&ts);
    let wanted = |cpus: &dyn Fn(u32) -> bool| -> Vec<Seen> {
        all.iter()
            .filter(|seen| matches!(seen, Seen::Event(ts, cpu, _) if within(*ts) && cpus(*cpu)))
            .cloned()
            .collect()
    };
    let cut = dir.path("cut.dat");
    fine(&["cut", SMALL, "--since", "+1", "--until", "+2.5", "-o", &cut]);
    assert!(wanted(&|_| true).len() > 1000);
    assert_eq!(events(&cut, ""), wanted(&|_| true));
    // The same by the trace's own clock, of some CPUs, in two steps; by the other names of the flags.
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let (one, two) = (dir.path("one.dat"), dir.path("two.dat"));
    fine(&["cut", SMALL, "--from", &seconds(since), "-o", &one, "--cpu", "0-3,7"]);
    fine(&["cut", &one, "--to", &seconds(until), "-o", &two, "--cpus", "1,7,9"]);
    assert_eq!(events(&two, ""), wanted(&|cpu| cpu == 1 || cpu == 7));
    let trace = TraceFile::open(&two).expect("a trace");
    assert_eq!(trace.meta().cpus, 12, "the machine has as many CPUs as before");
}

/// Decisions by time and CPU.
fn keyed(decisions: Vec<Value>) -> BTreeMap<(u64, u64), Value> {
    let key = |value: &Value, name: &str| value[name].as_u64().expect("a number");
    decisions.into_iter().map(|value| ((key(&value, "ts_ns"), key(&value, "this_cpu")), value)).collect()
}

#[test]
fn a_window_has_the_decisions_of_its_time() {
    let dir = Dir::new();
    let cut = dir.path("trace.dat");
    fine(&["cut", FULL, "--since", "+1", "--until", "+2", "--with-topology", "-o", &cut]);
    let part = keyed(decisions(&cut, None));
    let mut whole = keyed(decisions(FULL, None));
    let Seen::Event(first, ..) = events(FULL, "")[0] else { panic!("an event comes first") };
    whole.retain(|(ts, _), _| (first + 1_000_000_000..first + 2_000_000_000).contains(ts));
    assert!(whole.len() > 1000);
    assert!(part.keys().eq(whole.keys()), "the same wakings are decisions");
    for (at, value) in &part {
        assert_eq!(value["recorded"], whole[at]["recorded"], "{at:?}");
        // All inputs of the model of the recorded kernel are in the recording; the others must find their hidden state.
        let (own, before) = (&value["decisions"][2], &whole[at]["decisions"][2]);
        assert_eq!(own["role"], "recorded");
        assert_eq!(own["final_cpu"], before["final_cpu"], "{at:?}");
    }
}

#[test]
fn what_a_replay_reads_is_enough_for_it() {
    let dir = Dir::new();
    let cut = dir.path("cut.dat");
    fine(&["cut", IDLE, "--sched-only", "-o", &cut, "--quiet"]);
    assert_eq!(decisions(&cut, Some("traces/smp4-idle-light/topology.tar.gz")), decisions(IDLE, None));
    let size = |file: &str| fs::metadata(Path::new(ROOT).join(file)).expect("a file").len();
    assert!(size(&cut) < size(IDLE) / 2, "without symbols it is small: {} of {}", size(&cut), size(IDLE));
    // Probes are kept unless they are not wanted.
    let (with, without) = (dir.path("with.dat"), dir.path("without.dat"));
    fine(&["cut", SMALL, "--sched-only", "-o", &with, "-q"]);
    fine(&["cut", SMALL, "--sched-only", "--no-probes", "-o", &without, "-q"]);
    assert_eq!(events(&with, ""), events(SMALL, ""));
    assert_eq!(events(&without, "").len(), 13_601 - 2 * 1779);
    let topology = "traces/dies12-truth/topology.tar.gz";
    let ignoring = fine(&["replay", SMALL, "--ignore-probes", "--quiet", "--decisions", "-"]);
    assert_eq!(decisions(&without, Some(topology)).len(), ignoring.lines().count());
}

/// Names of tasks and texts in a recording, but those of kernel threads that every machine has.
fn secrets(file: &Path) -> BTreeSet<Vec<u8>> {
    let trace = TraceFile::open(file).expect("a trace");
    let mut texts: BTreeSet<Vec<u8>> = trace.meta().comms.values().map(|comm| comm.clone().into_bytes()).collect();
    let fields: Vec<_> = trace
        .formats()
        .iter()
        .filter(|format| format.system == "sched")
        .flat_map(|format| {
            let named = format.fields.iter().filter(|field| field.name.ends_with("comm") || field.name == "filename");
            named.map(|field| (format.id, format.field_ref(&field.name).expect("it is there")))
        })
        .collect();
    let mut cursor = trace.cursor(&Select::top()).expect("the top buffer");
    while let Some(item) = cursor.next().expect("readable") {
        let Item::Event(raw) = item else { continue };
        texts.extend(
            fields.iter().filter(|(id, _)| *id == raw.id).filter_map(|(_, field)| Some(field.cstr(&raw)?.to_vec())),
        );
    }
    let kept =
        ["kworker/", "swapper", "migration/", "ksoftirqd/", "cpuhp/", "rcu", "kthreadd", "kswapd", "kcompactd", "<"];
    let others = ["khugepaged", "ksmd", "kdevtmpfs", "kauditd", "khungtaskd", "oom_reaper", "writeback", "kintegrityd"];
    let more = ["kblockd", "watchdogd", "mm_percpu_wq", "netns", "idle_inject/", "irq_work/"];
    // Shorter ones stand in anything.
    texts.retain(|text| {
        text.len() > 3 && !kept.iter().chain(&others).chain(&more).any(|start| text.starts_with(start.as_bytes()))
    });
    texts
}

/// Everything that a trace.dat tells, unpacked.
fn contents(file: &str) -> Vec<u8> {
    let trace = TraceFile::open(file).expect("a trace");
    let meta = trace.meta();
    let mut all =
        format!("{:?} {:?} {:?} {:?}", meta.uname, meta.comms, meta.proc_maps, meta.tracecmd_version).into_bytes();
    // The formats that are kept are the kernel's own and the probes'.
    let is_known = |system: &str, name: &str| matches!(system, "sched" | "power" | "cpuhp") || name.starts_with("sis_");
    assert!(trace.formats().iter().all(|format| is_known(&format.system, &format.name)));
    assert_eq!(trace.kallsyms().expect("readable").unwrap_or_default(), b"", "symbols are left out");
    assert_eq!(meta.trace_id, None);
    for seen in events(file, "") {
        if let Seen::Event(_, _, data) = seen {
            all.extend(data);
        }
    }
    all
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

/// Anonymises a recording with its machine; says how many names went.
fn check_anonymous(folder: &Path) -> usize {
    let dir = Dir::new();
    let (file, clean) = (folder.join("trace.dat"), dir.path("trace.dat"));
    let name = file.display().to_string();
    fine(&["cut", &name, "--anonymize", "--with-topology", "-o", &clean, "-q"]);
    assert_eq!(dir.names(), ["topology.tar.gz", "trace.dat"]);
    let (own, before) = (decisions(&clean, None), decisions(&name, None));
    assert!(!before.is_empty(), "{name}: nothing to compare");
    assert!(own == before, "{name}: the anonymous one decides otherwise");
    let secrets = secrets(&file);
    let mut machine = Vec::new();
    let packed = fs::read(dir.path("topology.tar.gz")).expect("a file");
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut machine).expect("unpacked");
    let all = contents(&clean);
    for secret in &secrets {
        let shown = String::from_utf8_lossy(secret);
        assert!(!holds(&all, secret), "{name}: {shown} is in the new file");
        assert!(!holds(&machine, secret), "{name}: {shown} is in the machine's description");
    }
    assert!(!holds(&machine, b"@lists.debian.org"), "who built the kernel");
    secrets.len()
}

#[test]
fn anonymous_recordings_decide_the_same_and_name_nobody() {
    let mut names = 0;
    for trace in ["smt8-light-state-truth", "numa80-truth", "smt8-affinity-truth", "smt8-scan-truth", "smp4-idle-light"]
    {
        names += check_anonymous(&Path::new(ROOT).join("traces").join(trace));
    }
    assert!(names > 30, "only {names} names were looked for");
}

#[test]
fn anonymous_recordings_beside_the_project_decide_the_same() {
    let shared = ["../shared/traces", "../../shared/traces"].map(|folder| Path::new(ROOT).join(folder));
    let Some(folder) = shared.iter().find(|folder| folder.exists()) else {
        println!("skipped: ../shared/traces is absent");
        return;
    };
    // One of each kernel, and version 6.
    for name in ["k510-smt8-affinity-truth", "k612-smt8-light-state-truth", "k73-numa16-state-truth", "smt8-pipe-v6"] {
        check_anonymous(&folder.join(name));
    }
}

#[test]
fn an_anonymous_recording_is_anonymous_once() {
    let dir = Dir::new();
    let (one, two) = (dir.path("one.dat"), dir.path("two.dat"));
    fine(&["cut", SMALL, "--anonymize", "-o", &one, "-q"]);
    fine(&["cut", &one, "--anonymise", "-o", &two, "-q"]);
    let topology = "traces/dies12-truth/topology.tar.gz";
    assert_eq!(decisions(&two, Some(topology)), decisions(SMALL, None));
    let trace = TraceFile::open(&two).expect("a trace");
    assert_eq!(trace.meta().uname.as_deref(), Some("Linux host 6.1.0-57-amd64 x86_64"));
    if has_tracecmd() {
        let lines = report(&two);
        assert_eq!(lines.lines().filter(|line| !line.starts_with("cpus=")).count(), 13_601);
        assert!(lines.contains("sched_switch: ") && lines.contains("swapper/0:0"), "{}", &lines[..2000]);
        assert!(!lines.contains("sleeploop") && !lines.contains("FAILED TO PARSE"));
    }
}

#[test]
fn files_are_replaced_as_a_whole_and_only_if_asked() {
    let dir = Dir::new();
    let out = dir.path("out.dat");
    fs::write(&out, "mine").expect("written");
    assert!(trouble(&["cut", SMALL, "-o", &out]).contains("--force"));
    assert_eq!(fs::read(&out).expect("a file"), b"mine");
    assert!(trouble(&["cut", SMALL, "--since", "+1000", "-o", &out, "--force"]).contains("out of the time window"));
    assert!(trouble(&["cut", SMALL, "--cpus", "500", "-o", &out, "--force"]).contains("of other CPUs"));
    assert!(trouble(&["cut", "README.md", "-o", &out, "--force"]).contains("README.md"));
    assert_eq!((fs::read(&out).expect("a file"), dir.names()), (b"mine".to_vec(), vec!["out.dat".to_owned()]));
    fine(&["cut", SMALL, "--since", "+1", "-o", &out, "--force", "-q"]);
    assert!(events(&out, "").len() > 1000);
    assert_eq!(dir.names(), ["out.dat"]);
    let copy = dir.path("copy.dat");
    fs::copy(Path::new(ROOT).join(SMALL), &copy).expect("copied");
    assert!(trouble(&["cut", &copy, "-o", &copy, "--force"]).contains("would overwrite"));
    assert!(trouble(&["cut", SMALL, "--since", "3", "--until", "2", "-o", &copy]).contains("nothing lies between"));
    assert!(trouble(&["cut", SMALL, "-o", &dir.0.path().display().to_string()]).contains("is a folder"));
    assert!(trouble(&["cut", SMALL, "--buffer", "nosuch", "-o", &dir.path("x.dat")]).contains("no buffer"));
    assert!(trouble(&["cut", &copy, "--with-topology", "-o", &dir.path("x.dat")]).contains("no topology beside"));
    assert!(sisdiff(&["cut", SMALL]).status.code() == Some(2));
    let missing = trouble(&["cut", SMALL, "-o", &dir.path("none/x.dat")]);
    assert!(missing.contains("none/x.dat") && !missing.contains(".sisdiff-"), "{missing}");
}

#[test]
fn the_machine_goes_with_it() {
    let dir = Dir::new();
    let out = dir.path("case.dat");
    let hint = text(&sisdiff(&["cut", SMALL, "-o", &out]).stderr);
    assert!(hint.contains("topology.tar.gz belongs to it"), "{hint}");
    fine(&["cut", SMALL, "-o", &out, "--force", "--with-topology"]);
    let topology = |source: &str| {
        let out = fine(&["topology", source]);
        // The first lines name the source.
        out.lines().filter(|line| !line.contains("topology.tar.gz")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(topology(&dir.path("topology.tar.gz")), topology("traces/dies12-truth/topology.tar.gz"));
    assert!(trouble(&["cut", SMALL, "-o", &dir.path("b.dat"), "--with-topology"]).contains("--force"));
    assert_eq!(dir.names(), ["case.dat", "topology.tar.gz"]);
}

#[test]
fn pipes_are_read_and_written() {
    let dir = Dir::new();
    let whole = fs::read(Path::new(ROOT).join(SMALL)).expect("a recording");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["cut", "-", "--since", "+1", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let feeder = std::thread::spawn(move || stdin.write_all(&whole));
    let output = child.wait_with_output().expect("ends");
    feeder.join().expect("fed").expect("taken");
    let report = text(&output.stderr);
    assert!(output.status.success() && report.contains("to stdout"), "{report}");
    let (piped, named) = (dir.path("piped.dat"), dir.path("named.dat"));
    fs::write(&piped, &output.stdout).expect("written");
    fine(&["cut", SMALL, "--since", "+1", "-o", &named, "-q"]);
    assert!(fs::read(&piped).expect("a file") == fs::read(&named).expect("a file"), "the same bytes");
}

#[test]
fn a_text_becomes_a_trace_dat() {
    if !has_tracecmd() {
        return;
    }
    let dir = Dir::new();
    let (printed, cut) = (dir.path("trace.txt"), dir.path("trace.dat"));
    fs::write(&printed, report(SMALL)).expect("written");
    fine(&["cut", &printed, "-o", &cut, "-q"]);
    let topology = Some("traces/dies12-truth/topology.tar.gz");
    assert_eq!(decisions(&cut, topology), decisions(&printed, topology));
    let anonymous = dir.path("anonymous.dat");
    fine(&["cut", &printed, "--anonymize", "-o", &anonymous, "-q"]);
    assert_eq!(decisions(&anonymous, topology), decisions(&printed, topology));
    assert!(!holds(&contents(&anonymous), b"sleeploop"));
    let lines = report(&cut);
    assert_eq!(lines.lines().filter(|line| line.contains("sched_switch:")).count(), 4545);
}

const TICK: u16 = 300;

/// A trace with losses, two buffers and a tick every 100 ns, of every shape.
fn made(shape: &Shape, tsc: bool) -> Vec<u8> {
    let format = format!(
        "name: sched_waking\nID: {TICK}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
         \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
         print fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n"
    );
    let head = Head {
        formats: vec![FormatText { system: "sched".to_owned(), text: format }],
        cpus: 2,
        clock: Some(if tsc { "x86-tsc" } else { "mono" }.to_owned()),
        tsc_to_ns: tsc.then_some(TscToNs { mult: 1 << 21, shift: 20, offset: 0 }),
        uname: Some("Linux secrethost 6.1.0 x86_64".to_owned()),
        trace_id: Some(7),
        ..Head::default()
    };
    let number = |value: u32, size: usize| match shape.endian {
        Endian::Little => value.to_le_bytes()[..size].to_vec(),
        Endian::Big => value.to_be_bytes()[4 - size..].to_vec(),
    };
    let mut writer = TraceWriter::new(std::io::Cursor::new(Vec::new()), shape, &head, &["inst"]).expect("a head");
    for (buffer, events) in [("", 400_u32), ("inst", 50)] {
        writer.start_buffer(buffer).expect("a buffer");
        for cpu in 0..2 {
            writer.start_cpu(cpu).expect("a CPU");
            for n in 0..events {
                if n == 200 {
                    writer.lost(Some(42)).expect("a loss");
                }
                let mut data = number(TICK.into(), 2);
                data.extend([0, 0]);
                data.extend(number(500 + n, 4));
                data.extend(b"secretname\0\0\0\0\0\0");
                for value in [600 + n, 120, cpu] {
                    data.extend(number(value, 4));
                }
                writer.event(u64::from(1000 + 100 * n + cpu), &data).expect("an event");
            }
        }
    }
    writer.finish().expect("a trace").into_inner()
}

#[test]
fn every_shape_keeps_its_losses_buffers_and_times() {
    let dir = Dir::new();
    let (from, to) = (dir.path("from.dat"), dir.path("to.dat"));
    for endian in [Endian::Little, Endian::Big] {
        for long_size in [4, 8] {
            for (version, compression) in
                [(6, Compression::None), (7, Compression::None), (7, Compression::Zlib), (7, Compression::Zstd)]
            {
                let shape = Shape { version, endian, long_size, page_size: 4096, compression };
                fs::write(&from, made(&shape, false)).expect("written");
                let cut = |more: &[&str]| {
                    let mut args = vec!["cut", &from, "--force", "-o", &to];
                    args.extend(more);
                    fine(&args)
                };
                let out = cut(&[]);
                assert!(out.contains("900 of 900 events") && out.contains("2 marks"), "{out}");
                for buffer in ["", "inst"] {
                    assert_eq!(events(&to, buffer), events(&from, buffer), "{shape:?}");
                }
                let trace = TraceFile::open(&to).expect("a trace");
                assert_eq!((trace.meta().version, trace.meta().endian), (version, endian));
                assert_eq!(trace.meta().compression, compression);
                let out = cut(&["--buffer", "inst"]);
                assert!(out.contains("inst, as the top buffer"), "{out}");
                assert_eq!(events(&to, ""), events(&from, "inst"));
                // A window that begins at the loss has it, one that begins behind it has not.
                cut(&["--since", "0.000021"]);
                let lost = |seen: &[Seen]| seen.iter().filter(|seen| matches!(seen, Seen::Lost(_, Some(42)))).count();
                assert_eq!(lost(&events(&to, "")), 2);
                cut(&["--since", "0.0000212"]);
                assert_eq!(lost(&events(&to, "")), 0);
                cut(&["--anonymize"]);
                let all = contents(&to);
                assert!(!holds(&all, b"secret") && holds(&all, b"t1\0"));
                assert_eq!(events(&to, "").len(), events(&from, "").len());
                if has_tracecmd() && compression != Compression::Zlib {
                    assert!(report(&to).contains("comm=t1 pid="), "{shape:?}");
                }
            }
        }
    }
    fs::write(&from, made(&Shape::default(), true)).expect("written");
    fine(&["cut", &from, "--force", "-o", &to, "-q"]);
    assert_eq!(events(&to, ""), events(&from, ""));
    assert_eq!(TraceFile::open(&to).expect("a trace").meta().clock_is_ns(), Some(true));
    if has_tracecmd() {
        assert_eq!(report(&to), report(&from), "ticks or nanoseconds, trace-cmd prints the same times");
    }
}

#[test]
fn a_damaged_recording_is_cut_and_says_so() {
    let dir = Dir::new();
    let (from, short, to) = (dir.path("from.dat"), dir.path("short.dat"), dir.path("to.dat"));
    let shape = Shape { version: 6, ..Shape::default() };
    fs::write(&from, made(&shape, false)).expect("written");
    let bytes = fs::read(&from).expect("a file");
    let at = bytes.len() - 3 * 4096;
    fs::write(&short, &bytes[..at]).expect("written");
    let output = sisdiff(&["cut", &short, "-o", &to]);
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    match output.status.code() {
        Some(0) => assert!(out.contains("damage"), "{out}"),
        Some(2) => assert!(error.contains("short.dat") && error.contains("byte"), "{error}"),
        code => panic!("{code:?}: {error}"),
    }
    let info = sisdiff(&["info", &short]);
    let told = text(&info.stdout) + &text(&info.stderr);
    assert!(told.contains("byte"), "{told}");
}
