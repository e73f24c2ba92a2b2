// SPDX-License-Identifier: GPL-2.0-or-later
//! Files made to break a reader: every byte of small files of every shape set
//! to bad values, loops, overlaps, bombs. No panic, no hang, little memory.

#[path = "common/allocated.rs"]
mod allocated;
mod common;

use std::io::Cursor;

use allocated::alone;
use common::model;
use tracecmd_parse::write::{Head, Shape, TraceWriter};
use tracecmd_parse::{Compression, Endian, Error, Item, Select, Summary, TraceFile, TraceReader};

/// Reads everything there is; the peak of memory on top of what was there.
fn read(bytes: Vec<u8>) -> (Result<(u64, Summary), Error>, usize) {
    let limit = 256 * bytes.len() as u64 + (1 << 20);
    let before = allocated::now();
    allocated::start();
    let result = read_all(bytes, limit);
    (result, allocated::peak() - before)
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
fn cpus_with_the_same_data_are_refused() {
    let _alone = alone();
    let shape = Shape { compression: Compression::Zstd, ..Shape::default() };
    let bytes = small(&shape);
    let cpu = TraceFile::from_bytes(bytes.clone()).unwrap().meta().buffers[0].cpus[0];
    let same = vec![(cpu.offset, cpu.size); 20_000];
    let (result, _) = read(with_cpus(bytes, &same));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("data of CPU 1 behind those of CPU 0"), "{error}");
}

#[test]
fn large_chunks_of_many_cpus_stay_within_the_budget() {
    let _alone = alone();
    // 600 CPUs with a chunk of 1 MiB of empty pages each, in 80 bytes of file.
    let shape = Shape { compression: Compression::Zstd, ..Shape::default() };
    let mut bytes = small(&shape);
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
    // Eight blocks of 128 KiB of one byte.
    (0..8).for_each(|_| frame.extend([0x02, 0x00, 0x10, 0]));
    frame.extend([1, 0, 0]);
    let mut places = Vec::new();
    for _ in 0..600 {
        places.push((bytes.len() as u64, frame.len() as u64 + 8));
        bytes.extend(1u32.to_le_bytes());
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend((1u32 << 20).to_le_bytes());
        bytes.extend(&frame);
    }
    let (result, memory) = read(with_cpus(bytes, &places));
    let (items, summary) = result.unwrap();
    assert!((40..600).contains(&items), "{items}");
    // Also told: the file is of 2 CPUs, and their own data are in no table any more.
    let other = ["where the file says that there are 2 CPUs", "belong to no CPU"];
    let mut rest = summary.gaps.iter().filter(|gap| !other.iter().any(|other| gap.what.contains(other)));
    assert!(rest.clone().count() > 0, "{:?}", summary.gaps[0]);
    assert!(rest.all(|gap| gap.what.contains("for the CPUs' buffers at once")), "{:?}", summary.gaps);
    assert!(memory < 64 << 20, "{memory}");
}

/// The file with another table of CPUs in a new options section at the end.
fn with_cpus(mut bytes: Vec<u8>, places: &[(u64, u64)]) -> Vec<u8> {
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
    table.extend((places.len() as u32).to_le_bytes());
    for (cpu, (offset, size)) in (0u32..).zip(places) {
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

#[test]
fn a_bomb_of_a_section_is_refused() {
    let _alone = alone();
    // The same frame as the section of saved command lines: 128 MiB from 4 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
    (0..1024).for_each(|_| frame.extend([0x02, 0x00, 0x10, 0]));
    frame.extend([1, 0, 0]);
    let shape = Shape { compression: Compression::Zstd, ..Shape::default() };
    let mut bytes = small(&shape);
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    let option = trace.meta().options.iter().find(|o| o.name == Some("CMDLINES")).unwrap().offset as usize;
    let at = bytes.len() as u64;
    bytes[option..option + 8].copy_from_slice(&at.to_le_bytes());
    bytes.extend([21, 0, 1, 0, 0, 0, 0, 0]);
    bytes.extend((frame.len() as u64 + 8).to_le_bytes());
    bytes.extend((frame.len() as u32).to_le_bytes());
    bytes.extend((128u32 << 20).to_le_bytes());
    bytes.extend(&frame);
    let (result, memory) = read(bytes);
    let (_, summary) = result.unwrap();
    let gap = summary.gaps.iter().find(|g| g.what.starts_with("saved command lines are not readable")).unwrap();
    assert!(gap.what.contains("the limit is"), "{gap}");
    assert!(memory < MEMORY, "{memory}");
}

/// A file whose CPU 0 has `packed`, as `times` chunks of 1 MiB.
fn chunked(packed: &[u8], times: u32) -> Vec<u8> {
    let mut bytes = small(&Shape { compression: Compression::Zstd, ..Shape::default() });
    let start = bytes.len();
    bytes.extend(times.to_le_bytes());
    for _ in 0..times {
        bytes.extend((packed.len() as u32).to_le_bytes());
        bytes.extend((1u32 << 20).to_le_bytes());
        bytes.extend(packed);
    }
    let places = [(start as u64, (bytes.len() - start) as u64)];
    with_cpus(bytes, &places)
}

#[test]
fn chunks_that_grow_beyond_reason_are_refused() {
    let _alone = alone();
    // Blocks of 128 KiB of zeroes, 4 bytes each: 1 MiB from 41 bytes.
    let mut zeroes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
    (0..8).for_each(|_| zeroes.extend([0x02, 0x00, 0x10, 0]));
    zeroes.extend([1, 0, 0]);
    let bomb = chunked(&zeroes, 2000);
    let len = bomb.len();
    let start = std::time::Instant::now();
    let (result, memory) = read(bomb);
    let error = result.expect_err("2 GB of nothing from 100 KB").to_string();
    assert!(error.contains("chunks of CPU data") && error.contains("at most 512 times"), "{error}");
    assert!(memory < MEMORY && start.elapsed().as_secs() < 5, "{memory} bytes, {:?} for {len}", start.elapsed());
    // A few empty pages are no bomb.
    let (result, _) = read(chunked(&zeroes, 100));
    result.expect("100 MB are read");
}
