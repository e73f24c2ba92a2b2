// SPDX-License-Identifier: GPL-2.0-or-later
//! As `wakeup`, with an off-by-one planted in every model: must be caught in seconds, or the fuzzing is broken.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::fuzz_loop::{Input, must_hold};
use sisdiff::oracle::canary::{Planted, off_by_one};

fuzz_target!(|input: Input| must_hold(&input.0, &Planted(off_by_one)));
