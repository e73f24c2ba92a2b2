// SPDX-License-Identifier: GPL-2.0-or-later
//! A simulation's beginning and end: CPUs idle, tasks made, counting begun.

use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use super::{Book, ChannelBook, CpuBook, Place, Sim, SimulateError, TASKS_MAX, What};
use crate::affinity::Masks;
use crate::cpumask::Cpumask;
use crate::fair::{HiddenFact, Implementation, Step};
use crate::machine::{Entity as Load, Loads, State, Task, TaskId, WEIGHT_IDLE, weight_of};
use crate::simulate::cfs::{Entity, Tunables};
use crate::simulate::engine::Setup;
use crate::simulate::engine::balance::Balancer;
use crate::simulate::program::{Op, SpecId, Start, Times, Workload};
use crate::simulate::stats::{ByComm, Stats};
use crate::units::{Comm, Cpu, Pid};

/// Jiffies when a simulation begins: late enough for nothing to be before 0.
const JIFFIES: u64 = 1 << 32;
/// The first pid of tasks that have none of their own.
const PIDS: i32 = 10_000;

/// A random number generator of its own for each user of a seed.
fn generator(seed: u64, user: u64) -> oorandom::Rand64 {
    let mut mixed = seed ^ user.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    oorandom::Rand64::new(u128::from(mixed ^ (mixed >> 31)) << 1 | 1)
}

impl<'a> Sim<'a> {
    pub(super) fn new(
        setup: &'a Setup,
        workload: &'a Workload,
        implementation: &'a mut dyn Implementation,
        seed: u64,
    ) -> Self {
        let topology = Arc::clone(&setup.topology);
        let mut state = State::new(Arc::clone(&topology));
        state.hz = setup.hz;
        state.jiffies = JIFFIES;
        let n = topology.nr_cpu_ids();
        let idle = CpuBook { idle_ns: 1_000_000, idle: setup.cost.idle_state(1_000_000), ..CpuBook::default() };
        let book = |at: usize| Book {
            place: Place::Gone,
            entity: Entity::default(),
            program: 0,
            at: 0,
            loops: Vec::new(),
            left_ns: None,
            overhead_ns: 0,
            random: generator(seed, at as u64),
            woken_ns: None,
            ran_on: None,
            ran_until_ns: 0,
            data_from: None,
            footprint_kib: 0,
            mark_ns: 0,
            token_ns: 0,
            period_ns: None,
            waits: false,
            moved: false,
            comm: 0,
        };
        let channel = |channel: &crate::simulate::program::Channel| ChannelBook {
            tokens: channel.tokens,
            times: channel.timed.then(|| VecDeque::from(vec![0; channel.tokens as usize])),
            waiters: VecDeque::new(),
        };
        Self {
            watch: None,
            loads: Loads::new(n, n),
            implementation,
            workload,
            setup,
            cost: setup.cost,
            tunables: Tunables::of(topology.online().weight()),
            balancer: Balancer::new(&topology, setup.hz, JIFFIES),
            now_ns: 0,
            numbers: 0,
            events: BinaryHeap::new(),
            cpus: vec![idle; n],
            books: (0..n).map(book).collect(),
            gone: Vec::new(),
            channels: workload.channels.iter().map(channel).collect(),
            barriers: workload.barriers.iter().map(|&n| (n, Vec::new())).collect(),
            arrivals: (0..workload.arrivals.len()).map(|at| (generator(seed, (1 << 40) + at as u64), 0)).collect(),
            random: generator(seed, 1 << 60),
            comms: Vec::new(),
            by_comm: Vec::new(),
            stats: Stats::new(n),
            seed,
            pids: PIDS,
            waiting: 0,
            free: 0,
            overloaded: 0,
            wasted_since_ns: 0,
            begin_ns: setup.warmup_ns,
            end_ns: setup.warmup_ns + setup.measure_ns,
            asked_ns: 0,
            worked_ns: 0,
            signalled: 0,
            delivered: 0,
            error: None,
            over: false,
            topology,
            state,
        }
    }

    /// Every CPU idle, and the first events.
    pub(super) fn begin(&mut self) -> Result<(), SimulateError> {
        self.begin_implementation();
        let online = *self.topology.online();
        for cpu in online.iter() {
            self.state.rq.idle_stamp_ns[cpu.index()] = 1;
            self.settle(cpu);
            self.tell(&Step::EnterIdle(cpu));
        }
        for at in 0..self.workload.tasks.len() {
            let start = match self.workload.tasks[at].start {
                Start::Placed(cpu) => Some(cpu),
                Start::Spread { group, member, members } => self.spread(group, member, members),
                Start::Launched | Start::Forked => None,
            };
            if let Some(cpu) = start {
                let cpu = if online.test(cpu) { cpu } else { online.first().unwrap_or_default() };
                let id = self.make(at, None, cpu)?;
                self.books[id.index()].place = Place::Asleep;
                self.begin_asleep(id);
            }
        }
        self.launch()?;
        for at in 0..self.workload.arrivals.len() {
            self.next_arrival(at as u32);
        }
        self.at(self.setup.first_tick_ns, What::Tick);
        self.at(self.begin_ns, What::Begin);
        self.at(self.end_ns, What::End);
        Ok(())
    }

    /// Where a task of a group is that has run for long.
    fn spread(&self, group: u32, member: u32, members: u32) -> Option<Cpu> {
        let online = self.topology.online();
        let nodes: BTreeSet<u32> = online.iter().map(|cpu| self.topology.node(cpu)).collect();
        let node = *nodes.iter().nth(group as usize % nodes.len().max(1))?;
        let cpus: Vec<Cpu> = online.iter().filter(|&cpu| self.topology.node(cpu) == node).collect();
        let slot = (group as usize / nodes.len()) * members as usize + member as usize;
        cpus.get(slot % cpus.len().max(1)).copied()
    }

    /// A task whose program begins by waiting for something waits, one that sleeps at first does so; another one is on its
    /// CPU's run queue, without anybody having chosen it.
    fn begin_asleep(&mut self, id: TaskId) {
        let program = self.workload.programs[self.books[id.index()].program].first();
        match program {
            Some(&Op::Until(ns)) => {
                self.books[id.index()].at = 1;
                self.at(ns, What::Timer(id));
            }
            Some(&Op::Wait(channel)) if self.channels[channel].tokens == 0 => {
                self.channels[channel].waiters.push_back(id);
                let book = &mut self.books[id.index()];
                (book.waits, book.at) = (true, 1);
            }
            _ => self.begin_queued(id),
        }
    }

    pub(super) fn jiffy_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.setup.hz.max(1))
    }

    fn begin_implementation(&mut self) {
        let cost = self.cost;
        let (preferred, allowed) = self.setup.soft_affinity;
        if let Some(hidden) = self.implementation.hidden_mut() {
            hidden.clock.probe_ns = cost.probe_llc_ns;
            hidden.clock.clock_read_ns = cost.clock_read_ns;
            hidden.clock.mask_op_ns = cost.mask_op_ns;
            hidden.clock.by_distance = Some(cost.probes());
            hidden.sysctl_sched_preferred = preferred;
            hidden.sysctl_sched_allowed = allowed;
        }
        for shared in 0..self.topology.nr_shared() {
            let nr_idle_scan = self.topology.shared_span(shared).weight();
            self.tell(&Step::Balance { shared, nr_idle_scan });
        }
        for cpu in self.topology.clone().cpus() {
            self.tell(&Step::Fact(HiddenFact::RecentUsedCpu(TaskId::swapper(cpu), cpu)));
            self.tell(&Step::Fact(HiddenFact::WakeeFlips(TaskId::swapper(cpu), 0, Some(JIFFIES))));
        }
    }

    /// The task that forks those of the list, on the first CPU.
    fn launch(&mut self) -> Result<(), SimulateError> {
        if !self.workload.tasks.iter().any(|task| task.start == Start::Launched) {
            return Ok(());
        }
        let Some(cpu) = self.topology.online().first() else { return Ok(()) };
        let id = self.add(Comm::new(b"launcher"), Pid(1), *self.topology.online(), cpu)?;
        self.books[id.index()].program = self.workload.programs.len();
        self.books[id.index()].place = Place::Asleep;
        self.at(0, What::Timer(id));
        Ok(())
    }

    /// A task of the list, forked on `cpu`, not queued yet.
    pub(super) fn make(&mut self, spec: SpecId, parent: Option<TaskId>, cpu: Cpu) -> Result<TaskId, SimulateError> {
        let workload = self.workload;
        let spec = &workload.tasks[spec];
        let pid = spec.pid.unwrap_or_else(|| {
            self.pids += 1;
            Pid(self.pids)
        });
        let id = self.add(spec.comm, pid, spec.allowed.unwrap_or(*self.topology.online()), cpu)?;
        let weight = if spec.policy_idle { WEIGHT_IDLE } else { weight_of(120 + spec.nice) };
        let online = *self.topology.online();
        let task = &mut self.state.tasks[id];
        task.policy_idle = spec.policy_idle;
        if !task.cpus_ptr.intersects(&online) {
            task.cpus_ptr = online.into();
        }
        if let Some(preferred) = spec.preferred {
            let mut masks = Masks { allowed: *task.cpus_ptr, preferred: *task.cpus_ptr, unequal: false };
            // What the kernel would refuse leaves it as it is.
            let _ = masks.set_soft(&preferred, &online, &online);
            (task.cpus_preferred, task.affinity_unequal) = (masks.preferred.into(), masks.unequal);
        }
        self.obey(id);
        let book = &mut self.books[id.index()];
        book.program = spec.program;
        book.footprint_kib = spec.footprint_kib;
        book.entity.weight = weight;
        book.entity.policy_idle = spec.policy_idle;
        self.loads.entities[id.index()] = Load::forked(weight);
        if let Some(parent) = parent {
            self.state.tasks[id].last_update_time_ns = 0;
            self.tell(&Step::Fork { p: id, parent: Some(parent), cpu });
        }
        let task = &self.state.tasks[id];
        if !task.cpus_ptr.test(cpu) && parent.is_none() {
            let first = (*task.cpus_ptr & online).first().unwrap_or(cpu);
            self.state.tasks[id].task_cpu = first;
        }
        Ok(id)
    }

    /// A slot for a task.
    fn add(&mut self, comm: Comm, pid: Pid, allowed: Cpumask, cpu: Cpu) -> Result<TaskId, SimulateError> {
        let task = Task::new(pid, comm, allowed, cpu);
        let id = match self.gone.pop() {
            Some(id) => {
                self.state.tasks[id] = task;
                id
            }
            None => {
                if self.books.len() >= TASKS_MAX {
                    return Err(SimulateError::Tasks { workload: self.workload.name.clone(), most: TASKS_MAX });
                }
                self.state.tasks.0.push(task);
                self.books.push(self.books[0].clone());
                self.loads.entities.push(Load::NEW);
                TaskId(self.books.len() as u32 - 1)
            }
        };
        let comm_at = self.comms.iter().position(|other| *other == comm).unwrap_or_else(|| {
            self.comms.push(comm);
            self.by_comm.push(ByComm::default());
            self.comms.len() - 1
        });
        self.numbers += 1;
        let random = generator(self.seed, (1 << 50) + self.numbers);
        let fresh = Book {
            random,
            comm: comm_at,
            entity: Entity { weight: 1024, ..Entity::default() },
            ..self.books[0].clone()
        };
        self.books[id.index()] = fresh;
        self.loads.entities[id.index()] = Load::forked(1024);
        Ok(id)
    }

    /// What the side file says of the task.
    fn obey(&mut self, id: TaskId) {
        let Some(rules) = self.setup.rules.clone() else { return };
        let online = *self.topology.online();
        let task = &mut self.state.tasks[id];
        let groups = rules.groups_of(task.pid, &task.comm);
        let cpuset = rules.cpuset(groups);
        let mut masks =
            Masks { allowed: *task.cpus_ptr, preferred: *task.cpus_preferred, unequal: task.affinity_unequal };
        if groups != 0 && cpuset.intersects(&online) && !online.is_subset(&cpuset) {
            let _ = masks.set_hard(&(cpuset & *task.cpus_ptr), &cpuset, &online);
        }
        for (_, rule) in rules.of(task.pid, &task.comm, groups) {
            // What the kernel would refuse leaves it as it is.
            if let Some(mask) = rule.allowed {
                let _ = masks.set_hard(&mask, &cpuset, &online);
            }
            if let Some(mask) = rule.preferred {
                let _ = masks.set_soft(&mask, &cpuset, &online);
            }
            task.uclamp_min = rule.uclamp_min.unwrap_or(task.uclamp_min);
            task.uclamp_max = rule.uclamp_max.unwrap_or(task.uclamp_max);
        }
        task.cpus_ptr = (masks.allowed & online).into();
        task.nr_cpus_allowed = task.cpus_ptr.weight();
        (task.cpus_preferred, task.affinity_unequal) = ((masks.preferred & online).into(), masks.unequal);
    }

    pub(super) fn next_arrival(&mut self, source: u32) {
        let workload = self.workload;
        let (random, nth) = &mut self.arrivals[source as usize];
        let when = match &workload.arrivals[source as usize].times {
            Times::Gaps(gap) => Some(self.now_ns + gap.draw(random).max(1)),
            Times::At(times) => times.get(*nth).copied(),
        };
        *nth += 1;
        if let Some(ns) = when {
            self.at(ns.max(self.now_ns), What::Arrive(source));
        }
    }

    /// The warm-up is over.
    pub(super) fn begin_counting(&mut self) {
        self.waste();
        for cpu in self.topology.clone().cpus() {
            self.cpus[cpu.index()].since_ns = self.now_ns;
        }
        self.stats = Stats::new(self.cpus.len());
        self.by_comm.iter_mut().for_each(|by| *by = ByComm::default());
        self.tell_running();
    }

    /// What was counted, up to now.
    pub(super) fn finish(mut self) -> Stats {
        self.waste();
        for cpu in self.topology.clone().online().iter() {
            self.account(cpu);
        }
        let mut stats = self.stats;
        stats.measured_ns = self.setup.measure_ns;
        stats.cpus = self.topology.online().weight();
        stats.comms = self
            .comms
            .into_iter()
            .zip(self.by_comm)
            .filter(|(_, by)| by.latency.count() > 0 || by.done > 0 || by.work_ns > 0)
            .collect();
        stats
    }
}
