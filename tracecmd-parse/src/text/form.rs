// SPDX-License-Identifier: GPL-2.0-or-later
//! Which form a text has, told from its first lines.

use super::lines::find;
use super::{events, head};

/// A form of trace text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `trace-cmd report`, with any of `-R`, `-t`, `-N`.
    Report,
    /// `trace-cmd report -l`: CPU and irq-info in one word, comms cut to 8 letters.
    ReportLatency,
    /// The file `trace` of tracefs, also out of Android's atrace and systrace.
    Tracefs,
    /// `perf script`.
    Perf,
}

impl Form {
    /// As one would name it in a message.
    pub fn name(self) -> &'static str {
        match self {
            Form::Report => "trace-cmd report",
            Form::ReportLatency => "trace-cmd report -l",
            Form::Tracefs => "tracefs trace",
            Form::Perf => "perf script",
        }
    }
}

/// What the first lines are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// Events of this form.
    Events(Form),
    /// The head of a tracefs trace, and no event.
    NoEvents,
    /// Something else: what, and what to do.
    Other(String, &'static str),
}

/// Looks at the first lines of a text.
pub(super) fn detect<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Seen {
    // Forms that say at once what they are, and are not read.
    for line in lines.clone().take(100) {
        if line.starts_with(b"# tracer: function_graph") {
            return Seen::Other(
                "text of the function_graph tracer".into(),
                "it has no times and tasks on each line; use 'trace-cmd extract' and read the trace.dat",
            );
        }
        if line.starts_with(b"# ") && find(line, b" latency trace v").is_some() {
            return Seen::Other(
                "a tracefs trace in latency format".into(),
                "its times are relative and its comms cut; write 0 to tracefs' options/latency-format and read 'trace' again",
            );
        }
    }
    let forms = [Form::Tracefs, Form::Perf, Form::ReportLatency];
    let mut hits = [0u32; 3];
    for line in lines.clone() {
        for (form, hits) in forms.iter().zip(&mut hits) {
            *hits += u32::from(head::parse(*form, line).is_ok());
        }
    }
    let best = (0..3).max_by_key(|&at| (hits[at], std::cmp::Reverse(at))).unwrap_or(0);
    let header = |start: &'static [u8]| lines.clone().take(1000).any(|line| line.starts_with(start));
    if hits[best] > 0 {
        // The two have the same lines; trace-cmd says how many CPUs there are.
        let report = forms[best] == Form::Tracefs && header(b"cpus=");
        return Seen::Events(if report { Form::Report } else { forms[best] });
    }
    let empty =
        lines.clone().all(|line| line.trim_ascii().is_empty() || line.starts_with(b"#") || events::is_banner(line));
    if empty && (header(b"# tracer:") || header(b"cpus=")) {
        return Seen::NoEvents;
    }
    nothing(lines)
}

/// No line is an event: says what the first ones look like.
fn nothing<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Seen {
    let text = |line: &[u8]| String::from_utf8_lossy(&line[..line.len().min(100)]).into_owned();
    let mut filled = lines.filter(|line| !line.trim_ascii().is_empty() && line.first() != Some(&b'#'));
    let Some(first) = filled.next() else {
        return Seen::Other("text without a line of events".into(), "was the recording empty?");
    };
    let second = filled.next().unwrap_or(first);
    for line in [first, second] {
        if is_perf_without_cpu(line) {
            return Seen::Other(
                format!("perf script without the CPU column: {:?}", text(line)),
                "record with 'perf record -a', or print it with 'perf script -F +cpu'",
            );
        }
        if is_raw_tracefs(line) {
            return Seen::Other(
                format!("a tracefs trace in raw form: {:?}", text(line)),
                "write 0 to tracefs' options/raw, hex and bin and read 'trace' again",
            );
        }
        if first.starts_with(b"{") || first.starts_with(b"[{") {
            return Seen::Other(
                "JSON".into(),
                "traces in Chrome's JSON are not read; name the recording that it was made from",
            );
        }
    }
    Seen::Other(
        format!("text that is no known form of trace, its first line {:?}", text(first)),
        "known are trace-cmd report, tracefs' trace, perf script, atrace and systrace",
    )
}

/// `comm 123  12.345678: sched:sched_switch: `
fn is_perf_without_cpu(line: &[u8]) -> bool {
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    words.any(|word| {
        let Some((whole, fraction)) = word.strip_suffix(b":").and_then(|time| {
            let dot = time.iter().position(|&b| b == b'.')?;
            Some((&time[..dot], &time[dot + 1..]))
        }) else {
            return false;
        };
        let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        digits(whole) && digits(fraction)
    }) && find(line, b":").is_some()
        && line.windows(2).filter(|pair| pair[0].is_ascii_alphanumeric() && pair[1] == b':').count() >= 3
}

/// `20854 0 2355483577807 type: 375`
fn is_raw_tracefs(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_hexdigit) && find(line, b" type: ").is_some()
}
