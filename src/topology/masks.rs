// SPDX-License-Identifier: GPL-2.0-or-later
//! CPU masks as sysfs writes them.

use crate::cpumask::Cpumask;

use super::files::Files;
use super::load::LoadError;

/// The mask in `FOLDER/LIST` as a cpulist, else in `FOLDER/MAP` in hexadecimal; `None` if neither file is there.
pub(super) fn read(files: &Files, list: &str, map: &str) -> Result<Option<Cpumask>, LoadError> {
    let bad = |file: &str, text: &str, expected| {
        Err(LoadError::File { file: format!("{}: {file}", files.origin), found: excerpt(text), expected })
    };
    match (files.text(list), files.text(map)) {
        (Some(text), _) => match Some(text).filter(|text| text.len() <= MAX_TEXT).and_then(|text| text.parse().ok()) {
            Some(mask) => Ok(Some(mask)),
            None => bad(list, text, "a list of CPUs below 1024 such as 0-3,8"),
        },
        (None, Some(text)) => match hex(text) {
            Some(mask) => Ok(Some(mask)),
            None => bad(map, text, "a hexadecimal mask of CPUs below 1024 such as 00000000,0000ffff"),
        },
        (None, None) => Ok(None),
    }
}

/// Longest list or mask, bytes: every second CPU of 1,024 in a list has 2,000.
pub(super) const MAX_TEXT: usize = 16 << 10;

/// At most 60 characters of `text`, for an error.
pub(super) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// A hexadecimal mask in groups of 32 bits, the highest first: `ff`, `00000000,0000ffff`.
fn hex(text: &str) -> Option<Cpumask> {
    let mut words = Vec::new();
    for (at, group) in text.split(',').rev().enumerate() {
        if group.is_empty() || group.len() > 8 || at > 4096 || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let bits = u64::from(u32::from_str_radix(group, 16).ok()?);
        match at % 2 {
            0 => words.push(bits),
            _ => *words.last_mut()? |= bits << 32,
        }
    }
    Cpumask::from_words(&words)
}

/// A mask as hwloc and `lscpu -x` write it: `0x0000ffff,0xffffffff`, `0xff`, and empty for a group of zeros.
pub(super) fn hwloc(text: &str) -> Option<Cpumask> {
    let group = |group: &str| match group.strip_prefix("0x").unwrap_or(group) {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    };
    if text.is_empty() || text.len() > MAX_TEXT {
        return None;
    }
    let digits: Vec<String> = text.split(',').map(group).collect();
    // lscpu writes all digits in one group.
    let [one] = digits.as_slice() else { return hex(&digits.join(",")) };
    let from_right: Vec<u8> = one.bytes().rev().collect();
    let groups = from_right.chunks(8).rev().map(|chunk| chunk.iter().rev().map(|&b| char::from(b)).collect::<String>());
    hex(&groups.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_masks_are_read_from_the_right() {
        for (text, list) in [
            ("f", "0-3"),
            ("00000000,000000ff", "0-7"),
            ("1111,11111111,00000000", "32,36,40,44,48,52,56,60,64,68,72,76"),
            ("1,00000000,00000000", "64"),
            ("0", "none"),
        ] {
            assert_eq!(hex(text).expect(text).to_string(), list);
        }
        for text in ["", "x", "f,", ",f", "123456789", "-1", "f f"] {
            assert_eq!(hex(text), None, "{text:?}");
        }
        assert_eq!(hex(&format!("1{}", ",00000000".repeat(32))), None, "CPU 1024");
    }

    #[test]
    fn hwloc_leaves_groups_of_zeros_empty() {
        for (text, list) in [
            ("0x0000000f", "0-3"),
            ("0x00008000,,0x0", "79"),
            ("0x00000100,0x00000001", "0,40"),
            ("0x0", "none"),
            ("0x1000000000000000f", "0-3,64"),
        ] {
            assert_eq!(hwloc(text).expect(text).to_string(), list);
        }
        for text in ["", "0xf...f", "0xf...f,0x1", "x", "0x1,0xg", "0-3"] {
            assert_eq!(hwloc(text), None, "{text:?}");
        }
        assert_eq!(hwloc(&format!("0x{}", "f".repeat(100_000))), None);
    }

    #[test]
    fn a_list_without_end_is_refused_before_it_is_read() {
        let files = Files::of(&[("sys/devices/system/cpu/online", &"0-1023,".repeat(3000))]);
        assert!(read(&files, "sys/devices/system/cpu/online", "").is_err());
    }
}
