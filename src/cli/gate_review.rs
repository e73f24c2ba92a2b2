// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff gate review`: one change after the other, a key for each.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use console::{Key, Term};

use crate::cli::gate::{Orphans, Pending, named, pending};
use crate::cli::gate_args::ReviewArgs;
use crate::cli::gate_plan::{Loaded, Only};
use crate::cli::gate_store::{Store, Stored};
use crate::cli::output::Trouble;
use crate::report::gate::diff;
use crate::report::layout::{BAD, FAINT, HEADING, NOTABLE, indented, paint};

/// Who presses keys.
trait Keys {
    /// The next one; `None`: nobody is there any more.
    fn next(&mut self) -> io::Result<Option<char>>;
}

impl Keys for Term {
    fn next(&mut self) -> io::Result<Option<char>> {
        match self.read_key() {
            Ok(Key::Char(key)) => Ok(Some(key)),
            Ok(Key::Escape | Key::CtrlC | Key::Unknown) => Ok(None),
            Ok(_) => Ok(Some(' ')),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    accepted: usize,
    rejected: usize,
    left: usize,
}

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accept,
    AcceptAll,
    Reject,
    Skip,
    Quit,
}

/// Shows each change and does what is answered.
///
/// # Errors
/// There is no terminal, or a file is damaged or cannot be moved.
pub fn review(args: &ReviewArgs) -> Result<ExitCode, Trouble> {
    let loaded = Loaded::new(&args.config.config)?;
    let only = Only::new(&args.only.only)?;
    let waiting = pending(&loaded, &only, Orphans::Refused)?;
    let flag = loaded.flag();
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Trouble::Usage(format!(
            "gate review: asks on a terminal, and there is none; `sisdiff gate check{flag}` shows what changed, \
             `sisdiff gate accept{flag}` takes it, with --only a part of it"
        )));
    }
    let mut out = anstream::stdout();
    let said = |error: io::Error| Trouble::write("stdout", &error);
    if waiting.is_empty() {
        writeln!(out, "nothing waits to be reviewed; `sisdiff gate check{flag}` says how the gate stands")
            .map_err(said)?;
        return Ok(ExitCode::SUCCESS);
    }
    let counts = run(&waiting, &loaded.store, &mut Term::stdout(), &mut out)?;
    writeln!(out, "{} accepted, {} rejected, {} left", counts.accepted, counts.rejected, counts.left).map_err(said)?;
    Ok(ExitCode::SUCCESS)
}

fn run(waiting: &[Pending], store: &Store, keys: &mut dyn Keys, out: &mut dyn Write) -> Result<Counts, Trouble> {
    let mut counts = Counts::default();
    let mut all = false;
    for (at, one) in waiting.iter().enumerate() {
        let answer = if all {
            Answer::Accept
        } else {
            show(one, store, (at + 1, waiting.len()), out).map_err(|error| Trouble::write("stdout", &error))?;
            ask(keys, out)?
        };
        let path = store.path(&one.stem).display().to_string();
        let moved = |error: io::Error| Trouble::write(&path, &error);
        match answer {
            Answer::Accept | Answer::AcceptAll => {
                all |= answer == Answer::AcceptAll;
                store.accept(&one.stem, &one.text).map_err(moved)?;
                counts.accepted += 1;
            }
            Answer::Reject => {
                store.reject(&one.stem).map_err(moved)?;
                counts.rejected += 1;
            }
            Answer::Skip => counts.left += 1,
            Answer::Quit => {
                counts.left += waiting.len() - at;
                break;
            }
        }
    }
    Ok(counts)
}

fn show(one: &Pending, store: &Store, (at, all): (usize, usize), out: &mut dyn Write) -> io::Result<()> {
    let title = format!("{at} of {all}: {}", named(&one.snapshot));
    writeln!(out, "\n{}", paint(HEADING, &title))?;
    match store.read(&one.stem) {
        Stored::Snapshot(old, text) => {
            if old.head.sha256 != one.snapshot.head.sha256 {
                writeln!(out, "{}", paint(BAD, "  the recording is another one, too"))?;
            }
            write!(out, "{}", indented(2, &diff(&text, &one.text)))
        }
        Stored::None => {
            writeln!(out, "{}", paint(NOTABLE, "  new: there is no snapshot yet"))?;
            write!(out, "{}", indented(2, &one.text))
        }
        Stored::Not(_) | Stored::Unreadable(_) => {
            writeln!(out, "{}", paint(BAD, "  the snapshot cannot be read: this would take its place"))?;
            write!(out, "{}", indented(2, &one.text))
        }
    }
}

fn ask(keys: &mut dyn Keys, out: &mut dyn Write) -> Result<Answer, Trouble> {
    let said = |error: io::Error| Trouble::write("stdout", &error);
    let menu = "a accept   r reject   s skip   A accept all that are left   q quit";
    writeln!(out, "\n{}", paint(FAINT, menu)).map_err(said)?;
    loop {
        out.flush().map_err(said)?;
        let key = keys
            .next()
            .map_err(|error| Trouble::Read { what: "the terminal".to_owned(), reason: error.to_string() })?;
        return Ok(match key {
            Some('a') => Answer::Accept,
            Some('A') => Answer::AcceptAll,
            Some('r') => Answer::Reject,
            Some('s') => Answer::Skip,
            Some('q') | None => Answer::Quit,
            Some(_) => continue,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Head, Snapshot};

    struct Script(Vec<char>);

    impl Keys for Script {
        fn next(&mut self) -> io::Result<Option<char>> {
            Ok(if self.0.is_empty() { None } else { Some(self.0.remove(0)) })
        }
    }

    /// A folder with an old snapshot of each, and a new one beside it.
    fn store(folder: &std::path::Path) -> (Store, Vec<Pending>) {
        let store = Store::new(folder.to_owned());
        let waiting = ["a", "b", "c"].map(|trace| {
            let of = |patched: &str| {
                let [trace, patched] = [trace, patched].map(str::to_owned);
                Snapshot {
                    head: Head { trace, patched, pair: "p".to_owned(), ..Head::default() },
                    ..Snapshot::default()
                }
            };
            let stem = Store::stem(trace, "p");
            store.write_pending(&stem, "").expect("written");
            store.accept(&stem, &of("old").print()).expect("accepted");
            assert_eq!(store.read_pending(&stem), Stored::None);
            let snapshot = of("new");
            let text = snapshot.print();
            store.write_pending(&stem, &text).expect("written");
            Pending { stem, snapshot, text }
        });
        (store, waiting.into())
    }

    /// For each of the three what its snapshot says, and whether something still waits.
    fn after(keys: &str) -> (Counts, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, waiting) = store(folder.path());
        let mut out = Vec::new();
        let counts = run(&waiting, &store, &mut Script(keys.chars().collect()), &mut out).expect("a review");
        let state = waiting.iter().map(|one| {
            let Stored::Snapshot(snapshot, _) = store.read(&one.stem) else { panic!("{} is gone", one.stem) };
            let waits = if store.read_pending(&one.stem) == Stored::None { "" } else { "+" };
            format!("{}{waits} ", snapshot.head.patched)
        });
        (counts, state.collect(), String::from_utf8(out).expect("text"))
    }

    #[test]
    fn each_key_does_what_it_says() {
        let (counts, state, text) = after("ars");
        assert_eq!((counts, state.as_str()), (Counts { accepted: 1, rejected: 1, left: 1 }, "new old old+ "));
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.contains("2 of 3: b with p") && plain.contains("-patched: old\n  +patched: new"), "{plain}");
        assert_eq!(after("rA").1, "old new new ");
        assert_eq!(after("aq").1, "new old+ old+ ");
    }

    #[test]
    fn other_keys_are_passed_over_and_whoever_leaves_changes_nothing() {
        assert_eq!(after("x\u{7f}yaq").1, "new old+ old+ ");
        let (counts, state, _) = after("");
        assert_eq!((counts, state.as_str()), (Counts { left: 3, ..Counts::default() }, "old+ old+ old+ "));
    }
}
