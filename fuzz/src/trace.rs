// SPDX-License-Identifier: GPL-2.0-or-later
//! trace.dat: the native reader against itself, the writer, and trace-cmd's library.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tracecmd_parse::page::{PageWalk, Step};
use tracecmd_parse::tracecmd::{Options, TraceCmd};
use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{
    Buffer, Compression, Error, EventCursor, Item, Select, Summary, TaskStates, TimeSample, TimeShift, TraceFile,
    TraceReader, TscToNs,
};

/// The library takes at most this share of the time: starting a process is slow.
const LIBRARY_SHARE: u32 = 4;
/// It hangs on some files; shorter than the fuzzer's own limit.
const PATIENCE: Duration = Duration::from_secs(2);
/// Times have 59 bits in a page; beyond, the upper ones are made up, by each reader in its way.
const TIME_MAX: u64 = 1 << 58;
/// The same of a file whose times are interpolated.
const SHIFTED_MAX: u64 = 1 << 40;

/// Time, id and bytes.
type Event = (u64, u16, Vec<u8>);
/// Events in order with their CPU.
type Events = Vec<(u32, Event)>;

/// Reads any bytes; panics if readers disagree.
pub fn check(bytes: &[u8]) {
    let Ok(trace) = TraceFile::from_bytes(bytes.to_vec()) else { return };
    let _ = (trace.kallsyms(), trace.printk_formats());
    let _ = trace.formats().iter().filter_map(TaskStates::of).count();
    let limit = 256 * bytes.len() as u64 + (1 << 20);
    let mut all = Vec::new();
    for buffer in &trace.meta().buffers {
        let select = Select::buffer(&buffer.name);
        let Ok((events, summary)) = walk(&trace, &select, limit) else { return };
        cpu_by_cpu(&trace, &select, &events, limit);
        all.push((buffer.name.clone(), events, summary));
    }
    if all.iter().all(|(_, _, summary)| summary.gaps.is_empty()) {
        written_again(&trace, &all, limit);
        if library_can(&trace, &all, bytes) {
            ask_library(bytes, &all);
        }
    }
}

fn walk(trace: &TraceFile, select: &Select, limit: u64) -> Result<(Events, Summary), Error> {
    let mut cursor = trace.cursor(select)?;
    let mut events = Vec::new();
    let mut items = 0;
    while let Some(item) = cursor.next()? {
        items += 1;
        assert!(items < limit, "the cursor does not come to an end");
        let Item::Event(event) = item else { continue };
        if let Some(format) = trace.formats().of(&event) {
            let fields = format.fields.iter().filter_map(|field| format.field_ref(&field.name).ok());
            fields.for_each(|field| drop((field.text(&event), field.i64(&event), field.u64(&event))));
        }
        events.push((event.cpu, (event.ts_ns, event.id, event.data.to_vec())));
    }
    Ok((events, cursor.summary()))
}

/// One CPU alone gives what it gives among the others.
fn cpu_by_cpu(trace: &TraceFile, select: &Select, events: &Events, limit: u64) {
    let mut by_cpu: BTreeMap<u32, Vec<&Event>> = BTreeMap::new();
    events.iter().for_each(|(cpu, event)| by_cpu.entry(*cpu).or_default().push(event));
    for (cpu, want) in by_cpu {
        let mut cursor = trace.cpu_cursor(select, cpu).expect("it is read with the others");
        let alone = collect(&mut *cursor, limit).expect("it is read with the others");
        assert!(alone.iter().map(|(_, event)| event).eq(want), "CPU {cpu} alone");
    }
}

fn collect(cursor: &mut dyn EventCursor, limit: u64) -> Result<Events, Error> {
    let mut events = Events::new();
    while let Some(item) = cursor.next()? {
        if let Item::Event(event) = item {
            events.push((event.cpu, (event.ts_ns, event.id, event.data.to_vec())));
        }
        assert!((events.len() as u64) < limit, "the cursor does not come to an end");
    }
    Ok(events)
}

/// What was read, written and read again is the same.
fn written_again(trace: &TraceFile, all: &[(String, Events, Summary)], limit: u64) {
    let names: Vec<&str> = all.iter().map(|(name, ..)| name.as_str()).filter(|name| !name.is_empty()).collect();
    let Some(bytes) = write(trace, all, &names) else { return };
    let again = TraceFile::from_bytes(bytes).expect("what was written is read");
    // Damaged text of a format may come back as another.
    if !again.formats().iter().eq(trace.formats().iter()) {
        return;
    }
    for (name, events, _) in all {
        let (read, summary) = walk(&again, &Select::buffer(name), limit).expect("what was written is read");
        assert_eq!(summary.gaps, []);
        // Losses, which are not written, have a place in the order where times go back.
        same(&by_cpu(events), &by_cpu(&read), &format!("buffer {name:?} read, written and read"));
    }
}

/// `None` where the writer refuses: a page too small for an event, a name twice, ...
fn write(trace: &TraceFile, all: &[(String, Events, Summary)], names: &[&str]) -> Option<Vec<u8>> {
    let shape = Shape { version: 7, ..Shape::of(trace) };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), &shape, &Head::of(trace), names).ok()?;
    // The top buffer may be missing in what was read.
    if all.iter().all(|(name, ..)| !name.is_empty()) {
        writer.start_buffer("").ok()?;
    }
    for (name, events, _) in all {
        writer.start_buffer(name).ok()?;
        let cpus: std::collections::BTreeSet<u32> = events.iter().map(|(cpu, _)| *cpu).collect();
        for cpu in cpus {
            writer.start_cpu(cpu).ok()?;
            for (_, (ts, _, data)) in events.iter().filter(|(of, _)| *of == cpu) {
                writer.event(*ts, data).ok()?;
            }
        }
    }
    Some(writer.finish().ok()?.into_inner())
}

/// When the fuzzer started, and how much of its time went to the library.
static SPENT: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

/// Asks trace-cmd's library, in a process of its own, where it is installed; a file that it refuses or crashes on is
/// no finding.
fn ask_library(bytes: &[u8], all: &[(String, Events, Summary)]) {
    let now = Instant::now();
    let (start, spent) = *SPENT.lock().expect("nobody panicked").get_or_insert((now, Duration::ZERO));
    if spent * LIBRARY_SHARE > now - start {
        return;
    }
    let path = std::env::temp_dir().join(format!("trace-reader-fuzz-{}.dat", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written to");
    let told = library_events(path.clone(), all);
    let _ = std::fs::remove_file(path);
    *SPENT.lock().expect("nobody panicked") = Some((start, spent + now.elapsed()));
    let told = told.unwrap_or_default();
    // It gives no events, and no error, where it does not understand header_page to the last word.
    if told.iter().all(Vec::is_empty) {
        return;
    }
    for ((name, ours, summary), theirs) in all.iter().zip(told) {
        let what = format!("buffer {name:?}: native, library");
        match summary.out_of_order {
            0 => same(ours, &theirs, &what),
            // Where times go back, losses, which the library does not put in order, move what follows them.
            _ => same(&by_cpu(ours), &by_cpu(&theirs), &what),
        }
    }
}

/// Stable: each CPU's events in their order.
fn by_cpu(events: &Events) -> Events {
    let mut events = events.clone();
    events.sort_by_key(|(cpu, _)| *cpu);
    events
}

fn same(ours: &Events, theirs: &Events, what: &str) {
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(ours.len().min(theirs.len()));
    assert_eq!(ours.get(at), theirs.get(at), "{what}, event {at} of {} and {}", ours.len(), theirs.len());
}

/// Whether the file is one that the library reads by rule and not by chance.
fn library_can(trace: &TraceFile, all: &[(String, Events, Summary)], bytes: &[u8]) -> bool {
    let meta = trace.meta();
    // It forgets the shift in other buffers than the top one.
    let top_only = all.iter().all(|(name, ..)| name.is_empty());
    let shift = |shift: &TimeShift| top_only && meta.tsc_to_ns.is_none() && shift.cpus.iter().all(|s| few(s));
    // It multiplies in two halves, the upper one shifted left by the rest of 32; its multiplier has a sign.
    let tsc = |tsc: TscToNs| tsc.shift <= 32 && tsc.mult < 1 << 31;
    // It maps unpacked chunks by the pages of this machine, and misses smaller ones.
    let mapped = meta.compression == Compression::None || meta.buffers.iter().all(|b| b.layout.page_size >= 4096);
    // It takes the place of an event's type from the first format that has one.
    let type_at = trace.formats().common().map(|common| common.common_type.offset());
    let types = trace.formats().iter().all(|f| f.field("common_type").map(|field| field.offset) == type_at);
    let most = if meta.time_shift.is_some() { SHIFTED_MAX } else { TIME_MAX };
    meta.time_shift.as_ref().is_none_or(shift)
        && meta.tsc_to_ns.is_none_or(tsc)
        && mapped
        && types
        && trace.formats().skipped().is_empty()
        && all.iter().all(|(_, events, _)| plain(events, most))
        && raw_times_fit(trace, bytes)
        && page_words(bytes)
}

/// The library multiplies in 64 bits, and reads the first sample of a CPU that has none.
fn few(samples: &[TimeSample]) -> bool {
    let small = |s: &TimeSample| {
        s.offset.unsigned_abs() < 1 << 12
            && s.time.unsigned_abs() < 1 << 40
            && (1..16).contains(&s.scaling)
            && (0..8).contains(&s.fraction)
    };
    // Of a time before the first of several samples it reads what is in memory before them.
    let from_start = samples.len() == 1 || samples.first().is_some_and(|first| first.time <= 0);
    from_start && samples.iter().all(small)
}

/// Whether times go forward on each CPU and are within what pages hold. The library lets corrected times before 0 wrap
/// around; here they are 0.
fn plain(events: &Events, most: u64) -> bool {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    events.iter().all(|(cpu, (ts, ..))| (1..most).contains(ts) && last.insert(*cpu, *ts).unwrap_or(0) <= *ts)
}

/// Whether header_page, where it is not compressed, has every word the library looks for. Without one of them it takes the
/// pages for those of a ring buffer before 2.6.31, whose event headers have other bits.
fn page_words(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((_, page)) = text.split_once("header_page\0") else { return true };
    let page = page.split_once("header_event\0").map_or(page, |(page, _)| page);
    let four = ["field:", "offset:", "size:", "signed:"].iter().all(|word| page.matches(word).count() == 4);
    four && page.contains(" overwrite;")
}

/// Whether no page holds a time of more than [`TIME_MAX`]: an absolute stamp behind one carries into the upper bits where
/// the lower ones ran over (`rb_fix_abs_ts()`), which the library leaves out. Where clock ticks are multiplied, the
/// events' own times no longer show it, and of compressed pages nothing else is seen here.
fn raw_times_fit(trace: &TraceFile, bytes: &[u8]) -> bool {
    let ticks = trace.meta().tsc_to_ns.is_some();
    trace.meta().buffers.iter().all(|buffer| if buffer.compressed { !ticks } else { pages_fit(buffer, bytes) })
}

fn pages_fit(buffer: &Buffer, bytes: &[u8]) -> bool {
    let page_size = buffer.layout.page_size as usize;
    let mut pages = buffer.cpus.iter().flat_map(|cpu| {
        let from = bytes.get(cpu.offset as usize..).unwrap_or(&[]);
        from[..from.len().min(cpu.size as usize)].chunks(page_size)
    });
    pages.all(|page| {
        let Ok((mut walk, _)) = PageWalk::new(page, &buffer.layout) else { return true };
        let mut fits = walk.ts() < TIME_MAX;
        while let Step::Event { ts, .. } = walk.next(page, buffer.layout.endian) {
            fits &= ts < TIME_MAX;
        }
        fits
    })
}

fn library_events(path: PathBuf, all: &[(String, Events, Summary)]) -> Result<Vec<Events>, Error> {
    let library = TraceCmd::open_with(path, Options { patience: PATIENCE, ..Options::default() })?;
    let events = |(name, events, _): &(String, Events, Summary)| {
        let mut cursor = library.cursor(&Select::buffer(name))?;
        collect(&mut *cursor, events.len() as u64 + 1000)
    };
    all.iter().map(events).collect()
}
