// SPDX-License-Identifier: GPL-2.0-or-later
//! What a patch may change and what it may not, on many random machines.

mod support;

use std::sync::Arc;

use rayon::prelude::*;
use sisdiff::cpumask::Cpumask;
use sisdiff::fair::{Decision, Exit, Hidden, Implementation, Model, Walk};
use sisdiff::machine::{Inputs, State, Task, TaskId};
use sisdiff::spec::{ModelSpec, Patch, RELEASES, SchedFeat};
use sisdiff::topology::{Domain, Parts, SdFlags, Topology};
use sisdiff::units::{Comm, Cpu, Pid};
use sisdiff::wakeup::WakeKind;
use support::{Scene, Scenes};

const SCENES: usize = 100_000;

fn spec(text: &str) -> ModelSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Everything one implementation says and keeps: decision with its writes and probe count, probe order, hidden state.
#[derive(Debug, PartialEq)]
struct Said {
    decision: Decision,
    probes: String,
    hidden: Hidden,
}

fn run(spec: ModelSpec, scene: &Scene) -> Vec<Said> {
    let mut model = Model::new(spec, &scene.state.topology);
    model.hidden = scene.hidden.clone();
    let mut said = Vec::new();
    for wakeup in &scene.wakeups {
        // Recording is slow: the order of the probes is compared in every fourth scene, their number in all.
        let mut walk = Walk::default();
        let recorded = scene.state.jiffies.is_multiple_of(4).then_some(&mut walk);
        let decision = model.select_task_rq(&scene.state, wakeup, recorded);
        said.push(Said { decision, probes: walk.probes(), hidden: model.hidden.clone() });
    }
    said
}

/// Calls `check` with `SCENES` scenes, on all CPUs; the scenes do not depend on how many those are.
fn for_scenes(seed: u128, check: impl Fn(&Scene) + Sync) {
    const CHUNK: usize = 1000;
    (0..SCENES / CHUNK).into_par_iter().for_each(|chunk| {
        let mut scenes = Scenes::new(seed * 1_000_000 + chunk as u128);
        for _ in 0..CHUNK {
            check(&scenes.scene());
        }
    });
}

/// The decisions of a scene's wakeups and the hidden state after them.
fn trail(spec: ModelSpec, scene: &Scene) -> (Vec<Decision>, Hidden) {
    let mut model = Model::new(spec, &scene.state.topology);
    model.hidden = scene.hidden.clone();
    let decisions = scene.wakeups.iter().map(|wakeup| model.select_task_rq(&scene.state, wakeup, None)).collect();
    (decisions, model.hidden)
}

/// Each bit by itself, applied and taken back again: decisions, writes, checks and the state that is left are the base's.
#[test]
fn a_patch_that_is_off_changes_nothing() {
    let releases: Vec<_> = RELEASES.iter().filter(|info| !info.patches.is_empty()).collect();
    for_scenes(7, |scene| {
        for &info in &releases {
            let base = ModelSpec::of(info);
            let expected = trail(base, scene);
            for patch in info.patches {
                let off = base.with_patches(patch.bits).with_patches(Patch::empty());
                assert!(!off.patches().intersects(patch.bits - info.base));
                assert_eq!(expected, trail(off, scene), "{} without {}", info.name, patch.name);
            }
        }
    });
}

/// A bit that a release does not know changes nothing there either.
#[test]
fn a_patch_of_another_release_changes_nothing() {
    let of = |name: &str| ModelSpec::of(RELEASES.iter().find(|info| info.name == name).expect(name));
    let mel =
        Patch::NO_SIS_AVG_CPU | Patch::SCAN_COST | Patch::RECENT_USED | Patch::IDLE_CANDIDATE | Patch::FIX_CPUS_PTR;
    let soft = Patch::SOFT_AFFINITY | Patch::TUNABLES;
    let pairs = [
        ("v5.2", Patch::SCAN_COST | Patch::RECENT_USED | Patch::IDLE_CANDIDATE),
        ("v5.11", soft),
        ("v7.3", mel | soft),
    ];
    for_scenes(14, |scene| {
        let (name, foreign) = pairs[scene.state.jiffies as usize % pairs.len()];
        let base = of(name);
        assert_eq!(trail(base, scene), trail(base.with_patches(foreign), scene), "{name} with {foreign:?}");
    });
}

#[test]
fn no_sis_avg_cpu_changes_nothing_where_the_feature_is_off() {
    let (base, patched) = (spec("v5.11"), spec("v5.11+no-sis-avg-cpu"));
    for_scenes(1, |scene| assert_eq!(run(base, scene), run(patched, scene)));
}

#[test]
fn scan_cost_changes_nothing_where_masks_cost_nothing_and_sis_prop_is_on() {
    let (base, patched) = (spec("v5.11"), spec("v5.11+scan-cost"));
    for_scenes(2, |scene| assert_eq!(run(base, scene), run(patched, scene)));
}

#[test]
fn scan_cost_without_sis_prop_books_no_cost() {
    let patched = spec("v5.11+scan-cost:NO_SIS_PROP");
    for_scenes(3, |scene| {
        for said in run(patched, scene) {
            assert_eq!(said.decision.writes.avg_scan_cost_ns, None);
        }
    });
}

#[test]
fn idle_candidate_changes_nothing_where_no_core_search_fails() {
    let (base_spec, patched) = (spec("v5.11"), spec("v5.11+idle-candidate"));
    for_scenes(4, |scene| {
        let (with, base) = (run(patched, scene), run(base_spec, scene));
        for (with, base) in with.iter().zip(&base) {
            if with.decision.exit == Exit::IdleCandidate {
                // The core search failed, found this CPU on its way, and nothing after it was asked.
                assert_eq!(with.decision.writes.has_idle_cores.map(|(_, has)| has), Some(false));
                assert!(base.probes.starts_with(&with.probes));
                break;
            }
            assert_eq!(with, base);
        }
    });
}

#[test]
fn fix_cpus_ptr_changes_nothing_without_recent_used() {
    let (base, patched) = (spec("v5.11"), spec("v5.11+fix-cpus-ptr"));
    for_scenes(5, |scene| assert_eq!(run(base, scene), run(patched, scene)));
}

#[test]
fn recent_used_v1_does_as_recent_used() {
    let both =
        |others: &str| (spec(&format!("v5.11+recent-used{others}")), spec(&format!("v5.11+recent-used-v1{others}")));
    let pairs = ["", "+no-sis-avg-cpu+scan-cost+idle-candidate", "+fix-cpus-ptr"].map(both);
    for_scenes(6, |scene| {
        let (v2, v1) = pairs[(scene.state.jiffies % 3) as usize];
        assert_eq!(run(v2, scene), run(v1, scene), "{v1}");
    });
}

#[test]
fn fix_cpus_ptr_changes_only_what_the_affinity_of_recent_used_cpu_decides() {
    let differing = std::sync::atomic::AtomicUsize::new(0);
    let (bug_spec, fixed_spec) = (spec("v5.11+recent-used"), spec("v5.11+recent-used+fix-cpus-ptr"));
    for_scenes(8, |scene| {
        let (bug, fixed) = (run(bug_spec, scene), run(fixed_spec, scene));
        for ((bug, fixed), wakeup) in bug.iter().zip(&fixed).zip(&scene.wakeups) {
            let cpus_ptr = &scene.state.tasks[wakeup.p].cpus_ptr;
            if fixed.decision.exit == Exit::RecentUsed {
                assert!(!fixed.decision.is_outside(cpus_ptr), "{:?}", fixed.decision);
            }
            if bug.decision.class_cpu != fixed.decision.class_cpu || bug.decision.exit != fixed.decision.exit {
                differing.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                // Either the bug took a recent CPU that is not allowed, or it let an allowed one lie because prev is not.
                match (bug.decision.exit, fixed.decision.exit) {
                    (Exit::RecentUsed, _) => assert!(bug.decision.is_outside(cpus_ptr), "{bug:?}\n{fixed:?}"),
                    (_, Exit::RecentUsed) => assert!(!cpus_ptr.test(wakeup.prev_cpu), "{bug:?}\n{fixed:?}"),
                    exits => panic!("{exits:?}"),
                }
                // From here on their hidden states may differ.
                break;
            }
            if bug.hidden != fixed.hidden {
                break;
            }
        }
    });
    assert!(differing.into_inner() > 100, "the bug was hardly met");
}

/// Four CPUs that share a cache.
fn smp4() -> Arc<Topology> {
    let all = Cpumask::first_n(4);
    let flags = SdFlags::SHARE_LLC | SdFlags::WAKE_AFFINE;
    let mc = Domain { level: 1, name: "MC".into(), span: all, flags, imbalance_pct: 117, imb_numa_nr: 0 };
    let parts = Parts {
        nr_cpu_ids: 4,
        online: all,
        smt: (0..4).map(|cpu| Cpumask::of(Cpu(cpu))).collect(),
        node: vec![0; 4],
        capacity_orig: vec![1024; 4],
        domains: vec![mc],
        ..Parts::default()
    };
    Arc::new(Topology::new(parts).expect("a machine"))
}

#[test]
fn recent_used_can_leave_the_affinity_mask_and_the_fix_does_not() {
    // Four CPUs of one LLC. The wakee may run on 0 and 1, was last on 0, and was once on 3, which is idle; its waker runs
    // on 0, nothing but 3 is idle.
    let mut scene = Scenes::new(0).scene();
    let topology = smp4();
    let mut state = State::new(topology.clone());
    state.rq.curr_idle = Cpumask::of(Cpu(3));
    state.rq.nr_running = vec![1, 1, 1, 0].into();
    let allowed = Cpumask::first_n(2);
    let mut hidden = Hidden::new(&topology);
    let mut add = |name: &[u8], cpus_ptr| {
        let id = TaskId(state.tasks.0.len() as u32);
        state.tasks.0.push(Task::new(Pid(id.0 as i32), Comm::new(name), cpus_ptr, Cpu(0)));
        hidden.task_mut(id, Cpu(3));
        id
    };
    let (p, current) = (add(b"wakee", allowed), add(b"waker", Cpumask::first_n(4)));
    let wakeup = sisdiff::wakeup::Wakeup { p, current, this_cpu: Cpu(0), prev_cpu: Cpu(0), ..scene.wakeups.remove(0) };
    let wakeup = sisdiff::wakeup::Wakeup { kind: sisdiff::wakeup::WakeKind::Ttwu, sync: false, ..wakeup };
    let decide = |text| {
        let mut model = Model::new(spec(text), &topology);
        model.hidden = hidden.clone();
        model.select_task_rq(&state, &wakeup, None)
    };

    let bug = decide("v5.11+recent-used");
    assert_eq!((bug.class_cpu, bug.exit), (Cpu(3), Exit::RecentUsed));
    assert!(bug.is_outside(&allowed));
    assert_eq!(bug.final_cpu, Cpu(0), "select_fallback_rq() brings it back");

    let fixed = decide("v5.11+recent-used+fix-cpus-ptr");
    assert_eq!((fixed.class_cpu, fixed.exit), (Cpu(0), Exit::Fallback));
    let base = decide("v5.11");
    assert_eq!((base.class_cpu, base.exit), (Cpu(0), Exit::Fallback));
}

#[test]
fn peeking_leaves_no_trace_and_recording_changes_nothing() {
    for_scenes(9, |scene| {
        let one_of = scene.state.jiffies as usize % RELEASES.len();
        for info in &RELEASES[one_of..=one_of] {
            let spec =
                info.patches.first().map_or(ModelSpec::of(info), |patch| ModelSpec::of(info).with_patches(patch.bits));
            let mut model = Model::new(spec, &scene.state.topology);
            model.hidden = scene.hidden.clone();
            let wakeup = &scene.wakeups[0];
            let peeked = model.peek(&scene.state, wakeup, None);
            assert_eq!(model.hidden, scene.hidden, "{spec}");
            let decided = model.select_task_rq(&scene.state, wakeup, Some(&mut Walk::default()));
            assert_eq!(peeked, decided, "{spec}");
        }
    });
}

/// Wakee flips can do nothing but turn wake_wide(): the decision is one of the two that peek_wide() gives.
#[test]
fn peeking_both_ways_brackets_the_decision_and_leaves_no_trace() {
    let both = std::sync::atomic::AtomicU32::new(0);
    for_scenes(13, |scene| {
        for info in RELEASES {
            let mut model = Model::new(ModelSpec::of(info), &scene.state.topology);
            model.hidden = scene.hidden.clone();
            for task in &mut model.hidden.tasks {
                task.known.set_unknown(Inputs::WAKEE_FLIPS);
            }
            let hidden = model.hidden.clone();
            let wakeup = &scene.wakeups[0];
            let peeked = model.peek_wide(&scene.state, wakeup);
            assert_eq!(model.hidden, hidden, "{}", info.name);
            let Some(peeked) = peeked else {
                assert_ne!(wakeup.kind, WakeKind::Ttwu);
                continue;
            };
            let decided = model.select_task_rq(&scene.state, wakeup, None);
            let is = |other: &Decision| (other.class_cpu, other.exit) == (decided.class_cpu, decided.exit);
            assert!(peeked.iter().any(is), "{}: {decided:?} is none of {peeked:?}", info.name);
            both.fetch_add(u32::from(peeked[0].class_cpu != peeked[1].class_cpu), std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(both.into_inner() > 0, "wake_wide() never mattered");
}

#[test]
fn soft_affinity_changes_nothing_where_nobody_set_it() {
    // No virtual CPU is preempted: the patch asks idle_cpu() where the base asks available_idle_cpu(). A scan that gives up
    // books its cost with the patch only, and nothing after it counts.
    let (base, patched) = (spec("v5.2"), spec("v5.2+soft-affinity+tunables"));
    for_scenes(11, |scene| {
        let mut scene =
            Scene { state: scene.state.clone(), hidden: scene.hidden.clone(), wakeups: scene.wakeups.clone() };
        scene.state.rq.vcpu_preempted = Cpumask::EMPTY;
        for task in &mut scene.state.tasks.0 {
            task.cpus_preferred = task.cpus_ptr.clone();
            task.affinity_unequal = false;
        }
        for (base, patched) in run(base, &scene).iter().zip(&run(patched, &scene)) {
            assert_eq!(base.decision.class_cpu, patched.decision.class_cpu);
            assert_eq!(base.decision.exit, patched.decision.exit);
            assert_eq!(base.probes.replace('I', "A"), patched.probes.replace('I', "A"));
            if base.hidden != patched.hidden {
                assert_eq!(base.decision.writes.avg_scan_cost_ns, None);
                break;
            }
        }
    });
}

#[test]
fn a_release_reads_what_it_says_and_nothing_else() {
    for info in RELEASES {
        let read = (0..40u128)
            .into_par_iter()
            .map(|chunk| {
                let mut scenes = Scenes::new(12_000_000 + chunk);
                let mut read = Inputs::empty();
                for i in 0..250 {
                    let scene = scenes.scene();
                    let mut spec = ModelSpec::of(info);
                    if i % 2 == 0 {
                        spec = spec.with_features(SchedFeat::all());
                    }
                    let mut model = Model::new(spec, &scene.state.topology);
                    model.hidden = scene.hidden.clone();
                    read |= model.select_task_rq(&scene.state, &scene.wakeups[0], None).read;
                }
                read
            })
            .reduce(Inputs::empty, |a, b| a | b);
        assert_eq!(read, info.reads, "{}", info.name);
    }
}

#[test]
fn switches_are_read_where_they_are_named() {
    // Without SIS_PROP a v5.11 scan never gives up.
    let spec = spec("v5.11:NO_SIS_PROP");
    assert!(!spec.features().contains(SchedFeat::SIS_PROP));
    for_scenes(10, |scene| {
        for said in run(spec, scene) {
            assert_ne!(said.decision.exit, Exit::BudgetSpent);
        }
    });
}
