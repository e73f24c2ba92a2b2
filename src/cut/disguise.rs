// SPDX-License-Identifier: GPL-2.0-or-later
//! Names and thread ids that say nothing, the same for the same one wherever it stands.

use std::collections::BTreeMap;

use crate::units::Comm;

/// Thread ids that mean the same everywhere: swapper, init, kthreadd.
const PIDS_KEPT: i64 = 2;
/// The first of the new thread ids.
const FIRST_PID: i64 = 1001;

/// Kernel threads that every machine has, by their whole name.
const KERNEL: [&str; 26] = [
    "swapper",
    "<idle>",
    "<...>",
    "kthreadd",
    "rcu_sched",
    "rcu_preempt",
    "rcu_bh",
    "rcu_gp",
    "rcu_par_gp",
    "rcu_tasks_kthre",
    "rcu_tasks_rude_",
    "rcu_tasks_trace",
    "khugepaged",
    "ksmd",
    "kdevtmpfs",
    "kauditd",
    "khungtaskd",
    "oom_reaper",
    "writeback",
    "kintegrityd",
    "kblockd",
    "kswapd",
    "kcompactd",
    "watchdogd",
    "mm_percpu_wq",
    "netns",
];

/// Kernel threads with a number behind the slash: a CPU, a node, or a group of them.
const NUMBERED: [&str; 18] = [
    "swapper",
    "cpuhp",
    "ksoftirqd",
    "ktimers",
    "ktimersoftd",
    "migration",
    "rcuc",
    "watchdog",
    "idle_inject",
    "irq_work",
    "posixcputmr",
    "backlog_napi",
    "rcuop",
    "rcuos",
    "rcuog",
    "rcuob",
    "rcub",
    "rcu_exp_par_gp_kthread_worker",
];

/// What names and thread ids become.
#[derive(Debug, Clone, Default)]
pub struct Disguise {
    pids: BTreeMap<i64, i64>,
    comms: BTreeMap<Comm, Comm>,
    texts: BTreeMap<Vec<u8>, u64>,
}

impl Disguise {
    /// The new thread id. 0, 1, 2 and numbers that are none stay.
    pub fn pid(&mut self, pid: i64) -> i64 {
        if pid <= PIDS_KEPT || pid > i64::from(i32::MAX) {
            return pid;
        }
        let next = FIRST_PID + self.pids.len() as i64;
        *self.pids.entry(pid).or_insert(next)
    }

    /// The new name of a task; that of a kernel thread which every machine has stays.
    pub fn comm(&mut self, name: &[u8]) -> Comm {
        let comm = Comm::new(name);
        if is_kernels(comm.as_bytes()) {
            return comm;
        }
        let next = self.comms.len() + 1;
        let new = || Comm::new(format!("{}t{next}", prefix(comm.as_bytes())).as_bytes());
        *self.comms.entry(comm).or_insert_with(new)
    }

    /// What stands for another text, such as a path.
    pub fn text(&mut self, text: &[u8]) -> Vec<u8> {
        if text.is_empty() {
            return Vec::new();
        }
        let next = self.texts.len() as u64 + 1;
        format!("text{}", self.texts.entry(text.to_vec()).or_insert(next)).into_bytes()
    }

    /// Names and thread ids that were replaced.
    pub fn replaced(&self) -> (u64, u64) {
        (self.comms.len() as u64, self.pids.len() as u64)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name is that of a kernel thread which every machine has.
fn is_kernels(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    if name.is_empty() || KERNEL.contains(&name) {
        return true;
    }
    // kswapd0, kcompactd1.
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if matches!(stem, "kswapd" | "kcompactd") {
        return true;
    }
    let Some((head, tail)) = name.split_once('/') else { return false };
    if head == "kworker" {
        // kworker/3:1, kworker/3:1H, kworker/u8:1.
        let Some((pool, worker)) = tail.split_once(':') else { return false };
        return is_digits(pool.strip_prefix('u').unwrap_or(pool))
            && is_digits(worker.strip_suffix('H').unwrap_or(worker));
    }
    NUMBERED.contains(&head) && is_digits(tail)
}

/// What must stay of a name: `kworker/3:` tells the CPU that the worker is bound to, whatever follows.
fn prefix(name: &[u8]) -> &str {
    let Some(tail) = name.strip_prefix(b"kworker/") else { return "" };
    let digits = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = "kworker/".len() + digits + 1;
    match tail.get(digits) {
        Some(b':') => std::str::from_utf8(&name[..end]).unwrap_or(""),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::bound_cpu;

    fn names() -> Vec<&'static [u8]> {
        vec![
            b"nginx",
            b"a b=c [x]",
            b"\xff\xfe",
            b"swapper/3",
            b"migration/7",
            b"ksoftirqd/0",
            b"kworker/3:1",
            b"kworker/12:0H",
            b"kworker/u8:1",
            b"kworker/3:1-nvme",
            b"kworker/3:1-wifi",
            b"kworker/R-dm-cr",
            b"irq/27-iwlwifi",
            b"jbd2/sda1-8",
            b"t1",
            b"t2",
            b"kswapd0",
            b"migration/x",
            b"migration",
            b"systemd",
            b"123456789012345",
            b"",
        ]
    }

    #[test]
    fn one_name_becomes_one_name_and_two_stay_two() {
        let mut disguise = Disguise::default();
        let new: Vec<Comm> = names().iter().map(|name| disguise.comm(name)).collect();
        for (at, name) in names().iter().enumerate() {
            assert_eq!(disguise.comm(name), new[at]);
            assert!(new[at].as_bytes().len() < 16, "{:?}", new[at]);
            let same = (0..at).filter(|&other| new[other] == new[at]).count();
            assert_eq!(same, 0, "{:?} stands for two", new[at]);
        }
    }

    #[test]
    fn what_a_name_tells_the_machine_stays() {
        let mut disguise = Disguise::default();
        for name in names() {
            assert_eq!(bound_cpu(&disguise.comm(name)), bound_cpu(&Comm::new(name)), "{:?}", Comm::new(name));
        }
    }

    #[test]
    fn nothing_of_the_others_is_left() {
        let mut disguise = Disguise::default();
        for name in ["nginx", "irq/27-iwlwifi", "jbd2/sda1-8", "kworker/R-dm-cr", "systemd", "migration/x"] {
            let new = disguise.comm(name.as_bytes()).to_string();
            assert!(new.starts_with('t') && is_digits(&new[1..]), "{name} becomes {new}");
        }
        assert_eq!(disguise.comm(b"kworker/3:1-nvme").to_string(), "kworker/3:t7");
        for kept in ["swapper/3", "migration/7", "kworker/u8:1", "kworker/12:0H", "kswapd0", "rcu_sched"] {
            assert_eq!(disguise.comm(kept.as_bytes()).to_string(), kept);
        }
        assert_eq!(disguise.replaced(), (7, 0));
        assert_eq!(disguise.text(b"/home/me/secret"), b"text1");
        assert_eq!((disguise.text(b""), disguise.text(b"/home/me/secret")), (Vec::new(), b"text1".to_vec()));
    }

    #[test]
    fn thread_ids_are_numbered_anew() {
        let mut disguise = Disguise::default();
        assert_eq!([0, 1, 2, -1, i64::MAX].map(|pid| disguise.pid(pid)), [0, 1, 2, -1, i64::MAX]);
        assert_eq!([31, 4000, 31].map(|pid| disguise.pid(pid)), [1001, 1002, 1001]);
    }
}
