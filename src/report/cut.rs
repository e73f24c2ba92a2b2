// SPDX-License-Identifier: GPL-2.0-or-later
//! What `cut` did, as text.

use crate::cut::Done;
use crate::report::layout::{Align, HEADING, columns, count, counted, paint};
use crate::report::shell::printable;
use crate::units::seconds;

/// The report; `bytes` is the size of the new file, `machine` a line about the machine's description.
pub fn text(from: &str, to: &str, bytes: u64, done: &Done, machine: Option<&str>) -> String {
    let title = format!("sisdiff {}: cut of {} to {}", env!("CARGO_PKG_VERSION"), printable(from), printable(to));
    let left = done.out_of_window + done.of_other_cpus + done.of_other_kinds;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let (first, last) = (done.first_ns.unwrap_or(0), done.last_ns.unwrap_or(0));
    rows.push((
        "kept",
        format!(
            "{} of {}, {:.3} s, {} to {}",
            count(done.kept),
            counted(done.kept + left, "event", "events"),
            last.saturating_sub(first) as f64 / 1e9,
            seconds(first),
            seconds(last),
        ),
    ));
    let parts = [
        (done.out_of_window, "out of the time window"),
        (done.of_other_cpus, "of other CPUs"),
        (done.of_other_kinds, "of other kinds"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
    if !parts.is_empty() {
        rows.push(("left out", parts.join(", ")));
    }
    if let Some((lines, first)) = done.unreadable_lines {
        let lines =
            counted(lines, "line that is no event that can be read", "lines that are no events that can be read");
        rows.push(("left out", format!("{lines}, the first is line {}", count(first))));
    }
    if done.losses > 0 {
        rows.push(("lost", format!("{} of lost events kept", counted(done.losses, "mark", "marks"))));
    }
    if done.buffers.len() > 1 {
        let names = done.buffers.iter().map(|name| if name.is_empty() { "top" } else { name });
        rows.push(("buffers", names.collect::<Vec<_>>().join(", ")));
    } else if let Some(name) = done.buffers.first().filter(|name| !name.is_empty()) {
        rows.push(("buffers", format!("{name}, as the top buffer")));
    }
    rows.push((
        "file",
        format!(
            "trace.dat version {}, compression {}, {}",
            done.version,
            done.compression,
            counted(bytes, "byte", "bytes")
        ),
    ));
    if let Some((comms, pids)) = done.replaced {
        rows.push((
            "names",
            format!(
                "{} and {} replaced, the same everywhere; kept are kernel threads that every machine has, the kernel's \
                 release, times and CPU numbers",
                counted(comms, "name", "names"),
                counted(pids, "thread id", "thread ids")
            ),
        ));
    }
    rows.extend(machine.map(|line| ("topology", line.to_owned())));
    rows.extend(done.gaps.iter().map(|gap| ("damage", gap.clone())));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(key, value)| vec![key.to_owned(), printable(&value)]).collect();
    paint(HEADING, &title) + "\n" + &columns(2, &[Align::Left, Align::Wrap], &rows)
}
