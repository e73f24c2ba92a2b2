// SPDX-License-Identifier: GPL-2.0-or-later
//! What a replay adds up: fixed in size whatever the length of the trace, and the same type in memory, in JSON and in
//! a sum over files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::{Class, Difference, Distance, Load};
use crate::fair::{Exit, SisCounters};
use crate::histogram::Histogram;
use crate::machine::{Inputs, Step, Why};

pub use crate::replay::tally::{Agreement, ByKind, Share, Split, Tally};

/// Differences of one pair of returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The baseline's return.
    pub baseline: Exit,
    /// The patched implementation's return.
    pub patched: Exit,
    /// How many.
    pub count: Split,
    /// By distance of the two CPUs.
    pub distance: BTreeMap<Distance, u64>,
    /// By idleness.
    pub load: BTreeMap<Load, u64>,
    /// The patched CPU is outside of the wakee's affinity.
    pub wrong: u64,
    /// The baseline's CPU was, and the patched one is not.
    pub mended: u64,
    /// The first one: what `explain --wakeup` takes; in a sum over files the first file's that has one.
    pub example: u64,
    /// The file of the example, by its place in the list of files; only in a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_file: Option<usize>,
}

impl Group {
    /// An empty group with `example`.
    pub fn new(baseline: Exit, patched: Exit, example: u64) -> Self {
        Self {
            baseline,
            patched,
            count: Split::default(),
            distance: BTreeMap::new(),
            load: BTreeMap::new(),
            wrong: 0,
            mended: 0,
            example,
            example_file: None,
        }
    }

    /// Counts one difference.
    pub fn add(&mut self, class: Class, difference: Difference) {
        use crate::compare::Outside;
        self.count.add(class);
        *self.distance.entry(difference.distance).or_default() += 1;
        *self.load.entry(difference.load).or_default() += 1;
        self.wrong += u64::from(difference.outside.is_patched());
        self.mended += u64::from(difference.outside == Outside::Baseline);
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        other.distance.iter().for_each(|(&key, n)| *self.distance.entry(key).or_default() += n);
        other.load.iter().for_each(|(&key, n)| *self.load.entry(key).or_default() += n);
        self.wrong += other.wrong;
        self.mended += other.mended;
    }
}

/// Decisions about the tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommCount {
    /// The wakee's name; unprintable bytes escaped.
    pub comm: String,
    /// Decisions with a verdict.
    pub compared: u64,
    /// Decisions that differ.
    pub different: u64,
}

/// Number of names that a report keeps: those with the most differences.
pub const COMMS_KEPT: usize = 32;

/// A patched implementation against the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The patched implementation.
    pub patched: String,
    /// Verdicts.
    pub verdicts: ByKind<Tally>,
    /// Differences by pair of returns, in the order of the returns.
    pub groups: Vec<Group>,
    /// The names with the most differences, at most [`COMMS_KEPT`].
    pub comms: Vec<CommCount>,
}

impl Comparison {
    /// The group of a pair of returns, made with `example` if there is none.
    pub fn group(&mut self, baseline: Exit, patched: Exit, example: u64) -> &mut Group {
        let at = match self.groups.binary_search_by_key(&(baseline, patched), |group| (group.baseline, group.patched)) {
            Ok(at) => at,
            Err(at) => {
                self.groups.insert(at, Group::new(baseline, patched, example));
                at
            }
        };
        &mut self.groups[at]
    }

    fn absorb(&mut self, other: &Self, file: usize) {
        self.verdicts += other.verdicts;
        for theirs in &other.groups {
            let ours = self.group(theirs.baseline, theirs.patched, theirs.example);
            if ours.count.sum() == 0 {
                ours.example_file = Some(theirs.example_file.unwrap_or(file));
            }
            ours.absorb(theirs);
        }
        for theirs in &other.comms {
            match self.comms.iter_mut().find(|ours| ours.comm == theirs.comm) {
                Some(ours) => {
                    ours.compared += theirs.compared;
                    ours.different += theirs.different;
                }
                None => self.comms.push(theirs.clone()),
            }
        }
        keep_top(&mut self.comms);
    }
}

/// Sorts by differences, then by name, and keeps [`COMMS_KEPT`].
pub fn keep_top(comms: &mut Vec<CommCount>) {
    comms.sort_by(|a, b| b.different.cmp(&a.different).then_with(|| a.comm.cmp(&b.comm)));
    comms.truncate(COMMS_KEPT);
}

/// What an implementation is in this replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What the patched ones are compared with.
    Baseline,
    /// Compared with the baseline.
    Patched,
    /// The model of the recorded kernel: compared with what that kernel chose.
    Recorded,
}

impl Role {
    /// What one of this role hears of `step`. A fact overwrites the hidden state of the recorded kernel's model only; the
    /// others are seeded with it while they know nothing, or the difference under test would be erased.
    pub fn hears(self, step: &Step) -> Step {
        match (*step, self) {
            (Step::Fact(fact) | Step::Seed(fact), Self::Recorded) => Step::Fact(fact),
            (Step::Fact(fact) | Step::Seed(fact), Self::Baseline | Self::Patched) => Step::Seed(fact),
            (other, _) => other,
        }
    }
}

/// One implementation's own figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its spec.
    pub spec: String,
    /// What it is here.
    pub role: Role,
    /// SIS counters over all wakeups.
    pub sis: SisCounters,
    /// Wakeups that ended on the waker's CPU.
    #[serde(default)]
    pub ttwu_local: u64,
    /// CPUs that each wakeup scanned: its share of SIS Scanned.
    #[serde(default)]
    pub scanned: Histogram,
    /// Idle checks over all decisions.
    pub probes: u64,
    /// cpumask_and() and cpumask_andnot() calls over all decisions.
    pub mask_ops: u64,
    /// Decisions by how well they were known.
    pub classes: ByKind<BTreeMap<Class, u64>>,
    /// Decisions outside of the wakee's affinity.
    pub wrong: ByKind<u64>,
    /// The first of them.
    pub wrong_example: Option<u64>,
    /// Run queues taken beyond nr_cpu_ids.
    pub faults: u64,
    /// The first decision with one of them.
    pub fault_example: Option<u64>,
    /// Decisions by return.
    pub exits: BTreeMap<Exit, u64>,
    /// Agreement with the recorded choices.
    pub agreement: ByKind<Agreement>,
    /// The first wakeup, all inputs known, in which it chose another CPU than the recorded kernel.
    pub disagreement_example: Option<u64>,
}

impl Column {
    /// A column of zeroes.
    pub fn new(spec: String, role: Role) -> Self {
        Self {
            spec,
            role,
            sis: SisCounters::default(),
            ttwu_local: 0,
            scanned: Histogram::default(),
            probes: 0,
            mask_ops: 0,
            classes: ByKind::default(),
            wrong: ByKind::default(),
            wrong_example: None,
            faults: 0,
            fault_example: None,
            exits: BTreeMap::new(),
            agreement: ByKind::default(),
            disagreement_example: None,
        }
    }

    fn absorb(&mut self, other: &Self) {
        if self.spec != other.spec {
            // Recordings of several kernels: each has its own model.
            self.spec = "models of the recorded kernels".to_owned();
        }
        self.sis += other.sis;
        self.ttwu_local += other.ttwu_local;
        self.scanned.absorb(&other.scanned);
        self.probes += other.probes;
        self.mask_ops += other.mask_ops;
        for (kind, counts) in other.classes.kinds() {
            counts.iter().for_each(|(&class, n)| *self.classes.of(kind).entry(class).or_default() += n);
        }
        self.wrong += other.wrong;
        self.faults += other.faults;
        other.exits.iter().for_each(|(&exit, n)| *self.exits.entry(exit).or_default() += n);
        self.agreement += other.agreement;
        // Numbers of one file mean nothing in a sum.
        self.wrong_example = None;
        self.fault_example = None;
        self.disagreement_example = None;
    }
}

/// In how many decisions one kind of input was read, by how well it was known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputUse {
    /// The kind: the name of the bit in [`Inputs`], in lower case.
    pub input: String,
    /// Told by events.
    pub traced: u64,
    /// Computed from events by the kernel's own rule.
    pub derived: u64,
    /// The user's side file.
    #[serde(default)]
    pub stated: u64,
    /// A declared assumption.
    pub assumed: u64,
    /// Not known.
    pub unknown: u64,
}

impl InputUse {
    /// Decisions that read it.
    pub fn sum(&self) -> u64 {
        self.traced + self.derived + self.stated + self.assumed + self.unknown
    }
}

/// Everything that is counted in one file, or in all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Decisions: calls of select_task_rq_fair().
    pub decisions: ByKind<u64>,
    /// The first decision of each kind: what `explain --wakeup` takes. Not told in a sum over files.
    #[serde(default)]
    pub first: ByKind<Option<u64>>,
    /// Decisions by how well the wakee's affinity was known: where it is assumed, no placement can be seen to be wrong.
    #[serde(default)]
    pub affinity: ByKind<BTreeMap<Class, u64>>,
    /// Wakings that led to none, by reason.
    pub not_selected: BTreeMap<Why, u64>,
    /// Decisions whose recorded choice the trace does not tell.
    pub choice_unknown: ByKind<u64>,
    /// Decisions in which an assumed or unknown sync flag makes no difference to any implementation.
    pub sync_insensitive: u64,
    /// Decisions in which assumed or unknown wakee flips make no difference to any implementation.
    pub wide_insensitive: u64,
    /// Use of inputs by the baseline and the patched implementations (the worst of them counts).
    pub inputs: Vec<InputUse>,
    /// The implementations: the baseline, the patched ones, the model of the recorded kernel.
    pub columns: Vec<Column>,
    /// Each patched implementation against the baseline.
    pub comparisons: Vec<Comparison>,
    /// How often the recorded kernel chose prev_cpu: what the most trivial predictor reaches.
    pub always_prev: ByKind<Share>,
    /// How long woken tasks waited, as recorded; `None`: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// From a waking to the sched_switch that let the task run, ns, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// From sched_waking: with the decision and the way to the other CPU in it.
    pub from_waking_ns: Histogram,
    /// From sched_wakeup: once it was queued.
    pub from_wakeup_ns: Histogram,
}

impl Latency {
    fn absorb(&mut self, other: &Self) {
        self.from_waking_ns.absorb(&other.from_waking_ns);
        self.from_wakeup_ns.absorb(&other.from_wakeup_ns);
    }
}

impl Totals {
    /// Wakings without a decision.
    pub fn not_selected_sum(&self) -> u64 {
        self.not_selected.values().sum()
    }

    /// The model of the recorded kernel.
    pub fn recorded(&self) -> Option<&Column> {
        self.columns.iter().find(|column| column.role == Role::Recorded)
    }

    /// The baseline.
    pub fn baseline(&self) -> Option<&Column> {
        self.columns.iter().find(|column| column.role == Role::Baseline)
    }

    /// The patched implementations in the order of [`Self::comparisons`].
    pub fn patched(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.role == Role::Patched)
    }

    /// Adds the totals of file number `file`, replayed with the same baseline and patched implementations.
    pub fn absorb(&mut self, other: &Self, file: usize) {
        self.decisions += other.decisions;
        for (kind, counts) in other.affinity.kinds() {
            counts.iter().for_each(|(&class, n)| *self.affinity.of(kind).entry(class).or_default() += n);
        }
        other.not_selected.iter().for_each(|(&why, n)| *self.not_selected.entry(why).or_default() += n);
        self.choice_unknown += other.choice_unknown;
        self.sync_insensitive += other.sync_insensitive;
        self.wide_insensitive += other.wide_insensitive;
        for theirs in &other.inputs {
            let at = self.inputs.iter().position(|ours| ours.input == theirs.input).unwrap_or_else(|| {
                self.inputs.push(InputUse { input: theirs.input.clone(), ..InputUse::default() });
                self.inputs.len() - 1
            });
            let ours = &mut self.inputs[at];
            ours.traced += theirs.traced;
            ours.derived += theirs.derived;
            ours.stated += theirs.stated;
            ours.assumed += theirs.assumed;
            ours.unknown += theirs.unknown;
        }
        self.inputs.sort_by_key(|input| order(&input.input));
        for theirs in &other.columns {
            // Roles come in order, and only the patched ones can be several.
            let same =
                |ours: &Column| ours.role == theirs.role && (theirs.role != Role::Patched || ours.spec == theirs.spec);
            match self.columns.iter_mut().find(|ours| same(ours)) {
                Some(ours) => ours.absorb(theirs),
                None => self.columns.push(Column {
                    wrong_example: None,
                    fault_example: None,
                    disagreement_example: None,
                    ..theirs.clone()
                }),
            }
        }
        for theirs in &other.comparisons {
            let at = self.comparisons.iter().position(|ours| ours.patched == theirs.patched).unwrap_or_else(|| {
                self.comparisons.push(Comparison { patched: theirs.patched.clone(), ..Comparison::default() });
                self.comparisons.len() - 1
            });
            self.comparisons[at].absorb(theirs, file);
        }
        self.always_prev += other.always_prev;
        if let Some(theirs) = &other.latency {
            self.latency.get_or_insert_default().absorb(theirs);
        }
    }
}

/// The reason for which a waking led to no decision.
pub fn reason(why: Why) -> &'static str {
    match why {
        Why::Current => "wakes itself",
        Why::StillQueued => "still queued",
        Why::OnCpu => "still switching out",
        Why::Bound => "may run on one CPU only",
        Why::Unexplained => "not called (probe), reason unknown",
        Why::NotFair => "not a fair task",
        Why::Unknown => "state not known yet",
    }
}

/// The name of each single bit of `inputs`, in lower case.
pub fn input_names(inputs: Inputs) -> impl Iterator<Item = String> {
    inputs.iter_names().map(|(name, _)| name.to_lowercase())
}

fn order(input: &str) -> usize {
    input_names(Inputs::all()).position(|name| name == input).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Outside;

    fn file(example: u64, spec: &str) -> Totals {
        let difference =
            Difference { distance: Distance::OtherCore, load: Load::IdleToBusy, outside: Outside::Patched };
        let mut comparison = Comparison { patched: "p".to_owned(), ..Comparison::default() };
        comparison.group(Exit::Prev, Exit::IdleCpu, example).add(Class::Known, difference);
        comparison.comms.push(CommCount { comm: "a".to_owned(), compared: 2, different: 1 });
        Totals {
            decisions: ByKind { wakeups: 3, forks: 1, execs: 0 },
            columns: vec![Column::new("b".to_owned(), Role::Baseline), Column::new(spec.to_owned(), Role::Recorded)],
            comparisons: vec![comparison],
            inputs: vec![InputUse { input: "sync".to_owned(), assumed: 3, ..InputUse::default() }],
            ..Totals::default()
        }
    }

    #[test]
    fn a_sum_keeps_the_first_example_and_its_file() {
        let mut sum = Totals::default();
        sum.absorb(&Totals::default(), 0);
        sum.absorb(&file(7, "v6.1"), 1);
        sum.absorb(&file(3, "v6.1"), 2);
        assert_eq!(sum.decisions, ByKind { wakeups: 6, forks: 2, execs: 0 });
        let group = &sum.comparisons[0].groups[0];
        assert_eq!((group.example, group.example_file, group.count.known, group.wrong), (7, Some(1), 2, 2));
        assert_eq!(sum.comparisons[0].comms, [CommCount { comm: "a".to_owned(), compared: 4, different: 2 }]);
        assert_eq!(sum.inputs[0].assumed, 6);
        assert_eq!(sum.recorded().map(|column| column.spec.as_str()), Some("v6.1"));
    }

    #[test]
    fn several_recorded_kernels_share_a_column_by_another_name() {
        let mut sum = Totals::default();
        sum.absorb(&file(7, "v6.1"), 0);
        sum.absorb(&file(3, "v5.10"), 1);
        assert_eq!(sum.columns.len(), 2);
        assert_eq!(sum.recorded().map(|column| column.spec.as_str()), Some("models of the recorded kernels"));
    }

    #[test]
    fn totals_survive_json() {
        let totals = file(7, "v6.1");
        let text = serde_json::to_string(&totals).expect("totals are plain data");
        assert_eq!(serde_json::from_str::<Totals>(&text).expect("what was written"), totals);
    }

    #[test]
    fn only_the_names_with_most_differences_are_kept() {
        let mut comms: Vec<CommCount> =
            (0..100).map(|n| CommCount { comm: format!("{n:03}"), compared: 200, different: n / 2 }).collect();
        keep_top(&mut comms);
        assert_eq!(comms.len(), COMMS_KEPT);
        assert_eq!((comms[0].comm.as_str(), comms[1].comm.as_str()), ("098", "099"));
    }
}
