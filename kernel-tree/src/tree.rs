// SPDX-License-Identifier: GPL-2.0-or-later
//! From a location to something that runs: read, cut out, build, keep.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::build::{self, Target};
use crate::config::Config;
use crate::error::TreeError;
use crate::extract::assemble::{self, Extract, Lines, Marks};
use crate::extract::instrument::Table;
use crate::extract::tables::Feature;
use crate::run::{Isolation, Runner};
use crate::source::{self, Location};

/// What to build, and how.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Where the tree is.
    pub location: Location,
    /// The configuration it is read by.
    pub config: Config,
    /// A header of the user's with stand-ins for what ours lack: its text.
    pub shim: Option<String>,
    /// Where builds are kept; `None`: [`default_cache`].
    pub cache: Option<PathBuf>,
}

/// What is known of a built tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The kernel's version by its Makefile.
    pub version: Option<String>,
    /// Scheduler features, in the order of their switches.
    pub features: Vec<Feature>,
    /// Functions taken from the tree, each with its file.
    pub functions: Vec<(String, String)>,
    /// State that it keeps beside what every release keeps: a patch's static variables, for instance.
    pub keeps: Vec<String>,
    /// Marks in the code: what the numbers of statements and functions stand for.
    pub table: Table,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What the compiler said.
    pub log: String,
}

/// A tree that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The tree, as it was named.
    pub name: String,
    /// The directory of the build in the cache.
    pub dir: PathBuf,
    /// What is known of it.
    pub meta: Meta,
    /// Whether the cache had it.
    pub was_cached: bool,
}

/// `$XDG_CACHE_HOME/sisdiff`, else `~/.cache/sisdiff`, else a folder among the temporary ones.
pub fn default_cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    set("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("sisdiff")
}

/// Builds what `plan` says, or finds it built already.
///
/// # Errors
/// See [`TreeError`].
pub fn build(plan: &Plan) -> Result<Built, TreeError> {
    let cache = plan.cache.clone().unwrap_or_else(default_cache);
    let files = source::load(&plan.location, &cache)?;
    let name = plan.location.path.display().to_string();
    if let Some(version) = files.version.as_deref().filter(|version| is_too_old(version)) {
        return Err(TreeError::TooOld { path: name, version: version.to_owned() });
    }
    let dir = cache.join("trees").join(key(plan, &files)?);
    if let Some(meta) = kept(&dir) {
        return Ok(Built { name, dir, meta, was_cached: true });
    }
    let parent = dir.parent().unwrap_or(&cache).to_owned();
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |source| TreeError::Io { path, source }
    };
    std::fs::create_dir_all(&parent).map_err(io(&parent))?;
    let fresh = tempfile::Builder::new().prefix("build-").tempdir_in(&parent).map_err(io(&parent))?;
    let (extract, log) = compile(plan, &name, &files, fresh.path())?;
    let Extract { features, functions, keeps, table, warnings, lines, .. } = extract;
    let text = serde_json::to_string(&lines).unwrap_or_default();
    std::fs::write(fresh.path().join(LINES), text).map_err(io(fresh.path()))?;
    let warnings = files.notes.into_iter().chain(warnings).collect();
    let meta = Meta { version: files.version, features, functions, keeps, table, warnings, log };
    let text = serde_json::to_string_pretty(&meta).unwrap_or_default();
    std::fs::write(fresh.path().join(META), text).map_err(io(fresh.path()))?;
    match std::fs::rename(fresh.path(), &dir) {
        Ok(()) => {
            // It is at its place now; nothing is left to remove.
            let _ = fresh.keep();
        }
        // Somebody else was faster.
        Err(_) if kept(&dir).is_some() => {}
        Err(source) => return Err(io(&dir)(source)),
    }
    Ok(Built { name, dir, meta, was_cached: false })
}

/// Whether a version is from before 4.9, where __update_idle_core() came.
fn is_too_old(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(u32::MAX));
    (parts.next().unwrap_or(u32::MAX), parts.next().unwrap_or(0)) < (4, 9)
}

/// Cuts out and compiles, with marks; where the compiler does not take the marked text but does take the plain one, that.
fn compile(plan: &Plan, name: &str, files: &source::Files, dir: &Path) -> Result<(Extract, String), TreeError> {
    let once = |marks| {
        let extract = assemble::extract(name, &files.texts, &plan.config, plan.shim.as_deref(), marks)?;
        build::write_sources(dir, &extract, plan.shim.as_deref())?;
        let (_, log) = build::compile(dir, name, Target::Object)?;
        Ok((extract, log))
    };
    match once(Marks::On) {
        Err(error @ (TreeError::Compile { .. } | TreeError::Unresolved { .. })) => {
            let Ok((mut extract, log)) = once(Marks::Off) else { return Err(error) };
            extract.warnings.push(format!("built without marks, so that lines of its code are not known: {error}"));
            Ok((extract, log))
        }
        other => other,
    }
}

/// Held while this process compiles into a place that all of its threads share.
static COMPILING: Mutex<()> = Mutex::new(());

/// Written last, so that a build with it is whole.
const META: &str = "meta.json";

/// The text of the functions.
const LINES: &str = "lines.json";

/// The spec that a build was last asked for by.
const SPEC: &str = "spec";

fn kept(dir: &Path) -> Option<Meta> {
    serde_json::from_str(&std::fs::read_to_string(dir.join(META)).ok()?).ok()
}

/// A digest of everything that goes into the build.
fn key(plan: &Plan, files: &source::Files) -> Result<String, TreeError> {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    add(env!("SISDIFF_TREE_SOURCES"));
    add(&build::recipe(&[Target::Object, Target::Helper, Target::Sanitized]));
    add(&build::compiler());
    add(&build::compiler_version()?);
    for (option, value) in plan.config.options() {
        add(option);
        add(value);
    }
    add(plan.shim.as_deref().unwrap_or_default());
    for (path, text) in &files.texts {
        add(path);
        add(text);
    }
    Ok(digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

impl Built {
    /// The text of the functions, where the build has it.
    pub fn lines(&self) -> Lines {
        let text = std::fs::read_to_string(self.dir.join(LINES));
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Notes by which spec it was asked for, for [`builds`]. What cannot be noted is only not listed.
    pub fn note_spec(&self, spec: &str) {
        let path = self.dir.join(SPEC);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(spec) {
            let _ = std::fs::write(path, spec);
        }
    }

    /// Starts it, each time with state of its own. What this isolation needs and the cache lacks is compiled first.
    ///
    /// # Errors
    /// It cannot be compiled, opened or started.
    pub fn start(&self, isolation: Isolation) -> Result<Runner, TreeError> {
        let target = isolation.target();
        let path = self.dir.join(target.file());
        // Workers start the same tree at the same time; the first compiles, the others find what it made.
        let turn = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.is_file() {
            build::compile(&self.dir, &self.name, target)?;
        }
        drop(turn);
        Runner::start(&path, isolation)
    }
}

/// A build in the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The spec that it was last asked for by.
    pub spec: String,
    /// The kernel's version.
    pub version: Option<String>,
    /// Where it is.
    pub dir: PathBuf,
}

/// The builds in `cache`, in order of their specs.
pub fn builds(cache: &Path) -> Vec<Listed> {
    let entries = std::fs::read_dir(cache.join("trees")).into_iter().flatten().flatten();
    let listed = |dir: PathBuf| {
        let spec = std::fs::read_to_string(dir.join(SPEC)).ok()?;
        Some(Listed { spec, version: kept(&dir)?.version, dir })
    };
    let mut found: Vec<Listed> = entries.filter_map(|entry| listed(entry.path())).collect();
    found.sort();
    found
}
