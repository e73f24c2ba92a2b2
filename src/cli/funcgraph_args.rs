// SPDX-License-Identifier: GPL-2.0-or-later
//! Flags of `sisdiff funcgraph`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::cli::values::{TraceTime, parse_cpus, parse_glob, parse_measured, parse_pid};
use crate::cpumask::Cpumask;
use crate::funcgraph::Operation;

/// Heading of the filters of `funcgraph`.
const CALLS: &str = "Filters (all calls are paired; the rest is not counted)";

/// Examples below the help.
pub const FUNCGRAPH_EXAMPLES: &str = "Examples:
  sisdiff funcgraph trace.dat
      recorded with: trace-cmd record -p function_graph -l activate_task -l deactivate_task
  sisdiff funcgraph off=a.dat on=b.dat --ops '2*activate_task + 2*deactivate_task' \\
      --measured off=16.176 --measured on=17.126
  sisdiff funcgraph trace.dat --fit --format json -o cost.json; sisdiff replay other.dat --scan-cost cost.json
  sisdiff funcgraph mail.txt
      pasted lines; words between them divide it into parts mail.txt#1, mail.txt#2, ...";

/// `sisdiff funcgraph`.
#[derive(Debug, Args)]
pub struct FuncgraphArgs {
    /// Recordings: trace.dat, or text of trace-cmd report, tracefs or a mail; - is standard input.
    ///
    /// LABEL= names it in the report; #N takes the Nth part of a pasted text.
    #[arg(required = true, value_name = "[LABEL=]FILE[#N]", value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The set that the others are compared with. Default: the first.
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// Which figure stands for all calls of a function.
    #[arg(long, value_enum, default_value_t = MiddleArg::Median)]
    pub by: MiddleArg,
    /// Calls that make an operation, such as '2*activate_task + 2*deactivate_task'; repeatable.
    #[arg(long, value_name = "SUM")]
    pub ops: Vec<Operation>,
    /// Measured cost of an operation in a set, us; repeatable.
    #[arg(long, value_name = "LABEL=US", value_parser = parse_measured)]
    pub measured: Vec<(String, f64)>,
    /// A traced function that does nothing: what it takes is the tracer's.
    #[arg(long, value_name = "FUNCTION")]
    pub empty_function: Option<String>,
    /// Replay the recordings, too, and fit the time of select_task_rq_fair() to the CPUs that the model of the recorded
    /// kernel looks at: a fixed cost, and ns for each. `replay --scan-cost` takes the JSON of it.
    #[arg(long)]
    pub fit: bool,
    /// With --fit: the recorded machine; see `sisdiff replay --help`.
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath, requires = "fit")]
    pub topology: Option<String>,
    /// The trace buffer (ftrace instance) to read. Default: the top one.
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Functions with this name; shell pattern, repeatable.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, help_heading = CALLS)]
    pub function: Vec<globset::Glob>,
    /// Calls by tasks with this name; shell pattern, repeatable.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, help_heading = CALLS)]
    pub comm: Vec<globset::Glob>,
    /// Calls by tasks with this thread id; repeatable.
    #[arg(long, value_name = "PID", value_delimiter = ',', allow_negative_numbers = true, value_parser = parse_pid,
          help_heading = CALLS)]
    pub pid: Vec<i32>,
    /// Calls that returned on these CPUs: a list like 0-3,8.
    #[arg(long, value_name = "CPULIST", value_parser = parse_cpus, help_heading = CALLS)]
    pub cpu: Option<Cpumask>,
    /// Not before this time: seconds as the trace prints them, or +SECONDS after the first record.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = CALLS)]
    pub since: Option<TraceTime>,
    /// Before this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = CALLS)]
    pub until: Option<TraceTime>,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = FuncgraphFormat::Text, help_heading = "Output")]
    pub format: FuncgraphFormat,
    /// Write the report to a file instead of stdout, which is -.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FuncgraphFormat {
    /// For people.
    Text,
    /// For programs: docs/funcgraph.schema.json.
    Json,
    /// One self-contained page with the distribution of each function's durations.
    Html,
}

/// Which figure stands for many calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MiddleArg {
    /// Outliers do not move it.
    Median,
    /// It adds up to the total.
    Mean,
}
