// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings that were cut or have wrong bytes: an error or a stated gap,
//! never a panic, a hang, or other events than the whole file has.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::random::Random;
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
