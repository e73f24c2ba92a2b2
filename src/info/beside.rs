// SPDX-License-Identifier: GPL-2.0-or-later
//! What lies beside a recording: the machine's description, and files that people put there.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::topology::{self, Loaded, Release, TopologySource};

/// What was found beside the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// The machine description that a replay takes, if there is one that can be read.
    pub machine: Option<Machine>,
    /// Why the description that is there cannot be used.
    pub machine_error: Option<String>,
    /// Other files by name, and what they hold for a replay.
    pub files: Vec<(String, String)>,
}

/// A machine description.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Where it is.
    pub source: String,
    /// The machine in a line.
    pub summary: String,
    /// Online CPUs.
    pub online_cpus: u32,
    /// Possible CPUs.
    pub possible_cpus: u32,
    /// The kernel of the description, `uname -r`.
    pub kernel: Option<String>,
    /// /proc/version, which says more than the release.
    pub kernel_version: Option<String>,
    /// Scheduler features (sched_feat) told, on and off.
    pub features: u64,
    /// Jiffies per second, where derived.
    pub hz: Option<u32>,
    /// Whether the kernel's own list of sched domains is in it.
    pub has_domains: bool,
    /// Whether every CPU's max_idle_balance_cost is told (it bounds avg_idle).
    pub has_idle_costs: bool,
    /// Whether the CPUs are emulated, so that they stand still at times.
    pub emulated: bool,
}

/// Looks beside `file`; `given` is used instead of what lies there. `recorded`: the kernel that the file names.
pub fn look(file: &Path, given: Option<&TopologySource>, recorded: Option<&str>) -> Beside {
    let is_file = std::fs::metadata(file).is_ok_and(|meta| meta.is_file());
    let found = given.cloned().or_else(|| if is_file { TopologySource::beside(file) } else { None });
    let mut beside = Beside { files: if is_file { others(file) } else { Vec::new() }, ..Beside::default() };
    let Some(source) = found else { return beside };
    match topology::load_for(&source, recorded.and_then(Release::parse)) {
        Ok(loaded) => beside.machine = Some(machine(&loaded)),
        Err(error) => beside.machine_error = Some(error.to_string()),
    }
    beside
}

fn machine(loaded: &Loaded) -> Machine {
    let snapshot = &loaded.snapshot;
    Machine {
        source: loaded.origin(),
        summary: topology::summary(&loaded.topology),
        online_cpus: loaded.topology.online().weight(),
        possible_cpus: loaded.topology.nr_cpu_ids() as u32,
        kernel: snapshot.kernel_release.clone(),
        kernel_version: snapshot.kernel_version.clone(),
        features: snapshot.features.len() as u64,
        hz: snapshot.hz,
        has_domains: snapshot.domain_source.path().is_some(),
        has_idle_costs: !snapshot.max_idle_balance_cost_ns.is_empty()
            && snapshot.max_idle_balance_cost_ns.iter().all(Option::is_some),
        emulated: snapshot.emulated,
    }
}

/// Files that people keep beside a recording, by how their names begin.
const OTHERS: [(&str, &str); 6] = [
    ("state.tar", "schedstat and settings before and after: no replay reads them"),
    ("schedstat", "counters of /proc/schedstat: no replay reads them"),
    ("notes.", "notes for people"),
    ("SOURCE.", "notes for people"),
    ("README", "notes for people"),
    ("config", "a kernel configuration: no replay reads it"),
];

fn others(file: &Path) -> Vec<(String, String)> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(String, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (_, what) = OTHERS.iter().find(|(start, _)| name.starts_with(start))?;
            Some((name, (*what).to_owned()))
        })
        .collect();
    found.sort();
    found
}
