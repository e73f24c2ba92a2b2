// SPDX-License-Identifier: GPL-2.0-or-later
//! A set of CPUs and the orders in which the kernel walks one.

use std::fmt;
use std::ops::{BitAnd, BitOr};

use crate::units::Cpu;

pub use crate::units::MAX_CPUS;

const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs below [`MAX_CPUS`], like the kernel's `struct cpumask`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpumask([u64; WORDS]);

impl Default for Cpumask {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Cpumask {
    /// No CPU.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// CPUs `0..n`; `n` above [`MAX_CPUS`] counts as [`MAX_CPUS`].
    pub fn first_n(n: usize) -> Self {
        let mut mask = Self::EMPTY;
        for (i, word) in mask.0.iter_mut().enumerate() {
            *word = match n.saturating_sub(i * 64) {
                0 => 0,
                bits if bits >= 64 => u64::MAX,
                bits => (1 << bits) - 1,
            };
        }
        mask
    }

    /// The set of one CPU (`cpumask_of()`).
    pub fn of(cpu: Cpu) -> Self {
        let mut mask = Self::EMPTY;
        mask.set(cpu);
        mask
    }

    /// The mask whose words, lowest CPUs first, are `words`; `None` if one beyond [`MAX_CPUS`] has a bit set.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let mut mask = Self::EMPTY;
        for (i, &word) in words.iter().enumerate() {
            match mask.0.get_mut(i) {
                Some(to) => *to = word,
                None if word == 0 => {}
                None => return None,
            }
        }
        Some(mask)
    }

    /// The words of the mask, lowest CPUs first.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// Adds `cpu` (`cpumask_set_cpu()`).
    #[inline]
    pub fn set(&mut self, cpu: Cpu) {
        if let Some(word) = self.0.get_mut(cpu.index() / 64) {
            *word |= 1 << (cpu.index() % 64);
        }
    }

    /// Removes `cpu` (`cpumask_clear_cpu()`).
    #[inline]
    pub fn clear(&mut self, cpu: Cpu) {
        if let Some(word) = self.0.get_mut(cpu.index() / 64) {
            *word &= !(1 << (cpu.index() % 64));
        }
    }

    /// Adds or removes `cpu`.
    #[inline]
    pub fn assign(&mut self, cpu: Cpu, member: bool) {
        if member {
            self.set(cpu);
        } else {
            self.clear(cpu);
        }
    }

    /// Whether `cpu` is in the set (`cpumask_test_cpu()`).
    #[inline]
    pub fn test(&self, cpu: Cpu) -> bool {
        self.0.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 != 0)
    }

    /// Number of CPUs in the set (`cpumask_weight()`).
    #[inline]
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set has no CPU.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether each CPU of `self` is in `other` (`cpumask_subset()`).
    #[inline]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.and_not(other).is_empty()
    }

    /// Whether the two sets have a CPU in common (`cpumask_intersects()`).
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        !(*self & *other).is_empty()
    }

    /// The CPUs of `self` that are not in `other` (`cpumask_andnot()`).
    #[inline]
    pub fn and_not(&self, other: &Self) -> Self {
        let mut mask = *self;
        for (word, other) in mask.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
        mask
    }

    /// The lowest CPU (`cpumask_first()`).
    #[inline]
    pub fn first(&self) -> Option<Cpu> {
        self.next_from(0)
    }

    /// The lowest CPU whose number is at least `from` (`cpumask_next(from - 1)`).
    #[inline]
    pub fn next_from(&self, from: usize) -> Option<Cpu> {
        if from >= MAX_CPUS {
            return None;
        }
        let mut i = from / 64;
        let mut word = self.0[i] & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(Cpu((i * 64) as u16 + word.trailing_zeros() as u16));
            }
            i += 1;
            word = *self.0.get(i)?;
        }
    }

    /// The CPUs in ascending order (`for_each_cpu()`).
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter { mask: self, next: 0, end: MAX_CPUS, wrap_to: None }
    }

    /// The CPUs from `start` upward, then from 0 up to below `start` (`for_each_cpu_wrap()`).
    ///
    /// The mask is borrowed: a loop whose body changes the mask it walks, as the kernel's core search does, asks
    /// [`Self::next_from`] itself.
    #[inline]
    pub fn iter_wrap(&self, start: usize) -> Iter<'_> {
        Iter { mask: self, next: start, end: MAX_CPUS, wrap_to: Some(start) }
    }
}

/// The CPUs of a mask in one of the kernel's orders.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    mask: &'a Cpumask,
    next: usize,
    end: usize,
    wrap_to: Option<usize>,
}

impl Iterator for Iter<'_> {
    type Item = Cpu;

    #[inline]
    fn next(&mut self) -> Option<Cpu> {
        loop {
            match self.mask.next_from(self.next) {
                Some(cpu) if cpu.index() < self.end => {
                    self.next = cpu.index() + 1;
                    return Some(cpu);
                }
                _ => {
                    self.end = self.wrap_to.take()?;
                    self.next = 0;
                }
            }
        }
    }
}

impl BitAnd for Cpumask {
    type Output = Self;

    #[inline]
    fn bitand(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
        self
    }
}

impl BitOr for Cpumask {
    type Output = Self;

    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
        self
    }
}

impl FromIterator<Cpu> for Cpumask {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        let mut mask = Self::EMPTY;
        for cpu in cpus {
            mask.set(cpu);
        }
        mask
    }
}

impl fmt::Display for Cpumask {
    /// As the kernel prints a cpulist: `0-3,8`. The empty set is `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut from = 0;
        while let Some(first) = self.next_from(from) {
            let mut last = first.index();
            while last + 1 < MAX_CPUS && self.test(Cpu((last + 1) as u16)) {
                last += 1;
            }
            if !text.is_empty() {
                text.push(',');
            }
            text += &first.to_string();
            if last > first.index() {
                text += &format!("-{last}");
            }
            from = last + 1;
        }
        f.pad(if text.is_empty() { "none" } else { &text })
    }
}

impl fmt::Debug for Cpumask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// Why a cpulist could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpulistError {
    /// Something that is neither a number nor a range.
    #[error("cpulist {list:?}: {part:?} is not a CPU or a range of CPUs such as 0-3,8")]
    Syntax {
        /// The whole list.
        list: String,
        /// The part at fault.
        part: String,
    },
    /// A CPU that no mask can hold.
    #[error("cpulist {list:?}: CPU {cpu} is beyond the largest supported, {}", MAX_CPUS - 1)]
    Range {
        /// The whole list.
        list: String,
        /// The CPU at fault.
        cpu: usize,
    },
}

impl std::str::FromStr for Cpumask {
    type Err = CpulistError;

    /// Reads a cpulist: numbers and ranges separated by commas; an empty text is the empty set.
    fn from_str(list: &str) -> Result<Self, CpulistError> {
        let mut mask = Self::EMPTY;
        for part in list.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let syntax = || CpulistError::Syntax { list: list.to_owned(), part: part.to_owned() };
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.parse().map_err(|_| syntax())?;
            let last: usize = last.parse().map_err(|_| syntax())?;
            if first > last {
                return Err(syntax());
            }
            if last >= MAX_CPUS {
                return Err(CpulistError::Range { list: list.to_owned(), cpu: last });
            }
            (first..=last).for_each(|cpu| mask.set(Cpu(cpu as u16)));
        }
        Ok(mask)
    }
}

impl serde::Serialize for Cpumask {
    /// As a cpulist; the empty set as an empty text, which is what [`Self::from_str`](std::str::FromStr) reads.
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.is_empty() { to.serialize_str("") } else { to.collect_str(self) }
    }
}

impl<'de> serde::Deserialize<'de> for Cpumask {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = std::borrow::Cow::<'de, str>::deserialize(from)?;
        list.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(list: &str) -> Cpumask {
        list.parse().expect("a cpulist")
    }

    fn cpus(iter: Iter<'_>) -> Vec<u16> {
        iter.map(|cpu| cpu.0).collect()
    }

    #[test]
    fn wrap_walks_from_start_and_ends_before_it() {
        let mask = mask("0,2,63-65,200");
        assert_eq!(cpus(mask.iter_wrap(64)), [64, 65, 200, 0, 2, 63]);
        assert_eq!(cpus(mask.iter_wrap(0)), [0, 2, 63, 64, 65, 200]);
        assert_eq!(cpus(mask.iter_wrap(1023)), [0, 2, 63, 64, 65, 200]);
        assert_eq!(cpus(mask.iter_wrap(1024)), [0, 2, 63, 64, 65, 200]);
        assert_eq!(cpus(Cpumask::EMPTY.iter_wrap(3)), [0u16; 0]);
    }

    #[test]
    fn lists_print_as_they_were_read() {
        for list in ["0", "0-3,8", "63-64", "1,3,5", "1020-1023", "none"] {
            let text = if list == "none" { "" } else { list };
            assert_eq!(mask(text).to_string(), list);
        }
    }

    #[test]
    fn bad_lists_are_refused_by_name() {
        for list in ["x", "3-1", "1-", "0x3", "-1"] {
            let error = list.parse::<Cpumask>().expect_err(list);
            assert!(error.to_string().contains(list), "{error}");
        }
        assert!(matches!("5000".parse::<Cpumask>(), Err(CpulistError::Range { cpu: 5000, .. })));
    }

    #[test]
    fn sets_behave_as_sets() {
        let (a, b) = (mask("0-7"), mask("4-11,100"));
        assert_eq!((a & b).to_string(), "4-7");
        assert_eq!((a | b).to_string(), "0-11,100");
        assert_eq!(b.and_not(&a).to_string(), "8-11,100");
        assert_eq!(b.weight(), 9);
        assert!((a & b).is_subset(&a) && a.intersects(&b) && !a.is_subset(&b));
        assert_eq!(Cpumask::first_n(70).weight(), 70);
        assert_eq!(Cpumask::first_n(5000).weight() as usize, MAX_CPUS);
    }
}
