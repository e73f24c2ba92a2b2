// SPDX-License-Identifier: GPL-2.0-or-later
//! Sets of CPUs as a machine of 200,000 tasks keeps them: [`Cpumask`] has 128 bytes, and most are alike or small.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::cpumask::Cpumask;
use crate::units::Cpu;

/// A task's set of CPUs, which it shares with the tasks that it has it from until one of them is changed.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskMask(Arc<Cpumask>);

impl TaskMask {
    /// Whether both are one mask in memory, and thus have the same CPUs.
    #[inline]
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for TaskMask {
    type Target = Cpumask;

    #[inline]
    fn deref(&self) -> &Cpumask {
        &self.0
    }
}

impl DerefMut for TaskMask {
    fn deref_mut(&mut self) -> &mut Cpumask {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Cpumask> for TaskMask {
    fn from(mask: Cpumask) -> Self {
        Self(Arc::new(mask))
    }
}

impl PartialEq<Cpumask> for TaskMask {
    fn eq(&self, mask: &Cpumask) -> bool {
        **self == *mask
    }
}

impl fmt::Debug for TaskMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for TaskMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// Words of a [`SmallMask`] that are always there.
const WORDS: usize = 2;

/// A set of CPUs of which those below 128 take 16 bytes, and the others memory only where there are some.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SmallMask {
    low: [u64; WORDS],
    /// All of them, if one is beyond `low`.
    all: Option<Box<Cpumask>>,
}

impl SmallMask {
    pub(super) const EMPTY: Self = Self { low: [0; WORDS], all: None };

    #[inline]
    pub(super) fn test(&self, cpu: Cpu) -> bool {
        match (&self.all, self.low.get(cpu.index() / 64)) {
            (Some(all), _) => all.test(cpu),
            (None, word) => word.is_some_and(|word| word >> (cpu.index() % 64) & 1 != 0),
        }
    }

    pub(super) fn set(&mut self, cpu: Cpu) {
        match (&mut self.all, self.low.get_mut(cpu.index() / 64)) {
            (Some(all), _) => all.set(cpu),
            (None, Some(word)) => *word |= 1 << (cpu.index() % 64),
            (None, None) => {
                let mut all = self.mask();
                all.set(cpu);
                self.all = Some(Box::new(all));
            }
        }
    }

    /// As a set of its full size.
    #[inline]
    pub(super) fn mask(&self) -> Cpumask {
        match &self.all {
            Some(all) => **all,
            None => Cpumask::from_words(&self.low).expect("fewer words than a mask has"),
        }
    }

    #[inline]
    pub(super) fn weight(&self) -> u32 {
        match &self.all {
            Some(all) => all.weight(),
            None => self.low.iter().map(|word| word.count_ones()).sum(),
        }
    }
}

impl From<&Cpumask> for SmallMask {
    #[inline]
    fn from(mask: &Cpumask) -> Self {
        let (low, rest) = mask.words().split_at(WORDS);
        if rest.iter().any(|&word| word != 0) {
            return Self { low: [0; WORDS], all: Some(Box::new(*mask)) };
        }
        Self { low: [low[0], low[1]], all: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_mask_is_the_mask() {
        let mut rng = oorandom::Rand32::new(5);
        for limit in [4, 64, 128, 200, 1024] {
            for _ in 0..50 {
                let (mut mask, mut small) = (Cpumask::EMPTY, SmallMask::EMPTY);
                for _ in 0..rng.rand_range(0..20) {
                    let cpu = Cpu::new(rng.rand_range(0..limit) as usize).expect("a CPU");
                    mask.set(cpu);
                    small.set(cpu);
                    assert!(small.test(cpu));
                }
                assert_eq!((small.mask(), small.weight()), (mask, mask.weight()), "{limit}");
                let again = SmallMask::from(&mask);
                assert_eq!(again.mask(), mask);
                let probe = Cpu::new(rng.rand_range(0..limit) as usize).expect("a CPU");
                assert_eq!((small.test(probe), again.test(probe)), (mask.test(probe), mask.test(probe)));
            }
        }
    }

    #[test]
    fn a_changed_task_mask_leaves_its_origin_alone() {
        let parent = TaskMask::from(Cpumask::first_n(4));
        let mut child = parent.clone();
        child.clear(Cpu(0));
        assert_eq!((parent.weight(), child.weight()), (4, 3));
        assert!(parent == Cpumask::first_n(4) && parent != child);
    }

    #[test]
    fn what_is_kept_of_a_task_stays_small() {
        use crate::machine::Task;
        use crate::machine::book::TaskBook;
        assert!(size_of::<SmallMask>() <= 24 && size_of::<TaskMask>() <= 8);
        assert!(size_of::<Task>() <= 160, "{}", size_of::<Task>());
        assert!(size_of::<TaskBook>() <= 160, "{}", size_of::<TaskBook>());
    }
}
