// SPDX-License-Identifier: GPL-2.0-or-later
//! From the text of an event to its fields.

use super::head::COMM_MAX;
use super::scan::{Scan, integer};
use super::template::{self, Key, Kind};

/// Strings of probes in the scheduler are comms.
const QUOTED_MAX: usize = 256;

/// How an event's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// `key=value` with the words of the print format or the names of the fields.
    Keys,
    /// As the sched_switch plugin of libtraceevent prints it: `comm:pid [prio] S ==> comm:pid [prio]`. Its state
    /// letters are `SDTtZXxW` from bit 0 on, whatever the recorded kernel calls these bits.
    Plugin,
}

/// One field: its name, and where its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    name: Name,
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Known(&'static str),
    InLine { from: u32, to: u32 },
}

/// The fields of an event, in the order of the text.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    pub(super) line: &'a [u8],
    pub(super) pairs: &'a [Pair],
}

impl<'a> Fields<'a> {
    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + 'a {
        let line = self.line;
        self.pairs.iter().map(move |pair| {
            let name = match pair.name {
                Name::Known(name) => name,
                // Found as ASCII letters.
                Name::InLine { from, to } => std::str::from_utf8(&line[from as usize..to as usize]).unwrap_or(""),
            };
            (name, &line[pair.from as usize..pair.to as usize])
        })
    }

    /// The value of a field; `None` if it is not there, or if two have this name.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut found = self.iter().filter(|(n, _)| *n == name);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// The value as a number: decimal, or hexadecimal after `0x`.
    pub fn i64(&self, name: &str) -> Option<i64> {
        integer(self.get(name)?)
    }
}

/// Finds the fields of event `name` in `line` from `at` on.
pub(super) fn parse(name: &str, line: &[u8], at: usize, pairs: &mut Vec<Pair>) -> Result<Style, &'static str> {
    pairs.clear();
    let from = at + Scan::new(line, at).spaces();
    if name.starts_with("cpuhp_") {
        colons(line, from, pairs);
        return Ok(Style::Keys);
    }
    let Some(forms) = template::of(name) else {
        generic(line, from, pairs);
        return Ok(Style::Keys);
    };
    // The strict fit first: what stands behind the last field may be part of a value before it.
    for tail in [Tail::None, Tail::Any] {
        for keys in forms {
            pairs.clear();
            if fit(keys, line, from, true, tail, pairs) {
                return Ok(Style::Keys);
            }
        }
    }
    pairs.clear();
    match name {
        "sched_switch" => plugin_switch(line, at, pairs)?,
        "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => plugin_wakeup(line, at, pairs)?,
        _ => return Err("fields are not those of this event"),
    }
    Ok(Style::Plugin)
}

/// What may stand behind the last field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    None,
    /// A space and anything.
    Any,
}

/// Fits `keys` to the line from `at` on, where the first or the next `key=` starts.
fn fit(keys: &[Key], line: &[u8], at: usize, first: bool, tail: Tail, pairs: &mut Vec<Pair>) -> bool {
    let Some((key, rest)) = keys.split_first() else {
        let left = &line[at..];
        return match tail {
            Tail::None => left.is_empty(),
            Tail::Any if left.first() == Some(&b' ') => {
                generic(line, at + 1, pairs);
                true
            }
            Tail::Any => left.is_empty(),
        };
    };
    let before = pairs.len();
    if let Some(value) = key_at(key, line, at, first) {
        match key.kind {
            Kind::Text | Kind::Comm => {
                let longest = if key.kind == Kind::Comm { COMM_MAX } else { line.len() };
                let last = line.len().min(value.saturating_add(longest));
                // Every place where the value could end.
                for end in (value..=last).filter(|&end| line.get(end).is_none_or(|&b| b == b' ')) {
                    pairs.truncate(before);
                    pairs.push(Pair::known(key.name, value, end));
                    if fit(rest, line, end, false, tail, pairs) {
                        return true;
                    }
                }
            }
            Kind::Int | Kind::State => {
                if let Some((pair, end)) = token(key, line, value) {
                    pairs.push(pair);
                    if fit(rest, line, end, false, tail, pairs) {
                        return true;
                    }
                }
            }
        }
    }
    pairs.truncate(before);
    key.optional && fit(rest, line, at, first, tail, pairs)
}

/// Where the value of `key` starts if the key is at `at`.
fn key_at(key: &Key, line: &[u8], at: usize, first: bool) -> Option<usize> {
    let mut scan = Scan::new(line, at);
    if !first && !scan.eat(b" ") {
        return None;
    }
    // Between the two tasks of sched_switch.
    scan.eat(b"==> ");
    (scan.eat(key.word.as_bytes()) && scan.eat(b"=")).then_some(scan.at())
}

/// A number or a state, and where it ends.
fn token(key: &Key, line: &[u8], from: usize) -> Option<(Pair, usize)> {
    let mut scan = Scan::new(line, from);
    let word = scan.all(|b| b != b' ');
    let end = scan.at();
    let number = integer(word).is_some();
    let state = key.kind == Kind::State && is_state(word);
    if !number && !state {
        return None;
    }
    // `0x46 (70)`
    let decimal = scan.at() + 2;
    if number && scan.eat(b" (") && scan.signed().is_some() {
        let to = scan.at();
        if scan.eat(b")") {
            return Some((Pair::known(key.name, decimal, to), scan.at()));
        }
    }
    Some((Pair::known(key.name, from, end), end))
}

/// `S`, `R+`, `D|K`, or with bits that the kernel has no letter for: `S|0x800`.
fn is_state(word: &[u8]) -> bool {
    let word = word.strip_suffix(b"+").unwrap_or(word);
    let is_letter = |part: &[u8]| matches!(part, [letter] if letter.is_ascii_alphabetic());
    word.split(|&b| b == b'|').all(|part| is_letter(part) || integer(part).is_some())
}

/// Every `word=value` from `at` on; a value ends where the next word starts. What is no such pair is passed over.
fn generic(line: &[u8], at: usize, pairs: &mut Vec<Pair>) {
    let first = pairs.len();
    let mut scan = Scan::new(line, at);
    while scan.peek().is_some() {
        let from = scan.at();
        let word = scan.all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !word.is_empty() && !word[0].is_ascii_digit() && scan.eat(b"=") {
            close(line, from, first, pairs);
            let name = Name::InLine { from: from as u32, to: (scan.at() - 1) as u32 };
            let value = scan.at() as u32;
            pairs.push(Pair { name, from: value, to: value });
            if scan.eat(b"\"") {
                quoted(&mut scan);
            }
        }
        scan.all(|b| b != b' ');
        scan.spaces();
    }
    close(line, line.len(), first, pairs);
}

/// `cpu: 0001 target: 169 step: 168 (...)`, as CPU hotplug prints it.
fn colons(line: &[u8], at: usize, pairs: &mut Vec<Pair>) {
    let mut scan = Scan::new(line, at);
    loop {
        let from = scan.at();
        let word = scan.all(|b| b.is_ascii_alphabetic());
        let name = Name::InLine { from: from as u32, to: (from + word.len()) as u32 };
        if word.is_empty() || !scan.eat(b":") {
            return;
        }
        scan.spaces();
        let value = scan.at();
        if scan.signed().is_none() {
            return;
        }
        pairs.push(Pair { name, from: value as u32, to: scan.at() as u32 });
        scan.spaces();
    }
}

/// Passes over a string that ends with a quote before a space or the end; none does: nothing.
fn quoted(scan: &mut Scan<'_>) {
    let mut end = *scan;
    loop {
        end.all(|b| b != b'"');
        if end.at() - scan.at() > QUOTED_MAX || !end.eat(b"\"") {
            return;
        }
        if matches!(end.peek(), None | Some(b' ' | b',' | b')')) {
            *scan = end;
            return;
        }
    }
}

/// The value of the last pair ends before `next`.
fn close(line: &[u8], next: usize, first: usize, pairs: &mut [Pair]) {
    if let Some(last) = pairs.get_mut(first..).and_then(|new| new.last_mut()) {
        let from = last.from as usize;
        let value = super::head::trim_end(&line[from..next.max(from)]);
        let value = value.strip_suffix(b",").unwrap_or(value);
        last.to = (from + value.len()) as u32;
        // `comm="bash"` of a probe.
        if value.len() >= 2 && value.starts_with(b"\"") && value.ends_with(b"\"") {
            last.from += 1;
            last.to -= 1;
        }
    }
}

/// `comm:pid [prio] S ==> comm:pid [prio]`
fn plugin_switch(line: &[u8], at: usize, pairs: &mut Vec<Pair>) -> Result<(), &'static str> {
    const ARROW: &[u8] = b" ==> ";
    let mut found = None;
    for arrow in (at..line.len()).filter(|&arrow| line[arrow] == b' ' && line[arrow..].starts_with(ARROW)) {
        let Some(space) = line[at..arrow].iter().rposition(|&b| b == b' ') else {
            continue;
        };
        let state = at + space + 1;
        let letters = &line[state..arrow];
        if letters.is_empty() || !letters.iter().all(|b| b"+|".contains(b) || b.is_ascii_alphabetic()) {
            continue;
        }
        let (Some(prev), Some(next)) = (task(line, at, state - 1), task(line, arrow + ARROW.len(), line.len())) else {
            continue;
        };
        if found.is_some() {
            return Err("the two tasks cannot be told apart");
        }
        found = Some((prev, (state, arrow), next));
    }
    let (prev, (state, arrow), next) = found.ok_or("fields are not those of this event")?;
    pairs.extend(prev.pairs(["prev_comm", "prev_pid", "prev_prio"]));
    pairs.push(Pair::known("prev_state", state, arrow));
    pairs.extend(next.pairs(["next_comm", "next_pid", "next_prio"]));
    Ok(())
}

/// `comm:pid [prio] [success=1 ]CPU:002`
fn plugin_wakeup(line: &[u8], at: usize, pairs: &mut Vec<Pair>) -> Result<(), &'static str> {
    const OTHER: &str = "fields are not those of this event";
    let (cpu, end) = word_before(line, at, line.len(), b"CPU:").ok_or(OTHER)?;
    let success = word_before(line, at, end, b"success=");
    let wakee = task(line, at, success.map_or(end, |(_, before)| before)).ok_or(OTHER)?;
    pairs.extend(wakee.pairs(["comm", "pid", "prio"]));
    pairs.extend(success.map(|(from, _)| Pair::known("success", from, end)));
    pairs.push(Pair::known("target_cpu", cpu, line.len()));
    Ok(())
}

/// The number after ` word` at the end of `line[at..end]`: where it starts, and where the space before the word is.
fn word_before(line: &[u8], at: usize, end: usize, word: &[u8]) -> Option<(usize, usize)> {
    let text = &line[at..end];
    let space = text.iter().rposition(|&b| b == b' ')?;
    let number = text[space + 1..].strip_prefix(word)?;
    integer(number)?;
    Some((end - number.len(), at + space))
}

/// `comm:pid [prio]`: places in the line.
struct Task {
    comm: (usize, usize),
    pid: (usize, usize),
    prio: (usize, usize),
}

impl Task {
    fn pairs(&self, names: [&'static str; 3]) -> [Pair; 3] {
        let [comm, pid, prio] = names;
        let pair = |name, (from, to)| Pair::known(name, from, to);
        [pair(comm, self.comm), pair(pid, self.pid), pair(prio, self.prio)]
    }
}

/// A task that fills `line[at..end]`, read from the right. Its comm is one that the kernel can have.
fn task(line: &[u8], at: usize, end: usize) -> Option<Task> {
    let text = line.get(at..end)?.strip_suffix(b"]")?;
    let bracket = text.iter().rposition(|&b| b == b'[')?;
    integer(&text[bracket + 1..])?;
    let before = text[..bracket].strip_suffix(b" ")?;
    let colon = before.iter().rposition(|&b| b == b':')?;
    super::scan::decimal(&before[colon + 1..])?;
    (colon <= COMM_MAX).then_some(Task {
        comm: (at, at + colon),
        pid: (at + colon + 1, at + before.len()),
        prio: (at + bracket + 1, at + text.len()),
    })
}

impl Pair {
    /// Lines are shorter than 4 GiB by far.
    fn known(name: &'static str, from: usize, to: usize) -> Pair {
        Pair { name: Name::Known(name), from: from as u32, to: to as u32 }
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
