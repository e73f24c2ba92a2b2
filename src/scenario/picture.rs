// SPDX-License-Identifier: GPL-2.0-or-later
//! A case as a person reads it: the machine one line per LLC, the tasks, the sequence.
//!
//! ```text
//! 4 CPUs, 250 Hz
//!   llc0 node0   0 .  2 t1 | 1 2  3 x
//!   t0  asleep on 0, may use 0-1
//!   t1  queued on 2
//!    1  wake t0 from cpu1
//! ```
//!
//! Beside a CPU's number stands `.` for idle, a count of unnamed tasks, the tasks it runs by name, `x` for offline.
//! Behind that: `i` only SCHED_IDLE, `w` a pending wakeup, `v` vcpu preempted, `~` isolated. Cores are divided by `|`,
//! clusters by `/`.

use std::fmt;

use crate::scenario::{Case, Core, Llc, TaskState};
use crate::units::Cpu;

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pair.is_empty() {
            writeln!(f, "{}", self.pair.join(" against "))?;
        }
        if !self.note.is_empty() {
            writeln!(f, "{}", self.note)?;
        }
        write!(f, "{} CPUs, {} Hz", self.machine.present().weight(), self.settings.hz)?;
        let features = &self.settings.features;
        features.on.iter_names().try_for_each(|(name, _)| write!(f, ", {name}"))?;
        features.off.iter_names().try_for_each(|(name, _)| write!(f, ", NO_{name}"))?;
        let machine = &self.machine;
        if machine.near_nodes > 1 {
            write!(f, ", {} nodes near each other", machine.near_nodes)?;
        }
        let words = [(machine.far, "far nodes"), (machine.balance_wake, "SD_BALANCE_WAKE")];
        words.iter().filter(|(set, _)| *set).try_for_each(|(_, word)| write!(f, ", {word}"))?;
        if !machine.distances.is_empty() {
            write!(f, ", node distances {}", machine.distances)?;
        }
        writeln!(f)?;
        for (at, llc) in self.machine.llcs.iter().enumerate() {
            writeln!(f, "  llc{at} {}", self.llc_line(llc))?;
        }
        for (p, task) in self.tasks.iter().enumerate() {
            writeln!(f, "  t{p:<2} {}", task_line(task))?;
        }
        for (n, event) in self.events.iter().enumerate() {
            writeln!(f, "  {:>3}  {event}", n + 1)?;
        }
        Ok(())
    }
}

impl Case {
    fn llc_line(&self, llc: &Llc) -> String {
        let mut line = format!("node{}", llc.node);
        if llc.has_idle_cores {
            line += " has_idle_cores";
        }
        if let Some(nr) = llc.nr_idle_scan {
            line += &format!(" nr_idle_scan={nr}");
        }
        for (i, cluster) in llc.clusters.iter().enumerate() {
            for (j, core) in cluster.iter().enumerate() {
                line += match (i, j) {
                    (0, 0) => "  ",
                    (_, 0) => " / ",
                    _ => " | ",
                };
                line += &self.core_text(core);
            }
        }
        line
    }

    fn core_text(&self, core: &Core) -> String {
        let cpus: Vec<String> = core.cpus.iter().map(|cpu| format!("{cpu} {}", self.cpu_text(cpu))).collect();
        let capacity =
            if core.capacity == 1024 { String::new() } else { format!(" @{capacity}", capacity = core.capacity) };
        cpus.join("  ") + &capacity
    }

    fn cpu_text(&self, cpu: Cpu) -> String {
        if self.machine.offline.test(cpu) {
            return "x".to_owned();
        }
        let state = self.cpus.iter().find(|state| state.cpu == cpu).copied().unwrap_or_default();
        let mut runs: Vec<String> = Vec::new();
        let unnamed = u32::from(state.load.fair) + u32::from(state.load.rt);
        if unnamed > 0 {
            runs.push(unnamed.to_string());
        }
        let named = self.tasks.iter().enumerate().filter(|(_, task)| task.queued && task.cpu == cpu);
        runs.extend(named.map(|(p, _)| format!("t{p}")));
        let mut text = if runs.is_empty() { ".".to_owned() } else { runs.join("+") };
        let only_idle = state.load.idle > 0 && state.load.idle == state.load.fair && state.load.rt == 0;
        let marks =
            [(only_idle, 'i'), (state.pending, 'w'), (state.preempted, 'v'), (self.machine.isolated.test(cpu), '~')];
        text.extend(marks.iter().filter(|(set, _)| *set).map(|(_, mark)| mark));
        text
    }
}

fn task_line(task: &TaskState) -> String {
    let mut line = format!("{} on {}", if task.queued { "queued" } else { "asleep" }, task.cpu);
    if let Some(cpus) = task.cpus_ptr {
        line += &format!(", may use {cpus}");
    }
    if let Some(cpus) = task.cpus_preferred {
        line += &format!(", prefers {cpus}");
    }
    let words = [(task.kthread, "kthread"), (task.exiting, "exiting"), (task.policy_idle, "SCHED_IDLE")];
    words.iter().filter(|(set, _)| *set).for_each(|(_, word)| line += &format!(", {word}"));
    if let Some(recent) = task.recent_used_cpu {
        line += &format!(", recent {recent}");
    }
    if task.wakee_flips > 0 {
        line += &format!(", flips {}", task.wakee_flips);
    }
    if let Some(wakee) = task.last_wakee {
        line += &format!(", last woke t{wakee}");
    }
    if (task.load_avg, task.util_avg) != (0, 0) {
        line += &format!(", load {} util {}", task.load_avg, task.util_avg);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_shows_what_matters() {
        let text = r#"
            version = 1
            pair = ["v5.11", "v6.1"]
            [settings]
            features = ["NO_SIS_PROP"]
            [machine]
            llcs = ["node0 has_idle_cores: 0,2 1,3", "node1: 4@446 / 5"]
            offline = "3"
            isolated = "5"
            [[cpu]]
            cpu = 1
            load = "2 idle=2"
            pending = true
            [[task]]
            cpu = 0
            cpus_ptr = "0-1"
            [[task]]
            cpu = 2
            queued = true
            kthread = true
            recent_used_cpu = 4
            [sequence]
            events = ["wake t0 from cpu1 sync", "tick 2"]
        "#;
        let case = Case::parse(text).expect("a case");
        let expected = "v5.11 against v6.1
6 CPUs, 250 Hz, NO_SIS_PROP
  llc0 node0 has_idle_cores  0 .  2 t1 | 1 2iw  3 x
  llc1 node1  4 . @446 / 5 .~
  t0  asleep on 0, may use 0-1
  t1  queued on 2, kthread, recent 4
    1  wake t0 from cpu1 sync
    2  tick 2
";
        assert_eq!(format!("{case:?}"), expected);
    }
}
