// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the search for an idle CPU can begin, what it would meet, and where limits end it: what predicates of changes to
//! the search ask.

use crate::cpumask::Cpumask;
use crate::spec::{Release, SchedFeat};
use crate::topology::{Domain, SdFlags, SharedId};
use crate::units::Cpu;
use crate::wakeup::WakeKind;

use super::Site;

/// `available_idle_cpu()`.
pub fn is_available(site: &Site<'_>, cpu: Cpu) -> bool {
    let rq = &site.state.rq;
    let queued = rq.nr_running[cpu.index()] > 0 || rq.ttwu_pending.test(cpu) || !rq.curr_idle.test(cpu);
    !queued && !rq.vcpu_preempted.test(cpu)
}

/// `sched_idle_cpu()`.
pub fn is_sched_idle(site: &Site<'_>, cpu: Cpu) -> bool {
    let nr_running = site.state.rq.nr_running[cpu.index()];
    nr_running > 0 && nr_running == site.state.rq.idle_h_nr_running[cpu.index()]
}

/// Idle by either.
pub fn is_idle(site: &Site<'_>, cpu: Cpu) -> bool {
    is_available(site, cpu) || is_sched_idle(site, cpu)
}

/// The wakee's allowed CPUs.
pub fn allowed<'a>(site: &'a Site<'_>) -> &'a Cpumask {
    &site.state.tasks[site.wakeup.p].cpus_ptr
}

/// The domain in which wake_affine() compares this_cpu with prev_cpu; `None`: it is not asked.
pub fn affine_domain<'a>(site: &'a Site<'_>) -> Option<&'a Domain> {
    let (topology, wakeup) = (&site.state.topology, site.wakeup);
    let (this_cpu, prev_cpu) = (wakeup.this_cpu, wakeup.prev_cpu);
    if wakeup.kind != WakeKind::Ttwu || this_cpu == prev_cpu || !allowed(site).test(this_cpu) {
        return None;
    }
    let domains = topology.hierarchy(this_cpu).iter().map(|&id| topology.domain(id));
    domains.into_iter().find(|sd| sd.flags.contains(SdFlags::WAKE_AFFINE) && sd.span.test(prev_cpu))
}

/// A target from which a search can go on beyond the target and prev_cpu themselves.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The target.
    pub target: Cpu,
    /// The span of its LLC domain.
    pub span: &'a Cpumask,
    /// What of it the wakee may use.
    pub usable: Cpumask,
    /// Its LLC's shared state.
    pub shared: Option<SharedId>,
}

/// The searches that can be made here; none where both releases take the target or prev_cpu at once, or where nobody
/// searches, as at a fork.
///
/// An available target ends the walk of every release, and so does an available prev_cpu that shares its cache; but not
/// where it also has to fit (asymmetric capacities) or be of the same cluster. A target that runs only SCHED_IDLE tasks
/// ends it since v5.6, unless the wakee is one itself (v7.1).
pub fn searches<'a>(site: &'a Site<'_>) -> impl Iterator<Item = Search<'a>> {
    let (topology, wakeup) = (&site.state.topology, site.wakeup);
    let prev = wakeup.prev_cpu;
    let this = affine_domain(site).map(|_| wakeup.this_cpu);
    let plain = !topology.asym_cpucapacity();
    let takes_sched_idle = site.older_spec.release() != Release::V5_2 && !site.state.tasks[wakeup.p].policy_idle;
    let ends = move |target: Cpu| {
        let at_prev = prev != target && !topology.has_clusters() && topology.cpus_share_cache(prev, target);
        let at_prev = at_prev && is_available(site, prev) && !is_sched_idle(site, target);
        plain && (is_available(site, target) || (takes_sched_idle && is_sched_idle(site, target)) || at_prev)
    };
    let targets = [Some(prev), this].into_iter().flatten().filter(|_| wakeup.kind == WakeKind::Ttwu);
    targets.filter(move |&target| !ends(target)).filter_map(move |target| {
        let span = &topology.domain(topology.sd_llc(target)?).span;
        Some(Search { target, span, usable: *span & *allowed(site), shared: topology.llc_shared(target) })
    })
}

impl Search<'_> {
    /// The first idle CPU that is usable in a scan from the target, and at which turn it comes, from 1.
    pub fn first_usable(&self, site: &Site<'_>) -> Option<(Cpu, u64)> {
        self.usable.iter_wrap(self.target.index()).zip(1..).find(|&(cpu, _)| is_idle(site, cpu))
    }

    /// The same in a scan from the CPU after the target.
    pub fn first_after(&self, site: &Site<'_>) -> Option<(Cpu, u64)> {
        self.usable.iter_wrap(self.target.index() + 1).zip(1..).find(|&(cpu, _)| is_idle(site, cpu))
    }

    /// The turn at which the older one's proportional limit ends its scan; 0: it makes none; `None`: no limit.
    pub fn older_limit(&self, site: &Site<'_>) -> Option<u64> {
        let this_cpu = site.wakeup.this_cpu;
        let features = site.older_spec.features();
        let avg_idle = site.state.rq.avg_idle_ns[this_cpu.index()] / 512;
        let avg_cost = site.older.cpus[this_cpu.index()].avg_scan_cost_ns.saturating_add(1);
        if features.contains(SchedFeat::SIS_AVG_CPU) && avg_idle < avg_cost {
            return Some(0);
        }
        let span_avg = u64::from(self.span.weight()).saturating_mul(avg_idle);
        let nr = if span_avg > avg_cost.saturating_mul(4) { span_avg / avg_cost } else { 4 };
        features.contains(SchedFeat::SIS_PROP).then_some(nr)
    }

    /// The same, where the newer one has this limit, too.
    pub fn common_limit(&self, site: &Site<'_>) -> Option<u64> {
        let both = site.older_spec.features() & site.newer_spec.features();
        self.older_limit(site).filter(|_| both.intersects(SchedFeat::SIS_PROP | SchedFeat::SIS_AVG_CPU))
    }

    /// The turn at which the newer one's limit by utilisation ends its scan; `None`: it has none.
    pub fn util_limit(&self, site: &Site<'_>) -> Option<u64> {
        let features = site.newer_spec.features();
        let nr = u64::from(site.newer.shared[self.shared?].nr_idle_scan) + 1;
        features.contains(SchedFeat::SIS_UTIL).then_some(nr)
    }

    /// The LLC, or in 7.3 what it balances with, is said to have idle cores.
    pub fn says_idle_cores(&self, site: &Site<'_>) -> bool {
        let topology = &site.state.topology;
        let says = |id: SharedId| site.older.shared[id].has_idle_cores || site.newer.shared[id].has_idle_cores;
        topology.smt_present() && [self.shared, topology.balance_shared(self.target)].into_iter().flatten().any(says)
    }

    /// A core of which a usable CPU leads to it, and all CPUs are idle: every search for a core ends there.
    pub fn has_idle_core(&self, site: &Site<'_>) -> bool {
        let topology = &site.state.topology;
        self.usable.iter().any(|cpu| topology.smt_mask(cpu).iter().all(|sibling| is_available(site, sibling)))
    }
}
