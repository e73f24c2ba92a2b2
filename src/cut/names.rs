// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of tasks that a text's events tell: a trace.dat has them beside its events, a text has not.

use std::collections::BTreeMap;

use tracecmd_parse::{FieldRef, Formats, RawEvent};

/// Names that are kept. The kernel itself saves 128 unless told otherwise.
const NAMES_MAX: usize = 1 << 18;
/// Fields of events: a name, and whose it is.
const PAIRS: [(&str, &str, &str); 4] = [
    ("sched_switch", "prev_comm", "prev_pid"),
    ("sched_switch", "next_comm", "next_pid"),
    ("sched_waking", "comm", "pid"),
    ("sched_wakeup", "comm", "pid"),
];

/// Collects names.
pub(super) struct TaskNames {
    pairs: Vec<(u16, FieldRef, FieldRef)>,
    names: BTreeMap<i32, String>,
}

impl TaskNames {
    pub(super) fn new(formats: &Formats) -> Self {
        let pair = |&(event, comm, pid): &(&str, &str, &str)| {
            let format = formats.by_name("sched", event)?;
            Some((format.id, format.field_ref(comm).ok()?, format.field_ref(pid).ok()?))
        };
        Self { pairs: PAIRS.iter().filter_map(pair).collect(), names: BTreeMap::new() }
    }

    /// The last name of each counts, as in the kernel.
    pub(super) fn event(&mut self, raw: &RawEvent<'_>) {
        for (_, comm, pid) in self.pairs.iter().filter(|(id, ..)| *id == raw.id) {
            let pid = pid.i64(raw).and_then(|pid| i32::try_from(pid).ok()).filter(|&pid| pid > 0);
            let (Some(pid), Some(comm)) = (pid, comm.text(raw)) else { continue };
            let known = self.names.get(&pid);
            if known.is_some_and(|name| *name == comm) || known.is_none() && self.names.len() >= NAMES_MAX {
                continue;
            }
            self.names.insert(pid, comm.into_owned());
        }
    }

    pub(super) fn into_names(self) -> BTreeMap<i32, String> {
        self.names
    }
}
