// SPDX-License-Identifier: GPL-2.0-or-later
//! The tree's two lists that are made with macros: scheduler features and domain flags.

use crate::c::lex::{self, Kind, Token};

/// A `sched_feat()` of the tree.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Feature {
    /// Its name, as in debugfs.
    pub name: String,
    /// Whether it is on unless told otherwise.
    pub default: bool,
}

/// The features that `text`, features.h without conditionals, lists.
pub fn features(text: &str) -> Vec<Feature> {
    let each = |arguments: &[&str]| {
        let name = (*arguments.first()?).to_owned();
        Some(Feature { name, default: matches!(arguments.get(1), Some(&("true" | "1"))) })
    };
    calls(text, "SCHED_FEAT").iter().filter_map(|arguments| each(arguments)).collect()
}

/// The names of the domain flags that `text`, sd_flags.h, lists; bit n is the n-th.
pub fn domain_flags(text: &str) -> Vec<String> {
    calls(text, "SD_FLAG").iter().filter_map(|arguments| Some((*arguments.first()?).to_owned())).collect()
}

/// The arguments of every call of `name` in `text`, outside of directives.
fn calls<'a>(text: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let tokens: Vec<Token> = lex::tokens(text);
    let mut found = Vec::new();
    let mut directive = false;
    for (at, token) in tokens.iter().enumerate() {
        let begins = at == 0 || tokens[at - 1].kind == Kind::Newline;
        directive = if begins { token.is(b'#') } else { directive };
        if directive || token.text(text) != name || !tokens.get(at + 1).is_some_and(|token| token.is(b'(')) {
            continue;
        }
        let inside = tokens[at + 2..].iter().take_while(|token| !token.is(b')'));
        found.push(inside.filter(|token| !token.is(b',')).map(|token| token.text(text)).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_with_their_defaults() {
        let found = features("/* SCHED_FEAT(NO, true) */\nSCHED_FEAT(SIS_UTIL, true)\nSCHED_FEAT(SIS_PROP, false)\n");
        assert_eq!(found.len(), 2);
        assert!(found[0].name == "SIS_UTIL" && found[0].default);
        assert!(found[1].name == "SIS_PROP" && !found[1].default);
    }

    #[test]
    fn flags_in_their_order() {
        let text = "#ifndef SD_FLAG\n# error \"SD_FLAG(x, y)\"\n#endif\nSD_FLAG(SD_BALANCE_NEWIDLE, SDF_SHARED | SDF_X)\nSD_FLAG(SD_BALANCE_EXEC, 0)\n";
        assert_eq!(domain_flags(text), ["SD_BALANCE_NEWIDLE", "SD_BALANCE_EXEC"]);
    }
}
