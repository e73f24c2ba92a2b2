// SPDX-License-Identifier: GPL-2.0-or-later
//! The lines of a vector file as they are written, format `sis-vectors/1`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use crate::cpumask::Cpumask;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Topology(Topology),
    Case(Case),
    Sequence(Sequence),
}

/// The first line: what the file is.
#[derive(Debug, Clone, Deserialize)]
pub struct Header {
    /// `sis-vectors/1`.
    pub schema: String,
    /// The family, named like its folder.
    pub family: String,
    /// The variants that were run.
    pub variants: Vec<String>,
    /// Jiffies per second.
    #[serde(rename = "HZ")]
    pub hz: u32,
    /// 1, 2, 3 or `seq`.
    pub level: serde_json::Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub id: u32,
    pub nr_cpu_ids: usize,
    pub online: Mask,
    pub cpu_smt_mask: Vec<Mask>,
    pub cpu_to_node: Vec<u32>,
    pub sched_smt_present: bool,
    pub sched_asym_cpucapacity: bool,
    pub domains: Vec<Domain>,
    pub llcs: Vec<Mask>,
    #[serde(default)]
    pub asym_spans: Vec<Mask>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Domain {
    pub level: u32,
    pub name: String,
    pub span: Mask,
    pub flags: Vec<String>,
    pub imbalance_pct: u32,
    pub imb_numa_nr: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub id: u32,
    pub topology: u32,
    pub sample: String,
    pub state: State,
    pub call: Call,
    pub results: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sequence {
    pub id: u32,
    pub topology: u32,
    pub state: State,
    pub steps: Vec<Step>,
    pub results: Vec<StepOutcomes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub cpu: Columns,
    pub has_idle_cores: Vec<u8>,
    #[serde(default)]
    pub nr_idle_scan: Vec<u32>,
    pub features: BTreeMap<String, bool>,
    pub clock: u64,
    pub probe_ns: u64,
    pub clock_read_ns: u64,
    pub mask_op_ns: u64,
    pub jiffies: u64,
    #[serde(default = "yes")]
    pub in_task: bool,
    pub sysctl_sched_preferred: Option<u32>,
    pub sysctl_sched_allowed: Option<u32>,
    pub tasks: Vec<Task>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Columns {
    pub nr_running: Option<Vec<u32>>,
    pub h_nr_running: Option<Vec<u32>>,
    pub h_nr_queued: Option<Vec<u32>>,
    pub h_nr_runnable: Option<Vec<u32>>,
    pub idle_h_nr_running: Option<Vec<u32>>,
    #[serde(default)]
    pub curr_idle: Mask,
    #[serde(default)]
    pub ttwu_pending: Mask,
    #[serde(default)]
    pub vcpu_preempted: Mask,
    pub avg_idle: Option<Vec<u64>>,
    pub avg_scan_cost: Option<Vec<u64>>,
    pub load_avg: Option<Vec<u64>>,
    pub runnable_load_avg: Option<Vec<u64>>,
    pub runnable_avg: Option<Vec<u64>>,
    pub util_avg: Option<Vec<u64>>,
    pub util_est_enqueued: Option<Vec<u64>>,
    pub cpu_capacity: Option<Vec<u64>>,
    pub cpu_capacity_orig: Option<Vec<u64>>,
    pub idle_stamp: Option<Vec<u64>>,
    pub exit_latency: Option<Vec<i64>>,
    pub wake_stamp: Option<Vec<u64>>,
    pub wake_avg_idle: Option<Vec<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub cpus_ptr: Mask,
    pub nr_cpus_allowed: u32,
    pub cpus_preferred: Option<Mask>,
    #[serde(default)]
    pub affinity_unequal: bool,
    pub flags: Vec<String>,
    pub on_rq: u8,
    pub task_cpu: u16,
    pub recent_used_cpu: u16,
    pub wakee_flips: u32,
    pub wakee_flip_decay_ts: u64,
    pub last_wakee: i64,
    pub numa_preferred_nid: i32,
    pub last_update_time: u64,
    pub load_avg: u64,
    pub util_avg: u64,
    pub util_est: u64,
    #[serde(default)]
    pub runnable_avg: u64,
    #[serde(default)]
    pub policy_idle: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    #[serde(rename = "fn")]
    pub function: String,
    pub wake_flags: Option<String>,
    pub p: u32,
    pub current: u32,
    pub this_cpu: u16,
    pub prev: Prev,
    pub target: Option<u16>,
    #[serde(default)]
    pub sync: bool,
}

/// `prev` of a call: a CPU, or `"last"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Prev {
    Cpu(u16),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Step {
    Cpu(CpuStep),
    Wake(WakeStep),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuStep {
    pub cpu: u16,
    pub nr_running: u32,
    pub idle_h_nr_running: u32,
    pub curr_idle: bool,
    pub h_nr_runnable: Option<u32>,
    pub avg_idle: Option<u64>,
    pub wake_avg_idle: Option<u64>,
    pub wake_stamp: Option<u64>,
    #[serde(default)]
    pub update_idle_core: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct WakeStep {
    pub jiffies: u64,
    #[serde(flatten)]
    pub call: FlatCall,
}

/// A [`Call`] among other fields.
#[derive(Debug, Deserialize)]
pub(super) struct FlatCall {
    #[serde(rename = "fn")]
    pub function: String,
    pub wake_flags: Option<String>,
    pub p: u32,
    pub current: u32,
    pub this_cpu: u16,
    pub prev: Prev,
    pub target: Option<u16>,
    #[serde(default)]
    pub sync: bool,
}

impl From<FlatCall> for Call {
    fn from(call: FlatCall) -> Self {
        let FlatCall { function, wake_flags, p, current, this_cpu, prev, target, sync } = call;
        Self { function, wake_flags, p, current, this_cpu, prev, target, sync }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepOutcomes {
    pub variants: Vec<String>,
    pub steps: Vec<Option<Outcome>>,
}

/// What a call gave; fields that a line does not have are not compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcome {
    #[serde(default)]
    pub variants: Vec<String>,
    /// The resolved prev_cpu, in sequences.
    pub prev: Option<u16>,
    /// The CPU returned; `None`: the step was no wakeup.
    pub cpu: Option<u16>,
    pub probes: String,
    pub p_recent_used_cpu: Option<u16>,
    pub current_recent_used_cpu: Option<u16>,
    pub wakee_flips: Option<u32>,
    pub wakee_flip_decay_ts: Option<u64>,
    pub last_wakee: Option<i64>,
    pub avg_scan_cost: Option<u64>,
    pub has_idle_cores: Vec<u8>,
    pub clock: Option<u64>,
    pub mask_ops: Option<u32>,
    pub wake_stamp: Option<u64>,
    pub wake_avg_idle: Option<u64>,
    #[serde(default)]
    pub oob: u32,
}

/// A mask in hexadecimal, `0xff`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mask(pub Cpumask);

impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bad = || de::Error::custom(format!("mask {text:?}: expected a hexadecimal number such as 0xff"));
        let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty()).ok_or_else(bad)?;
        let mut words = Vec::new();
        for chunk in digits.as_bytes().rchunks(16) {
            let chunk = std::str::from_utf8(chunk).map_err(|_| bad())?;
            words.push(u64::from_str_radix(chunk, 16).map_err(|_| bad())?);
        }
        Cpumask::from_words(&words).map(Mask).ok_or_else(bad)
    }
}
