// SPDX-License-Identifier: GPL-2.0-or-later
//! What the machine has to be told about a recording.

use std::fmt;
use std::str::FromStr;

/// A kernel release, major and minor: decides by which rules the bookkeeping goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The 6 of 6.1.
    pub major: u32,
    /// The 1 of 6.1.
    pub minor: u32,
}

impl Release {
    /// Release `major`.`minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a text is no kernel release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("kernel release {found:?}: expected two numbers and a dot at its start, as in 6.1.0-57-amd64")]
pub struct ReleaseError {
    /// The text.
    pub found: String,
}

impl FromStr for Release {
    type Err = ReleaseError;

    /// Reads the start of `uname -r`: `6.1.0-57-amd64`, `v6.12`.
    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let number = |part: Option<&str>| {
            let part = part?;
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().ok()
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        match (number(parts.next()), number(parts.next())) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            _ => Err(ReleaseError { found: text.to_owned() }),
        }
    }
}

/// When a wakeup is put on the wake list of the target's CPU instead of being activated at once.
///
/// **Source**: kernel/sched/core.c, ttwu_queue_cond().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeListRule {
    /// Only where the target does not share cache (to 5.7).
    NoSharedCache,
    /// And a descheduling task whose CPU has at most that one running (5.8 to 5.19).
    OnCpu,
    /// And any other CPU with nothing running (since 6.0).
    Idle,
}

/// How the machine reads a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfig {
    /// Jiffies per second (`CONFIG_HZ`) of the recorded kernel. Not traced; default 250, Debian's.
    pub hz: u32,
    /// The recorded kernel's release; default 6.1.
    pub release: Release,
    /// Treat the recording as if it had no kprobe events.
    pub ignore_probes: bool,
    /// Check the books against probes of run queues, but do not use those.
    pub ignore_rq_probes: bool,
    /// WF_SYNC of wakeups for which no probe tells it. Default false.
    pub assumed_sync: bool,
    /// The recording has the entry probe of select_task_rq_fair(): a waking without it was no decision. Default false.
    pub has_sis_in: bool,
    /// The recording has sched_migrate_task: a wakeup without one stayed on prev_cpu. Default true.
    pub has_migrate: bool,
    /// The recorded machine was emulated on fewer real CPUs (QEMU TCG): virtual CPUs stand still most of the time and
    /// take fewer ticks. Default false.
    pub emulated: bool,
    /// Per CPU `rq->max_idle_balance_cost` as the topology snapshot gives it (the sum of its domains'
    /// max_newidle_lb_cost), ns; empty: not known, the kernel's floor of 500,000 is taken.
    pub max_idle_balance_cost_ns: Vec<u64>,
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self {
            hz: 250,
            release: Release::new(6, 1),
            ignore_probes: false,
            ignore_rq_probes: false,
            assumed_sync: false,
            has_sis_in: false,
            has_migrate: true,
            emulated: false,
            max_idle_balance_cost_ns: Vec::new(),
        }
    }
}

impl MachineConfig {
    pub(super) fn wake_list_rule(&self) -> WakeListRule {
        if self.release >= Release::new(6, 0) {
            WakeListRule::Idle
        } else if self.release >= Release::new(5, 8) {
            WakeListRule::OnCpu
        } else {
            WakeListRule::NoSharedCache
        }
    }

    /// `jiffies` at `ts_ns` of a clock that counts from boot.
    ///
    /// **Source**: include/linux/jiffies.h, INITIAL_JIFFIES: five minutes before a 32-bit counter wraps.
    pub(super) fn jiffies(&self, ts_ns: u64) -> u64 {
        let initial = u64::from(0u32.wrapping_sub(300u32.wrapping_mul(self.hz)));
        let hz = u64::from(self.hz);
        initial
            + match ts_ns.checked_mul(hz) {
                Some(ticks) => ticks / 1_000_000_000,
                // After half a year and more.
                None => (u128::from(ts_ns) * u128::from(hz) / 1_000_000_000) as u64,
            }
    }

    /// The time at which `jiffies` began, the inverse of [`Self::jiffies`].
    pub(super) fn jiffies_ns(&self, jiffies: u64) -> u64 {
        let initial = self.jiffies(0);
        let hz = u128::from(self.hz);
        (u128::from(jiffies.saturating_sub(initial)) * 1_000_000_000).div_ceil(hz) as u64
    }

    /// Whether scans are bounded by utilisation (SIS_UTIL).
    pub(super) fn has_sis_util(&self) -> bool {
        self.release >= Release::new(5, 19)
    }

    /// Whether the probes of the recording are used.
    pub(super) fn probed(&self) -> bool {
        self.has_sis_in && !self.ignore_probes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_uname() {
        assert_eq!("6.1.0-57-amd64".parse(), Ok(Release::new(6, 1)));
        assert_eq!("5.10.262".parse(), Ok(Release::new(5, 10)));
        assert_eq!("v7.3-rc2".parse(), Ok(Release::new(7, 3)));
        assert!("linux".parse::<Release>().is_err());
        assert!("6".parse::<Release>().is_err());
    }

    #[test]
    fn jiffies_start_five_minutes_before_they_wrap() {
        let config = MachineConfig::default();
        assert_eq!(config.jiffies(0), 4_294_892_296);
        assert_eq!(config.jiffies(10_000_000_000), 4_294_894_796);
        let odd = MachineConfig { hz: 300, ..MachineConfig::default() };
        for ns in [1u64, 3_333_333, 3_333_334, 12_345_678_901] {
            let jiffies = odd.jiffies(ns);
            assert!(odd.jiffies_ns(jiffies) <= ns && ns < odd.jiffies_ns(jiffies + 1), "{ns}");
        }
    }

    #[test]
    fn the_wake_list_rule_follows_the_release() {
        let rule = |major, minor| MachineConfig { release: Release::new(major, minor), ..Default::default() };
        assert_eq!(rule(5, 2).wake_list_rule(), WakeListRule::NoSharedCache);
        assert_eq!(rule(5, 10).wake_list_rule(), WakeListRule::OnCpu);
        assert_eq!(rule(6, 1).wake_list_rule(), WakeListRule::Idle);
    }
}
