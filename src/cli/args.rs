// SPDX-License-Identifier: GPL-2.0-or-later
//! Flags and subcommands: the one table that help, completions and the man page come from.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::cli::fidelity::{self, FidelityArgs};
use crate::cli::funcgraph_args::{FUNCGRAPH_EXAMPLES, FuncgraphArgs};
use crate::cli::fuzz_args::{BUGS_EXAMPLES, FUZZ_EXAMPLES, FuzzArgs, REPRO_EXAMPLES, ReproArgs};
use crate::cli::gate_args::{GATE_EXAMPLES, GateCommand};
use crate::cli::merge::{MERGE_EXAMPLES, MergeArgs};
use crate::cli::record::{self, RecordArgs};
use crate::cli::simulate::{self, SimulateArgs};
use crate::cli::trees::{TREE_EXAMPLES, TreeArgs, TreeCommand};
use crate::cli::values::{
    FailOn, Shard, TraceTime, parse_cpus, parse_glob, parse_hz, parse_pid, parse_scan_cost, parse_shard, parse_spec,
};
use crate::cpumask::Cpumask;
use crate::replay::setup::SCAN_COST_NS;
use crate::spec::Spec;

/// Differential tester for the Linux scheduler's wakeup path.
///
/// Replays a recorded trace through two implementations of select_task_rq_fair(), says which placements differ and why,
/// and how well the model of the recorded kernel agrees with what that kernel really chose.
#[derive(Debug, Parser)]
#[command(name = "sisdiff", version, propagate_version = true, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done (also with differences), 1 --fail-on said so or fuzzing found something, 2 trouble.\n\
    Start with: sisdiff replay trace.dat"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replay recordings through implementations and compare their decisions.
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Box<ReplayArgs>),
    /// Add up JSON reports of replays, such as those of shards.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Show one wakeup: the machine, each walk step by step, side by side.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Box<ExplainArgs>),
    /// Say what a recording is, what is in it, what a good replay lacks, and how to record that.
    #[command(after_help = INFO_EXAMPLES)]
    Info(Box<InfoArgs>),
    /// Cut a recording to a time, some CPUs or the scheduler's events; without names, if asked.
    #[command(after_help = CUT_EXAMPLES)]
    Cut(Box<CutArgs>),
    /// Say what functions cost by the function_graph tracer, and compare recordings of it.
    #[command(after_help = FUNCGRAPH_EXAMPLES)]
    Funcgraph(Box<FuncgraphArgs>),
    /// Record a good trace of this machine, with trace-cmd, as root.
    #[command(after_help = record::EXAMPLES)]
    Record(Box<RecordArgs>),
    /// Measure how often the model of the recorded kernel chose as that kernel did, and why not where it did not.
    #[command(after_help = fidelity::EXAMPLES)]
    Fidelity(Box<FidelityArgs>),
    /// Hold recordings to what their replay gave before: a gate for CI.
    #[command(subcommand, after_help = GATE_EXAMPLES)]
    Gate(GateCommand),
    /// Show what is understood of a machine: SMT, LLCs, nodes, sched domains.
    #[command(after_help = TOPOLOGY_EXAMPLES)]
    Topology(TopologyArgs),
    /// Compute mmtests' rows from raw scheduler counters.
    #[command(after_help = COUNTERS_EXAMPLES)]
    Counters(CountersArgs),
    /// List the implementations, their patches, features and inputs.
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Invent machines and wakeups, and put every oracle to every decision.
    #[command(after_help = FUZZ_EXAMPLES)]
    Fuzz(Box<FuzzArgs>),
    /// Simulate a machine on which an implementation's own choices decide what follows.
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Play one case again: what it shows, its smallest form, its walks.
    #[command(after_help = REPRO_EXAMPLES)]
    Repro(Box<ReproArgs>),
    /// List the known bugs of the wakeup path, and who sees them.
    #[command(after_help = BUGS_EXAMPLES)]
    Bugs,
    /// Build and check kernel trees: the wakeup path of your own C as an implementation.
    #[command(subcommand, after_help = TREE_EXAMPLES)]
    Tree(TreeCommand),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages: sisdiff(1), and one for each command.
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The folder that they go to, made if it is missing; -: print sisdiff(1) alone.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
}

const REPLAY_EXAMPLES: &str = "Examples:
  sisdiff replay trace.dat
      v5.11 against v5.11+mel-v2, and the model of the recorded kernel against what it chose
  sisdiff replay trace.dat --baseline v6.1 --patched v6.1:NO_SIS_UTIL --topology topology.tar.gz
  sisdiff replay trace.dat --affinity soft.toml --baseline v5.2 --patched v5.2+soft-affinity
  sisdiff replay day1.dat day2.dat --comm 'nginx*' --since +10 --format html -o report.html
  sisdiff replay trace.dat --fail-on wrong --quiet
      for scripts: exit 1 if a patched implementation leaves the affinity mask
  sisdiff replay trace.dat --decisions - --quiet | jq 'select(.verdicts[].verdict==\"diverge\")'";

const EXPLAIN_EXAMPLES: &str = "Examples:
  sisdiff explain trace.dat --wakeup 123
      numbers as `replay` prints them
  sisdiff explain trace.dat --at 7.421337 --pid 241
  sisdiff explain trace.dat --wakeup 123 --baseline v6.1 --patched v6.12";

const INFO_EXAMPLES: &str = "Examples:
  sisdiff info trace.dat
  sisdiff info */trace.dat --format json -o info.json     docs/info.schema.json
  ssh HOST cat trace.dat.zst | sisdiff info -
  sisdiff info trace.dat --buffer INSTANCE                 an ftrace instance instead of the top buffer

Exit codes: 0, also for recordings that cannot be replayed; 2 if a file is no recording or damaged beyond reading
(the others are told all the same).";

const CUT_EXAMPLES: &str = "Examples:
  sisdiff cut trace.dat --since +2 --until +3 -o case.dat
  mkdir case; sisdiff cut trace.dat --sched-only --anonymize --with-topology -o case/trace.dat
      a case to mail: replays as the original does, and names nobody
  sisdiff cut trace.dat --cpus 0-3 -o - | zstd > part.dat.zst

--anonymize replaces task names and thread ids, the same one by the same one everywhere, also in the saved command
lines; replaces paths and the host's name; leaves out symbols, memory maps, the session's number, kernel addresses,
and all events whose fields sisdiff does not know. It keeps the names of kernel threads that every machine has
(swapper/3, migration/3, kworker/3:1), thread ids 0 to 2, the kernel's release, times, and CPU numbers.

A replay of a part differs at its start: who runs, what tasks weigh and what the wakeup path remembers is not known
before each CPU's first events. Cut some seconds earlier, and give the replay --since.";

const TOPOLOGY_EXAMPLES: &str = "Examples:
  sisdiff topology                   this machine
  sisdiff topology topology.tar.gz   a snapshot of /sys, as the recording script makes it
  sisdiff topology 2x20x2            2 packages of 20 cores of 2 threads
  lscpu -J -e | sisdiff topology -   what lscpu tells; also of lscpu -p, -e, -J
  lstopo --of xml | sisdiff topology -";

const COUNTERS_EXAMPLES: &str = "Examples:
  sisdiff counters schedstat-before.txt schedstat-after.txt
      readings of /proc/schedstat in pairs; four files are a baseline and a patched kernel
  sisdiff counters base/state.tar.gz patched/state.tar.gz
      archives or folders with both readings, as the recording script makes them
  sisdiff counters mmtests.txt        rows like 'Ops SIS Search 5653107942.00 5726545742.00'
  sisdiff counters report.json        a report of replay --format json, or {\"sis_search\": 5653107942, ...}";

const LIST_EXAMPLES: &str = "Examples:
  sisdiff list
  sisdiff list v5.11                 patches, features and inputs of one release
  sisdiff list --kernel 6.1.0-57-amd64   which model a recorded kernel gets";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  sisdiff completions bash > /etc/bash_completion.d/sisdiff
  sisdiff completions fish > ~/.config/fish/completions/sisdiff.fish";

const MAN_EXAMPLES: &str = "Examples:
  sisdiff man ~/.local/share/man/man1 && man sisdiff-replay
  sisdiff man - | man -l -";

/// The baseline where nobody says.
pub const DEFAULT_BASELINE: &str = "v5.11";

/// How a recording is read and replayed; the same for `replay` and `explain`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Replay")]
pub struct SourceArgs {
    /// The recorded machine: a folder or archive of its /sys, what lscpu prints, hwloc's XML, or PACKAGESxCORESxTHREADS.
    ///
    /// A dash is standard input. See `sisdiff topology`. Default: a topology.tar.gz (.xml, .json, .txt) beside the recording,
    /// else what the recording stores, else a stated guess.
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub topology: Option<String>,
    /// The implementation that the others are compared with; see `sisdiff list`.
    #[arg(long, value_name = "SPEC", default_value = DEFAULT_BASELINE, value_parser = parse_spec)]
    pub baseline: Spec,
    /// An implementation to compare; repeat for several. Default: v5.11+mel-v2.
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, value_parser = parse_spec)]
    pub patched: Vec<Spec>,
    /// What stands for the recorded kernel, such as a tree of its source. Default: its model.
    #[arg(long, hide_short_help = true, value_name = "SPEC", value_parser = parse_spec)]
    pub recorded: Option<Spec>,
    /// Treat the recording as if it had no kprobe events.
    #[arg(long)]
    pub ignore_probes: bool,
    /// Take wakeups for sync wakeups where no probe tells.
    #[arg(long)]
    pub assume_sync: bool,
    /// Jiffies per second of the recorded kernel (CONFIG_HZ). Default: what a snapshot tells, else 250.
    #[arg(long, value_name = "HZ", value_parser = parse_hz)]
    pub hz: Option<u32>,
    /// Declared cost of one idle check of a scan, ns, or the JSON of `funcgraph --fit`: kernels with SIS_PROP measured
    /// their scans, which a trace of events does not tell.
    #[arg(long, value_name = "NS|FILE", default_value_t = SCAN_COST_NS, value_parser = parse_scan_cost)]
    pub scan_cost: u64,
    /// A TOML file that states hard and soft affinity of tasks; see the README.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub affinity: Option<PathBuf>,
    /// The trace buffer (ftrace instance) to read. Default: the top one.
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Who reads a trace.dat: sisdiff itself, or trace-cmd's C library (of a trace.dat that is too new, for a second
    /// opinion).
    #[arg(long, value_enum, default_value_t = ReaderArg::Native)]
    pub reader: ReaderArg,
}

/// `sisdiff replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Recordings: trace.dat, or text of trace-cmd report, tracefs, perf script or atrace, packed with gzip or zstd or not;
    /// - is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// How to read and replay.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How to build and run kernel trees.
    #[command(flatten)]
    pub trees: TreeArgs,
    /// Which decisions count.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What to write.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Show the machine's own /proc/schedstat beside the rows: before and after, or an archive.
    ///
    /// Which counters it has is told by its number of fields. It counts from before the recording to after it.
    #[arg(long, value_name = "FILE", num_args = 1..=2, help_heading = "Output", value_hint = ValueHint::AnyPath)]
    pub schedstat: Vec<PathBuf>,
    /// Whose recent_used_cpu misses are counted: of the patches of 2020 or 2021.
    #[arg(long, value_enum, default_value_t = RecentMissArg::Of2020, help_heading = "Output", value_name = "YEAR",
          hide_possible_values = true)]
    pub recent_miss: RecentMissArg,
}

/// Definitions of a recent_used_cpu that missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecentMissArg {
    /// It shares cache with the target, but was not usable.
    #[value(name = "2020")]
    Of2020,
    /// Also where it does not share cache.
    #[value(name = "2021")]
    Of2021,
}

/// Which decisions are counted; everything is replayed all the same.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters (everything is replayed; the rest is not counted)")]
pub struct FilterArgs {
    /// Not before this time: seconds as the trace prints them, or +SECONDS after its first event.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub since: Option<TraceTime>,
    /// Before this time.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub until: Option<TraceTime>,
    /// Wakees with this name; shell pattern, repeatable.
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    pub comm: Vec<globset::Glob>,
    /// Wakees with this thread id; repeatable.
    #[arg(long, value_name = "PID", value_delimiter = ',', allow_negative_numbers = true, value_parser = parse_pid)]
    pub pid: Vec<i32>,
    /// Wakings that ran on these CPUs: a list like 0-3,8.
    #[arg(long, value_name = "CPULIST", value_parser = parse_cpus)]
    pub cpu: Option<Cpumask>,
}

/// What is written where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = ReplayFormat::Text)]
    pub format: ReplayFormat,
    /// Write the report to a file instead of stdout, which is -.
    ///
    /// An old file stays as it is if the replay fails. Of --format parquet and several recordings a folder.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write one JSON line for each decision; - is stdout (then give -o or --quiet, too).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub decisions: Option<PathBuf>,
    /// Exit with 1 on any difference, on a wrong decision of a patched implementation, or on more than N% differences.
    #[arg(long, value_name = "any|wrong|N%")]
    pub fail_on: Option<FailOn>,
    /// Replay only part K of N of the recordings, sorted by name; `sisdiff merge` adds up the JSON reports of all parts.
    #[arg(long, hide_short_help = true, value_name = "K/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
    /// No report on stdout and no progress bar: exit code, --decisions, -o and errors only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Recordings replayed at the same time; the output is the same at any number. Default: one per core.
    ///
    /// With more threads than recordings each is read ahead by a second thread: less time, more processor time. By itself
    /// that is done where cores are left over with two for each recording.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// Readers of a trace.dat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReaderArg {
    /// sisdiff's own.
    Native,
    /// libtracecmd and libtraceevent, loaded at run time.
    Tracecmd,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; docs/ has the schema of each command's report.
    Json,
}

/// Formats of the report of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// For people.
    Text,
    /// For programs: docs/replay.schema.json.
    Json,
    /// One self-contained page with pictures: docs/html-report.md.
    Html,
    /// A trace for ui.perfetto.dev: what ran, and each implementation's placements (one recording).
    Perfetto,
    /// A row for each decision and implementation: docs/queries.md; of several recordings into a folder.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Formats of the report of simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SimulateFormat {
    /// For people.
    Text,
    /// For programs: docs/simulate.schema.json.
    Json,
    /// One self-contained page with pictures over the load and over time.
    Html,
    /// A trace for ui.perfetto.dev: the schedule of each implementation (one load, one seed).
    Perfetto,
}

/// `sisdiff explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The recording; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Number of the decision, as reports print it.
    #[arg(long, value_name = "N", required_unless_present = "at", conflicts_with = "at")]
    pub wakeup: Option<u64>,
    /// Time of the waking: seconds as the trace prints them, or +SECONDS after its first event; the nearest decision.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub at: Option<TraceTime>,
    /// With --at: the wakee's thread id.
    #[arg(long, value_name = "PID", requires = "at", conflicts_with = "wakeup", allow_negative_numbers = true,
          value_parser = parse_pid)]
    pub pid: Option<i32>,
    /// Width of the output, 60 to 400. Default: the terminal's, else 100; below 100 walks are stacked.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400))]
    pub width: Option<u16>,
    /// How to read and replay.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How to build and run kernel trees.
    #[command(flatten)]
    pub trees: TreeArgs,
}

/// `sisdiff info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Recordings: trace.dat, or text of trace-cmd report, tracefs, perf script or atrace, packed with gzip or zstd or
    /// not; - is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = InfoFormat::Text)]
    pub format: InfoFormat,
    /// Write the report to a file instead of stdout, which is -.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// The recorded machine, instead of what lies beside the recording; see `sisdiff replay --help`.
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub topology: Option<String>,
    /// The trace buffer (ftrace instance) to say most of. Default: the top one.
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Who reads a trace.dat: sisdiff itself, or trace-cmd's C library.
    #[arg(long, value_enum, default_value_t = ReaderArg::Native)]
    pub reader: ReaderArg,
    /// No progress bar.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `sisdiff cut`.
#[derive(Debug, Args)]
pub struct CutArgs {
    /// The recording: trace.dat, or text of a trace, which becomes a trace.dat; - is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The new trace.dat; - is standard output. A file that is there already is replaced with --force only.
    #[arg(short, long, required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Replace files that are there already.
    #[arg(short, long)]
    pub force: bool,
    /// Not before this time: seconds as the trace prints them, or +SECONDS after its first event.
    #[arg(long, visible_alias = "from", value_name = "TIME", allow_negative_numbers = true)]
    pub since: Option<TraceTime>,
    /// Before this time.
    #[arg(long, visible_alias = "to", value_name = "TIME", allow_negative_numbers = true)]
    pub until: Option<TraceTime>,
    /// Only events of these CPUs: a list like 0-3,8. A replay knows nothing of the others then.
    #[arg(long, visible_alias = "cpu", value_name = "CPULIST", value_parser = parse_cpus)]
    pub cpus: Option<Cpumask>,
    /// Only this trace buffer (ftrace instance), as the top one of the new file. Default: all of them.
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Only events that a replay reads: the scheduler's, the sis_* probes, cpu_idle and cpuhp_enter; no symbols.
    #[arg(long)]
    pub sched_only: bool,
    /// Without the sis_* probes, which are kept otherwise.
    #[arg(long)]
    pub no_probes: bool,
    /// Replace names and thread ids, and leave out what tells who the machine is; see below.
    #[arg(long, visible_alias = "anonymise")]
    pub anonymize: bool,
    /// Put the machine's description, topology.tar.gz, beside the new file, too; with --anonymize without names.
    #[arg(long)]
    pub with_topology: bool,
    /// No report, no hints and no progress bar.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Formats of `info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InfoFormat {
    /// For people.
    Text,
    /// For programs: docs/info.schema.json.
    Json,
}

/// `sisdiff topology`.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    /// A folder or archive of /sys, what lscpu prints (-p, -e, -J), hwloc's XML, or PACKAGESxCORESxTHREADS.
    ///
    /// Files are told apart by content and may be packed with gzip, bzip2, xz or zstd; a dash is standard input.
    /// Default: this machine.
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub source: Option<String>,
    /// The kernel release whose sched domains to build. Default: the snapshot's, else the newest modelled.
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
}

/// `sisdiff counters`.
#[derive(Debug, Args)]
pub struct CountersArgs {
    /// Raw counters: /proc/schedstat, mmtests' rows, JSON, an archive or folder with two readings; - is standard input.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Make a column of each reading of /proc/schedstat, counted since boot, instead of pairs.
    #[arg(long)]
    pub each: bool,
    /// Format of the table.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// `sisdiff list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only this release, with its patches, features and inputs.
    #[arg(value_name = "RELEASE")]
    pub release: Option<String>,
    /// Say which model a recorded kernel gets, by its `uname -r`.
    #[arg(long, value_name = "UNAME", conflicts_with = "release")]
    pub kernel: Option<String>,
    /// What changed in the wakeup path between two releases, step by step.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["release", "kernel"])]
    pub changes: Option<Vec<String>>,
}
