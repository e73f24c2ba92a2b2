// SPDX-License-Identifier: GPL-2.0-or-later
//! The first 128 bits of a SHA-256: enough to tell texts apart, short enough for a person to look at.

use sha2::digest::Output;
use sha2::{Digest, Sha256};

/// Hexadecimal digits of that many bits.
const DIGITS: usize = 32;

/// Hexadecimal.
pub(super) fn hex(sum: &Output<Sha256>) -> String {
    let mut text = format!("{sum:x}");
    text.truncate(DIGITS);
    text
}

/// As snapshots write it.
pub(super) fn printed(sum: &Output<Sha256>) -> String {
    format!("sha256:{}", hex(sum))
}

/// Of `bytes`, as snapshots write it.
pub fn digest(bytes: &[u8]) -> String {
    printed(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half_of_it_is_written() {
        // **Source**: FIPS 180-2, appendix B.1.
        assert_eq!(digest(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223");
    }
}
