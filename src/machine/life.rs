// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks come and go: fork, exec, exit; CPUs, too.

use std::sync::Arc;

use crate::machine::Step;
use crate::machine::apply::{Machine, Out};
use crate::machine::book::{Place, TaskBook};
use crate::machine::loads::Entity;
use crate::machine::notice::Notice;
use crate::machine::{TaskFlags, TaskId, TaskMask};
use crate::topology::Topology;
use crate::trace::Event;
use crate::units::{Comm, Cpu, Pid};

impl Machine {
    /// The child is made on the parent's CPU with the parent's affinity, policy and wakee history.
    pub(super) fn on_fork(&mut self, event: &Event, parent: Pid, child: Pid, child_comm: &Comm, out: Out<'_>) {
        if child == Pid::SWAPPER {
            return;
        }
        if let Some(old) = self.pids.get(child) {
            self.decide_about(old, out);
            // The pid's last task ended unseen.
            self.forget_call(old, out);
            self.drop_task(old);
        }
        let parent = self.task_of(parent, None, event.cpu);
        self.apply_stated(parent);
        let id = self.new_task(child, *child_comm, event.cpu);
        let from = self.state.tasks[parent].clone();
        let task = &mut self.state.tasks[id];
        if from.flags.contains(TaskFlags::KTHREAD) && from.nr_cpus_allowed == 1 {
            // A bound kernel thread makes no children that inherit its binding: kthreadd does.
        } else {
            task.cpus_ptr = from.cpus_ptr.clone();
            task.cpus_preferred = from.cpus_preferred.clone();
            task.affinity_unequal = from.affinity_unequal;
            task.nr_cpus_allowed = from.nr_cpus_allowed;
            task.flags = from.flags & TaskFlags::KTHREAD;
            task.policy_idle = from.policy_idle;
            task.known = from.known;
        }
        task.last_update_time_ns = 0;
        self.stated.inherit(parent, id);
        self.loads.entities[id.index()] = Entity::forked(self.loads.entities[parent.index()].weight);
        self.books[id.index()].fair = self.books[parent.index()].fair;
        self.books[id.index()].shared = self.books[parent.index()].shared;
        let family = self.books[parent.index()].family;
        if family != u32::MAX {
            self.families.leave(self.books[id.index()].family);
            self.books[id.index()].family = self.families.join(family);
        }
        let parent = Some(parent);
        out(&self.state, Notice::Step(Step::Fork { p: id, parent, cpu: event.cpu }));
    }

    /// The thread that calls exec takes over the pid of its leader.
    pub(super) fn on_exec(&mut self, pid: Pid, old_pid: Pid, out: Out<'_>) {
        let Some(id) = self.pids.get(old_pid) else { return };
        // A kernel thread that executes a program (a usermode helper) is a user task from then on.
        self.state.tasks[id].flags -= TaskFlags::KTHREAD;
        self.families.leave(self.books[id.index()].family);
        self.books[id.index()].family = self.families.found();
        // It may have been chrt: what spoke against SCHED_IDLE was before.
        self.books[id.index()].shared = self.books[id.index()].shared.max(0);
        if pid == old_pid {
            return;
        }
        if let Some(leader) = self.pids.get(pid) {
            self.decide_about(leader, out);
            self.forget_call(leader, out);
            self.drop_task(leader);
        }
        self.pids.rename(old_pid, pid, id);
        self.state.tasks[id].pid = pid;
        self.stated.ask_again(id);
        for book in &mut self.cpus {
            if book.now.curr == id {
                book.next_pid = Some(pid);
            }
        }
    }

    /// PF_EXITING: set slightly before the event.
    pub(super) fn on_exit(&mut self, pid: Pid) {
        if let Some(id) = self.pids.get(pid) {
            self.state.tasks[id].flags |= TaskFlags::EXITING;
        }
    }

    pub(super) fn on_free(&mut self, pid: Pid, out: Out<'_>) {
        let Some(id) = self.pids.get(pid) else { return };
        self.decide_about(id, out);
        // A live task of that pid was made since.
        if self.state.tasks[id].flags.contains(TaskFlags::EXITING) && self.books[id.index()].place == Place::Off {
            self.forget_call(id, out);
            self.drop_task(id);
        }
    }

    /// Nothing will be learned of what was chosen for the task's open call.
    pub(super) fn forget_call(&mut self, id: TaskId, out: Out<'_>) {
        let book: &mut TaskBook = &mut self.books[id.index()];
        if let Some(call) = book.call.take() {
            out(&self.state, Notice::NeverChosen { number: call.number });
        }
    }

    /// A CPU leaves or joins: it is taken out of (or put back into) the online mask; domains stay as they were recorded.
    pub(super) fn on_hotplug(&mut self, cpu: Cpu, online: bool) {
        if !self.has_cpu(cpu) || self.state.topology.online().test(cpu) == online {
            return;
        }
        let mut parts = self.state.topology.parts().clone();
        parts.online.assign(cpu, online);
        // The parts were a topology before, and a CPU below nr_cpu_ids may be online or not.
        if let Ok(topology) = Topology::new(parts) {
            self.state.topology = Arc::new(topology);
            self.online = TaskMask::from(*self.state.topology.online());
        }
    }
}
