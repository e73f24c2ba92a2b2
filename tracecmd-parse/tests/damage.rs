// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings that were cut or have wrong bytes: an error or a stated gap,
//! never a panic, a hang, or other events than the whole file has.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::random::Random;
use common::structure::{Kind, structure};
use tracecmd_parse::{Error, Item, Select, Summary, TraceFile, TraceReader};

/// Time, id and a sum of the bytes of each event, by CPU.
type Events = BTreeMap<u32, Vec<(u64, u16, u64)>>;

fn read(bytes: Vec<u8>) -> Result<(Events, Summary), Error> {
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
    for path in samples() {
        let whole = std::fs::read(&path).unwrap();
        let (all, summary) = read(whole.clone()).unwrap();
        assert_eq!(summary.gaps, []);
        let total: usize = all.values().map(Vec::len).sum();
        let mut random = Random(1);
        let (mut refused, mut opened) = (0, 0);
        for round in 0..120 {
            let len = match round {
                0..40 => round,
                40..80 => whole.len() - 1 - random.below(20_000),
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
    for path in samples() {
        let whole = std::fs::read(&path).unwrap();
        let mut random = Random(2);
        let (mut refused, mut opened, mut gaps) = (0, 0, 0);
        for round in 0..120 {
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

#[test]
fn a_file_that_shrinks_while_it_is_read_is_told() {
    for path in samples() {
        let copy = std::env::temp_dir().join(format!("tracecmd-parse-shrink-{}.dat", std::process::id()));
        std::fs::copy(&path, &copy).unwrap();
        let mut permissions = copy.metadata().unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
        std::fs::set_permissions(&copy, permissions).unwrap();
        let trace = TraceFile::open(&copy).unwrap();
        let start = trace.meta().buffers[0].cpus.iter().filter(|c| c.size > 0).map(|c| c.offset).min().unwrap();
        std::fs::OpenOptions::new().write(true).open(&copy).unwrap().set_len(start + 5000).unwrap();
        let told = || -> Result<bool, Error> {
            let mut cursor = trace.cursor(&Select::top())?;
            while cursor.next()?.is_some() {}
            Ok(!cursor.summary().gaps.is_empty())
        };
        // A gap, or (inside a chunk that was there a moment ago) an error.
        assert!(told().unwrap_or(true), "{}", path.display());
        std::fs::remove_file(&copy).unwrap();
    }
}

/// How many structural changes of each recording: all of them with `DAMAGE=full`.
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
