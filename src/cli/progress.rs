// SPDX-License-Identifier: GPL-2.0-or-later
//! Progress bars on stderr, on a terminal only, for anything over a second.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::replay::run::Progress;

/// What takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// One bar for each recording that is being replayed.
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
            let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} events, {eta} left");
            let bar = self.all.add(ProgressBar::new(all));
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.with_message(name(file))
        });
        bar.set_position(events);
        if events >= all {
            bar.finish_and_clear();
        }
    }
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
