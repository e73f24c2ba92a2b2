// SPDX-License-Identifier: GPL-2.0-or-later
//! Which decisions are counted. All of them are always replayed: hidden state depends on every one.

use globset::GlobSet;

use crate::cpumask::Cpumask;
use crate::units::{Comm, Cpu, Pid};

/// Conditions that must all hold; each list is empty where everything passes.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before this time, ns of the trace's clock.
    pub since_ns: Option<u64>,
    /// Before this time, ns of the trace's clock.
    pub until_ns: Option<u64>,
    /// The wakee's name matches one of these.
    pub comms: Option<GlobSet>,
    /// The wakee is one of these.
    pub pids: Vec<Pid>,
    /// The waking ran on one of these CPUs.
    pub cpus: Option<Cpumask>,
}

impl Filter {
    /// Whether a waking of the task at that time on that CPU counts.
    pub fn passes(&self, ts_ns: u64, pid: Pid, comm: &Comm, this_cpu: Cpu) -> bool {
        use std::os::unix::ffi::OsStrExt;
        self.since_ns.is_none_or(|since| ts_ns >= since)
            && self.until_ns.is_none_or(|until| ts_ns < until)
            && (self.pids.is_empty() || self.pids.contains(&pid))
            && self.cpus.as_ref().is_none_or(|cpus| cpus.test(this_cpu))
            && self.comms.as_ref().is_none_or(|comms| comms.is_match(std::ffi::OsStr::from_bytes(comm.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use globset::{Glob, GlobSetBuilder};

    #[test]
    fn every_condition_must_hold() {
        let comms = GlobSetBuilder::new().add(Glob::new("kworker/*").expect("a glob")).build().expect("a set");
        let filter = Filter {
            since_ns: Some(10),
            until_ns: Some(20),
            comms: Some(comms),
            pids: vec![Pid(7), Pid(8)],
            cpus: Some("0-3".parse().expect("a cpulist")),
        };
        let passes = |ts, pid, comm: &str, cpu| filter.passes(ts, Pid(pid), &Comm::new(comm.as_bytes()), Cpu(cpu));
        assert!(passes(10, 8, "kworker/3:1", 3));
        assert!(!passes(9, 8, "kworker/3:1", 3) && !passes(20, 8, "kworker/3:1", 3));
        assert!(!passes(10, 9, "kworker/3:1", 3));
        assert!(!passes(10, 8, "kworker", 3));
        assert!(!passes(10, 8, "kworker/3:1", 4));
        assert!(Filter::default().passes(0, Pid(0), &Comm::default(), Cpu(0)));
    }
}
