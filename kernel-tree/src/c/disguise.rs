// SPDX-License-Identifier: GPL-2.0-or-later
//! Kernel text made plain C for the parser, byte for byte in the same place.
//!
//! The parser knows no macros. Attributes (`__init`, `__must_hold(x)`) become blanks, `for_each_cpu (…)` becomes a
//! `while (…)`, directives become blanks, and a macro that stands as a declaration of its own (`DEFINE_PER_CPU(…);`) is
//! taken out and listed. What is emitted later is the original text, never this one.

use super::lex::{self, Kind, Token};

/// Attributes without arguments.
const ATTRIBUTES: &[&str] = &[
    "__always_inline",
    "__always_unused",
    "__bitwise",
    "__cold",
    "__cpuidle",
    "__deprecated",
    "__exit",
    "__force",
    "__hot",
    "__init",
    "__initconst",
    "__initdata",
    "__iomem",
    "__kernel",
    "__latent_entropy",
    "__maybe_unused",
    "__malloc",
    "__must_check",
    "__noreturn",
    "__packed",
    "__percpu",
    "__pure",
    "__attribute_const__",
    "__rcu",
    "__read_mostly",
    "__ro_after_init",
    "__rq_lock_context",
    "__sched",
    "__user",
    "__visible",
    "__weak",
    "asmlinkage",
    "fastcall",
    "no_llseek",
    "noinline",
    "noinline_for_stack",
    "noinstr",
    "notrace",
    "randomized_struct_fields_end",
    "randomized_struct_fields_start",
];

/// Attributes with arguments.
const CALLED_ATTRIBUTES: &[&str] = &[
    "__acquires",
    "__acquires_ret",
    "__acquires_shared",
    "__aligned",
    "__cond_acquires",
    "__cond_acquires_shared",
    "__counted_by",
    "__counted_by_ptr",
    "__guarded_by",
    "__must_hold",
    "__must_hold_shared",
    "__printf",
    "__pt_guarded_by",
    "__releases",
    "__releases_shared",
    "__section",
    "__no_sanitize_or_inline",
    "__cacheline_group_begin",
    "__cacheline_group_end",
    "__cacheline_group_begin_aligned",
    "__cacheline_group_end_aligned",
];

/// A `#define` of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Define {
    /// The macro's name.
    pub name: String,
    /// Its parameters, where it is written with brackets.
    pub params: Option<Vec<String>>,
    /// First byte of the directive.
    pub start: usize,
    /// One past its last byte (the end of its last line).
    pub end: usize,
    /// First byte of its body.
    pub body: usize,
}

/// A macro that stands where a declaration would: `DEFINE_PER_CPU(int, sd_llc_size);`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroDeclaration {
    /// The macro's name.
    pub macro_name: String,
    /// Identifiers among its arguments, of which some are the names it declares.
    pub arguments: Vec<String>,
    /// First byte, a `static` before it included.
    pub start: usize,
    /// One past its last byte, the semicolon included.
    pub end: usize,
}

/// What [`disguise`] found besides plain C.
#[derive(Debug, Default)]
pub struct Disguised {
    /// The text for the parser.
    pub text: String,
    /// Its macros.
    pub defines: Vec<Define>,
    /// Macros standing as declarations.
    pub declarations: Vec<MacroDeclaration>,
}

/// Makes `source` (without conditionals) plain C of the same length.
pub fn disguise(source: &str) -> Disguised {
    let mut disguise = Disguise { source, out: source.as_bytes().to_vec(), found: Disguised::default() };
    disguise.directives();
    let plain = String::from_utf8_lossy(&disguise.out).into_owned();
    let tokens: Vec<Token> = lex::tokens(&plain).into_iter().filter(|token| token.kind != Kind::Newline).collect();
    disguise.words(&plain, &tokens);
    disguise.found.text = String::from_utf8_lossy(&disguise.out).into_owned();
    disguise.found
}

struct Disguise<'a> {
    source: &'a str,
    out: Vec<u8>,
    found: Disguised,
}

impl Disguise<'_> {
    fn blank(&mut self, start: usize, end: usize) {
        for byte in &mut self.out[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }

    /// Blanks every directive and lists the `#define`s.
    fn directives(&mut self) {
        let source = self.source;
        let tokens = lex::tokens(source);
        let mut at = 0;
        let mut fresh = true;
        while at < tokens.len() {
            let token = tokens[at];
            if fresh && token.is(b'#') {
                let until = tokens[at..].iter().position(|token| token.kind == Kind::Newline);
                let last = until.map_or(tokens.len(), |offset| at + offset);
                let end = tokens.get(last).map_or(source.len(), |newline| newline.start);
                self.define(&tokens[at..last], end);
                self.blank(token.start, end);
                at = last;
                continue;
            }
            fresh = token.kind == Kind::Newline;
            at += 1;
        }
    }

    fn define(&mut self, line: &[Token], end: usize) {
        let source = self.source;
        let (Some(word), Some(name)) = (line.get(1), line.get(2)) else { return };
        if word.text(source) != "define" || name.kind != Kind::Ident {
            return;
        }
        let called = line.get(3).is_some_and(|token| token.is(b'(') && token.start == name.end);
        let close = called.then(|| line.iter().position(|token| token.is(b')'))).flatten();
        let params = close.map(|close| {
            let names = line[4..close].iter().filter(|token| token.kind == Kind::Ident);
            names.map(|token| token.text(source).to_owned()).collect()
        });
        let body = close.map_or(name.end, |close| line[close].end);
        let (name, start) = (name.text(source).to_owned(), line[0].start);
        self.found.defines.push(Define { name, params, start, end, body });
    }

    fn words(&mut self, plain: &str, tokens: &[Token]) {
        let mut depth = 0_usize;
        let mut at = 0;
        // Whether a declaration may begin here.
        let mut fresh = true;
        while at < tokens.len() {
            let token = tokens[at];
            let was_fresh = fresh;
            fresh = false;
            match token.kind {
                Kind::Punct(b'{') => depth += 1,
                Kind::Punct(b'}') => {
                    depth = depth.saturating_sub(1);
                    fresh = depth == 0;
                }
                Kind::Punct(b';') => fresh = depth == 0,
                Kind::Ident => {
                    if depth == 0
                        && was_fresh
                        && let Some(next) = self.macro_declaration(plain, tokens, at)
                    {
                        at = next;
                        fresh = true;
                        continue;
                    }
                    let attribute = self.attribute(plain, tokens, at);
                    fresh = was_fresh && attribute;
                    if depth > 0 {
                        self.iterator(plain, tokens, at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Blanks the attribute at `at`, if it is one.
    fn attribute(&mut self, plain: &str, tokens: &[Token], at: usize) -> bool {
        let token = tokens[at];
        let text = token.text(plain);
        if ATTRIBUTES.contains(&text) || text.starts_with("____cacheline") {
            self.blank(token.start, token.end);
            return true;
        }
        let called = CALLED_ATTRIBUTES.contains(&text) || text.starts_with("__cacheline_group");
        if called && let Some(close) = closing(tokens, at + 1) {
            let mut end = tokens[close].end;
            // A marker that stands as a member of its own.
            if text.starts_with("__cacheline_group") && tokens.get(close + 1).is_some_and(|token| token.is(b';')) {
                end = tokens[close + 1].end;
            }
            self.blank(token.start, end);
            return true;
        }
        false
    }

    /// Turns the head of a loop that a macro makes into one that the parser knows.
    fn iterator(&mut self, plain: &str, tokens: &[Token], at: usize) {
        let token = tokens[at];
        if is_iterator(token.text(plain))
            && closing(tokens, at + 1).and_then(|close| tokens.get(close + 1)).is_some_and(|next| !next.is(b';'))
        {
            self.blank(token.start, token.end);
            self.out[token.start..token.start + 5].copy_from_slice(b"while");
        }
    }

    /// Takes out a macro that stands as a declaration; the token after it.
    fn macro_declaration(&mut self, plain: &str, tokens: &[Token], at: usize) -> Option<usize> {
        let is_storage = |token: &Token| matches!(token.text(plain), "static" | "extern");
        let head = at + tokens[at..].iter().take_while(|token| is_storage(token)).count();
        let name = tokens.get(head)?;
        let text = name.text(plain);
        let shouts = text.len() > 2 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !shouts || name.kind != Kind::Ident {
            return None;
        }
        let close = closing(tokens, head + 1)?;
        let inside = tokens[head + 2..close].iter().filter(|token| token.kind == Kind::Ident);
        let arguments = inside.map(|token| token.text(plain).to_owned()).collect();
        // Up to the semicolon, over attributes and an initialiser; a body belongs to what follows.
        let mut end = close;
        let mut open = 0_usize;
        for (offset, token) in tokens[close + 1..].iter().enumerate() {
            match token.kind {
                Kind::Punct(b'{') if open == 0 && !tokens[close + 1..close + 1 + offset].iter().any(|t| t.is(b'=')) => {
                    break;
                }
                Kind::Punct(b'{') => open += 1,
                Kind::Punct(b'}') => open = open.saturating_sub(1),
                Kind::Punct(b';') if open == 0 => {
                    end = close + 1 + offset;
                    break;
                }
                _ => {}
            }
        }
        let (start, stop) = (tokens[at].start, tokens[end].end);
        self.blank(start, stop);
        self.found.declarations.push(MacroDeclaration { macro_name: text.to_owned(), arguments, start, end: stop });
        Some(end + 1)
    }
}

/// Whether `name` is a macro that makes the head of a loop or of a guarded block.
pub fn is_iterator(name: &str) -> bool {
    let words = name.trim_start_matches('_');
    let at = words.find("for_each");
    let each = at.is_some_and(|at| {
        let after = &words[at + "for_each".len()..];
        (at == 0 || words.as_bytes()[at - 1] == b'_') && (after.is_empty() || after.starts_with('_'))
    });
    each || name == "scoped_guard" || name == "scoped_cond_guard"
}

/// The bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    if !tokens.get(open)?.is(b'(') {
        return None;
    }
    let mut depth = 0_usize;
    for (offset, token) in tokens[open..].iter().enumerate() {
        match token.kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => {
                depth -= 1;
                if depth == 0 {
                    return Some(open + offset);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_keeps_its_place() {
        let source = "#define A(x, y) \\\n\t((x) + 1)\nstatic __always_inline int f(int a) __must_hold(&a)\n{\n\tfor_each_cpu(i, m)\n\t\tg(i);\n}\n";
        let found = disguise(source);
        assert_eq!(found.text.len(), source.len());
        assert_eq!(found.text.lines().count(), source.lines().count());
        assert!(found.text.contains("while       (i, m)"), "{}", found.text);
        assert!(!found.text.contains("__must_hold") && !found.text.contains("__always_inline"));
        let define = &found.defines[0];
        assert_eq!((define.name.as_str(), define.params.clone()), ("A", Some(vec!["x".to_owned(), "y".to_owned()])));
        assert_eq!(source[define.body..define.end].trim_matches(['\\', '\n', '\t', ' ']), "((x) + 1)");
    }

    #[test]
    fn macros_that_stand_as_declarations() {
        let source = "DEFINE_PER_CPU(struct sched_domain __rcu *, sd_llc);\nstatic DEFINE_PER_CPU(int, x) = { 1 };\nint SHOUT(int a)\n{\n}\nEXPORT_SYMBOL(x);\nint y;";
        let found = disguise(source);
        let names: Vec<_> = found.declarations.iter().map(|found| found.macro_name.as_str()).collect();
        assert_eq!(names, ["DEFINE_PER_CPU", "DEFINE_PER_CPU", "EXPORT_SYMBOL"]);
        assert!(found.declarations[0].arguments.contains(&"sd_llc".to_owned()));
        assert!(found.text.trim_start().starts_with("int SHOUT"), "{}", found.text);
        assert!(found.text.trim_end().ends_with("int y;"));
    }

    #[test]
    fn names_of_loops() {
        assert!(is_iterator("for_each_cpu_wrap") && is_iterator("list_for_each_entry") && is_iterator("__for_each_x"));
        assert!(!is_iterator("foreach") && !is_iterator("before_each") && !is_iterator("for_eacher"));
    }
}
