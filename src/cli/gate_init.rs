// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff gate init`: a first configuration, with what else could be in it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use toml::Value;

use crate::cli::gate_args::InitArgs;
use crate::cli::output::{Trouble, print};
use crate::gate::Config;
use crate::replay::recording::{ReaderKind, Source};
use crate::report::shell::quoted;

/// Writes the configuration.
///
/// # Errors
/// There is one already, a recording cannot be replayed, or it cannot be written.
pub fn init(args: &InitArgs) -> Result<ExitCode, Trouble> {
    let path = &args.config.config;
    let name = path.display().to_string();
    let traces = args.files.iter().map(|file| trace(file, path)).collect::<Result<Vec<_>, _>>()?;
    let text = text(args, &traces);
    // What is written can be read: a pair's name or a folder may be nonsense.
    let config = Config::parse(&text).map_err(|error| Trouble::Usage(format!("gate init: {error}")))?;
    if config.pairs.len() != 1 || config.snapshots != args.snapshots {
        return Err(Trouble::Usage("gate init: --pair and --snapshots: expected a plain name and a folder".to_owned()));
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Trouble::Usage(format!("{name}: is there already; edit it, or name another one with --config"))
        }
        _ => Trouble::write(&name, &error),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| Trouble::write(&name, &error))?;
    let flag = if name == "gate.toml" { String::new() } else { format!(" --config {}", quoted(&name)) };
    print(&format!(
        "{name}: written. Next:\n  sisdiff gate check{flag}     replays; everything is new\n  \
         sisdiff gate accept{flag}    makes that the snapshots\nCommit {name} and the snapshots.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// A recording or pattern as the configuration names it.
fn trace(file: &str, config: &Path) -> Result<String, Trouble> {
    let is_pattern = file.contains(['*', '?', '[']) && !Path::new(file).exists();
    let name = from_folder(Path::new(file), config)
        .ok_or_else(|| Trouble::Usage(format!("gate init: {file}: no path from the folder of {}", config.display())))?;
    if is_pattern {
        return Ok(name);
    }
    Source::open(Path::new(file), None, ReaderKind::Native)?;
    Ok(glob::Pattern::escape(&name))
}

/// `file` as seen from the folder of `config`.
fn from_folder(file: &Path, config: &Path) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty());
    if file.is_absolute() {
        return file.to_str().map(str::to_owned);
    }
    let plain = |path: &Path| -> PathBuf { path.components().filter(|part| *part != Component::CurDir).collect() };
    let Some(folder) = folder else { return plain(file).to_str().map(str::to_owned) };
    // Both without links and dots, then what they share is left out.
    let to = here.join(plain(file));
    let from = std::fs::canonicalize(folder).ok()?;
    let here = std::fs::canonicalize(&here).ok()?;
    let to = here.join(to.strip_prefix(&here).ok().map_or_else(|| plain(file), Path::to_path_buf));
    let (to, from): (Vec<_>, Vec<_>) = (to.components().collect(), from.components().collect());
    let shared = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let mut out = PathBuf::new();
    from[shared..].iter().for_each(|_| out.push(".."));
    to[shared..].iter().for_each(|part| out.push(part));
    out.to_str().map(str::to_owned)
}

fn text(args: &InitArgs, traces: &[String]) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let list: String = traces.iter().map(|trace| format!("    {},\n", quoted(trace))).collect();
    let key = |name: &str| {
        let is_bare = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
        if is_bare { name.to_owned() } else { quoted(name) }
    };
    let (snapshots, pair) = (quoted(&args.snapshots), key(&args.pair));
    let (baseline, patched) = (quoted(&args.baseline.to_string()), quoted(&args.patched.to_string()));
    format!(
        r#"# A gate: `sisdiff gate check` replays these recordings, and exits with 1 where a decision is not what the snapshots
# say. All paths start at the folder of this file.

# Recordings; * ? [...] and ** are patterns. What describes the machine may lie beside each (topology.tar.gz).
traces = [
{list}]

# The folder of the snapshots: commit it.
snapshots = {snapshots}

# What is locked: where tasks go, which return decided, what the search cost, how often it is what the recorded kernel
# chose.
lock = ["placements", "exits", "sis", "agreement"]

# Differing decisions that a snapshot lists.
listed = 20

# Two implementations (`sisdiff list`, or tree:PATH for your own C). Snapshots are called by the pair's name: change the
# specs as you like, the gate shows what that does. More pairs: more tables.
[pair.{pair}]
baseline = {baseline}
patched = {patched}

# Counts may move by that much: of all decisions, of the counter itself for sis. Without: not at all.
# [tolerance]
# sis = "0.5%"

# A difference that somebody has looked at, until the snapshot is accepted. what: a part, row or count of a snapshot.
# [[allow]]
# trace = "traces/numa*"
# pair = {pair_value}
# what = "sis.scanned"
# within = "2%"
# reason = "the scan starts behind the target"

# Machines of recordings that have no description beside them.
# [[topology]]
# traces = ["old/*.dat"]
# source = "2x20x2"

# [replay]
# ignore_probes = true
# hz = 1000
# scan_cost_ns = 50
# affinity = "soft.toml"

# How kernel trees are built.
# [tree]
# config = "kernel.config"
"#,
        pair_value = quoted(&args.pair),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_the_folder_of_the_configuration() {
        let from = |file: &str, config: &str| from_folder(Path::new(file), Path::new(config));
        assert_eq!(from("./traces/a.dat", "gate.toml").as_deref(), Some("traces/a.dat"));
        assert_eq!(from("traces/a.dat", "tests/gate.toml").as_deref(), Some("../traces/a.dat"));
        assert_eq!(from("tests/a.dat", "tests/gate.toml").as_deref(), Some("a.dat"));
        assert_eq!(from("/x/a.dat", "tests/gate.toml").as_deref(), Some("/x/a.dat"));
        assert_eq!(from("a.dat", "no such folder/gate.toml"), None);
    }
}
