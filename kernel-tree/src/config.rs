// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel configuration by which a tree is read.

use std::collections::BTreeMap;

/// Options that are on unless a `.config` says otherwise, with their values. The same as behind the golden vectors.
const DEFAULTS: &[(&str, &str)] = &[
    ("CONFIG_SMP", "1"),
    ("CONFIG_64BIT", "1"),
    ("CONFIG_SCHED_SMT", "1"),
    ("CONFIG_SCHED_MC", "1"),
    ("CONFIG_SCHED_CLUSTER", "1"),
    ("CONFIG_NUMA", "1"),
    ("CONFIG_NUMA_BALANCING", "1"),
    ("CONFIG_HZ", "250"),
    ("CONFIG_CPU_IDLE", "1"),
    ("CONFIG_SCHEDSTATS", "1"),
];

/// Options that are as stated here whatever a `.config` says: the stand-ins are written for them.
const FIXED: &[(&str, &str)] = &[
    ("CONFIG_SMP", "1"),
    ("CONFIG_64BIT", "1"),
    // Masks as wide as nr_cpu_ids.
    ("CONFIG_CPUMASK_OFFSTACK", "1"),
    ("CONFIG_JUMP_LABEL", "1"),
    // task_cpu() reads the task's own thread_info.
    ("CONFIG_THREAD_INFO_IN_TASK", "1"),
    ("CONFIG_SCHEDSTATS", "1"),
];

/// Options of a `.config` that change the wakeup path, and are taken from it. All others are left as they are.
const TAKEN: &[&str] = &[
    "CONFIG_SCHED_SMT",
    "CONFIG_SCHED_MC",
    "CONFIG_SCHED_CLUSTER",
    "CONFIG_NUMA",
    "CONFIG_NUMA_BALANCING",
    "CONFIG_HZ",
    "CONFIG_CPU_IDLE",
    "CONFIG_PREEMPT_RT",
    "CONFIG_SCHED_CACHE",
    "CONFIG_SCHED_HRTICK",
    "CONFIG_NO_HZ_COMMON",
    "CONFIG_CFS_BANDWIDTH",
];

/// Options that the stand-ins do not cover: named in a note where a `.config` has them on.
const UNSUPPORTED: &[&str] = &[
    "CONFIG_FAIR_GROUP_SCHED",
    "CONFIG_UCLAMP_TASK",
    "CONFIG_SCHED_CORE",
    "CONFIG_ENERGY_MODEL",
    "CONFIG_SCHED_CLASS_EXT",
    "CONFIG_SCHED_PROXY_EXEC",
];

/// Macros that are no options but steer `#if`s.
const MACROS: &[(&str, &str)] = &[("BITS_PER_LONG", "64"), ("NR_CPUS", "1024"), ("__KERNEL__", "1")];

/// A configuration: values of options that are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    options: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        let pairs = DEFAULTS.iter().chain(FIXED);
        Self { options: pairs.map(|&(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }
}

impl Config {
    /// Takes the options that matter from the text of a kernel `.config`. Returns the configuration and the options that
    /// are on there and that the stand-ins leave off.
    pub fn from_dot_config(text: &str) -> (Self, Vec<String>) {
        let mut config = Self::default();
        let mut left_off = Vec::new();
        let set: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.trim().split_once('=')).collect();
        for &name in TAKEN {
            match set.get(name) {
                Some(&("y" | "m")) => config.set(name, "1"),
                Some(value) => config.set(name, value),
                None => {
                    config.options.remove(name);
                }
            }
        }
        for &(name, value) in FIXED {
            config.set(name, value);
        }
        if !config.is_on("CONFIG_HZ") {
            config.set("CONFIG_HZ", "250");
        }
        left_off.extend(UNSUPPORTED.iter().filter(|&&name| set.get(name) == Some(&"y")).map(|&name| name.to_owned()));
        (config, left_off)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.options.insert(name.to_owned(), value.to_owned());
    }

    /// Whether option `name` is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The options that are on, with their values, in order of their names.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What the preprocessor knows of `name` without any file.
    pub fn macro_value(&self, name: &str) -> Option<&str> {
        let fixed = || MACROS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        self.options.get(name).map(String::as_str).or_else(fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_config_decides_what_it_may() {
        let (config, left_off) = Config::from_dot_config(
            "# CONFIG_NUMA is not set\nCONFIG_SCHED_SMT=y\nCONFIG_HZ=1000\nCONFIG_UCLAMP_TASK=y\nCONFIG_FOO=y\n",
        );
        assert!(config.is_on("CONFIG_SCHED_SMT") && config.is_on("CONFIG_SMP"));
        assert!(!config.is_on("CONFIG_NUMA") && !config.is_on("CONFIG_FOO") && !config.is_on("CONFIG_UCLAMP_TASK"));
        assert_eq!(config.macro_value("CONFIG_HZ"), Some("1000"));
        assert_eq!(left_off, ["CONFIG_UCLAMP_TASK"]);
    }
}
