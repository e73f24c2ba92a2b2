// SPDX-License-Identifier: GPL-2.0-or-later
//! Print formats out of libtraceevent's tree, as far as flag tables need them.
//!
//! libtraceevent keeps no text of a print format but what it understood of it. The states of sched_switch are in
//! there as flags with their values, so those are written out again; any other argument becomes `0`.

use std::fmt::Write;
use std::ptr::NonNull;

use crate::flags::evaluate;

use super::ffi::{self, PrintArg, arg};
use super::handle::text_of;

/// Deeper trees are cut off: a print format nests four or five levels.
const DEPTH_MAX: u32 = 32;

/// `"format", argument, argument...`
pub(super) fn print_fmt(print: &ffi::TepPrintFmt) -> String {
    // SAFETY: the string belongs to the event whose print format this is.
    let mut out = format!("\"{}\"", unsafe { text_of(print.format) });
    let mut next = print.args;
    while let Some(argument) = NonNull::new(next) {
        // SAFETY: a list that belongs to the event and ends with null.
        let argument = unsafe { argument.as_ref() };
        out.push_str(", ");
        write(&mut out, argument, DEPTH_MAX);
        next = argument.next;
    }
    out
}

fn write(out: &mut String, argument: &PrintArg, depth: u32) {
    if depth == 0 {
        return out.push('0');
    }
    match argument.kind {
        arg::ATOM => {
            // SAFETY: `kind` says which member of the union is in use; its strings and arguments belong to the event.
            let text = unsafe { text_of(argument.of.atom.atom) };
            // A string and a number are the same kind of atom.
            match evaluate(&text) {
                Some(_) => out.push_str(&text),
                None => {
                    let _ = write!(out, "\"{text}\"");
                }
            }
        }
        arg::FIELD => {
            // SAFETY: see above.
            let name = unsafe { text_of(argument.of.field.name) };
            let _ = write!(out, "REC->{name}");
        }
        arg::FLAGS => {
            // SAFETY: see above.
            flags(out, unsafe { argument.of.flags }, depth);
        }
        arg::TYPE => {
            // SAFETY: see above.
            child(out, unsafe { argument.of.typecast }.item, depth);
        }
        arg::OP => {
            // SAFETY: see above.
            let op = unsafe { argument.of.op };
            // SAFETY: see above.
            let sign = unsafe { text_of(op.op) };
            // `a ? b : c` is an operation `?` whose right side is an operation `:`.
            if sign == ":" {
                child(out, op.left, depth);
            } else {
                operand(out, op.left, depth);
            }
            let _ = write!(out, " {sign} ");
            if matches!(sign.as_str(), "?" | ":") {
                child(out, op.right, depth);
            } else {
                operand(out, op.right, depth);
            }
        }
        _ => out.push('0'),
    }
}

fn child(out: &mut String, argument: *mut PrintArg, depth: u32) {
    if let Some(argument) = NonNull::new(argument) {
        // SAFETY: the argument belongs to the event.
        write(out, unsafe { argument.as_ref() }, depth - 1);
    }
}

/// In parentheses if it is an operation itself.
fn operand(out: &mut String, argument: *mut PrintArg, depth: u32) {
    // SAFETY: null or an argument that belongs to the event.
    let nested = unsafe { argument.as_ref() }.is_some_and(|argument| argument.kind == arg::OP);
    out.push_str(if nested { "(" } else { "" });
    child(out, argument, depth);
    out.push_str(if nested { ")" } else { "" });
}

fn flags(out: &mut String, flags: ffi::ArgFlags, depth: u32) {
    out.push_str("__print_flags(");
    child(out, flags.field, depth);
    // SAFETY: the string belongs to the event.
    let _ = write!(out, ", \"{}\"", unsafe { text_of(flags.delim) });
    let mut next = flags.flags;
    while let Some(entry) = NonNull::new(next) {
        // SAFETY: a list that belongs to the event and ends with null.
        let entry = unsafe { entry.as_ref() };
        // SAFETY: strings of the entry.
        let (value, text) = unsafe { (text_of(entry.value), text_of(entry.text)) };
        let _ = write!(out, ", {{ {value}, \"{text}\" }}");
        next = entry.next;
    }
    out.push(')');
}
