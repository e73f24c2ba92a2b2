// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of snapshot files: one for each recording and pair, told by these alone, in any folder's characters.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::gate::digest::hex;

/// What a snapshot's name ends with.
pub const ENDING: &str = ".snap";
/// What the name of one that waits to be accepted ends with.
pub const PENDING: &str = ".snap.new";

/// Longest name without its ending, bytes: file systems take 255.
const LENGTH_MAX: usize = 200;

/// The name of the snapshot of `trace` with `pair`, without its ending: `traces__smt8-scan-truth__trace.dat@mel-v2`. No
/// two of them share one.
pub fn stem(trace: &str, pair: &str) -> String {
    let path: Vec<String> = trace.split('/').map(escaped).collect();
    let name = format!("{}@{}", path.join("__"), escaped(pair));
    if name.len() <= LENGTH_MAX {
        return name;
    }
    let sum = hex(&Sha256::digest(name.as_bytes()));
    // Everything is ASCII by now; '~' is in no other name.
    format!("{}~{sum}", &name[..LENGTH_MAX - 40])
}

/// Letters, digits and what no file system and no shell minds; `_` where it cannot be taken for a folder's border.
fn escaped(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for (at, byte) in part.bytes().enumerate() {
        let single = || {
            let bytes = part.as_bytes();
            at > 0 && bytes[at - 1] != b'_' && bytes.get(at + 1).is_some_and(|&next| next != b'_')
        };
        match byte {
            b'.' if at == 0 => out += "%2E",
            b'_' if !single() => out += "%5F",
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'+' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_readable() {
        assert_eq!(stem("traces/smt8-scan-truth/trace.dat", "mel-v2"), "traces__smt8-scan-truth__trace.dat@mel-v2");
        assert_eq!(stem("a_b.dat", "v5.11+x"), "a_b.dat@v5.11+x");
        assert_eq!(stem("../x y.dat", "é"), "%2E.__x%20y.dat@%C3%A9");
    }

    #[test]
    fn no_two_share_a_name() {
        let parts =
            ["a", "_", "__", "a_", "_a", "a__b", "a/b", "a/_b", "a_/b", "/a", "a/", "%5F", "a@b", "", ".", "a%2Fb"];
        let mut names = BTreeSet::new();
        for trace in parts {
            for pair in parts {
                assert!(names.insert(stem(trace, pair)), "{trace:?} {pair:?} {}", stem(trace, pair));
            }
        }
    }

    #[test]
    fn long_names_stay_apart_and_short_enough() {
        let (one, other) = ("x".repeat(5000), format!("{}y", "x".repeat(4999)));
        assert!(stem(&one, "p").len() <= LENGTH_MAX && stem(&one, "p") != stem(&other, "p"));
    }
}
