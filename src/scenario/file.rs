// SPDX-License-Identifier: GPL-2.0-or-later
//! Case files: TOML with what is not at its default, and one line per LLC and event.
//!
//! ```toml
//! version = 1
//! pair = ["v5.11", "v5.11+recent-used"]
//!
//! [machine]
//! llcs = ["node0: 0 1 2"]
//!
//! [[cpu]]
//! cpu = 1
//! load = "2"
//!
//! [[task]]
//! cpu = 0
//! cpus_ptr = "0-1"
//!
//! [sequence]
//! events = ["wake t0 from cpu1"]
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::{Case, CaseError, CpuState, Event, Settings, Shape, Switches, TaskState};
use crate::spec::SchedFeat;

/// The version of case files that this code writes, and the newest it reads.
pub const VERSION: u32 = 1;

/// What is looked at first, so that a file of a later version is refused by its number and not by a strange key.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default)]
    pair: Vec<String>,
    #[serde(default)]
    note: String,
    #[serde(default)]
    settings: Settings,
    machine: Shape,
    #[serde(default)]
    cpu: Vec<CpuState>,
    #[serde(default)]
    task: Vec<TaskState>,
    #[serde(default)]
    sequence: Sequence,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    events: Vec<Event>,
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// [`CaseError`] says where the text is no case, or what it names that is not there.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let toml = |error: toml::de::Error| CaseError::Toml(error.to_string().trim_end().to_owned());
        let Versioned { version } = toml::from_str(text).map_err(toml)?;
        if version == 0 || version > VERSION {
            return Err(CaseError::Version { found: version });
        }
        let File { pair, note, settings, machine, cpu, task, sequence, .. } = toml::from_str(text).map_err(toml)?;
        let case = Self { pair, note, settings, machine, cpus: cpu, tasks: task, events: sequence.events };
        case.check()?;
        Ok(case)
    }

    /// The case as a file that [`parse`](Self::parse) reads back to the same value.
    pub fn write(&self) -> String {
        let mut file = toml::Table::new();
        file.insert("version".to_owned(), i64::from(VERSION).into());
        if !self.pair.is_empty() {
            file.insert("pair".to_owned(), value(&self.pair));
        }
        if !self.note.is_empty() {
            file.insert("note".to_owned(), value(&self.note));
        }
        let settings = sparse(&self.settings, &Settings::default(), "");
        if !settings.is_empty() {
            file.insert("settings".to_owned(), settings.into());
        }
        file.insert("machine".to_owned(), value(&self.machine));
        let cpus: Vec<_> = self.cpus.iter().map(|cpu| sparse(cpu, &CpuState::default(), "cpu")).collect();
        if !cpus.is_empty() {
            file.insert("cpu".to_owned(), cpus.into());
        }
        let tasks: Vec<_> = self.tasks.iter().map(|task| sparse(task, &TaskState::default(), "cpu")).collect();
        if !tasks.is_empty() {
            file.insert("task".to_owned(), tasks.into());
        }
        file.insert("sequence".to_owned(), value(&Sequence { events: self.events.clone() }));
        toml::to_string_pretty(&file).expect("a table of plain values is TOML")
    }
}

fn value<T: Serialize>(of: &T) -> toml::Value {
    toml::Value::try_from(of).expect("case values are plain and below 2^63")
}

/// The fields of `of` that differ from `default`, and the field `always`.
fn sparse<T: Serialize>(of: &T, default: &T, always: &str) -> toml::Table {
    let table = |of| match value(of) {
        toml::Value::Table(table) => table,
        other => unreachable!("a struct serialises to a table, not {other}"),
    };
    let default = table(default);
    table(of).into_iter().filter(|(key, value)| key == always || default.get(key) != Some(value)).collect()
}

impl Serialize for Switches {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let on = self.on.iter_names().map(|(name, _)| name.to_owned());
        let off = self.off.iter_names().map(|(name, _)| format!("NO_{name}"));
        to.collect_seq(on.chain(off))
    }
}

impl<'de> Deserialize<'de> for Switches {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut switches = Self::default();
        for word in Vec::<String>::deserialize(from)? {
            let (name, set) = match word.strip_prefix("NO_") {
                Some(name) => (name, &mut switches.off),
                None => (word.as_str(), &mut switches.on),
            };
            let unknown = || serde::de::Error::custom(format!("{word:?} is no scheduler feature of the wakeup path"));
            *set |= SchedFeat::from_name(name).ok_or_else(unknown)?;
        }
        Ok(switches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"version = 1
pair = [
    "v5.11",
    "v5.11+recent-used",
]

[settings]
features = [
    "SIS_AVG_CPU",
    "NO_SIS_PROP",
]

[machine]
llcs = ["node0: 0 1 2"]

[[cpu]]
cpu = 1
load = "2"

[[task]]
cpu = 0
cpus_ptr = "0-1"

[sequence]
events = [
    "wake t0 from cpu1",
    "tick 3",
]
"#;

    #[test]
    fn a_file_is_written_as_it_was_read() {
        let case = Case::parse(SMALL).expect("a case");
        assert_eq!(case.cpus[0].load.fair, 2);
        assert_eq!(case.tasks[0].uclamp_max, 1024);
        assert_eq!(case.settings.features.off, SchedFeat::SIS_PROP);
        assert_eq!(case.write(), SMALL);
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        for (from, to, expected) in [
            ("version = 1", "version = 2", "version 2, expected 1"),
            ("wake t0", "wake t7", "t7, but there are only 1 tasks"),
            ("from cpu1", "from cpu3", "cpu3, but there are only 3 CPUs"),
            ("cpu = 1\n", "cpu = 9\n", "cpu9"),
            ("load = \"2\"", "lode = \"2\"", "lode"),
            ("NO_SIS_PROP", "NO_SUCH", "NO_SUCH"),
            ("0 1 2", "0 1 1", "CPU 1 is in two cores"),
            ("\"0-1\"", "\"0-x\"", "0-x"),
        ] {
            let error = Case::parse(&SMALL.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
