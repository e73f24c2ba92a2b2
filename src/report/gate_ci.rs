// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked gate where people of a CI look: GitHub's annotations, and a summary in Markdown.

use crate::gate::result::Verdict;
use crate::gate::{Check, Gate, Status};
use crate::report::gate::{diff, moved, name, replay_command, summary, title, violation};

/// Changes that an annotation lists.
const ANNOTATED: usize = 12;
/// Diffs that a summary shows: GitHub takes a megabyte.
const SHOWN: usize = 40;

/// Annotations in the syntax of GitHub's workflow commands, and a plain last line.
pub fn github(gate: &Gate) -> String {
    let mut out = String::new();
    let mut say = |level: &str, file: &str, line: usize, title: &str, message: &str| {
        let properties = [("file", file), ("line", &line.to_string()), ("title", title)];
        let properties: Vec<String> =
            properties.iter().map(|(key, value)| format!("{key}={}", property(value))).collect();
        out += &format!("::{level} {}::{}\n", properties.join(","), data(message));
    };
    for check in &gate.checks {
        match &check.status {
            Status::Same => {}
            Status::New => say("error", &gate.config, 1, "sisdiff gate: new", &format!("{}: no snapshot", name(check))),
            Status::Changed => {
                say("error", &check.snapshot, first_line(check), "sisdiff gate: changed", &changed(check));
            }
            Status::Trouble(trouble) => {
                say("error", &check.snapshot, 1, &format!("sisdiff gate: {}", trouble.word()), &trouble.to_string());
            }
        }
        for one in &check.violations {
            let level = if one.is_known { "warning" } else { "error" };
            let message = format!("{}: {}", name(check), violation(one));
            say(level, &check.path, 1, "sisdiff gate: wrong placement", &message);
        }
    }
    for trouble in &gate.troubles {
        say("error", &gate.config, 1, &format!("sisdiff gate: {}", trouble.word()), &trouble.to_string());
    }
    for at in gate.idle_entries() {
        let message = format!("allow {}: nothing to allow ({}); take it out", at + 1, gate.rules.allow[at].reason);
        say("warning", &gate.config, 1, "sisdiff gate: idle entry", &message);
    }
    out + &format!("{}: {}\n", title(gate), summary(gate))
}

fn changed(check: &Check) -> String {
    let mut lines = vec![name(check)];
    let all: Vec<String> = check.counted().map(moved).collect();
    lines.extend(all.iter().take(ANNOTATED).cloned());
    if all.len() > ANNOTATED {
        lines.push(format!("and {} more", all.len() - ANNOTATED));
    }
    if check.old_specs.is_some() {
        lines.push(format!("every wakeup: {}", replay_command(check)));
    }
    lines.join("\n")
}

/// The first line of the snapshot that is otherwise now.
fn first_line(check: &Check) -> usize {
    let Some([old, new]) = &check.texts else { return 1 };
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    (same + 1).min(old.lines().count().max(1))
}

/// The text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of one.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A summary for a job's page.
pub fn markdown(gate: &Gate) -> String {
    let word = match gate.verdict() {
        Verdict::Unchanged => "unchanged",
        Verdict::Changed => "changed",
        Verdict::Trouble => "trouble",
    };
    let mut out = format!("## sisdiff gate: {word}\n\n{}\n", escaped(&format!("{}: {}", gate.config, summary(gate))));
    let told: Vec<&Check> = gate.checks.iter().filter(|check| is_told(check)).collect();
    if !told.is_empty() {
        out += "\n| recording | pair | | what |\n|---|---|---|---|\n";
        told.iter().for_each(|check| out += &row(check));
    }
    let troubles: Vec<String> =
        gate.all_troubles().map(|trouble| format!("* {}\n", escaped(&trouble.to_string()))).collect();
    if !troubles.is_empty() {
        out += &format!("\n### Trouble\n\n{}", troubles.concat());
    }
    let excused: Vec<String> = gate.checks.iter().flat_map(|check| excuses(gate, check)).collect();
    if !excused.is_empty() {
        out += &format!("\n### Allowed\n\n{}", excused.concat());
    }
    let changed: Vec<&Check> = gate.checks.iter().filter(|check| check.status == Status::Changed).collect();
    changed.iter().take(SHOWN).for_each(|check| out += &details(check));
    if changed.len() > SHOWN {
        out += &format!("\nand {} more\n", changed.len() - SHOWN);
    }
    out
}

fn is_told(check: &Check) -> bool {
    check.status != Status::Same || !check.violations.is_empty()
}

fn row(check: &Check) -> String {
    let (word, mut what) = match &check.status {
        Status::Same => ("unchanged", Vec::new()),
        Status::New => ("new", vec!["no snapshot".to_owned()]),
        Status::Changed => ("changed", check.counted().filter(|one| is_short(one)).map(moved).collect()),
        Status::Trouble(trouble) => (trouble.word(), Vec::new()),
    };
    let rest = what.len().saturating_sub(4);
    what.truncate(4);
    if rest > 0 {
        what.push(format!("and {rest} more"));
    }
    what.extend(check.violations.iter().map(violation));
    let cells = [&check.trace, &check.pair, word, &what.join("; ")].map(escaped);
    format!("| {} |\n", cells.join(" | "))
}

/// Digests say nothing to a reader.
fn is_short(change: &crate::gate::Change) -> bool {
    !change.key.contains(".digest.") && change.key != "placements.differences"
}

fn excuses(gate: &Gate, check: &Check) -> Vec<String> {
    let one = |(at, change): (usize, &crate::gate::Change)| {
        let reason = gate.rules.allow.get(at).map_or("", |entry| &entry.reason);
        format!("* {}\n", escaped(&format!("{}: {}: {reason}", name(check), moved(change))))
    };
    check.allowed().map(one).collect()
}

fn details(check: &Check) -> String {
    let Some([old, new]) = &check.texts else { return String::new() };
    let text = anstream::adapter::strip_str(&diff(old, new)).to_string();
    // Longer than any row of backticks in it.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let title = html(&name(check));
    format!("\n<details><summary>{title}</summary>\n\n{fence}diff\n{text}{fence}\n\n</details>\n")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A text that Markdown shows as it is, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "gate_ci_tests.rs"]
mod tests;
