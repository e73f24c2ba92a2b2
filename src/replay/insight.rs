// SPDX-License-Identifier: GPL-2.0-or-later
//! What the recorded kernel's choices tell about inputs that the trace does not have.
//!
//! Two inputs persist from one wakeup to the next, so that a choice tells something about the next ones: `nr_idle_scan`,
//! which only a balancing pass changes, and whether a kind of wakeup is synchronous, which is written in the waker's
//! code. For each wakeup the model of the recorded kernel is asked under both values; where the answers differ and the
//! kernel's choice is one of them, that one was true. Only choices of earlier wakeups are used: nothing is fitted to the
//! choice it is compared with.

use std::collections::{BTreeMap, VecDeque};

use crate::fair::{Decision, Implementation, Tried};
use crate::inputs::Inputs;
use crate::machine::{HiddenFact, RecordedWakeup, State, Step};
use crate::replay::driver::Choice;
use crate::replay::flips::{self, Flips};
use crate::replay::hindsight::Hindsight;
use crate::topology::SharedId;
use crate::units::{Comm, Cpu};
use crate::wakeup::{WakeKind, Wakeup};

/// How long a choice bounds nr_idle_scan, ms: about as long as periodic balancing lets it stand.
const BOUND_MS: u64 = 16;
/// As far as that a derived nr_idle_scan may be wrong, whatever one choice seems to say; two are believed.
const NEAR: u32 = 2;
/// Choices this close together speak of the same value, jiffies.
const SOON: u64 = 4;
/// Wakeups that may wait for their choice.
const HELD_MAX: usize = 4096;
/// Kinds of wakeups whose sync flag is learned; later ones use what their waker's or all wakeups tell.
const KINDS_MAX: usize = 4096;
/// The weight of one observation of a sync flag; those before lose an eighth with each.
const OBSERVED: i32 = 1024;

/// What is known of one LLC's nr_idle_scan.
#[derive(Debug, Clone, Copy, Default)]
struct Scan {
    /// From the machine's balancing.
    derived: Option<u32>,
    /// At least this.
    least: Option<Bound>,
    /// At most this.
    most: Option<Bound>,
    /// What the implementations were told last.
    told: Option<u32>,
    /// The trace tells it.
    traced: bool,
}

/// What choices tell of an nr_idle_scan.
#[derive(Debug, Clone, Copy)]
struct Bound {
    value: u32,
    /// When the last choice told it, jiffies.
    since: u64,
    /// Choices that told something like it, one soon after the other.
    times: u32,
}

/// A wakeup whose choice will tell something.
#[derive(Debug, Clone, Copy)]
struct Asked {
    number: u64,
    jiffies: u64,
    scan: Option<ScanQuestion>,
    sync: Option<SyncQuestion>,
}

#[derive(Debug, Clone, Copy)]
struct ScanQuestion {
    shared: SharedId,
    /// The smallest nr_idle_scan with which the scan hits.
    needs: u32,
    hit: (Cpu, Cpu),
    miss: (Cpu, Cpu),
}

#[derive(Debug, Clone, Copy)]
struct SyncQuestion {
    kind: Kind,
    with: (Cpu, Cpu),
    without: (Cpu, Cpu),
}

/// What wakeups have in common that come from the same place in the code, as far as a trace shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    in_task: bool,
    /// In an interrupt the waker is whoever was interrupted, and says nothing.
    waker: Option<Comm>,
    wakee: Option<Comm>,
}

/// Learns from choices. Memory is bounded.
#[derive(Debug, Clone, Default)]
pub struct Insight {
    scans: Vec<Scan>,
    asked: VecDeque<Asked>,
    /// Positive: synchronous.
    sync: BTreeMap<Kind, i32>,
    hindsight: Hindsight,
    flips: Flips,
}

impl Insight {
    /// Inputs whose other values have to be tried before the decision.
    pub const ASKED: Inputs = Inputs::NR_IDLE_SCAN.union(Inputs::SCAN_COST);

    /// Takes note of what the machine tells; whether the implementations shall hear it now. A derived nr_idle_scan is held
    /// back until [`Self::prepare`], unless the trace tells the true one.
    pub fn step(&mut self, step: &Step) -> bool {
        match *step {
            Step::Balance { shared, nr_idle_scan } => {
                let scan = self.scan(shared);
                scan.derived = Some(nr_idle_scan);
                scan.traced
            }
            Step::Fact(HiddenFact::NrIdleScan(shared, _)) => {
                self.scan(shared).traced = true;
                true
            }
            _ => true,
        }
    }

    fn scan(&mut self, shared: SharedId) -> &mut Scan {
        if self.scans.len() <= shared {
            self.scans.resize(shared + 1, Scan::default());
        }
        &mut self.scans[shared]
    }

    /// Before a wakeup is decided: puts what was learned of its sync flag into it, and returns the steps that every
    /// implementation has to take.
    pub fn prepare(&mut self, state: &State, recorded: &mut RecordedWakeup) -> Vec<Step> {
        // Where the user assumes that all wakeups are synchronous, they are.
        if recorded.wakeup.known.assumed.contains(Inputs::SYNC) && !recorded.wakeup.sync {
            recorded.wakeup.sync = self.guess(&kind_of(recorded)).unwrap_or(false);
        }
        let lasts = BOUND_MS * u64::from(state.hz) / 1000;
        let mut steps: Vec<Step> = self.hindsight.take().collect();
        steps.extend(self.flips.take().into_iter().map(Step::Learned));
        for (shared, scan) in self.scans.iter_mut().enumerate() {
            if let Some(nr_idle_scan) = scan.estimate(state.jiffies, lasts) {
                scan.told = Some(nr_idle_scan);
                steps.push(Step::Balance { shared, nr_idle_scan });
            }
        }
        steps
    }

    /// Asks the model of the recorded kernel under other values; before it decides.
    pub fn ask(&mut self, state: &State, recorded: &RecordedWakeup, model: &mut dyn Implementation) {
        let wakeup = &recorded.wakeup;
        if wakeup.kind != WakeKind::Ttwu {
            return;
        }
        let decision = model.peek(state, wakeup, None);
        self.hindsight.ask(state, recorded, &decision, model);
        self.flips.ask(state, recorded, model);
        let scan = self.ask_scan(state, wakeup, &decision, model);
        let sync = wakeup.known.assumed.contains(Inputs::SYNC).then(|| {
            let flipped = Wakeup { sync: !wakeup.sync, ..*wakeup };
            let ours = decision.answer();
            let other = if asks_sync(&decision) { model.peek(state, &flipped, None).answer() } else { ours };
            SyncQuestion::new(recorded, ours, other)
        });
        self.hold(state, recorded, scan, sync.flatten());
    }

    /// Whether the choice will tell something of wakee flips, for which both answers of wake_wide() have to be tried.
    pub fn asks_flips(state: &State, recorded: &RecordedWakeup, model: &dyn Implementation) -> bool {
        flips::lacks(state, &recorded.wakeup, model).is_some()
    }

    /// [`Self::ask`] of a decision that read none of [`Self::ASKED`]: what was tried of it has all the answers. `recent` is
    /// the wakee's recent_used_cpu before it.
    pub fn tried(
        &mut self,
        state: &State,
        recorded: &RecordedWakeup,
        (decision, tried): (&Decision, &Tried),
        recent: Option<Cpu>,
        model: &dyn Implementation,
    ) {
        self.hindsight.decided(recorded, decision, recent, model);
        let wakeup = &recorded.wakeup;
        if wakeup.kind != WakeKind::Ttwu || !wakeup.known.assumed.contains(Inputs::SYNC) || !asks_sync(decision) {
            return;
        }
        let sync = tried.other_sync.and_then(|other| SyncQuestion::new(recorded, decision.answer(), other));
        self.hold(state, recorded, None, sync);
    }

    fn hold(
        &mut self,
        state: &State,
        recorded: &RecordedWakeup,
        scan: Option<ScanQuestion>,
        sync: Option<SyncQuestion>,
    ) {
        if scan.is_none() && sync.is_none() {
            return;
        }
        if self.asked.len() >= HELD_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { number: recorded.number, jiffies: state.jiffies, scan, sync });
    }

    fn ask_scan(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        decision: &Decision,
        model: &mut dyn Implementation,
    ) -> Option<ScanQuestion> {
        if !decision.read.contains(Inputs::NR_IDLE_SCAN) {
            return None;
        }
        let topology = &state.topology;
        let mut all: Vec<SharedId> =
            [wakeup.this_cpu, wakeup.prev_cpu].iter().filter_map(|&cpu| topology.llc_shared(cpu)).collect();
        all.dedup();
        if all.iter().any(|&shared| self.scan(shared).traced) {
            return None;
        }
        let mut with = |nr_idle_scan: u32| {
            for &shared in &all {
                model.step(state, &Step::Balance { shared, nr_idle_scan });
            }
            model.peek(state, wakeup, None)
        };
        let weight = all.iter().map(|&shared| topology.shared_span(shared).weight()).max().unwrap_or(0);
        let (hit, miss) = (with(weight).answer(), with(0).answer());
        let mut question = None;
        if hit != miss {
            let (mut low, mut high) = (0, weight);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if with(middle).answer() == miss { low = middle } else { high = middle }
            }
            question = topology.llc_shared(hit.0).map(|shared| ScanQuestion { shared, needs: high, hit, miss });
        }
        for &shared in &all {
            let told = self.scan(shared).told.unwrap_or(0);
            model.step(state, &Step::Balance { shared, nr_idle_scan: told });
        }
        question
    }

    /// What the kernel chose.
    pub fn chosen(&mut self, number: u64, choice: Choice) {
        self.hindsight.chosen(number, choice);
        self.flips.chosen(number, choice);
        let Ok(at) = self.asked.binary_search_by_key(&number, |asked| asked.number) else { return };
        let Some(asked) = self.asked.remove(at) else { return };
        if let Some(question) = asked.scan {
            let scan = self.scan(question.shared);
            if choice.is_answer(question.hit) {
                scan.least = Some(Bound::told(scan.least, question.needs, asked.jiffies));
                scan.most = scan.most.filter(|most| most.value >= question.needs);
            } else if choice.is_answer(question.miss) {
                scan.most = Some(Bound::told(scan.most, question.needs - 1, asked.jiffies));
                scan.least = scan.least.filter(|least| least.value < question.needs);
            }
        }
        if let Some(question) = asked.sync {
            let (with, without) = (choice.is_answer(question.with), choice.is_answer(question.without));
            if with != without {
                self.learn(question.kind, if with { OBSERVED } else { -OBSERVED });
            }
        }
    }

    fn learn(&mut self, kind: Kind, value: i32) {
        for kind in kind.wider() {
            let full = self.sync.len() >= KINDS_MAX;
            match self.sync.get_mut(&kind) {
                Some(known) => *known += value - *known / 8,
                None if full => {}
                None => {
                    self.sync.insert(kind, value);
                }
            }
        }
    }

    fn guess(&self, kind: &Kind) -> Option<bool> {
        kind.wider().iter().find_map(|kind| self.sync.get(kind)).map(|&value| value > 0)
    }
}

/// Whether the sync flag can matter: a walk that did not ask for it goes the same way whatever it is.
fn asks_sync(decision: &Decision) -> bool {
    decision.read.is_empty() || decision.read.contains(Inputs::SYNC)
}

impl SyncQuestion {
    /// `ours` with the flag that the wakeup has, `other` with the other one; `None` where they are the same.
    fn new(recorded: &RecordedWakeup, ours: (Cpu, Cpu), other: (Cpu, Cpu)) -> Option<Self> {
        let (with, without) = if recorded.wakeup.sync { (ours, other) } else { (other, ours) };
        (ours != other).then(|| Self { kind: kind_of(recorded), with, without })
    }
}

impl Kind {
    /// The kind itself, then what it is part of.
    fn wider(&self) -> [Self; 4] {
        [
            *self,
            Self { waker: None, ..*self },
            Self { wakee: None, ..*self },
            Self { waker: None, wakee: None, ..*self },
        ]
    }
}

fn kind_of(recorded: &RecordedWakeup) -> Kind {
    let in_task = recorded.wakeup.in_task;
    Kind { in_task, waker: in_task.then_some(recorded.waker_comm), wakee: Some(recorded.comm) }
}

impl Bound {
    fn told(before: Option<Self>, value: u32, since: u64) -> Self {
        let times = before.filter(|before| since.saturating_sub(before.since) <= SOON).map_or(0, |before| before.times);
        Self { value, since, times: times.saturating_add(1) }
    }
}

impl Scan {
    /// The derived value, within what choices tell, if it is another than was told.
    fn estimate(&self, jiffies: u64, lasts: u64) -> Option<u32> {
        if self.traced {
            return None;
        }
        let counts = |bound: &Bound| {
            let is_near = self.derived.is_none_or(|derived| derived.abs_diff(bound.value) <= NEAR);
            jiffies.saturating_sub(bound.since) <= lasts && (is_near || bound.times > 1)
        };
        let mut value = self.derived.or(self.told)?;
        if let Some(least) = self.least.filter(counts) {
            value = value.max(least.value);
        }
        if let Some(most) = self.most.filter(counts) {
            value = value.min(most.value);
        }
        (self.told != Some(value)).then_some(value)
    }
}

#[cfg(test)]
#[path = "insight_tests.rs"]
mod tests;
