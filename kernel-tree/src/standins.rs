// SPDX-License-Identifier: GPL-2.0-or-later
//! The stand-ins as text, and the names they define.

use std::collections::{BTreeSet, HashSet};

use crate::c::conditional;
use crate::c::index::{File, ItemKind, Key};
use crate::c::lex;
use crate::config::Config;
use crate::error::TreeError;

/// Headers that come before the tree's text, in order.
pub const HEADERS: &[(&str, &str)] = &[
    ("kernel.h", include_str!("../standins/kernel.h")),
    ("cpumask.h", include_str!("../standins/cpumask.h")),
    // Not sched.h, which the C library has, too.
    ("sched-standins.h", include_str!("../standins/sched.h")),
    ("instrument.h", include_str!("../standins/instrument.h")),
];

/// Included after the functions that check for idleness.
pub const PROBE: &str = include_str!("../standins/probe.h");
/// Included after the tree's text.
pub const GLUE: &str = include_str!("../standins/glue.c");
/// A translation unit of its own.
pub const RUNTIME: &str = include_str!("../standins/runtime.c");

/// Functions whose calls are idle checks.
pub const PROBES: &[&str] =
    &["available_idle_cpu", "idle_cpu", "sched_idle_cpu", "choose_sched_idle_rq", "idle_cpu_without"];

/// What the stand-ins define, and what they want of the tree.
#[derive(Debug, Default)]
pub struct Names {
    /// Names that are never taken from the tree.
    pub own: HashSet<Key>,
    /// Those of them that are macros.
    pub macros: BTreeSet<String>,
    /// Names taken from the tree where it has them.
    pub wanted: Vec<String>,
    /// Every word of the glue: members of those names are kept.
    pub words: HashSet<String>,
}

/// The names of the stand-ins and of the user's own header `shim`.
///
/// # Errors
/// A shim whose conditionals cannot be followed.
pub fn names(config: &Config, shim: Option<&str>) -> Result<Names, TreeError> {
    let mut names = Names::default();
    let shim = shim.map(|text| ("--shim", text));
    for (path, text) in HEADERS.iter().copied().chain(shim) {
        let text = conditional::resolve(text, config)
            .map_err(|source| TreeError::Conditional { path: path.to_owned(), source })?;
        for item in File::parse(path, text).items {
            if item.kind == ItemKind::Macro {
                names.macros.extend(item.keys.iter().map(|key| key.text().to_owned()));
            }
            names.own.extend(item.keys);
        }
    }
    for line in GLUE.lines() {
        if let Some((_, list)) = line.split_once("wants: ") {
            names.wanted.extend(list.split_whitespace().map(str::to_owned));
        }
    }
    // SD_FIELD_rq__cpu and rq->cpu alike name the member cpu.
    for word in lex::identifiers(GLUE) {
        names.words.insert(word.to_owned());
    }
    Ok(names)
}

/// What the stand-ins decide instead of the kernel: the sentences after "Decides:" in them.
pub fn decisions() -> Vec<String> {
    let texts = HEADERS.iter().map(|(_, text)| *text).chain([PROBE, GLUE]);
    let of = |text: &'static str| text.split("Decides: ").skip(1).filter_map(|rest| rest.split_once("*/"));
    let plain = |text: &str| {
        let lines = text.lines().map(|line| line.trim().trim_start_matches('*').trim());
        lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    };
    texts.flat_map(of).map(|(text, _)| plain(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_what_they_decide() {
        let page = include_str!("../../docs/kernel-trees.md");
        let page: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing: Vec<String> = decisions().into_iter().filter(|text| !page.contains(text.as_str())).collect();
        assert!(missing.is_empty(), "not in docs/kernel-trees.md: {missing:#?}");
        assert!(decisions().len() > 15);
    }

    #[test]
    fn names_of_every_kind_are_own() {
        let names = names(&Config::default(), Some("#define mine(x) (x)\nint also_mine;\n")).expect("sound stand-ins");
        for name in ["u64", "cpumask_and", "nr_cpu_ids", "min", "current", "mine", "also_mine", "static_branch_likely"]
        {
            assert!(names.own.contains(&Key::Name(name.to_owned())), "{name}");
        }
        assert!(names.own.contains(&Key::Tag("cpumask".to_owned())));
        assert!(names.wanted.iter().any(|name| name == "runqueues") && names.words.contains("recent_used_cpu"));
    }
}
