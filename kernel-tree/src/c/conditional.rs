// SPDX-License-Identifier: GPL-2.0-or-later
//! `#if` by a stated configuration: lines that are compiled out become empty, so that every line keeps its number.

use std::collections::HashMap;

use super::lex::{self, Kind, Token};
use crate::config::Config;

/// An `#if` that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ConditionalError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// One open `#if`.
struct Level {
    /// Whether the lines around it are kept.
    outer: bool,
    /// Whether a branch was taken already.
    taken: bool,
    /// Whether the branch we are in is kept.
    active: bool,
    line: usize,
}

/// `source` as `config` compiles it: lines of other branches and the directives `#if` to `#endif` themselves are empty.
///
/// # Errors
/// A directive without its partner.
pub fn resolve(source: &str, config: &Config) -> Result<String, ConditionalError> {
    let mut resolver = Resolver { config, macros: HashMap::new(), levels: Vec::new() };
    let mut out = String::with_capacity(source.len());
    let mut in_comment = false;
    let mut lines = source.split_inclusive('\n').enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let mut logical = line.to_owned();
        let directive = !in_comment && line.trim_start().starts_with('#');
        if directive {
            while logical.trim_end().ends_with('\\')
                && let Some((_, next)) = lines.next()
            {
                logical.push_str(next);
            }
        }
        let keep = if directive { resolver.directive(&logical, at + 1)? } else { resolver.is_active() };
        in_comment = ends_in_comment(&logical, in_comment);
        if keep {
            out.push_str(&logical);
        } else {
            out.extend(logical.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
    }
    match resolver.levels.last() {
        Some(open) => Err(ConditionalError { line: open.line, what: "#if without #endif".to_owned() }),
        None => Ok(out),
    }
}

/// Whether a comment is open at the end of `line`.
fn ends_in_comment(line: &str, mut inside: bool) -> bool {
    let bytes = line.as_bytes();
    let (mut at, mut quote) = (0, 0);
    while at < bytes.len() {
        let pair = (bytes[at], bytes.get(at + 1).copied().unwrap_or(0));
        at += 1;
        match pair {
            (b'*', b'/') if inside => {
                inside = false;
                at += 1;
            }
            _ if inside => {}
            (b'\\', _) if quote != 0 => at += 1,
            (byte, _) if quote != 0 => quote = if byte == quote { 0 } else { quote },
            (b'/', b'*') => {
                inside = true;
                at += 1;
            }
            (b'/', b'/') => return false,
            (b'"', _) => quote = b'"',
            // An apostrophe is a character constant only if it closes soon.
            (b'\'', b'\\') => at += 2,
            (b'\'', _) if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            _ => {}
        }
    }
    inside
}

struct Resolver<'a> {
    config: &'a Config,
    /// Macros of this file: their text, where it has no parameters.
    macros: HashMap<String, Option<String>>,
    levels: Vec<Level>,
}

impl Resolver<'_> {
    fn is_active(&self) -> bool {
        self.levels.last().is_none_or(|level| level.active)
    }

    /// Takes a directive; whether it stays in the text.
    fn directive(&mut self, text: &str, line: usize) -> Result<bool, ConditionalError> {
        let tokens: Vec<Token> = lex::tokens(text).into_iter().filter(|token| token.kind != Kind::Newline).collect();
        let word = tokens.get(1).map_or("", |token| token.text(text));
        let rest = tokens.get(2..).unwrap_or_default();
        match word {
            "if" | "ifdef" | "ifndef" => {
                let outer = self.is_active();
                let active = outer && self.holds(word, text, rest, line)?;
                self.levels.push(Level { outer, taken: active, active, line });
            }
            "elif" => {
                let level = self.open(line, "#elif")?;
                let wanted = level.outer && !level.taken;
                let active = wanted && self.holds("if", text, rest, line)?;
                let level = self.open(line, "#elif")?;
                level.active = active;
                level.taken |= active;
            }
            "else" => {
                let level = self.open(line, "#else")?;
                level.active = level.outer && !level.taken;
                level.taken = true;
            }
            "endif" => {
                self.open(line, "#endif")?;
                self.levels.pop();
            }
            _ => {
                let active = self.is_active();
                if active {
                    self.note_macro(word, text, rest);
                }
                return Ok(active);
            }
        }
        Ok(false)
    }

    fn open(&mut self, line: usize, what: &str) -> Result<&mut Level, ConditionalError> {
        self.levels.last_mut().ok_or_else(|| ConditionalError { line, what: format!("{what} without #if") })
    }

    fn note_macro(&mut self, word: &str, text: &str, rest: &[Token]) {
        let Some(name) = rest.first() else { return };
        match word {
            "define" => {
                let takes_arguments = text.as_bytes().get(name.end) == Some(&b'(');
                let body = (!takes_arguments).then(|| text[name.end..].trim().to_owned());
                self.macros.insert(name.text(text).to_owned(), body);
            }
            "undef" => {
                self.macros.remove(name.text(text));
            }
            _ => {}
        }
    }

    fn holds(&self, word: &str, text: &str, rest: &[Token], line: usize) -> Result<bool, ConditionalError> {
        let error = |what: &str| ConditionalError { line, what: format!("{what}: {}", text.trim()) };
        if word != "if" {
            let name = rest.first().ok_or_else(|| error("a name is missing"))?.text(text);
            return Ok(self.is_defined(name) == (word == "ifdef"));
        }
        let words: Vec<&str> = rest.iter().map(|token| token.text(text)).collect();
        let mut expression = Expression { resolver: self, words: &words, at: 0, depth: 0 };
        let value = expression.ternary().ok_or_else(|| error("not understood"))?;
        if expression.at == words.len() { Ok(value != 0) } else { Err(error("not understood")) }
    }

    fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || self.config.macro_value(name).is_some()
    }

    /// The number that `name` stands for; what is not defined is 0.
    fn value(&self, name: &str, depth: usize) -> i64 {
        if let Some(Some(body)) = self.macros.get(name)
            && depth < 16
        {
            let tokens = lex::tokens(body);
            let words: Vec<&str> =
                tokens.iter().filter(|token| token.kind != Kind::Newline).map(|token| token.text(body)).collect();
            return Expression { resolver: self, words: &words, at: 0, depth: depth + 1 }.ternary().unwrap_or(0);
        }
        self.config.macro_value(name).map_or(0, |text| number(text).unwrap_or(0))
    }
}

/// An integer constant with its suffixes.
fn number(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    hex.map_or_else(|| digits.parse().ok(), |hex| i64::from_str_radix(hex, 16).ok())
}

/// Recursive descent over the words of an `#if`; `None`: not understood.
struct Expression<'a> {
    resolver: &'a Resolver<'a>,
    words: &'a [&'a str],
    at: usize,
    depth: usize,
}

impl<'a> Expression<'a> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }

    /// An operator of two characters, which the lexer gives one by one.
    fn take_pair(&mut self, pair: &str) -> bool {
        let found = self.words.get(self.at) == Some(&&pair[..1]) && self.words.get(self.at + 1) == Some(&&pair[1..]);
        self.at += if found { 2 } else { 0 };
        found
    }

    fn ternary(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let yes = self.ternary()?;
        let no = if self.take(":") { self.ternary()? } else { return None };
        Some(if condition != 0 { yes } else { no })
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        const LEVELS: [&[&str]; 7] =
            [&["||"], &["&&"], &["|", "^", "&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
        for operator in LEVELS[level] {
            let doubled = operator.len() == 1 && self.words.get(self.at + 1) == Some(operator);
            let found = if operator.len() == 2 { self.take_pair(operator) } else { !doubled && self.take(operator) };
            if found {
                return Some(operator);
            }
        }
        None
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        if level == 7 {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        if self.take("!") {
            return Some(i64::from(self.unary()? == 0));
        }
        if self.take("-") {
            return Some(self.unary()?.wrapping_neg());
        }
        if self.take("(") {
            let value = self.ternary()?;
            return self.take(")").then_some(value);
        }
        let word = *self.words.get(self.at)?;
        self.at += 1;
        match word {
            "defined" => {
                let name = self.argument(true)?;
                Some(i64::from(self.resolver.is_defined(name)))
            }
            "IS_ENABLED" | "IS_BUILTIN" | "IS_REACHABLE" => {
                let name = self.argument(false)?;
                Some(i64::from(self.resolver.config.is_on(name)))
            }
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => number(word),
            // A macro with arguments that nobody knows: 0, its arguments skipped.
            _ if self.words.get(self.at) == Some(&"(") => self.skip_arguments().then_some(0),
            _ if lex::begins_ident(word.as_bytes()[0]) => Some(self.resolver.value(word, self.depth)),
            _ => None,
        }
    }

    fn argument(&mut self, may_be_bare: bool) -> Option<&'a str> {
        let bracket = self.take("(");
        let name = (bracket || may_be_bare).then(|| self.words.get(self.at).copied()).flatten()?;
        self.at += 1;
        (!bracket || self.take(")")).then_some(name)
    }

    fn skip_arguments(&mut self) -> bool {
        let mut open = 0_usize;
        while let Some(&word) = self.words.get(self.at) {
            self.at += 1;
            match word {
                "(" => open += 1,
                ")" if open == 1 => return true,
                ")" => open -= 1,
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(source: &str) -> Vec<String> {
        let config = Config::default();
        let text = resolve(source, &config).expect("a sound source");
        assert_eq!(text.len(), source.len(), "every byte keeps its place");
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn the_configuration_decides() {
        assert_eq!(kept("#ifdef CONFIG_SMP\na\n#else\nb\n#endif\nc\n"), ["a", "c"]);
        assert_eq!(kept("#ifndef CONFIG_SMP\na\n#elif defined(CONFIG_NUMA)\nb\n#else\nc\n#endif\n"), ["b"]);
        assert_eq!(
            kept("#if defined(CONFIG_FAIR_GROUP_SCHED) || IS_ENABLED(CONFIG_UCLAMP_TASK)\na\n#endif\n").len(),
            0
        );
        assert_eq!(kept("#if BITS_PER_LONG == 64 && !NOT_THERE && (1 + 2) * 2 > 5\na\n#endif\n"), ["a"]);
    }

    #[test]
    fn a_macro_of_the_file_counts_from_its_line_on() {
        let source = "#ifdef X\na\n#endif\n#define X 3\n#if X > 2\nb\n#endif\n#undef X\n#ifdef X\nc\n#endif\n";
        assert_eq!(kept(source), ["#define X 3", "b", "#undef X"]);
    }

    #[test]
    fn nested_branches_of_a_dead_branch_are_dead() {
        assert_eq!(kept("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif\n"), ["c"]);
    }

    #[test]
    fn a_hash_in_a_comment_is_no_directive() {
        assert_eq!(kept("/* it's\n#if 0\n*/ a\n"), ["/* it's", "#if 0", "*/ a"]);
    }

    #[test]
    fn continued_conditions() {
        assert_eq!(kept("#if defined(CONFIG_SMP) && \\\n    defined(CONFIG_NUMA)\na\n#endif\n"), ["a"]);
    }

    #[test]
    fn partners_must_be_there() {
        let error = |source| resolve(source, &Config::default()).expect_err("no sound source").line;
        assert_eq!(error("a\n#endif\n"), 2);
        assert_eq!(error("#ifdef A\n"), 1);
        assert_eq!(error("#if 1 +\n#endif\n"), 1);
    }
}
