// SPDX-License-Identifier: GPL-2.0-or-later
//! What a file holds by its bytes, whatever its name: a packed stream, in it a tar archive or a text.
//!
//! Packed are gzip, bzip2, xz and zstd. How much may come out is bounded, so that a bomb is an error.

use std::io::{self, Cursor, Read};

use tracecmd_parse::zstd::Frames;

use super::files::Files;
use super::load::LoadError;

/// What a file may unpack to, bytes. A tar of the whole /sys/devices/system/cpu of 1,024 CPUs has about as much.
const MAX_UNPACKED: u64 = 256 << 20;
/// What every file may unpack to, however small, and how many times its size beyond that: a bomb takes no longer than a
/// file that is worth it. Such archives pack 20 to 200 times.
const ALWAYS_UNPACKED: u64 = 64 << 20;
const TIMES_UNPACKED: u64 = 512;
/// Longest text, bytes. hwloc's XML of 1,024 CPUs with all devices has about 8 MB.
const MAX_TEXT: u64 = 32 << 20;
/// Memory that an xz file may ask for, KiB: `xz -9` makes dictionaries of 64 MiB.
const MAX_XZ_KIB: u32 = 100 << 10;
/// One block of a tar archive.
const BLOCK: usize = 512;

/// What was found in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A tar archive's files.
    Files(Files),
    /// Anything else that is text.
    Text(String),
}

/// Unpacks `bytes`.
///
/// # Errors
/// If they break off, unpack to too much or are neither an archive nor a text.
pub(super) fn content(origin: &str, bytes: &[u8]) -> Result<Content, LoadError> {
    let broken = |error: io::Error| broken(origin, "whole file", &error);
    let limit = MAX_UNPACKED.min(ALWAYS_UNPACKED + TIMES_UNPACKED.saturating_mul(bytes.len() as u64));
    let mut stream = Budget { inner: stream(bytes).map_err(broken)?, left: limit, limit };
    let mut head = Vec::new();
    (&mut stream).take(BLOCK as u64).read_to_end(&mut head).map_err(broken)?;
    if is_tar(&head) {
        return Files::from_tar(origin, bytes.len() as u64, Cursor::new(head).chain(stream)).map(Content::Files);
    }
    if let Some(what) = known(&head) {
        return Err(unreadable(origin, what.to_owned()));
    }
    let mut text = head;
    stream.take(MAX_TEXT).read_to_end(&mut text).map_err(broken)?;
    if text.len() as u64 > MAX_TEXT {
        return Err(LoadError::TooLarge { file: origin.to_owned(), what: "bytes of text", limit: MAX_TEXT });
    }
    match String::from_utf8(text) {
        // An archive of small files is text all over, but for the padding of its headers.
        Ok(text) if text.contains('\0') => {
            Err(unreadable(origin, "a file with zero bytes, as of a damaged tar archive".to_owned()))
        }
        Ok(text) => Ok(Content::Text(text)),
        Err(error) => {
            let bytes = error.as_bytes();
            Err(unreadable(
                origin,
                format!("a file that begins with \"{}\"", bytes[..bytes.len().min(12)].escape_ascii()),
            ))
        }
    }
}

/// The error for a file that is none of the forms.
pub(super) fn unreadable(origin: &str, found: String) -> LoadError {
    LoadError::File {
        file: origin.to_owned(),
        found,
        expected: "a tar archive of /sys (packed with gzip, bzip2, xz, zstd or not at all), what lscpu prints (-J, -e or \
                   -p) or hwloc's XML (lstopo --of xml)",
    }
}

/// The error for a packed stream that cannot be read on.
pub(super) fn broken(origin: &str, expected: &'static str, error: &io::Error) -> LoadError {
    let file = origin.to_owned();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Exhausted>()) {
        Some(&Exhausted(limit)) => LoadError::TooLarge { file, what: "bytes unpacked", limit },
        None => LoadError::Archive { file, expected, reason: error.to_string() },
    }
}

fn stream(bytes: &[u8]) -> io::Result<Box<dyn Read + '_>> {
    Ok(match bytes {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(bytes)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(lzma_rust2::XzReader::new_mem_limit(bytes, true, MAX_XZ_KIB)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Box::new(Frames::new(bytes)),
        _ => Box::new(bytes),
    })
}

/// Whether a block is the header of a tar entry: its checksum fits, which text and other files do not do by chance.
fn is_tar(head: &[u8]) -> bool {
    let Some(field) = head.get(148..156).filter(|_| head.len() == BLOCK) else { return false };
    let text = std::str::from_utf8(field).unwrap_or("");
    let told = u32::from_str_radix(text.trim_matches([' ', '\0']), 8);
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    told == Ok(sum(head) - sum(field) + 8 * u32::from(b' '))
}

/// Files that people take for a topology by mistake, and which are none.
fn known(head: &[u8]) -> Option<&'static str> {
    match head {
        [] => Some("an empty file"),
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', ..] => Some("a recording of trace-cmd"),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some("a zip archive"),
        [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Some("a file packed twice")
        }
        _ => None,
    }
}

/// A reader that fails where more is read than it may give.
struct Budget<R> {
    inner: R,
    left: u64,
    limit: u64,
}

/// More came than this.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes unpacked")]
struct Exhausted(u64);

impl<R: Read> Read for Budget<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| io::Error::other(Exhausted(self.limit)))?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_nothing_known_are_refused_by_name() {
        for bytes in [
            &b""[..],
            b"\xff\xfe\x00",
            b"PK\x03\x04",
            b"\x17\x08\x44tracing6",
            b"\xfd7zXZ\0",
            b"\xfd7zXZ\0garbage that is longer than a header",
            b"\x1f\x8b",
            b"\x1f\x8b\x08\0garbage",
            b"BZh9garbage",
            b"\x28\xb5\x2f\xfdgarbage",
            b"\x50\x2a\x4d\x18\xff\xff\xff\xff",
        ] {
            let error = content("box.tar.gz", bytes).expect_err("nothing known").to_string();
            assert!(error.contains("box.tar.gz"), "{error}");
        }
        assert!(
            content("t", b"\x17\x08\x44tracing6").expect_err("no").to_string().contains("a recording of trace-cmd")
        );
    }

    #[test]
    fn text_is_text_packed_or_not() {
        // `printf 'CPU\n'` packed by gzip, xz and zstd (with a skippable frame before it).
        let gzip = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 115, 14, 8, 229, 2, 0];
        assert!(content("a", &gzip).is_err(), "without its checksum it is cut");
        assert_eq!(content("a", b"CPU\n").expect("text"), Content::Text("CPU\n".to_owned()));
        let mut zstd = vec![0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        zstd.extend([0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'C', b'P', b'U', b'\n']);
        assert_eq!(content("a", &zstd).expect("text"), Content::Text("CPU\n".to_owned()));
    }

    #[test]
    fn a_tar_is_known_by_its_checksum() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_old();
        header.set_size(1);
        header.set_cksum();
        tar.append_data(&mut header, "x/sys/devices/system/cpu/online", &b"0"[..]).expect("an entry");
        let tar = tar.into_inner().expect("an archive");
        assert!(is_tar(&tar[..BLOCK]), "no magic, as the oldest archives");
        let mut other = tar;
        other[0] ^= 1;
        assert!(!is_tar(&other[..BLOCK]));
        let error = content("box.tar", &other).expect_err("no text either").to_string();
        assert!(error.contains("damaged tar"), "{error}");
        assert!(!is_tar(&[b' '; BLOCK]) && !is_tar(&[0; BLOCK]));
    }

    fn gzip(bytes: impl Read) -> Vec<u8> {
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(bytes, flate2::Compression::best()).read_to_end(&mut packed).expect("packed");
        packed
    }

    #[test]
    fn a_bomb_is_an_error() {
        let bomb = gzip(io::repeat(b' ').take(MAX_UNPACKED + 1));
        let error = content("bomb.gz", &bomb).expect_err("a bomb").to_string();
        assert!(error.contains("bomb.gz: more than"), "{error}");
    }

    #[test]
    fn an_archive_grows_with_its_file_only() {
        // 200 MB of a file that nobody asks for, then of files that are kept.
        let mut header = tar::Header::new_old();
        header.set_size(200 << 20);
        header.set_path("other").expect("a path");
        header.set_cksum();
        let archive = || Cursor::new(header.as_bytes().to_vec()).chain(io::repeat(0).take(200 << 20));
        let bomb = gzip(archive());
        let error = content("bomb.tgz", &bomb).expect_err("a bomb").to_string();
        let limit = ALWAYS_UNPACKED + TIMES_UNPACKED * bomb.len() as u64;
        assert!(error.contains(&format!("more than {limit} bytes unpacked")), "{error}");
        let mut kept = Vec::new();
        for cpu in 0..3 {
            let mut header = tar::Header::new_old();
            header.set_size(30 << 20);
            header.set_path(format!("sys/devices/system/cpu/cpu{cpu}/online")).expect("a path");
            header.set_cksum();
            kept.extend_from_slice(header.as_bytes());
            kept.resize(kept.len() + (30 << 20), b'1');
        }
        let error = content("bomb.tgz", &gzip(kept.as_slice())).expect_err("too much to keep").to_string();
        assert!(error.contains("bytes of machine description"), "{error}");
    }

    #[test]
    fn a_cut_stream_is_told_in_words() {
        let text: Vec<u8> = (0..9000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect();
        let zstd = ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(content("a", &zstd).expect("whole"), Content::Text(String::from_utf8(text).expect("digits")));
        let error = content("a.zst", &zstd[..zstd.len() / 2]).expect_err("cut").to_string();
        assert!(error.contains("the zstd stream ends early"), "{error}");
        let error = content("a.zst", &[&zstd[..5], &[0xff; 600][..]].concat()).expect_err("damaged").to_string();
        assert!(error.contains("no zstd stream"), "{error}");
    }
}
