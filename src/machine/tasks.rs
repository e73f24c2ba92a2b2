// SPDX-License-Identifier: GPL-2.0-or-later
//! Which task a pid is, and the slots that tasks live in.

use std::collections::{BTreeMap, VecDeque};

use crate::machine::TaskId;
use crate::units::Pid;

/// PID_MAX_LIMIT of 64-bit kernels: a table up to here, a map above.
const TABLE_MAX: usize = 1 << 22;
const NONE: u32 = u32::MAX;
/// A slot rests until so many others were freed: somebody's last_wakee may still name it.
const REST: usize = 64;

/// The live pids, and slots that are free again.
#[derive(Debug, Clone, Default)]
pub(super) struct PidMap {
    table: Vec<u32>,
    far: BTreeMap<Pid, TaskId>,
    free: VecDeque<TaskId>,
}

impl PidMap {
    #[inline]
    pub(super) fn get(&self, pid: Pid) -> Option<TaskId> {
        match usize::try_from(pid.0) {
            Ok(at) if at < TABLE_MAX => self.table.get(at).copied().filter(|&id| id != NONE).map(TaskId),
            _ => self.far.get(&pid).copied(),
        }
    }

    pub(super) fn insert(&mut self, pid: Pid, id: TaskId) {
        match usize::try_from(pid.0) {
            Ok(at) if at < TABLE_MAX => {
                if self.table.len() <= at {
                    self.table.resize(at + 1, NONE);
                }
                self.table[at] = id.0;
            }
            _ => {
                self.far.insert(pid, id);
            }
        }
    }

    /// Forgets the pid and frees the slot.
    pub(super) fn remove(&mut self, pid: Pid, id: TaskId) {
        match usize::try_from(pid.0) {
            Ok(at) if at < TABLE_MAX => {
                if let Some(entry) = self.table.get_mut(at) {
                    *entry = NONE;
                }
            }
            _ => {
                self.far.remove(&pid);
            }
        }
        self.free.push_back(id);
    }

    /// The task is called by another pid from now on.
    pub(super) fn rename(&mut self, from: Pid, to: Pid, id: TaskId) {
        self.remove(from, id);
        self.free.pop_back();
        self.insert(to, id);
    }

    /// A slot that may be used again.
    pub(super) fn take_free(&mut self) -> Option<TaskId> {
        (self.free.len() > REST).then(|| self.free.pop_front()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_can_come_back_as_another_task() {
        let mut pids = PidMap::default();
        pids.insert(Pid(7), TaskId(40));
        assert_eq!(pids.get(Pid(7)), Some(TaskId(40)));
        pids.remove(Pid(7), TaskId(40));
        assert_eq!(pids.get(Pid(7)), None);
        pids.insert(Pid(7), TaskId(41));
        assert_eq!(pids.get(Pid(7)), Some(TaskId(41)));
    }

    #[test]
    fn a_slot_rests_before_it_is_used_again() {
        let mut pids = PidMap::default();
        for n in 0..=REST as u32 {
            assert_eq!(pids.take_free(), None);
            pids.remove(Pid(n as i32 + 1), TaskId(100 + n));
        }
        assert_eq!(pids.take_free(), Some(TaskId(100)));
        assert_eq!(pids.take_free(), None);
    }

    #[test]
    fn pids_beyond_the_kernels_limit_do_not_grow_the_table() {
        let mut pids = PidMap::default();
        pids.insert(Pid(i32::MAX), TaskId(9));
        assert_eq!(pids.get(Pid(i32::MAX)), Some(TaskId(9)));
        assert!(pids.table.is_empty());
    }
}
