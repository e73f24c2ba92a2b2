// SPDX-License-Identifier: GPL-2.0-or-later
//! Run queues as the other side was last told of them: of each column the place in its history.

use sisdiff_tree::run::protocol;

use super::words::{NONE, task_number};
use crate::column::{Column, Stamp};
use crate::cpumask::Cpumask;
use crate::fair::Hidden;
use crate::machine::{State, TaskId};
use crate::units::Cpu;

/// What was told of the run queues, and of the hidden state that goes with them.
#[derive(Debug, Default)]
pub(super) struct Columns {
    told: [Stamp; 15],
    own: Stamp,
    curr_idle: Cpumask,
    ttwu_pending: Cpumask,
    vcpu_preempted: Cpumask,
}

/// A list with its length before it, in a longer message.
struct List<'a> {
    out: &'a mut Vec<u64>,
    lists: u64,
}

impl List<'_> {
    /// `fill` adds a column's CPUs, each with its value.
    #[inline]
    fn column(&mut self, number: u64, fill: impl FnOnce(&mut Vec<u64>)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[number, 0]);
        fill(self.out);
        let words = self.out.len() - start - 2;
        if words == 0 {
            self.out.truncate(start);
        } else {
            self.out[start + 1] = words as u64 / 2;
            self.lists += 1;
        }
    }
}

impl Columns {
    /// Adds what is not as it was told, column by column, after their number. It is told now.
    #[inline]
    pub(super) fn tell(&mut self, state: &State, hidden: &Hidden, out: &mut Vec<u64>) {
        let start = out.len();
        out.push(0);
        let mut list = List { out, lists: 0 };
        let rq = &state.rq;
        let mut at = 0;
        macro_rules! columns {
            ($($name:literal = $column:expr, $word:expr;)*) => {$(
                let (told, now) = (&mut self.told[at], &$column);
                if *told != now.stamp() {
                    const NUMBER: u64 = protocol::column($name);
                    list.column(NUMBER, |out| each(now, *told, out, $word));
                    *told = now.stamp();
                }
                at += 1;
            )*};
        }
        columns! {
            "nr_running" = rq.nr_running, |&nr: &u32| u64::from(nr);
            "h_nr_running" = rq.h_nr_running, |&nr: &u32| u64::from(nr);
            "h_nr_runnable" = rq.h_nr_runnable, |&nr: &u32| u64::from(nr);
            "idle_h_nr_running" = rq.idle_h_nr_running, |&nr: &u32| u64::from(nr);
            "avg_idle" = rq.avg_idle_ns, |&ns: &u64| ns;
            "load_avg" = rq.load_avg, |&load: &u64| load;
            "runnable_load_avg" = rq.runnable_load_avg, |&load: &u64| load;
            "runnable_avg" = rq.runnable_avg, |&load: &u64| load;
            "util_avg" = rq.util_avg, |&util: &u64| util;
            "util_est" = rq.util_est_enqueued, |&util: &u64| util;
            "cpu_capacity" = rq.cpu_capacity, |&capacity: &u64| capacity;
            "cpu_capacity_orig" = rq.cpu_capacity_orig, |&capacity: &u64| capacity;
            "idle_stamp" = rq.idle_stamp_ns, |&ns: &u64| ns;
            "exit_latency" = rq.exit_latency_us, |us: &Option<u32>| us.map_or(NONE, u64::from);
        }
        let n = rq.curr.len();
        let longs = n.div_ceil(64);
        let told = &mut self.told[at];
        if *told != rq.curr.stamp() || differ(&self.curr_idle, &rq.curr_idle, longs) {
            const NUMBER: u64 = protocol::column("curr");
            list.column(NUMBER, |out| {
                rq.curr.changed_since(*told, |at, _| out.extend_from_slice(&[at as u64, curr(state, at)]));
                changed(&self.curr_idle, &rq.curr_idle, longs, |at| {
                    if at < n {
                        out.extend_from_slice(&[at as u64, curr(state, at)]);
                    }
                });
            });
            *told = rq.curr.stamp();
            self.curr_idle = rq.curr_idle;
        }
        let flags = [(&self.ttwu_pending, &rq.ttwu_pending), (&self.vcpu_preempted, &rq.vcpu_preempted)];
        if flags.iter().any(|(told, now)| differ(told, now, longs)) {
            const NUMBER: u64 = protocol::column("flags");
            list.column(NUMBER, |out| {
                for (told, now) in flags {
                    changed(told, now, longs, |at| {
                        let cpu = Cpu(at as u16);
                        let bits = u64::from(rq.ttwu_pending.test(cpu)) | u64::from(rq.vcpu_preempted.test(cpu)) << 1;
                        if at < n {
                            out.extend_from_slice(&[at as u64, bits]);
                        }
                    });
                }
            });
            (self.ttwu_pending, self.vcpu_preempted) = (rq.ttwu_pending, rq.vcpu_preempted);
        }
        if self.own != hidden.cpus.stamp() {
            const COST: u64 = protocol::column("avg_scan_cost");
            const STAMP: u64 = protocol::column("wake_stamp");
            const IDLE: u64 = protocol::column("wake_avg_idle");
            list.column(COST, |out| each(&hidden.cpus, self.own, out, |cpu| cpu.avg_scan_cost_ns));
            list.column(STAMP, |out| each(&hidden.cpus, self.own, out, |cpu| cpu.wake_stamp_jiffies));
            list.column(IDLE, |out| each(&hidden.cpus, self.own, out, |cpu| cpu.wake_avg_idle_ns));
            self.own = hidden.cpus.stamp();
        }
        let lists = list.lists;
        out[start] = lists;
    }

    /// The hidden state of CPUs is what the other side has: it was just taken from there.
    #[inline]
    pub(super) fn took(&mut self, hidden: &Hidden) {
        self.own = hidden.cpus.stamp();
    }
}

/// The rows of `column` written after `told`.
#[inline]
fn each<T>(column: &Column<T>, told: Stamp, out: &mut Vec<u64>, word: impl Fn(&T) -> u64) {
    column.changed_since(told, |at, value| out.extend_from_slice(&[at as u64, word(value)]));
}

/// The number of who runs on a CPU.
fn curr(state: &State, at: usize) -> u64 {
    let cpu = Cpu(at as u16);
    let curr = state.rq.curr[at];
    if state.rq.curr_idle.test(cpu) {
        task_number(TaskId::swapper(cpu))
    } else if curr == TaskId::swapper(cpu) {
        0
    } else {
        task_number(curr)
    }
}

#[inline]
fn differ(told: &Cpumask, now: &Cpumask, longs: usize) -> bool {
    told.words()[..longs] != now.words()[..longs]
}

/// Hands over the CPUs whose bit is not as it was told.
#[inline]
fn changed(told: &Cpumask, now: &Cpumask, longs: usize, mut cpu: impl FnMut(usize)) {
    for (at, (told, now)) in told.words().iter().zip(now.words()).take(longs).enumerate() {
        let mut bits = told ^ now;
        while bits != 0 {
            cpu(at * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}
