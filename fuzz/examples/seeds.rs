// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes the seeds of the fuzz targets anew: `cargo run --manifest-path fuzz/Cargo.toml --example seeds`.
//!
//! `trace_reader`: a small file of each shape that is written; the files `found-…` beside them are the smallest of its
//! corpus (`-set_cover_merge=1`). Those of `wakeup` are chosen by `cargo run --example corpus -- --grow CASES`.
//! `text_reader` has files made by hand and by `trace-cmd report`, which stay as they are; those of `topology` are samples
//! of tests/topologies and a small tar made by hand. The canary has none: it is caught from nothing.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use sisdiff_fuzz::random::Random;
use sisdiff_fuzz::{model, trace_mutator};
use tracecmd_parse::write::{Shape, TraceWriter};
use tracecmd_parse::{Compression, Endian};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let folder = seeds.join("trace_reader");
    fs::create_dir_all(&folder)?;
    let shapes = [
        ("v6", 6, Endian::Little, 8, Compression::None),
        ("v6-big-32", 6, Endian::Big, 4, Compression::None),
        ("v7", 7, Endian::Little, 8, Compression::None),
        ("v7-zlib", 7, Endian::Little, 8, Compression::Zlib),
        ("v7-zstd-big-32", 7, Endian::Big, 4, Compression::Zstd),
    ];
    for (name, version, endian, long_size, compression) in shapes {
        let shape = Shape { version, endian, long_size, page_size: 512, compression };
        fs::write(folder.join(format!("{name}.dat")), trace(&shape)?)?;
    }
    // Made by the same hand as the fuzzer's own: options of every kind.
    let mut random = Random(7);
    for number in 0..8 {
        fs::write(folder.join(format!("written-{number}.dat")), trace_mutator::write(&mut random)?)?;
    }
    Ok(())
}

/// Two CPUs, two buffers, every kind of record.
fn trace(shape: &Shape) -> Result<Vec<u8>, Error> {
    let head = tracecmd_parse::write::Head { cpustat: Vec::new(), ..model::head(2) };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), shape, &head, &["inst"])?;
    for buffer in ["", "inst"] {
        writer.start_buffer(buffer)?;
        for cpu in 0..2 {
            writer.start_cpu(cpu)?;
            writer.lost(Some(3))?;
            writer.event(1_000, &model::tick(shape.endian, 7, 1))?;
            writer.discarded(1_100, 8)?;
            writer.event(1 << 30, &model::blob(shape.endian, 7, 20))?;
            writer.event(1 << 31, &model::blob(shape.endian, 7, 120))?;
        }
    }
    Ok(writer.finish()?.into_inner())
}
