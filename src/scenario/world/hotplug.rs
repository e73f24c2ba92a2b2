// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that go down and come up while a case is played.

use std::sync::Arc;

use super::{Play, Played, Player, Slot, World};
use crate::cpumask::Cpumask;
use crate::fair::Step;
use crate::fair::fallback::select_fallback_rq;
use crate::machine::TaskFlags;
use crate::scenario::{Load, Shape, TaskIndex};
use crate::topology::{SharedId, Topology};
use crate::units::Cpu;

/// Topologies kept for CPUs that go down again.
const OTHERS_MAX: usize = 16;

impl World {
    /// Shared state of the LLC on that line of the case.
    pub(super) fn shared_of(&self, llc: usize) -> Option<SharedId> {
        let topology = &self.state.topology;
        self.machine.llcs[llc].cpus().iter().find_map(|cpu| topology.llc_shared(cpu))
    }

    /// **Source**: kernel/sched/core.c, sched_cpu_activate(), sched_cpu_deactivate(), v5.11: domains without the CPU are
    /// built before its tasks leave (balance_push()).
    pub(super) fn hotplug<P: Player>(&mut self, cpu: Cpu, up: bool, player: &mut P) -> Play<P> {
        let mut online = *self.online();
        online.assign(cpu, up);
        let nothing_to_do = online == *self.online() || !self.machine.present().test(cpu) || online.is_empty();
        let Some(topology) = (!nothing_to_do).then(|| self.topology_of(online)).flatten() else {
            return Ok(Played::Skipped);
        };
        self.state.topology = topology;
        player.step(&self.state, &Step::Domains)?;
        if up {
            self.state.rq.idle_stamp_ns[cpu.index()] = 0;
            self.refresh(cpu);
        } else {
            self.evacuate(cpu);
        }
        Ok(Played::Happened)
    }

    /// The machine's domains with these CPUs online; `None`: there are none, which a checked case does not lead to.
    fn topology_of(&mut self, online: Cpumask) -> Option<Arc<Topology>> {
        let mut known = std::iter::once(&self.home).chain(&self.others);
        if let Some(known) = known.find(|topology| *topology.online() == online) {
            return Some(Arc::clone(known));
        }
        let offline = self.machine.present().and_not(&online);
        let topology = Arc::new(Shape { offline, ..self.machine.clone() }.topology().ok()?);
        if self.others.len() == OTHERS_MAX {
            self.others.remove(0);
        }
        self.others.push(Arc::clone(&topology));
        Some(topology)
    }

    /// Everything leaves the queue of `cpu`, which is offline.
    fn evacuate(&mut self, cpu: Cpu) {
        let queue = &mut self.queues[cpu.index()];
        (queue.pending, queue.load) = (false, Load::default());
        let landing = std::mem::take(&mut queue.landing);
        let slots = std::mem::take(&mut queue.slots);
        let queued = slots.into_iter().filter_map(|slot| match slot {
            Slot::Task(p) => Some(p),
            Slot::Load => None,
        });
        let leaving: Vec<TaskIndex> = queued.chain(landing).collect();
        self.state.rq.idle_stamp_ns[cpu.index()] = 0;
        self.refresh(cpu);
        for p in leaving {
            let id = self.task_id(p);
            let to = select_fallback_rq(&self.state, id, cpu);
            if !self.state.tasks[id].cpus_ptr.test(to) {
                self.give_up_affinity(p);
            }
            self.enqueue_pulled(p, to);
        }
    }

    /// **Source**: kernel/sched/core.c, select_fallback_rq(), the last resort: every possible CPU. **Departs**: without holes
    /// in the numbering, so that what a mask weighs does not depend on the numbers.
    fn give_up_affinity(&mut self, p: TaskIndex) {
        let all = self.machine.present();
        let task = self.task_mut(p);
        let was_default = task.cpus_preferred == task.cpus_ptr;
        (task.cpus_ptr, task.nr_cpus_allowed) = (all.into(), all.weight());
        if was_default || task.flags.contains(TaskFlags::KTHREAD) {
            task.cpus_preferred = task.cpus_ptr.clone();
        }
        task.affinity_unequal = task.cpus_preferred != task.cpus_ptr;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::State;
    use crate::scenario::Case;
    use crate::wakeup::Wakeup;

    /// Notes what it is told, and leaves every task where it was.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Player for Notes {
        type Error = std::convert::Infallible;

        fn step(&mut self, _state: &State, step: &Step) -> Result<(), Self::Error> {
            self.0.push(format!("{step:?}"));
            Ok(())
        }

        fn decide(&mut self, _state: &State, wakeup: &Wakeup) -> Result<Cpu, Self::Error> {
            self.0.push(format!("decide, prev {}", wakeup.prev_cpu));
            Ok(wakeup.prev_cpu)
        }
    }

    const CASE: &str = r#"
        version = 1
        [machine]
        llcs = ["node0: 0 1", "node1: 2,4 3,5"]
        [[cpu]]
        cpu = 3
        load = "2"
        [[task]]
        cpu = 3
        queued = true
        cpus_ptr = "1,3-4"
        [[task]]
        cpu = 3
        queued = true
        cpus_ptr = "3"
        [[task]]
        cpu = 3
        [sequence]
        events = ["offline cpu3", "wake t2 from cpu0", "online cpu3", "online cpu3", "offline cpu0"]
    "#;

    #[test]
    fn tasks_leave_a_cpu_that_goes_down_and_domains_are_new() {
        let case = Case::parse(CASE).expect("a case");
        let mut world = World::new(&case).expect("playable");
        let home = Arc::clone(&world.state.topology);
        let mut notes = Notes::default();
        let play = |world: &mut World, at: usize, notes: &mut Notes| {
            let Ok(played) = world.play(&case.events[at], notes);
            played
        };
        assert_eq!(play(&mut world, 0, &mut notes), Played::Happened);
        assert_eq!(notes.0, ["Domains"]);
        assert_eq!(world.state.topology.online().to_string(), "0-2,4-5");
        assert_eq!(world.state.topology.smt_mask(Cpu(5)).to_string(), "5");
        assert_eq!(world.state.topology.sd_llc_size(Cpu(2)), 3);
        let task = |world: &World, p| world.state.tasks[world.task_id(p)].clone();
        assert_eq!((task(&world, 0).task_cpu, task(&world, 0).on_rq), (Cpu(4), true), "an allowed CPU of the node");
        assert_eq!((task(&world, 1).task_cpu, task(&world, 1).nr_cpus_allowed), (Cpu(0), 6), "bound to it before");
        assert_eq!(task(&world, 2).task_cpu, Cpu(3), "who sleeps stays");
        assert_eq!((world.state.rq.nr_running[3], world.state.rq.curr_idle.test(Cpu(3))), (0, true));

        assert_eq!(play(&mut world, 1, &mut notes), Played::Decided);
        assert_eq!(notes.0[1], "decide, prev 3");
        assert_ne!(task(&world, 2).task_cpu, Cpu(3), "not to a CPU that is down");
        assert_eq!(play(&mut world, 2, &mut notes), Played::Happened);
        assert_eq!(play(&mut world, 3, &mut notes), Played::Skipped, "it is up");
        assert!(Arc::ptr_eq(&home, &world.state.topology), "the same machine has the same domains");
        assert_eq!(play(&mut world, 4, &mut notes), Played::Happened);
        world.restart(&case).expect("playable");
        assert!(Arc::ptr_eq(&home, &world.state.topology), "the next case begins as this one did");
    }

    #[test]
    fn the_last_cpu_stays() {
        let text = "version = 1\n[machine]\nllcs = [\"node0: 1 2\"]\noffline = \"2\"\n[sequence]\nevents = []\n";
        let mut world = World::new(&Case::parse(text).expect("a case")).expect("playable");
        let mut notes = Notes::default();
        for (cpu, expected) in [(0, Played::Skipped), (1, Played::Skipped), (2, Played::Happened)] {
            let Ok(played) = world.hotplug(Cpu(cpu), cpu != 1, &mut notes);
            assert_eq!(played, expected, "cpu{cpu}");
        }
        let Ok(played) = world.hotplug(Cpu(1), false, &mut notes);
        assert_eq!(played, Played::Happened);
    }
}
