// SPDX-License-Identifier: GPL-2.0-or-later
//! A tree in a process of its own: words through shared memory. Whatever its code does, it does it there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ring::{self, Ring};
use super::{Fault, request};
use crate::error::TreeError;

/// A tree in a process of its own, with state of its own. The process is used again by the next one of the same file.
pub struct Helper {
    path: PathBuf,
    process: Option<Process>,
    faulted: bool,
}

/// Processes that nobody uses at the moment, by their file. They end when this process does.
static IDLE: Mutex<BTreeMap<PathBuf, Vec<Process>>> = Mutex::new(BTreeMap::new());

fn idle() -> MutexGuard<'static, BTreeMap<PathBuf, Vec<Process>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helper {
    /// Starts the program at `path`, unless one is idle.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(path: &Path) -> Result<Self, TreeError> {
        let used = idle().get_mut(path).and_then(Vec::pop);
        let reset = |mut process: Process| {
            let done = process.request(&[request::RESET], &mut [0; 16]);
            (done == Ok(0)).then_some(process)
        };
        let process = match used.and_then(reset) {
            Some(process) => process,
            None => Process::start(path)?,
        };
        Ok(Self { path: path.to_owned(), process: Some(process), faulted: false })
    }

    /// Puts `question` to the tree; the words of the answer are at the start of `answer`.
    ///
    /// # Errors
    /// The tree's code faulted, or its process is gone.
    pub fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        let gone = || Fault::Helper { how: "it was ended before".to_owned() };
        let result = self.process.as_mut().ok_or_else(gone)?.request(question, answer);
        self.faulted |= result.is_err();
        result
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(process) = self.process.take().filter(|_| !self.faulted) {
            idle().entry(std::mem::take(&mut self.path)).or_default().push(process);
        }
    }
}

/// A running helper. It ends when this is dropped.
struct Process {
    child: Child,
    ring: Ring,
    /// Nothing is written to it: the helper sees by it whether this process is still there.
    _lifeline: ChildStdout,
    said: File,
}

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a helper that does not answer is looked after.
const LOOK: Duration = Duration::from_millis(20);

impl Process {
    fn start(path: &Path) -> Result<Self, TreeError> {
        let io = |source| TreeError::Io { path: path.display().to_string(), source };
        let said = tempfile::tempfile().map_err(io)?;
        let ring = Ring::new().map_err(io)?;
        let mut child = Command::new(path)
            .args([ring::QUESTION_WORDS, ring::ANSWER_WORDS].map(|words| words.to_string()))
            .env("ASAN_OPTIONS", "detect_leaks=0:exitcode=99:use_sigaltstack=1")
            .env("UBSAN_OPTIONS", "print_stacktrace=1:exitcode=99:halt_on_error=1")
            .stdin(ring.file().map_err(io)?)
            .stdout(Stdio::piped())
            .stderr(said.try_clone().map_err(io)?)
            .spawn()
            .map_err(io)?;
        let lifeline = child.stdout.take().expect("piped above");
        Ok(Self { child, ring, _lifeline: lifeline, said })
    }

    fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        if !self.ring.ask(question) {
            return Err(Fault::Answer);
        }
        if !self.ring.wait(LOOK) {
            self.wait()?;
        }
        // A fault's words are always sixteen.
        let words = |result: i64| usize::try_from(result).unwrap_or(16);
        let result = self.ring.take(answer, words).ok_or(Fault::Answer)?;
        usize::try_from(result).map_err(|_| Fault::from_words(-result, answer))
    }

    /// Waits for an answer that takes its time.
    fn wait(&mut self) -> Result<(), Fault> {
        let asked = Instant::now();
        loop {
            if self.ring.wait(LOOK) {
                return Ok(());
            }
            // It may have answered and ended since.
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) && !self.ring.wait(Duration::ZERO) {
                return Err(self.gone(None));
            }
            if asked.elapsed() > PATIENCE {
                let _ = self.child.kill();
                return Err(self.gone(Some("no answer in 20 seconds")));
            }
        }
    }

    /// How the process ended, with the telling line of what it said.
    fn gone(&mut self, why: Option<&str>) -> Fault {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let mut text = String::new();
        let read = self.said.rewind().and_then(|()| self.said.read_to_string(&mut text));
        let telling =
            |line: &&str| line.contains("SUMMARY:") || line.contains("runtime error:") || line.contains("ERROR:");
        let lines: Vec<&str> = text.lines().filter(telling).take(3).collect();
        let how = match (read, lines.is_empty(), why) {
            (Ok(_), false, _) => format!("{status}; {}", lines.join("; ")),
            (_, _, Some(why)) => why.to_owned(),
            _ => status,
        };
        Fault::Helper { how }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It keeps nothing that would be lost.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
