// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff cut` carried out.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::args::CutArgs;
use crate::cli::output::{Trouble, print, there_is_a_stdout};
use crate::cli::progress::Bars;
use crate::cli::sink;
use crate::cli::temporary::Temporary;
use crate::cut::{self, Done, Selection, Window, machine};
use crate::replay::run::Progress;
use crate::report;
use crate::report::shell::printable;
use crate::topology::TopologySource;

/// Cuts, writes the new file in one step, and says what was done.
///
/// # Errors
/// A wrong command line, what keeps the recording from being read and the file from being written.
pub fn cut(args: &CutArgs) -> Result<(), Trouble> {
    if let (Some(since), Some(until)) = (args.since, args.until)
        && since.resolve(0) >= until.resolve(0)
        && std::mem::discriminant(&since) == std::mem::discriminant(&until)
    {
        return Err(Trouble::Usage(format!("--since {since} is not before --until {until}: nothing lies between")));
    }
    let inputs = [("the recording", args.file.clone())];
    sink::check(&[("--output", &args.output)], &inputs)?;
    let machine = Machine::plan(args)?;
    let target = Target::new(&args.output, args.force)?;
    let (file, done) = written(args, &target)?;
    let bytes = file.as_file().metadata().map_or(0, |meta| meta.len());
    // The description first: a recording without it would be replayed on a guess.
    machine.write(args.force)?;
    let name = target.name.clone();
    let is_stdout = matches!(target.place, Place::Stdout);
    target.finish(file)?;
    let text = report::cut::text(&args.file.display().to_string(), &name, bytes, &done, machine.line().as_deref());
    match is_stdout {
        true => anstream::eprint!("{text}"),
        false if args.quiet => {}
        false => print(&text)?,
    }
    if let Some(hint) = machine.hint(args) {
        anstream::eprintln!("sisdiff: {}", printable(&hint));
    }
    Ok(())
}

fn written(args: &CutArgs, target: &Target) -> Result<(Temporary, Done), Trouble> {
    let selection = Selection {
        buffer: args.buffer.clone(),
        cpus: args.cpus,
        sched_only: args.sched_only,
        no_probes: args.no_probes,
        anonymize: args.anonymize,
    };
    let window = |first_ns| Window {
        since_ns: args.since.map(|time| time.resolve(first_ns)),
        until_ns: args.until.map(|time| time.resolve(first_ns)),
    };
    let file = target.temporary().map_err(|error| Trouble::write(&target.name, &error))?;
    let bars = Bars::new(args.quiet);
    let out = BufWriter::with_capacity(256 << 10, file.as_file());
    let done =
        cut::cut(&args.file, (&target.name, out), &selection, window, &mut |events| bars.at(&args.file, events, 0));
    bars.finish();
    let done = done.map_err(|error| Trouble::Usage(error.to_string()))?;
    Ok((file, done))
}

enum Place {
    Stdout,
    /// A device or a pipe.
    Direct,
    /// A file, new or (with --force) replaced.
    File,
}

/// Where the new file goes.
struct Target {
    name: String,
    path: PathBuf,
    place: Place,
    force: bool,
}

impl Target {
    fn new(path: &Path, force: bool) -> Result<Self, Trouble> {
        let name = if sink::is_stdout(path) { "stdout".to_owned() } else { path.display().to_string() };
        let old = std::fs::symlink_metadata(path).ok();
        let place = match std::fs::metadata(path).ok().or(old) {
            _ if sink::is_stdout(path) => Place::Stdout,
            Some(meta) if meta.is_dir() => {
                return Err(Trouble::Usage(format!("--output {name}: is a folder; name a file in it")));
            }
            Some(meta) if !meta.is_file() && !meta.is_symlink() => Place::Direct,
            Some(_) if !force => return Err(exists(&name)),
            _ => Place::File,
        };
        Ok(Self { name, path: path.to_owned(), place, force })
    }

    fn temporary(&self) -> io::Result<Temporary> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".sisdiff-").permissions(Permissions::from_mode(0o666));
        match self.place {
            Place::File => Temporary::new(&builder, Some(folder(&self.path))),
            Place::Stdout | Place::Direct => Temporary::new(&builder, None),
        }
    }

    fn finish(self, file: Temporary) -> Result<(), Trouble> {
        let done = match self.place {
            Place::File if self.force => file.persist(&self.path),
            Place::File => match file.persist_noclobber(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(&self.name)),
                done => done,
            },
            Place::Stdout => there_is_a_stdout().and_then(|()| copy(file.as_file(), &mut io::stdout().lock())),
            Place::Direct => File::create(&self.path).and_then(|mut to| copy(file.as_file(), &mut to)),
        };
        done.map_err(|error| Trouble::write(&self.name, &error))
    }
}

/// All of `from`.
fn copy(mut from: &File, to: &mut dyn Write) -> io::Result<()> {
    from.rewind()?;
    io::copy(&mut from, to)?;
    to.flush()
}

fn exists(name: &str) -> Trouble {
    Trouble::Usage(format!("{name}: is there already; give --force to replace it, or name another file"))
}

fn is_same(one: &TopologySource, other: &TopologySource) -> bool {
    match (one, other) {
        (TopologySource::Path(one), TopologySource::Path(other)) => {
            matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
        }
        _ => false,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What is done with the machine's description.
struct Machine {
    beside: Option<TopologySource>,
    /// The packed description and where it goes.
    copy: Option<(Vec<u8>, PathBuf)>,
}

impl Machine {
    fn plan(args: &CutArgs) -> Result<Self, Trouble> {
        let beside = if args.file.is_file() { TopologySource::beside(&args.file) } else { None };
        if !args.with_topology {
            return Ok(Self { beside, copy: None });
        }
        if sink::is_stdout(&args.output) {
            return Err(Trouble::Usage("--with-topology: goes beside the new file; name one with -o".to_owned()));
        }
        let Some(source) = &beside else {
            let file = args.file.display();
            return Err(Trouble::Usage(format!("--with-topology: no topology beside {file}; leave it out")));
        };
        let TopologySource::Path(from) = source else { return Ok(Self { beside, copy: None }) };
        let there = TopologySource::beside(&args.output);
        if there.as_ref().is_some_and(|there| is_same(source, there)) {
            if args.anonymize {
                let from = from.display();
                return Err(Trouble::Usage(format!(
                    "--with-topology: {from} is beside the new file, too, and names the machine; name a file in another \
                     folder"
                )));
            }
            // It lies there for both.
            return Ok(Self { beside, copy: None });
        }
        if let Some(there) = there.filter(|_| !args.force) {
            return Err(exists(&there.to_string()));
        }
        let packed = machine::packed(from, args.anonymize).map_err(|error| Trouble::Usage(error.to_string()))?;
        let to = folder(&args.output).join(packed.0);
        Ok(Self { copy: Some((packed.1, to)), beside })
    }

    fn write(&self, force: bool) -> Result<(), Trouble> {
        let Some((bytes, to)) = &self.copy else { return Ok(()) };
        let target = Target::new(to, force)?;
        let mut file = target.temporary().map_err(|error| Trouble::write(&target.name, &error))?;
        file.write_all(bytes).map_err(|error| Trouble::write(&target.name, &error))?;
        target.finish(file)
    }

    fn line(&self) -> Option<String> {
        self.copy.as_ref().map(|(bytes, to)| format!("{}, {} bytes", to.display(), bytes.len()))
    }

    /// What the user may have forgotten.
    fn hint(&self, args: &CutArgs) -> Option<String> {
        let TopologySource::Path(from) = self.beside.as_ref()? else { return None };
        if self.copy.is_some() || args.quiet {
            return None;
        }
        let is_beside = TopologySource::beside(&args.output).is_some() && !sink::is_stdout(&args.output);
        let from = from.display();
        match (is_beside, args.anonymize) {
            (false, _) => Some(format!("{from} belongs to it: send it along, or give --with-topology")),
            (true, true) => {
                Some(format!("{from} names the machine: for a clean one give --with-topology and -o in another folder"))
            }
            (true, false) => None,
        }
    }
}
