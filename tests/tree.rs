// SPDX-License-Identifier: GPL-2.0-or-later
//! The C of real kernel trees against the golden vectors, and against our models.
//!
//! Trees are found in the folder named by SISDIFF_TREES: `linux-5.11`, a directory or a repository, `linux-source-6.1` or
//! `linux-source-6.1.tar.xz` of Debian's package, … Without any the tests say so and do nothing.
#![cfg(feature = "tree")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sisdiff::fair::{Decision, Implementation, Model, Step, Walk};
use sisdiff::machine::State;
use sisdiff::oracle::Maker as _;
use sisdiff::scenario::{Player, World};
use sisdiff::spec::ModelSpec;
use sisdiff::tree::Prepared;
use sisdiff::units::Cpu;
use sisdiff::vectors::{check, read, spec_of};
use sisdiff::wakeup::Wakeup;
use sisdiff::{fuzz_loop, oracle};
use sisdiff_tree::run::Isolation;
use sisdiff_tree::source::Location;
use sisdiff_tree::tree::{Plan, build};

fn trees() -> Option<PathBuf> {
    std::env::var_os("SISDIFF_TREES").map(PathBuf::from)
}

fn vectors() -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    project.ancestors().map(|dir| dir.join("shared/vectors")).find(|dir| dir.is_dir())
}

/// Families of vectors: folder, variant, tree. The v2 series' variants are the tree with patches of the folder `sis-v2`
/// beside it, as diff or mail: `1.patch` to `4.patch` in the order of the series, `p2.patch` to `p4.patch` each alone on
/// v5.11, and `3fix.patch`, upstream's later correction of the third.
const FAMILIES: &[(&str, &str, &str)] = &[
    ("a-v5.11-sis-series", "a0", "linux-5.11"),
    ("b-v5.2-soft-affinity", "b0", "linux-5.2"),
    ("c-v6.1", "c0", "linux-source-6.1"),
    ("d-v6.12", "d0", "linux-6.12"),
    ("e-v5.10.262", "e0", "linux-source-5.10"),
    ("f-v6.12.117", "f0", "linux-source-6.12"),
    ("g-v7.3.4", "g0", "linux-source-7.3"),
    ("a-v5.11-sis-series", "a1", "linux-5.11+1"),
    ("a-v5.11-sis-series", "a2", "linux-5.11+1+2"),
    ("a-v5.11-sis-series", "a3", "linux-5.11+1+2+3"),
    ("a-v5.11-sis-series", "a4", "linux-5.11+1+2+3+4"),
    ("a-v5.11-sis-series", "p2", "linux-5.11+p2"),
    ("a-v5.11-sis-series", "p3", "linux-5.11+p3"),
    ("a-v5.11-sis-series", "p4", "linux-5.11+p4"),
    ("a-v5.11-sis-series", "a3fix", "linux-5.11+1+2+3+3fix"),
];

/// Where the tree of a family is, with its patches; `None`, and a word, if something of it is not here.
fn location(trees: &Path, tree: &str) -> Option<Location> {
    let mut parts = tree.split('+');
    let name = parts.next()?;
    let [plain, archive] = [name.to_owned(), format!("{name}.tar.xz")].map(|name| trees.join(name));
    let path = if archive.exists() { archive } else { plain };
    let patches: Vec<PathBuf> = parts.map(|name| trees.join(format!("sis-v2/{name}.patch"))).collect();
    if let Some(missing) = [&path].into_iter().chain(&patches).find(|path| !path.exists()) {
        println!("{tree}: no {} here", missing.display());
        return None;
    }
    let patches = patches.iter().map(|patch| patch.display().to_string()).collect();
    Some(Location { path, patches, ..Location::default() })
}

/// The vectors were made with an abs() that takes an unsigned number for what it is; the kernel's takes it for a signed one.
const THEIR_ABS: &str = "#undef abs\n#define abs(x) ({ __typeof__(x) __x = (x); __x < 0 ? -__x : __x; })\n";

fn built(location: &Location, shim: Option<&str>) -> Prepared {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let name = [&[location.path.display().to_string()], location.patches.as_slice()].concat().join("+");
    let plan =
        Plan { location: location.clone(), cache: Some(cache), shim: shim.map(str::to_owned), ..Plan::default() };
    let built = build(&plan).unwrap_or_else(|error| panic!("{error}"));
    Prepared::of(&name, built, isolation())
}

/// SISDIFF_TREE_ISOLATION=process runs the trees in processes of their own.
fn isolation() -> Isolation {
    match std::env::var("SISDIFF_TREE_ISOLATION").as_deref() {
        Ok("process") => Isolation::Process,
        Ok("sanitized") => Isolation::Sanitized,
        _ => Isolation::InProcess,
    }
}

#[test]
fn every_field_of_every_vector() {
    let Some(trees) = trees() else {
        println!("no SISDIFF_TREES here: no tree is held against the vectors");
        return;
    };
    let Some(vectors) = vectors() else {
        println!("no ../shared/vectors here: no tree is held against them");
        return;
    };
    let mut wrong = 0;
    for (family, variant, tree) in FAMILIES {
        let Some(location) = location(&trees, tree) else { continue };
        let started = std::time::Instant::now();
        let built = built(&location, None);
        let building = started.elapsed();
        let with_their_abs = self::built(&location, Some(THEIR_ABS));
        for level in ["l1", "l2", "l3", "seq"] {
            let file = vectors.join(family).join(format!("{level}.jsonl.gz"));
            let items = read(&file).unwrap_or_else(|error| panic!("{error}")).items;
            let started = std::time::Instant::now();
            let mut subject = built.open(items[0].topology()).unwrap_or_else(|error| panic!("{error}"));
            let mut other = with_their_abs.open(items[0].topology()).unwrap_or_else(|error| panic!("{error}"));
            let (mut equal, mut compared, mut by_abs) = (0, 0, 0);
            for item in &items {
                let Some(checked) = check::check_subject(item, variant, &mut subject) else { continue };
                compared += 1;
                equal += usize::from(checked.mismatches.is_empty());
                if let Some(fault) = subject.fault() {
                    panic!("case {}: {fault}", item.id);
                }
                if checked.mismatches.is_empty() {
                    continue;
                }
                let checked = check::check_subject(item, variant, &mut other).expect("the item has answers");
                by_abs += usize::from(checked.mismatches.is_empty());
                for mismatch in checked.mismatches.iter().take(usize::from(compared - equal - by_abs <= 2)) {
                    println!("{mismatch}");
                }
            }
            println!(
                "{family} {variant} {level}: {equal} of {compared} equal, {by_abs} more with the vectors' abs(), built in {building:?}, compared in {:?}",
                started.elapsed()
            );
            wrong += compared - equal - by_abs;
        }
    }
    assert_eq!(wrong, 0, "answers differ from the kernel's");
}

/// What a decision says beside the CPU: the exit, the counters, what was read and written.
fn report(of: &Decision) -> String {
    format!("{:?} read {:?} writes {:?} {:?}", of.exit, of.read, of.writes, of.sis)
}

#[test]
fn decisions_are_described_as_by_the_models() {
    let (Some(trees), Some(vectors)) = (trees(), vectors()) else {
        println!("no SISDIFF_TREES or no ../shared/vectors here: no tree is held against a model");
        return;
    };
    for (family, variant, tree) in FAMILIES {
        let (Some(location), Some(spec)) = (location(&trees, tree), spec_of(variant)) else { continue };
        let spec: ModelSpec = spec.parse().expect("specs of variants are valid");
        // The model of 5.2 looks at the affinity mask before it asks wake_wide(), for the RFC's sake.
        let may_read_less = *variant == "b0";
        let may_lean_less = reads_its_own_write(&spec.to_string());
        let built = built(&location, None);
        let mut differ: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut compared, mut shown) = (0, 0);
        for level in ["l2", "l3"] {
            let file = vectors.join(family).join(format!("{level}.jsonl.gz"));
            let items = read(&file).unwrap_or_else(|error| panic!("{error}")).items;
            let mut tree = built.open(items[0].topology()).unwrap_or_else(|error| panic!("{error}"));
            for item in &items {
                let Some(wakeup) = item.wakeup() else { continue };
                let start = &item.start;
                let mut model = Model::new(spec, item.topology());
                model.set_features(start.features);
                model.hidden = start.hidden.clone();
                tree.set_features(start.features);
                tree.hidden = start.hidden.clone();
                let ours = model.select_task_rq(&start.state, &wakeup, None);
                let theirs = tree.select_task_rq(&start.state, &wakeup, None);
                assert_eq!(tree.fault(), None, "case {}", item.id);
                compared += 1;
                let fields = [
                    ("cpu", ours.class_cpu == theirs.class_cpu),
                    ("exit", ours.exit == theirs.exit),
                    ("read", ours.read == theirs.read || may_read_less && ours.read.contains(theirs.read)),
                    ("leaned_on", may_lean_less || ours.leaned_on == theirs.leaned_on),
                    ("writes", ours.writes == theirs.writes),
                    ("sis", ours.sis == theirs.sis),
                    ("hidden", model.hidden == tree.hidden),
                ];
                for (name, same) in fields {
                    *differ.entry(name).or_default() += usize::from(!same);
                }
                if fields.iter().any(|(_, same)| !same) && shown < 4 {
                    shown += 1;
                    println!("{variant} {level} case {}:\n  {}\n  {}", item.id, report(&ours), report(&theirs));
                }
            }
        }
        println!("{family} {variant}: of {compared} differ {differ:?}");
        assert!(compared > 0 && differ.values().all(|&count| count == 0), "{family} {variant}: {differ:?}");
    }
}

/// The third patch reads p->recent_used_cpu after it wrote it. For a model that is derived state; the C tells kinds of
/// input, not when, and is held to have read what was there before.
fn reads_its_own_write(spec: &str) -> bool {
    ["+recent-used", "+mel-v2"].iter().any(|patch| spec.contains(patch))
}

/// Plays on until two implementations differ, and prints their walks.
struct Both {
    sides: Vec<Box<dyn Implementation>>,
    may_read_less: bool,
    may_lean_less: bool,
    decisions: u64,
}

impl Player for Both {
    type Error = ();

    fn step(&mut self, state: &State, step: &Step) -> Result<(), ()> {
        self.sides.iter_mut().for_each(|side| side.step(state, step));
        Ok(())
    }

    fn decide(&mut self, state: &State, wakeup: &Wakeup) -> Result<Cpu, ()> {
        let mut walks = [Walk::default(), Walk::default()];
        let mut decide = |at: usize| self.sides[at].select_task_rq(state, wakeup, Some(&mut walks[at]));
        let (ours, mut theirs) = (decide(0), decide(1));
        self.decisions += 1;
        assert_eq!(self.sides[1].fault(), None);
        if self.may_read_less && ours.read.contains(theirs.read) {
            theirs.read = ours.read;
        }
        if self.may_lean_less {
            theirs.leaned_on = ours.leaned_on;
        }
        let [a, b] = &walks;
        if ours == theirs && a.probes() == b.probes() {
            return Ok(ours.final_cpu);
        }
        println!("{wakeup:?}\n{:?}\n{:?}", state.tasks[wakeup.p], state.topology.domains());
        for (decision, walk) in [(ours, a), (theirs, b)] {
            println!("{decision:?}");
            walk.steps.iter().for_each(|step| println!("  {step:?}"));
        }
        Err(())
    }
}

/// Cases of each pair; SISDIFF_TREE_CASES says another number.
fn cases() -> u64 {
    std::env::var("SISDIFF_TREE_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(200)
}

#[test]
fn invented_machines_get_the_same_decisions_as_from_the_models() {
    let Some(trees) = trees() else {
        println!("no SISDIFF_TREES here: no tree is held against a model");
        return;
    };
    for (_, variant, tree) in FAMILIES {
        let (Some(location), Some(spec)) = (location(&trees, tree), spec_of(variant)) else { continue };
        let maker = oracle::WithTrees { trees: vec![built(&location, None)] };
        let names = [spec, maker.trees[0].name()];
        let started = std::time::Instant::now();
        let mut decisions = 0;
        for number in 0..cases() {
            let case = fuzz_loop::case(5, number);
            let mut world = World::new(&case).unwrap_or_else(|error| panic!("{error}"));
            let side = |name: &&str| maker.make(name, &case, &world).unwrap_or_else(|error| panic!("{error}"));
            let sides = names.iter().map(|name| side(name).implementation).collect();
            let (may_read_less, may_lean_less) = (*variant == "b0", reads_its_own_write(spec));
            let mut both = Both { sides, may_read_less, may_lean_less, decisions: 0 };
            let mut played = world.begin(&mut both);
            for event in &case.events {
                played = played.and_then(|()| world.play(event, &mut both).map(|_| ()));
            }
            assert_eq!(played, Ok(()), "{spec} and {tree} differ in case {number}");
            decisions += both.decisions;
        }
        println!("{spec}: {decisions} decisions in {} cases are equal, in {:?}", cases(), started.elapsed());
        assert!(decisions > 0);
    }
}
