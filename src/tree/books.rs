// SPDX-License-Identifier: GPL-2.0-or-later
//! What a walk of the C read and wrote, and how well that is known.
//!
//! The C tells kinds of input, not whose: idleness is booked by the CPU of each check, the rest by whom the kind can be
//! about. Where that is several, all of them are leaned on.

use std::sync::LazyLock;

use sisdiff_tree::extract::reads;

use super::answer::Answer;
use super::digest::Digest;
use crate::fair::Hidden;
use crate::machine::{Inputs, Provenance, State};
use crate::topology::SharedId;
use crate::units::Cpu;
use crate::wakeup::Wakeup;

/// The kinds of input behind a mask of the C, a table for each byte of it.
static TABLES: LazyLock<[[Inputs; 256]; 4]> = LazyLock::new(|| {
    let kind = |at: usize| reads::KINDS.get(at).and_then(|name| Inputs::from_name(name)).unwrap_or_default();
    let of_byte = |byte: usize, bits: usize| {
        (0..8).filter(|bit| bits >> bit & 1 != 0).fold(Inputs::empty(), |all, bit| all | kind(byte * 8 + bit))
    };
    std::array::from_fn(|byte| std::array::from_fn(|bits| of_byte(byte, bits)))
});

/// The kinds of input behind the bits of the C; those above 32 are of what was written.
#[inline]
fn inputs(mask: u64) -> Inputs {
    let [a, b, c, d, ..] = mask.to_le_bytes();
    TABLES[0][usize::from(a)] | TABLES[1][usize::from(b)] | TABLES[2][usize::from(c)] | TABLES[3][usize::from(d)]
}

/// Kinds of input that are facts of run queues.
const OF_RQ: Inputs = Inputs::NR_RUNNING
    .union(Inputs::POLICY)
    .union(Inputs::RQ_LOAD)
    .union(Inputs::RQ_UTIL)
    .union(Inputs::CAPACITY)
    .union(Inputs::AVG_IDLE)
    .union(Inputs::IDLE_STATE);

/// What was read, and how well it was known when it was.
#[inline]
pub(super) fn read(
    state: &State,
    before: &Known,
    w: &Wakeup,
    answer: &Answer<'_>,
    digest: &Digest,
    slow: bool,
) -> (Inputs, Provenance) {
    let told = inputs(answer.reads());
    let mut read = told | Inputs::PREV_CPU;
    // A waker that promises to sleep is asked whether it is exiting.
    read.set(Inputs::TASK_FLAGS, read.contains(Inputs::TASK_FLAGS) || read.contains(Inputs::SYNC) && w.sync);
    let mut leaned_on = w.known.of(read) | digest.leaned_on;
    read |= digest.read;
    let of_rq = told & OF_RQ;
    if slow {
        leaned_on |= state.rq.known.iter().fold(Provenance::TRACED, |all, known| all | known.of(of_rq));
    } else {
        for cpu in [w.this_cpu, w.prev_cpu] {
            leaned_on |= state.rq.known.get(cpu.index()).copied().unwrap_or_default().of(of_rq);
        }
    }
    let of_task =
        Inputs::AFFINITY | Inputs::TASK_FLAGS | Inputs::TASK_LOAD | Inputs::TASK_UTIL | Inputs::UCLAMP | Inputs::NUMA;
    leaned_on |= state.tasks[w.p].known.of(read & (of_task - Inputs::TASK_FLAGS));
    leaned_on |= state.tasks[w.current].known.of(read & (Inputs::TASK_FLAGS | Inputs::TASK_LOAD));
    leaned_on |= before.of(read);
    (read, leaned_on)
}

/// How well hidden state was known before the call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    recent: Provenance,
    flips: Provenance,
    cores: Provenance,
    nr_idle_scan: Provenance,
    cpu: Provenance,
}

impl Known {
    /// `asym`: the search went through the asymmetric domain.
    pub(super) fn new(state: &State, hidden: &Hidden, w: &Wakeup, target: Cpu, asym: bool) -> Self {
        let topology = &state.topology;
        let known = |id: Option<SharedId>| id.map_or(Provenance::TRACED, |id| hidden.shared[id].known);
        // The search asks the shared state of its target.
        let (llc, balance) = (known(topology.llc_shared(target)), known(topology.balance_shared(target)));
        Self {
            recent: hidden.tasks[w.p.index()].known,
            flips: wakee_flips(state, hidden, w),
            cores: llc | balance,
            nr_idle_scan: if asym { balance } else { llc },
            cpu: hidden.cpus[w.this_cpu.index()].known,
        }
    }

    fn of(&self, read: Inputs) -> Provenance {
        self.recent.of(read & Inputs::RECENT_USED_CPU)
            | self.flips.of(read & Inputs::WAKEE_FLIPS)
            | self.cores.of(read & Inputs::HAS_IDLE_CORES)
            | self.nr_idle_scan.of(read & Inputs::NR_IDLE_SCAN)
            | self.cpu.of(read & (Inputs::SCAN_COST | Inputs::AVG_IDLE))
    }
}

/// wake_wide() wants both tasks' flips to reach the size of the LLC: one that is known to stay below decides alone.
fn wakee_flips(state: &State, hidden: &Hidden, w: &Wakeup) -> Provenance {
    let factor = state.topology.sd_llc_size(w.this_cpu);
    let of = |id: crate::machine::TaskId| &hidden.tasks[id.index()];
    let settles = |id| of(id).wakee_flips < factor && of(id).known.of(Inputs::WAKEE_FLIPS).is_known();
    match (settles(w.current), settles(w.p)) {
        (true, _) => of(w.current).known,
        (false, true) => of(w.p).known,
        (false, false) => of(w.current).known | of(w.p).known,
    }
}
