// SPDX-License-Identifier: GPL-2.0-or-later
//! Flags of `fuzz` and `repro`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::cli::trees::TreeArgs;
use crate::cli::values::parse_spec;
use crate::spec::Spec;

pub const FUZZ_EXAMPLES: &str = "Examples:
  sisdiff fuzz --pair v5.11,v5.11+recent-used --time 60
      exit 1 if an oracle speaks; each kind of finding as a small case file in sisdiff-findings/
  sisdiff fuzz --pair v6.1,v6.12 --cases 100000 --seed 7
      the same run again, byte for byte, on any machine
  sisdiff fuzz --pair v6.12,v6.12+slow-allowed --expect-equal --first
      the first case in which the two differ
  sisdiff fuzz --pair tree:~/linux@v6.12,tree:~/linux@my-branch --expect-equal --first";

pub const REPRO_EXAMPLES: &str = "Examples:
  sisdiff repro sisdiff-findings/affinity-RecentUsed.toml --explain
      the machine at each decision, and the walks side by side
  sisdiff repro fuzz/artifacts/wakeup/crash-0a1b2c --minimize -o small.toml
  sisdiff repro case.toml --pair v6.1,v6.12";

pub const BUGS_EXAMPLES: &str = "Examples:
  sisdiff bugs                       what was wrong in the kernel's wakeup path, and who sees it";

/// The pair where nobody says.
const DEFAULT_PAIR: &str = "v5.11,v5.11+mel-v2";

/// What is played, and what counts as a finding.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Oracles")]
pub struct OracleArgs {
    /// Known kernel bugs (see `sisdiff bugs`) are no findings.
    #[arg(long)]
    pub allow_known: bool,
    /// Any difference from the first implementation is a finding.
    #[arg(long)]
    pub expect_equal: bool,
    /// The kernel's counters of wakeups have to agree with the placement (before 6.3 they do not).
    #[arg(long)]
    pub schedstat: bool,
}

/// `sisdiff fuzz`.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// The implementations, of which the first places the tasks; one alone is held to the invariants.
    #[arg(long, value_name = "SPEC,…", value_delimiter = ',', default_value = DEFAULT_PAIR, value_parser = parse_spec)]
    pub pair: Vec<Spec>,
    /// Stop after so many seconds. Default: 60, without --cases.
    #[arg(long, value_name = "SECONDS", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Stop after so many cases; then the same seed gives the same report.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Where the cases come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A file of findings to leave aside, each with reason and commit; see fuzz/allowed.toml.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub allow: Option<PathBuf>,
    /// Stop at the first finding.
    #[arg(long)]
    pub first: bool,
    /// What counts.
    #[command(flatten)]
    pub oracles: OracleArgs,
    /// How to build and run kernel trees.
    #[command(flatten)]
    pub trees: TreeArgs,
    /// The folder for the minimised case of each kind of finding; made when there is one.
    #[arg(short, long, value_name = "DIR", default_value = "sisdiff-findings", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Write the findings as SARIF 2.1.0, too, for a service's list of them.
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sarif: Option<PathBuf>,
    /// No progress bar, and no line for each new finding, on stderr.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `sisdiff repro`.
#[derive(Debug, Args)]
pub struct ReproArgs {
    /// A case file, or the bytes that a fuzzer left; - is standard input.
    #[arg(value_name = "CASE", value_hint = ValueHint::FilePath)]
    pub case: PathBuf,
    /// The implementations. Default: those that the case names (for bytes, as the fuzz target plays them), else all
    /// releases.
    #[arg(long, value_name = "SPEC,…", value_delimiter = ',', value_parser = parse_spec)]
    pub pair: Vec<Spec>,
    /// Make the case smaller as long as the same oracle fails in the same way.
    #[arg(long)]
    pub minimize: bool,
    /// Show the machine and the walks at each decision.
    #[arg(long)]
    pub explain: bool,
    /// What counts.
    #[command(flatten)]
    pub oracles: OracleArgs,
    /// How to build and run kernel trees.
    #[command(flatten)]
    pub trees: TreeArgs,
    /// Write the case, as small as it is now, to a file; - is stdout.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Width of the output, 60 to 400. Default: the terminal's, else 100; below 100 walks are stacked.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    pub width: Option<u16>,
}

/// Seconds, with or without the unit.
fn parse_time(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let seconds = number.parse::<f64>().ok().filter(|seconds| (0.1..=31_536_000.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, at least 0.1, such as 60".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds() {
        assert_eq!(parse_time("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_time("0.5s"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "-1", "NaN", "1m", "inf"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
