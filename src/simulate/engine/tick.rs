// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick: of every busy CPU at once, at each jiffy.

use super::{Sim, What};
use crate::machine::jiffies_of_ms;
use crate::simulate::cfs::Order;
use crate::units::Cpu;

/// Blocked load of idle CPUs is brought up to date this often, ms.
const BLOCKED_MS: u64 = 32;

impl Sim<'_> {
    pub(super) fn tick(&mut self) {
        self.state.jiffies += 1;
        self.at(self.now_ns + self.jiffy_ns(), What::Tick);
        let busy = self.topology.online().and_not(&self.state.rq.curr_idle);
        for cpu in busy.iter() {
            if !self.is_idle(cpu) && !self.comes_late(cpu) {
                self.tick_on(cpu);
            }
        }
        let blocked = jiffies_of_ms(BLOCKED_MS, self.setup.hz).max(1);
        if self.state.jiffies.is_multiple_of(blocked) {
            let idle = *self.topology.online() & self.state.rq.curr_idle;
            for cpu in idle.iter() {
                self.loads.tick(cpu, self.now_ns);
                self.show(cpu);
            }
        }
    }

    /// Whether this tick of the CPU is one that comes late; it is then on its way.
    fn comes_late(&mut self, cpu: Cpu) -> bool {
        let Some(times) = self.setup.late_ticks_ns.get(cpu.index()) else { return false };
        let next = times.get(times.partition_point(|&ns| ns <= self.now_ns)).copied();
        let late = next.filter(|&ns| ns < self.now_ns + self.jiffy_ns());
        if let Some(ns) = late {
            self.at(ns, What::LateTick(cpu));
        }
        late.is_some()
    }

    pub(super) fn late_tick(&mut self, cpu: Cpu) {
        if !self.is_idle(cpu) {
            self.tick_on(cpu);
        }
    }

    fn tick_on(&mut self, cpu: Cpu) {
        self.book_run(cpu);
        self.loads.tick(cpu, self.now_ns);
        self.show(cpu);
        self.look_at_sibling(cpu);
        let Some(curr) = self.cpus[cpu.index()].curr else { return };
        let entity = self.books[curr.index()].entity;
        if self.cpus[cpu.index()].queue.is_over(&self.tunables, &entity) {
            self.cpus[cpu.index()].need_resched = true;
        }
        self.balance_at_tick(cpu);
        self.look(cpu);
    }
}
