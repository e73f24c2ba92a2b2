// SPDX-License-Identifier: GPL-2.0-or-later
//! What tasks do: programs of a few operations, and the channels, barriers and arrivals that tie them together.

use std::f64;

use crate::cpumask::Cpumask;
use crate::units::{Comm, Cpu, Pid};

/// Index of a program in [`Workload::programs`].
pub type ProgramId = usize;
/// Index of a channel in [`Workload::channels`].
pub type ChannelId = usize;
/// Index of a barrier in [`Workload::barriers`].
pub type BarrierId = usize;
/// Index of a task in [`Workload::tasks`].
pub type SpecId = usize;

/// How long something takes, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dist {
    /// Always the same.
    Fixed(u64),
    /// Anything from the first to the second, both included, equally likely.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exp(u64),
}

impl Dist {
    /// Around `mean`, give or take `percent` of it.
    pub fn around(mean_ns: u64, percent: u64) -> Self {
        let off = mean_ns * percent / 100;
        if off == 0 { Self::Fixed(mean_ns) } else { Self::Uniform(mean_ns - off.min(mean_ns), mean_ns + off) }
    }

    /// A value drawn with `random`.
    pub fn draw(self, random: &mut oorandom::Rand64) -> u64 {
        match self {
            Self::Fixed(ns) => ns,
            Self::Uniform(low, high) => low + random.rand_u64() % (high.saturating_sub(low) + 1),
            Self::Exp(mean) => {
                let uniform = random.rand_float();
                (-(1.0 - uniform).max(f64::MIN_POSITIVE).ln() * mean as f64) as u64
            }
        }
    }
}

/// How a task wakes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct How {
    /// WF_SYNC: pipes and sockets say that the waker is about to sleep.
    pub sync: bool,
    /// From a softirq in the waker's context, as a packet over the loopback device: not in_task().
    pub softirq: bool,
    /// Data goes with it: a wakee that runs far from its waker pays for fetching it.
    pub data: bool,
}

/// One operation of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Works for so long on an undisturbed CPU.
    Run(Dist),
    /// Sleeps until a timer fires, so long from now.
    Sleep(Dist),
    /// Sleeps until the next multiple of a period from its first call on; goes on at once if that has passed.
    Period(u64),
    /// Sleeps until so long after the simulation's start; goes on at once if that has passed.
    Until(u64),
    /// Takes a token of a channel; sleeps until there is one.
    Wait(ChannelId),
    /// Puts a token into a channel, which wakes the first who waits there.
    Signal(ChannelId, How),
    /// Gives each task that waits at a channel a token, and nobody else.
    Broadcast(ChannelId, How),
    /// Waits until all of a barrier's tasks are there; the last one wakes the others.
    Barrier(BarrierId),
    /// What follows up to the matching [`Op::End`] is done so many times; 0: for ever.
    Loop(u64),
    /// Ends a [`Op::Loop`].
    End,
    /// Makes a task of this description.
    Fork(SpecId),
    /// Executes another program: a decision about where, nothing else changes.
    Exec,
    /// A request begins now.
    Mark,
    /// A request began when the token was put in that was taken last.
    MarkToken,
    /// A request is done: one unit of throughput.
    Done,
    /// The task ends; so it does where its program ends.
    Exit,
}

/// When a task begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Forked by the launcher as the simulation begins, in the order of the list.
    Launched,
    /// It is there from the start, asleep, last on this CPU; its program begins at once.
    Placed(Cpu),
    /// It is there from the start, asleep, with those of its group on one node, group by group on the nodes in turn: as
    /// balancing leaves what has run for long.
    Spread {
        /// The group.
        group: u32,
        /// Which of the group.
        member: u32,
        /// How many the group has.
        members: u32,
    },
    /// When a task forks it; may happen any number of times.
    Forked,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its name.
    pub comm: Comm,
    /// Its thread id; `None`: a free one.
    pub pid: Option<Pid>,
    /// What it does.
    pub program: ProgramId,
    /// -20 to 19.
    pub nice: i32,
    /// SCHED_IDLE.
    pub policy_idle: bool,
    /// Hard affinity; `None`: all CPUs.
    pub allowed: Option<Cpumask>,
    /// Soft affinity; `None`: the same.
    pub preferred: Option<Cpumask>,
    /// What it has in caches and misses after a migration, KiB.
    pub footprint_kib: u64,
    /// When it begins.
    pub start: Start,
    /// Where a fork puts it, whatever the implementation says; `None`: where that says.
    pub begins_on: Option<Cpu>,
}

impl TaskSpec {
    /// An ordinary task that the launcher forks.
    pub fn new(comm: &str, program: ProgramId) -> Self {
        Self {
            comm: Comm::new(comm.as_bytes()),
            pid: None,
            program,
            nice: 0,
            policy_idle: false,
            allowed: None,
            preferred: None,
            footprint_kib: 64,
            start: Start::Launched,
            begins_on: None,
        }
    }
}

/// A channel as the simulation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Channel {
    /// Tokens in it.
    pub tokens: u64,
    /// It remembers when each token was put in, for [`Op::MarkToken`].
    pub timed: bool,
}

/// Arrivals from outside: an interrupt on a CPU puts a token into a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrivals {
    /// Where to.
    pub channel: ChannelId,
    /// The CPU that takes the interrupt.
    pub cpu: Cpu,
    /// When.
    pub times: Times,
}

/// When arrivals come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// With these gaps, for ever.
    Gaps(Dist),
    /// At these times after the start, ns, ascending.
    At(Vec<u64>),
}

/// Everything that runs on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workload {
    /// Its name, with its parameters.
    pub name: String,
    /// What one [`Op::Done`] is called, in the plural.
    pub unit: &'static str,
    /// Programs.
    pub programs: Vec<Vec<Op>>,
    /// Tasks.
    pub tasks: Vec<TaskSpec>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// How many tasks each barrier waits for.
    pub barriers: Vec<u32>,
    /// Arrivals from outside.
    pub arrivals: Vec<Arrivals>,
}

/// Why a workload cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("workload {workload}: {what}")]
pub struct WorkloadError {
    /// The workload.
    pub workload: String,
    /// What is wrong.
    pub what: String,
}

impl Workload {
    /// An empty workload.
    pub fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, ..Self::default() }
    }

    /// Adds a program.
    pub fn program(&mut self, ops: Vec<Op>) -> ProgramId {
        self.programs.push(ops);
        self.programs.len() - 1
    }

    /// Adds a channel.
    pub fn channel(&mut self, tokens: u64) -> ChannelId {
        self.channels.push(Channel { tokens, timed: false });
        self.channels.len() - 1
    }

    /// Adds a task with a program of its own.
    pub fn task(&mut self, comm: &str, ops: Vec<Op>) -> SpecId {
        let program = self.program(ops);
        self.tasks.push(TaskSpec::new(comm, program));
        self.tasks.len() - 1
    }

    /// Checks that programs speak of what exists and that their loops fit together.
    ///
    /// # Errors
    /// [`WorkloadError`] names the program and the operation.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| WorkloadError { workload: self.name.clone(), what };
        for (at, ops) in self.programs.iter().enumerate() {
            let mut depth = 0usize;
            for op in ops {
                let missing = match *op {
                    Op::Wait(id) | Op::Signal(id, _) | Op::Broadcast(id, _) => id >= self.channels.len(),
                    Op::Barrier(id) => id >= self.barriers.len(),
                    Op::Fork(id) => id >= self.tasks.len(),
                    Op::Period(0) => return Err(wrong(format!("program {at} has a period of 0 ns"))),
                    _ => false,
                };
                if missing {
                    return Err(wrong(format!("program {at}: {op:?} names something that is not there")));
                }
                match op {
                    Op::Loop(_) => depth += 1,
                    Op::End => match depth.checked_sub(1) {
                        Some(outer) => depth = outer,
                        None => return Err(wrong(format!("program {at}: the end of a loop that did not begin"))),
                    },
                    _ => {}
                }
            }
            if depth > 0 {
                return Err(wrong(format!("program {at}: a loop without end mark")));
            }
        }
        let outside = |task: &TaskSpec| task.program >= self.programs.len();
        if let Some(task) = self.tasks.iter().find(|task| outside(task)) {
            return Err(wrong(format!("task {} has no program", task.comm)));
        }
        if self.arrivals.iter().any(|source| source.channel >= self.channels.len()) {
            return Err(wrong("arrivals for a channel that is not there".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_that_they_say() {
        let mut random = oorandom::Rand64::new(1);
        for dist in [Dist::Fixed(1000), Dist::Uniform(500, 1500), Dist::Exp(1000)] {
            let n = 100_000;
            let sum: u64 = (0..n).map(|_| dist.draw(&mut random)).sum();
            assert!((sum / n).abs_diff(1000) < 15, "{dist:?}: {}", sum / n);
        }
        assert_eq!(Dist::around(1000, 10), Dist::Uniform(900, 1100));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let mut workload = Workload::new("w", "loops");
        workload.task("a", vec![Op::Loop(0), Op::Wait(0), Op::End]);
        assert!(workload.check().is_err_and(|error| error.to_string().contains("Wait(0)")));
        workload.channel(0);
        assert_eq!(workload.check(), Ok(()));
        workload.task("b", vec![Op::Loop(3)]);
        assert!(workload.check().is_err());
    }
}
