// SPDX-License-Identifier: GPL-2.0-or-later
//! Memory shared with a helper process: room for a question and for an answer, each with a number that is raised when it is
//! there. Who waits looks a while, lets others run, and sleeps in the end.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Words of room for a question: the largest machine's description takes about half.
pub(super) const QUESTION_WORDS: usize = 1 << 18;
/// Words of room for an answer.
pub(super) const ANSWER_WORDS: usize = 1 << 17;
/// Bytes before the two.
const HEAD: usize = 4096;

/// Looks before others are let run, and how often they are before this side sleeps.
const LOOKS: u32 = 100;
const YIELDS: u32 = 100;

/// One direction. The helper has the same layout: see runtime.c.
#[repr(C)]
struct Half {
    number: AtomicU32,
    asleep: AtomicU32,
    words: AtomicU64,
    result: AtomicI64,
    _pad: [u8; 40],
}

/// The caller's side of the memory.
pub(super) struct Ring {
    file: File,
    start: *mut u8,
    number: u32,
}

// SAFETY: the mapping belongs to this value alone in this process, wherever it is moved.
unsafe impl Send for Ring {}

const SIZE: usize = HEAD + 8 * (QUESTION_WORDS + ANSWER_WORDS);

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: the name is a C string; the result is checked.
        let descriptor = unsafe { libc::memfd_create(c"sisdiff".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened and nobody else has it.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(SIZE as u64)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file of that size; the result is checked.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file, start: start.cast(), number: 0 })
    }

    /// The memory as a file, for the helper.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    fn half(&self, at: usize) -> &Half {
        // SAFETY: the mapping is larger and aligned to pages, lives as long as `self`, and any bytes are a `Half`, whose
        // parts are atomic: the helper may write them at any time.
        unsafe { &*self.start.add(at * size_of::<Half>()).cast::<Half>() }
    }

    /// Hands `question` over; whether there was room.
    pub(super) fn ask(&mut self, question: &[u64]) -> bool {
        if question.len() > QUESTION_WORDS {
            return false;
        }
        // SAFETY: the question's room is within the mapping, and the helper does not touch it between its answer to the
        // last question and the number's change below.
        unsafe {
            std::ptr::copy_nonoverlapping(question.as_ptr(), self.start.add(HEAD).cast::<u64>(), question.len());
        }
        self.number = self.number.wrapping_add(1);
        let half = self.half(0);
        half.words.store(question.len() as u64, Ordering::Relaxed);
        half.number.store(self.number, Ordering::SeqCst);
        if half.asleep.load(Ordering::SeqCst) != 0 {
            futex(&half.number, libc::FUTEX_WAKE, 1, None);
        }
        true
    }

    /// Waits for the answer, up to `patience` asleep; whether it is there.
    pub(super) fn wait(&self, patience: Duration) -> bool {
        let half = self.half(1);
        let here = |order| half.number.load(order) == self.number;
        for turn in 0..LOOKS + YIELDS {
            if here(Ordering::Acquire) {
                return true;
            }
            if turn < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        half.asleep.store(1, Ordering::SeqCst);
        let before = self.number.wrapping_sub(1);
        if !here(Ordering::SeqCst) {
            futex(&half.number, libc::FUTEX_WAIT, before, Some(patience));
        }
        half.asleep.store(0, Ordering::SeqCst);
        here(Ordering::SeqCst)
    }

    /// The result, and the answer's words, which are put into `answer`; `None`: it has no room for them.
    pub(super) fn take(&self, answer: &mut [u64], words: impl Fn(i64) -> usize) -> Option<i64> {
        let result = self.half(1).result.load(Ordering::Relaxed);
        let count = words(result);
        if count > ANSWER_WORDS {
            return None;
        }
        let to = answer.get_mut(..count)?;
        // SAFETY: that many words are within the mapping, and the helper does not write them before the next question.
        unsafe {
            let from = self.start.add(HEAD + 8 * QUESTION_WORDS).cast::<u64>();
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), count);
        }
        Some(result)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), SIZE) };
    }
}

fn futex(word: &AtomicU32, operation: i32, value: u32, patience: Option<Duration>) {
    let timeout = patience.map(|patience| libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: patience.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives in a mapping that outlives the call, the timeout on this stack; a failure is a wait that ended
    // early, which the caller finds out by looking.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}
