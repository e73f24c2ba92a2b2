// SPDX-License-Identifier: GPL-2.0-or-later
//! Smaller cases with the same finding.
//!
//! Whatever the case is made of is taken out or set to its default, larger parts first, as long as the same oracle fails
//! the same way ([`Finding::key`](crate::oracle::Finding::key)): events, then tasks, LLCs, cores, CPUs, then the machine's
//! peculiarities, the state's, the tasks', the events' own, the settings. Again from the beginning until nothing goes. Then
//! larger steps with a few changes around them (`jump.rs`), and again.

mod jump;

use crate::cpumask::Cpumask;
use crate::scenario::shape::FULL_CAPACITY;
use crate::scenario::{Case, Core, CpuState, Distances, Event, Llc, Load, Settings, TaskState};
use crate::units::Cpu;

/// Most candidates tried: a case of 200 events on 256 CPUs needs a few thousand.
const TRIES_MAX: usize = 20_000;

/// A case made smaller as long as `fails` says that a candidate still fails the same way.
///
/// `case` itself must fail. The result fails too, has no more CPUs and decisions, and no single step of the list above can
/// be taken from it (unless the limit of 20,000 candidates was reached).
pub fn shrink(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut shrinker = Shrinker { case: case.clone(), fails, tries: 0 };
    loop {
        let before = shrinker.case.clone();
        shrinker.pass();
        if (shrinker.case == before && !shrinker.jump()) || shrinker.tries >= TRIES_MAX {
            return shrinker.case;
        }
    }
}

struct Shrinker<'a> {
    case: Case,
    fails: &'a mut dyn FnMut(&Case) -> bool,
    tries: usize,
}

impl Shrinker<'_> {
    fn pass(&mut self) {
        self.events();
        self.tasks();
        self.llcs();
        self.cores();
        self.cpus();
        self.machine();
        self.states();
        self.task_fields();
        self.event_fields();
        self.settings();
        self.offer(Some(self.case.compacted()));
    }

    /// Takes the candidate if it is another case and fails the same way.
    fn offer(&mut self, candidate: Option<Case>) -> bool {
        let Some(candidate) = candidate.filter(|candidate| *candidate != self.case) else { return false };
        self.tries += 1;
        let smaller = self.tries < TRIES_MAX && (self.fails)(&candidate);
        if smaller {
            self.case = candidate;
        }
        smaller
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Case)) -> bool {
        let mut candidate = self.case.clone();
        edit(&mut candidate);
        self.offer(Some(candidate))
    }

    /// The CPU that things are moved to, so that others can go.
    fn first(&self) -> Cpu {
        self.case.machine.online().first().expect("a case has an online CPU")
    }

    /// Runs of events, long ones first.
    fn events(&mut self) {
        let mut run = self.case.events.len();
        while run > 0 {
            let mut to = self.case.events.len();
            while to > 0 {
                let from = to.saturating_sub(run);
                self.edit(|case| {
                    case.events.drain(from..to);
                });
                to = from.min(self.case.events.len());
            }
            run /= 2;
        }
    }

    fn tasks(&mut self) {
        for p in (0..self.case.tasks.len()).rev() {
            self.offer(Some(self.case.without_task(p)));
        }
    }

    fn llcs(&mut self) {
        for at in (0..self.case.machine.llcs.len()).rev() {
            let cpus = self.case.machine.llcs[at].cpus();
            self.without(&cpus);
        }
    }

    fn cores(&mut self) {
        let cores: Vec<Cpumask> = self.case.machine.cores().map(|core| core.cpus).collect();
        // Runs of cores, long ones first: large machines have many.
        let mut run = cores.len() / 2;
        while run > 0 {
            for chunk in cores.chunks(run).rev() {
                let cpus = chunk.iter().fold(Cpumask::EMPTY, |all, core| all | *core);
                self.without(&cpus);
            }
            run /= 2;
        }
    }

    fn cpus(&mut self) {
        let cpus: Vec<Cpu> = self.case.machine.present().iter().collect();
        for cpu in cpus.into_iter().rev() {
            self.without(&Cpumask::of(cpu));
        }
    }

    fn without(&mut self, cpus: &Cpumask) -> bool {
        cpus.intersects(&self.case.machine.present()) && self.offer(self.case.without_cpus(cpus))
    }

    fn machine(&mut self) {
        self.edit(|case| case.machine.offline = Cpumask::EMPTY);
        self.edit(|case| case.machine.isolated = Cpumask::EMPTY);
        let peculiar = self.case.machine.offline | self.case.machine.isolated;
        for cpu in peculiar.iter() {
            self.edit(|case| {
                case.machine.offline.clear(cpu);
                case.machine.isolated.clear(cpu);
            });
        }
        self.edit(|case| case.machine.distances = Distances::default());
        self.edit(|case| case.machine.near_nodes = 0);
        self.edit(|case| case.machine.far = false);
        self.edit(|case| case.machine.balance_wake = false);
        let per_llc: [fn(&mut Llc); 6] = [
            |llc| llc.has_idle_cores = false,
            |llc| llc.nr_idle_scan = None,
            |llc| llc.node = 0,
            |llc| llc.clusters = vec![llc.cores().copied().collect()],
            |llc| llc.clusters.iter_mut().for_each(|cores| *cores = single(cores)),
            |llc| llc.clusters.iter_mut().flatten().for_each(|core| core.capacity = FULL_CAPACITY),
        ];
        for edit in per_llc {
            self.edit(|case| case.machine.llcs.iter_mut().for_each(edit));
            for at in 0..self.case.machine.llcs.len() {
                self.edit(|case| edit(&mut case.machine.llcs[at]));
            }
        }
    }

    fn states(&mut self) {
        for at in (0..self.case.cpus.len()).rev() {
            self.edit(|case| {
                case.cpus.remove(at);
            });
        }
        let default = CpuState::default();
        let fields: [&dyn Fn(&mut CpuState); 11] = [
            &|cpu| cpu.load = Load::fair(1),
            &|cpu| cpu.load = default.load,
            &|cpu| cpu.pending = false,
            &|cpu| cpu.preempted = false,
            &|cpu| cpu.avg_idle_ns = default.avg_idle_ns,
            &|cpu| cpu.avg_scan_cost_ns = default.avg_scan_cost_ns,
            &|cpu| cpu.wake_avg_idle_ns = default.wake_avg_idle_ns,
            &|cpu| (cpu.load_avg, cpu.util_avg) = (0, 0),
            &|cpu| cpu.capacity_left = default.capacity_left,
            &|cpu| cpu.idle_for_ns = default.idle_for_ns,
            &|cpu| cpu.exit_latency_us = default.exit_latency_us,
        ];
        for edit in fields {
            for at in 0..self.case.cpus.len() {
                // A load of one task is smaller than any other, and none is smaller still.
                self.edit(|case| {
                    let cpu = &mut case.cpus[at];
                    if !cpu.load.is_none() {
                        edit(cpu);
                    } else {
                        let load = cpu.load;
                        edit(cpu);
                        cpu.load = load;
                    }
                });
            }
        }
    }

    fn task_fields(&mut self) {
        let fields: [fn(&mut TaskState); 13] = [
            |task| task.queued = false,
            |task| task.cpus_ptr = None,
            |task| task.cpus_preferred = None,
            |task| task.kthread = false,
            |task| task.exiting = false,
            |task| task.policy_idle = false,
            |task| task.recent_used_cpu = None,
            |task| (task.wakee_flips, task.flips_decayed_ago) = (0, 0),
            |task| task.last_wakee = None,
            |task| task.numa_preferred_nid = -1,
            |task| task.load_avg = 0,
            |task| (task.util_avg, task.util_est, task.runnable_avg) = (0, 0, 0),
            |task| (task.uclamp_min, task.uclamp_max) = (0, 1024),
        ];
        for edit in fields {
            for p in 0..self.case.tasks.len() {
                self.edit(|case| edit(&mut case.tasks[p]));
            }
        }
        for p in 0..self.case.tasks.len() {
            let first = self.first();
            self.edit(|case| case.tasks[p].cpu = first);
        }
        // A smaller mask is easier to read than a larger one.
        for p in 0..self.case.tasks.len() {
            for cpu in self.case.tasks[p].cpus_ptr.unwrap_or_default().iter() {
                self.edit(|case| {
                    if let Some(mask) = case.tasks[p].cpus_ptr.as_mut().filter(|mask| mask.weight() > 1) {
                        mask.clear(cpu);
                    }
                });
            }
        }
    }

    fn event_fields(&mut self) {
        let edits: [fn(&mut Event, Cpu); 6] = [
            |event, first| match event {
                Event::Wake { from, .. } | Event::Fork { from, .. } | Event::Exec(from) => *from = first,
                _ => {}
            },
            |event, _| {
                if let Event::Wake { sync, .. } = event {
                    *sync = false;
                }
            },
            |event, _| {
                if let Event::Wake { irq, .. } = event {
                    *irq = false;
                }
            },
            |event, _| {
                if let Event::Wake { remote, .. } = event {
                    *remote = false;
                }
            },
            |event, _| {
                if let Event::Load(_, load) = event {
                    *load = Load::fair(1);
                }
            },
            |event, _| {
                if let Event::Tick(jiffies) = event {
                    *jiffies = 1;
                }
            },
        ];
        let first = self.first();
        for at in 0..self.case.events.len() {
            for edit in edits {
                self.edit(|case| edit(&mut case.events[at], first));
            }
        }
    }

    fn settings(&mut self) {
        let default = Settings::default();
        let fields: [&dyn Fn(&mut Settings); 8] = [
            &|settings| *settings = Settings::default(),
            &|settings| settings.features = default.features,
            &|settings| settings.hz = default.hz,
            &|settings| settings.probe_ns = default.probe_ns,
            &|settings| settings.clock_read_ns = default.clock_read_ns,
            &|settings| settings.mask_op_ns = default.mask_op_ns,
            &|settings| settings.sched_preferred = default.sched_preferred,
            &|settings| settings.sched_allowed = default.sched_allowed,
        ];
        for edit in fields {
            self.edit(|case| edit(&mut case.settings));
        }
        let features = self.case.settings.features;
        for feature in (features.on | features.off).iter() {
            self.edit(|case| {
                case.settings.features.on -= feature;
                case.settings.features.off -= feature;
            });
        }
    }
}

/// The same CPUs without SMT.
fn single(cores: &[Core]) -> Vec<Core> {
    let one = |core: &Core| {
        let capacity = core.capacity;
        core.cpus.iter().map(move |cpu| Core { cpus: Cpumask::of(cpu), capacity }).collect::<Vec<_>>()
    };
    cores.iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz_loop;

    #[test]
    fn what_is_not_needed_goes() {
        let case = (0..).map(|n| fuzz_loop::case(1, n)).find(|c| c.decisions() > 20 && c.machine.llcs.len() > 3);
        let case = case.expect("one of many");
        // Two wakeups of the same task, whoever it is.
        let mut tried = 0;
        let small = shrink(&case, &mut |candidate| {
            tried += 1;
            assert_eq!(candidate.check(), Ok(()), "{candidate:?}");
            let mut woken: Vec<usize> = candidate
                .events
                .iter()
                .filter_map(|event| match *event {
                    Event::Wake { p, .. } => Some(p),
                    _ => None,
                })
                .collect();
            woken.sort_unstable();
            woken.windows(2).any(|pair| pair[0] == pair[1])
        });
        assert_eq!(small.machine.nr_cpu_ids(), 1, "{small:?}");
        assert_eq!((small.tasks.len(), small.events.len(), small.cpus.len()), (1, 2, 0), "{small:?}");
        assert_eq!(small.settings, Settings::default());
        assert!(tried < 1_000, "{tried}");
    }

    #[test]
    fn a_case_that_needs_everything_stays() {
        let case = fuzz_loop::case(2, 3);
        assert_eq!(shrink(&case, &mut |candidate| *candidate == case), case);
    }
}
