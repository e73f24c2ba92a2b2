// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff fidelity`: flags, and carried out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, Args, ValueEnum, ValueHint};

use crate::cli::args::ReaderArg;
use crate::cli::machine;
use crate::cli::output::{Trouble, print};
use crate::cli::plan::reader_kind;
use crate::cli::progress::Bars;
use crate::cli::replay::EXIT_FOUND;
use crate::cli::sink::{self, Sink};
use crate::cli::values::{parse_hz, parse_scan_cost, parse_spec};
use crate::fidelity::{FileFidelity, Options, measure};
use crate::replay::setup::SCAN_COST_NS;
use crate::report::fidelity_json::Report;
use crate::report::shell::quoted;
use crate::report::{fidelity, fidelity_md};
use crate::spec::Spec;
use crate::topology::TopologySource;

/// What `--help` shows at its end.
pub const EXAMPLES: &str = "Examples:
  sisdiff fidelity trace.dat
      the model of the recorded kernel against what that kernel chose, and why it differs where it does
  sisdiff fidelity traces/*/trace.dat --ignore-probes --format markdown
  sisdiff fidelity trace.dat --min 95 --quiet
      for scripts: exit 1 if the model agrees in less than 95 % of the wakeups
  sisdiff fidelity trace.dat --also v6.12
      another implementation beside it";

/// `sisdiff fidelity`.
#[derive(Debug, Args)]
pub struct FidelityArgs {
    /// Recordings, as `replay` takes them.
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The recorded machine: a folder or archive of its /sys, or PACKAGESxCORESxTHREADS.
    ///
    /// Default: a topology.tar.gz beside the recording, else what the recording stores, else a stated guess.
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub topology: Option<String>,
    /// An implementation to measure besides the model of the recorded kernel; repeat for several.
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, value_parser = parse_spec)]
    pub also: Vec<Spec>,
    /// Treat the recording as if it had no kprobe events, but for the choices.
    #[arg(long)]
    pub ignore_probes: bool,
    /// Take wakeups for sync wakeups where no probe tells.
    #[arg(long)]
    pub assume_sync: bool,
    /// Jiffies per second of the recorded kernel (CONFIG_HZ). Default: what a snapshot tells, else 250.
    #[arg(long, value_name = "HZ", value_parser = parse_hz)]
    pub hz: Option<u32>,
    /// Declared cost of one idle check of a scan, ns.
    #[arg(long, value_name = "NS|FILE", default_value_t = SCAN_COST_NS, value_parser = parse_scan_cost)]
    pub scan_cost: u64,
    /// The trace buffer (ftrace instance) to read. Default: the top one.
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Who reads a trace.dat.
    #[arg(long, value_enum, default_value_t = ReaderArg::Native)]
    pub reader: ReaderArg,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = FidelityFormat::Text)]
    pub format: FidelityFormat,
    /// Write the report to a file instead of stdout; an old file stays as it is if a recording cannot be replayed.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Exit with 1 if the model of a recorded kernel agrees in less than this share of the wakeups, percent.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub min: Option<f64>,
    /// No report on stdout and no progress bar: exit code, -o and errors only.
    #[arg(short, long)]
    pub quiet: bool,
    /// Recordings at the same time; the output is the same at any number. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FidelityFormat {
    /// For people.
    Text,
    /// For programs: docs/fidelity.schema.json.
    Json,
    /// Tables for documents.
    Markdown,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let percent = number.parse().ok().filter(|share| (0.0..=100.0).contains(share));
    percent.ok_or_else(|| "expected a share from 0 to 100, percent".to_owned())
}

/// Measures, reports, and says whether `--min` holds.
///
/// # Errors
/// Whatever keeps a recording from being replayed or the report from being written.
pub fn fidelity(args: FidelityArgs) -> Result<ExitCode, Trouble> {
    let args = &args;
    let mut options = options(args)?;
    machine::read(&mut options.topology)?;
    let inputs: Vec<_> = args.files.iter().map(|file| ("the recording", file.clone())).collect();
    let outputs: Vec<(&str, &Path)> = args.output.iter().map(|path| ("--output", path.as_path())).collect();
    sink::check(&outputs, &inputs)?;
    // Opened first: what cannot be written is told before the work, not after it.
    let output = args.output.as_deref().map(Sink::open).transpose()?;
    let bars = Bars::new(args.quiet);
    let figures = measure(&args.files, &options, args.threads.map(usize::from), &bars);
    bars.finish();
    let figures = figures?;
    let code = verdict(&figures, args);
    match write(args, figures, output) {
        Err(Trouble::BrokenPipe) => Ok(code),
        written => written.map(|()| code),
    }
}

fn options(args: &FidelityArgs) -> Result<Options, Trouble> {
    let model = |spec: &Spec| match spec {
        Spec::Model(model) => Ok(*model),
        Spec::Tree(tree) => Err(Trouble::Usage(format!(
            "--also {tree}: kernel trees take part in `replay`; name a model, see sisdiff list"
        ))),
    };
    Ok(Options {
        topology: args.topology.as_deref().map(TopologySource::parse),
        also: args.also.iter().map(model).collect::<Result<_, _>>()?,
        ignore_probes: args.ignore_probes,
        assume_sync: args.assume_sync,
        hz: args.hz,
        scan_cost_ns: args.scan_cost,
        buffer: args.buffer.clone(),
        reader: reader_kind(args.reader),
    })
}

fn write(args: &FidelityArgs, figures: Vec<FileFidelity>, output: Option<Sink>) -> Result<(), Trouble> {
    if args.quiet && output.is_none() {
        return Ok(());
    }
    let report = match args.format {
        FidelityFormat::Text => text(args, &figures),
        FidelityFormat::Json => Report::new(figures).to_json().map_err(|error| Trouble::Usage(error.to_string()))?,
        FidelityFormat::Markdown => fidelity_md::tables(&figures),
    };
    let Some(mut sink) = output.filter(|_| !args.output.as_deref().is_some_and(sink::is_stdout)) else {
        return print(&report);
    };
    let plain = anstream::adapter::strip_str(&report).to_string();
    sink.write_all(plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}

fn text(args: &FidelityArgs, figures: &[FileFidelity]) -> String {
    let files = figures.iter().zip(&args.files);
    let mut parts: Vec<String> = files.map(|(file, path)| fidelity::file(file, again(args, path).as_deref())).collect();
    if figures.len() > 1 {
        parts.push(fidelity::pooled(figures));
    }
    parts.join("\n")
}

/// The command that explains a decision of `file`, without its number.
fn again(args: &FidelityArgs, file: &Path) -> Option<String> {
    let name = file.to_str().filter(|_| file.is_file())?;
    let folder = if name.starts_with('-') { "./" } else { "" };
    let mut out = format!("sisdiff explain {}", quoted(&format!("{folder}{name}")));
    let mut flag = |name: &str, value: Option<String>| {
        out += &value.map(|value| format!(" {name} {}", quoted(&value))).unwrap_or_default();
    };
    flag("--topology", args.topology.clone());
    flag("--hz", args.hz.map(|hz| hz.to_string()));
    flag("--scan-cost", Some(args.scan_cost).filter(|&ns| ns != SCAN_COST_NS).map(|ns| ns.to_string()));
    flag("--buffer", args.buffer.clone());
    flag("--reader", (args.reader == ReaderArg::Tracecmd).then(|| "tracecmd".to_owned()));
    for (name, is_on) in [("--ignore-probes", args.ignore_probes), ("--assume-sync", args.assume_sync)] {
        out += &if is_on { format!(" {name}") } else { String::new() };
    }
    Some(out)
}

/// The worst recording decides. A recording without a figure cannot hold a promise.
fn verdict(figures: &[FileFidelity], args: &FidelityArgs) -> ExitCode {
    let Some(min) = args.min else { return ExitCode::SUCCESS };
    let mut code = ExitCode::SUCCESS;
    for file in figures {
        let share = file.model().and_then(|model| model.kinds.wakeups.share().percent());
        if share.is_none_or(|share| share < min) {
            let found = share.map_or_else(|| "no figure".to_owned(), |share| format!("{share:.2} %"));
            anstream::eprintln!("sisdiff: {}: {found}, --min {min} asks for more", file.file);
            code = ExitCode::from(EXIT_FOUND);
        }
    }
    code
}
