// SPDX-License-Identifier: GPL-2.0-or-later
//! One value for each CPU, with a note of which were written: whoever mirrors a column asks for what changed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes that are remembered one by one. An event writes a CPU or two; between two decisions there are a few events.
const REMEMBERED: usize = 64;

/// A place in a column's history: which column, and how many writes it has seen. No two columns alive at whatever time
/// have the same, so that one that was swapped for another is never taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    id: u64,
    writes: u64,
}

impl Stamp {
    fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), writes: 0 }
    }
}

/// A column of a table with one row for each CPU. It reads like a slice; a copy has a history of its own.
pub struct Column<T> {
    values: Vec<T>,
    stamp: Stamp,
    log: [u16; REMEMBERED],
}

impl<T> Column<T> {
    /// Its place in its history now.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Hands each row that may have been written after `since` to `row`, some perhaps more than once.
    #[inline]
    pub fn changed_since(&self, since: Stamp, mut row: impl FnMut(usize, &T)) {
        if since == self.stamp {
            return;
        }
        let writes = self.stamp.writes.wrapping_sub(since.writes);
        if since.id != self.stamp.id || writes > REMEMBERED as u64 {
            self.values.iter().enumerate().for_each(|(at, value)| row(at, value));
            return;
        }
        for write in since.writes..self.stamp.writes {
            let at = usize::from(self.log[write as usize % REMEMBERED]);
            if let Some(value) = self.values.get(at) {
                row(at, value);
            }
        }
    }

    /// As many rows as `rows` has, with its values.
    pub fn refill(&mut self, rows: impl IntoIterator<Item = T>) {
        self.values.clear();
        self.values.extend(rows);
        self.stamp = Stamp::fresh();
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Self {
        Self { values, stamp: Stamp::fresh(), log: [0; REMEMBERED] }
    }
}

impl<T> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        Vec::from_iter(rows).into()
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Clone> Clone for Column<T> {
    fn clone(&self) -> Self {
        self.values.clone().into()
    }

    fn clone_from(&mut self, other: &Self) {
        self.values.clone_from(&other.values);
        self.stamp = Stamp::fresh();
    }
}

impl<T> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for Column<T> {
    /// Any row may be written through it.
    fn deref_mut(&mut self) -> &mut [T] {
        self.stamp = Stamp::fresh();
        &mut self.values
    }
}

impl<T> Index<usize> for Column<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.values[at]
    }
}

impl<T> IndexMut<usize> for Column<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        self.log[self.stamp.writes as usize % REMEMBERED] = at as u16;
        self.stamp.writes += 1;
        &mut self.values[at]
    }
}

impl<'a, T> IntoIterator for &'a Column<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Column<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: PartialEq> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<T: Eq> Eq for Column<T> {}

impl<T: Hash> Hash for Column<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(column: &Column<u32>, since: Stamp) -> Vec<usize> {
        let mut rows = Vec::new();
        column.changed_since(since, |at, value| {
            assert_eq!(*value, column[at]);
            rows.push(at);
        });
        rows
    }

    #[test]
    fn rows_written_since_are_told() {
        let mut column = Column::from(vec![0_u32; 5]);
        assert_eq!(changed(&column, Stamp::default()), [0, 1, 2, 3, 4], "nobody saw it before");
        let seen = column.stamp();
        assert!(changed(&column, seen).is_empty());
        column[3] = 7;
        column[1] += 1;
        assert_eq!(changed(&column, seen), [3, 1]);
        let later = column.stamp();
        (0..=REMEMBERED).for_each(|_| column[2] += 1);
        assert_eq!(changed(&column, later), [0, 1, 2, 3, 4], "more than is remembered");
        let seen = column.stamp();
        column.iter_mut().for_each(|value| *value = 9);
        assert_eq!(changed(&column, seen).len(), 5);
    }

    #[test]
    fn another_column_is_never_taken_for_one_that_was_seen() {
        let mut column = Column::from(vec![0_u32; 3]);
        let seen = column.stamp();
        let mut copy = column.clone();
        (column[0], copy[1]) = (1, 1);
        assert_eq!((changed(&column, seen).len(), changed(&copy, seen).len()), (1, 3));
        let seen = column.stamp();
        column.clone_from(&copy);
        assert_eq!(changed(&column, seen).len(), 3);
        std::mem::swap(&mut column, &mut copy);
        assert_eq!(changed(&column, seen).len(), 3);
    }
}
