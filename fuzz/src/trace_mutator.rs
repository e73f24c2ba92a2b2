// SPDX-License-Identifier: GPL-2.0-or-later
//! Changes to a trace.dat by someone who knows how it is made; bytes alone rarely get past the first length.

use std::io::Cursor;

use tracecmd_parse::write::{Head, Shape, Stamp, TraceWriter, WriteError};
use tracecmd_parse::{Compression, Endian, TimeSample, TimeShift, TscToNs};

use crate::model;
use crate::random::Random;
use crate::structure::{Kind, structure};

const KINDS: &[Kind] = &[Kind::Length, Kind::Offset, Kind::Count, Kind::Id, Kind::Time];

/// A mutator as libFuzzer's own, which it is given: buffer, bytes in it, room in it; gives the new number of bytes.
pub type Mutator = fn(&mut [u8], usize, usize) -> usize;

/// Knows the structure, or leaves it to `plain`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32, plain: Mutator) -> usize {
    let mut random = Random(seed.into());
    match random.below(16) {
        0 => fresh(data, max_size, &mut random).unwrap_or_else(|| plain(data, size, max_size)),
        1..7 => {
            let file = &mut data[..size];
            let Some(structure) = structure(file) else { return plain(data, size, max_size) };
            for _ in 0..1 + random.below(3) {
                if let Some(place) = structure.pick(&mut random, KINDS) {
                    structure.damage(file, place, &mut random);
                }
            }
            size
        }
        _ => plain(data, size, max_size),
    }
}

/// Another file of the writer's, if it fits.
fn fresh(data: &mut [u8], max_size: usize, random: &mut Random) -> Option<usize> {
    let bytes = write(random).ok()?;
    let into = data.get_mut(..bytes.len()).filter(|into| into.len() <= max_size)?;
    into.copy_from_slice(&bytes);
    Some(bytes.len())
}

/// A small file of any shape, with any of the options.
pub fn write(random: &mut Random) -> Result<Vec<u8>, WriteError> {
    let (version, compression) = match random.below(5) {
        0 | 1 => (6, Compression::None),
        2 => (7, Compression::None),
        3 => (7, Compression::Zlib),
        _ => (7, Compression::Zstd),
    };
    let endian = if random.one_in(3) { Endian::Big } else { Endian::Little };
    let long_size = if random.one_in(3) { 4 } else { 8 };
    // Packed pages may be as large as real ones.
    let page_size = if compression == Compression::None { 128 << random.below(3) } else { 4096 };
    let shape = Shape { version, endian, long_size, page_size, compression };
    let cpus = 1 + random.below(3) as u32;
    let buffers: &[&str] = if random.one_in(3) { &["inst"] } else { &[] };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), &shape, &head(random, cpus), buffers)?;
    for buffer in std::iter::once(&"").chain(buffers) {
        writer.start_buffer(buffer)?;
        for cpu in 0..cpus {
            writer.start_cpu(cpu)?;
            records(random, &shape, &mut writer)?;
        }
    }
    Ok(writer.finish()?.into_inner())
}

fn head(random: &mut Random, cpus: u32) -> Head {
    let mut head = Head { cpustat: Vec::new(), ..model::head(cpus) };
    if random.one_in(4) {
        head.ts_offset_ns = random.number() as i64 >> random.below(60);
    }
    if random.one_in(4) {
        head.tsc_to_ns =
            Some(TscToNs { mult: random.number() as u32 / 2, shift: random.below(33) as u32, offset: 1000 });
    }
    if random.one_in(4) {
        let sample = |random: &mut Random| TimeSample {
            time: random.below(1 << 20) as i64,
            offset: random.below(4000) as i64 - 2000,
            scaling: 1 + random.below(4) as i64,
            fraction: random.below(3) as i64,
        };
        let column = |random: &mut Random| {
            let mut samples: Vec<TimeSample> = (0..1 + random.below(3)).map(|_| sample(random)).collect();
            samples.sort_by_key(|sample| sample.time);
            samples[0].time = 0;
            samples
        };
        let samples = (0..cpus).map(|_| column(random)).collect();
        head.time_shift = Some(TimeShift { peer_trace_id: 1, flags: random.below(4) as u32, cpus: samples });
    }
    if random.one_in(4) {
        head.more_options = vec![(random.below(40) as u16 + 23, vec![7; random.below(20)])];
    }
    head
}

fn records(random: &mut Random, shape: &Shape, writer: &mut TraceWriter<Cursor<Vec<u8>>>) -> Result<(), WriteError> {
    let mut ts = random.number() >> (20 + random.below(40));
    for _ in 0..random.below(30) {
        ts = ts.wrapping_add(if random.one_in(5) { random.number() >> (20 + random.below(40)) } else { 100 });
        let stamp = if random.one_in(8) { Stamp::Absolute } else { Stamp::Delta };
        match random.below(12) {
            0 => writer.lost(random.one_in(2).then_some(3))?,
            1 => writer.discarded(ts, 8)?,
            2..5 => {
                let most = if random.one_in(3) { 60 } else { 12 };
                let len = random.below(most);
                writer.stamped_event(ts, &model::blob(shape.endian, 7, len), stamp)?;
            }
            _ => writer.stamped_event(ts, &model::tick(shape.endian, 7, 1), stamp)?,
        }
    }
    Ok(())
}
