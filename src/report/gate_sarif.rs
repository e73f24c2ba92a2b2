// SPDX-License-Identifier: GPL-2.0-or-later
//! What no implementation may do, and did, as SARIF 2.1.0: for a service's list of findings. Of the format only what is
//! needed is written, with plain structs: the crates that model all of it are made for reading, and much larger.

use serde::Serialize;

use crate::gate::{Gate, Oracle};
use crate::report::gate::{name, violation};

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name: letters, digits, dashes.
    pub rule: String,
    /// What the rule demands, in a sentence.
    pub demands: String,
    /// What was found.
    pub message: String,
    /// The file, by its path.
    pub file: String,
    /// Where in it: a decision's number or an implementation.
    pub place: String,
    /// Whether it was there before; `None`: nobody knows.
    pub is_known: Option<bool>,
}

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    tool: Tool,
    results: Vec<Found>,
    #[serde(rename = "columnKind")]
    column_kind: &'static str,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Text,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Text,
    locations: Vec<Location>,
    partial_fingerprints: Fingerprint,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
}

#[derive(Serialize)]
struct Fingerprint {
    #[serde(rename = "finding/v1")]
    finding: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Physical,
    logical_locations: Vec<Logical>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    artifact_location: Artifact,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logical {
    fully_qualified_name: String,
}

/// The findings of a checked gate: the implementations that broke a rule, in the recordings where they did.
pub fn of_gate(gate: &Gate) -> Vec<Finding> {
    let of = |check: &crate::gate::Check, one: &crate::gate::Violation| Finding {
        rule: rule(one.oracle).0.to_owned(),
        demands: rule(one.oracle).1.to_owned(),
        message: format!("{}: {}", name(check), violation(one)),
        file: check.path.clone(),
        place: format!("{} {}", check.pair, one.spec),
        is_known: Some(one.is_known),
    };
    gate.checks.iter().flat_map(|check| check.violations.iter().map(move |one| of(check, one))).collect()
}

fn rule(oracle: Oracle) -> (&'static str, &'static str) {
    match oracle {
        Oracle::Affinity => {
            ("cpu-outside-cpus-ptr", "The scheduling class answers with a CPU of the wakee's cpus_ptr.")
        }
        Oracle::RunQueue => ("run-queue-beyond-nr-cpu-ids", "Run queues are taken at an index below nr_cpu_ids."),
    }
}

/// The log, indented, with a newline at its end.
pub fn sarif(findings: &[Finding]) -> String {
    let mut rules: Vec<(&str, &str)> = findings.iter().map(|one| (one.rule.as_str(), one.demands.as_str())).collect();
    rules.extend([Oracle::Affinity, Oracle::RunQueue].map(rule));
    rules.sort_unstable();
    rules.dedup_by_key(|rule| rule.0);
    let results = findings.iter().map(|one| found(one, &rules)).collect();
    let rules = rules
        .iter()
        .map(|(id, demands)| Rule { id: (*id).to_owned(), short_description: Text { text: (*demands).to_owned() } });
    let driver = Driver { name: "sisdiff", semantic_version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    let run = Run { tool: Tool { driver }, results, column_kind: "unicodeCodePoints" };
    let schema = "https://json.schemastore.org/sarif-2.1.0.json";
    let log = Log { schema, version: "2.1.0", runs: vec![run] };
    // Plain data with string keys: nothing that JSON cannot hold.
    serde_json::to_string_pretty(&log).map(|text| text + "\n").unwrap_or_default()
}

fn found(one: &Finding, rules: &[(&str, &str)]) -> Found {
    let artifact_location = Artifact { uri: uri(&one.file) };
    Found {
        rule_id: one.rule.clone(),
        rule_index: rules.iter().position(|rule| rule.0 == one.rule).unwrap_or(0),
        level: "error",
        message: Text { text: one.message.clone() },
        locations: vec![Location {
            physical_location: Physical { artifact_location },
            logical_locations: vec![Logical { fully_qualified_name: one.place.clone() }],
        }],
        partial_fingerprints: Fingerprint { finding: format!("{} {} {}", one.rule, one.file, one.place) },
        baseline_state: one.is_known.map(|known| if known { "unchanged" } else { "new" }),
    }
}

/// A path as a reference to it.
fn uri(path: &str) -> String {
    let mut out = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a b/ü:1.dat"), "a%20b/%C3%BC%3A1.dat");
        assert_eq!(uri("/a/b.dat"), "file:///a/b.dat");
    }
}
