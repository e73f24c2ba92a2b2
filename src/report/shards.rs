// SPDX-License-Identifier: GPL-2.0-or-later
//! Which parts of a run a report has, and whether parts belong together. What does not name its part cannot be missed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Most shards of a run; a number beyond it is damage.
pub const SHARDS_MAX: usize = 1_000_000;

/// Missing shards that a message names.
const NAMED_MAX: usize = 12;

/// The parts of a run (`--shard K/N`) that a report has. A report without it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shards {
    /// Which, from 1, ascending.
    pub parts: Vec<usize>,
    /// Of how many.
    pub of: usize,
    /// Recordings of the whole run.
    pub recordings: usize,
    /// SHA-256 of their names, sorted, each with a newline at its end.
    pub names_sha256: String,
    /// What was told to the replay: flags and their values.
    pub told: Vec<String>,
}

/// Why reports do not make a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Parts that no run has.
    #[error("{report}: says that it has shards {found} of {of}; expected some of 1 to {of}, each once")]
    Nonsense {
        /// The report.
        report: String,
        /// What it says.
        found: String,
        /// Of how many.
        of: usize,
    },
    /// Another number of recordings than its parts have.
    #[error(
        "{report}: has {found} recordings; its shards of {of} have {expected}: it was cut or edited, replay it again"
    )]
    Recordings {
        /// The report.
        report: String,
        /// How many it has.
        found: usize,
        /// How many it should have.
        expected: usize,
        /// Of how many shards.
        of: usize,
    },
    /// Shards beside a report that is none.
    #[error("{whole} is a whole report and {shard} a shard of one; merge the shards first, then that with others")]
    Mixed {
        /// The whole one.
        whole: String,
        /// The shard.
        shard: String,
    },
    /// Shards of different runs.
    #[error("{one} and {other} are shards of different runs: {why}")]
    OtherRun {
        /// The first report.
        one: String,
        /// The one that does not belong to it.
        other: String,
        /// How they differ.
        why: String,
    },
    /// A part that is there twice.
    #[error("shard {part}/{of} is in {one} and in {other}; each shard once")]
    Twice {
        /// The part.
        part: usize,
        /// Of how many.
        of: usize,
        /// A report with it.
        one: String,
        /// Another one.
        other: String,
    },
    /// Parts that no report has.
    #[error("{missing} missing of {of}; add their reports, or say --partial for the sum of those that are there")]
    Missing {
        /// Which: `shard 2 is` or `shards 2, 5 are`.
        missing: String,
        /// Of how many.
        of: usize,
    },
    /// All parts, and not the recordings that were sharded.
    #[error("the recordings are not those of the run: names were edited; replay the shards again")]
    Names,
}

/// A report, as far as shards go.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Its name.
    pub report: &'a str,
    /// The sisdiff that wrote it.
    pub sisdiff: &'a str,
    /// What it says of itself; `None`: it is whole.
    pub shards: Option<&'a Shards>,
    /// Recordings that it has.
    pub recordings: usize,
}

impl Shards {
    /// Part `part` of `of` of a run over `names`.
    pub fn new(part: usize, of: usize, names: &[String], told: Vec<String>) -> Self {
        Self { parts: vec![part], of, recordings: names.len(), names_sha256: digest(names), told }
    }

    /// The parts that are not there: `2, 5`.
    pub fn missing(&self) -> Vec<usize> {
        (1..=self.of).filter(|part| self.parts.binary_search(part).is_err()).collect()
    }

    fn is_sound(&self) -> bool {
        let is_rising = self.parts.windows(2).all(|pair| pair[0] < pair[1]);
        let is_inside = self.parts.iter().all(|part| (1..=self.of).contains(part));
        is_rising && is_inside && !self.parts.is_empty() && self.of <= SHARDS_MAX
    }

    /// Recordings of its parts: every `of`th from each part's own number on.
    fn expected(&self) -> usize {
        self.parts.iter().map(|part| (self.recordings + self.of - part) / self.of).sum()
    }

    /// How `other` is of another run, in words.
    fn differs(&self, other: &Self) -> Option<String> {
        if self.of != other.of {
            return Some(format!("of {} and of {} shards", self.of, other.of));
        }
        if (self.recordings, &self.names_sha256) != (other.recordings, &other.names_sha256) {
            let (one, two) = (self.recordings, other.recordings);
            return Some(match one == two {
                true => format!("each of {one} recordings, but of other names; name the same files on every machine"),
                false => format!("of {one} and of {two} recordings"),
            });
        }
        let only = |a: &Self, b: &Self| a.told.iter().find(|flag| !b.told.contains(flag)).cloned();
        match (only(self, other), only(other, self)) {
            (None, None) => None,
            (one, two) => {
                let said =
                    |flag: Option<String>| flag.map_or_else(|| "without it".to_owned(), |flag| format!("with {flag}"));
                Some(format!("one was replayed {}, the other {}", said(one), said(two)))
            }
        }
    }
}

/// SHA-256 of `names`, sorted as paths.
fn digest(names: &[String]) -> String {
    let mut sorted: Vec<&Path> = names.iter().map(Path::new).collect();
    sorted.sort_unstable();
    let mut sum = Sha256::new();
    for name in sorted {
        sum.update(name.as_os_str().as_encoded_bytes());
        sum.update(b"\n");
    }
    format!("{:x}", sum.finalize())
}

/// What the sum of `parts` is: `None`, a whole, where all shards are there or none is a shard. `names`: all recordings.
///
/// # Errors
/// [`ShardError`].
pub fn join(parts: &[Part<'_>], names: &[String], is_partial: bool) -> Result<Option<Shards>, ShardError> {
    let mut shards = parts.iter().filter_map(|part| Some((part, part.shards?)));
    let Some((first, run)) = shards.next() else { return Ok(None) };
    if let Some(whole) = parts.iter().find(|part| part.shards.is_none()) {
        return Err(ShardError::Mixed { whole: whole.report.to_owned(), shard: first.report.to_owned() });
    }
    let mut seen: BTreeMap<usize, &str> = BTreeMap::new();
    for (part, of) in std::iter::once((first, run)).chain(shards) {
        let report = || part.report.to_owned();
        if !of.is_sound() {
            return Err(ShardError::Nonsense { report: report(), found: listed(&of.parts), of: of.of });
        }
        let why = run.differs(of).or_else(|| {
            let differ = part.sisdiff != first.sisdiff;
            differ.then(|| format!("of sisdiff {} and of sisdiff {}", first.sisdiff, part.sisdiff))
        });
        if let Some(why) = why {
            return Err(ShardError::OtherRun { one: first.report.to_owned(), other: report(), why });
        }
        for &number in &of.parts {
            if let Some(one) = seen.insert(number, part.report) {
                return Err(ShardError::Twice { part: number, of: of.of, one: one.to_owned(), other: report() });
            }
        }
        let (found, expected) = (part.recordings, of.expected());
        if found != expected {
            return Err(ShardError::Recordings { report: report(), found, expected, of: of.of });
        }
    }
    let joined = Shards { parts: seen.into_keys().collect(), ..run.clone() };
    match joined.missing().as_slice() {
        [] if digest(names) == run.names_sha256 => Ok(None),
        [] => Err(ShardError::Names),
        _ if is_partial => Ok(Some(joined)),
        [one] => Err(ShardError::Missing { missing: format!("shard {one} is"), of: joined.of }),
        many => Err(ShardError::Missing { missing: format!("shards {} are", listed(many)), of: joined.of }),
    }
}

/// Numbers as a message names them, not more than a line can hold.
pub fn listed(numbers: &[usize]) -> String {
    let shown: Vec<String> = numbers.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = numbers.len().saturating_sub(NAMED_MAX);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("{n}.dat")).collect()
    }

    fn told(flag: &str) -> Vec<String> {
        vec!["--baseline v5.11".to_owned(), flag.to_owned()]
    }

    fn shard(part: usize, of: usize, n: usize) -> Shards {
        Shards::new(part, of, &names(n), told("--hz 250"))
    }

    fn part<'a>(report: &'a str, shards: &'a Shards) -> Part<'a> {
        Part { report, sisdiff: "1", shards: Some(shards), recordings: shards.expected() }
    }

    #[test]
    fn parts_have_every_nth_recording() {
        let sizes: Vec<usize> = (1..=4).map(|k| shard(k, 4, 6).expected()).collect();
        assert_eq!(sizes, [2, 2, 1, 1]);
        assert_eq!(shard(9, 9, 2).expected(), 0);
    }

    #[test]
    fn all_parts_are_a_whole_and_a_part_of_them_is_said() {
        let (one, two, three) = (shard(1, 3, 5), shard(2, 3, 5), shard(3, 3, 5));
        let all = [part("c", &three), part("a", &one), part("b", &two)];
        assert_eq!(join(&all, &names(5), false), Ok(None));
        assert_eq!(join(&all, &names(4), false), Err(ShardError::Names));
        let error = join(&all[..2], &[], false).expect_err("one is missing");
        assert!(error.to_string().starts_with("shard 2 is missing of 3; "), "{error}");
        let joined = join(&all[..2], &[], true).expect("asked for").expect("no whole");
        assert_eq!((joined.parts.as_slice(), joined.missing().as_slice()), (&[1, 3][..], &[2][..]));
        // And the sum of some with the rest.
        assert_eq!(join(&[part("ac", &joined), part("b", &two)], &names(5), false), Ok(None));
        let far = shard(1, 40, 5);
        let error = join(&[part("a", &far)], &[], false).expect_err("39 are missing").to_string();
        assert!(
            error.starts_with("shards 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 27 more are missing of 40"),
            "{error}"
        );
    }

    #[test]
    fn what_is_of_another_run_is_told_by_what_differs() {
        let one = shard(1, 2, 5);
        let why = |other: &Shards, sisdiff| {
            let other = Part { sisdiff, ..part("other", other) };
            join(&[part("one", &one), other], &[], true).expect_err("they differ").to_string()
        };
        assert!(why(&shard(2, 3, 5), "1").ends_with("of 2 and of 3 shards"));
        assert!(why(&shard(2, 2, 6), "1").ends_with("of 5 and of 6 recordings"));
        let renamed = Shards { names_sha256: digest(&names(4)), ..shard(2, 2, 5) };
        assert!(why(&renamed, "1").contains("of other names"));
        let flags = Shards { told: told("--hz 1000"), ..shard(2, 2, 5) };
        assert!(why(&flags, "1").ends_with("one was replayed with --hz 250, the other with --hz 1000"));
        let more = Shards { told: [told("--hz 250"), told("--ignore-probes")].concat(), ..shard(2, 2, 5) };
        assert!(why(&more, "1").ends_with("one was replayed without it, the other with --ignore-probes"));
        assert!(why(&shard(2, 2, 5), "2").ends_with("of sisdiff 1 and of sisdiff 2"));
    }

    #[test]
    fn twice_mixed_cut_and_nonsense_are_told_apart() {
        let (one, two) = (shard(1, 2, 5), shard(2, 2, 5));
        let error = join(&[part("a", &one), part("b", &one)], &[], true);
        assert_eq!(error.expect_err("twice").to_string(), "shard 1/2 is in a and in b; each shard once");
        let whole = Part { report: "w", sisdiff: "1", shards: None, recordings: 1 };
        assert!(matches!(join(&[whole, part("b", &one)], &[], true), Err(ShardError::Mixed { .. })));
        assert_eq!(join(&[whole, whole], &[], false), Ok(None));
        let cut = Part { recordings: 2, ..part("a", &one) };
        assert!(matches!(join(&[cut, part("b", &two)], &[], false), Err(ShardError::Recordings { .. })));
        for parts in [vec![], vec![0], vec![3], vec![2, 1], vec![1, 1]] {
            let odd = Shards { parts, ..shard(1, 2, 5) };
            let odd = Part { shards: Some(&odd), ..part("a", &one) };
            assert!(matches!(join(&[odd], &[], true), Err(ShardError::Nonsense { .. })));
        }
        let endless = Shards { of: usize::MAX, ..shard(1, 2, 5) };
        let endless = Part { report: "a", sisdiff: "1", shards: Some(&endless), recordings: 0 };
        assert!(matches!(join(&[endless], &[], true), Err(ShardError::Nonsense { .. })));
    }
}
