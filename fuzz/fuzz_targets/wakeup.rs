// SPDX-License-Identifier: GPL-2.0-or-later
//! Any case, played by the models side by side: no oracle speaks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::fuzz_loop::{Input, must_hold};
use sisdiff::oracle::Models;

fuzz_target!(|input: Input| must_hold(&input.0, &Models));
