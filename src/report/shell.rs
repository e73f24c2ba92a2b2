// SPDX-License-Identifier: GPL-2.0-or-later
//! Names as a terminal may see them and a shell takes them.

use crate::units::is_unseen;

/// `name` with control and format characters escaped, so that a terminal shows them and does not obey them.
pub fn printable(name: &str) -> String {
    name.chars().map(|c| if is_unseen(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// `word` as one word of a shell's command line; unchanged where no quotes are needed.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:,=@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_unseen) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let escape = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if is_unseen(c) => c.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.to_string(),
    };
    format!("$'{}'", word.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("a/trace.dat"), "a/trace.dat");
        assert_eq!(quoted("v6.1:NO_SIS_UTIL"), "v6.1:NO_SIS_UTIL");
        assert_eq!(quoted("my trace.dat"), "'my trace.dat'");
        assert_eq!(quoted("it's;rm"), "'it'\\''s;rm'");
        assert_eq!(quoted("a\n'b"), "$'a\\012\\'b'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(printable("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(printable("é b"), "é b");
        // What follows would be shown from right to left.
        assert_eq!(printable("a\u{202e}b\u{2066}\u{200f}"), "a\\u{202e}b\\u{2066}\\u{200f}");
        assert_eq!(quoted("a\u{202e}b"), "$'a\\342\\200\\256b'");
    }
}
