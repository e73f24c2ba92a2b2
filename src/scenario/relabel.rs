// SPDX-License-Identifier: GPL-2.0-or-later
//! Cases rewritten: other CPU numbers, or without some of their CPUs and tasks.

use crate::cpumask::Cpumask;
use crate::scenario::{Case, Core, CpuState, Event, Llc, TaskIndex, TaskState};
use crate::units::Cpu;

/// Where each CPU and each task of a case goes; `None`: it is taken out.
struct Rewrite<'a> {
    cpu: &'a dyn Fn(Cpu) -> Option<Cpu>,
    task: &'a dyn Fn(TaskIndex) -> Option<TaskIndex>,
    /// Where each LLC goes.
    llcs: Vec<Option<usize>>,
    /// The CPU that stands in for one that was taken out.
    stand_in: Cpu,
}

impl Case {
    /// The case with CPU `c` renamed to `number(c)`, which must give each CPU a number of its own.
    ///
    /// Masks that stood for every CPU are spelled out, so that holes in the new numbering are not in them.
    pub fn renumbered(&self, number: impl Fn(Cpu) -> Cpu) -> Self {
        let mut case = self.clone();
        let all = Cpumask::first_n(self.machine.nr_cpu_ids());
        for task in &mut case.tasks {
            task.cpus_ptr.get_or_insert(all);
        }
        case.rewritten(&|cpu| Some(number(cpu)), &Some).expect("nothing is taken out")
    }

    /// The case with its CPUs numbered 0, 1, 2, … in the order they have, and its nodes where distances are told.
    pub fn compacted(&self) -> Self {
        let present = self.machine.present();
        let rank = |cpu: Cpu| present.iter().position(|there| there == cpu);
        let mut case = self.rewritten(&|cpu| rank(cpu).and_then(Cpu::new), &Some).unwrap_or_else(|| self.clone());
        case.compact_nodes();
        case
    }

    /// Nodes without CPUs leave the table of distances.
    fn compact_nodes(&mut self) {
        if self.machine.distances.is_empty() {
            return;
        }
        let nodes = self.machine.nodes();
        let rank = |node: u32| nodes.binary_search(&node).ok();
        for llc in &mut self.machine.llcs {
            llc.node = rank(llc.node).unwrap_or(0) as u32;
        }
        for task in &mut self.tasks {
            let nid = u32::try_from(task.numa_preferred_nid).ok().and_then(rank);
            task.numa_preferred_nid = nid.map_or(-1, |nid| nid as i32);
        }
        self.machine.distances = self.machine.distances.of(&nodes);
    }

    /// The case without the CPUs in `gone` and without what happens on them; tasks there move to another CPU. `None`
    /// where that leaves nothing to run on, or a task without a CPU that it may use.
    pub fn without_cpus(&self, gone: &Cpumask) -> Option<Self> {
        self.rewritten(&|cpu| (!gone.test(cpu)).then_some(cpu), &Some)
    }

    /// The case without CPU `gone`, where what is there and happens there happens on CPU `to`.
    pub fn onto(&self, gone: Cpu, to: Cpu) -> Option<Self> {
        let mut case = self.clone();
        let there = |cpu: &mut Cpu| *cpu = if *cpu == gone { to } else { *cpu };
        case.tasks.iter_mut().for_each(|task| {
            there(&mut task.cpu);
            task.recent_used_cpu.iter_mut().for_each(there);
        });
        for event in &mut case.events {
            match event {
                Event::Wake { from: on, .. }
                | Event::Fork { from: on, .. }
                | Event::Move(_, on)
                | Event::Exec(on)
                | Event::Idle(on)
                | Event::Load(on, _)
                | Event::Switch(on)
                | Event::Preempt(on, _)
                | Event::Hotplug(on, _) => there(on),
                Event::Sleep(_) | Event::Affine(..) | Event::Tick(_) | Event::Balance(..) => {}
            }
        }
        case.without_cpus(&Cpumask::of(gone))
    }

    /// The case with its tasks in another order: `order` has every task once.
    pub fn with_tasks_in(&self, order: &[TaskIndex]) -> Self {
        let place = |p: TaskIndex| order.iter().position(|&other| other == p);
        let mut case = self.rewritten(&Some, &place).unwrap_or_else(|| self.clone());
        case.tasks = order.iter().map(|&p| case.tasks[p].clone()).collect();
        case
    }

    /// The case without a task and what it does.
    pub fn without_task(&self, gone: TaskIndex) -> Self {
        let task = |p: TaskIndex| match p.cmp(&gone) {
            std::cmp::Ordering::Less => Some(p),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(p - 1),
        };
        self.rewritten(&Some, &task).unwrap_or_else(|| self.clone())
    }

    fn rewritten(
        &self,
        cpu: &dyn Fn(Cpu) -> Option<Cpu>,
        task: &dyn Fn(TaskIndex) -> Option<TaskIndex>,
    ) -> Option<Self> {
        let online = self.machine.online();
        let stand_in = online.iter().find_map(cpu)?;
        let mut rewrite = Rewrite { cpu, task, llcs: Vec::new(), stand_in };
        let mut machine = self.machine.clone();
        machine.offline = rewrite.mask(&self.machine.offline);
        machine.isolated = rewrite.mask(&self.machine.isolated);
        machine.llcs = Vec::new();
        for llc in &self.machine.llcs {
            let llc = rewrite.llc(llc);
            rewrite.llcs.push((!llc.clusters.is_empty()).then_some(machine.llcs.len()));
            if !llc.clusters.is_empty() {
                machine.llcs.push(llc);
            }
        }
        let tasks = self.tasks.iter().enumerate().filter(|(p, _)| task(*p).is_some());
        let tasks = tasks.map(|(_, state)| rewrite.task_state(state)).collect::<Option<_>>()?;
        let mut cpus: Vec<CpuState> =
            self.cpus.iter().filter_map(|state| cpu(state.cpu).map(|cpu| CpuState { cpu, ..*state })).collect();
        cpus.sort_by_key(|state| state.cpu);
        let events = self.events.iter().filter_map(|event| rewrite.event(event)).collect();
        Some(Self {
            pair: self.pair.clone(),
            note: self.note.clone(),
            settings: self.settings.clone(),
            machine,
            cpus,
            tasks,
            events,
        })
    }
}

impl Rewrite<'_> {
    fn mask(&self, mask: &Cpumask) -> Cpumask {
        mask.iter().filter_map(self.cpu).collect()
    }

    fn llc(&self, llc: &Llc) -> Llc {
        let core = |core: &Core| {
            let cpus = self.mask(&core.cpus);
            (!cpus.is_empty()).then_some(Core { cpus, ..*core })
        };
        let clusters = llc.clusters.iter().map(|cores| cores.iter().filter_map(core).collect::<Vec<_>>());
        Llc { clusters: clusters.filter(|cores| !cores.is_empty()).collect(), ..*llc }
    }

    fn task_state(&self, task: &TaskState) -> Option<TaskState> {
        let cpus_ptr = task.cpus_ptr.map(|mask| self.mask(&mask));
        if cpus_ptr.is_some_and(|mask| mask.is_empty()) {
            return None;
        }
        let elsewhere = cpus_ptr.and_then(|mask| mask.first()).unwrap_or(self.stand_in);
        Some(TaskState {
            cpu: (self.cpu)(task.cpu).unwrap_or(elsewhere),
            cpus_ptr,
            cpus_preferred: task.cpus_preferred.map(|mask| self.mask(&mask)),
            recent_used_cpu: task.recent_used_cpu.and_then(self.cpu),
            last_wakee: task.last_wakee.and_then(self.task),
            ..task.clone()
        })
    }

    fn event(&self, event: &Event) -> Option<Event> {
        let (cpu, task) = (self.cpu, self.task);
        Some(match *event {
            Event::Wake { p, from, sync, irq, remote } => {
                Event::Wake { p: task(p)?, from: cpu(from)?, sync, irq, remote }
            }
            Event::Fork { p, from } => Event::Fork { p: task(p)?, from: cpu(from)? },
            Event::Exec(on) => Event::Exec(cpu(on)?),
            Event::Sleep(p) => Event::Sleep(task(p)?),
            Event::Idle(on) => Event::Idle(cpu(on)?),
            Event::Load(on, load) => Event::Load(cpu(on)?, load),
            Event::Move(p, to) => Event::Move(task(p)?, cpu(to)?),
            Event::Affine(p, cpus) => Event::Affine(task(p)?, self.mask(&cpus)),
            Event::Switch(on) => Event::Switch(cpu(on)?),
            Event::Tick(jiffies) => Event::Tick(jiffies),
            Event::Balance(llc, nr) => Event::Balance(self.llcs[llc]?, nr),
            Event::Preempt(on, preempted) => Event::Preempt(cpu(on)?, preempted),
            Event::Hotplug(on, online) => Event::Hotplug(cpu(on)?, online),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        Case::parse(
            r#"
            version = 1
            [machine]
            llcs = ["node0: 0,4 1,5", "node1: 2,6 3,7"]
            offline = "7"
            [[cpu]]
            cpu = 3
            load = "1"
            [[cpu]]
            cpu = 5
            load = "2"
            [[task]]
            cpu = 3
            cpus_ptr = "3,5"
            last_wakee = 1
            [[task]]
            cpu = 6
            recent_used_cpu = 3
            [sequence]
            events = ["wake t0 from cpu3", "wake t1 from cpu5", "balance llc1 2", "affine t1 to 2-3,5"]
            "#,
        )
        .expect("a case")
    }

    #[test]
    fn without_an_llc_everything_on_it_is_gone() {
        let case = case().without_cpus(&"2-3,6-7".parse().expect("a list")).expect("some are left");
        assert_eq!(case.machine.llcs.len(), 1);
        assert_eq!(case.machine.offline, Cpumask::EMPTY);
        assert_eq!((case.tasks[0].cpu, case.tasks[1].cpu), (Cpu(5), Cpu(0)));
        assert_eq!(case.tasks[1].recent_used_cpu, None);
        let events: Vec<String> = case.events.iter().map(ToString::to_string).collect();
        assert_eq!(events, ["wake t1 from cpu5", "affine t1 to 5"]);
        assert_eq!(case.check(), Ok(()));
        let compact = case.without_cpus(&"1".parse().expect("a list")).expect("some are left").compacted();
        assert_eq!(compact.machine.llcs[0].to_string(), "node0: 0-1 2");
        assert_eq!(compact.events[0].to_string(), "wake t1 from cpu2");
    }

    #[test]
    fn a_task_without_cpus_makes_no_case() {
        assert!(case().without_cpus(&"3,5".parse().expect("a list")).is_none());
        assert!(case().without_cpus(&Cpumask::first_n(8)).is_none());
    }

    #[test]
    fn without_a_task_the_others_move_up() {
        let case = case().without_task(0);
        assert_eq!(case.tasks.len(), 1);
        assert_eq!(case.events[0].to_string(), "wake t0 from cpu5");
    }

    #[test]
    fn renumbering_there_and_back_is_the_same_case() {
        let there = case().renumbered(|cpu| Cpu(cpu.0 * 2 + 1));
        assert_eq!(there.machine.llcs[0].to_string(), "node0: 1,9 3,11");
        assert_eq!(there.check(), Ok(()));
        let back = there.compacted();
        assert_eq!(back, case().renumbered(|cpu| cpu));
    }
}
