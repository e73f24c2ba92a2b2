// SPDX-License-Identifier: GPL-2.0-or-later
//! Flags of `gate`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum, ValueHint};
use globset::Glob;

use crate::cli::args::DEFAULT_BASELINE;
use crate::cli::plan::DEFAULT_PATCHED;
use crate::cli::values::{parse_glob, parse_spec};
use crate::spec::Spec;

pub const GATE_EXAMPLES: &str = "Examples:
  sisdiff gate init traces/*/trace.dat
      a gate.toml that locks what v5.11 and v5.11+mel-v2 do with these recordings
  sisdiff gate check
      exit 1 if a decision, a return or a counter is not what the snapshots say
  sisdiff gate review                one change after the other: accept, reject, skip
  sisdiff gate accept --only '*numa*'
  sisdiff gate check --format github --report junit=gate.xml --report markdown=summary.md

Exit codes: 0 unchanged, 1 changed or new, 2 trouble: a recording is missing or another one, a
snapshot is unreadable, of another format or of nothing that is checked, a pattern matches nothing,
gate.toml is wrong. docs/ci.md has gates for GitHub and GitLab.";

const INIT_EXAMPLES: &str = "Examples:
  sisdiff gate init a.dat b.dat --baseline v6.1 --patched tree:~/linux
  sisdiff gate init 'corpus/**/*.dat' --config ci/gate.toml --snapshots ci/snapshots";

const CHECK_EXAMPLES: &str = "Examples:
  sisdiff gate check
  sisdiff gate check --only 'mel-*' --threads 1
  sisdiff gate check --quiet --report sarif=gate.sarif";

const ACCEPT_EXAMPLES: &str = "Examples:
  sisdiff gate accept
  sisdiff gate accept --only 'traces/numa*' --only mel-v2
  sisdiff gate accept --orphans      also removes snapshots of what is no longer checked";

const REVIEW_EXAMPLES: &str = "Examples:
  sisdiff gate review
      keys: a accept, r reject, s skip, A all that are left, q quit; on a terminal";

/// `sisdiff gate`.
#[derive(Debug, Subcommand)]
pub enum GateCommand {
    /// Write a first gate.toml for recordings.
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Replay everything and compare it with the snapshots.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Take what the last check wrote beside the snapshots.
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept(AcceptArgs),
    /// Look at what the last check wrote, one change after the other.
    #[command(after_help = REVIEW_EXAMPLES)]
    Review(ReviewArgs),
}

/// The configuration.
#[derive(Debug, Clone, Args)]
pub struct ConfigArg {
    /// The gate's configuration; all paths in it start at its folder.
    #[arg(long, value_name = "FILE", default_value = "gate.toml", value_hint = ValueHint::FilePath)]
    pub config: PathBuf,
}

/// Some of the snapshots.
#[derive(Debug, Clone, Args)]
pub struct OnlyArg {
    /// Only recordings or pairs whose path or name matches this shell pattern; repeat for several.
    #[arg(long, value_name = "GLOB", action = ArgAction::Append, value_parser = parse_glob)]
    pub only: Vec<Glob>,
}

/// `sisdiff gate init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Recordings, or patterns of them in quotes.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArg,
    /// The folder of the snapshots, from that of the configuration.
    #[arg(long, value_name = "DIR", default_value = "snapshots", value_hint = ValueHint::DirPath)]
    pub snapshots: String,
    /// What the other is compared with; see `sisdiff list`.
    #[arg(long, value_name = "SPEC", default_value = DEFAULT_BASELINE, value_parser = parse_spec)]
    pub baseline: Spec,
    /// What is compared.
    #[arg(long, value_name = "SPEC", default_value = DEFAULT_PATCHED, value_parser = parse_spec)]
    pub patched: Spec,
    /// The pair's name: what snapshots are called by, whatever the specs become.
    #[arg(long, value_name = "NAME", default_value = "patch")]
    pub pair: String,
}

/// `sisdiff gate check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArg,
    /// What of it.
    #[command(flatten)]
    pub only: OnlyArg,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = GateFormat::Text)]
    pub format: GateFormat,
    /// Write the report to a file instead of stdout.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Another report of the same check, such as junit=gate.xml; repeat for several.
    #[arg(long, value_name = "FORMAT=FILE", action = ArgAction::Append, value_parser = parse_report)]
    pub report: Vec<(GateFormat, PathBuf)>,
    /// Leave no .snap.new files for `accept` and `review`.
    #[arg(long)]
    pub no_new: bool,
    /// No report on stdout and no progress bar: exit code, files and errors only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Replays at the same time; the output is the same at any number. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// `sisdiff gate accept`.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArg,
    /// What of it.
    #[command(flatten)]
    pub only: OnlyArg,
    /// Remove snapshots of recordings and pairs that are no longer checked, too.
    #[arg(long)]
    pub orphans: bool,
    /// Do not say what was done.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `sisdiff gate review`.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArg,
    /// What of it.
    #[command(flatten)]
    pub only: OnlyArg,
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GateFormat {
    /// For people.
    Text,
    /// For programs: docs/gate.schema.json.
    Json,
    /// JUnit's XML, which most services show: a suite for each recording, a case for each pair.
    Junit,
    /// GitHub's annotations.
    Github,
    /// A summary in GitHub's and GitLab's Markdown.
    Markdown,
    /// SARIF 2.1.0: placements that no implementation may make.
    Sarif,
}

fn parse_report(text: &str) -> Result<(GateFormat, PathBuf), String> {
    let names: Vec<&str> = GateFormat::value_variants().iter().map(|format| NAMES[*format as usize]).collect();
    let expected = || format!("expected FORMAT=FILE, FORMAT one of {}", names.join(", "));
    let (format, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or_else(expected)?;
    let format = GateFormat::from_str(format, false).map_err(|_| expected())?;
    Ok((format, file.into()))
}

/// The formats' names, in their order.
const NAMES: [&str; 6] = ["text", "json", "junit", "github", "markdown", "sarif"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_format_and_a_file() {
        assert_eq!(parse_report("junit=a=b.xml"), Ok((GateFormat::Junit, "a=b.xml".into())));
        for bad in ["junit", "junit=", "xml=a", "=a"] {
            assert!(parse_report(bad).expect_err(bad).contains("junit, github"), "{bad}");
        }
        for (at, format) in GateFormat::value_variants().iter().enumerate() {
            assert_eq!(GateFormat::from_str(NAMES[at], false), Ok(*format));
        }
    }
}
