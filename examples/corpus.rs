// SPDX-License-Identifier: GPL-2.0-or-later
//! Plays the corpus (`fuzz/seeds/wakeup`, `fuzz/known-bugs`, `fuzz/review`) with every implementation there is, all oracles
//! on, and prints which returns each release took: a return never taken is a gap. `fuzz/count-lines` builds it so that it also
//! counts lines.
//!
//! `cargo run --release --example corpus -- [--grow CASES | FILE…]`; other cases can be given, and with `--grow` the seeds are chosen anew: of so many invented
//! cases the fewest that take every branch that any of them took, each cut behind its last new branch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sisdiff::fair::{Edges, Exit};
use sisdiff::fuzz_loop::{self, check};
use sisdiff::oracle::{FAMILIES, KNOWN, Models, Options, Scout, Trouble};
use sisdiff::scenario::Case;
use sisdiff::spec::RELEASES;

type Error = Box<dyn std::error::Error>;

const OPTIONS: Options = Options { allow_known: true, expect_equal: false, schedstat: true };

/// Seed of the cases that seeds are chosen from.
const SEED: u64 = 1;

/// Events of a seed.
const EVENTS_MAX: usize = 40;

fn main() -> Result<ExitCode, Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let mut paths: Vec<PathBuf> = Vec::new();
    match args.as_slice() {
        [flag, number] if flag == "--grow" => grow(&fuzz.join("seeds/wakeup"), number.parse()?)?,
        given => paths.extend(given.iter().map(PathBuf::from)),
    }
    if paths.is_empty() {
        for folder in ["seeds/wakeup", "known-bugs", "review"] {
            paths.extend(files(&fuzz.join(folder))?);
        }
    }
    let cases = paths.iter().map(|path| Ok(Case::read(&fs::read(path)?)?)).collect::<Result<Vec<_>, Error>>()?;
    let mut taken: BTreeMap<String, BTreeSet<Exit>> = BTreeMap::new();
    let mut findings = 0;
    for names in groups() {
        for case in &cases {
            match check(case, &names, &Models, OPTIONS) {
                Ok(tally) => {
                    for (at, decision) in tally.trail.iter().enumerate() {
                        taken.entry(names[at % names.len()].clone()).or_default().insert(decision.exit);
                    }
                }
                Err(Trouble::Finding(finding)) => {
                    findings += 1;
                    println!("{finding}\n{case:?}");
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
    }
    let all: BTreeSet<Exit> = taken.values().flatten().copied().collect();
    println!("{} cases, {} implementations", cases.len(), taken.len());
    for info in RELEASES {
        let exits = taken.iter().filter(|(name, _)| name.split(['+', ':']).next() == Some(info.name));
        let exits: BTreeSet<Exit> = exits.flat_map(|(_, exits)| exits.iter().copied()).collect();
        let never: Vec<String> = all.difference(&exits).map(|exit| format!("{exit:?}")).collect();
        println!("{:10} {:2} returns taken; not: {}", info.name, exits.len(), never.join(" "));
    }
    let never: Vec<String> = Exit::ALL
        .iter()
        .filter(|exit| !all.contains(exit) && **exit != Exit::Other)
        .map(|exit| format!("{exit:?}"))
        .collect();
    // What a kernel tree's own code returns is no model's.
    println!("by nobody: {}", if never.is_empty() { "none".to_owned() } else { never.join(" ") });
    Ok(if findings == 0 && never.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The releases together, so that each difference is explained; the families; every patch beside its base; both sides of
/// every known bug.
fn groups() -> Vec<Vec<String>> {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let mut groups = vec![RELEASES.iter().map(|info| info.name.to_owned()).collect::<Vec<_>>()];
    groups.extend(FAMILIES.iter().map(|names| owned(names)));
    for info in RELEASES {
        let patched = info.patches.iter().map(|patch| format!("{}+{}", info.name, patch.name));
        groups.extend(patched.filter(|name| name.parse::<sisdiff::spec::ModelSpec>().is_ok()).map(|name| vec![name]));
    }
    for bug in &KNOWN {
        groups.push(owned(&[bug.before, bug.after]));
    }
    groups.push(owned(&["v5.11+recent-used+idle-candidate+fix-candidate-span", "v5.2+soft-affinity+tunables"]));
    groups
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    Ok(files)
}

/// Branches that `bytes` take, by any implementation.
fn branches(scout: &mut Scout<'_>, bytes: &[u8]) -> Result<Vec<u64>, Error> {
    scout.set_edges(Edges::beside(&Edges::none()));
    scout.play(&Case::from_dna(bytes))?;
    Ok(scout.set_edges(Edges::default()).bits().to_vec())
}

fn missing(of: &[u64], from: &[u64]) -> u64 {
    of.iter().zip(from).map(|(of, from)| u64::from((of & !from).count_ones())).sum()
}

fn grow(folder: &Path, cases: u64) -> Result<(), Error> {
    let names: Vec<String> = groups().concat().into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let mut scout = Scout::new(&names, &Models, OPTIONS);
    // What reached something new when it was played.
    let (mut seen, mut candidates) = (Edges::none(), Vec::new());
    for number in 0..cases {
        let mut bytes = fuzz_loop::dna(SEED, number);
        bytes.truncate(Case::dna_len(EVENTS_MAX));
        let own = branches(&mut scout, &bytes)?;
        if missing(&own, &seen) > 0 {
            seen.iter_mut().zip(&own).for_each(|(seen, own)| *seen |= own);
            candidates.push((bytes, own));
        }
    }
    // Of those the ones that bring most.
    let (mut have, mut chosen) = (Edges::none(), Vec::new());
    while let Some(at) = (0..candidates.len()).max_by_key(|&at| missing(&candidates[at].1, &have)) {
        if missing(&candidates[at].1, &have) == 0 {
            break;
        }
        let (mut bytes, own) = candidates.swap_remove(at);
        let wanted: Vec<u64> = own.iter().zip(&have).map(|(own, have)| own & !have).collect();
        let mut events = Case::from_dna(&bytes).events.len();
        while events > 1 {
            let shorter = &bytes[..Case::dna_len(events - 1)];
            if missing(&wanted, &branches(&mut scout, shorter)?) > 0 {
                break;
            }
            events -= 1;
            bytes.truncate(Case::dna_len(events));
        }
        have.iter_mut().zip(&branches(&mut scout, &bytes)?).for_each(|(have, own)| *have |= own);
        chosen.push(bytes);
    }
    println!(
        "{cases} cases took {} branches; {} seeds take {}",
        Edges::count(&seen),
        chosen.len(),
        Edges::count(&have)
    );
    for old in files(folder)? {
        fs::remove_file(old)?;
    }
    for (number, bytes) in chosen.iter().enumerate() {
        fs::write(folder.join(format!("case-{number:03}")), bytes)?;
    }
    Ok(())
}
