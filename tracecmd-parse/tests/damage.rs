// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings that were cut or have wrong bytes: an error or a stated gap,
//! never a panic, a hang, or other events than the whole file has.

#[path = "common/allocated.rs"]
mod allocated;
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use allocated::alone;
use common::random::Random;
use common::structure::{Kind, structure};
use tracecmd_parse::{Error, Item, Select, Summary, TraceFile, TraceReader};

/// Time, id and a sum of the bytes of each event, by CPU.
type Events = BTreeMap<u32, Vec<(u64, u16, u64)>>;

/// Reads everything, in five seconds and not much more memory than the file is long.
fn read(bytes: Vec<u8>) -> Result<(Events, Summary), Error> {
    let (start, before, len) = (Instant::now(), allocated::now(), bytes.len());
    allocated::start();
    let result = walk(bytes);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    let peak = allocated::peak() - before;
    assert!(peak < 4 * len + (64 << 20), "{peak} bytes of memory for a file of {len}");
    result
}

fn walk(bytes: Vec<u8>) -> Result<(Events, Summary), Error> {
    let limit = 64 * bytes.len() as u64 + (1 << 20);
    let trace = TraceFile::from_bytes(bytes)?;
    let mut events = Events::new();
    let mut items = 0;
    let mut cursor = trace.cursor(&Select::top())?;
    while let Some(item) = cursor.next()? {
        items += 1;
        assert!(items < limit, "the cursor does not come to an end");
        if let Item::Event(event) = item {
            let sum = event.data.iter().fold(0u64, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into()));
            events.entry(event.cpu).or_default().push((event.ts_ns, event.id, sum));
        }
    }
    Ok((events, cursor.summary()))
}

/// One small recording of each version, the project's own first.
fn samples() -> Vec<PathBuf> {
    let mut files = common::recordings();
    files.sort_by_key(|path| path.metadata().map_or(u64::MAX, |m| m.len()));
    let mut samples = Vec::new();
    for version in [6, 7] {
        let found = files.iter().find(|path| TraceFile::open(path).is_ok_and(|t| t.meta().version == version));
        samples.extend(found.cloned());
    }
    if samples.is_empty() {
        println!("skipped: no recordings in traces or ../shared");
    }
    samples
}

#[test]
fn a_cut_file_gives_a_prefix_and_says_so() {
    let _alone = alone();
    for path in samples() {
        let whole = std::fs::read(&path).unwrap();
        let (all, summary) = read(whole.clone()).unwrap();
        assert_eq!(summary.gaps, []);
        let total: usize = all.values().map(Vec::len).sum();
        let mut random = Random(1);
        let (mut refused, mut opened) = (0, 0);
        let cuts = rounds(200).max(100);
        for round in 0..cuts {
            let len = match round {
                0..30 => round,
                30..60 => whole.len() - 1 - random.below(20_000),
                _ => random.below(whole.len()),
            };
            match read(whole[..len].to_vec()) {
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
                Ok((events, summary)) => {
                    opened += 1;
                    for (cpu, events) in &events {
                        assert!(all[cpu].starts_with(events), "{}: CPU {cpu}, cut at {len}", path.display());
                    }
                    let found: usize = events.values().map(Vec::len).sum();
                    if found < total {
                        assert_ne!(summary.gaps, [], "{}: cut at {len}", path.display());
                        assert!(summary.losses > 0);
                    }
                }
            }
        }
        println!("{}: {opened} cuts read, {refused} refused", path.display());
    }
}

#[test]
fn wrong_bytes_never_panic() {
    let _alone = alone();
    for path in samples() {
        let whole = std::fs::read(&path).unwrap();
        let mut random = Random(2);
        let (mut refused, mut opened, mut gaps) = (0, 0, 0);
        for round in 0..rounds(2000) {
            let mut bytes = whole.clone();
            // Half of them in the first bytes, where the structure is.
            let range = if round % 2 == 0 { 2000 } else { bytes.len() };
            for _ in 0..=random.below(4) {
                let at = random.below(range);
                bytes[at] = match random.below(3) {
                    0 => bytes[at] ^ (1 << random.below(8)),
                    1 => 0xff,
                    _ => 0,
                };
            }
            match read(bytes) {
                Err(_) => refused += 1,
                Ok((_, summary)) => {
                    opened += 1;
                    gaps += summary.gaps.len();
                }
            }
        }
        println!("{}: {opened} read with {gaps} gaps, {refused} refused", path.display());
        assert!(refused > 0 && opened > 0);
    }
}

/// A recording, opened, and the path that it was opened by.
fn opened_copy(path: &PathBuf, dir: &Path) -> (TraceFile, PathBuf) {
    let copy = dir.join("trace.dat");
    std::fs::write(&copy, std::fs::read(path).unwrap()).unwrap();
    (TraceFile::open(&copy).unwrap(), copy)
}

fn count(trace: &TraceFile) -> Result<(u64, usize), Error> {
    let mut cursor = trace.cursor(&Select::top())?;
    while cursor.next()?.is_some() {}
    let summary = cursor.summary();
    Ok((summary.events, summary.gaps.len()))
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_told() {
    let _alone = alone();
    for path in samples() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, copy) = opened_copy(&path, dir.path());
        let start = trace.meta().buffers[0].cpus.iter().filter(|c| c.size > 0).map(|c| c.offset).min().unwrap();
        std::fs::OpenOptions::new().write(true).open(&copy).unwrap().set_len(start + 5000).unwrap();
        // A gap, or (inside a chunk that was there a moment ago) an error.
        assert!(count(&trace).map_or(true, |(_, gaps)| gaps > 0), "{}", path.display());
    }
}

/// What was opened is read: a file that grows, or another one under its name, changes nothing.
#[test]
fn a_file_that_grows_or_is_replaced_is_read_as_it_was_opened() {
    let _alone = alone();
    for path in samples() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, copy) = opened_copy(&path, dir.path());
        let expected = count(&trace).unwrap();
        assert!(expected.0 > 0 && expected.1 == 0, "{expected:?}");
        let mut file = std::fs::OpenOptions::new().append(true).open(&copy).unwrap();
        std::io::Write::write_all(&mut file, &[0xa5; 100_000]).unwrap();
        assert_eq!(count(&trace).unwrap(), expected);
        let other = dir.path().join("other");
        std::fs::write(&other, [0x5a; 10_000]).unwrap();
        std::fs::rename(&other, &copy).unwrap();
        assert_eq!(count(&trace).unwrap(), expected);
    }
}

/// The same bytes overwritten by others: whatever comes, it comes to an end.
#[test]
fn a_file_that_is_overwritten_does_no_harm() {
    let _alone = alone();
    for path in samples() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, copy) = opened_copy(&path, dir.path());
        let size = copy.metadata().unwrap().len();
        for byte in [0x00, 0xff, 0x5a] {
            let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![byte; size as usize], 0).unwrap();
            let events = count(&trace);
            assert!(events.as_ref().map_or(true, |(events, gaps)| *events == 0 || *gaps > 0), "{byte}: {events:?}");
        }
    }
}

/// A hole of a sparse file, or a commit word that became 0: the page looks as if nothing had been on it.
#[test]
fn an_emptied_page_is_told_where_events_follow() {
    let _alone = alone();
    let plain = |path: &PathBuf| TraceFile::open(path).is_ok_and(|trace| !trace.meta().buffers[0].compressed);
    let Some(path) = samples().into_iter().find(plain) else { return println!("skipped: all are compressed") };
    let whole = std::fs::read(&path).unwrap();
    let (all, summary) = read(whole.clone()).unwrap();
    assert_eq!(summary.gaps, []);
    let trace = TraceFile::open(&path).unwrap();
    let buffer = &trace.meta().buffers[0];
    let page = buffer.layout.page_size as usize;
    let cpu = buffer.cpus.iter().find(|cpu| cpu.size >= 3 * page as u64).expect("a CPU with three pages");
    for (first, pages) in [(0, 1), (0, 2), (1, 1)] {
        let at = cpu.offset as usize + first * page;
        let commit = 8..8 + buffer.layout.commit_size as usize;
        for emptied in [0..pages * page, commit] {
            let mut bytes = whole.clone();
            bytes[at..][emptied.clone()].fill(0);
            let (events, summary) = read(bytes).unwrap();
            assert!(events[&cpu.cpu].len() < all[&cpu.cpu].len());
            let told = summary.gaps.iter().any(|gap| gap.offset == at as u64 && gap.cpu == Some(cpu.cpu));
            assert!(told, "{first} {emptied:?}: {:?}", summary.gaps);
        }
    }
}

/// How often: as often as asked with `DAMAGE=full`, a tenth of it without.
fn rounds(full: usize) -> usize {
    if std::env::var_os("DAMAGE").is_some_and(|how| how == "full") { full } else { full / 10 }
}

/// What a file says besides its events, as far as a number in it can change it.
fn says(trace: &TraceFile) -> String {
    let meta = trace.meta();
    let formats: Vec<_> = trace.formats().iter().collect();
    let options: Vec<_> = meta.options.iter().map(|option| option.id).collect();
    format!("{} {:?} {:?} {:?} {options:?} {formats:?}", meta.cpus, meta.clock, meta.uname, meta.comms)
}

/// A length, an offset, a count or an id that is not what it was: refused, told, or of no consequence.
#[test]
fn structural_changes_are_told() {
    let _alone = alone();
    let structural = [Kind::Length, Kind::Offset, Kind::Count, Kind::Id];
    for path in samples() {
        let whole = std::fs::read(&path).unwrap();
        let structure = structure(&whole).unwrap();
        let (all, _) = read(whole.clone()).unwrap();
        let said = says(&TraceFile::from_bytes(whole.clone()).unwrap());
        let mut random = Random(5);
        let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut silent = Vec::new();
        for _ in 0..rounds(500) {
            let mut bytes = whole.clone();
            let place = structure.pick(&mut random, &structural).unwrap();
            structure.damage(&mut bytes, place, &mut random);
            let values = (structure.number(&whole, place), structure.number(&bytes, place));
            let other_event = |trace: &TraceFile| {
                let id = values.1.and_then(|value| u16::try_from(value).ok());
                (place.kind, place.of) == (Kind::Id, "event")
                    && id.is_some_and(|id| trace.formats().by_id(id).is_some())
            };
            let outcome = match (read(bytes.clone()), TraceFile::from_bytes(bytes)) {
                (Err(_), _) | (_, Err(_)) => "refused",
                (Ok((_, summary)), _) if !summary.gaps.is_empty() => "a gap",
                (Ok(_), Ok(trace)) if !trace.meta().notes.is_empty() => "a note",
                (Ok((events, _)), Ok(trace)) if events == all && says(&trace) == said => "no consequence",
                // As a changed comm: another event that is as long.
                (Ok(_), Ok(trace)) if other_event(&trace) => "another event",
                (Ok(_), Ok(trace)) => {
                    silent.push(format!("{place:?} {values:?} {}", says(&trace) == said));
                    "silent"
                }
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
        println!("{}: {outcomes:?}", path.display());
        assert_eq!(silent, Vec::<String>::new(), "{}", path.display());
    }
}
