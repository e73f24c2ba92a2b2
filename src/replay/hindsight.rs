// SPDX-License-Identifier: GPL-2.0-or-later
//! What the model of the recorded kernel takes over from that kernel's choices.
//!
//! Where the two differ, the model's hidden state would go on from a decision that was never made. Two parts of it are
//! put right once the choice is known, for later decisions only: the wakee's recent_used_cpu, which depends on how far
//! the search came, and what scans cost, which old kernels measured and no trace tells.

use std::collections::VecDeque;

use crate::fair::{Decision, Exit, Implementation, RecentRule};
use crate::inputs::Inputs;
use crate::machine::{HiddenFact, RecordedWakeup, State, Step, TaskId};
use crate::replay::driver::Choice;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// Wakeups that may wait for their choice.
const HELD_MAX: usize = 4096;
/// No scan costs more, ns.
const COST_MAX_NS: u64 = 1 << 36;
/// An idle check costs at most this, ns.
const PROBE_MAX_NS: u64 = 1 << 24;

/// A decision whose choice will tell something.
#[derive(Debug, Clone, Copy)]
struct Held {
    number: u64,
    recent: Option<RecentQuestion>,
    cost: Option<CostQuestion>,
}

#[derive(Debug, Clone, Copy)]
struct RecentQuestion {
    p: TaskId,
    rule: RecentRule,
    this_cpu: Cpu,
    prev_cpu: Cpu,
    /// The wakee's recent_used_cpu before.
    before: Cpu,
    /// The model stored prev_cpu in it.
    written: bool,
    ours: (Cpu, Cpu),
}

/// Up to a limit of avg_scan_cost the scan comes to one CPU, above it to another.
#[derive(Debug, Clone, Copy)]
struct CostQuestion {
    cpu: Cpu,
    /// What the model had.
    cost_ns: u64,
    limit_ns: u64,
    hit: (Cpu, Cpu),
    miss: (Cpu, Cpu),
}

/// Takes choices, gives what they tell of hidden state. Memory is bounded.
#[derive(Debug, Clone, Default)]
pub(super) struct Hindsight {
    held: VecDeque<Held>,
    lessons: Vec<HiddenFact>,
    /// What the model takes an idle check to cost, ns.
    probe_ns: u64,
}

impl Hindsight {
    /// Before the model decides: `decision` is what it will come to.
    pub(super) fn ask(
        &mut self,
        state: &State,
        recorded: &RecordedWakeup,
        decision: &Decision,
        model: &mut dyn Implementation,
    ) {
        let cost = self.ask_cost(state, &recorded.wakeup, decision, model);
        let before = recent_of(model, recorded.wakeup.p);
        let recent = before.and_then(|before| RecentQuestion::new(&recorded.wakeup, decision, before, model));
        self.hold(recorded.number, recent, cost);
    }

    /// The same after it has decided, where it did not ask for the cost of scans; `before` is the wakee's recent_used_cpu
    /// as it was.
    pub(super) fn decided(
        &mut self,
        recorded: &RecordedWakeup,
        decision: &Decision,
        before: Option<Cpu>,
        model: &dyn Implementation,
    ) {
        let recent = before.and_then(|before| RecentQuestion::new(&recorded.wakeup, decision, before, model));
        self.hold(recorded.number, recent, None);
    }

    fn hold(&mut self, number: u64, recent: Option<RecentQuestion>, cost: Option<CostQuestion>) {
        if recent.is_none() && cost.is_none() {
            return;
        }
        if self.held.len() >= HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(Held { number, recent, cost });
    }

    fn ask_cost(
        &mut self,
        state: &State,
        wakeup: &Wakeup,
        decision: &Decision,
        model: &mut dyn Implementation,
    ) -> Option<CostQuestion> {
        if !decision.read.contains(Inputs::SCAN_COST) {
            return None;
        }
        let cpu = wakeup.this_cpu;
        let hidden = model.hidden()?;
        self.probe_ns = hidden.clock.probe_ns;
        let one = hidden.cpus.get(cpu.index())?;
        let known = one.known.of(Inputs::SCAN_COST);
        if known.is_known() && known.derived.is_empty() {
            // A probe tells it.
            return None;
        }
        let cost_ns = one.avg_scan_cost_ns;
        let mut with = |ns: u64| {
            if let Some(hidden) = model.hidden_mut() {
                hidden.cpus[cpu.index()].avg_scan_cost_ns = ns;
            }
            model.peek(state, wakeup, None).answer()
        };
        let (hit, miss) = (with(0), with(COST_MAX_NS));
        let mut limit_ns = 0;
        if hit != miss {
            // The highest bit, and some below it.
            let mut bit = COST_MAX_NS >> 1;
            while bit > limit_ns >> 4 {
                if with(limit_ns | bit) != miss {
                    limit_ns |= bit;
                }
                bit >>= 1;
            }
        }
        with(cost_ns);
        (hit != miss).then_some(CostQuestion { cpu, cost_ns, limit_ns, hit, miss })
    }

    /// What the kernel chose.
    pub(super) fn chosen(&mut self, number: u64, choice: Choice) {
        let Ok(at) = self.held.binary_search_by_key(&number, |held| held.number) else { return };
        let Some(held) = self.held.remove(at) else { return };
        if let Some(recent) = held.recent {
            self.lessons.extend(recent.lesson(choice));
        }
        if let Some(cost) = held.cost {
            self.learn_cost(&cost, choice);
        }
    }

    /// The CPU's average is put where it gives the choice; what an idle check is taken to cost goes the same way by a
    /// quarter, so that as many choices correct it up as down.
    fn learn_cost(&mut self, question: &CostQuestion, choice: Choice) {
        let &CostQuestion { cpu, cost_ns, limit_ns, .. } = question;
        let (hit, miss) = (choice.is_answer(question.hit), choice.is_answer(question.miss));
        if hit && cost_ns > limit_ns {
            self.probe_ns -= self.probe_ns / 5;
            self.lessons.push(HiddenFact::AvgScanCost(cpu, limit_ns));
        } else if miss && cost_ns <= limit_ns {
            self.probe_ns += self.probe_ns.div_ceil(4);
            self.lessons.push(HiddenFact::AvgScanCost(cpu, limit_ns + limit_ns / 8 + 1));
        } else {
            return;
        }
        self.lessons.push(HiddenFact::ProbeCost(self.probe_ns.clamp(1, PROBE_MAX_NS)));
    }

    /// What was learned since the last time.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Step> + '_ {
        self.lessons.drain(..).map(Step::Learned)
    }
}

fn recent_of(model: &dyn Implementation, p: TaskId) -> Option<Cpu> {
    Some(model.hidden()?.tasks.get(p.index())?.recent_used_cpu)
}

impl RecentQuestion {
    fn new(wakeup: &Wakeup, decision: &Decision, before: Cpu, model: &dyn Implementation) -> Option<Self> {
        let &Wakeup { p, this_cpu, prev_cpu, kind, .. } = wakeup;
        let rule = model.recent_rule()?;
        // The waker's own is written by the same decision in old kernels, and is right whatever was chosen.
        if kind != WakeKind::Ttwu || p == wakeup.current || decision.exit == Exit::Slow {
            return None;
        }
        let written = decision.writes.p_recent_used_cpu.is_some();
        Some(Self { p, rule, this_cpu, prev_cpu, before, written, ours: decision.answer() })
    }

    /// The CPU that recent_used_cpu is after the kernel's choice, if that is not what the model made of it.
    fn lesson(&self, choice: Choice) -> Option<HiddenFact> {
        let cpu = choice.cpu().filter(|_| !choice.is_answer(self.ours))?;
        let is_end = cpu == self.this_cpu || cpu == self.prev_cpu;
        let stored = match self.rule {
            RecentRule::AtHit => cpu == self.before && !is_end,
            // Whatever is neither end of the wakeup was found by a search that had come so far.
            RecentRule::BeforeTest => !is_end || self.written,
        };
        let value = if stored { self.prev_cpu } else { self.before };
        (stored != self.written).then_some(HiddenFact::RecentUsedCpu(self.p, value))
    }
}

#[cfg(test)]
#[path = "hindsight_tests.rs"]
mod tests;
