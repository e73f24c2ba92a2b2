// SPDX-License-Identifier: GPL-2.0-or-later
//! What one replayed recording gives, with everything that is needed to do it again.

use serde::{Deserialize, Serialize};

use crate::replay::totals::Totals;

/// The recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The file as it was named.
    pub file: String,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// The recorded kernel, `uname -r`, by the file or else by the topology snapshot; `None` where neither says.
    pub kernel: Option<String>,
    /// CPUs that the file has data of.
    pub cpus: u64,
    /// The trace clock; `None` where the file does not say.
    pub clock: Option<String>,
    /// Events read, all kinds.
    pub events: u64,
    /// Time of the first event, ns of the trace's clock.
    pub first_ns: u64,
    /// Time of the last event, ns of the trace's clock.
    pub last_ns: u64,
    /// Events that the recording says were lost; `None`: some were, and nobody counted.
    pub lost_events: Option<u64>,
    /// What a reader of the report should know about the recording: gaps, oddities, one sentence each.
    pub notes: Vec<String>,
}

/// The model of the recorded kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedModel {
    /// Its spec.
    pub spec: String,
    /// Whether it is a model of that very release; else it is the nearest older one, and its agreement with the
    /// recorded choices says nothing about fidelity.
    pub exact: bool,
    /// How the kernel maps to it, in a sentence.
    pub why: String,
}

/// How the recording was replayed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The machine in a line.
    pub topology: String,
    /// Where that comes from.
    pub topology_source: String,
    /// The baseline's spec.
    pub baseline: String,
    /// Specs of the patched implementations.
    pub patched: Vec<String>,
    /// The model of the recorded kernel.
    pub recorded: Option<RecordedModel>,
    /// Observed facts about hidden state. 0: every implementation ran free from an unknown start. Else the model of the
    /// recorded kernel follows them, and every other implementation is seeded with them once and then runs free.
    pub facts: u64,
    /// Jiffies per second.
    pub hz: u32,
    /// Where `hz` comes from.
    pub hz_source: String,
    /// Declared cost of one idle check in a scan, ns.
    pub scan_cost_ns: u64,
    /// Whether the recording's probes were ignored.
    pub ignore_probes: bool,
    /// Conditions on the counted decisions, as given.
    pub filters: Vec<String>,
}

/// One replayed recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The recording.
    pub recording: Recording,
    /// How it was replayed.
    pub setup: Setup,
    /// What came out.
    pub totals: Totals,
}
