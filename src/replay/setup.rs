// SPDX-License-Identifier: GPL-2.0-or-later
//! From what a user asks and what a recording is, to a machine and its implementations.

use std::sync::Arc;

use crate::affinity::Rules;
use crate::counters::{Column as Counted, RecentMiss};
use crate::machine::{Inputs, Machine, MachineConfig};
use crate::replay::driver::Contestant;
use crate::replay::entrant::Entrant;
use crate::replay::error::ReplayError;
use crate::replay::outcome::{RecordedModel, Setup};
use crate::replay::recording::{ReaderKind, Source};
use crate::replay::stated;
use crate::replay::totals::Role;
use crate::spec::model_of;
use crate::topology::{self, Loaded, TopologySource};

/// How to replay, the same for every recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// The recorded machine; `None`: what lies beside the recording, else a guess.
    pub topology: Option<TopologySource>,
    /// The baseline.
    pub baseline: Entrant,
    /// The patched implementations.
    pub patched: Vec<Entrant>,
    /// What stands for the recorded kernel; `None`: its model, where there is one.
    pub recorded: Option<Entrant>,
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
    /// What is stated about tasks.
    pub affinity: Option<SideFile>,
    /// Whose definition of a recent_used_cpu that missed the report follows.
    pub recent_miss: RecentMiss,
    /// What the recorded machine itself counted.
    pub schedstat: Option<Counted>,
}

/// A side file that was read.
#[derive(Debug, Clone)]
pub struct SideFile {
    /// Its name.
    pub name: String,
    /// What it states.
    pub rules: Arc<Rules>,
}

/// Cost of one idle check where nothing else is declared, ns.
pub const SCAN_COST_NS: u64 = 50;

impl Options {
    /// These implementations, and everything else as where nobody says.
    pub fn new(baseline: Entrant, patched: Vec<Entrant>) -> Self {
        Self {
            topology: None,
            baseline,
            patched,
            recorded: None,
            ignore_probes: false,
            assume_sync: false,
            hz: None,
            scan_cost_ns: SCAN_COST_NS,
            buffer: None,
            reader: ReaderKind::Native,
            affinity: None,
            recent_miss: RecentMiss::default(),
            schedstat: None,
        }
    }

    /// Everything that takes part, but the model of the recorded kernel.
    pub fn entrants(&self) -> impl Iterator<Item = &Entrant> {
        std::iter::once(&self.baseline).chain(&self.patched).chain(&self.recorded)
    }
}

/// One recording's machine with its implementations, ready to run.
pub struct Bench {
    /// The machine.
    pub machine: Machine,
    /// The baseline, the patched ones, the model of the recorded kernel.
    pub contestants: Vec<Contestant>,
    /// The recorded kernel's `uname -r`, by the recording or else by the topology snapshot.
    pub kernel: Option<String>,
    /// Inputs that nothing tells of the recorded kernel, so that its release's defaults stand in for them.
    pub assumed: Inputs,
    /// What the report says of it.
    pub setup: Setup,
    /// What else is worth a note.
    pub notes: Vec<String>,
}

impl Bench {
    /// Prepares the replay of `source`.
    ///
    /// # Errors
    /// Where there is no topology, or one of another machine.
    pub fn new(source: &Source, options: &Options) -> Result<Self, ReplayError> {
        let told = source.reader().meta().kernel_release();
        let loaded = load(source, options, told)?;
        check_machine(source, &loaded)?;
        let kernel = told.or(loaded.snapshot.kernel_release.as_deref());
        let (config, hz_source) = config(source, options, &loaded, kernel);
        let topology = Arc::new(loaded.topology.clone());
        let mut contestants = vec![contestant(Role::Baseline, &options.baseline, &loaded, options)?];
        for patched in &options.patched {
            contestants.push(contestant(Role::Patched, patched, &loaded, options)?);
        }
        let mut recorded = None;
        if let Some((entrant, exact, why)) = recorded_kernel(options, &loaded, kernel) {
            let one = contestant(Role::Recorded, &entrant, &loaded, options)?;
            recorded = Some(RecordedModel { spec: one.implementation.name().to_owned(), exact, why });
            contestants.push(one);
        }
        let setup = Setup {
            topology: topology::draw::summary(&loaded.topology),
            topology_source: topology_source(source, &loaded),
            baseline: options.baseline.name(),
            patched: options.patched.iter().map(Entrant::name).collect(),
            recorded,
            facts: 0,
            hz: config.hz,
            hz_source,
            scan_cost_ns: options.scan_cost_ns,
            ignore_probes: options.ignore_probes,
            filters: Vec::new(),
            affinity: None,
            recent_miss: options.recent_miss,
            schedstat: options.schedstat.clone(),
        };
        let mut notes = Vec::new();
        if told.is_none() && kernel.is_some() {
            notes.push("the recording does not name its kernel: taken from the topology snapshot".to_owned());
        }
        if loaded.form.is_guess() {
            notes.extend(loaded.notes.first().cloned());
        } else if let Some(lacks) = loaded.form.lacks() {
            notes.push(format!("the topology: {lacks}"));
        }
        notes.extend(energy(&loaded));
        let mut machine = Machine::new(topology, config);
        if let Some(side) = &options.affinity {
            stated::lay(side, &mut machine)?;
        }
        source.first_events.iter().for_each(|event| machine.prime(event));
        let kernel = kernel.map(str::to_owned);
        let assumed = if loaded.snapshot.features.is_empty() { Inputs::FEATURES } else { Inputs::empty() };
        Ok(Self { machine, contestants, kernel, assumed, setup, notes })
    }
}

/// Where CPUs differ in capacity the kernel may place by energy, which no model does.
fn energy(loaded: &Loaded) -> Option<String> {
    let what = "energy-aware placement (find_energy_efficient_cpu()) is not modelled";
    let when = match loaded.snapshot.energy_aware {
        _ if !loaded.topology.asym_cpucapacity() => return None,
        Some(false) => return None,
        Some(true) => "capacities differ and there is an energy model: the kernel uses it unless overutilized",
        None => "capacities differ, and whether there is an energy model is not told",
    };
    Some(format!("{what}; {when}"))
}

fn load(source: &Source, options: &Options, kernel: Option<&str>) -> Result<Loaded, ReplayError> {
    let release = kernel.and_then(topology::Release::parse);
    let cpus = source.reader().meta().cpus as usize;
    let from = options
        .topology
        .clone()
        .or_else(|| TopologySource::beside(source.path()))
        .unwrap_or_else(|| TopologySource::Guess(cpus.max(source.cpus)));
    Ok(topology::load_for(&from, release)?)
}

fn topology_source(source: &Source, loaded: &Loaded) -> String {
    match &loaded.source {
        TopologySource::Guess(_) => "guessed from the number of CPUs".to_owned(),
        TopologySource::Path(path) if TopologySource::beside(source.path()).as_ref() == Some(&loaded.source) => {
            let folder = path.parent().map(|folder| folder.join("")).unwrap_or_default().display().to_string();
            let origin = loaded.origin();
            format!("from {} beside the recording", origin.strip_prefix(&folder).unwrap_or(&origin))
        }
        _ => format!("from {}", loaded.origin()),
    }
}

/// A recording's CPUs must be those of the topology: at least its online ones, at most its possible ones.
fn check_machine(source: &Source, loaded: &Loaded) -> Result<(), ReplayError> {
    let cpus = source.reader().meta().cpus;
    let highest = source.cpus.saturating_sub(1);
    let topology = &loaded.topology;
    let fits = topology.online().weight() <= cpus && cpus as usize <= topology.nr_cpu_ids();
    if (cpus == 0 || fits) && highest < topology.nr_cpu_ids() {
        return Ok(());
    }
    let expected = if highest < topology.nr_cpu_ids() {
        format!("{cpus} CPUs")
    } else {
        format!("{cpus} CPUs (it has events of CPU {highest})")
    };
    Err(ReplayError::OtherMachine {
        topology: loaded.source.to_string(),
        found: format!("{} CPUs", topology.online().weight()),
        file: source.path().display().to_string(),
        expected,
    })
}

fn config(source: &Source, options: &Options, loaded: &Loaded, kernel: Option<&str>) -> (MachineConfig, String) {
    let (hz, hz_source) = match (options.hz, loaded.snapshot.hz) {
        (Some(hz), _) => (hz, "as given"),
        (None, Some(hz)) => (hz, "from the topology snapshot"),
        (None, None) => (250, "assumed"),
    };
    let default = MachineConfig::default();
    let max_idle = loaded.snapshot.max_idle_balance_cost_ns.iter().copied().collect::<Option<Vec<u64>>>();
    let config = MachineConfig {
        hz,
        release: kernel.and_then(|kernel| kernel.parse().ok()).unwrap_or(default.release),
        ignore_probes: options.ignore_probes,
        assumed_sync: options.assume_sync,
        has_sis_in: source.has_sis_in,
        has_migrate: source.has_migrate,
        emulated: loaded.snapshot.emulated,
        max_idle_balance_cost_ns: max_idle.unwrap_or_default(),
        ..default
    };
    (config, hz_source.to_owned())
}

/// What stands for the recorded kernel, whether it is that very release, and why.
fn recorded_kernel(options: &Options, loaded: &Loaded, kernel: Option<&str>) -> Option<(Entrant, bool, String)> {
    if let Some(given) = &options.recorded {
        let kernel = kernel.map_or_else(|| "unknown kernel".to_owned(), |kernel| format!("kernel {kernel}"));
        return Some((given.clone(), true, format!("{kernel}: {} stands for it, as given", given.name())));
    }
    let model = model_of(version(loaded, kernel?))?;
    Some((model.spec.into(), model.exact, model.why))
}

fn contestant(role: Role, entrant: &Entrant, loaded: &Loaded, options: &Options) -> Result<Contestant, ReplayError> {
    let recorded = (role == Role::Recorded).then_some(&loaded.snapshot);
    let implementation = entrant.open(&loaded.topology, options.scan_cost_ns, recorded)?;
    Ok(Contestant { role, implementation })
}

/// What tells most of the recorded kernel: the snapshot's /proc/version, if it is of the kernel that the trace names. (A
/// distribution's `uname -r` hides the stable version that its package has.)
fn version<'a>(loaded: &'a Loaded, kernel: &'a str) -> &'a str {
    match (&loaded.snapshot.kernel_version, &loaded.snapshot.kernel_release) {
        (Some(version), Some(release)) if release == kernel => version,
        _ => kernel,
    }
}
