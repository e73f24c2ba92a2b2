// SPDX-License-Identifier: GPL-2.0-or-later
//! From sched_waking to sched_wakeup: which wakings are decisions, and what was chosen.

use crate::inputs::{Inputs, Provenance};
use crate::machine::TaskId;
use crate::machine::apply::{Machine, Out};
use crate::machine::book::{Asked, Call, Open, Place};
use crate::machine::config::WakeListRule;
use crate::machine::notice::{Notice, RecordedWakeup, Why};
use crate::trace::{Context, Event, EventKind, Wakee};
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// A task that was switched out so shortly before its waking that finish_task() may not have run: `p->on_cpu` still set.
const SWITCHING_OUT_NS: u64 = 1_000_000;
/// A sched_waking so shortly after the sched_wakeup that lacked one is that one's, late by the skew of two clocks.
const SKEW_NS: u64 = 1_000_000;

/// How long it takes from a waking to what shows its decision, before any was seen.
pub(super) const DECIDES_NS: u64 = 5_000;
/// Longer than this was not the decision but an interruption.
const DECIDES_MAX_NS: u64 = 1_000_000;

impl Machine {
    pub(super) fn on_waking(&mut self, event: &Event, wakee: &Wakee, target_cpu: Cpu, out: Out<'_>) {
        if !self.has_cpu(target_cpu) {
            self.doubts.foreign += 1;
            return;
        }
        let id = self.meet(wakee, target_cpu);
        self.decide_about(id, out);
        self.forget_call(id, out);
        if event.pid == wakee.pid {
            // try_to_wake_up() of current: its state is set back, nothing moves.
            return self.not_selected(event, id, Why::Current, out);
        }
        let book = &mut self.books[id.index()];
        let late = book.unannounced_ns.take().is_some_and(|ts_ns| event.ts_ns.saturating_sub(ts_ns) < SKEW_NS);
        if late && book.place != Place::Off {
            return self.not_selected(event, id, Why::Unknown, out);
        }
        book.woken = true;
        book.ahead = false;
        self.assume_affinity(id);
        self.apply_stated(id);
        let why = self.why_not(event, id);
        let selects = matches!(why, Why::OnCpu | Why::Unexplained | Why::Unknown);
        let decides = selects && !self.config.probed();
        if decides {
            self.place(id, Place::Off, true);
            self.state.tasks[id].task_cpu = target_cpu;
            self.ask(event, id, target_cpu, WakeKind::Ttwu, None);
        } else {
            let told = !self.config.probed() || why == Why::NotFair;
            if told {
                self.not_selected(event, id, why, out);
            }
            self.cpus[event.cpu.index()].open = Open::Waked { p: id, ts_ns: event.ts_ns, why, told };
        }
        // With the entry probe to come nothing is decided yet.
        if why != Why::StillQueued && !selects {
            self.send(id, target_cpu, event.cpu);
        }
    }

    /// The task goes to `cpu`, or where it is bound to.
    fn send(&mut self, id: TaskId, cpu: Cpu, this_cpu: Cpu) {
        self.place(id, Place::Off, true);
        let task = &self.state.tasks[id];
        let bound = if task.nr_cpus_allowed == 1 { task.cpus_ptr.first() } else { None };
        let place = self.placed(id, bound.unwrap_or(cpu), this_cpu);
        self.place(id, place, false);
    }

    /// Why a waking would be no decision, as far as the books tell; [`Why::Unexplained`], [`Why::OnCpu`] and
    /// [`Why::Unknown`] are those that look like one.
    fn why_not(&self, event: &Event, id: TaskId) -> Why {
        let book = &self.books[id.index()];
        let task = &self.state.tasks[id];
        if matches!(book.place, Place::On(_)) && book.confirmed {
            Why::StillQueued
        } else if !book.fair {
            Why::NotFair
        } else if task.nr_cpus_allowed == 1 {
            Why::Bound
        } else {
            match book.left_ns {
                Some(left_ns) if event.ts_ns.saturating_sub(left_ns) < SWITCHING_OUT_NS => Why::OnCpu,
                Some(_) => Why::Unexplained,
                None => Why::Unknown,
            }
        }
    }

    fn not_selected(&mut self, event: &Event, id: TaskId, why: Why, out: Out<'_>) {
        let task = &self.state.tasks[id];
        let notice =
            Notice::NotSelected { ts_ns: event.ts_ns, pid: task.pid, comm: task.comm, this_cpu: event.cpu, why };
        out(&self.state, notice);
    }

    /// The question is known. The decision is told when the kernel is seen to have decided, or a little later: what other
    /// CPUs did meanwhile, it may have seen.
    pub(super) fn ask(&mut self, event: &Event, p: TaskId, prev_cpu: Cpu, kind: WakeKind, sync: Option<bool>) {
        let cpu = event.cpu;
        let event = Event { kind: EventKind::Ignored, ..event.clone() };
        if sync.is_none() {
            self.due.push_back((event.ts_ns + self.decides_ns, cpu));
        }
        self.books[p.index()].asked_on = Some(cpu);
        self.cpus[cpu.index()].asked_ns = Some(event.ts_ns);
        self.cpus[cpu.index()].open = Open::Asked { p };
        self.cpus[cpu.index()].asked = Some(Asked { event, p, prev_cpu, kind, sync });
    }

    /// Tells the decision that is open in the context of `cpu`, if there is one.
    pub(super) fn decide(&mut self, cpu: Cpu, out: Out<'_>) {
        let Some(asked) = self.cpus[cpu.index()].asked.take() else { return };
        self.books[asked.p.index()].asked_on = None;
        let mut samples = std::mem::take(&mut self.cpus[cpu.index()].samples);
        // Probed stamps are of the run queues' clock, the books' of the trace's.
        let has_stamps = samples.iter().any(|sample| sample.rq.idle_stamp_ns.is_some());
        let stamps = has_stamps.then(|| self.state.rq.idle_stamp_ns.clone());
        for sample in &samples {
            self.take_rq_facts(sample);
        }
        self.call(&asked.event, asked.p, asked.prev_cpu, asked.kind, asked.sync, out);
        if let Some(stamps) = stamps {
            self.state.rq.idle_stamp_ns = stamps;
        }
        for sample in &samples {
            self.publish(sample.rq.target);
        }
        samples.clear();
        self.cpus[cpu.index()].samples = samples;
        if asked.sync.is_none() && asked.kind == WakeKind::Ttwu {
            self.send(asked.p, asked.prev_cpu, cpu);
        }
    }

    /// An event in the waker's own context shows that it has decided, and how long that took.
    fn decided(&mut self, id: TaskId, event: &Event, out: Out<'_>) {
        let book = &mut self.cpus[event.cpu.index()];
        let about = match book.open {
            Open::Asked { p } | Open::Called { p, .. } => p == id,
            _ => false,
        };
        if about && let Some(since_ns) = book.asked_ns.take() {
            let took_ns = event.ts_ns.saturating_sub(since_ns).min(DECIDES_MAX_NS);
            self.decides_ns = (self.decides_ns * 15 + took_ns) / 16;
        }
        self.decide_about(id, out);
    }

    /// The same for the decision that is open about a task, wherever.
    pub(super) fn decide_about(&mut self, id: TaskId, out: Out<'_>) {
        if let Some(cpu) = self.books[id.index()].asked_on {
            self.decide(cpu, out);
        }
    }

    /// Decisions that must have been made by `ts_ns`.
    #[inline]
    pub(super) fn decide_due(&mut self, ts_ns: u64, out: Out<'_>) {
        while let Some(&(due_ns, cpu)) = self.due.front()
            && due_ns < ts_ns
        {
            self.due.pop_front();
            let asked = self.cpus[cpu.index()].asked.as_ref();
            if asked.is_some_and(|asked| asked.event.ts_ns < due_ns) {
                self.decide(cpu, out);
            }
        }
    }

    /// Tells a call of select_task_rq_fair(), in the state of this moment.
    pub(super) fn call(
        &mut self,
        event: &Event,
        p: TaskId,
        prev_cpu: Cpu,
        kind: WakeKind,
        sync: Option<bool>,
        out: Out<'_>,
    ) {
        let current = self.task_of(event.pid, None, event.cpu);
        self.apply_stated(p);
        self.apply_stated(current);
        let mut known = Provenance::TRACED;
        if sync.is_none() && kind == WakeKind::Ttwu {
            known.set_assumed(Inputs::SYNC);
        }
        if event.context.contains(Context::UNTOLD) {
            known.set_assumed(Inputs::CONTEXT);
        }
        let wakeup = Wakeup {
            p,
            current,
            this_cpu: event.cpu,
            prev_cpu,
            kind,
            sync: sync.unwrap_or(kind == WakeKind::Ttwu && self.config.assumed_sync),
            in_task: event.context.in_task(event.pid),
            known,
        };
        self.calls += 1;
        self.state.jiffies = self.config.jiffies(event.ts_ns).wrapping_add(self.jiffies_lead);
        self.show_loads(&wakeup);
        let (wakee, waker) = (&self.state.tasks[p], &self.state.tasks[current]);
        let recorded = RecordedWakeup {
            number: self.calls,
            ts_ns: event.ts_ns,
            pid: wakee.pid,
            comm: wakee.comm,
            waker_pid: waker.pid,
            waker_comm: waker.comm,
            wakeup,
        };
        let idle = self.idle_cpus();
        out(&self.state, Notice::Wakeup(recorded));
        let number = self.calls;
        self.books[p.index()].call =
            Some(Call { number, class_cpu: None, kind, this_cpu: event.cpu, prev_cpu, idle: (&idle).into() });
        self.cpus[event.cpu.index()].open = Open::Called { p, kind, prev_cpu, answered: false };
    }

    /// Where a task goes that was decided to run on `cpu`: the CPU's wake list, or nowhere before its sched_wakeup, which is
    /// told as it is put on the run queue.
    ///
    /// **Source**: kernel/sched/core.c, ttwu_queue_cond(), ttwu_queue().
    pub(super) fn placed(&self, id: TaskId, cpu: Cpu, this_cpu: Cpu) -> Place {
        let topology = &self.state.topology;
        if !topology.online().test(cpu) || !self.state.tasks[id].cpus_ptr.test(cpu) {
            return Place::On(cpu);
        }
        let is_idle = cpu != this_cpu && self.cpus[cpu.index()].now.nr == 0;
        let is_listed = self.config.wake_list_rule() == WakeListRule::Idle && is_idle;
        if is_listed || !topology.cpus_share_cache(this_cpu, cpu) { Place::Listed(cpu) } else { Place::Off }
    }

    pub(super) fn on_migrate(&mut self, event: &Event, task: &Wakee, orig_cpu: Cpu, dest_cpu: Cpu, out: Out<'_>) {
        if !self.has_cpu(orig_cpu) || !self.has_cpu(dest_cpu) {
            self.doubts.foreign += 1;
            return;
        }
        let id = self.meet(task, orig_cpu);
        self.decided(id, event, out);
        let open = self.cpus[event.cpu.index()].open;
        self.state.tasks[id].task_cpu = dest_cpu;
        if open.wakes(id) {
            self.place(id, Place::Off, true);
            self.loads.leave(id.index(), dest_cpu, self.now_ns, &self.state.rq.curr_idle);
            let place = self.placed(id, dest_cpu, event.cpu);
            self.place(id, place, false);
            return self.choose(id, dest_cpu, out);
        }
        self.close(event.cpu, out);
        let confirmed = self.books[id.index()].confirmed;
        match self.books[id.index()].place {
            Place::Off => {}
            Place::On(_) => self.place(id, Place::On(dest_cpu), confirmed),
            Place::Listed(_) => self.place(id, Place::Listed(dest_cpu), confirmed),
        }
    }

    pub(super) fn on_wakeup(&mut self, event: &Event, wakee: &Wakee, target_cpu: Cpu, new: bool, out: Out<'_>) {
        if !self.has_cpu(target_cpu) {
            self.doubts.foreign += 1;
            return;
        }
        let known_before = self.pids.get(wakee.pid).is_some();
        let id = self.meet(wakee, if known_before { target_cpu } else { event.cpu });
        self.decided(id, event, out);
        let at = event.cpu.index();
        match self.cpus[at].open {
            Open::Waked { p, ts_ns, why, told } if p == id => {
                if !told {
                    let waking = Event { ts_ns, ..event.clone() };
                    self.not_selected(&waking, id, why, out);
                }
                self.cpus[at].open = Open::None;
                self.cpus[at].samples.clear();
            }
            open if open.wakes(id) => self.cpus[at].open = Open::None,
            _ => self.close(event.cpu, out),
        }
        if new {
            return self.wakeup_new(event, id, target_cpu, out);
        }
        self.choose(id, target_cpu, out);
        let book = &mut self.books[id.index()];
        if std::mem::take(&mut book.ahead) {
            self.doubts.late_wakeups += 1;
            return;
        }
        if !std::mem::take(&mut book.woken) && book.place == Place::Off {
            book.unannounced_ns = Some(event.ts_ns);
        }
        if event.pid != wakee.pid {
            self.state.tasks[id].task_cpu = target_cpu;
            self.place(id, Place::On(target_cpu), true);
        }
        self.leave_idle(target_cpu, event.ts_ns, out);
    }

    /// The first wakeup of a task: where no probe told of its call, it is told now, before the task is queued.
    fn wakeup_new(&mut self, event: &Event, id: TaskId, target_cpu: Cpu, out: Out<'_>) {
        if self.books[id.index()].call.is_none() && !self.config.probed() && self.books[id.index()].fair {
            let prev_cpu = self.state.tasks[id].task_cpu;
            self.call(event, id, prev_cpu, WakeKind::Fork, None, out);
            self.cpus[event.cpu.index()].open = Open::None;
        }
        self.choose(id, target_cpu, out);
        self.state.tasks[id].task_cpu = target_cpu;
        self.place(id, Place::On(target_cpu), true);
    }

    /// The CPU that a task's open call ended with is known.
    fn choose(&mut self, id: TaskId, final_cpu: Cpu, out: Out<'_>) {
        if let Some(call) = self.books[id.index()].call.take() {
            self.weigh_affinity(id, &call, final_cpu);
            self.weigh_policy(id, &call, final_cpu);
            let Call { number, class_cpu, .. } = call;
            out(&self.state, Notice::Chosen { number, class_cpu, final_cpu: Some(final_cpu) });
        }
    }

    /// An event on `cpu` that is no part of the call going on there: the call is over.
    pub(super) fn close(&mut self, cpu: Cpu, out: Out<'_>) {
        self.decide(cpu, out);
        let book = &mut self.cpus[cpu.index()];
        book.samples.clear();
        match std::mem::replace(&mut book.open, Open::None) {
            Open::None | Open::Asked { .. } => {}
            Open::Waked { told: true, .. } => {}
            Open::Waked { p, ts_ns, why, told: false } => {
                // Its sched_wakeup did not come from here: it was not simply still queued.
                let why = if why == Why::StillQueued { Why::OnCpu } else { why };
                let task = &self.state.tasks[p];
                let notice = Notice::NotSelected { ts_ns, pid: task.pid, comm: task.comm, this_cpu: cpu, why };
                out(&self.state, notice);
                if self.books[p.index()].place == Place::Off && self.books[p.index()].woken {
                    self.send(p, self.state.tasks[p].task_cpu, cpu);
                }
            }
            Open::Called { p, kind: WakeKind::Ttwu, prev_cpu, answered } => {
                // set_task_cpu() tells of every change: without a word it stayed.
                if self.config.has_migrate && (answered || !self.config.probed()) {
                    self.choose(p, prev_cpu, out);
                }
            }
            Open::Called { .. } => {}
        }
    }
}

impl Open {
    /// Whether it is the wakeup of `id`.
    pub(super) fn wakes(self, id: TaskId) -> bool {
        match self {
            Self::None | Self::Asked { .. } => false,
            Self::Waked { p, .. } => p == id,
            Self::Called { p, kind, .. } => p == id && kind != WakeKind::Exec,
        }
    }
}
