// SPDX-License-Identifier: GPL-2.0-or-later
//! The files of a tree in which names are looked up, parsed when first needed.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::c::conditional;
use crate::c::index::{File, Item, ItemKind, Key};
use crate::config::Config;
use crate::error::TreeError;

/// Files that are looked at before all others, in this order.
const FIRST: &[&str] = &[
    "kernel/sched/fair.c",
    "kernel/sched/sched.h",
    "kernel/sched/pelt.h",
    "kernel/sched/stats.h",
    "kernel/sched/core.c",
    "kernel/sched/topology.c",
    "kernel/sched/syscalls.c",
];

/// A definition in the library: its file and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId {
    /// Index of the file.
    pub file: usize,
    /// Index of the item in it.
    pub item: usize,
}

/// The files of a tree.
pub struct Library<'a> {
    paths: Vec<&'a str>,
    texts: Vec<&'a str>,
    parsed: Vec<OnceCell<File>>,
    config: &'a Config,
    /// Macros that the stand-ins have, by which a macro standing as a declaration is understood.
    known_macros: BTreeSet<String>,
    found: RefCell<HashMap<(Key, usize), Option<ItemId>>>,
}

impl<'a> Library<'a> {
    /// The library of `files` (path to text) as `config` compiles them.
    pub fn new(files: &'a BTreeMap<String, String>, config: &'a Config, known_macros: BTreeSet<String>) -> Self {
        let first = FIRST.iter().copied().filter(|path| files.contains_key(*path));
        let rest = |prefix: &'static str| {
            files.keys().map(String::as_str).filter(move |path| path.starts_with(prefix) && !FIRST.contains(path))
        };
        let others = files.keys().map(String::as_str);
        let others =
            others.filter(|path| !path.starts_with("kernel/sched/") && !path.starts_with("include/linux/sched"));
        let paths: Vec<&str> =
            first.chain(rest("kernel/sched/")).chain(rest("include/linux/sched")).chain(others).collect();
        let texts = paths.iter().map(|path| files[*path].as_str()).collect();
        let parsed = paths.iter().map(|_| OnceCell::new()).collect();
        Self { paths, texts, parsed, config, known_macros, found: RefCell::default() }
    }

    /// The parsed file number `at`.
    ///
    /// # Errors
    /// Conditionals that cannot be followed.
    pub fn file(&self, at: usize) -> Result<&File, TreeError> {
        if let Some(file) = self.parsed[at].get() {
            return Ok(file);
        }
        let path = self.paths[at];
        let text = conditional::resolve(self.texts[at], self.config)
            .map_err(|source| TreeError::Conditional { path: path.to_owned(), source })?;
        Ok(self.parsed[at].get_or_init(|| File::parse(path, text)))
    }

    /// The index of file `path`.
    pub fn index(&self, path: &str) -> Option<usize> {
        self.paths.iter().position(|known| *known == path)
    }

    /// The item `id`.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn item(&self, id: ItemId) -> Result<(&File, &Item), TreeError> {
        let file = self.file(id.file)?;
        Ok((file, &file.items[id.item]))
    }

    /// The definition of `key` as file number `user` means it: its own, else the first one found.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn find(&self, key: &Key, user: usize) -> Result<Option<ItemId>, TreeError> {
        let cached = (key.clone(), user);
        if let Some(known) = self.found.borrow().get(&cached) {
            return Ok(*known);
        }
        let mut declared = None;
        let mut defined = None;
        let order = std::iter::once(user).chain((0..self.paths.len()).filter(|&at| at != user));
        for at in order.filter(|&at| at < self.paths.len()) {
            if !self.texts[at].contains(key.text()) {
                continue;
            }
            let file = self.file(at)?;
            let here = file.names.get(key).map_or(&[][..], Vec::as_slice);
            let kinds = here.iter().map(|&item| (ItemId { file: at, item }, &file.items[item]));
            for (id, item) in kinds {
                match item.kind {
                    ItemKind::Prototype | ItemKind::Extern => declared = declared.or(Some(id)),
                    ItemKind::MacroDeclaration if !self.declares(file, item, key) => {}
                    ItemKind::MacroDeclaration if self.is_mere_declaration(file, item) => {
                        declared = declared.or(Some(id));
                    }
                    _ => defined = defined.or(Some(id)),
                }
            }
            if defined.is_some() {
                break;
            }
        }
        let found = defined.or(declared);
        self.found.borrow_mut().insert(cached, found);
        Ok(found)
    }

    /// Whether a macro standing as a declaration is one that the stand-ins know, and declares `key`.
    fn declares(&self, file: &File, item: &Item, key: &Key) -> bool {
        let text = file.slice(&item.range);
        let open = text.find('(').unwrap_or(text.len());
        let name = text[..open].split_whitespace().last().unwrap_or_default();
        // The name is the last argument of DEFINE_PER_CPU(type, name), the only one of DEFINE_STATIC_KEY_FALSE(name).
        self.known_macros.contains(name) && item.keys.last() == Some(key)
    }

    fn is_mere_declaration(&self, file: &File, item: &Item) -> bool {
        file.slice(&item.range).trim_start().starts_with("DECLARE_")
    }

    /// The path of file number `at`.
    pub fn path(&self, at: usize) -> &str {
        self.paths[at]
    }
}
