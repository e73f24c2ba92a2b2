// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked gate as text: what changed, as a diff of snapshots, and what to do about it.

use anstyle::{AnsiColor, Style};

use crate::gate::{Change, Check, Excuse, Gate, Status, Trouble, Value};
use crate::report::layout::{Align, BAD, FAINT, HEADING, NOTABLE, WIDTH, columns, count, counted, indented, paint};
use crate::report::shell::{printable, quoted};

/// Lines of a diff around what changed.
const CONTEXT: usize = 3;
/// Excused changes that are listed for each replay.
const EXCUSED_LISTED: usize = 8;

/// Replays without a snapshot that are listed.
const NEW_LISTED: usize = 12;

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();

/// The report; `flag` is what names the configuration on a command line, with a space before it.
pub fn text(gate: &Gate, flag: &str) -> String {
    let mut out = format!("{}\n", paint(HEADING, &title(gate)));
    out += &indented(2, &summary(gate));
    let mut new = 0;
    for check in &gate.checks {
        new += usize::from(check.status == Status::New);
        if check.status != Status::New || new <= NEW_LISTED {
            out += &one(gate, check);
        }
    }
    if new > NEW_LISTED {
        out += &format!("\nand {} more that are new\n", count((new - NEW_LISTED) as u64));
    }
    let troubles: Vec<String> = gate.all_troubles().map(ToString::to_string).collect();
    if !troubles.is_empty() {
        out += &format!("\n{}\n", paint(BAD, "trouble"));
        troubles.iter().for_each(|trouble| out += &sentence(&printable(trouble)));
    }
    for at in gate.idle_entries() {
        let entry = &gate.rules.allow[at];
        let text = format!("allow {}: nothing to allow ({}); take it out", at + 1, printable(&entry.reason));
        out += &format!("\n{}\n", paint(NOTABLE, &text));
    }
    out + &next(gate, flag)
}

/// `sisdiff 0.1.0: gate of gate.toml`.
pub fn title(gate: &Gate) -> String {
    format!("sisdiff {}: gate of {}", env!("CARGO_PKG_VERSION"), printable(&gate.config))
}

/// `7 replays: 5 unchanged, 1 changed, 1 new`.
pub fn summary(gate: &Gate) -> String {
    let is_trouble = |status: &Status| matches!(status, Status::Trouble(_));
    let parts = [
        (gate.count(|status| *status == Status::Same), "unchanged"),
        (gate.count(|status| *status == Status::Changed), "changed"),
        (gate.count(|status| *status == Status::New), "new"),
        (gate.count(is_trouble), "in trouble"),
    ];
    let parts = parts.into_iter().filter(|&(n, _)| n > 0);
    let parts: Vec<String> = parts.map(|(n, name)| format!("{} {name}", count(n as u64))).collect();
    let replays = counted(gate.checks.len() as u64, "replay", "replays");
    if parts.is_empty() { replays } else { format!("{replays}: {}", parts.join(", ")) }
}

/// A sentence of a list, wrapped.
fn sentence(text: &str) -> String {
    columns(2, &[Align::Wrap], &[vec![text.to_owned()]])
}

/// One replay, if there is something to say of it.
fn one(gate: &Gate, check: &Check) -> String {
    let (word, style) = match &check.status {
        Status::Same if check.changes.is_empty() && check.violations.is_empty() => return String::new(),
        Status::Same => ("unchanged", FAINT),
        Status::New => ("new", NOTABLE),
        Status::Changed => ("changed", BAD),
        Status::Trouble(trouble) => (trouble.word(), BAD),
    };
    let mut out = format!("\n{}\n", paint(style, &format!("{word}: {}", name(check))));
    if let Some(old) = &check.old_specs {
        out += &specs(check, old);
    }
    if let Some([old, new]) = &check.texts {
        out += &if old.is_empty() { unseen(check, new) } else { indented(2, &diff(old, new)) };
    }
    out += &excused(gate, check);
    for violation in violations(check) {
        out += &format!("  {}\n", paint(BAD, &violation));
    }
    out
}

/// A text that there is nothing to compare with.
fn unseen(check: &Check, new: &str) -> String {
    let lines = counted(new.lines().count() as u64, "line", "lines");
    let what = match &check.status {
        Status::New => "no snapshot",
        Status::Trouble(Trouble::SnapshotVersion { .. }) => "a snapshot of another format",
        _ => "a snapshot that cannot be read",
    };
    match (check.is_pending, &check.status) {
        (true, Status::New) => format!("  {what}; {lines} beside where it belongs\n"),
        (true, _) => format!("  {what}; {lines} beside it\n"),
        (false, _) => format!("  {what}; {lines} to write\n"),
    }
}

/// Recording and pair.
pub fn name(check: &Check) -> String {
    printable(&format!("{} with {}", check.trace, check.pair))
}

fn specs(check: &Check, old: &[String; 2]) -> String {
    let rows: Vec<Vec<String>> = (["baseline", "patched"].iter().zip(old).zip(&check.specs))
        .filter(|((_, old), new)| old != new)
        .map(|((side, old), new)| vec![(*side).to_owned(), printable(&format!("was {old}, is {new}"))])
        .collect();
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

/// Two texts as a unified diff, with its colours. A snapshot may hold anything that a merge left there.
pub fn diff(old: &str, new: &str) -> String {
    use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut out = String::new();
    for group in group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (from, to) = (first.old_range().start + 1, last.old_range().end);
        out += &format!("{}\n", paint(FAINT, &format!("@@ lines {from} to {to} @@")));
        for op in &group {
            if op.tag() == DiffTag::Equal {
                old[op.old_range()].iter().for_each(|line| out += &format!(" {}\n", printable(line)));
                continue;
            }
            let mut lines = |style, sign, lines: &[&str]| {
                lines
                    .iter()
                    .for_each(|line| out += &format!("{}\n", paint(style, &format!("{sign}{}", printable(line)))));
            };
            lines(REMOVED, '-', &old[op.old_range()]);
            lines(ADDED, '+', &new[op.new_range()]);
        }
    }
    out
}

/// What differs and does not count, with the reasons.
fn excused(gate: &Gate, check: &Check) -> String {
    let rows: Vec<Vec<String>> = check.changes.iter().filter_map(|change| excuse(gate, change)).collect();
    let mut out = columns(2, &[Align::Left, Align::Wrap], &rows[..rows.len().min(EXCUSED_LISTED)]);
    if rows.len() > EXCUSED_LISTED {
        out += &format!("  and {} more\n", rows.len() - EXCUSED_LISTED);
    }
    if rows.is_empty() { String::new() } else { out }
}

fn excuse(gate: &Gate, change: &Change) -> Option<Vec<String>> {
    let (word, why) = match change.excuse.as_ref()? {
        Excuse::Tolerance(share) => ("tolerated", format!("within {share}")),
        Excuse::Allowed(at) => ("allowed", gate.rules.allow.get(*at).map(|entry| printable(&entry.reason))?),
    };
    Some(vec![word.to_owned(), format!("{}: {why}", moved(change))])
}

/// `sis.scanned.patched 11,214 -> 11,838 (+5.56%)`.
pub fn moved(change: &Change) -> String {
    let value = |value: &Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(Value::Count(n)) => count(*n),
        Some(Value::Text(text)) => printable(text),
        Some(Value::Lines(lines)) => counted(lines.len() as u64, "line", "lines"),
    };
    let share = match (&change.old, &change.new) {
        (Some(Value::Count(from)), Some(Value::Count(to))) if *from > 0 => {
            format!(" ({:+.2}%)", 100.0 * (*to as f64 - *from as f64) / *from as f64)
        }
        _ => String::new(),
    };
    match (&change.old, &change.new) {
        (Some(Value::Lines(_)), Some(Value::Lines(_))) => format!("{} differ", change.key),
        _ => format!("{} {} -> {}{share}", change.key, value(&change.old), value(&change.new)),
    }
}

/// What no implementation may do, and did; a sentence each.
pub fn violations(check: &Check) -> Vec<String> {
    check.violations.iter().map(violation).collect()
}

/// One of them.
pub fn violation(one: &crate::gate::Violation) -> String {
    use crate::gate::Oracle;
    let first = one.example.map(|number| format!("; the first is #{number}")).unwrap_or_default();
    let known = if one.is_known { "; the snapshot knows" } else { "" };
    let spec = match one.role {
        crate::replay::Role::Recorded => format!("{} (recorded kernel)", printable(&one.spec)),
        _ => printable(&one.spec),
    };
    match one.oracle {
        Oracle::Affinity => {
            format!("WRONG: {spec} put {} outside of cpus_ptr{first}{known}", counted(one.count, "task", "tasks"))
        }
        Oracle::RunQueue => {
            let times = counted(one.count, "time", "times");
            format!("WRONG: {spec} took run queues at an index beyond nr_cpu_ids, {times}{first}{known}")
        }
    }
}

/// What to do now.
fn next(gate: &Gate, flag: &str) -> String {
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |what: &str, command: String| rows.push([what.to_owned(), command]);
    let mut changed = gate.checks.iter().filter(|check| check.status == Status::Changed);
    if let Some(check) = changed.find(|check| check.old_specs.is_some()) {
        row("every wakeup", replay_command(check));
    }
    if gate.checks.iter().any(|check| check.is_pending) {
        row("one by one", format!("sisdiff gate review{flag}"));
        row("take it all", format!("sisdiff gate accept{flag}"));
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    if rows.is_empty() { String::new() } else { format!("\n{}", wide(&rows)) }
}

/// Commands are not wrapped: they are to be copied.
fn wide(rows: &[Vec<String>]) -> String {
    let is_wide = rows.iter().any(|row| row.iter().map(|cell| cell.chars().count() + 2).sum::<usize>() > WIDTH);
    if is_wide {
        return rows.iter().map(|row| format!("{}:\n  {}\n", row[0], row[1])).collect();
    }
    columns(0, &[Align::Left, Align::Left], rows)
}

/// The replay that shows each wakeup which the new spec decides otherwise than the snapshot's.
pub fn replay_command(check: &Check) -> String {
    let [old_baseline, old_patched] = check.old_specs.as_ref().unwrap_or(&check.specs);
    let [baseline, patched] = &check.specs;
    let (from, to) = if old_patched == patched { (old_baseline, baseline) } else { (old_patched, patched) };
    let path = if check.path.starts_with('-') { format!("./{}", check.path) } else { check.path.clone() };
    format!("sisdiff replay {} --baseline {} --patched {}", quoted(&path), quoted(from), quoted(to))
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
