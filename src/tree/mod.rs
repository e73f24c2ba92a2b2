// SPDX-License-Identifier: GPL-2.0-or-later
//! A kernel tree of the user's as an implementation: its own C, beside our models.
//!
//! The crate `sisdiff-tree` cuts the wakeup path out, builds it and runs it; here the state is mirrored into it and the
//! decision read back. Hidden state is kept here as every implementation keeps it, and given to the C at each call.

mod answer;
mod books;
mod columns;
mod coverage;
mod digest;
mod exit;
mod prepare;
mod record;
mod words;

use std::sync::Arc;

use sisdiff_tree::error::TreeError;
use sisdiff_tree::extract::reads;
use sisdiff_tree::run::{Fault, Runner, protocol, request};

use crate::fair::fallback::select_fallback_rq;
use crate::fair::remember::Before;
use crate::fair::{Decision, Exit, Hidden, Implementation, SisCounters, Step, Walk, Writes};
use crate::machine::{Inputs, Provenance, State, TaskId};
use crate::spec::SchedFeat;
use crate::topology::Topology;
use crate::units::Cpu;
use crate::vectors::check::Subject;
use crate::wakeup::{WakeKind, Wakeup};

use answer::Answer;
use books::Known;
use digest::Digest;
use exit::Exits;
pub use prepare::{PrepareError, Prepared, TreeOptions};
use words::{Mirror, Question};

/// Words of room for an answer: more than the record of the longest walk.
const ANSWER_WORDS: usize = 80_000;

/// One kernel tree with the hidden state it keeps: an [`crate::fair::Implementation`].
pub struct Tree {
    prepared: Prepared,
    runner: Runner,
    /// The tree's own list of features, and whether each is on.
    features: Vec<(String, bool)>,
    features_told: bool,
    topology: Option<Arc<Topology>>,
    mirror: Mirror,
    question: Vec<u64>,
    room: Vec<u64>,
    /// Words of `room` that the last call's answer has.
    answered: usize,
    fault: Option<String>,
    /// What it keeps between calls.
    pub hidden: Hidden,
}

impl Tree {
    fn new(prepared: &Prepared, topology: &Topology) -> Result<Self, TreeError> {
        let features =
            prepared.built.meta.features.iter().map(|feature| (feature.name.clone(), feature.default)).collect();
        let mut tree = Self {
            prepared: prepared.clone(),
            runner: prepared.built.start(prepared.isolation)?,
            features,
            features_told: false,
            topology: None,
            mirror: Mirror::default(),
            question: Vec::new(),
            room: vec![0; ANSWER_WORDS],
            answered: 0,
            fault: None,
            hidden: Hidden::new(topology),
        };
        tree.set_own_features();
        Ok(tree)
    }

    /// The switches that the spec names win over all others.
    fn set_own_features(&mut self) {
        for (name, on) in self.prepared.features.clone() {
            self.set_feature(&name, on);
        }
    }

    /// Switches feature `name`; whether the tree has it.
    pub fn set_feature(&mut self, name: &str, on: bool) -> bool {
        let found = self.features.iter_mut().find(|(known, _)| known == name);
        self.features_told &= found.is_none();
        found.map(|(_, now)| *now = on).is_some()
    }

    /// The switches that `told` knows by name, such as those of the recorded machine.
    pub fn set_features_by(&mut self, told: impl Fn(&str) -> Option<bool>) {
        for at in 0..self.features.len() {
            if let Some(on) = told(&self.features[at].0) {
                self.features_told &= self.features[at].1 == on;
                self.features[at].1 = on;
            }
        }
        self.set_own_features();
    }

    /// The same switches as the recorded kernel's; those that the tree does not have are ignored.
    pub fn set_features(&mut self, features: SchedFeat) {
        for (name, feature) in SchedFeat::all().iter_names() {
            self.set_feature(name, features.contains(feature));
        }
        self.set_own_features();
    }

    /// `__update_idle_core()` of `core`, without the static key before it.
    pub fn update_idle_core(&mut self, state: &State, core: Cpu, walk: Option<&mut Walk>) -> Decision {
        let swapper = TaskId::swapper(core);
        let wakeup = Wakeup {
            p: swapper,
            current: swapper,
            this_cpu: core,
            prev_cpu: core,
            kind: WakeKind::Ttwu,
            sync: false,
            in_task: true,
            known: Provenance::TRACED,
        };
        self.call(state, &wakeup, Question::UpdateIdleCore, walk)
    }

    fn call(&mut self, state: &State, w: &Wakeup, question: Question, walk: Option<&mut Walk>) -> Decision {
        for id in [w.p, w.current] {
            self.hidden.task_mut(id, state.tasks[id].task_cpu);
        }
        if self.fault.is_none()
            && let Err(fault) = self.ask(state, w, question, walk.is_some())
        {
            self.fault = Some(self.sentence(state, w, question, &fault));
        }
        if self.fault.is_some() {
            return faulted(state, w);
        }
        let nr_shared = state.topology.nr_shared();
        let Some(answer) = Answer::of(&self.room[..self.answered], nr_shared) else {
            self.fault = Some(self.sentence(state, w, question, &Fault::Answer));
            return faulted(state, w);
        };
        let decision = decision(&self.prepared, &mut self.hidden, &answer, (state, w, question));
        self.mirror.took(w, &answer, &self.hidden);
        if let Some(walk) = walk {
            record::record(&answer, &self.prepared, &decision, walk);
        }
        decision
    }

    /// Whether it has state that is not mirrored.
    fn keeps(&self) -> bool {
        !self.prepared.built.meta.keeps.is_empty()
    }

    /// The last call's walk `times` times more, with nothing told to the C and nothing read from it: for who measures what
    /// the C takes alone.
    pub fn walk_again(&mut self, times: u64) {
        self.plain(&[request::AGAIN, times]);
    }

    /// A request that is not about a wakeup.
    fn plain(&mut self, words: &[u64]) {
        self.question.clear();
        self.question.extend_from_slice(words);
        if self.fault.is_none()
            && let Err(fault) = self.send()
        {
            self.fault = Some(format!("{}: {fault}", self.prepared.name));
        }
    }

    /// A fault with the call that met it.
    fn sentence(&self, state: &State, w: &Wakeup, question: Question, fault: &Fault) -> String {
        let who = |id: TaskId| format!("{}-{}", state.tasks[id].comm, state.tasks[id].pid);
        let call = match question {
            Question::UpdateIdleCore => format!("__update_idle_core() of CPU {}", w.this_cpu),
            Question::Nothing => "the state of a wakeup".to_owned(),
            Question::SelectIdleSibling { .. } | Question::SelectTaskRqFair => {
                let (p, current) = (who(w.p), who(w.current));
                format!(
                    "wakeup of {p} (CPU {}) by {current} on CPU {} at jiffy {}",
                    w.prev_cpu, w.this_cpu, state.jiffies
                )
            }
        };
        format!("{}: {call}: {fault}{}", self.prepared.name, self.place_of(fault))
    }

    /// Where in the source a fault is; of files that share the line, fair.c.
    fn place_of(&self, fault: &Fault) -> String {
        let Some(line) = fault.line().and_then(|line| u32::try_from(line).ok()) else { return String::new() };
        let table = &self.prepared.built.meta.table;
        let of_line = || table.statements.iter().filter(|statement| statement.line == line);
        let found = of_line().find(|statement| statement.path.ends_with("/fair.c")).or_else(|| of_line().next());
        let Some(found) = found else { return String::new() };
        let function = table.functions.get(found.function as usize).map_or("", String::as_str);
        format!(" ({}, in {function}())", self.prepared.place(&found.path, line))
    }

    fn send(&mut self) -> Result<usize, Fault> {
        self.runner.request(&self.question, &mut self.room)
    }

    fn ask(&mut self, state: &State, w: &Wakeup, question: Question, record: bool) -> Result<(), Fault> {
        if !self.features_told {
            let switches: Vec<bool> = self.features.iter().map(|(_, on)| *on).collect();
            self.question.clear();
            words::features(&switches, &mut self.question);
            self.send()?;
            self.features_told = true;
        }
        let same = self.topology.as_ref().is_some_and(|known| Arc::ptr_eq(known, &state.topology));
        if !same {
            self.question.clear();
            self.mirror.machine(&state.topology, &mut self.question);
            self.send()?;
            self.topology = Some(Arc::clone(&state.topology));
        }
        self.question.clear();
        self.mirror.call((state, &self.hidden), w, question, record, &mut self.question);
        self.answered = self.send()?;
        Ok(())
    }
}

/// Bits of the C for hidden state written.
const fn wrote(what: &str) -> u64 {
    1 << (32 + protocol::place(reads::WRITES, what))
}

/// Takes over what the walk wrote, and how well that is known.
#[inline]
fn store(hidden: &mut Hidden, answer: &Answer<'_>, w: &Wakeup) -> Writes {
    const P_RECENT: u64 = wrote("p->recent_used_cpu");
    const CURRENT_RECENT: u64 = wrote("current->recent_used_cpu");
    const FLIPS: u64 = wrote("wakee_flips");
    const SCAN_COST: u64 = wrote("avg_scan_cost");
    const WAKE_AVG_IDLE: u64 = wrote("wake_avg_idle");
    let mask = answer.reads();
    let mut writes = Writes::default();
    hidden.clock.now_ns = answer.clock_ns();
    for (which, id) in [w.p, w.current].into_iter().enumerate() {
        answer.task(which).store(&mut hidden.tasks[id.index()]);
    }
    if mask & P_RECENT != 0 {
        let task = &mut hidden.tasks[w.p.index()];
        task.known.set_derived(Inputs::RECENT_USED_CPU);
        writes.p_recent_used_cpu = Some(task.recent_used_cpu);
    }
    if mask & CURRENT_RECENT != 0 {
        let task = &mut hidden.tasks[w.current.index()];
        task.known.set_derived(Inputs::RECENT_USED_CPU);
        writes.current_recent_used_cpu = Some(task.recent_used_cpu);
    }
    if mask & FLIPS != 0 {
        writes.wakee_flips = Some(hidden.tasks[w.current.index()].wakee_flips);
    }
    let mut cpu = hidden.cpus[w.this_cpu.index()];
    let (cost, stamp, avg_idle) = answer.cpu_after();
    cpu.avg_scan_cost_ns = cost.unwrap_or(cpu.avg_scan_cost_ns);
    (cpu.wake_stamp_jiffies, cpu.wake_avg_idle_ns) = (stamp, avg_idle);
    if mask & SCAN_COST != 0 {
        // Measured with the declared clock.
        cpu.known.set_assumed(Inputs::SCAN_COST);
        writes.avg_scan_cost_ns = Some(cpu.avg_scan_cost_ns);
    }
    if mask & WAKE_AVG_IDLE != 0 {
        writes.wake_avg_idle_ns = Some(cpu.wake_avg_idle_ns);
    }
    hidden.cpus[w.this_cpu.index()] = cpu;
    for (id, (shared, (has, nr))) in hidden.shared.iter_mut().zip(answer.shared()).enumerate() {
        if shared.has_idle_cores != has {
            shared.known.set_derived(Inputs::HAS_IDLE_CORES);
            writes.has_idle_cores = Some((id, has));
        }
        shared.has_idle_cores = has;
        shared.nr_idle_scan = nr;
    }
    writes
}

/// The decision that `answer` is, its hidden state taken over.
#[inline]
fn decision(
    prepared: &Prepared,
    hidden: &mut Hidden,
    answer: &Answer<'_>,
    (state, w, question): (&State, &Wakeup, Question),
) -> Decision {
    let digest = Digest::of(answer, &prepared.exits, state);
    let (exit, target) = (digest.exit, digest.target);
    let class_cpu = match question {
        Question::UpdateIdleCore => w.this_cpu,
        _ => usize::try_from(answer.cpu()).ok().and_then(Cpu::new).unwrap_or(Cpu(u16::MAX)),
    };
    let slow = matches!(exit, Exit::Slow | Exit::SlowOutside) || state.topology.asym_cpucapacity();
    let asym = matches!(exit, Exit::AsymCapacity | Exit::AsymFallback);
    let known = Known::new(state, hidden, w, target.unwrap_or(class_cpu), asym);
    let (read, leaned_on) = books::read(state, &known, w, answer, &digest, slow);
    let sis = counters(&prepared.exits, hidden, answer, &digest, (state, w));
    let writes = store(hidden, answer, w);
    Decision {
        class_cpu,
        final_cpu: select_fallback_rq(state, w.p, class_cpu),
        exit,
        probes: digest.probes,
        mask_ops: answer.mask_ops() as u32,
        sis,
        read,
        leaned_on,
        faults: answer.oob() as u32,
        writes,
    }
}

/// The SIS counters: the tree's own where it has them, else by the same rules from the walk. `hidden` is still that of
/// before the call.
#[inline]
fn counters(
    exits: &Exits,
    hidden: &Hidden,
    answer: &Answer<'_>,
    digest: &Digest,
    (state, w): (&State, &Wakeup),
) -> SisCounters {
    let (Some(target), exit) = (digest.target, digest.exit) else { return SisCounters::default() };
    let early = matches!(exit, Exit::Target | Exit::Prev | Exit::PerCpuKthread);
    let asym = matches!(exit, Exit::AsymCapacity | Exit::AsymFallback);
    let recent = hidden.tasks[w.p.index()].recent_used_cpu;
    let hit = matches!(exit, Exit::RecentUsed | Exit::ClusterRecentUsed);
    // Since 6.9 a usable one of another cluster is neither hit nor miss until it is returned.
    let missed = !exits.keep_recent() || digest.missed;
    let candidate = !early && !hit && missed && recent != w.prev_cpu && recent != target;
    let shares = candidate && state.topology.cpus_share_cache(recent, target);
    let [search, scanned, domain_search, failed, recent_hit, recent_miss] = answer.counters();
    let is = |held: bool| u64::from(held);
    let domain = !early && !asym && !matches!(exit, Exit::RecentUsed | Exit::NoLlc);
    SisCounters {
        search: search.unwrap_or(1),
        scanned: scanned.unwrap_or(1 + answer.turns()),
        domain_search: domain_search.unwrap_or(is(domain)),
        failed: failed.unwrap_or(is(matches!(exit, Exit::Fallback | Exit::BudgetSpent))),
        recent_hit: recent_hit.unwrap_or(is(hit)),
        recent_miss: recent_miss.unwrap_or(is(shares)),
        recent_miss_2021: recent_miss.unwrap_or(is(candidate)),
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let Some(coverage) = self.prepared.coverage.clone().filter(|_| self.fault.is_none()) else { return };
        self.question.clear();
        self.question.push(request::HITS);
        if let Ok(words) = self.send() {
            coverage.add(&self.room[..words]);
        }
    }
}

impl Implementation for Tree {
    fn name(&self) -> &str {
        &self.prepared.name
    }

    fn reads(&self) -> Inputs {
        Inputs::all()
    }

    fn step(&mut self, state: &State, step: &Step) {
        match *step {
            // update_idle_core(): behind the static key sched_smt_present.
            Step::EnterIdle(cpu) if state.topology.smt_present() => {
                self.update_idle_core(state, cpu, None);
            }
            ref other => self.hidden.remember(state, other),
        }
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.call(state, wakeup, Question::SelectTaskRqFair, walk)
    }

    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        let before = Before::of(&self.hidden, state, wakeup);
        if self.keeps() {
            // Tell what changed, so that what is kept is what we believe it is.
            self.call(state, wakeup, Question::Nothing, None);
            self.plain(&[request::SAVE]);
        }
        let decision = self.select_task_rq(state, wakeup, walk);
        if self.keeps() {
            self.plain(&[request::RESTORE]);
        }
        before.restore(&mut self.hidden);
        decision
    }

    fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
        // A tree may use the flips in ways of its own: then the two are not all that there could be.
        if !self.hidden.is_wide_open(wakeup) || !self.prepared.flips_only_widen() {
            return None;
        }
        let before = Before::of(&self.hidden, state, wakeup);
        let decisions = [false, true].map(|wide| {
            self.hidden.set_wide(state, wakeup, wide);
            let decision = self.peek(state, wakeup, None);
            before.restore(&mut self.hidden);
            let said = Answer::of(&self.room[..self.answered], state.topology.nr_shared());
            let as_told = said.is_some_and(|answer| self.prepared.exits.wide(&answer).is_none_or(|said| said == wide));
            as_told.then_some(decision)
        });
        match decisions {
            [Some(narrow), Some(wide)] => Some([narrow, wide]),
            _ => None,
        }
    }

    fn fault(&self) -> Option<String> {
        self.fault.clone()
    }
}

impl Subject for Tree {
    fn hidden(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    fn set_features(&mut self, features: SchedFeat) {
        self.set_features(features);
    }

    fn select_idle_sibling(&mut self, state: &State, wakeup: &Wakeup, target: Cpu, walk: &mut Walk) -> Decision {
        self.call(state, wakeup, Question::SelectIdleSibling { target }, Some(walk))
    }

    fn update_idle_core(&mut self, state: &State, core: Cpu, walk: &mut Walk) -> Decision {
        self.update_idle_core(state, core, Some(walk))
    }
}

/// The decision of a tree that cannot decide any more.
fn faulted(state: &State, w: &Wakeup) -> Decision {
    Decision {
        class_cpu: w.prev_cpu,
        final_cpu: select_fallback_rq(state, w.p, w.prev_cpu),
        exit: Exit::NewCpu,
        probes: 0,
        mask_ops: 0,
        sis: SisCounters::default(),
        read: Inputs::empty(),
        leaned_on: Provenance::TRACED,
        faults: 1,
        writes: Writes::default(),
    }
}
