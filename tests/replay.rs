// SPDX-License-Identifier: GPL-2.0-or-later
//! Each recording in `traces/` replayed with the defaults gives the report in `snapshots/`.
//!
//! A changed snapshot is a claim about scheduling: say in the commit why the decisions changed. To accept one:
//! `INSTA_UPDATE=always cargo test --test replay`. SISDIFF_TRACES names another folder of recordings; those without a
//! snapshot are then only replayed.

use std::fs;
use std::path::{Path, PathBuf};

use sisdiff::replay::run::{Job, Progress, replay};
use sisdiff::replay::{Filter, Options, Outcome};
use sisdiff::report::{decisions, text};
use sisdiff::spec::ModelSpec;

/// Lines that a reviewer still reads.
const LINES_MAX: usize = 80;

struct Silent;

impl Progress for Silent {
    fn at(&self, _file: &Path, _events: u64, _all: u64) {}
}

fn spec(name: &str) -> ModelSpec {
    name.parse().expect("a spec")
}

fn outcome(file: &Path) -> Outcome {
    let options = Options::new(spec("v5.11").into(), vec![spec("v5.11+mel-v2").into()]);
    let job = Job { options: &options, filter: &|_| Filter::default(), filters: &[], progress: &Silent };
    let outcomes = replay(&[file.to_owned()], &job, Some(1), decisions::line, None);
    outcomes.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

/// What the snapshot's head says of its input.
#[derive(serde::Serialize)]
struct Provenance {
    sha256: String,
    kernel: Option<String>,
    topology: String,
    specs: Vec<String>,
    facts: u64,
}

#[test]
fn every_recording_gives_its_snapshot() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let elsewhere = std::env::var_os("SISDIFF_TRACES").map(PathBuf::from);
    let folder = elsewhere.clone().unwrap_or_else(|| project.join("traces"));
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut traces: Vec<PathBuf> = entries.flatten().map(|entry| entry.path().join("trace.dat")).collect();
    traces.retain(|trace| trace.is_file());
    traces.sort();
    assert!(!traces.is_empty(), "{}: no recordings", folder.display());
    for trace in traces {
        let folder = trace.parent().and_then(Path::file_name).expect("a folder");
        let name = format!("replay-{}", folder.to_string_lossy());
        let outcome = outcome(&trace);
        assert!(outcome.totals.decisions.sum() > 0, "{name}: no decisions");
        if elsewhere.is_some() && !project.join(format!("snapshots/{name}.snap")).exists() {
            continue;
        }
        let report = anstream::adapter::strip_str(&text::body(&outcome)).to_string();
        assert!(report.lines().count() <= LINES_MAX, "{name}: {} lines", report.lines().count());
        let setup = &outcome.setup;
        let provenance = Provenance {
            sha256: outcome.recording.sha256.clone(),
            kernel: outcome.recording.kernel.clone(),
            topology: setup.topology.clone(),
            specs: [vec![setup.baseline.clone()], setup.patched.clone(), recorded(&outcome)].concat(),
            facts: setup.facts,
        };
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(project.join("snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_info(&provenance);
        settings.bind(|| insta::assert_snapshot!(name, report));
    }
}

fn recorded(outcome: &Outcome) -> Vec<String> {
    outcome.setup.recorded.iter().map(|model| model.spec.clone()).collect()
}
