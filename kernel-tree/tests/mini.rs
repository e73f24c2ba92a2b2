// SPDX-License-Identifier: GPL-2.0-or-later
//! From a tree to answers and to faults, on a scheduler of our own in kernel style: no kernel source is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use sisdiff_tree::error::TreeError;
use sisdiff_tree::run::{Fault, Isolation, Runner, protocol, request};
use sisdiff_tree::source::Location;
use sisdiff_tree::tree::{Built, Plan, build};

/// A copy of the small tree that a test may change.
struct Mini {
    dir: tempfile::TempDir,
}

impl Mini {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mini"), dir.path());
        Self { dir }
    }

    /// With `code` at the start of select_idle_sibling(), and `statics` before all functions.
    fn with(statics: &str, code: &str) -> Self {
        let mini = Self::new();
        mini.edit("kernel/sched/fair.c", "/* PLACE FOR STATICS */", statics);
        mini.edit("kernel/sched/fair.c", "/* PLACE FOR CODE */", code);
        mini
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.dir.path().join(file);
        let text = std::fs::read_to_string(&path).expect("a file of the tree");
        assert!(text.contains(from), "{file} has no {from:?}");
        std::fs::write(path, text.replace(from, to)).expect("written");
    }

    fn git(&self, arguments: &[&str]) {
        let who = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "init.defaultBranch=main",
        ];
        let output =
            Command::new("git").arg("-C").arg(self.dir.path()).args(who).args(arguments).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn plan(&self) -> Plan {
        let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mini-cache");
        let location = Location { path: self.dir.path().to_owned(), ..Location::default() };
        Plan { location, cache: Some(cache), ..Plan::default() }
    }

    fn built(&self) -> Built {
        build(&self.plan()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(&self) -> String {
        build(&self.plan()).expect_err("it cannot be built").to_string()
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).expect("made");
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Two CPUs that share their LLC; see the stand-ins' glue for the order of the words.
fn machine() -> Vec<u64> {
    let mut words = vec![1, 2, 0, 0, 1, 1, 1];
    words.push(0b11);
    for cpu in 0..2_u64 {
        words.extend([1 << cpu, 0]);
    }
    // Level, flags (wake-affine, shared LLC), imbalance, NUMA imbalance, shared state, span.
    words.extend([1, 1 << 4 | 1 << 9, 117, 0, 0, 0b11]);
    words.extend([1, 0, 1, 0]);
    words
}

/// A wakeup of task 10 by task 11 on CPU 0, which last was on CPU 0; `busy` CPUs run something.
fn wakeup(busy: u64) -> Vec<u64> {
    let mut words = vec![2, 1, 10, 11, 0, 0, 0, 0, 0, 0, 1, 1000, 10, 1, 0, 5000, 250, 1, 100];
    assert_eq!(words.len(), 1 + protocol::HEAD_WORDS);
    // Shared state.
    words.extend([0, 0]);
    let running = |cpu: u64| busy >> cpu & 1;
    let columns: [(&str, &dyn Fn(u64) -> u64); 7] = [
        ("nr_running", &running),
        ("h_nr_running", &running),
        ("h_nr_runnable", &running),
        ("curr", &|cpu| if running(cpu) == 1 { 0 } else { cpu + 1 }),
        ("avg_idle", &|_| 1_000_000),
        ("cpu_capacity", &|_| 1024),
        ("cpu_capacity_orig", &|_| 1024),
    ];
    words.push(columns.len() as u64);
    for (name, value) in columns {
        words.extend([protocol::column(name), 2, 0, value(0), 1, value(1)]);
    }
    words.push(2);
    for task in [10, 11] {
        words.extend([task, 0b11, 0b11, 2, 0, 0, u64::MAX, 1, 0, 0, 0, 0, 0, 0, 0, 1024, 0, 0, 0, u64::MAX]);
    }
    words
}

fn start(built: &Built, isolation: Isolation) -> Runner {
    let mut runner = built.start(isolation).unwrap_or_else(|error| panic!("{error}"));
    runner.request(&machine(), &mut [0; 64]).unwrap_or_else(|fault| panic!("{fault}"));
    let features: Vec<u64> = built.meta.features.iter().map(|feature| u64::from(feature.default)).collect();
    runner.request(&[&[3], features.as_slice()].concat(), &mut [0; 64]).unwrap_or_else(|fault| panic!("{fault}"));
    runner
}

fn ask(runner: &mut Runner, busy: u64) -> Result<i64, Fault> {
    let mut answer = vec![0; 4096];
    runner.request(&wakeup(busy), &mut answer).map(|_| answer[0] as i64)
}

#[test]
fn it_answers() {
    let built = Mini::new().built();
    assert_eq!(built.meta.version.as_deref(), Some("9.8.7"));
    let names: Vec<&str> = built.meta.features.iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!(names, ["SIS_SEARCH", "SIS_LAZY"]);
    assert!(built.meta.functions.iter().all(|(name, _)| name != "sched_init"));
    for isolation in [Isolation::InProcess, Isolation::Process] {
        let mut runner = start(&built, isolation);
        assert_eq!(ask(&mut runner, 0b00), Ok(0));
        assert_eq!(ask(&mut runner, 0b01), Ok(1));
        assert_eq!(ask(&mut runner, 0b11), Ok(0));
    }
}

/// What an isolation needs is compiled when the first asks for it; others that ask at that moment wait.
#[test]
fn workers_start_the_same_tree_at_once() {
    let mini = Mini::new();
    let built = mini.built();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let worker = || ask(&mut start(&built, Isolation::Process), 0b01);
        let workers: Vec<_> = (0..6).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
    });
    assert_eq!(answers, vec![Ok(1); 6]);
}

#[test]
fn what_was_built_is_found_again() {
    let mini = Mini::new();
    mini.edit("kernel/sched/fair.c", "/* PLACE FOR STATICS */", "/* found again */");
    let (first, second) = (mini.built(), mini.built());
    assert!(second.was_cached && first.dir == second.dir && first.meta == second.meta);
}

#[test]
fn what_a_patch_adds_is_picked_up() {
    let mini = Mini::with(
        "static unsigned long sd_calls;\nstatic DEFINE_PER_CPU(int, last_target);\n\
         static inline int favourite(struct task_struct *p)\n{\n\treturn p->favourite_cpu + 1;\n}\n",
        "sd_calls++;\n\tp->favourite_cpu = 0;\n\tper_cpu(last_target, target) = prev;\n\
         \tif (sched_feat(SIS_FAVOURITE) && !(sd_calls & 1))\n\t\treturn favourite(p);",
    );
    mini.edit(
        "include/linux/sched.h",
        "\tunsigned int\t\t\tpolicy;",
        "\tint\t\t\t\tfavourite_cpu;\n\tunsigned int\t\t\tpolicy;",
    );
    mini.edit(
        "kernel/sched/features.h",
        "SCHED_FEAT(SIS_LAZY, false)",
        "SCHED_FEAT(SIS_LAZY, false)\nSCHED_FEAT(SIS_FAVOURITE, true)",
    );
    let built = mini.built();
    assert_eq!(built.meta.keeps, ["favourite_cpu", "last_target", "sd_calls"]);
    let mut runner = start(&built, Isolation::InProcess);
    let mut other = start(&built, Isolation::InProcess);
    // Every second call goes to the favourite; the two do not count each other's calls.
    assert_eq!([ask(&mut runner, 0), ask(&mut runner, 0), ask(&mut runner, 0)], [Ok(0), Ok(1), Ok(0)]);
    assert_eq!([ask(&mut other, 0), ask(&mut other, 0)], [Ok(0), Ok(1)]);
    // What a call changed can be taken back.
    runner.request(&[request::SAVE], &mut [0; 16]).expect("saved");
    assert_eq!(ask(&mut runner, 0), Ok(1));
    runner.request(&[request::RESTORE], &mut [0; 16]).expect("restored");
    assert_eq!(ask(&mut runner, 0), Ok(1));
    // An object that is used again starts anew.
    drop((runner, other));
    assert_eq!(ask(&mut start(&built, Isolation::InProcess), 0), Ok(0));
}

/// What the fault of `code` is, in this process and in one of its own; neither ends the test.
fn faults(code: &str) -> [Fault; 2] {
    let built = Mini::with("", code).built();
    [Isolation::InProcess, Isolation::Process].map(|isolation| {
        let mut runner = start(&built, isolation);
        ask(&mut runner, 0).expect_err("a fault")
    })
}

#[test]
fn a_null_pointer_is_named_with_its_line() {
    for fault in faults("sd = NULL;\n\tif (sd->flags)\n\t\treturn 0;") {
        assert!(matches!(&fault, Fault::Signal { what, line: 40, .. } if what.contains("egmentation")), "{fault:?}");
    }
}

#[test]
fn a_loop_without_end_is_named() {
    for fault in faults("for (i = 0; i < 2; i++)\n\t\ti--;") {
        assert!(matches!(fault, Fault::Loop { line: 39 | 40 }), "{fault:?}");
    }
    for fault in faults("again:\n\tif (prev >= 0)\n\t\tgoto again;") {
        assert!(matches!(fault, Fault::Loop { .. }), "{fault:?}");
    }
}

/// The watch over this process's own calls takes ten seconds, the one over a helper twenty.
#[test]
fn a_loop_without_marks_is_ended() {
    let built = Mini::with("#define SPIN() do { } while (prev >= 0)", "SPIN();").built();
    let [here, apart] = std::thread::scope(|scope| {
        let fault = |isolation| {
            let built = &built;
            scope.spawn(move || ask(&mut start(built, isolation), 0).expect_err("a fault"))
        };
        [Isolation::InProcess, Isolation::Process].map(fault).map(|worker| worker.join().expect("a worker"))
    });
    assert!(matches!(here, Fault::Loop { line: 39 }), "{here:?}");
    assert!(matches!(&apart, Fault::Helper { how } if how.contains("no answer in 20 seconds")), "{apart:?}");
}

#[test]
fn a_division_by_zero_and_a_bug_are_named() {
    for fault in faults("i = target / (prev - prev);\n\tif (i)\n\t\treturn i;") {
        assert!(matches!(&fault, Fault::Signal { .. }), "{fault:?}");
    }
    for fault in faults("BUG_ON(target == 0);") {
        assert!(matches!(&fault, Fault::Bug { what, .. } if what == "target == 0"), "{fault:?}");
    }
}

#[test]
fn a_run_queue_that_is_not_there_reads_as_zeroes_and_is_counted() {
    let built = Mini::with("", "if (cpu_rq(nr_cpu_ids + 3)->nr_running)\n\t\treturn -1;").built();
    let mut answer = vec![0; 4096];
    let mut runner = start(&built, Isolation::InProcess);
    runner.request(&wakeup(0), &mut answer).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((answer[0], answer[3]), (0, 1));
}

#[test]
fn sanitizers_see_what_does_not_crash() {
    let code = "{\n\t\tint table[2] = { 0, 0 };\n\t\tint *at = table + prev + target + 2;\n\n\t\tif (*at == 77)\n\t\t\treturn 0;\n\t}";
    let built = Mini::with("", code).built();
    let mut runner = match built.start(Isolation::Sanitized) {
        Ok(_) => start(&built, Isolation::Sanitized),
        Err(error) => return println!("no sanitizers here: {error}"),
    };
    let fault = ask(&mut runner, 0).expect_err("a fault");
    assert!(matches!(&fault, Fault::Helper { how } if how.contains("kernel/sched/fair.c:43")), "{fault:?}");
}

#[test]
fn statements_that_were_reached_are_told() {
    let built = Mini::new().built();
    let mut runner = start(&built, Isolation::InProcess);
    let mut hits = vec![0; 4096];
    runner.request(&[request::HITS], &mut hits).expect("hits");
    let reached = |runner: &mut Runner, busy| {
        ask(runner, busy).unwrap_or_else(|fault| panic!("{fault}"));
        let mut hits = vec![0; 4096];
        let count = runner.request(&[request::HITS], &mut hits).expect("hits");
        let scan = built.meta.table.functions.iter().position(|name| name == "scan").expect("scan()") as u32;
        hits[..count].chunks(2).any(|hit| built.meta.table.statements[hit[0] as usize].function == scan && hit[1] > 0)
    };
    assert!(!reached(&mut runner, 0b00));
    assert!(reached(&mut runner, 0b11));
}

#[test]
fn symbols_that_nobody_defines_are_named_and_can_be_supplied() {
    let mini = Mini::with("", "if (clever_helper(p))\n\t\treturn prev;");
    let error = mini.error();
    for part in ["clever_helper", "select_idle_sibling", "kernel/sched/fair.c:39", "--shim"] {
        assert!(error.contains(part), "{error}");
    }
    let shim = Some("static inline int clever_helper(struct task_struct *p) { return 0; }\n".to_owned());
    build(&Plan { shim, ..mini.plan() }).unwrap_or_else(|error| panic!("{error}"));
    // A constant is found by the compiler.
    let error = Mini::with("", "if (target == CLEVER_CPU)\n\t\treturn prev;").error();
    assert!(error.contains("CLEVER_CPU") && error.contains("select_idle_sibling"), "{error}");
}

#[test]
fn what_cannot_be_built_says_why() {
    let error = Mini::with("", "if (target ==)\n\t\treturn prev;").error();
    assert!(error.contains("refuses") && error.contains("kernel/sched/fair.c:39"), "{error}");
    let mini = Mini::new();
    mini.edit("kernel/sched/fair.c", "void __update_idle_core(", "void update_idle_core_of_old(");
    assert!(mini.error().contains("__update_idle_core() is not defined"), "{}", mini.error());
    mini.edit("kernel/sched/fair.c", "#else", "");
    mini.edit("kernel/sched/fair.c", "#endif", "");
    assert!(mini.error().contains("#if without #endif"), "{}", mini.error());
    std::fs::remove_file(mini.dir.path().join("kernel/sched/fair.c")).expect("removed");
    assert!(mini.error().contains("kernel/sched/fair.c is not there"), "{}", mini.error());
}

#[test]
fn unknown_types_are_storage_and_a_warning() {
    let built = Mini::with("", "if (p->se.avg.mystery.sd_opaque[0])\n\t\treturn -1;").built();
    assert!(built.meta.warnings.iter().any(|warning| warning.contains("nobody_knows")), "{:?}", built.meta.warnings);
    assert_eq!(ask(&mut start(&built, Isolation::InProcess), 0), Ok(0));
}

#[test]
fn revisions_and_patches_leave_the_work_tree_alone() {
    let mini = Mini::new();
    mini.git(&["init", "-q"]);
    mini.git(&["add", "-A"]);
    mini.git(&["commit", "-q", "-m", "base"]);
    mini.git(&["tag", "base"]);
    mini.git(&["checkout", "-q", "-b", "topic"]);
    mini.edit("kernel/sched/fair.c", "/* PLACE FOR CODE */", "if (prev == 0)\n\t\treturn 1;");
    mini.git(&["commit", "-q", "-a", "-m", "to the other one"]);
    let output = Command::new("git").arg("-C").arg(mini.dir.path()).args(["format-patch", "-1", "--stdout"]).output();
    let patch = mini.dir.path().join("topic.patch");
    std::fs::write(&patch, output.expect("git").stdout).expect("written");
    mini.git(&["checkout", "-q", "main"]);
    let of = |rev: Option<&str>, patches: &[&str]| {
        let mut plan = mini.plan();
        plan.location.rev = rev.map(str::to_owned);
        plan.location.patches = patches.iter().map(|&patch| patch.to_owned()).collect();
        build(&plan)
    };
    let answer = |built: Result<Built, TreeError>| {
        ask(&mut start(&built.unwrap_or_else(|error| panic!("{error}")), Isolation::InProcess), 0).expect("an answer")
    };
    let patch = patch.display().to_string();
    assert_eq!(answer(of(None, &[])), 0);
    assert_eq!(answer(of(Some("topic"), &[])), 1);
    assert_eq!(answer(of(Some("base"), &[&patch])), 1);
    assert_eq!(answer(of(None, &["topic"])), 1);
    assert_eq!(answer(of(Some("base"), &["topic"])), 1);
    let error = of(Some("topic"), &[&patch]).expect_err("it is in there already").to_string();
    assert!(error.contains("does not apply") && error.contains("kernel/sched/fair.c"), "{error}");
    let error = of(Some("nowhere"), &[]).expect_err("no such revision").to_string();
    assert!(error.contains("nowhere"), "{error}");
    // Uncommitted changes are in the tree, not in its revisions.
    mini.edit("kernel/sched/fair.c", "/* PLACE FOR CODE */", "if (prev == 0)\n\t\treturn 1;");
    assert_eq!((answer(of(None, &[])), answer(of(Some("HEAD"), &[]))), (1, 0));
}

#[test]
fn an_archive_is_a_tree() {
    let mini = Mini::new();
    let archive = mini.dir.path().join("linux-source-9.8.tar.gz");
    let inside = mini.dir.path().join("linux-source-9.8");
    std::fs::create_dir(&inside).expect("made");
    for part in ["kernel", "include", "Makefile"] {
        std::fs::rename(mini.dir.path().join(part), inside.join(part)).expect("moved");
    }
    let tar =
        Command::new("tar").arg("-C").arg(mini.dir.path()).arg("-czf").arg(&archive).arg("linux-source-9.8").status();
    assert!(tar.is_ok_and(|status| status.success()));
    let mut plan = mini.plan();
    plan.location.path = archive;
    let built = build(&plan).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(built.meta.version.as_deref(), Some("9.8.7"));
    assert_eq!(ask(&mut start(&built, Isolation::InProcess), 0b01), Ok(1));
}
