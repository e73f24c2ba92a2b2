// SPDX-License-Identifier: GPL-2.0-or-later
//! Tokens of C: enough for macros, conditionals and lists of names. Whole functions go to the parser.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Ident,
    /// A number.
    Number,
    /// A string or character constant.
    Literal,
    /// One character of punctuation.
    Punct(u8),
    /// The end of a line outside of comments, where lines matter.
    Newline,
}

/// A token: where it is and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Token {
    /// The token's text.
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it is the punctuation `byte`.
    pub fn is(&self, byte: u8) -> bool {
        self.kind == Kind::Punct(byte)
    }
}

/// The tokens of `source` without comments and white space. Never fails: an unclosed comment or string ends with the text.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { bytes: source.as_bytes(), at: 0, out: Vec::new() };
    lexer.run();
    lexer.out
}

/// Every identifier of `source`, in order, with repetitions.
pub fn identifiers(source: &str) -> impl Iterator<Item = &str> {
    tokens(source).into_iter().filter(|token| token.kind == Kind::Ident).map(move |token| token.text(source))
}

/// Whether `byte` can begin an identifier.
pub fn begins_ident(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether `byte` can go on an identifier.
pub fn in_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<Token>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.out.push(Token { kind, start, end: self.at });
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && wanted(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let start = self.at;
            match self.bytes[start] {
                b'\n' => {
                    self.at += 1;
                    self.push(Kind::Newline, start);
                }
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.take_while(|byte| byte != b'\n'),
                b'/' if self.peek(1) == b'*' => self.comment(),
                quote @ (b'"' | b'\'') => self.literal(quote),
                byte if begins_ident(byte) => {
                    self.take_while(in_ident);
                    self.push(Kind::Ident, start);
                }
                byte if byte.is_ascii_digit() => {
                    self.take_while(|byte| in_ident(byte) || byte == b'.');
                    self.push(Kind::Number, start);
                }
                byte => {
                    self.at += 1;
                    self.push(Kind::Punct(byte), start);
                }
            }
        }
    }

    fn comment(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && !(self.bytes[self.at] == b'*' && self.peek(1) == b'/') {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.bytes.len());
    }

    fn literal(&mut self, quote: u8) {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() && self.bytes[self.at] != quote && self.bytes[self.at] != b'\n' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = (self.at + 1).min(self.bytes.len());
        self.push(Kind::Literal, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_comments_and_strings() {
        let source = "a->b /* not c */ + \"not d\\\" e\" // not f\n 'g' 0x1fUL h2";
        let names: Vec<_> = identifiers(source).collect();
        assert_eq!(names, ["a", "b", "h2"]);
    }

    #[test]
    fn a_continued_line_is_one_line() {
        let newlines = |source: &str| tokens(source).iter().filter(|token| token.kind == Kind::Newline).count();
        assert_eq!(newlines("#define A \\\n 1\nint b;"), 1);
        assert_eq!(newlines("/* two\nlines */ a"), 0);
    }

    #[test]
    fn what_is_not_closed_ends_with_the_text() {
        assert_eq!(tokens("/* never closed").len(), 0);
        assert_eq!(tokens("\"never closed\\").len(), 1);
    }
}
