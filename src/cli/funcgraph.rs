// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff funcgraph` carried out.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::funcgraph_args::{FuncgraphArgs, FuncgraphFormat, MiddleArg};
use crate::cli::machine;
use crate::cli::output::{Trouble, print};
use crate::cli::plan;
use crate::cli::progress::Bars;
use crate::cli::sink::{Sink, is_stdout};
use crate::cli::values::TraceTime;
use crate::funcgraph::keep::OnName;
use crate::funcgraph::{
    Analysis, FuncgraphError, Input, Keep, Middle, Moment, Part, Plan, Reading, Resampling, Set, analyse, read,
};
use crate::histogram::Histogram;
use crate::report::funcgraph::{scan_cost as scan_cost_text, text};
use crate::report::html::funcgraph::{self as html, Durations};
use crate::report::shell::printable;
use crate::scan_cost::{FUNCTION, ScanCost, scan_cost};

/// Name and version of the schema.
pub const SCHEMA: &str = "sisdiff.funcgraph/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    sisdiff: &'static str,
    #[serde(flatten)]
    analysis: &'a Analysis,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scan_costs: Vec<ScanCost>,
}

/// Reads the recordings, compares them, and writes the report.
///
/// # Errors
/// Whatever keeps a recording from being read or the report from being written, and labels that there are not.
pub fn funcgraph(args: &FuncgraphArgs) -> Result<(), Trouble> {
    let output = args.output.as_deref().map(Sink::open).transpose()?;
    let mut files = Files { buffer: args.buffer.as_deref().unwrap_or(""), keep: keep(args)?, known: Vec::new() };
    let mut sets = Vec::new();
    for input in inputs(&args.files)? {
        sets.extend(files.sets_of(&input)?);
    }
    let analysis = analyse(&sets, &reckoning(args, &sets)?);
    let scan_costs = if args.fit { scan_costs(args, &files)? } else { Vec::new() };
    let report = match args.format {
        FuncgraphFormat::Text => text(&analysis) + &scan_costs.iter().map(scan_cost_text).collect::<String>(),
        FuncgraphFormat::Html => html::report(&analysis, &durations(&sets), &scan_costs),
        FuncgraphFormat::Json => {
            let sisdiff = env!("CARGO_PKG_VERSION");
            let document = Document { schema: SCHEMA, sisdiff, analysis: &analysis, scan_costs };
            serde_json::to_string_pretty(&document).map_err(|error| Trouble::Usage(error.to_string()))? + "\n"
        }
    };
    match output {
        Some(mut sink) if !args.output.as_deref().is_some_and(is_stdout) => {
            let plain = anstream::adapter::strip_str(&report).to_string();
            sink.write_all(plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
            sink.finish()
        }
        _ => print(&report),
    }
}

/// Durations by function and set.
fn durations(sets: &[Set]) -> Vec<Durations> {
    let names: BTreeSet<&String> = sets.iter().flat_map(|set| set.part.sample.functions.keys()).collect();
    let histogram = |set: &Set, name: &str| {
        let mut histogram = Histogram::default();
        let calls = set.part.sample.functions.get(name).map(|of| of.durations_ns.as_slice()).unwrap_or_default();
        calls.iter().for_each(|&ns| histogram.add(ns));
        histogram
    };
    let of = |name: &String| Durations {
        function: name.clone(),
        by_set: sets.iter().map(|set| histogram(set, name)).collect(),
    };
    names.into_iter().map(of).collect()
}

/// The costs of scanning, of each recording that tells.
fn scan_costs(args: &FuncgraphArgs, files: &Files<'_>) -> Result<Vec<ScanCost>, Trouble> {
    let paths: Vec<PathBuf> = files.known.iter().map(|(path, _)| path.clone()).collect();
    if paths.iter().any(|path| is_stdout(path)) {
        return Err(Trouble::Usage("--fit reads a recording twice: name a file, not standard input".to_owned()));
    }
    let mut topology = machine::given(args.topology.as_deref(), &paths)?;
    machine::read(&mut topology)?;
    let options = plan::measuring(topology, args.buffer.clone())?;
    let bars = Bars::new(false);
    let mut found = Vec::new();
    for path in &paths {
        match scan_cost(path, &options, &bars)? {
            Some(cost) => found.push(cost),
            None => anstream::eprintln!(
                "sisdiff: {}: --fit: no call of {FUNCTION}, or no model of the recorded kernel",
                printable(&path.display().to_string())
            ),
        }
    }
    bars.finish();
    Ok(found)
}

fn keep(args: &FuncgraphArgs) -> Result<Keep, Trouble> {
    let moment = |time: TraceTime| match time {
        TraceTime::Absolute(ns) => Moment::At(ns),
        TraceTime::AfterStart(ns) => Moment::After(ns),
    };
    Ok(Keep {
        function: named(&args.function)?,
        comm: named(&args.comm)?,
        pids: args.pid.clone(),
        cpus: args.cpu,
        since: args.since.map(moment),
        until: args.until.map(moment),
    })
}

fn named(globs: &[globset::Glob]) -> Result<Option<OnName>, Trouble> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut set = globset::GlobSetBuilder::new();
    for glob in globs {
        set.add(glob.clone());
    }
    let set = set.build().map_err(|error| Trouble::Usage(error.to_string()))?;
    use std::os::unix::ffi::OsStrExt;
    Ok(Some(Box::new(move |name| set.is_match(Path::new(std::ffi::OsStr::from_bytes(name))))))
}

/// `[LABEL=]FILE[#PART]`; a file that has that very name is that file. Without a label it has the file's name, with the
/// folders before it only where two would be called the same.
fn inputs(files: &[String]) -> Result<Vec<Input>, Trouble> {
    let mut inputs: Vec<Input> = files.iter().map(|text| input(text)).collect();
    let labels: Vec<String> = inputs.iter().map(|input| input.label.clone()).collect();
    for (input, text) in inputs.iter_mut().zip(files) {
        if labels.iter().filter(|label| **label == input.label).count() > 1 && !text.contains('=') {
            input.label = text.clone();
        }
    }
    for (at, input) in inputs.iter().enumerate() {
        if inputs[..at].iter().any(|other| other.label == input.label) {
            let text = &files[at];
            let hint = format!("{}: two inputs with this label; name one of them: LABEL={text}", input.label);
            return Err(Trouble::Usage(hint));
        }
    }
    Ok(inputs)
}

fn input(text: &str) -> Input {
    let named = |file: &str| {
        let base = file.rsplit('/').next().filter(|base| !base.is_empty());
        base.unwrap_or(file).to_owned()
    };
    if Path::new(text).exists() {
        return Input { label: named(text), path: PathBuf::from(text), part: None };
    }
    let (label, file) = match text.split_once('=') {
        Some((label, file)) if !label.is_empty() && !file.is_empty() => (Some(label), file),
        _ => (None, text),
    };
    let part = |file: &str| {
        let (path, part) = file.rsplit_once('#')?;
        Some((path.to_owned(), part.parse().ok()?))
    };
    let (path, part) = match part(file) {
        Some((path, part)) if !Path::new(file).exists() => (path, Some(part)),
        _ => (file.to_owned(), None),
    };
    Input { label: label.map_or_else(|| named(file), str::to_owned), path: PathBuf::from(path), part }
}

/// Each file is read once, however often it is named: standard input cannot be read again.
struct Files<'a> {
    buffer: &'a str,
    keep: Keep,
    known: Vec<(PathBuf, Vec<Part>)>,
}

impl Files<'_> {
    fn parts(&mut self, path: &Path) -> Result<&[Part], Trouble> {
        let known = self.known.iter().position(|(other, _)| other == path);
        let at = match known {
            Some(at) => at,
            None => {
                let reading = read(path, self.buffer, &self.keep)?;
                say(path, &reading);
                self.known.push((path.to_owned(), reading.parts));
                self.known.len() - 1
            }
        };
        Ok(&self.known[at].1)
    }

    /// The sets of one input: one, or one for each part of a pasted text.
    fn sets_of(&mut self, input: &Input) -> Result<Vec<Set>, Trouble> {
        let file = printable(&input.path.display().to_string());
        let parts = self.parts(&input.path)?;
        let set = |label: String, part: &Part| {
            let source = match part.lines {
                Some((first, last)) => format!("{file}, lines {first}-{last}"),
                None => file.clone(),
            };
            Set { label, source, part: part.clone() }
        };
        let Some(number) = input.part else {
            let several = parts.len() > 1;
            let label = |part: &Part| match several {
                true => format!("{}#{}", input.label, part.number),
                false => input.label.clone(),
            };
            return Ok(parts.iter().map(|part| set(label(part), part)).collect());
        };
        match number.checked_sub(1).and_then(|at| parts.get(at)) {
            Some(part) => Ok(vec![set(input.label.clone(), part)]),
            None => {
                let found = if parts.len() == 1 { "1 part".to_owned() } else { format!("{} parts", parts.len()) };
                Err(FuncgraphError::NoPart { path: input.path.clone(), part: number, found }.into())
            }
        }
    }
}

/// What could not be read, on stderr.
fn say(path: &Path, reading: &Reading) {
    let name = printable(&path.display().to_string());
    if reading.bad > 0 {
        let named: Vec<String> = reading
            .named_bad
            .iter()
            .map(|(line, why)| match line {
                0 => (*why).to_owned(),
                line => format!("line {line}: {why}"),
            })
            .collect();
        let more = reading.bad - named.len() as u64;
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        anstream::eprintln!("sisdiff: {name}: {} unreadable, not counted: {}{more}", reading.bad, named.join("; "));
    }
    if reading.losses > 0 {
        anstream::eprintln!(
            "sisdiff: {name}: events were lost in {} places; calls that were open there are not counted",
            reading.losses
        );
    }
}

fn reckoning(args: &FuncgraphArgs, sets: &[Set]) -> Result<Plan, Trouble> {
    let known = |flag: &str, label: &str| {
        let place = sets.iter().position(|set| set.label == label);
        place.ok_or_else(|| {
            let labels: Vec<&str> = sets.iter().map(|set| set.label.as_str()).collect();
            Trouble::Usage(format!("{flag}: no set {label:?}; there are {}", labels.join(", ")))
        })
    };
    let baseline = args.baseline.as_deref().map_or(Ok(0), |label| known("--baseline", label))?;
    for (label, _) in &args.measured {
        known("--measured", label)?;
    }
    if !args.measured.is_empty() && args.ops.is_empty() {
        return Err(Trouble::Usage(
            "--measured needs --ops: which calls make the operation that was measured".to_owned(),
        ));
    }
    Ok(Plan {
        baseline,
        by: match args.by {
            MiddleArg::Median => Middle::Median,
            MiddleArg::Mean => Middle::Mean,
        },
        operations: args.ops.clone(),
        measured_us: args.measured.clone(),
        empty_function: args.empty_function.clone(),
        resampling: Resampling::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_have_labels_and_parts() {
        let read = |text: &str| {
            let Input { label, path, part } = input(text);
            (label, path.display().to_string(), part)
        };
        assert_eq!(read("a.dat"), ("a.dat".to_owned(), "a.dat".to_owned(), None));
        assert_eq!(read("off=mail.txt#3"), ("off".to_owned(), "mail.txt".to_owned(), Some(3)));
        assert_eq!(read("mail.txt#3"), ("mail.txt#3".to_owned(), "mail.txt".to_owned(), Some(3)));
        assert_eq!(read("mail.txt#x"), ("mail.txt#x".to_owned(), "mail.txt#x".to_owned(), None));
        assert_eq!(read("on/a.dat").0, "a.dat");
        let labels = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
            inputs(&files).map(|inputs| inputs.into_iter().map(|input| input.label).collect::<Vec<_>>())
        };
        assert_eq!(labels(&["on/a.dat", "off/a.dat"]).ok(), Some(vec!["on/a.dat".to_owned(), "off/a.dat".to_owned()]));
        assert!(labels(&["a", "a"]).is_err() && labels(&["x=a", "x=b"]).is_err());
    }
}
