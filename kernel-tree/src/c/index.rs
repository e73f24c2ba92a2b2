// SPDX-License-Identifier: GPL-2.0-or-later
//! What a file defines: functions, types, macros and variables, each with its text.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::{Node, Parser, Tree};

use super::disguise::{self, Disguised};

/// Kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A function with its body.
    Function,
    /// A declaration of a function.
    Prototype,
    /// A macro.
    Macro,
    /// A struct or union with its members.
    Struct,
    /// An enum with its constants.
    Enum,
    /// A typedef.
    Typedef,
    /// A variable.
    Variable,
    /// A variable that is only declared here.
    Extern,
    /// A macro that stands as a declaration.
    MacroDeclaration,
}

/// A name in one of C's two name spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A function, variable, macro, constant or typedef.
    Name(String),
    /// After `struct`, `union` or `enum`.
    Tag(String),
}

impl Key {
    /// The bare name.
    pub fn text(&self) -> &str {
        let (Self::Name(name) | Self::Tag(name)) = self;
        name
    }
}

/// A definition.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its kind.
    pub kind: ItemKind,
    /// Its names: more than one for an enum and for several variables in a declaration.
    pub keys: Vec<Key>,
    /// Its text.
    pub range: Range<usize>,
    /// The body of a function or macro, the members of a struct.
    pub body: Range<usize>,
    /// The parameters of a macro with brackets.
    pub params: Option<Vec<String>>,
}

/// A file, parsed.
pub struct File {
    /// Its path in the tree.
    pub path: String,
    /// Its text without conditionals.
    pub text: String,
    /// The syntax tree of its disguise, which has every byte in the same place.
    pub tree: Tree,
    /// The disguised text.
    pub disguised: String,
    /// What it defines, in order.
    pub items: Vec<Item>,
    /// Items by name.
    pub names: HashMap<Key, Vec<usize>>,
    line_starts: Vec<usize>,
}

impl File {
    /// Parses `text`, which has no conditionals any more.
    pub fn parse(path: &str, text: String) -> Self {
        let Disguised { text: disguised, defines, declarations } = disguise::disguise(&text);
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_c::LANGUAGE.into()).expect("the grammar is built for this parser");
        let tree = parser.parse(&disguised, None).expect("a parser with a language and without a limit gives a tree");
        let mut items = Vec::new();
        collect(tree.root_node(), &disguised, &mut items);
        for define in defines {
            let (keys, range) = (vec![Key::Name(define.name)], define.start..define.end);
            items.push(Item {
                kind: ItemKind::Macro,
                keys,
                range,
                body: define.body..define.end,
                params: define.params,
            });
        }
        for found in declarations {
            let keys = found.arguments.into_iter().map(Key::Name).collect();
            let range = found.start..found.end;
            items.push(Item { kind: ItemKind::MacroDeclaration, keys, body: range.clone(), range, params: None });
        }
        items.sort_by_key(|item| item.range.start);
        let mut names: HashMap<Key, Vec<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            for key in &item.keys {
                names.entry(key.clone()).or_default().push(at);
            }
        }
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path: path.to_owned(), text, tree, disguised, items, names, line_starts }
    }

    /// The line, from 1, of byte `at`.
    pub fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// The text of `range`.
    pub fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The node of the function whose text is `range`.
    pub fn function(&self, range: &Range<usize>) -> Option<Node<'_>> {
        let node = self.tree.root_node().descendant_for_byte_range(range.start, range.end.saturating_sub(1))?;
        std::iter::successors(Some(node), Node::parent).find(|node| node.kind() == "function_definition")
    }
}

/// The text of `node`.
pub fn text_of<'a>(node: Node<'_>, source: &'a str) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

/// The children of `node` that have a name in the grammar.
pub fn children<'a>(node: Node<'a>) -> Vec<Node<'a>> {
    node.named_children(&mut node.walk()).collect()
}

fn collect(node: Node<'_>, source: &str, items: &mut Vec<Item>) {
    for child in children(node) {
        match child.kind() {
            "function_definition" => function(child, source, items),
            "declaration" | "type_definition" => declaration(child, source, items),
            "struct_specifier" | "union_specifier" | "enum_specifier" => types(child, source, items),
            // The parser lost its way: what it found inside is still good.
            "ERROR" | "linkage_specification" | "declaration_list" | "expression_statement" | "labeled_statement" => {
                collect(child, source, items);
            }
            _ => {}
        }
    }
}

fn function(node: Node<'_>, source: &str, items: &mut Vec<Item>) {
    types_within(node.child_by_field_name("type"), source, items);
    let (Some(declarator), Some(body)) = (node.child_by_field_name("declarator"), node.child_by_field_name("body"))
    else {
        return;
    };
    let Some(name) = declared_name(declarator) else { return };
    let keys = vec![Key::Name(text_of(name, source).to_owned())];
    let range = node.byte_range();
    items.push(Item { kind: ItemKind::Function, keys, range, body: body.byte_range(), params: None });
}

fn declaration(node: Node<'_>, source: &str, items: &mut Vec<Item>) {
    types_within(node.child_by_field_name("type"), source, items);
    let is_extern = children(node)
        .iter()
        .any(|child| child.kind() == "storage_class_specifier" && text_of(*child, source) == "extern");
    let typedef = node.kind() == "type_definition";
    let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut node.walk()).collect();
    let mut variables = Vec::new();
    for declarator in declarators {
        let Some(name) = declared_name(declarator) else { continue };
        let key = Key::Name(text_of(name, source).to_owned());
        if !typedef && is_function(declarator) {
            let range = node.byte_range();
            let kind = ItemKind::Prototype;
            items.push(Item { kind, keys: vec![key], body: range.clone(), range, params: None });
        } else {
            variables.push(key);
        }
    }
    if !variables.is_empty() {
        let kind = match (typedef, is_extern) {
            (true, _) => ItemKind::Typedef,
            (false, true) => ItemKind::Extern,
            (false, false) => ItemKind::Variable,
        };
        let range = node.byte_range();
        items.push(Item { kind, keys: variables, body: range.clone(), range, params: None });
    }
}

fn types_within(node: Option<Node<'_>>, source: &str, items: &mut Vec<Item>) {
    if let Some(node) = node {
        types(node, source, items);
    }
}

/// A type with members or constants, and those that are defined inside it.
fn types(node: Node<'_>, source: &str, items: &mut Vec<Item>) {
    let Some(body) = node.child_by_field_name("body") else { return };
    let tag = node.child_by_field_name("name").map(|name| Key::Tag(text_of(name, source).to_owned()));
    let range = node.byte_range();
    if node.kind() == "enum_specifier" {
        let constants = children(body).into_iter().filter_map(|child| child.child_by_field_name("name"));
        let keys = tag.into_iter().chain(constants.map(|name| Key::Name(text_of(name, source).to_owned()))).collect();
        items.push(Item { kind: ItemKind::Enum, keys, range, body: body.byte_range(), params: None });
        return;
    }
    if let Some(tag) = tag {
        items.push(Item { kind: ItemKind::Struct, keys: vec![tag], range, body: body.byte_range(), params: None });
    }
    for member in children(body) {
        types_within(member.child_by_field_name("type"), source, items);
    }
}

/// The identifier that a declarator declares.
pub fn declared_name(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "identifier" | "type_identifier" | "field_identifier" | "primitive_type" => Some(node),
        _ => {
            let inner = node.child_by_field_name("declarator");
            let inner = inner.or_else(|| {
                let wrapped = matches!(node.kind(), "parenthesized_declarator" | "attributed_declarator");
                wrapped.then(|| children(node).into_iter().next()).flatten()
            });
            inner.and_then(declared_name)
        }
    }
}

/// Whether a declarator declares a function (and no pointer to one).
fn is_function(node: Node<'_>) -> bool {
    match node.kind() {
        "function_declarator" => {
            node.child_by_field_name("declarator").is_some_and(|inner| inner.kind() == "identifier")
        }
        "pointer_declarator" => node.child_by_field_name("declarator").is_some_and(is_function),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(ItemKind, String)> {
        let file = File::parse("a.c", source.to_owned());
        let each = |item: &Item| {
            let names: Vec<_> = item.keys.iter().map(Key::text).collect();
            (item.kind, names.join(" "))
        };
        file.items.iter().map(each).collect()
    }

    #[test]
    fn definitions_of_every_kind() {
        let source = "#define ONE 1\nstruct a { int x; struct b *y; struct c { int z; } w; };\nenum e { E1, E2 = 3 };\n\
                      typedef struct a a_t;\nstatic int v = 1, *u;\nextern long far;\nint f(int a);\n\
                      static struct a *g(struct a *p, int n)\n{\n\treturn p;\n}\nDEFINE_PER_CPU(int, pc);\n";
        let expected = [
            (ItemKind::Macro, "ONE"),
            (ItemKind::Struct, "a"),
            (ItemKind::Struct, "c"),
            (ItemKind::Enum, "e E1 E2"),
            (ItemKind::Typedef, "a_t"),
            (ItemKind::Variable, "v u"),
            (ItemKind::Extern, "far"),
            (ItemKind::Prototype, "f"),
            (ItemKind::Function, "g"),
            (ItemKind::MacroDeclaration, "int pc"),
        ];
        assert_eq!(found(source), expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn what_cannot_be_parsed_does_not_hide_its_neighbours() {
        let names: Vec<_> =
            found("int before(void) { return 1; }\nWEIRD_MACRO thing @ strange\n;\nint after(void) { return 2; }\n")
                .into_iter()
                .map(|(_, name)| name)
                .collect();
        assert!(names.contains(&"before".to_owned()) && names.contains(&"after".to_owned()), "{names:?}");
    }

    #[test]
    fn lines_count_from_one() {
        let file = File::parse("a.c", "int a;\nint b;\n".to_owned());
        assert_eq!((file.line(0), file.line(7)), (1, 2));
    }
}
