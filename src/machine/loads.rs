// SPDX-License-Identifier: GPL-2.0-or-later
//! Load and utilisation of run queues and tasks, by running the kernel's recurrence on what events tell.
//!
//! All tasks are taken to be in the root group: groups are not traced.
//!
//! **Source**: kernel/sched/fair.c, v6.1: update_load_avg(), attach_entity_load_avg(), remove_entity_load_avg(),
//! util_est_update(), post_init_entity_util_avg().

use crate::cpumask::Cpumask;
use crate::machine::pelt::{Did, Pelt};
use crate::units::Cpu;

/// Weights of nice -20 to 19 (`sched_prio_to_weight`): each about 1.25 times the next, 1024 for nice 0.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];
/// Weight of a SCHED_IDLE task, whatever its priority says (`WEIGHT_IDLEPRIO`).
pub(crate) const WEIGHT_IDLE: u64 = 3;
/// `UTIL_EST_MARGIN`: 1 % of 1024.
const UTIL_EST_MARGIN: u64 = 10;
const SCHED_CAPACITY_SCALE: u64 = 1024;

/// The weight that goes with a priority of the fair class (100 to 139).
pub(crate) fn weight_of(prio: i32) -> u64 {
    usize::try_from(prio - 100).ok().and_then(|at| WEIGHTS.get(at)).copied().unwrap_or(1024)
}

/// What is tracked of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entity {
    pub(crate) avg: Pelt,
    pub(super) weight: u64,
    /// The run queue it is queued on.
    queued: Option<Cpu>,
    /// The run queue whose averages its own are part of.
    attached: Option<Cpu>,
    /// `util_est.enqueued` without its flag bit, and `util_est.ewma`.
    pub(crate) util_est: u64,
    pub(crate) util_est_ewma: u64,
    /// Its averages did not change since util_est was updated (UTIL_AVG_UNCHANGED).
    unchanged: bool,
    /// Forked, and not queued yet.
    fresh: bool,
    /// When it was first seen, ns; 0 if its averages are known from their start.
    pub(super) seen_ns: u64,
}

impl Entity {
    pub(crate) const NEW: Self = Self {
        avg: Pelt::ZERO,
        weight: 1024,
        queued: None,
        attached: None,
        util_est: 0,
        util_est_ewma: 0,
        unchanged: false,
        fresh: false,
        seen_ns: 0,
    };

    /// A task as fork leaves it: full load, no utilisation.
    ///
    /// **Source**: init_entity_runnable_average().
    pub(crate) fn forked(weight: u64) -> Self {
        Self { avg: Pelt { load_avg: weight, ..Pelt::ZERO }, weight, fresh: true, ..Self::NEW }
    }

    fn estimate(&self) -> u64 {
        self.util_est.max(self.util_est_ewma)
    }

    fn update(&mut self, now_ns: u64, running: bool) {
        let queued = u64::from(self.queued.is_some());
        let did = Did { load: queued, runnable: queued, running };
        if self.avg.accumulate(now_ns, did) {
            self.avg.average(self.weight);
            self.unchanged = false;
        }
    }

    /// Takes averages that were observed; sums are made to fit them.
    pub(super) fn observe(&mut self, load_avg: Option<u64>, util_avg: Option<u64>) {
        let divider = self.avg.divider();
        if let Some(load) = load_avg {
            self.avg.load_avg = load;
            self.avg.load_sum = load * divider / self.weight.max(1);
        }
        if let Some(util) = util_avg {
            self.avg.util_avg = util;
            self.avg.util_sum = util * divider;
            self.avg.runnable_avg = self.avg.runnable_avg.max(util);
            self.avg.runnable_sum = self.avg.runnable_avg * divider;
        }
    }

    /// **Source**: util_est_update(), UTIL_EST_FASTUP on.
    fn update_estimate(&mut self, capacity: u64) {
        if self.unchanged {
            return;
        }
        let last = self.util_est;
        let util = self.avg.util_avg;
        self.unchanged = true;
        self.util_est = util;
        if self.util_est_ewma < util {
            self.util_est_ewma = util;
            return;
        }
        if self.util_est_ewma.abs_diff(util) < UTIL_EST_MARGIN {
            if last.abs_diff(util) < UTIL_EST_MARGIN {
                self.util_est = last;
            }
            return;
        }
        if util > capacity {
            self.util_est = last;
            return;
        }
        self.util_est_ewma = (self.util_est_ewma * 4 - (self.util_est_ewma - util)) / 4;
    }
}

/// What is tracked of a CPU's `cfs_rq`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CfsRq {
    pub(crate) avg: Pelt,
    weight: u64,
    nr: u64,
    /// A fair task runs.
    running: bool,
    /// Averages of tasks that left while they slept, to be taken off at the next update.
    removed_load: u64,
    removed_util: u64,
    removed_runnable: u64,
    /// `avg.util_est.enqueued`: the sum of the queued tasks' estimates.
    pub(crate) util_est: u64,
    h_load: u64,
    h_load_jiffies: u64,
}

impl CfsRq {
    /// **Source**: update_cfs_rq_load_avg().
    pub(super) fn update(&mut self, now_ns: u64) {
        let divider = self.avg.divider();
        let take = |avg: &mut u64, sum: &mut u64, removed: &mut u64| {
            let removed = std::mem::take(removed);
            *avg = avg.saturating_sub(removed);
            *sum = sum.saturating_sub(removed * divider).max(*avg * Pelt::MIN_DIVIDER);
        };
        if self.removed_load + self.removed_util + self.removed_runnable > 0 {
            take(&mut self.avg.load_avg, &mut self.avg.load_sum, &mut self.removed_load);
            take(&mut self.avg.util_avg, &mut self.avg.util_sum, &mut self.removed_util);
            take(&mut self.avg.runnable_avg, &mut self.avg.runnable_sum, &mut self.removed_runnable);
        }
        let did = Did { load: self.weight, runnable: self.nr, running: self.running };
        self.avg.update(now_ns, did, 1);
    }

    fn attach(&mut self, entity: &mut Entity) {
        let divider = self.avg.divider();
        let avg = &mut entity.avg;
        avg.last_update_ns = self.avg.last_update_ns;
        avg.period_contrib = self.avg.period_contrib;
        avg.util_sum = avg.util_avg * divider;
        avg.runnable_sum = avg.runnable_avg * divider;
        avg.load_sum = (avg.load_avg * divider / entity.weight.max(1)).max(1);
        self.avg.load_avg += avg.load_avg;
        self.avg.load_sum += avg.load_sum * entity.weight;
        self.avg.util_avg += avg.util_avg;
        self.avg.util_sum += avg.util_sum;
        self.avg.runnable_avg += avg.runnable_avg;
        self.avg.runnable_sum += avg.runnable_sum;
    }

    /// **Source**: detach_entity_load_avg(): a queued task is moved.
    fn detach(&mut self, entity: &Entity) {
        let floor = |avg: u64, sum: u64| sum.max(avg * Pelt::MIN_DIVIDER);
        let avg = &mut self.avg;
        avg.load_avg = avg.load_avg.saturating_sub(entity.avg.load_avg);
        avg.load_sum = floor(avg.load_avg, avg.load_sum.saturating_sub(entity.avg.load_sum * entity.weight));
        avg.util_avg = avg.util_avg.saturating_sub(entity.avg.util_avg);
        avg.util_sum = floor(avg.util_avg, avg.util_sum.saturating_sub(entity.avg.util_sum));
        avg.runnable_avg = avg.runnable_avg.saturating_sub(entity.avg.runnable_avg);
        avg.runnable_sum = floor(avg.runnable_avg, avg.runnable_sum.saturating_sub(entity.avg.runnable_sum));
    }

    /// Takes averages that were observed.
    pub(super) fn observe(&mut self, load_avg: Option<u64>, util_avg: Option<u64>, runnable_avg: Option<u64>) {
        let divider = self.avg.divider();
        let set = |avg: &mut u64, sum: &mut u64, value: Option<u64>| {
            // An average that fits keeps its sum, which is finer.
            if let Some(value) = value.filter(|value| value != avg) {
                *avg = value;
                *sum = value * divider;
            }
        };
        set(&mut self.avg.load_avg, &mut self.avg.load_sum, load_avg);
        set(&mut self.avg.util_avg, &mut self.avg.util_sum, util_avg);
        set(&mut self.avg.runnable_avg, &mut self.avg.runnable_sum, runnable_avg);
    }

    /// Takes an h_load that was observed, with the jiffies of its refresh.
    pub(super) fn observe_h_load(&mut self, h_load: u64, jiffies: u64) {
        (self.h_load, self.h_load_jiffies) = (h_load, jiffies);
    }

    /// `cpu_util_cfs()`.
    pub(crate) fn util(&self, capacity_orig: u64) -> u64 {
        self.avg.util_avg.max(self.util_est).min(capacity_orig)
    }
}

/// Run queues and tasks. Every stamp is the trace's clock; queues and tasks of the real-time classes are not tracked.
#[derive(Debug, Clone)]
pub(crate) struct Loads {
    pub(crate) cfs: Vec<CfsRq>,
    pub(crate) entities: Vec<Entity>,
    /// The fair task that runs on each CPU.
    curr: Vec<Option<usize>>,
    /// A task that leaves an idle CPU is decayed for the time that the CPU's clock stood still (e2f3e35f1f5a, 5.19); before,
    /// what it had when that CPU last looked went with it.
    pub(crate) has_lag: bool,
}

impl Loads {
    pub(crate) fn new(cpus: usize, tasks: usize) -> Self {
        Self {
            cfs: vec![CfsRq::default(); cpus],
            entities: vec![Entity::NEW; tasks],
            curr: vec![None; cpus],
            has_lag: true,
        }
    }

    /// **Source**: enqueue_entity(); for a wakeup on another CPU also migrate_task_rq_fair().
    pub(crate) fn enqueue(&mut self, task: usize, cpu: Cpu, now_ns: u64, curr_idle: &Cpumask) {
        let entity = &mut self.entities[task];
        if entity.queued == Some(cpu) {
            return;
        }
        if entity.queued.is_some() {
            self.dequeue(task, now_ns, false);
        }
        self.leave(task, cpu, now_ns, curr_idle);
        let (entity, cfs) = (&mut self.entities[task], &mut self.cfs[cpu.index()]);
        if entity.attached == Some(cpu) {
            entity.update(now_ns, false);
            cfs.update(now_ns);
        } else {
            cfs.update(now_ns);
            if std::mem::take(&mut entity.fresh) {
                entity.first_utilisation(cfs);
            }
            cfs.attach(entity);
            entity.attached = Some(cpu);
        }
        cfs.weight += entity.weight;
        cfs.nr += 1;
        cfs.util_est += entity.estimate();
        entity.queued = Some(cpu);
    }

    /// A task that slept on another CPU takes its averages away from there.
    ///
    /// **Source**: remove_entity_load_avg(); since 5.19 migrate_se_pelt_lag() for an idle CPU, whose clock stands still.
    pub(crate) fn leave(&mut self, task: usize, to: Cpu, now_ns: u64, curr_idle: &Cpumask) {
        let entity = &mut self.entities[task];
        let Some(from) = entity.attached.filter(|&from| from != to) else { return };
        let cfs = &mut self.cfs[from.index()];
        entity.update(cfs.avg.last_update_ns, false);
        cfs.removed_load += entity.avg.load_avg;
        cfs.removed_util += entity.avg.util_avg;
        cfs.removed_runnable += entity.avg.runnable_avg;
        entity.attached = None;
        if self.has_lag && curr_idle.test(from) {
            entity.update(now_ns, false);
        }
    }

    /// **Source**: dequeue_entity(); `sleep`: it goes to sleep, else it is moved.
    pub(crate) fn dequeue(&mut self, task: usize, now_ns: u64, sleep: bool) {
        let entity = &mut self.entities[task];
        let Some(cpu) = entity.queued.take() else { return };
        // What it did up to now counts as queued.
        entity.queued = Some(cpu);
        let running = self.curr[cpu.index()] == Some(task);
        entity.update(now_ns, running);
        entity.queued = None;
        let cfs = &mut self.cfs[cpu.index()];
        cfs.update(now_ns);
        cfs.util_est = cfs.util_est.saturating_sub(entity.estimate());
        cfs.weight = cfs.weight.saturating_sub(entity.weight);
        cfs.nr = cfs.nr.saturating_sub(1);
        if sleep {
            entity.update_estimate(SCHED_CAPACITY_SCALE);
        } else {
            cfs.detach(entity);
            entity.attached = None;
        }
        if running {
            self.curr[cpu.index()] = None;
            cfs.running = false;
        }
    }

    /// **Source**: put_prev_entity() of a task that stays queued.
    pub(crate) fn put(&mut self, cpu: Cpu, now_ns: u64) {
        let Some(task) = self.curr[cpu.index()].take() else { return };
        let cfs = &mut self.cfs[cpu.index()];
        self.entities[task].update(now_ns, true);
        cfs.update(now_ns);
        cfs.running = false;
    }

    /// **Source**: set_next_entity().
    pub(crate) fn run(&mut self, task: usize, cpu: Cpu, now_ns: u64) {
        self.put(cpu, now_ns);
        let entity = &mut self.entities[task];
        if entity.queued != Some(cpu) {
            return;
        }
        let cfs = &mut self.cfs[cpu.index()];
        entity.update(now_ns, false);
        cfs.update(now_ns);
        cfs.running = true;
        self.curr[cpu.index()] = Some(task);
    }

    /// **Source**: entity_tick(); on a CPU without a fair task update_blocked_averages().
    pub(crate) fn tick(&mut self, cpu: Cpu, now_ns: u64) {
        if let Some(task) = self.curr[cpu.index()] {
            self.entities[task].update(now_ns, true);
        }
        self.cfs[cpu.index()].update(now_ns);
    }

    /// A weight that an event shows to have changed.
    pub(crate) fn set_weight(&mut self, task: usize, weight: u64) {
        let entity = &mut self.entities[task];
        if entity.weight == weight {
            return;
        }
        if let Some(cpu) = entity.queued {
            let cfs = &mut self.cfs[cpu.index()];
            cfs.weight = cfs.weight.saturating_sub(entity.weight) + weight;
        }
        entity.weight = weight;
    }

    /// The task is gone.
    pub(crate) fn forget(&mut self, task: usize, now_ns: u64) {
        self.dequeue(task, now_ns, true);
        let entity = &mut self.entities[task];
        if let Some(from) = entity.attached.take() {
            let cfs = &mut self.cfs[from.index()];
            entity.update(cfs.avg.last_update_ns, false);
            cfs.removed_load += entity.avg.load_avg;
            cfs.removed_util += entity.avg.util_avg;
            cfs.removed_runnable += entity.avg.runnable_avg;
        }
        *entity = Entity::NEW;
    }

    /// `task_h_load()` of a task whose task_cpu() is `cpu`, at `jiffies`: the run queue's h_load is refreshed at most once a
    /// jiffy, by whoever asks. With `asks` the kernel does so now; else it is what an answer would be.
    pub(crate) fn h_load(&mut self, load_avg: u64, cpu: Cpu, jiffies: u64, asks: bool) -> u64 {
        let cfs = &mut self.cfs[cpu.index()];
        let h_load = if cfs.h_load_jiffies == jiffies { cfs.h_load } else { cfs.avg.load_avg };
        if asks {
            (cfs.h_load_jiffies, cfs.h_load) = (jiffies, h_load);
        }
        load_avg * h_load / (cfs.avg.load_avg + 1)
    }
}

impl Entity {
    /// **Source**: post_init_entity_util_avg(): half of what is left of the CPU, less if its tasks are light.
    fn first_utilisation(&mut self, cfs: &CfsRq) {
        let cap = SCHED_CAPACITY_SCALE.saturating_sub(cfs.avg.util_avg) / 2;
        if cap > 0 {
            self.avg.util_avg = match cfs.avg.util_avg {
                0 => cap,
                util => (util * self.weight / (cfs.avg.load_avg + 1)).min(cap),
            };
        }
        self.avg.runnable_avg = self.avg.util_avg;
    }
}
