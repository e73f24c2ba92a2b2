// SPDX-License-Identifier: GPL-2.0-or-later
//! Planted faults: proof that the oracles would speak.

use crate::fair::{Brief, Decision, Exit, Hidden, Implementation, Step, Walk};
use crate::machine::{Inputs, State};
use crate::oracle::{Maker, Models, Side, Trouble};
use crate::scenario::{Case, World};
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// What a fault makes of a right decision.
pub type Fault = fn(&State, &Wakeup, &mut Decision, Option<&mut Walk>);

/// The canary's fault: a scan that ends on the last CPU of its LLC answers with the one after it, an off-by-one.
pub fn off_by_one(state: &State, _wakeup: &Wakeup, decision: &mut Decision, _walk: Option<&mut Walk>) {
    let topology = &state.topology;
    let cpu = decision.class_cpu;
    let last = topology.sd_llc(cpu).and_then(|id| topology.domain(id).span.iter().last());
    if decision.exit == Exit::IdleCpu && last == Some(cpu) {
        decision.class_cpu = Cpu(cpu.0 + 1);
    }
}

/// Makes the models, each with a fault in its decisions.
#[derive(Debug, Clone, Copy)]
pub struct Planted(pub Fault);

struct Faulty {
    inner: Box<dyn Implementation>,
    fault: Fault,
}

impl Maker for Planted {
    fn make(&self, name: &str, case: &Case, world: &World) -> Result<Side, Trouble> {
        let side = Models.make(name, case, world)?;
        Ok(Side { implementation: Box::new(Faulty { inner: side.implementation, fault: self.0 }), ..side })
    }
}

impl Implementation for Faulty {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn reads(&self) -> Inputs {
        self.inner.reads()
    }

    fn hidden(&self) -> Option<&Hidden> {
        self.inner.hidden()
    }

    fn step(&mut self, state: &State, step: &Step) {
        self.inner.step(state, step);
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, mut walk: Option<&mut Walk>) -> Decision {
        let mut decision = self.inner.select_task_rq(state, wakeup, walk.as_deref_mut());
        (self.fault)(state, wakeup, &mut decision, walk);
        decision
    }

    fn select_briefly(&mut self, state: &State, wakeup: &Wakeup, brief: &mut Brief) -> Decision {
        let mut decision = self.inner.select_briefly(state, wakeup, brief);
        (self.fault)(state, wakeup, &mut decision, None);
        decision
    }

    fn peek(&mut self, state: &State, wakeup: &Wakeup, mut walk: Option<&mut Walk>) -> Decision {
        let mut decision = self.inner.peek(state, wakeup, walk.as_deref_mut());
        (self.fault)(state, wakeup, &mut decision, walk);
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::WalkStep;
    use crate::fuzz_loop::{self, Plan};
    use crate::oracle::{Allowed, Options, attempt};
    use crate::topology::Topology;
    use crate::wakeup::WakeKind;

    /// Names of the oracles that speak, when `fault` is planted, in some hundreds of cases.
    fn speakers(fault: Fault) -> Vec<&'static str> {
        let plan = Plan {
            names: vec!["v5.11".to_owned(), "v5.11+no-sis-avg-cpu".to_owned()],
            seed: 11,
            time: None,
            cases: Some(400),
            options: Options { allow_known: true, ..Options::default() },
            allowed: Allowed::default(),
            first_only: false,
        };
        let outcome = fuzz_loop::run(&plan, &Planted(fault), &mut |_| {}).expect("the models are there");
        let mut names: Vec<&str> = outcome.findings.values().map(|found| found.finding.oracle).collect();
        names.dedup();
        names
    }

    fn idle(topology: &Topology, state: &State) -> Option<Cpu> {
        topology.cpus().find(|&cpu| state.rq.nr_running[cpu.index()] == 0)
    }

    #[test]
    fn without_a_fault_nobody_speaks() {
        assert_eq!(speakers(|_, _, _, _| {}), [""; 0]);
    }

    #[test]
    fn every_oracle_speaks_of_its_fault() {
        let faults: &[(&str, Fault)] = &[
            ("affinity", |state, w, d, _| {
                let outside = state.topology.cpus().find(|&cpu| !state.tasks[w.p].cpus_ptr.test(cpu));
                d.class_cpu = outside.unwrap_or(d.class_cpu);
            }),
            ("affinity", |state, _, d, _| d.class_cpu = Cpu(state.topology.nr_cpu_ids() as u16)),
            ("placement", |state, _, d, _| {
                let offline = state.topology.cpus().find(|&cpu| !state.topology.online().test(cpu));
                d.final_cpu = offline.unwrap_or(d.final_cpu);
            }),
            ("domain", |state, w, d, _| {
                let elsewhere = |cpu: &Cpu| !state.topology.cpus_share_cache(*cpu, d.class_cpu);
                let other = (*state.tasks[w.p].cpus_ptr & *state.topology.online()).iter().find(elsewhere);
                if d.exit == Exit::IdleSmt
                    && let Some(cpu) = other
                {
                    (d.class_cpu, d.final_cpu) = (cpu, cpu);
                }
            }),
            ("idleness", |_, _, d, _| {
                if d.exit == Exit::Fallback {
                    d.exit = Exit::Target;
                    d.sis.domain_search = 0;
                    d.sis.failed = 0;
                    d.sis.scanned = 1;
                }
            }),
            ("stages", |_, w, d, _| {
                if d.exit == Exit::Target && d.class_cpu != w.prev_cpu {
                    d.exit = Exit::Prev;
                }
            }),
            ("conservation", |_, _, d, _| {
                if d.exit == Exit::BudgetSpent {
                    d.exit = Exit::Fallback;
                }
            }),
            ("conservation", |state, w, d, _| {
                let free = *state.tasks[w.p].cpus_ptr & *state.topology.online();
                let last = free.iter().filter(|cpu| state.topology.cpus_share_cache(*cpu, d.class_cpu)).last();
                if let (Exit::IdleCpu, Some(cpu)) =
                    (d.exit, last.filter(|&cpu| idle(&state.topology, state) != Some(cpu)))
                    && state.rq.nr_running[cpu.index()] == 0
                    && !state.rq.ttwu_pending.test(cpu)
                    && !state.rq.vcpu_preempted.test(cpu)
                {
                    (d.class_cpu, d.final_cpu) = (cpu, cpu);
                }
            }),
            ("budget", |_, _, d, walk| {
                let Some(walk) = walk else { return };
                for step in &mut walk.steps {
                    if let WalkStep::Value { name: "nr", value } = step {
                        *value /= 2;
                    }
                }
                d.mask_ops += 0;
            }),
            ("counters", |_, _, d, _| d.sis.failed += u64::from(d.exit == Exit::IdleCpu)),
            ("counters", |_, _, d, _| d.probes += 1),
            ("writes", |state, _, d, _| {
                if let Some((shared, _)) = &mut d.writes.has_idle_cores {
                    *shared = (*shared + 1) % state.topology.nr_shared().max(1);
                }
            }),
            // A write that is not declared.
            ("effects", |_, _, d, _| d.writes.has_idle_cores = None),
            ("effects", |_, _, d, _| d.writes.wakee_flips = None),
            ("effects", |_, _, d, _| d.writes.avg_scan_cost_ns = d.writes.avg_scan_cost_ns.map(|ns| ns + 1)),
            ("panic", |_, w, d, _| assert!(d.exit != Exit::IdleSmt, "planted at {w:?}")),
            ("provenance", |_, _, d, _| d.leaned_on.unknown |= d.read),
            ("faults", |_, _, d, _| d.faults += 1),
            ("determinism", |_, w, d, walk| {
                if walk.is_some() && w.kind == WakeKind::Fork {
                    d.mask_ops += 1;
                }
            }),
        ];
        for (at, (oracle, fault)) in faults.iter().enumerate() {
            let speakers = speakers(*fault);
            assert!(speakers.contains(oracle), "fault {at}, for {oracle}: {speakers:?}");
        }
    }

    #[test]
    fn the_canary_is_caught() {
        let speakers = speakers(off_by_one);
        assert!(!speakers.is_empty());
    }

    /// A fuzzer without seeds begins with a few bytes.
    #[test]
    fn the_canary_is_caught_by_short_inputs() {
        let mut rng = oorandom::Rand32::new(5);
        let caught = (0..3_000).position(|n| {
            let bytes: Vec<u8> = (0..1 + n % 24).map(|_| rng.rand_u32() as u8).collect();
            let case = Case::from_dna(&bytes);
            attempt(&case, &["v5.11"], &Planted(off_by_one), Options::default()).is_err()
        });
        assert!(caught.is_some());
    }
}
