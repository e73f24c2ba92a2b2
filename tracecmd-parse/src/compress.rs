// SPDX-License-Identifier: GPL-2.0-or-later
//! Decompression of sections and chunks, bounded by what they declare.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

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
        Err(Error::Decompress {
            what,
            offset,
            message,
        })
    }

    fn zstd(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let window = window_size(input)?;
        let limit = WINDOW_MAX.max(2 * size as u64);
        if window > limit {
            return Err(format!(
                "zstd window of {window} bytes, the limit is {limit}"
            ));
        }
        let decoder = self
            .zstd
            .get_or_insert_with(|| Box::new(FrameDecoder::new()));
        let mut rest = input;
        decoder.reset(&mut rest).map_err(|e| e.to_string())?;
        while !decoder.is_finished() {
            decoder
                .decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|e| e.to_string())?;
            drain(decoder, size, out)?;
        }
        drain(decoder, size, out)
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
    flate2::read::ZlibDecoder::new(input)
        .take(size as u64 + 1)
        .read_to_end(out)
        .map_err(|e| e.to_string())?;
    Ok(())
}

/// The window that a zstd frame asks for, read before the decoder allocates it.
///
/// **Source**: RFC 8878 §3.1.1.1.
fn window_size(input: &[u8]) -> Result<u64, String> {
    let short = || "zstd frame header is cut".to_string();
    if input.get(..4).ok_or_else(short)? != [0x28, 0xb5, 0x2f, 0xfd] {
        return Err("zstd frame magic is missing".into());
    }
    let descriptor = *input.get(4).ok_or_else(short)?;
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let byte = *input.get(5).ok_or_else(short)?;
        let base = 1u64 << (10 + (byte >> 3));
        return Ok(base + (base / 8) * u64::from(byte & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let width = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let field = input
        .get(5 + dictionary..5 + dictionary + width)
        .ok_or_else(short)?;
    let value = field
        .iter()
        .rev()
        .fold(0u64, |value, &b| value << 8 | u64::from(b));
    Ok(if width == 2 { value + 256 } else { value })
}
