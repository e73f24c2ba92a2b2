// SPDX-License-Identifier: GPL-2.0-or-later
//! As `wakeup`, with the implementations that SISDIFF_PAIR names: `SISDIFF_PAIR=v6.1,v6.12 cargo fuzz run pair`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::fuzz_loop::must_hold;
use sisdiff::oracle::Models;
use sisdiff::scenario::Case;

fuzz_target!(|case: Case| {
    let names = std::env::var("SISDIFF_PAIR").unwrap_or_else(|_| "v5.11,v5.11+mel-v2".to_owned());
    let pair = names.split(',').map(str::to_owned).collect();
    must_hold(&Case { pair, ..case }, &Models);
});
