// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures: plain data, the same in memory and in JSON.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::fair::Exit;
use crate::fidelity::told::Told;
use crate::machine::ErrorRow;
use crate::replay::totals::{ByKind, Share};

/// What a recording's probes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// No probes, or they were ignored.
    None,
    /// The wakee's fields and the answer (`sis_in`, `sis_out`).
    Task,
    /// And each answer of available_idle_cpu() (`sis_avail_out`).
    Scan,
    /// The wakee's fields, the answer, and every run queue (`sis_rqN`).
    Full,
}

impl Level {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Task => "task",
            Self::Scan => "scan",
            Self::Full => "full",
        }
    }
}

/// How well everything was known that a decision leaned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// Everything that it read was traced or derived.
    Known,
    /// It read something assumed or unknown; every value of that was tried, and none changes the decision.
    Insensitive,
    /// Something assumed, nothing unknown.
    Assumed,
    /// Something unknown.
    Unknown,
}

/// One share for each [`Ground`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByGround {
    /// [`Ground::Known`].
    pub known: Share,
    /// [`Ground::Insensitive`].
    pub insensitive: Share,
    /// [`Ground::Assumed`].
    pub assumed: Share,
    /// [`Ground::Unknown`].
    pub unknown: Share,
}

impl ByGround {
    /// The share of `ground`.
    pub fn of(&mut self, ground: Ground) -> &mut Share {
        match ground {
            Ground::Known => &mut self.known,
            Ground::Insensitive => &mut self.insensitive,
            Ground::Assumed => &mut self.assumed,
            Ground::Unknown => &mut self.unknown,
        }
    }

    /// The shares with their names.
    pub fn named(&self) -> [(&'static str, Share); 4] {
        [
            ("all inputs known", self.known),
            ("the open ones change nothing", self.insensitive),
            ("leaned on assumed inputs", self.assumed),
            ("leaned on unknown inputs", self.unknown),
        ]
    }

    /// Over all grounds.
    pub fn sum(&self) -> Share {
        let mut sum = self.known;
        sum += self.insensitive;
        sum += self.assumed;
        sum += self.unknown;
        sum
    }
}

impl AddAssign for ByGround {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.insensitive += other.insensitive;
        self.assumed += other.assumed;
        self.unknown += other.unknown;
    }
}

/// The figures of one kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Calls of select_task_rq_fair().
    pub decisions: u64,
    /// Of those, the recording does not tell the choice: in no share.
    pub choice_unknown: u64,
    /// The model's choice is the kernel's.
    pub agreement: ByGround,
    /// Of the disagreements, proven to be races: run queues changed between probe and answer.
    pub races: u64,
    /// prev_cpu is the kernel's choice.
    pub always_prev: Share,
    /// The target of the search is the kernel's choice; only wakeups have one.
    pub always_target: Share,
    /// The model's choice is the kernel's, of the decisions in which the kernel did not choose prev_cpu.
    pub moved: Share,
}

impl Kind {
    /// Agreement, all decisions.
    pub fn share(&self) -> Share {
        self.agreement.sum()
    }

    /// Agreement of the decisions that are no proven race.
    pub fn without_races(&self) -> Share {
        let all = self.share();
        Share { same: all.same, of: all.of.saturating_sub(self.races) }
    }

    /// How much of the way from always-prev to perfect: (agreement - always prev) / (100 % - always prev); `None` where
    /// always-prev is perfect or nothing is known.
    pub fn skill(&self) -> Option<f64> {
        let (agreement, prev) = (self.share().percent()?, self.always_prev.percent()?);
        (prev < 100.0).then(|| (agreement - prev) / (100.0 - prev))
    }
}

impl AddAssign for Kind {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.choice_unknown += other.choice_unknown;
        self.agreement += other.agreement;
        self.races += other.races;
        self.always_prev += other.always_prev;
        self.always_target += other.always_target;
        self.moved += other.moved;
    }
}

/// Agreement of the decisions in which the model took one return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitShare {
    /// The model's return.
    pub exit: Exit,
    /// Agreement.
    pub agreement: Share,
}

/// Decisions by where the kernel seems to have returned and where the model did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confusion {
    /// The kernel's, as far as its choice tells.
    pub recorded: Told,
    /// The model's.
    pub model: Exit,
    /// How many.
    pub count: u64,
}

/// Disagreements with the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause, by [`crate::fidelity::why::Why::name`].
    pub cause: String,
    /// What it means.
    pub meaning: String,
    /// The decisions: what `explain --wakeup` takes.
    pub decisions: Vec<u64>,
}

/// What proves one race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaceProof {
    /// The decision.
    pub decision: u64,
    /// The CPU whose run queue changed.
    pub cpu: u64,
    /// How: the event's name.
    pub event: String,
    /// When, ns of the trace's clock.
    pub ts_ns: u64,
    /// When the kernel began to be asked (the first probe, else the waking), ns.
    pub from_ns: u64,
    /// When it had answered, ns.
    pub until_ns: u64,
}

/// One kind of input over all decisions of an implementation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFigures {
    /// The kind: the name of the bit, in lower case.
    pub input: String,
    /// Decisions that read it, told by events.
    pub traced: u64,
    /// Computed from events by the kernel's own rule.
    pub derived: u64,
    /// Every value gives the same decision.
    pub insensitive: u64,
    /// A stated assumption.
    pub assumed: u64,
    /// Not known.
    pub unknown: u64,
    /// Disagreements among all that read it.
    pub differ: u64,
    /// Disagreements that another value of it alone explains.
    pub explains: u64,
}

/// One implementation over one recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// Its spec.
    pub spec: String,
    /// It is the model of the recorded kernel; else it is here for comparison.
    pub recorded: bool,
    /// By kind.
    pub kinds: ByKind<Kind>,
    /// By the model's return, wakeups, forks and execs.
    pub exits: Vec<ExitShare>,
    /// Where the kernel seems to have returned, by the model's return; wakeups.
    pub confusion: Vec<Confusion>,
    /// All disagreements by cause, the proven races among them; only of the model of the recorded kernel.
    pub residue: Vec<Cause>,
    /// The proofs of the races.
    pub races: Vec<RaceProof>,
    /// Inputs that were read.
    pub inputs: Vec<InputFigures>,
}

/// What is derived without probes, against what probes saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Whether a CPU is idle.
    pub idle: Share,
    /// nr_running.
    pub nr_running: Share,
    /// curr.
    pub curr: Share,
    /// nr_idle_scan as the model has it, with what earlier choices taught.
    pub nr_idle_scan: Share,
    /// The same give or take 1.
    pub nr_idle_scan_near: Share,
    /// Errors of averages (PELT) over time.
    pub pelt: Vec<ErrorRow>,
}

/// One recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFidelity {
    /// The file as it was named.
    pub file: String,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// The recorded kernel, `uname -r`.
    pub kernel: Option<String>,
    /// The machine in a line.
    pub topology: String,
    /// What the probes that were used tell.
    pub level: Level,
    /// Probes were there and were ignored.
    pub ignore_probes: bool,
    /// Why there is no fidelity figure: the recorded kernel has no model of its own.
    pub no_model: Option<String>,
    /// The model of the recorded kernel, then those that were asked for besides.
    pub implementations: Vec<Implementation>,
    /// Derived state against what probes saw; `None` where the recording has no probes to check it by.
    pub derived: Option<Derived>,
    /// The order of the scan against the recorded answers of available_idle_cpu().
    pub scan: Option<crate::fidelity::avail::ScanFigures>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl FileFidelity {
    /// The model of the recorded kernel, where it has one of its own.
    pub fn model(&self) -> Option<&Implementation> {
        self.implementations.iter().find(|one| one.recorded)
    }
}
