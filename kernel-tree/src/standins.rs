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
    ("sched.h", include_str!("../standins/sched.h")),
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
