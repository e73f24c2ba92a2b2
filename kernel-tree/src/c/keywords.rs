// SPDX-License-Identifier: GPL-2.0-or-later
//! Words that are no names.

/// Keywords of C and the builtin words of the compilers that build kernels.
const KEYWORDS: &[&str] = &[
    "_Bool", "_Generic", "_Static_assert", "__alignof__", "__attribute__", "__auto_type", "__extension__", "__func__",
    "__inline", "__inline__", "__int128", "__label__", "__restrict", "__signed__", "__typeof", "__typeof__",
    "__typeof_unqual__", "__volatile__", "asm", "__asm__", "auto", "break", "case", "char", "const", "continue",
    "default", "define", "defined", "do", "double", "elif", "else", "endif", "enum", "extern", "float", "for", "goto",
    "if", "ifdef", "ifndef", "include", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "typeof", "undef", "union", "unsigned", "void", "volatile",
    "while",
];

/// Whether `word` is a keyword, or a builtin of the compiler.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || word.starts_with("__builtin_") || matches!(word, "__LINE__" | "__FILE__" | "__VA_ARGS__")
}
