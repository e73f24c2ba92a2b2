// SPDX-License-Identifier: GPL-2.0-or-later
//! Timer ticks between events, and the periodic balancing they start: that is when loads of running and idle CPUs are
//! brought up to date, and when `nr_idle_scan` is written.
//!
//! Derived, not traced: ticks are put on the boundaries of jiffies, intervals are those of a balanced machine, and no
//! balancing pass is cut short.
//!
//! **Source**: kernel/sched/fair.c, v6.1: trigger_load_balance(), nohz_balancer_kick(), _nohz_idle_balance(),
//! rebalance_domains(), should_we_balance(), update_idle_cpu_scan().

use crate::cpumask::Cpumask;
use crate::machine::apply::{Machine, Out};
use crate::machine::notice::Notice;
use crate::machine::pace::Pace;
use crate::machine::{State, Step};
use crate::topology::{DomainId, SharedId};
use crate::units::Cpu;

/// How much slower a busy CPU balances (`sd->busy_factor`).
const BUSY_FACTOR: u64 = 16;
/// Blocked load of idle CPUs is brought up to date this often, ms (`LOAD_AVG_PERIOD`).
const BLOCKED_MS: u64 = 32;
/// After a silence of this many ticks everything has decayed as far as it matters: the ticks in between are left out.
const TICKS_MAX: u64 = 2_000;

/// When which CPU balances next, in jiffies.
#[derive(Debug, Clone, Default)]
pub(super) struct Balancer {
    /// The tick that comes next; 0: the first event sets it.
    next_tick: u64,
    /// When that is, ns.
    next_tick_ns: u64,
    cpus: Vec<CpuBalance>,
    /// `nohz.next_balance` and `nohz.next_blocked`.
    nohz_next_balance: u64,
    nohz_next_blocked: u64,
    /// By domain, the interval of an idle and of a busy CPU.
    intervals: Vec<[u64; 2]>,
    /// By shared state, what was told last.
    nr_idle_scan: Vec<Option<u32>>,
    /// How many virtual CPUs run at a time, where they share fewer real ones.
    pub(super) pace: Pace,
}

#[derive(Debug, Clone, Default)]
struct CpuBalance {
    next_balance: u64,
    /// `sd->last_balance`, parallel to the CPU's hierarchy.
    last_balance: Vec<u64>,
    /// It had a tick since it was last idle: counted in `nr_busy_cpus`.
    busy: bool,
    /// A tick fell due while the virtual CPU did not run.
    late: bool,
}

impl Balancer {
    /// The derived nr_idle_scan, if there was a balancing pass yet.
    pub(super) fn told(&self, shared: SharedId) -> Option<u32> {
        self.nr_idle_scan.get(shared).copied().flatten()
    }

    /// A CPU stops its tick.
    pub(super) fn enter_idle(&mut self, cpu: Cpu) {
        if let Some(balance) = self.cpus.get_mut(cpu.index()) {
            (balance.busy, balance.late) = (false, false);
        }
    }

    fn start(&mut self, state: &State, hz: u32, jiffies: u64) {
        self.next_tick = jiffies + 1;
        self.intervals = state.topology.domains().iter().map(|domain| intervals(&domain.span, hz)).collect();
        let cpu = |cpu| CpuBalance { last_balance: vec![0; state.topology.hierarchy(cpu).len()], ..Default::default() };
        self.cpus = state.topology.cpus().map(cpu).collect();
        self.nr_idle_scan = vec![None; state.topology.nr_shared()];
    }
}

impl Machine {
    /// Lets the ticks up to `ts_ns` happen, and on `cpu` itself, which shows that it runs, one that is late.
    #[inline]
    pub(super) fn tick_to(&mut self, cpu: Cpu, ts_ns: u64, out: Out<'_>) {
        let late = self.balancer.cpus.get_mut(cpu.index()).is_some_and(|balance| std::mem::take(&mut balance.late));
        if ts_ns >= self.balancer.next_tick_ns {
            self.ticks_to(cpu, ts_ns, late, out);
        } else if late {
            self.tick(cpu, self.config.jiffies(ts_ns), ts_ns, out);
        }
        if self.config.emulated {
            self.balancer.pace.event(cpu, ts_ns);
        }
    }

    fn ticks_to(&mut self, cpu: Cpu, ts_ns: u64, late: bool, out: Out<'_>) {
        let jiffies = self.config.jiffies(ts_ns);
        if self.balancer.next_tick == 0 {
            let mut balancer = std::mem::take(&mut self.balancer);
            balancer.start(&self.state, self.config.hz, jiffies);
            self.balancer = balancer;
        }
        self.balancer.cpus[cpu.index()].late = late;
        self.balancer.next_tick = self.balancer.next_tick.max(jiffies.saturating_sub(TICKS_MAX));
        while self.balancer.next_tick <= jiffies {
            let now = self.balancer.next_tick;
            self.all_tick(now, self.config.jiffies_ns(now), out);
            self.balancer.next_tick += 1;
        }
        self.balancer.next_tick_ns = self.config.jiffies_ns(self.balancer.next_tick);
        if std::mem::take(&mut self.balancer.cpus[cpu.index()].late) {
            self.tick(cpu, jiffies, ts_ns, out);
        }
    }

    fn all_tick(&mut self, now: u64, now_ns: u64, out: Out<'_>) {
        let busy = self.state.topology.online().and_not(&self.state.rq.curr_idle);
        let turns = if self.config.emulated { self.balancer.pace.turns(busy.weight()) } else { 1 };
        for cpu in busy.iter() {
            if (now + u64::from(cpu.0)).is_multiple_of(turns) {
                self.tick(cpu, now, now_ns, out);
            } else {
                self.balancer.cpus[cpu.index()].late = true;
            }
        }
    }

    /// The tick of a CPU that is not idle.
    fn tick(&mut self, cpu: Cpu, now: u64, now_ns: u64, out: Out<'_>) {
        self.balancer.cpus[cpu.index()].busy = true;
        self.balancer.cpus[cpu.index()].late = false;
        self.loads.tick(cpu, now_ns);
        if now >= self.balancer.cpus[cpu.index()].next_balance {
            self.rebalance(cpu, false, now, out);
        }
        let topology = &self.state.topology;
        let idle = *topology.online() & self.state.rq.curr_idle;
        if idle.is_empty() {
            return;
        }
        let is_busy = |cpu: &Cpu| self.balancer.cpus[cpu.index()].busy;
        let llc_busy = || topology.sd_llc(cpu).map_or(0, |id| topology.domain(id).span.iter().filter(is_busy).count());
        let due = now >= self.balancer.nohz_next_balance;
        let balance = due && (self.cpus[cpu.index()].now.nr >= 2 || llc_busy() > 1);
        if balance || now > self.balancer.nohz_next_blocked {
            self.balance_idle(&idle, balance, now, now_ns, out);
        }
    }

    /// An idle CPU does this for all idle ones.
    fn balance_idle(&mut self, idle: &Cpumask, balance: bool, now: u64, now_ns: u64, out: Out<'_>) {
        let mut next = now + 60 * u64::from(self.config.hz);
        for cpu in idle.iter() {
            self.loads.tick(cpu, now_ns);
            if balance && now >= self.balancer.cpus[cpu.index()].next_balance {
                self.rebalance(cpu, true, now, out);
            }
            next = next.min(self.balancer.cpus[cpu.index()].next_balance);
        }
        if balance {
            self.balancer.nohz_next_balance = next.max(now + 1);
        }
        self.balancer.nohz_next_blocked = now + jiffies_of_ms(BLOCKED_MS, self.config.hz);
    }

    /// The domains of a CPU, bottom up, as far as it is the one that balances its group.
    fn rebalance(&mut self, cpu: Cpu, idle: bool, now: u64, out: Out<'_>) {
        let topology = self.state.topology.clone();
        let mut next = now + 60 * u64::from(self.config.hz);
        for (at, &sd) in topology.hierarchy(cpu).iter().enumerate() {
            let interval = self.balancer.intervals[sd][usize::from(!idle)];
            let mut balances = true;
            if now >= self.balancer.cpus[cpu.index()].last_balance[at] + interval {
                balances = self.should_we_balance(cpu, at);
                if balances && topology.sd_llc(cpu) == Some(sd) {
                    self.update_idle_cpu_scan(cpu, sd, out);
                }
                self.balancer.cpus[cpu.index()].last_balance[at] = now;
            }
            next = next.min(self.balancer.cpus[cpu.index()].last_balance[at] + interval);
            if !balances {
                break;
            }
        }
        self.balancer.cpus[cpu.index()].next_balance = next;
    }

    /// The first idle CPU of the local group, else its first CPU.
    fn should_we_balance(&self, cpu: Cpu, at: usize) -> bool {
        let topology = &self.state.topology;
        let group = match at.checked_sub(1) {
            Some(below) => topology.domain(topology.hierarchy(cpu)[below]).span,
            None => Cpumask::of(cpu),
        };
        let is_idle = |cpu: &Cpu| {
            let now = self.cpus[cpu.index()].now;
            self.state.rq.curr_idle.test(*cpu) && now.nr == 0 && now.nr_listed == 0
        };
        let first = group.iter().find(is_idle).or_else(|| group.first());
        first == Some(cpu)
    }

    fn update_idle_cpu_scan(&mut self, cpu: Cpu, sd: DomainId, out: Out<'_>) {
        if !self.config.has_sis_util() {
            return;
        }
        let Some(shared) = self.state.topology.llc_shared(cpu) else { return };
        let domain = self.state.topology.domain(sd);
        let weight = u64::from(domain.span.weight());
        let capacity = &self.state.rq.cpu_capacity_orig;
        let util = |cpu: Cpu| self.loads.cfs[cpu.index()].util(capacity[cpu.index()]);
        let sum: u64 = domain.span.iter().map(util).sum();
        let nr_idle_scan = nr_idle_scan(sum, weight, u64::from(domain.imbalance_pct));
        if self.balancer.nr_idle_scan[shared] != Some(nr_idle_scan) {
            self.balancer.nr_idle_scan[shared] = Some(nr_idle_scan);
            out(&self.state, Notice::Step(Step::Balance { shared, nr_idle_scan }));
        }
    }
}

/// The intervals, idle and busy, of a domain whose last pass found nothing to move: twice its number of CPUs in ms.
pub(crate) fn intervals(span: &Cpumask, hz: u32) -> [u64; 2] {
    let ms = 2 * u64::from(span.weight());
    [jiffies_of_ms(ms, hz).max(1), jiffies_of_ms(ms * BUSY_FACTOR, hz).saturating_sub(1).max(1)]
}

/// `msecs_to_jiffies()`: rounded up.
pub(crate) fn jiffies_of_ms(ms: u64, hz: u32) -> u64 {
    (ms * u64::from(hz)).div_ceil(1000)
}

/// How many CPUs a scan may look at: falls with the square of the utilisation, to 0 where the LLC is overloaded.
pub(crate) fn nr_idle_scan(sum_util: u64, llc_weight: u64, imbalance_pct: u64) -> u32 {
    const SCALE: u64 = 1024;
    let x = sum_util / llc_weight;
    let used = (x * x * imbalance_pct * imbalance_pct / (10_000 * SCALE)).min(SCALE);
    ((SCALE - used) * llc_weight / SCALE) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_cache_is_not_scanned() {
        assert_eq!(nr_idle_scan(0, 16, 117), 16);
        assert_eq!(nr_idle_scan(16 * 512, 16, 117), 10);
        assert_eq!(nr_idle_scan(16 * 875, 16, 117), 0);
        assert_eq!(nr_idle_scan(16 * 2048, 16, 117), 0);
    }
}
