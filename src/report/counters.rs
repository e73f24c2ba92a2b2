// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of counters as mmtests prints them: name, baseline, patched, change.

use serde_json::{Map, Value as Json, json};

use crate::counters::{Column, Value, change};
use crate::report::layout::{Align, HEADING, columns, count, paint};

/// A value as tables show it.
pub fn cell(value: Value) -> String {
    match value {
        Value::Count(n) => count(n),
        Value::Percent(percent) => format!("{percent:.2}"),
    }
}

/// A change as tables show it; `-` from nothing.
pub fn change_cell(from: Value, to: Value) -> String {
    let text = change(from, to).map_or_else(|| "-".to_owned(), |change| format!("{change:+.2}%"));
    if text == "+0.00%" || text == "-0.00%" { "0.00%".to_owned() } else { text }
}

/// The rows that any of `columns` has: the first is the baseline, each other one stands beside its change from it.
pub fn table(table: &[Column]) -> String {
    let mut out = String::new();
    let head = head(table.len());
    let names = table.iter().zip(labels(table.len())).map(|(column, label)| vec![label, column.name.clone()]);
    out += &columns(2, &[Align::Left, Align::Wrap], &names.collect::<Vec<_>>());
    let mut rows = vec![head];
    let Some(first) = table.first() else { return out };
    for (at, (name, from)) in first.raw.rows().into_iter().enumerate() {
        let values: Vec<Option<Value>> = table.iter().map(|column| column.raw.rows()[at].1).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let mut row = vec![name.to_owned()];
        for (column, value) in values.into_iter().enumerate() {
            row.push(value.map_or_else(|| "-".to_owned(), cell));
            if column > 0 {
                row.push(match (from, value) {
                    (Some(from), Some(to)) => change_cell(from, to),
                    _ => "-".to_owned(),
                });
            }
        }
        rows.push(row);
    }
    let mut align = vec![Align::Left];
    align.extend(std::iter::repeat_n(Align::Right, 2 * table.len() - 1));
    format!("{}\n{out}\n{}", paint(HEADING, "counters"), columns(2, &align, &rows))
}

fn labels(n: usize) -> Vec<String> {
    match n {
        1 => vec!["counted".to_owned()],
        2 => vec!["baseline".to_owned(), "patched".to_owned()],
        n => std::iter::once("baseline".to_owned()).chain((1..n).map(|at| format!("patched {at}"))).collect(),
    }
}

fn head(n: usize) -> Vec<String> {
    let mut head = vec![String::new()];
    for (at, label) in labels(n).into_iter().enumerate() {
        head.push(label);
        if at > 0 {
            head.push("change".to_owned());
        }
    }
    head
}

/// The same for programs: each column with its rows, percents not rounded.
///
/// # Errors
/// None that counters can cause; serde's.
pub fn json(columns: &[Column]) -> Result<String, serde_json::Error> {
    let value = |value: Value| match value {
        Value::Count(n) => json!(n),
        Value::Percent(percent) => json!(percent),
    };
    let rows = |column: &Column| -> Map<String, Json> {
        let rows = column.raw.rows().into_iter();
        rows.filter_map(|(name, of)| Some((name.to_owned(), value(of?)))).collect()
    };
    let columns: Vec<Json> =
        columns.iter().map(|column| json!({ "name": column.name, "raw": column.raw, "rows": rows(column) })).collect();
    let all = json!({ "schema": "sisdiff.counters/1", "columns": columns });
    serde_json::to_string_pretty(&all).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Source, columns};

    const TABLE: &str = "Ops SIS Search 5653107942.00 5726545742.00\n\
        Ops SIS Domain Search 3365067916.00 3319768543.00\n\
        Ops SIS Scanned 112173512543.00 99194352541.00\n\
        Ops SIS Failures 2923185114.00 2950166441.00\n\
        Ops SIS Recent Used Hit 56547.00 118064916.00\n\
        Ops SIS Recent Used Miss 1590899250.00 354942791.00\n";

    fn of(text: &str) -> Vec<Column> {
        columns(&[("table.txt".to_owned(), Source::Text(text.to_owned()))], false).expect("counters")
    }

    #[test]
    fn the_published_table_comes_out_as_printed() {
        let text = anstream::adapter::strip_str(&table(&of(TABLE))).to_string();
        for line in [
            "                                  baseline         patched       change",
            "  SIS Domain Scanned       109,885,472,517  96,787,575,342      -11.92%",
            "  SIS Recent Used Hit               56,547     118,064,916  +208690.77%",
            "  SIS Search Efficiency               5.04            5.77      +14.55%",
        ] {
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(text.lines().any(|other| words(other) == words(line)), "{line}\n{text}");
        }
        assert!(!text.contains("TTWU"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn one_column_has_no_change_and_three_have_two() {
        let one = anstream::adapter::strip_str(&table(&of("SIS Search 7\n"))).to_string();
        assert!(one.contains("counted") && !one.contains("change"), "{one}");
        let three = anstream::adapter::strip_str(&table(&of("SIS Search 7 8 9\n"))).to_string();
        assert_eq!(three.matches("change").count(), 2, "{three}");
        assert!(json(&of(TABLE)).expect("JSON").contains("\"SIS Recent Attempts\": 1590955797"));
    }
}
