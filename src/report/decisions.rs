// SPDX-License-Identifier: GPL-2.0-or-later
//! One JSON line for each decision: schema `sisdiff.decision/1`, described in `docs/decision.schema.json`.

use serde::Serialize;

use crate::compare::{Class, Difference, Verdict};
use crate::fair::{Decision, Exit};
use crate::machine::{Inputs, Provenance};
use crate::replay::driver::{Contestant, Row};
use crate::replay::totals::input_names;
use crate::units::Cpu;
use crate::wakeup::WakeKind;

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    number: u64,
    ts_ns: u64,
    kind: &'static str,
    pid: i32,
    comm: String,
    waker_pid: i32,
    waker_comm: String,
    this_cpu: Cpu,
    prev_cpu: Cpu,
    in_task: bool,
    sync: bool,
    #[serde(skip_serializing_if = "Lean::is_empty")]
    open_inputs: Lean,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    insensitive: Vec<String>,
    recorded: RecordedChoice,
    decisions: Vec<One<'a>>,
    verdicts: Vec<Judged<'a>>,
}

#[derive(Serialize)]
struct RecordedChoice {
    class_cpu: Option<Cpu>,
    final_cpu: Option<Cpu>,
}

#[derive(Serialize)]
struct One<'a> {
    spec: &'a str,
    role: crate::replay::Role,
    class_cpu: Cpu,
    final_cpu: Cpu,
    exit: Exit,
    wrong: bool,
    probes: u32,
    scanned: u64,
    class: Class,
    #[serde(skip_serializing_if = "Lean::is_empty")]
    leaned_on: Lean,
    as_recorded: Option<bool>,
}

/// Kinds of input that were assumed or unknown.
#[derive(Serialize)]
struct Lean {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<String>,
}

impl Lean {
    fn of(provenance: Provenance) -> Self {
        let names = |inputs: Inputs| input_names(inputs).collect();
        Self { assumed: names(provenance.assumed), unknown: names(provenance.unknown) }
    }

    fn is_empty(&self) -> bool {
        self.assumed.is_empty() && self.unknown.is_empty()
    }
}

#[derive(Serialize)]
struct Judged<'a> {
    patched: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// The line of `row`, without a newline.
pub fn line(file: &str, row: &Row, contestants: &[Contestant]) -> String {
    let recorded = &row.recorded;
    let wakeup = &recorded.wakeup;
    let patched = contestants.iter().filter(|one| one.role == crate::replay::Role::Patched);
    let line = Line {
        file,
        number: recorded.number,
        ts_ns: recorded.ts_ns,
        kind: match wakeup.kind {
            WakeKind::Ttwu => "wakeup",
            WakeKind::Fork => "fork",
            WakeKind::Exec => "exec",
        },
        pid: recorded.pid.0,
        comm: recorded.comm.to_string(),
        waker_pid: recorded.waker_pid.0,
        waker_comm: recorded.waker_comm.to_string(),
        this_cpu: wakeup.this_cpu,
        prev_cpu: wakeup.prev_cpu,
        in_task: wakeup.in_task,
        sync: wakeup.sync,
        open_inputs: Lean::of(wakeup.known),
        insensitive: input_names(row.insensitive).collect(),
        recorded: RecordedChoice { class_cpu: row.choice.class_cpu, final_cpu: row.choice.final_cpu },
        decisions: (contestants.iter().zip(&row.decisions).zip(&row.wrong))
            .map(|((one, decision), &wrong)| one_decision(row, one, decision, wrong))
            .collect(),
        verdicts: patched.zip(&row.verdicts).map(|(one, verdict)| judged(one, verdict)).collect(),
    };
    // Plain data with string keys: nothing that JSON cannot hold.
    serde_json::to_string(&line).unwrap_or_default()
}

fn one_decision<'a>(row: &Row, one: &'a Contestant, decision: &Decision, wrong: bool) -> One<'a> {
    One {
        spec: one.implementation.name(),
        role: one.role,
        class_cpu: decision.class_cpu,
        final_cpu: decision.final_cpu,
        exit: decision.exit,
        wrong,
        probes: decision.probes,
        scanned: decision.sis.scanned,
        class: Class::of(decision.leaned_on),
        leaned_on: Lean::of(decision.leaned_on),
        as_recorded: row.choice.is(decision),
    }
}

fn judged<'a>(one: &'a Contestant, verdict: &Verdict) -> Judged<'a> {
    let (verdict, difference) = match *verdict {
        Verdict::Agree { .. } => ("agree", None),
        Verdict::Diverge { difference, .. } => ("diverge", Some(difference)),
        Verdict::Unknown { .. } => ("unknown", None),
    };
    Judged { patched: one.implementation.name(), verdict, difference }
}
