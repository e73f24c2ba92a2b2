// SPDX-License-Identifier: GPL-2.0-or-later
//! The reports of `info`: text, and JSON of schema `sisdiff.info/1`, described in `docs/info.schema.json`.

use serde::{Deserialize, Serialize};

use crate::info::advice::AGAIN;
use crate::info::{BufferInfo, CpuInfo, Info, Missing, Weight};
use crate::report::layout::{Align, BAD, HEADING, NOTABLE, columns, count, counted, indented, paint, section};
use crate::report::shell::printable;
use crate::trace::cut_mark::CUT_MARK;
use crate::units::seconds;

/// Name and version of the schema. The number grows when a field changes its meaning or goes away.
pub const SCHEMA: &str = "sisdiff.info/1";

/// Kinds of events that are listed; the rest is summed up in a line.
const EVENTS_LISTED: usize = 24;
/// CPUs that are listed for each trouble.
const CPUS_LISTED: usize = 8;

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of sisdiff that wrote it.
    pub sisdiff: String,
    /// One for each file that could be read, in the order of the command line.
    pub files: Vec<Info>,
    /// Those that could not.
    pub unread: Vec<Unread>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unread {
    /// As it was named.
    pub file: String,
    /// Why.
    pub error: String,
}

impl Report {
    /// Of what was read and what was not.
    pub fn new(files: Vec<Info>, unread: Vec<Unread>) -> Self {
        Self { schema: SCHEMA.to_owned(), sisdiff: env!("CARGO_PKG_VERSION").to_owned(), files, unread }
    }

    /// As JSON text, indented, with a newline at its end.
    ///
    /// # Errors
    /// None that a report can cause; serde's.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// The text report of one file.
pub fn text(info: &Info) -> String {
    let title = format!("sisdiff {}: info of {}", env!("CARGO_PKG_VERSION"), printable(&info.file));
    let nothing = BufferInfo::default();
    let main = info.main().unwrap_or(&nothing);
    let mut out = paint(HEADING, &title) + "\n";
    out += &head(info, main);
    out += &events(main);
    out += &continuity(info, main);
    out += &probes(info);
    out += &inputs(info);
    out += &missing(&info.missing);
    let lacks = info.missing.iter().any(|one| one.remedy == AGAIN);
    out += &section(if lacks { "record what is missing, as root" } else { "record such a trace, as root" });
    out + &indented(2, &folded(&info.record))
}

fn rows_of(rows: Vec<(&str, String)>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(key, value)| vec![key.to_owned(), printable(&value)]).collect();
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

fn head(info: &Info, main: &BufferInfo) -> String {
    let mut rows = vec![("format", format(info)), ("kernel", kernel(info))];
    if let Some(why) = &info.recorded.model_why {
        let exact = if info.recorded.model_is_exact { "" } else { " (not exact)" };
        rows.push(("model", format!("{}{exact}: {why}", info.recorded.model.as_deref().unwrap_or("none"))));
    }
    rows.push(("clock", clock(info)));
    let begun = main.cpus.iter().filter(|cpu| cpu.events > 0).count() as u64;
    rows.push(("CPUs", format!("{}, {} with events", count(info.recorded.cpus.into()), count(begun))));
    if let (Some(first), Some(last)) = (main.first_ns, main.last_ns) {
        let span = main.span_ns() as f64 / 1e9;
        let begun = main.all_begun_ns.filter(|&begun| begun > first + 1_000_000).map_or(String::new(), |begun| {
            format!("; every CPU has begun {:.3} s after the start", (begun - first) as f64 / 1e9)
        });
        rows.push(("span", format!("{span:.3} s, {} to {}{begun}", seconds(first), seconds(last))));
    }
    rows.push(("buffers", buffers(info)));
    let verdict = if info.replay.possible { "yes, " } else { "no: " };
    rows.push(("replay", format!("{verdict}{}", info.replay.why)));
    rows.extend(info.notes.iter().map(|note| ("note", note.clone())));
    rows.extend(info.gaps.iter().map(|gap| ("damage", gap.clone())));
    rows_of(rows)
}

fn format(info: &Info) -> String {
    let format = &info.format;
    let mut parts = Vec::new();
    match (&format.form, format.version) {
        (Some(form), _) => parts.push(format!("text of {form}")),
        (None, version) => {
            parts.push(format!("trace.dat version {}", version.unwrap_or_default()));
            parts.extend(format.endian.as_ref().map(|endian| format!("{endian} endian")));
            parts.extend(format.long_bytes.map(|bytes| format!("{bytes}-byte long")));
            parts.extend(format.page_bytes.map(|bytes| format!("pages of {}", count(bytes.into()))));
            parts.push(match format.compression.as_deref() {
                None | Some("none") => "not compressed".to_owned(),
                Some(method) => method.to_owned(),
            });
        }
    }
    parts.extend(format.packed.as_ref().map(|packed| format!("the file packed with {packed}")));
    parts.extend(format.bytes.map(|bytes| counted(bytes, "byte", "bytes")));
    parts.extend(format.tracecmd.as_ref().map(|version| match version.starts_with(CUT_MARK) {
        true => version.clone(),
        false => format!("written by trace-cmd {version}"),
    }));
    parts.push(format!("reader {}", format.reader));
    parts.join(", ")
}

fn kernel(info: &Info) -> String {
    let recorded = &info.recorded;
    let Some(kernel) = &recorded.kernel else {
        return "unknown: neither the file nor a machine description says".to_owned();
    };
    let machine = recorded.machine.as_ref().map(|machine| format!(", {machine}")).unwrap_or_default();
    let from = if recorded.kernel_from.as_deref() == Some("topology") { ", by the topology beside it" } else { "" };
    format!("{kernel}{machine}{from}")
}

fn clock(info: &Info) -> String {
    let clock = info.recorded.clock.as_deref().unwrap_or("not named");
    match info.recorded.clock_is_ns {
        Some(true) => format!("{clock}, nanoseconds"),
        Some(false) => format!("{clock}, no nanoseconds"),
        None => clock.to_owned(),
    }
}

fn buffers(info: &Info) -> String {
    let one = |buffer: &BufferInfo| {
        let name = if buffer.name.is_empty() { "top" } else { &buffer.name };
        let about = if buffer.name == info.about { "" } else { " (say more: --buffer)" };
        match &buffer.unread {
            Some(error) => format!("{name}: {error}"),
            None => format!("{name}: {}{about}", counted(buffer.events, "event", "events")),
        }
    };
    info.buffers.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn events(main: &BufferInfo) -> String {
    let mut rows: Vec<Vec<String>> =
        main.by_type.iter().take(EVENTS_LISTED).map(|one| vec![count(one.count), printable(&one.event)]).collect();
    if let Some(rest) = main.by_type.get(EVENTS_LISTED..).filter(|rest| !rest.is_empty()) {
        let sum = rest.iter().map(|one| one.count).sum();
        rows.push(vec![count(sum), format!("of {} more", counted(rest.len() as u64, "kind", "kinds"))]);
    }
    if rows.is_empty() {
        return section("events") + "  none\n";
    }
    section("events") + &columns(2, &[Align::Right, Align::Left], &rows)
}

/// Per CPU what `of` counts, where it is not 0.
fn by_cpu(main: &BufferInfo, of: fn(&CpuInfo) -> u64) -> String {
    let some: Vec<_> = main.cpus.iter().filter(|cpu| of(cpu) > 0).collect();
    let mut list: Vec<String> =
        some.iter().take(CPUS_LISTED).map(|cpu| format!("CPU {}: {}", cpu.cpu, count(of(cpu)))).collect();
    if some.len() > CPUS_LISTED {
        list.push(format!("{} more", counted((some.len() - CPUS_LISTED) as u64, "CPU", "CPUs")));
    }
    list.join(", ")
}

fn continuity(info: &Info, main: &BufferInfo) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let overrun = match info.recorded.overrun {
        None => String::new(),
        Some(0) => "; by its own statistics the ring buffer overwrote and dropped nothing".to_owned(),
        Some(n) => format!("; by its own statistics the ring buffer overwrote or dropped {}", count(n)),
    };
    rows.push((
        "lost",
        match (main.losses, main.lost_events) {
            (0, _) => format!("none marked{}", if info.format.kind == "text" { String::new() } else { overrun }),
            (losses, 0) => {
                format!("at {}, nobody counted{overrun}; {}", places(losses), by_cpu(main, |cpu| cpu.losses))
            }
            (losses, events) => format!(
                "{} at {}{overrun}; {}",
                counted(events, "event", "events"),
                places(losses),
                by_cpu(main, |cpu| cpu.losses)
            ),
        },
    ));
    let switches: u64 = main.cpus.iter().map(|cpu| cpu.switches).sum();
    let mut breaks = match (switches, main.breaks) {
        (0, _) => "no sched_switch to tell by".to_owned(),
        (_, 0) => format!("none: each prev_pid is the next_pid before, {} switches", count(switches)),
        (_, breaks) => format!(
            "prev_pid is not the next_pid before in {} of {} switches, {} of them without a mark of losses; {}",
            count(breaks),
            count(switches),
            count(main.unmarked_breaks),
            by_cpu(main, |cpu| cpu.breaks)
        ),
    };
    let first = main.cpus.iter().filter_map(|cpu| Some((cpu.cpu, cpu.first_break?))).min_by_key(|(_, at)| at.ts_ns);
    if let Some((cpu, at)) = first {
        breaks += &format!("; the first at {} on CPU {cpu}: {} after {}", seconds(at.ts_ns), at.prev_pid, at.next_pid);
    }
    rows.push(("breaks", breaks));
    rows.push((
        "disorder",
        match main.out_of_order {
            0 => "none: times never go back on a CPU".to_owned(),
            n => format!(
                "{} earlier than the one before; {}",
                counted(n, "event", "events"),
                by_cpu(main, |c| c.out_of_order)
            ),
        },
    ));
    if main.malformed > 0 {
        rows.push((
            "malformed",
            format!("{} with fields that are cut off or impossible", counted(main.malformed, "event", "events")),
        ));
    }
    section("continuity") + &rows_of(rows)
}

fn places(n: u64) -> String {
    counted(n, "place", "places")
}

fn probes(info: &Info) -> String {
    if info.probes.is_empty() {
        return section("probes") + "  none that a replay reads\n";
    }
    let mut rows: Vec<(&str, String)> = Vec::new();
    for probe in &info.probes {
        let name = probe.event.rsplit(':').next().unwrap_or(&probe.event);
        let cpus = probe.cpus.as_ref().map(|cpus| format!(" on CPUs {cpus}")).unwrap_or_default();
        let fields = probe.fields.join(" ");
        rows.push((name, format!("{}{cpus}: {}; fields {fields}", count(probe.count), probe.what)));
    }
    if !info.traced_inputs.is_empty() {
        rows.push(("they tell", info.traced_inputs.join(", ")));
    }
    section("probes") + &rows_of(rows)
}

fn inputs(info: &Info) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    match (&info.beside.machine, &info.beside.machine_error) {
        (Some(machine), _) => {
            rows.push(("topology", format!("{}: {}", machine.source, machine.summary)));
            let mut told = Vec::new();
            match machine.features {
                0 => {}
                n => told.push(counted(n, "scheduler feature", "scheduler features")),
            }
            told.extend(machine.hz.map(|hz| format!("HZ {hz}")));
            if machine.has_domains {
                told.push("the kernel's own sched domains".to_owned());
            }
            if machine.has_idle_costs {
                told.push("bounds of avg_idle".to_owned());
            }
            told.extend(machine.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
            if machine.emulated {
                told.push("emulated CPUs".to_owned());
            }
            rows.push(("  it tells", if told.is_empty() { "the shape alone".to_owned() } else { told.join(", ") }));
        }
        (None, Some(error)) => rows.push(("topology", format!("cannot be used: {error}"))),
        (None, None) => rows.push(("topology", "none beside the file".to_owned())),
    }
    if info.format.kind == "trace.dat" {
        let mut inside = vec![
            counted(info.format.formats, "event format", "event formats"),
            counted(info.format.comms, "saved command line", "saved command lines"),
        ];
        inside.push(if info.format.has_kallsyms { "symbols" } else { "no symbols" }.to_owned());
        rows.push(("in the file", inside.join(", ")));
        if !info.format.options.is_empty() {
            rows.push(("  options", info.format.options.join(" ")));
        }
    }
    for (name, what) in &info.beside.files {
        rows.push(("beside it", format!("{name}: {what}")));
    }
    section("other inputs") + &rows_of(rows)
}

fn missing(missing: &[Missing]) -> String {
    let mut out = section("missing for a good replay");
    if missing.is_empty() {
        return out + "  nothing\n";
    }
    for one in missing {
        let (style, mark) = match one.weight {
            Weight::Needed => (BAD, "needed"),
            Weight::Grave => (NOTABLE, "grave"),
            Weight::Better => (anstyle::Style::new(), "better"),
        };
        let remedy = if one.remedy == AGAIN { String::new() } else { format!("; {}", one.remedy) };
        let text = format!("{}: {}{remedy}", one.what, one.effect);
        let rows = [vec![format!("{mark:<6}"), printable(&text)]];
        let cell = columns(2, &[Align::Left, Align::Wrap], &rows);
        out += &cell.replacen(mark, &paint(style, mark), 1);
    }
    out
}

/// A command on lines of at most 76 columns, broken before its flags.
fn folded(command: &str) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for part in
        command.split(" -").enumerate().map(|(at, part)| if at == 0 { part.to_owned() } else { format!("-{part}") })
    {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(&part);
        } else if line.len() + 1 + part.len() + 2 <= 76 {
            *line += &format!(" {part}");
        } else {
            *line += " \\";
            lines.push(format!("    {part}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_broken_before_flags() {
        let command = format!("trace-cmd record -C mono{} -o trace.dat WORK", " -e sched:sched_switch".repeat(6));
        let text = folded(&command);
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= 76), "{text}");
        let again: Vec<&str> = text.lines().map(|line| line.trim_end_matches('\\').trim()).collect();
        assert_eq!(again.join(" "), command);
    }
}
