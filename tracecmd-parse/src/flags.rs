// SPDX-License-Identifier: GPL-2.0-or-later
//! Flag tables in print formats: `__print_flags()`, and the task states of
//! sched_switch.
//!
//! The bit of a task state changes between kernel releases (`I`, `X`, `Z` and
//! `P` moved), so the letters come from the trace's own format.

use crate::format::EventFormat;

/// A longer print format is not searched: the search is quadratic in the worst
/// case, and the kernel's longest are about 20 KB.
const PRINT_FMT_MAX: usize = 1 << 16;

/// The table of one `__print_flags()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagTable {
    /// The bits that are looked at: the `& mask` of the first argument, all if there is none.
    pub mask: u64,
    /// What stands between two names.
    pub delimiter: String,
    /// Value and name, as in the format.
    pub entries: Vec<(u64, String)>,
}

impl FlagTable {
    /// The first `__print_flags()` in the print format whose first argument
    /// speaks of `REC->field`.
    pub fn parse(print_fmt: &str, field: &str) -> Option<FlagTable> {
        if print_fmt.len() > PRINT_FMT_MAX {
            return None;
        }
        let wanted = format!("REC->{field}");
        let mut rest = print_fmt;
        loop {
            let at = rest.find("__print_flags(")?;
            let call = &rest[at + "__print_flags(".len()..];
            let (first, after) = split_argument(call)?;
            if mentions(first, &wanted) {
                return parse_call(first, after);
            }
            rest = call;
        }
    }

    /// The names of the bits that are set, as the kernel prints them; bits
    /// without a name follow in hexadecimal.
    ///
    /// **Source**: `trace_print_flags_seq()`, kernel/trace/trace_output.c.
    pub fn names(&self, value: u64) -> String {
        let mut left = value & self.mask;
        let mut out = String::new();
        for (bits, name) in &self.entries {
            if left == 0 {
                break;
            }
            if left & bits != *bits {
                continue;
            }
            left &= !bits;
            if !out.is_empty() {
                out.push_str(&self.delimiter);
            }
            out.push_str(name);
        }
        if left != 0 {
            if !out.is_empty() {
                out.push_str(&self.delimiter);
            }
            out.push_str(&format!("{left:#x}"));
        }
        out
    }
}

/// The states of sched_switch's `prev_state`, by the trace's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStates {
    /// Letters and the mask of the state proper.
    pub table: FlagTable,
    /// `TASK_REPORT_MAX`: set when the task was preempted while runnable (`+`);
    /// 0 if the format has no such bit.
    pub preempted_bit: u64,
}

impl TaskStates {
    /// From the format of `sched:sched_switch`; `None` if it has no state table.
    pub fn of(sched_switch: &EventFormat) -> Option<TaskStates> {
        TaskStates::parse(&sched_switch.print_fmt)
    }

    /// From a print format.
    pub fn parse(print_fmt: &str) -> Option<TaskStates> {
        let table = FlagTable::parse(print_fmt, "prev_state")?;
        Some(TaskStates { preempted_bit: preempted_bit(print_fmt).unwrap_or(0), table })
    }

    /// Whether the task stayed runnable (no state bit set).
    pub fn is_runnable(&self, prev_state: u64) -> bool {
        prev_state & self.table.mask == 0
    }

    /// Whether it was preempted (`+`).
    pub fn is_preempted(&self, prev_state: u64) -> bool {
        prev_state & self.preempted_bit != 0
    }

    /// As the kernel prints it: `S`, `R`, `R+`, `D|K`, ...
    pub fn letters(&self, prev_state: u64) -> String {
        let mut out = if self.is_runnable(prev_state) { "R".to_string() } else { self.table.names(prev_state) };
        if self.is_preempted(prev_state) {
            out.push('+');
        }
        out
    }
}

/// `REC->prev_state & BIT ? "+" : ""`.
fn preempted_bit(print_fmt: &str) -> Option<u64> {
    let plus = print_fmt.find("? \"+\"")?;
    let before = &print_fmt[..plus];
    let from = before.rfind("REC->prev_state")?;
    let expression = before[from + "REC->prev_state".len()..].trim();
    let bit = expression.strip_prefix('&')?.trim();
    // `(REC->prev_state & 1024) ? "+"` leaves a parenthesis that was opened before.
    evaluate(bit).or_else(|| evaluate(bit.strip_suffix(')')?))
}

/// Cuts `text` at the first comma or closing parenthesis outside of brackets and strings.
fn split_argument(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0i32;
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if quoted {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => quoted = true,
            '(' | '{' => depth = depth.saturating_add(1),
            ')' | '}' if depth == 0 => return Some((&text[..at], &text[at..])),
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

/// Whether `name` stands in `text` as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name)
        .any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

fn parse_call(first: &str, after: &str) -> Option<FlagTable> {
    let mask = match first.split_once('&') {
        Some((_, mask)) => evaluate(mask)?,
        None => u64::MAX,
    };
    let (delimiter, mut rest) = split_argument(after)?;
    let mut entries = Vec::new();
    while !rest.is_empty() && !rest.starts_with(')') {
        let (entry, next) = split_argument(rest)?;
        let inner = entry.trim().strip_prefix('{')?.strip_suffix('}')?;
        let (value, name) = split_last_comma(inner)?;
        entries.push((evaluate(value)?, unquote(name)));
        rest = next;
    }
    Some(FlagTable { mask, delimiter: unquote(delimiter), entries })
}

/// `0x01, "S"` → its two halves, the comma before the string.
fn split_last_comma(entry: &str) -> Option<(&str, &str)> {
    let quote = entry.find('"')?;
    let comma = entry[..quote].rfind(',')?;
    Some((&entry[..comma], &entry[comma + 1..]))
}

fn unquote(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text).to_string()
}

/// A constant expression of numbers, parentheses and `| & ^ + - << >> * ~`.
/// Two stacks and no recursion, so depth costs nothing but memory.
pub(crate) fn evaluate(text: &str) -> Option<u64> {
    let mut values: Vec<u64> = Vec::new();
    let mut operators: Vec<&str> = Vec::new();
    let mut operand_next = true;
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            if !operand_next {
                return None;
            }
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            values.push(number(&rest[..end])?);
            operand_next = false;
            rest = rest[end..].trim_start();
            continue;
        }
        let token = if rest.starts_with("<<") || rest.starts_with(">>") { &rest[..2] } else { rest.get(..1)? };
        match token {
            "(" | "~" if operand_next => operators.push(token),
            ")" if !operand_next => loop {
                match operators.pop()? {
                    "(" => break,
                    operator => apply(operator, &mut values)?,
                }
            },
            "|" | "&" | "^" | "+" | "-" | "*" | "<<" | ">>" if !operand_next => {
                while operators.last().is_some_and(|top| *top != "(" && binds(top) >= binds(token)) {
                    apply(operators.pop()?, &mut values)?;
                }
                operators.push(token);
                operand_next = true;
            }
            _ => return None,
        }
        rest = rest[token.len()..].trim_start();
    }
    while let Some(operator) = operators.pop() {
        if operator == "(" {
            return None;
        }
        apply(operator, &mut values)?;
    }
    match (values.as_slice(), operand_next) {
        (&[value], false) => Some(value),
        _ => None,
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(&text[1..], 8).ok(),
        None => text.parse().ok(),
    }
}

/// How tightly an operator binds, as in C.
fn binds(operator: &str) -> u8 {
    match operator {
        "~" => 7,
        "*" => 6,
        "+" | "-" => 5,
        "<<" | ">>" => 4,
        "&" => 3,
        "^" => 2,
        _ => 1,
    }
}

fn apply(operator: &str, values: &mut Vec<u64>) -> Option<()> {
    let right = values.pop()?;
    if operator == "~" {
        values.push(!right);
        return Some(());
    }
    let left = values.pop()?;
    values.push(match operator {
        "|" => left | right,
        "&" => left & right,
        "^" => left ^ right,
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "<<" => left.checked_shl(u32::try_from(right).ok()?).unwrap_or(0),
        ">>" => left.checked_shr(u32::try_from(right).ok()?).unwrap_or(0),
        _ => return None,
    });
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V6_1: &str = r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1) ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#;
    const V4_9: &str = r#""prev_state=%s%s", REC->prev_state & (4096-1) ? __print_flags(REC->prev_state & (4096-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 4096 ? "+" : "", REC->next_comm"#;

    #[test]
    fn states_of_6_1() {
        let states = TaskStates::parse(V6_1).unwrap();
        assert_eq!((states.table.mask, states.preempted_bit), (0xff, 0x100));
        let letters = |state| states.letters(state);
        assert_eq!([letters(0), letters(0x100), letters(1), letters(2)], ["R", "R+", "S", "D"]);
        assert_eq!([letters(0x10), letters(0x20), letters(0x80), letters(0x82)], ["X", "Z", "I", "D|I"]);
        assert!(states.is_runnable(0x100) && states.is_preempted(0x100));
    }

    #[test]
    fn states_of_4_9_have_other_bits() {
        let states = TaskStates::parse(V4_9).unwrap();
        assert_eq!((states.table.mask, states.preempted_bit), (0xfff, 0x1000));
        assert_eq!([states.letters(16), states.letters(32), states.letters(0x1000)], ["Z", "X", "R+"]);
        // A bit without a letter is told in hexadecimal, as the kernel does.
        assert_eq!(states.letters(0x801), "S|0x800");
    }

    #[test]
    fn a_format_without_a_table_has_no_states() {
        assert_eq!(TaskStates::parse("\"%d\", REC->prev_state"), None);
        assert_eq!(TaskStates::parse(""), None);
        let other = r#""%s", __print_flags(REC->prev_state_too, "|", { 1, "S" })"#;
        assert_eq!(TaskStates::parse(other), None);
    }

    #[test]
    fn the_table_of_another_field() {
        let fmt = r#""%s %s", __print_flags(REC->a, "", { 1, "x,y" }), __print_flags(REC->flags, "|", { (1 << 4), "SP)ACE" })"#;
        let table = FlagTable::parse(fmt, "flags").unwrap();
        assert_eq!(table.entries, [(16, "SP)ACE".to_string())]);
        assert_eq!((table.mask, table.delimiter.as_str()), (u64::MAX, "|"));
        assert_eq!(FlagTable::parse(fmt, "a").unwrap().names(1), "x,y");
    }

    #[test]
    fn constants_are_evaluated_as_in_c() {
        for (text, value) in [
            ("4096-1", 4095),
            ("1 << 2 + 1", 8),
            ("(1 << 2) + 1", 5),
            ("1 | 2 ^ 3 & 1", 1 | 2 ^ (3 & 1)),
            ("2 * 3 + 4", 10),
            ("~0 & 0xf0", 0xf0),
            ("010", 8),
            ("1UL << 63", 1 << 63),
            ("1 << 64", 0),
            ("30+1", 31),
        ] {
            assert_eq!(evaluate(text), Some(value), "{text}");
        }
        for text in ["", "1 +", "(1", "1)", "1 2", "a", "+1", "()", "0x", "1 / 2", "99999999999999999999"] {
            assert_eq!(evaluate(text), None, "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}1{}", "(".repeat(1_000_000), ")".repeat(1_000_000));
        assert_eq!(evaluate(&deep), Some(1));
    }
}
