// SPDX-License-Identifier: GPL-2.0-or-later
//! How large the machines were.

/// Cases by the number of CPUs of their machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes([u64; 257]);

impl Default for Sizes {
    fn default() -> Self {
        Self([0; 257])
    }
}

impl Sizes {
    /// One more machine of `cpus` CPUs.
    pub fn add(&mut self, cpus: usize) {
        self.0[cpus.min(256)] += 1;
    }

    /// Adds what others counted.
    pub fn extend_from(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, n)| *sum += n);
    }

    /// Machines of `from` to `to` CPUs.
    pub fn within(&self, from: usize, to: usize) -> u64 {
        self.0[from.min(256)..=to.min(256)].iter().sum()
    }

    /// All machines.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The size in the middle.
    pub fn median(&self) -> usize {
        let mut below = 0;
        let half = self.all().div_ceil(2);
        self.0
            .iter()
            .position(|n| {
                below += n;
                below >= half
            })
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let mut sizes = Sizes::default();
        for cpus in [1, 2, 8, 64, 300] {
            sizes.add(cpus);
        }
        assert_eq!((sizes.median(), sizes.all(), sizes.within(64, 256)), (8, 5, 2));
    }
}
