// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff simulate`: flags → loads, machine and implementations; the simulations; the report.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use crate::affinity::Rules;
use crate::cli::args::{DEFAULT_BASELINE, SimulateFormat};
use crate::cli::bounded;
use crate::cli::output::{Trouble, print};
use crate::cli::sink::{Sink, is_stdout};
use crate::cli::trees::{self, TreeArgs};
use crate::cli::values::{parse_hz, parse_spec};
use crate::counters::RecentMiss;
use crate::export::perfetto::simulated::Simulated;
use crate::replay::recording::{ReaderKind, Source};
use crate::report::html;
use crate::report::reality::markdown as reality_markdown;
use crate::report::reproduction::markdown;
use crate::report::simulate::{Head, reality, text};
use crate::report::simulate_json::json;
use crate::simulate::extract::{Extracted, Extractor};
use crate::simulate::models::{self, MODELS, Model};
use crate::simulate::reality::Reality;
use crate::simulate::trial::{Point, Row, Trial, play, watched};
use crate::simulate::{Cost, Setup, Workload, cost, rtapp, suite};
use crate::spec::{ModelSpec, Spec, model_of};
use crate::topology::{self, TopologySource};

/// Examples of `sisdiff simulate`.
pub const EXAMPLES: &str = "Examples:
  sisdiff simulate tbench clients=1,8,64,320 --topology 2x20x2 --patched v5.11+recent-used
      the table of a mail: loads as rows, implementations as columns
  sisdiff simulate hackbench groups=4,16 instances=2 --baseline v5.2 --patched v5.2+soft-affinity --affinity soft.toml
  sisdiff simulate tbench clients=64 --sweep probe_llc_ns=10,25,100
      whether a result hangs on a cost that somebody guessed
  sisdiff simulate tbench clients=1,2,4,8,16,32,64,128 --format html -o tbench.html
      the same as a page, with pictures over the load and over time
  sisdiff simulate tbench clients=64 --time 20ms --format perfetto -o tbench.pftrace
      what ran where, side by side, for ui.perfetto.dev
  sisdiff simulate app.json                      rt-app's grammar, a subset
  sisdiff simulate trace.dat                     what its tasks do, closed loop, beside what the recorded kernel did
  sisdiff simulate --suite mails -o reproduction.md
  sisdiff simulate --suite reality traces/*/trace.dat -o reality.md
  sisdiff simulate --print-cost > cost.toml      every cost with its source; edit, then --cost cost.toml
  sisdiff simulate --list                        the workloads and their parameters";

/// The machine of the mails.
const DEFAULT_MACHINE: &str = "2x20x2";
/// Points of a table at most.
const POINTS_MAX: usize = 1000;
/// What is simulated and counted where nobody says, and what before that, ns.
const TIME_NS: u64 = 500_000_000;
const WARMUP_NS: u64 = 100_000_000;

/// `sisdiff simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The workload: a built-in one (see --list), a file in rt-app's JSON, or recordings.
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["list", "print_cost", "suite"])]
    pub workload: Option<String>,
    /// Its parameters, of which several values make a row each; or more recordings.
    #[arg(value_name = "KEY=VALUE[,VALUE...]")]
    pub params: Vec<String>,
    /// The machine, as for `replay`. Default: what lies beside a recording, else 2x20x2.
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub topology: Option<String>,
    /// The implementation that the others are compared with; see `sisdiff list`.
    #[arg(long, value_name = "SPEC", default_value = DEFAULT_BASELINE, value_parser = parse_spec)]
    pub baseline: Spec,
    /// An implementation to compare; repeat for several. Default: v5.11+mel-v2.
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, value_parser = parse_spec)]
    pub patched: Vec<Spec>,
    /// Which kernel's rules go around the wakeup path: domains, wake lists, new-idle balancing. Default: the recorded
    /// kernel's, else the baseline's.
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// A TOML file of costs, or of some of them.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cost: Option<PathBuf>,
    /// Sets one cost; repeat for several.
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub set: Vec<String>,
    /// Tries several values of a cost, each as a row; repeat for a grid: every combination, 1000 rows at most.
    #[arg(long, value_name = "KEY=A,B,C", action = ArgAction::Append)]
    pub sweep: Vec<String>,
    /// A TOML file that states hard and soft affinity of tasks, as for `replay`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub affinity: Option<PathBuf>,
    /// The soft-affinity RFC's sched_allowed:sched_preferred.
    #[arg(long, value_name = "ALLOWED:PREFERRED", default_value = "100:1")]
    pub softness: String,
    /// How many seeds. Default: 3, of a recording 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub repeat: Option<u64>,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Simulated and counted. Default: 500ms, of a recording all of it.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Simulated before that. Default: 100ms, of a recording nothing.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub warmup: Option<u64>,
    /// Jiffies per second. Default: what the machine's description says, else 250.
    #[arg(long, value_name = "HZ", value_parser = parse_hz)]
    pub hz: Option<u32>,
    /// Threads at most. Default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// How the report is written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = SimulateFormat::Text)]
    pub format: SimulateFormat,
    /// Where the report goes. Default: stdout.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Print the costs with their sources, in the form that --cost takes.
    #[arg(long)]
    pub print_cost: bool,
    /// Simulate what the mails measured, or recordings, and write each claim or figure beside ours, as Markdown.
    #[arg(long, value_enum, value_name = "SUITE")]
    pub suite: Option<SuiteArg>,
    /// List the built-in workloads.
    #[arg(long)]
    pub list: bool,
    /// How kernel trees are built.
    #[command(flatten)]
    pub trees: TreeArgs,
}

/// Suites of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SuiteArg {
    /// Of the v2 series of December 2020 and of the soft-affinity RFC.
    Mails,
    /// Recordings: what the recorded kernel made of them beside what its model does, over 10 seeds.
    Reality,
}

/// How long each simulation of a suite measures, unless less is asked for.
const SUITE_NS: u64 = 20_000_000;

fn parse_time(text: &str) -> Result<u64, String> {
    models::parse_time(text)
        .filter(|ns| (1_000..=3_600_000_000_000).contains(ns))
        .ok_or_else(|| "expected a time from 1us to 3600s, such as 500ms".to_owned())
}

/// Simulates and reports.
///
/// # Errors
/// Whatever on the command line makes no sense, and what keeps a simulation from running.
pub fn simulate(args: SimulateArgs) -> Result<ExitCode, Trouble> {
    if args.print_cost {
        print(cost::DEFAULTS)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.list {
        print(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.format == SimulateFormat::Perfetto {
        return perfetto(&args);
    }
    let output = args.output.as_deref().map(Sink::open).transpose()?;
    if args.suite == Some(SuiteArg::Reality) {
        let rows = realities(&args)?;
        deliver(&reality_markdown(&rows, "sisdiff simulate --suite reality RECORDINGS -o docs/reality.md"), output)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.suite.is_some() {
        if args.workload.is_some() {
            return Err(usage("--suite mails has workloads of its own; leave the workload away"));
        }
        let (repeat, time) = (args.repeat.unwrap_or(2), args.time.map_or(SUITE_NS, |time| time.min(SUITE_NS)));
        let results = in_pool(args.threads, || suite::mails(repeat, time))?.map_err(usage)?;
        deliver(&markdown(&results, "sisdiff simulate --suite mails -o docs/reproduction.md"), output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (head, rows) = match inputs(&args)? {
        Input::Model(model) => {
            let points = points(&args, model, &costs(&args, Cost::new())?)?;
            one(&args, points, None)?
        }
        Input::Written(workload) => {
            let points = written(&workload, costs(&args, Cost::new())?);
            one(&args, points, None)?
        }
        Input::Recordings(files) => recordings(&args, &files)?,
    };
    let report = match args.format {
        SimulateFormat::Text if rows.iter().filter(|row| row.recorded.is_some()).count() > 1 => reality(&rows),
        SimulateFormat::Text => text(&head, &rows),
        SimulateFormat::Json => json(&head, &rows).map_err(|error| Trouble::Usage(error.to_string()))?,
        SimulateFormat::Html => html::simulate::report(&head, &rows),
        SimulateFormat::Perfetto => String::new(),
    };
    deliver(&report, output)?;
    Ok(ExitCode::SUCCESS)
}

/// The schedule of one load and one seed under each implementation.
fn perfetto(args: &SimulateArgs) -> Result<ExitCode, Trouble> {
    if args.suite.is_some() {
        return Err(usage("--format perfetto shows one load; a suite has many"));
    }
    let Some(path) = &args.output else {
        return Err(usage("--format perfetto is binary: give -o NAME.pftrace, or -o - for stdout"));
    };
    let costs = |recorded: bool| costs(args, if recorded { Cost::free() } else { Cost::new() });
    let (points, recorded) = match inputs(args)? {
        Input::Model(model) => (points(args, model, &costs(false)?)?, None),
        Input::Written(workload) => (written(&workload, costs(false)?), None),
        Input::Recordings(files) => match files.as_slice() {
            [file] => recording(args, file).map(|(points, recorded)| (points, Some(recorded)))?,
            _ => return Err(usage("--format perfetto shows one recording; give one")),
        },
    };
    let [point] = points.as_slice() else {
        return Err(usage(format!("--format perfetto shows one load; these are {}", points.len())));
    };
    let point = point.clone();
    let (trial, head) = plan(args, points, recorded)?;
    let sink = Sink::open(path)?;
    let name = sink.name();
    let cpus = trial.setup.topology.nr_cpu_ids();
    let mut out = Simulated::new(std::io::BufWriter::new(sink), &name, &head.names, cpus);
    let end_ns = trial.setup.warmup_ns + trial.setup.measure_ns;
    for at in 0..trial.entrants.len() {
        out.next(at, end_ns);
        watched(&trial, &point, at, &mut out).map_err(usage)?;
    }
    let out = out.finish(end_ns).map_err(Trouble::Replay)?;
    out.into_inner().map_err(|error| Trouble::write(&name, error.error()))?.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn written(workload: &Workload, costs: Vec<(String, Cost)>) -> Vec<Point> {
    let point = |(label, cost): (String, Cost)| Point { label, workload: workload.clone(), cost, recorded: None };
    costs.into_iter().map(point).collect()
}

/// What is simulated.
enum Input {
    Model(&'static Model),
    Written(Workload),
    Recordings(Vec<PathBuf>),
}

fn inputs(args: &SimulateArgs) -> Result<Input, Trouble> {
    let name = args.workload.as_deref().unwrap_or_default();
    let path = Path::new(name);
    if !path.is_file() {
        return Model::named(name)
            .map(Input::Model)
            .map_err(|error| usage(format!("{error}; or a file: a recording, or rt-app's JSON")));
    }
    let read = |error: std::io::Error| Trouble::Read { what: name.to_owned(), reason: error.to_string() };
    let mut start = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start)).map_err(read)?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'{')) || start.starts_with(b"/*") {
        let text = bounded::read_text(path, bounded::SETTINGS).map_err(read)?;
        let title = path.file_name().map_or(name.into(), |name| name.to_string_lossy());
        return rtapp::parse(&title, &text).map(Input::Written).map_err(|error| usage(format!("{name}: {error}")));
    }
    let more = args.params.iter().map(|param| match Path::new(param).is_file() {
        true => Ok(PathBuf::from(param)),
        false => Err(usage(format!("{param:?}: a recording has no parameters; expected another recording"))),
    });
    let mut files = vec![path.to_owned()];
    files.extend(more.collect::<Result<Vec<_>, _>>()?);
    Ok(Input::Recordings(files))
}

/// Each recording on its own machine, with the model of its kernel as one more implementation.
fn recordings(args: &SimulateArgs, files: &[PathBuf]) -> Result<(Head, Vec<Row>), Trouble> {
    let mut all: Option<(Head, Vec<Row>)> = None;
    for file in files {
        let (points, recorded) = recording(args, file)?;
        let (head, rows) = one(args, points, Some(recorded))?;
        match &mut all {
            Some((_, all)) => all.extend(rows),
            None => all = Some((head, rows)),
        }
    }
    all.ok_or_else(|| usage("no recording"))
}

/// Seeds of the check against reality, unless others are asked for.
const REALITY_SEEDS: u64 = 10;

/// Each recording with the model of its kernel, seed by seed.
fn realities(args: &SimulateArgs) -> Result<Vec<Reality>, Trouble> {
    let Input::Recordings(files) = inputs(args)? else {
        return Err(usage("--suite reality: expected recordings, such as traces/*/trace.dat"));
    };
    let mut all = Vec::new();
    for file in &files {
        let (points, recorded) = recording(args, file)?;
        let (mut trial, _) = plan(args, points, Some(recorded))?;
        // The model of the recorded kernel comes last.
        trial.entrants = trial.entrants.pop().into_iter().collect();
        trial.repeat = 1;
        let mut rows = Vec::new();
        for seed in args.seed..args.seed + args.repeat.unwrap_or(REALITY_SEEDS) {
            trial.seed = seed;
            rows.extend(in_pool(args.threads, || play(&trial))?.map_err(usage)?);
        }
        all.extend(Reality::of(&rows));
    }
    Ok(all)
}

fn recording(args: &SimulateArgs, file: &Path) -> Result<(Vec<Point>, Recording), Trouble> {
    let source = Source::open(file, None, ReaderKind::Native)?;
    let kernel = source.reader().meta().kernel_release().map(str::to_owned);
    let from = match &args.topology {
        Some(text) => TopologySource::parse(text),
        None => TopologySource::beside(file).unwrap_or(TopologySource::Guess(source.cpus)),
    };
    let cpus = source.cpus.max(source.reader().meta().cpus as usize);
    let name = file.display().to_string();
    let mut extractor = Extractor::new(&name, cpus, source.first_ns());
    let take = |event: &crate::trace::Event| {
        extractor.take(event);
        true
    };
    source.walk(take, |_, _| ())?;
    let extracted = extractor.finish();
    let label = file.parent().and_then(Path::file_name).map_or(name, |name| name.to_string_lossy().into_owned());
    let mut points = Vec::new();
    for (cost_label, cost) in costs(args, Cost::free())? {
        let label = [label.clone(), cost_label].join(" ").trim().to_owned();
        let (workload, recorded) = (extracted.workload.clone(), Some(extracted.recorded.clone()));
        points.push(Point { label, workload, cost, recorded });
    }
    Ok((points, Recording { from, kernel, extracted }))
}

/// What a recording says of its machine.
struct Recording {
    from: TopologySource,
    kernel: Option<String>,
    extracted: Extracted,
}

/// The simulations of one machine.
fn one(args: &SimulateArgs, points: Vec<Point>, recording: Option<Recording>) -> Result<(Head, Vec<Row>), Trouble> {
    let (trial, head) = plan(args, points, recording)?;
    let rows = in_pool(args.threads, || play(&trial))?.map_err(usage)?;
    Ok((head, rows))
}

fn in_pool<T: Send>(threads: Option<u16>, job: impl FnOnce() -> T + Send) -> Result<T, Trouble> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = threads {
        pool = pool.num_threads(usize::from(threads));
    }
    let pool = pool.build().map_err(|error| Trouble::Usage(format!("--threads: {error}")))?;
    Ok(pool.install(job))
}

fn deliver(report: &str, output: Option<Sink>) -> Result<(), Trouble> {
    let Some(mut sink) = output else { return print(report) };
    if is_stdout(Path::new(&sink.name())) || sink.name() == "stdout" {
        return print(report);
    }
    let plain = anstream::adapter::strip_str(report).to_string();
    sink.write_all(plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}

fn usage(error: impl std::fmt::Display) -> Trouble {
    Trouble::Usage(format!("simulate: {error}"))
}

/// `KEY=VALUES`.
fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), Trouble> {
    text.split_once('=').ok_or_else(|| usage(format!("{flag}{text:?}: expected KEY=VALUE, such as clients=64")))
}

fn plan(args: &SimulateArgs, points: Vec<Point>, recording: Option<Recording>) -> Result<(Trial, Head), Trouble> {
    let release = release(args, recording.as_ref())?;
    let source = match &recording {
        Some(recording) => recording.from.clone(),
        None => TopologySource::parse(args.topology.as_deref().unwrap_or(DEFAULT_MACHINE)),
    };
    let loaded = topology::load_for(&source, Some(release)).map_err(|error| Trouble::Replay(error.into()))?;
    let hz = args.hz.or(loaded.snapshot.hz).unwrap_or(250);
    let cpus = loaded.topology.nr_cpu_ids();
    let late_ticks_ns =
        recording.as_ref().map_or_else(Vec::new, |recording| recording.extracted.late_ticks_ns(hz, cpus));
    let first_tick_ns = recording.as_ref().and_then(|recording| recording.extracted.first_tick_ns(hz));
    let first_tick_ns = first_tick_ns.unwrap_or(1_000_000_000 / u64::from(hz));
    let rules = args.affinity.as_deref().map(side_file).transpose()?;
    let (warmup_ns, measure_ns) = match &recording {
        Some(_) if args.time.is_some() || args.warmup.is_some() => {
            let what = "--time and --warmup: a recording is simulated as long as it is; leave them out, or take a part of it \
                        with 'sisdiff cut'";
            return Err(Trouble::Usage(what.to_owned()));
        }
        Some(recording) => (0, recording.extracted.wall_ns.max(1)),
        None => (args.warmup.unwrap_or(WARMUP_NS), args.time.unwrap_or(TIME_NS)),
    };
    let max_idle = loaded.snapshot.max_idle_balance_cost_ns.iter().copied().collect::<Option<Vec<u64>>>();
    let repeat = args.repeat.unwrap_or(if recording.is_some() { 1 } else { 3 });
    let setup = Setup {
        topology: Arc::new(loaded.topology.clone()),
        hz,
        first_tick_ns,
        late_ticks_ns,
        release: (u32::from(release.major), u32::from(release.minor)),
        cost: points.first().map_or_else(Cost::new, |point| point.cost),
        rules,
        soft_affinity: softness(&args.softness)?,
        idle_exits: recording.as_ref().map(|recording| Arc::new(recording.extracted.idle_exits.clone())),
        max_idle_balance_cost_ns: recording.as_ref().and(max_idle).unwrap_or_default(),
        warmup_ns,
        measure_ns,
    };
    let mut specs = vec![args.baseline.clone()];
    match args.patched.is_empty() {
        true => specs.push(Spec::Model(default_patched()?)),
        false => specs.extend(args.patched.iter().cloned()),
    }
    let model = recording.as_ref().and_then(|recording| model_of(recording.kernel.as_deref()?));
    if let Some(model) = &model
        && !specs.contains(&Spec::Model(model.spec))
    {
        specs.push(Spec::Model(model.spec));
    }
    let entrants: Vec<_> = specs.into_iter().map(|spec| trees::entrant(spec, &args.trees)).collect::<Result<_, _>>()?;
    let names: Vec<String> = entrants.iter().map(crate::replay::Entrant::name).collect();
    let mut lines = vec![
        ("machine", format!("{} ({})", topology::draw::summary(&loaded.topology), loaded.origin())),
        ("kernel", format!("rules of {}.{} around the wakeup path, HZ={}", release.major, release.minor, hz)),
        ("baseline", names[0].clone()),
        ("patched", names[1..].join(", ")),
        ("time", format!("{} measured after {}", models::show_time(measure_ns), models::show_time(warmup_ns))),
        ("seeds", format!("{} to {}", args.seed, args.seed + repeat - 1)),
        ("costs", told_costs(args, recording.is_some())),
    ];
    if let Some(path) = &args.affinity {
        lines.push(("affinity", path.display().to_string()));
    }
    if let Some(recording) = recording.filter(|recording| recording.extracted.lost > 0) {
        let lost = recording.extracted.lost;
        lines.push(("lost", format!("events at {lost} places: programs are wrong there")));
    }
    let title = points.first().map(|point| point.workload.name.clone()).unwrap_or_default();
    let title = if points.len() > 1 { format!("{} and {} more", title.trim(), points.len() - 1) } else { title };
    let head = Head { title, lines, names, recent_miss: RecentMiss::default() };
    Ok((Trial { setup, entrants, points, seed: args.seed, repeat }, head))
}

fn default_patched() -> Result<ModelSpec, Trouble> {
    match "v5.11+mel-v2".parse() {
        Ok(Spec::Model(spec)) => Ok(spec),
        _ => Err(usage("the default of --patched is unknown")),
    }
}

/// The simulated kernel: as asked, else the recorded one's, else the baseline's.
fn release(args: &SimulateArgs, recording: Option<&Recording>) -> Result<topology::Release, Trouble> {
    let recorded = recording.and_then(|recording| recording.kernel.as_ref());
    let text = match (args.kernel.as_ref().or(recorded), &args.baseline) {
        (Some(text), _) => text.trim_start_matches('v').to_owned(),
        (None, Spec::Model(spec)) => spec.info().version.map(|part| part.to_string()).join("."),
        (None, Spec::Tree(_)) => return Ok(topology::Release::DEFAULT),
    };
    topology::Release::parse(&text)
        .ok_or_else(|| usage(format!("--kernel {text:?}: no kernel release; expected something like 6.1")))
}

fn side_file(path: &Path) -> Result<Arc<Rules>, Trouble> {
    let wrong = |why: String| Trouble::Usage(format!("--affinity {}: {why}", path.display()));
    let text =
        bounded::read_text(path, bounded::SETTINGS).map_err(|error| wrong(format!("cannot be read ({error})")))?;
    Rules::parse(&text).map(Arc::new).map_err(|error| wrong(error.to_string()))
}

fn softness(text: &str) -> Result<(u32, u32), Trouble> {
    let parts =
        text.split_once(':').and_then(|(allowed, preferred)| Some((preferred.parse().ok()?, allowed.parse().ok()?)));
    parts.filter(|&(preferred, allowed): &(u32, u32)| preferred > 0 && allowed > 0).ok_or_else(|| {
        usage(format!("--softness {text:?}: expected sched_allowed:sched_preferred, such as 100:1 or 5:4"))
    })
}

/// Costs by the label of their row; one without a label where nothing is swept.
fn costs(args: &SimulateArgs, mut base: Cost) -> Result<Vec<(String, Cost)>, Trouble> {
    if let Some(path) = &args.cost {
        let wrong = |why: String| Trouble::Usage(format!("--cost {}: {why}", path.display()));
        let text =
            bounded::read_text(path, bounded::SETTINGS).map_err(|error| wrong(format!("cannot be read ({error})")))?;
        base.read(&text).map_err(|error| wrong(error.to_string()))?;
    }
    for text in &args.set {
        let (key, value) = pair("--set ", text)?;
        set(&mut base, key, value)?;
    }
    let mut grid = vec![(String::new(), base)];
    let mut keys = Vec::new();
    for sweep in &args.sweep {
        let (key, values) = pair("--sweep ", sweep)?;
        if keys.contains(&key) {
            return Err(usage(format!("--sweep {key}: given twice; put all its values into one, as {key}=A,B,C")));
        }
        keys.push(key);
        let mut finer = Vec::new();
        for (label, cost) in &grid {
            for value in values.split(',') {
                let mut cost = *cost;
                set(&mut cost, key, value)?;
                finer.push((format!("{label} {key}={value}").trim().to_owned(), cost));
            }
        }
        if finer.len() > POINTS_MAX {
            return Err(usage(format!("--sweep: more than {POINTS_MAX} combinations of costs")));
        }
        grid = finer;
    }
    Ok(grid)
}

fn set(cost: &mut Cost, key: &str, value: &str) -> Result<(), Trouble> {
    let number = value.parse().map_err(|_| usage(format!("{key}={value}: expected a whole number")))?;
    cost.set(key, number).map_err(usage)
}

fn told_costs(args: &SimulateArgs, recorded: bool) -> String {
    let base = if recorded {
        "none, the recorded bursts have them in them; an idle CPU takes as long to begin as one in the recording, drawn anew each time"
    } else {
        "the defaults"
    };
    let mut told = vec![args.cost.as_ref().map_or(base.to_owned(), |path| path.display().to_string())];
    told.extend(args.set.iter().cloned());
    told.extend(args.sweep.iter().map(|sweep| format!("{sweep} in turn")));
    told.join(", ")
}

/// Every combination of the parameters' values and the costs.
fn points(args: &SimulateArgs, model: &Model, costs: &[(String, Cost)]) -> Result<Vec<Point>, Trouble> {
    let mut combinations: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for text in &args.params {
        let (name, values) = pair("", text)?;
        model.param(name).map_err(usage)?;
        let values: Vec<&str> = values.split(',').collect();
        combinations = combinations
            .iter()
            .flat_map(|before| {
                values.iter().map(move |value| {
                    let mut all = before.clone();
                    all.push((name, *value));
                    all
                })
            })
            .collect();
        if combinations.len() * costs.len() > POINTS_MAX {
            return Err(usage(format!("more than {POINTS_MAX} combinations of parameters")));
        }
    }
    let varied =
        |name: &str| args.params.iter().any(|text| text.starts_with(&format!("{name}=")) && text.contains(','));
    let mut points = Vec::new();
    for given in &combinations {
        let values = model.values(given).map_err(usage)?;
        let workload = model.build(&values);
        for (cost_label, cost) in costs {
            let mut label: Vec<String> = vec![models::show(&model.params[0], values.get(model.params[0].name))];
            let others = given.iter().filter(|(name, _)| *name != model.params[0].name && varied(name));
            label.extend(others.map(|(name, value)| format!("{name}={value}")));
            label.extend(Some(cost_label.clone()).filter(|text| !text.is_empty()));
            points.push(Point { label: label.join(" "), workload: workload.clone(), cost: *cost, recorded: None });
        }
    }
    Ok(points)
}

fn list() -> String {
    let mut out = String::new();
    for model in MODELS {
        out += &format!("{}: {}; counts {}\n", model.name, model.meaning, model.unit);
        for param in model.params {
            out += &format!("  {}={}  {}\n", param.name, models::show(param, param.default), param.meaning);
        }
    }
    out
}
