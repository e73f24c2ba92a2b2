// SPDX-License-Identifier: GPL-2.0-or-later
//! A checked gate as JUnit's XML: a suite for each recording, a case for each pair. What has changed is a failure, what
//! cannot be told an error. Without times, so that the same check gives the same bytes.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::gate::{Check, Gate, Status};
use crate::report::gate;
use crate::report::shell::printable;

/// The suite of what is about no recording.
const OWN_SUITE: &str = "gate";

/// The report.
pub fn junit(gate: &Gate) -> String {
    let mut report = Report::new("sisdiff gate");
    let (mut suite, mut before): (Option<TestSuite>, Option<&String>) = (None, None);
    for check in &gate.checks {
        if before.replace(&check.trace).is_none_or(|before| *before != check.trace) {
            suite.take().map(|suite| report.add_test_suite(suite));
        }
        suite.get_or_insert_with(|| TestSuite::new(printable(&check.trace))).add_test_case(case(gate, check));
    }
    suite.map(|suite| report.add_test_suite(suite));
    if !gate.troubles.is_empty() {
        let mut own = TestSuite::new(OWN_SUITE);
        for trouble in &gate.troubles {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(printable(&trouble.to_string())).set_type(trouble.word());
            let mut case = TestCase::new(trouble.word(), status);
            case.set_classname(printable(&gate.config));
            own.add_test_case(case);
        }
        report.add_test_suite(own);
    }
    // It is written into memory, and holds strings that the crate made fit for XML.
    report.to_string().unwrap_or_default()
}

fn case(gate: &Gate, check: &Check) -> TestCase {
    let wrong = gate::violations(check);
    let status = match &check.status {
        Status::Same => TestCaseStatus::success(),
        Status::New => failed(check, "new", "there is no snapshot yet"),
        Status::Changed => {
            let counted: Vec<String> = check.counted().map(gate::moved).collect();
            failed(check, "changed", &counted.join("; "))
        }
        Status::Trouble(trouble) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(printable(&trouble.to_string())).set_type(trouble.word());
            status
        }
    };
    let mut case = TestCase::new(printable(&check.pair), status);
    case.set_classname(printable(&check.trace));
    let mut said: Vec<String> = vec![format!("{} -> {}", check.specs[0], check.specs[1])];
    said.extend(check.allowed().map(|(at, change)| {
        format!("allowed: {}: {}", gate::moved(change), gate.rules.allow.get(at).map_or("", |entry| &entry.reason))
    }));
    said.extend(wrong);
    case.set_system_out(said.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n"));
    case
}

fn failed(check: &Check, kind: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let diff = check.texts.as_ref().map(|[old, new]| gate::diff(old, new)).unwrap_or_default();
    status.set_message(printable(message)).set_type(kind).set_description(diff);
    status
}
