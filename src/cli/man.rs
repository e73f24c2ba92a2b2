// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff man`: manual pages from the table of flags.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::args::Cli;
use crate::cli::output::{Trouble, print};
use crate::cli::sink;

/// Writes sisdiff.1 and a page for each command into `dir`; `-`: prints the first alone.
///
/// # Errors
/// [`Trouble::Write`] where that cannot be written.
pub fn man(dir: &Path) -> Result<(), Trouble> {
    let root = root();
    if sink::is_stdout(dir) {
        return print(&String::from_utf8_lossy(&page(root)?));
    }
    let failed = |path: &Path| {
        let name = path.display().to_string();
        move |error: std::io::Error| Trouble::write(&name, &error)
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    for command in all(&root) {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).map_err(failed(&path))?;
    }
    Ok(())
}

/// A command and those in it, at any depth.
fn all(command: &Command) -> Vec<Command> {
    let inner = command.get_subcommands().filter(|command| command.get_name() != "help").flat_map(all);
    std::iter::once(command.clone()).chain(inner).collect()
}

/// The table, with the names that pages have (`sisdiff-replay`).
fn root() -> Command {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    root
}

fn page(command: Command) -> Result<Vec<u8>, Trouble> {
    let mut page = Vec::new();
    let after = command.get_after_help().map(ToString::to_string);
    let has_commands = command.get_subcommands().next().is_some();
    let man = Man::new(command).source(concat!("sisdiff ", env!("CARGO_PKG_VERSION"))).manual("sisdiff manual");
    let rendered = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page))
        .and_then(|()| if has_commands { man.render_subcommands_section(&mut page) } else { Ok(()) });
    rendered.map_err(|error| Trouble::write("the manual page", &error))?;
    page.extend(after.map(|text| preformatted(&text)).unwrap_or_default().into_bytes());
    Ok(page)
}

/// What stands below the help: lines that start at the left are headings or text, indented ones stay as they are.
fn preformatted(text: &str) -> String {
    let escaped = |line: &str| line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let mut has_notes = !text.starts_with("Examples:");
    let mut out = if has_notes { ".SH NOTES\n" } else { "" }.to_owned();
    let mut is_as_is = false;
    for line in text.lines() {
        let indented = line.starts_with(' ');
        if indented != is_as_is {
            out += if indented { ".nf\n" } else { ".fi\n" };
            is_as_is = indented;
        }
        match line {
            "Examples:" => out += ".SH EXAMPLES\n",
            "" => out += if std::mem::replace(&mut has_notes, true) { ".PP\n" } else { ".SH NOTES\n" },
            // A line must not begin as a request.
            line => out += &format!("\\&{}\n", escaped(line.strip_prefix("  ").unwrap_or(line))),
        }
    }
    if is_as_is { out + ".fi\n" } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_flags_and_examples() {
        for command in all(&root()).into_iter().skip(1) {
            let name = command.get_display_name().expect("built").to_owned();
            let text = String::from_utf8(page(command.clone()).expect("a page")).expect("text");
            assert!(text.contains(&format!(".TH {name} 1")), "{text}");
            assert!(text.contains(".SH EXAMPLES"), "{name}: no examples");
            assert!(text.matches(".SH NOTES").count() < 2, "{name}: notes twice");
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            for flag in flags {
                assert!(text.contains(&flag.replace('-', "\\-")), "{name}: no --{flag}");
            }
        }
        let text = String::from_utf8(page(root()).expect("a page")).expect("text");
        assert!(text.contains("sisdiff\\-replay(1)"), "{text}");
    }
}
