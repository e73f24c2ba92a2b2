// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kinds of events are kept, and what the fields of each are to a reader who must not know who it was.

use tracecmd_parse::{Endian, EventFormat, Field, FieldKind, FieldRef, Formats};

use crate::cut::Selection;
use crate::info::probes;

/// What becomes of the events of one kind.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Left out.
    Left,
    /// Written as they are.
    AsIs,
    /// Written anew, field by field.
    Anew(Vec<Part>),
}

/// One field of an event that is written anew.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The field.
    pub field: FieldRef,
    /// Where its bytes are.
    pub kind: FieldKind,
    /// What it is.
    pub role: Role,
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A number or mask that tells nobody's name.
    Plain,
    /// A thread or process id.
    Pid,
    /// A task's name.
    Comm,
    /// Another text.
    Text,
    /// A kernel address, or what is not known: zero.
    Zero,
}

/// Events of the scheduler whose fields are known, all of them.
///
/// **Source**: include/trace/events/sched.h, 5.2 to 7.3.
const SCHED: [&str; 21] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_process_free",
    "sched_process_wait",
    "sched_wait_task",
    "sched_stat_wait",
    "sched_stat_sleep",
    "sched_stat_iowait",
    "sched_stat_blocked",
    "sched_stat_runtime",
    "sched_pi_setprio",
    "sched_move_numa",
    "sched_stick_numa",
    "sched_swap_numa",
    "sched_wake_idle_without_ipi",
];

/// Fields of the probes that are numbers, besides those in [`probes`]' tables.
const PROBE_NUMBERS: [&str; 5] = ["sdflag", "wakecpu", "pllc", "ret", "cpu"];
/// Fields of the probes that are thread ids.
const PROBE_PIDS: [&str; 4] = ["pid", "lastwakee", "curr", "clastw"];

/// Whether a replay reads events of that kind.
pub fn is_read(format: &EventFormat) -> bool {
    matches!((format.system.as_str(), format.name.as_str()), ("power", "cpu_idle") | ("cpuhp", "cpuhp_enter"))
        || format.system == "sched"
        || probes::is_read(&format.name)
}

/// Whether every field of that kind is known.
fn is_known(format: &EventFormat) -> bool {
    is_read(format) && (format.system != "sched" || SCHED.contains(&format.name.as_str()))
}

/// What becomes of the events of `format`.
pub fn kind(format: &EventFormat, selection: &Selection, endian: Endian) -> Kind {
    let is_probe = probes::is_read(&format.name);
    if selection.no_probes && is_probe || selection.sched_only && !is_read(format) {
        return Kind::Left;
    }
    if !selection.anonymize {
        return Kind::AsIs;
    }
    if !is_known(format) {
        return Kind::Left;
    }
    let part =
        |field: &Field| Part { field: FieldRef::new(field, endian), kind: field.kind, role: role(field, is_probe) };
    Kind::Anew(format.fields.iter().map(part).collect())
}

/// By event id.
pub fn table(formats: &Formats, selection: &Selection, endian: Endian) -> Vec<Option<Kind>> {
    let mut table: Vec<Option<Kind>> = Vec::new();
    for format in formats.iter() {
        let id = usize::from(format.id);
        if table.len() <= id {
            table.resize(id + 1, None);
        }
        table[id] = Some(kind(format, selection, endian));
    }
    table
}

fn role(field: &Field, is_probe: bool) -> Role {
    let name = field.name.as_str();
    let element = field.type_text.split('[').next().unwrap_or("").trim_end();
    if field.kind != FieldKind::Scalar && element.ends_with("char") {
        return if name.ends_with("comm") { Role::Comm } else { Role::Text };
    }
    if matches!(name, "common_type" | "common_flags" | "common_preempt_count") || name.starts_with("common_preempt") {
        return Role::Plain;
    }
    if name == "common_pid" || (is_probe && PROBE_PIDS.contains(&name)) {
        return Role::Pid;
    }
    if is_probe {
        let known = probes::is_number(name) || PROBE_NUMBERS.contains(&name);
        return if known { Role::Plain } else { Role::Zero };
    }
    if name.ends_with("pid") || name.ends_with("tgid") || name.ends_with("ngid") {
        return Role::Pid;
    }
    // What a vendor added to the head of every event, and pointers.
    if name.starts_with("common_") || field.type_text.contains('*') {
        return Role::Zero;
    }
    Role::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(system: &str, name: &str, fields: &[&str]) -> EventFormat {
        let mut text = format!("name: {name}\nID: 7\nformat:\n");
        let mut offset = 0;
        for declaration in fields {
            let size = if declaration.contains("[16]") { 16 } else { 4 };
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
            offset += size;
        }
        EventFormat::parse(system, &text, Endian::Little).expect("a format")
    }

    fn roles(format: &EventFormat) -> Vec<(String, Role)> {
        let selection = Selection { anonymize: true, ..Selection::default() };
        let Kind::Anew(parts) = kind(format, &selection, Endian::Little) else { panic!("left out") };
        format.fields.iter().map(|field| field.name.clone()).zip(parts.iter().map(|part| part.role)).collect()
    }

    #[test]
    fn fields_are_known_by_name_and_type() {
        let exec = format(
            "sched",
            "sched_process_exec",
            &[
                "unsigned char common_flags",
                "int common_pid",
                "int common_secret",
                "__data_loc char[] filename",
                "pid_t pid",
            ],
        );
        let wanted = [Role::Plain, Role::Pid, Role::Zero, Role::Text, Role::Pid];
        assert_eq!(roles(&exec).into_iter().map(|(_, role)| role).collect::<Vec<_>>(), wanted);
        let switch =
            format("sched", "sched_switch", &["char prev_comm[16]", "pid_t prev_pid", "int prev_prio", "void *p"]);
        let wanted = [Role::Comm, Role::Pid, Role::Plain, Role::Zero];
        assert_eq!(roles(&switch).into_iter().map(|(_, role)| role).collect::<Vec<_>>(), wanted);
        let probe =
            format("mine", "sis_in", &["unsigned long __probe_ip", "s32 lastwakee", "u32 wflips", "u64 secret"]);
        let wanted = [Role::Zero, Role::Pid, Role::Plain, Role::Zero];
        assert_eq!(roles(&probe).into_iter().map(|(_, role)| role).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn kinds_are_kept_as_asked() {
        let formats = [
            format("sched", "sched_switch", &["int prev_pid"]),
            format("sched", "sched_load_cfs_rq", &["__data_loc char[] path"]),
            format("kprobes", "sis_rq3", &["u32 nr"]),
            format("kprobes", "mine", &["u32 x"]),
            format("power", "cpu_idle", &["u32 state"]),
            format("net", "netif_rx", &["__data_loc char[] name"]),
        ];
        let kept = |selection: Selection| {
            let kept = formats.iter().filter(|format| !matches!(kind(format, &selection, Endian::Little), Kind::Left));
            kept.map(|format| format.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(kept(Selection::default()).len(), formats.len());
        let sched_only = Selection { sched_only: true, ..Selection::default() };
        assert_eq!(kept(sched_only.clone()), ["sched_switch", "sched_load_cfs_rq", "sis_rq3", "cpu_idle"]);
        let no_probes = Selection { no_probes: true, ..sched_only };
        assert_eq!(kept(no_probes), ["sched_switch", "sched_load_cfs_rq", "cpu_idle"]);
        let anonymize = Selection { anonymize: true, ..Selection::default() };
        assert_eq!(kept(anonymize), ["sched_switch", "sis_rq3", "cpu_idle"]);
    }
}
