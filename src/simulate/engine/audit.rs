// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of a simulation at any moment.

use super::{Place, Sim};
use crate::machine::TaskId;
use crate::simulate::cfs::Order;

impl Sim<'_> {
    /// The first thing that does not hold.
    pub(super) fn audit(&self) -> Result<(), String> {
        self.audit_tasks()?;
        self.audit_queues()?;
        self.audit_signals()?;
        self.audit_work()
    }

    /// Each task is where its place says, and nowhere else.
    fn audit_tasks(&self) -> Result<(), String> {
        let mut seen = vec![0u32; self.books.len()];
        for cpu in self.topology.cpus() {
            let book = &self.cpus[cpu.index()];
            let mut one = |id: TaskId, place: Place| {
                seen[id.index()] += 1;
                let task = &self.state.tasks[id];
                let found = self.books[id.index()].place;
                if found != place || task.task_cpu != cpu {
                    return Err(format!(
                        "{} is {place:?} on cpu{cpu} and says {found:?} on cpu{}",
                        task.comm, task.task_cpu
                    ));
                }
                if !task.cpus_ptr.test(cpu) {
                    return Err(format!("{} is on cpu{cpu}, which it may not use", task.comm));
                }
                Ok(())
            };
            book.curr.map_or(Ok(()), |id| one(id, Place::Running))?;
            book.queue.waiting().try_for_each(|id| one(id, Place::Queued))?;
        }
        for (at, &times) in seen.iter().enumerate().skip(self.cpus.len()) {
            let expected = u32::from(matches!(self.books[at].place, Place::Running | Place::Queued));
            if times != expected {
                return Err(format!("task {at} ({:?}) is on {times} run queues", self.books[at].place));
            }
        }
        Ok(())
    }

    /// The columns that implementations see are those of the queues.
    fn audit_queues(&self) -> Result<(), String> {
        let rq = &self.state.rq;
        let (mut waiting, mut free, mut overloaded) = (0, 0, 0);
        for cpu in self.topology.online().iter() {
            let (at, book) = (cpu.index(), &self.cpus[cpu.index()]);
            let nr = book.queue.len() as u32 + u32::from(book.curr.is_some());
            let listed = self.books.iter().zip(&self.state.tasks.0);
            let listed = listed.filter(|(book, task)| book.place == Place::Listed && task.task_cpu == cpu).count();
            let seen = (rq.nr_running[at], rq.h_nr_running[at], rq.curr_idle.test(cpu), rq.ttwu_pending.test(cpu));
            let expected = (nr, nr, book.curr.is_none(), book.listed > 0);
            if seen != expected || listed != book.listed as usize {
                return Err(format!("cpu{cpu}: the run queue shows {seen:?}, there are {expected:?}, {listed} listed"));
            }
            if rq.curr[at] != book.curr.unwrap_or(TaskId::swapper(cpu)) {
                return Err(format!("cpu{cpu}: curr is {:?}, and {:?} runs", rq.curr[at], book.curr));
            }
            waiting += book.waiting;
            free += u32::from(book.free);
            overloaded += u32::from(nr > 1);
        }
        let sums = (self.waiting, self.free, self.overloaded);
        if sums != (waiting, free, overloaded) {
            return Err(format!("sums {sums:?}, expected {:?}", (waiting, free, overloaded)));
        }
        Ok(())
    }

    /// Each token is in a channel or was delivered, once; nobody waits beside a token.
    fn audit_signals(&self) -> Result<(), String> {
        let left: u64 = self.channels.iter().map(|channel| channel.tokens).sum();
        let first: u64 = self.workload.channels.iter().map(|channel| channel.tokens).sum();
        if first + self.signalled != self.delivered + left {
            return Err(format!("{first} + {} tokens put in, {} taken, {left} left", self.signalled, self.delivered));
        }
        let waiters = self.channels.iter().flat_map(|channel| channel.waiters.iter());
        let mut at = vec![0u32; self.books.len()];
        waiters.chain(self.barriers.iter().flat_map(|(_, there)| there)).for_each(|id| at[id.index()] += 1);
        for (id, &times) in at.iter().enumerate() {
            let book = &self.books[id];
            let live = book.place != Place::Gone;
            if times > 1 || (live && (times == 1) != book.waits) || (times == 1 && book.place != Place::Asleep) {
                return Err(format!("task {id} ({:?}) waits at {times} places", book.place));
            }
        }
        match self.channels.iter().position(|channel| channel.tokens > 0 && !channel.waiters.is_empty()) {
            Some(channel) => Err(format!("somebody waits at channel {channel}, which has tokens")),
            None => Ok(()),
        }
    }

    /// Work asked for is done, or left.
    fn audit_work(&self) -> Result<(), String> {
        let left: u64 =
            self.books.iter().filter(|book| book.place != Place::Gone).filter_map(|book| book.left_ns).sum();
        if self.asked_ns != self.worked_ns + left {
            return Err(format!("{} ns of work asked for, {} done, {left} left", self.asked_ns, self.worked_ns));
        }
        Ok(())
    }
}
