// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kinds of input a piece of C reads, by the names in it.

use crate::extract::closure::{Role, words};

/// Kinds of input: bit n of a mask is the n-th. The names are those of sisdiff's `Inputs`.
pub const KINDS: &[&str] = &[
    "NR_RUNNING",
    "POLICY",
    "SYNC",
    "CONTEXT",
    "AFFINITY",
    "TASK_FLAGS",
    "TASK_LOAD",
    "RQ_LOAD",
    "TASK_UTIL",
    "RQ_UTIL",
    "CAPACITY",
    "RECENT_USED_CPU",
    "WAKEE_FLIPS",
    "HAS_IDLE_CORES",
    "NR_IDLE_SCAN",
    "AVG_IDLE",
    "SCAN_COST",
    "NUMA",
    "IDLE_STATE",
    "FEATURES",
    "UCLAMP",
];

/// Members, functions and constants that stand for a kind, wherever they are.
const NAMES: &[(&str, &str)] = &[
    ("nr_running", "NR_RUNNING"),
    ("h_nr_running", "NR_RUNNING"),
    ("h_nr_queued", "NR_RUNNING"),
    ("h_nr_runnable", "NR_RUNNING"),
    ("h_nr_delayed", "NR_RUNNING"),
    ("idle_h_nr_running", "POLICY"),
    ("h_nr_idle", "POLICY"),
    ("policy", "POLICY"),
    ("in_task", "CONTEXT"),
    ("in_interrupt", "CONTEXT"),
    ("cpus_ptr", "AFFINITY"),
    ("cpus_mask", "AFFINITY"),
    ("cpus_allowed", "AFFINITY"),
    ("nr_cpus_allowed", "AFFINITY"),
    ("cpus_preferred", "AFFINITY"),
    ("affinity_unequal", "AFFINITY"),
    ("PF_KTHREAD", "TASK_FLAGS"),
    ("PF_EXITING", "TASK_FLAGS"),
    ("task_h_load", "TASK_LOAD"),
    ("uclamp_eff_value", "UCLAMP"),
    ("uclamp_task_util", "TASK_UTIL"),
    ("uclamp_task_util", "UCLAMP"),
    ("cpu_capacity", "CAPACITY"),
    ("cpu_capacity_orig", "CAPACITY"),
    ("arch_scale_cpu_capacity", "CAPACITY"),
    ("min_capacity", "CAPACITY"),
    ("max_capacity", "CAPACITY"),
    ("max_cpu_capacity", "CAPACITY"),
    ("recent_used_cpu", "RECENT_USED_CPU"),
    ("wakee_flips", "WAKEE_FLIPS"),
    ("has_idle_cores", "HAS_IDLE_CORES"),
    ("nr_idle_scan", "NR_IDLE_SCAN"),
    ("avg_idle", "AVG_IDLE"),
    ("wake_avg_idle", "AVG_IDLE"),
    ("wake_stamp", "AVG_IDLE"),
    ("avg_scan_cost", "SCAN_COST"),
    ("numa_preferred_nid", "NUMA"),
    ("idle_stamp", "IDLE_STATE"),
    ("idle_state", "IDLE_STATE"),
    ("exit_latency", "IDLE_STATE"),
    ("sched_feat", "FEATURES"),
];

/// Members of sched_avg: of a task behind `se`, else of a run queue.
const AVERAGES: &[(&str, &str, &str)] = &[
    ("load_avg", "TASK_LOAD", "RQ_LOAD"),
    ("runnable_load_avg", "TASK_LOAD", "RQ_LOAD"),
    ("runnable_avg", "TASK_UTIL", "RQ_UTIL"),
    ("util_avg", "TASK_UTIL", "RQ_UTIL"),
    ("util_est", "TASK_UTIL", "RQ_UTIL"),
];

/// The bit of a kind.
fn bit(kind: &str) -> u64 {
    KINDS.iter().position(|known| *known == kind).map_or(0, |at| 1 << at)
}

/// What `text`, an expression or statement, reads. The target of an assignment is not read.
pub fn reads(text: &str) -> u64 {
    let found = words(text);
    let mut mask = 0;
    for word in &found {
        let kinds = NAMES.iter().filter(|(name, _)| *name == word.text).fold(0, |all, (_, kind)| all | bit(kind));
        // A variable of that name is no read: avg_idle of select_idle_cpu() was read when it was set.
        let is_read =
            word.role != Role::Name || word.text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if is_read && kinds != 0 && !is_assigned(text, word.at + word.text.len()) {
            mask |= kinds;
        }
        if word.role == Role::Member
            && let Some((_, task, rq)) = AVERAGES.iter().find(|(name, ..)| *name == word.text)
        {
            mask |= bit(if is_of_task(&text[..word.at]) { task } else { rq });
        }
    }
    mask
}

/// Hidden state that is written: bit 32 + n of a mask is the n-th.
pub const WRITES: &[&str] =
    &["p->recent_used_cpu", "current->recent_used_cpu", "wakee_flips", "avg_scan_cost", "wake_avg_idle"];

/// What `text`, an expression or statement, writes.
pub fn writes(text: &str) -> u64 {
    let bit = |at: usize| 1_u64 << (32 + at);
    let mut mask = 0;
    for word in words(text).iter().filter(|word| word.role == Role::Member) {
        let (before, after) = (&text[..word.at], text[word.at + word.text.len()..].trim_start());
        let stepped = ["++", "--", "+=", "-=", ">>=", "<<=", "/=", "*="].iter().any(|sign| after.starts_with(sign));
        let passed = before.contains("update_avg(&") || before.contains("WRITE_ONCE(");
        if !stepped && !passed && !is_assigned(text, word.at + word.text.len()) {
            continue;
        }
        mask |= match word.text {
            "recent_used_cpu" if before.ends_with("current->") => bit(1),
            "recent_used_cpu" => bit(0),
            "wakee_flips" => bit(2),
            "avg_scan_cost" => bit(3),
            "wake_avg_idle" | "wake_stamp" => bit(4),
            _ => 0,
        };
    }
    mask
}

/// The bit of the waker's promise to sleep, which a walk carries in a variable `sync`.
pub fn sync() -> u64 {
    bit("SYNC")
}

/// Whether the member that ends at `at` is set there: a lone `=` follows, or it is WRITE_ONCE()'s first argument.
fn is_assigned(text: &str, at: usize) -> bool {
    let rest = text[at..].trim_start();
    let once =
        || rest.starts_with(',') && text[..at].rsplit_once('(').is_some_and(|(head, _)| head.ends_with("WRITE_ONCE"));
    rest.starts_with('=') && !rest.starts_with("==") || rest.starts_with("++") || once()
}

/// Whether the path before a member of sched_avg goes through a task's entity: `p->se.avg.`.
fn is_of_task(before: &str) -> bool {
    let start =
        before.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '>'))).map_or(0, |at| at + 1);
    let path = &before[start..];
    path.contains("se.") || path.contains("se->") || path.starts_with("p->") || path.starts_with("sa->")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        let mask = reads(text);
        KINDS.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).map(|(_, kind)| *kind).collect()
    }

    #[test]
    fn names_stand_for_kinds() {
        assert_eq!(kinds("recent_used_cpu = p->recent_used_cpu;"), ["RECENT_USED_CPU"]);
        assert_eq!(kinds("p->recent_used_cpu = prev;"), [] as [&str; 0]);
        assert_eq!(kinds("this_rq()->nr_running <= 1"), ["NR_RUNNING"]);
        assert_eq!(kinds("avg_idle < avg_cost"), [] as [&str; 0]);
        assert_eq!(kinds("sched_feat(SIS_PROP) && cpumask_test_cpu(cpu, p->cpus_ptr)"), ["AFFINITY", "FEATURES"]);
        assert_eq!(kinds("current->flags & PF_KTHREAD"), ["TASK_FLAGS"]);
    }

    #[test]
    fn writes_of_hidden_state() {
        let names = |text| WRITES.iter().enumerate().filter(move |(at, _)| writes(text) & (1 << (32 + at)) != 0);
        let names = |text| names(text).map(|(_, name)| *name).collect::<Vec<_>>();
        assert_eq!(names("p->recent_used_cpu = prev;"), ["p->recent_used_cpu"]);
        assert_eq!(names("current->recent_used_cpu = cpu;"), ["current->recent_used_cpu"]);
        assert_eq!(names("current->wakee_flips >>= 1;"), ["wakee_flips"]);
        assert_eq!(names("update_avg(&this_sd->avg_scan_cost, time);"), ["avg_scan_cost"]);
        assert_eq!(names("if (p->recent_used_cpu == prev)"), [] as [&str; 0]);
        assert_eq!(kinds("WRITE_ONCE(sds->has_idle_cores, val);"), [] as [&str; 0]);
    }

    #[test]
    fn averages_belong_to_a_task_or_a_run_queue() {
        assert_eq!(kinds("p->se.avg.util_avg"), ["TASK_UTIL"]);
        assert_eq!(kinds("READ_ONCE(cfs_rq->avg.util_avg)"), ["RQ_UTIL"]);
        assert_eq!(kinds("cfs_rq->avg.load_avg + p->se.avg.load_avg"), ["TASK_LOAD", "RQ_LOAD"]);
    }
}
