// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are given for a case by mistake. Any bytes make a case, so what is plainly something else has to be told
//! before it is played.

use tracecmd_parse::Select;
use tracecmd_parse::text::TextTrace;

/// Text of that many bytes and more is nothing that a fuzzer left.
const TEXT_MIN: usize = 16;

/// What `bytes` are and what to do with them, if they are neither a case file nor what a fuzzer left.
pub(super) fn mistaken(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    const REPLAY: &str = "replay it with 'sisdiff replay'";
    if bytes.starts_with(b"\x17\x08\x44tracing") {
        return Some(("a recording of trace-cmd", REPLAY));
    }
    if bytes.starts_with(b"PERFILE2") {
        return Some(("perf.data", "replay what 'perf script --ns' prints of it with 'sisdiff replay'"));
    }
    if bytes.starts_with(b"\x1f\x8b\x08") || bytes.starts_with(b"\x28\xb5\x2f\xfd") {
        return Some(("a packed file", "a packed recording is replayed with 'sisdiff replay'; unpack anything else"));
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if text.trim_start().starts_with('{') && serde_json::from_str::<serde_json::Value>(text).is_ok() {
        return Some(("JSON", "a report of a replay has no cases; reports are added up with 'sisdiff merge'"));
    }
    if is_recording(bytes) {
        return Some(("a recording as text", REPLAY));
    }
    let plain = text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    let is_text = plain && text.len() >= TEXT_MIN && text.contains('\n');
    (is_text && !text.contains("version")).then_some(("text without a version", "a case file has 'version = 1'"))
}

fn is_recording(bytes: &[u8]) -> bool {
    let Ok(trace) = TextTrace::from_bytes(bytes) else { return false };
    trace.events(&Select::top()).is_ok_and(|mut events| matches!(events.next_item(), Ok(Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Case;

    fn found(bytes: &[u8]) -> Option<&'static str> {
        mistaken(bytes).map(|(found, _)| found)
    }

    #[test]
    fn what_is_no_case_is_known() {
        let line = "  sh-5 [001] 10.000001: sched_waking: comm=b pid=7 prio=120 target_cpu=001\n";
        for (bytes, what) in [
            (&b"\x17\x08\x44tracing7\0"[..], "a recording of trace-cmd"),
            (b"\x1f\x8b\x08\0\0", "a packed file"),
            (b"\x28\xb5\x2f\xfd\x04", "a packed file"),
            (b"PERFILE2hhhh", "perf.data"),
            (b" {\"schema\": 1, \"version\": 2}\n", "JSON"),
            (line.as_bytes(), "a recording as text"),
            (format!("version = 7\ncpus=4\n{line}").as_bytes(), "a recording as text"),
            (b"This is a letter.\nIt goes on.\n", "text without a version"),
        ] {
            assert_eq!(found(bytes), Some(what));
        }
    }

    #[test]
    fn cases_are_cases() {
        for seed in 0..200 {
            let mut rng = oorandom::Rand32::new(seed);
            let bytes: Vec<u8> = (0..seed * 5).map(|_| rng.rand_u32() as u8).collect();
            assert_eq!(found(&bytes), None, "{seed}");
            assert_eq!(found(Case::from_dna(&bytes).write().as_bytes()), None, "{seed}");
        }
        for bytes in [&b""[..], b"a", b"{", b"\n\n\n", b"aaaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(found(bytes), None);
        }
    }
}
