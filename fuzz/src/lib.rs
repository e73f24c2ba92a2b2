// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fuzz targets hold against each other.

/// What the tests of the reader share, for the same files here.
#[path = "../../tracecmd-parse/tests/common/model.rs"]
#[allow(dead_code)]
pub mod model;
#[path = "../../tracecmd-parse/tests/common/random.rs"]
pub mod random;
#[path = "../../tracecmd-parse/tests/common/structure.rs"]
#[allow(dead_code)]
pub mod structure;

pub mod text;
pub mod trace;
pub mod trace_mutator;
