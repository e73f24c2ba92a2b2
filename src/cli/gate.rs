// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff gate`: which of its commands, and `accept`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::cli::gate_args::{AcceptArgs, GateCommand};
use crate::cli::gate_check::check;
use crate::cli::gate_init::init;
use crate::cli::gate_origin::made_from;
use crate::cli::gate_plan::{Loaded, Only, Product, Trace};
use crate::cli::gate_review::review;
use crate::cli::gate_store::{Entry, Store, Stored};
use crate::cli::output::{Trouble, print};
use crate::gate::origin::{self, Now};
use crate::gate::{Pair, Snapshot};
use crate::replay::recording::checksum;
use crate::report::shell::printable;

/// Does what a command of the gate says.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn gate(command: &GateCommand) -> Result<ExitCode, Trouble> {
    match command {
        GateCommand::Init(args) => init(args),
        GateCommand::Check(args) => check(args),
        GateCommand::Accept(args) => accept(args),
        GateCommand::Review(args) => review(args),
    }
}

/// Something that waits to be accepted.
pub struct Pending {
    /// The name of the file, without its ending.
    pub stem: String,
    /// What it is.
    pub snapshot: Snapshot,
    /// Its text.
    pub text: String,
}

/// What becomes of texts that wait, and that the gate does not mean any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
    /// They are named.
    Refused,
    /// Somebody else removes them.
    LeftOut,
}

/// What waits, of those that are asked for, in order. Everything is read, and held against what it was made from, before
/// anything is moved.
///
/// # Errors
/// Each text that is damaged, or is not what a check would find now.
pub fn pending(loaded: &Loaded, only: &Only, orphans: Orphans) -> Result<Vec<Pending>, Trouble> {
    let (traces, _) = loaded.traces();
    let path = |stem: &str| loaded.store.pending_path(stem).display().to_string();
    let again = format!("write it again with `sisdiff gate check{}`", loaded.flag());
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for stem in entries(loaded)?.into_iter().filter(|entry| entry.is_pending).map(|entry| entry.stem) {
        let path = path(&stem);
        let mut damaged = |why: &str| wrong.push(format!("{path}: {why}; remove it and {again}"));
        match loaded.store.read_pending(&stem) {
            Stored::None => {}
            Stored::Unreadable(why) => damaged(&why),
            Stored::Not(error) => damaged(&error.to_string()),
            Stored::Snapshot(snapshot, _) => {
                let head = &snapshot.head;
                if Store::stem(&head.trace, &head.pair) != stem {
                    damaged("is of another recording or pair than its name says");
                } else if only.has(&head.trace, &head.pair) {
                    match unmeant(loaded, &traces, &snapshot) {
                        Some(why) if orphans == Orphans::Refused => wrong.push(format!(
                            "{path}: {why}; mend {}, or remove it with `sisdiff gate accept{} --orphans`",
                            loaded.name,
                            loaded.flag()
                        )),
                        Some(_) => {}
                        None => found.push(Pending { stem, text: snapshot.accepted(), snapshot: *snapshot }),
                    }
                }
            }
        }
    }
    let stale = stale_ones(loaded, &traces, &found)?;
    wrong.extend(stale.into_iter().map(|(stem, why)| format!("{}: is stale: it {why}; {again}", path(&stem))));
    if wrong.is_empty() { Ok(found) } else { Err(Trouble::Several(wrong)) }
}

/// Why the gate does not mean what `snapshot` is of; `None`: it does.
fn unmeant(loaded: &Loaded, traces: &[Trace], snapshot: &Snapshot) -> Option<String> {
    let (trace, pair) = (&snapshot.head.trace, &snapshot.head.pair);
    if loaded.pair(pair).is_none() {
        return Some(format!("is of the pair {pair:?}, which {} does not have", loaded.name));
    }
    let is_there = traces.iter().any(|there| there.name == *trace);
    (!is_there).then(|| format!("is of {trace}, which is not there, or which {} does not mean", loaded.name))
}

/// Those of `found` that are not what a check would find now, and why.
fn stale_ones(loaded: &Loaded, traces: &[Trace], found: &[Pending]) -> Result<Vec<(String, String)>, Trouble> {
    let waits: BTreeMap<(&str, &str), &Pending> =
        found.iter().map(|one| ((one.snapshot.head.trace.as_str(), one.snapshot.head.pair.as_str()), one)).collect();
    let of = |trace: &Trace, pair: &Pair| waits.get(&(trace.name.as_str(), pair.name.as_str())).copied();
    let mut sums: BTreeMap<&str, String> = BTreeMap::new();
    let mut stale = Vec::new();
    for product in loaded.products(traces, |trace, pair| of(trace, pair).is_some())? {
        let Product { trace, pair, .. } = &product;
        let Some(one) = of(trace, pair) else { continue };
        if !sums.contains_key(trace.name.as_str()) {
            let unreadable = |error: std::io::Error| Trouble::Read {
                what: trace.path.display().to_string(),
                reason: error.to_string(),
            };
            sums.insert(&trace.name, checksum(&trace.path).map_err(unreadable)?.0);
        }
        let now = Now {
            sha256: &sums[trace.name.as_str()],
            pair,
            made_from: &made_from(loaded, &product),
            config: &loaded.name,
        };
        stale.extend(origin::stale(&one.snapshot, &now).map(|why| (one.stem.clone(), why)));
    }
    Ok(stale)
}

fn entries(loaded: &Loaded) -> Result<Vec<Entry>, Trouble> {
    loaded.store.entries().map_err(|error| Trouble::Read {
        what: loaded.folder.join(&loaded.config.snapshots).display().to_string(),
        reason: error.to_string(),
    })
}

fn accept(args: &AcceptArgs) -> Result<ExitCode, Trouble> {
    let loaded = Loaded::new(&args.config.config)?;
    let only = Only::new(&args.only.only)?;
    let mut said = String::new();
    let orphans = if args.orphans { Orphans::LeftOut } else { Orphans::Refused };
    for one in pending(&loaded, &only, orphans)? {
        let path = loaded.store.path(&one.stem);
        loaded
            .store
            .accept(&one.stem, &one.text)
            .map_err(|error| Trouble::write(&path.display().to_string(), &error))?;
        said += &format!("accepted  {}\n", named(&one.snapshot));
    }
    if args.orphans {
        said += &remove_orphans(&loaded, &only)?;
    }
    if said.is_empty() {
        loaded.has_some_of(&only)?;
        let flag = loaded.flag();
        said = format!("nothing waits to be accepted; `sisdiff gate check{flag}` says how the gate stands\n");
    }
    if !args.quiet {
        print(&said)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Recording and pair.
pub fn named(snapshot: &Snapshot) -> String {
    printable(&format!("{} with {}", snapshot.head.trace, snapshot.head.pair))
}

/// Removes snapshots, and what waits beside them, of what is not checked any more.
fn remove_orphans(loaded: &Loaded, only: &Only) -> Result<String, Trouble> {
    let (traces, _) = loaded.traces();
    let mut said = String::new();
    for entry in entries(loaded)? {
        let stored = match entry.is_pending {
            true => loaded.store.read_pending(&entry.stem),
            false => loaded.store.read(&entry.stem),
        };
        let Stored::Snapshot(snapshot, _) = stored else { continue };
        let head = &snapshot.head;
        let is_named = Store::stem(&head.trace, &head.pair) == entry.stem;
        let is_checked = is_named && unmeant(loaded, &traces, &snapshot).is_none();
        if !is_checked && only.has(&head.trace, &head.pair) {
            let path = loaded.store.path(&entry.stem).display().to_string();
            loaded.store.remove(&entry.stem).map_err(|error| Trouble::write(&path, &error))?;
            said += &format!("removed   {}\n", named(&snapshot));
        }
    }
    Ok(said)
}
