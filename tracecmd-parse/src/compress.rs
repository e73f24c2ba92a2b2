// SPDX-License-Identifier: GPL-2.0-or-later
//! Decompression of sections and chunks, bounded by what they declare.

use std::io::{Read, Write};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::error::Error;

/// How a version 7 file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all; always so in version 6.
    None,
    /// zlib (deflate with a zlib header).
    Zlib,
    /// zstd.
    Zstd,
}

impl Compression {
    /// The name as it stands in the file header.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Zlib => "zlib",
            Compression::Zstd => "zstd",
        }
    }
}

/// A zstd window is memory that the decoder must keep; the format's own advice
/// to decoders is to take at least this much.
const WINDOW_MAX: u64 = 8 << 20;

/// Decompresses one block at a time; keeps its tables between blocks.
pub(crate) struct Decompressor {
    method: Compression,
    zstd: Option<Box<FrameDecoder>>,
}

impl Decompressor {
    pub(crate) fn new(method: Compression) -> Decompressor {
        Decompressor { method, zstd: None }
    }

    /// Decompresses `input` into `out`, which must come to exactly `size` bytes.
    /// `out` grows with what is really there, never ahead of it by more than a block.
    pub(crate) fn run(
        &mut self,
        input: &[u8],
        size: usize,
        out: &mut Vec<u8>,
        what: &'static str,
        offset: u64,
    ) -> Result<(), Error> {
        out.clear();
        let result = match self.method {
            Compression::None => {
                out.extend_from_slice(input);
                Ok(())
            }
            Compression::Zlib => zlib(input, size, out),
            Compression::Zstd => self.zstd(input, size, out),
        };
        let message = match result {
            Err(message) => message,
            Ok(()) if out.len() == size => return Ok(()),
            Ok(()) => format!("{} bytes came out, {size} were declared", out.len()),
        };
        Err(Error::Decompress { what, offset, message })
    }

    fn zstd(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let decoder = self.zstd.get_or_insert_with(|| Box::new(FrameDecoder::new()));
        decoder.set_max_window_size(WINDOW_MAX.max(2 * size as u64));
        let mut rest = input;
        decoder.reset(&mut rest).map_err(|e| e.to_string())?;
        while !decoder.is_finished() {
            decoder.decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1)).map_err(|e| e.to_string())?;
            drain(decoder, size, out)?;
        }
        drain(decoder, size, out)?;
        match decoder.get_checksum_from_data() {
            Some(sum) if decoder.get_calculated_checksum() != Some(sum) => Err("the zstd checksum is wrong".into()),
            _ => Ok(()),
        }
    }
}

/// Takes what the decoder can give, at most one byte over `size`.
fn drain(decoder: &mut FrameDecoder, size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let ready = decoder.can_collect();
    if out.len() + ready > size {
        return Err(format!("more than the declared {size} bytes come out"));
    }
    let at = out.len();
    out.resize(at + ready, 0);
    let mut done = at;
    while done < out.len() {
        match decoder.read(&mut out[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) => return Err(e.to_string()),
        }
    }
    out.truncate(done);
    Ok(())
}

fn zlib(input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    flate2::read::ZlibDecoder::new(input).take(size as u64 + 1).read_to_end(out).map_err(|e| e.to_string())?;
    Ok(())
}

/// Compresses bytes.
pub(crate) fn pack(method: Compression, bytes: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    match method {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes)?;
            encoder.finish()
        }
        Compression::Zstd => Ok(compress_to_vec(bytes, CompressionLevel::Fastest)),
    }
}
