// SPDX-License-Identifier: GPL-2.0-or-later
//! What changed in the wakeup path from each release to the next: a changelog that can fail.
//!
//! Each [`Change`] has a predicate that tells from the state whether it can alter a decision there. A difference between
//! two neighbouring releases that no listed change explains is a mistake in a model, or in the list.

mod list;
mod search;
mod when;

use crate::fair::hidden::Hidden;
use crate::machine::State;
use crate::spec::{ModelSpec, RELEASES, ReleaseInfo};
use crate::wakeup::Wakeup;

/// One change of the wakeup path.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// A short name.
    pub name: &'static str,
    /// The commit, where it is known.
    pub commit: Option<&'static str>,
    /// Since when: the release that it came in.
    pub since: &'static str,
    /// What it is, in a line.
    pub meaning: &'static str,
    /// Whether it can alter the decision here.
    pub can_matter: fn(&Site<'_>) -> bool,
}

/// A wakeup at its moment, as two implementations see it.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// The machine.
    pub state: &'a State,
    /// The question.
    pub wakeup: &'a Wakeup,
    /// The older implementation's hidden state before its decision.
    pub older: &'a Hidden,
    /// The newer one's.
    pub newer: &'a Hidden,
    /// The older implementation.
    pub older_spec: &'a ModelSpec,
    /// The newer one.
    pub newer_spec: &'a ModelSpec,
}

/// The changes from one release of the table to the next.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The older release.
    pub from: &'static ReleaseInfo,
    /// The next one.
    pub to: &'static ReleaseInfo,
    /// What changed.
    pub changes: &'static [Change],
}

/// Every step from `from` to `to`, oldest first whichever of the two is the newer; empty if they are the same.
pub fn between(from: &ReleaseInfo, to: &ReleaseInfo) -> Vec<Step> {
    let at = |info: &ReleaseInfo| RELEASES.iter().position(|one| one.name == info.name).unwrap_or(0);
    let (from, to) = (at(from).min(at(to)), at(from).max(at(to)));
    (from..to)
        .map(|i| Step { from: &RELEASES[i], to: &RELEASES[i + 1], changes: list::of(RELEASES[i + 1].name) })
        .collect()
}

/// The changes on the way from the older to the newer implementation that can alter the decision at `site`.
pub fn that_can_matter(site: &Site<'_>) -> Vec<&'static Change> {
    let steps = between(site.older_spec.info(), site.newer_spec.info());
    steps.iter().flat_map(|step| step.changes).filter(|change| (change.can_matter)(site)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_through_the_table() {
        let info = |name: &str| RELEASES.iter().find(|info| info.name == name).expect(name);
        let steps = between(info("v5.11"), info("v6.12"));
        let names: Vec<_> = steps.iter().map(|step| (step.from.name, step.to.name)).collect();
        assert_eq!(names, [("v5.11", "v6.1"), ("v6.1", "v6.12")]);
        assert_eq!(between(info("v6.12"), info("v5.11")).len(), 2);
        assert!(between(info("v6.1"), info("v6.1")).is_empty());
        assert_eq!(RELEASES.len(), between(&RELEASES[0], &RELEASES[RELEASES.len() - 1]).len() + 1);
    }

    #[test]
    fn every_change_is_told_in_a_line_and_once() {
        for step in between(&RELEASES[0], &RELEASES[RELEASES.len() - 1]) {
            assert!(!step.changes.is_empty(), "{} to {}", step.from.name, step.to.name);
            for (i, change) in step.changes.iter().enumerate() {
                assert!(step.changes[..i].iter().all(|other| other.name != change.name), "{}", change.name);
                assert!(change.commit.is_none_or(|commit| commit.len() == 12), "{}", change.name);
                assert!(!change.meaning.contains('\n') && !change.meaning.ends_with('.'), "{}", change.name);
            }
        }
    }
}
