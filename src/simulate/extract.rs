// SPDX-License-Identifier: GPL-2.0-or-later
//! From a recording to a workload: each task's bursts, whom it woke at which point of them, and what woke it.
//!
//! A task that sleeps waits at a channel of its own. Who woke it from task context signals that channel at the same point
//! of its own work; a wakeup from an interrupt comes at the recorded time, whatever else is different. A sleep that no
//! sched_waking ended (it came while the task was still leaving its CPU) lasts as long as it did.
//!
//! Where the recording shows a fork put its child, the simulation puts it, too: that is how it starts, not what follows.
//!
//! What the recorded kernel did with it is counted beside: time busy by CPU, migrations, times from sched_waking to
//! sched_switch. Pure: events come in order.
//!
//! Left out: priorities of the real-time classes (such tasks become fair ones of nice -20), what interrupts themselves
//! cost, and locks that nobody slept for.

use std::collections::BTreeMap;

use crate::cpumask::Cpumask;
use crate::machine::bound_cpu;
use crate::simulate::exits::{IdleExits, Taken};
use crate::simulate::histogram::Histogram;
use crate::simulate::program::{Arrivals, Channel, Dist, How, Op, SpecId, Start, TaskSpec, Times, Workload};
use crate::trace::{Context, Event, EventKind, PrevState, SisIn, Wakee};
use crate::units::{Cpu, Pid};

/// What a kernel, recorded or simulated, made of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    /// How long it took, ns.
    pub wall_ns: u64,
    /// Time busy by CPU, ns.
    pub busy_ns: Vec<u64>,
    /// Tasks moved to another CPU, by wakeups and by balancing.
    pub migrations: u64,
    /// From the waking to running, ns.
    pub latency: Histogram,
}

impl Figures {
    /// Mean absolute difference of the CPUs' busy shares, in points of percent.
    pub fn busy_error(&self, other: &Self) -> f64 {
        let share = |figures: &Self, cpu: usize| {
            let busy = figures.busy_ns.get(cpu).copied().unwrap_or(0);
            100.0 * busy as f64 / figures.wall_ns.max(1) as f64
        };
        let n = self.busy_ns.len().max(other.busy_ns.len()).max(1);
        (0..n).map(|cpu| (share(self, cpu) - share(other, cpu)).abs()).sum::<f64>() / n as f64
    }

    /// The same with the CPUs of each ranked by their busy share: on a machine whose CPUs are alike, which of them a task
    /// began on is chance.
    pub fn busy_error_by_rank(&self, other: &Self) -> f64 {
        let ranked = |figures: &Self| {
            let mut busy_ns = figures.busy_ns.clone();
            busy_ns.sort_unstable_by(|a, b| b.cmp(a));
            Self { busy_ns, wall_ns: figures.wall_ns, ..Self::default() }
        };
        ranked(self).busy_error(&ranked(other))
    }

    /// Busy share of all CPUs, percent.
    pub fn busy(&self) -> f64 {
        let cpus = self.busy_ns.len().max(1) as f64;
        100.0 * self.busy_ns.iter().sum::<u64>() as f64 / cpus / self.wall_ns.max(1) as f64
    }
}

/// What is known of a task so far.
#[derive(Debug, Clone)]
struct Tape {
    spec: SpecId,
    ops: Vec<Op>,
    /// Since when it runs, ns of the trace's clock.
    runs_since: Option<u64>,
    /// Since when it sleeps, and where in `ops` that stands.
    sleeps: Option<(u64, usize)>,
    /// When it was woken, and on which CPU.
    woken: Option<(u64, Cpu)>,
    gone: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct CpuTape {
    /// Last switch, and whether a task runs since.
    since: Option<u64>,
    busy: bool,
    /// The signal that a probe may tell more of: whose tape, where, for whom.
    signal: Option<(usize, usize, Pid)>,
}

/// Takes events, gives a workload.
#[derive(Debug, Clone)]
pub struct Extractor {
    start_ns: u64,
    last_ns: u64,
    workload: Workload,
    tapes: Vec<Tape>,
    pids: BTreeMap<Pid, usize>,
    cpus: Vec<CpuTape>,
    arrivals: BTreeMap<(usize, Cpu), Vec<u64>>,
    figures: Figures,
    exits: Taken,
    /// Wakings from softirqs, by when and where: timers of the wheel, which expire in ticks.
    softirq_ns: Vec<(u64, Cpu)>,
    lost: u64,
}

/// What a recording comes to.
#[derive(Debug, Clone)]
pub struct Extracted {
    /// What its tasks do.
    pub workload: Workload,
    /// What its kernel made of it.
    pub recorded: Figures,
    /// How long it is, ns.
    pub wall_ns: u64,
    /// Marks of lost events.
    pub lost: u64,
    /// How long idle CPUs took from a waking to running.
    pub idle_exits: IdleExits,
    softirq_ns: Vec<(u64, Cpu)>,
}

/// Wakings from softirqs below which nothing is said about ticks.
const SOFTIRQS_MIN: usize = 20;

/// From a tick to the timers that it lets expire, ns: our guess.
const TICK_NS: u64 = 20_000;

impl Extracted {
    /// When the first tick came, ns after the beginning: timers expire in ticks, so that where the number of wakings from
    /// softirqs within a jiffy rises most steeply there is the tick. `None` where there are too few.
    pub fn first_tick_ns(&self, hz: u32) -> Option<u64> {
        const PARTS: usize = 80;
        if self.softirq_ns.len() < SOFTIRQS_MIN {
            return None;
        }
        let jiffy_ns = 1_000_000_000 / u64::from(hz.max(1));
        let mut counts = [0i64; PARTS];
        for (ns, _) in &self.softirq_ns {
            counts[(ns % jiffy_ns * PARTS as u64 / jiffy_ns) as usize] += 1;
        }
        let around = |at: usize, from: usize| -> i64 { (0..4).map(|off| counts[(at + from + off) % PARTS]).sum() };
        let rise = |at: usize| around(at, 0) - around(at, PARTS - 4);
        let at = (0..PARTS).max_by_key(|&at| (rise(at), std::cmp::Reverse(at)))?;
        Some(jiffy_ns * at as u64 / PARTS as u64)
    }

    /// Ticks that came late, per CPU, ns after the beginning: a timer's waking in the first half of a jiffy comes right
    /// after its CPU's tick, which on a virtual CPU can be late by many microseconds.
    pub fn late_ticks_ns(&self, hz: u32, cpus: usize) -> Vec<Vec<u64>> {
        let jiffy_ns = 1_000_000_000 / u64::from(hz.max(1));
        let mut late = vec![Vec::new(); cpus];
        let Some(first) = self.first_tick_ns(hz) else { return late };
        let mut seen = vec![u64::MAX; cpus];
        for &(ns, cpu) in self.softirq_ns.iter().filter(|(ns, cpu)| *ns >= first && cpu.index() < cpus) {
            let (nth, into) = ((ns - first) / jiffy_ns, (ns - first) % jiffy_ns);
            if into < jiffy_ns / 2 && into > TICK_NS && seen[cpu.index()] != nth {
                seen[cpu.index()] = nth;
                late[cpu.index()].push(ns - TICK_NS);
            }
        }
        late
    }
}

impl Extractor {
    /// Nothing taken yet; `start_ns` is the time of the first event.
    pub fn new(name: &str, cpus: usize, start_ns: u64) -> Self {
        Self {
            start_ns,
            last_ns: start_ns,
            workload: Workload::new(name, "sleeps"),
            tapes: Vec::new(),
            pids: BTreeMap::new(),
            cpus: vec![CpuTape::default(); cpus],
            arrivals: BTreeMap::new(),
            figures: Figures { busy_ns: vec![0; cpus], ..Figures::default() },
            exits: Taken::default(),
            softirq_ns: Vec::new(),
            lost: 0,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        if event.cpu.index() >= self.cpus.len() {
            return;
        }
        self.last_ns = self.last_ns.max(event.ts_ns);
        match &event.kind {
            EventKind::Switch { prev, prev_state, next } => self.switch(event, prev, *prev_state, next),
            EventKind::Waking { wakee, target_cpu } => self.waking(event, wakee, *target_cpu),
            EventKind::Migrate { .. } => self.figures.migrations += 1,
            EventKind::Fork { parent, child, child_comm } => {
                let wakee = Wakee { pid: *child, comm: *child_comm, prio: 120 };
                self.fork(event, *parent, &wakee);
            }
            EventKind::Wakeup { wakee, target_cpu, new: true } => self.begins(wakee, *target_cpu),
            EventKind::Exec { pid, old_pid } => self.exec(event, *pid, *old_pid),
            EventKind::SisIn(told) => self.told(event, told),
            EventKind::Lost { .. } => self.lost += 1,
            _ => {}
        }
    }

    /// The workload.
    pub fn finish(mut self) -> Extracted {
        for at in 0..self.tapes.len() {
            self.flush(at, self.last_ns);
        }
        for at in 0..self.cpus.len() {
            self.book(Cpu(at as u16), self.last_ns);
        }
        for (at, tape) in self.tapes.into_iter().enumerate() {
            debug_assert_eq!(self.workload.tasks[tape.spec].program, at);
            self.workload.programs[at] = tape.ops;
        }
        for ((channel, cpu), times) in self.arrivals {
            self.workload.arrivals.push(Arrivals { channel, cpu, times: Times::At(times) });
        }
        let wall_ns = self.last_ns - self.start_ns;
        self.figures.wall_ns = wall_ns;
        Extracted {
            workload: self.workload,
            recorded: self.figures,
            wall_ns,
            lost: self.lost,
            idle_exits: self.exits.finish(),
            softirq_ns: self.softirq_ns,
        }
    }

    /// The tape of a task; one not seen before was last on `cpu`.
    fn tape(&mut self, wakee: &Wakee, cpu: Cpu) -> usize {
        if let Some(&at) = self.pids.get(&wakee.pid) {
            let task = &mut self.workload.tasks[at];
            task.comm = wakee.comm;
            task.nice = (wakee.prio - 120).clamp(-20, 19);
            return at;
        }
        self.add(wakee, Start::Placed(cpu))
    }

    fn add(&mut self, wakee: &Wakee, start: Start) -> usize {
        let at = self.tapes.len();
        let spec = TaskSpec {
            comm: wakee.comm,
            pid: Some(wakee.pid),
            nice: (wakee.prio - 120).clamp(-20, 19),
            allowed: bound_cpu(&wakee.comm).filter(|cpu| cpu.index() < self.cpus.len()).map(Cpumask::of),
            footprint_kib: 0,
            start,
            ..TaskSpec::new("", at)
        };
        self.workload.programs.push(Vec::new());
        self.workload.tasks.push(spec);
        self.workload.channels.push(Channel::default());
        self.tapes.push(Tape { spec: at, ops: Vec::new(), runs_since: None, sleeps: None, woken: None, gone: false });
        self.pids.insert(wakee.pid, at);
        at
    }

    /// What the task has run up to now.
    fn flush(&mut self, at: usize, ts_ns: u64) {
        let tape = &mut self.tapes[at];
        if let Some(since) = tape.runs_since.replace(ts_ns).filter(|&since| ts_ns > since) {
            tape.ops.push(Op::Run(Dist::Fixed(ts_ns - since)));
        }
    }

    fn book(&mut self, cpu: Cpu, ts_ns: u64) {
        let book = &mut self.cpus[cpu.index()];
        if let Some(since) = book.since.replace(ts_ns)
            && book.busy
        {
            self.figures.busy_ns[cpu.index()] += ts_ns.saturating_sub(since);
        }
    }

    fn switch(&mut self, event: &Event, prev: &Wakee, state: PrevState, next: &Wakee) {
        let (cpu, ts_ns) = (event.cpu, event.ts_ns);
        self.cpus[cpu.index()].signal = None;
        if self.cpus[cpu.index()].since.is_none() {
            // Whoever leaves first was there from the start.
            self.cpus[cpu.index()].since = Some(self.start_ns);
            self.cpus[cpu.index()].busy = prev.pid != Pid::SWAPPER;
        }
        let idle_since = self.cpus[cpu.index()].since.filter(|_| prev.pid == Pid::SWAPPER);
        self.book(cpu, ts_ns);
        self.cpus[cpu.index()].busy = next.pid != Pid::SWAPPER;
        if prev.pid != Pid::SWAPPER {
            self.leave(prev, cpu, ts_ns, state);
        }
        if next.pid != Pid::SWAPPER {
            self.enter(next, cpu, ts_ns, idle_since);
        }
    }

    fn leave(&mut self, prev: &Wakee, cpu: Cpu, ts_ns: u64, state: PrevState) {
        let first = !self.pids.contains_key(&prev.pid);
        let at = self.tape(prev, cpu);
        if first {
            self.tapes[at].runs_since = Some(self.start_ns);
        }
        self.flush(at, ts_ns);
        let tape = &mut self.tapes[at];
        tape.runs_since = None;
        match state {
            PrevState::Runnable => {}
            PrevState::Blocked => {
                tape.sleeps = Some((ts_ns, tape.ops.len()));
                tape.ops.push(Op::Wait(at));
            }
            PrevState::Dead => {
                tape.ops.push(Op::Exit);
                tape.gone = true;
                self.pids.remove(&prev.pid);
            }
        }
    }

    fn enter(&mut self, next: &Wakee, cpu: Cpu, ts_ns: u64, idle_since: Option<u64>) {
        let at = self.tape(next, cpu);
        let tape = &mut self.tapes[at];
        if let Some((woken, waker)) = tape.woken.take() {
            let ns = ts_ns.saturating_sub(woken);
            self.figures.latency.add(ns);
            if let Some(idle_ns) = idle_since.and_then(|since| woken.checked_sub(since)) {
                self.exits.add(waker == cpu, idle_ns, ns);
            }
        } else if let Some((since, wait)) = tape.sleeps {
            tape.ops[wait] = Op::Sleep(Dist::Fixed(ts_ns.saturating_sub(since)));
        } else if idle_since.is_some()
            && tape.ops.is_empty()
            && matches!(self.workload.tasks[at].start, Start::Placed(_))
        {
            tape.ops.push(Op::Until(ts_ns - self.start_ns));
        }
        tape.sleeps = None;
        tape.runs_since = Some(ts_ns);
    }

    fn waking(&mut self, event: &Event, wakee: &Wakee, target_cpu: Cpu) {
        let ts_ns = event.ts_ns;
        self.cpus[event.cpu.index()].signal = None;
        if event.context.contains(Context::SOFTIRQ) && !event.context.contains(Context::HARDIRQ) {
            self.softirq_ns.push((ts_ns - self.start_ns, event.cpu));
        }
        let first = !self.pids.contains_key(&wakee.pid);
        let at = self.tape(wakee, target_cpu);
        if first {
            self.tapes[at].ops.push(Op::Wait(at));
            self.tapes[at].sleeps = Some((self.start_ns, 0));
        }
        let tape = &mut self.tapes[at];
        if tape.sleeps.is_none() || tape.woken.is_some() {
            return;
        }
        tape.woken = Some((ts_ns, event.cpu));
        let waker = self.pids.get(&event.pid).copied().filter(|&waker| self.tapes[waker].runs_since.is_some());
        match waker.filter(|_| event.context.in_task(event.pid)) {
            Some(waker) => {
                self.flush(waker, ts_ns);
                let ops = &mut self.tapes[waker].ops;
                ops.push(Op::Signal(at, How { sync: false, softirq: false, data: true }));
                self.cpus[event.cpu.index()].signal = Some((waker, ops.len() - 1, wakee.pid));
            }
            None => self.arrivals.entry((at, event.cpu)).or_default().push(ts_ns - self.start_ns),
        }
    }

    fn fork(&mut self, event: &Event, parent: Pid, child: &Wakee) {
        self.pids.remove(&child.pid);
        let parent = self.pids.get(&parent).copied().filter(|&at| self.tapes[at].runs_since.is_some());
        match parent {
            Some(parent) => {
                self.flush(parent, event.ts_ns);
                let at = self.add(child, Start::Forked);
                self.workload.tasks[at].allowed =
                    self.workload.tasks[at].allowed.or(self.workload.tasks[parent].allowed);
                self.workload.tasks[at].nice = self.workload.tasks[parent].nice;
                self.tapes[parent].ops.push(Op::Fork(at));
            }
            None => {
                let at = self.add(child, Start::Placed(event.cpu));
                self.tapes[at].ops.push(Op::Until(event.ts_ns - self.start_ns));
            }
        }
    }

    /// Where a new task begins is taken from the recording: a start, not a consequence.
    fn begins(&mut self, wakee: &Wakee, cpu: Cpu) {
        if let Some(&at) = self.pids.get(&wakee.pid)
            && self.workload.tasks[at].start == Start::Forked
            && cpu.index() < self.cpus.len()
        {
            self.workload.tasks[at].begins_on = Some(cpu);
        }
    }

    fn exec(&mut self, event: &Event, pid: Pid, old_pid: Pid) {
        if let Some(at) = self.pids.get(&old_pid).copied() {
            self.flush(at, event.ts_ns);
            self.tapes[at].ops.push(Op::Exec);
            if pid != old_pid {
                self.pids.remove(&old_pid);
                self.pids.insert(pid, at);
            }
        }
    }

    /// A probe tells affinity, policy, and whether the wakeup was synchronous.
    fn told(&mut self, event: &Event, told: &SisIn) {
        if let Some((waker, op, wakee)) = self.cpus[event.cpu.index()].signal.take()
            && wakee == told.pid
            && let Some(Op::Signal(_, how)) = self.tapes[waker].ops.get_mut(op)
        {
            how.sync = told.sync;
        }
        let Some(&at) = self.pids.get(&told.pid) else { return };
        let task = &mut self.workload.tasks[at];
        task.policy_idle |= told.policy == Some(5);
        if let (Some(words), Some(n)) = (told.cpus_ptr, told.nr_cpus_allowed)
            && let Some(mask) = Cpumask::from_words(&words)
        {
            // Bits beyond the machine's CPUs are whatever stood there; a mask that is not all there is not believed.
            let mask = mask & Cpumask::first_n(self.cpus.len());
            if mask.weight() == n {
                task.allowed = Some(mask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Comm;

    fn wakee(pid: i32) -> Wakee {
        Wakee { pid: Pid(pid), comm: Comm::new(b"t"), prio: 120 }
    }

    fn event(ts_ns: u64, cpu: u16, pid: i32, kind: EventKind) -> Event {
        Event { ts_ns, cpu: Cpu(cpu), pid: Pid(pid), context: Context::empty(), kind }
    }

    fn switch(ts_ns: u64, cpu: u16, prev: i32, prev_state: PrevState, next: i32) -> Event {
        event(ts_ns, cpu, prev, EventKind::Switch { prev: wakee(prev), prev_state, next: wakee(next) })
    }

    #[test]
    fn bursts_signals_and_interrupts_become_a_program() {
        let mut extractor = Extractor::new("two", 2, 1_000);
        let irq = |ts_ns, pid| Event {
            context: Context::HARDIRQ,
            ..event(ts_ns, 1, 0, EventKind::Waking { wakee: wakee(pid), target_cpu: Cpu(1) })
        };
        for event in [
            irq(2_000, 8),
            switch(2_500, 1, 0, PrevState::Runnable, 8),
            event(3_000, 1, 8, EventKind::Waking { wakee: wakee(7), target_cpu: Cpu(0) }),
            switch(3_200, 0, 0, PrevState::Runnable, 7),
            switch(4_000, 1, 8, PrevState::Blocked, 0),
            switch(5_000, 0, 7, PrevState::Dead, 0),
        ] {
            extractor.take(&event);
        }
        let Extracted { workload, recorded, wall_ns, .. } = extractor.finish();
        assert_eq!(workload.check(), Ok(()));
        let run = |ns| Op::Run(Dist::Fixed(ns));
        let signal = Op::Signal(1, How { sync: false, softirq: false, data: true });
        assert_eq!(workload.programs[0], [Op::Wait(0), run(500), signal, run(1_000), Op::Wait(0)]);
        assert_eq!(workload.programs[1], [Op::Wait(1), run(1_800), Op::Exit]);
        assert_eq!(workload.arrivals[0].times, Times::At(vec![1_000]));
        assert_eq!((wall_ns, recorded.busy_ns.clone()), (4_000, vec![1_800, 1_500]));
        assert_eq!((recorded.latency.count(), recorded.latency.max()), (2, 500));
        let other = Figures { busy_ns: vec![1_800, 1_100], ..recorded.clone() };
        assert!((recorded.busy_error(&other) - 5.0).abs() < 1e-9);
        let swapped = Figures { busy_ns: vec![1_500, 1_800], ..recorded.clone() };
        assert!(recorded.busy_error(&swapped) > 7.0 && recorded.busy_error_by_rank(&swapped) == 0.0);
    }

    #[test]
    fn ticks_are_where_timers_expire() {
        let mut extractor = Extractor::new("ticks", 2, 0);
        let timer = |ts_ns: u64, cpu: u16| Event {
            context: Context::SOFTIRQ,
            ..event(ts_ns, cpu, 0, EventKind::Waking { wakee: wakee(8), target_cpu: Cpu(0) })
        };
        assert_eq!(extractor.clone().finish().first_tick_ns(250), None);
        for nth in 0..40u64 {
            extractor.take(&timer(1_500_000 + nth * 4_000_000 + nth % 4 * 60_000, (nth % 2) as u16));
        }
        let extracted = extractor.finish();
        assert_eq!(extracted.first_tick_ns(250), Some(1_500_000));
        let late = extracted.late_ticks_ns(250, 2);
        assert_eq!(late[0][..2], [9_620_000 - TICK_NS, 25_620_000 - TICK_NS]);
        assert!(late[1].iter().all(|&ns| late[1].iter().filter(|&&other| other == ns).count() == 1));
    }

    #[test]
    fn a_probe_tells_affinity_whatever_stands_beyond_the_last_cpu() {
        let mut extractor = Extractor::new("masks", 8, 0);
        extractor.take(&switch(10, 0, 7, PrevState::Blocked, 0));
        let told = |words: [u64; 2], n| {
            EventKind::SisIn(Box::new(SisIn {
                pid: Pid(7),
                prev_cpu: Cpu(0),
                kind: crate::wakeup::WakeKind::Ttwu,
                sync: false,
                recent_used_cpu: None,
                on_cpu: None,
                wakee_flips: None,
                wakee_flip_decay_jiffies: None,
                last_wakee: None,
                util_avg: None,
                util_est: None,
                load_avg: None,
                last_update_time_ns: None,
                weight: None,
                nr_cpus_allowed: Some(n),
                cpus_ptr: Some(words),
                policy: None,
                flags: None,
                depth: None,
                numa_preferred_nid: None,
                delayed: None,
                jiffies: None,
            }))
        };
        extractor.take(&event(20, 0, 7, told([0xa4, u64::MAX], 3)));
        extractor.take(&event(30, 0, 7, told([0xff, 0], 64)));
        let allowed = extractor.finish().workload.tasks[0].allowed;
        assert_eq!(allowed.map(|mask| mask.to_string()), Some("2,5,7".to_owned()));
    }
}
