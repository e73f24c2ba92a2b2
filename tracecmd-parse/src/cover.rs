// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the places that a file names account for its bytes.
//!
//! A size or a count that is too small leaves bytes behind that nobody reads, and nothing else tells. The data of CPUs
//! begin at whole pages, so up to a page between two of them is no sign of that.

use crate::error::Error;
use crate::header::MAGIC;
use crate::meta::Gap;
use crate::source::Source;

/// Bytes of that count.
const COUNT: u64 = 4;

/// From where to where bytes are accounted for.
pub(crate) type Piece = (u64, u64);

/// The stretches from `from` to `to` of a page or more (and a count) that are in no piece.
pub(crate) fn holes(mut pieces: Vec<Piece>, from: u64, to: u64, page_size: u32, buffer: Option<&str>) -> Vec<Gap> {
    pieces.retain(|&(start, end)| start < end && start < to);
    pieces.push((to, to));
    pieces.sort_unstable();
    let mut covered = from;
    let mut gaps = Vec::new();
    for (start, end) in pieces {
        if start.saturating_sub(covered) >= u64::from(page_size) + COUNT {
            let what = "these bytes among the events belong to no CPU: a size or a count is wrong".to_string();
            let bytes = Some(start - covered);
            gaps.push(Gap { buffer: buffer.map(str::to_string), cpu: None, offset: covered, bytes, what });
        }
        covered = covered.max(end);
    }
    gaps
}

/// Bytes behind the end of a file that are looked at.
const LOOK: usize = 64 << 10;

/// What lies behind `end`, where nothing is left that the file names. Zeroes are padding.
pub(crate) fn behind(source: &Source, end: u64) -> Result<Option<Gap>, Error> {
    let bytes = source.len().saturating_sub(end);
    let mut first = vec![0; LOOK.min(usize::try_from(bytes).unwrap_or(LOOK))];
    let n = source.read_at(end, &mut first)?;
    if first[..n].iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let what = match first.starts_with(MAGIC) {
        true => {
            "another recording begins after the end of the last section: only the first is read; split the file here"
        }
        false => "these bytes after the end of the last section belong to nothing that the file names",
    };
    Ok(Some(Gap { buffer: None, cpu: None, offset: end, bytes: Some(bytes), what: what.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pieces: &[Piece]) -> Vec<(u64, Option<u64>)> {
        holes(pieces.to_vec(), 100, 10_000, 1000, None).into_iter().map(|gap| (gap.offset, gap.bytes)).collect()
    }

    #[test]
    fn less_than_a_page_is_padding() {
        assert_eq!(found(&[(1000, 5000), (6003, 9001)]), []);
        assert_eq!(found(&[(5999, 9001), (1000, 5000), (700, 700)]), []);
    }

    #[test]
    fn a_page_or_more_is_a_hole() {
        assert_eq!(found(&[(1000, 5000), (6004, 9500)]), [(5000, Some(1004))]);
        assert_eq!(found(&[(1000, 5000)]), [(5000, Some(5000))]);
        assert_eq!(found(&[(2000, 9999)]), [(100, Some(1900))]);
        assert_eq!(found(&[]), [(100, Some(9900))]);
    }

    #[test]
    fn what_reaches_beyond_the_end_covers_it() {
        assert_eq!(found(&[(1000, 50_000)]), []);
        assert_eq!(found(&[(1000, 9500), (50_000, 60_000)]), []);
    }
}
