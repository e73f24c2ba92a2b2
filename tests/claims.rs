// SPDX-License-Identifier: GPL-2.0-or-later
//! What the mails say that their patches do not change, over many states and over many sequences of wakeups.
//!
//! docs/claims.md says the same in words. Where a claim does not hold, the test says by which cause it breaks, that there
//! is no other, and plays the smallest case that breaks it.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sisdiff::cpumask::Cpumask;
use sisdiff::fair::{Decision, Exit, Implementation, Model, Step, Walk, WalkStep};
use sisdiff::fuzz_loop;
use sisdiff::machine::State;
use sisdiff::scenario::{Case, CpuState, Event, Load, Player, World};
use sisdiff::spec::{ModelSpec, Patch, SchedFeat};
use sisdiff::units::Cpu;
use sisdiff::wakeup::{WakeKind, Wakeup};
use support::{Scene, Scenes};

/// States, and sequences, of each claim.
const MANY: usize = 100_000;
/// Sequences without the cause that a claim breaks by: the same is asked of them state by state, too.
const SOME: usize = 20_000;

/// One wakeup decided by both implementations of a pair.
struct Asked<'a> {
    state: &'a State,
    wakeup: &'a Wakeup,
    /// `avg_scan_cost` of the waker's CPU before the decision, as each has it.
    costs: [u64; 2],
    decisions: [Decision; 2],
    walks: [Walk; 2],
    /// Features of the first.
    features: SchedFeat,
    /// By how much the clock of each went on.
    took_ns: [u64; 2],
}

impl Asked<'_> {
    /// CPU and return.
    fn same_choice(&self) -> bool {
        let [a, b] = &self.decisions;
        (a.class_cpu, a.final_cpu, a.exit) == (b.class_cpu, b.final_cpu, b.exit)
    }

    fn same_probes(&self) -> bool {
        let [a, b] = &self.decisions;
        a.probes == b.probes && self.walks[0].probes() == self.walks[1].probes()
    }

    /// Everything that a decision does.
    fn same_all(&self) -> bool {
        let all = |d: &Decision| (d.probes, d.mask_ops, d.sis, d.faults, d.writes);
        self.same_choice() && self.same_probes() && all(&self.decisions[0]) == all(&self.decisions[1])
    }

    fn chose_idle(&self, side: usize) -> bool {
        is_idle(self.state, self.decisions[side].class_cpu)
    }
}

/// Idle to the wakeup path, or running SCHED_IDLE tasks only.
fn is_idle(state: &State, cpu: Cpu) -> bool {
    let (rq, at) = (&state.rq, cpu.index());
    let sched_idle = rq.nr_running[at] != 0 && rq.nr_running[at] == rq.idle_h_nr_running[at];
    is_available(state, cpu) || sched_idle
}

fn is_available(state: &State, cpu: Cpu) -> bool {
    let rq = &state.rq;
    rq.curr_idle.test(cpu)
        && rq.nr_running[cpu.index()] == 0
        && !rq.ttwu_pending.test(cpu)
        && !rq.vcpu_preempted.test(cpu)
}

/// Two models that are asked the same.
struct Pair {
    models: [Model; 2],
    records: bool,
}

impl Pair {
    fn new(specs: [ModelSpec; 2], state: &State, records: bool) -> Self {
        Self { models: specs.map(|spec| Model::new(spec, &state.topology)), records }
    }

    fn ask<'a>(&mut self, state: &'a State, wakeup: &'a Wakeup) -> Asked<'a> {
        let mut asked = Asked {
            state,
            wakeup,
            costs: [0; 2],
            decisions: [wakeup; 2].map(|w| blank(w.prev_cpu)),
            walks: [Walk::default(), Walk::default()],
            features: self.models[0].spec().features(),
            took_ns: [0; 2],
        };
        for (at, model) in self.models.iter_mut().enumerate() {
            asked.costs[at] = model.hidden.cpus[wakeup.this_cpu.index()].avg_scan_cost_ns;
            let before = model.hidden.clock.now_ns;
            let walk = self.records.then_some(&mut asked.walks[at]);
            asked.decisions[at] = model.select_task_rq(state, wakeup, walk);
            asked.took_ns[at] = model.hidden.clock.now_ns - before;
        }
        asked
    }
}

/// A decision that is overwritten before anyone looks.
fn blank(cpu: Cpu) -> Decision {
    Decision {
        class_cpu: cpu,
        final_cpu: cpu,
        exit: Exit::NewCpu,
        probes: 0,
        mask_ops: 0,
        sis: Default::default(),
        read: Default::default(),
        leaned_on: Default::default(),
        faults: 0,
        writes: Default::default(),
    }
}

fn pair(texts: [&str; 2]) -> [ModelSpec; 2] {
    texts.map(|text| text.parse().unwrap_or_else(|error| panic!("{error}")))
}

/// Puts `check` to one decision in each of [`MANY`] states that `prepare` takes; says how many were asked of.
fn states(specs: [&str; 2], seed: u128, prepare: impl Fn(&mut Scene) + Sync, check: impl Fn(&Asked<'_>) + Sync) {
    const CHUNK: usize = 1000;
    let specs = pair(specs);
    (0..MANY / CHUNK).into_par_iter().for_each(|chunk| {
        let mut scenes = Scenes::new(seed * 1_000_000 + chunk as u128);
        for at in 0..CHUNK {
            let mut scene = scenes.scene();
            prepare(&mut scene);
            let mut pair = Pair::new(specs, &scene.state, at % 4 == 0);
            pair.models.iter_mut().for_each(|model| model.hidden = scene.hidden.clone());
            check(&pair.ask(&scene.state, &scene.wakeups[0]));
        }
    });
}

/// Plays a case; each implementation keeps its own hidden state, the first one places the tasks.
struct Duel<F> {
    pair: Pair,
    check: F,
}

impl<F: FnMut(&Asked<'_>)> Player for Duel<F> {
    type Error = std::convert::Infallible;

    fn step(&mut self, state: &State, step: &Step) -> Result<(), Self::Error> {
        self.pair.models.iter_mut().for_each(|model| model.step(state, step));
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, Self::Error> {
        let asked = self.pair.ask(state, wakeup);
        (self.check)(&asked);
        Ok(asked.decisions[0].final_cpu)
    }
}

fn play(case: &Case, specs: [ModelSpec; 2], records: bool, check: impl FnMut(&Asked<'_>)) -> bool {
    let Ok(mut world) = World::new(case) else { return false };
    let mut pair = Pair::new(specs, world.state(), records);
    for model in &mut pair.models {
        let settings = &case.settings;
        model.set_features((model.spec().features() | settings.features.on) - settings.features.off);
        model.hidden.clock.probe_ns = settings.probe_ns;
        model.hidden.clock.clock_read_ns = settings.clock_read_ns;
        model.hidden.clock.mask_op_ns = settings.mask_op_ns;
        model.hidden.sysctl_sched_preferred = settings.sched_preferred;
        model.hidden.sysctl_sched_allowed = settings.sched_allowed;
    }
    let mut duel = Duel { pair, check };
    let Ok(()) = world.begin(&mut duel);
    for event in &case.events {
        let Ok(_) = world.play(event, &mut duel);
    }
    true
}

/// Puts `check` to each decision of `many` generated sequences that `prepare` takes.
fn sequences(
    specs: [&str; 2],
    (seed, many): (u64, usize),
    records: bool,
    prepare: impl Fn(&mut Case) + Sync,
    check: impl Fn(&Asked<'_>) + Sync,
) {
    let specs = pair(specs);
    let (played, decisions) = (AtomicUsize::new(0), AtomicUsize::new(0));
    (0..many).into_par_iter().for_each(|number| {
        let mut case = sequence(seed, number as u64);
        prepare(&mut case);
        let ok = play(&case, specs, records, |asked| {
            decisions.fetch_add(1, Ordering::Relaxed);
            check(asked);
        });
        played.fetch_add(usize::from(ok), Ordering::Relaxed);
    });
    println!("{} against {}: {decisions:?} decisions in {played:?} sequences", specs[0], specs[1]);
    assert_eq!(played.into_inner(), many);
    assert!(decisions.into_inner() > 3 * many);
}

/// The generated sequence of that number, on a machine small enough to play many of them.
fn sequence(seed: u64, number: u64) -> Case {
    const CPUS_MAX: u32 = 16;
    let mut case = fuzz_loop::case(seed, number);
    let mut again = 1 << 40;
    while case.machine.present().weight() > CPUS_MAX || case.decisions() < 2 {
        again += 1;
        case = fuzz_loop::case(seed, number + (again << 8));
    }
    case.events.truncate(20);
    case
}

fn without(case: &mut Case, feature: SchedFeat) {
    case.settings.features.on -= feature;
    case.settings.features.off |= feature;
}

fn nothing<T>(_: &mut T) {}

fn tell(count: &AtomicUsize, holds: bool) {
    count.fetch_add(usize::from(holds), Ordering::Relaxed);
}

// ---- Patch 1/4: SIS_AVG_CPU is removed ----

const PATCH_1: [&str; 2] = ["v5.11", "v5.11+no-sis-avg-cpu"];

/// Holds: choice, probes, writes and cost of every decision.
#[test]
fn patch_1_changes_nothing_with_sis_avg_cpu_off() {
    states(PATCH_1, 101, nothing, |asked| assert!(asked.same_all(), "{:?}", asked.decisions));
    sequences(
        PATCH_1,
        (101, MANY),
        false,
        |case| without(case, SchedFeat::SIS_AVG_CPU),
        |asked| {
            assert!(asked.same_all(), "{:?}", asked.decisions);
            assert_eq!(asked.costs[0], asked.costs[1]);
        },
    );
}

/// And with the feature on it does not, or the test above would show nothing.
#[test]
fn patch_1_changes_something_with_sis_avg_cpu_on() {
    let differ = AtomicUsize::new(0);
    let specs = ["v5.11:SIS_AVG_CPU", "v5.11+no-sis-avg-cpu"];
    states(specs, 102, nothing, |asked| tell(&differ, !asked.same_choice()));
    println!("{differ:?} of {MANY} decisions differ with SIS_AVG_CPU on");
    assert!(differ.into_inner() > 100);
}

// ---- Patch 2/4: the bookkeeping of avg_scan_cost moves under SIS_PROP ----

const PATCH_2: [&str; 2] = ["v5.11", "v5.11+scan-cost"];

/// Holds for each decision by itself: whatever the switches, the same choice after the same looks.
#[test]
fn patch_2_changes_only_the_bookkeeping_of_one_decision() {
    for specs in [
        PATCH_2,
        ["v5.11:NO_SIS_PROP", "v5.11+scan-cost:NO_SIS_PROP"],
        ["v5.11:SIS_AVG_CPU", "v5.11+scan-cost:SIS_AVG_CPU"],
    ] {
        let booked = AtomicUsize::new(0);
        let costs = |scene: &mut Scene| scene.hidden.clock.mask_op_ns = 7;
        states(specs, 103, costs, |asked| {
            let [a, b] = asked.decisions;
            assert!(asked.same_choice() && asked.same_probes() && a.sis == b.sis, "{a:?}\n{b:?}");
            let writes = |mut writes: sisdiff::fair::Writes| {
                writes.avg_scan_cost_ns = None;
                writes
            };
            assert_eq!(writes(a.writes), writes(b.writes));
            tell(&booked, a.writes != b.writes);
        });
        println!("{}: {booked:?} of {MANY} decisions book another cost", specs[0]);
        assert!(booked.into_inner() > 100);
    }
}

/// Does not hold over sequences: what is booked bounds the scans to come. The only cause is that avg_scan_cost differs,
/// because the mask's time is no longer in it, or because without SIS_PROP nobody books for SIS_AVG_CPU any more.
#[test]
fn patch_2_changes_later_decisions_through_the_cost() {
    let broken = AtomicUsize::new(0);
    sequences(
        PATCH_2,
        (104, MANY),
        false,
        |case| case.settings.mask_op_ns = 100,
        |asked| {
            if asked.costs[0] == asked.costs[1] {
                assert!(asked.same_choice(), "{:?}", asked.decisions);
            }
            tell(&broken, !asked.same_choice());
        },
    );
    println!("patch 2/4: {broken:?} decisions differ through avg_scan_cost");
    assert!(broken.into_inner() > 10);
    // Where masks cost nothing and SIS_PROP is on, nothing at all is left.
    let free = |case: &mut Case| {
        case.settings.mask_op_ns = 0;
        case.settings.features.off -= SchedFeat::SIS_PROP;
    };
    sequences(PATCH_2, (105, SOME), false, free, |asked| {
        assert!(asked.same_all() || asked.same_choice() && asked.same_probes())
    });
}

// ---- Patch 4/4: an idle CPU met on the way to an idle core is kept ----

const PATCH_4: [&str; 2] = ["v5.11", "v5.11+idle-candidate"];

fn lost(asked: &Asked<'_>) -> bool {
    asked.chose_idle(0) && !asked.chose_idle(1)
}

/// Holds for each decision by itself: where the base finds an idle CPU, so does the patch.
#[test]
fn patch_4_loses_no_idle_cpu_in_one_decision() {
    let kept = AtomicUsize::new(0);
    states(PATCH_4, 106, nothing, |asked| {
        assert!(!lost(asked), "{:?}", asked.decisions);
        tell(&kept, asked.decisions[1].exit == Exit::IdleCandidate);
    });
    println!("patch 4/4: {kept:?} of {MANY} decisions end with the candidate");
    assert!(kept.into_inner() > 1000);
}

/// Scans have been dear, so that limits are near, and all wakeups come from one CPU, whose average they share.
fn dear(case: &mut Case) {
    let online = case.machine.online();
    let Some(first) = online.first() else { return };
    case.settings.features = Default::default();
    case.machine.llcs.iter_mut().for_each(|llc| llc.has_idle_cores = true);
    case.cpus.retain(|cpu| cpu.cpu != first);
    let cost = 700 + 100 * (case.events.len() as u64 % 16);
    let state = CpuState {
        cpu: first,
        load: Load::fair(1),
        avg_idle_ns: 512_000,
        avg_scan_cost_ns: cost,
        ..CpuState::default()
    };
    case.cpus.push(state);
    case.cpus.sort_by_key(|cpu| cpu.cpu);
    case.tasks.iter_mut().for_each(|task| (task.cpu, task.queued, task.cpus_ptr) = (first, false, None));
    for event in &mut case.events {
        if let Event::Wake { from, .. } = event {
            *from = first;
        }
    }
}

/// Does not hold over sequences: a search that ends with the candidate books no scan, so that avg_scan_cost stays as high
/// as it was, and a later scan gives up where the base's goes on.
#[test]
fn patch_4_can_lose_an_idle_cpu_later() {
    let (broken, otherwise) = (AtomicUsize::new(0), AtomicUsize::new(0));
    sequences(PATCH_4, (107, MANY), false, dear, |asked| {
        if lost(asked) {
            tell(&broken, true);
            tell(&otherwise, asked.costs[0] == asked.costs[1] || asked.decisions[1].exit != Exit::BudgetSpent);
        }
    });
    println!("patch 4/4: {broken:?} idle CPUs lost through avg_scan_cost");
    assert_eq!(otherwise.into_inner(), 0, "another cause");
    assert!(broken.into_inner() > 0);
    let no_budget = |case: &mut Case| {
        without(case, SchedFeat::SIS_PROP);
        without(case, SchedFeat::SIS_AVG_CPU);
    };
    sequences(PATCH_4, (108, SOME), false, no_budget, |asked| assert!(!lost(asked), "{:?}", asked.decisions));
}

// ---- Soft affinity RFC: "no overhead", no effect where it is not used ----

const UNUSED: [&str; 2] = ["v5.2", "v5.2+soft-affinity"];

fn unused(scene: &mut Scene) {
    for task in &mut scene.state.tasks.0 {
        task.cpus_preferred = task.cpus_ptr.clone();
        task.affinity_unequal = false;
    }
}

fn unused_case(case: &mut Case) {
    case.tasks.iter_mut().for_each(|task| task.cpus_preferred = None);
}

fn awake(case: &mut Case) {
    case.cpus.iter_mut().for_each(|cpu| cpu.preempted = false);
    case.events.retain(|event| !matches!(event, Event::Preempt(..)));
}

/// Holds for each decision by itself where no virtual CPU is preempted; the cost of a scan that gave up is booked, and read
/// from the clock, by the patch only.
#[test]
fn the_rfc_unused_chooses_as_before_but_is_not_free() {
    let dearer = AtomicUsize::new(0);
    let quiet = |scene: &mut Scene| {
        unused(scene);
        scene.state.rq.vcpu_preempted = Cpumask::EMPTY;
        scene.hidden.clock.clock_read_ns = 1;
    };
    states(UNUSED, 109, quiet, |asked| {
        let [a, b] = asked.decisions;
        assert!(asked.same_choice() && a.probes == b.probes && a.mask_ops == b.mask_ops, "{a:?}\n{b:?}");
        let gave_up = a.writes.avg_scan_cost_ns.is_none() && b.writes.avg_scan_cost_ns.is_some();
        assert_eq!(asked.took_ns[1] - asked.took_ns[0], u64::from(gave_up));
        tell(&dearer, gave_up);
    });
    println!("the RFC, unused: {dearer:?} of {MANY} decisions read the clock once more");
    assert!(dearer.into_inner() > 100);
}

/// Does not hold with preempted virtual CPUs: the scans for cores and siblings ask idle_cpu(), where v5.2 asks
/// available_idle_cpu().
#[test]
fn the_rfc_unused_takes_preempted_cpus() {
    let differ = AtomicUsize::new(0);
    states(UNUSED, 110, unused, |asked| {
        if !asked.same_choice() {
            tell(&differ, true);
            assert!(!asked.state.rq.vcpu_preempted.is_empty());
        }
    });
    println!("the RFC, unused: {differ:?} of {MANY} decisions differ through preempted virtual CPUs");
    assert!(differ.into_inner() > 10);
}

/// Does not hold over sequences: the cost that only the patch books bounds the scans to come. There is no other cause.
#[test]
fn the_rfc_unused_changes_later_decisions_through_the_cost() {
    let differ = AtomicUsize::new(0);
    let prepare = |case: &mut Case| {
        unused_case(case);
        awake(case);
    };
    sequences(UNUSED, (111, MANY), false, prepare, |asked| {
        if asked.costs[0] == asked.costs[1] {
            assert!(asked.same_choice(), "{:?}", asked.decisions);
        }
        tell(&differ, !asked.same_choice());
    });
    println!("the RFC, unused: {differ:?} decisions differ through avg_scan_cost");
    assert!(differ.into_inner() > 10);
    let no_cost = |case: &mut Case| {
        prepare(case);
        without(case, SchedFeat::SIS_PROP);
        without(case, SchedFeat::SIS_AVG_CPU);
    };
    sequences(UNUSED, (112, SOME), false, no_cost, |asked| assert!(asked.same_choice(), "{:?}", asked.decisions));
}

// ---- Soft affinity RFC: the search of the LLC stays work conserving ----

/// The search of the LLC ended with nothing, by no limit, although an idle CPU of it is allowed.
fn wasted(asked: &Asked<'_>, side: usize) -> Option<Cpu> {
    let decision = &asked.decisions[side];
    let topology = &asked.state.topology;
    if decision.exit != Exit::Fallback || topology.sd_llc(asked.wakeup.this_cpu).is_none() {
        return None;
    }
    let sd = topology.domain(topology.sd_llc(decision.class_cpu)?);
    let allowed = sd.span & *asked.state.tasks[asked.wakeup.p].cpus_ptr;
    allowed.iter().find(|&cpu| is_available(asked.state, cpu))
}

/// Preferred CPUs are a part of those that are allowed, as sched_setaffinity2() keeps them.
fn used(scene: &mut Scene) {
    for task in &mut scene.state.tasks.0 {
        let part = *task.cpus_preferred & *task.cpus_ptr;
        task.cpus_preferred = if part.is_empty() { task.cpus_ptr.clone() } else { part.into() };
        task.affinity_unequal = task.cpus_preferred != task.cpus_ptr;
    }
}

/// Does not hold: with a soft affinity an idle CPU that is allowed but not preferred is left idle. v5.2 never does that,
/// nor does the patch where no soft affinity is set.
#[test]
fn the_rfc_is_not_work_conserving() {
    let specs = ["v5.2:NO_SIS_PROP", "v5.2+soft-affinity:NO_SIS_PROP"];
    let count = AtomicUsize::new(0);
    let check = |asked: &Asked<'_>| {
        assert_eq!(wasted(asked, 0), None, "{:?}", asked.decisions);
        if let Some(cpu) = wasted(asked, 1) {
            let task = &asked.state.tasks[asked.wakeup.p];
            let preferred_idle = task.cpus_preferred.test(cpu) && task.affinity_unequal;
            assert!(task.affinity_unequal && !preferred_idle, "{cpu:?} {:?}", asked.decisions);
            tell(&count, true);
        }
    };
    states(specs, 113, used, check);
    println!(
        "the RFC: {} of {MANY} decisions leave an allowed idle CPU of the LLC idle",
        count.load(Ordering::Relaxed)
    );
    assert!(count.load(Ordering::Relaxed) > 100);
    let limit = |case: &mut Case| {
        without(case, SchedFeat::SIS_PROP);
        without(case, SchedFeat::SIS_AVG_CPU);
    };
    sequences(UNUSED, (114, MANY), false, limit, check);
}

// ---- Soft affinity RFC: the second scan, over allowed but not preferred CPUs, is reached ----

fn scanned(walk: &Walk, wanted: &str) -> bool {
    walk.steps.iter().any(|step| matches!(step, WalkStep::Mask { what, .. } if *what == wanted))
}

/// The test before the second scan of select_idle_cpu() was made, and said no.
fn refused(walk: &Walk) -> bool {
    walk.steps
        .iter()
        .any(|step| matches!(step, WalkStep::Check { what, holds: false } if what.starts_with("second scan")))
}

/// Does not hold in select_idle_cpu(): its condition asks that the first scan ended at the target after more than one look,
/// but the target is looked at first. It is reached in select_idle_core() and select_idle_smt(), which test otherwise.
#[test]
fn the_rfcs_second_scan_of_single_cpus_is_never_reached() {
    let [refusals, cores, siblings] = [0; 3].map(AtomicUsize::new);
    let check = |asked: &Asked<'_>| {
        let walk = &asked.walks[1];
        assert!(!scanned(walk, "scans p->cpus_allowed without p->cpus_preferred"), "{:?}", asked.wakeup);
        tell(&refusals, refused(walk));
        tell(&cores, scanned(walk, "scans cores of p->cpus_allowed without p->cpus_preferred"));
        tell(&siblings, scanned(walk, "scans siblings in the rest of p->cpus_allowed"));
    };
    // States in which every walk is recorded.
    let specs = pair(UNUSED);
    (0..100usize).into_par_iter().for_each(|chunk| {
        let mut scenes = Scenes::new(115_000_000 + chunk as u128);
        for _ in 0..MANY / 100 {
            let mut scene = scenes.scene();
            used(&mut scene);
            let mut pair = Pair::new(specs, &scene.state, true);
            pair.models.iter_mut().for_each(|model| model.hidden = scene.hidden.clone());
            check(&pair.ask(&scene.state, &scene.wakeups[0]));
        }
    });
    sequences(UNUSED, (116, MANY), true, nothing, check);
    println!("the RFC's second scan: single CPUs 0, refused {refusals:?}; cores {cores:?}; siblings {siblings:?}");
    assert!(refusals.into_inner() > 1000 && cores.into_inner() > 100 && siblings.into_inner() > 100);
}

// ---- Witnesses ----

/// A claim that does not hold: its file, its pair, and how a decision shows it.
type Witness = (&'static str, [&'static str; 2], fn(&Asked<'_>) -> bool);

const WITNESSES: &[Witness] = &[
    ("patch-2-mask-cost", PATCH_2, |asked| !asked.same_choice() && asked.features.contains(SchedFeat::SIS_PROP)),
    ("patch-2-sis-avg-cpu", PATCH_2, |asked| !asked.same_choice() && !asked.features.contains(SchedFeat::SIS_PROP)),
    ("patch-4-loses-idle", PATCH_4, lost),
    ("rfc-unused-cost", UNUSED, |asked| {
        !asked.same_choice() && asked.state.rq.vcpu_preempted.is_empty() && is_unused(asked)
    }),
    ("rfc-unused-preempted", UNUSED, |asked| {
        !asked.same_choice() && asked.costs[0] == asked.costs[1] && is_unused(asked)
    }),
    ("rfc-not-conserving", UNUSED, |asked| {
        asked.wakeup.kind == WakeKind::Ttwu && wasted(asked, 1).is_some() && wasted(asked, 0).is_none()
    }),
];

fn is_unused(asked: &Asked<'_>) -> bool {
    let task = &asked.state.tasks[asked.wakeup.p];
    task.cpus_preferred == task.cpus_ptr && !task.affinity_unequal
}

fn breaks(case: &Case, specs: [&str; 2], shows: fn(&Asked<'_>) -> bool) -> bool {
    let mut broken = false;
    play(case, pair(specs), true, |asked| broken |= shows(asked)) && broken
}

/// Each file in tests/claims/ shows what it says, on few CPUs in few events.
#[test]
fn the_witnesses_break_the_claims() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/claims"));
    for &(name, specs, shows) in WITNESSES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect(name);
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(breaks(&case, specs, shows), "{name} shows nothing");
        assert_eq!(case.pair, specs, "{name}");
        assert!(!case.note.is_empty() && case.events.len() <= 4, "{name}: {} events", case.events.len());
        assert!(case.machine.present().weight() <= 8, "{name}");
    }
}

/// Finds and writes the witnesses anew: `cargo test --test claims -- --ignored`.
#[test]
#[ignore = "writes tests/claims"]
fn write_witnesses() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/claims"));
    std::fs::create_dir_all(folder).expect("a folder");
    for &(name, specs, shows) in WITNESSES {
        let mut best: Option<Case> = None;
        let mut found = 0;
        for number in 0..200_000 {
            let mut case = sequence(200, number);
            match name {
                "patch-2-mask-cost" => case.settings.mask_op_ns = 100,
                "patch-2-sis-avg-cpu" => {
                    without(&mut case, SchedFeat::SIS_PROP);
                    case.settings.features.on |= SchedFeat::SIS_AVG_CPU;
                    case.settings.features.off -= SchedFeat::SIS_AVG_CPU;
                    case.settings.mask_op_ns = 0;
                }
                _ => {}
            }
            if name.starts_with("patch-4") {
                dear(&mut case);
            }
            if name.starts_with("rfc-unused") {
                unused_case(&mut case);
            }
            if !breaks(&case, specs, shows) {
                continue;
            }
            let small = sisdiff::shrink::shrink(&case, &mut |case| breaks(case, specs, shows));
            let size = |case: &Case| {
                (case.machine.present().weight() as usize + case.events.len() + case.tasks.len(), case.write().len())
            };
            if best.as_ref().is_none_or(|best| size(&small) < size(best)) {
                best = Some(small);
            }
            found += 1;
            if found == 12 {
                break;
            }
        }
        let mut case = best.unwrap_or_else(|| panic!("{name}: none found"));
        case.pair = specs.map(str::to_owned).to_vec();
        case.note = "what it shows".to_owned();
        println!("{name}:\n{}", case.write());
        std::fs::write(folder.join(format!("{name}.toml")), case.write()).expect("written");
    }
}

/// The patches' bits are where this file thinks they are.
#[test]
fn the_pairs_are_the_mails() {
    let bits = |text: &str| text.parse::<ModelSpec>().expect("a spec").patches();
    assert_eq!(bits(PATCH_1[1]), Patch::NO_SIS_AVG_CPU);
    assert_eq!(bits(PATCH_2[1]), Patch::SCAN_COST);
    assert_eq!(bits(PATCH_4[1]), Patch::IDLE_CANDIDATE);
    assert_eq!(bits(UNUSED[1]), Patch::SOFT_AFFINITY);
}
