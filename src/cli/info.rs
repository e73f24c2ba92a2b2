// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff info` carried out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::cli::EXIT_TROUBLE;
use crate::cli::args::{InfoArgs, InfoFormat};
use crate::cli::machine;
use crate::cli::output::{Trouble, print};
use crate::cli::plan::reader_kind;
use crate::cli::progress::Bars;
use crate::cli::sink::{self, Sink};
use crate::info::{self, Info};
use crate::replay::run::Progress;
use crate::report::info::{Report, Unread, text};
use crate::report::shell::printable;
use crate::topology::TopologySource;

/// Says what each file is. One that cannot be read does not keep the others from being told; the exit code is 2 then.
///
/// # Errors
/// A wrong command line, and what keeps the report from being written.
pub fn info(args: &InfoArgs) -> Result<ExitCode, Trouble> {
    let stdins = args.files.iter().filter(|file| sink_is_stdin(file)).count();
    if stdins > 1 {
        return Err(Trouble::Usage("-: standard input can be read once; name it once".to_owned()));
    }
    let inputs: Vec<(&str, PathBuf)> = args.files.iter().map(|file| ("the recording", file.clone())).collect();
    let stdout = PathBuf::from("-");
    sink::check(&[("--output", args.output.as_deref().unwrap_or(&stdout))], &inputs)?;
    let output = args.output.as_deref().map(Sink::open).transpose()?;
    let mut topology = machine::given(args.topology.as_deref(), &args.files)?;
    machine::read(&mut topology)?;
    let results = read_all(args, topology);
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    for (file, result) in args.files.iter().zip(results) {
        match result {
            Ok(info) => files.push(info),
            Err(error) => unread.push(Unread { file: file.display().to_string(), error: error.to_string() }),
        }
    }
    for Unread { error, .. } in &unread {
        anstream::eprintln!("sisdiff: {}", printable(error));
    }
    let code = if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_TROUBLE) };
    let report = match args.format {
        InfoFormat::Text => files.iter().map(text).collect::<Vec<_>>().join("\n"),
        InfoFormat::Json => Report::new(files, unread).to_json().map_err(|error| Trouble::Usage(error.to_string()))?,
    };
    match write(&report, output, args.output.as_deref()) {
        // Nobody reads on, but somebody may wait for the exit code.
        Err(Trouble::BrokenPipe) => Ok(code),
        written => written.map(|()| code),
    }
}

fn sink_is_stdin(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name))
}

fn read_all(args: &InfoArgs, topology: Option<TopologySource>) -> Vec<Result<Info, tracecmd_parse::Error>> {
    let ask = info::read::Ask { buffer: args.buffer.clone(), reader: reader_kind(args.reader), topology };
    let bars = Bars::new(args.quiet);
    let one = |file: &PathBuf| {
        let mut last = 0;
        let read = info::read(file, &ask, &mut |events| {
            last = events;
            bars.at(file, events, 0);
        });
        bars.at(file, last, last);
        read
    };
    // Files are independent: the number of threads changes nothing but the time.
    let results = args.files.par_iter().map(one).collect();
    bars.finish();
    results
}

fn write(report: &str, output: Option<Sink>, path: Option<&Path>) -> Result<(), Trouble> {
    let Some(mut sink) = output.filter(|_| !path.is_some_and(sink::is_stdout)) else { return print(report) };
    let plain = anstream::adapter::strip_str(report).to_string();
    sink.write_all(plain.as_bytes()).map_err(|error| Trouble::write(&sink.name(), &error))?;
    sink.finish()
}
