// SPDX-License-Identifier: GPL-2.0-or-later
//! Every event of every recording, against `trace-cmd report -R -t`: order,
//! time, CPU, pid, event name and the value of every field.

mod common;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tracecmd_parse::{EventFormat, Field, FieldKind, FieldRef, Item, RawEvent, Select, TraceFile, TraceReader};

#[test]
fn equals_tracecmd_report() {
    let files = common::recordings();
    if files.is_empty() || !common::have_tracecmd() {
        println!("skipped: no recordings in traces or ../shared, or no trace-cmd");
        return;
    }
    let mut events = 0;
    for file in &files {
        events += compare(file);
    }
    println!("{} files, {events} events equal", files.len());
}

/// Compares one file; returns the number of events.
fn compare(file: &Path) -> u64 {
    let mut child = Command::new("trace-cmd")
        .args(["report", "-R", "-t", "-i"])
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("trace-cmd starts");
    let out = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let trace = TraceFile::open(file).unwrap();
    let symbols = Symbols::of(&trace);
    let printed: Vec<Printed<'_>> = trace.formats().iter().map(Printed::of).collect();
    let mut cursor = trace.cursor(&Select::top()).unwrap();
    let mut count = 0;
    for line in out.split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        // The head of the report, and messages of its plugins.
        if line.starts_with("cpus=") || !line.contains("] ") {
            continue;
        }
        let event = loop {
            match cursor.next().unwrap() {
                Some(Item::Event(event)) => break event,
                Some(Item::Lost { .. }) => continue,
                other => panic!("{}: {other:?} for {line:?}", file.display()),
            }
        };
        if let Err(why) = same(&trace, &printed, &symbols, &event, &line) {
            panic!("{}: {why}\n{line}\n{event:?}", file.display());
        }
        count += 1;
    }
    assert_eq!(cursor.next().unwrap(), None, "{}", file.display());
    assert!(child.wait().unwrap().success());
    assert_eq!(cursor.summary().events, count);
    count
}

fn same(
    trace: &TraceFile,
    printed: &[Printed<'_>],
    symbols: &Symbols<'_>,
    event: &RawEvent<'_>,
    line: &str,
) -> Result<(), String> {
    let printed = printed.iter().find(|p| p.format.id == event.id).ok_or("no format")?;
    let common = trace.formats().common().ok_or("no common fields")?;
    let pid = common.common_pid.i64(event).ok_or("no pid")?;
    let seconds = event.ts_ns / 1_000_000_000;
    let rest = event.ts_ns % 1_000_000_000;
    let head = format!(" [{:03}] {seconds:5}.{rest:09}: ", event.cpu);
    // The comm before the pid may hold anything.
    let at = line.find(&head).ok_or_else(|| format!("expected {head:?}"))?;
    if !line[..at].trim_end().ends_with(&format!("-{pid}")) {
        return Err(format!("expected pid {pid}"));
    }
    let values = line[at + head.len()..]
        .strip_prefix(&printed.format.name)
        .and_then(|rest| rest.strip_prefix(':'))
        .ok_or_else(|| format!("expected {}", printed.format.name))?;
    same_fields(printed, symbols, event, values)
}

/// The fields of an event behind the common ones, with the text before each value.
struct Printed<'a> {
    format: &'a EventFormat,
    fields: Vec<(String, &'a Field, FieldRef)>,
}

impl Printed<'_> {
    fn of(format: &EventFormat) -> Printed<'_> {
        let fields = format.fields.iter().filter(|f| !f.name.starts_with("common_"));
        Printed {
            format,
            fields: fields.map(|f| (format!(" {}=", f.name), f, format.field_ref(&f.name).unwrap())).collect(),
        }
    }
}

/// Each ` name=value` in the order of the format.
fn same_fields(
    printed: &Printed<'_>,
    symbols: &Symbols<'_>,
    event: &RawEvent<'_>,
    mut values: &str,
) -> Result<(), String> {
    let fields = &printed.fields;
    for (at, (key, field, reference)) in fields.iter().enumerate() {
        let rest =
            values.trim_start().strip_prefix(&key[1..]).ok_or_else(|| format!("expected {key:?} at {values:?}"))?;
        let end = match fields.get(at + 1) {
            None => rest.len(),
            Some((next, ..)) => rest.find(next.as_str()).ok_or_else(|| format!("no field after {key:?}"))?,
        };
        same_value(field, reference, symbols, event, &rest[..end])?;
        values = &rest[end..];
    }
    Ok(())
}

fn same_value(
    field: &Field,
    reference: &FieldRef,
    symbols: &Symbols<'_>,
    event: &RawEvent<'_>,
    token: &str,
) -> Result<(), String> {
    if !matches!(field.kind, FieldKind::Scalar) {
        let text = reference.text(event).ok_or_else(|| format!("{} is not readable", field.name))?;
        // A line of trace_marker ends with a line break.
        let equal = text.trim_end() == token.trim_end();
        return equal.then_some(()).ok_or_else(|| format!("{}: {text:?}, not {token:?}", field.name));
    }
    let (Some(signed), Some(unsigned)) = (reference.i64(event), reference.u64(event)) else {
        return Err(format!("{} is not readable", field.name));
    };
    let hex = token.strip_prefix("0x").unwrap_or(token);
    // The format decides on decimal or hexadecimal, on the sign and on zeros in front.
    let equal = token.parse() == Ok(signed)
        || token.parse() == Ok(unsigned)
        || u64::from_str_radix(hex, 16) == Ok(unsigned)
        || symbols.at(unsigned) == Some(token);
    equal.then_some(()).ok_or_else(|| format!("{}: {signed} ({unsigned:#x}), not {token:?}", field.name))
}

/// Kernel symbols by address: trace-cmd prints functions by name.
struct Symbols<'a> {
    trace: &'a TraceFile,
    map: OnceCell<BTreeMap<u64, String>>,
}

impl Symbols<'_> {
    fn of(trace: &TraceFile) -> Symbols<'_> {
        Symbols { trace, map: OnceCell::new() }
    }

    fn read(&self) -> BTreeMap<u64, String> {
        let text = self.trace.kallsyms().unwrap().unwrap_or_default();
        let mut map = BTreeMap::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let mut words = line.split_whitespace();
            if let (Some(address), Some(name)) = (words.next(), words.nth(1))
                && let Ok(address) = u64::from_str_radix(address, 16)
            {
                // Of several names of one address trace-cmd has its own choice.
                map.entry(address).or_insert(name.to_string());
            }
        }
        map
    }

    fn at(&self, address: u64) -> Option<&str> {
        let map = self.map.get_or_init(|| self.read());
        let (_, name) = map.range(..=address).next_back()?;
        Some(name)
    }
}
