// SPDX-License-Identifier: GPL-2.0-or-later
//! The forms of machine descriptions, and what each cannot tell.

use std::fmt;

/// What form a description has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Files of /sys and /proc.
    Sysfs,
    /// A table of lscpu with a line for each CPU: `lscpu -p`, `lscpu -e`, `lscpu -e -J`.
    LscpuTable,
    /// What lscpu prints without options, or with `-J` alone: counts.
    LscpuSummary,
    /// hwloc's XML.
    Hwloc,
    /// A machine in a word.
    Shorthand,
    /// A guess from the number of CPUs.
    Guess,
}

impl Form {
    /// Whether groups of CPUs are guessed from counts.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::LscpuSummary | Self::Guess)
    }

    /// What the form never tells, and what is taken instead, as a full sentence; `None` where there is nothing to add.
    pub fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Sysfs | Self::Shorthand | Self::Guess => None,
            Self::LscpuTable => Some(
                "lscpu's table does not tell node distances (10 and 20 are taken), CPU capacities (1024), isolated CPUs \
                 (none), memory-only nodes, the architecture (x86), the kernel, its scheduler's settings nor its list of \
                 sched domains; a copy of /sys tells them",
            ),
            Self::LscpuSummary => Some(
                "lscpu's summary does not tell which CPUs share a core or a cache, node distances (10 and 20 are \
                 taken), CPU capacities (1024), isolated CPUs (none), the kernel, its scheduler's settings nor its list \
                 of sched domains; `lscpu -J -e` tells cores and caches, a copy of /sys tells all",
            ),
            Self::Hwloc => Some(
                "hwloc's XML does not tell isolated CPUs (none are taken), the kernel's scheduler settings nor its list \
                 of sched domains; a copy of /sys tells them",
            ),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sysfs => "a copy of /sys",
            Self::LscpuTable => "a table of lscpu",
            Self::LscpuSummary => "a summary of lscpu",
            Self::Hwloc => "XML of hwloc",
            Self::Shorthand => "a shorthand",
            Self::Guess => "a guess",
        })
    }
}
