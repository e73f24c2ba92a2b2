// SPDX-License-Identifier: GPL-2.0-or-later
//! Where output goes: stdout, a device or pipe as it is, or a file that is replaced as a whole at the end. A run that
//! fails leaves the old file alone, and no output may be one of the inputs.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cli::output::{Trouble, there_is_a_stdout};
use crate::cli::temporary::Temporary;

/// Links that are followed, as the kernel does.
const LINKS_MAX: usize = 40;

/// An opened output.
pub struct Sink {
    name: String,
    to: Opened,
}

enum Opened {
    Stdout,
    /// A device or a pipe.
    Direct(File),
    /// A new file beside `path`, which takes its place at the end.
    Beside {
        path: PathBuf,
        file: Temporary,
    },
    /// A file that may be written in a folder that may not: copied over it at the end.
    Over {
        path: PathBuf,
        file: File,
    },
}

impl Sink {
    /// Opens `path` (`-`: stdout) without touching what is in it.
    ///
    /// # Errors
    /// [`Trouble::Write`] where it cannot be written.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        if is_stdout(path) {
            there_is_a_stdout().map_err(|error| Trouble::write("stdout", &error))?;
            return Ok(Self { name: "stdout".to_owned(), to: Opened::Stdout });
        }
        let name = path.display().to_string();
        let to = opened(path).map_err(|error| Trouble::write(&name, &error))?;
        Ok(Self { name, to })
    }

    /// Its name for messages.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Puts what was written in its place.
    ///
    /// # Errors
    /// [`Trouble::Write`], [`Trouble::BrokenPipe`].
    pub fn finish(mut self) -> Result<(), Trouble> {
        let done = self.flush().and_then(|()| match self.to {
            Opened::Stdout | Opened::Direct(_) => Ok(()),
            Opened::Beside { path, file } => file.persist(&path),
            Opened::Over { path, mut file } => {
                io::Seek::rewind(&mut file)?;
                io::copy(&mut file, &mut File::create(path)?).map(drop)
            }
        });
        done.map_err(|error| Trouble::write(&self.name, &error))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Opened::Stdout => io::stdout().write(bytes),
            Opened::Direct(file) | Opened::Over { file, .. } => file.write(bytes),
            Opened::Beside { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Opened::Stdout => io::stdout().flush(),
            Opened::Direct(file) | Opened::Over { file, .. } => file.flush(),
            Opened::Beside { file, .. } => file.flush(),
        }
    }
}

fn opened(path: &Path) -> io::Result<Opened> {
    let path = resolved(path);
    let old = std::fs::metadata(&path).ok();
    if old.as_ref().is_some_and(Metadata::is_dir) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // What another program holds open (/dev/fd/3) must be written where that program sees it.
    let is_held = path.starts_with("/dev") || path.starts_with("/proc");
    if is_held || old.as_ref().is_some_and(|old| !old.is_file()) {
        return Ok(Opened::Direct(File::create(path)?));
    }
    if old.is_some() {
        // A file that may not be written must not be replaced either.
        OpenOptions::new().write(true).open(&path)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = Permissions::from_mode(old.as_ref().map_or(0o666, |old| old.mode() & 0o777));
    let mut builder = tempfile::Builder::new();
    match Temporary::new(builder.prefix(".sisdiff-").permissions(permissions.clone()), Some(folder)) {
        Ok(file) => {
            if old.is_some() {
                // Not cut by the umask.
                file.as_file().set_permissions(permissions)?;
            }
            Ok(Opened::Beside { path, file })
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
            Ok(Opened::Over { path, file: tempfile::tempfile()? })
        }
        Err(error) => Err(error),
    }
}

/// The path behind all links, also where nothing is there yet.
fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // A descriptor's link shows a name, but is no name.
        if path.starts_with("/proc") || path.starts_with("/dev") {
            return path;
        }
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Whether that is a name of stdout.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// What lies at a path, stdin and stdout by their own names.
fn metadata(path: &Path, dash: &str) -> Option<Metadata> {
    std::fs::metadata(if path == Path::new("-") { Path::new(dash) } else { path }).ok()
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Refuses outputs (each with its flag) that are an input or each other, before anything is touched. `inputs`: what it
/// is called, and where.
///
/// # Errors
/// [`Trouble::Usage`].
pub fn check(outputs: &[(&str, &Path)], inputs: &[(&str, PathBuf)]) -> Result<(), Trouble> {
    for (at, &(flag, path)) in outputs.iter().enumerate() {
        if let Some((what, input)) = inputs.iter().find(|(_, input)| overwrites(path, input)) {
            return Err(Trouble::Usage(format!(
                "{flag} {}: would overwrite {what} {}; name another file",
                path.display(),
                input.display()
            )));
        }
        if let Some((other, _)) = outputs[..at].iter().find(|(_, other)| collide(path, other)) {
            return Err(Trouble::Usage(format!(
                "{flag} {}: is where {other} writes, too; name two files",
                path.display()
            )));
        }
    }
    Ok(())
}

fn overwrites(output: &Path, input: &Path) -> bool {
    let (Some(to), Some(from)) = (metadata(output, "/proc/self/fd/1"), metadata(input, "/proc/self/fd/0")) else {
        return false;
    };
    if from.is_dir() {
        // A folder is read as a whole.
        return to.is_file() && std::fs::canonicalize(input).is_ok_and(|folder| resolved(output).starts_with(folder));
    }
    from.is_file() && is_same(&to, &from)
}

fn collide(one: &Path, other: &Path) -> bool {
    if is_stdout(one) && is_stdout(other) {
        return true;
    }
    match (metadata(one, "/proc/self/fd/1"), metadata(other, "/proc/self/fd/1")) {
        // /dev/null takes any number of outputs.
        (Some(one), Some(other)) => is_same(&one, &other) && !one.file_type().is_char_device(),
        (None, None) => resolved(one) == resolved(other),
        _ => false,
    }
}

/// Passes on what is written until nobody reads it any more, then swallows the rest: for runs whose exit code is wanted
/// all the same.
pub struct Patient<W> {
    inner: W,
    gone: bool,
}

impl<W> Patient<W> {
    /// Around `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, gone: false }
    }

    fn unless_gone<T>(&mut self, otherwise: T, act: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.gone {
            return Ok(otherwise);
        }
        match act(&mut self.inner) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_gone(bytes.len(), |inner| inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_gone((), W::flush)
    }
}
