// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's events as the kernel's own formats have them, so that what is written of a text is read by whatever
//! reads trace-cmd's files.
//!
//! **Source**: include/trace/events/sched.h, v4.14 to v6.1.

use crate::format::FieldKind;

use super::template::{Key, Kind};

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// `char[16]`.
    Comm,
    /// `pid_t`.
    Pid,
    /// `int`.
    Int,
    /// `long`: bits of a task's state.
    State,
    /// `u64`: nanoseconds.
    Ns,
    /// `__data_loc char[]`.
    Text,
    /// Any number, of an event that is not the scheduler's.
    Number,
}

impl Type {
    /// A field of an event that nothing is known of.
    pub(super) fn of(number: bool) -> Type {
        if number { Type::Number } else { Type::Text }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Type::Comm => "char[16]",
            Type::Pid => "pid_t",
            Type::Int => "int",
            Type::State => "long",
            Type::Ns => "u64",
            Type::Text => "__data_loc char[]",
            Type::Number => "s64",
        }
    }

    pub(super) fn size(self) -> u32 {
        match self {
            Type::Comm => 16,
            Type::Pid | Type::Int | Type::Text => 4,
            Type::State | Type::Ns | Type::Number => 8,
        }
    }

    pub(super) fn align(self) -> u32 {
        if self == Type::Comm { 1 } else { self.size() }
    }

    pub(super) fn is_signed(self) -> bool {
        !matches!(self, Type::Text | Type::Ns)
    }

    pub(super) fn field(self) -> FieldKind {
        match self {
            Type::Comm => FieldKind::Array { len: 16 },
            Type::Text => FieldKind::DataLoc,
            _ => FieldKind::Scalar,
        }
    }
}

/// The fields of an event of the scheduler.
pub(super) fn fields(keys: &[Key]) -> Vec<(String, Type)> {
    let kind = |key: &Key| match (key.kind, key.name) {
        (Kind::Comm, _) => Type::Comm,
        (Kind::Text, _) => Type::Text,
        (Kind::State, _) => Type::State,
        (Kind::Int, "runtime" | "delay") => Type::Ns,
        (Kind::Int, name) if name.ends_with("pid") => Type::Pid,
        (Kind::Int, _) => Type::Int,
    };
    keys.iter().filter(|key| !key.optional).map(|key| (key.name.to_string(), kind(key))).collect()
}

/// What the values of prev_state mean: since 4.14.
const STATE: &str = "REC->prev_state & 0xff ? __print_flags(REC->prev_state & 0xff, \"|\", { 0x01, \"S\" }, \
     { 0x02, \"D\" }, { 0x04, \"T\" }, { 0x08, \"t\" }, { 0x10, \"X\" }, { 0x20, \"Z\" }, { 0x40, \"P\" }, \
     { 0x80, \"I\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"";

/// How an event with these fields is printed; nothing if a name is none that a format can have.
pub(super) fn print_fmt(event: &str, fields: &[(String, Type)]) -> String {
    let is_name = |name: &str| {
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    if fields.is_empty() || !fields.iter().all(|(name, _)| is_name(name)) {
        return String::new();
    }
    let (mut words, mut values) = (Vec::new(), Vec::new());
    for (name, kind) in fields {
        // Where the word is not the field's name.
        let word = if event == "sched_process_fork" { name.strip_prefix("parent_").unwrap_or(name) } else { name };
        let (place, value) = match kind {
            Type::Comm => ("%s", format!("REC->{name}")),
            Type::Text => ("%s", format!("__get_str({name})")),
            Type::State if name == "prev_state" => ("%s%s ==>", STATE.to_string()),
            Type::Int if name == "target_cpu" => ("%03d", format!("REC->{name}")),
            Type::Pid | Type::Int => ("%d", format!("REC->{name}")),
            Type::Ns => ("%Lu [ns]", format!("REC->{name}")),
            Type::State | Type::Number => ("%lld", format!("REC->{name}")),
        };
        words.push(format!("{word}={place}"));
        values.push(value);
    }
    format!("\"{}\", {}", words.join(" "), values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::template;
    use super::*;

    fn printed(event: &str) -> String {
        print_fmt(event, &fields(template::of(event).expect("known")[0]))
    }

    #[test]
    fn print_formats_are_the_kernels() {
        assert_eq!(
            printed("sched_waking"),
            "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu"
        );
        assert_eq!(
            printed("sched_process_exec"),
            "\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid"
        );
        assert_eq!(
            printed("sched_process_fork"),
            "\"comm=%s pid=%d child_comm=%s child_pid=%d\", REC->parent_comm, REC->parent_pid, REC->child_comm, \
             REC->child_pid"
        );
        let switch = printed("sched_switch");
        assert!(
            switch.starts_with(
                "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", "
            ),
            "{switch}"
        );
        assert_eq!(print_fmt("x", &[("a b".to_string(), Type::Number)]), "");
    }

    #[test]
    fn a_switch_has_the_kernels_fields() {
        let sizes: Vec<(String, u32)> = fields(template::of("sched_switch").expect("known")[0])
            .into_iter()
            .map(|(name, kind)| (name, kind.size()))
            .collect();
        let expected = [
            ("prev_comm", 16),
            ("prev_pid", 4),
            ("prev_prio", 4),
            ("prev_state", 8),
            ("next_comm", 16),
            ("next_pid", 4),
            ("next_prio", 4),
        ];
        assert_eq!(sizes, expected.map(|(name, size)| (name.to_string(), size)));
    }
}
