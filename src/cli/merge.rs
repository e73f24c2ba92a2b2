// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff merge`: JSON reports of replays, such as those of shards, become one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::cli::args::Format;
use crate::cli::bounded;
use crate::cli::output::{Trouble, print};
use crate::cli::sink::{self, Sink};
use crate::replay::Outcome;
use crate::report::json::{Report, SCHEMA};
use crate::report::merged;
use crate::report::shards::{self, Part, Shards};

/// Examples of `merge`.
pub const MERGE_EXAMPLES: &str = "Examples:
  sisdiff replay corpus/*.dat --shard 1/2 --format json -o 1.json     on one machine
  sisdiff replay corpus/*.dat --shard 2/2 --format json -o 2.json     on another one
  sisdiff merge 1.json 2.json
      the sum, with quantiles of CPUs scanned and of wakeup latencies
  sisdiff merge *.json --format json -o all.json
      what one replay of all recordings (--shard 1/1) gives, field by field

  sisdiff merge 1.json --partial
      what is there of a run whose other shards are not

Counters are added exactly; quantiles come from histograms that are added bucket by bucket. Refused, with exit code 2: a run
of which shards are missing (without --partial), a shard or a recording that is there twice, shards of other runs, reports of
other implementations or with other filters. docs/scaling.md has job scripts.";

/// `sisdiff merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Reports of `sisdiff replay --format json`, or of `merge`; - is standard input.
    #[arg(required = true, value_name = "REPORT", value_hint = ValueHint::FilePath)]
    pub reports: Vec<PathBuf>,
    /// Add up the shards that are there; the sum says which are not, and can be merged with them later.
    #[arg(long)]
    pub partial: bool,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the report to a file instead of stdout, which is -.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Merges.
///
/// # Errors
/// Where a report cannot be read, or does not belong to the others.
pub fn merge(args: &MergeArgs) -> Result<(), Trouble> {
    let inputs: Vec<(&str, PathBuf)> = args.reports.iter().map(|path| ("the report", path.clone())).collect();
    let outputs: Vec<(&str, &Path)> = args.output.iter().map(|path| ("--output", path.as_path())).collect();
    sink::check(&outputs, &inputs)?;
    let output = args.output.as_deref().map(Sink::open).transpose()?;
    let mut reports: Vec<(String, Report)> = Vec::new();
    for path in &args.reports {
        reports.push((path.display().to_string(), read(path)?));
    }
    let shards = joined(&reports, args.partial)?;
    let named = |(name, report): (String, Report)| report.files.into_iter().map(move |outcome| (outcome, name.clone()));
    let mut files: Vec<(Outcome, String)> = reports.into_iter().flat_map(named).collect();
    files.sort_by(|(a, _), (b, _)| Path::new(&a.recording.file).cmp(Path::new(&b.recording.file)));
    check(&files)?;
    let report = Report::new(files.into_iter().map(|(outcome, _)| outcome).collect(), shards);
    let text = match args.format {
        Format::Text => merged::text(&report),
        Format::Json => report.to_json().map_err(|error| Trouble::Usage(error.to_string()))?,
    };
    let Some(mut sink) = output.filter(|_| !args.output.as_deref().is_some_and(sink::is_stdout)) else {
        return print(&text);
    };
    let plain = anstream::adapter::strip_str(&text).to_string();
    std::io::Write::write_all(&mut sink, plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}

/// Which shards the sum of `reports` has; `None`: it is whole.
fn joined(reports: &[(String, Report)], is_partial: bool) -> Result<Option<Shards>, Trouble> {
    let parts: Vec<Part<'_>> = reports
        .iter()
        .map(|(name, report)| Part {
            report: name,
            sisdiff: &report.sisdiff,
            shards: report.shards.as_ref(),
            recordings: report.files.len(),
        })
        .collect();
    let names = reports.iter().flat_map(|(_, report)| &report.files).map(|outcome| outcome.recording.file.clone());
    let names: Vec<String> = names.collect();
    shards::join(&parts, &names, is_partial).map_err(|error| Trouble::Usage(format!("merge: {error}")))
}

fn read(path: &Path) -> Result<Report, Trouble> {
    let what = path.display().to_string();
    let text = if path == Path::new("-") {
        bounded::read(std::io::stdin(), bounded::REPORT)
    } else {
        bounded::read_text(path, bounded::REPORT)
    };
    let text = text.map_err(|error| Trouble::Read { what: what.clone(), reason: error.to_string() })?;
    let wrong = |why: String| Trouble::Usage(format!("merge: {what}: {why}"));
    // Said before anything about fields: another program's JSON, or another version.
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is no JSON ({error})")))?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(wrong(format!("has the schema {other}; expected {SCHEMA}, of `replay --format json`")));
        }
        None => return Err(wrong(format!("names no schema; expected {SCHEMA}, of `replay --format json`"))),
    }
    if let Some(number) = too_large(&value) {
        return Err(wrong(format!("has the number {number}; no recording has more than {MOST} of anything")));
    }
    serde_json::from_str(&text).map_err(|error| wrong(format!("is no report ({error})")))
}

/// The largest count that is believed: sums of thousands of such stay in 64 bits. In ns it is a hundred days.
const MOST: u64 = 1 << 53;

/// A number in `value` that is no count of a recording.
fn too_large(value: &serde_json::Value) -> Option<u64> {
    match value {
        serde_json::Value::Number(number) => number.as_u64().filter(|&number| number > MOST),
        serde_json::Value::Array(values) => values.iter().find_map(too_large),
        serde_json::Value::Object(values) => values.values().find_map(too_large),
        _ => None,
    }
}

/// Refuses what cannot be added up.
fn check(files: &[(Outcome, String)]) -> Result<(), Trouble> {
    let Some((first, first_report)) = files.first() else { return Ok(()) };
    let specs = |outcome: &Outcome| (outcome.setup.baseline.clone(), outcome.setup.patched.clone());
    let named = |(baseline, patched): (String, Vec<String>)| format!("{baseline} -> {}", patched.join(", "));
    for (outcome, report) in files {
        if specs(outcome) != specs(first) {
            return Err(Trouble::Usage(format!(
                "merge: {report} compares {}, {first_report} compares {}; replay all with the same implementations",
                named(specs(outcome)),
                named(specs(first))
            )));
        }
        if outcome.setup.filters != first.setup.filters {
            return Err(Trouble::Usage(format!(
                "merge: {report} and {first_report} count with other filters; replay all with the same ones"
            )));
        }
    }
    let twice = files.windows(2).find(|pair| pair[0].0.recording.file == pair[1].0.recording.file);
    match twice {
        Some([(outcome, one), (_, other)]) => Err(Trouble::Usage(format!(
            "merge: {} is in {one} and in {other}; each recording once",
            outcome.recording.file
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::too_large;

    #[test]
    fn a_number_that_no_recording_has_is_found_wherever_it_is() {
        assert_eq!(too_large(&json!({ "files": [{ "same": 3 }, { "same": u64::MAX }] })), Some(u64::MAX));
        assert_eq!(too_large(&json!({ "files": [3, 2.5, "9999999999999999999", null, -1] })), None);
    }
}
