// SPDX-License-Identifier: GPL-2.0-or-later
//! One translation unit out of the stand-ins and what the walk needs of the tree.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use crate::c::conditional;
use crate::c::index::{self, ItemKind, Key};
use crate::config::Config;
use crate::error::TreeError;
use crate::extract::closure::{Closure, Use, Walker};
use crate::extract::instrument::{self, Table};
use crate::extract::keeps::{self, Keeper};
use crate::extract::library::{ItemId, Library};
use crate::extract::members::{self, Pruned};
use crate::extract::tables::{self, Feature};
use crate::run::protocol;
use crate::standins::{self, Names};

/// Functions without which there is no wakeup path.
const ROOTS: &[&str] = &["select_task_rq_fair", "select_idle_sibling", "__update_idle_core"];

/// Whether marks are put into the tree's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Everywhere: lines, returns and endless loops are known.
    On,
    /// Nowhere: for text that the parser misunderstands.
    Off,
}

/// A tree, cut out.
#[derive(Debug)]
pub struct Extract {
    /// The translation unit.
    pub text: String,
    /// Scheduler features of the tree, in the order of their switches.
    pub features: Vec<Feature>,
    /// Functions taken from the tree, with their files.
    pub functions: Vec<(String, String)>,
    /// State that it keeps beside what every release keeps.
    pub keeps: Vec<String>,
    /// Marks in the text.
    pub table: Table,
    /// Files that the text includes, as it names them, and their text.
    pub includes: BTreeMap<String, String>,
    /// The text of the functions taken.
    pub lines: Lines,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Text of the tree: file to line (from 1) to what stands there.
pub type Lines = BTreeMap<String, BTreeMap<u32, String>>;

/// Cuts the wakeup path out of `files`.
///
/// # Errors
/// See [`TreeError`].
pub fn extract(
    name: &str,
    files: &BTreeMap<String, String>,
    config: &Config,
    shim: Option<&str>,
    marks: Marks,
) -> Result<Extract, TreeError> {
    let mut names = standins::names(config, shim)?;
    let features = features(files, config)?;
    let flags = files.get("include/linux/sched/sd_flags.h").map(|text| tables::domain_flags(text)).unwrap_or_default();
    for flag in &flags {
        names.own.insert(Key::Name(flag.clone()));
        names.own.insert(Key::Name(format!("__{flag}")));
    }
    let library = Library::new(files, config, names.macros.clone());
    let (closure, have) = close(name, &library, &names)?;
    let have = have.into_iter().chain(flags.iter().cloned()).collect();
    let mut assembly = Assembly {
        library: &library,
        names: &names,
        closure,
        marks,
        table: Table::default(),
        out: String::new(),
        warnings: Vec::new(),
    };
    assembly.head(config, &features, &flags, &have, shim);
    assembly.body()?;
    let (functions, lines) = (assembly.functions()?, assembly.lines()?);
    let keeps = assembly.keeps()?;
    let includes = includes(&assembly.out, files);
    let text = format!("#define SD_NR_STATEMENTS {}\n{}", assembly.table.statements.len(), assembly.out);
    let Assembly { table, warnings, .. } = assembly;
    Ok(Extract { text, features, functions, keeps, table, includes, lines, warnings })
}

/// Lists that the tree's own text includes in the middle of a definition, with their conditionals: what they are made
/// into is the compiler's business.
fn includes(text: &str, files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix('#')) {
        let Some(name) = line.trim_start().strip_prefix("include") else { continue };
        let name = name.trim().trim_matches(['"', '<', '>']);
        let known = standins::HEADERS.iter().any(|(header, _)| *header == name);
        let paths = [format!("include/{name}"), format!("kernel/sched/{name}")];
        if let Some(text) = paths.iter().find_map(|path| files.get(path)).filter(|_| !known) {
            found.insert(name.to_owned(), text.clone());
        }
    }
    found
}

fn features(files: &BTreeMap<String, String>, config: &Config) -> Result<Vec<Feature>, TreeError> {
    let path = "kernel/sched/features.h";
    let Some(text) = files.get(path) else { return Ok(Vec::new()) };
    let text = conditional::resolve(text, config)
        .map_err(|source| TreeError::Conditional { path: path.to_owned(), source })?;
    Ok(tables::features(&text))
}

/// Everything from the roots on, and which of the wanted names the tree has.
fn close<'a>(name: &str, library: &'a Library<'a>, names: &'a Names) -> Result<(Closure, BTreeSet<String>), TreeError> {
    let mut walker = Walker::new(library, &names.own, names.words.clone());
    let mut have = BTreeSet::new();
    for root in ROOTS {
        if !walker.want(Key::Name((*root).to_owned()))? {
            return Err(TreeError::NoFunction { path: name.to_owned(), function: (*root).to_owned() });
        }
    }
    for wanted in &names.wanted {
        if walker.want(Key::Name(wanted.clone()))? {
            have.insert(wanted.clone());
        }
    }
    // Members kept need types, whose members may have names that were kept for others.
    for tag in [
        "rq",
        "task_struct",
        "sched_domain",
        "sched_domain_shared",
        "sched_group",
        "sched_group_capacity",
        "root_domain",
    ] {
        walker.want(Key::Tag(tag.to_owned()))?;
    }
    loop {
        let before = (walker.closure().items.len(), walker.closure().words.len());
        let mut wanted = Vec::new();
        for &id in &walker.closure().items {
            let (file, item) = library.item(id)?;
            if item.kind == ItemKind::Struct {
                let pruned = members::prune(file, item, &walker.closure().words);
                let by = item.keys[0].text().to_owned();
                wanted.extend(
                    pruned.needs.into_iter().map(|need| {
                        (need.key, id.file, Use { by: by.clone(), path: file.path.clone(), line: need.line })
                    }),
                );
            }
        }
        walker.want_types(wanted.into_iter())?;
        if before == (walker.closure().items.len(), walker.closure().words.len()) {
            break;
        }
    }
    let closure = walker.finish();
    if let Some((symbol, user)) = closure.unresolved.iter().next() {
        let Use { by, path, line } = user.clone();
        return Err(TreeError::Unresolved { symbol: symbol.clone(), by, path, line });
    }
    Ok((closure, have))
}

struct Assembly<'a> {
    library: &'a Library<'a>,
    names: &'a Names,
    closure: Closure,
    marks: Marks,
    table: Table,
    out: String,
    warnings: Vec<String>,
}

impl Assembly<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Everything that comes before the tree's own definitions.
    fn head(
        &mut self,
        config: &Config,
        features: &[Feature],
        flags: &[String],
        have: &BTreeSet<String>,
        shim: Option<&str>,
    ) {
        for (option, value) in config.options() {
            self.line(&format!("#define {option} {value}"));
        }
        for (number, feature) in features.iter().enumerate() {
            self.line(&format!("#define SD_FEAT_{} {number}", feature.name));
        }
        self.line(&format!("#define SD_NR_FEATURES {}", features.len()));
        self.line(&protocol::defines());
        for (path, _) in standins::HEADERS {
            self.line(&format!("#include \"{path}\""));
        }
        if shim.is_some() {
            self.line("#include \"shim.h\"");
        }
        if !flags.is_empty() {
            let bits: Vec<String> = flags.iter().map(|flag| format!("\t__{flag},")).collect();
            let values: Vec<String> = flags.iter().map(|flag| format!("\t{flag} = 1 << __{flag},")).collect();
            self.line(&format!(
                "enum {{\n{}\n\t__SD_FLAG_CNT\n}};\nenum {{\n{}\n}};",
                bits.join("\n"),
                values.join("\n")
            ));
        }
        for name in have {
            self.line(&format!("#define SD_HAS_{name} 1"));
        }
        for tracepoint in self.closure.tracepoints.clone() {
            self.line(&format!("#define {tracepoint}(...) do {{ }} while (0)"));
        }
    }

    fn of_kind(&self, kinds: &[ItemKind]) -> Result<Vec<ItemId>, TreeError> {
        let mut found = Vec::new();
        for &id in &self.closure.items {
            if kinds.contains(&self.library.item(id)?.1.kind) {
                found.push(id);
            }
        }
        Ok(found)
    }

    fn body(&mut self) -> Result<(), TreeError> {
        for id in self.of_kind(&[ItemKind::Macro])? {
            let (file, item) = self.library.item(id)?;
            let text = format!("#undef {}\n{}", item.keys[0].text(), file.slice(&item.range));
            self.line(&text);
        }
        self.types()?;
        let functions = self.of_kind(&[ItemKind::Function])?;
        for &id in &functions {
            let (file, item) = self.library.item(id)?;
            let head = file.slice(&(item.range.start..item.body.start)).trim().to_owned();
            if item.keys[0].text() == "select_task_rq_fair" {
                let arguments = file.function(&item.range).map_or(0, arguments);
                self.line(&format!("#define SD_SELECT_TASK_RQ_ARGS {arguments}"));
            }
            self.line(&format!("{head};"));
        }
        for id in self.of_kind(&[ItemKind::Variable, ItemKind::MacroDeclaration])? {
            self.verbatim(id, "")?;
        }
        let (probes, others): (Vec<_>, Vec<_>) = functions.into_iter().partition(|&id| self.is_probe(id));
        for id in probes {
            let name = self.library.item(id)?.1.keys[0].text().to_owned();
            self.line(&format!("#define SD_HAS_{name} 1"));
            self.verbatim(id, "")?;
        }
        self.line("#line 1 \"probe.h\"\n#include \"probe.h\"");
        for id in others {
            self.function(id)?;
        }
        self.line("#line 1 \"glue.c\"\n#include \"glue.c\"");
        Ok(())
    }

    fn is_probe(&self, id: ItemId) -> bool {
        self.library.item(id).is_ok_and(|(_, item)| standins::PROBES.contains(&item.keys[0].text()))
    }

    /// The item's own text under its own line number.
    fn verbatim(&mut self, id: ItemId, end: &str) -> Result<(), TreeError> {
        let (file, item) = self.library.item(id)?;
        let (line, text) = (file.line(item.range.start), file.slice(&item.range));
        let (before, after) = if text.contains("#include") { list_macro(file, item) } else { Default::default() };
        let text = format!("{before}#line {line} \"{}\"\n{text}{end}{after}", file.path);
        self.line(&text);
        Ok(())
    }

    /// A function with its marks.
    fn function(&mut self, id: ItemId) -> Result<(), TreeError> {
        let library = self.library;
        let (file, item) = library.item(id)?;
        let text = match self.marks {
            Marks::On => instrument::instrument(file, item, &mut self.table),
            Marks::Off => file.slice(&item.range).to_owned(),
        };
        let (line, number) = (file.line(item.range.start), self.table.file(&file.path));
        let text = format!("#undef SD_FILE\n#define SD_FILE {number}\n#line {line} \"{}\"\n{text}", file.path);
        self.line(&text);
        Ok(())
    }

    /// Types, each after those it holds.
    fn types(&mut self) -> Result<(), TreeError> {
        let types = self.of_kind(&[ItemKind::Enum, ItemKind::Typedef, ItemKind::Struct])?;
        let mut tags = BTreeSet::new();
        for &id in &types {
            let (file, item) = self.library.item(id)?;
            if item.kind == ItemKind::Struct {
                let word = file.slice(&item.range).split_whitespace().next().unwrap_or("struct").to_owned();
                tags.insert(format!("{word} {};", item.keys[0].text()));
            }
        }
        for tag in tags {
            self.line(&tag);
        }
        let mut order =
            TypeOrder { assembly: self, done: HashSet::new(), out: String::new(), warnings: BTreeSet::new() };
        for &id in &types {
            order.visit(id)?;
        }
        let TypeOrder { out, warnings, .. } = order;
        self.out += &out;
        self.warnings.extend(warnings);
        Ok(())
    }

    fn keeps(&self) -> Result<Vec<String>, TreeError> {
        let mut keeper = Keeper::default();
        for id in self.of_kind(&[ItemKind::Struct])? {
            let (file, item) = self.library.item(id)?;
            if keeps::LASTING.contains(&item.keys[0].text()) {
                keeper.members.extend(members::prune(file, item, &self.closure.words).kept);
            }
        }
        for id in self.of_kind(&[ItemKind::Variable, ItemKind::MacroDeclaration])? {
            let (file, item) = self.library.item(id)?;
            keeper.variable(file, item);
        }
        for id in self.of_kind(&[ItemKind::Function])? {
            let (file, item) = self.library.item(id)?;
            keeper.function(file, item);
        }
        Ok(keeper.finish())
    }

    fn functions(&self) -> Result<Vec<(String, String)>, TreeError> {
        let mut found = Vec::new();
        for id in self.of_kind(&[ItemKind::Function])? {
            let (file, item) = self.library.item(id)?;
            found.push((item.keys[0].text().to_owned(), file.path.clone()));
        }
        Ok(found)
    }
}

impl Assembly<'_> {
    /// The text of the functions, for those who show what a walk does.
    fn lines(&self) -> Result<Lines, TreeError> {
        let mut lines = Lines::new();
        for id in self.of_kind(&[ItemKind::Function])? {
            let (file, item) = self.library.item(id)?;
            let of_file = lines.entry(file.path.clone()).or_default();
            let first = file.line(item.range.start);
            let text = file.slice(&item.range).lines().enumerate();
            of_file.extend(text.map(|(at, line)| ((first + at) as u32, line.trim().to_owned())));
        }
        Ok(lines)
    }
}

/// The macro, defined just before, that gives a list included in the middle of `item` its meaning, and its end.
fn list_macro(file: &index::File, item: &index::Item) -> (String, String) {
    let before = |other: &&index::Item| other.kind == ItemKind::Macro && other.range.end <= item.range.start;
    let Some(found) = file.items.iter().rfind(before) else { return Default::default() };
    (format!("{}\n", file.slice(&found.range)), format!("\n#undef {}", found.keys[0].text()))
}

/// Number of parameters of a function.
fn arguments(function: tree_sitter::Node<'_>) -> usize {
    let mut at = function.child_by_field_name("declarator");
    while let Some(node) = at {
        if let Some(parameters) = node.child_by_field_name("parameters") {
            return index::children(parameters).iter().filter(|node| node.kind() == "parameter_declaration").count();
        }
        at = node.child_by_field_name("declarator");
    }
    0
}

struct TypeOrder<'a, 'b> {
    assembly: &'a Assembly<'b>,
    done: HashSet<ItemId>,
    out: String,
    warnings: BTreeSet<String>,
}

impl TypeOrder<'_, '_> {
    fn visit(&mut self, id: ItemId) -> Result<(), TreeError> {
        if !self.done.insert(id) || self.is_inside_another(id)? {
            return Ok(());
        }
        let (file, item) = self.assembly.library.item(id)?;
        let text = match item.kind {
            ItemKind::Struct => {
                let pruned = members::prune(file, item, &self.assembly.closure.words);
                self.needs(id, &pruned)?;
                let head = file.slice(&(item.range.start..item.body.start)).trim().to_owned();
                let tag = item.keys[0].text();
                let extra = format!("SD_EXTRA_{tag}");
                let extra =
                    if self.assembly.names.macros.contains(&extra) { format!("\t{extra}\n") } else { String::new() };
                let mut text = format!("{head} {{\n{extra}{}}};\n", pruned.text);
                for field in &pruned.kept {
                    let _ = writeln!(text, "#define SD_FIELD_{tag}__{field} 1");
                }
                text
            }
            _ => {
                for word in crate::extract::closure::words(file.slice(&item.range)) {
                    self.visit_key(&Key::Name(word.text.to_owned()), id.file)?;
                    self.visit_key(&Key::Tag(word.text.to_owned()), id.file)?;
                }
                format!("{}{}\n", file.slice(&item.range), if item.kind == ItemKind::Enum { ";" } else { "" })
            }
        };
        self.out += &text;
        Ok(())
    }

    /// Whether the type is defined inside another definition that is emitted.
    fn is_inside_another(&self, id: ItemId) -> Result<bool, TreeError> {
        let (file, item) = self.assembly.library.item(id)?;
        for &other in self.assembly.closure.items.iter().filter(|other| other.file == id.file && other.item != id.item)
        {
            let outer = &file.items[other.item];
            let holds = outer.range.start <= item.range.start && item.range.end <= outer.range.end;
            if holds && outer.range != item.range && !matches!(outer.kind, ItemKind::Macro) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn needs(&mut self, user: ItemId, pruned: &Pruned) -> Result<(), TreeError> {
        for need in pruned.needs.iter().filter(|need| need.by_value || matches!(need.key, Key::Name(_))) {
            if !self.visit_key(&need.key, user.file)? && need.by_value {
                self.opaque(&need.key);
            }
        }
        Ok(())
    }

    /// Emits the type `key` first; whether anybody defines it.
    fn visit_key(&mut self, key: &Key, user: usize) -> Result<bool, TreeError> {
        if self.assembly.names.own.contains(key) {
            return Ok(true);
        }
        let Some(id) = self.assembly.library.find(key, user)? else { return Ok(false) };
        if !self.assembly.closure.items.contains(&id) {
            return Ok(true);
        }
        let kind = self.assembly.library.item(id)?.1.kind;
        if matches!(kind, ItemKind::Enum | ItemKind::Typedef | ItemKind::Struct) {
            self.visit(id)?;
        }
        Ok(true)
    }

    /// Storage for a member whose type nobody knows.
    fn opaque(&mut self, key: &Key) {
        let text = match key {
            Key::Tag(tag) => format!("struct {tag} {{ unsigned long sd_opaque[16]; }};\n"),
            Key::Name(name) => format!("typedef struct {{ unsigned long sd_opaque[16]; }} {name};\n"),
        };
        let name = key.text();
        if self.warnings.insert(format!("type {name} is not known: its members are storage that stays zero")) {
            self.out += &text;
        }
    }
}
