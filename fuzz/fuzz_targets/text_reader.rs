// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader of texts on any bytes: an error or events to the end, the same ones from memory and out of a pipe.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff_fuzz::text;

fuzz_target!(|bytes: &[u8]| {
    text::check(bytes);
});
