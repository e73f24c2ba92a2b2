// SPDX-License-Identifier: GPL-2.0-or-later
//! From where a user says the topology is, to a topology and what was read, derived and assumed on the way.

use std::path::{Path, PathBuf};

use super::build::{BuildError, build};
use super::files::Files;
use super::hardware::Hardware;
use super::listed;
use super::release::Release;
use super::shorthand::{self, ShorthandError};
use super::snapshot::{DomainSource, Snapshot};
use super::{Topology, TopologyError, guess::guess, sysfs};
use crate::cpumask::MAX_CPUS;

/// Longest archive that is read, bytes.
const MAX_ARCHIVE: u64 = 256 << 20;

/// Where a topology comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologySource {
    /// The machine that this runs on: /sys and /proc.
    Live,
    /// A directory with `sys` in it, or a tar archive of one.
    Path(PathBuf),
    /// A machine in a word, see [`super::shorthand`].
    Shorthand(String),
    /// A guess from the number of CPUs.
    Guess(usize),
}

impl TopologySource {
    /// What a user wrote: `live`, `/` or `/sys` for this machine, an existing path, else a shorthand; anything else is
    /// taken for a path, so that the error names it.
    pub fn parse(text: &str) -> Self {
        match text {
            "live" | "/" | "/sys" | "/sys/" => Self::Live,
            _ if Path::new(text).exists() || !shorthand::looks_like(text) => Self::Path(text.into()),
            _ => Self::Shorthand(text.to_owned()),
        }
    }

    /// The description that lies beside a trace: `topology.tar.gz`, `topology.tar.bz2`, `topology.tar` or a directory
    /// `topology`.
    pub fn beside(trace: &Path) -> Option<Self> {
        let folder = trace.parent()?;
        let names = ["topology.tar.gz", "topology.tgz", "topology.tar.bz2", "topology.tar", "topology"];
        names.into_iter().map(|name| folder.join(name)).find(|path| path.exists()).map(Self::Path)
    }
}

impl std::fmt::Display for TopologySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Live => f.write_str("this machine"),
            Self::Path(path) => path.display().fmt(f),
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
    #[error("{file}: cannot be read ({reason}); expected a directory with sys in it or a tar archive of one")]
    Read {
        /// Its path.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// An archive breaks off or is not one.
    #[error(
        "{file}: not a whole tar archive ({reason}); make it anew with: tar czf topology.tar.gz /sys/devices/system/cpu …"
    )]
    Archive {
        /// Its path.
        file: String,
        /// The reader's reason.
        reason: String,
    },
    /// More than any machine has.
    #[error("{file}: more than {limit} {what}; expected a copy of /sys/devices/system and some files of /proc")]
    TooLarge {
        /// The archive or directory.
        file: String,
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Nothing describes CPUs.
    #[error("{file}: no online CPU is described; expected sys/devices/system/cpu with cpu0 or a list such as online")]
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
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Parts that make no topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
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
        TopologySource::Path(path) => from_files(source, read(path)?, recorded),
        TopologySource::Shorthand(text) => {
            let hardware = shorthand::parse(text)?;
            from_hardware(source, hardware, Snapshot::default(), recorded, Vec::new())
        }
        TopologySource::Guess(nr) if (1..=MAX_CPUS).contains(nr) => {
            let (hardware, note) = guess(*nr);
            from_hardware(source, hardware, Snapshot::default(), recorded, vec![note])
        }
        TopologySource::Guess(nr) => Err(LoadError::Count { found: *nr }),
    }
}

fn read(path: &Path) -> Result<Files, LoadError> {
    let file = path.display().to_string();
    let broken = |error: std::io::Error| LoadError::Read { file: file.clone(), reason: error.to_string() };
    let meta = std::fs::metadata(path).map_err(broken)?;
    if meta.is_dir() {
        return Files::from_dir(path);
    }
    if meta.len() > MAX_ARCHIVE {
        return Err(LoadError::TooLarge { file, what: "bytes", limit: MAX_ARCHIVE });
    }
    Files::from_archive(&file, &std::fs::read(path).map_err(broken)?)
}

/// The topology that an archive's bytes describe.
///
/// # Errors
/// See [`LoadError`].
pub fn from_archive(origin: &str, bytes: &[u8], recorded: Option<Release>) -> Result<Loaded, LoadError> {
    from_files(&TopologySource::Path(origin.into()), Files::from_archive(origin, bytes)?, recorded)
}

fn from_files(source: &TopologySource, files: Files, recorded: Option<Release>) -> Result<Loaded, LoadError> {
    if files.has_no_cpus() {
        return Err(LoadError::NoCpus { file: files.origin });
    }
    let snapshot = Snapshot::read(&files);
    let release = snapshot.release().or(recorded).unwrap_or(Release::DEFAULT);
    let (hardware, notes) = sysfs::hardware(&files, release)?;
    from_hardware(source, hardware, snapshot, recorded, notes)
}

fn from_hardware(
    source: &TopologySource,
    mut hardware: Hardware,
    snapshot: Snapshot,
    recorded: Option<Release>,
    mut notes: Vec<String>,
) -> Result<Loaded, LoadError> {
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
    let mut parts = build(&hardware, release)?;
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
    let topology = Topology::new(parts)?;
    Ok(Loaded { source: source.clone(), topology, hardware, release, snapshot, notes })
}
