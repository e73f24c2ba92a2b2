// SPDX-License-Identifier: GPL-2.0-or-later
//! Addresses → names of functions, from the copy of /proc/kallsyms that a trace.dat holds.

/// Names by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// Sorted by address; of several names for one address the first in the file.
    by_address: Vec<(u64, String)>,
}

impl Symbols {
    /// Reads lines of `address type name [module]`; lines of another form are none.
    pub(super) fn parse(kallsyms: &[u8]) -> Symbols {
        let text = String::from_utf8_lossy(kallsyms);
        let mut by_address: Vec<(u64, String)> = text.lines().filter_map(line).collect();
        by_address.sort_by_key(|(address, _)| *address);
        by_address.dedup_by_key(|(address, _)| *address);
        Symbols { by_address }
    }

    /// The function that `address` lies in, or the address where none is known.
    ///
    /// The tracer stores where the function calls it, which may be some bytes after its start.
    pub(super) fn name(&self, address: u64) -> String {
        let above = self.by_address.partition_point(|(start, _)| *start <= address);
        match above.checked_sub(1).and_then(|at| self.by_address.get(at)) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

fn line(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|&address| address != 0)?;
    words.next().filter(|kind| kind.len() == 1)?;
    Some((address, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_starts_before_it() {
        let symbols = Symbols::parse(b"ffff0010 T second\nffff0000 t first\nbad line\nffff0010 T alias\n0 T none\n");
        assert_eq!(symbols.name(0xffff_0000), "first");
        assert_eq!(symbols.name(0xffff_0004), "first");
        assert_eq!(symbols.name(0xffff_0014), "second");
        assert_eq!(symbols.name(0x10), "0x10");
    }
}
