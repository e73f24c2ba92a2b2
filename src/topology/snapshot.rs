// SPDX-License-Identifier: GPL-2.0-or-later
//! What a machine description tells besides the hardware: the kernel, its scheduler features, its domains.

use super::files::Files;
use super::release::Release;
use crate::units::Cpu;

/// Settings and scheduler state of the described machine; what is not told is `None` or empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// /proc/version, or the uname alone.
    pub kernel_version: Option<String>,
    /// The uname's release in it, such as `6.1.0-57-amd64`.
    pub kernel_release: Option<String>,
    /// Scheduler features in the kernel's order, without their `NO_`, and whether each is on.
    pub features: Vec<(String, bool)>,
    /// Timer ticks per second, derived from jiffies and uptime.
    pub hz: Option<u32>,
    /// Whether the CPUs are QEMU's without hardware virtualisation (TCG), by /proc/cpuinfo: then they stand still for
    /// milliseconds when the host has fewer.
    pub emulated: bool,
    /// Whether there is an energy model and energy-aware placement is not switched off; `None` where neither is told.
    pub energy_aware: Option<bool>,
    /// Whether CONFIG_FAIR_GROUP_SCHED is set.
    pub group_sched: Option<bool>,
    /// Whether autogroup is switched on.
    pub autogroup: Option<bool>,
    /// sysctl_sched_migration_cost, ns.
    pub migration_cost_ns: Option<u64>,
    /// Per CPU `rq->max_idle_balance_cost`, ns: avg_idle is clamped to twice this. Empty if not told.
    pub max_idle_balance_cost_ns: Vec<Option<u64>>,
    /// Where the kernel's own description of its domains was found.
    pub domain_source: DomainSource,
    /// Per CPU the domains that the kernel itself lists, bottom up. Empty without a source.
    pub domains: Vec<Vec<ListedDomain>>,
}

/// Where the kernel lists its sched domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DomainSource {
    /// Nowhere in the description: all is derived from the hardware.
    #[default]
    Derived,
    /// /sys/kernel/debug/sched/domains, since 5.13.
    Debugfs,
    /// /proc/sys/kernel/sched_domain, before.
    Sysctl,
}

impl DomainSource {
    /// The folder, from `sys/` or `proc/` on.
    pub fn path(self) -> Option<&'static str> {
        match self {
            Self::Derived => None,
            Self::Debugfs => Some("sys/kernel/debug/sched/domains"),
            Self::Sysctl => Some("proc/sys/kernel/sched_domain"),
        }
    }
}

/// One sched domain as the kernel lists it; it does not tell the span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedDomain {
    /// The level's name.
    pub name: Option<String>,
    /// The flags' names (`SD_…`); `None` if not told, or as a number (before 5.10).
    pub flags: Option<Vec<String>>,
    /// imbalance_pct.
    pub imbalance_pct: Option<u32>,
    /// max_newidle_lb_cost, ns.
    pub max_newidle_lb_cost_ns: Option<u64>,
}

impl Snapshot {
    /// Collects what `files` tell.
    pub(super) fn read(files: &Files) -> Self {
        let version = files.text("proc/version").or_else(|| files.text("proc/sys/kernel/osrelease"));
        let word = |text: &str| {
            let text = text.strip_prefix("Linux version ").unwrap_or(text);
            text.split_ascii_whitespace().next().map(str::to_owned)
        };
        let any = |paths: &[&str]| paths.iter().find_map(|path| files.text(path));
        let debug = any(&["sys/kernel/debug/sched/debug", "proc/sched_debug"]);
        let features = any(&["sys/kernel/debug/sched/features", "sys/kernel/debug/sched_features"]);
        let cost = any(&["sys/kernel/debug/sched/migration_cost_ns", "proc/sys/kernel/sched_migration_cost_ns"]);
        let (domain_source, domains) = listed_domains(files);
        Self {
            kernel_version: version.map(str::to_owned),
            kernel_release: version.and_then(word),
            features: features.map(parse_features).unwrap_or_default(),
            hz: debug.and_then(hz),
            emulated: files.text("proc/cpuinfo").is_some_and(|text| text.contains("QEMU TCG CPU")),
            energy_aware: energy_aware(files),
            group_sched: debug.and_then(group_sched),
            autogroup: files.text("proc/sys/kernel/sched_autogroup_enabled").map(|text| text != "0"),
            migration_cost_ns: cost.and_then(|text| text.parse().ok()),
            max_idle_balance_cost_ns: debug.map(max_idle_balance_cost).unwrap_or_default(),
            domain_source,
            domains,
        }
    }

    /// The release for building domains, if the kernel is told.
    pub fn release(&self) -> Option<Release> {
        self.kernel_version.as_deref().and_then(Release::parse)
    }

    /// Whether feature `name` (without `NO_`) is on; `None` if the kernel has no such feature or none are told.
    pub fn feature(&self, name: &str) -> Option<bool> {
        self.features.iter().find(|(feature, _)| feature == name).map(|&(_, on)| on)
    }
}

/// **Source**: kernel/sched/topology.c, sched_is_eas_possible() and sysctl_sched_energy_aware.
fn energy_aware(files: &Files) -> Option<bool> {
    match files.text("proc/sys/kernel/sched_energy_aware") {
        // Empty since 6.7 where it is not possible; 1 says nothing of a model.
        Some("0" | "") => Some(false),
        _ => files.has_under("sys/kernel/debug/energy_model").then_some(true),
    }
}

/// `SIS_UTIL NO_HRTICK` → (SIS_UTIL, on), (HRTICK, off).
fn parse_features(text: &str) -> Vec<(String, bool)> {
    let feature = |word: &str| match word.strip_prefix("NO_") {
        Some(name) => (name.to_owned(), false),
        None => (word.to_owned(), true),
    };
    text.split_ascii_whitespace().map(feature).collect()
}

/// The value of `NAME : VALUE` in the head of the scheduler's debug file.
fn field<'a>(debug: &'a str, name: &str) -> Option<&'a str> {
    let line = debug.lines().take(40).find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// Jiffies start 300 seconds before a 32-bit wrap and run HZ a second, so that jiffies and uptime together tell HZ.
/// `None` near the wrap, where they do not.
///
/// **Source**: include/linux/jiffies.h, INITIAL_JIFFIES.
fn hz(debug: &str) -> Option<u32> {
    let jiffies: f64 = field(debug, "jiffies")?.parse().ok()?;
    let uptime_s = field(debug, "ktime")?.parse::<f64>().ok()? / 1000.0;
    let since_wrap_s = uptime_s - 300.0;
    if since_wrap_s.abs() < 10.0 {
        return None;
    }
    let measured = (jiffies - f64::from(u32::MAX) - 1.0) / since_wrap_s;
    [100, 250, 300, 1000].into_iter().find(|&hz| (measured / f64::from(hz) - 1.0).abs() < 0.05)
}

/// Group scheduling prints a path behind each cfs_rq's name.
fn group_sched(debug: &str) -> Option<bool> {
    let line = debug.lines().find(|line| line.starts_with("cfs_rq["))?;
    line.split_once("]:").map(|(_, path)| path.starts_with('/'))
}

/// `.max_idle_balance_cost` of each `cpu#N` section.
fn max_idle_balance_cost(debug: &str) -> Vec<Option<u64>> {
    let mut costs = Vec::new();
    let mut cpu = None;
    for line in debug.lines() {
        if let Some(rest) = line.strip_prefix("cpu#") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
            cpu = digits.parse().ok().and_then(Cpu::new);
        } else if let (Some(cpu), Some(value)) = (cpu, line.trim_start().strip_prefix(".max_idle_balance_cost")) {
            let cost = value.trim_start_matches([' ', ':']).trim().parse().ok();
            costs.resize(costs.len().max(cpu.index() + 1), None);
            costs[cpu.index()] = cost;
        }
    }
    costs
}

fn listed_domains(files: &Files) -> (DomainSource, Vec<Vec<ListedDomain>>) {
    for source in [DomainSource::Debugfs, DomainSource::Sysctl] {
        let Some(folder) = source.path() else { continue };
        let cpus: Vec<usize> =
            files.numbered(folder, "cpu").into_iter().filter(|&cpu| Cpu::new(cpu).is_some()).collect();
        let Some(&highest) = cpus.last() else { continue };
        let mut listed = vec![Vec::new(); highest + 1];
        for cpu in cpus {
            let folder = format!("{folder}/cpu{cpu}");
            let domains = files.numbered(&folder, "domain").into_iter();
            listed[cpu] = domains.map(|at| listed_domain(files, &format!("{folder}/domain{at}"))).collect();
        }
        return (source, listed);
    }
    (DomainSource::Derived, Vec::new())
}

fn listed_domain(files: &Files, folder: &str) -> ListedDomain {
    let text = |name: &str| files.text(&format!("{folder}/{name}")).filter(|text| !text.is_empty());
    let flags = text("flags").filter(|text| text.starts_with("SD_"));
    ListedDomain {
        name: text("name").map(str::to_owned),
        flags: flags.map(|text| text.split_ascii_whitespace().map(str::to_owned).collect()),
        imbalance_pct: text("imbalance_pct").and_then(|text| text.parse().ok()),
        max_newidle_lb_cost_ns: text("max_newidle_lb_cost").and_then(|text| text.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hz_comes_from_jiffies_and_uptime() {
        let debug = |ktime: &str, jiffies: &str| format!("Sched Debug\nktime    : {ktime}\njiffies   : {jiffies}\n");
        assert_eq!(hz(&debug("6764.932390", "4294893877")), Some(250), "6.1, under emulation");
        assert_eq!(hz(&debug("7906.115221", "4294894198")), Some(250));
        // 400 s up at HZ=1000: 100 s past the wrap.
        assert_eq!(hz(&debug("400000.0", "4295067296")), Some(1000));
        assert_eq!(hz(&debug("305000.0", "4294968546")), None, "too near to the wrap");
        assert_eq!(hz("nothing of the kind"), None);
    }

    #[test]
    fn the_debug_file_tells_costs_and_group_scheduling() {
        let debug = "cpu#0, 2596.150 MHz\n  .max_idle_balance_cost         : 500000\n\ncfs_rq[0]:/\n\ncpu#2, 1 MHz\n  \
                     .max_idle_balance_cost : 612345\n";
        assert_eq!(max_idle_balance_cost(debug), [Some(500_000), None, Some(612_345)]);
        assert_eq!(group_sched(debug), Some(true));
        assert_eq!(group_sched("cfs_rq[0]:\n"), Some(false));
        assert_eq!(group_sched(""), None);
        assert_eq!(max_idle_balance_cost("cpu#99999999999\n .max_idle_balance_cost : 1\n"), []);
    }

    #[test]
    fn features_are_names_and_switches() {
        let files = Files::of(&[("sys/kernel/debug/sched/features", "SIS_UTIL NO_HRTICK NONTASK_CAPACITY\n")]);
        let snapshot = Snapshot::read(&files);
        assert_eq!(snapshot.feature("SIS_UTIL"), Some(true));
        assert_eq!(snapshot.feature("HRTICK"), Some(false));
        assert_eq!(snapshot.feature("NONTASK_CAPACITY"), Some(true));
        assert_eq!(snapshot.feature("SIS_PROP"), None);
        assert_eq!(snapshot.domain_source, DomainSource::Derived);
    }
}
