// SPDX-License-Identifier: GPL-2.0-or-later
//! What one replayed recording gives, with everything that is needed to do it again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::{Column as Counted, RecentMiss};
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
    /// The user's side file; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<AffinityUse>,
    /// Whose definition of a recent_used_cpu that missed the report's rows follow.
    #[serde(default)]
    pub recent_miss: RecentMiss,
    /// What the recorded machine itself counted, from before the recording to after it; `None`: not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedstat: Option<Counted>,
}

/// The side file and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffinityUse {
    /// The file as it was named.
    pub file: String,
    /// Its rules in order.
    pub rules: Vec<RuleCount>,
    /// Its groups in order.
    pub groups: Vec<GroupCount>,
}

/// One rule of a side file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleCount {
    /// The rule: `rule 2 (comm "srv*")`.
    pub rule: String,
    /// Tasks that it matched.
    pub tasks: u64,
    /// Tasks for which the kernel answers -EINVAL, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
}

/// One group of a side file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupCount {
    /// Its name.
    pub group: String,
    /// Members, with those that they forked.
    pub tasks: u64,
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
