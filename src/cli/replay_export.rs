// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff replay --format perfetto` and `--format parquet`: decisions written as they come.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::cli::args::{ReplayArgs, ReplayFormat};
use crate::cli::output::Trouble;
use crate::cli::plan::ReplayPlan;
use crate::cli::sink::{self, Sink};
use crate::export::perfetto::Perfetto;
use crate::replay::run::{self, Job};
use crate::replay::{Outcome, ReplayError};
use crate::report::decisions;

/// Whether nothing is reported at the end.
pub fn is_export(format: ReplayFormat) -> bool {
    extension(format).is_some()
}

fn extension(format: ReplayFormat) -> Option<&'static str> {
    match format {
        ReplayFormat::Perfetto => Some("pftrace"),
        #[cfg(feature = "parquet")]
        ReplayFormat::Parquet => Some("parquet"),
        ReplayFormat::Text | ReplayFormat::Json | ReplayFormat::Html => None,
    }
}

/// Whether `path` names a folder: there, or meant by its last character.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Refuses what cannot be written.
///
/// # Errors
/// [`Trouble::Usage`].
pub fn check(args: &ReplayArgs) -> Result<(), Trouble> {
    let Some(extension) = extension(args.output.format) else { return Ok(()) };
    let wrong = |why: &str| Err(Trouble::Usage(format!("--format {}: {why}", name(args.output.format))));
    let output = args.output.output.as_deref();
    match output {
        None => wrong(&format!("is no text for a terminal; add -o NAME.{extension} (-: standard output)")),
        Some(_) if args.files.len() > 1 && args.output.format == ReplayFormat::Perfetto => {
            wrong("recordings have clocks of their own; give one")
        }
        Some(path) if args.files.len() > 1 && !is_folder(path) => {
            wrong("several recordings need a folder; end its name with /")
        }
        Some(path) if sink::is_stdout(path) && args.output.decisions.as_deref().is_some_and(sink::is_stdout) => {
            wrong("and --decisions would both be on standard output")
        }
        Some(_) => Ok(()),
    }
}

fn name(format: ReplayFormat) -> &'static str {
    if format == ReplayFormat::Perfetto { "perfetto" } else { "parquet" }
}

/// Replays and writes; `to` gets the lines of decisions.
///
/// # Errors
/// As [`run::replay`], and of writing.
pub fn write(
    plan: &ReplayPlan,
    job: &Job<'_>,
    to: Option<(&str, &mut (dyn Write + Send))>,
) -> Result<Vec<Outcome>, Trouble> {
    let path = plan.output.as_deref().unwrap_or(Path::new("-"));
    let outputs = outputs(plan, path)?;
    let open = |file: &Path| -> Result<(BufWriter<Sink>, String), ReplayError> {
        let at = plan.files.iter().position(|own| own == file).unwrap_or(0);
        let sink = Sink::open(&outputs[at]).map_err(|trouble| unopened(&outputs[at], trouble))?;
        let name = sink.name();
        Ok((BufWriter::new(sink), name))
    };
    let (files, threads) = (&plan.files, plan.threads);
    let mut outcomes = Vec::new();
    match plan.format {
        #[cfg(feature = "parquet")]
        ReplayFormat::Parquet => {
            let new = |file: &Path| {
                let (out, name) = open(file)?;
                crate::export::parquet::Parquet::new(out, &name, &file.display().to_string())
            };
            for (outcome, written) in run::observe(files, job, threads, decisions::line, to, new)? {
                close(written.finish()?)?;
                outcomes.push(outcome);
            }
        }
        _ => {
            let new = |file: &Path| open(file).map(|(out, name)| Perfetto::new(out, &name));
            for (outcome, written) in run::observe(files, job, threads, decisions::line, to, new)? {
                close(written.finish()?)?;
                outcomes.push(outcome);
            }
        }
    }
    Ok(outcomes)
}

fn close(out: BufWriter<Sink>) -> Result<(), Trouble> {
    let name = out.get_ref().name();
    out.into_inner().map_err(|error| Trouble::write(&name, error.error()))?.finish()
}

fn unopened(path: &Path, trouble: Trouble) -> ReplayError {
    let reason = match trouble {
        Trouble::Write { reason, .. } => reason,
        other => other.to_string(),
    };
    ReplayError::write(&path.display().to_string(), &std::io::Error::other(reason))
}

/// Where each recording's decisions go.
fn outputs(plan: &ReplayPlan, path: &Path) -> Result<Vec<PathBuf>, Trouble> {
    if !is_folder(path) {
        return Ok(vec![path.to_owned(); plan.files.len()]);
    }
    std::fs::create_dir_all(path).map_err(|error| Trouble::write(&path.display().to_string(), &error))?;
    let extension = extension(plan.format).unwrap_or_default();
    let mut names: Vec<PathBuf> = Vec::new();
    for file in &plan.files {
        let name = file_name(file);
        let mut own = path.join(format!("{name}.{extension}"));
        let mut number = 1;
        while names.contains(&own) {
            number += 1;
            own = path.join(format!("{name}-{number}.{extension}"));
        }
        names.push(own);
    }
    Ok(names)
}

/// The last two parts of a recording's path as one word: recordings are often `NAME/trace.dat`.
fn file_name(file: &Path) -> String {
    let part = |path: Option<&Path>| {
        let text = path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        text.chars().map(plain).collect::<String>()
    };
    let folder = part(file.parent());
    let own = part(Some(&file.with_extension("")));
    match (folder.is_empty(), own.is_empty()) {
        (true, true) => "recording".to_owned(),
        (true, false) => own,
        (false, _) => format!("{folder}-{own}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_recordings_apart() {
        let names =
            ["a/numa80/trace.dat", "trace.dat", "x y/trace.dat.zst", "-"].map(|path| file_name(Path::new(path)));
        assert_eq!(names, ["numa80-trace", "trace", "x_y-trace.dat", "-"]);
    }
}
