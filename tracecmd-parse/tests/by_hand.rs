// SPDX-License-Identifier: GPL-2.0-or-later
//! Files put together byte by byte after trace-cmd.dat.v6(5) and
//! trace-cmd.dat.v7(5), without this crate's writer; and files that are none.

use tracecmd_parse::{Endian, Error, Item, Select, TraceFile, TraceReader};

const PAGE: usize = 128;

/// Bytes in one order.
struct Bytes {
    bytes: Vec<u8>,
    big: bool,
}

impl Bytes {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn number(&mut self, value: u64, size: usize) -> &mut Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        let part = if self.big { &bytes[8 - size..] } else { &bytes[..size] };
        self.put(part)
    }

    fn sized(&mut self, text: &str, size: usize) -> &mut Self {
        self.number(text.len() as u64, size).put(text.as_bytes())
    }

    fn pad(&mut self) -> &mut Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(PAGE), 0);
        self
    }

    fn patch(&mut self, at: usize, value: u64) {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes[at..at + 8].copy_from_slice(&bytes);
    }
}

fn header_page(long: usize) -> String {
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:{};\tsize:{};\tsigned:1;\n",
        8 + long,
        PAGE - 8 - long
    )
}

const FORMAT: &str = "name: tick\nID: 300\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:s32 value;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->value\n";

fn formats(out: &mut Bytes) {
    // No ftrace events; one system with one event.
    out.number(0, 4);
    out.number(1, 4).put(b"demo\0").number(1, 4).sized(FORMAT, 8);
}

/// A page with two events of CPU-dependent values.
fn page(out: &mut Bytes, long: usize, ts: u64, value: i32) {
    let start = out.bytes.len();
    out.number(ts, 8).number(32, long);
    for (delta, value) in [(0u32, value), (10, value - 1)] {
        let word = if out.big { 3 << 27 | delta } else { 3 | delta << 5 };
        out.number(word.into(), 4);
        out.number(300, 2).number(0, 2).number(1234, 4).number(value as u32 as u64, 4);
    }
    out.bytes.resize(start + PAGE, 0);
}

fn version_6(big: bool, long: usize) -> Vec<u8> {
    let mut out = Bytes { bytes: b"\x17\x08\x44tracing6\0".to_vec(), big };
    out.put(&[big.into(), long as u8]).number(PAGE as u64, 4);
    out.put(b"header_page\0").sized(&header_page(long), 8);
    out.put(b"header_event\0").sized("# compressed entry header\n", 8);
    formats(&mut out);
    out.sized("00000000 T _text\n", 4).sized("", 4).sized("1234 some one\n", 8);
    out.number(2, 4).put(b"options  \0");
    out.number(5, 2).sized("Linux me 4.9.0 arm\0", 4);
    out.number(7, 2).sized("-1000\0", 4);
    out.number(4, 2).number(0, 4);
    out.number(999, 2).sized("unknown", 4);
    let instance = out.number(3, 2).number(8 + 5, 4).bytes.len();
    out.number(0, 8).put(b"inst\0");
    out.number(0, 2);
    let top = table(&mut out);
    out.sized("local [global]", 8).pad();
    data(&mut out, top, long);
    let at = out.bytes.len() as u64;
    out.patch(instance, at);
    let table = table(&mut out);
    out.sized("[mono]", 8).pad();
    data(&mut out, table, long);
    out.bytes
}

/// The mark and the empty table of two CPUs; gives where the table is.
fn table(out: &mut Bytes) -> usize {
    out.put(b"flyrecord\0");
    let at = out.bytes.len();
    out.put(&[0; 32]);
    at
}

fn data(out: &mut Bytes, table: usize, long: usize) {
    for (cpu, ts) in [(0u64, 5000), (1, 4995)] {
        let at = out.bytes.len();
        page(out, long, ts, -7 * (cpu as i32 + 1));
        out.patch(table + 16 * cpu as usize, at as u64);
        out.patch(table + 16 * cpu as usize + 8, PAGE as u64);
    }
}

fn version_7(big: bool, long: usize) -> Vec<u8> {
    let mut out = Bytes { bytes: b"\x17\x08\x44tracing7\0".to_vec(), big };
    out.put(&[big.into(), long as u8]).number(PAGE as u64, 4).put(b"none\0\0");
    let first = out.bytes.len();
    out.number(0, 8);
    let mut targets = Vec::new();
    for (id, fill) in [16u64, 17, 18].into_iter().zip([0, 1, 2]) {
        let mut part = Bytes { bytes: Vec::new(), big };
        match fill {
            0 => {
                part.put(b"header_page\0").sized(&header_page(long), 8);
                part.put(b"header_event\0").sized("", 8);
            }
            1 => {
                part.number(0, 4);
            }
            _ => {
                part.number(1, 4).put(b"demo\0").number(1, 4).sized(FORMAT, 8);
            }
        }
        targets.push((id, out.bytes.len() as u64));
        out.number(id, 2).number(0, 2).number(0, 4).number(part.bytes.len() as u64, 8).put(&part.bytes);
    }
    let buffer = out.bytes.len() as u64;
    out.number(3, 2).number(0, 2).number(0, 4).number(0, 8).pad();
    let pages = out.bytes.len() as u64;
    page(&mut out, long, 5000, -7);
    page(&mut out, long, 4995, -14);
    // Two sections of options, the later one first in the file.
    let second = out.bytes.len() as u64;
    out.number(0, 2).number(0, 2).number(0, 4).number(0, 8);
    let size_at = out.bytes.len() - 8;
    out.number(3, 2).number(8 + 1 + 5 + 4 + 4 + 40, 4);
    out.number(buffer, 8).put(b"\0mono\0").number(PAGE as u64, 4).number(2, 4);
    out.number(0, 4).number(pages, 8).number(PAGE as u64, 8);
    out.number(3, 4).number(pages + PAGE as u64, 8).number(PAGE as u64, 8);
    out.number(0, 2).number(8, 4).number(0, 8);
    let size = (out.bytes.len() - size_at - 8) as u64;
    out.patch(size_at, size);
    let at = out.bytes.len() as u64;
    out.patch(first, at);
    out.number(0, 2).number(0, 2).number(0, 4).number(3 * 14 + 14, 8);
    for (id, target) in targets {
        out.number(id, 2).number(8, 4).number(target, 8);
    }
    out.number(0, 2).number(8, 4).number(second, 8);
    out.bytes
}

fn events(trace: &TraceFile, buffer: &str) -> Vec<(u64, u32, i64, i64)> {
    let tick = trace.formats().event("demo", "tick").unwrap();
    let value = tick.field_ref("value").unwrap();
    let pid = trace.formats().common().unwrap().common_pid;
    let mut cursor = trace.cursor(&Select::buffer(buffer)).unwrap();
    let mut events = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let Item::Event(event) = item else { panic!("{item:?}") };
        events.push((event.ts_ns, event.cpu, pid.i64(&event).unwrap(), value.i64(&event).unwrap()));
    }
    events
}

#[test]
fn version_6_by_hand() {
    for (big, long) in [(false, 8), (false, 4), (true, 8), (true, 4)] {
        let trace = TraceFile::from_bytes(version_6(big, long)).unwrap();
        let meta = trace.meta();
        assert_eq!((meta.version, meta.endian), (6, if big { Endian::Big } else { Endian::Little }));
        assert_eq!((meta.cpus, meta.kernel_release(), meta.machine()), (2, Some("4.9.0"), Some("arm")));
        assert_eq!((meta.clock.as_deref(), meta.ts_offset_ns), (Some("global"), -1000));
        assert_eq!((meta.buffer("inst").unwrap().clock.as_deref(), meta.clock_is_ns()), (Some("mono"), Some(true)));
        assert_eq!(meta.comms[&1234], "some one");
        assert_eq!(trace.kallsyms().unwrap().unwrap(), b"00000000 T _text\n");
        let unknown = meta.options.iter().find(|o| o.id == 999).unwrap();
        assert_eq!((unknown.name, unknown.size), (None, 7));
        // Merged by time, the offset added.
        let want = [(3995, 1, 1234, -14), (4000, 0, 1234, -7), (4005, 1, 1234, -15), (4010, 0, 1234, -8)];
        assert_eq!(events(&trace, ""), want);
        assert_eq!(events(&trace, "inst"), want);
        let Err(error) = trace.cursor(&Select::buffer("other")) else { panic!("there is no such buffer") };
        assert_eq!(error.to_string(), "has no buffer \"other\"; it has the top buffer, \"inst\"");
    }
}

#[test]
fn version_7_by_hand() {
    for (big, long) in [(false, 8), (false, 4), (true, 8), (true, 4)] {
        let trace = TraceFile::from_bytes(version_7(big, long)).unwrap();
        let meta = trace.meta();
        assert_eq!((meta.version, meta.cpus, meta.clock.as_deref()), (7, 4, Some("mono")));
        let want = [(4995, 3, 1234, -14), (5000, 0, 1234, -7), (5005, 3, 1234, -15), (5010, 0, 1234, -8)];
        assert_eq!(events(&trace, ""), want);
    }
}

#[test]
fn times_of_one_cpu_that_go_back_are_told() {
    let mut bytes = version_6(false, 8);
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    let cpu = trace.meta().buffers[0].cpus[0];
    // The second event of CPU 0 gets an absolute stamp's place: make the first later instead.
    bytes[cpu.offset as usize..][..8].copy_from_slice(&9000u64.to_le_bytes());
    let word = cpu.offset as usize + 16 + 16;
    // Type 31, one word: the time 2000.
    bytes[word..word + 8].copy_from_slice(&[[31, 0xfa, 0, 0], [0; 4]].concat());
    bytes[word + 8..word + 12].copy_from_slice(&2u32.to_le_bytes());
    bytes[word + 12..word + 20].copy_from_slice(&[44, 1, 0, 0, 1, 0, 0, 0]);
    let commit = cpu.offset as usize + 8;
    bytes[commit..commit + 8].copy_from_slice(&36u64.to_le_bytes());
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let mut cursor = trace.cursor(&Select::top()).unwrap();
    let mut times = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let Item::Event(event) = item else { panic!("{item:?}") };
        times.push((event.cpu, event.ts_ns));
    }
    assert_eq!(times, [(1, 3995), (1, 4005), (0, 8000), (0, 1000)]);
    assert_eq!(cursor.summary().out_of_order, 1);
}

#[test]
fn what_is_no_trace_is_named() {
    let dir = std::env::temp_dir().join(format!("tracecmd-parse-none-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let open = |path: &std::path::Path| {
        let error = TraceFile::open(path).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        text[path.display().to_string().len()..].to_string()
    };
    assert!(open(&dir).contains(": is a directory, expected a trace.dat file"));
    assert!(open(&dir.join("missing")).contains(": cannot be read: No such file"));
    let file = dir.join("file");
    let with = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        open(&file)
    };
    assert!(with(b"").contains(": is empty, expected a trace.dat file"));
    assert!(with(b"# tracer: nop\n#\n").contains("starts with text \"# tracer: nop\\n#\\n\", expected the trace.dat"));
    assert!(with(b"\x7fELF\x02\x01").contains("starts with \"\\x7fELF\\x02\\x01\""));
    assert!(with(b"\x17\x08\x44trac").contains("ends too early: magic at byte 0 needs 10 bytes, 7 are left"));
    assert!(with(b"\x17\x08\x44tracing8\0").contains("is trace.dat version \"8\", expected 6 or 7"));
    assert!(with(b"\x17\x08\x44tracing7\0\x02").contains("byte 12: byte order: expected 0 or 1, found 2"));
    assert!(with(b"\x17\x08\x44tracing7\0\0\x10").contains("byte 13: size of long: expected 4 or 8, found 16"));
    assert!(with(b"\x17\x08\x44tracing7\0\0\x08\0\0\0\x80").contains("page size: expected"));
    assert!(with(b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0").contains("has compression \"lzma\""));
    let unfinished = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0\0\0\0\0\0\0\0\0";
    assert!(with(unfinished).contains("found 0 (the recording was not ended)"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_latency_trace_is_named() {
    let mut bytes = version_6(false, 8);
    let at = bytes.windows(10).position(|w| w == b"options  \0").unwrap();
    bytes.truncate(at);
    bytes.extend(b"latency  \0# tracer: wakeup\n");
    let error = TraceFile::from_bytes(bytes).unwrap_err();
    assert!(matches!(error.inner(), Error::Unsupported { .. }), "{error}");
}
