// SPDX-License-Identifier: GPL-2.0-or-later
//! The side file in a replay: laid over the machine before the first event, and what became of it after the last.

use std::collections::BTreeMap;

use crate::affinity::{AffinityError, Einval};
use crate::machine::{Machine, RuleUse, Stated};
use crate::replay::error::ReplayError;
use crate::replay::outcome::{AffinityUse, GroupCount, RuleCount};
use crate::replay::setup::SideFile;

/// Lays `side` over `machine`.
///
/// # Errors
/// Where a mask leaves none of the machine's online CPUs.
pub fn lay(side: &SideFile, machine: &mut Machine) -> Result<(), ReplayError> {
    side.rules.check(machine.state().topology.online()).map_err(|error| wrong(side, error))?;
    machine.state_rules(side.rules.clone());
    Ok(())
}

fn wrong(side: &SideFile, error: AffinityError) -> ReplayError {
    ReplayError::Affinity { file: side.name.clone(), error: Box::new(error) }
}

/// What became of each rule and group.
///
/// # Errors
/// Where rules contradict each other: preferred CPUs of which the file itself allows none.
pub fn used(side: &SideFile, stated: &Stated) -> Result<AffinityUse, ReplayError> {
    let rules = || side.rules.rules.iter().zip(stated.uses());
    if let Some((rule, using)) = rules().find(|(_, using)| !using.contradicted.is_empty()) {
        let pid = using.contradicted.first().map_or(0, |pid| pid.0);
        return Err(wrong(
            side,
            AffinityError::Einval {
                place: rule.title.clone(),
                key: "preferred",
                mask: rule.preferred.map(|mask| mask.to_string()).unwrap_or_default(),
                why: format!("another rule or the group allows task {pid} none of these CPUs"),
            },
        ));
    }
    let members = side.rules.groups.iter().zip(stated.members());
    Ok(AffinityUse {
        file: side.name.clone(),
        rules: rules()
            .map(|(rule, using)| RuleCount {
                rule: rule.title.clone(),
                tasks: using.tasks.len() as u64,
                refused: refused(using),
            })
            .collect(),
        groups: members
            .map(|(group, tasks)| GroupCount { group: group.name.clone(), tasks: tasks.len() as u64 })
            .collect(),
    })
}

fn refused(using: &RuleUse) -> BTreeMap<String, u64> {
    let reason = |einval: &Einval| match einval {
        Einval::Empty => "none of the CPUs is allowed",
        Einval::NotFair => "soft affinity of a task that is not of the fair class",
        Einval::Bound => "a kernel thread bound to its CPU",
    };
    using.refused.iter().map(|(einval, tasks)| (reason(einval).to_owned(), tasks.len() as u64)).collect()
}

/// What a reader has to know of it: rules that matched nothing, and those that the kernel would have refused.
pub fn notes(using: &AffinityUse) -> Vec<String> {
    let file = &using.file;
    let mut notes = Vec::new();
    for rule in &using.rules {
        if rule.tasks == 0 {
            notes.push(format!("{file}: {} matched no task", rule.rule));
        }
        for (reason, tasks) in &rule.refused {
            notes.push(format!("{file}: {}: -EINVAL for {tasks} of {} tasks: {reason}", rule.rule, rule.tasks));
        }
    }
    for group in using.groups.iter().filter(|group| group.tasks == 0) {
        notes.push(format!("{file}: group {:?} has no members", group.group));
    }
    notes
}
