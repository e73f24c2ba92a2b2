// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of `fidelity` as JSON: schema `sisdiff.fidelity/1`, described in `docs/fidelity.schema.json`.

use serde::{Deserialize, Serialize};

use crate::fidelity::figures::{FileFidelity, Kind};
use crate::replay::totals::ByKind;
use crate::report::fidelity::pools;

/// Name and version of the schema. The number grows when a field changes its meaning or goes away; new fields do not
/// change it.
pub const SCHEMA: &str = "sisdiff.fidelity/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of sisdiff that wrote it.
    pub sisdiff: String,
    /// One for each recording.
    pub files: Vec<FileFidelity>,
    /// By level of probes.
    pub pooled: Vec<Pool>,
}

/// All recordings with the same level of probes, the models of their kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Level of probes, or `ignored`.
    pub probes: String,
    /// Recordings.
    pub files: u64,
    /// Their sums.
    pub kinds: ByKind<Kind>,
    /// Agreement of the wakeups in percent, for scripts.
    pub agree_percent: Option<f64>,
}

impl Report {
    /// The report of `files`.
    pub fn new(files: Vec<FileFidelity>) -> Self {
        let pool = |(probes, files, pool): (String, u64, crate::fidelity::Implementation)| Pool {
            probes,
            files,
            kinds: pool.kinds,
            agree_percent: pool.kinds.wakeups.share().percent(),
        };
        let pooled = pools(&files).into_iter().map(pool).collect();
        Self { schema: SCHEMA.to_owned(), sisdiff: env!("CARGO_PKG_VERSION").to_owned(), files, pooled }
    }

    /// The report as JSON text, indented, with a newline at its end.
    ///
    /// # Errors
    /// None that a report can cause; serde's.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
