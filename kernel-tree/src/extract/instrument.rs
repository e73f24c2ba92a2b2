// SPDX-License-Identifier: GPL-2.0-or-later
//! Marks in the tree's functions: before each statement, at each operand that may not be evaluated, around each value
//! returned. See standins/instrument.h for what they do.

use serde::{Deserialize, Serialize};
use tree_sitter::Node;

use crate::c::disguise::is_iterator;
use crate::c::index::{self, File, Item};
use crate::extract::reads;

/// Functions that compute and decide nothing: their returns are not told.
pub const LEAVES: &[&str] = &[
    "_task_util_est",
    "adjust_numa_imbalance",
    "capacity_of",
    "capacity_orig_of",
    "cfs_rq_load_avg",
    "cfs_rq_runnable_avg",
    "cpu_load",
    "cpu_load_without",
    "cpu_runnable",
    "cpu_runnable_without",
    "cpu_util",
    "cpu_util_next",
    "cpu_util_without",
    "group_classify",
    "group_has_capacity",
    "group_is_overloaded",
    "record_wakee",
    "sched_idle_rq",
    "set_idle_cores",
    "sg_imbalanced",
    "task_fits_cpu",
    "task_running_on_cpu",
    "task_util",
    "task_util_est",
    "update_sg_wakeup_stats",
    "util_fits_cpu",
];

/// What is marked: numbers in the C are indexes here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Files that functions come from.
    pub files: Vec<String>,
    /// Names of the functions.
    pub functions: Vec<String>,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A marked statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// Index of its function.
    pub function: u32,
    /// File in the tree.
    pub path: String,
    /// Line in the file, from 1.
    pub line: u32,
    /// Where it is a `return` with a value: what can be told of it.
    pub returns: Option<Return>,
}

/// A `return` as it stands in the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// The value, as written.
    pub value: String,
    /// The condition of the nearest `if` around it, as written.
    pub guard: String,
    /// What the variable that is returned was last set to before, as written.
    pub set_to: String,
    /// Position among the parameters, where the value is one.
    pub parameter: Option<usize>,
}

impl Table {
    /// The number of file `path`.
    pub fn file(&mut self, path: &str) -> usize {
        self.files.iter().position(|known| known == path).unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        })
    }
}

/// The text of function `item` with marks.
pub fn instrument(file: &File, item: &Item, table: &mut Table) -> String {
    let text = file.slice(&item.range).to_owned();
    let Some(node) = file.function(&item.range) else { return text };
    let Some(body) = node.child_by_field_name("body") else { return text };
    let function = table.functions.len() as u32;
    let name = item.keys[0].text().to_owned();
    table.functions.push(name.clone());
    let parameters = parameters(node, file);
    let plain = returns_a_number(node, file) && !LEAVES.contains(&name.as_str());
    let mut marker = Marker { file, table, function, name: &name, parameters, plain, edits: Vec::new() };
    marker.entry(body);
    marker.block(body);
    let mut edits = marker.edits;
    // Stable: of two edits at one place the outer one comes first.
    edits.sort_by_key(|(at, _)| *at);
    let mut out = String::with_capacity(text.len() * 2);
    let mut from = item.range.start;
    for (at, insert) in edits {
        out += file.slice(&(from..at));
        out += &insert;
        from = at;
    }
    out + file.slice(&(from..item.range.end))
}

/// Names of the parameters.
fn parameters(function: Node<'_>, file: &File) -> Vec<String> {
    let mut at = function.child_by_field_name("declarator");
    while let Some(node) = at {
        if let Some(list) = node.child_by_field_name("parameters") {
            let names = index::children(list)
                .into_iter()
                .filter_map(|parameter| index::declared_name(parameter.child_by_field_name("declarator")?));
            return names.map(|name| index::text_of(name, &file.disguised).to_owned()).collect();
        }
        at = node.child_by_field_name("declarator");
    }
    Vec::new()
}

/// Whether the function gives back a number.
fn returns_a_number(function: Node<'_>, file: &File) -> bool {
    let kind = function.child_by_field_name("type").map_or("", |node| node.kind());
    let by_value = function.child_by_field_name("declarator").is_some_and(|node| node.kind() == "function_declarator");
    let head = function.child_by_field_name("type").map(|node| file.slice(&node.byte_range())).unwrap_or_default();
    by_value && kind != "struct_specifier" && kind != "union_specifier" && head != "void"
}

struct Marker<'a> {
    file: &'a File,
    table: &'a mut Table,
    function: u32,
    name: &'a str,
    parameters: Vec<String>,
    plain: bool,
    edits: Vec<(usize, String)>,
}

impl Marker<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.file.slice(&node.byte_range())
    }

    fn put(&mut self, at: usize, text: String) {
        self.edits.push((at, text));
    }

    /// Tells that the function was entered; of the search for an idle sibling also its target.
    fn entry(&mut self, body: Node<'_>) {
        let (function, at) = (self.function, body.start_byte() + 1);
        let mark = match (self.name, self.parameters.get(2)) {
            ("select_idle_sibling", Some(target)) => format!(" SD_SEARCH({function}, {target})"),
            _ => format!(" SD_ENTER({function})"),
        };
        self.put(at, mark);
    }

    fn statement(&mut self, node: Node<'_>, returns: Option<Return>) -> usize {
        let line = self.file.line(node.start_byte()) as u32;
        let path = self.file.path.clone();
        self.table.statements.push(Statement { function: self.function, path, line, returns });
        self.table.statements.len() - 1
    }

    /// The statements of a block.
    fn block(&mut self, block: Node<'_>) {
        let children: Vec<Node<'_>> = block.children(&mut block.walk()).collect();
        // Where the parser lost its way, the ends of statements are guesses.
        if children.iter().any(|child| child.is_error() || child.is_missing()) {
            return;
        }
        for child in index::children(block) {
            self.within_block(child);
        }
    }

    fn within_block(&mut self, node: Node<'_>) {
        if !is_statement(node) {
            return;
        }
        match node.kind() {
            "case_statement" => {
                for child in index::children(node) {
                    self.within_block(child);
                }
            }
            "labeled_statement" => {
                if let Some(inner) = index::children(node).into_iter().rev().find(|child| is_statement(*child)) {
                    self.within_block(inner);
                }
            }
            "compound_statement" => self.block(node),
            _ => {
                let mark = self.mark(node);
                self.put(node.start_byte(), mark);
                self.inside(node);
            }
        }
    }

    /// The mark before a statement.
    fn mark(&mut self, node: Node<'_>) -> String {
        let returns = self.return_of(node);
        let number = self.statement(node, returns);
        let mask = self.own_reads(node);
        // Where a search forgets the recently used CPU because it is of no use: without this it is a late candidate.
        let forgets = self.name == "select_idle_sibling" && self.text(node).starts_with("recent_used_cpu = -1");
        let miss = if forgets { "SD_MISS " } else { "" };
        format!("SD_AT({number}, {mask:#x}) {miss}")
    }

    /// A body that need not be a block.
    fn body(&mut self, node: Node<'_>) {
        if node.kind() == "compound_statement" {
            self.block(node);
        } else if is_statement(node) && node.kind() != "labeled_statement" && node.kind() != "case_statement" {
            let mark = self.mark(node);
            self.put(node.start_byte(), format!("{{ {mark}"));
            self.inside(node);
            self.put(node.end_byte(), " }".to_owned());
        }
    }

    /// What is inside a statement that has its mark.
    fn inside(&mut self, node: Node<'_>) {
        match node.kind() {
            "if_statement" => {
                self.operands(node.child_by_field_name("condition"));
                self.optional_body(node.child_by_field_name("consequence"));
                let other = node.child_by_field_name("alternative");
                self.optional_body(other.and_then(|clause| index::children(clause).into_iter().next_back()));
            }
            "while_statement" | "do_statement" => {
                let iterator = self.loop_name(node);
                if !iterator {
                    self.operands(node.child_by_field_name("condition"));
                }
                self.loop_body(node.child_by_field_name("body"), iterator);
            }
            "for_statement" => {
                self.operands(node.child_by_field_name("condition"));
                self.loop_body(node.child_by_field_name("body"), false);
            }
            "switch_statement" => self.optional_body(node.child_by_field_name("body")),
            "return_statement" => self.returned(node),
            "expression_statement" | "declaration" => {
                let fixed = index::children(node).iter().any(|child| child.kind() == "storage_class_specifier");
                if !fixed && !self.computes_sync(node) {
                    self.operands(Some(node));
                }
            }
            _ => {}
        }
    }

    fn optional_body(&mut self, node: Option<Node<'_>>) {
        if let Some(node) = node {
            self.body(node);
        }
    }

    /// Whether a loop's head is a macro's.
    fn loop_name(&self, node: Node<'_>) -> bool {
        let head = self.text(node);
        let end = head.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(head.len());
        is_iterator(&head[..end])
    }

    /// The body of a loop; the innermost loop over CPUs counts its turns.
    fn loop_body(&mut self, body: Option<Node<'_>>, iterator: bool) {
        let Some(body) = body else { return };
        let counted = iterator && matches!(self.name, "select_idle_core" | "select_idle_cpu" | "select_idle_smt");
        if counted && body.kind() == "compound_statement" && !self.holds_loop(body) {
            let function = self.function;
            let at = self.turn(body).start_byte() + 1;
            self.put(at, format!(" SD_TURN({function})"));
        }
        self.body(body);
    }

    /// The block of a scan's loop in which a turn counts as one CPU: the whole, or, where the loop can also go from core
    /// to core, the branch that does not.
    fn turn<'t>(&self, body: Node<'t>) -> Node<'t> {
        let other_branch = |node: Node<'t>| {
            let cores = node.child_by_field_name("consequence")?;
            let other = index::children(node.child_by_field_name("alternative")?).into_iter().next_back()?;
            (self.text(cores).contains("select_idle_core(") && other.kind() == "compound_statement").then_some(other)
        };
        index::children(body).into_iter().find_map(other_branch).unwrap_or(body)
    }

    fn holds_loop(&self, node: Node<'_>) -> bool {
        let is_loop = matches!(node.kind(), "while_statement" | "for_statement" | "do_statement");
        is_loop || index::children(node).into_iter().any(|child| self.holds_loop(child))
    }

    fn returned(&mut self, node: Node<'_>) {
        let Some(value) = index::children(node).into_iter().find(|child| child.kind() != "comment") else { return };
        if node.has_error() || !self.plain {
            return;
        }
        // The mark of this very statement was the last that was made.
        let number = self.table.statements.len() - 1;
        self.put(value.start_byte(), format!("SD_RETURN({number}, "));
        self.operands(Some(value));
        self.put(value.end_byte(), ")".to_owned());
    }

    /// Operands that are evaluated only if another one is true or false.
    fn operands(&mut self, node: Option<Node<'_>>) {
        let Some(node) = node.filter(|node| !node.has_error()) else { return };
        let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
        let late: Vec<Node<'_>> = match node.kind() {
            "binary_expression" if matches!(operator, "&&" | "||") => {
                node.child_by_field_name("right").into_iter().collect()
            }
            "conditional_expression" => {
                let of = |name| node.child_by_field_name(name);
                of("consequence").into_iter().chain(of("alternative")).collect()
            }
            "sizeof_expression" | "compound_literal_expression" | "initializer_list" => return,
            _ => Vec::new(),
        };
        for child in index::children(node) {
            let mask = if late.contains(&child) { self.expression_reads(child) } else { 0 };
            if mask != 0 {
                self.put(child.start_byte(), format!("SD_READ({mask:#x}, "));
            }
            self.operands(Some(child));
            if mask != 0 {
                self.put(child.end_byte(), ")".to_owned());
            }
        }
    }

    /// What is read before anything inside decides: all but late operands and nested statements.
    fn own_reads(&self, node: Node<'_>) -> u64 {
        let is_head = |child: &Node<'_>| !is_statement(*child) && child.kind() != "else_clause";
        if self.computes_sync(node) {
            return 0;
        }
        let parts: Vec<Node<'_>> = match node.kind() {
            "if_statement" | "while_statement" | "do_statement" | "for_statement" | "switch_statement" => {
                index::children(node).into_iter().filter(is_head).collect()
            }
            _ => vec![node],
        };
        parts.into_iter().map(|part| self.expression_reads(part)).fold(0, |all, mask| all | mask)
    }

    /// `int sync = (wake_flags & WF_SYNC) && …`: computed here, read where it decides.
    fn computes_sync(&self, node: Node<'_>) -> bool {
        node.kind() == "declaration" && self.text(node).contains("WF_SYNC")
    }

    /// What an expression reads, its late operands left out.
    fn expression_reads(&self, node: Node<'_>) -> u64 {
        let mut late = Vec::new();
        late_operands(node, &mut late);
        let mut text = self.text(node).to_owned();
        for operand in late.iter().rev() {
            let (start, end) = (operand.start_byte() - node.start_byte(), operand.end_byte() - node.start_byte());
            text.replace_range(start..end, &" ".repeat(end - start));
        }
        let decides =
            matches!(node.kind(), "parenthesized_expression" | "identifier" | "binary_expression" | "unary_expression");
        let names_sync = decides && crate::c::lex::identifiers(&text).any(|word| word == "sync");
        reads::reads(&text) | reads::writes(&text) | if names_sync { reads::sync() } else { 0 }
    }

    fn return_of(&self, node: Node<'_>) -> Option<Return> {
        if node.kind() != "return_statement" || !self.plain {
            return None;
        }
        let value = index::children(node).into_iter().find(|child| child.kind() != "comment")?;
        let mut guard = String::new();
        let mut at = node;
        while let Some(parent) = at.parent().filter(|parent| parent.kind() != "function_definition") {
            let condition = parent.child_by_field_name("condition").filter(|condition| *condition != at);
            if parent.kind() == "if_statement"
                && let Some(condition) = condition
            {
                guard = self.text(condition).to_owned();
                break;
            }
            at = parent;
        }
        let value = self.text(value).to_owned();
        let parameter = self.parameters.iter().position(|name| *name == value);
        let set_to = self.set_to(node, &value);
        Some(Return { value, guard, set_to, parameter })
    }

    /// The last assignment before `node` to the variable that `value` is about, where that is a variable.
    fn set_to(&self, node: Node<'_>, value: &str) -> String {
        let mut names = crate::c::lex::identifiers(value).filter(|name| !crate::c::keywords::is_keyword(name));
        let Some(name) = names.find(|name| *name != "nr_cpumask_bits" && *name != "nr_cpu_ids") else {
            return String::new();
        };
        if self.parameters.iter().any(|parameter| parameter == name) {
            return String::new();
        }
        let mut function = node;
        while let Some(parent) = function.parent() {
            function = parent;
            if function.kind() == "function_definition" {
                break;
            }
        }
        let mut found = String::new();
        let mut stack = vec![function];
        let mut last = 0;
        while let Some(at) = stack.pop() {
            let (left, right) = match at.kind() {
                "assignment_expression" => (at.child_by_field_name("left"), at.child_by_field_name("right")),
                "init_declarator" => (at.child_by_field_name("declarator"), at.child_by_field_name("value")),
                _ => (None, None),
            };
            if let (Some(left), Some(right)) = (left, right)
                && at.start_byte() < node.start_byte()
                && at.start_byte() >= last
                && self.text(left) == name
            {
                last = at.start_byte();
                found = self.text(right).to_owned();
            }
            stack.extend(index::children(at));
        }
        found
    }
}

fn late_operands<'t>(node: Node<'t>, late: &mut Vec<Node<'t>>) {
    let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
    for child in index::children(node) {
        let is = |name| node.child_by_field_name(name) == Some(child);
        let skipped = match node.kind() {
            "binary_expression" => matches!(operator, "&&" | "||") && is("right"),
            "conditional_expression" => is("consequence") || is("alternative"),
            _ => false,
        };
        if skipped {
            late.push(child);
        } else {
            late_operands(child, late);
        }
    }
}

fn is_statement(node: Node<'_>) -> bool {
    node.kind().ends_with("_statement") || node.kind() == "declaration"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(source: &str) -> (String, Table) {
        let file = File::parse("a.c", source.to_owned());
        let mut table = Table::default();
        let text = instrument(&file, &file.items[0], &mut table);
        assert_eq!(text.lines().count(), source.trim_end().lines().count(), "lines keep their numbers");
        (text, table)
    }

    #[test]
    fn statements_returns_and_late_operands() {
        let source = "static int f(struct task_struct *p, int prev, int target)\n{\n\tint i;\n\n\tif (prev != target && p->recent_used_cpu == prev)\n\t\treturn prev;\n\tfor_each_cpu(i, m)\n\t\tg(i);\n\ti = h(p);\n\treturn i;\n}\n";
        let (text, table) = marked(source);
        let returns: Vec<&Return> = table.statements.iter().filter_map(|found| found.returns.as_ref()).collect();
        assert_eq!(returns.len(), 2);
        assert_eq!(
            (returns[0].parameter, returns[0].guard.as_str()),
            (Some(1), "(prev != target && p->recent_used_cpu == prev)")
        );
        assert_eq!((returns[1].set_to.as_str(), returns[1].guard.as_str()), ("h(p)", ""));
        assert!(text.contains("&& SD_READ(0x800, p->recent_used_cpu == prev)"), "{text}");
        assert!(text.contains("{ SD_AT(2, 0x0) return SD_RETURN(2, prev); }"), "{text}");
        assert!(text.contains("{ SD_AT(4, 0x0) g(i); }"), "{text}");
    }

    #[test]
    fn labels_cases_and_else() {
        let source = "static int f(int a)\n{\n\tswitch (a) {\n\tcase 1:\n\t\ta = 2;\n\t\tbreak;\n\tdefault:\n\t\treturn 1;\n\t}\n\tif (a) a++;\n\telse if (a > 1) a--;\nout:\n\treturn a;\n}\n";
        let (text, _) = marked(source);
        assert!(text.contains("case 1:\n\t\tSD_AT("), "{text}");
        assert!(text.contains("else { SD_AT("), "{text}");
        assert!(text.contains("out:\n\tSD_AT("), "{text}");
    }

    #[test]
    fn nothing_is_put_around_values_that_are_no_numbers() {
        let (text, _) = marked("static struct a *f(int x)\n{\n\treturn g(x);\n}\n");
        assert!(!text.contains("SD_RETURN"), "{text}");
    }
}
