// SPDX-License-Identifier: GPL-2.0-or-later
//! Structs with the members that the walk names, and no others: a run queue has a hundred, the walk reads fifteen.

use std::collections::HashSet;

use tree_sitter::Node;

use crate::c::index::{self, File, Item, Key};
use crate::c::keywords::is_keyword;
use crate::extract::closure::{Role, words};

/// A type that a member needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The type's name.
    pub key: Key,
    /// Whether its members must be known: it is not behind a pointer.
    pub by_value: bool,
    /// The line, from 1.
    pub line: usize,
}

/// What is left of a struct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Its members as text.
    pub text: String,
    /// Names of the members kept, those of unnamed inner structs included.
    pub kept: Vec<String>,
    /// Types they need.
    pub needs: Vec<Need>,
}

/// The members of the struct `item` whose names are in `wanted`.
pub fn prune(file: &File, item: &Item, wanted: &HashSet<String>) -> Pruned {
    let node = file.tree.root_node().descendant_for_byte_range(item.range.start, item.range.end.saturating_sub(1));
    let is_it = |node: &Node<'_>| node.byte_range() == item.range && node.child_by_field_name("body").is_some();
    let body = std::iter::successors(node, Node::parent).find(is_it).and_then(|node| node.child_by_field_name("body"));
    let mut pruned = Pruned::default();
    if let Some(body) = body {
        members(file, body, wanted, &mut pruned);
    }
    pruned
}

fn members(file: &File, body: Node<'_>, wanted: &HashSet<String>, pruned: &mut Pruned) {
    for member in index::children(body).into_iter().filter(|member| member.kind() == "field_declaration") {
        let inner = member.child_by_field_name("type").filter(|node| node.child_by_field_name("body").is_some());
        let declarators: Vec<Node<'_>> = member.children_by_field_name("declarator", &mut member.walk()).collect();
        let names: Vec<String> = declarators.iter().filter_map(|node| name_of(*node, file)).collect();
        match inner {
            Some(inner) if inner.kind() != "enum_specifier" => nested(file, inner, member, &names, wanted, pruned),
            _ if names.iter().any(|name| wanted.contains(name)) => {
                pruned.text += "\t";
                pruned.text += file.slice(&member.byte_range());
                pruned.text += "\n";
                needs(file, member, &declarators, &names, pruned);
                pruned.kept.extend(names);
            }
            _ => {}
        }
    }
}

/// A struct or union defined where it is used: its own members are pruned too.
fn nested(
    file: &File,
    inner: Node<'_>,
    member: Node<'_>,
    names: &[String],
    wanted: &HashSet<String>,
    pruned: &mut Pruned,
) {
    let Some(body) = inner.child_by_field_name("body") else { return };
    if !names.is_empty() && !names.iter().any(|name| wanted.contains(name)) {
        return;
    }
    let mut within = Pruned::default();
    members(file, body, wanted, &mut within);
    if names.is_empty() && within.kept.is_empty() {
        return;
    }
    let head = file.slice(&(member.start_byte()..body.start_byte()));
    let tail = file.slice(&(body.end_byte()..member.end_byte()));
    pruned.text += &format!("\t{head}{{\n{}\t}}{tail}\n", within.text);
    pruned.kept.extend(names.iter().cloned());
    pruned.kept.extend(within.kept);
    pruned.needs.extend(within.needs);
}

fn name_of(declarator: Node<'_>, file: &File) -> Option<String> {
    index::declared_name(declarator).map(|name| index::text_of(name, &file.disguised).to_owned())
}

fn needs(file: &File, member: Node<'_>, declarators: &[Node<'_>], names: &[String], pruned: &mut Pruned) {
    let pointer = |node: &Node<'_>| {
        let mut at = Some(*node);
        while let Some(node) = at {
            if matches!(node.kind(), "pointer_declarator" | "function_declarator") {
                return true;
            }
            at = node.child_by_field_name("declarator").or_else(|| index::children(node).into_iter().next());
        }
        false
    };
    let by_value = !declarators.iter().all(pointer);
    let line = file.line(member.start_byte());
    for word in words(file.slice(&member.byte_range())) {
        if word.role != Role::Tag && names.iter().any(|name| name == word.text) || is_keyword(word.text) {
            continue;
        }
        let key = if word.role == Role::Tag { Key::Tag } else { Key::Name }(word.text.to_owned());
        pruned.needs.push(Need { key, by_value, line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned(source: &str, wanted: &[&str]) -> Pruned {
        let file = File::parse("a.h", source.to_owned());
        let wanted = wanted.iter().map(|&name| name.to_owned()).collect();
        prune(&file, &file.items[0], &wanted)
    }

    #[test]
    fn only_what_is_named_stays() {
        let source =
            "struct rq {\n\tint cpu, unused;\n\tstruct cfs_rq cfs;\n\tstruct task_struct *curr;\n\tu64 clock;\n};\n";
        let found = pruned(source, &["cpu", "curr", "cfs"]);
        assert_eq!(found.kept, ["cpu", "unused", "cfs", "curr"]);
        let by_value: Vec<_> = found.needs.iter().map(|need| (need.key.text(), need.by_value)).collect();
        assert_eq!(by_value, [("cfs_rq", true), ("task_struct", false)]);
        assert!(!found.text.contains("clock"));
    }

    #[test]
    fn unnamed_unions_stay_with_what_is_named_in_them() {
        let source = "struct a {\n\tunion {\n\t\tint x;\n\t\tint y;\n\t};\n\tstruct {\n\t\tint z;\n\t};\n\tstruct { int u; int w; } v;\n};\n";
        let found = pruned(source, &["x", "v", "w"]);
        assert_eq!(found.kept, ["x", "v", "w"]);
        assert!(!found.text.contains("int y") && !found.text.contains("int z") && !found.text.contains("int u"));
    }

    #[test]
    fn bit_fields_and_arrays() {
        let source = "struct a {\n\tunsigned on:1;\n\tunsigned :0;\n\tunsigned long span[];\n};\n";
        assert_eq!(pruned(source, &["on", "span"]).kept, ["on", "span"]);
    }
}
