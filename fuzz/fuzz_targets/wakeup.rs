// SPDX-License-Identifier: GPL-2.0-or-later
//! Any case, played by the models side by side: no oracle speaks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::fuzz_loop::must_hold;
use sisdiff::oracle::Models;
use sisdiff::scenario::Case;

fuzz_target!(|case: Case| must_hold(&case, &Models));
