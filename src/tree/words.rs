// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine as words, for the C side: what changed since it was last told.

use sisdiff_tree::run::protocol::HEAD_WORDS;

use super::answer::Answer;
use super::columns::Columns;
use crate::cpumask::Cpumask;
use crate::fair::Hidden;
use crate::machine::{State, TaskFlags, TaskId, TaskMask};
use crate::topology::{DomainId, SdFlags, Topology};
use crate::units::Cpu;
use crate::wakeup::{WakeKind, Wakeup};

/// Requests.
const MACHINE: u64 = 1;
const CALL: u64 = 2;
const FEATURES: u64 = 3;

/// "None" in a word.
pub(super) const NONE: u64 = u64::MAX;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    SelectIdleSibling {
        target: Cpu,
    },
    SelectTaskRqFair,
    UpdateIdleCore,
    /// Only take in what changed.
    Nothing,
}

/// The number of a task on the other side: 0 is a task that stands for whoever is running.
pub(super) fn task_number(id: TaskId) -> u64 {
    u64::from(id.0) + 1
}

/// The task of a number; `None` for no task and the one that stands for others.
pub(super) fn task_of(number: u64) -> Option<TaskId> {
    u32::try_from(number).ok()?.checked_sub(1).map(TaskId)
}

/// Words of a task's facts beside its masks; the last four are what the wakeup path itself keeps.
const TASK_WORDS: usize = 17;

/// A task as the other side has it. The masks are shared with the task: one that is changed becomes another in memory.
#[derive(Debug)]
struct TaskTold {
    masks: [TaskMask; 2],
    words: [u64; TASK_WORDS],
}

/// What the other side was told.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    columns: Columns,
    tasks: Vec<Option<TaskTold>>,
    longs: usize,
}

impl Mirror {
    /// Forgets everything: the other side starts anew with `topology`.
    pub(super) fn machine(&mut self, topology: &Topology, out: &mut Vec<u64>) {
        let n = topology.nr_cpu_ids();
        self.longs = n.div_ceil(64);
        self.columns = Columns::default();
        self.tasks.clear();
        let nodes = topology.cpus().map(|cpu| topology.node(cpu)).max().unwrap_or(0) + 1;
        let domains = topology.domains();
        out.extend([MACHINE, n as u64, u64::from(topology.smt_present()), u64::from(topology.asym_cpucapacity())]);
        out.extend([domains.len() as u64, topology.nr_shared() as u64, u64::from(nodes)]);
        self.mask(topology.online(), out);
        for cpu in topology.cpus() {
            self.mask(topology.smt_mask(cpu), out);
            out.push(u64::from(topology.node(cpu)));
        }
        // As in [`Topology::new`]: where no domain is said to have every capacity, the asymmetric ones count as such.
        let (some, full) = (SdFlags::ASYM_CPUCAPACITY, SdFlags::ASYM_CPUCAPACITY_FULL);
        let none_full = !domains.iter().any(|domain| domain.flags.contains(full));
        for (id, domain) in domains.iter().enumerate() {
            let implied = if none_full && domain.flags.contains(some) { full } else { SdFlags::empty() };
            let flags = domain.flags | implied;
            out.extend([u64::from(domain.level), u64::from(flags.bits()), u64::from(domain.imbalance_pct)]);
            out.extend([u64::from(domain.imb_numa_nr), shared_of(topology, id)]);
            self.mask(&domain.span, out);
        }
        for cpu in topology.cpus() {
            let chain = topology.hierarchy(cpu);
            out.push(chain.len() as u64);
            out.extend(chain.iter().map(|&id| id as u64));
        }
    }

    fn mask(&self, mask: &Cpumask, out: &mut Vec<u64>) {
        out.extend_from_slice(&mask.words()[..self.longs]);
    }

    /// One call with what changed before it.
    #[inline]
    pub(super) fn call(
        &mut self,
        (state, hidden): (&State, &Hidden),
        w: &Wakeup,
        question: Question,
        record: bool,
        out: &mut Vec<u64>,
    ) {
        let (number, target) = match question {
            Question::SelectIdleSibling { target } => (0, target),
            Question::SelectTaskRqFair => (1, w.prev_cpu),
            Question::UpdateIdleCore => (2, w.prev_cpu),
            Question::Nothing => (3, w.prev_cpu),
        };
        let kind = match w.kind {
            WakeKind::Ttwu => 0,
            WakeKind::Fork => 1,
            WakeKind::Exec => 2,
        };
        let clock = &hidden.clock;
        let head: [u64; 1 + HEAD_WORDS] = [
            CALL,
            number,
            task_number(w.p),
            task_number(w.current),
            u64::from(w.this_cpu.0),
            u64::from(w.prev_cpu.0),
            u64::from(target.0),
            kind,
            u64::from(w.sync),
            u64::from(record),
            u64::from(w.in_task),
            clock.now_ns,
            clock.probe_ns,
            clock.clock_read_ns,
            clock.mask_op_ns,
            state.jiffies,
            u64::from(state.hz),
            u64::from(hidden.sysctl_sched_preferred),
            u64::from(hidden.sysctl_sched_allowed),
        ];
        out.extend_from_slice(&head);
        for shared in &hidden.shared {
            out.extend_from_slice(&[u64::from(shared.has_idle_cores), u64::from(shared.nr_idle_scan)]);
        }
        self.columns.tell(state, hidden, out);
        let count = out.len();
        out.push(0);
        let mut told = u64::from(self.task(state, hidden, w.p, out));
        if w.current != w.p {
            told += u64::from(self.task(state, hidden, w.current, out));
        }
        out[count] = told;
    }

    /// The facts of a task, where they changed.
    #[inline]
    fn task(&mut self, state: &State, hidden: &Hidden, id: TaskId, out: &mut Vec<u64>) -> bool {
        let (task, own) = (&state.tasks[id], &hidden.tasks[id.index()]);
        let flags = u64::from(task.flags.contains(TaskFlags::KTHREAD))
            | u64::from(task.flags.contains(TaskFlags::EXITING)) << 1
            | u64::from(task.on_rq) << 2
            | u64::from(task.policy_idle) << 3
            | u64::from(task.affinity_unequal) << 4;
        let words: [u64; TASK_WORDS] = [
            u64::from(task.nr_cpus_allowed),
            flags,
            u64::from(task.task_cpu.0),
            i64::from(task.numa_preferred_nid) as u64,
            task.last_update_time_ns,
            task.load_avg,
            task.h_load,
            task.util_avg,
            task.util_est_ewma,
            task.util_est_enqueued,
            task.runnable_avg,
            task.uclamp_min,
            task.uclamp_max,
            u64::from(own.recent_used_cpu.0),
            u64::from(own.wakee_flips),
            own.wakee_flip_decay_jiffies,
            own.last_wakee.map_or(NONE, task_number),
        ];
        if self.tasks.len() <= id.index() {
            self.tasks.resize_with(id.index() + 1, || None);
        }
        let told = &mut self.tasks[id.index()];
        if let Some(told) = told
            && told.words == words
            && told.masks[0].is_shared_with(&task.cpus_ptr)
            && told.masks[1].is_shared_with(&task.cpus_preferred)
        {
            return false;
        }
        out.push(task_number(id));
        out.extend_from_slice(&task.cpus_ptr.words()[..self.longs]);
        out.extend_from_slice(&task.cpus_preferred.words()[..self.longs]);
        out.extend_from_slice(&words);
        *told = Some(TaskTold { masks: [task.cpus_ptr.clone(), task.cpus_preferred.clone()], words });
        true
    }

    /// The other side's own hidden state of both tasks is as `answer` says, and that of CPUs as `hidden`, which took it
    /// from there.
    #[inline]
    pub(super) fn took(&mut self, w: &Wakeup, answer: &Answer<'_>, hidden: &Hidden) {
        for (which, id) in [w.p, w.current].into_iter().enumerate() {
            if let Some(Some(task)) = self.tasks.get_mut(id.index()) {
                task.words[TASK_WORDS - 4..].copy_from_slice(&answer.task_words(which));
            }
        }
        self.columns.took(hidden);
    }
}

/// The shared state that domain `id` holds: LLC domains, and in 7.3 the asymmetric ones.
fn shared_of(topology: &Topology, id: DomainId) -> u64 {
    let domain = topology.domain(id);
    let parts = topology.parts();
    let asym = domain.flags.intersects(SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL);
    let llc =
        parts.llcs.iter().position(|span| *span == domain.span && (asym || domain.flags.contains(SdFlags::SHARE_LLC)));
    let asym = || parts.asym_spans.iter().position(|span| asym && *span == domain.span).map(|at| parts.llcs.len() + at);
    llc.or_else(asym).map_or(NONE, |at| at as u64)
}

/// The switches of the tree's features, in its order.
pub(super) fn features(switches: &[bool], out: &mut Vec<u64>) {
    out.push(FEATURES);
    out.extend(switches.iter().map(|&on| u64::from(on)));
}
