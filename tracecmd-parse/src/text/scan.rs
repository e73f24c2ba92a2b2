// SPDX-License-Identifier: GPL-2.0-or-later
//! Small steps over the bytes of a line.

/// A place in a line; every step moves it on or leaves it where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(line: &'a [u8], at: usize) -> Scan<'a> {
        Scan { line, at: at.min(line.len()) }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// Takes these bytes if they are next.
    pub(super) fn eat(&mut self, bytes: &[u8]) -> bool {
        let next = self.rest().starts_with(bytes);
        if next {
            self.at += bytes.len();
        }
        next
    }

    /// Takes all bytes of this kind that are next, and gives them.
    pub(super) fn all(&mut self, kind: impl Fn(u8) -> bool) -> &'a [u8] {
        let from = self.at;
        while self.peek().is_some_and(&kind) {
            self.at += 1;
        }
        &self.line[from..self.at]
    }

    /// Takes the spaces that are next; how many.
    pub(super) fn spaces(&mut self) -> usize {
        self.all(|b| b == b' ').len()
    }

    /// A decimal number without a sign.
    pub(super) fn number(&mut self) -> Option<u64> {
        decimal(self.all(|b| b.is_ascii_digit()))
    }

    /// A decimal number with or without a sign.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let negative = self.eat(b"-");
        let value = i64::try_from(self.number()?).ok()?;
        Some(if negative { -value } else { value })
    }
}

/// Digits only, no more than fit.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A number as traces print it: decimal (zeros in front mean nothing), or hexadecimal after `0x`. What does not fit
/// 64 bits is no number; unsigned values beyond the range of `i64` keep their bits.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let value = match digits {
        [b'0', b'x' | b'X', hex @ ..] if !hex.is_empty() => {
            let hex = std::str::from_utf8(hex).ok().filter(|hex| !hex.starts_with('+'))?;
            u64::from_str_radix(hex, 16).ok()?
        }
        _ => decimal(digits)?,
    };
    match negative {
        false => Some(value as i64),
        true => i64::try_from(value).ok().map(|value| -value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, value) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("-1", Some(-1)),
            ("0x8", Some(8)),
            ("4294967295", Some(4_294_967_295)),
            ("0xffffffffffffffff", Some(-1)),
            ("18446744073709551615", Some(-1)),
            ("18446744073709551616", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("0x+1", None),
            ("1a", None),
            ("--1", None),
            ("-0x1", Some(-1)),
        ] {
            assert_eq!(integer(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn steps() {
        let mut scan = Scan::new(b"  12x", 0);
        assert_eq!(scan.spaces(), 2);
        assert_eq!(scan.number(), Some(12));
        assert!(!scan.eat(b"y") && scan.eat(b"x"));
        assert_eq!((scan.peek(), scan.rest()), (None, &b""[..]));
        assert_eq!(Scan::new(b"a", 9).rest(), b"");
    }
}
