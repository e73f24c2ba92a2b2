// SPDX-License-Identifier: GPL-2.0-or-later
//! The words between the caller and a tree's object, where both sides count: the C takes these numbers from here.

use std::fmt::Write as _;

/// Columns of the run queues, and of the hidden state that goes with them: a column's number is its place.
pub const COLUMNS: &[&str] = &[
    "nr_running",
    "h_nr_running",
    "h_nr_runnable",
    "idle_h_nr_running",
    "flags",
    "curr",
    "avg_idle",
    "load_avg",
    "runnable_load_avg",
    "runnable_avg",
    "util_avg",
    "util_est",
    "cpu_capacity",
    "cpu_capacity_orig",
    "idle_stamp",
    "exit_latency",
    "avg_scan_cost",
    "wake_stamp",
    "wake_avg_idle",
];

/// Words after the request's name in a call, before the shared state.
pub const HEAD_WORDS: usize = 18;

/// Words of an answer before the shared state and the record.
pub const ANSWER_WORDS: usize = 27;

/// The number of column `name`.
///
/// # Panics
/// There is none of that name: at compile time, where the result is a constant.
pub const fn column(name: &str) -> u64 {
    place(COLUMNS, name)
}

/// The place of `name` in `list`.
///
/// # Panics
/// It is not there: at compile time, where the result is a constant.
pub const fn place(list: &[&str], name: &str) -> u64 {
    let mut at = 0;
    while at < list.len() {
        if is_same(list[at].as_bytes(), name.as_bytes()) {
            return at as u64;
        }
        at += 1;
    }
    panic!("no such name")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    a.len() == b.len() && at == a.len()
}

/// The numbers as the C has them.
pub(crate) fn defines() -> String {
    let mut out = format!("#define SD_HEAD_WORDS {HEAD_WORDS}\n#define SD_ANSWER_WORDS {ANSWER_WORDS}\n");
    for (number, name) in COLUMNS.iter().enumerate() {
        let _ = writeln!(out, "#define SD_COLUMN_{name} {number}");
    }
    out
}
