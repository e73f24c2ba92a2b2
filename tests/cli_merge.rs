// SPDX-License-Identifier: GPL-2.0-or-later
//! `--shard` and `sisdiff merge`: parts add up to the whole.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).args(args).current_dir(ROOT).output().expect("sisdiff runs")
}

fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn trouble(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const CORPUS: [&str; 5] = ["smt8-affinity-truth", "dies12-truth", "smp4-idle-light", "smt8-scan-truth", "numa80-truth"];

fn corpus() -> Vec<String> {
    CORPUS.iter().map(|name| format!("traces/{name}/trace.dat")).collect()
}

/// Reports of all shards of `of`, by path.
fn shards(dir: &Path, of: usize, files: &[&str]) -> Vec<String> {
    let report = |part: usize| {
        let path = dir.join(format!("{part}-{of}.json")).display().to_string();
        let shard = format!("{part}/{of}");
        let mut args = vec!["replay", "--shard", &shard, "--format", "json", "-o", &path];
        args.extend(files);
        assert_eq!(fine(&args), "");
        path
    };
    (1..=of).map(report).collect()
}

#[test]
fn merged_shards_are_the_unsharded_report_in_every_field() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = corpus();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let whole = fs::read_to_string(&shards(dir.path(), 1, &files)[0]).expect("a report");
    // Sorted, it is the plain report.
    let mut sorted = files.clone();
    sorted.sort_unstable();
    let mut args = vec!["replay", "--format", "json"];
    args.extend(&sorted);
    assert!(fine(&args) == whole);
    for of in [2, 3, 7] {
        let mut reports = shards(dir.path(), of, &files);
        // In whatever order they come.
        reports.reverse();
        let mut args = vec!["merge", "--format", "json"];
        args.extend(reports.iter().map(String::as_str));
        assert!(fine(&args) == whole, "{of} shards");
    }
    // And merges of merges.
    let [a, b, c] = &shards(dir.path(), 3, &files)[..] else { panic!("three shards") };
    let path = dir.path().join("ab.json").display().to_string();
    fine(&["merge", b, a, "--partial", "--format", "json", "-o", &path]);
    assert!(fine(&["merge", c, &path, "--format", "json"]) == whole);
}

#[test]
fn the_text_has_the_sum_and_quantiles() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = corpus();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let reports = shards(dir.path(), 2, &files);
    let text = fine(&["merge", &reports[0], &reports[1]]);
    assert!(text.contains("5 recordings merged") && text.contains("sum of 5 recordings"), "{text}");
    assert!(text.contains("CPUs scanned by a wakeup") && text.contains("from sched_waking"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let whole: serde_json::Value =
        serde_json::from_str(&fine(&["merge", &reports[0], &reports[1], "--format", "json"])).expect("JSON");
    let column = &whole["sum"]["columns"][0];
    assert_eq!(column["scanned"]["sum"], column["sis"]["scanned"], "the histogram adds up to the counter");
    assert_eq!(column["scanned"]["n"], whole["sum"]["decisions"]["wakeups"]);
    let one = fine(&["merge", "--partial", &shards(dir.path(), 5, &files)[0]]);
    assert!(one.contains("1 recording merged") && one.contains("CPUs scanned"), "{one}");
    assert!(one.contains("not the whole run  shards 1 of 5; missing 2, 3, 4, 5\n"), "{one}");
    assert!(!text.contains("not the whole run"), "{text}");
}

#[test]
fn a_shard_may_be_empty() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ["traces/smt8-affinity-truth/trace.dat"];
    let reports = shards(dir.path(), 2, &files);
    let merged = fine(&["merge", &reports[1], &reports[0], "--format", "json"]);
    assert!(merged == fine(&["replay", files[0], "--format", "json"]));
    let output = run(&["replay", files[0], "--shard", "2/2", "--fail-on", "any"]);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (Some(0), "sisdiff: no recording is in this shard\n")
    );
    assert!(fine(&["merge", "--partial", &reports[1]]).contains("nothing to add up"));
    // It can be missing, too.
    assert!(trouble(&["merge", &reports[0]]).contains("shard 2 is missing of 2"));
}

#[test]
fn what_cannot_be_added_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = "traces/smt8-affinity-truth/trace.dat";
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name).display().to_string();
        fs::write(&path, text).expect("a file");
        path
    };
    let one = write("one.json", &fine(&["replay", file, "--format", "json"]));
    let text = trouble(&["merge", &one, &one]);
    assert!(text.contains(file) && text.contains("each recording once"), "{text}");
    let other = "traces/dies12-truth/trace.dat";
    let patched = write("p.json", &fine(&["replay", other, "--patched", "v5.11+recent-used", "--format", "json"]));
    let text = trouble(&["merge", &one, &patched]);
    assert!(text.contains("p.json") && text.contains("v5.11 -> v5.11+recent-used"), "{text}");
    let filtered = write("f.json", &fine(&["replay", other, "--comm", "tick*", "--format", "json"]));
    assert!(trouble(&["merge", &one, &filtered]).contains("other filters"));
    assert!(trouble(&["merge", &write("n.json", "not JSON")]).contains("n.json: is no JSON"));
    let info = write("i.json", &fine(&["info", file, "--format", "json"]));
    let text = trouble(&["merge", &info]);
    assert!(text.contains("sisdiff.info") && text.contains("sisdiff.replay/1"), "{text}");
    assert!(trouble(&["merge", &write("e.json", "{}")]).contains("names no schema"));
    let broken = fs::read_to_string(&one).expect("a report").replacen("\"n\": ", "\"n\": 1", 1);
    assert!(trouble(&["merge", &write("b.json", &broken)]).contains("b.json: is no report"));
    assert!(trouble(&["merge", "/nowhere.json"]).contains("/nowhere.json"));
    let text = trouble(&["merge", &one, "-o", &one]);
    assert!(text.contains("would overwrite the report"), "{text}");
}

#[test]
fn shards_that_do_not_make_a_run_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = ["traces/smt8-affinity-truth/trace.dat", "traces/smp4-idle-light/trace.dat"];
    let replayed = |name: &str, args: &[&str]| {
        let path = dir.path().join(name).display().to_string();
        fine(&[&["replay", "--format", "json", "-o", &path], args].concat());
        path
    };
    let [a, b] = files;
    let one = replayed("one", &[a, b, "--shard", "1/3"]);
    let two = replayed("two", &[b, a, "--shard", "2/3"]);
    let three = replayed("three", &[a, b, "--shard", "3/3"]);
    fine(&["merge", &three, &one, &two]);
    assert!(trouble(&["merge", &one]).contains("merge: shards 2, 3 are missing of 3; "));
    assert!(trouble(&["merge", &three, &two]).contains("merge: shard 1 is missing of 3; "));
    let text = trouble(&["merge", &one, &two, &two, &three]);
    assert!(text.contains(&format!("shard 2/3 is in {two} and in {two}; each shard once")), "{text}");
    // Of other recordings, of another number of shards, and replayed otherwise; an empty shard, too.
    let other = replayed("other", &[a, "traces/dies12-truth/trace.dat", "--shard", "3/3"]);
    let text = trouble(&["merge", &one, &two, &other]);
    assert!(text.contains(&format!("{one} and {other} are shards of different runs: ")), "{text}");
    assert!(text.contains("each of 2 recordings, but of other names"), "{text}");
    let fewer = replayed("fewer", &[a, "--shard", "3/3"]);
    assert!(trouble(&["merge", &one, &two, &fewer]).contains("of 2 and of 1 recordings"));
    let halves = replayed("halves", &[a, b, "--shard", "2/2"]);
    assert!(trouble(&["merge", &one, &halves]).contains("of 3 and of 2 shards"));
    for (flags, said) in [
        (&["--patched", "v5.11+recent-used"][..], "with --patched v5.11+recent-used"),
        (&["--baseline", "v5.10"], "with --baseline v5.10"),
        (&["--scan-cost", "70"], "without it, the other with --scan-cost 70"),
        (&["--comm", "tick*"], "with --comm tick*"),
        (&["--recent-miss", "2021"], "with --recent-miss 2021"),
    ] {
        let shard = replayed("flags", &[&[a, b, "--shard", "3/3"], flags].concat());
        let text = trouble(&["merge", &one, &two, &shard]);
        assert!(text.contains("shards of different runs: one was replayed") && text.contains(said), "{text}");
    }
    let whole = replayed("whole", &["traces/dies12-truth/trace.dat"]);
    assert!(trouble(&["merge", &one, &two, &three, &whole]).contains("is a whole report and"));
    // A shard that lost a recording on its way.
    let mut cut: serde_json::Value = serde_json::from_str(&fs::read_to_string(&one).expect("a report")).expect("JSON");
    cut["files"] = serde_json::json!([]);
    let path = dir.path().join("cut").display().to_string();
    fs::write(&path, cut.to_string()).expect("a file");
    assert!(trouble(&["merge", &path, &two, &three]).contains("has 0 recordings; its shards of 3 have 1"));
}
