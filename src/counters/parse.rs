// SPDX-License-Identifier: GPL-2.0-or-later
//! Raw counters from texts: /proc/schedstat, mmtests' tables, JSON.

use serde_json::Value as Json;

use super::{FIELDS, Raw};
use crate::hint::did_you_mean;

/// Counters with the name that their source gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name, where there is one.
    pub name: Option<String>,
    /// The counters.
    pub raw: Raw,
    /// A reading of counters that run since boot, not a difference.
    pub reading: bool,
}

impl Named {
    fn of(raw: Raw) -> Self {
        Self { name: None, raw, reading: false }
    }
}

/// Kernels that one table compares at most.
const COLUMNS_MAX: usize = 256;
/// Characters of a word that an error shows.
const SHOWN_MAX: usize = 40;

/// Why a text holds no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountersError {
    /// None of the known forms.
    #[error(
        "no counters; expected /proc/schedstat, lines like \"Ops SIS Search 5653107942.00\", or JSON like \
         {{\"sis_search\": 5653107942, …}}"
    )]
    Nothing,
    /// A cpu line of another length.
    #[error(
        "line {line}: {found} numbers after {cpu}; expected 9 (mainline), 13 (with the SIS counters), 15 (and those of \
         recent_used_cpu) or 17 (and those of the core search)"
    )]
    Fields {
        /// The line, from 1.
        line: usize,
        /// The CPU.
        cpu: String,
        /// How many numbers there are.
        found: usize,
    },
    /// CPUs with different numbers of counters.
    #[error("line {line}: {found} numbers after {cpu}, but {expected} after the CPU before it")]
    Uneven {
        /// The line, from 1.
        line: usize,
        /// The CPU.
        cpu: String,
        /// How many numbers there are.
        found: usize,
        /// How many there were.
        expected: usize,
    },
    /// No number where one should be.
    #[error("{place}: {found:?} is no count")]
    Number {
        /// Line or key.
        place: String,
        /// What stands there.
        found: String,
    },
    /// Rows with different numbers of columns.
    #[error("line {line}: {name} has {found} columns, the rows before it {expected}")]
    Columns {
        /// The line, from 1.
        line: usize,
        /// The row.
        name: &'static str,
        /// How many columns it has.
        found: usize,
        /// How many there were.
        expected: usize,
    },
    /// More columns than any table has.
    #[error("line {line}: {name} has {found} columns, expected at most {COLUMNS_MAX}")]
    TooWide {
        /// The line, from 1.
        line: usize,
        /// The row.
        name: &'static str,
        /// How many columns it has.
        found: usize,
    },
    /// A row twice.
    #[error("line {line}: {name} is there twice; give one table at a time")]
    Twice {
        /// The second line, from 1.
        line: usize,
        /// The row.
        name: &'static str,
    },
    /// No JSON.
    #[error("no JSON: {0}")]
    Json(String),
    /// A key that is no counter.
    #[error("no counter {found:?}{hint}; there are {possible}")]
    Key {
        /// The key.
        found: String,
        /// The nearest counter, or nothing.
        hint: String,
        /// The counters there are.
        possible: String,
    },
}

/// Reads counters in whichever form they are: one item for each column.
///
/// # Errors
/// [`CountersError`].
pub fn parse(text: &str) -> Result<Vec<Named>, CountersError> {
    let begins = text.trim_start();
    if begins.starts_with(['{', '[']) {
        return json(text);
    }
    if text.lines().any(|line| cpu_line(line).is_some()) {
        return schedstat(text).map(|raw| vec![Named { reading: true, ..Named::of(raw) }]);
    }
    mmtests(text)
}

/// The name and the numbers of a cpu line.
fn cpu_line(line: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().filter(|name| {
        name.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    })?;
    Some((name, words.collect()))
}

/// /proc/schedstat, summed over its CPUs; which counters there are is told by the number of fields, as mainline has used
/// the patches' version numbers for other layouts.
///
/// # Errors
/// [`CountersError::Fields`], [`CountersError::Uneven`], [`CountersError::Number`], [`CountersError::Nothing`].
pub fn schedstat(text: &str) -> Result<Raw, CountersError> {
    let mut sum = Raw::default();
    let mut fields = None;
    for (at, line) in text.lines().enumerate() {
        let Some((cpu, numbers)) = cpu_line(line) else { continue };
        let (line, cpu, found) = (at + 1, cpu.to_owned(), numbers.len());
        if ![9, 13, 15, 17].contains(&found) {
            return Err(CountersError::Fields { line, cpu, found });
        }
        if let Some(expected) = fields.filter(|&fields| fields != found) {
            return Err(CountersError::Uneven { line, cpu, found, expected });
        }
        fields = Some(found);
        let number = |at: usize| match numbers.get(at - 1) {
            None => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|_| CountersError::Number {
                place: format!("line {line}, field {at} of {cpu}"),
                found: (*word).to_owned(),
            }),
        };
        sum.add(Raw {
            ttwu_count: number(5)?,
            ttwu_local: number(6)?,
            search: number(10)?,
            domain_search: number(11)?,
            scanned: number(12)?,
            failed: number(13)?,
            recent_hit: number(14)?,
            recent_miss: number(15)?,
            core_search: number(16)?,
            core_failed: number(17)?,
        });
    }
    if fields.is_none() { Err(CountersError::Nothing) } else { Ok(sum) }
}

/// mmtests' rows: `Ops SIS Search 5653107942.00 5726545742.00`, one column for each number; rows that follow from others
/// are left to be computed.
///
/// # Errors
/// [`CountersError::Columns`], [`CountersError::Number`], [`CountersError::Nothing`].
pub fn mmtests(text: &str) -> Result<Vec<Named>, CountersError> {
    let mut columns: Vec<Named> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line_text = line.trim_start();
        let line_text = line_text.strip_prefix("Ops ").unwrap_or(line_text).trim_start();
        let row = |(name, _, _): &&super::Field| {
            let rest = line_text.strip_prefix(name).unwrap_or_default();
            rest.starts_with([' ', '\t']) && rest.trim_start().starts_with(|c: char| c.is_ascii_digit())
        };
        let Some((name, _, field)) = FIELDS.iter().find(row) else { continue };
        let place = format!("line {}, {name}", at + 1);
        let numbers: Vec<u64> = line_text[name.len()..]
            .split_ascii_whitespace()
            .filter(|word| !word.ends_with("%)") && *word != "(" && !word.ends_with('%'))
            .map(|word| count(word, &place))
            .collect::<Result<_, _>>()?;
        if numbers.len() > COLUMNS_MAX {
            return Err(CountersError::TooWide { line: at + 1, name, found: numbers.len() });
        }
        if columns.is_empty() {
            columns = vec![Named::of(Raw::default()); numbers.len()];
        }
        if columns.len() != numbers.len() {
            let (found, expected) = (numbers.len(), columns.len());
            return Err(CountersError::Columns { line: at + 1, name, found, expected });
        }
        for (column, number) in columns.iter_mut().zip(numbers) {
            if field(&mut column.raw).replace(number).is_some() {
                return Err(CountersError::Twice { line: at + 1, name });
            }
        }
    }
    if columns.is_empty() { Err(CountersError::Nothing) } else { Ok(columns) }
}

/// `5653107942`, `5,653,107,942` or `5653107942.00`.
fn count(word: &str, place: &str) -> Result<u64, CountersError> {
    let wrong = || CountersError::Number { place: place.to_owned(), found: word.chars().take(SHOWN_MAX).collect() };
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    if !fraction.bytes().all(|byte| byte == b'0') {
        return Err(wrong());
    }
    whole.replace(',', "").parse().map_err(|_| wrong())
}

/// JSON: an object of counters by the kernel's names, with or without `sis_`; a list of such objects; an object of such
/// objects by name; or a report of `sisdiff replay --format json`, whose implementations become the columns.
///
/// # Errors
/// [`CountersError::Json`], [`CountersError::Key`], [`CountersError::Number`], [`CountersError::Nothing`].
pub fn json(text: &str) -> Result<Vec<Named>, CountersError> {
    let json: Json = serde_json::from_str(text).map_err(|error| CountersError::Json(error.to_string()))?;
    if json.get("schema").is_some() {
        return replayed(&json);
    }
    let columns = match &json {
        Json::Array(list) => list.iter().map(|one| object(one).map(Named::of)).collect::<Result<Vec<_>, _>>()?,
        Json::Object(map) if map.values().all(Json::is_object) => map
            .iter()
            .map(|(name, one)| Ok(Named { name: Some(name.clone()), ..Named::of(object(one)?) }))
            .collect::<Result<Vec<_>, CountersError>>()?,
        one => vec![Named::of(object(one)?)],
    };
    if columns.is_empty() { Err(CountersError::Nothing) } else { Ok(columns) }
}

fn object(json: &Json) -> Result<Raw, CountersError> {
    let Json::Object(map) = json else { return Err(CountersError::Nothing) };
    let mut raw = Raw::default();
    for (key, value) in map {
        let name =
            |field: &&super::Field| key == field.1 || key == field.1.trim_start_matches("sis_") || key == field.0;
        let Some((_, _, field)) = FIELDS.iter().find(name) else {
            let names: Vec<&str> = FIELDS.iter().map(|field| field.1).collect();
            return Err(CountersError::Key {
                found: key.clone(),
                hint: did_you_mean(key, &names),
                possible: names.join(", "),
            });
        };
        let found = || CountersError::Number { place: key.clone(), found: value.to_string() };
        *field(&mut raw) = Some(value.as_u64().ok_or_else(found)?);
    }
    if raw == Raw::default() { Err(CountersError::Nothing) } else { Ok(raw) }
}

/// The columns of a replay: of the sum where there is one. The model of the recorded kernel comes last.
fn replayed(report: &Json) -> Result<Vec<Named>, CountersError> {
    let totals = report.get("sum").or_else(|| report.pointer("/files/0/totals"));
    let columns = totals.and_then(|totals| totals.get("columns")).and_then(Json::as_array);
    let column = |column: &Json| {
        let sis = column.get("sis")?;
        let of = |key: &str| sis.get(key).and_then(Json::as_u64);
        let raw = Raw {
            search: of("search"),
            domain_search: of("domain_search"),
            scanned: of("scanned"),
            failed: of("failed"),
            recent_hit: of("recent_hit"),
            recent_miss: of("recent_miss"),
            ..Raw::default()
        };
        Some(Named { name: column.get("spec").and_then(Json::as_str).map(str::to_owned), ..Named::of(raw) })
    };
    let columns: Option<Vec<Named>> = columns.map(|columns| columns.iter().filter_map(column).collect());
    columns.filter(|columns| !columns.is_empty()).ok_or(CountersError::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAINLINE: &str = "version 15\ntimestamp 4294894769\n\
        cpu0 0 0 44 20 40 17 2648848125 520618673 508\n\
        domain0 03 393 391 2 2 0 0 0\n\
        cpu1 0 0 159 71 86 23 1603505454 996727735 180\n";

    #[test]
    fn a_mainline_schedstat_has_wakeups_only() {
        let raw = schedstat(MAINLINE).expect("a schedstat");
        assert_eq!(raw, Raw { ttwu_count: Some(126), ttwu_local: Some(40), ..Raw::default() });
        assert!(parse(MAINLINE).expect("a schedstat")[0].reading);
    }

    #[test]
    fn the_number_of_fields_tells_the_counters() {
        let line = |n: u64| format!("cpu0 {}\n", (1..=n).map(|at| at.to_string()).collect::<Vec<_>>().join(" "));
        // Whatever the version says.
        let of = |n| schedstat(&format!("version 17\n{}", line(n)));
        let sis = of(13).expect("13 fields");
        assert_eq!((sis.search, sis.domain_search, sis.scanned, sis.failed), (Some(10), Some(11), Some(12), Some(13)));
        assert_eq!((sis.recent_hit, sis.core_search), (None, None));
        let recent = of(15).expect("15 fields");
        assert_eq!((recent.recent_hit, recent.recent_miss, recent.core_search), (Some(14), Some(15), None));
        let core = of(17).expect("17 fields");
        assert_eq!((core.core_search, core.core_failed), (Some(16), Some(17)));
        assert_eq!(of(12), Err(CountersError::Fields { line: 2, cpu: "cpu0".to_owned(), found: 12 }));
        assert!(matches!(schedstat(&(line(9) + &line(13))), Err(CountersError::Uneven { found: 13, expected: 9, .. })));
        let text = schedstat(&MAINLINE.replace(" 86 ", " 8x6 ")).expect_err("no number").to_string();
        assert_eq!(text, "line 5, field 5 of cpu1: \"8x6\" is no count");
    }

    #[test]
    fn the_published_table_is_read() {
        let text = "Ops SIS Search               5653107942.00  5726545742.00\n\
                    Ops SIS Domain Search        3365067916.00  3319768543.00\n\
                    Ops SIS Domain Scanned     109885472517.00 96787575342.00\n\
                    Ops SIS Search Efficiency             5.04           5.77\n";
        let columns = parse(text).expect("a table");
        assert_eq!(columns.len(), 2);
        assert_eq!((columns[0].raw.search, columns[1].raw.domain_search), (Some(5653107942), Some(3319768543)));
        assert_eq!(columns[0].raw.scanned, None, "what follows from others is not taken for a counter");
        assert_eq!(mmtests("SIS Search 1,234 (0.00%)\n").map(|it| it[0].raw.search), Ok(Some(1234)));
        assert!(matches!(mmtests("SIS Search 1 2\nSIS Scanned 1\n"), Err(CountersError::Columns { line: 2, .. })));
        assert!(matches!(mmtests("SIS Search 1.5\n"), Err(CountersError::Number { .. })));
        assert_eq!(
            mmtests("SIS Search 1\nSIS Scanned 1\nSIS Search 2\n"),
            Err(CountersError::Twice { line: 3, name: "SIS Search" })
        );
        let wide = format!("SIS Search{}\n", " 1".repeat(300));
        assert_eq!(mmtests(&wide), Err(CountersError::TooWide { line: 1, name: "SIS Search", found: 300 }));
        assert_eq!(parse("hello\n"), Err(CountersError::Nothing));
    }

    #[test]
    fn json_is_an_object_a_list_or_a_report() {
        let one = parse(r#"{"sis_search": 5, "domain_search": 3}"#).expect("counters");
        assert_eq!((one[0].raw.search, one[0].raw.domain_search), (Some(5), Some(3)));
        let two = parse(r#"{"base": {"sis_search": 5}, "patched": {"sis_search": 4}}"#).expect("counters");
        assert_eq!((two[0].name.as_deref(), two[1].raw.search), (Some("base"), Some(4)));
        assert_eq!(parse(r#"[{"sis_search": 5}, {"sis_search": 4}]"#).map(|it| it.len()), Ok(2));
        let report = r#"{"schema": "sisdiff.replay/1", "files": [{"totals": {"columns": [
            {"spec": "v5.11", "sis": {"search": 9, "scanned": 20}}]}}]}"#;
        let report = parse(report).expect("a report");
        assert_eq!((report[0].name.as_deref(), report[0].raw.scanned), (Some("v5.11"), Some(20)));
        let text = parse(r#"{"sis_serch": 5}"#).expect_err("no such counter").to_string();
        assert!(text.contains("did you mean \"sis_search\""), "{text}");
        assert!(parse(r#"{"sis_search": -5}"#).is_err() && parse("{").is_err() && parse("[]").is_err());
    }
}
