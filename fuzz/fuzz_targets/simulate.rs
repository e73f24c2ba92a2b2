// SPDX-License-Identifier: GPL-2.0-or-later
//! Any workload on any machine: no task is lost or runs twice, time and work add up, each signal is delivered once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sisdiff::simulate::invent::must_hold;

fuzz_target!(|bytes: &[u8]| must_hold(bytes));
