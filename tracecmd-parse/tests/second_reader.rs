// SPDX-License-Identifier: GPL-2.0-or-later
//! Both readers give the same: formats, and every event of every recording with its bytes.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::model::{self, Record};
use common::random::Random;
use tracecmd_parse::tracecmd::{Libraries, Options, TraceCmd, serve_if_asked};
use tracecmd_parse::write::{Head, Stamp};
use tracecmd_parse::{
    Compression, Error, EventCursor, EventFormat, Field, FieldKind, Item, Select, TaskStates, TimeSample, TimeShift,
    TraceFile, TraceReader, TscToNs,
};

/// Not a test but what the child process runs: this binary is started again with only it.
#[test]
fn serve() {
    serve_if_asked();
}

fn options() -> Options {
    let arguments = ["--exact", "serve", "--nocapture"].map(Into::into).to_vec();
    Options { program: Some((std::env::current_exe().unwrap(), arguments)), ..Options::default() }
}

fn open(path: &Path) -> TraceCmd {
    TraceCmd::open_with(path, options()).unwrap()
}

/// Whether the library is installed; says so if not.
fn have_library() -> bool {
    match Libraries::default().check() {
        Ok(()) => true,
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

#[test]
fn both_readers_agree() {
    let files = common::recordings();
    if files.is_empty() {
        println!("skipped: no recordings in traces or ../shared");
    }
    if files.is_empty() || !have_library() {
        return;
    }
    let mut events = 0;
    for file in &files {
        let native = TraceFile::open(file).unwrap();
        let library = open(file);
        same_formats(&native, &library, file);
        for buffer in &native.meta().buffers {
            events += same_events(&native, &library, &buffer.name, file);
        }
    }
    println!("{} files, {events} events equal", files.len());
}

fn same_formats(native: &TraceFile, library: &TraceCmd, file: &Path) {
    let shape = |reader: &dyn TraceReader| -> BTreeMap<u16, String> {
        // Signs of arrays and spaces in types are told differently by the two.
        let place = |f: &Field| {
            (
                f.name.clone(),
                f.offset,
                f.size,
                f.kind,
                f.signed && f.kind == FieldKind::Scalar,
                f.type_text.replace(" ", ""),
            )
        };
        let text =
            |f: &EventFormat| format!("{}:{} {:?}", f.system, f.name, f.fields.iter().map(place).collect::<Vec<_>>());
        // The library adds one of its own that is in no file.
        let own = |f: &&EventFormat| f.name == "blktrace";
        reader.formats().iter().filter(|f| !own(f)).map(|f| (f.id, text(f))).collect()
    };
    let (ours, theirs) = (shape(native), shape(library));
    let different: Vec<_> = ours
        .keys()
        .chain(theirs.keys())
        .filter(|id| ours.get(id) != theirs.get(id))
        .map(|id| format!("native  {:?}\nlibrary {:?}", ours.get(id), theirs.get(id)))
        .collect();
    assert!(
        different.is_empty(),
        "{}: {} formats\n{}",
        file.display(),
        different.len(),
        different[..different.len().min(4)].join("\n")
    );
    let states = |reader: &dyn TraceReader| reader.formats().by_name("sched", "sched_switch").and_then(TaskStates::of);
    assert_eq!(states(native), states(library), "{}", file.display());
}

/// Compares one buffer; returns the number of events.
fn same_events(native: &TraceFile, library: &TraceCmd, buffer: &str, file: &Path) -> u64 {
    let select = Select::buffer(buffer);
    let mut ours = native.cursor(&select).unwrap();
    let mut theirs = library.cursor(&select).unwrap();
    let mut count = 0;
    loop {
        let (a, b) = (ours.next().unwrap(), theirs.next().unwrap());
        assert_eq!(a, b, "{}: event {count}", file.display());
        match a {
            None => break,
            Some(_) => count += 1,
        }
    }
    assert_eq!(ours.summary(), theirs.summary(), "{}", file.display());
    count
}

/// Both versions and byte orders, several buffers, losses, extended times: whatever can be written.
#[test]
fn both_readers_agree_on_what_is_written() {
    if !have_library() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    let (mut files, mut events, mut refused) = (0, 0, 0);
    for shape in model::shapes() {
        let cpus = 1 + random.below(5) as u32;
        let model = model::as_tracecmd_reads(model::model(&mut random, &shape, cpus, true));
        let path = cut_file(dir.path(), &model::write(&shape, &model::head(cpus), &model), files);
        let native = TraceFile::open(&path).unwrap();
        // Not every build of the library has zlib.
        let library = match TraceCmd::open_with(&path, options()) {
            Ok(library) => library,
            Err(error) if shape.compression == Compression::Zlib => {
                println!("{error}");
                refused += 1;
                continue;
            }
            Err(error) => panic!("{shape:?}: {error}"),
        };
        same_formats(&native, &library, &path);
        let names = |reader: &dyn TraceReader| -> Vec<String> {
            reader.meta().buffers.iter().map(|buffer| buffer.name.clone()).collect()
        };
        assert_eq!(names(&native), names(&library));
        for buffer in &native.meta().buffers {
            events += same_events(&native, &library, &buffer.name, &path);
        }
        files += 1;
    }
    println!("{files} files, {events} events equal, {refused} refused");
    assert!(files > 10 && events > 1000);
}

/// Times are corrected as the library does it; options that neither knows are passed over by both.
#[test]
fn both_readers_correct_times_the_same() {
    if !have_library() {
        return;
    }
    let sample = |time, offset, scaling, fraction| TimeSample { time, offset, scaling, fraction };
    let shift = |flags| TimeShift {
        peer_trace_id: 7,
        flags,
        cpus: vec![
            vec![sample(0, 1_000, 1, 0)],
            vec![sample(0, -10, 1, 0), sample(1 << 20, 500, 3, 1), sample(1 << 30, 900, 1, 0)],
        ],
    };
    let tsc = TscToNs { mult: 3 << 20, shift: 21, offset: 0 };
    let plain = || model::head(2);
    let heads = [
        ("offset", Head { ts_offset_ns: 123_456_789, ..plain() }),
        ("tsc", Head { tsc_to_ns: Some(tsc), clock: Some("x86-tsc".into()), ..plain() }),
        ("tsc and offset", Head { tsc_to_ns: Some(tsc), ts_offset_ns: -500, ..plain() }),
        ("shift", Head { time_shift: Some(shift(0)), ..plain() }),
        ("shift between samples", Head { time_shift: Some(shift(1)), ..plain() }),
        ("date", Head { more_options: vec![(1, b"0x10\0".to_vec())], ..plain() }),
        ("unknown", Head { more_options: vec![(99, b"what?".to_vec()), (40, Vec::new())], ..plain() }),
    ];
    let dir = tempfile::tempdir().unwrap();
    let mut events = 0;
    for (name, head) in &heads {
        for shape in model::shapes().into_iter().filter(|shape| shape.compression != Compression::Zlib) {
            let records = |pid: u32, step: u64| -> Vec<Record> {
                let event = |at: u64| Record::Event {
                    ts: 50_000 + at * step,
                    data: model::tick(shape.endian, pid, at),
                    stamp: if at % 7 == 3 { Stamp::Absolute } else { Stamp::Delta },
                };
                (0..40).map(event).collect()
            };
            let cpus = BTreeMap::from([(0, records(1, 1_000_003)), (1, records(2, 70_000_001))]);
            let bytes = model::write(&shape, head, &vec![(String::new(), cpus)]);
            let path = cut_file(dir.path(), &bytes, 7);
            let native = TraceFile::open(&path).unwrap();
            assert_eq!(native.meta().notes.is_empty(), !(name.contains("shift") || *name == "unknown"), "{name}");
            let count = same_events(&native, &open(&path), "", &path);
            assert_eq!(count, 80, "{name} {shape:?}");
            events += count;
        }
    }
    println!("{events} events equal");
}

#[test]
fn a_second_cursor_starts_again() {
    let Some(path) = common::recording("smp4-idle-light").filter(|_| have_library()) else {
        return;
    };
    let library = open(&path);
    let first = count(&mut *library.cursor(&Select::top()).unwrap());
    // One that is given up in the middle must not disturb the next.
    library.cursor(&Select::top()).unwrap().next().unwrap();
    assert_eq!(count(&mut *library.cursor(&Select::top()).unwrap()), first);
    assert!(first > 0);
}

fn count(cursor: &mut dyn EventCursor) -> u64 {
    while cursor.next().unwrap().is_some() {}
    cursor.summary().events
}

#[test]
fn a_missing_library_is_named() {
    let Some(path) = common::recording("smp4-idle-light") else {
        println!("skipped: no recordings in traces or ../shared");
        return;
    };
    let libraries = Libraries { tracecmd: "libtracecmd.so.none".into(), ..Libraries::default() };
    let error = TraceCmd::open_with(&path, Options { libraries, ..options() }).unwrap_err();
    match error.inner() {
        // The first of the two may be missing on this machine, too.
        Error::Library { name, why } => assert!(name.starts_with("lib") && !why.is_empty()),
        other => panic!("{other}"),
    }
    let text = error.to_string();
    assert!(text.contains("cannot be loaded") && text.contains("libtracecmd1"), "{text}");
}

#[test]
fn a_program_that_is_not_prepared_is_told_so() {
    let Some(path) = common::recording("smp4-idle-light") else {
        return;
    };
    // `serve` may have run before in this process, and then the program counts as prepared.
    let unprepared = Options { program: Some(("/bin/true".into(), Vec::new())), ..Options::default() };
    let error = TraceCmd::open_with(&path, unprepared).unwrap_err();
    assert!(matches!(error.inner(), Error::TraceCmd { .. }), "{error}");
}

/// A version 6 file cut inside the events: the library crashes in its process, not in this one.
#[test]
fn a_crash_is_an_error() {
    let Some(path) = common::recording("smt8-pipe-v6").filter(|_| have_library()) else {
        return;
    };
    let bytes = std::fs::read(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for part in [10, 50, 90, 99] {
        let cut = cut_file(dir.path(), &bytes[..bytes.len() * part / 100], part);
        let error = TraceCmd::open_with(&cut, options()).unwrap_err();
        assert!(matches!(error.inner(), Error::TraceCmd { .. }), "{part}: {error}");
        println!("{error}");
    }
}

fn cut_file(dir: &Path, bytes: &[u8], part: usize) -> PathBuf {
    let path = dir.join(format!("cut{part}.dat"));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Whatever the bytes are, the library may do what it likes in its own process.
#[test]
fn damaged_files_do_no_harm_here() {
    if !have_library() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(77);
    let shapes = model::shapes();
    let mut outcomes = [0; 3];
    for at in 0..80 {
        let shape = &shapes[random.below(shapes.len())];
        let mut bytes = model::write(shape, &model::head(2), &model::model(&mut random, shape, 2, true));
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        let path = cut_file(dir.path(), &bytes, at);
        let impatient = Options { patience: Duration::from_secs(5), ..options() };
        let walked = TraceCmd::open_with(&path, impatient).and_then(|library| {
            for buffer in &library.meta().buffers {
                let mut cursor = library.cursor(&Select::buffer(&buffer.name))?;
                while cursor.next()?.is_some() {}
            }
            Ok(())
        });
        match walked {
            Ok(()) => outcomes[0] += 1,
            Err(error) if error.to_string().contains("refused") => outcomes[1] += 1,
            Err(_) => outcomes[2] += 1,
        }
    }
    println!("{} read, {} refused, {} crashed or worse", outcomes[0], outcomes[1], outcomes[2]);
    assert!(outcomes[0] > 0 && outcomes[1] > 0);
}

/// Lost events: a page is marked in a copy of a version 6 file.
#[test]
fn lost_events_agree() {
    const MISSED: u8 = 0x80;
    const STORED: u8 = 0x40;
    let Some(path) = common::recording("smt8-pipe-v6").filter(|_| have_library()) else {
        return;
    };
    let mut bytes = std::fs::read(&path).unwrap();
    let native = TraceFile::open(&path).unwrap();
    let buffer = native.meta().buffer("").unwrap();
    let page_size = u64::from(native.meta().page_size);
    let mut marked = 0u64;
    for cpu in buffer.cpus.iter().filter(|cpu| cpu.size >= 4 * page_size) {
        let page = (cpu.offset + page_size) as usize;
        let commit = u32::from_le_bytes(bytes[page + 8..page + 12].try_into().unwrap()) as usize;
        // Bits 31 and 30 of the commit word; the count is stored behind the data if there is room.
        bytes[page + 11] |= MISSED;
        let behind = page + 16 + commit;
        if marked.is_multiple_of(2) && commit + 16 + 8 <= page_size as usize {
            bytes[page + 11] |= STORED;
            bytes[behind..behind + 8].copy_from_slice(&(1000 + marked).to_le_bytes());
        }
        marked += 1;
    }
    assert!(marked > 2);
    let dir = tempfile::tempdir().unwrap();
    let path = cut_file(dir.path(), &bytes, 100);
    let native = TraceFile::open(&path).unwrap();
    let library = open(&path);
    same_events(&native, &library, "", &path);
    let mut cursor = library.cursor(&Select::top()).unwrap();
    let mut losses = 0;
    while let Some(item) = cursor.next().unwrap() {
        losses += u64::from(matches!(item, Item::Lost { .. }));
    }
    assert_eq!(losses, marked);
}
