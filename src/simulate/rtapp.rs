// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads in rt-app's JSON grammar: a subset, everything else is refused by name.
//!
//! | where | keys |
//! |---|---|
//! | top | `tasks`, `global`, `resources` (its content is not needed) |
//! | a task | `instance`, `loop` (-1: for ever, the default), `phases`, `policy`, `priority`, `cpus`, `delay`, and events |
//! | a phase | `loop` (1), `cpus` of the task's alone, and events |
//! | events | `run`, `runtime`, `sleep` (µs), `timer` {`ref`, `period`, `mode`}, `lock`, `unlock`, `wait` {`ref`, `mutex`}, `signal`, `broad`, `sync` {`ref`, `mutex`}, `suspend`, `resume`, `barrier`, `fork` |
//! | `global` | `duration`, `default_policy`; what only says how rt-app logs and calibrates is passed over |
//!
//! As in rt-app a key may have anything after the event's name (`run0`, `run1`), stand twice, and events happen in the
//! order of the text; comments in `/* */` and a comma too many are passed over, `"suspend"` may stand without a value. Departs: `signal` and `resume` without a waiter are kept for the
//! next one; each task has timers of its own; `run` and `runtime` are both time on an undisturbed CPU.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::cpumask::Cpumask;
use crate::hint::did_you_mean;
use crate::simulate::program::{BarrierId, ChannelId, Dist, How, Op, SpecId, Start, TaskSpec, Workload};
use crate::units::Cpu;

/// Why a text is no workload of rt-app's that can be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RtAppError {
    /// No JSON.
    #[error("rt-app: {0}")]
    Json(String),
    /// A key that is not supported.
    #[error("rt-app: {place}: {key:?} is not supported{hint}; supported there: {possible}")]
    Key {
        /// Where it stands.
        place: String,
        /// The key.
        key: String,
        /// The nearest name, or nothing.
        hint: String,
        /// What is.
        possible: String,
    },
    /// A value of the wrong kind.
    #[error("rt-app: {place}: {key:?} is {found}, expected {expected}")]
    Value {
        /// Where it stands.
        place: String,
        /// The key.
        key: String,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// No tasks.
    #[error("rt-app: no \"tasks\"; expected an object with \"tasks\" and \"global\"")]
    NoTasks,
}

/// JSON whose objects keep their order and keys that stand twice.
#[derive(Debug, Clone, PartialEq)]
enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Number(value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Number(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
                Ok(Json::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(Json::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                Ok(Json::List(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Json::Object(all))
            }
        }
        from.deserialize_any(Any)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

/// What rt-app's reader takes and JSON does not have: comments, a comma too many, and keys without a value (`"suspend",`).
fn cleaned(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open = Vec::new();
    // The last character outside of strings that is no blank.
    let mut last = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("/*") {
            rest = rest[2..].split_once("*/").map_or("", |(_, after)| after);
            continue;
        }
        if c == '"' {
            let end = end_of_string(rest);
            out += &rest[..end];
            rest = &rest[end..];
            let next = rest.trim_start().chars().next();
            let bare = open.last() == Some(&'{') && matches!(last, '{' | ',') && matches!(next, Some(',' | '}'));
            if bare {
                out += ": \"\"";
            }
            last = '"';
            continue;
        }
        match c {
            '{' | '[' => open.push(c),
            '}' | ']' => {
                open.pop();
                let kept = out.trim_end().strip_suffix(',').map(str::len);
                out.truncate(kept.unwrap_or(out.len()));
            }
            _ => {}
        }
        if !c.is_whitespace() {
            last = c;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Length of the string that `text` begins with, its quotes included.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Tasks of one description, as the built-in workloads have at most.
const INSTANCES_MAX: f64 = 4096.0;

const TOP: &[&str] = &["tasks", "global", "resources"];
const TASK: &[&str] = &["instance", "loop", "phases", "policy", "priority", "cpus", "delay"];
const EVENTS: &[&str] = &[
    "runtime", "run", "sleep", "timer", "lock", "unlock", "wait", "signal", "broad", "sync", "suspend", "resume",
    "barrier", "fork",
];
const GLOBAL: &[&str] = &[
    "duration",
    "default_policy",
    "calibration",
    "lock_pages",
    "ftrace",
    "logdir",
    "log_basename",
    "log_size",
    "gnuplot",
    "frag",
    "cumulative_slack",
    "pi_enabled",
    "io_device",
    "mem_buffer_size",
];

/// Names of things that tasks share.
#[derive(Default)]
struct Shared {
    channels: BTreeMap<(char, String), ChannelId>,
    barriers: BTreeMap<String, BarrierId>,
    specs: BTreeMap<String, SpecId>,
}

/// Reads a workload; `name` goes into reports.
///
/// # Errors
/// [`RtAppError`] names the place, and the key that is not supported.
pub fn parse(name: &str, text: &str) -> Result<Workload, RtAppError> {
    let json: Json = serde_json::from_str(&cleaned(text)).map_err(|error| RtAppError::Json(error.to_string()))?;
    let top = object("the file", "the file", &json)?;
    for (key, _) in top {
        known("the file", key, TOP)?;
    }
    let find = |name: &str| top.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let mut default_policy = "SCHED_OTHER".to_owned();
    if let Some(global) = find("global") {
        for (key, value) in object("the file", "global", global)? {
            known("global", key, GLOBAL)?;
            if key == "default_policy" {
                default_policy = string("global", key, value)?.to_owned();
            }
        }
    }
    let tasks = object("the file", "tasks", find("tasks").ok_or(RtAppError::NoTasks)?)?;
    let mut workload = Workload::new(name, "rounds");
    let mut shared = Shared::default();
    for (at, (task, _)) in tasks.iter().enumerate() {
        shared.specs.insert(task.clone(), at);
        workload.tasks.push(TaskSpec::new(task, at));
        workload.programs.push(Vec::new());
    }
    for (at, (task, value)) in tasks.iter().enumerate() {
        read_task(&mut workload, &mut shared, at, task, object("tasks", task, value)?, &default_policy)?;
    }
    Ok(workload)
}

fn read_task(
    w: &mut Workload,
    shared: &mut Shared,
    at: SpecId,
    place: &str,
    entries: &[(String, Json)],
    default_policy: &str,
) -> Result<(), RtAppError> {
    let (mut instances, mut times, mut policy) = (1, -1.0, default_policy.to_owned());
    let mut phases = None;
    let mut delay = 0;
    for (key, value) in entries {
        match key.as_str() {
            "instance" => match number(place, key, value)? {
                many if many > INSTANCES_MAX => return Err(wrong(place, key, value, "at most 4096 instances")),
                some => instances = some as u64,
            },
            "loop" => times = number_or_negative(place, key, value)?,
            "policy" => policy = string(place, key, value)?.to_owned(),
            "priority" => w.tasks[at].nice = (number_or_negative(place, key, value)? as i32).clamp(-20, 19),
            "delay" => delay = micros(place, key, value)?,
            "cpus" => w.tasks[at].allowed = Some(cpus(place, key, value)?),
            "phases" => phases = Some(object(place, key, value)?),
            _ => {}
        }
    }
    match policy.as_str() {
        "SCHED_OTHER" | "SCHED_BATCH" => {}
        "SCHED_IDLE" => w.tasks[at].policy_idle = true,
        _ => {
            let expected = "SCHED_OTHER, SCHED_BATCH or SCHED_IDLE (only fair tasks are simulated)";
            return Err(RtAppError::Value {
                place: place.to_owned(),
                key: "policy".to_owned(),
                found: policy,
                expected,
            });
        }
    }
    let mut ops = if delay > 0 { vec![Op::Sleep(Dist::Fixed(delay))] } else { Vec::new() };
    ops.extend([Op::Loop(if times < 0.0 { 0 } else { times.max(1.0) as u64 }), Op::Mark]);
    match phases {
        None => events(w, shared, place, entries, TASK, instances, &mut ops)?,
        Some(phases) => {
            for (key, _) in entries {
                known(place, key, TASK)?;
            }
            for (name, phase) in phases {
                let place = format!("{place}.{name}");
                let phase = object(&place, name, phase)?;
                let times = phase.iter().find(|(key, _)| key == "loop");
                let times = times.map_or(Ok(1.0), |(key, value)| number_or_negative(&place, key, value))?;
                ops.push(Op::Loop(if times < 0.0 { 0 } else { times.max(1.0) as u64 }));
                ops.push(Op::Mark);
                events(w, shared, &place, phase, &["loop", "cpus"], instances, &mut ops)?;
                ops.extend([Op::Done, Op::End]);
            }
        }
    }
    if phases.is_none() {
        ops.push(Op::Done);
    }
    ops.push(Op::End);
    w.programs[at] = ops;
    let spec = w.tasks[at].clone();
    match instances {
        0 => w.tasks[at].start = Start::Forked,
        n => w.tasks.extend((1..n).map(|_| spec.clone())),
    }
    Ok(())
}

fn events(
    w: &mut Workload,
    shared: &mut Shared,
    place: &str,
    entries: &[(String, Json)],
    others: &[&str],
    instances: u64,
    ops: &mut Vec<Op>,
) -> Result<(), RtAppError> {
    for (key, value) in entries {
        if others.contains(&key.as_str()) {
            continue;
        }
        let Some(event) = EVENTS.iter().find(|event| key.starts_with(**event)) else {
            let all: Vec<&str> = others.iter().chain(EVENTS).copied().collect();
            known(place, key, &all)?;
            continue;
        };
        let mut channel = |w: &mut Workload, kind: char, name: &str| {
            *shared.channels.entry((kind, name.to_owned())).or_insert_with(|| w.channel(u64::from(kind == 'm')))
        };
        let how = How::default();
        match *event {
            "run" | "runtime" => ops.push(Op::Run(Dist::Fixed(micros(place, key, value)?))),
            "sleep" => ops.push(Op::Sleep(Dist::Fixed(micros(place, key, value)?))),
            "timer" => {
                let (_, period) = field(place, key, value, "period")?;
                match micros(place, key, period)? {
                    0 => return Err(wrong(place, key, value, "a period of 1 us or more")),
                    period => ops.push(Op::Period(period)),
                }
            }
            "lock" => ops.push(Op::Wait(channel(w, 'm', string(place, key, value)?))),
            "unlock" => ops.push(Op::Signal(channel(w, 'm', string(place, key, value)?), how)),
            "signal" | "resume" => ops.push(Op::Signal(channel(w, 'c', string(place, key, value)?), how)),
            "suspend" => {
                // Without a name it is the task's own.
                let name = Some(string(place, key, value)?).filter(|name| !name.is_empty());
                let own = place.split('.').next().unwrap_or(place);
                ops.push(Op::Wait(channel(w, 'c', name.unwrap_or(own))));
            }
            "broad" => ops.push(Op::Broadcast(channel(w, 'c', string(place, key, value)?), how)),
            "wait" | "sync" => {
                let (_, name) = field(place, key, value, "ref")?;
                let (_, mutex) = field(place, key, value, "mutex")?;
                let name = channel(w, 'c', string(place, key, name)?);
                let mutex = channel(w, 'm', string(place, key, mutex)?);
                if *event == "sync" {
                    ops.push(Op::Broadcast(name, how));
                }
                ops.extend([Op::Signal(mutex, how), Op::Wait(name), Op::Wait(mutex)]);
            }
            "barrier" => {
                let name = string(place, key, value)?;
                let id = *shared.barriers.entry(name.to_owned()).or_insert_with(|| {
                    w.barriers.push(0);
                    w.barriers.len() - 1
                });
                w.barriers[id] += instances as u32;
                ops.push(Op::Barrier(id));
            }
            _ => {
                let name = match value {
                    Json::Object(_) => string(place, key, field(place, key, value, "ref")?.1)?,
                    value => string(place, key, value)?,
                };
                let spec = shared.specs.get(name).copied();
                ops.push(Op::Fork(spec.ok_or_else(|| wrong(place, key, value, "the name of a task"))?));
            }
        }
    }
    Ok(())
}

fn known(place: &str, key: &str, names: &[&str]) -> Result<(), RtAppError> {
    if names.contains(&key) {
        return Ok(());
    }
    Err(RtAppError::Key {
        place: place.to_owned(),
        key: key.to_owned(),
        hint: did_you_mean(key, names),
        possible: names.join(", "),
    })
}

fn wrong(place: &str, key: &str, value: &Json, expected: &'static str) -> RtAppError {
    RtAppError::Value { place: place.to_owned(), key: key.to_owned(), found: value.to_string(), expected }
}

fn object<'a>(place: &str, key: &str, value: &'a Json) -> Result<&'a [(String, Json)], RtAppError> {
    match value {
        Json::Object(entries) => Ok(entries),
        other => Err(wrong(place, key, other, "an object")),
    }
}

fn field<'a>(place: &str, key: &str, value: &'a Json, name: &str) -> Result<(&'a str, &'a Json), RtAppError> {
    let entries = object(place, key, value)?;
    let found = entries.iter().find(|(key, _)| key == name);
    found.map(|(key, value)| (key.as_str(), value)).ok_or_else(|| {
        wrong(place, key, value, if name == "mutex" { "a \"mutex\" in it" } else { "a \"ref\" or a \"period\" in it" })
    })
}

fn string<'a>(place: &str, key: &str, value: &'a Json) -> Result<&'a str, RtAppError> {
    match value {
        Json::Text(text) => Ok(text),
        other => Err(wrong(place, key, other, "a name")),
    }
}

fn number_or_negative(place: &str, key: &str, value: &Json) -> Result<f64, RtAppError> {
    match value {
        Json::Number(number) if number.is_finite() => Ok(*number),
        other => Err(wrong(place, key, other, "a number")),
    }
}

fn number(place: &str, key: &str, value: &Json) -> Result<f64, RtAppError> {
    number_or_negative(place, key, value).and_then(|number| {
        if (0.0..1e12).contains(&number) { Ok(number) } else { Err(wrong(place, key, value, "a number from 0 on")) }
    })
}

/// µs in the file, ns here.
fn micros(place: &str, key: &str, value: &Json) -> Result<u64, RtAppError> {
    number(place, key, value).map(|us| (us * 1000.0) as u64)
}

fn cpus(place: &str, key: &str, value: &Json) -> Result<Cpumask, RtAppError> {
    let Json::List(list) = value else { return Err(wrong(place, key, value, "a list of CPUs")) };
    let cpu = |one: &Json| {
        let number = number(place, key, one)? as usize;
        Cpu::new(number).ok_or_else(|| wrong(place, key, one, "a CPU below 1024"))
    };
    list.iter().map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: &str = r#"{
        /* a periodic task in two phases, and one that it wakes */
        "tasks": {
            "light": {
                "cpus": [0, 1], "priority": -5, "loop": 10,
                "phases": {
                    "first": { "loop": 2, "run": 1000, "timer": { "ref": "tick", "period": 5000 } },
                    "then": { "lock": "m", "run0": 200, "run1": 300, "signal": "c", "unlock": "m", "suspend", }
                }
            },
            "worker": {
                "instance": 2,
                "lock": "m", "wait": { "ref": "c", "mutex": "m" }, "unlock": "m", "run": 400, "barrier": "all"
            }
        },
        "global": { "duration": 5, "calibration": "CPU0", "default_policy": "SCHED_OTHER" }
    }"#;

    #[test]
    fn phases_events_and_instances() {
        let w = parse("phases", PHASES).expect("a workload");
        assert_eq!(w.check(), Ok(()));
        assert_eq!((w.tasks.len(), w.programs.len(), w.barriers.clone()), (3, 2, vec![2]));
        let us = |us: u64| Dist::Fixed(us * 1000);
        let light = &w.programs[0];
        assert_eq!(
            light[..8],
            [
                Op::Loop(10),
                Op::Mark,
                Op::Loop(2),
                Op::Mark,
                Op::Run(us(1000)),
                Op::Period(5_000_000),
                Op::Done,
                Op::End
            ]
        );
        assert_eq!(light[10..13], [Op::Wait(0), Op::Run(us(200)), Op::Run(us(300))]);
        assert_eq!((w.tasks[0].nice, w.tasks[0].allowed.map(|mask| mask.to_string())), (-5, Some("0-1".to_owned())));
        assert_eq!(w.channels[0].tokens, 1, "a mutex begins free");
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (text, told) in [
            (r#"{"tasks": {"t": {"iorun": 5}}}"#, "\"iorun\" is not supported"),
            (r#"{"tasks": {"t": {"yield": ""}}}"#, "\"yield\""),
            (r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "run": 1}}}"#, "SCHED_FIFO"),
            (r#"{"tasks": {"t": {"run": "x"}}}"#, "expected a number"),
            (r#"{"tasks": {"t": {"fork": "u"}}}"#, "the name of a task"),
            (r#"{"tasks": {"t": {"instance": 100000000, "run": 1}}}"#, "at most 4096 instances"),
            (r#"{"tasks": {"t": {"timer": {"ref": "unique", "period": 0}}}}"#, "a period of 1 us or more"),
            (r#"{"global": {}}"#, "no \"tasks\""),
            (r#"{"tasks": {}, "globals": {}}"#, "did you mean \"global\""),
            ("{", "rt-app: EOF"),
        ] {
            let error = parse("t", text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
