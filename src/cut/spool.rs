// SPDX-License-Identifier: GPL-2.0-or-later
//! Events of a text in the order of CPUs: a text has them in the order of time, a trace.dat CPU by CPU. They wait in a
//! file without a name; memory holds one block for each CPU.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use tracecmd_parse::{Item, RawEvent};

/// Bytes of a CPU's events that are gathered before they are written.
const BLOCK: usize = 64 << 10;
const EVENT: u8 = 0;
const LOST: u8 = 1;
const LOST_COUNTED: u8 = 2;
/// Bytes before the data: what, time, id or nothing, length.
const HEAD: usize = 1 + 8 + 2 + 4;

#[derive(Debug, Default)]
struct Queue {
    open: Vec<u8>,
    /// Offset and length of the written blocks.
    blocks: Vec<(u64, usize)>,
}

/// The waiting events.
#[derive(Debug)]
pub struct Spool {
    file: File,
    end: u64,
    cpus: BTreeMap<u32, Queue>,
    /// Time of the earliest event, ns.
    pub first_ns: Option<u64>,
}

impl Spool {
    /// An empty one.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, end: 0, cpus: BTreeMap::new(), first_ns: None })
    }

    /// Takes an item in.
    ///
    /// # Errors
    /// The operating system's.
    pub fn push(&mut self, item: &Item<'_>) -> io::Result<()> {
        match *item {
            Item::Event(raw) => {
                self.first_ns = Some(self.first_ns.map_or(raw.ts_ns, |first| first.min(raw.ts_ns)));
                self.put(raw.cpu, EVENT, raw.ts_ns, raw.id, raw.data)
            }
            Item::Lost { cpu, ts_ns, count: None } => self.put(cpu, LOST, ts_ns, 0, &[]),
            Item::Lost { cpu, ts_ns, count: Some(count) } => {
                self.put(cpu, LOST_COUNTED, ts_ns, 0, &count.to_le_bytes())
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, cpu: u32, what: u8, ts_ns: u64, id: u16, data: &[u8]) -> io::Result<()> {
        let queue = self.cpus.entry(cpu).or_default();
        queue.open.push(what);
        queue.open.extend_from_slice(&ts_ns.to_le_bytes());
        queue.open.extend_from_slice(&id.to_le_bytes());
        queue.open.extend_from_slice(&(data.len() as u32).to_le_bytes());
        queue.open.extend_from_slice(data);
        if queue.open.len() >= BLOCK {
            self.file.write_all(&queue.open)?;
            queue.blocks.push((self.end, queue.open.len()));
            self.end += queue.open.len() as u64;
            queue.open.clear();
        }
        Ok(())
    }

    /// CPUs that have items.
    pub fn cpus(&self) -> Vec<u32> {
        self.cpus.keys().copied().collect()
    }

    /// The items of a CPU, in the order in which they came.
    ///
    /// # Errors
    /// The operating system's, and what `each` gives.
    pub fn cpu<E: From<io::Error>>(&self, cpu: u32, mut each: impl FnMut(Item<'_>) -> Result<(), E>) -> Result<(), E> {
        let Some(queue) = self.cpus.get(&cpu) else { return Ok(()) };
        let mut block = Vec::new();
        for &(offset, len) in &queue.blocks {
            block.resize(len, 0);
            self.file.read_exact_at(&mut block, offset)?;
            items(cpu, &block, &mut each)?;
        }
        items(cpu, &queue.open, &mut each)
    }
}

fn items<E>(cpu: u32, mut rest: &[u8], each: &mut impl FnMut(Item<'_>) -> Result<(), E>) -> Result<(), E> {
    while let Some((head, behind)) = rest.split_at_checked(HEAD) {
        let number = |from: usize, size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&head[from..from + size]);
            u64::from_le_bytes(bytes)
        };
        let (ts_ns, id, len) = (number(1, 8), number(9, 2) as u16, number(11, 4) as usize);
        let Some((data, behind)) = behind.split_at_checked(len) else { return Ok(()) };
        each(match head[0] {
            EVENT => Item::Event(RawEvent { ts_ns, cpu, id, data }),
            LOST => Item::Lost { cpu, ts_ns, count: None },
            _ => Item::Lost { cpu, ts_ns, count: data.try_into().ok().map(u64::from_le_bytes) },
        })?;
        rest = behind;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_cpu_by_cpu() {
        let mut spool = Spool::new().expect("a file");
        let data: Vec<u8> = (0..200).collect();
        let mut wanted: BTreeMap<u32, Vec<(u64, usize)>> = BTreeMap::new();
        for n in 0..3000_u64 {
            let (cpu, len) = ((n % 3) as u32, (n % 200) as usize);
            let raw = RawEvent { ts_ns: 10_000 - n, cpu, id: 7, data: &data[..len] };
            spool.push(&Item::Event(raw)).expect("kept");
            wanted.entry(cpu).or_default().push((10_000 - n, len));
            if n == 1500 {
                spool.push(&Item::Lost { cpu, ts_ns: 5, count: Some(9) }).expect("kept");
                spool.push(&Item::Lost { cpu, ts_ns: 6, count: None }).expect("kept");
            }
        }
        assert_eq!((spool.cpus(), spool.first_ns), (vec![0, 1, 2], Some(7001)));
        let mut lost = Vec::new();
        for (cpu, wanted) in wanted {
            let mut got = Vec::new();
            let done: io::Result<()> = spool.cpu(cpu, |item| {
                match item {
                    Item::Event(raw) => {
                        assert_eq!((raw.cpu, raw.id, raw.data), (cpu, 7, &data[..raw.data.len()]));
                        got.push((raw.ts_ns, raw.data.len()));
                    }
                    Item::Lost { count, .. } => lost.push(count),
                    _ => {}
                }
                Ok(())
            });
            done.expect("read");
            assert_eq!(got, wanted);
        }
        assert_eq!(lost, [Some(9), None]);
    }
}
