// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings → figures: files, several at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::fair::Model;
use crate::fidelity::avail::ScanFigures;
use crate::fidelity::figures::{Derived, FileFidelity, Implementation, Level};
use crate::fidelity::first::First;
use crate::fidelity::second::Second;
use crate::machine::{Audit, Tally};
use crate::replay::recording::{Counted, ReaderKind, Source};
use crate::replay::run::{Progress, parallel};
use crate::replay::setup::Bench;
use crate::replay::totals::{Role, Share};
use crate::replay::{Choice, ReplayError};
use crate::spec::{ModelSpec, RELEASES};
use crate::topology::TopologySource;
use crate::trace::{Event, EventKind};

/// How to measure, the same for every recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The recorded machine; `None`: what lies beside the recording, else a guess.
    pub topology: Option<TopologySource>,
    /// Implementations besides the model of the recorded kernel.
    pub also: Vec<ModelSpec>,
    /// Treat recordings as if they had no probes.
    pub ignore_probes: bool,
    /// Where no probe tells the sync flag: set.
    pub assume_sync: bool,
    /// Jiffies per second; `None`: the snapshot's, else 250.
    pub hz: Option<u32>,
    /// Declared cost of one idle check in a scan, ns.
    pub scan_cost_ns: u64,
    /// The trace buffer; `None`: the top one.
    pub buffer: Option<String>,
    /// Who reads a trace.dat.
    pub reader: ReaderKind,
}

impl Options {
    fn replay(&self, ignore_probes: bool) -> crate::replay::Options {
        // A replay has a baseline; nobody looks at it here.
        let baseline = ModelSpec::of(&RELEASES[0]).into();
        crate::replay::Options {
            topology: self.topology.clone(),
            ignore_probes,
            assume_sync: self.assume_sync,
            hz: self.hz,
            scan_cost_ns: self.scan_cost_ns,
            buffer: self.buffer.clone(),
            reader: self.reader,
            ..crate::replay::Options::new(baseline, self.also.iter().map(|&spec| spec.into()).collect())
        }
    }
}

/// Measures `files`, several at a time, and gives their figures in order.
///
/// # Errors
/// The first file's that cannot be replayed.
pub fn measure(
    files: &[PathBuf],
    options: &Options,
    threads: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<FileFidelity>, ReplayError> {
    parallel(files, threads, |file| one(file, options, progress))
}

/// Walks over a recording.
const PASSES: u64 = 3;

fn one(file: &Path, options: &Options, progress: &dyn Progress) -> Result<FileFidelity, ReplayError> {
    let source = Source::open(file, options.buffer.as_deref(), options.reader)?;
    let at = |pass: u64, events: u64, all: u64| progress.at(file, pass * all + events, PASSES * all);
    // Without probes in any case: what is derived shows how good it is where probes can check it.
    let mut plain = pass(&source, options, true, |events, all| at(0, events, all))?;
    let recording = source.describe(&plain.counted)?;
    let derived = (plain.level != Level::None).then(|| plain.derived());
    let ignored = options.ignore_probes && plain.level != Level::None;
    let level = if options.ignore_probes { Level::None } else { plain.level };
    let mut used =
        if level == Level::None { plain } else { pass(&source, options, false, |events, all| at(1, events, all))? };
    used.level = level;
    let scan = second(&source, options, &mut used, |events, all| at(2, events, all))?;
    let mut notes = recording.notes;
    notes.extend(used.notes);
    Ok(FileFidelity {
        file: recording.file,
        sha256: recording.sha256,
        kernel: used.kernel,
        topology: used.topology,
        level,
        ignore_probes: ignored,
        no_model: used.no_model,
        implementations: used.implementations,
        derived,
        scan,
        notes,
    })
}

/// What one walk over a recording gives.
struct Pass {
    level: Level,
    kernel: Option<String>,
    topology: String,
    no_model: Option<String>,
    /// The model of the recorded kernel, if it has one of its own.
    spec: Option<ModelSpec>,
    implementations: Vec<Implementation>,
    differ: BTreeMap<u64, Choice>,
    choices: BTreeMap<u64, Choice>,
    audit: Audit,
    nr_idle_scan: [Share; 2],
    notes: Vec<String>,
    counted: Counted,
}

impl Pass {
    fn derived(&mut self) -> Derived {
        let audit = &self.audit;
        let share = |tally: Tally| Share { same: tally.same, of: tally.of };
        Derived {
            idle: share(audit.idle),
            nr_running: share(audit.nr_running),
            curr: share(audit.curr),
            nr_idle_scan: self.nr_idle_scan[0],
            nr_idle_scan_near: self.nr_idle_scan[1],
            pelt: audit.errors(),
        }
    }
}

fn pass(
    source: &Source,
    options: &Options,
    ignore_probes: bool,
    tick: impl FnMut(u64, u64),
) -> Result<Pass, ReplayError> {
    let Bench { mut machine, mut contestants, kernel, assumed, setup, notes } =
        Bench::new(source, &options.replay(ignore_probes))?;
    let no_model = match &setup.recorded {
        None => Some("the recording does not name its kernel".to_owned()),
        Some(recorded) => (!recorded.exact).then(|| recorded.why.clone()),
    };
    // Without a model of its own there is no figure.
    contestants.retain(|one| match one.role {
        Role::Baseline => false,
        Role::Recorded => no_model.is_none(),
        Role::Patched => true,
    });
    contestants.sort_by_key(|one| one.role != Role::Recorded);
    let spec = setup.recorded.as_ref().filter(|_| no_model.is_none()).and_then(|it| it.spec.parse().ok());
    let mut first = First::new(contestants, assumed);
    let mut seen = Seen::default();
    let counted = source.walk(
        |event| {
            seen.event(event);
            if matches!(event.kind, EventKind::AvailOut { .. }) {
                first.keep_choices();
            }
            if let EventKind::SisRq(rq) = &event.kind
                && let Some(nr_idle_scan) = rq.nr_idle_scan
                && rq.target.index() < machine.state().topology.nr_cpu_ids()
                && let Some(shared) = machine.state().topology.llc_shared(rq.target)
            {
                first.probed(shared, nr_idle_scan);
            }
            machine.apply(event, &mut |state, notice| first.notice(state, &notice));
            true
        },
        tick,
    )?;
    machine.finish(&mut |state, notice| first.notice(state, &notice));
    let implementations = first.finish();
    Ok(Pass {
        level: seen.level(),
        kernel,
        topology: setup.topology,
        no_model,
        spec,
        implementations,
        differ: first.differ,
        choices: first.choices,
        audit: machine.audit().clone(),
        nr_idle_scan: [first.nr_idle_scan, first.nr_idle_scan_near],
        notes,
        counted,
    })
}

/// Back to what differs.
fn second(
    source: &Source,
    options: &Options,
    used: &mut Pass,
    tick: impl FnMut(u64, u64),
) -> Result<Option<ScanFigures>, ReplayError> {
    let scans = used.level == Level::Scan;
    let Some(spec) = used.spec.filter(|_| scans || !used.differ.is_empty()) else { return Ok(None) };
    let Bench { mut machine, .. } = Bench::new(source, &options.replay(used.level == Level::None))?;
    let mut model = Model::new(spec, &machine.state().topology);
    model.hidden.clock.probe_ns = options.scan_cost_ns;
    let choices = scans.then(|| std::mem::take(&mut used.choices));
    let mut second = Second::new(model, std::mem::take(&mut used.differ), choices);
    source.walk(
        |event| {
            second.event(event);
            machine.apply(event, &mut |state, notice| second.notice(state, &notice));
            true
        },
        tick,
    )?;
    machine.finish(&mut |state, notice| second.notice(state, &notice));
    let scan = scans.then(|| second.scan.clone());
    if let Some(figures) = used.implementations.iter_mut().find(|one| one.recorded) {
        second.finish(figures);
    }
    Ok(scan)
}

/// Kinds of probes that a recording has.
#[derive(Debug, Default)]
struct Seen {
    task: bool,
    scan: bool,
    full: bool,
}

impl Seen {
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::SisIn(_) => self.task = true,
            // At level scan a probe has only what a cache shares.
            EventKind::SisRq(ref rq) => self.full |= rq.nr_running.is_some(),
            EventKind::AvailOut { .. } => self.scan = true,
            _ => {}
        }
    }

    fn level(&self) -> Level {
        match self {
            Self { task: false, .. } => Level::None,
            Self { full: true, .. } => Level::Full,
            Self { scan: true, .. } => Level::Scan,
            _ => Level::Task,
        }
    }
}
