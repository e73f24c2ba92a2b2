// SPDX-License-Identifier: GPL-2.0-or-later
//! A zstd stream as `zstd` and `pzstd` write it: frames one after the other, skippable ones between them, a checksum at the
//! end of each.
//!
//! **Source**: RFC 8878, 3.1.1 (frames and their checksum) and 3.1.2 (skippable frames).

use std::io::{self, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::input::read_up_to;

/// The largest window that `zstd -d` takes without being asked, bytes.
const WINDOW_MAX: u64 = 128 << 20;

/// Unpacks all frames of a stream.
///
/// # Errors
/// Of the kind [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) where the stream ends early, of the kind
/// [`InvalidData`](io::ErrorKind::InvalidData) where its bytes do not unpack or a frame's checksum is not that of what came
/// out, which is told behind the frame's last byte; else the stream's own.
pub struct Frames<R> {
    input: Input<R>,
    /// Kept from frame to frame: its tables are large.
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: Read> Frames<R> {
    /// Unpacks what `stream` gives from here on.
    pub fn new(stream: R) -> Frames<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX);
        Frames {
            input: Input { stream, magic: [0; 4], magic_left: 0, ended: false, failed: None },
            decoder,
            inside: false,
        }
    }

    /// Goes to the next frame; `false` at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            match self.input.look_at_magic()? {
                (0, _) => return Ok(false),
                (4, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) => self.input.skip_frame()?,
                _ => break,
            }
        }
        self.decoder.init(&mut self.input).map_err(|_| self.input.blame())?;
        self.inside = true;
        Ok(true)
    }

    /// Leaves a frame that everything was taken from.
    fn end(&mut self) -> io::Result<()> {
        self.inside = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(sum)) if stored != sum => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a zstd frame is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !out.is_empty() && (self.inside || self.begin()?) {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let block = self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
                block.map_err(|_| self.input.blame())?;
            }
            match self.decoder.read(out)? {
                0 => self.end()?,
                n => return Ok(n),
            }
        }
        Ok(0)
    }
}

/// The packed stream, with four bytes that were looked at before their frame. What the decoder says of its errors is of
/// its insides: what happened to the stream is kept here.
struct Input<R> {
    stream: R,
    magic: [u8; 4],
    /// Bytes at the end of `magic` that are still to be given.
    magic_left: usize,
    ended: bool,
    failed: Option<io::Error>,
}

impl<R: Read> Input<R> {
    /// Up to four bytes, which stay to be read, and how many they are.
    fn look_at_magic(&mut self) -> io::Result<(usize, [u8; 4])> {
        let mut magic = [0; 4];
        let n = read_up_to(&mut self.stream, &mut magic)?;
        self.ended = n < magic.len();
        self.magic = magic;
        self.magic.rotate_left(n % 4);
        self.magic_left = n;
        Ok((n, magic))
    }

    /// Passes over a skippable frame whose magic was looked at.
    fn skip_frame(&mut self) -> io::Result<()> {
        self.magic_left = 0;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        match io::copy(&mut (&mut self.stream).take(length), &mut io::sink())? {
            skipped if skipped < length => Err(cut()),
            _ => Ok(()),
        }
    }

    /// What a decoder's error comes from.
    fn blame(&mut self) -> io::Error {
        match self.failed.take() {
            Some(error) => error,
            None if self.ended => cut(),
            None => io::Error::new(io::ErrorKind::InvalidData, "bytes that are no zstd stream"),
        }
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.magic_left > 0 {
            let n = out.len().min(self.magic_left);
            let from = self.magic.len() - self.magic_left;
            out[..n].copy_from_slice(&self.magic[from..from + n]);
            self.magic_left -= n;
            return Ok(n);
        }
        match self.stream.read(out) {
            Ok(n) => {
                self.ended |= n == 0 && !out.is_empty();
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the zstd stream ends early")
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Frames::new(packed).read_to_end(&mut out).map(|_| out)
    }

    /// With a checksum, as the encoder writes it.
    fn frame(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    const SKIPPABLE: [u8; 10] = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];

    #[test]
    fn frames_follow_each_other() {
        let whole = [&SKIPPABLE[..], &frame(b"one "), &SKIPPABLE, &SKIPPABLE, &frame(b""), &frame(b"two")].concat();
        assert_eq!(unpack(&whole).expect("whole"), b"one two");
        assert_eq!(unpack(b"").expect("nothing"), b"");
        for len in 1..whole.len() {
            // Between frames is an end like any other.
            if let Err(error) = unpack(&whole[..len]) {
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{len}: {error}");
            }
        }
    }

    #[test]
    fn very_many_frames_are_no_deeper_than_one() {
        let tiny = frame(b"x");
        assert_eq!(unpack(&tiny.repeat(200_000)).expect("whole").len(), 200_000);
    }

    #[test]
    fn a_wrong_checksum_is_told_behind_the_content() {
        let mut damaged = frame(b"some text");
        *damaged.last_mut().expect("a checksum") ^= 1;
        let mut frames = Frames::new(damaged.as_slice());
        let mut out = [0; 9];
        frames.read_exact(&mut out).expect("the content");
        assert_eq!(&out, b"some text");
        let error = frames.read(&mut out).expect_err("its checksum");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("checksum"), "{error}");
    }

    #[test]
    fn an_error_of_the_stream_is_passed_on() {
        struct Breaks;
        impl Read for Breaks {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the cable"))
            }
        }
        let packed = frame(b"some text");
        let error = Frames::new(packed[..7].chain(Breaks)).read_to_end(&mut Vec::new()).expect_err("no cable");
        assert_eq!(error.to_string(), "the cable");
    }
}
