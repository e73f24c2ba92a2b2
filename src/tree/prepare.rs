// SPDX-License-Identifier: GPL-2.0-or-later
//! From a spec to trees that decide: built once, opened as often as implementations are wanted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sisdiff_tree::config::Config;
use sisdiff_tree::error::TreeError;
use sisdiff_tree::extract::assemble::Lines;
use sisdiff_tree::run::Isolation;
use sisdiff_tree::source::Location;
use sisdiff_tree::tree::{Built, Plan, build};

use super::Tree;
use super::coverage::Counts;
use super::exit::Exits;
use crate::spec::TreeSpec;
use crate::topology::Topology;

/// How trees are built and run.
#[derive(Debug, Clone, Default)]
pub struct TreeOptions {
    /// A kernel `.config` from which the options that matter are taken; `None`: the configuration of the golden vectors.
    pub config: Option<PathBuf>,
    /// A header with stand-ins for what ours lack.
    pub shim: Option<PathBuf>,
    /// Where builds are kept; `None`: the user's cache directory.
    pub cache: Option<PathBuf>,
    /// Where their code runs.
    pub isolation: Isolation,
    /// Count how often lines are reached: see [`Prepared::lcov`].
    pub coverage: bool,
}

/// Why a spec gives no tree.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The tree itself.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// A file that an option names.
    #[error("{option} {}: {source}", path.display())]
    File {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A switch that the tree does not have.
    #[error("{spec}: the tree has no feature {found:?}{hint}; it has {possible}")]
    Feature {
        /// The whole spec.
        spec: String,
        /// The feature.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// The names there are.
        possible: String,
    },
}

/// A tree that was built: what replays and fuzzers open.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(super) name: String,
    pub(super) built: Arc<Built>,
    pub(super) exits: Arc<Exits>,
    /// Switches that the spec sets.
    pub(super) features: Vec<(String, bool)>,
    /// The text of its functions, read when a walk is recorded.
    lines: Arc<OnceLock<Lines>>,
    flips_only_widen: Arc<OnceLock<bool>>,
    /// Options of the `.config` that the stand-ins leave off.
    left_off: Vec<String>,
    pub(super) isolation: Isolation,
    /// How often statements were reached by what was opened, where that is asked for.
    pub(super) coverage: Option<Arc<Counts>>,
}

impl Prepared {
    /// Reads, cuts out and builds the tree that `spec` names, unless the cache has it.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn new(spec: &TreeSpec, options: &TreeOptions) -> Result<Self, PrepareError> {
        let text = |option, path: &Option<PathBuf>| match path {
            None => Ok(None),
            Some(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(source) => Err(PrepareError::File { option, path: path.clone(), source }),
            },
        };
        let (config, left_off) = match text("--config", &options.config)? {
            None => Default::default(),
            Some(text) => Config::from_dot_config(&text),
        };
        let location = Location {
            path: expand(&spec.path),
            rev: spec.rev.clone(),
            patches: spec.patches.iter().map(|patch| expand(patch).to_string_lossy().into_owned()).collect(),
        };
        let shim = text("--shim", &options.shim)?;
        let built = build(&Plan { location, config, shim, cache: options.cache.clone() })?;
        for (name, _) in &spec.features {
            if !built.meta.features.iter().any(|feature| feature.name == *name) {
                return Err(unknown_feature(spec, name, &built));
            }
        }
        built.note_spec(&spec.to_string());
        Ok(Self {
            features: spec.features.clone(),
            left_off,
            coverage: options.coverage.then(Arc::default),
            ..Self::of(&spec.to_string(), built, options.isolation)
        })
    }

    /// A tree that was built by other means, under `name`.
    pub fn of(name: &str, built: Built, isolation: Isolation) -> Self {
        let exits = Arc::new(Exits::new(&built.meta.table));
        Self {
            name: name.to_owned(),
            built: Arc::new(built),
            exits,
            features: Vec::new(),
            lines: Arc::default(),
            flips_only_widen: Arc::default(),
            left_off: Vec::new(),
            isolation,
            coverage: None,
        }
    }

    /// Its spec.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was built.
    pub fn built(&self) -> &Built {
        &self.built
    }

    /// Lines reached by every implementation that was opened and dropped since, as an lcov tracefile; empty where that was
    /// not asked for.
    pub fn lcov(&self) -> String {
        let path = Path::new(&self.built.name);
        let root = if path.is_dir() { format!("{}/", path.display()) } else { String::new() };
        self.coverage.as_ref().map_or_else(String::new, |counts| counts.lcov(&root, &self.built.meta.table))
    }

    /// Whether wakee flips are looked at by wake_wide() alone, beside who counts them.
    pub(super) fn flips_only_widen(&self) -> bool {
        *self.flips_only_widen.get_or_init(|| {
            let lines = self.lines.get_or_init(|| self.built.lines());
            let table = &self.built.meta.table;
            let function = |path: &str, line: u32| {
                let before = table.statements.iter().filter(|found| found.path == path && found.line <= line);
                let found = before.max_by_key(|found| found.line)?;
                table.functions.get(found.function as usize).map(String::as_str)
            };
            let mut places = lines.iter().flat_map(|(path, of_file)| {
                let of_flips = |text: &str| text.contains("wakee_flip") || text.contains("last_wakee");
                let named = of_file.iter().filter(move |(_, text)| of_flips(text));
                named.map(move |(line, _)| function(path, *line))
            });
            places.all(|function| matches!(function, Some("wake_wide" | "record_wakee")))
        })
    }

    /// A place in its source with what stands there: `fair.c:6970  return recent_used_cpu;`.
    pub(super) fn place(&self, path: &str, line: u32) -> String {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lines = self.lines.get_or_init(|| self.built.lines());
        match lines.get(path).and_then(|of_file| of_file.get(&line)) {
            Some(text) => format!("{name}:{line}  {text}"),
            None => format!("{name}:{line}"),
        }
    }

    /// An implementation with state of its own.
    ///
    /// # Errors
    /// The build cannot be opened or started.
    pub fn open(&self, topology: &Topology) -> Result<Tree, TreeError> {
        Tree::new(self, topology)
    }

    /// What `sisdiff tree check` says: what was found, what the user should know, where the build is.
    pub fn describe(&self) -> String {
        let meta = &self.built.meta;
        let of_fair = meta.functions.iter().filter(|(_, path)| path == "kernel/sched/fair.c").count();
        let mut lines =
            vec![format!("{}: Linux {}", self.name, meta.version.as_deref().unwrap_or("of unknown version"))];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<10}{text}"));
        line("functions", format!("{} ({of_fair} of fair.c)", meta.functions.len()));
        line("marks", format!("{} statements", meta.table.statements.len()));
        let switches =
            meta.features.iter().map(|feature| format!("{}{}", if feature.default { "" } else { "NO_" }, feature.name));
        line("features", wrap(&switches.collect::<Vec<_>>()));
        if !meta.keeps.is_empty() {
            line("keeps", format!("{} (state that no release has)", meta.keeps.join(", ")));
        }
        for option in &self.left_off {
            line("config", format!("{option} is on there and left off here: the stand-ins do not cover it"));
        }
        for warning in &meta.warnings {
            line("warning", warning.clone());
        }
        let complaints = meta.log.lines().filter(|line| line.contains(" warning: ")).count();
        if complaints > 0 {
            line("compiler", format!("{complaints} warnings, see meta.json"));
        }
        line(
            "build",
            format!("{}{}", self.built.dir.display(), if self.built.was_cached { " (found there)" } else { "" }),
        );
        lines.join("\n") + "\n"
    }
}

/// Words in lines of at most 100 characters, indented like the first.
fn wrap(words: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in words {
        if width > 0 && width + word.len() > 100 {
            text += "\n            ";
            width = 0;
        } else if width > 0 {
            text.push(' ');
        }
        text += word;
        width += word.len() + 1;
    }
    text
}

/// `~` and `~/…` as the user's home.
fn expand(path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    match path.strip_prefix('~') {
        Some("") => home().unwrap_or_else(|| PathBuf::from(path)),
        Some(rest) if rest.starts_with('/') => home().map_or_else(|| PathBuf::from(path), |home| home.join(&rest[1..])),
        _ => Path::new(path).to_owned(),
    }
}

fn unknown_feature(spec: &TreeSpec, name: &str, built: &Built) -> PrepareError {
    let names: Vec<&str> = built.meta.features.iter().map(|feature| feature.name.as_str()).collect();
    let distance = |known: &&&str| strsim::damerau_levenshtein(name, known);
    let near = names.iter().min_by_key(distance).filter(|known| distance(known) <= 1 + known.len() / 3);
    PrepareError::Feature {
        spec: spec.to_string(),
        found: name.to_owned(),
        hint: near.map_or_else(String::new, |known| format!(" (did you mean {known:?}?)")),
        possible: names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_expanded_at_the_start_only() {
        let home = std::env::var("HOME").unwrap_or_default();
        if !home.is_empty() {
            assert_eq!(expand("~/linux"), Path::new(&home).join("linux"));
        }
        assert_eq!(expand("a/~/b"), Path::new("a/~/b"));
        assert_eq!(expand("~other/linux"), Path::new("~other/linux"));
    }

    #[test]
    fn long_lists_wrap() {
        let words: Vec<String> = (0..30).map(|at| format!("FEATURE_{at:02}")).collect();
        assert!(wrap(&words).lines().all(|line| line.len() < 115) && wrap(&words).lines().count() == 4);
    }
}
