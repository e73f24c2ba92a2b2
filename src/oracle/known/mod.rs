// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel bugs of the wakeup path that the models keep, and how each is recognised by its mechanism.

mod table;

use std::fmt;

use crate::fair::Exit;
use crate::machine::State;
use crate::oracle::{Finding, Options, Trial};
use crate::scenario::Case;
use crate::spec::{ModelSpec, Patch, Release};
use crate::units::Cpu;

pub use table::KNOWN;
use table::{IDLEST, RFC_1};

/// A bug of the kernel or of a patch.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownBug {
    /// The fixing commit, or where there is none the text with the bug.
    pub fix: &'static str,
    /// The kernels concerned.
    pub affected: &'static str,
    /// What goes wrong.
    pub mechanism: &'static str,
    /// How it shows.
    pub shows: &'static str,
    /// Who sees it.
    pub seen: Seen,
    /// The implementation that has it; empty where none does.
    pub before: &'static str,
    /// The same without it, or a later release; empty where none is free of it.
    pub after: &'static str,
    /// The smallest case known, as a file; empty where there is none.
    pub file: &'static str,
    /// Cases until it was found from nothing, the median of five seeds; 0: not measured.
    pub cases: u32,
}

/// Who sees a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// An invariant, by its name: the implementation alone is wrong.
    Invariant(&'static str),
    /// Nobody who looks at one implementation; it differs from the one that has the fix.
    Differential,
    /// Nobody here, for this reason.
    OutOfReach(&'static str),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(oracle) => write!(f, "invariant ({oracle})"),
            Self::Differential => f.write_str("differential"),
            Self::OutOfReach(why) => write!(f, "nobody here: {why}"),
        }
    }
}

impl fmt::Display for KnownBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.fix, self.affected, self.mechanism)
    }
}

impl KnownBug {
    /// The smallest case known.
    pub fn case(&self) -> Option<Case> {
        Case::parse(self.file).ok()
    }

    /// The implementations to play with so that it is seen: one alone where an invariant sees it.
    pub fn pair(&self) -> Vec<String> {
        let names = match self.seen {
            Seen::Invariant(_) => vec![self.before],
            Seen::Differential => vec![self.before, self.after],
            Seen::OutOfReach(_) => Vec::new(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// What counts as a finding when it is looked for.
    pub fn options(&self) -> Options {
        Options {
            allow_known: false,
            expect_equal: self.seen == Seen::Differential,
            schedstat: self.seen == Seen::Invariant("schedstat"),
        }
    }

    /// Whether `finding` is this bug.
    pub fn is_seen_in(&self, finding: &Finding) -> bool {
        match self.seen {
            Seen::Invariant(oracle) => finding.oracle == oracle && finding.known.is_some_and(|bug| bug.fix == self.fix),
            // Another return to the same CPU is no other placement.
            Seen::Differential => finding.oracle == "difference" && finding.condition == "another CPU",
            Seen::OutOfReach(_) => false,
        }
    }
}

/// The row of that fix.
fn row(fix: &str) -> Option<&'static KnownBug> {
    KNOWN.iter().find(|bug| bug.fix == fix)
}

fn patches(spec: Option<&ModelSpec>) -> Patch {
    spec.map(ModelSpec::patches).unwrap_or_default()
}

/// The bug by which `trial` left the task's affinity.
pub(super) fn outside_affinity(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let spec = patches(trial.spec);
    let overwritten =
        spec.intersects(Patch::RECENT_USED | Patch::RECENT_USED_V1) && !spec.contains(Patch::FIX_CPUS_PTR);
    let cpus_ptr = &trial.state.tasks[trial.wakeup.p].cpus_ptr;
    let task = &trial.state.tasks[trial.wakeup.p];
    if spec.contains(Patch::SOFT_AFFINITY) && task.cpus_preferred.test(trial.decision.class_cpu) {
        return row(RFC_1);
    }
    let Trial { decision, wakeup, .. } = trial;
    if trial.spec.is_some_and(|spec| spec.release() == Release::V5_2)
        && decision.exit == Exit::Slow
        && decision.class_cpu == wakeup.this_cpu
    {
        return row("57abff067a08");
    }
    if decision.exit == Exit::Slow && cpus_ptr.iter().any(|cpu| is_never_idlest(trial.state, cpu)) {
        return row(IDLEST);
    }
    // The test that passed was that of prev_cpu.
    (overwritten && trial.decision.exit == Exit::RecentUsed && cpus_ptr.test(trial.wakeup.prev_cpu))
        .then(|| row("ae2ad293d6be"))
        .flatten()
}

/// Idle, but find_idlest_group_cpu() does not take it.
fn is_never_idlest(state: &State, cpu: Cpu) -> bool {
    let rq = &state.rq;
    state.topology.online().test(cpu)
        && rq.nr_running[cpu.index()] == 0
        && rq.exit_latency_us[cpu.index()].is_none()
        && rq.idle_stamp_ns[cpu.index()] == 0
}

/// The bug by which `trial` left the domain it scanned.
pub(super) fn outside_domain(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let topology = &trial.state.topology;
    let cpu = trial.decision.class_cpu;
    // A sibling, in no domain itself, of a core that has other CPUs in the domain.
    let is_stray = topology.smt_mask(cpu).weight() > 1 && topology.sd_llc(cpu).is_none();
    let (spec, release) = (patches(trial.spec), trial.spec.map(ModelSpec::release));
    let fix = match (trial.decision.exit, release) {
        (Exit::IdleSmt, Some(Release::V5_2)) if !spec.contains(Patch::FIX_SMT_SPAN) => "df3cb4ea1fb6",
        (Exit::IdleSmt, _) if spec.contains(Patch::BUG_SMT_SPAN) => "8aeaffef8c6e",
        (Exit::IdleCandidate, _) if spec.contains(Patch::IDLE_CANDIDATE) && !spec.contains(Patch::FIX_CANDIDATE) => {
            "23d04d8c6b8e"
        }
        _ => return None,
    };
    row(fix).filter(|_| is_stray)
}

/// The bug by which `trial` spent its limit on CPUs that it did not look at.
pub(super) fn wasted_budget(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let is_old = trial.spec.is_some_and(|spec| spec.release() == Release::V5_2);
    row("60588bfa223f").filter(|_| is_old && !patches(trial.spec).contains(Patch::FIX_SCAN_ALLOWED))
}

/// The bug by which `trial` counted a wakee as moved that stayed.
pub(super) fn counted_affine(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let is_old = trial.spec.is_some_and(|spec| spec.release() < Release::V6_1);
    row("39afe5d6fc59").filter(|_| is_old && !patches(trial.spec).contains(Patch::FIX_MOVE_AFFINE))
}

/// The bug by which `trial` wrote has_idle_cores of the waker's LLC.
pub(super) fn other_llc(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    row("02dbb7246c5b").filter(|_| patches(trial.spec).contains(Patch::BUG_IDLE_CORES_LLC))
}

/// The bug by which `trial` took a run queue that is not there.
pub(super) fn beyond_nr_cpu_ids(trial: &Trial<'_>) -> Option<&'static KnownBug> {
    let task = &trial.state.tasks[trial.wakeup.p];
    let none_left = task.cpus_preferred.is_empty() || task.cpus_ptr.is_subset(&task.cpus_preferred);
    (patches(trial.spec).contains(Patch::TUNABLES) && none_left).then(|| row(RFC_1)).flatten()
}
