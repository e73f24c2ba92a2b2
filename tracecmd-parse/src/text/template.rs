// SPDX-License-Identifier: GPL-2.0-or-later
//! How the scheduler's events are printed.
//!
//! Any value that is a comm may hold what looks like the next field. A whole template fits in one way only: a comm is
//! too short for the rest of one.
//!
//! **Source**: include/trace/events/sched.h, v2.6.35 to v7.3; the names are those of the format's fields, which
//! `report -R` prints where they differ from the words of the print format.

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything, of any length.
    Text,
    /// Anything, of the length that a comm can have.
    Comm,
    /// A number, also as `0x46 (70)` (the tracefs option `fields`).
    Int,
    /// Letters of task states (`S`, `R+`, `D|K`), or their number.
    State,
}

/// One `word=value`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// As printed.
    pub(super) word: &'static str,
    /// The field of the format.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) optional: bool,
}

const fn key(word: &'static str, kind: Kind) -> Key {
    Key { word, name: word, kind, optional: false }
}

const fn comm(word: &'static str) -> Key {
    key(word, Kind::Comm)
}

const fn int(word: &'static str) -> Key {
    key(word, Kind::Int)
}

const fn named(word: &'static str, name: &'static str, kind: Kind) -> Key {
    Key { word, name, kind, optional: false }
}

const SWITCH: &[Key] = &[
    comm("prev_comm"),
    int("prev_pid"),
    int("prev_prio"),
    key("prev_state", Kind::State),
    comm("next_comm"),
    int("next_pid"),
    int("next_prio"),
];
/// `success` until 4.2; before 2.6.37 with a comment instead of a number.
const WAKEUP: &[Key] = &[
    comm("comm"),
    int("pid"),
    int("prio"),
    Key { word: "success", name: "success", kind: Kind::Int, optional: true },
    int("target_cpu"),
];
const MIGRATE: &[Key] = &[comm("comm"), int("pid"), int("prio"), int("orig_cpu"), int("dest_cpu")];
const FORK: &[Key] = &[
    named("comm", "parent_comm", Kind::Comm),
    named("pid", "parent_pid", Kind::Int),
    comm("child_comm"),
    int("child_pid"),
];
const FORK_RAW: &[Key] = &[comm("parent_comm"), int("parent_pid"), comm("child_comm"), int("child_pid")];
const EXEC: &[Key] = &[key("filename", Kind::Text), int("pid"), int("old_pid")];
const TASK: &[Key] = &[comm("comm"), int("pid"), int("prio")];
const RUNTIME: &[Key] = &[comm("comm"), int("pid"), int("runtime")];
const DELAY: &[Key] = &[comm("comm"), int("pid"), int("delay")];
const SETPRIO: &[Key] = &[comm("comm"), int("pid"), int("oldprio"), int("newprio")];

/// The event's name, and its forms, the usual one first.
pub(super) const TEMPLATES: &[(&str, &[&[Key]])] = &[
    ("sched_switch", &[SWITCH]),
    ("sched_waking", &[WAKEUP]),
    ("sched_wakeup", &[WAKEUP]),
    ("sched_wakeup_new", &[WAKEUP]),
    ("sched_migrate_task", &[MIGRATE]),
    ("sched_process_fork", &[FORK, FORK_RAW]),
    ("sched_process_exec", &[EXEC]),
    ("sched_process_exit", &[TASK]),
    ("sched_process_free", &[TASK]),
    ("sched_process_wait", &[TASK]),
    ("sched_stat_runtime", &[RUNTIME]),
    ("sched_stat_wait", &[DELAY]),
    ("sched_stat_sleep", &[DELAY]),
    ("sched_stat_iowait", &[DELAY]),
    ("sched_stat_blocked", &[DELAY]),
    ("sched_pi_setprio", &[SETPRIO]),
];

/// The templates of the event of that name.
pub(super) fn of(event: &str) -> Option<&'static [&'static [Key]]> {
    TEMPLATES.iter().find(|(name, _)| *name == event).map(|(_, forms)| *forms)
}
