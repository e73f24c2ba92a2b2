// SPDX-License-Identifier: GPL-2.0-or-later
//! Holds an implementation against the answers of a vector, field by field.

use std::fmt;

use crate::cpumask::Cpumask;
use crate::fair::{Decision, Hidden, Implementation, Model, Walk, WalkStep};
use crate::machine::{State, TaskId};
use crate::spec::{ModelSpec, Patch, SchedFeat};
use crate::topology::Topology;
use crate::units::Cpu;
use crate::wakeup::Wakeup;

use super::{Call, Item, Step, What, json, spec_of};

/// A vector that an implementation answers differently.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Number of the case or sequence.
    pub id: u32,
    /// Number of the step in a sequence, from 0.
    pub step: usize,
    /// The variant.
    pub variant: String,
    /// The fields that differ, with both values.
    pub fields: Vec<String>,
    /// Our walk.
    pub ours: Walk,
    /// Their idle checks.
    pub theirs: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} case {} step {}: {}", self.variant, self.id, self.step, self.fields.join("; "))?;
        let ours = self.ours.probes();
        let same = ours.split(' ').zip(self.theirs.split(' ')).take_while(|(a, b)| a == b).count();
        writeln!(f, "  theirs: {}", self.theirs)?;
        writeln!(f, "  ours:   {ours}")?;
        writeln!(f, "  they part after {same} idle checks; our walk:")?;
        let mut probes = 0;
        for step in &self.ours.steps {
            if matches!(step, WalkStep::Probe { .. }) {
                if probes == same {
                    writeln!(f, "    ---- here ----")?;
                }
                probes += 1;
            }
            writeln!(f, "    {step:?}")?;
        }
        Ok(())
    }
}

/// What came of an item.
#[derive(Debug, Default)]
pub struct Checked {
    /// Answers compared: one for each variant that has a spec.
    pub compared: usize,
    /// Answers that differ.
    pub mismatches: Vec<Mismatch>,
    /// Answers that are equal only with the vectors' own abs(), see [`Patch::STAND_IN_ABS`].
    pub by_stand_in: usize,
}

/// Checks every variant of `item` that has a spec.
///
/// The kernel's own arithmetic is tried first. Where that differs, the vectors' stand-in for abs() may be the reason: then
/// everything must be equal with it, and the answer is counted apart.
pub fn check(item: &Item) -> Checked {
    let mut checked = Checked::default();
    for answers in &item.answers {
        for variant in &answers.variants {
            let Some(spec) = spec_of(variant) else { continue };
            let spec: ModelSpec = spec.parse().expect("specs of variants are valid");
            checked.compared += 1;
            let model = |spec| Model::new(spec, item.topology());
            let Some(mismatch) = Run::new(item, &mut model(spec), variant).steps(item, &answers.outcomes) else {
                continue;
            };
            let stand_in = spec.with_patches(spec.patches() | Patch::STAND_IN_ABS);
            match Run::new(item, &mut model(stand_in), variant).steps(item, &answers.outcomes) {
                None => checked.by_stand_in += 1,
                Some(_) => checked.mismatches.push(mismatch),
            }
        }
    }
    checked
}

/// What can be held against vectors: an implementation whose hidden state can be set, and whose parts can be called alone.
pub trait Subject: Implementation {
    /// Its hidden state.
    fn hidden(&mut self) -> &mut Hidden;

    /// The features of the vectors; those that it does not have are ignored.
    fn set_features(&mut self, features: SchedFeat);

    /// `select_idle_sibling(p, prev, target)` alone.
    fn select_idle_sibling(&mut self, state: &State, wakeup: &Wakeup, target: Cpu, walk: &mut Walk) -> Decision;

    /// `__update_idle_core()` of `core`.
    fn update_idle_core(&mut self, state: &State, core: Cpu, walk: &mut Walk) -> Decision;
}

impl Subject for Model {
    fn hidden(&mut self) -> &mut Hidden {
        &mut self.hidden
    }

    fn set_features(&mut self, features: SchedFeat) {
        self.set_features(features);
    }

    fn select_idle_sibling(&mut self, state: &State, wakeup: &Wakeup, target: Cpu, walk: &mut Walk) -> Decision {
        self.select_idle_sibling(state, wakeup, target, Some(walk))
    }

    fn update_idle_core(&mut self, state: &State, core: Cpu, walk: &mut Walk) -> Decision {
        self.update_idle_core(state, core, Some(walk))
    }
}

/// Checks the answers of `variant` in `item`, if there are any, against `subject`.
pub fn check_subject<S: Subject>(item: &Item, variant: &str, subject: &mut S) -> Option<Checked> {
    let answers = item.answers.iter().find(|answers| answers.variants.iter().any(|name| name == variant))?;
    let mismatches = Run::new(item, subject, variant).steps(item, &answers.outcomes).into_iter().collect();
    Some(Checked { compared: 1, mismatches, by_stand_in: 0 })
}

/// One variant on its way through an item.
struct Run<'a, S: Subject> {
    variant: &'a str,
    state: State,
    model: &'a mut S,
    in_task: bool,
    last: Vec<Option<Cpu>>,
}

impl<'a, S: Subject> Run<'a, S> {
    fn new(item: &Item, model: &'a mut S, variant: &'a str) -> Self {
        let start = &item.start;
        model.set_features(start.features);
        *model.hidden() = start.hidden.clone();
        let last = vec![None; start.state.tasks.0.len()];
        Self { variant, state: start.state.clone(), model, in_task: start.in_task, last }
    }

    fn steps(mut self, item: &Item, outcomes: &[Option<json::Outcome>]) -> Option<Mismatch> {
        for (at, (step, expected)) in item.steps.iter().zip(outcomes).enumerate() {
            let mut walk = Walk::default();
            let fields = match step {
                Step::Cpu(step) => self.cpu(step, expected.as_ref(), &mut walk),
                Step::Wake { jiffies, call } => {
                    self.state.jiffies = jiffies.unwrap_or(self.state.jiffies);
                    match expected {
                        Some(expected) => self.wake(call, expected, &mut walk),
                        None => vec!["no answer to a wakeup".to_owned()],
                    }
                }
            };
            if !fields.is_empty() {
                let theirs = expected.as_ref().map_or_else(String::new, |expected| expected.probes.clone());
                return Some(Mismatch {
                    id: item.id,
                    step: at,
                    variant: self.variant.to_owned(),
                    fields,
                    ours: walk,
                    theirs,
                });
            }
        }
        None
    }

    fn cpu(&mut self, step: &json::CpuStep, expected: Option<&json::Outcome>, walk: &mut Walk) -> Vec<String> {
        let cpu = Cpu(step.cpu);
        let i = cpu.index();
        let rq = &mut self.state.rq;
        rq.nr_running[i] = step.nr_running;
        rq.h_nr_running[i] = step.nr_running;
        rq.h_nr_runnable[i] = step.h_nr_runnable.unwrap_or(step.nr_running);
        rq.idle_h_nr_running[i] = step.idle_h_nr_running;
        rq.curr_idle.assign(cpu, step.curr_idle);
        rq.avg_idle_ns[i] = step.avg_idle.unwrap_or(rq.avg_idle_ns[i]);
        let hidden = &mut self.model.hidden().cpus[i];
        hidden.wake_avg_idle_ns = step.wake_avg_idle.unwrap_or(hidden.wake_avg_idle_ns);
        hidden.wake_stamp_jiffies = step.wake_stamp.unwrap_or(hidden.wake_stamp_jiffies);
        let mut fields = Fields::default();
        if step.update_idle_core {
            self.model.update_idle_core(&self.state, cpu, walk);
            if let Some(expected) = expected {
                fields.differ("probes", walk.probes(), expected.probes.clone());
                fields.differ("has_idle_cores", self.has_idle_cores(), expected.has_idle_cores.clone());
            }
        }
        if step.update_idle_core != expected.is_some() {
            fields.0.push("an answer where none was asked, or the reverse".to_owned());
        }
        fields.0
    }

    fn wake(&mut self, call: &Call, expected: &json::Outcome, walk: &mut Walk) -> Vec<String> {
        let prev = call.prev.unwrap_or_else(|| self.last_cpu(call.p));
        if expected.prev.is_some() {
            self.state.tasks[call.p].task_cpu = prev;
        }
        let kind = match call.what {
            What::SelectTaskRqFair(kind) => kind,
            What::SelectIdleSibling { .. } => crate::wakeup::WakeKind::Ttwu,
        };
        let wakeup = call.wakeup(prev, kind, self.in_task);
        if kind == crate::wakeup::WakeKind::Exec {
            self.state.rq.curr[call.this_cpu.index()] = call.p;
        }
        let mut fields = Fields::default();
        let decision = match call.what {
            What::SelectIdleSibling { target } => self.model.select_idle_sibling(&self.state, &wakeup, target, walk),
            What::SelectTaskRqFair(_) => {
                let before = self.model.hidden().clone();
                let peeked = self.model.peek(&self.state, &wakeup, None);
                fields.differ("hidden state after peek", *self.model.hidden() == before, true);
                let decision = self.model.select_task_rq(&self.state, &wakeup, Some(walk));
                fields.differ("decision peeked at", peeked, decision);
                decision
            }
        };
        self.last[call.p.index()] = Some(decision.class_cpu);
        self.compare(&mut fields, (call, prev), &decision, expected, walk);
        fields.0
    }

    fn compare(
        &mut self,
        fields: &mut Fields,
        (call, prev): (&Call, Cpu),
        decision: &Decision,
        expected: &json::Outcome,
        walk: &Walk,
    ) {
        let has_idle_cores = self.has_idle_cores();
        let hidden = self.model.hidden();
        let n = self.state.topology.nr_cpu_ids() as u32;
        let (p, current) = (&hidden.tasks[call.p.index()], &hidden.tasks[call.current.index()]);
        let cpu = &hidden.cpus[call.this_cpu.index()];
        let last_wakee = current.last_wakee.map_or(-1, |id: TaskId| i64::from(id.0) - i64::from(n));
        let has_llc = self.state.topology.sd_llc(call.this_cpu).is_some();
        fields.differ("cpu", Some(decision.class_cpu.0), expected.cpu);
        fields.differ("probes", walk.probes(), expected.probes.clone());
        fields.differ("number of probes", decision.probes as usize, expected.probes.split_whitespace().count());
        fields.differ("prev", prev.0, expected.prev.unwrap_or(prev.0));
        fields.known("p_recent_used_cpu", p.recent_used_cpu.0, expected.p_recent_used_cpu);
        fields.known("current_recent_used_cpu", current.recent_used_cpu.0, expected.current_recent_used_cpu);
        fields.known("wakee_flips", current.wakee_flips, expected.wakee_flips);
        fields.known("wakee_flip_decay_ts", current.wakee_flip_decay_jiffies, expected.wakee_flip_decay_ts);
        fields.known("last_wakee", last_wakee, expected.last_wakee);
        fields.known("avg_scan_cost", cpu.avg_scan_cost_ns, expected.avg_scan_cost.filter(|_| has_llc));
        fields.differ("has_idle_cores", has_idle_cores, expected.has_idle_cores.clone());
        fields.known("clock", hidden.clock.now_ns, expected.clock);
        fields.known("mask_ops", decision.mask_ops, expected.mask_ops);
        fields.known("wake_stamp", cpu.wake_stamp_jiffies, expected.wake_stamp);
        fields.known("wake_avg_idle", cpu.wake_avg_idle_ns, expected.wake_avg_idle);
        fields.differ("oob", decision.faults, expected.oob);
    }

    fn has_idle_cores(&mut self) -> Vec<u8> {
        self.model.hidden().shared.iter().map(|shared| u8::from(shared.has_idle_cores)).collect()
    }

    /// Where this variant put the task last, or the lowest usable CPU.
    fn last_cpu(&self, p: TaskId) -> Cpu {
        let usable = *self.state.tasks[p].cpus_ptr & in_domains(&self.state.topology);
        let last = self.last[p.index()].filter(|&cpu| usable.test(cpu));
        last.or_else(|| usable.first()).unwrap_or_default()
    }
}

fn in_domains(topology: &Topology) -> Cpumask {
    topology.domains().iter().fold(Cpumask::EMPTY, |all, domain| all | domain.span)
}

#[derive(Default)]
struct Fields(Vec<String>);

impl Fields {
    fn differ<T: PartialEq + fmt::Debug>(&mut self, name: &str, ours: T, theirs: T) {
        if ours != theirs {
            self.0.push(format!("{name}: ours {ours:?}, theirs {theirs:?}"));
        }
    }

    fn known<T: PartialEq + fmt::Debug>(&mut self, name: &str, ours: T, theirs: Option<T>) {
        if let Some(theirs) = theirs {
            self.differ(name, ours, theirs);
        }
    }
}
