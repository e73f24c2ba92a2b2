// SPDX-License-Identifier: GPL-2.0-or-later
//! Texts that somebody wrote by hand, or that sisdiff wrote, read no further than such a text can be long: a device or a
//! pipe without end is an error, not a machine without memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest text of settings, bytes: rules, a gate, costs.
pub const SETTINGS: u64 = 1 << 18;
/// The longest report, bytes: one of thousands of recordings.
pub const REPORT: u64 = 1 << 28;

/// The text of the file at `path`, of at most `most` bytes.
///
/// # Errors
/// As reading fails, and where there is more.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    read(File::open(path)?, most)
}

/// All of `from`, of at most `most` bytes.
///
/// # Errors
/// As [`read_text`].
pub fn read(from: impl Read, most: u64) -> io::Result<String> {
    let mut text = String::new();
    from.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than the {most} bytes expected")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_an_error() {
        assert_eq!(read(io::repeat(b'a').take(10), 10).ok().as_deref(), Some("aaaaaaaaaa"));
        let error = read(io::repeat(b'a'), 10).expect_err("it has no end");
        assert!(error.to_string().contains("longer than the 10 bytes"), "{error}");
    }
}
