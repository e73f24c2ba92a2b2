// SPDX-License-Identifier: GPL-2.0-or-later
//! From where a user says the topology is, to a topology and what was read, derived and assumed on the way.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::{BuildError, build};
use super::files::Files;
use super::form::Form;
use super::hardware::Hardware;
use super::lscpu_json::{self, Json};
use super::masks::excerpt;
use super::release::Release;
use super::shorthand::{self, ShorthandError};
use super::snapshot::{DomainSource, Snapshot};
use super::unpack::{self, Content};
use super::{Topology, TopologyError, guess::guess};
use super::{hwloc, hwloc_hw, listed, lscpu, summary, sysfs, table};
use crate::cpumask::{Cpumask, MAX_CPUS};
use crate::units::Cpu;

/// Longest file that is read, bytes.
const MAX_ARCHIVE: u64 = 256 << 20;
/// What a description beside a trace may be called, the one that tells most first.
const BESIDE: [&str; 10] = [
    "topology.tar.gz",
    "topology.tgz",
    "topology.tar.bz2",
    "topology.tar.xz",
    "topology.tar.zst",
    "topology.tar",
    "topology",
    "topology.xml",
    "topology.json",
    "topology.txt",
];

/// Where a topology comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologySource {
    /// The machine that this runs on: /sys and /proc.
    Live,
    /// A directory with `sys` in it, a tar archive of one, what lscpu prints, or hwloc's XML.
    Path(PathBuf),
    /// Standard input; the same but for the directory.
    Stdin,
    /// What was read of it.
    Bytes(Arc<[u8]>),
    /// A machine in a word, see [`super::shorthand`].
    Shorthand(String),
    /// A guess from the number of CPUs.
    Guess(usize),
}

impl TopologySource {
    /// What a user wrote: `live`, `/` or `/sys` for this machine, `-` for standard input, an existing path, else a
    /// shorthand; anything else is taken for a path, so that the error names it.
    pub fn parse(text: &str) -> Self {
        match text {
            "live" | "/" | "/sys" | "/sys/" => Self::Live,
            "-" => Self::Stdin,
            _ if Path::new(text).exists() || !shorthand::looks_like(text) => Self::Path(text.into()),
            _ => Self::Shorthand(text.to_owned()),
        }
    }

    /// The description that lies beside a trace: `topology.tar.gz` (or another packing), a directory `topology`,
    /// `topology.xml`, `topology.json` or `topology.txt`.
    pub fn beside(trace: &Path) -> Option<Self> {
        // Nothing lies beside standard input.
        let folder = trace.parent().filter(|_| trace != Path::new("-"))?;
        BESIDE.into_iter().map(|name| folder.join(name)).find(|path| path.exists()).map(Self::Path)
    }
}

impl TopologySource {
    /// Standard input can be read once only: this reads it, so that the source can be loaded again and again.
    ///
    /// # Errors
    /// If it cannot be read or is too long.
    pub fn once(self) -> Result<Self, LoadError> {
        match self {
            Self::Stdin => read_all("standard input", std::io::stdin().lock()).map(|bytes| Self::Bytes(bytes.into())),
            other => Ok(other),
        }
    }
}

impl std::fmt::Display for TopologySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Live => f.write_str("this machine"),
            Self::Path(path) => path.display().fmt(f),
            Self::Stdin | Self::Bytes(_) => f.write_str("standard input"),
            Self::Shorthand(text) => f.write_str(text),
            Self::Guess(nr) => write!(f, "a guess for {nr} CPUs"),
        }
    }
}

/// A topology and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Where it came from.
    pub source: TopologySource,
    /// What form the description has.
    pub form: Form,
    /// The sched domains.
    pub topology: Topology,
    /// What they were derived from.
    pub hardware: Hardware,
    /// The release by whose rules they were derived.
    pub release: Release,
    /// What else the description told.
    pub snapshot: Snapshot,
    /// What was read, derived and assumed, in full sentences.
    pub notes: Vec<String>,
}

impl Loaded {
    /// Where it came from; with its form, unless that is a copy of /sys or said already.
    pub fn origin(&self) -> String {
        match self.form {
            Form::LscpuTable | Form::LscpuSummary | Form::Hwloc => format!("{} ({})", self.source, self.form),
            Form::Sysfs | Form::Shorthand | Form::Guess => self.source.to_string(),
        }
    }

    /// Where the domains derived from the hardware alone differ from those the kernel lists, in full sentences. Empty
    /// if they agree or nothing is listed.
    pub fn differences(&self) -> Vec<String> {
        build(&self.hardware, self.release)
            .map_or_else(|error| vec![error.to_string()], |parts| listed::differences(&parts, &self.snapshot))
    }
}

/// Why no topology could be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or directory cannot be read.
    #[error(
        "{file}: cannot be read ({reason}); expected a directory with sys in it, a tar archive of one, what lscpu or lstopo \
         --of xml prints, or a shape such as 2x20x2"
    )]
    Read {
        /// Its path.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// An archive or a text breaks off or is broken.
    #[error("{file}: not a {expected} ({reason}); it may be cut: copy or make it anew")]
    Archive {
        /// Its path.
        file: String,
        /// What it should be.
        expected: &'static str,
        /// The reader's reason.
        reason: String,
    },
    /// More than any machine has.
    #[error("{file}: more than {limit} {what}; expected the description of a machine of at most {MAX_CPUS} CPUs")]
    TooLarge {
        /// The archive or directory.
        file: String,
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Nothing describes CPUs.
    #[error(
        "{file}: no online CPU is described; expected sys/devices/system/cpu with cpu0 or a list such as online, or what \
         lscpu or lstopo --of xml prints"
    )]
    NoCpus {
        /// The archive or directory.
        file: String,
    },
    /// A file that makes no sense.
    #[error("{file}: found {found}, expected {expected}")]
    File {
        /// Archive and file.
        file: String,
        /// Its content.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A count of CPUs that no machine has.
    #[error("for {found} CPUs: expected 1 to {MAX_CPUS}")]
    Count {
        /// The count.
        found: usize,
    },
    /// No shorthand.
    #[error(transparent)]
    Shorthand(#[from] ShorthandError),
    /// Facts that make no domains.
    #[error("{file}: {error}; a kernel builds no sched domains of this: is the description whole?")]
    Build {
        /// The description.
        file: String,
        /// What is wrong with it.
        error: BuildError,
    },
    /// Parts that make no topology.
    #[error("{file}: {error}")]
    Topology {
        /// The description.
        file: String,
        /// What is wrong with it.
        error: TopologyError,
    },
}

/// The topology of `source`, built as its own kernel builds it; where the kernel is not told, as 6.1 does.
///
/// # Errors
/// See [`LoadError`].
pub fn load(source: &TopologySource) -> Result<Loaded, LoadError> {
    load_for(source, None)
}

/// The same; `recorded` is the kernel that a trace tells, taken where the description tells none.
///
/// # Errors
/// See [`LoadError`].
pub fn load_for(source: &TopologySource, recorded: Option<Release>) -> Result<Loaded, LoadError> {
    match source {
        TopologySource::Live => from_files(source, Files::from_dir(Path::new("/"))?, recorded),
        TopologySource::Path(path) if path.is_dir() => from_files(source, Files::from_dir(path)?, recorded),
        TopologySource::Path(path) => {
            let file = path.display().to_string();
            let broken = |error: std::io::Error| LoadError::Read { file: file.clone(), reason: error.to_string() };
            let bytes = read_all(&file, std::fs::File::open(path).map_err(broken)?)?;
            from_source(source, &bytes, recorded)
        }
        TopologySource::Stdin => load_for(&source.clone().once()?, recorded),
        TopologySource::Bytes(bytes) => from_source(source, bytes, recorded),
        TopologySource::Shorthand(text) => {
            let facts = Facts::new(Form::Shorthand, shorthand::parse(text)?, Vec::new());
            from_facts(source, facts, recorded)
        }
        TopologySource::Guess(nr) if (1..=MAX_CPUS).contains(nr) => {
            let (hardware, note) = guess(*nr);
            from_facts(source, Facts::new(Form::Guess, hardware, vec![note]), recorded)
        }
        TopologySource::Guess(nr) => Err(LoadError::Count { found: *nr }),
    }
}

fn read_all(file: &str, reader: impl Read) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_ARCHIVE + 1).read_to_end(&mut bytes);
    read.map_err(|error| LoadError::Read { file: file.to_owned(), reason: error.to_string() })?;
    if bytes.len() as u64 > MAX_ARCHIVE {
        return Err(LoadError::TooLarge { file: file.to_owned(), what: "bytes", limit: MAX_ARCHIVE });
    }
    Ok(bytes)
}

/// The topology that a file's bytes describe, whatever its form; `origin` is its name in errors.
///
/// # Errors
/// See [`LoadError`].
pub fn from_bytes(origin: &str, bytes: &[u8], recorded: Option<Release>) -> Result<Loaded, LoadError> {
    from_source(&TopologySource::Path(origin.into()), bytes, recorded)
}

fn from_source(source: &TopologySource, bytes: &[u8], recorded: Option<Release>) -> Result<Loaded, LoadError> {
    let origin = source.to_string();
    match unpack::content(&origin, bytes)? {
        Content::Files(files) => from_files(source, files, recorded),
        Content::Text(text) => {
            from_facts(source, from_text(&origin, text.trim_start_matches('\u{feff}'), recorded)?, recorded)
        }
    }
}

/// What is said of last-level caches that span nodes; `None` if there are none.
fn cut_caches(hw: &Hardware) -> Option<String> {
    let node = |cpu: Cpu| hw.node[cpu.index()];
    let spans = |cpu: &Cpu| (hw.llc[cpu.index()] & hw.online).iter().any(|other| node(other) != node(*cpu));
    let cut: Cpumask = hw.online.iter().filter(spans).collect();
    (!cut.is_empty()).then(|| {
        format!("the last-level caches of CPUs {cut} span several nodes; the kernel ends an LLC domain at the node")
    })
}

/// What was read of a description, before domains are built.
struct Facts {
    form: Form,
    hardware: Hardware,
    snapshot: Snapshot,
    notes: Vec<String>,
}

impl Facts {
    fn new(form: Form, hardware: Hardware, notes: Vec<String>) -> Self {
        Self { form, hardware, snapshot: Snapshot::default(), notes }
    }
}

/// Facts from a text, told apart by how it begins.
fn from_text(origin: &str, text: &str, recorded: Option<Release>) -> Result<Facts, LoadError> {
    let table = |table: &lscpu::Table| {
        table::hardware(origin, table).map(|(hardware, notes)| Facts::new(Form::LscpuTable, hardware, notes))
    };
    let summary = |summary: &lscpu::Summary| {
        let (hardware, notes) = summary::hardware(origin, summary, recorded.unwrap_or(Release::DEFAULT))?;
        Ok(Facts::new(Form::LscpuSummary, hardware, notes))
    };
    match text.trim_start().bytes().next() {
        Some(b'<') => {
            let objects = hwloc::read(origin, text)?;
            let kernel = objects.info("OSRelease").map(str::to_owned);
            let snapshot = Snapshot { kernel_version: kernel.clone(), kernel_release: kernel, ..Snapshot::default() };
            let release = snapshot.release().or(recorded).unwrap_or(Release::DEFAULT);
            let (hardware, notes) = hwloc_hw::hardware(origin, &objects, release)?;
            Ok(Facts { form: Form::Hwloc, hardware, snapshot, notes })
        }
        Some(b'{') => match lscpu_json::read(origin, text)? {
            Json::Table(rows) => table(&rows),
            Json::Summary(fields) => summary(&fields),
        },
        None => Err(unpack::unreadable(origin, "an empty file".to_owned())),
        _ if lscpu::looks_parsable(text) => table(&lscpu::parsable(origin, text)?),
        _ if lscpu::looks_extended(text) => table(&lscpu::extended(origin, text)?),
        _ if lscpu::looks_summary(text) => summary(&lscpu::summary(origin, text)?),
        _ => Err(unpack::unreadable(origin, format!("a text that begins with {}", excerpt(text.trim_start())))),
    }
}

/// What a copy of /sys and /proc might have and has not, as a full sentence; `None` if it is whole.
fn lacks(files: &Files, snapshot: &Snapshot) -> Option<String> {
    let missing = [
        (snapshot.kernel_release.is_none(), "/proc/version (the kernel)"),
        (!files.has("proc/cpuinfo"), "/proc/cpuinfo (the architecture)"),
        (snapshot.features.is_empty(), "the scheduler's features in debugfs"),
        (snapshot.domain_source == DomainSource::Derived, "the kernel's list of sched domains in debugfs"),
    ];
    let missing: Vec<&str> = missing.into_iter().filter_map(|(lacks, what)| lacks.then_some(what)).collect();
    (!missing.is_empty()).then(|| format!("not in the description: {}", missing.join(", ")))
}

fn from_files(source: &TopologySource, files: Files, recorded: Option<Release>) -> Result<Loaded, LoadError> {
    if files.has_no_cpus() {
        return Err(LoadError::NoCpus { file: files.origin });
    }
    let snapshot = Snapshot::read(&files);
    let release = snapshot.release().or(recorded).unwrap_or(Release::DEFAULT);
    let (hardware, mut notes) = sysfs::hardware(&files, release)?;
    notes.extend(lacks(&files, &snapshot));
    from_facts(source, Facts { form: Form::Sysfs, hardware, snapshot, notes }, recorded)
}

fn from_facts(source: &TopologySource, facts: Facts, recorded: Option<Release>) -> Result<Loaded, LoadError> {
    let Facts { form, mut hardware, snapshot, mut notes } = facts;
    // The node's border cuts a cache that spans several.
    notes.extend(cut_caches(&hardware));
    notes.extend(form.lacks().map(str::to_owned));
    let (release, why) = match (snapshot.release(), recorded) {
        (Some(release), _) => (release, "the kernel described"),
        (None, Some(release)) => (release, "the kernel recorded"),
        (None, None) => (Release::DEFAULT, "assumed, no kernel is told"),
    };
    let left_out = listed::in_no_domain(&hardware, &snapshot);
    if !left_out.is_empty() {
        hardware.isolated = hardware.isolated | left_out;
        notes.push(format!("the kernel lists no sched domain for CPUs {left_out}: they are taken for isolated"));
    }
    let mut parts = build(&hardware, release).map_err(|error| LoadError::Build { file: source.to_string(), error })?;
    let differences = listed::overlay(&mut parts, &snapshot);
    notes.push(match snapshot.domain_source {
        DomainSource::Derived => {
            format!("sched domains are derived from the hardware by the rules of {release} ({why})")
        }
        listed => format!(
            "names, flags and imbalance_pct of the sched domains are the kernel's own (/{}), spans and imb_numa_nr are \
             derived from the hardware by the rules of {release}",
            listed.path().unwrap_or_default()
        ),
    });
    notes.extend(differences.into_iter().map(|text| format!("{text}; the kernel's list is taken")));
    let topology = Topology::new(parts).map_err(|error| LoadError::Topology { file: source.to_string(), error })?;
    Ok(Loaded { source: source.clone(), form, topology, hardware, release, snapshot, notes })
}
