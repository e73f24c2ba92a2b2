// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel trees on the command line: from specs to what replays and fuzzers open, and `sisdiff tree`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::cli::output::Trouble;
use crate::cli::sink::Sink;
use crate::oracle::{Maker, Models};
use crate::replay::Entrant;
use crate::spec::{Spec, TreeSpec};

/// Examples of `sisdiff tree`.
pub const TREE_EXAMPLES: &str = "Examples:
  sisdiff tree check ~/linux@v6.12+fix.patch
      what is cut out of the tree, what it keeps, what is missing
  sisdiff tree build /usr/src/linux-source-6.1.tar.xz
  sisdiff replay trace.dat --baseline tree:~/linux --patched tree:~/linux+fix.patch";

/// How kernel trees are built and run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Kernel trees (tree:PATH[@REV][+PATCH…][:FEATURE…])")]
pub struct TreeArgs {
    /// A kernel .config: the options that matter to the wakeup path are taken from it.
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// A C header with stand-ins for what the tree uses and neither it nor sisdiff defines.
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub shim: Option<PathBuf>,
    /// Where the tree's code runs. Default: in sisdiff's process, in `fuzz` and `repro` in its own.
    #[arg(long, hide_short_help = true, value_enum, value_name = "WHERE")]
    pub isolation: Option<IsolationArg>,
    /// Build with the compiler's address and undefined-behaviour checks, and run in a process of its own.
    #[arg(long, hide_short_help = true, conflicts_with = "isolation")]
    pub sanitize: bool,
    /// Write which lines of the trees were reached, in lcov's format.
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub coverage: Option<PathBuf>,
}

/// Where a tree's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IsolationArg {
    /// In sisdiff's process: fast; null pointers and endless loops are caught, stray writes are not.
    InProcess,
    /// In a process of its own, which can only hurt itself.
    Process,
}

impl TreeArgs {
    /// The flags as a shell takes them, by name.
    pub fn again(&self) -> Vec<(&'static str, Option<String>)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let isolation = self.isolation.and_then(|mode| mode.to_possible_value());
        vec![
            ("--config", path(&self.config)),
            ("--shim", path(&self.shim)),
            ("--isolation", isolation.map(|mode| mode.get_name().to_owned())),
        ]
    }
}

const CHECK_EXAMPLES: &str = "Examples:
  sisdiff tree check ~/linux@v6.12
  sisdiff tree check ~/linux@v6.12+mine.patch --shim extra.h";

const BUILD_EXAMPLES: &str = "Examples:
  sisdiff tree build ~/linux@v6.12 ~/linux@v6.12+mine.patch";

/// `sisdiff tree`.
#[derive(Debug, Subcommand)]
pub enum TreeCommand {
    /// Say what is cut out of kernel trees, what they keep, and what is missing.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(TreeList),
    /// Build kernel trees, so that the first replay with them starts at once.
    #[command(after_help = BUILD_EXAMPLES)]
    Build(TreeList),
}

/// The trees of a `sisdiff tree` command.
#[derive(Debug, Args)]
pub struct TreeList {
    /// Trees as in a spec, with or without tree: before them.
    #[arg(required = true, value_name = "PATH[@REV][+PATCH…]", value_parser = parse_tree)]
    pub trees: Vec<TreeSpec>,
    /// How they are built.
    #[command(flatten)]
    pub how: TreeArgs,
}

fn parse_tree(text: &str) -> Result<TreeSpec, String> {
    let spec = if text.starts_with("tree:") { text.to_owned() } else { format!("tree:{text}") };
    match spec.parse() {
        Ok(Spec::Tree(tree)) => Ok(tree),
        Ok(Spec::Model(model)) => Err(format!("{model} is no kernel tree")),
        Err(error) => Err(error.to_string()),
    }
}

/// What a replay compares under the name of `spec`; a tree is built now, unless it was before.
///
/// # Errors
/// [`Trouble::Usage`]: the tree cannot be read or built.
pub fn entrant(spec: Spec, how: &TreeArgs) -> Result<Entrant, Trouble> {
    match spec {
        Spec::Model(model) => Ok(Entrant::Model(model)),
        Spec::Tree(tree) => inner::entrant(&tree, how),
    }
}

/// Who makes implementations for the oracles.
pub struct Players {
    /// Makes them by their names.
    pub maker: Box<dyn Maker + Sync>,
    /// The trees among them.
    pub trees: Vec<Entrant>,
}

/// Who makes the implementations of `names` for the oracles: models, and the trees among them.
///
/// # Errors
/// [`Trouble::Usage`]: a tree cannot be read or built.
pub fn players(names: &[String], how: &TreeArgs) -> Result<Players, Trouble> {
    let trees = names.iter().filter_map(|name| match name.parse() {
        Ok(Spec::Tree(tree)) => Some(tree),
        _ => None,
    });
    let trees: Vec<TreeSpec> = trees.collect();
    if trees.is_empty() {
        return Ok(Players { maker: Box::new(Models), trees: Vec::new() });
    }
    inner::players(&trees, how)
}

/// Writes what `--coverage` asks for, of trees that have run.
///
/// # Errors
/// The file cannot be written.
pub fn write_coverage<'a>(how: &TreeArgs, trees: impl Iterator<Item = &'a Entrant>) -> Result<(), Trouble> {
    let Some(path) = &how.coverage else { return Ok(()) };
    let text: String = trees.map(inner::lcov).collect();
    let mut sink = Sink::open(path)?;
    sink.write_all(text.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}

/// The folder with the C that an implementation was built from; `None`: it is a model.
pub fn sources(entrant: &Entrant) -> Option<&std::path::Path> {
    inner::sources(entrant)
}

/// `sisdiff tree check` and `sisdiff tree build`: all trees, also after one that cannot be built.
///
/// # Errors
/// The output was closed.
pub fn run(command: &TreeCommand) -> Result<ExitCode, Trouble> {
    inner::run(command)
}

/// The trees that were built, for `sisdiff list`: spec and version of each.
pub fn built() -> Vec<(String, String)> {
    inner::built()
}

#[cfg(feature = "tree")]
mod inner {
    use std::time::Instant;

    use sisdiff_tree::run::Isolation;
    use sisdiff_tree::tree::{builds, default_cache};

    use super::{Entrant, ExitCode, IsolationArg, Players, TreeArgs, TreeCommand, TreeSpec, Trouble};
    use crate::cli::EXIT_TROUBLE;
    use crate::cli::output::print;
    use crate::oracle::WithTrees;
    use crate::report::shell::printable;
    use crate::tree::{PrepareError, Prepared, TreeOptions};

    fn prepare(spec: &TreeSpec, how: &TreeArgs, default: Isolation) -> Result<Prepared, PrepareError> {
        let isolation = match how.isolation {
            _ if how.sanitize => Isolation::Sanitized,
            Some(IsolationArg::InProcess) => Isolation::InProcess,
            Some(IsolationArg::Process) => Isolation::Process,
            None => default,
        };
        let (config, shim) = (how.config.clone(), how.shim.clone());
        Prepared::new(spec, &TreeOptions { config, shim, cache: None, isolation, coverage: how.coverage.is_some() })
    }

    fn usage(error: PrepareError) -> Trouble {
        Trouble::Usage(error.to_string())
    }

    pub fn entrant(spec: &TreeSpec, how: &TreeArgs) -> Result<Entrant, Trouble> {
        prepare(spec, how, Isolation::InProcess).map(Entrant::Tree).map_err(usage)
    }

    pub fn players(specs: &[TreeSpec], how: &TreeArgs) -> Result<Players, Trouble> {
        let trees = specs.iter().map(|spec| prepare(spec, how, Isolation::Process).map_err(usage));
        let trees: Vec<Prepared> = trees.collect::<Result<_, _>>()?;
        let entrants = trees.iter().cloned().map(Entrant::Tree).collect();
        Ok(Players { maker: Box::new(WithTrees { trees }), trees: entrants })
    }

    pub fn sources(entrant: &Entrant) -> Option<&std::path::Path> {
        match entrant {
            Entrant::Model(_) => None,
            Entrant::Tree(tree) => Some(&tree.built().dir),
        }
    }

    pub fn lcov(entrant: &Entrant) -> String {
        match entrant {
            Entrant::Model(_) => String::new(),
            Entrant::Tree(tree) => tree.lcov(),
        }
    }

    pub fn run(command: &TreeCommand) -> Result<ExitCode, Trouble> {
        let (TreeCommand::Check(list) | TreeCommand::Build(list)) = command;
        let mut code = ExitCode::SUCCESS;
        for spec in &list.trees {
            let start = Instant::now();
            match prepare(spec, &list.how, Isolation::InProcess) {
                Err(error) => {
                    anstream::eprintln!("sisdiff: {}", printable(&error.to_string()));
                    code = ExitCode::from(EXIT_TROUBLE);
                }
                Ok(tree) if matches!(command, TreeCommand::Check(_)) => print(&tree.describe())?,
                Ok(tree) => {
                    let built = tree.built();
                    let how = if built.was_cached {
                        "was built before".to_owned()
                    } else {
                        format!("built in {:.1} s", start.elapsed().as_secs_f64())
                    };
                    print(&format!("{}: {how}, in {}\n", tree.name(), built.dir.display()))?;
                }
            }
        }
        Ok(code)
    }

    pub fn built() -> Vec<(String, String)> {
        let version = |version: Option<String>| format!("Linux {}", version.as_deref().unwrap_or("of unknown version"));
        let listed = builds(&default_cache()).into_iter();
        let mut listed: Vec<_> = listed.map(|one| (one.spec, version(one.version))).collect();
        // Another version of sisdiff, or a tree that was edited, has builds of its own.
        listed.dedup();
        listed
    }
}

#[cfg(not(feature = "tree"))]
mod inner {
    use super::{Entrant, ExitCode, Players, TreeArgs, TreeCommand, TreeSpec, Trouble};

    fn none() -> Trouble {
        Trouble::Usage("this sisdiff was built without kernel trees (feature \"tree\"); see sisdiff list".to_owned())
    }

    pub fn entrant(_: &TreeSpec, _: &TreeArgs) -> Result<Entrant, Trouble> {
        Err(none())
    }

    pub fn players(_: &[TreeSpec], _: &TreeArgs) -> Result<Players, Trouble> {
        Err(none())
    }

    pub fn sources(_: &Entrant) -> Option<&std::path::Path> {
        None
    }

    pub fn lcov(_: &Entrant) -> String {
        String::new()
    }

    pub fn run(_: &TreeCommand) -> Result<ExitCode, Trouble> {
        Err(none())
    }

    pub fn built() -> Vec<(String, String)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_may_leave_the_word_out() {
        let spec = |text| parse_tree(text).map(|tree| tree.to_string());
        assert_eq!(spec("~/linux@v6.1+a.patch"), Ok("tree:~/linux@v6.1+a.patch".to_owned()));
        assert_eq!(spec("tree:/usr/src/linux"), Ok("tree:/usr/src/linux".to_owned()));
        assert!(spec("").is_err() && spec("linux@").is_err());
    }
}
