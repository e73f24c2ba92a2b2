// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine of which only the number of CPUs is known.

use super::hardware::Hardware;
use crate::cpumask::Cpumask;

/// One socket with one last-level cache and no SMT, `nr_cpus` CPUs (1 to 1024), and a sentence that says so.
pub fn guess(nr_cpus: usize) -> (Hardware, String) {
    let mut hw = Hardware::separate(nr_cpus);
    let all = vec![Cpumask::first_n(nr_cpus); nr_cpus];
    hw.llc = all.clone();
    hw.die = all.clone();
    hw.package = all;
    let note = format!(
        "the topology is a guess from the number of CPUs: {nr_cpus} CPUs in one socket, one last-level cache, no SMT; \
         give the machine's own with --topology"
    );
    (hw, note)
}
