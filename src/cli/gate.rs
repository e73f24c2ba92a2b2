// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff gate`: which of its commands, and `accept`.

use std::process::ExitCode;

use crate::cli::gate_args::{AcceptArgs, GateCommand};
use crate::cli::gate_check::check;
use crate::cli::gate_init::init;
use crate::cli::gate_plan::{Loaded, Only};
use crate::cli::gate_review::review;
use crate::cli::gate_store::{Entry, Store, Stored};
use crate::cli::output::{Trouble, print};
use crate::gate::Snapshot;
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

/// What waits, of those that are asked for, in order. Everything is read before anything is moved.
///
/// # Errors
/// A file that is damaged.
pub fn pending(loaded: &Loaded, only: &Only) -> Result<Vec<Pending>, Trouble> {
    let mut found = Vec::new();
    for Entry { stem, .. } in entries(loaded)?.into_iter().filter(|entry| entry.is_pending) {
        let path = loaded.store.pending_path(&stem);
        let wrong = |why: &str| {
            let again = format!("remove it and write it again with `sisdiff gate check{}`", loaded.flag());
            Trouble::Usage(format!("{}: {why}; {again}", path.display()))
        };
        match loaded.store.read_pending(&stem) {
            Stored::None => {}
            Stored::Unreadable(why) => return Err(wrong(&why)),
            Stored::Not(error) => return Err(wrong(&error.to_string())),
            Stored::Snapshot(snapshot, text) => {
                let head = &snapshot.head;
                if Store::stem(&head.trace, &head.pair) != stem {
                    return Err(wrong("is of another recording or pair than its name says"));
                }
                if only.has(&head.trace, &head.pair) {
                    found.push(Pending { stem, snapshot: *snapshot, text });
                }
            }
        }
    }
    Ok(found)
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
    for one in pending(&loaded, &only)? {
        let path = loaded.store.path(&one.stem);
        loaded.store.accept(&one.stem).map_err(|error| Trouble::write(&path.display().to_string(), &error))?;
        said += &format!("accepted  {}\n", named(&one.snapshot));
    }
    if args.orphans {
        said += &remove_orphans(&loaded, &only)?;
    }
    if said.is_empty() {
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

/// Removes snapshots of what is not checked any more.
fn remove_orphans(loaded: &Loaded, only: &Only) -> Result<String, Trouble> {
    let (traces, _) = loaded.traces();
    let mut said = String::new();
    for entry in entries(loaded)?.into_iter().filter(|entry| !entry.is_pending) {
        let Stored::Snapshot(snapshot, _) = loaded.store.read(&entry.stem) else { continue };
        let head = &snapshot.head;
        let is_checked = traces.iter().any(|trace| trace.name == head.trace) && loaded.pair(&head.pair).is_some();
        let is_named = Store::stem(&head.trace, &head.pair) == entry.stem;
        if !(is_checked && is_named) && only.has(&head.trace, &head.pair) {
            let path = loaded.store.path(&entry.stem).display().to_string();
            loaded.store.remove(&entry.stem).map_err(|error| Trouble::write(&path, &error))?;
            said += &format!("removed   {}\n", named(&snapshot));
        }
    }
    Ok(said)
}
