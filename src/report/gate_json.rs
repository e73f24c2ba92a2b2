// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked gate as JSON: schema `sisdiff.gate-check/1`, described in `docs/gate.schema.json`.

use serde::Serialize;

use crate::gate::result::Verdict;
use crate::gate::{Change, Check, Excuse, Gate, Oracle, Status, Value};
use crate::replay::Role;

/// Name and version of the schema.
pub const SCHEMA: &str = "sisdiff.gate-check/1";

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    sisdiff: &'static str,
    config: &'a str,
    verdict: Verdict,
    checks: Vec<One<'a>>,
    troubles: Vec<Said>,
    idle_allow: Vec<Idle<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    trace: &'a str,
    pair: &'a str,
    baseline: &'a str,
    patched: &'a str,
    snapshot: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<Said>,
    changes: Vec<Moved<'a>>,
    violations: Vec<Broken<'a>>,
    pending: bool,
}

#[derive(Serialize)]
struct Said {
    kind: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Moved<'a> {
    key: &'a str,
    old: &'a Option<Value>,
    new: &'a Option<Value>,
    counts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    excuse: Option<String>,
}

#[derive(Serialize)]
struct Broken<'a> {
    oracle: Oracle,
    spec: &'a str,
    role: Role,
    count: u64,
    first: Option<u64>,
}

#[derive(Serialize)]
struct Idle<'a> {
    entry: usize,
    reason: &'a str,
}

/// The report, indented, with a newline at its end.
pub fn json(gate: &Gate) -> String {
    let said = |trouble: &crate::gate::Trouble| Said { kind: trouble.word(), message: trouble.to_string() };
    let report = Report {
        schema: SCHEMA,
        sisdiff: env!("CARGO_PKG_VERSION"),
        config: &gate.config,
        verdict: gate.verdict(),
        checks: gate.checks.iter().map(|check| one(gate, check)).collect(),
        troubles: gate.troubles.iter().map(said).collect(),
        idle_allow: gate
            .idle_entries()
            .into_iter()
            .map(|at| Idle { entry: at + 1, reason: &gate.rules.allow[at].reason })
            .collect(),
    };
    // Plain data with string keys: nothing that JSON cannot hold.
    serde_json::to_string_pretty(&report).map(|text| text + "\n").unwrap_or_default()
}

fn one<'a>(gate: &Gate, check: &'a Check) -> One<'a> {
    let (status, trouble) = match &check.status {
        Status::Same => ("unchanged", None),
        Status::New => ("new", None),
        Status::Changed => ("changed", None),
        Status::Trouble(trouble) => ("trouble", Some(Said { kind: trouble.word(), message: trouble.to_string() })),
    };
    let broken = |one: &'a crate::gate::Violation| Broken {
        oracle: one.oracle,
        spec: &one.spec,
        role: one.role,
        count: one.count,
        first: one.example,
    };
    One {
        trace: &check.trace,
        pair: &check.pair,
        baseline: &check.specs[0],
        patched: &check.specs[1],
        snapshot: &check.snapshot,
        status,
        trouble,
        changes: check.changes.iter().map(|change| moved(gate, change)).collect(),
        violations: check.violations.iter().map(broken).collect(),
        pending: check.is_pending,
    }
}

fn moved<'a>(gate: &Gate, change: &'a Change) -> Moved<'a> {
    let excuse = change.excuse.as_ref().map(|excuse| match excuse {
        Excuse::Tolerance(share) => format!("within {share}"),
        Excuse::Allowed(at) => gate.rules.allow.get(*at).map(|entry| entry.reason.clone()).unwrap_or_default(),
    });
    Moved { key: &change.key, old: &change.old, new: &change.new, counts: change.excuse.is_none(), excuse }
}
