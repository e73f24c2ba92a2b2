// SPDX-License-Identifier: GPL-2.0-or-later
//! Out of a dead end: something larger taken out, and a few small things changed so that the case fails again.
//!
//! Taking out one thing at a time ends where each single thing is needed although a smaller case exists: a waker that can
//! stand on another CPU, a CPU that need not be idle if another is not. What to change is drawn from a fixed seed, so that
//! the same case has the same result.

use super::Shrinker;
use crate::cpumask::Cpumask;
use crate::scenario::{Case, Core, CpuState, Event, Load};
use crate::units::Cpu;

/// Changes tried behind each thing that is taken out.
const TRIES: usize = 160;
/// Larger cases are left as they are: there the steps one at a time have room enough.
const CPUS_MAX: u32 = 16;

impl Shrinker<'_> {
    /// Takes out a CPU or a decision, with changes around it. Whether something went.
    pub(super) fn jump(&mut self) -> bool {
        let cpus: Vec<Cpu> = self.case.machine.present().iter().collect();
        if cpus.len() as u32 > CPUS_MAX {
            return false;
        }
        for (at, &gone) in cpus.iter().enumerate().rev() {
            // What happened there happens elsewhere.
            let to = cpus.iter().copied().find(|&cpu| cpu != gone && self.case.machine.online().test(cpu));
            let moved = to.and_then(|to| self.case.onto(gone, to));
            let base = moved.or_else(|| self.case.without_cpus(&Cpumask::of(gone)));
            if base.is_some_and(|base| self.around(&base, at as u64)) {
                return true;
            }
        }
        for at in (0..self.case.events.len()).rev() {
            let mut base = self.case.clone();
            let gone = base.events.remove(at);
            if gone.is_decision() && base.decisions() > 0 && self.around(&base, 100 + at as u64) {
                return true;
            }
        }
        false
    }

    /// Whether `base` or something close to it fails, which is taken then.
    fn around(&mut self, base: &Case, seed: u64) -> bool {
        if self.offer(Some(base.clone())) {
            return true;
        }
        let mut draw = Draw(oorandom::Rand32::new(seed));
        for _ in 0..TRIES {
            let mut candidate = base.clone();
            for _ in 0..1 + draw.below(4) {
                draw.change(&mut candidate);
            }
            if candidate.check().is_ok() && self.offer(Some(candidate)) {
                return true;
            }
        }
        false
    }
}

struct Draw(oorandom::Rand32);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0.rand_range(0..n.max(1) as u32) as usize
    }

    fn of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn cpu(&mut self, case: &Case) -> Cpu {
        let online: Vec<Cpu> = case.machine.online().iter().collect();
        self.of(&online)
    }

    /// One thing.
    fn change(&mut self, case: &mut Case) {
        match self.below(10) {
            0..=2 => self.cpu_state(case),
            3..=5 if !case.tasks.is_empty() => self.task(case),
            6 | 7 if !case.events.is_empty() => self.event(case),
            8 => self.llc(case),
            _ => self.machine(case),
        }
    }

    fn cpu_state(&mut self, case: &mut Case) {
        let cpu = self.cpu(case);
        let at = case.cpus.iter().position(|state| state.cpu == cpu).unwrap_or_else(|| {
            let at = case.cpus.partition_point(|state| state.cpu < cpu);
            case.cpus.insert(at, CpuState { cpu, ..CpuState::default() });
            at
        });
        let state = &mut case.cpus[at];
        match self.below(6) {
            0 | 1 => state.load = if state.load.is_none() { Load::fair(1) } else { Load::default() },
            2 => state.load = Load { fair: 1, idle: 1, ..Load::default() },
            3 => state.load_avg = self.of(&[0, 1024, 88_761]),
            4 => state.avg_idle_ns = self.of(&[1_000_000, 0, 5_000]),
            _ => state.avg_scan_cost_ns = self.of(&[0, 500, 20_000]),
        }
    }

    fn task(&mut self, case: &mut Case) {
        let cpu = self.cpu(case);
        let present = case.machine.present();
        let (other, p) = (self.cpu(case), self.below(case.tasks.len()));
        let task = &mut case.tasks[p];
        match self.below(6) {
            0 | 1 => task.cpu = cpu,
            2 => task.recent_used_cpu = Some(cpu),
            3 => task.queued = !task.queued,
            4 => {
                let masks = [None, Some(present.and_not(&Cpumask::of(cpu))), Some([cpu, other].into_iter().collect())];
                task.cpus_ptr = self.of(&masks).filter(|mask| !mask.is_empty());
            }
            _ => task.cpus_preferred = self.of(&[None, Some(Cpumask::of(cpu))]),
        }
    }

    fn event(&mut self, case: &mut Case) {
        let cpu = self.cpu(case);
        let (at, p) = (self.below(case.events.len()), self.below(case.tasks.len()));
        match &mut case.events[at] {
            Event::Wake { from, .. } | Event::Fork { from, .. } if self.below(2) == 0 => *from = cpu,
            Event::Wake { p: woken, .. } | Event::Fork { p: woken, .. } if !case.tasks.is_empty() => *woken = p,
            Event::Exec(on) | Event::Idle(on) | Event::Load(on, _) | Event::Switch(on) => *on = cpu,
            _ => {}
        }
    }

    fn llc(&mut self, case: &mut Case) {
        let at = self.below(case.machine.llcs.len());
        let llc = &mut case.machine.llcs[at];
        match self.below(2) {
            0 => llc.has_idle_cores = !llc.has_idle_cores,
            _ => llc.nr_idle_scan = self.of(&[None, Some(0), Some(1), Some(2)]),
        }
    }

    /// LLCs or cores become one, or two.
    fn machine(&mut self, case: &mut Case) {
        let llcs = &mut case.machine.llcs;
        let at = self.below(llcs.len());
        match self.below(4) {
            0 if llcs.len() > 1 => {
                let gone = llcs.remove(at);
                let into = at.min(llcs.len() - 1);
                llcs[into].clusters[0].extend(gone.clusters.into_iter().flatten());
                case.events.retain(|event| !matches!(event, Event::Balance(..)));
            }
            1 if llcs[at].cores().count() > 1 => {
                let cores: Vec<Core> = llcs[at].cores().copied().collect();
                let (first, rest) = cores.split_at(1);
                let other = crate::scenario::Llc { clusters: vec![rest.to_vec()], ..llcs[at].clone() };
                llcs[at].clusters = vec![first.to_vec()];
                llcs.insert(at + 1, other);
            }
            2 if llcs[at].clusters[0].len() > 1 => {
                let cores = &mut llcs[at].clusters[0];
                let last = cores.pop().expect("there are two");
                let into = cores.last_mut().expect("there were two");
                into.cpus = into.cpus | last.cpus;
            }
            _ => {
                let single = super::single(&llcs[at].clusters[0]);
                llcs[at].clusters[0] = single;
            }
        }
    }
}
