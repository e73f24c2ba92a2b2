// SPDX-License-Identifier: GPL-2.0-or-later
//! Lines of tracefs' file `trace` under the function_graph tracer: ` 3)   2.080 us    |  activate_task();`, with or
//! without the columns of `funcgraph-abstime`, `funcgraph-proc` and `latency-format`.

use std::collections::BTreeMap;

use super::Line;
use super::column;
use crate::funcgraph::stacks::{Spot, Task};

type Running = BTreeMap<u32, (Task, Option<String>)>;

/// Reads a line that starts with a CPU and a bracket; `None` of one that does not.
pub(super) fn line<'a>(line: &'a str, running: &'a mut Running) -> Option<Line<'a>> {
    let (before, rest) = line.split_once(')')?;
    let (ts_ns, cpu) = match before.rsplit_once('|') {
        Some((time, cpu)) => (Some(time), cpu),
        None => (None, before),
    };
    let cpu: u32 = cpu.trim().parse().ok()?;
    let ts_ns = match ts_ns.map(|text| column::seconds(text.trim())) {
        Some(None) => return Some(Line::Bad("the time before the CPU is none")),
        ts_ns => ts_ns.flatten(),
    };
    // `==========> |` and `<========== |` frame interrupts.
    if rest.contains("=====") {
        return Some(Line::Heading);
    }
    if let Some((_, to)) = rest.split_once("=>") {
        return Some(switched(cpu, to, running));
    }
    Some(columns(cpu, ts_ns, rest, running).unwrap_or_else(Line::Bad))
}

fn columns<'a>(
    cpu: u32,
    ts_ns: Option<u64>,
    rest: &'a str,
    running: &'a mut Running,
) -> Result<Line<'a>, &'static str> {
    let mut named = None;
    let mut rest = rest;
    let (duration, function) = loop {
        let (column, after) = rest.split_once('|').ok_or("no bar before the function")?;
        if let Ok(duration) = column::duration(column) {
            // Irq-info and the task may stand in columns of their own before the duration's.
            break (duration, after);
        }
        if let Some(task) = task(column.trim(), cpu) {
            named = Some(task);
        } else if !is_irq_info(column.trim()) {
            return Err("neither a duration nor a task before the bar");
        }
        rest = after;
    };
    let column = column::function(function, duration)?;
    let Some(edge) = column.edge else { return Ok(Line::Event) };
    if let Some((task, comm)) = named {
        running.insert(cpu, (task, Some(comm.to_owned())));
    }
    let (task, comm) = running.entry(cpu).or_insert((Task::Unnamed(cpu), None));
    let spot = Spot { task: *task, cpu, ts_ns, depth: column.depth };
    Ok(Line::Graph { spot, comm: comm.as_deref(), edge, behind: column.behind })
}

/// `3)  comm-1  =>  comm-2`: who runs from here on.
fn switched<'a>(cpu: u32, to: &str, running: &mut Running) -> Line<'a> {
    match task(to.trim(), cpu) {
        Some((task, comm)) => {
            running.insert(cpu, (task, Some(comm.to_owned())));
            Line::Heading
        }
        None => {
            // Whoever it is, it is not the one before.
            running.remove(&cpu);
            Line::Bad("the switch does not say to whom")
        }
    }
}

/// `comm-pid`
fn task(text: &str, cpu: u32) -> Option<(Task, &str)> {
    let (comm, pid) = text.rsplit_once('-')?;
    let pid: i32 = pid.parse().ok().filter(|&pid| pid >= 0)?;
    (!comm.is_empty()).then_some((Task::new(pid, cpu), comm))
}

fn is_irq_info(text: &str) -> bool {
    !text.is_empty() && text.len() <= 6 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '#')
}
