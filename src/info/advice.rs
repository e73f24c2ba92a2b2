// SPDX-License-Identifier: GPL-2.0-or-later
//! What a good replay lacks, and the command that would record it. Pure.

use serde::{Deserialize, Serialize};

use crate::info::Recorded;
use crate::info::beside::Beside;
use crate::info::probes::{Probe, names};
use crate::info::tally::BufferInfo;
use crate::inputs::Inputs;
use crate::trace::Unreadable;
use crate::trace::cut_mark::is_by_cpus;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Without it there is no replay.
    Needed,
    /// Decisions are wrong or unknown without it.
    Grave,
    /// Decisions lean on assumptions without it.
    Better,
}

/// One thing that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// How much it matters.
    pub weight: Weight,
    /// What is missing.
    pub what: String,
    /// What that does to a replay.
    pub effect: String,
    /// What to do.
    pub remedy: String,
}

/// Whether a replay can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replayable {
    /// Whether `sisdiff replay` takes it.
    pub possible: bool,
    /// Why not, or how well, in a sentence.
    pub why: String,
}

/// What advice is given on.
pub struct Facts<'a> {
    /// The buffer in question.
    pub main: &'a BufferInfo,
    /// All of them.
    pub buffers: &'a [BufferInfo],
    /// Kernel and clock.
    pub recorded: &'a Recorded,
    /// The machine.
    pub beside: &'a Beside,
    /// The probes.
    pub probes: &'a [Probe],
    /// What they tell.
    pub told: Inputs,
    /// Of a text: who printed it.
    pub form: Option<&'static str>,
    /// Events that lack a field that they are useless without.
    pub unreadable: &'a [Unreadable],
    /// Whether events say what they interrupted.
    pub has_context: bool,
    /// Whether times are cut to microseconds.
    pub has_micros: bool,
    /// Whether parts of the file are missing.
    pub is_cut: bool,
    /// What the file says of the cut that it is, from [`crate::trace::cut_mark::CUT_MARK`] on.
    pub cut: Option<&'a str>,
}

impl Facts<'_> {
    /// Whether there are such events, and they can be read.
    fn has(&self, event: &str) -> bool {
        self.main.count(&format!("sched:{event}")) > 0 && self.unreadable(event).is_none()
    }

    /// Why events of a type that was recorded cannot be read.
    fn unreadable(&self, event: &str) -> Option<String> {
        let event = format!("sched:{event}");
        let count = self.main.count(&event);
        let found = self.unreadable.iter().find(|one| one.event == event && count > 0)?;
        Some(found.note(count))
    }

    fn has_probe(&self, name: &str) -> bool {
        self.probes.iter().any(|probe| probe.event.rsplit(':').next() == Some(name))
    }
}

/// The events of a good recording; what a replay without each cannot know.
const EVENTS: [(&str, Weight, &str); 8] = [
    ("sched_switch", Weight::Needed, "nobody knows who runs, so which CPUs are idle"),
    ("sched_waking", Weight::Grave, "the moment and the context of a decision are not known"),
    ("sched_wakeup", Weight::Grave, "where a task is queued without moving is not known"),
    ("sched_wakeup_new", Weight::Better, "where new tasks are queued is not known"),
    ("sched_migrate_task", Weight::Better, "choices come from sched_wakeup alone, and load balancing is not seen"),
    ("sched_process_fork", Weight::Better, "fork decisions are not seen"),
    ("sched_process_exec", Weight::Better, "exec decisions are not seen"),
    ("sched_process_exit", Weight::Better, "a thread id that comes back is taken for the old task"),
];

/// The remedy for an event that was not recorded.
pub const AGAIN: &str = "record again with the command below";

/// The remedy for an event without a field that every kernel so far has.
const UNKNOWN_FORMAT: &str = "copy it again; if the kernel's format is so, this sisdiff is too old for it";

/// Whether `sisdiff replay` takes the recording, by the rule of its own check.
pub fn replayable(facts: &Facts<'_>) -> Replayable {
    let no = |why: String| Replayable { possible: false, why };
    if let Some(error) = &facts.main.unread {
        return no(format!("its events cannot be read: {error}"));
    }
    if facts.main.events == 0 {
        let other = facts.buffers.iter().find(|buffer| buffer.count("sched:sched_switch") > 0);
        return no(match other {
            Some(buffer) => format!("this buffer has no events; give --buffer {}", buffer.name),
            None => "no events at all".to_owned(),
        });
    }
    if !facts.has("sched_switch") {
        return no(facts.unreadable("sched_switch").unwrap_or_else(|| "no sched_switch".to_owned()));
    }
    if !facts.has("sched_waking") && !facts.has("sched_wakeup") {
        if let Some(why) = facts.unreadable("sched_waking").or_else(|| facts.unreadable("sched_wakeup")) {
            return no(why);
        }
        return no("no sched_waking and no sched_wakeup: nothing to decide about".to_owned());
    }
    if let Some(problem) = machine_problem(facts) {
        return no(problem);
    }
    let why = match (facts.has("sched_waking"), facts.has_probe("sis_in"), facts.has_probe("sis_rqN")) {
        (false, ..) => "poorly: without sched_waking no wakeup's decision can be placed, forks and execs alone",
        (true, true, true) => "fully: the kernel's own question, run queues and answer are in it",
        (true, true, false) => "well: the kernel's own question and answer are in it, run queues are derived",
        (true, false, _) => "as any plain recording: what probes would tell is derived or assumed",
    };
    let part =
        facts.cut.filter(|cut| is_by_cpus(cut)).map(|cut| format!("; but it is {cut}: the other CPUs are not known"));
    Replayable { possible: true, why: format!("{why}{}", part.unwrap_or_default()) }
}

/// Why the machine beside it cannot be that of the recording.
fn machine_problem(facts: &Facts<'_>) -> Option<String> {
    let machine = match (&facts.beside.machine, &facts.beside.machine_error) {
        (Some(machine), _) => machine,
        (None, error) => return error.as_ref().map(|error| format!("its topology cannot be used: {error}")),
    };
    let highest = facts.main.cpus.iter().map(|cpu| cpu.cpu + 1).max().unwrap_or(0);
    let cpus = facts.recorded.cpus;
    let fits = cpus == 0 || (machine.online_cpus <= cpus && cpus <= machine.possible_cpus);
    (!fits || highest > machine.possible_cpus).then(|| {
        format!(
            "{} is of a machine with {} CPUs, the recording of one with {}; give its own with --topology",
            machine.source,
            machine.online_cpus,
            cpus.max(highest)
        )
    })
}

/// What is missing, the gravest first.
pub fn missing(facts: &Facts<'_>) -> Vec<Missing> {
    let mut all = Vec::new();
    let mut add = |weight, what: String, effect: &str, remedy: &str| {
        all.push(Missing { weight, what, effect: effect.to_owned(), remedy: remedy.to_owned() });
    };
    for (event, weight, effect) in EVENTS {
        if let Some(what) = facts.unreadable(event) {
            add(weight, format!("a field: {what}"), effect, UNKNOWN_FORMAT);
        } else if !facts.has(event) {
            let what = if facts.cut.is_some() { "in this cut" } else { "recorded" };
            add(weight, format!("no {event} {what}"), effect, AGAIN);
        }
    }
    if let Some(cut) = facts.cut {
        add(
            Weight::Better,
            format!("what was left out: it is {cut}"),
            "what is missing here may have been recorded",
            "ask for the recording that it was cut from",
        );
    }
    damage(facts, &mut add);
    context(facts, &mut add);
    machine(facts, &mut add);
    probes(facts, &mut add);
    all.sort_by_key(|missing| missing.weight);
    all
}

type Add<'a> = &'a mut dyn FnMut(Weight, String, &str, &str);

fn damage(facts: &Facts<'_>, add: Add<'_>) {
    let main = facts.main;
    if facts.is_cut {
        add(
            Weight::Grave,
            "parts of the file: it is cut or damaged".to_owned(),
            "state is unknown after each gap",
            "copy it again; end trace-cmd with Ctrl-C once, and let it write",
        );
    }
    if main.losses > 0 {
        let count = if main.lost_events > 0 { format!(", {} events", main.lost_events) } else { String::new() };
        add(
            Weight::Grave,
            format!("events: lost at {} places{count}", main.losses),
            "state is unknown after each",
            "record again with a larger -b, or fewer events",
        );
    } else if let Some(overrun) = facts.recorded.overrun.filter(|&overrun| overrun > 0) {
        add(
            Weight::Grave,
            format!("events: the ring buffer overwrote or dropped {overrun}, though no event is marked"),
            "the start of some CPUs is missing, or places in between",
            "record again with a larger -b",
        );
    }
    if main.unmarked_breaks > 0 {
        let cpus = main.cpus.iter().filter(|cpu| cpu.unmarked_breaks > 0).count();
        let on = if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
        add(
            Weight::Grave,
            format!("sched_switch events: {} contradict the one before, on {on}, without a mark", main.unmarked_breaks),
            "CPUs look busy or idle when they were not",
            "record with --no-filter (trace-cmd hides its own threads) and a larger -b",
        );
    }
    if main.malformed > 0 {
        add(
            Weight::Better,
            format!("readable fields: {} events are cut off or impossible", main.malformed),
            "they are passed over",
            "record again",
        );
    }
}

fn context(facts: &Facts<'_>, add: Add<'_>) {
    if facts.recorded.clock_is_ns == Some(false) {
        add(
            Weight::Grave,
            "times in nanoseconds: the trace clock counts something else".to_owned(),
            "averages (load, idle time) are not true",
            "record with -C mono",
        );
    }
    if !facts.has_context && facts.main.events > 0 {
        add(
            Weight::Better,
            "irq-info: events do not say whether they come from an interrupt".to_owned(),
            "wakeups by interrupts are taken for the running task's, except the idle task's",
            "keep the irq-info option of tracefs on, or send the trace.dat",
        );
    }
    if facts.has_micros {
        add(
            Weight::Better,
            "nanoseconds: the text has microseconds".to_owned(),
            "events of the same microsecond on two CPUs may be in the wrong order",
            "print with trace-cmd report -t (perf script --ns), or use the trace.dat itself",
        );
    }
    if facts.recorded.kernel.is_none() {
        add(
            Weight::Better,
            "the kernel: neither the file nor a machine description names it".to_owned(),
            "no model of the recorded kernel, so no agreement with it",
            "put /proc/version into topology.tar.gz",
        );
    }
}

const SNAPSHOT: &str = "put topology.tar.gz beside it (README, \"Record your own trace\"), or give --topology";

fn machine(facts: &Facts<'_>, add: Add<'_>) {
    let Some(machine) = &facts.beside.machine else {
        let effect = "SMT, LLCs and nodes are guessed from the number of CPUs";
        add(Weight::Grave, "the machine: no topology beside the file".to_owned(), effect, SNAPSHOT);
        return;
    };
    if machine.features == 0 {
        add(
            Weight::Better,
            "scheduler features: the topology has no debugfs sched/features".to_owned(),
            "the release's defaults are assumed",
            "copy /sys/kernel/debug/sched as root",
        );
    }
    if machine.hz.is_none() {
        add(
            Weight::Better,
            "HZ: the topology does not tell it".to_owned(),
            "250 jiffies a second are assumed",
            "copy /sys/kernel/debug/sched/debug, or give --hz",
        );
    }
    if !machine.has_domains {
        add(
            Weight::Better,
            "the kernel's own list of sched domains".to_owned(),
            "domains are derived from the hardware alone",
            "copy /sys/kernel/debug/sched as root",
        );
    }
}

/// What only probes of the task tell, and of the run queues.
const TASK_INPUTS: Inputs = Inputs::SYNC
    .union(Inputs::AFFINITY)
    .union(Inputs::RECENT_USED_CPU)
    .union(Inputs::WAKEE_FLIPS)
    .union(Inputs::TASK_LOAD)
    .union(Inputs::TASK_UTIL)
    .union(Inputs::POLICY);
const QUEUE_INPUTS: Inputs =
    Inputs::RQ_LOAD.union(Inputs::RQ_UTIL).union(Inputs::AVG_IDLE).union(Inputs::HAS_IDLE_CORES);

fn probes(facts: &Facts<'_>, add: Add<'_>) {
    if !facts.has("sched_switch") {
        return;
    }
    let remedy = "traces/record/guest-probes.sh sets the kprobes up; then add -e kprobes";
    let lack = TASK_INPUTS - facts.told;
    if !facts.has_probe("sis_in") {
        add(
            Weight::Better,
            "the kprobe sis_in at select_task_rq_fair()".to_owned(),
            &format!("derived or assumed are then {}", names(lack).join(", ")),
            remedy,
        );
    } else if !lack.is_empty() {
        let what = "fields of the kprobe sis_in".to_owned();
        add(Weight::Better, what, &format!("derived or assumed are then {}", names(lack).join(", ")), remedy);
    }
    if !facts.has_probe("sis_out") {
        add(
            Weight::Better,
            "the kprobe sis_out at its return".to_owned(),
            "the recorded choice comes from sched_migrate_task and sched_wakeup",
            remedy,
        );
    }
    let lack = QUEUE_INPUTS - facts.told;
    if !facts.has_probe("sis_rqN") {
        add(
            Weight::Better,
            "the kprobes sis_rqN, one for each run queue".to_owned(),
            &format!("derived are then {}", names(lack).join(", ")),
            "the same with its level full (best on few CPUs: one event for each CPU and wakeup)",
        );
    }
}

/// Kilobytes of ring buffer for each CPU where none was too small.
const BUFFER_KB: u64 = 8192;

/// The command that would record what a good replay wants, as a shell takes it.
pub fn record(facts: &Facts<'_>) -> String {
    let lost = facts.main.losses > 0 || facts.recorded.overrun.is_some_and(|overrun| overrun > 0);
    let buffer_kb = if lost { 4 * BUFFER_KB } else { BUFFER_KB };
    let mut events: Vec<String> = EVENTS.iter().map(|(event, ..)| format!("sched:{event}")).collect();
    // What the recording has besides, and a replay reads.
    for more in ["power:cpu_idle", "cpuhp:cpuhp_enter"] {
        if facts.main.count(more) > 0 {
            events.push(more.to_owned());
        }
    }
    let mut groups: Vec<&str> = facts.probes.iter().filter_map(|probe| probe.event.split(':').next()).collect();
    groups.dedup();
    events.extend(groups.into_iter().map(str::to_owned));
    let mut command = format!("trace-cmd record -C mono -b {buffer_kb} --no-filter");
    events.iter().for_each(|event| command += &format!(" -e {event}"));
    command + " -o trace.dat YOUR-WORKLOAD"
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
