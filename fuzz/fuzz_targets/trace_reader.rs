// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader of trace.dat on any bytes: an error or events to the end, never a panic or a loop. What it reads without a
//! gap is the same by CPU, written again, and (some files) read by trace-cmd's library in a child process.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use sisdiff_fuzz::{trace, trace_mutator};

fuzz_target!(init: tracecmd_parse::tracecmd::serve_if_asked(), |bytes: &[u8]| {
    trace::check(bytes);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    trace_mutator::mutate(data, size, max_size, seed, fuzzer_mutate)
});
