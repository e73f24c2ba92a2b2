// SPDX-License-Identifier: GPL-2.0-or-later
//! The report as JSON: schema `sisdiff.replay/1`, described in `docs/replay.schema.json`.

use serde::{Deserialize, Serialize};

use crate::replay::{Outcome, Totals};
use crate::report::shards::Shards;

/// Name and version of the schema. The number grows when a field changes its meaning or goes away; new fields do not
/// change it.
pub const SCHEMA: &str = "sisdiff.replay/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of sisdiff that wrote it.
    pub sisdiff: String,
    /// Which parts of a run it has; `None`: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<Shards>,
    /// One for each recording.
    pub files: Vec<Outcome>,
    /// Their sum, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Totals>,
}

impl Report {
    /// The report of `files` with their sum. `shards`: which parts of a run they are.
    pub fn new(files: Vec<Outcome>, shards: Option<Shards>) -> Self {
        let sum = (files.len() > 1).then(|| sum(&files));
        Self { schema: SCHEMA.to_owned(), sisdiff: env!("CARGO_PKG_VERSION").to_owned(), shards, files, sum }
    }

    /// The report as JSON text, indented, with a newline at its end.
    ///
    /// # Errors
    /// None that a report can cause; serde's.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// The totals of all `files` together.
pub fn sum(files: &[Outcome]) -> Totals {
    let mut sum = Totals::default();
    files.iter().enumerate().for_each(|(at, file)| sum.absorb(&file.totals, at));
    sum
}
