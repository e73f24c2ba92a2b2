// SPDX-License-Identifier: GPL-2.0-or-later
//! The kprobe events: what select_task_rq_fair() was asked and answered, and what it saw.

use crate::column::Column;
use crate::cpumask::Cpumask;
use crate::inputs::Inputs;
use crate::machine::apply::{Machine, Out};
use crate::machine::book::{Counters, Open, Place, Sample};
use crate::machine::notice::Notice;
use crate::machine::{HiddenFact, Step};
use crate::machine::{TaskFlags, TaskId};
use crate::trace::{Event, SisIn, SisRq};
use crate::units::{Cpu, Pid};
use crate::wakeup::WakeKind;

/// **Source**: include/linux/sched.h.
const PF_EXITING: u64 = 0x4;
const PF_KTHREAD: u64 = 0x0020_0000;
const SCHED_IDLE: u32 = 5;
/// **Source**: kernel/sched/pelt.h, UTIL_AVG_UNCHANGED since 5.13: the top bit of util_est.
const UTIL_AVG_UNCHANGED: u64 = 0x8000_0000;

impl Machine {
    pub(super) fn on_sis_rq(&mut self, event: &Event, rq: &SisRq, out: Out<'_>) {
        if !self.has_cpu(rq.target) {
            self.doubts.foreign += 1;
            return;
        }
        self.audit_rq(rq);
        if matches!(self.cpus[event.cpu.index()].open, Open::Called { .. }) {
            self.close(event.cpu, out);
        }
        let seen = self.cpus[rq.target.index()].now;
        let cfs = &mut self.loads.cfs[rq.target.index()];
        cfs.observe(rq.load_avg, rq.util_avg, rq.runnable_avg);
        if let Some(util_est) = rq.util_est {
            cfs.util_est = util_est;
        }
        self.take_h_load(rq);
        self.take_curr_facts(rq);
        let limit = self.cpus.len();
        let samples = &mut self.cpus[event.cpu.index()].samples;
        if samples.len() >= limit {
            // More than one per CPU: those of a call whose sis_in is missing.
            samples.clear();
        }
        samples.push(Sample { rq: *rq, seen });
    }

    pub(super) fn on_sis_in(&mut self, event: &Event, sis: &SisIn, out: Out<'_>) {
        if !self.has_cpu(sis.prev_cpu) {
            self.doubts.foreign += 1;
            return;
        }
        let at = event.cpu.index();
        let id = self.task_of(sis.pid, None, sis.prev_cpu);
        let samples = std::mem::take(&mut self.cpus[at].samples);
        self.decide_about(id, out);
        match self.cpus[at].open {
            Open::Waked { p, .. } if p == id => self.cpus[at].open = Open::None,
            _ => self.close(event.cpu, out),
        }
        self.forget_call(id, out);
        if sis.kind == WakeKind::Ttwu {
            // Whatever sched_switch will still say: it is off its run queue.
            self.place(id, Place::Off, true);
            self.state.tasks[id].task_cpu = sis.prev_cpu;
            self.books[id.index()].woken = true;
        }
        if let Some(jiffies) = sis.jiffies {
            self.jiffies_lead = jiffies.wrapping_sub(self.config.jiffies(event.ts_ns));
        }
        self.take_task_facts(id, sis);
        self.tell_task_facts(id, sis, out);
        self.tell_rq_facts(event.cpu, &samples, out);
        self.cpus[at].samples = samples;
        self.ask(event, id, sis.prev_cpu, sis.kind, Some(sis.sync));
    }

    pub(super) fn on_sis_out(&mut self, event: &Event, ret: Option<Cpu>, out: Out<'_>) {
        self.decide(event.cpu, out);
        let Open::Called { p, kind, prev_cpu, .. } = self.cpus[event.cpu.index()].open else { return };
        self.cpus[event.cpu.index()].open = Open::Called { p, kind, prev_cpu, answered: true };
        let Some(call) = &mut self.books[p.index()].call else { return };
        call.class_cpu = ret;
        let number = call.number;
        if kind == WakeKind::Exec {
            self.books[p.index()].call = None;
            self.cpus[event.cpu.index()].open = Open::None;
            out(&self.state, Notice::Chosen { number, class_cpu: ret, final_cpu: None });
        } else if let Some(cpu) = ret.filter(|&cpu| self.has_cpu(cpu)) {
            self.place(p, Place::Off, true);
            let place = match kind {
                WakeKind::Ttwu => self.placed(p, cpu, event.cpu),
                _ => Place::On(cpu),
            };
            self.place(p, place, false);
        }
    }

    /// The refreshed load of a run queue, and when that was: in jiffies of the recorded kernel.
    fn take_h_load(&mut self, rq: &SisRq) {
        if let (Some(h_load), Some(jiffies)) = (rq.h_load, rq.last_h_load_jiffies) {
            self.loads.cfs[rq.target.index()].observe_h_load(h_load, jiffies);
        }
    }

    /// Facts of whoever runs on a CPU.
    fn take_curr_facts(&mut self, rq: &SisRq) {
        let Some(id) = rq.curr.filter(|&pid| pid != Pid::SWAPPER).and_then(|pid| self.pids.get(pid)) else { return };
        if let Some(policy) = rq.curr_policy {
            self.set_policy_idle(id, policy == SCHED_IDLE);
            self.state.tasks[id].known.set_traced(Inputs::POLICY);
        }
        self.take_flags(id, rq.curr_flags);
        if rq.curr_nr_cpus_allowed == Some(1) {
            let task = &mut self.state.tasks[id];
            task.cpus_ptr = Cpumask::of(rq.target).into();
            task.cpus_preferred = task.cpus_ptr.clone();
            task.nr_cpus_allowed = 1;
            task.known.set_traced(Inputs::AFFINITY);
        }
        if rq.curr_load_avg.is_some() {
            self.loads.entities[id.index()].observe(rq.curr_load_avg, None);
            self.state.tasks[id].known.set_traced(Inputs::TASK_LOAD);
        }
    }

    fn take_flags(&mut self, id: TaskId, flags: Option<u64>) {
        let Some(flags) = flags else { return };
        let task = &mut self.state.tasks[id];
        task.flags.set(TaskFlags::KTHREAD, flags & PF_KTHREAD != 0);
        task.flags.set(TaskFlags::EXITING, flags & PF_EXITING != 0);
        task.known.set_traced(Inputs::TASK_FLAGS);
    }

    /// Facts of the wakee that belong to the state.
    fn take_task_facts(&mut self, id: TaskId, sis: &SisIn) {
        if let Some(policy) = sis.policy {
            self.set_policy_idle(id, policy == SCHED_IDLE);
        }
        self.take_flags(id, sis.flags);
        let n = self.state.topology.nr_cpu_ids();
        let task = &mut self.state.tasks[id];
        if sis.policy.is_some() {
            task.known.set_traced(Inputs::POLICY);
        }
        if let Some([low, high]) = sis.cpus_ptr {
            let mut words = [u64::MAX; crate::cpumask::MAX_CPUS / 64];
            (words[0], words[1]) = (low, high);
            if let Some(mask) = Cpumask::from_words(&words) {
                let mask = mask & Cpumask::first_n(n);
                // Asked at every decision, and hardly ever another.
                if task.cpus_ptr != mask {
                    task.cpus_ptr = mask.into();
                }
                task.cpus_preferred = task.cpus_ptr.clone();
                task.nr_cpus_allowed = sis.nr_cpus_allowed.unwrap_or_else(|| task.cpus_ptr.weight());
                task.known.set_traced(Inputs::AFFINITY);
                if n > 128 && task.cpus_ptr.weight() != task.nr_cpus_allowed {
                    task.known.set_assumed(Inputs::AFFINITY);
                }
                task.affinity_unequal = false;
            }
        }
        if let Some(nid) = sis.numa_preferred_nid {
            task.numa_preferred_nid = nid;
            task.known.set_traced(Inputs::NUMA);
        }
        if sis.load_avg.is_some() {
            task.known.set_traced(Inputs::TASK_LOAD);
        }
        if sis.util_avg.is_some() {
            task.known.set_traced(Inputs::TASK_UTIL);
        }
        if let Some(ns) = sis.last_update_time_ns {
            task.last_update_time_ns = ns;
        }
        if let Some(weight) = sis.weight {
            self.loads.set_weight(id.index(), weight);
        }
        let entity = &mut self.loads.entities[id.index()];
        entity.observe(sis.load_avg, sis.util_avg);
        if let Some(util_est) = sis.util_est {
            entity.util_est = util_est & !UTIL_AVG_UNCHANGED;
        }
    }

    /// Facts of the wakee that are hidden state of the implementations.
    fn tell_task_facts(&mut self, id: TaskId, sis: &SisIn, out: Out<'_>) {
        let mut tell = |fact| out(&self.state, Notice::Step(Step::Fact(fact)));
        if let Some(cpu) = sis.recent_used_cpu.filter(|&cpu| self.has_cpu(cpu)) {
            tell(HiddenFact::RecentUsedCpu(id, cpu));
        }
        if let Some(flips) = sis.wakee_flips {
            tell(HiddenFact::WakeeFlips(id, flips, sis.wakee_flip_decay_jiffies));
        }
        if let Some(last_wakee) = sis.last_wakee {
            tell(HiddenFact::LastWakee(id, self.wakee_named(last_wakee)));
        }
    }

    /// The task that last_wakee points to; a pid that was not seen is nobody that will be compared with.
    fn wakee_named(&self, pid: Pid) -> Option<TaskId> {
        (pid != Pid::SWAPPER).then(|| self.pids.get(pid)).flatten()
    }

    /// Lays a probe over a run queue's columns; [`Machine::publish`] takes it off again.
    pub(super) fn take_rq_facts(&mut self, sample: &Sample) {
        let rq = &sample.rq;
        let at = rq.target.index();
        let now = self.cpus[at].now;
        let seen = sample.seen;
        let changed = now != seen;
        // A probe that agrees with the books as they were, or with them before the tasks on their way arrived, adds
        // nothing: the books have what happened since. Else it was ahead of the events, and counts.
        let pick = |probe: Option<u32>, seen: u32, sent: u32, now: u32, still: u32| match probe {
            Some(probe) if probe == seen => now,
            Some(probe) if probe + sent == seen => now.saturating_sub(still),
            Some(probe) => probe,
            None => now,
        };
        let curr = match rq.curr {
            Some(Pid::SWAPPER) => TaskId::swapper(rq.target),
            Some(pid) => self.pids.get(pid).unwrap_or(now.curr),
            None => now.curr,
        };
        let curr = if changed && curr == seen.curr { now.curr } else { curr };
        let listed = u32::from(seen.nr_listed > 0);
        let overlay = Counters {
            nr: pick(rq.nr_running, seen.nr, seen.nr_sent, now.nr, now.nr_sent),
            nr_fair: pick(rq.h_nr_running, seen.nr_fair, seen.nr_sent, now.nr_fair, now.nr_sent),
            nr_policy_idle: pick(rq.idle_h_nr_running, seen.nr_policy_idle, 0, now.nr_policy_idle, 0),
            nr_listed: pick(rq.ttwu_pending.map(u32::from), listed, 0, u32::from(now.nr_listed > 0), 0),
            nr_sent: now.nr_sent,
            curr,
        };
        self.write_columns(rq.target, overlay);
        let columns = &mut self.state.rq;
        let runnable = rq.h_nr_runnable.or_else(|| Some(rq.h_nr_running?.saturating_sub(rq.h_nr_delayed?)));
        columns.h_nr_runnable[at] = runnable.unwrap_or(overlay.nr_fair);
        let known = &mut columns.known[at];
        if rq.nr_running.is_some() && rq.curr.is_some() {
            known.set_traced(Inputs::IDLE | Inputs::NR_RUNNING);
        }
        if rq.idle_h_nr_running.is_some() {
            known.set_traced(Inputs::POLICY);
        }
        let mut take = |column: &mut Column<u64>, value: Option<u64>, inputs: Inputs| {
            if let Some(value) = value {
                column[at] = value;
                known.set_traced(inputs);
            }
        };
        take(&mut columns.load_avg, rq.load_avg, Inputs::RQ_LOAD);
        take(&mut columns.runnable_avg, rq.runnable_avg, Inputs::RQ_LOAD);
        take(&mut columns.util_avg, rq.util_avg, Inputs::RQ_UTIL);
        take(&mut columns.util_est_enqueued, rq.util_est, Inputs::RQ_UTIL);
        take(&mut columns.cpu_capacity, rq.cpu_capacity, Inputs::CAPACITY);
        take(&mut columns.avg_idle_ns, rq.avg_idle_ns, Inputs::AVG_IDLE);
        take(&mut columns.idle_stamp_ns, rq.idle_stamp_ns, Inputs::IDLE_STATE);
    }

    /// Hidden facts: the waker's own, its CPU's, and of each LLC the latest probe.
    fn tell_rq_facts(&mut self, this_cpu: Cpu, samples: &[Sample], out: Out<'_>) {
        let mut tell = |fact| out(&self.state, Notice::Step(Step::Fact(fact)));
        let mut told = vec![false; self.state.topology.nr_shared()];
        for rq in samples.iter().rev().map(|sample| &sample.rq) {
            if let Some(shared) = self.state.topology.llc_shared(rq.target)
                && !std::mem::replace(&mut told[shared], true)
            {
                if let Some(has) = rq.has_idle_cores {
                    tell(HiddenFact::HasIdleCores(shared, has));
                }
                if let Some(nr) = rq.nr_idle_scan {
                    tell(HiddenFact::NrIdleScan(shared, nr));
                }
            }
            if rq.target != this_cpu {
                continue;
            }
            let curr = match rq.curr {
                Some(Pid::SWAPPER) => Some(TaskId::swapper(this_cpu)),
                Some(pid) => self.pids.get(pid),
                None => None,
            };
            if let (Some(curr), Some(flips)) = (curr, rq.curr_wakee_flips) {
                tell(HiddenFact::WakeeFlips(curr, flips, rq.curr_wakee_flip_decay_jiffies));
            }
            if let (Some(curr), Some(last_wakee)) = (curr, rq.curr_last_wakee) {
                tell(HiddenFact::LastWakee(curr, self.wakee_named(last_wakee)));
            }
            if let Some(cost) = rq.avg_scan_cost_ns {
                tell(HiddenFact::AvgScanCost(this_cpu, cost));
            }
            if let Some(avg) = rq.wake_avg_idle_ns {
                tell(HiddenFact::WakeAvgIdle(this_cpu, avg));
            }
        }
    }
}
