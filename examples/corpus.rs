// SPDX-License-Identifier: GPL-2.0-or-later
//! Plays the corpus (`fuzz/seeds/wakeup`, `fuzz/known-bugs`, `fuzz/review`) as the fuzz target plays it: each with the
//! implementations that its bytes choose or that it names, but always with all oracles on. Prints which returns each release
//! took: a return never taken is a gap. `fuzz/count-lines` builds it so that it also counts lines.
//!
//! `cargo run --release --example corpus -- [--grow CASES | FILE…]`: other cases can be given, and with `--grow` the seeds
//! are chosen anew: of so many invented cases the few that take most branches, every return of every release that any of
//! them took, and every implementation, each cut behind its last new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sisdiff::fair::{Edges, Exit};
use sisdiff::fuzz_loop::{self, Input, TARGET, check};
use sisdiff::oracle::{Models, Scout, Trouble};
use sisdiff::scenario::Case;
use sisdiff::spec::{ModelSpec, RELEASES};

type Error = Box<dyn std::error::Error>;

/// Seed of the cases that seeds are chosen from.
const SEED: u64 = 1;

/// Events of a seed.
const EVENTS_MAX: usize = 40;

/// A seed has to bring so many branches.
const WORTH: u32 = 5;

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
    let mut reached = Reached::default();
    let mut findings = 0;
    for path in &paths {
        let Input(case) = Input::read(&fs::read(path)?)?;
        reached.add(&reach(&case)?);
        match check(&case, &case.pair, &Models, TARGET) {
            Ok(_) => {}
            Err(Trouble::Finding(finding)) => {
                findings += 1;
                println!("{}: {finding}\n{case:?}", path.display());
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
    let bytes: u64 = paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum();
    println!(
        "{} cases, {bytes} bytes, {} implementations, {} branches",
        paths.len(),
        reached.players.len(),
        reached.branches()
    );
    let all: BTreeSet<Exit> = reached.returns.iter().map(|(_, exit)| *exit).collect();
    for info in RELEASES {
        let of_it = reached.returns.iter().filter(|(name, _)| *name == info.name);
        let exits: BTreeSet<Exit> = of_it.map(|(_, exit)| *exit).collect();
        println!("{:10} {:2} returns taken; not: {}", info.name, exits.len(), names(all.difference(&exits)));
    }
    // What a kernel tree's own code returns is no model's.
    let never: Vec<&Exit> = Exit::ALL.iter().filter(|exit| !all.contains(exit) && **exit != Exit::Other).collect();
    println!("by nobody: {}", if never.is_empty() { "none".to_owned() } else { names(never.iter().copied()) });
    Ok(if findings == 0 && never.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn names<'a>(exits: impl Iterator<Item = &'a Exit>) -> String {
    exits.map(|exit| format!("{exit:?}")).collect::<Vec<_>>().join(" ")
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    files.sort();
    Ok(files)
}

/// What cases reach.
#[derive(Default)]
struct Reached {
    branches: BTreeMap<usize, u64>,
    /// By release, with or without patches.
    returns: BTreeSet<(&'static str, Exit)>,
    players: BTreeSet<String>,
}

impl Reached {
    fn add(&mut self, other: &Self) {
        for (&word, bits) in &other.branches {
            *self.branches.entry(word).or_default() |= bits;
        }
        self.returns.extend(&other.returns);
        self.players.extend(other.players.iter().cloned());
    }

    /// What `self` has and `other` has not.
    fn without(&self, other: &Self) -> Self {
        let bits = |word| !other.branches.get(word).copied().unwrap_or(0);
        let branches = self.branches.iter().map(|(word, own)| (*word, own & bits(word)));
        Self {
            branches: branches.filter(|(_, bits)| *bits != 0).collect(),
            returns: self.returns.difference(&other.returns).copied().collect(),
            players: self.players.difference(&other.players).cloned().collect(),
        }
    }

    fn branches(&self) -> u32 {
        self.branches.values().map(|bits| bits.count_ones()).sum()
    }

    /// A return or an implementation more is worth a seed of its own, a branch is not.
    fn weight(&self) -> u32 {
        self.branches() + WORTH * (self.returns.len() + self.players.len()) as u32
    }
}

/// What `case` reaches by the quick judge.
fn reach(case: &Case) -> Result<Reached, Error> {
    let mut scout = Scout::new(&case.pair, &Models, TARGET);
    scout.set_edges(Edges::beside(&Edges::none()));
    scout.play(case)?;
    let edges = scout.set_edges(Edges::default());
    let branches = edges.bits().iter().copied().enumerate().filter(|(_, bits)| *bits != 0).collect();
    let tally = sisdiff::oracle::attempt(case, &case.pair, &Models, TARGET);
    let trail = tally.map_or_else(|_| Vec::new(), |tally| tally.trail);
    let releases = case.pair.iter().map(|name| Ok(name.parse::<ModelSpec>()?.info().name));
    let releases = releases.collect::<Result<Vec<_>, Error>>()?;
    let returns = trail.iter().enumerate().map(|(at, decision)| (releases[at % releases.len()], decision.exit));
    Ok(Reached { branches, returns: returns.collect(), players: case.pair.iter().cloned().collect() })
}

fn grow(folder: &Path, cases: u64) -> Result<(), Error> {
    // What reached something new when it was played.
    let (mut seen, mut candidates) = (Reached::default(), Vec::new());
    for number in 0..cases {
        let mut bytes = fuzz_loop::dna(SEED, number);
        bytes.truncate(Case::dna_len(EVENTS_MAX));
        let own = reach(&Input::from_bytes(&bytes).0)?;
        if own.without(&seen).weight() > 0 {
            seen.add(&own);
            candidates.push((bytes, own));
        }
    }
    // Of those the ones that bring most.
    let (mut have, mut chosen) = (Reached::default(), Vec::new());
    while let Some(at) = (0..candidates.len()).max_by_key(|&at| candidates[at].1.without(&have).weight()) {
        let (bytes, own) = candidates.swap_remove(at);
        let wanted = own.without(&have);
        if wanted.weight() < WORTH {
            break;
        }
        let (bytes, own) = cut(bytes, own, &wanted)?;
        have.add(&own);
        chosen.push(bytes);
    }
    println!(
        "{cases} cases took {} branches and {} returns; {} seeds take {} and {}",
        seen.branches(),
        seen.returns.len(),
        chosen.len(),
        have.branches(),
        have.returns.len()
    );
    for old in files(folder)? {
        fs::remove_file(old)?;
    }
    for (number, bytes) in chosen.iter().enumerate() {
        fs::write(folder.join(format!("case-{number:03}")), bytes)?;
    }
    Ok(())
}

/// `bytes` without the events at the end that what is `wanted` does not need; who plays stays.
fn cut(bytes: Vec<u8>, reached: Reached, wanted: &Reached) -> Result<(Vec<u8>, Reached), Error> {
    let Some(&gene) = bytes.last() else { return Ok((bytes, reached)) };
    let shorter = |events: usize| {
        let mut shorter = bytes[..Case::dna_len(events)].to_vec();
        if let Some(last) = shorter.last_mut() {
            *last = gene;
        }
        shorter
    };
    let (mut best, mut reached) = (bytes.clone(), reached);
    for events in (1..Case::from_dna(&bytes).events.len()).rev() {
        let candidate = shorter(events);
        let own = reach(&Input::from_bytes(&candidate).0)?;
        if wanted.without(&own).weight() > 0 {
            break;
        }
        (best, reached) = (candidate, own);
    }
    Ok((best, reached))
}
