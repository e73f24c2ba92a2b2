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

/// The largest window of a frame of `size` bytes that is taken.
fn window_max(size: usize) -> u64 {
    WINDOW_MAX.max(2 * size as u64)
}

/// The window that a zstd frame asks for; 0 if it is as large as its content. (RFC 8878, 3.1.1.1.)
#[cfg(feature = "zstd-c")]
fn window(frame: &[u8]) -> Option<u64> {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    if frame.get(4)? & SINGLE_SEGMENT != 0 {
        return Some(0);
    }
    let window = frame.get(5)?;
    let base = 1 << (10 + (window >> 3));
    Some(base + base / 8 * u64::from(window & 7))
}

/// What is larger is decompressed step by step, since memory must not be ahead of what comes out.
#[cfg(feature = "zstd-c")]
const FAST_MAX: usize = 8 << 20;

/// Decompresses one block at a time; keeps its tables between blocks.
pub(crate) struct Decompressor {
    method: Compression,
    /// The reference library, which is three to four times as fast.
    #[cfg(feature = "zstd-c")]
    fast: Option<zstd_safe::DCtx<'static>>,
    zstd: Option<Box<FrameDecoder>>,
}

impl Decompressor {
    pub(crate) fn new(method: Compression) -> Decompressor {
        Decompressor {
            method,
            #[cfg(feature = "zstd-c")]
            fast: None,
            zstd: None,
        }
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
            Compression::Zstd => match self.fast_zstd(input, size, out) {
                true => Ok(()),
                false => self.zstd(input, size, out),
            },
        };
        let message = match result {
            Err(message) => message,
            Ok(()) if out.len() == size => return Ok(()),
            Ok(()) => format!("{} bytes came out, {size} were declared", out.len()),
        };
        Err(Error::Decompress { what, offset, message })
    }

    /// Whether the reference library decompressed it. Where it did not, the decoder in Rust has the last word on whether
    /// the bytes are good, and what is wrong: with and without the library a file reads the same.
    #[cfg(feature = "zstd-c")]
    fn fast_zstd(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> bool {
        if size > FAST_MAX || window(input).is_none_or(|window| window > window_max(size)) {
            return false;
        }
        let context = self.fast.get_or_insert_with(zstd_safe::DCtx::create);
        out.reserve_exact(size);
        let done = context.decompress(out, input) == Ok(size);
        if !done {
            out.clear();
        }
        done
    }

    #[cfg(not(feature = "zstd-c"))]
    fn fast_zstd(&mut self, _input: &[u8], _size: usize, _out: &mut [u8]) -> bool {
        false
    }

    fn zstd(&mut self, input: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let decoder = self.zstd.get_or_insert_with(|| Box::new(FrameDecoder::new()));
        decoder.set_max_window_size(window_max(size));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(method: Compression, packed: &[u8], size: usize) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        Decompressor::new(method).run(packed, size, &mut out, "test", 99)?;
        Ok(out)
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let text: Vec<u8> = (0..300_000u32).map(|n| (n % 251 * (n / 1000)) as u8).collect();
        for method in [Compression::None, Compression::Zlib, Compression::Zstd] {
            for bytes in [&text[..], b"", b"x"] {
                let packed = pack(method, bytes).unwrap();
                assert_eq!(unpack(method, &packed, bytes.len()).unwrap(), bytes, "{method:?}");
                assert!(unpack(method, &packed, bytes.len() + 1).is_err());
                if !bytes.is_empty() {
                    assert!(unpack(method, &packed, bytes.len() - 1).is_err());
                }
            }
        }
    }

    #[test]
    fn a_frame_that_wants_a_large_window_is_refused() {
        // Window descriptor for 1 GiB, then an empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 1, 0, 0];
        let error = unpack(Compression::Zstd, &frame, 0).unwrap_err().to_string();
        assert!(error.contains("byte 99") && error.contains("indow"), "{error}");
    }

    #[test]
    fn no_more_comes_out_than_declared() {
        // Blocks of 128 KiB of one byte, 4 bytes each: 128 MiB from 4 KiB.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
        for _ in 0..1024 {
            frame.extend([0x02, 0x00, 0x10, 0]);
        }
        frame.extend([1, 0, 0]);
        assert_eq!(unpack(Compression::Zstd, &frame, 128 << 20).unwrap().len(), 128 << 20);
        let error = unpack(Compression::Zstd, &frame, 4096).unwrap_err().to_string();
        assert!(error.contains("more than the declared 4096 bytes"), "{error}");
    }

    #[test]
    fn a_wrong_checksum_is_told() {
        // One raw block "abc" with a checksum of zeros.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x19, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0];
        let error = unpack(Compression::Zstd, &frame, 3).unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
    }
}
