// SPDX-License-Identifier: GPL-2.0-or-later
//! State that a tree keeps beside what every release keeps: a patch's static variables, per-CPU variables, new members.

use std::collections::{BTreeSet, HashSet};

use tree_sitter::Node;

use crate::c::index::{self, File, Item, ItemKind};

/// Per-CPU variables that are scratch space, caches of the topology, or mirrored.
const KNOWN_PER_CPU: &[&str] = &[
    "load_balance_mask",
    "runqueues",
    "sd_asym_cpucapacity",
    "sd_asym_packing",
    "sd_balance_shared",
    "sd_llc",
    "sd_llc_id",
    "sd_llc_shared",
    "sd_llc_size",
    "sd_numa",
    "sd_share_id",
    "select_idle_mask",
    "select_rq_mask",
    "should_we_balance_tmpmask",
];

/// Members that a walk writes and that are mirrored; and two of the slow path's statistics on its stack, which share
/// their names with members of sched_group and sched_avg.
const KNOWN_MEMBERS: &[&str] = &[
    "avg_load",
    "avg_scan_cost",
    "group_weight",
    "has_idle_cores",
    "last_wakee",
    "recent_used_cpu",
    "wake_avg_idle",
    "wake_stamp",
    "wakee_flip_decay_ts",
    "wakee_flips",
];

/// Structs that live on between calls; all others are on the walk's stack.
pub const LASTING: &[&str] = &[
    "rq",
    "cfs_rq",
    "task_struct",
    "sched_entity",
    "sched_avg",
    "sched_domain",
    "sched_domain_shared",
    "sched_group",
    "sched_group_capacity",
    "root_domain",
];

/// Calls whose first argument is written.
const WRITERS: &[&str] = &["WRITE_ONCE", "set_bit", "__set_bit", "clear_bit", "__clear_bit", "xchg", "cmpxchg"];

/// Finds what is kept.
#[derive(Debug, Default)]
pub struct Keeper {
    /// Members of the lasting structs.
    pub members: HashSet<String>,
    /// Names of variables outside of functions.
    variables: HashSet<String>,
    found: BTreeSet<String>,
}

impl Keeper {
    /// A variable outside of functions.
    pub fn variable(&mut self, file: &File, item: &Item) {
        let text = file.slice(&item.range);
        let last = item.keys.last().map(|key| key.text().to_owned());
        match item.kind {
            ItemKind::MacroDeclaration if text.contains("PER_CPU") => {
                self.found.extend(last.filter(|name| !KNOWN_PER_CPU.contains(&name.as_str())));
            }
            ItemKind::Variable | ItemKind::Extern => {
                self.variables.extend(item.keys.iter().map(|key| key.text().to_owned()))
            }
            _ => {}
        }
    }

    /// A function of the walk.
    pub fn function(&mut self, file: &File, item: &Item) {
        if let Some(node) = file.function(&item.range) {
            self.visit(file, node);
        }
    }

    /// Names of what is kept, sorted.
    pub fn finish(self) -> Vec<String> {
        self.found.into_iter().collect()
    }

    fn visit(&mut self, file: &File, node: Node<'_>) {
        let text = |node: Node<'_>| file.slice(&node.byte_range()).to_owned();
        match node.kind() {
            "assignment_expression" => self.target(file, node.child_by_field_name("left")),
            "update_expression" => self.target(file, node.child_by_field_name("argument")),
            "call_expression" => {
                let name = node.child_by_field_name("function").map(text).unwrap_or_default();
                let arguments = node.child_by_field_name("arguments").map(index::children).unwrap_or_default();
                // atomic_add(i, v) has what it writes last, atomic_inc(v) has nothing else.
                let target = if name.starts_with("atomic") { arguments.last() } else { arguments.first() };
                if WRITERS.contains(&name.as_str()) || name.starts_with("atomic") && !name.contains("read") {
                    self.target(file, target.copied());
                }
            }
            "declaration" => {
                let is = |word: &str| index::children(node).iter().any(|child| text(*child) == word);
                if is("static") && !is("const") {
                    let declarators: Vec<_> = node.children_by_field_name("declarator", &mut node.walk()).collect();
                    self.found.extend(declarators.into_iter().filter_map(index::declared_name).map(text));
                }
            }
            _ => {}
        }
        for child in index::children(node) {
            self.visit(file, child);
        }
    }

    fn target(&mut self, file: &File, node: Option<Node<'_>>) {
        let Some(node) = node else { return };
        let text = |node: Node<'_>| file.slice(&node.byte_range()).to_owned();
        match node.kind() {
            "field_expression" => {
                let member = node.child_by_field_name("field").map(text).unwrap_or_default();
                if self.members.contains(&member) && !KNOWN_MEMBERS.contains(&member.as_str()) {
                    self.found.insert(member);
                }
            }
            "identifier" => {
                let name = text(node);
                if self.variables.contains(&name) {
                    self.found.insert(name);
                }
            }
            "pointer_expression" | "parenthesized_expression" | "subscript_expression" => {
                self.target(file, index::children(node).into_iter().next());
            }
            _ => {}
        }
    }
}
