// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the kernel seems to have returned, judged by the CPU that it chose and the machine at that moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cpumask::Cpumask;
use crate::machine::State;
use crate::topology::Topology;
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// What the kernel's choice tells of its return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// The target of the search, idle.
    Target,
    /// The target, busy: nothing was found, or a per-CPU kthread stacked.
    BusyTarget,
    /// prev_cpu, idle, not the target.
    Prev,
    /// The recently used CPU, idle.
    RecentUsed,
    /// An idle sibling of prev_cpu.
    IdleSmt,
    /// A CPU of a whole idle core.
    IdleCore,
    /// Another idle CPU of the LLC.
    IdleCpu,
    /// A CPU of the LLC that looks busy.
    BusyCpu,
    /// this_cpu or prev_cpu, or one of its LLC, where the model searched another LLC: wake_affine() chose otherwise.
    OtherTarget,
    /// Anything else: the slow path.
    Elsewhere,
}

impl Told {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::BusyTarget => "busy target",
            Self::Prev => "prev",
            Self::RecentUsed => "recent used",
            Self::IdleSmt => "idle sibling",
            Self::IdleCore => "idle core",
            Self::IdleCpu => "idle cpu",
            Self::BusyCpu => "busy cpu",
            Self::OtherTarget => "other target",
            Self::Elsewhere => "elsewhere",
        }
    }

    /// Of the kernel's choice `cpu`, where the model searched from `target` (`None`: it took the slow path).
    pub fn of(scene: &Scene, target: Option<Cpu>, recent: Option<Cpu>, cpu: Cpu) -> Self {
        let topology = &scene.topology;
        let w = &scene.wakeup;
        let is_wakeup = w.kind == WakeKind::Ttwu && cpu.index() < topology.nr_cpu_ids();
        let Some(target) = target.filter(|_| is_wakeup) else { return Self::Elsewhere };
        let idle = scene.idle.test(cpu);
        if cpu == target {
            return if idle { Self::Target } else { Self::BusyTarget };
        }
        if !topology.cpus_share_cache(cpu, target) {
            let by = |other: Cpu| cpu == other || topology.cpus_share_cache(cpu, other);
            return if by(w.prev_cpu) || by(w.this_cpu) { Self::OtherTarget } else { Self::Elsewhere };
        }
        match idle {
            true if cpu == w.prev_cpu => Self::Prev,
            true if recent == Some(cpu) => Self::RecentUsed,
            true if topology.smt_mask(w.prev_cpu).test(cpu) => Self::IdleSmt,
            true if topology.smt_mask(cpu).is_subset(&scene.idle) => Self::IdleCore,
            true => Self::IdleCpu,
            false if cpu == w.prev_cpu || cpu == w.this_cpu => Self::OtherTarget,
            false => Self::BusyCpu,
        }
    }
}

/// The machine at the moment of a decision, as far as it tells what a choice means.
#[derive(Debug, Clone)]
pub struct Scene {
    topology: Arc<Topology>,
    wakeup: Wakeup,
    idle: Cpumask,
}

impl Scene {
    /// Of a decision in `state`.
    pub fn new(state: &State, wakeup: &Wakeup) -> Self {
        let rq = &state.rq;
        let mut idle = rq.curr_idle.and_not(&rq.ttwu_pending);
        for cpu in state.topology.cpus().filter(|cpu| rq.nr_running[cpu.index()] > 0) {
            idle.clear(cpu);
        }
        Self { topology: state.topology.clone(), wakeup: *wakeup, idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Provenance;
    use crate::topology::{self, TopologySource};
    use crate::units::TaskId;

    #[test]
    fn a_choice_is_told_by_what_its_cpu_is_to_the_wakeup() {
        let loaded = topology::load_for(&TopologySource::parse("2x4x2"), None).expect("a shorthand");
        let mut state = State::new(Arc::new(loaded.topology));
        let smt = *state.topology.smt_mask(Cpu(0));
        let sibling = smt.iter().find(|&cpu| cpu != Cpu(0)).expect("two threads");
        let far = state.topology.cpus().find(|&cpu| !state.topology.cpus_share_cache(cpu, Cpu(0))).expect("a package");
        let mate = |not: &[Cpu]| {
            let near = |cpu: &Cpu| state.topology.cpus_share_cache(*cpu, Cpu(0)) && !smt.test(*cpu);
            state.topology.cpus().find(|cpu| near(cpu) && !not.contains(cpu)).expect("another core")
        };
        let (this, other) = (mate(&[]), mate(&[mate(&[])]));
        let wakeup = Wakeup {
            p: TaskId(0),
            current: TaskId(1),
            this_cpu: this,
            prev_cpu: Cpu(0),
            kind: WakeKind::Ttwu,
            sync: false,
            in_task: true,
            known: Provenance::TRACED,
        };
        state.rq.nr_running[this.index()] = 1;
        let scene = Scene::new(&state, &wakeup);
        let of = |target, cpu| Told::of(&scene, Some(target), None, cpu);
        assert_eq!(of(Cpu(0), Cpu(0)), Told::Target);
        assert_eq!(of(this, this), Told::BusyTarget);
        assert_eq!(of(this, Cpu(0)), Told::Prev);
        assert_eq!(of(this, sibling), Told::IdleSmt);
        assert_eq!(of(Cpu(0), this), Told::OtherTarget);
        assert_eq!(of(Cpu(0), far), Told::Elsewhere);
        assert_eq!(of(far, sibling), Told::OtherTarget);
        assert_eq!(Told::of(&scene, Some(this), Some(other), other), Told::RecentUsed);
        assert_eq!(Told::of(&scene, None, None, Cpu(0)), Told::Elsewhere);
    }
}
