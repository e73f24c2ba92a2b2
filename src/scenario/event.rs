// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens in a case, one line each, as case files and pictures write it.
//!
//! ```text
//! wake t1 from cpu0 [sync] [irq] [remote]   t1 is woken; asleep first if it is not
//! fork t3 from cpu0                         the current task of cpu0 makes t3
//! exec cpu2                                 the current task of cpu2 executes another program
//! sleep t1                                  t1 leaves its run queue
//! idle cpu3                                 whatever cpu3 runs ends: __update_idle_core()
//! load cpu3 2 [idle=1] [rt=1] [delayed=1]   cpu3 runs that many other tasks from now on
//! move t1 to cpu2                           load balance
//! affine t1 to 0-3                          sched_setaffinity()
//! switch cpu0                               the next task of cpu0's queue runs
//! tick 4                                    jiffies pass; what waits on wake lists is enqueued
//! balance llc0 3                            periodic balance computes nr_idle_scan
//! preempt cpu3 | resume cpu3                vcpu_is_preempted()
//! offline cpu3 | online cpu3                hotplug: sched domains are built anew
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpumask::Cpumask;
use crate::scenario::CaseError;
use crate::units::Cpu;

/// Index of a task in the case's list.
pub type TaskIndex = usize;

/// Tasks of a CPU that the case does not name one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Queued fair tasks, the delayed and the SCHED_IDLE ones among them.
    pub fair: u8,
    /// Of the fair ones, those that are SCHED_IDLE.
    pub idle: u8,
    /// Queued real-time tasks.
    pub rt: u8,
    /// Of the fair ones, those whose dequeue is delayed (since 6.12); always fewer than all tasks.
    pub delayed: u8,
}

impl Load {
    /// `fair` ordinary tasks.
    pub fn fair(fair: u8) -> Self {
        Self { fair, ..Self::default() }
    }

    /// Nothing queued.
    pub fn is_none(&self) -> bool {
        self.fair == 0 && self.rt == 0
    }

    /// The same load with its parts no larger than the whole.
    pub fn normal(self) -> Self {
        let delayed_max = if self.rt > 0 { self.fair } else { self.fair.saturating_sub(1) };
        Self { idle: self.idle.min(self.fair), delayed: self.delayed.min(delayed_max), ..self }
    }
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A wakeup.
    Wake {
        /// The wakee.
        p: TaskIndex,
        /// The CPU on which the waking runs; its current task is the waker.
        from: Cpu,
        /// WF_SYNC.
        sync: bool,
        /// In interrupt context: `in_task()` is false.
        irq: bool,
        /// The wakee waits on the chosen CPU's wake list (`ttwu_pending`) until the next tick or switch there.
        remote: bool,
    },
    /// A new task.
    Fork {
        /// The child; whatever it did before is forgotten.
        p: TaskIndex,
        /// Where its parent runs.
        from: Cpu,
    },
    /// An exec of the CPU's current task.
    Exec(Cpu),
    /// A task leaves its run queue.
    Sleep(TaskIndex),
    /// Every task of the CPU leaves its run queue.
    Idle(Cpu),
    /// The unnamed tasks of a CPU change.
    Load(Cpu, Load),
    /// Load balance moves a queued task, where it may go there.
    Move(TaskIndex, Cpu),
    /// A task's affinity changes.
    Affine(TaskIndex, Cpumask),
    /// The next queued task runs.
    Switch(Cpu),
    /// Jiffies pass.
    Tick(u32),
    /// nr_idle_scan of the LLC on the n-th line.
    Balance(usize, u32),
    /// `vcpu_is_preempted()` of a CPU.
    Preempt(Cpu, bool),
    /// A CPU comes up (`true`) or goes down.
    Hotplug(Cpu, bool),
}

impl Event {
    /// Whether implementations are asked.
    pub fn is_decision(&self) -> bool {
        matches!(self, Self::Wake { .. } | Self::Fork { .. } | Self::Exec(_))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fair)?;
        let parts = [("idle", self.idle), ("rt", self.rt), ("delayed", self.delayed)];
        parts.iter().filter(|(_, n)| *n > 0).try_for_each(|(name, n)| write!(f, " {name}={n}"))
    }
}

impl FromStr for Load {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        Words { line: text, words: text.split_whitespace() }.load()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Wake { p, from, sync, irq, remote } => {
                write!(f, "wake t{p} from cpu{from}")?;
                let words = [(sync, " sync"), (irq, " irq"), (remote, " remote")];
                words.iter().filter(|(set, _)| *set).try_for_each(|(_, word)| f.write_str(word))
            }
            Self::Fork { p, from } => write!(f, "fork t{p} from cpu{from}"),
            Self::Exec(cpu) => write!(f, "exec cpu{cpu}"),
            Self::Sleep(p) => write!(f, "sleep t{p}"),
            Self::Idle(cpu) => write!(f, "idle cpu{cpu}"),
            Self::Load(cpu, load) => write!(f, "load cpu{cpu} {load}"),
            Self::Move(p, to) => write!(f, "move t{p} to cpu{to}"),
            Self::Affine(p, cpus) => write!(f, "affine t{p} to {cpus}"),
            Self::Switch(cpu) => write!(f, "switch cpu{cpu}"),
            Self::Tick(jiffies) => write!(f, "tick {jiffies}"),
            Self::Balance(llc, nr) => write!(f, "balance llc{llc} {nr}"),
            Self::Preempt(cpu, true) => write!(f, "preempt cpu{cpu}"),
            Self::Preempt(cpu, false) => write!(f, "resume cpu{cpu}"),
            Self::Hotplug(cpu, false) => write!(f, "offline cpu{cpu}"),
            Self::Hotplug(cpu, true) => write!(f, "online cpu{cpu}"),
        }
    }
}

impl FromStr for Event {
    type Err = CaseError;

    fn from_str(line: &str) -> Result<Self, CaseError> {
        let mut words = Words { line, words: line.split_whitespace() };
        let event = match words.next("what happens")? {
            "wake" => {
                let (p, from) = (words.task()?, words.after("from")?.cpu()?);
                let flags = words.flags(&["sync", "irq", "remote"])?;
                Self::Wake { p, from, sync: flags[0], irq: flags[1], remote: flags[2] }
            }
            "fork" => Self::Fork { p: words.task()?, from: words.after("from")?.cpu()? },
            "exec" => Self::Exec(words.cpu()?),
            "sleep" => Self::Sleep(words.task()?),
            "idle" => Self::Idle(words.cpu()?),
            "load" => Self::Load(words.cpu()?, words.load()?),
            "move" => Self::Move(words.task()?, words.after("to")?.cpu()?),
            "affine" => {
                let p = words.task()?;
                let list = words.after("to")?.next("a cpulist")?;
                Self::Affine(p, if list == "none" { Cpumask::EMPTY } else { list.parse()? })
            }
            "switch" => Self::Switch(words.cpu()?),
            "tick" => Self::Tick(words.number("a number of jiffies")?),
            "balance" => Self::Balance(words.named("llc")?, words.number("nr_idle_scan")?),
            "preempt" => Self::Preempt(words.cpu()?, true),
            "resume" => Self::Preempt(words.cpu()?, false),
            "offline" => Self::Hotplug(words.cpu()?, false),
            "online" => Self::Hotplug(words.cpu()?, true),
            _ => return Err(words.bad("wake, fork, exec, sleep, idle, load, move, affine, switch, tick, balance, …")),
        };
        match words.words.next() {
            None => Ok(event),
            Some(_) => Err(words.bad("nothing more after it")),
        }
    }
}

/// The words of a line, left to right.
struct Words<'a> {
    line: &'a str,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn bad(&self, expected: &'static str) -> CaseError {
        CaseError::line(self.line, expected)
    }

    fn next(&mut self, expected: &'static str) -> Result<&'a str, CaseError> {
        self.words.next().ok_or_else(|| self.bad(expected))
    }

    fn number<T: FromStr>(&mut self, expected: &'static str) -> Result<T, CaseError> {
        self.next(expected)?.parse().map_err(|_| self.bad(expected))
    }

    fn named<T: FromStr>(&mut self, prefix: &'static str) -> Result<T, CaseError> {
        let number = self.next(prefix)?.strip_prefix(prefix).and_then(|n| n.parse().ok());
        number.ok_or_else(|| self.bad(prefix))
    }

    fn cpu(&mut self) -> Result<Cpu, CaseError> {
        self.named("cpu").map(Cpu)
    }

    fn task(&mut self) -> Result<TaskIndex, CaseError> {
        self.named("t")
    }

    fn after(&mut self, word: &'static str) -> Result<&mut Self, CaseError> {
        if self.next(word)? == word { Ok(self) } else { Err(self.bad(word)) }
    }

    fn flags<const N: usize>(&mut self, names: &[&str; N]) -> Result<[bool; N], CaseError> {
        let mut flags = [false; N];
        for word in self.words.by_ref() {
            let at = names.iter().position(|name| *name == word);
            flags[at.ok_or_else(|| CaseError::line(self.line, "sync, irq or remote"))?] = true;
        }
        Ok(flags)
    }

    fn load(&mut self) -> Result<Load, CaseError> {
        let mut load = Load::fair(self.number("a number of tasks")?);
        for word in self.words.by_ref() {
            let bad = || CaseError::line(self.line, "idle=, rt= or delayed= and a number");
            let (name, n) = word.split_once('=').ok_or_else(bad)?;
            let n = n.parse().map_err(|_| bad())?;
            match name {
                "idle" => load.idle = n,
                "rt" => load.rt = n,
                "delayed" => load.delayed = n,
                _ => return Err(bad()),
            }
        }
        Ok(load)
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_print_as_they_were_read() {
        for line in [
            "wake t1 from cpu0",
            "wake t12 from cpu255 sync irq remote",
            "fork t3 from cpu1",
            "exec cpu2",
            "sleep t1",
            "idle cpu3",
            "load cpu3 2",
            "load cpu3 2 idle=1 rt=1 delayed=1",
            "move t1 to cpu2",
            "affine t1 to 0-3,8",
            "affine t1 to none",
            "switch cpu0",
            "tick 4",
            "balance llc0 3",
            "preempt cpu3",
            "resume cpu3",
            "offline cpu3",
            "online cpu255",
        ] {
            assert_eq!(line.parse::<Event>().expect(line).to_string(), line);
        }
    }

    #[test]
    fn bad_lines_say_what_was_expected() {
        for (line, expected) in [
            ("", "what happens"),
            ("dance", "wake, fork"),
            ("wake 1 from cpu0", "t"),
            ("wake t1 at cpu0", "from"),
            ("wake t1 from cpu0 hard", "sync, irq or remote"),
            ("sleep t1 t2", "nothing more"),
            ("tick soon", "a number of jiffies"),
            ("load cpu0 1 heavy=2", "idle=, rt="),
        ] {
            let error = line.parse::<Event>().expect_err(line).to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
