// SPDX-License-Identifier: GPL-2.0-or-later
//! Lines of `trace-cmd report`: `comm-pid [cpu] time: funcgraph_entry: duration | function();`, and with `-R`
//! `funcgraph_entry: func=name depth=0`.

use super::Line;
use super::column;
use crate::funcgraph::stacks::{Edge, Spot, Task, Timing};

/// Reads a line of an event; `None` of one that is none.
pub(super) fn line(line: &str) -> Option<Line<'_>> {
    let is_graph = line.contains("funcgraph_entry:") || line.contains("funcgraph_exit:");
    let Some(head) = head(line) else {
        return is_graph.then_some(Line::Bad("no task, CPU and time before the record"));
    };
    let (is_entry, rest) = match head.rest.strip_prefix("funcgraph_entry:") {
        Some(rest) => (true, rest),
        None => match head.rest.strip_prefix("funcgraph_exit:") {
            Some(rest) => (false, rest),
            None => return Some(if is_graph { Line::Bad("two records in one line") } else { Line::Event }),
        },
    };
    let read = if rest.trim_start().starts_with("func=") { raw(rest, is_entry) } else { columns(rest, is_entry) };
    Some(match read {
        Err(why) => Line::Bad(why),
        Ok((depth, edge, behind)) => {
            let spot = Spot { task: Task::new(head.pid, head.cpu), cpu: head.cpu, ts_ns: Some(head.ts_ns), depth };
            Line::Graph { spot, comm: Some(head.comm), edge, behind }
        }
    })
}

type Read<'a> = (Option<u32>, Edge<'a>, Option<&'a str>);

fn columns(rest: &str, is_entry: bool) -> Result<Read<'_>, &'static str> {
    let (duration, function) = rest.split_once('|').ok_or("no bar before the function")?;
    let column = column::function(function, column::duration(duration)?)?;
    let edge = column.edge.ok_or("no function behind the bar")?;
    match (is_entry, edge) {
        (true, Edge::Exit { .. }) => Err("an entry that closes"),
        (false, Edge::Enter { .. } | Edge::Leaf { .. }) => Err("an exit that opens"),
        _ => Ok((column.depth, edge, column.behind)),
    }
}

fn raw(rest: &str, is_entry: bool) -> Result<Read<'_>, &'static str> {
    let field = |name: &str| {
        rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).filter(|v| !v.is_empty())
    };
    let hex = |name: &str| {
        let text = field(name)?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let function = field("func").ok_or("no func")?;
    let depth = field("depth").and_then(|text| text.parse().ok()).ok_or("no depth")?;
    if is_entry {
        return Ok((Some(depth), Edge::Enter { function }, None));
    }
    let (call, ret) = hex("calltime").zip(hex("rettime")).ok_or("no calltime and rettime")?;
    let duration_ns = ret.checked_sub(call).ok_or("it returned before it was called")?;
    let timing = Some(Timing { duration_ns, calltime_ns: Some(call) });
    Ok((Some(depth), Edge::Exit { function: Some(function), timing }, None))
}

struct Head<'a> {
    comm: &'a str,
    pid: i32,
    cpu: u32,
    ts_ns: u64,
    rest: &'a str,
}

/// `comm-pid [cpu] time: rest`, with or without irq-info; a comm may hold anything, so each bracket is tried.
fn head(line: &str) -> Option<Head<'_>> {
    line.match_indices('[').find_map(|(at, _)| {
        let (comm, pid) = line[..at].trim().rsplit_once('-')?;
        let pid = pid.trim_end_matches(['(', ')', ' ']).parse().ok()?;
        let (cpu, rest) = line[at + 1..].split_once(']')?;
        let digits = cpu.len() >= 3 && cpu.bytes().all(|byte| byte.is_ascii_digit());
        let cpu = cpu.parse().ok().filter(|_| digits)?;
        let rest = rest.trim_start();
        let (word, after) = rest.split_once(' ')?;
        let (time, rest) = match time(word) {
            Some(ns) => (ns, after),
            // irq-info stands before the time.
            None => {
                let (word, after) = after.trim_start().split_once(' ')?;
                (time(word)?, after)
            }
        };
        Some(Head { comm, pid, cpu, ts_ns: time, rest: rest.trim_start() })
    })
}

/// `73.755392:` in ns.
fn time(word: &str) -> Option<u64> {
    column::seconds(word.strip_suffix(':')?)
}
