// SPDX-License-Identifier: GPL-2.0-or-later
//! What explains a disagreement: the inputs of which another value makes the model choose as the kernel did.
//!
//! Each input is tried by itself, all else left as it was; a pair only where one run queue has to be busy for another to
//! be looked at. That another value would do does not prove that it was the true one: it says where to look.

use crate::cpumask::Cpumask;
use crate::fair::{Implementation, Model, Walk, WalkStep};
use crate::inputs::Inputs;
use crate::machine::{State, TaskId};
use crate::replay::Choice;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// Costs of a scan that are tried: powers of two ns, to one second.
const COST_BITS: u32 = 30;
/// Changes of affinity that are tried one after the other.
const MASKS_MAX: usize = 16;

/// A cause of a disagreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// A run queue changed between probe and answer, and an event shows it.
    Race,
    /// WF_SYNC.
    Sync,
    /// wake_wide(): the wakee flips.
    WakeWide,
    /// nr_idle_scan.
    NrIdleScan,
    /// The limit of a scan by avg_idle and avg_scan_cost (SIS_PROP).
    ScanBudget,
    /// has_idle_cores.
    HasIdleCores,
    /// recent_used_cpu.
    RecentUsedCpu,
    /// The comparison of loads in wake_affine_weight().
    Weight,
    /// nr_running of this_cpu or prev_cpu.
    NrRunning,
    /// Who is SCHED_IDLE.
    Policy,
    /// Whether a CPU was idle.
    Idle,
    /// The wakee's affinity.
    Affinity,
    /// in_task().
    Context,
    /// Loads and idle states in the slow path.
    SlowPath,
    /// No other value of one input gives the kernel's choice.
    Unexplained,
}

impl Why {
    /// All but [`Self::Race`] and [`Self::Unexplained`], those that recordings tell least first.
    pub const INPUTS: [Self; 13] = [
        Self::Sync,
        Self::WakeWide,
        Self::NrIdleScan,
        Self::HasIdleCores,
        Self::RecentUsedCpu,
        Self::Weight,
        Self::ScanBudget,
        Self::NrRunning,
        Self::Context,
        Self::Idle,
        Self::Policy,
        Self::SlowPath,
        Self::Affinity,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Sync => "sync",
            Self::WakeWide => "wake_wide",
            Self::NrIdleScan => "nr_idle_scan",
            Self::ScanBudget => "scan budget",
            Self::HasIdleCores => "has_idle_cores",
            Self::RecentUsedCpu => "recent_used_cpu",
            Self::Weight => "wake_affine_weight",
            Self::NrRunning => "nr_running",
            Self::Policy => "policy",
            Self::Idle => "idle",
            Self::Affinity => "affinity",
            Self::Context => "context",
            Self::SlowPath => "slow path",
            Self::Unexplained => "unexplained",
        }
    }

    /// What it means, in a line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Race => "a run queue changed between probe and answer, and an event shows it",
            Self::Sync => "with the other sync flag it is the kernel's choice",
            Self::WakeWide => "with other wakee flips",
            Self::NrIdleScan => "with another limit of the scan",
            Self::ScanBudget => "with other costs of a scan, which limit the next ones",
            Self::HasIdleCores => "with the other hint",
            Self::RecentUsedCpu => "with another recent_used_cpu",
            Self::Weight => "if the loads of this_cpu and prev_cpu compared the other way",
            Self::NrRunning => "with another nr_running of this_cpu or prev_cpu",
            Self::Policy => "if other tasks were SCHED_IDLE",
            Self::Idle => "if a CPU that was looked at was idle (or busy) after all",
            Self::Affinity => "if the wakee may not use the model's CPU",
            Self::Context => "in (or out of) interrupt context",
            Self::SlowPath => "with other loads of the CPUs compared",
            Self::Unexplained => "no other value of a single input gives the kernel's choice",
        }
    }

    /// The input it speaks of.
    pub fn input(self) -> Inputs {
        match self {
            Self::Sync => Inputs::SYNC,
            Self::WakeWide => Inputs::WAKEE_FLIPS,
            Self::NrIdleScan => Inputs::NR_IDLE_SCAN,
            Self::ScanBudget => Inputs::SCAN_COST,
            Self::HasIdleCores => Inputs::HAS_IDLE_CORES,
            Self::RecentUsedCpu => Inputs::RECENT_USED_CPU,
            Self::Weight | Self::SlowPath => Inputs::RQ_LOAD,
            Self::NrRunning => Inputs::NR_RUNNING,
            Self::Policy => Inputs::POLICY,
            Self::Idle => Inputs::IDLE,
            Self::Affinity => Inputs::AFFINITY,
            Self::Context => Inputs::CONTEXT,
            Self::Race | Self::Unexplained => Inputs::empty(),
        }
    }
}

/// A disagreement, to be tried with other inputs.
pub struct Trial<'a> {
    /// The machine.
    pub state: &'a State,
    /// The question.
    pub wakeup: &'a Wakeup,
    /// The model with its hidden state before the decision.
    pub model: &'a Model,
    /// What the kernel chose.
    pub choice: Choice,
}

impl Trial<'_> {
    /// What explains it: inputs that were read, of which another value gives the kernel's choice.
    pub fn explain(&self) -> Vec<Why> {
        // A recording may say anything.
        if self.choice.cpu().is_some_and(|cpu| cpu.index() >= self.state.topology.nr_cpu_ids()) {
            return Vec::new();
        }
        let mut walk = Walk::default();
        let decision = self.model.clone().select_task_rq(self.state, self.wakeup, Some(&mut walk));
        let probed = probed(&walk, self.state);
        let is_read = |why: &&Why| decision.read.intersects(why.input());
        let explains = |why: &&Why| match why {
            Why::Idle => self.idle(&probed, decision.class_cpu),
            why => self.tries(**why, decision.class_cpu),
        };
        Why::INPUTS.iter().filter(is_read).filter(explains).copied().collect()
    }

    /// Whether the model chooses as the kernel did.
    pub fn gives(&self, state: &State, wakeup: &Wakeup, model: &mut Model) -> bool {
        self.choice.is(&model.select_task_rq(state, wakeup, None)) == Some(true)
    }

    fn with_wakeup(&self, change: impl FnOnce(&mut Wakeup)) -> bool {
        let mut wakeup = *self.wakeup;
        change(&mut wakeup);
        self.gives(self.state, &wakeup, &mut self.model.clone())
    }

    fn with_model(&self, change: impl FnOnce(&mut Model)) -> bool {
        let mut model = self.model.clone();
        change(&mut model);
        self.gives(self.state, self.wakeup, &mut model)
    }

    /// Whether a changed state gives the kernel's choice.
    pub fn with_state(&self, change: impl FnOnce(&mut State)) -> bool {
        let mut state = self.state.clone();
        change(&mut state);
        self.gives(&state, self.wakeup, &mut self.model.clone())
    }

    fn tries(&self, why: Why, ours: Cpu) -> bool {
        let Wakeup { this_cpu, prev_cpu, kind, .. } = *self.wakeup;
        match why {
            Why::Sync => self.with_wakeup(|w| w.sync = !w.sync),
            Why::Context => self.with_wakeup(|w| w.in_task = !w.in_task),
            Why::WakeWide => WIDE.iter().any(|&flips| self.with_model(|model| set_flips(model, self.wakeup, flips))),
            Why::NrIdleScan => (0..=self.llc_weight()).any(|nr| self.with_model(|model| set_nr_idle_scan(model, nr))),
            Why::ScanBudget => (0..COST_BITS).any(|bits| {
                self.with_model(|model| model.hidden.cpus[this_cpu.index()].avg_scan_cost_ns = (1 << bits) - 1)
            }),
            Why::HasIdleCores => (0..self.model.hidden.shared.len())
                .any(|id| self.with_model(|model| model.hidden.shared[id].has_idle_cores ^= true)),
            Why::RecentUsedCpu => [self.choice.cpu(), Some(prev_cpu)].into_iter().flatten().any(|cpu| {
                let p = self.wakeup.p.index();
                self.with_model(|model| model.hidden.tasks[p].recent_used_cpu = cpu)
            }),
            Why::Weight => {
                let ways = [(this_cpu, prev_cpu), (prev_cpu, this_cpu)];
                kind == WakeKind::Ttwu && ways.iter().any(|&(light, heavy)| self.with_state(|s| weigh(s, light, heavy)))
            }
            Why::NrRunning => [this_cpu, prev_cpu]
                .iter()
                .any(|&cpu| (0..=3).any(|nr| self.with_state(|state| state.rq.nr_running[cpu.index()] = nr))),
            Why::Policy => {
                let all = |state: &mut State, cpu: Cpu| {
                    state.rq.idle_h_nr_running[cpu.index()] = state.rq.nr_running[cpu.index()];
                };
                self.choice.cpu().is_some_and(|cpu| self.with_state(|state| all(state, cpu)))
                    || self.with_state(|state| state.rq.idle_h_nr_running[ours.index()] = 0)
            }
            Why::Affinity => self.affinity(ours),
            Why::SlowPath => kind != WakeKind::Ttwu && self.slow_path(ours),
            Why::Race | Why::Idle | Why::Unexplained => false,
        }
    }

    /// One CPU that was looked at, or the kernel's own; or that one with the model's.
    fn idle(&self, probed: &Cpumask, ours: Cpu) -> bool {
        let kernels = self.choice.cpu();
        let mut cpus = *probed;
        kernels.into_iter().for_each(|cpu| cpus.set(cpu));
        cpus.iter().any(|cpu| self.with_state(|state| flip_idle(state, cpu)))
            || kernels.is_some_and(|kernels| {
                cpus.iter().chain([ours]).any(|cpu| {
                    cpu != kernels
                        && self.with_state(|state| {
                            flip_idle(state, cpu);
                            flip_idle(state, kernels);
                        })
                })
            })
    }

    fn slow_path(&self, ours: Cpu) -> bool {
        let Some(kernels) = self.choice.cpu() else { return false };
        self.with_state(|state| lighten(state, kernels, ours))
            || slow_variants(self.state, kernels)
                .iter()
                .any(|state| self.gives(state, self.wakeup, &mut self.model.clone()))
    }

    /// What the model chooses is forbidden, until it chooses as the kernel did.
    fn affinity(&self, ours: Cpu) -> bool {
        let mut state = self.state.clone();
        let mut ours = ours;
        for _ in 0..MASKS_MAX {
            let task = &mut state.tasks[self.wakeup.p];
            task.cpus_ptr.clear(ours);
            task.nr_cpus_allowed = task.cpus_ptr.weight();
            if task.cpus_ptr.is_empty() || self.choice.cpu().is_some_and(|cpu| !task.cpus_ptr.test(cpu)) {
                return false;
            }
            let decision = self.model.clone().select_task_rq(&state, self.wakeup, None);
            if self.choice.is(&decision) == Some(true) {
                return true;
            }
            ours = decision.class_cpu;
        }
        false
    }

    fn llc_weight(&self) -> u32 {
        let topology = &self.state.topology;
        let cpus = [self.wakeup.this_cpu, self.wakeup.prev_cpu];
        let weights =
            cpus.iter().filter_map(|&cpu| topology.llc_shared(cpu)).map(|id| topology.shared_span(id).weight());
        weights.max().unwrap_or(0)
    }
}

/// Flips that make wake_wide() say no, and yes.
pub(super) const WIDE: [[u32; 2]; 2] = [[0, 0], [1 << 12, 1 << 30]];

/// Wakee flips of the wakee and of the waker.
pub(super) fn set_flips(model: &mut Model, wakeup: &Wakeup, flips: [u32; 2]) {
    for (id, flips) in [wakeup.p, wakeup.current].into_iter().zip(flips) {
        if let Some(task) = model.hidden.tasks.get_mut(id.index()) {
            task.wakee_flips = flips;
        }
    }
}

pub(super) fn set_nr_idle_scan(model: &mut Model, nr: u32) {
    model.hidden.shared.iter_mut().for_each(|shared| shared.nr_idle_scan = nr);
}

/// CPUs that the walk asked about.
fn probed(walk: &Walk, state: &State) -> Cpumask {
    let mut cpus = Cpumask::EMPTY;
    for step in &walk.steps {
        if let WalkStep::Probe { cpu, .. } = step
            && (*cpu as usize) < state.topology.nr_cpu_ids()
            && let Some(cpu) = Cpu::new(*cpu as usize)
        {
            cpus.set(cpu);
        }
    }
    cpus
}

/// An idle CPU becomes busy with one task, a busy one idle.
pub(super) fn flip_idle(state: &mut State, cpu: Cpu) {
    let at = cpu.index();
    let rq = &mut state.rq;
    let is_idle = rq.curr_idle.test(cpu) && rq.nr_running[at] == 0 && !rq.ttwu_pending.test(cpu);
    set_idle(state, cpu, !is_idle);
}

pub(super) fn set_idle(state: &mut State, cpu: Cpu, idle: bool) {
    let at = cpu.index();
    let rq = &mut state.rq;
    rq.ttwu_pending.clear(cpu);
    rq.curr_idle.assign(cpu, idle);
    let nr = if idle { 0 } else { rq.nr_running[at].max(1) };
    (rq.nr_running[at], rq.h_nr_running[at], rq.h_nr_runnable[at]) = (nr, nr, nr);
    if idle {
        rq.curr[at] = TaskId::swapper(cpu);
        rq.idle_h_nr_running[at] = 0;
    }
}

pub(super) fn weigh(state: &mut State, light: Cpu, heavy: Cpu) {
    state.rq.load_avg[light.index()] = 0;
    state.rq.runnable_load_avg[light.index()] = 0;
    state.rq.load_avg[heavy.index()] = 1 << 24;
    state.rq.runnable_load_avg[heavy.index()] = 1 << 24;
}

/// Loads and idle stamps with which the slow path may end at `cpu`: the CPUs of its core or of its LLC the lightest ones
/// (or none in particular), and each CPU in turn the one that went idle last, with `cpu` before it.
pub(super) fn slow_variants(state: &State, cpu: Cpu) -> Vec<State> {
    const HEAVY: u64 = 1 << 20;
    let topology = state.topology.clone();
    let llc = topology.llc_shared(cpu).map(|id| *topology.shared_span(id)).unwrap_or_default();
    let latest = state.rq.idle_stamp_ns.iter().copied().max().unwrap_or(0);
    let mut all = Vec::new();
    for light in [None, Some(*topology.smt_mask(cpu)), Some(llc), Some(Cpumask::of(cpu))] {
        for last in topology.cpus() {
            let mut state = state.clone();
            let rq = &mut state.rq;
            rq.idle_stamp_ns[cpu.index()] = latest + 1;
            rq.idle_stamp_ns[last.index()] = latest + 2;
            for other in light.iter().flat_map(|_| topology.cpus()) {
                let at = other.index();
                let load = if light.is_some_and(|light| light.test(other)) { 0 } else { HEAVY };
                rq.load_avg[at] = load;
                rq.runnable_load_avg[at] = load;
                (rq.util_avg[at], rq.runnable_avg[at], rq.util_est_enqueued[at]) = (load.min(900), load.min(900), 0);
            }
            all.push(state);
        }
    }
    all
}

/// `cpu` is the most idle of all, `ours` is not.
fn lighten(state: &mut State, cpu: Cpu, ours: Cpu) {
    set_idle(state, cpu, true);
    let latest = state.rq.idle_stamp_ns.iter().copied().max().unwrap_or(0) + 1;
    let rq = &mut state.rq;
    let at = cpu.index();
    rq.idle_stamp_ns[at] = latest;
    (rq.load_avg[at], rq.util_avg[at], rq.runnable_avg[at], rq.util_est_enqueued[at]) = (0, 0, 0, 0);
    set_idle(state, ours, false);
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
