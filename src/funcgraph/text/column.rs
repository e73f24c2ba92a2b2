// SPDX-License-Identifier: GPL-2.0-or-later
//! The two columns that both forms share: the duration, and the function with its nesting.
//!
//! **Source**: print_graph_duration(), print_graph_entry_leaf(), print_graph_entry_nested() and print_graph_return() in
//! kernel/trace/trace_functions_graph.c, v6.1 and v6.12.

use crate::funcgraph::stacks::{Edge, Timing};

/// Marks before durations that stand out: above 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s.
const MARKS: [char; 6] = ['+', '!', '#', '*', '@', '$'];
/// Spaces for each level of nesting, and before the first.
const INDENT: usize = 2;

/// A duration, ns; `None` of an empty column.
pub(super) fn duration(column: &str) -> Result<Option<u64>, &'static str> {
    let column = column.trim().trim_start_matches(MARKS).trim_start();
    if column.is_empty() {
        return Ok(None);
    }
    let number = column.strip_suffix("us").ok_or("no duration in us where one should be")?.trim_end();
    // Up to three decimals: the kernel cuts them off of long durations.
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return Err("the duration is no number of us with up to three decimals");
    }
    let whole: u64 = whole.parse().map_err(|_| "the duration is too large")?;
    let below: u64 = format!("{fraction:0<3}").parse().map_err(|_| "the duration is too large")?;
    whole.checked_mul(1000).and_then(|ns| ns.checked_add(below)).map(Some).ok_or("the duration is too large")
}

/// Seconds with decimals, in ns.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let below: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A function column read.
pub(super) struct Column<'a> {
    /// How deep it is nested, if its spaces are there.
    pub depth: Option<u32>,
    /// What it says; `None`: an event or remark that the tracer put there.
    pub edge: Option<Edge<'a>>,
    /// Words behind it.
    pub behind: Option<&'a str>,
}

/// Reads what stands behind the bar, beside `duration_ns`.
pub(super) fn function(column: &str, duration_ns: Option<u64>) -> Result<Column<'_>, &'static str> {
    let text = column.trim_start();
    let spaces = column.len() - text.len();
    let depth = (spaces >= INDENT && spaces.is_multiple_of(INDENT)).then(|| ((spaces - INDENT) / INDENT) as u32);
    if text.starts_with("/*") || text.is_empty() {
        return Ok(Column { depth, edge: None, behind: None });
    }
    if let Some(rest) = text.strip_prefix('}') {
        let (function, behind) = closing(rest)?;
        let duration_ns = duration_ns.ok_or("a closing without a duration")?;
        let timing = Some(Timing { duration_ns, calltime_ns: None });
        return Ok(Column { depth, edge: Some(Edge::Exit { function, timing }), behind });
    }
    let (function, rest) = name(text)?;
    if let Some(rest) = rest.strip_prefix(';') {
        let duration_ns = duration_ns.ok_or("a call without a duration")?;
        return Ok(Column { depth, edge: Some(Edge::Leaf { function, duration_ns }), behind: words(rest)? });
    }
    let rest = rest.trim_start().strip_prefix('{').ok_or("neither ; nor { behind the function")?;
    if duration_ns.is_some() {
        return Err("a duration before the function has returned");
    }
    Ok(Column { depth, edge: Some(Edge::Enter { function }), behind: words(rest)? })
}

/// `name(arguments)` → the name, and what follows. A function of a module is `name [module]`.
fn name(text: &str) -> Result<(&str, &str), &'static str> {
    let open = text.find('(').ok_or("no function")?;
    let name = text[..open].trim_end();
    let bare = name.split_once(" [").map_or(name, |(bare, _)| bare);
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    if bare.is_empty() || !bare.chars().all(valid) {
        return Err("the function's name is none");
    }
    let mut depth = 0usize;
    for (at, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((bare, &text[open + at + 1..]));
        }
    }
    Err("the function's brackets are not closed")
}

/// Behind `}`: a remark that names the function where its entry is not shown, or has the return value.
fn closing(rest: &str) -> Result<(Option<&str>, Option<&str>), &'static str> {
    let rest = rest.strip_prefix(';').unwrap_or(rest);
    let Some(remark) = rest.trim_start().strip_prefix("/*") else { return Ok((None, words(rest)?)) };
    let (remark, rest) = remark.split_once("*/").ok_or("a remark without an end")?;
    let first = remark.split_whitespace().next().unwrap_or("");
    let is_name = first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && first.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
    Ok((is_name.then_some(first), words(rest)?))
}

/// What follows a record, without remarks of the tracer.
fn words(rest: &str) -> Result<Option<&str>, &'static str> {
    let rest = rest.trim();
    let rest = match rest.strip_prefix("/*") {
        Some(remark) => remark.split_once("*/").ok_or("a remark without an end")?.1.trim(),
        None => rest,
    };
    Ok((!rest.is_empty()).then_some(rest))
}
