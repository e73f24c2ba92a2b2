// SPDX-License-Identifier: GPL-2.0-or-later
//! The steps of a recording, as a value: shown by `--dry-run`, carried out otherwise.

use std::path::PathBuf;

use crate::record::probes::Probe;

/// The events that a replay wants.
pub const EVENTS: &[&str] = &[
    "sched_switch",
    "sched_wakeup",
    "sched_waking",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
];

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The folder that it goes to.
    pub folder: PathBuf,
    /// The command to record, with its arguments.
    pub command: Vec<String>,
    /// Size of the ring buffer of each CPU, KB.
    pub buffer_kb: u32,
    /// Also record when CPUs go idle (power:cpu_idle).
    pub idle: bool,
}

/// What was found of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Where tracefs is.
    pub tracefs: PathBuf,
    /// The probes to arm.
    pub probes: Vec<Probe>,
    /// The kernel has schedstat.
    pub schedstat: bool,
}

/// One step. Whatever happens between [`Self::Arm`] and [`Self::Disarm`], the latter is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Make the folder.
    Folder(PathBuf),
    /// Write a snapshot of the machine: its CPUs, caches, nodes, and the scheduler's settings.
    Snapshot(PathBuf),
    /// Copy a file.
    Copy {
        /// From.
        from: PathBuf,
        /// To.
        to: PathBuf,
    },
    /// Add a probe to `kprobe_events`.
    Arm {
        /// The file.
        to: PathBuf,
        /// The probe.
        probe: Probe,
    },
    /// Run a program and wait for it.
    Run(Vec<String>),
    /// Take a probe away again.
    Disarm {
        /// The file.
        to: PathBuf,
        /// Its name.
        name: String,
    },
}

/// The steps in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Them.
    pub steps: Vec<Step>,
    /// Where the recorded command's exit code is written.
    pub exit_code: PathBuf,
    /// The recording.
    pub trace: PathBuf,
}

impl Plan {
    /// The steps of `wish` on a machine with `facts`.
    pub fn new(wish: &Wish, facts: &Facts) -> Self {
        let folder = &wish.folder;
        let (trace, exit_code) = (folder.join("trace.dat"), folder.join(".exit-code"));
        let kprobes = facts.tracefs.join("kprobe_events");
        let mut steps = vec![Step::Folder(folder.clone()), Step::Snapshot(folder.join("topology.tar.gz"))];
        let schedstat = |name: &str| {
            let from = PathBuf::from("/proc/schedstat");
            facts.schedstat.then(|| Step::Copy { from, to: folder.join(name) })
        };
        steps.extend(schedstat("schedstat-before.txt"));
        let arm = |probe: &Probe| Step::Arm { to: kprobes.clone(), probe: probe.clone() };
        steps.extend(facts.probes.iter().map(arm));
        steps.push(Step::Run(command(wish, facts, &trace, &exit_code)));
        let disarm = |probe: &Probe| Step::Disarm { to: kprobes.clone(), name: probe.name.clone() };
        steps.extend(facts.probes.iter().rev().map(disarm));
        steps.extend(schedstat("schedstat-after.txt"));
        Self { steps, exit_code, trace }
    }

    /// The steps as a shell would do them, one a line.
    pub fn describe(&self) -> String {
        self.steps.iter().map(|step| step.describe() + "\n").collect()
    }
}

/// trace-cmd's exit code is its own: a shell in between writes down the command's.
fn command(wish: &Wish, facts: &Facts, trace: &std::path::Path, exit_code: &std::path::Path) -> Vec<String> {
    let mut words: Vec<String> = ["trace-cmd", "record", "-C", "mono", "-b"].map(str::to_owned).to_vec();
    words.push(wish.buffer_kb.to_string());
    // trace-cmd hides its own threads otherwise, and with them part of what their CPUs did.
    words.push("--no-filter".to_owned());
    let idle = wish.idle.then(|| "power:cpu_idle".to_owned());
    let events = EVENTS.iter().map(|event| format!("sched:{event}")).chain(idle);
    let probes = facts.probes.iter().map(|probe| format!("kprobes:{}", probe.name));
    for event in events.chain(probes) {
        words.extend(["-e".to_owned(), event]);
    }
    words.extend(["-o".to_owned(), trace.display().to_string(), "--".to_owned()]);
    words.extend(["sh", "-c", "\"$@\"; echo $? > \"$0\""].map(str::to_owned));
    words.push(exit_code.display().to_string());
    words.extend(wish.command.iter().cloned());
    words
}

impl Step {
    fn describe(&self) -> String {
        match self {
            Self::Folder(path) => format!("mkdir -p {}", shell(&path.display().to_string())),
            Self::Snapshot(to) => {
                format!("# snapshot of /sys/devices/system, debugfs sched, /proc to {}", to.display())
            }
            Self::Copy { from, to } => {
                format!("cat {} > {}", from.display(), shell(&to.display().to_string()))
            }
            Self::Arm { to, probe } => format!("echo {} >> {}", shell(&probe.definition), to.display()),
            Self::Run(words) => words.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" "),
            Self::Disarm { to, name } => format!("echo -:kprobes/{name} >> {}", to.display()),
        }
    }
}

/// A word as a shell takes it.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(name: &str) -> Probe {
        Probe { name: name.to_owned(), definition: format!("p:kprobes/{name} f a=$arg1:s32") }
    }

    fn plan(probes: Vec<Probe>, schedstat: bool) -> Plan {
        let wish = Wish {
            folder: "out".into(),
            command: ["sh", "-c", "it's"].map(str::to_owned).to_vec(),
            buffer_kb: 4096,
            idle: false,
        };
        Plan::new(&wish, &Facts { tracefs: "/t".into(), probes, schedstat })
    }

    #[test]
    fn every_probe_that_is_armed_is_taken_away_after_the_recording() {
        let plan = plan(vec![probe("a"), probe("b")], true);
        let is_run = |step: &Step| matches!(step, Step::Run(_));
        let run = plan.steps.iter().position(is_run).expect("a recording");
        let (before, after) = plan.steps.split_at(run);
        let armed: Vec<&str> = before
            .iter()
            .filter_map(|step| match step {
                Step::Arm { probe, .. } => Some(probe.name.as_str()),
                _ => None,
            })
            .collect();
        let mut disarmed: Vec<&str> = after
            .iter()
            .filter_map(|step| match step {
                Step::Disarm { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        disarmed.reverse();
        assert_eq!(armed, ["a", "b"]);
        assert_eq!(armed, disarmed);
    }

    #[test]
    fn a_plan_reads_as_shell() {
        let text = plan(Vec::new(), false).describe();
        assert!(!text.contains("kprobe") && !text.contains("schedstat"), "{text}");
        assert!(text.contains("-e sched:sched_waking "), "{text}");
        assert!(
            text.trim_end().ends_with("-- sh -c '\"$@\"; echo $? > \"$0\"' out/.exit-code sh -c 'it'\\''s'"),
            "{text}"
        );
    }
}
