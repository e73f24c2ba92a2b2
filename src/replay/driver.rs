// SPDX-License-Identifier: GPL-2.0-or-later
//! One machine's notices × implementations → settled decisions, totals. Pure, and bounded in memory.

use std::collections::{BTreeMap, VecDeque};

use crate::compare::{Class, Verdict, compare};
use crate::fair::{Decision, Implementation, Step, Tried, Walk};
use crate::machine::{Inputs, Notice, Provenance, RecordedWakeup, State, TaskMask};
use crate::replay::contradiction::Contradicted;
use crate::replay::filter::Filter;
use crate::replay::insight::Insight;
use crate::replay::totals::{Column, CommCount, Comparison, InputUse, Role, Totals, keep_top};
use crate::units::{Comm, Cpu};
use crate::wakeup::WakeKind;

/// Decisions that may wait for their recorded choice at a time. A queued wakeup tells its choice when the target gets
/// to it, milliseconds later at most; a whole machine's worth of those fits many times over.
const PENDING_MAX: usize = 4096;

/// Names counted apart for each comparison; later ones are left out of the table of names (and nowhere else).
const COMMS_MAX: usize = 4096;

/// What the recorded kernel chose, as far as the trace tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choice {
    /// What the scheduling class returned.
    pub class_cpu: Option<Cpu>,
    /// Where the task went.
    pub final_cpu: Option<Cpu>,
}

impl Choice {
    /// The class's answer, else where the task went.
    pub fn cpu(&self) -> Option<Cpu> {
        self.class_cpu.or(self.final_cpu)
    }

    /// Whether it is `answer`: what the class returned, and where the task went. Not if nothing is known of it.
    pub(super) fn is_answer(&self, answer: (Cpu, Cpu)) -> bool {
        match (self.class_cpu, self.final_cpu) {
            (Some(cpu), _) => answer.0 == cpu,
            (None, Some(cpu)) => answer.1 == cpu,
            (None, None) => false,
        }
    }

    /// Whether `decision` is this choice; `None` where nothing is known of it.
    pub fn is(&self, decision: &Decision) -> Option<bool> {
        self.class_cpu
            .map(|cpu| cpu == decision.class_cpu)
            .or_else(|| self.final_cpu.map(|cpu| cpu == decision.final_cpu))
    }
}

/// One decision of every implementation, with all that will be known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The recorded call.
    pub recorded: RecordedWakeup,
    /// What the recorded kernel chose.
    pub choice: Choice,
    /// One for each implementation, in their order.
    pub decisions: Vec<Decision>,
    /// For each decision, whether it is outside of the wakee's affinity.
    pub wrong: Vec<bool>,
    /// How well the wakee's affinity is known: what `wrong` rests on.
    pub affinity: Class,
    /// For each patched implementation, against the baseline.
    pub verdicts: Vec<Verdict>,
    /// Inputs that are assumed or unknown, were tried with every value, and made no difference to any implementation.
    pub insensitive: Inputs,
    /// What the baseline and the patched implementations read, the insensitive inputs included.
    pub used: Used,
    /// What of the wakee's affinity a side file states.
    pub stated: Option<TaskMask>,
}

/// Inputs read, and how well they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Read.
    pub read: Inputs,
    /// Of those, what was derived, assumed, unknown.
    pub known: Provenance,
}

/// An implementation and what it is here.
pub struct Contestant {
    /// Baseline, patched, or the model of the recorded kernel.
    pub role: Role,
    /// The implementation.
    pub implementation: Box<dyn Implementation>,
}

/// Which wakeup `explain` wants to see with its walks.
#[derive(Debug, Clone)]
pub struct Explained {
    /// The state at its moment.
    pub state: State,
    /// The decision and all about it; the choice comes with [`Driver::finish`] at the latest.
    pub row: Row,
    /// For each implementation its walk.
    pub walks: Vec<Walk>,
}

/// Drives implementations with the notices of one machine.
pub struct Driver<F> {
    contestants: Vec<Contestant>,
    filter: Filter,
    totals: Totals,
    usage: [InputUse; 32],
    comms: Vec<BTreeMap<Comm, (u64, u64)>>,
    pending: VecDeque<Held>,
    /// A row that is done with: its lists are used again.
    spare: Option<Row>,
    facts: u64,
    assumed: Inputs,
    /// What is left of the wakeups to watch, in order.
    watch: VecDeque<u64>,
    /// Watched and met, and whether nothing more will be told of it.
    explained: VecDeque<(Explained, bool)>,
    insight: Insight,
    fault: Option<String>,
    contradicted: Contradicted,
    on_row: F,
}

/// A row that waits for its choice, or for the choice of one before it.
struct Held {
    row: Row,
    settled: bool,
}

impl<F: FnMut(&Row, &[Contestant])> Driver<F> {
    /// `contestants` are the baseline, the patched ones, and the model of the recorded kernel if there is one, in this
    /// order. `on_row` gets each counted decision in the order of the trace.
    pub fn new(contestants: Vec<Contestant>, filter: Filter, on_row: F) -> Self {
        let column = |one: &Contestant| Column::new(one.implementation.name().to_owned(), one.role);
        let patched: Vec<String> = contestants
            .iter()
            .filter(|one| one.role == Role::Patched)
            .map(|one| one.implementation.name().to_owned())
            .collect();
        let totals = Totals {
            columns: contestants.iter().map(column).collect(),
            comparisons: patched
                .iter()
                .map(|spec| Comparison { patched: spec.clone(), ..Comparison::default() })
                .collect(),
            ..Totals::default()
        };
        Self {
            comms: vec![BTreeMap::new(); patched.len()],
            contestants,
            filter,
            totals,
            usage: Default::default(),
            pending: VecDeque::new(),
            spare: None,
            facts: 0,
            assumed: Inputs::empty(),
            watch: VecDeque::new(),
            explained: VecDeque::new(),
            insight: Insight::default(),
            fault: None,
            contradicted: Contradicted::default(),
            on_row,
        }
    }

    /// Declares that nothing tells `inputs` of the recorded kernel: they are assumed wherever they are read.
    pub fn assume(&mut self, inputs: Inputs) {
        self.assumed = inputs;
    }

    /// Keeps the state and the walks of the wakeups with these numbers, ascending.
    pub fn watch(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.watch = numbers.into_iter().collect();
    }

    /// The next watched wakeup, once its recorded choice is settled, so that the rest of the trace tells nothing more
    /// about it.
    pub fn take_explained(&mut self) -> Option<Explained> {
        let is_settled = self.explained.front().is_some_and(|(_, settled)| *settled);
        if is_settled { self.explained.pop_front().map(|(explained, _)| explained) } else { None }
    }

    /// What went wrong inside of an implementation: nothing after it can be trusted.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Takes one notice; `state` is the machine's at its moment.
    pub fn notice(&mut self, state: &State, notice: &Notice) {
        match notice {
            Notice::Wakeup(recorded) => self.wakeup(state, recorded),
            Notice::Step(step) => self.step(state, step),
            &Notice::NotSelected { ts_ns, pid, comm, this_cpu, why } => {
                if self.filter.passes(ts_ns, pid, &comm, this_cpu) {
                    *self.totals.not_selected.entry(why).or_default() += 1;
                }
            }
            &Notice::Chosen { number, class_cpu, final_cpu } => {
                let choice = Choice { class_cpu, final_cpu };
                self.insight.chosen(number, choice);
                self.settle(number, choice);
            }
            &Notice::NeverChosen { number } => self.settle(number, Choice::default()),
        }
    }

    fn step(&mut self, state: &State, step: &Step) {
        if !self.insight.step(step) {
            return;
        }
        self.facts += u64::from(matches!(step, Step::Fact(_) | Step::Seed(_)));
        for one in &mut self.contestants {
            one.implementation.step(state, &one.role.hears(step));
        }
    }

    fn wakeup(&mut self, state: &State, recorded: &RecordedWakeup) {
        let watched = self.watch.front() == Some(&recorded.number);
        let recorded = &self.prepare(state, recorded);
        let mut walks = Vec::new();
        let (mut decisions, wrong, verdicts) = match self.spare.take() {
            Some(row) => (row.decisions, row.wrong, row.verdicts),
            None => (Vec::with_capacity(self.contestants.len()), Vec::new(), Vec::new()),
        };
        decisions.clear();
        let mut insensitive = Inputs::SYNC | Inputs::WAKEE_FLIPS;
        let mut used = Used::default();
        for one in &mut self.contestants {
            let mut walk = watched.then(Walk::default);
            let mut decided = match one.role {
                Role::Recorded => decide_and_ask(one, &mut self.insight, state, recorded, walk.as_mut()),
                _ => decide(one.implementation.as_mut(), state, recorded, walk.as_mut()),
            };
            decided.assume(self.assumed);
            if one.role != Role::Recorded {
                insensitive &= decided.insensitive;
                used.read |= decided.decision.read;
                used.known |= decided.leaned_on;
            }
            decisions.push(decided.decision);
            walks.extend(walk);
        }
        self.fault = self.contestants.iter().find_map(|one| one.implementation.fault());
        if let Some(fault) = &mut self.fault {
            *fault = format!("{fault}; at decision {}", recorded.number);
            return;
        }
        let counts = self.filter.passes(recorded.ts_ns, recorded.pid, &recorded.comm, recorded.wakeup.this_cpu);
        if !counts && !watched {
            return;
        }
        let choice = Choice::default();
        let affinity = Class::of(state.tasks[recorded.wakeup.p].known.of(Inputs::AFFINITY));
        let row =
            Row { recorded: *recorded, choice, decisions, wrong, affinity, verdicts, insensitive, used, stated: None };
        let row = self.judge(state, row);
        if watched {
            self.watch.pop_front();
            self.explained.push_back((Explained { state: state.clone(), row: row.clone(), walks }, false));
        }
        if counts {
            self.pending.push_back(Held { row, settled: false });
            if self.pending.len() > PENDING_MAX {
                if let Some(held) = self.pending.front_mut() {
                    held.settled = true;
                }
                self.release();
            }
        }
    }

    /// Puts in what earlier choices of the recorded kernel tell.
    fn prepare(&mut self, state: &State, recorded: &RecordedWakeup) -> RecordedWakeup {
        let mut recorded = *recorded;
        for step in self.insight.prepare(state, &mut recorded) {
            let hears = |one: &&mut Contestant| one.role == Role::Recorded || !matches!(step, Step::Learned(_));
            self.contestants.iter_mut().filter(hears).for_each(|one| one.implementation.step(state, &step));
        }
        recorded
    }

    fn judge(&self, state: &State, mut row: Row) -> Row {
        let cpus_ptr = &state.tasks[row.recorded.wakeup.p].cpus_ptr;
        let of = |role| self.contestants.iter().zip(&row.decisions).filter(move |(one, _)| one.role == role);
        row.verdicts.clear();
        if let Some((_, baseline)) = of(Role::Baseline).next() {
            row.verdicts.extend(of(Role::Patched).map(|(_, patched)| compare(state, cpus_ptr, baseline, patched)));
        }
        row.wrong.clear();
        row.wrong.extend(row.decisions.iter().map(|decision| decision.is_outside(cpus_ptr)));
        let task = &state.tasks[row.recorded.wakeup.p];
        row.stated = task.known.stated.contains(Inputs::AFFINITY).then(|| task.cpus_ptr.clone());
        row
    }

    fn settle(&mut self, number: u64, choice: Choice) {
        if let Some((explained, settled)) = self.explained.iter_mut().find(|(it, _)| it.row.recorded.number == number) {
            merge(&mut explained.row.choice, choice);
            *settled = true;
        }
        // Numbers ascend, but filtered ones are not here.
        if let Ok(at) = self.pending.binary_search_by_key(&number, |held| held.row.recorded.number) {
            merge(&mut self.pending[at].row.choice, choice);
            self.pending[at].settled = true;
            self.release();
        }
    }

    /// Counts and hands out what is settled at the front, in the order of the trace.
    fn release(&mut self) {
        while self.pending.front().is_some_and(|held| held.settled) {
            if let Some(Held { mut row, .. }) = self.pending.pop_front() {
                self.contradicted.weigh(&mut row);
                self.count(&row);
                (self.on_row)(&row, &self.contestants);
                self.spare = Some(row);
            }
        }
    }

    fn count(&mut self, row: &Row) {
        let kind = row.recorded.wakeup.kind;
        *self.totals.decisions.of(kind) += 1;
        self.totals.first.of(kind).get_or_insert(row.recorded.number);
        *self.totals.affinity.of(kind).entry(row.affinity).or_default() += 1;
        self.totals.sync_insensitive += u64::from(row.insensitive.contains(Inputs::SYNC));
        self.totals.wide_insensitive += u64::from(row.insensitive.contains(Inputs::WAKEE_FLIPS));
        match row.choice.cpu() {
            Some(cpu) => self.totals.always_prev.of(kind).add(cpu == row.recorded.wakeup.prev_cpu),
            None => *self.totals.choice_unknown.of(kind) += 1,
        }
        for ((column, decision), &wrong) in self.totals.columns.iter_mut().zip(&row.decisions).zip(&row.wrong) {
            count_column(column, row, decision, wrong);
        }
        self.count_inputs(row);
        for (at, verdict) in row.verdicts.iter().enumerate() {
            count_verdict(&mut self.totals.comparisons[at], row, verdict);
            count_comm(&mut self.comms[at], row, verdict);
        }
    }

    /// The worst of the baseline and the patched ones: they are what is compared.
    fn count_inputs(&mut self, row: &Row) {
        let Used { read, known } = row.used;
        let mut rest = read.bits();
        while rest != 0 {
            let at = rest.trailing_zeros();
            let bit = Inputs::from_bits_retain(1 << at);
            rest &= rest - 1;
            let usage = &mut self.usage[at as usize];
            if known.unknown.contains(bit) {
                usage.unknown += 1;
            } else if known.assumed.contains(bit) {
                usage.assumed += 1;
            } else if known.stated.contains(bit) {
                usage.stated += 1;
            } else if known.derived.contains(bit) {
                usage.derived += 1;
            } else {
                usage.traced += 1;
            }
        }
    }

    /// The trace has ended: whatever is still held will not be told.
    pub fn finish(mut self) -> Finished {
        self.pending.iter_mut().for_each(|held| held.settled = true);
        self.release();
        for (bit, mut usage) in Inputs::all().iter().zip(self.usage) {
            if usage.sum() > 0 {
                usage.input = crate::replay::totals::input_names(bit).collect();
                self.totals.inputs.push(usage);
            }
        }
        for (comparison, comms) in self.totals.comparisons.iter_mut().zip(self.comms) {
            let count = |(comm, (compared, different)): (Comm, (u64, u64))| CommCount {
                comm: comm.to_string(),
                compared,
                different,
            };
            comparison.comms = comms.into_iter().map(count).filter(|comm| comm.different > 0).collect();
            keep_top(&mut comparison.comms);
        }
        Finished {
            totals: self.totals,
            facts: self.facts,
            contradicted: self.contradicted,
            explained: self.explained.into_iter().map(|(explained, _)| explained).collect(),
        }
    }
}

/// What a replay leaves.
#[derive(Debug)]
pub struct Finished {
    /// The sums.
    pub totals: Totals,
    /// Facts about hidden state that the trace told; 0: everything ran free.
    pub facts: u64,
    /// Statements that the recording contradicts.
    pub contradicted: Contradicted,
    /// The watched wakeups that nobody has taken.
    pub explained: Vec<Explained>,
}

fn merge(into: &mut Choice, choice: Choice) {
    into.class_cpu = into.class_cpu.or(choice.class_cpu);
    into.final_cpu = into.final_cpu.or(choice.final_cpu);
}

fn is_sync_open(recorded: &RecordedWakeup) -> bool {
    let known = recorded.wakeup.known;
    (known.assumed | known.unknown).contains(Inputs::SYNC)
}

/// A decision, and what is open about it.
pub(crate) struct Decided {
    /// It leans only on what makes a difference.
    pub(crate) decision: Decision,
    /// What it read besides, too.
    pub(crate) leaned_on: Provenance,
    /// What was open and makes no difference.
    pub(crate) insensitive: Inputs,
}

impl Decided {
    /// What was read of `inputs` counts as assumed.
    pub(crate) fn assume(&mut self, inputs: Inputs) {
        let read = self.decision.read & inputs;
        for known in [&mut self.decision.leaned_on, &mut self.leaned_on] {
            let read = read - known.unknown;
            if !read.is_empty() {
                known.set_assumed(read);
            }
        }
    }
}

/// Decides, and where the sync flag or the wakee flips are open tries all their values first: what changes nothing was not
/// leaned on.
pub(crate) fn decide(
    implementation: &mut dyn Implementation,
    state: &State,
    recorded: &RecordedWakeup,
    walk: Option<&mut Walk>,
) -> Decided {
    let (decision, tried) = implementation.select_and_try(state, &recorded.wakeup, is_sync_open(recorded), walk);
    decided(recorded, decision, tried)
}

/// The same of the model of the recorded kernel, and asks what that kernel's choice will tell.
fn decide_and_ask(
    one: &mut Contestant,
    insight: &mut Insight,
    state: &State,
    recorded: &RecordedWakeup,
    walk: Option<&mut Walk>,
) -> Decided {
    let implementation = one.implementation.as_mut();
    let open = is_sync_open(recorded);
    let recent = implementation.hidden().and_then(|hidden| hidden.tasks.get(recorded.wakeup.p.index()));
    let recent = recent.map(|task| task.recent_used_cpu);
    // Only what is to be asked of some inputs has to be asked before: mostly the decision is all there is to it.
    if walk.is_none()
        && !Insight::asks_flips(state, recorded, implementation)
        && let Some((decision, tried)) =
            implementation.select_and_try_unless(Insight::ASKED, state, &recorded.wakeup, open)
    {
        insight.tried(state, recorded, (&decision, &tried), recent, implementation);
        return decided(recorded, decision, tried);
    }
    insight.ask(state, recorded, implementation);
    decide(implementation, state, recorded, walk)
}

fn decided(recorded: &RecordedWakeup, mut decision: Decision, tried: Tried) -> Decided {
    let wakeup = &recorded.wakeup;
    let mut leaned_on = decision.leaned_on;
    let mut insensitive = Inputs::empty();
    if let Some(sync_matters) = tried.sync {
        leaned_on |= wakeup.known.of(decision.read & Inputs::SYNC);
        if sync_matters || tried.both {
            // The walk with this value may never have looked at the flag, and yet it decides.
            decision.read |= Inputs::SYNC;
            leaned_on |= wakeup.known.of(Inputs::SYNC);
        } else {
            insensitive |= Inputs::SYNC;
        }
    }
    if tried.flips == Some(false) && !tried.both {
        insensitive |= Inputs::WAKEE_FLIPS;
    }
    decision.leaned_on = leaned_on;
    decision.leaned_on.set_traced(insensitive);
    Decided { decision, leaned_on, insensitive }
}

fn count_column(column: &mut Column, row: &Row, decision: &Decision, wrong: bool) {
    let kind = row.recorded.wakeup.kind;
    let class = Class::of(decision.leaned_on);
    *column.classes.of(kind).entry(class).or_default() += 1;
    column.sis += decision.sis;
    let local = kind == WakeKind::Ttwu && decision.final_cpu == row.recorded.wakeup.this_cpu;
    column.ttwu_local += u64::from(local);
    if kind == WakeKind::Ttwu {
        column.scanned.add(decision.sis.scanned);
    }
    column.probes += u64::from(decision.probes);
    column.mask_ops += u64::from(decision.mask_ops);
    column.faults += u64::from(decision.faults);
    if decision.faults > 0 {
        column.fault_example.get_or_insert(row.recorded.number);
    }
    *column.exits.entry(decision.exit).or_default() += 1;
    if wrong {
        *column.wrong.of(kind) += 1;
        column.wrong_example.get_or_insert(row.recorded.number);
    }
    if let Some(same) = row.choice.is(decision) {
        column.agreement.of(kind).of(class).add(same);
        if !same && class == Class::Known {
            column.disagreement_example.get_or_insert(row.recorded.number);
        }
    }
}

fn count_verdict(comparison: &mut Comparison, row: &Row, verdict: &Verdict) {
    let tally = comparison.verdicts.of(row.recorded.wakeup.kind);
    match *verdict {
        Verdict::Agree { class, same_exit } => {
            tally.same.add(class);
            tally.same_by_another_return += u64::from(!same_exit);
        }
        Verdict::Unknown { differs, .. } => {
            tally.unknown += 1;
            tally.unknown_differs += u64::from(differs);
        }
        Verdict::Diverge { class, baseline, patched, difference } => {
            tally.different.add(class);
            tally.wrong += u64::from(difference.outside.is_patched());
            comparison.group(baseline, patched, row.recorded.number).add(class, difference);
        }
    }
}

fn count_comm(comms: &mut BTreeMap<Comm, (u64, u64)>, row: &Row, verdict: &Verdict) {
    if matches!(verdict, Verdict::Unknown { .. }) {
        return;
    }
    let full = comms.len() >= COMMS_MAX;
    let count = match comms.get_mut(&row.recorded.comm) {
        Some(count) => count,
        None if full => return,
        None => comms.entry(row.recorded.comm).or_default(),
    };
    count.0 += 1;
    count.1 += u64::from(matches!(verdict, Verdict::Diverge { .. }));
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
