// SPDX-License-Identifier: GPL-2.0-or-later
//! How long idle CPUs took to begin in a recording, by how long they had been idle: a CPU that went idle just now is
//! fast, one that slept for milliseconds is not, least of all a virtual one that its host has put aside.

use crate::simulate::histogram::Histogram;

/// Classes of idle times: below 16 µs, each next one twice as long, from 2 ms on.
const CLASSES: usize = 9;
const SHORTEST_NS: u64 = 16_000;
/// Into how many equal parts the times of a class are cut.
const PARTS: usize = 512;
/// Times below which a class is not believed alone.
const TIMES_MIN: u64 = 8;

fn class(idle_ns: u64) -> usize {
    (idle_ns / SHORTEST_NS).checked_ilog2().map_or(0, |bits| bits as usize + 1).min(CLASSES - 1)
}

/// Times from a waking to running on a CPU that was idle, as they come.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    local: Histogram,
    remote: Vec<Histogram>,
}

impl Taken {
    /// One more: woken on the same CPU, from its interrupt, or by another one; the CPU had been idle so long.
    pub fn add(&mut self, is_local: bool, idle_ns: u64, latency_ns: u64) {
        if is_local {
            return self.local.add(latency_ns);
        }
        self.remote.resize(CLASSES, Histogram::default());
        self.remote[class(idle_ns)].add(latency_ns);
    }

    /// What a simulation draws from; a class with too few times has its neighbours' in it.
    pub fn finish(&self) -> IdleExits {
        let mut remote = Vec::new();
        for at in (0..CLASSES).filter(|_| !self.remote.is_empty()) {
            let mut merged = self.remote[at].clone();
            for off in 1..CLASSES {
                if merged.count() >= TIMES_MIN {
                    break;
                }
                at.checked_sub(off).into_iter().for_each(|below| merged.merge(&self.remote[below]));
                self.remote.get(at + off).into_iter().for_each(|above| merged.merge(above));
            }
            remote.push(merged.quantiles(PARTS));
        }
        IdleExits { local: self.local.quantiles(PARTS), remote }
    }
}

/// The times that idle CPUs take, ns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdleExits {
    local: Vec<u64>,
    /// By class of idle time.
    remote: Vec<Vec<u64>>,
}

impl IdleExits {
    /// What a CPU takes that was idle for so long, and is woken by itself or by another one; `random` says which of the
    /// recorded times. 0 where none was recorded.
    pub fn draw(&self, is_local: bool, idle_ns: u64, random: u64) -> u64 {
        let times = if is_local { Some(&self.local) } else { self.remote.get(class(idle_ns)) };
        times.filter(|times| !times.is_empty()).map_or(0, |times| times[(random % times.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_idle_times_have_short_exits_and_few_are_not_believed() {
        assert_eq!([class(0), class(16_000), class(33_000), class(5_000_000)], [0, 1, 2, 8]);
        let mut taken = Taken::default();
        assert_eq!(taken.finish().draw(false, 5, 5), 0);
        for _ in 0..20 {
            taken.add(false, 1_000, 50);
            taken.add(true, 1_000, 7);
        }
        for _ in 0..TIMES_MIN {
            taken.add(false, 10_000_000, 60);
        }
        taken.add(false, 1_000_000, 63);
        let exits = taken.finish();
        assert_eq!((exits.draw(false, 0, 3), exits.draw(false, 20_000_000, 3)), (50, 60));
        assert_eq!(exits.draw(true, 20_000_000, 3), 7);
        // One alone is mixed with its neighbours.
        assert_eq!(exits.draw(false, 1_500_000, 0), 60);
    }
}
