// SPDX-License-Identifier: GPL-2.0-or-later
//! A gate's configuration opened: which recordings there are, how each is replayed with each pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::affinity;
use crate::cli::bounded;
use crate::cli::gate_store::Store;
use crate::cli::output::Trouble as CliTrouble;
use crate::cli::trees::{self, IsolationArg, TreeArgs};
use crate::gate::config::{OPTIONS, is_meant};
use crate::gate::{Config, Pair, Trouble};
use crate::replay::setup::SideFile;
use crate::replay::{Entrant, Options};
use crate::spec::{Spec, TreeSpec};
use crate::topology::TopologySource;

/// A configuration that was read.
pub struct Loaded {
    /// Its file, as it was named.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What it says.
    pub config: Config,
    /// The snapshots.
    pub store: Store,
}

/// A recording of the gate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trace {
    /// Its path from the folder of the configuration.
    pub name: String,
    /// The same from here.
    pub path: PathBuf,
}

/// One recording with one pair.
pub struct Product<'a> {
    /// The recording.
    pub trace: &'a Trace,
    /// The pair.
    pub pair: &'a Pair,
    /// How it is replayed.
    pub options: Options,
}

/// Which of them are asked for.
pub struct Only {
    set: Option<GlobSet>,
}

impl Only {
    /// Those that match one of `globs`; all without any.
    ///
    /// # Errors
    /// Patterns that are too large together.
    pub fn new(globs: &[Glob]) -> Result<Self, CliTrouble> {
        let mut set = GlobSetBuilder::new();
        globs.iter().for_each(|glob| {
            set.add(glob.clone());
        });
        let set = set.build().map_err(|error| CliTrouble::Usage(format!("--only: {error}")))?;
        Ok(Self { set: (!globs.is_empty()).then_some(set) })
    }

    /// Whether not all are asked for.
    pub fn is_part(&self) -> bool {
        self.set.is_some()
    }

    /// Whether that one is.
    pub fn has(&self, trace: &str, pair: &str) -> bool {
        self.set.as_ref().is_none_or(|set| set.is_match(trace) || set.is_match(pair))
    }
}

impl Loaded {
    /// Reads `path`.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn new(path: &Path) -> Result<Self, CliTrouble> {
        let name = path.display().to_string();
        let text = bounded::read_text(path, bounded::SETTINGS).map_err(|error| {
            let next = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "; write a first one with `sisdiff gate init FILE…`, or name it with --config"
                }
                _ => "",
            };
            CliTrouble::Usage(format!("{name}: cannot be read ({error}){next}"))
        })?;
        let config = Config::parse(&text).map_err(|error| CliTrouble::Usage(format!("{name}: {error}")))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let store = Store::new(folder.join(&config.snapshots));
        Ok(Self { name, folder, config, store })
    }

    /// What a command line needs to name this configuration again.
    pub fn flag(&self) -> String {
        if self.name == "gate.toml" {
            return String::new();
        }
        format!(" --config {}", crate::report::shell::quoted(&self.name))
    }

    /// The recordings that there are, by name, and what is wrong with the patterns.
    pub fn traces(&self) -> (Vec<Trace>, Vec<Trouble>) {
        let (mut traces, mut troubles) = (BTreeSet::new(), Vec::new());
        for pattern in &self.config.traces {
            let (found, unread) = match self.expand(pattern) {
                Ok(expanded) => expanded,
                Err(reason) => (Vec::new(), vec![reason]),
            };
            if found.is_empty() && unread.is_empty() {
                troubles.push(self.nothing(pattern));
            }
            traces.extend(found);
            let config = &self.name;
            troubles.extend(unread.iter().map(|why| Trouble::Other(format!("{config}: traces: {pattern:?}: {why}"))));
        }
        (traces.into_iter().collect(), troubles)
    }

    /// Refuses patterns that match nothing, where it is known what there is.
    ///
    /// # Errors
    /// [`Self::has_none_of`].
    pub fn has_some_of(&self, only: &Only) -> Result<(), CliTrouble> {
        let (traces, troubles) = self.traces();
        let has = |trace: &Trace| self.config.pairs.iter().any(|pair| only.has(&trace.name, &pair.name));
        if troubles.is_empty() && !traces.iter().any(has) { Err(self.has_none_of()) } else { Ok(()) }
    }

    /// What patterns that match nothing are told.
    pub fn has_none_of(&self) -> CliTrouble {
        CliTrouble::Usage(format!("--only: matches no recording and no pair of the gate; see {}", self.name))
    }

    fn nothing(&self, pattern: &str) -> Trouble {
        let config = self.name.clone();
        if pattern.contains(['*', '?', '[']) {
            return Trouble::EmptyGlob { config, pattern: pattern.to_owned() };
        }
        let trace = self.folder.join(pattern).display().to_string();
        Trouble::MissingTrace {
            trace,
            why: format!("{config} names it"),
            otherwise: format!("take it out of {config}"),
        }
    }

    /// Why the recording that `snapshot` is of, and that the patterns mean, is none of those that were found: it may be
    /// there all the same.
    pub fn unfound(&self, trace: &str, snapshot: &str) -> Trouble {
        let path = self.folder.join(trace);
        let name = path.display();
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Trouble::MissingTrace {
                trace: name.to_string(),
                why: format!("{snapshot} is of it"),
                otherwise: "remove its snapshot with `sisdiff gate accept --orphans`".to_owned(),
            },
            Err(error) => Trouble::Other(format!("{name}: cannot be looked at ({error}), and {snapshot} is of it")),
            Ok(there) if !there.is_file() => {
                Trouble::Other(format!("{name}: is no file, and {snapshot} is of it; put the recording back"))
            }
            Ok(_) => Trouble::Other(format!(
                "{name}: is there, but looking for traces in {} does not come by it, and {snapshot} is of it; name it there",
                self.name
            )),
        }
    }

    /// The files that `pattern` finds, and what could not be looked at on the way.
    fn expand(&self, pattern: &str) -> Result<(Vec<Trace>, Vec<String>), String> {
        let folder = self.folder.to_str().ok_or("the folder's name is no UTF-8")?;
        let base = if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let is_absolute = pattern.starts_with('/');
        let base = if is_absolute { String::new() } else { base };
        let whole = format!("{}{pattern}", glob::Pattern::escape(&base));
        let (mut traces, mut unread) = (Vec::new(), Vec::new());
        for found in glob::glob_with(&whole, OPTIONS).map_err(|error| error.msg.to_owned())? {
            let path = match found {
                Ok(path) => path,
                Err(error) => {
                    unread.push(format!("{}: cannot be looked at ({})", error.path().display(), error.error()));
                    continue;
                }
            };
            if !path.is_file() {
                continue;
            }
            let Some(text) = path.to_str() else {
                unread.push(format!("{}: the name is no UTF-8", path.display()));
                continue;
            };
            let name = text.strip_prefix(&base).unwrap_or(text).to_owned();
            traces.push(Trace { name, path });
        }
        Ok((traces, unread))
    }

    /// The pair of that name.
    pub fn pair(&self, name: &str) -> Option<&Pair> {
        self.config.pairs.iter().find(|pair| pair.name == name)
    }

    /// Whether the configuration means `trace`, be it there or not.
    pub fn means(&self, trace: &str) -> bool {
        is_meant(&self.config.traces, trace)
    }

    /// Each of `traces` with each pair that is `wanted`. Kernel trees are built now.
    ///
    /// # Errors
    /// What keeps all of them from being replayed: a tree that cannot be built, a side file that cannot be read.
    pub fn products<'a>(
        &'a self,
        traces: &'a [Trace],
        wanted: impl Fn(&Trace, &Pair) -> bool,
    ) -> Result<Vec<Product<'a>>, CliTrouble> {
        let affinity = self.config.replay.affinity.as_ref().map(|file| self.side_file(file)).transpose()?;
        let mut entrants = BTreeMap::new();
        let mut products = Vec::new();
        for trace in traces {
            for pair in self.config.pairs.iter().filter(|pair| wanted(trace, pair)) {
                let mut open = |spec: &Spec| self.entrant(spec, &mut entrants);
                let (baseline, patched) = (open(&pair.baseline)?, open(&pair.patched)?);
                let recorded = pair.recorded.as_ref().map(open).transpose()?;
                let replay = &self.config.replay;
                let options = Options {
                    topology: self.topology(trace)?,
                    recorded,
                    ignore_probes: replay.ignore_probes,
                    assume_sync: replay.assume_sync,
                    hz: replay.hz,
                    scan_cost_ns: replay.scan_cost_ns,
                    affinity: affinity.clone(),
                    ..Options::new(baseline, vec![patched])
                };
                products.push(Product { trace, pair, options });
            }
        }
        Ok(products)
    }

    fn entrant(&self, spec: &Spec, known: &mut BTreeMap<String, Entrant>) -> Result<Entrant, CliTrouble> {
        let name = spec.to_string();
        if let Some(entrant) = known.get(&name) {
            return Ok(entrant.clone());
        }
        let spec = match spec {
            Spec::Model(_) => spec.clone(),
            Spec::Tree(tree) => Spec::Tree(TreeSpec {
                path: self.seen_from_here(&tree.path),
                patches: tree.patches.iter().map(|patch| self.seen_from_here(patch)).collect(),
                ..tree.clone()
            }),
        };
        let path = |file: &Option<String>| file.as_ref().map(|file| PathBuf::from(self.seen_from_here(file)));
        let trees = &self.config.trees;
        let how = TreeArgs {
            config: path(&trees.config),
            shim: path(&trees.shim),
            isolation: trees.own_process.then_some(IsolationArg::Process),
            ..TreeArgs::default()
        };
        let entrant = trees::entrant(spec, &how)?;
        known.insert(name, entrant.clone());
        Ok(entrant)
    }

    /// A path of the configuration as it can be opened from here.
    pub fn seen_from_here(&self, path: &str) -> String {
        if path.starts_with('~') { path.to_owned() } else { self.folder.join(path).to_string_lossy().into_owned() }
    }

    fn topology(&self, trace: &Trace) -> Result<Option<TopologySource>, CliTrouble> {
        let rule = self.config.topologies.iter().find(|rule| is_meant(&rule.traces, &trace.name));
        let Some(rule) = rule else { return Ok(None) };
        if rule.source == "-" {
            let what = "topology source \"-\": a gate reads no standard input; name a file";
            return Err(CliTrouble::Usage(format!("{}: {what}", self.name)));
        }
        let path = self.seen_from_here(&rule.source);
        let is_path = Path::new(&path).exists();
        Ok(Some(TopologySource::parse(if is_path { &path } else { &rule.source })))
    }

    fn side_file(&self, file: &str) -> Result<SideFile, CliTrouble> {
        let path = self.seen_from_here(file);
        let wrong = |why: String| CliTrouble::Usage(format!("{}: affinity {path}: {why}", self.name));
        let text = bounded::read_text(Path::new(&path), bounded::SETTINGS)
            .map_err(|error| wrong(format!("cannot be read ({error})")))?;
        let rules = affinity::Rules::parse(&text).map_err(|error| wrong(error.to_string()))?;
        Ok(SideFile { rules: Arc::new(rules), name: file.to_owned() })
    }
}
