// SPDX-License-Identifier: GPL-2.0-or-later
//! The judges: what must hold of any decision, and of two implementations that ought to agree.
//!
//! A check takes facts and returns a [`Finding`] where something is wrong; it does not know whether a fuzzer, a test or
//! the command line called it.
//!
//! | oracle | kind | what must hold |
//! |---|---|---|
//! | `affinity` | invariant | the class's CPU is allowed, or is prev_cpu, which no release tests |
//! | `placement` | invariant | the final CPU is allowed and online, and the class's where that one is |
//! | `domain` | invariant | a scan's answer is inside the scanned domain |
//! | `idleness` | invariant | an exit for an idle CPU leads to an idle one |
//! | `stages` | invariant | an idle target is taken, else an idle prev_cpu that shares its cache |
//! | `conservation` | invariant | a scan that went to its end with nothing passed over no idle CPU; one that found took the first |
//! | `budget` | invariant | a scan looks at no more CPUs than its limit allows |
//! | `counters` | invariant | SIS counters add up and agree with the exit |
//! | `writes` | invariant | only the target's LLC loses has_idle_cores; what is written fits the release |
//! | `effects` | invariant | hidden state changes as declared, and nowhere else: not of other LLCs, CPUs, tasks |
//! | `provenance` | invariant | nothing is leaned on that was not read, and in a scenario nothing is unknown |
//! | `schedstat` | invariant | ttwu_move_affine is counted where this_cpu was chosen (only where asked for) |
//! | `faults` | invariant | no run queue beyond nr_cpu_ids |
//! | `determinism` | invariant | asked again, with and without a record of the walk: the same answer |
//! | `tried` | invariant | what a recording leaves open, tried at once and one by one, comes to the same |
//! | `twins` | differential | two implementations that a listed reason makes equal are equal |
//! | `explained` | differential | where two releases differ, a change on the list between them can matter |
//! | `relabel` | metamorphic | numbers of CPUs spread with their order kept change nothing but the numbers |
//! | `replay` | metamorphic | the case played again goes the same way |
//! | `panic` | | nothing panics |
//! | `fault` | | a kernel tree's code follows no null pointer and ends |

mod allow;
pub mod canary;
mod conserve;
mod effects;
pub mod explained;
mod invariants;
mod judge;
mod known;
mod lineups;
mod meta;
mod quiet;
mod scout;
#[cfg(feature = "tree")]
mod trees;
mod tried;
mod twins;

use std::fmt;

use crate::fair::{Brief, Decision, Exit};
use crate::machine::State;
use crate::spec::ModelSpec;
use crate::wakeup::Wakeup;

pub use allow::{AllowError, Allowed, Entry};
pub use effects::effects;

pub use invariants::{INVARIANTS, invariants_of};
use judge::panicked;
pub use judge::{Maker, Models, Options, Side, Tally, Trouble, attempt, try_case};
pub use known::{KNOWN, KnownBug, Seen};
pub use lineups::{LINEUPS, lineup};
pub use meta::{relabelled, replayed};
pub use scout::{Counts, Scout, spot};
#[cfg(feature = "tree")]
pub use trees::WithTrees;
pub use twins::{FAMILIES, Same, TWINS, Twin};

/// What one implementation did at one wakeup, and everything it could see.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its spec, where it is one of the models.
    pub spec: Option<&'a ModelSpec>,
    /// The machine at that moment.
    pub state: &'a State,
    /// The question.
    pub wakeup: &'a Wakeup,
    /// The answer.
    pub decision: &'a Decision,
    /// The walk in a few words.
    pub brief: &'a Brief,
}

/// A check of one trial.
pub type Check = fn(&Trial<'_>) -> Result<(), Box<Finding>>;

/// Something that ought not to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which oracle speaks.
    pub oracle: &'static str,
    /// Names of the implementation or the two concerned.
    pub implementations: Vec<String>,
    /// Exits they took.
    pub exits: Vec<Exit>,
    /// The condition in few words, the same whenever the cause is the same.
    pub condition: String,
    /// The listed kernel bug that explains it.
    pub known: Option<&'static KnownBug>,
    /// The whole story with its numbers.
    pub text: String,
    /// Place of the event in the case, from 1; 0: not at an event.
    pub event: usize,
}

/// A CPU for a finding's text.
fn shown(cpu: Option<crate::units::Cpu>) -> String {
    cpu.map_or_else(|| "none".to_owned(), |cpu| cpu.to_string())
}

/// What makes two findings the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(&'static str, Vec<String>, Vec<Exit>, String);

impl Finding {
    /// A finding about one trial.
    pub fn of(oracle: &'static str, trial: &Trial<'_>, condition: impl Into<String>, text: String) -> Self {
        Self {
            oracle,
            implementations: vec![trial.name.to_owned()],
            exits: vec![trial.decision.exit],
            condition: condition.into(),
            known: None,
            text,
            event: 0,
        }
    }

    /// A short name for a file: oracle, exits, condition.
    pub fn slug(&self) -> String {
        let exits = self.exits.iter().map(|exit| format!("{exit:?}"));
        let words = std::iter::once(self.oracle.to_owned()).chain(exits).chain([self.condition.clone()]);
        let text = words.collect::<Vec<_>>().join("-");
        let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
        let mut slug = String::new();
        for c in kept.filter(char::is_ascii).take(80) {
            if c != '-' || !slug.ends_with('-') {
                slug.push(c);
            }
        }
        slug.trim_matches('-').to_owned()
    }

    /// For telling findings apart, and for shrinking without running after another one.
    pub fn key(&self) -> Key {
        Key(self.oracle, self.implementations.clone(), self.exits.clone(), self.condition.clone())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.oracle, self.implementations.join(" against "), self.condition)?;
        if !self.exits.is_empty() {
            let exits: Vec<String> = self.exits.iter().map(|exit| format!("{exit:?}")).collect();
            write!(f, " ({})", exits.join(", "))?;
        }
        write!(f, "\n  {}", self.text)?;
        if self.event > 0 {
            write!(f, "\n  at event {}", self.event)?;
        }
        if let Some(known) = self.known {
            write!(f, "\n  known: {known}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exits: Vec<String> = self.2.iter().map(|exit| format!("{exit:?}")).collect();
        write!(f, "{} {} {} {}", self.0, self.1.join(","), exits.join(","), self.3)
    }
}
