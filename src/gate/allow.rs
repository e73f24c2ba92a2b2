// SPDX-License-Identifier: GPL-2.0-or-later
//! What may differ from a snapshot: tolerances of whole parts, and entries with a reason.

use std::collections::BTreeMap;

use globset::GlobMatcher;

use crate::gate::snapshot::Part;

/// A share that counts may move by, in millionths: exact, so that a gate decides the same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Share(pub u64);

impl Share {
    /// From percent, as `"0.5%"`: at most four decimals, at most 100.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 4 || whole.len() > 3 {
            return None;
        }
        let millionths = whole.parse::<u64>().ok()? * 10_000 + format!("{part:0<4}").parse::<u64>().ok()?;
        (millionths <= 1_000_000).then_some(Self(millionths))
    }

    /// Whether `moved` is at most this share of `of`.
    pub fn covers(self, moved: u64, of: u64) -> bool {
        u128::from(moved) * 1_000_000 <= u128::from(self.0) * u128::from(of)
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.pad(&format!("{text}%"))
    }
}

/// A difference that somebody has looked at.
#[derive(Debug, Clone)]
pub struct Allow {
    /// The recordings, by path; `None`: all.
    pub trace: Option<GlobMatcher>,
    /// The pairs, by name; `None`: all.
    pub pair: Option<GlobMatcher>,
    /// The rows or counts: `sis.scanned`, `exits.*`.
    pub what: GlobMatcher,
    /// How far a count may move, of what it was; `None`: as far as it likes.
    pub within: Option<Share>,
    /// Why.
    pub reason: String,
}

impl Allow {
    /// Whether it is about `key` (`sis.scanned.patched`, or a part of it up to a dot).
    pub fn is_about(&self, trace: &str, pair: &str, key: &str) -> bool {
        let fits = |glob: &Option<GlobMatcher>, name: &str| glob.as_ref().is_none_or(|glob| glob.is_match(name));
        let mut keys = std::iter::once(key.len()).chain(key.match_indices('.').map(|(at, _)| at));
        fits(&self.trace, trace) && fits(&self.pair, pair) && keys.any(|end| self.what.is_match(&key[..end]))
    }
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// How far the counts of a part may move; exact where nothing is said. A part with a tolerance has no digests, as
    /// those know no distance.
    pub tolerance: BTreeMap<Part, Share>,
    /// The entries, in the order of the file.
    pub allow: Vec<Allow>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use globset::Glob;

    #[test]
    fn shares_are_exact() {
        for (text, millionths) in [("0%", 0), ("1%", 10_000), ("0.5%", 5_000), ("0.0001%", 1), ("100%", 1_000_000)] {
            assert_eq!(Share::parse(text), Some(Share(millionths)), "{text}");
            assert_eq!(Share(millionths).to_string(), text);
        }
        for bad in ["", "%", "1", "-1%", "100.1%", "0.00001%", "1e2%", ".5%", "5.%"] {
            assert_eq!(Share::parse(bad), None, "{bad}");
        }
        let share = Share(10_000);
        assert!(share.covers(1, 100) && !share.covers(2, 100) && share.covers(0, 0) && !share.covers(1, 0));
        assert!(Share(1_000_000).covers(u64::MAX, u64::MAX));
    }

    #[test]
    fn an_entry_is_about_a_key_or_what_is_under_it() {
        let glob = |text: &str| Glob::new(text).expect("a glob").compile_matcher();
        let allow = |what: &str| Allow {
            trace: Some(glob("traces/numa*")),
            pair: None,
            what: glob(what),
            within: None,
            reason: "it is so".to_owned(),
        };
        let key = "sis.scanned.patched";
        for what in ["sis", "sis.scanned", "sis.scanned.patched", "sis.*", "*.patched", "*"] {
            assert!(allow(what).is_about("traces/numa80/trace.dat", "mel-v2", key), "{what}");
        }
        assert!(!allow("sis").is_about("traces/smt8/trace.dat", "mel-v2", key));
        for what in ["si", "sis.scan", "scanned", "exits.*"] {
            assert!(!allow(what).is_about("traces/numa80/trace.dat", "mel-v2", key), "{what}");
        }
    }
}
