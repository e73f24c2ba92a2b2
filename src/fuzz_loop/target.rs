// SPDX-License-Identifier: GPL-2.0-or-later
//! For fuzz targets, which tell by a panic.

use arbitrary::{Arbitrary, Unstructured};

use crate::fuzz_loop::check;
use crate::oracle::{Allowed, Maker, Options, Scout, Trouble, attempt, lineup};
use crate::scenario::{Case, CaseError};

/// What counts in fuzz targets: what known bugs explain is left aside.
pub const TARGET: Options = Options { allow_known: true, expect_equal: false, schedstat: false };

/// A case as fuzz targets play it: it names who plays, by a rule of its bytes alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input(pub Case);

impl Input {
    /// What `bytes` stand for. The last byte, which is idle in nearly every event, chooses the [`lineup`].
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let pair = lineup(bytes.last().copied().unwrap_or(0)).to_vec();
        Self(Case { pair, ..Case::from_dna(bytes) })
    }

    /// What a file stands for: a case file, or bytes that a fuzzer left.
    ///
    /// # Errors
    /// As [`Case::parse`], where the file is text.
    pub fn read(bytes: &[u8]) -> Result<Self, CaseError> {
        let case = Case::read(bytes)?;
        Ok(if Case::is_text(bytes) { Self(case) } else { Self::from_bytes(bytes) })
    }
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self::from_bytes(u.bytes(u.len())?))
    }
}

/// Every oracle on one case with the implementations that it names, known bugs and what the project's allow file names
/// left aside.
///
/// # Panics
/// With the finding and the case as a file.
pub fn must_hold(case: &Case, maker: &dyn Maker) {
    // The quick judge first. The others by a rule of the case alone, so that a case found so is found again.
    let result =
        Scout::new(&case.pair, maker, TARGET).play(case).and_then(|(findings, _)| match findings.into_iter().next() {
            Some(finding) => Err(Trouble::Finding(Box::new(finding))),
            None => match case.decisions() % 16 {
                0 => check(case, &case.pair, maker, TARGET).map(drop),
                n if n % 4 == 0 => attempt(case, &case.pair, maker, TARGET).map(drop),
                _ => Ok(()),
            },
        });
    match result {
        Err(Trouble::Finding(finding)) if Allowed::of_the_project().entry(&finding).is_some() => {}
        Err(trouble) => panic!("{trouble}\n\n{}", case.write()),
        Ok(()) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz_loop::dna;
    use crate::oracle::LINEUPS;

    #[test]
    fn the_last_byte_says_who_plays_and_a_file_of_it_says_so_too() {
        let mut bytes = dna(3, 1);
        let last = bytes.len() - 1;
        for gene in 0..LINEUPS.len() {
            bytes[last] = gene as u8;
            let input = Input::read(&bytes).expect("bytes are always a case");
            assert_eq!(input.0.pair, LINEUPS[gene]);
            assert_eq!(Input::read(input.0.write().as_bytes()), Ok(input));
        }
        assert_eq!(Input::from_bytes(&[]).0.pair, LINEUPS[0]);
        assert_eq!(Input::arbitrary(&mut Unstructured::new(&bytes)), Ok(Input::from_bytes(&bytes)));
    }
}
