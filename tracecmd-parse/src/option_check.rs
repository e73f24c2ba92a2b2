// SPDX-License-Identifier: GPL-2.0-or-later
//! Options that are not what their number says.
//!
//! An option is a number and some bytes. A number that was damaged makes another option of it, or none; what such an
//! option should look like is the only thing that tells.

use crate::bytes::{quote, text};
use crate::meta::{Gap, Meta};
use crate::options::{
    CPUCOUNT, CPUSTAT, DATE, OFFSET, Opt, PROCMAPS, TRACECLOCK, TRACEID, TSC2NSEC, UNAME, VERSION, chosen_clock, name,
};

/// Options that a file has once.
const ONCE: [u16; 4] = [UNAME, VERSION, TRACEID, TSC2NSEC];

/// Notes an option that is not known, is there again or has not the data of its kind. To be called before it is taken.
pub(crate) fn check(meta: &mut Meta, opt: &Opt) {
    let Some(known) = name(opt.id) else {
        meta.notes.push(format!("option {} ({} bytes) is not known and not used", opt.id, opt.data.len()));
        return;
    };
    let again = ONCE.contains(&opt.id) && meta.options.iter().any(|seen| seen.id == opt.id);
    let expected = if again { Some("it once") } else { expected(opt) };
    if let Some(expected) = expected {
        let start = &opt.data[..opt.data.len().min(40)];
        let what = format!("option {known}: expected {expected}, found {}", quote(start));
        meta.gaps.push(Gap { buffer: None, cpu: None, offset: opt.offset, bytes: None, what });
    }
}

/// What the data should be, if they are not.
fn expected(opt: &Opt) -> Option<&'static str> {
    let size = |bytes: usize, what| (opt.data.len() != bytes).then_some(what);
    let words = text(&opt.data);
    let printable = words.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
    let line = printable && !words.trim_end().is_empty() && !words.trim_end().contains('\n');
    let holds = |yes: bool, what| (!yes).then_some(what);
    match opt.id {
        DATE | OFFSET => holds(number(&words), "a number"),
        CPUSTAT => holds(printable && words.contains("CPU"), "counters of a CPU"),
        UNAME => holds(line && words.split_whitespace().count() > 2, "system, node and release"),
        VERSION => holds(line && words.contains('.'), "a version"),
        PROCMAPS => holds(printable && words.trim_end().contains('\n'), "lines of memory maps"),
        // Old files have a mark without data.
        TRACECLOCK => holds(opt.data.is_empty() || chosen_clock(&words).is_some(), "clocks, one of them in brackets"),
        CPUCOUNT => size(4, "4 bytes"),
        TRACEID => size(8, "8 bytes"),
        TSC2NSEC => size(16, "16 bytes"),
        _ => None,
    }
}

fn number(words: &str) -> bool {
    let digits = words.trim().trim_start_matches(['-', '+']);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
}

/// Notes CPUs that the numbers of CPUs in a file do not agree about.
pub(crate) fn check_cpus(meta: &mut Meta, count: Option<u32>) {
    let mut gaps = Vec::new();
    for buffer in &meta.buffers {
        for data in buffer.cpus.iter().filter(|data| count.is_some_and(|count| data.cpu >= count)) {
            let what = format!("data of this CPU, where the file says that there are {} CPUs", count.unwrap_or(0));
            let (buffer, cpu) = (Some(buffer.name.clone()), Some(data.cpu));
            gaps.push(Gap { buffer, cpu, offset: data.offset, bytes: None, what });
        }
    }
    let stats = meta.cpustat.len();
    if stats > 0 && (stats as u64) < u64::from(meta.cpus) {
        let what = format!("counters of {stats} CPUs, where there are {}", meta.cpus);
        gaps.push(Gap { buffer: None, cpu: None, offset: 0, bytes: None, what });
    }
    meta.gaps.extend(gaps);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(id: u16, data: &[u8]) -> Option<&'static str> {
        expected(&Opt { id, offset: 0, data: data.to_vec() })
    }

    #[test]
    fn what_is_right_is_not_told() {
        for (id, data) in [
            (OFFSET, &b"-1000\0"[..]),
            (DATE, b"0x1f\0"),
            (CPUSTAT, b"CPU: 0\nentries: 5\n\0"),
            (UNAME, b"Linux me 4.9.0 arm\0"),
            (VERSION, b"3.1.6 (not-a-git-repo)\0"),
            (PROCMAPS, b"4e1 3 /bin/sh\n7f00 7f01 /lib/x\n\0"),
            (TRACECLOCK, b"local [mono]\0"),
            (TRACECLOCK, b""),
            (TRACEID, &[1; 8]),
        ] {
            assert_eq!(found(id, data), None, "{id}");
        }
    }

    #[test]
    fn another_options_data_are_told() {
        for (id, data) in [
            (OFFSET, &b"CPU: 0\n\0"[..]),
            (CPUSTAT, b"Linux me 4.9.0 arm\0"),
            (UNAME, b"CPU: 0\nentries: 5\n\0"),
            (VERSION, b"\x17\x02\0\0\0\0\0\0"),
            (PROCMAPS, b"3.1.6\0"),
            (TRACECLOCK, b"3.1.6\0"),
            (TRACEID, b"8\0"),
            (CPUCOUNT, b"3.1.6\0"),
        ] {
            assert!(found(id, data).is_some(), "{id}");
        }
    }
}
