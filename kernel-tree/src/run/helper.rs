// SPDX-License-Identifier: GPL-2.0-or-later
//! A tree in a process of its own: words through pipes. Whatever its code does, it does it there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Fault, request};
use crate::error::TreeError;

/// A tree in a process of its own, with state of its own. The process is used again by the next one of the same file.
pub struct Helper {
    path: PathBuf,
    process: Option<Process>,
    faulted: bool,
}

/// Processes that nobody uses at the moment, by their file. They end with this process, whose pipes they read.
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
    // Closed first on drop: that is the helper's sign to end.
    to: Option<ChildStdin>,
    from: ChildStdout,
    said: File,
    bytes: Vec<u8>,
}

impl Process {
    fn start(path: &Path) -> Result<Self, TreeError> {
        let io = |source| TreeError::Io { path: path.display().to_string(), source };
        let said = tempfile::tempfile().map_err(io)?;
        let mut child = Command::new(path)
            .env("ASAN_OPTIONS", "detect_leaks=0:exitcode=99:use_sigaltstack=1")
            .env("UBSAN_OPTIONS", "print_stacktrace=1:exitcode=99:halt_on_error=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone().map_err(io)?)
            .spawn()
            .map_err(io)?;
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("piped above"));
        Ok(Self { child, to, from, said, bytes: Vec::new() })
    }

    fn request(&mut self, question: &[u64], answer: &mut [u64]) -> Result<usize, Fault> {
        self.exchange(question, answer).unwrap_or_else(|error| Err(self.gone(&error)))
    }

    fn exchange(&mut self, question: &[u64], answer: &mut [u64]) -> std::io::Result<Result<usize, Fault>> {
        self.bytes.clear();
        self.bytes.extend_from_slice(&(question.len() as u64).to_ne_bytes());
        self.bytes.extend(question.iter().flat_map(|word| word.to_ne_bytes()));
        let closed = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        self.to.as_mut().ok_or_else(closed)?.write_all(&self.bytes)?;
        let mut head = [0; 16];
        self.from.read_exact(&mut head)?;
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let (result, count) = (word(&head[..8]) as i64, word(&head[8..]) as usize);
        if count > answer.len() {
            return Ok(Err(Fault::Answer));
        }
        self.bytes.resize(count * 8, 0);
        self.from.read_exact(&mut self.bytes)?;
        for (to, from) in answer.iter_mut().zip(self.bytes.chunks_exact(8)) {
            *to = word(from);
        }
        Ok(usize::try_from(result).map_err(|_| Fault::from_words(-result, answer)))
    }

    /// How the process ended, with the telling line of what it said.
    fn gone(&mut self, error: &std::io::Error) -> Fault {
        drop(self.to.take());
        let status = self.child.wait().map_or_else(|_| error.to_string(), |status| status.to_string());
        let mut text = String::new();
        let read = self.said.rewind().and_then(|()| self.said.read_to_string(&mut text));
        let telling =
            |line: &&str| line.contains("SUMMARY:") || line.contains("runtime error:") || line.contains("ERROR:");
        let lines: Vec<&str> = text.lines().filter(telling).take(3).collect();
        let how = match (read, lines.is_empty()) {
            (Ok(_), false) => format!("{status}; {}", lines.join("; ")),
            _ if status.contains("signal: 14") => format!("{status}; no answer in 20 seconds"),
            _ => status,
        };
        Fault::Helper { how }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.to.take());
        // It ends by itself at the end of its input; if it hangs, its own alarm ends it.
        let _ = self.child.wait();
    }
}
