// SPDX-License-Identifier: GPL-2.0-or-later
//! What the flags mean, validated. Nothing is done here, except that kernel trees are built.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobSetBuilder;

use crate::affinity::Rules;
use crate::cli::args::{
    DEFAULT_BASELINE, ExplainArgs, FilterArgs, ReaderArg, RecentMissArg, ReplayArgs, ReplayFormat, SourceArgs,
};
use crate::cli::bounded;
use crate::cli::counters;
use crate::cli::machine;
use crate::cli::output::Trouble;
use crate::cli::replay_export;
use crate::cli::sink;
use crate::cli::trees::{self, TreeArgs};
use crate::cli::values::{FailOn, Shard, TraceTime};
use crate::counters::{Column as Counted, RecentMiss};
use crate::replay::recording::ReaderKind;
use crate::replay::run::Which;
use crate::replay::setup::{SCAN_COST_NS, SideFile};
use crate::replay::{Filter, Options};
use crate::report::shards::Shards;
use crate::report::shell::quoted;
use crate::spec::ModelSpec;
use crate::topology::TopologySource;
use crate::units::Pid;

/// What `sisdiff replay` is to do.
#[derive(Debug)]
pub struct ReplayPlan {
    /// The recordings.
    pub files: Vec<PathBuf>,
    /// How to replay them.
    pub options: Options,
    /// Which decisions count.
    pub filter: FilterPlan,
    /// Format of the report.
    pub format: ReplayFormat,
    /// Where the report goes; `None`: stdout, unless `quiet`.
    pub output: Option<PathBuf>,
    /// Where decisions go; `-`: stdout.
    pub decisions: Option<PathBuf>,
    /// When to exit with 1.
    pub fail_on: Option<FailOn>,
    /// No report on stdout.
    pub quiet: bool,
    /// Recordings at a time; `None`: one per core.
    pub threads: Option<usize>,
    /// How kernel trees are built and run.
    pub trees: TreeArgs,
    /// Which part of the recordings this is; `None`: all of them.
    pub shards: Option<Shards>,
    /// The flags of [`SourceArgs`] that are not at their default, as a shell takes them, each with a space before it.
    again: String,
}

impl ReplayPlan {
    /// The command that explains a decision of `file`, without its number; `None` where that cannot be read again.
    pub fn again(&self, file: &Path) -> Option<String> {
        if file == Path::new("-") || !std::fs::metadata(file).is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let name = file.to_str()?;
        let folder = if name.starts_with('-') { "./" } else { "" };
        Some(format!("sisdiff explain {}{}", quoted(&format!("{folder}{name}")), self.again))
    }
}

/// The flags that are not at their default, each as a shell takes it.
fn told(args: &SourceArgs, trees: &TreeArgs) -> Vec<String> {
    let mut out = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        out.extend(value.map(|value| format!("{name} {}", quoted(&value))));
    };
    flag("--topology", args.topology.clone());
    flag("--baseline", Some(args.baseline.to_string()).filter(|baseline| baseline != DEFAULT_BASELINE));
    args.patched.iter().for_each(|spec| flag("--patched", Some(spec.to_string())));
    flag("--recorded", args.recorded.as_ref().map(ToString::to_string));
    trees.again().into_iter().for_each(|(name, value)| flag(name, value));
    flag("--hz", args.hz.map(|hz| hz.to_string()));
    flag("--scan-cost", Some(args.scan_cost).filter(|&ns| ns != SCAN_COST_NS).map(|ns| ns.to_string()));
    flag("--affinity", args.affinity.as_ref().map(|path| path.display().to_string()));
    flag("--buffer", args.buffer.clone());
    flag("--reader", (args.reader == ReaderArg::Tracecmd).then(|| "tracecmd".to_owned()));
    for (name, is_on) in
        [("--ignore-probes", args.ignore_probes), ("--assume-sync", args.assume_sync), ("--sanitize", trees.sanitize)]
    {
        out.extend(is_on.then(|| name.to_owned()));
    }
    out
}

/// What is written into the report of part `shard` of `all`, so that a part that is missing, or of another run, is
/// noticed where they are added up.
fn shards(shard: Shard, all: &[PathBuf], told: &[String], options: &Options, filters: &[String]) -> Option<Shards> {
    // Specs are said in full, trees by what was built; and all readers tell the same.
    let is_said = |flag: &&String| {
        !["--baseline ", "--patched ", "--recorded ", "--reader "].iter().any(|name| flag.starts_with(name))
    };
    let mut run = vec![format!("--baseline {}", options.baseline.name())];
    run.extend(options.patched.iter().map(|spec| format!("--patched {}", spec.name())));
    run.extend(options.recorded.iter().map(|spec| format!("--recorded {}", spec.name())));
    run.extend(told.iter().filter(is_said).cloned());
    run.extend((options.recent_miss == RecentMiss::Of2021).then(|| "--recent-miss 2021".to_owned()));
    run.extend(filters.iter().map(|filter| format!("--{filter}")));
    let names: Vec<String> = all.iter().map(|file| file.display().to_string()).collect();
    (shard.of > 1).then(|| Shards::new(shard.part, shard.of, &names, run))
}

/// The filter before the recordings' times are known.
#[derive(Debug, Clone)]
pub struct FilterPlan {
    since: Option<TraceTime>,
    until: Option<TraceTime>,
    base: Filter,
    /// The conditions as they were given, for the report.
    pub given: Vec<String>,
}

impl FilterPlan {
    /// The filter of a recording whose first event is at `first_ns`.
    pub fn of(&self, first_ns: u64) -> Filter {
        Filter {
            since_ns: self.since.map(|time| time.resolve(first_ns)),
            until_ns: self.until.map(|time| time.resolve(first_ns)),
            ..self.base.clone()
        }
    }
}

/// What `sisdiff explain` is to do.
#[derive(Debug)]
pub struct ExplainPlan {
    /// The recording.
    pub file: PathBuf,
    /// How to replay it.
    pub options: Options,
    at: Option<TraceTime>,
    pid: Option<Pid>,
    number: u64,
    /// Width of the output; `None`: the terminal's.
    pub width: Option<u16>,
    /// How kernel trees are built and run.
    pub trees: TreeArgs,
}

impl ExplainPlan {
    /// The decision that is meant in a recording whose first event is at `first_ns`.
    pub fn which(&self, first_ns: u64) -> Which {
        match self.at {
            Some(time) => Which::Nearest { ts_ns: time.resolve(first_ns), pid: self.pid },
            None => Which::Number(self.number),
        }
    }
}

impl ReplayPlan {
    /// Validates the flags of `replay`.
    ///
    /// # Errors
    /// [`Trouble::Usage`].
    pub fn new(mut args: ReplayArgs) -> Result<Self, Trouble> {
        let all = args.files.clone();
        if let Some(shard) = args.output.shard {
            args.files = shard.pick(args.files);
        }
        replay_export::check(&args)?;
        let decisions = args.output.decisions;
        if decisions.as_deref().is_some_and(sink::is_stdout) && args.output.output.is_none() && !args.output.quiet {
            return Err(Trouble::Usage(
                "--decisions -: stdout would hold both decisions and report; add -o FILE for the report, or --quiet"
                    .to_owned(),
            ));
        }
        let told = told(&args.source, &args.trees);
        let mut options = options(args.source, &args.trees, &args.files)?;
        options.recent_miss = match args.recent_miss {
            RecentMissArg::Of2020 => RecentMiss::Of2020,
            RecentMissArg::Of2021 => RecentMiss::Of2021,
        };
        options.schedstat = schedstat(&args.schedstat, &args.files)?;
        let stdout = Path::new("-");
        let report = args.output.output.as_deref().or((!args.output.quiet).then_some(stdout));
        let coverage = args.trees.coverage.as_deref();
        let outputs = [("--decisions", decisions.as_deref()), ("--output", report), ("--coverage", coverage)];
        let outputs: Vec<(&str, &Path)> = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect();
        let mut inputs = inputs(&args.files, &options);
        inputs.extend(args.schedstat.iter().map(|file| ("the schedstat", file.clone())));
        sink::check(&outputs, &inputs)?;
        let filter = filter(args.filter)?;
        Ok(Self {
            shards: args.output.shard.and_then(|shard| shards(shard, &all, &told, &options, &filter.given)),
            files: args.files,
            options,
            filter,
            format: args.output.format,
            output: args.output.output,
            decisions,
            fail_on: args.output.fail_on,
            quiet: args.output.quiet,
            threads: args.output.threads.map(usize::from),
            trees: args.trees,
            again: told.iter().map(|flag| format!(" {flag}")).collect(),
        })
    }
}

impl ExplainPlan {
    /// Validates the flags of `explain`.
    ///
    /// # Errors
    /// [`Trouble::Usage`].
    pub fn new(args: ExplainArgs) -> Result<Self, Trouble> {
        let options = options(args.source, &args.trees, std::slice::from_ref(&args.file))?;
        Ok(Self {
            file: args.file,
            options,
            at: args.at,
            pid: args.pid.map(Pid),
            number: args.wakeup.unwrap_or(1),
            width: args.width,
            trees: args.trees,
        })
    }
}

fn options(args: SourceArgs, trees: &TreeArgs, files: &[PathBuf]) -> Result<Options, Trouble> {
    let patched = if args.patched.is_empty() { vec![DEFAULT_PATCHED.parse().map_err(usage)?] } else { args.patched };
    for (at, spec) in patched.iter().enumerate() {
        if *spec == args.baseline || patched[..at].contains(spec) {
            return Err(Trouble::Usage(format!("--patched {spec}: is there already; every implementation once")));
        }
    }
    let entrant = |spec| trees::entrant(spec, trees);
    let baseline = entrant(args.baseline)?;
    let patched = patched.into_iter().map(entrant).collect::<Result<Vec<_>, _>>()?;
    let recorded = args.recorded.map(entrant).transpose()?;
    Ok(Options {
        topology: machine::given(args.topology.as_deref(), files)?,
        baseline,
        patched,
        recorded,
        ignore_probes: args.ignore_probes,
        assume_sync: args.assume_sync,
        hz: args.hz,
        scan_cost_ns: args.scan_cost,
        affinity: args.affinity.as_deref().map(side_file).transpose()?,
        recent_miss: RecentMiss::default(),
        schedstat: None,
        buffer: args.buffer,
        reader: reader_kind(args.reader),
    })
}

/// Options of a replay for the model of the recorded kernel alone.
///
/// # Errors
/// None in practice: the default baseline is a model.
pub fn measuring(topology: Option<TopologySource>, buffer: Option<String>) -> Result<Options, Trouble> {
    let baseline = DEFAULT_BASELINE.parse::<ModelSpec>().map_err(usage)?.into();
    Ok(Options { topology, buffer, ..Options::new(baseline, Vec::new()) })
}

/// The reader that is meant.
pub fn reader_kind(reader: ReaderArg) -> ReaderKind {
    match reader {
        ReaderArg::Native => ReaderKind::Native,
        ReaderArg::Tracecmd => ReaderKind::TraceCmd,
    }
}

/// What the machine of the one recording counted.
fn schedstat(given: &[PathBuf], files: &[PathBuf]) -> Result<Option<Counted>, Trouble> {
    if given.is_empty() {
        return Ok(None);
    }
    if files.len() > 1 {
        return Err(Trouble::Usage("--schedstat: is of one machine; replay one recording with it".to_owned()));
    }
    match counters::load(given, false)?.as_slice() {
        [one] => Ok(Some(one.clone())),
        columns => Err(Trouble::Usage(format!("--schedstat: {} columns of counters; expected one", columns.len()))),
    }
}

/// Reads a side file: a mistake in it is told before any recording is read.
fn side_file(path: &Path) -> Result<SideFile, Trouble> {
    let name = path.display().to_string();
    let wrong = |why: String| Trouble::Usage(format!("--affinity {name}: {why}"));
    let text =
        bounded::read_text(path, bounded::SETTINGS).map_err(|error| wrong(format!("cannot be read ({error})")))?;
    let rules = Rules::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(SideFile { rules: Arc::new(rules), name })
}

/// The files that a replay reads.
fn inputs(files: &[PathBuf], options: &Options) -> Vec<(&'static str, PathBuf)> {
    let mut inputs: Vec<_> = files.iter().map(|file| ("the recording", file.clone())).collect();
    let topologies: Vec<_> = match &options.topology {
        Some(given) => vec![given.clone()],
        None => files.iter().filter_map(|file| TopologySource::beside(file)).collect(),
    };
    inputs.extend(options.affinity.iter().map(|side| ("the affinity file", PathBuf::from(&side.name))));
    inputs.extend(topologies.into_iter().filter_map(|source| match source {
        TopologySource::Path(path) => Some(("the topology", path)),
        _ => None,
    }));
    inputs
}

/// What is compared with the baseline where nobody says.
pub const DEFAULT_PATCHED: &str = "v5.11+mel-v2";

fn usage(error: impl std::fmt::Display) -> Trouble {
    Trouble::Usage(error.to_string())
}

fn filter(args: FilterArgs) -> Result<FilterPlan, Trouble> {
    let is_past = match (args.since, args.until) {
        (Some(TraceTime::Absolute(since)), Some(TraceTime::Absolute(until)))
        | (Some(TraceTime::AfterStart(since)), Some(TraceTime::AfterStart(until))) => since > until,
        _ => false,
    };
    if let (Some(since), Some(until), true) = (args.since, args.until, is_past) {
        return Err(Trouble::Usage(format!("--since {since} is later than --until {until}: nothing lies between")));
    }
    let mut given = Vec::new();
    let mut note = |flag: &str, value: Option<String>| given.extend(value.map(|value| format!("{flag} {value}")));
    note("since", args.since.map(|time| time.to_string()));
    note("until", args.until.map(|time| time.to_string()));
    args.comm.iter().for_each(|glob| note("comm", Some(glob.glob().to_owned())));
    args.pid.iter().for_each(|pid| note("pid", Some(pid.to_string())));
    note("cpu", args.cpu.map(|cpus| cpus.to_string()));
    let mut comms = GlobSetBuilder::new();
    args.comm.iter().for_each(|glob| {
        comms.add(glob.clone());
    });
    let comms = if args.comm.is_empty() { None } else { Some(comms.build().map_err(usage)?) };
    let base = Filter { comms, pids: args.pid.into_iter().map(Pid).collect(), cpus: args.cpu, ..Filter::default() };
    Ok(FilterPlan { since: args.since, until: args.until, base, given })
}
