// SPDX-License-Identifier: GPL-2.0-or-later
//! Any bytes as a machine's description: an archive, lscpu's output, hwloc's XML. An error that names it, or a machine.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::topology::{describe, load::from_bytes};

fuzz_target!(|bytes: &[u8]| match from_bytes("the input", bytes, None) {
    Ok(loaded) => assert!(!describe(&loaded).is_empty()),
    Err(error) => assert!(error.to_string().contains("the input"), "{error}"),
});
