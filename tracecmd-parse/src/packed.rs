// SPDX-License-Identifier: GPL-2.0-or-later
//! Packed streams: all frames of them, what is wrong with them in plain words, and a bound to how far they grow.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use crate::error::{Error, PackedFault};
use crate::input::Bytes;
use crate::zstd::Frames;

/// A stretch of a packed file, unpacked bytes: less than a second's work.
const STRETCH: u64 = 64 << 20;
/// How many times a stretch may be larger than what it came from. Text of events packs 10 to 30 times, call chains of
/// `perf script` 100 times, empty pages 200 times; zeroes as zstd packs them 30,000 times.
pub(crate) const TIMES: u64 = 512;

/// Compares what comes out of unpackers with what goes in, stretch by stretch.
#[derive(Debug)]
pub(crate) struct Growth {
    /// How often it is looked at, unpacked bytes. What is smaller may grow as it likes.
    stretch: u64,
    packed: u64,
    unpacked: u64,
}

impl Growth {
    pub(crate) fn new(stretch: u64) -> Growth {
        Growth { stretch, packed: 0, unpacked: 0 }
    }

    /// Books `unpacked` bytes that came out of `packed` ones; `false` if the stretch that ends here grew beyond
    /// [`TIMES`].
    pub(crate) fn book(&mut self, packed: u64, unpacked: u64) -> bool {
        self.packed += packed;
        self.unpacked += unpacked;
        if self.unpacked <= self.stretch {
            return true;
        }
        let sane = self.unpacked / TIMES <= self.packed;
        if sane {
            *self = Growth::new(self.stretch);
        }
        sane
    }
}

/// How a stream is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Gzip,
    Zstd,
    /// zlib, behind what `atrace -z` writes before it.
    Zlib,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Gzip => "gzip",
            Method::Zstd => "zstd",
            Method::Zlib => "zlib",
        }
    }
}

/// Bytes that were taken from a stream.
pub(crate) type Taken = AtomicU64;

struct Counted {
    inner: Bytes,
    taken: Arc<Taken>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.taken.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Counts what is read of `stream`.
pub(crate) fn counted(stream: Bytes) -> (Bytes, Arc<Taken>) {
    let taken = Arc::<Taken>::default();
    (Box::new(Counted { inner: stream, taken: Arc::clone(&taken) }), taken)
}

/// One layer of packing taken away.
pub(crate) struct Unpacking {
    method: Method,
    inner: Bytes,
    /// Of the file: what several layers grow to together counts.
    file: Arc<Taken>,
    booked: u64,
    unpacked: u64,
    growth: Growth,
}

impl Unpacking {
    /// Unpacks `stream`; `file` counts what is read of the file around all layers.
    pub(crate) fn new(method: Method, stream: Bytes, file: Arc<Taken>) -> Unpacking {
        let inner: Bytes = match method {
            Method::Gzip => Box::new(MultiGzDecoder::new(stream)),
            Method::Zlib => Box::new(ZlibDecoder::new(stream)),
            Method::Zstd => Box::new(Frames::new(stream)),
        };
        Unpacking { method, inner, file, booked: 0, unpacked: 0, growth: Growth::new(STRETCH) }
    }

    fn fault(&self, fault: PackedFault) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Fault { method: self.method, unpacked: self.unpacked, fault })
    }

    /// What a decoder's error says of the stream. Their own words are of their insides.
    fn explain(&self, error: io::Error) -> io::Error {
        let ours = error.get_ref().is_some_and(|inner| inner.is::<Fault>());
        if ours || error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
            return error;
        }
        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
        self.fault(if cut { PackedFault::Cut } else { PackedFault::Damaged })
    }
}

impl Read for Unpacking {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out).map_err(|error| self.explain(error))?;
        self.unpacked += n as u64;
        let taken = self.file.load(Ordering::Relaxed);
        let packed = taken - std::mem::replace(&mut self.booked, taken);
        match self.growth.book(packed, n as u64) {
            true => Ok(n),
            false => Err(self.fault(PackedFault::Absurd { packed: taken, times: TIMES })),
        }
    }
}

/// What is wrong with a packed stream, on its way through [`Read`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the {} stream, {unpacked} bytes unpacked, {fault}", method.name())]
struct Fault {
    method: Method,
    unpacked: u64,
    fault: PackedFault,
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
            Some(&Fault { method, unpacked, fault }) => Error::Packed { method: method.name(), unpacked, fault },
            None => Error::Io(error),
        }
    }
}

/// Whether the stream is to blame, not the operating system, and what came before is still worth reading.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    let absurd = |fault: &Fault| matches!(fault.fault, PackedFault::Absurd { .. });
    let absurd = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()).is_some_and(absurd);
    error.raw_os_error().is_none() && !absurd
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// zstd blocks of 128 KiB of one byte, 4 bytes each.
    fn repeated(blocks: u64) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
        for _ in 0..blocks {
            frame.extend([0x02, 0x00, 0x10, b'\n']);
        }
        frame.extend([1, 0, 0]);
        frame
    }

    fn unpack(method: Method, bytes: &[u8]) -> Result<u64, Error> {
        let (stream, taken) = counted(Box::new(Cursor::new(bytes.to_vec())));
        Ok(io::copy(&mut Unpacking::new(method, stream, taken), &mut io::sink())?)
    }

    #[test]
    fn what_grows_beyond_reason_is_refused_early() {
        let stretch = STRETCH >> 17;
        assert_eq!(unpack(Method::Zstd, &repeated(stretch)).expect("small enough to be unpacked"), STRETCH);
        let error = unpack(Method::Zstd, &repeated(100 * stretch)).expect_err("a bomb");
        let Error::Packed { unpacked, fault: PackedFault::Absurd { packed, .. }, .. } = error else {
            panic!("{error}");
        };
        assert!(unpacked < STRETCH + (1 << 20), "{unpacked}");
        assert!(packed < 4 * stretch + 100, "{packed}");
        assert!(error.to_string().contains("unpack it yourself"), "{error}");
        // The decoder's parts of zero bytes do not hide it.
        let mut gzip = Vec::new();
        let zeroes = io::repeat(0).take(2 * STRETCH);
        flate2::read::GzEncoder::new(zeroes, flate2::Compression::best()).read_to_end(&mut gzip).expect("packed");
        assert!(matches!(unpack(Method::Gzip, &gzip), Err(Error::Packed { fault: PackedFault::Absurd { .. }, .. })));
    }

    #[test]
    fn a_stretch_is_judged_by_itself() {
        let mut growth = Growth::new(STRETCH);
        assert!(growth.book(STRETCH, STRETCH + 1), "packs not at all");
        assert!(growth.book(0, STRETCH), "not yet a whole stretch");
        assert!(!growth.book(10, 1), "what came before does not count");
        let mut growth = Growth::new(STRETCH);
        assert!((0..100).all(|_| growth.book(STRETCH / 400, STRETCH)), "400 times is no wonder");
    }

    #[test]
    fn cut_and_damaged_streams_are_told_in_plain_words() {
        let mut gzip = Vec::new();
        let text: Vec<u8> = (0..50_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        flate2::read::GzEncoder::new(text.as_slice(), flate2::Compression::fast())
            .read_to_end(&mut gzip)
            .expect("packed");
        let zstd = ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        // From where on bytes are of the first block's head.
        for (method, bytes, head) in [(Method::Gzip, gzip, 10), (Method::Zstd, zstd, 6)] {
            assert_eq!(unpack(method, &bytes).expect("whole"), text.len() as u64, "{method:?}");
            for len in [9, 30, bytes.len() / 2, bytes.len() - 1] {
                let error = unpack(method, &bytes[..len]).expect_err("cut");
                assert!(matches!(error, Error::Packed { fault: PackedFault::Cut, .. }), "{method:?} {len}: {error:?}");
                assert!(error.to_string().contains("ends early") && !error.to_string().contains('{'), "{error}");
            }
            let mut damaged = bytes.clone();
            damaged[head..head + 50].fill(0xff);
            let error = unpack(method, &damaged).expect_err("damaged");
            assert!(matches!(error, Error::Packed { fault: PackedFault::Damaged, .. }), "{method:?}: {error:?}");
            // The checksum is the last of what zstd writes, and stands before the length in gzip.
            let mut other = bytes.clone();
            let at = bytes.len() - if method == Method::Gzip { 8 } else { 1 };
            other[at] ^= 1;
            let error = unpack(method, &other).expect_err("another checksum");
            assert!(matches!(error, Error::Packed { fault: PackedFault::Damaged, .. }), "{method:?}: {error:?}");
        }
    }
}
