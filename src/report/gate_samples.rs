// SPDX-License-Identifier: GPL-2.0-or-later
//! A gate's checks for the tests of its reports.

use crate::gate::{Check, Status};

/// A check with pair `p` of v5.11 and v6.1, of the recording called `trace` at `path`, with nothing to say yet.
pub(super) fn check(trace: &str, path: &str, snapshot: &str, status: Status) -> Check {
    Check {
        trace: trace.to_owned(),
        path: path.to_owned(),
        pair: "p".to_owned(),
        specs: ["v5.11".to_owned(), "v6.1".to_owned()],
        snapshot: snapshot.to_owned(),
        status,
        changes: Vec::new(),
        texts: None,
        old_specs: None,
        violations: Vec::new(),
        is_pending: false,
    }
}
