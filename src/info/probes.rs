// SPDX-License-Identifier: GPL-2.0-or-later
//! Which kprobe events a recording has, and which inputs of a decision they tell.

use serde::{Deserialize, Serialize};
use tracecmd_parse::{EventFormat, Formats};

use crate::info::tally::BufferInfo;
use crate::inputs::Inputs;

/// One kprobe event, or the run queues' together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// `kprobes:sis_in`; of run queues `kprobes:sis_rqN`.
    pub event: String,
    /// What it is.
    pub what: String,
    /// How many were recorded.
    pub count: u64,
    /// Its fields, without those that every event has.
    pub fields: Vec<String>,
    /// Of run queues: the CPUs that have one, a list.
    pub cpus: Option<String>,
}

/// Fields of `sis_in` and the input that each tells.
const TASK: [(&str, Inputs); 19] = [
    ("prev", Inputs::PREV_CPU),
    ("flags", Inputs::SYNC),
    ("ruc", Inputs::RECENT_USED_CPU),
    ("wflips", Inputs::WAKEE_FLIPS),
    ("wdecay", Inputs::WAKEE_FLIPS),
    ("lastwakee", Inputs::WAKEE_FLIPS),
    ("util", Inputs::TASK_UTIL),
    ("uest", Inputs::TASK_UTIL),
    ("load", Inputs::TASK_LOAD),
    ("weight", Inputs::TASK_LOAD),
    ("lut", Inputs::TASK_LOAD),
    ("ncpus", Inputs::AFFINITY),
    ("mask0", Inputs::AFFINITY),
    ("mask1", Inputs::AFFINITY),
    ("policy", Inputs::POLICY),
    ("pflags", Inputs::TASK_FLAGS),
    ("depth", Inputs::TASK_LOAD),
    ("nid", Inputs::NUMA),
    ("delayed", Inputs::IDLE),
];

/// Fields of `sis_rqN` and the input that each tells.
const QUEUE: [(&str, Inputs); 18] = [
    ("nr", Inputs::NR_RUNNING),
    ("h", Inputs::NR_RUNNING),
    ("hrun", Inputs::NR_RUNNING),
    ("hdel", Inputs::NR_RUNNING),
    ("ih", Inputs::POLICY),
    ("pend", Inputs::IDLE),
    ("curr", Inputs::IDLE),
    ("util", Inputs::RQ_UTIL),
    ("uest", Inputs::RQ_UTIL),
    ("load", Inputs::RQ_LOAD),
    ("run", Inputs::RQ_LOAD),
    ("cap", Inputs::CAPACITY),
    ("avgidle", Inputs::AVG_IDLE),
    ("wavgidle", Inputs::AVG_IDLE),
    ("cwflips", Inputs::WAKEE_FLIPS),
    ("scost", Inputs::SCAN_COST),
    ("hic", Inputs::HAS_IDLE_CORES),
    ("nis", Inputs::NR_IDLE_SCAN),
];

/// The number of a run queue's probe.
fn queue_of(name: &str) -> Option<u32> {
    name.strip_prefix("sis_rq").and_then(|cpu| cpu.parse().ok())
}

/// Whether a replay reads the kprobe event of that name.
pub fn is_read(name: &str) -> bool {
    matches!(name, "sis_in" | "sis_out" | "sis_avail_in" | "sis_avail_out") || queue_of(name).is_some()
}

/// Whether that is a field of the probes that tells an input.
pub fn is_number(field: &str) -> bool {
    TASK.iter().chain(&QUEUE).any(|(known, _)| *known == field)
}

/// Fields without the common ones and those that every kprobe has.
fn fields(format: &EventFormat) -> Vec<String> {
    let own = |name: &&str| !name.starts_with("common_") && !name.starts_with("__probe_");
    format.fields.iter().map(|field| field.name.as_str()).filter(own).map(str::to_owned).collect()
}

/// The probes among `formats` that were recorded in `buffer`.
pub fn find(formats: &Formats, buffer: &BufferInfo) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let mut queues: Vec<(u32, &EventFormat, u64)> = Vec::new();
    for format in formats.iter().filter(|format| is_read(&format.name)) {
        let event = format!("{}:{}", format.system, format.name);
        let count = buffer.count(&event);
        if count == 0 {
            continue;
        }
        if let Some(cpu) = queue_of(&format.name) {
            queues.push((cpu, format, count));
            continue;
        }
        let what = match format.name.as_str() {
            "sis_in" => "entry of select_task_rq_fair(): the question",
            "sis_out" => "return of select_task_rq_fair(): the kernel's answer",
            "sis_avail_in" => "available_idle_cpu() is asked",
            _ => "available_idle_cpu() answers",
        };
        let (what, fields) = (what.to_owned(), fields(format));
        probes.push(Probe { event, what, count, fields, cpus: None });
    }
    probes.extend(together(queues));
    probes.sort_by(|a, b| order(&a.event).cmp(&order(&b.event)).then_with(|| a.event.cmp(&b.event)));
    probes
}

/// The question before the answer.
fn order(event: &str) -> usize {
    let name = event.rsplit(':').next().unwrap_or(event);
    ["sis_in", "sis_rqN", "sis_out", "sis_avail_in"].iter().position(|known| *known == name).unwrap_or(4)
}

/// Run queues with the same fields are one probe.
fn together(mut queues: Vec<(u32, &EventFormat, u64)>) -> Vec<Probe> {
    queues.sort_by_key(|&(cpu, ..)| cpu);
    let mut probes: Vec<(Probe, crate::cpumask::Cpumask)> = Vec::new();
    for (cpu, format, count) in queues {
        let fields = fields(format);
        let event = format!("{}:sis_rqN", format.system);
        let mask = crate::units::Cpu::new(cpu as usize).map(crate::cpumask::Cpumask::of).unwrap_or_default();
        match probes.iter_mut().find(|(probe, _)| probe.event == event && probe.fields == fields) {
            Some((probe, cpus)) => {
                probe.count += count;
                *cpus = *cpus | mask;
            }
            None => {
                let what = "a run queue at the same entry".to_owned();
                probes.push((Probe { event, what, count, fields, cpus: None }, mask));
            }
        }
    }
    let named = |(probe, cpus): (Probe, crate::cpumask::Cpumask)| Probe { cpus: Some(cpus.to_string()), ..probe };
    probes.into_iter().map(named).collect()
}

/// Inputs that `probes` tell.
pub fn told(probes: &[Probe]) -> Inputs {
    let mut told = Inputs::empty();
    for probe in probes {
        let table: &[(&str, Inputs)] = match probe.event.rsplit(':').next() {
            Some("sis_in") => &TASK,
            Some("sis_rqN") => &QUEUE,
            _ => &[],
        };
        told |= table
            .iter()
            .filter(|(field, _)| probe.fields.iter().any(|own| own == field))
            .fold(Inputs::empty(), |all, &(_, input)| all | input);
    }
    told
}

/// Names as reports print them: `sync, affinity`.
pub fn names(inputs: Inputs) -> Vec<String> {
    inputs.iter_names().map(|(name, _)| name.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::tally::EventCount;
    use tracecmd_parse::Endian;

    fn formats(events: &[(&str, u16, &[&str])]) -> Formats {
        let mut formats = Formats::new(Endian::Little);
        for (name, id, fields) in events {
            let mut text = format!("name: {name}\nID: {id}\nformat:\n");
            for field in ["common_type", "__probe_ip"].iter().chain(*fields) {
                text += &format!("\tfield:u32 {field};\toffset:0;\tsize:4;\tsigned:0;\n");
            }
            formats.add("kprobes", &text);
        }
        formats
    }

    #[test]
    fn run_queues_are_one_probe_and_what_was_not_recorded_is_none() {
        let rq: &[&str] = &["nr", "avgidle"];
        let formats = formats(&[
            ("sis_rq0", 1, rq),
            ("sis_rq1", 2, rq),
            ("sis_in", 3, &["pid", "flags", "mask0"]),
            ("sis_out", 4, &["ret"]),
            ("mine", 5, &["x"]),
        ]);
        let count = |event: &str| EventCount { event: format!("kprobes:{event}"), count: 5 };
        let by_type = vec![count("sis_rq0"), count("sis_rq1"), count("sis_in"), count("mine")];
        let probes = find(&formats, &BufferInfo { by_type, ..BufferInfo::default() });
        let events: Vec<&str> = probes.iter().map(|probe| probe.event.as_str()).collect();
        assert_eq!(events, ["kprobes:sis_in", "kprobes:sis_rqN"]);
        assert_eq!((probes[1].count, probes[1].cpus.as_deref()), (10, Some("0-1")));
        assert_eq!(probes[0].fields, ["pid", "flags", "mask0"]);
        let told = told(&probes);
        assert_eq!(told, Inputs::SYNC | Inputs::AFFINITY | Inputs::NR_RUNNING | Inputs::AVG_IDLE);
        assert_eq!(names(told), ["nr_running", "sync", "affinity", "avg_idle"]);
    }
}
