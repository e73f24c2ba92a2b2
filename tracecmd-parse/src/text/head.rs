// SPDX-License-Identifier: GPL-2.0-or-later
//! The head of a line: who, where, when.
//!
//! A comm is up to 15 bytes of anything, `x-1 [000] 1.0: y` among them. A whole head is longer than that (its time has
//! 6 or 9 decimals), so the first place from the left where a head fits is the right one. With a clock that counts
//! ticks there is no such safety; there two places that fit make the line ambiguous, hence unreadable.

use super::form::Form;
use super::irq::IrqInfo;
use super::scan::Scan;

/// TASK_COMM_LEN without the NUL.
pub(super) const COMM_MAX: usize = 15;
/// trace-cmd and the kernel print a comm right-aligned in so many bytes.
const COMM_WIDTH: usize = 16;
/// `report -l` in so many.
const LATENCY_WIDTH: usize = 8;
/// NR_CPUS of any kernel built so far is 8192 at most.
pub(super) const CPUS_MAX: u64 = 1 << 16;

/// From and to, in bytes of the line.
pub(super) type Span = (usize, usize);

/// A time as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds; with no decimals whatever the clock counts.
    pub(super) value: u64,
    /// Decimals: 6, 9 or none.
    pub(super) decimals: u8,
}

/// What stands before the event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// The buffer that `trace-cmd report` puts before each line if there are several.
    pub(super) buffer: Option<Span>,
    pub(super) comm: Span,
    pub(super) pid: i32,
    pub(super) tgid: Option<i32>,
    pub(super) cpu: u32,
    pub(super) irq: Option<IrqInfo>,
    pub(super) stamp: Stamp,
    /// Where the event starts in the line.
    pub(super) event_at: usize,
}

/// Reads the head of a line of that form.
pub(super) fn parse(form: Form, line: &[u8]) -> Result<Head, &'static str> {
    match form {
        Form::Perf => perf(line),
        Form::ReportLatency => first(line, LATENCY_WIDTH, latency_tail),
        Form::Report | Form::Tracefs => first(line, COMM_WIDTH, ftrace_tail),
    }
}

/// What follows the comm in an ftrace line.
struct Tail {
    pid: i32,
    tgid: Option<i32>,
    cpu: u32,
    irq: Option<IrqInfo>,
    stamp: Stamp,
    event_at: usize,
}

/// `comm-pid` and a tail; the comm is aligned in `width` bytes.
fn first(line: &[u8], width: usize, tail: impl Fn(Scan<'_>) -> Option<Tail>) -> Result<Head, &'static str> {
    let mut found = None;
    for (at, _) in line.iter().enumerate().filter(|&(_, &b)| b == b'-') {
        let Some(tail) = tail(Scan::new(line, at + 1)) else {
            continue;
        };
        if tail.stamp.decimals > 0 {
            return head(line, at, width, tail);
        }
        // No comm ends so far to the right: that is the event's own text.
        if found.is_some() && at > width {
            break;
        }
        if found.is_some() {
            return Err("comm and head cannot be told apart");
        }
        found = Some((at, tail));
    }
    let (at, tail) = found.ok_or("no \"comm-pid [CPU] time:\"")?;
    head(line, at, width, tail)
}

fn head(line: &[u8], comm_end: usize, width: usize, tail: Tail) -> Result<Head, &'static str> {
    let aligned = comm_end.saturating_sub(width);
    let mut buffer = None;
    if aligned > 0 {
        let name = line[..aligned].strip_suffix(b": ").ok_or("comm is too long")?;
        buffer = Some(trimmed_start(line, (0, name.len())));
    }
    let comm = trimmed_start(line, (aligned, comm_end));
    if comm.1 - comm.0 > COMM_MAX {
        return Err("comm is too long");
    }
    let Tail { pid, tgid, cpu, irq, stamp, event_at } = tail;
    Ok(Head { buffer, comm, pid, tgid, cpu, irq, stamp, event_at })
}

/// `pid [(tgid)] [cpu] [irq-info] time: `
fn ftrace_tail(mut scan: Scan<'_>) -> Option<Tail> {
    let pid = i32::try_from(scan.number()?).ok()?;
    scan.spaces();
    let mut tgid = None;
    if scan.eat(b"(") {
        scan.spaces();
        if scan.all(|b| b == b'-').is_empty() {
            tgid = Some(i32::try_from(scan.number()?).ok()?);
        }
        if !scan.eat(b")") || scan.spaces() == 0 {
            return None;
        }
    }
    if !scan.eat(b"[") {
        return None;
    }
    let cpu = cpu(scan.number()?)?;
    if !scan.eat(b"]") || scan.spaces() == 0 {
        return None;
    }
    let mut irq = None;
    let column = Scan::new(scan.rest(), 0).all(|b| b != b' ');
    if let Some(info) = IrqInfo::parse(column) {
        scan.eat(column);
        if scan.spaces() == 0 {
            return None;
        }
        irq = Some(info);
    }
    let stamp = stamp(&mut scan)?;
    Some(Tail { pid, tgid, cpu, irq, stamp, event_at: scan.at() })
}

/// `pid cpu-irq-info time: `, as `trace-cmd report -l` prints it.
fn latency_tail(mut scan: Scan<'_>) -> Option<Tail> {
    let pid = i32::try_from(scan.number()?).ok()?;
    if scan.spaces() == 0 {
        return None;
    }
    let cpu = cpu(scan.number()?)?;
    // The depths are hexadecimal digits, the first letter is none (or `d`, `b`, `D`, which no number holds).
    let irq = IrqInfo::parse(scan.all(|b| b != b' '))?.of_report();
    if scan.spaces() == 0 {
        return None;
    }
    let stamp = stamp(&mut scan)?;
    Some(Tail { pid, tgid: None, cpu, irq: Some(irq), stamp, event_at: scan.at() })
}

/// `comm pid[/tid] [cpu] time: [period] `
fn perf(line: &[u8]) -> Result<Head, &'static str> {
    for (at, _) in line.iter().enumerate().filter(|&(_, &b)| b == b'[') {
        let mut scan = Scan::new(line, at + 1);
        let Some(cpu) = scan.number().and_then(cpu) else {
            continue;
        };
        if !scan.eat(b"]") || scan.spaces() == 0 {
            continue;
        }
        let Some(stamp) = stamp(&mut scan).filter(|stamp| stamp.decimals > 0) else {
            continue;
        };
        let Some((comm, tgid, pid)) = perf_task(&line[..at]) else {
            continue;
        };
        if comm.1 - comm.0 > COMM_MAX {
            return Err("comm is too long");
        }
        let mut after = scan;
        if after.number().is_some() && after.eat(b" ") {
            after.spaces();
            scan = after;
        }
        return Ok(Head { buffer: None, comm, pid, tgid, cpu, irq: None, stamp, event_at: scan.at() });
    }
    Err("no \"comm pid [CPU] time:\"")
}

/// `comm pid ` or `comm pid/tid `, from the right.
fn perf_task(text: &[u8]) -> Option<(Span, Option<i32>, i32)> {
    let text = trim_end(text);
    let space = text.iter().rposition(|&b| b == b' ')?;
    let mut scan = Scan::new(text, space + 1);
    let first = i32::try_from(scan.signed()?).ok()?;
    let (tgid, pid) = match scan.eat(b"/") {
        true => (Some(first), i32::try_from(scan.signed()?).ok()?),
        false => (None, first),
    };
    if !scan.rest().is_empty() {
        return None;
    }
    // The number is right-aligned; exactly one space belongs to neither it nor the comm.
    Some((trimmed_start(text, (0, trim_end(&text[..space]).len())), tgid, pid))
}

fn cpu(number: u64) -> Option<u32> {
    (number < CPUS_MAX).then_some(number as u32)
}

/// A time with its colon and the spaces after it.
fn stamp(scan: &mut Scan<'_>) -> Option<Stamp> {
    let whole = scan.number()?;
    let mut stamp = Stamp { value: whole, decimals: 0 };
    if scan.eat(b".") {
        let digits = scan.all(|b| b.is_ascii_digit());
        let fraction = super::scan::decimal(digits)?;
        let unit = match digits.len() {
            6 => 1000,
            9 => 1,
            _ => return None,
        };
        let value = whole.checked_mul(1_000_000_000)?.checked_add(fraction * unit)?;
        stamp = Stamp { value, decimals: digits.len() as u8 };
    }
    (scan.eat(b":") && scan.spaces() > 0).then_some(stamp)
}

/// The span without the spaces at its start.
fn trimmed_start(line: &[u8], (from, to): Span) -> Span {
    let spaces = line[from..to].iter().take_while(|&&b| b == b' ').count();
    (from + spaces, to)
}

pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&b| b != b' ').map_or(0, |at| at + 1);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffer, comm, pid, tgid, cpu, time, decimals, event.
    type Read = (String, String, i32, Option<i32>, u32, u64, u8, String);

    fn read(form: Form, line: &str) -> Result<Read, &'static str> {
        let head = parse(form, line.as_bytes())?;
        let text = |span: Option<Span>| span.map_or("", |(from, to)| &line[from..to]).to_string();
        let Stamp { value, decimals } = head.stamp;
        let event = line[head.event_at..].to_string();
        Ok((text(head.buffer), text(Some(head.comm)), head.pid, head.tgid, head.cpu, value, decimals, event))
    }

    fn of(comm: &str, pid: i32, tgid: Option<i32>, cpu: u32, value: u64, decimals: u8) -> Read {
        (String::new(), comm.into(), pid, tgid, cpu, value, decimals, "e: x".into())
    }

    #[test]
    fn tracefs_lines() {
        use Form::Tracefs;
        let plain = "          <idle>-0     [003]    12.000001: e: x";
        assert_eq!(read(Tracefs, plain), Ok(of("<idle>", 0, None, 3, 12_000_001_000, 6)));
        let irq = "     Web Content-2711  [011] d.h2.    12.000001: e: x";
        assert_eq!(read(Tracefs, irq), Ok(of("Web Content", 2711, None, 11, 12_000_001_000, 6)));
        assert_eq!(parse(Tracefs, irq.as_bytes()).unwrap().irq.unwrap().flags, 0x09);
        let tgid = "            bash-20854   (  20853) [000] dNh3.  2355.484418: e: x";
        assert_eq!(read(Tracefs, tgid), Ok(of("bash", 20854, Some(20853), 0, 2_355_484_418_000, 6)));
        let no_tgid = "ksoftirqd/0-3 (-----) [000] ...2  1.465092: e: x";
        assert_eq!(read(Tracefs, no_tgid), Ok(of("ksoftirqd/0", 3, None, 0, 1_465_092_000, 6)));
    }

    #[test]
    fn comms_that_look_like_heads() {
        for comm in ["-7 [001] 1.0: y", "x-1 [0] 1.0: y", "a b=c [9] ==> x", "<...>", "", "a-b-c-1", "- - - - - - - -"]
        {
            let line = format!("{comm:>16}-42      [001] d..2.  1.000001: e: x");
            let expected = of(comm.trim_start(), 42, None, 1, 1_000_001_000, 6);
            assert_eq!(read(Form::Tracefs, &line), Ok(expected.clone()), "{line}");
            let line = format!("{comm:>16}    42 [001]     1.000001:     e: x");
            assert_eq!(read(Form::Perf, &line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn clocks_that_count_ticks() {
        let line = "            bash-42      [001] d..2.  123456789: e: x";
        assert_eq!(read(Form::Tracefs, line), Ok(of("bash", 42, None, 1, 123_456_789, 0)));
        // Text of the event is no second head.
        let line = "            bash-42      [001] d..2.  5: print: x-1 [000] 6: y";
        assert_eq!(parse(Form::Tracefs, line.as_bytes()).unwrap().pid, 42);
        let line = "  -1 [000] 5: y-42      [001] d..2.  123456789: e: x";
        assert!(read(Form::Tracefs, line).is_err());
    }

    #[test]
    fn report_lines() {
        let line = "r2:             bash-21608 [000]  2373.056723: e: x";
        let expected = (String::from("r2"), "bash".into(), 21608, None, 0, 2_373_056_723_000, 6, "e: x".into());
        assert_eq!(read(Form::Report, line), Ok(expected));
        let line = "run-work-291    12dNs1.    11.535045123: e: x";
        assert_eq!(read(Form::ReportLatency, line), Ok(of("run-work", 291, None, 12, 11_535_045_123, 9)));
        let line = "r2:     bash-21608    0.....  2373.056722886: e: x";
        let expected = (String::from("r2"), "bash".into(), 21608, None, 0, 2_373_056_722_886, 9, "e: x".into());
        assert_eq!(read(Form::ReportLatency, line), Ok(expected));
    }

    #[test]
    fn perf_lines() {
        let perf = |line| read(Form::Perf, line);
        let line = "            bash 22394 [001]  2396.535401539:   e: x";
        assert_eq!(perf(line), Ok(of("bash", 22394, None, 1, 2_396_535_401_539, 9)));
        let line = "perf 22496/22497 [000]  2400.059993:          1 e: x";
        assert_eq!(perf(line), Ok(of("perf", 22497, Some(22496), 0, 2_400_059_993_000, 6)));
        assert_eq!(perf("             :-1    -1 [000]  1.000001: e: x"), Ok(of(":-1", -1, None, 0, 1_000_001_000, 6)));
        assert!(perf("bash 22394  2396.535401: e: x").is_err());
    }

    #[test]
    fn what_is_no_head() {
        for line in [
            "",
            "x",
            "-",
            "bash-1",
            "bash-1 [0",
            "bash-1 [0] ",
            "bash-1 [0] 1.5: e: x",
            "bash-1 [0] 1.000001 e: x",
            "bash-99999999999 [000] 1.000001: e: x",
            "bash-1 [99999999] 1.000001: e: x",
            "bash-1 [000] 99999999999999.000001: e: x",
            "a comm that is much too long-1 [000] 1.000001: e: x",
        ] {
            for form in [Form::Report, Form::Tracefs, Form::ReportLatency, Form::Perf] {
                assert!(parse(form, line.as_bytes()).is_err(), "{form:?} {line}");
            }
        }
    }
}
