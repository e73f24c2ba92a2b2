// SPDX-License-Identifier: GPL-2.0-or-later
//! Files made to break a reader: every byte of small files of every shape set
//! to bad values, loops, overlaps, bombs. No panic, no hang, little memory.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use common::model;
use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Compression, Endian, Error, Item, Select, Summary, TraceFile, TraceReader};

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: as the caller promises to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises to us.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocator counts for all threads: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Reads everything there is; the peak of memory on top of what was there.
fn read(bytes: Vec<u8>) -> (Result<(u64, Summary), Error>, usize) {
    let limit = 256 * bytes.len() as u64 + (1 << 20);
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = read_all(bytes, limit);
    (result, PEAK.load(Ordering::Relaxed) - before)
}

fn read_all(bytes: Vec<u8>, limit: u64) -> Result<(u64, Summary), Error> {
    let trace = TraceFile::from_bytes(bytes)?;
    let mut items = 0;
    let mut summary = Summary::default();
    let _ = (trace.kallsyms().is_ok(), trace.printk_formats().is_ok());
    let field = trace.formats().iter().flat_map(|f| f.field_ref("text")).next();
    for buffer in &trace.meta().buffers {
        let mut cursor = trace.cursor(&Select::buffer(&buffer.name))?;
        while let Some(item) = cursor.next()? {
            items += 1;
            assert!(items < limit, "the cursor does not come to an end");
            if let (Item::Event(event), Some(field)) = (item, field) {
                let _ = (field.text(&event), field.i64(&event), trace.formats().of(&event));
            }
        }
        summary = cursor.summary();
    }
    Ok((items, summary))
}

/// A file of about 3 KB: two CPUs, a second buffer, every kind of record.
fn small(shape: &Shape) -> Vec<u8> {
    let names: &[&str] = &["inst"];
    let head = Head { cpustat: Vec::new(), ..model::head(2) };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), shape, &head, names).unwrap();
    for buffer in ["", "inst"] {
        writer.start_buffer(buffer).unwrap();
        for cpu in 0..2 {
            writer.start_cpu(cpu).unwrap();
            writer.lost(Some(3)).unwrap();
            writer.event(1000, &model::tick(shape.endian, 7, 1)).unwrap();
            writer.discarded(1100, 8).unwrap();
            writer.event(1 << 30, &model::blob(shape.endian, 7, 20)).unwrap();
            writer.event(1 << 31, &model::blob(shape.endian, 7, 120)).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn small_shapes() -> Vec<Shape> {
    let shape =
        |version, endian, long_size, compression| Shape { version, endian, long_size, page_size: 512, compression };
    vec![
        shape(6, Endian::Little, 8, Compression::None),
        shape(6, Endian::Big, 4, Compression::None),
        shape(7, Endian::Little, 8, Compression::None),
        shape(7, Endian::Little, 8, Compression::Zlib),
        shape(7, Endian::Big, 4, Compression::Zstd),
    ]
}

/// Places worth a change: not those deep in zeros, which are padding.
fn places(whole: &[u8]) -> Vec<usize> {
    (0..whole.len()).filter(|&at| whole[at.saturating_sub(12)..=at].iter().any(|&b| b != 0)).collect()
}

/// What one shape may take: a decompressor's tables and window, a few chunks.
const MEMORY: usize = 40 << 20;

#[test]
fn every_byte_set_to_bad_values() {
    let _alone = alone();
    for shape in small_shapes() {
        let whole = small(&shape);
        let (mut refused, mut most) = (0, 0);
        let mut bytes = whole.clone();
        for at in places(&whole) {
            for value in [0, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
                bytes[at] = value;
                let (result, memory) = read(bytes.clone());
                refused += u64::from(result.is_err());
                assert!(memory < MEMORY, "{memory} bytes of memory, byte {at} of {shape:?} set to {value}");
                most = most.max(memory);
            }
            bytes[at] = whole[at];
        }
        assert!(refused > 0);
        println!("{shape:?}: {refused} refused, at most {most} bytes of memory");
    }
}

#[test]
fn every_word_set_to_large_values() {
    let _alone = alone();
    for shape in small_shapes() {
        let whole = small(&shape);
        for size in [4, 8] {
            for at in places(&whole[..whole.len() - size]) {
                for value in [u64::MAX, 0x7fff_ffff, whole.len() as u64 - 1] {
                    let mut bytes = whole.clone();
                    match shape.endian {
                        Endian::Little => bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]),
                        Endian::Big => bytes[at..at + size].copy_from_slice(&value.to_be_bytes()[8 - size..]),
                    }
                    let (_, memory) = read(bytes);
                    assert!(memory < MEMORY, "{memory} bytes of memory, byte {at} of {shape:?} set to {value:#x}");
                }
            }
        }
    }
}

#[test]
fn cuts() {
    let _alone = alone();
    for shape in small_shapes() {
        let whole = small(&shape);
        let (all, summary) = read(whole.clone()).0.unwrap();
        assert_eq!(summary.gaps, []);
        for len in (0..whole.len()).step_by(3) {
            if let (Ok((items, summary)), _) = read(whole[..len].to_vec()) {
                assert!(items >= all || summary.losses > 0 || items == 0, "{shape:?} cut at {len}");
            }
        }
    }
}

/// The place of the only occurrence.
fn find(bytes: &[u8], what: &[u8]) -> usize {
    let mut places = bytes.windows(what.len()).enumerate().filter(|(_, w)| *w == what).map(|(at, _)| at);
    let at = places.next().expect("it is there");
    assert_eq!(places.next(), None);
    at
}

#[test]
fn a_loop_of_options_is_told() {
    let _alone = alone();
    let mut bytes = small(&Shape::default());
    let first_at = find(&bytes, b"none\0\0") + 6;
    let first = bytes[first_at..first_at + 8].to_vec();
    // The last option of the first section leads to the next section: let it lead back.
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    let done = trace.meta().options.iter().find(|o| o.id == 0).unwrap();
    let at = done.offset as usize;
    bytes[at..at + 8].copy_from_slice(&first);
    let error = TraceFile::from_bytes(bytes).unwrap_err().to_string();
    assert!(error.contains("a chain that ends, found a loop"), "{error}");
}

#[test]
fn many_cpus_with_the_same_chunks_stay_within_the_budget() {
    let _alone = alone();
    // A small file that says 20,000 CPUs have the same chunk of ten pages: what
    // is kept of them is bounded by the budget for chunks.
    let shape = Shape { compression: Compression::Zstd, ..Shape::default() };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), &shape, &model::head(1), &[]).unwrap();
    writer.start_buffer("").unwrap();
    writer.start_cpu(0).unwrap();
    for count in 0..1900 {
        writer.event(count, &model::tick(shape.endian, 1, count)).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    let cpu = trace.meta().buffers[0].cpus[0];
    drop(trace);
    let bytes = with_cpus(bytes, cpu.offset, cpu.size, 20_000);
    let (result, memory) = read(bytes);
    let (items, summary) = result.unwrap();
    assert!(items > 1900 * 10_000, "{items}");
    assert!(summary.gaps.iter().any(|gap| gap.what.contains("of chunks at once")));
    assert!(memory < 600 << 20, "{memory}");
}

/// The file with a table of `count` CPUs that have the same data, in a new
/// options section at the end.
fn with_cpus(mut bytes: Vec<u8>, offset: u64, size: u64, count: u32) -> Vec<u8> {
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    let options = &trace.meta().options;
    let buffer = options.iter().find(|o| o.name == Some("BUFFER")).unwrap();
    let section = bytes[buffer.offset as usize..][..8].to_vec();
    let done = options.iter().find(|o| o.id == 0).unwrap();
    let at = bytes.len() as u64;
    let link = done.offset as usize;
    bytes[link..link + 8].copy_from_slice(&at.to_le_bytes());
    let mut table = section;
    table.extend(b"\0mono\0");
    table.extend(4096u32.to_le_bytes());
    table.extend(count.to_le_bytes());
    for cpu in 0..count {
        table.extend(cpu.to_le_bytes());
        table.extend(offset.to_le_bytes());
        table.extend(size.to_le_bytes());
    }
    bytes.extend([0; 8]);
    bytes.extend((table.len() as u64 + 6 + 14).to_le_bytes());
    bytes.extend(3u16.to_le_bytes());
    bytes.extend((table.len() as u32).to_le_bytes());
    bytes.extend(table);
    bytes.extend(0u16.to_le_bytes());
    bytes.extend(8u32.to_le_bytes());
    bytes.extend([0; 8]);
    bytes
}
