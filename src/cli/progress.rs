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
            bar.with_message(file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
        });
        bar.set_position(events);
        if events >= all {
            bar.finish_and_clear();
        }
    }
}
