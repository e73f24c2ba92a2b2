// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff record`: looks whether it can be done, and does it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use signal_hook::{flag, low_level};

use crate::cli::output::{Trouble, print};
use crate::cli::temporary::heard;
use crate::record::plan::EVENTS;
use crate::record::{Btf, Facts, Level, Plan, Step, Symbols, Wish, probes};
use crate::topology;

/// What `--help` shows at its end.
pub const EXAMPLES: &str = "Examples:
  sisdiff record -o rec -- perf bench sched pipe -l 10000
      then: sisdiff info rec/trace.dat
  sisdiff record --dry-run --probes full -- sleep 1
      what would be done, as shell commands
  sudo sisdiff record --probes task -o rec -- ./my-workload
      with kprobes: what the kernel was asked and answered";

/// How often it is looked whether the recording has ended.
const PATIENCE: Duration = Duration::from_millis(50);
/// No signal has this number.
const NO_SIGNAL: usize = 0;
/// What a shell adds to a signal's number.
const SIGNALLED: u8 = 128;
/// Where tracefs may be.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// `sisdiff record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The command to record, with its arguments.
    #[arg(required = true, last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<String>,
    /// The folder for trace.dat, topology.tar.gz and schedstat; made if it is not there.
    #[arg(short, long, value_name = "FOLDER", default_value = "sisdiff-recording", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// What kprobes tell besides: they cost time in every wakeup, full most.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LevelArg::None)]
    pub probes: LevelArg,
    /// Size of the ring buffer of each CPU, KB.
    #[arg(long, value_name = "KB", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub buffer: u32,
    /// Also record when CPUs enter idle states (power:cpu_idle).
    #[arg(long)]
    pub idle: bool,
    /// Only say what would be done, and what stands against it.
    #[arg(long)]
    pub dry_run: bool,
}

/// Levels of probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// Tracepoints only.
    None,
    /// The wakee's fields at entry of select_task_rq_fair(), and its answer.
    Task,
    /// And each answer of available_idle_cpu().
    Scan,
    /// The wakee, the answer, and the run queue of every CPU.
    Full,
    /// Everything.
    All,
}

impl LevelArg {
    fn level(self) -> Level {
        match self {
            Self::None => Level::None,
            Self::Task => Level::Task,
            Self::Scan => Level::Scan,
            Self::Full => Level::Full,
            Self::All => Level::All,
        }
    }
}

/// Records, or says how.
///
/// # Errors
/// What keeps it from being done. Whatever was armed until then is taken away again.
pub fn record(args: RecordArgs) -> Result<ExitCode, Trouble> {
    let (facts, obstacles) = look(&args);
    let wish = Wish { folder: args.output, command: args.command, buffer_kb: args.buffer, idle: args.idle };
    let plan = Plan::new(&wish, &facts);
    if args.dry_run {
        print(&plan.describe())?;
        obstacles.iter().for_each(|why| anstream::eprintln!("sisdiff: not possible here: {why}"));
        return Ok(ExitCode::SUCCESS);
    }
    match obstacles.first() {
        Some(why) => Err(Trouble::Usage(format!("record: {why}"))),
        None => carry_out(&plan),
    }
}

/// What is here, and what stands in the way, each with what to do about it.
fn look(args: &RecordArgs) -> (Facts, Vec<String>) {
    let mut obstacles = Vec::new();
    if !on_path("trace-cmd") {
        obstacles.push("trace-cmd is not installed; install the package trace-cmd".to_owned());
    }
    let tracefs = TRACEFS.map(PathBuf::from).into_iter().find(|path| path.join("events/sched").is_dir());
    if tracefs.is_none() {
        obstacles.push(
            "no tracefs with scheduler events; mount it (mount -t tracefs tracefs /sys/kernel/tracing), as root, on a \
             kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING"
                .to_owned(),
        );
    }
    let tracefs = tracefs.unwrap_or_else(|| PathBuf::from(TRACEFS[0]));
    // The owner of our own entry is the effective user.
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        obstacles.push("recording wants root: run it with sudo".to_owned());
    }
    let missing = |event: &&&str| !tracefs.join("events/sched").join(event).is_dir();
    if tracefs.join("events/sched").is_dir() {
        obstacles.extend(EVENTS.iter().filter(missing).map(|event| format!("this kernel has no event sched:{event}")));
    }
    if args.output.join("trace.dat").exists() {
        obstacles
            .push(format!("{} is there already; name another folder with -o", args.output.join("trace.dat").display()));
    }
    let mut facts = Facts { tracefs, probes: Vec::new(), schedstat: Path::new("/proc/schedstat").exists() };
    match wanted_probes(args.probes.level()) {
        Ok(probes) => {
            obstacles.extend(not_armed(&probes, &facts.tracefs));
            facts.probes = probes;
        }
        Err(why) => obstacles.push(why),
    }
    (facts, obstacles)
}

fn wanted_probes(level: Level) -> Result<Vec<crate::record::Probe>, String> {
    const BTF: &str = "/sys/kernel/btf/vmlinux";
    if level == Level::None {
        return Ok(Vec::new());
    }
    let bytes = fs::read(BTF).map_err(|error| {
        format!("--probes: {BTF}: {error}; the kernel needs CONFIG_DEBUG_INFO_BTF; record without --probes")
    })?;
    let btf = Btf::parse(bytes).map_err(|error| format!("--probes: {BTF}: {error}"))?;
    let symbols = fs::read_to_string("/proc/kallsyms").map(|text| Symbols::parse(&text)).unwrap_or_default();
    let online = fs::read_dir("/sys/devices/system/cpu").map(|entries| entries.flatten().filter(is_cpu).count());
    let online = online.unwrap_or(0);
    probes(level, &btf, &symbols, online, &llc_firsts(online)).map_err(|why| format!("--probes: {why}"))
}

/// The first CPU of each last-level cache, as sysfs lists who shares it; without such a list CPU 0.
fn llc_firsts(nr_cpus: usize) -> Vec<usize> {
    let first = |cpu: usize| {
        let shared = |index: u32| {
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/shared_cpu_list");
            fs::read_to_string(file).ok()
        };
        let list = (0..8).rev().find_map(shared)?;
        list.split([',', '-', '\n']).next()?.parse().ok()
    };
    let mut firsts: Vec<usize> = (0..nr_cpus).filter_map(first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    if firsts.is_empty() {
        firsts.push(0);
    }
    firsts
}

/// What keeps probes from being armed.
fn not_armed(probes: &[crate::record::Probe], tracefs: &Path) -> Option<String> {
    let file = tracefs.join("kprobe_events");
    if !probes.is_empty() && tracefs.join("events").is_dir() && !file.exists() {
        return Some("--probes: this kernel has no kprobe events (CONFIG_KPROBE_EVENTS)".to_owned());
    }
    let armed = fs::read_to_string(&file).unwrap_or_default();
    let probe = probes.iter().find(|probe| armed.contains(&format!("kprobes/{} ", probe.name)))?;
    Some(format!(
        "--probes: a probe kprobes:{} is armed already; another recording runs, or one died: echo > {}",
        probe.name,
        file.display()
    ))
}

fn is_cpu(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let digits = name.to_str().and_then(|name| name.strip_prefix("cpu"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn carry_out(plan: &Plan) -> Result<ExitCode, Trouble> {
    // An interrupt ends the recording, not us: what was armed has to be taken away.
    let interrupted = Arc::new(AtomicUsize::new(NO_SIGNAL));
    for signal in heard() {
        flag::register_usize(signal, Arc::clone(&interrupted), signal as usize)
            .map_err(|error| Trouble::Usage(format!("record: interrupts cannot be caught ({error})")))?;
    }
    let mut failed = None;
    let mut armed = Vec::new();
    for step in &plan.steps {
        let cleans_up = match step {
            Step::Disarm { name, .. } => armed.contains(name),
            _ => failed.is_none() && interrupted.load(Ordering::SeqCst) == NO_SIGNAL,
        };
        if !cleans_up {
            continue;
        }
        match carry_out_step(step, &interrupted) {
            Ok(()) => {
                if let Step::Arm { probe, .. } = step {
                    armed.push(probe.name.clone());
                }
            }
            // The first failure is the cause; the later ones of cleaning up are told, too.
            Err(why) if failed.is_none() => failed = Some(why),
            Err(why) => anstream::eprintln!("sisdiff: record: {why}"),
        }
    }
    let code = fs::read_to_string(&plan.exit_code).ok().and_then(|text| text.trim().parse().ok());
    // It has told all that it was there for.
    let _ = fs::remove_file(&plan.exit_code);
    if let Some(why) = failed {
        return Err(Trouble::Usage(format!("record: {why}")));
    }
    let signal = interrupted.load(Ordering::SeqCst);
    if signal != NO_SIGNAL {
        let probes = if armed.is_empty() { "" } else { "; probes are taken away" };
        anstream::eprintln!("sisdiff: record: interrupted{probes}");
        if !plan.trace.exists() {
            // As whoever sent it expects of one who dies of it: a shell says 130 or 143.
            let _ = low_level::emulate_default_handler(signal as i32);
            return Ok(ExitCode::from(crate::cli::EXIT_TROUBLE));
        }
    }
    anstream::eprintln!("sisdiff: recorded; next: sisdiff info {}", plan.trace.display());
    // A command that was not allowed to end has no code of its own.
    let ended_by = (signal != NO_SIGNAL).then_some(SIGNALLED + signal as u8);
    Ok(ExitCode::from(code.or(ended_by).unwrap_or(0)))
}

fn carry_out_step(step: &Step, interrupted: &AtomicUsize) -> Result<(), String> {
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    match step {
        Step::Folder(path) => fs::create_dir_all(path).map_err(|error| at(path, error)),
        Step::Snapshot(to) => {
            let snapshot = topology::snapshot_of(Path::new("/")).map_err(|error| error.to_string())?;
            fs::write(to, snapshot).map_err(|error| at(to, error))
        }
        Step::Copy { from, to } => {
            // Files of /proc have no size that a copy could go by.
            let bytes = fs::read(from).map_err(|error| at(from, error))?;
            fs::write(to, bytes).map_err(|error| at(to, error))
        }
        Step::Arm { to, probe } => append(to, &probe.definition)
            .map_err(|error| format!("{}: {error}, as the kernel does not take: {}", to.display(), probe.definition)),
        Step::Disarm { to, name } => append(to, &format!("-:kprobes/{name}")).map_err(|error| at(to, error)),
        Step::Run(words) => run(words, interrupted),
    }
}

fn append(to: &Path, line: &str) -> std::io::Result<()> {
    fs::OpenOptions::new().append(true).open(to)?.write_all(format!("{line}\n").as_bytes())
}

fn run(words: &[String], interrupted: &AtomicUsize) -> Result<(), String> {
    let Some((program, args)) = words.split_first() else { return Ok(()) };
    let mut child = Command::new(program).args(args).spawn().map_err(|error| format!("{program}: {error}"))?;
    let mut told = false;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() || told => return Ok(()),
            Ok(Some(status)) => return Err(format!("{program} failed ({status})")),
            Ok(None) => {}
            Err(error) => return Err(format!("{program}: {error}")),
        }
        if interrupted.load(Ordering::SeqCst) != NO_SIGNAL && !told {
            told = true;
            // A terminal tells the whole group; who interrupts us alone has not told trace-cmd, which then stops in order.
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        }
        std::thread::sleep(PATIENCE);
    }
}
