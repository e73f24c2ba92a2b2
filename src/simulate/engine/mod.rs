// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulated machine.
//!
//! One [`State`] is what implementations see; it is changed here, never described twice. What a simulation has to know
//! beside it is in [`Book`] for each task and in [`CpuBook`] for each CPU.
//!
//! Simplified, and so to be read: a decision is made at the moment of the wakeup, what it costs comes after it; an
//! interrupt on an idle CPU counts as idle time; the speed of SMT siblings is looked at when a piece of work begins and at
//! each tick; balancing is described in `balance.rs`; a timer fires on the CPU that armed it.

mod audit;
mod balance;
mod begin;
mod run;
mod switch;
mod tick;
mod wake;
mod watch;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::affinity::Rules;
use crate::fair::{Implementation, Step};
use crate::machine::{Loads, State, TaskId};
use crate::simulate::cfs::{Cfs, Entity, Order, Tunables};
use crate::simulate::cost::{Cost, IdleState};
use crate::simulate::exits::IdleExits;
use crate::simulate::program::{ProgramId, Workload, WorkloadError};
use crate::simulate::stats::{BINS, Stats};
use crate::topology::{DomainId, Topology};
use crate::units::{Comm, Cpu};

pub use watch::{Decided, Watch};

/// The machine and for how long it runs.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its shape.
    pub topology: Arc<Topology>,
    /// Jiffies per second.
    pub hz: u32,
    /// The first tick comes so long after the beginning, ns; later ones a jiffy apart.
    pub first_tick_ns: u64,
    /// Per CPU, when ticks came late, ns, ascending: a recording's timers show it. Empty: never.
    pub late_ticks_ns: Vec<Vec<u64>>,
    /// Which kernel's rules go around the wakeup path (wake lists, new-idle balancing), as major and minor.
    pub release: (u32, u32),
    /// What things cost.
    pub cost: Cost,
    /// What a side file states about tasks.
    pub rules: Option<Arc<Rules>>,
    /// `sysctl_sched_preferred` and `sysctl_sched_allowed` of the soft-affinity RFC.
    pub soft_affinity: (u32, u32),
    /// How long an idle CPU takes to begin, as recorded, in place of what idle states cost. Arrivals are then at the
    /// times at which their handlers ran.
    pub idle_exits: Option<Arc<IdleExits>>,
    /// Per CPU `rq->max_idle_balance_cost`, ns; empty: the kernel's floor, and new-idle balancing costs what `cost` says.
    pub max_idle_balance_cost_ns: Vec<u64>,
    /// Simulated before anything is counted, ns.
    pub warmup_ns: u64,
    /// Simulated and counted, ns.
    pub measure_ns: u64,
}

impl Setup {
    /// A machine with default costs: a tenth of a second of warm-up, half a second measured.
    pub fn new(topology: Arc<Topology>) -> Self {
        Self {
            topology,
            hz: 250,
            first_tick_ns: 4_000_000,
            late_ticks_ns: Vec::new(),
            release: (5, 11),
            cost: Cost::new(),
            rules: None,
            soft_affinity: (1, 100),
            idle_exits: None,
            max_idle_balance_cost_ns: Vec::new(),
            warmup_ns: 100_000_000,
            measure_ns: 500_000_000,
        }
    }
}

/// Why a simulation ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The workload makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A program that takes no time.
    #[error(
        "workload {workload}: task {task} does {steps} operations without any time passing; give it something to run"
    )]
    Stuck {
        /// The workload.
        workload: String,
        /// The task's name.
        task: String,
        /// How many.
        steps: u32,
    },
    /// Too many tasks.
    #[error("workload {workload}: more than {most} tasks at a time")]
    Tasks {
        /// The workload.
        workload: String,
        /// The limit.
        most: usize,
    },
    /// A kernel tree failed.
    #[error("{0}")]
    Fault(String),
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Asleep,
    /// On the wake list of its CPU.
    Listed,
    Queued,
    Running,
    Gone,
}

/// What is kept of a task besides its facts.
#[derive(Debug, Clone)]
struct Book {
    place: Place,
    entity: Entity,
    program: ProgramId,
    at: usize,
    /// Open loops: where each began, and how often it comes again.
    loops: Vec<(usize, u64)>,
    /// What is left of the [`Run`](crate::simulate::Op::Run) it is in, ns of an undisturbed CPU.
    left_ns: Option<u64>,
    /// What has to pass before its program goes on, ns.
    overhead_ns: u64,
    random: oorandom::Rand64,
    /// When it was woken, until it runs.
    woken_ns: Option<u64>,
    /// Where it last ran.
    ran_on: Option<Cpu>,
    /// When.
    ran_until_ns: u64,
    /// The CPU whose data it was woken for.
    data_from: Option<Cpu>,
    footprint_kib: u64,
    mark_ns: u64,
    token_ns: u64,
    /// When the next period begins.
    period_ns: Option<u64>,
    /// The channel or barrier it sleeps at; a check that it is woken once.
    waits: bool,
    /// On a wake list: its virtual time is relative to the run queue that it left.
    moved: bool,
    comm: usize,
}

/// What is kept of a CPU besides its run queue's columns.
#[derive(Debug, Clone, Default)]
struct CpuBook {
    curr: Option<TaskId>,
    queue: Cfs,
    /// Number of the step event that counts.
    step: u32,
    /// The current piece of the running task.
    began_ns: u64,
    is_slow: bool,
    /// Up to when the running task's run time is booked.
    booked_ns: u64,
    need_resched: bool,
    /// An interrupt that makes it look at its run queue is on its way.
    kicked: bool,
    /// Tasks on its wake list.
    listed: u32,
    idle: IdleState,
    /// Which of the recorded times it takes to leave idle.
    exit_draw: u64,
    /// Since when it is idle or busy.
    since_ns: u64,
    /// Average length of its idle periods, ns.
    idle_ns: u64,
    /// What it adds to [`Sim::waiting`] and [`Sim::free`].
    waiting: u32,
    free: bool,
    is_overloaded: bool,
    /// What interrupts cost the next task.
    debt_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The current piece of a CPU's task ends.
    Step(Cpu, u32),
    /// A CPU looks at its run queue.
    Kick(Cpu),
    /// What waits longest on a CPU's wake list is enqueued.
    Land(Cpu, TaskId),
    /// A timer of a task expires.
    Timer(TaskId),
    /// Its interrupt's handler runs.
    Fire(TaskId, Cpu, u64),
    /// The next arrival of a source.
    Arrive(u32),
    /// Its interrupt's handler runs.
    Arrived(u32, u64),
    Tick,
    /// A CPU's tick that came late.
    LateTick(Cpu),
    /// An idle CPU balances for all that are idle.
    Nohz(Cpu),
    Begin,
    End,
}

#[derive(Debug, Clone, Default)]
struct ChannelBook {
    tokens: u64,
    /// When each token was put in, where somebody wants to know.
    times: Option<VecDeque<u64>>,
    waiters: VecDeque<TaskId>,
}

/// Tasks that there may be at a time.
const TASKS_MAX: usize = 100_000;

/// A simulation under way.
struct Sim<'a> {
    watch: Option<&'a mut dyn Watch>,
    state: State,
    loads: Loads,
    implementation: &'a mut dyn Implementation,
    workload: &'a Workload,
    setup: &'a Setup,
    cost: Cost,
    tunables: Tunables,
    topology: Arc<Topology>,
    now_ns: u64,
    numbers: u64,
    events: BinaryHeap<Reverse<(u64, u64, What)>>,
    cpus: Vec<CpuBook>,
    /// By task id; the swappers' are not used.
    books: Vec<Book>,
    gone: Vec<TaskId>,
    channels: Vec<ChannelBook>,
    barriers: Vec<(u32, Vec<TaskId>)>,
    arrivals: Vec<(oorandom::Rand64, usize)>,
    random: oorandom::Rand64,
    balancer: balance::Balancer,
    comms: Vec<Comm>,
    by_comm: Vec<crate::simulate::stats::ByComm>,
    stats: Stats,
    seed: u64,
    pids: i32,
    /// Tasks that wait at busy CPUs, and CPUs that have nothing to do.
    waiting: u32,
    free: u32,
    overloaded: u32,
    wasted_since_ns: u64,
    begin_ns: u64,
    end_ns: u64,
    /// Work that programs have asked for so far, all of it, and of that what is done.
    asked_ns: u64,
    worked_ns: u64,
    signalled: u64,
    delivered: u64,
    error: Option<SimulateError>,
    over: bool,
}

/// Plays `workload` on the machine of `setup` with `implementation`'s choices.
///
/// # Errors
/// [`SimulateError`] where the workload makes no sense, or never lets time pass.
pub fn run(
    setup: &Setup,
    workload: &Workload,
    implementation: &mut dyn Implementation,
    seed: u64,
) -> Result<Stats, SimulateError> {
    play(Sim::new(setup, workload, implementation, seed))
}

/// [`run`], with everything that happens after the warm-up told to `watch`, in order.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    setup: &Setup,
    workload: &Workload,
    implementation: &mut dyn Implementation,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Stats, SimulateError> {
    play(Sim { watch: Some(watch), ..Sim::new(setup, workload, implementation, seed) })
}

fn play(mut sim: Sim<'_>) -> Result<Stats, SimulateError> {
    sim.workload.check()?;
    sim.begin()?;
    sim.go();
    match (sim.error.take(), sim.implementation.fault()) {
        (Some(error), _) => Err(error),
        (None, Some(fault)) => Err(SimulateError::Fault(fault)),
        (None, None) => Ok(sim.finish()),
    }
}

/// [`run`], with everything audited that must hold, every so many events and at the end.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// Where something does not hold: that is what it is for.
pub fn run_audited(
    setup: &Setup,
    workload: &Workload,
    implementation: &mut dyn Implementation,
    seed: u64,
    every: u64,
) -> Result<Stats, SimulateError> {
    workload.check()?;
    let mut sim = Sim::new(setup, workload, implementation, seed);
    sim.begin()?;
    let mut events = 0u64;
    while !sim.over && sim.error.is_none() {
        let Some(Reverse((ns, _, what))) = sim.events.pop() else { break };
        assert!(ns >= sim.now_ns, "time goes back");
        sim.now_ns = ns;
        sim.happen(what);
        events += 1;
        if events.is_multiple_of(every) && sim.error.is_none() {
            let held = sim.audit();
            assert_eq!(held, Ok(()), "after {events} events, at {ns} ns: {what:?}");
        }
    }
    if let Some(error) = sim.error.take() {
        return Err(error);
    }
    assert_eq!(sim.audit(), Ok(()), "at the end");
    let stats = sim.finish();
    let wall = stats.measured_ns * u64::from(stats.cpus);
    assert_eq!(stats.busy_ns.iter().sum::<u64>() + stats.idle_ns.iter().sum::<u64>(), wall, "time of all CPUs");
    Ok(stats)
}

impl Sim<'_> {
    fn at(&mut self, ns: u64, what: What) {
        self.numbers += 1;
        self.events.push(Reverse((ns, self.numbers, what)));
    }

    /// Events in the order of time, until the end.
    fn go(&mut self) {
        while let Some(Reverse((ns, _, what))) = self.events.pop() {
            self.now_ns = ns;
            self.happen(what);
            if self.over || self.error.is_some() {
                break;
            }
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Step(cpu, number) if number == self.cpus[cpu.index()].step => self.step_ends(cpu),
            What::Step(..) => {}
            What::Kick(cpu) => self.kick_comes(cpu),
            What::Land(cpu, id) => self.land(cpu, id),
            What::Timer(id) => self.timer(id),
            What::Fire(id, cpu, since_ns) => self.fire(id, cpu, since_ns),
            What::Arrive(source) => self.arrive(source),
            What::Arrived(source, since_ns) => self.arrived(source, since_ns),
            What::Tick => self.tick(),
            What::LateTick(cpu) => self.late_tick(cpu),
            What::Nohz(cpu) => self.nohz_balance(cpu),
            What::Begin => self.begin_counting(),
            What::End => self.over = true,
        }
    }

    /// The part of the measured time that is now.
    fn bin(&self) -> usize {
        let since = self.now_ns.saturating_sub(self.begin_ns);
        ((since * BINS as u64 / self.setup.measure_ns.max(1)) as usize).min(BINS - 1)
    }

    fn is_idle(&self, cpu: Cpu) -> bool {
        self.cpus[cpu.index()].curr.is_none()
    }

    fn tell(&mut self, step: &Step) {
        self.implementation.step(&self.state, step);
    }

    /// Loads of a run queue as the kernel has them: of its last update.
    fn show(&mut self, cpu: Cpu) {
        let at = cpu.index();
        let cfs = &self.loads.cfs[at];
        let rq = &mut self.state.rq;
        rq.load_avg[at] = cfs.avg.load_avg;
        rq.runnable_load_avg[at] = cfs.avg.load_avg;
        rq.runnable_avg[at] = cfs.avg.runnable_avg;
        rq.util_avg[at] = cfs.avg.util_avg;
        rq.util_est_enqueued[at] = cfs.util_est;
    }

    /// One task more or less on a run queue.
    fn count(&mut self, cpu: Cpu, id: TaskId, add: fn(u32, u32) -> u32) {
        let (at, rq) = (cpu.index(), &mut self.state.rq);
        rq.nr_running[at] = add(rq.nr_running[at], 1);
        rq.h_nr_running[at] = rq.nr_running[at];
        rq.h_nr_runnable[at] = rq.nr_running[at];
        if self.state.tasks[id].policy_idle {
            rq.idle_h_nr_running[at] = add(rq.idle_h_nr_running[at], 1);
        }
        let overloaded = rq.nr_running[at] > 1;
        let book = &mut self.cpus[at];
        if overloaded != book.is_overloaded {
            book.is_overloaded = overloaded;
            self.overloaded = if overloaded { self.overloaded + 1 } else { self.overloaded - 1 };
        }
    }

    /// Brings what is known of waiting tasks and free CPUs up to date with `cpu`.
    fn settle(&mut self, cpu: Cpu) {
        let book = &self.cpus[cpu.index()];
        let idle = book.curr.is_none();
        let queued = book.queue.len() as u32;
        // The first task of an idle CPU is on its way.
        let waiting = if idle { queued.saturating_sub(1) } else { queued };
        let free = idle && queued == 0 && book.listed == 0;
        if waiting == book.waiting && free == book.free {
            return;
        }
        self.waste();
        let book = &mut self.cpus[cpu.index()];
        self.waiting = self.waiting - book.waiting + waiting;
        self.free = self.free - u32::from(book.free) + u32::from(free);
        (book.waiting, book.free) = (waiting, free);
    }

    fn waste(&mut self) {
        let ns = self.now_ns - self.wasted_since_ns;
        self.stats.wasted_ns += ns * u64::from(self.waiting.min(self.free));
        self.wasted_since_ns = self.now_ns;
    }

    /// Time up to now is booked as busy or idle.
    fn account(&mut self, cpu: Cpu) {
        let book = &mut self.cpus[cpu.index()];
        let ns = self.now_ns - book.since_ns;
        book.since_ns = self.now_ns;
        if book.curr.is_some() {
            self.stats.busy_ns[cpu.index()] += ns;
            let bin = self.bin();
            self.stats.series[bin].busy_ns += ns;
        } else {
            self.stats.idle_ns[cpu.index()] += ns;
        }
    }

    fn domain_span(&self, sd: DomainId) -> crate::cpumask::Cpumask {
        self.topology.domain(sd).span
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
