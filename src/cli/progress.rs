// SPDX-License-Identifier: GPL-2.0-or-later
//! Progress bars on stderr, on a terminal only, for anything over a second.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::replay::run::Progress;

/// What takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// What shows where the number of events is not known beforehand.
const SPINNER: &str = "{msg} {spinner} {human_pos} events, {per_sec}";

/// One bar for each recording that is being read; where its length is not known (0 events in all) it only counts.
pub struct Bars {
    started: Instant,
    shown: bool,
    all: MultiProgress,
    bars: Mutex<BTreeMap<PathBuf, ProgressBar>>,
}

impl Bars {
    /// Bars, unless `quiet` or nobody looks.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self { started: Instant::now(), shown, all: MultiProgress::new(), bars: Mutex::default() }
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        if self.shown {
            // A terminal that cannot be cleared keeps its bars: nothing is lost.
            let _ = self.all.clear();
        }
    }
}

impl Progress for Bars {
    fn at(&self, file: &Path, events: u64, all: u64) {
        if !self.shown || self.started.elapsed() < PATIENCE {
            return;
        }
        let Ok(mut bars) = self.bars.lock() else { return };
        let bar = bars.entry(file.to_owned()).or_insert_with(|| {
            let bar = if all > 0 { ProgressBar::new(all) } else { ProgressBar::no_length() };
            let bar = self.all.add(bar);
            let template =
                if all > 0 { "{msg} {wide_bar} {human_pos}/{human_len} events, {eta} left" } else { SPINNER };
            let style = ProgressStyle::with_template(template);
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.with_message(name(file))
        });
        if all > 0 {
            // An estimate that becomes better.
            bar.set_length(all);
        }
        bar.set_position(events);
        if all > 0 && events >= all {
            bar.finish_and_clear();
        }
    }
}

/// The bar of a fuzz run: over its time, or over its cases.
pub struct Bar {
    started: Instant,
    quiet: bool,
    time: Option<Duration>,
    bar: ProgressBar,
}

impl Bar {
    /// A bar, unless `quiet` or nobody looks.
    pub fn new(quiet: bool, time: Option<Duration>, cases: Option<u64>) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let len = time.map(|time| time.as_millis() as u64).or(cases);
        bar.set_length(len.unwrap_or(0));
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}%, {eta} left") {
            bar.set_style(style);
        }
        Self { started: Instant::now(), quiet, time, bar }
    }

    /// So many cases are played.
    pub fn at(&self, cases: u64, findings: usize) {
        if self.bar.is_hidden() || self.started.elapsed() < PATIENCE {
            return;
        }
        self.bar.set_position(if self.time.is_some() { self.started.elapsed().as_millis() as u64 } else { cases });
        self.bar.set_message(format!("{cases} cases, {findings} findings"));
    }

    /// A line on stderr, above the bar.
    pub fn line(&self, line: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprintln!("{line}"));
        }
    }

    /// What was found is being made smaller.
    pub fn minimizing(&self) {
        self.bar.set_message("minimizing");
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The bar of many replays: how many of them are done.
pub struct Many {
    started: Instant,
    done: AtomicU64,
    bar: ProgressBar,
}

impl Many {
    /// A bar over `all` replays, unless `quiet` or nobody looks.
    pub fn new(quiet: bool, all: usize) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = if shown { ProgressBar::new(all as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} replays, {eta} left") {
            bar.set_style(style);
        }
        Self { started: Instant::now(), done: AtomicU64::new(0), bar }
    }

    /// One more is done.
    pub fn done(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.bar.is_hidden() && self.started.elapsed() >= PATIENCE {
            self.bar.set_position(done);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Many {
    fn at(&self, _file: &Path, _events: u64, _all: u64) {}
}

/// The last two parts of a path: recordings are often `NAME/trace.dat`.
fn name(file: &Path) -> String {
    let parts: Vec<_> = file.iter().rev().take(2).collect();
    let path: PathBuf = parts.into_iter().rev().collect();
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_named_by_what_tells_recordings_apart() {
        assert_eq!(name(Path::new("/a/b/numa80/trace.dat")), "numa80/trace.dat");
        assert_eq!(name(Path::new("trace.dat")), "trace.dat");
    }
}
