// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use crate::gate::Share;

const SMALL: &str = "traces = [\"a/*.dat\"]\n[pair.p]\nbaseline = \"v5.11\"\npatched = \"v5.11+mel-v2\"\n";

fn error(text: &str) -> String {
    Config::parse(text).expect_err(text).to_string()
}

#[test]
fn a_small_file_locks_everything_exactly() {
    let config = Config::parse(SMALL).expect("a config");
    assert_eq!((config.lock.len(), config.listed, config.snapshots.as_str()), (4, 20, "snapshots"));
    assert!(config.rules.tolerance.is_empty() && config.rules.allow.is_empty() && config.topologies.is_empty());
    assert_eq!((config.pairs.len(), config.pairs[0].patched.to_string().as_str()), (1, "v5.11+mel-v2"));
    assert!(is_meant(&config.traces, "a/b.dat") && !is_meant(&config.traces, "a/b/c.dat"));
}

#[test]
fn everything_is_read() {
    let text = r#"
traces = ["a.dat", "b/**/*.dat"]
snapshots = ".gate"
lock = ["sis", "placements"]
listed = 5

[pair.z]
baseline = "v6.1"
patched = "tree:~/linux+my.patch:NO_SIS_UTIL"
recorded = "v6.1"

[pair.a]
baseline = "v5.11"
patched = "v5.11+recent-used"

[[topology]]
traces = "a.dat"
source = "2x4x2"

[tolerance]
sis = "0.5%"
exits = "0%"

[[allow]]
trace = "b/*"
pair = "z"
what = "sis.*"
within = "2%"
reason = "the scan starts elsewhere"

[replay]
ignore_probes = true
assume_sync = true
hz = 1000
scan_cost_ns = 7
affinity = "soft.toml"

[tree]
config = ".config"
shim = "shim.h"
isolation = "process"
"#;
    let config = Config::parse(text).expect("a config");
    assert_eq!(config.lock, [Part::Placements, Part::Sis].into());
    let names: Vec<&str> = config.pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!(names, ["a", "z"], "by name");
    assert!(config.pairs[1].recorded.is_some());
    assert_eq!(config.topologies, [TopologyRule { traces: vec!["a.dat".to_owned()], source: "2x4x2".to_owned() }]);
    assert_eq!(config.rules.tolerance, [(Part::Sis, Share(5_000))].into(), "0% is exact");
    assert_eq!(config.rules.allow[0].reason, "the scan starts elsewhere");
    let replay = config.replay;
    assert!(replay.ignore_probes && replay.assume_sync && replay.affinity.as_deref() == Some("soft.toml"));
    assert_eq!((replay.hz, replay.scan_cost_ns), (Some(1000), 7));
    assert!(config.trees.own_process && config.trees.shim.as_deref() == Some("shim.h"));
}

#[test]
fn a_key_that_nobody_reads_is_refused_by_name() {
    let text = error(&format!("trases = []\n{SMALL}"));
    assert!(text.contains("the file: no key \"trases\" (did you mean \"traces\"?)"), "{text}");
    for (more, name) in [
        ("[tolerance]\nsiss = \"1%\"", "siss"),
        ("[[allow]]\nwhy = \"x\"", "why"),
        ("[[topology]]\nsorce = \"x\"", "sorce"),
        ("[replay]\nhertz = 1", "hertz"),
        ("[tree]\ncfg = 1", "cfg"),
        ("[pair.q]\nbase = \"v6.1\"", "base"),
    ] {
        let text = error(&format!("{SMALL}{more}\n"));
        assert!(text.contains(&format!("no key \"{name}\"")), "{text}");
    }
}

#[test]
fn what_is_wrong_or_missing_is_named() {
    assert!(error("[pair").contains("no TOML"));
    assert!(error("[pair.p]\nbaseline = \"v5.11\"").contains("no recordings"));
    assert!(error("traces = \"a\"").contains("[pair.NAME]"));
    assert!(error("traces = \"a\"\n[pair.p]\nbaseline = \"v5.11\"").contains("pair \"p\": no patched"));
    let text = error("traces = \"a\"\n[pair.p]\nbaseline = \"v5.12\"\npatched = \"v6.1\"");
    assert!(text.contains("pair \"p\": baseline = \"v5.12\"") && text.contains("v5.11"), "{text}");
    assert!(error("traces = \"a\"\n[pair.p]\nbaseline = \"v6.1\"\npatched = \"v6.1\"").contains("two implementations"));
    for (more, part) in [
        ("[[allow]]\nwhat = \"sis\"", "allow 1: no reason"),
        ("[[allow]]\nreason = \"x\"", "allow 1: no what"),
        ("[[allow]]\nreason = \" \"\nwhat = \"sis\"", "no reason"),
        ("[[allow]]\nreason = \"x\"\nwhat = \"[\"", "allow 1: what"),
        ("[tolerance]\nsis = 1", "tolerance: sis = 1: expected a share"),
        ("[tree]\nisolation = \"vm\"", "in-process"),
        ("[replay]\nhz = 1", "from 24"),
        ("[[topology]]\nsource = \"2x2\"", "topology 1: no traces"),
    ] {
        let text = error(&format!("{SMALL}{more}\n"));
        assert!(text.contains(part), "{text}");
    }
    assert!(error(&format!("lock = []\n{SMALL}")).contains("nothing is locked"));
    assert!(error(&format!("lock = [\"exit\"]\n{SMALL}")).contains("placements, exits"));
    assert!(error(&format!("listed = -1\n{SMALL}")).contains("from 0"));
    assert!(error(&SMALL.replace("a/*", "./a/*")).contains("without ./"));
    assert!(error(&SMALL.replace("a/*", "a/[")).contains("no pattern"));
}
