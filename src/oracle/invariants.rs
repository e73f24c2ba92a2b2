// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of a single decision, whoever made it.

use crate::fair::{Exit, SisCounters};
use crate::machine::Provenance;
use crate::oracle::{Check, Finding, Options, Trial, conserve, known, shown};
use crate::spec::Release;
use crate::topology::Domain;
use crate::units::Cpu;
use crate::wakeup::WakeKind;

/// Every check of a single trial, by the name of its oracle.
pub const INVARIANTS: &[(&str, Check)] = &[
    ("affinity", affinity),
    ("placement", placement),
    ("domain", domain),
    ("idleness", conserve::idleness),
    ("stages", conserve::stages),
    ("conservation", conserve::conservation),
    ("budget", budget),
    ("counters", counters),
    ("writes", writes),
    ("provenance", provenance),
    ("faults", faults),
    (SCHEDSTAT, schedstat),
];

/// Put to a decision only where that is asked for: every release before 6.3 miscounts nearly all the time.
const SCHEDSTAT: &str = "schedstat";

/// Those that hold of any wakeup path. The others state the rules of the releases, which a user's tree may change.
const OF_ANY_TREE: &[&str] = &["affinity", "placement", "faults"];

/// The checks that hold of a trial: of a model's all.
pub fn invariants_of<'a>(
    trial: &Trial<'a>,
    options: Options,
) -> impl Iterator<Item = &'static (&'static str, Check)> + use<'a> {
    let is_model = trial.spec.is_some();
    let is_wanted = move |name: &str| options.schedstat || name != SCHEDSTAT;
    INVARIANTS.iter().filter(move |(name, _)| is_wanted(name) && (is_model || OF_ANY_TREE.contains(name)))
}

impl<'a> Trial<'a> {
    /// The target that select_idle_sibling() began with; `None`: it was not called, or the walk does not tell.
    pub fn target(&self) -> Option<Cpu> {
        self.brief.target
    }

    /// The domain that was scanned.
    pub fn sd_llc(&self) -> Option<&'a Domain> {
        let topology = &self.state.topology;
        self.target().and_then(|target| topology.sd_llc(target)).map(|id| topology.domain(id))
    }

    pub(super) fn fail(&self, oracle: &'static str, condition: &str, text: String) -> Result<(), Box<Finding>> {
        Err(Box::new(Finding::of(oracle, self, condition, text)))
    }
}

/// The class's CPU is one of the machine's, and one the task may use, unless it is prev_cpu: that is returned untested
/// (a task whose affinity changed while it slept), and select_fallback_rq() corrects it.
pub fn affinity(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let (task, cpu) = (&trial.state.tasks[trial.wakeup.p], trial.decision.class_cpu);
    if cpu.index() >= trial.state.topology.nr_cpu_ids() {
        let text = format!("CPU {cpu} of {}", trial.state.topology.nr_cpu_ids());
        return trial.fail("affinity", "no such CPU", text);
    }
    let (this_cpu, prev_cpu) = (trial.wakeup.this_cpu, trial.wakeup.prev_cpu);
    if task.cpus_ptr.test(cpu) || cpu == prev_cpu {
        return Ok(());
    }
    let text = format!(
        "CPU {cpu} is outside of cpus_ptr {}; this_cpu {this_cpu}, prev_cpu {prev_cpu}, target {}",
        task.cpus_ptr,
        shown(trial.target())
    );
    Err(Box::new(Finding {
        known: known::outside_affinity(trial),
        ..Finding::of("affinity", trial, "CPU outside cpus_ptr", text)
    }))
}

/// The task ends on an allowed and online CPU, on the class's where that is one.
pub fn placement(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let online = trial.state.topology.online();
    let allowed = *trial.state.tasks[trial.wakeup.p].cpus_ptr & *online;
    let (class_cpu, final_cpu) = (trial.decision.class_cpu, trial.decision.final_cpu);
    let text = || format!("class {class_cpu}, final {final_cpu}, allowed and online {allowed}");
    if allowed.test(class_cpu) && final_cpu != class_cpu {
        return trial.fail("placement", "an allowed CPU was not kept", text());
    }
    if !online.test(final_cpu) || (!allowed.is_empty() && !allowed.test(final_cpu)) {
        return trial.fail("placement", "final CPU not allowed", text());
    }
    Ok(())
}

/// What a scan of the LLC finds is in the LLC's domain.
pub fn domain(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let (exit, cpu) = (trial.decision.exit, trial.decision.class_cpu);
    let span = match exit {
        Exit::IdleCore | Exit::IdleCandidate | Exit::IdleCpu | Exit::IdleSmt | Exit::IdleCluster => {
            trial.sd_llc().map(|sd| sd.span)
        }
        Exit::AsymCapacity => {
            let topology = &trial.state.topology;
            trial.target().and_then(|target| topology.sd_asym(target)).map(|id| topology.domain(id).span)
        }
        _ => return Ok(()),
    };
    let Some(span) = span else {
        return trial.fail("domain", "a scan without a domain", format!("CPU {cpu} by {exit:?}"));
    };
    if span.test(cpu) {
        return Ok(());
    }
    let text = format!("CPU {cpu} is outside of the scanned span {span}, target {}", shown(trial.target()));
    Err(Box::new(Finding {
        known: known::outside_domain(trial),
        ..Finding::of("domain", trial, "CPU outside the span", text)
    }))
}

/// A scan of single CPUs that has a limit `nr` looks at fewer than `nr` CPUs (the test comes before the look), and gives up
/// only after as many.
pub fn budget(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    // Where cores are searched in the same loop, the limit does not count.
    let of_cores = trial.spec.is_none_or(|spec| spec.release() >= Release::V6_1)
        && (trial.decision.writes.has_idle_cores.is_some()
            || matches!(trial.decision.exit, Exit::IdleCore | Exit::IdleCandidate));
    let Some(limit) = trial.brief.scan_limit.filter(|&limit| limit > 0 && !of_cores) else { return Ok(()) };
    let looks = trial.brief.scan_looks;
    if i64::from(looks) >= limit {
        let text = format!("{looks} CPUs looked at under nr {limit}");
        return trial.fail("budget", "more CPUs than the limit", text);
    }
    // Clusters have a loop of their own.
    if trial.brief.gave_up && i64::from(looks) + 1 < limit && !trial.state.topology.has_clusters() {
        let text = format!("the scan gave up under nr {limit} with {looks} CPUs looked at");
        let finding = Finding::of("budget", trial, "the limit spent on CPUs not looked at", text);
        return Err(Box::new(Finding { known: known::wasted_budget(trial), ..finding }));
    }
    Ok(())
}

/// SIS counters are those of one call, and tell the same story as the exit.
pub fn counters(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let decision = trial.decision;
    let SisCounters { search, scanned, domain_search, failed, recent_hit, recent_miss, recent_miss_2021 } =
        decision.sis;
    let exit = decision.exit;
    let slow = matches!(exit, Exit::Slow | Exit::SlowOutside | Exit::NewCpu);
    let failed_exit = matches!(exit, Exit::Fallback | Exit::BudgetSpent);
    let searched = failed_exit
        || matches!(exit, Exit::IdleCore | Exit::IdleCandidate | Exit::IdleCpu | Exit::IdleSmt)
        || matches!(exit, Exit::IdleCluster | Exit::ClusterPrev | Exit::ClusterRecentUsed);
    let recent = matches!(exit, Exit::RecentUsed | Exit::ClusterRecentUsed);
    let rules = [
        ("search is 1 unless the slow path was taken", search == u64::from(!slow)),
        ("domain_search is 1 where the LLC was searched", domain_search == u64::from(searched)),
        ("failed is 1 at the last return", failed == u64::from(failed_exit)),
        ("recent_hit is 1 where recent_used_cpu was returned", recent_hit == u64::from(recent)),
        ("a hit is no miss", recent_hit + recent_miss_2021 <= 1 && recent_miss <= recent_miss_2021),
        ("one is scanned on the fast path, more in the domain", scanned >= search && (searched || scanned == search)),
        ("probes are those of the walk", decision.probes == trial.brief.probes),
        ("only wakeups search", trial.wakeup.kind == WakeKind::Ttwu || search == 0),
    ];
    match rules.iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((rule, _)) => trial.fail("counters", rule, format!("{:?}, probes {}", decision.sis, decision.probes)),
    }
}

/// ttwu_move_affine counts wakees that wake_affine() pulled to the waker's CPU, and no others.
pub fn schedstat(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let this_cpu = trial.wakeup.this_cpu;
    match trial.brief.moved_affine.filter(|&target| target != this_cpu) {
        None => Ok(()),
        Some(target) => {
            let text = format!("ttwu_move_affine counted with target {target}; this_cpu {this_cpu}");
            let finding = Finding::of("schedstat", trial, "counted as moved, but prev was chosen", text);
            Err(Box::new(Finding { known: known::counted_affine(trial), ..finding }))
        }
    }
}

/// Only the target's shared state loses has_idle_cores, and a decision never sets it.
pub fn writes(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let writes = &trial.decision.writes;
    if let Some((shared, has)) = writes.has_idle_cores {
        let topology = &trial.state.topology;
        let of = |cpu: Cpu| topology.llc_shared(cpu) == Some(shared) || topology.balance_shared(cpu) == Some(shared);
        if has || !trial.target().is_some_and(of) {
            let text = format!("has_idle_cores of shared state {shared} = {has}, target {}", shown(trial.target()));
            let finding = Finding::of("writes", trial, "has_idle_cores of another LLC, or set", text);
            return Err(Box::new(Finding { known: known::other_llc(trial), ..finding }));
        }
    }
    let flips_counted = writes.wakee_flips.is_some() && trial.wakeup.kind != WakeKind::Ttwu;
    if flips_counted {
        return trial.fail("writes", "flips counted without a wakeup", format!("{:?}", writes.wakee_flips));
    }
    let prev = trial.wakeup.prev_cpu;
    if trial.wakeup.p != trial.wakeup.current && writes.p_recent_used_cpu.is_some_and(|cpu| cpu != prev) {
        let text = format!("recent_used_cpu = {:?}, prev_cpu {prev}", writes.p_recent_used_cpu);
        return trial.fail("writes", "the wakee's recent_used_cpu is not prev_cpu", text);
    }
    Ok(())
}

/// What a decision leaned on it also read, and in a scenario every input is known or follows from the declared clock.
pub fn provenance(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    let Provenance { derived, stated, assumed, unknown } = trial.decision.leaned_on;
    let text = || format!("read {:?}, leaned on {:?}", trial.decision.read, trial.decision.leaned_on);
    if !trial.decision.read.contains(derived | stated | assumed | unknown) {
        return trial.fail("provenance", "leaned on what was not read", text());
    }
    if !unknown.is_empty() {
        return trial.fail("provenance", "unknown in a scenario", text());
    }
    Ok(())
}

/// No run queue is taken beyond nr_cpu_ids.
pub fn faults(trial: &Trial<'_>) -> Result<(), Box<Finding>> {
    if trial.decision.faults == 0 {
        return Ok(());
    }
    let text = format!("{} times", trial.decision.faults);
    let finding = Finding::of("faults", trial, "run queue beyond nr_cpu_ids", text);
    Err(Box::new(Finding { known: known::beyond_nr_cpu_ids(trial), ..finding }))
}
