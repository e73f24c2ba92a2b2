// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of our names a `return` of the tree's code has: by the shape of its text, and by what was returned before it.

use sisdiff_tree::extract::instrument::{Return, Table};

use super::answer::{Answer, Event};
use crate::fair::Exit;

/// What a `return` means for the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Of select_idle_sibling(), with this name.
    Search(Exit),
    /// Of select_idle_sibling(): what select_idle_core() gave.
    SearchCore,
    /// Of select_idle_sibling(): what select_idle_cpu() gave.
    SearchScan,
    /// Of select_idle_sibling(): what select_idle_capacity() gave, or target.
    SearchCapacity,
    /// Of select_idle_sibling(): its last.
    SearchLast,
    /// Of select_idle_core(): a whole core.
    WholeCore,
    /// Of select_idle_core(): something else.
    Core,
    /// Of select_idle_cpu(): what was found before the scan leaves the target's cluster.
    Cluster,
    /// Of select_idle_capacity().
    Capacity,
    /// Of a scan, at its limit.
    Limit,
    /// Of the slow path.
    Slow(Exit),
    /// Of wake_wide().
    Wide,
    /// Any other.
    Plain,
}

/// The meaning of every `return` of a tree.
#[derive(Debug)]
pub(super) struct Exits {
    classes: Vec<Class>,
    /// Since 5.12 select_idle_cpu() itself goes from core to core.
    scan_has_cores: bool,
    /// A usable recently used CPU may be kept for the end of the search.
    keep_recent: bool,
}

impl Exits {
    pub(super) fn new(table: &Table) -> Self {
        let function = |at: u32| table.functions.get(at as usize).map_or("", String::as_str);
        let class = |at: &u32, found: &Return| classify(function(*at), found);
        let classes: Vec<Class> = table
            .statements
            .iter()
            .map(|statement| statement.returns.as_ref().map_or(Class::Plain, |found| class(&statement.function, found)))
            .collect();
        let scan_has_cores = table.statements.iter().any(|statement| {
            let cores = |found: &Return| callee(&found.set_to) == Some("select_idle_core");
            function(statement.function) == "select_idle_cpu" && statement.returns.as_ref().is_some_and(cores)
        });
        let keep_recent = classes.contains(&Class::Search(Exit::ClusterRecentUsed));
        Self { classes, scan_has_cores, keep_recent }
    }

    #[inline]
    fn class(&self, statement: u32) -> Class {
        self.classes.get(statement as usize).copied().unwrap_or(Class::Plain)
    }

    /// What wake_wide() said, if it was asked.
    pub(super) fn wide(&self, answer: &Answer<'_>) -> Option<bool> {
        answer.events().find_map(|event| match event {
            Event::Return { statement, value } if self.class(statement) == Class::Wide => Some(value != 0),
            _ => None,
        })
    }

    /// Whether a usable recently used CPU may be kept for the end of the search.
    pub(super) fn keep_recent(&self) -> bool {
        self.keep_recent
    }

    /// Which stage of the search a `return` ends without a CPU, for the record of the walk.
    pub(super) fn stage(&self, statement: u32, function: &str) -> Option<Exit> {
        Some(match (self.class(statement), function) {
            (Class::Limit, _) => Exit::BudgetSpent,
            (_, "select_idle_core") => Exit::IdleCore,
            (_, "select_idle_cpu") => Exit::IdleCpu,
            (_, "select_idle_smt") => Exit::IdleSmt,
            (_, "select_idle_capacity") => Exit::AsymCapacity,
            _ => return None,
        })
    }
}

/// Finds the deciding `return` of a walk, as its returns come.
#[derive(Debug)]
pub(super) struct Deciding {
    nr_cpu_ids: usize,
    exit: Option<Exit>,
    /// What select_idle_core() found, and whether that is a whole core.
    core: Option<(i64, bool)>,
    cores_tried: bool,
    capacity: bool,
    cluster: Option<i64>,
    gave_up: bool,
}

impl Deciding {
    /// On a machine of `nr_cpu_ids` CPUs.
    #[inline]
    pub(super) fn new(nr_cpu_ids: usize) -> Self {
        Self { nr_cpu_ids, exit: None, core: None, cores_tried: false, capacity: false, cluster: None, gave_up: false }
    }

    /// `statement` gave `value` back.
    #[inline]
    pub(super) fn returned(&mut self, exits: &Exits, statement: u32, value: i64) {
        let found = usize::try_from(value).is_ok_and(|cpu| cpu < self.nr_cpu_ids);
        match exits.class(statement) {
            Class::Plain | Class::Wide => {}
            class @ (Class::WholeCore | Class::Core) => {
                self.cores_tried = true;
                self.core = found.then_some((value, class == Class::WholeCore));
            }
            Class::Capacity => self.capacity = found,
            Class::Limit => self.gave_up = true,
            Class::Cluster => self.cluster = Some(value),
            Class::Slow(exit) | Class::Search(exit) => self.exit = Some(exit),
            Class::SearchCapacity => {
                self.exit = Some(if self.capacity { Exit::AsymCapacity } else { Exit::AsymFallback });
            }
            Class::SearchCore | Class::SearchScan => {
                let of_core = self.core.filter(|(cpu, _)| *cpu == value).map(|(_, whole)| whole);
                self.exit = Some(match of_core {
                    Some(true) => Exit::IdleCore,
                    Some(false) => Exit::IdleCandidate,
                    None if self.cluster == Some(value) => Exit::IdleCluster,
                    None if exits.scan_has_cores && self.cores_tried => Exit::IdleCandidate,
                    None => Exit::IdleCpu,
                });
            }
            Class::SearchLast => self.exit = Some(if self.gave_up { Exit::BudgetSpent } else { Exit::Fallback }),
        }
    }

    /// The last that decided.
    #[inline]
    pub(super) fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::NewCpu)
    }
}

/// The function called at the start of an expression.
fn callee(expression: &str) -> Option<&str> {
    let (name, _) = expression.split_once('(')?;
    let name = name.trim();
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(name)
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn classify(function: &str, found: &Return) -> Class {
    match function {
        "select_idle_sibling" => search(found),
        "select_idle_core" if found.value == "-1" => Class::Core,
        "select_idle_core" if names(&found.guard).any(|name| name == "idle") => Class::WholeCore,
        "select_idle_core" => Class::Core,
        "select_idle_cpu" | "select_idle_capacity" if found.value == "-1" && is_limit(&found.guard) => Class::Limit,
        "select_idle_cpu" if callee(&found.set_to) == Some("__select_idle_cpu") && !found.guard.is_empty() => {
            Class::Cluster
        }
        "select_idle_capacity" => Class::Capacity,
        "wake_wide" => Class::Wide,
        "find_idlest_cpu" | "sched_balance_find_dst_cpu" => {
            let outside = found.guard.contains("cpumask_intersects");
            Class::Slow(if outside { Exit::SlowOutside } else { Exit::Slow })
        }
        _ => Class::Plain,
    }
}

/// Whether a condition is about how far a scan may go.
fn is_limit(guard: &str) -> bool {
    const LIMITS: &[&str] = &["nr", "nr_idle_scan", "avg_idle", "avg_cost", "avg_scan_cost", "span_avg"];
    names(guard).any(|name| LIMITS.contains(&name))
}

fn search(found: &Return) -> Class {
    let source = if found.set_to.is_empty() { &found.value } else { &found.set_to };
    match callee(source) {
        Some("select_idle_smt") => return Class::Search(Exit::IdleSmt),
        Some("select_idle_core") => return Class::SearchCore,
        Some("select_idle_cpu") => return Class::SearchScan,
        Some("select_idle_capacity") => return Class::SearchCapacity,
        _ => {}
    }
    // Kept from the early steps for the end of the search.
    let late = found.guard.contains("nr_cpumask_bits") || found.guard.contains("nr_cpu_ids");
    let is_parameter = |at, name: &str| found.parameter == Some(at) || found.set_to == name;
    let idle = found.guard.contains("idle");
    if found.value == "recent_used_cpu" {
        Class::Search(if late { Exit::ClusterRecentUsed } else { Exit::RecentUsed })
    } else if found.parameter == Some(2) && found.guard.is_empty() {
        Class::SearchLast
    } else if is_parameter(2, "target") {
        Class::Search(if idle { Exit::Target } else { Exit::NoLlc })
    } else if found.guard.contains("is_per_cpu_kthread") {
        Class::Search(Exit::PerCpuKthread)
    } else if is_parameter(1, "prev") {
        Class::Search(if late { Exit::ClusterPrev } else { Exit::Prev })
    } else {
        Class::Search(Exit::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, guard: &str, set_to: &str, parameter: Option<usize>) -> Return {
        Return { value: value.to_owned(), guard: guard.to_owned(), set_to: set_to.to_owned(), parameter }
    }

    #[test]
    fn returns_of_the_search_by_their_shape() {
        let of =
            |value, guard, set_to, parameter| classify("select_idle_sibling", &found(value, guard, set_to, parameter));
        assert_eq!(of("target", "(available_idle_cpu(target))", "", Some(2)), Class::Search(Exit::Target));
        assert_eq!(of("target", "(!sd)", "", Some(2)), Class::Search(Exit::NoLlc));
        assert_eq!(of("target", "", "", Some(2)), Class::SearchLast);
        assert_eq!(of("prev", "(is_per_cpu_kthread(current))", "", Some(1)), Class::Search(Exit::PerCpuKthread));
        assert_eq!(of("prev", "(prev != target && available_idle_cpu(prev))", "", Some(1)), Class::Search(Exit::Prev));
        assert_eq!(of("i", "((unsigned)i < n)", "select_idle_cpu(p, sd, target)", None), Class::SearchScan);
        assert_eq!(of("best", "(best >= 0)", "my_own_search(p)", None), Class::Search(Exit::Other));
        assert_eq!(
            of("((unsigned)i < nr_cpumask_bits) ? i : target", "(sd)", "select_idle_capacity(p, sd, target)", None),
            Class::SearchCapacity
        );
    }

    #[test]
    fn a_scan_that_gives_up_is_told_from_one_that_finds_nothing() {
        let of = |guard| classify("select_idle_cpu", &found("-1", guard, "", None));
        assert_eq!(of("(!--nr)"), Class::Limit);
        assert_eq!(of("(!this_sd)"), Class::Plain);
        assert_eq!(of("(sched_feat(SIS_AVG_CPU) && avg_idle < avg_cost)"), Class::Limit);
    }
}
