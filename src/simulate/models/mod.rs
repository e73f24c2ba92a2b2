// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads that are built in, with parameters. All times in them are our guesses of what the programs do.

mod build;

use std::collections::BTreeMap;

use crate::hint::did_you_mean;
use crate::simulate::program::Workload;
use crate::units::seconds;

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Count,
    /// A time, ns.
    Time,
}

/// A parameter of a model.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Where nobody says.
    pub default: u64,
    /// The largest.
    pub max: u64,
    /// In a few words.
    pub meaning: &'static str,
}

/// A built-in workload.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// In a line.
    pub meaning: &'static str,
    /// What one unit of throughput is called.
    pub unit: &'static str,
    /// Its parameters; the first is its load.
    pub params: &'static [Param],
    build: fn(&Values) -> Workload,
}

/// A value for each parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(BTreeMap<&'static str, u64>);

impl Values {
    /// One parameter's.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

const fn count(name: &'static str, default: u64, max: u64, meaning: &'static str) -> Param {
    Param { name, kind: Kind::Count, default, max, meaning }
}

const fn time(name: &'static str, default: u64, meaning: &'static str) -> Param {
    Param { name, kind: Kind::Time, default, max: 10_000_000_000, meaning }
}

/// The built-in workloads.
pub const MODELS: &[Model] = &[
    Model {
        name: "tbench",
        meaning: "client/server pairs over the loopback device: a request wakes the server, its reply the client",
        unit: "replies",
        params: &[
            count("clients", 16, 4096, "pairs"),
            time("client_run", 6_000, "between a reply and the next request"),
            time("server_run", 5_000, "between a request and its reply"),
            count("spread", 30, 100, "percent that these vary by, both ways"),
            count("long", 4, 1000, "each so-manyth reply has two segments, as 64 KiB read have; 0: none"),
            time("copy", 6_000, "copying a full segment out of the socket"),
            time("gap", 1_000, "from a reply's first segment to its second"),
            count("footprint", 48, 65_536, "KiB that a task has in caches"),
        ],
        build: build::tbench,
    },
    Model {
        name: "hackbench",
        meaning: "groups of senders that write to every receiver of their group",
        unit: "messages",
        params: &[
            count("groups", 4, 512, "groups"),
            count("fds", 20, 64, "senders, and as many receivers, in a group"),
            count("instances", 1, 16, "instances: tasks are called hackbench0, hackbench1, …"),
            time("write", 1_500, "to write a message"),
            time("read", 1_500, "to read one"),
            count("buffer", 40, 4096, "messages that a pipe or socket holds"),
            count("pipe", 1, 1, "1: pipes (sync wakeups), 0: sockets (from softirq)"),
            count("footprint", 48, 65_536, "KiB that a task has in caches"),
        ],
        build: build::hackbench,
    },
    Model {
        name: "schbench",
        meaning: "message threads that wake their workers; what counts is how late those run",
        unit: "requests",
        params: &[
            count("workers", 16, 1024, "workers of a message thread"),
            count("messages", 2, 256, "message threads"),
            time("think", 3_000_000, "a worker works for a request"),
            time("rest", 300_000, "it sleeps before it asks for the next one"),
            count("footprint", 256, 65_536, "KiB that a worker has in caches"),
        ],
        build: build::schbench,
    },
    Model {
        name: "pipe",
        meaning: "pairs of tasks that pass a token through two pipes, as perf bench sched pipe",
        unit: "round trips",
        params: &[
            count("pairs", 1, 2048, "pairs"),
            time("run", 1_000, "between reading and writing"),
            count("footprint", 16, 65_536, "KiB that a task has in caches"),
        ],
        build: build::pipe,
    },
    Model {
        name: "db",
        meaning: "instances of a database: users that compute, then commit through the instance's log writer",
        unit: "transactions",
        params: &[
            count("users", 16, 4096, "users of an instance"),
            count("instances", 2, 16, "instances: tasks are called db0, log0, db1, …"),
            time("run", 120_000, "a transaction computes, in parts"),
            count("parts", 4, 64, "parts, after each of which the user waits for a neighbour's lock"),
            time("log", 4_000, "the log writer works for a commit"),
            time("think", 60_000, "between transactions, exponential"),
            count("footprint", 512, 65_536, "KiB that a user has in caches"),
        ],
        build: build::db,
    },
    Model {
        name: "periodic",
        meaning: "tasks that run and sleep until their next period",
        unit: "activations",
        params: &[
            count("tasks", 8, 4096, "tasks"),
            time("run", 1_000_000, "each time"),
            time("period", 10_000_000, "from one activation to the next"),
            count("footprint", 64, 65_536, "KiB that a task has in caches"),
        ],
        build: build::periodic,
    },
    Model {
        name: "spin",
        meaning: "tasks that never sleep",
        unit: "rounds",
        params: &[
            count("tasks", 8, 4096, "tasks"),
            time("run", 10_000_000, "one round"),
            count("footprint", 64, 65_536, "KiB that a task has in caches"),
        ],
        build: build::spin,
    },
];

/// Why a workload cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No such model.
    #[error("no workload {found:?}{hint}; there are {possible}")]
    Name {
        /// What was asked for.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// All names.
        possible: String,
    },
    /// No such parameter.
    #[error("workload {model}: no parameter {found:?}{hint}; it has {possible}")]
    Param {
        /// The model.
        model: &'static str,
        /// What was given.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// All names.
        possible: String,
    },
    /// No value for it.
    #[error("workload {model}: {name}={found}: expected {expected}")]
    Value {
        /// The model.
        model: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        found: String,
        /// What should have been.
        expected: String,
    },
}

impl Model {
    /// The model of that name.
    ///
    /// # Errors
    /// [`ModelError::Name`].
    pub fn named(name: &str) -> Result<&'static Self, ModelError> {
        let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        MODELS.iter().find(|model| model.name == name).ok_or_else(|| ModelError::Name {
            found: name.to_owned(),
            hint: did_you_mean(name, &names),
            possible: names.join(", "),
        })
    }

    /// Values for every parameter: the given ones, as `NAME=VALUE` each, and the defaults.
    ///
    /// # Errors
    /// [`ModelError::Param`], [`ModelError::Value`].
    pub fn values(&self, given: &[(&str, &str)]) -> Result<Values, ModelError> {
        let mut values: BTreeMap<&'static str, u64> =
            self.params.iter().map(|param| (param.name, param.default)).collect();
        for (name, text) in given {
            let param = self.param(name)?;
            values.insert(param.name, self.value(param, text)?);
        }
        Ok(Values(values))
    }

    /// The parameter of that name.
    ///
    /// # Errors
    /// [`ModelError::Param`].
    pub fn param(&self, name: &str) -> Result<&'static Param, ModelError> {
        let names: Vec<&str> = self.params.iter().map(|param| param.name).collect();
        self.params.iter().find(|param| param.name == name).ok_or_else(|| ModelError::Param {
            model: self.name,
            found: name.to_owned(),
            hint: did_you_mean(name, &names),
            possible: names.join(", "),
        })
    }

    fn value(&self, param: &'static Param, text: &str) -> Result<u64, ModelError> {
        let value = match param.kind {
            Kind::Count => text.parse().ok(),
            Kind::Time => parse_time(text),
        };
        value.filter(|value| *value <= param.max).ok_or_else(|| ModelError::Value {
            model: self.name,
            name: param.name,
            found: text.to_owned(),
            expected: match param.kind {
                Kind::Count => format!("a number up to {}", param.max),
                Kind::Time => "a time such as 500ns, 12us or 3ms, up to 10s".to_owned(),
            },
        })
    }

    /// The workload with these values.
    pub fn build(&self, values: &Values) -> Workload {
        let mut workload = (self.build)(values);
        workload.unit = self.unit;
        let told = self
            .params
            .iter()
            .filter(|param| values.get(param.name) != param.default || param.name == self.params[0].name);
        let told: Vec<String> =
            told.map(|param| format!("{}={}", param.name, show(param, values.get(param.name)))).collect();
        workload.name = format!("{} {}", self.name, told.join(" "));
        workload
    }
}

/// A value as it can be given.
pub fn show(param: &Param, value: u64) -> String {
    match param.kind {
        Kind::Count => value.to_string(),
        Kind::Time => show_time(value),
    }
}

/// `12us`, in the largest unit that leaves a whole number.
pub fn show_time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None if ns >= 1_000_000 => format!("{}s", seconds(ns)),
        None => format!("{ns}ns"),
    }
}

/// A time with its unit, ns; a bare number is ns.
pub fn parse_time(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: u64 = match &text[end..] {
        "" | "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    let mut ns = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if !fraction.is_empty() {
        let digits: u64 = fraction.parse().ok()?;
        ns += digits.checked_mul(unit)? / 10u64.checked_pow(fraction.len() as u32)?;
    }
    Some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_builds_and_is_sound() {
        for model in MODELS {
            let workload = model.build(&model.values(&[]).expect("defaults"));
            assert_eq!(workload.check(), Ok(()), "{}", model.name);
            assert!(!workload.tasks.is_empty() && !workload.unit.is_empty(), "{}", model.name);
            for param in model.params {
                assert!(param.default <= param.max, "{} {}", model.name, param.name);
            }
        }
    }

    #[test]
    fn parameters_are_checked_by_name() {
        let tbench = Model::named("tbench").expect("a model");
        let values = tbench.values(&[("clients", "64"), ("client_run", "2.5us")]).expect("values");
        assert_eq!((values.get("clients"), values.get("client_run")), (64, 2_500));
        assert!(tbench.build(&values).name.contains("clients=64 client_run=2500ns"));
        let error = tbench.values(&[("client", "64")]).expect_err("no such parameter").to_string();
        assert!(error.contains("clients"), "{error}");
        assert!(tbench.values(&[("clients", "9999")]).is_err());
        assert!(tbench.values(&[("client_run", "7x")]).is_err());
        assert!(Model::named("tbnch").is_err_and(|error| error.to_string().contains("tbench")));
    }
}
