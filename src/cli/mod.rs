// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line: flags → a validated plan, and the plan carried out.

pub mod args;
mod bounded;
mod case_kind;
mod counters;
mod cut;
pub mod fidelity;
pub mod funcgraph;
pub mod funcgraph_args;
mod fuzz;
mod fuzz_args;
mod gate;
mod gate_args;
mod gate_check;
mod gate_init;
mod gate_origin;
mod gate_plan;
mod gate_review;
mod gate_store;
mod info;
mod machine;
mod man;
pub mod merge;
pub mod output;
pub mod plan;
mod progress;
pub mod record;
pub mod replay;
mod replay_export;
mod replay_html;
pub mod simulate;
pub mod sink;
mod temporary;
pub mod trees;
pub mod values;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::args::{Cli, Command, ListArgs, TopologyArgs};
use crate::cli::output::{Trouble, print};
use crate::cli::plan::{ExplainPlan, ReplayPlan};
use crate::fair::changes::between;
use crate::hint::did_you_mean;
use crate::report::list;
use crate::report::shell::printable;
use crate::spec::{RELEASES, ReleaseInfo, model_of};
use crate::topology::{self, TopologySource};

/// Trouble: what was asked could not be done.
pub const EXIT_TROUBLE: u8 = 2;

/// Parses the command line, does what it says, and gives the exit code. `stdout_is_closed`: the program was started
/// without one.
pub fn main(stdout_is_closed: bool) -> ExitCode {
    output::stdout_is_closed(stdout_is_closed);
    no_colours_on_dumb_terminals();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli.command) {
        Ok(code) => code,
        Err(Trouble::BrokenPipe) => ExitCode::SUCCESS,
        Err(trouble) => tell(&trouble),
    }
}

fn tell(trouble: &Trouble) -> ExitCode {
    let sentences = match trouble {
        Trouble::Several(sentences) => sentences.clone(),
        one => vec![one.to_string()],
    };
    sentences.iter().for_each(|one| anstream::eprintln!("sisdiff: {}", printable(one)));
    ExitCode::from(EXIT_TROUBLE)
}

/// A dumb terminal shows the escapes themselves. What decides about colours here knows that, but takes every terminal of
/// a build service (`CI` is set) for one that has them.
fn no_colours_on_dumb_terminals() {
    let is = |name: &str, test: fn(&str) -> bool| std::env::var(name).is_ok_and(|value| test(&value));
    if is("TERM", |term| term == "dumb") && !is("CLICOLOR_FORCE", |force| force != "0") {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Help and version are answers; everything else is a wrong command line.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr()
        && let Err(trouble) = output::there_is_a_stdout()
    {
        return tell(&Trouble::write("stdout", &trouble));
    }
    // Where even this cannot be printed, the exit code is all that is left.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(EXIT_TROUBLE) } else { ExitCode::SUCCESS }
}

fn run(command: Command) -> Result<ExitCode, Trouble> {
    match command {
        Command::List(args) => print(&list_text(&args)?)?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "sisdiff", &mut script);
            print(&String::from_utf8_lossy(&script))?;
        }
        Command::Replay(args) => {
            let mut plan = ReplayPlan::new(*args)?;
            machine::read(&mut plan.options.topology)?;
            return replay::replay(&plan);
        }
        Command::Merge(args) => merge::merge(&args)?,
        Command::Explain(args) => {
            let mut plan = ExplainPlan::new(*args)?;
            machine::read(&mut plan.options.topology)?;
            replay::explain(&plan)?;
        }
        Command::Funcgraph(args) => funcgraph::funcgraph(&args)?,
        Command::Tree(command) => return trees::run(&command),
        Command::Record(args) => return record::record(*args),
        Command::Fidelity(args) => return fidelity::fidelity(*args),
        Command::Fuzz(args) => return fuzz::fuzz(*args),
        Command::Repro(args) => return fuzz::repro(&args),
        Command::Gate(command) => return gate::gate(&command),
        Command::Simulate(args) => return simulate::simulate(*args),
        Command::Bugs => print(&crate::report::fuzz::bugs())?,
        Command::Cut(args) => cut::cut(&args)?,
        Command::Info(args) => return info::info(&args),
        Command::Man { dir } => man::man(&dir)?,
        Command::Counters(args) => print(&counters::counters(&args)?)?,
        Command::Topology(args) => print(&topology_text(&args)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn topology_text(args: &TopologyArgs) -> Result<String, Trouble> {
    let release = match &args.kernel {
        None => None,
        Some(text) => Some(topology::Release::parse(text).ok_or_else(|| {
            Trouble::Usage(format!(
                "--kernel {text:?}: no kernel release; expected something like 6.1 or 6.1.0-57-amd64"
            ))
        })?),
    };
    let source = TopologySource::parse(args.source.as_deref().unwrap_or("live"));
    let loaded = topology::load_for(&source, release).map_err(|error| Trouble::Replay(error.into()))?;
    Ok(topology::draw::describe(&loaded).trim_end().to_owned() + "\n")
}

fn list_text(args: &ListArgs) -> Result<String, Trouble> {
    if let Some(uname) = &args.kernel {
        let model = model_of(uname).ok_or_else(|| {
            Trouble::Usage(format!("list: no kernel version in {uname:?}; expected what `uname -a` prints"))
        })?;
        return Ok(format!("{}: {}\n", model.spec, model.why));
    }
    if let Some([from, to]) = args.changes.as_deref() {
        return Ok(list::changes(&between(release(from)?, release(to)?)));
    }
    match &args.release {
        Some(name) => release(name).map(list::release),
        None => Ok(list::releases(RELEASES, &trees::built())),
    }
}

/// The row of the release table with that name.
fn release(name: &str) -> Result<&'static ReleaseInfo, Trouble> {
    RELEASES.iter().find(|info| info.name == name).ok_or_else(|| {
        let names: Vec<&str> = RELEASES.iter().map(|info| info.name).collect();
        Trouble::Usage(format!(
            "list: no release {name:?}{}; there are {}",
            did_you_mean(name, &names),
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_flags_is_sound() {
        Cli::command().debug_assert();
    }
}
