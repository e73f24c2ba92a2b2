// SPDX-License-Identifier: GPL-2.0-or-later
//! What the wakeup path needs of a tree, transitively.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use tree_sitter::Node;

use crate::c::index::{self, File, Item, ItemKind, Key};
use crate::c::keywords::is_keyword;
use crate::c::lex::{self, Kind, Token};
use crate::error::TreeError;
use crate::extract::library::{ItemId, Library};

/// A use of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The definition that uses it.
    pub by: String,
    /// Its file.
    pub path: String,
    /// The line of the use, from 1.
    pub line: usize,
}

/// The definitions that the walk needs.
#[derive(Debug, Default)]
pub struct Closure {
    /// Functions, macros, variables, enums, typedefs and structs.
    pub items: BTreeSet<ItemId>,
    /// Every word that may be the name of a member.
    pub words: HashSet<String>,
    /// Calls of functions that nobody defines, with one use each.
    pub unresolved: BTreeMap<String, Use>,
    /// Tracepoints called.
    pub tracepoints: BTreeSet<String>,
    /// Functions and variables that are declared in the tree and defined nowhere in its files.
    pub undefined: BTreeMap<String, (ItemId, Use)>,
    /// Tags of structs that are used and not defined.
    pub opaque: BTreeSet<String>,
}

/// Computes a [`Closure`].
pub struct Walker<'a> {
    library: &'a Library<'a>,
    /// Names that the stand-ins define.
    own: &'a HashSet<Key>,
    closure: Closure,
    queue: VecDeque<(Key, usize, Use)>,
    seen: HashSet<(Key, usize)>,
    calls: HashMap<String, Use>,
}

impl<'a> Walker<'a> {
    /// A walker that stops at the names in `own`.
    pub fn new(library: &'a Library<'a>, own: &'a HashSet<Key>, words: HashSet<String>) -> Self {
        let closure = Closure { words, ..Closure::default() };
        Self { library, own, closure, queue: VecDeque::new(), seen: HashSet::new(), calls: HashMap::new() }
    }

    /// Takes in `key`, where the tree has it, and all that it needs; whether the tree has it.
    ///
    /// # Errors
    /// A file whose conditionals cannot be followed.
    pub fn want(&mut self, key: Key) -> Result<bool, TreeError> {
        let from = Use { by: "the stand-ins".to_owned(), path: String::new(), line: 0 };
        let file = self.library.index("kernel/sched/fair.c").unwrap_or(0);
        let there = self.library.find(&key, file)?.is_some_and(|id| {
            self.library.item(id).is_ok_and(|(_, item)| !matches!(item.kind, ItemKind::Prototype | ItemKind::Extern))
        });
        if there {
            self.queue.push_back((key, file, from));
            self.drain()?;
        }
        Ok(there)
    }

    /// The result.
    pub fn finish(mut self) -> Closure {
        for (name, user) in self.calls {
            self.closure.unresolved.entry(name).or_insert(user);
        }
        self.closure
    }

    fn drain(&mut self) -> Result<(), TreeError> {
        while let Some((key, file, user)) = self.queue.pop_front() {
            if self.own.contains(&key) || !self.seen.insert((key.clone(), file)) {
                continue;
            }
            let Some(id) = self.library.find(&key, file)? else {
                if let Key::Tag(tag) = key {
                    self.closure.opaque.insert(tag);
                }
                continue;
            };
            let (source, item) = self.library.item(id)?;
            match item.kind {
                ItemKind::Prototype | ItemKind::Extern => {
                    self.closure.undefined.entry(key.text().to_owned()).or_insert((id, user));
                }
                _ if self.closure.items.insert(id) => self.needs(id, source, item),
                _ => {}
            }
        }
        Ok(())
    }

    /// Queues what `item` needs. The members of structs wait for [`crate::extract::members`].
    fn needs(&mut self, id: ItemId, file: &File, item: &Item) {
        let name = item.keys.first().map_or("", |key| key.text()).to_owned();
        let locals = match item.kind {
            ItemKind::Struct => return,
            ItemKind::Function => {
                file.function(&item.range).map(|node| locals(node, &file.disguised)).unwrap_or_default()
            }
            ItemKind::Macro => item.params.iter().flatten().cloned().collect(),
            _ => HashSet::new(),
        };
        let range = if item.kind == ItemKind::Macro { &item.body } else { &item.range };
        for word in words(file.slice(range)) {
            self.closure.words.insert(word.text.to_owned());
            let at = Use { by: name.clone(), path: file.path.clone(), line: file.line(range.start + word.at) };
            self.need(id, &word, &locals, item.kind, at);
        }
    }

    fn need(&mut self, id: ItemId, word: &Word<'_>, locals: &HashSet<String>, kind: ItemKind, at: Use) {
        let key = match word.role {
            Role::Member => return,
            Role::Tag => Key::Tag(word.text.to_owned()),
            Role::Name | Role::Call => Key::Name(word.text.to_owned()),
        };
        let name = Key::Name(word.text.to_owned());
        if self.own.contains(&key) || is_keyword(word.text) {
            return;
        }
        // A local hides everything but a macro with brackets that is called.
        if locals.contains(word.text)
            && (word.role != Role::Call || !self.is_macro(&name, id.file))
            && word.role != Role::Tag
        {
            return;
        }
        if word.role == Role::Call && word.text.starts_with("trace_") {
            self.closure.tracepoints.insert(word.text.to_owned());
            return;
        }
        let known = matches!(self.library.find(&key, id.file), Ok(Some(_)));
        if !known && word.role == Role::Call && kind == ItemKind::Function {
            self.calls.entry(word.text.to_owned()).or_insert(at);
            return;
        }
        self.queue.push_back((key, id.file, at));
    }

    fn is_macro(&self, key: &Key, file: usize) -> bool {
        let found = self.library.find(key, file).ok().flatten();
        found.is_some_and(|id| self.library.item(id).is_ok_and(|(_, item)| item.kind == ItemKind::Macro))
    }

    /// Takes in what the kept members of the structs need: their types.
    ///
    /// # Errors
    /// As [`Self::want`].
    pub fn want_types(&mut self, types: impl Iterator<Item = (Key, usize, Use)>) -> Result<(), TreeError> {
        self.queue.extend(types);
        self.drain()
    }

    /// What was found so far.
    pub fn closure(&self) -> &Closure {
        &self.closure
    }
}

/// What a word of C may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// After `.` or `->`.
    Member,
    /// After `struct`, `union` or `enum`.
    Tag,
    /// Before `(`.
    Call,
    /// Anything else.
    Name,
}

/// An identifier in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// The identifier.
    pub text: &'a str,
    /// What it may be.
    pub role: Role,
    /// Its place in the text.
    pub at: usize,
}

/// The identifiers of `source` with their roles.
pub fn words(source: &str) -> Vec<Word<'_>> {
    let tokens: Vec<Token> = lex::tokens(source).into_iter().filter(|token| token.kind != Kind::Newline).collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Ident {
            continue;
        }
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let arrow = |token: &Token| token.is(b'>') && at >= 2 && tokens[at - 2].is(b'-');
        let role = if before.is_some_and(|token| token.is(b'.') || arrow(token)) {
            Role::Member
        } else if before.is_some_and(|token| matches!(token.text(source), "struct" | "union" | "enum")) {
            Role::Tag
        } else if tokens.get(at + 1).is_some_and(|token| token.is(b'(')) {
            Role::Call
        } else {
            Role::Name
        };
        found.push(Word { text: token.text(source), role, at: token.start });
    }
    found
}

/// Names that a function declares for itself: parameters, variables, labels.
fn locals(function: Node<'_>, source: &str) -> HashSet<String> {
    let mut found = Vec::new();
    let mut stack = vec![function];
    while let Some(node) = stack.pop() {
        match node.kind() {
            "parameter_declaration" => {
                found.extend(node.child_by_field_name("declarator").and_then(index::declared_name))
            }
            "declaration" => {
                let declarators: Vec<_> = node.children_by_field_name("declarator", &mut node.walk()).collect();
                found.extend(declarators.into_iter().filter_map(index::declared_name));
            }
            "labeled_statement" | "goto_statement" => found.extend(node.child_by_field_name("label")),
            _ => {}
        }
        stack.extend(index::children(node));
    }
    let own = function.child_by_field_name("declarator").and_then(index::declared_name);
    let texts = found.into_iter().filter(|node| Some(*node) != own).map(|node| index::text_of(node, source).to_owned());
    texts.collect()
}
