// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked gate where people of a CI look: GitHub's annotations, and a summary in Markdown.

use crate::gate::result::Verdict;
use crate::gate::{Check, Gate, Status, Trouble};
use crate::report::gate::{diff, moved, name, replay_command, summary, title, violation};
use crate::report::shell::printable;

/// Changes that an annotation lists.
const ANNOTATED: usize = 12;
/// Diffs that a summary shows.
const SHOWN: usize = 40;
/// Rows of its table and of its lists.
const ROWS: usize = 300;
/// Bytes after which it shows no more of either: GitHub takes a megabyte, or nothing.
const LENGTH_MAX: usize = 900_000;

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
    // An older syntax has its commands anywhere in a line.
    out + &format!("{}: {}\n", title(gate), summary(gate)).replace("##[", "## [")
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

/// The text of a workflow command; people read it.
fn data(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    escaped_data(&lines.join("\n"))
}

/// The value of a property of one, as it is: a file is found by it.
fn property(text: &str) -> String {
    escaped_data(text).replace(':', "%3A").replace(',', "%2C")
}

fn escaped_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
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
        some(&mut out, &told, ROWS, |check| row(check));
    }
    let troubles: Vec<&Trouble> = gate.all_troubles().collect();
    if !troubles.is_empty() {
        out += "\n### Trouble\n\n";
        some(&mut out, &troubles, ROWS, |trouble| format!("* {}\n", escaped(&trouble.to_string())));
    }
    let excused: Vec<String> = gate.checks.iter().flat_map(|check| excuses(gate, check)).collect();
    if !excused.is_empty() {
        out += "\n### Allowed\n\n";
        some(&mut out, &excused, ROWS, Clone::clone);
    }
    let changed: Vec<&Check> = gate.checks.iter().filter(|check| check.status == Status::Changed).collect();
    some(&mut out, &changed, SHOWN, |check| details(check));
    out
}

/// The first of `parts`, as many as may be and as fit, and how many more there are.
fn some<T>(out: &mut String, parts: &[T], most: usize, text: impl Fn(&T) -> String) {
    let mut shown = 0;
    for part in parts.iter().take(most) {
        let part = text(part);
        if out.len() + part.len() > LENGTH_MAX {
            break;
        }
        *out += &part;
        shown += 1;
    }
    if shown < parts.len() {
        *out += &format!("\nand {} more\n", parts.len() - shown);
    }
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

/// A text that Markdown shows as it is, on one line: no links, no formulas, and nobody is mentioned.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // Addresses are links without any brackets, where nothing stands between.
            ':' | '.' if ["http", "https", "ftp", "www"].iter().any(|word| out.ends_with(word)) => {
                out.push('\\');
                out.push(c);
            }
            // At the beginning of a line a list, a heading or a block.
            '-' | '+' | '=' if out.is_empty() => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')' if !out.is_empty() && out.bytes().all(|c| c.is_ascii_digit()) => {
                out.push('\\');
                out.push(c);
            }
            ' ' if out.is_empty() => out += "&#32;",
            '@' => out += "@<!-- -->",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "gate_ci_tests.rs"]
mod tests;
