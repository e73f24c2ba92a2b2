// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use crate::gate::{Change, Oracle, Trouble, Value, Violation};
use crate::replay::Role;
use crate::report::gate_samples as samples;

fn check(status: Status) -> Check {
    samples::check("t,1:a|b.dat", "t,1:a|b.dat", "s,1:100%.snap", status)
}

fn gate(checks: Vec<Check>) -> Gate {
    Gate { config: "gate.toml".to_owned(), checks, ..Gate::default() }
}

fn changed() -> Check {
    let mut changed = check(Status::Changed);
    changed.changes = (0..20)
        .map(|n| Change {
            key: format!("sis.row{n}.patched"),
            old: Some(Value::Count(100)),
            new: Some(Value::Count(101)),
            excuse: None,
        })
        .collect();
    changed.texts = Some(["same\nold ```` row\n".to_owned(), "same\nnew ```` row\n".to_owned()]);
    changed
}

#[test]
fn annotations_are_escaped_and_point_at_the_line() {
    let text = github(&gate(vec![changed()]));
    let mut lines = text.lines();
    let annotation = lines.next().expect("an annotation");
    let start = "::error file=s%2C1%3A100%25.snap,line=2,title=sisdiff gate%3A changed::t,1:a|b.dat with p%0A";
    assert!(annotation.starts_with(start), "{annotation}");
    assert!(annotation.contains("%0Asis.row0.patched 100 -> 101 (+1.00%25)%0A"), "{annotation}");
    assert!(annotation.ends_with("%0Aand 8 more"), "{annotation}");
    assert!(lines.next().is_some_and(|line| line.ends_with("1 replay: 1 changed")) && lines.next().is_none());
}

#[test]
fn each_kind_of_trouble_is_an_annotation() {
    let mut gate = gate(vec![check(Status::New), check(Status::Trouble(Trouble::Other("a\r\nb".to_owned())))]);
    gate.troubles.push(Trouble::EmptyGlob { config: "gate.toml".to_owned(), pattern: "*".to_owned() });
    gate.checks[0].violations.push(Violation {
        oracle: Oracle::Affinity,
        spec: "v6.1".to_owned(),
        role: Role::Patched,
        count: 1,
        example: Some(7),
        is_known: false,
    });
    let text = github(&gate);
    assert_eq!(text.lines().filter(|line| line.starts_with("::error ")).count(), 4, "{text}");
    assert!(text.contains("::a\\r%0Ab\n") && text.contains("title=sisdiff gate%3A no recordings::"), "{text}");
    assert!(text.contains("title=sisdiff gate%3A wrong placement::"), "{text}");
    gate.checks[0].violations[0].is_known = true;
    assert!(github(&gate).contains("::warning file="));
}

#[test]
fn a_summary_is_a_table_and_folded_diffs() {
    let text = markdown(&gate(vec![changed(), check(Status::Same)]));
    assert!(text.starts_with("## sisdiff gate: changed\n"), "{text}");
    let row = "| t,1:a\\|b.dat | p | changed | sis.row0.patched 100 -\\> 101 (+1.00%); ";
    assert!(text.contains(row) && text.contains("; and 16 more |"), "{text}");
    assert!(text.contains("`````diff\n") && text.contains("\n-old ```` row\n+new ```` row\n`````\n"), "{text}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    assert_eq!(markdown(&gate(vec![check(Status::Same)])).lines().count(), 3);
}
