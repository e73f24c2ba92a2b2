// SPDX-License-Identifier: GPL-2.0-or-later
//! A watch over the C that runs in this process: a loop without end in a place without marks ends as a fault, too, and a
//! process whose threads all wait for each other, as they may after a stray write into a lock, ends with a message.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

/// How often the watch looks. It counts its looks and not the time: a machine that slept took none.
const LOOK: Duration = Duration::from_millis(250);
/// Looks that find the same call before it is ended: ten seconds.
const ENOUGH: u32 = 40;
/// Looks after that before the whole process is.
const TOO_MUCH: u32 = ENOUGH + 12;
/// Looks that find every thread waiting for another before the process is ended: thirty seconds.
const STUCK: u32 = 120;

/// What is known of the calls of one object.
#[derive(Debug, Default)]
pub(super) struct Beat {
    /// Odd while a call is under way.
    count: AtomicU64,
    /// The thread that makes it.
    thread: AtomicU64,
}

static BEATS: Mutex<Vec<Arc<Beat>>> = Mutex::new(Vec::new());

impl Beat {
    /// One that is watched from now on.
    pub(super) fn watched() -> Arc<Self> {
        static WATCH: Once = Once::new();
        let beat = Arc::new(Self::default());
        BEATS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&beat));
        WATCH.call_once(|| {
            // Without a thread for it there is no watch, and all else is as it was.
            let _ = std::thread::Builder::new().name("tree-watch".to_owned()).spawn(watch);
        });
        beat
    }

    /// A call begins.
    #[inline]
    pub(super) fn begin(&self) {
        // SAFETY: it has no preconditions.
        self.thread.store(unsafe { libc::pthread_self() } as u64, Ordering::Relaxed);
        self.next(Ordering::Release);
    }

    /// It has ended.
    #[inline]
    pub(super) fn end(&self) {
        self.next(Ordering::Relaxed);
    }

    /// Only the thread that makes the call counts.
    #[inline]
    fn next(&self, order: Ordering) {
        self.count.store(self.count.load(Ordering::Relaxed).wrapping_add(1), order);
    }
}

/// Looks at all calls for ever.
fn watch() {
    let mut seen: Vec<(u64, u32)> = Vec::new();
    let mut stuck = 0;
    loop {
        std::thread::sleep(LOOK);
        let beats = BEATS.lock().unwrap_or_else(PoisonError::into_inner);
        seen.resize(beats.len(), (0, 0));
        for (beat, (count, looks)) in beats.iter().zip(&mut seen) {
            let now = beat.count.load(Ordering::Acquire);
            *looks = if now == *count && now % 2 == 1 { *looks + 1 } else { 0 };
            *count = now;
            if *looks == ENOUGH {
                // SAFETY: the thread is in a call, or was a moment ago and is then not hurt: the object's handler ends the
                // call where one is under way, and does nothing otherwise.
                unsafe { libc::pthread_kill(beat.thread.load(Ordering::Relaxed) as libc::pthread_t, libc::SIGVTALRM) };
            } else if *looks == TOO_MUCH {
                end("a call of a kernel tree's code does not come back and cannot be ended");
            }
        }
        drop(beats);
        stuck = if all_wait() { stuck + 1 } else { 0 };
        if stuck == STUCK {
            end(
                "all threads wait for each other after a kernel tree's code ran, which may have written where it must not",
            );
        }
    }
}

/// Ends this process, in which nothing can be trusted any more.
fn end(why: &str) -> ! {
    eprintln!("sisdiff: {why}; run again with --isolation process, which names the wakeup");
    // SAFETY: it ends the process, without the handlers that could wait for a lock.
    unsafe { libc::_exit(2) }
}

/// Whether every thread but this one sleeps in a futex. Threads that read, write or compute do not; where the system does
/// not say, nobody does.
fn all_wait() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    // SAFETY: it has no preconditions.
    let own = unsafe { libc::gettid() }.to_string();
    let futex = libc::SYS_futex.to_string();
    threads.flatten().filter(|thread| thread.file_name() != *own).all(|thread| {
        let call = std::fs::read_to_string(thread.path().join("syscall"));
        call.is_ok_and(|call| call.split_whitespace().next() == Some(&futex))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_computes_is_not_stuck() {
        // This thread runs, so that not all wait, whatever the test's other threads do.
        assert!(!std::thread::scope(|scope| {
            let looks = scope.spawn(all_wait);
            while !looks.is_finished() {
                std::hint::spin_loop();
            }
            looks.join().expect("it looks")
        }));
    }
}
