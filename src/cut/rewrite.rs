// SPDX-License-Identifier: GPL-2.0-or-later
//! One event made anew: only what its fields hold is taken over, so that nothing hides between or behind them.

use tracecmd_parse::{Endian, FieldKind, RawEvent};

use crate::cut::disguise::Disguise;
use crate::cut::kinds::{Part, Role};

/// Writes `raw` to `out` with the names of `disguise`. An event that is shorter than its fields stays that short.
pub fn rewrite(raw: &RawEvent<'_>, parts: &[Part], disguise: &mut Disguise, endian: Endian, out: &mut Vec<u8>) {
    let end = |part: &Part| (part.field.offset() + part.field.size()) as usize;
    let fixed = parts.iter().map(end).max().unwrap_or(0).min(raw.data.len());
    out.clear();
    out.resize(fixed, 0);
    for part in parts {
        match part.kind {
            FieldKind::DataLoc | FieldKind::RelLoc => behind(raw, part, disguise, endian, out),
            // What is left of the event: no kind that is kept has it.
            FieldKind::Array { len: 0 } => {}
            FieldKind::Array { .. } if matches!(part.role, Role::Comm | Role::Text) => text(raw, part, disguise, out),
            FieldKind::Scalar | FieldKind::Array { .. } => number(raw, part, disguise, endian, out),
        }
    }
}

fn place<'a>(part: &Part, out: &'a mut [u8]) -> Option<&'a mut [u8]> {
    let at = part.field.offset() as usize;
    out.get_mut(at..at + part.field.size() as usize)
}

fn number(raw: &RawEvent<'_>, part: &Part, disguise: &mut Disguise, endian: Endian, out: &mut [u8]) {
    let (Some(from), Some(to)) = (part.field.bytes(raw), place(part, out)) else { return };
    match part.role {
        Role::Plain => to.copy_from_slice(from),
        Role::Pid => {
            let Some(pid) = part.field.i64(raw) else { return };
            let pid = disguise.pid(pid) as u64;
            put(endian, pid, to);
        }
        Role::Comm | Role::Text | Role::Zero => {}
    }
}

fn put(endian: Endian, value: u64, to: &mut [u8]) {
    let size = to.len().min(8);
    match endian {
        Endian::Little => to[..size].copy_from_slice(&value.to_le_bytes()[..size]),
        Endian::Big => to[..size].copy_from_slice(&value.to_be_bytes()[8 - size..]),
    }
}

fn new_text(old: &[u8], role: Role, disguise: &mut Disguise) -> Vec<u8> {
    match role {
        Role::Comm => disguise.comm(old).as_bytes().to_vec(),
        _ => disguise.text(old),
    }
}

fn text(raw: &RawEvent<'_>, part: &Part, disguise: &mut Disguise, out: &mut [u8]) {
    let (Some(old), Some(to)) = (part.field.cstr(raw), place(part, out)) else { return };
    let new = new_text(old, part.role, disguise);
    // A NUL stays behind it, the rest of the array is zero.
    let size = new.len().min(to.len().saturating_sub(1));
    to[..size].copy_from_slice(&new[..size]);
}

/// A field whose data stand behind the fixed ones.
fn behind(raw: &RawEvent<'_>, part: &Part, disguise: &mut Disguise, endian: Endian, out: &mut Vec<u8>) {
    let data = match (part.role, part.field.bytes(raw)) {
        // Outside of the event before, outside of it now.
        (_, None) => {
            if let Some(word) = place(part, out) {
                word.fill(0xff);
            }
            return;
        }
        (Role::Comm | Role::Text, Some(_)) => {
            let old = part.field.cstr(raw).unwrap_or_default();
            let mut new = new_text(old, part.role, disguise);
            new.push(0);
            new
        }
        (Role::Plain, Some(bytes)) => bytes.to_vec(),
        (_, Some(_)) => Vec::new(),
    };
    let from = out.len().next_multiple_of(4);
    let base = match part.kind {
        FieldKind::RelLoc => (part.field.offset() + part.field.size()) as usize,
        _ => 0,
    };
    let (Ok(offset), Ok(len)) = (u16::try_from(from.saturating_sub(base)), u16::try_from(data.len())) else { return };
    out.resize(from, 0);
    out.extend_from_slice(&data);
    if let Some(word) = place(part, out) {
        put(endian, u64::from(len) << 16 | u64::from(offset), word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::Selection;
    use crate::cut::kinds::{Kind, kind};
    use tracecmd_parse::EventFormat;

    const EXEC: &str = "name: sched_process_exec\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__rel_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] filename;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:16;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"x\"\n";

    fn event(data: &[u8], endian: Endian) -> (Vec<u8>, EventFormat) {
        let format = EventFormat::parse("sched", EXEC, endian).expect("a format");
        let selection = Selection { anonymize: true, ..Selection::default() };
        let Kind::Anew(parts) = kind(&format, &selection, endian) else { panic!("left out") };
        let mut out = Vec::new();
        rewrite(&raw(data), &parts, &mut Disguise::default(), endian, &mut out);
        (out, format)
    }

    fn raw(data: &[u8]) -> RawEvent<'_> {
        RawEvent { ts_ns: 5, cpu: 1, id: 9, data }
    }

    #[test]
    fn nothing_but_the_fields_comes_over() {
        let mut data = vec![9, 0, 0xaa, 0xbb, 77, 0, 0, 0];
        data.extend([8, 0, 6, 0]); // comm: 8 behind offset 12, 6 bytes
        data.extend([26, 0, 7, 0]); // filename: at 26, 7 bytes
        data.extend([77, 0, 0, 0]);
        data.extend(b"nginx\0/a/bcd\0SECRET");
        let (out, format) = event(&data, Endian::Little);
        let text = |name: &str| format.field_ref(name).expect("a field").text(&raw(&out)).expect("a text").into_owned();
        let pid = |name: &str| format.field_ref(name).expect("a field").i64(&raw(&out));
        assert_eq!((text("comm"), text("filename")), ("t1".to_owned(), "text1".to_owned()));
        assert_eq!((pid("pid"), pid("common_pid")), (Some(1001), Some(1001)));
        assert_eq!(&out[..4], [9, 0, 0, 0]);
        for secret in [&b"nginx"[..], b"bcd", b"SECRET"] {
            assert!(!out.windows(secret.len()).any(|part| part == secret));
        }
    }

    #[test]
    fn a_short_event_stays_short_and_a_wild_one_wild() {
        let (out, format) = event(&[9, 0, 0, 0, 77, 0, 0, 0, 200, 0, 9, 0], Endian::Little);
        assert_eq!(out.len(), 12);
        assert_eq!(format.field_ref("comm").expect("a field").bytes(&raw(&out)), None);
        assert_eq!(format.field_ref("pid").expect("a field").i64(&raw(&out)), None);
    }

    #[test]
    fn big_endian_numbers_are_written_so() {
        let data = [0, 9, 0, 0, 0, 0, 0, 77, 0, 1, 0, 8, 0, 1, 0, 20, 0, 0, 0, 77, 0, 0, 0, 0];
        let (out, format) = event(&data, Endian::Big);
        assert_eq!(format.field_ref("pid").expect("a field").i64(&raw(&out)), Some(1001));
    }
}
