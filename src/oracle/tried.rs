// SPDX-License-Identifier: GPL-2.0-or-later
//! What a replay asks beside the decision where a recording leaves something open: would the other sync flag, or other
//! wakee flips, have led elsewhere? A model tries only what the walk that it made shows to matter; the seam's own way tries
//! everything, one after the other. Both have to say the same.

use crate::fair::{Decision, Hidden, Implementation, Step, Tried, Walk};
use crate::machine::{Inputs, State};
use crate::oracle::Finding;
use crate::wakeup::Wakeup;

/// An implementation in the seam's own way: whatever it does in a cleverer one is left out.
struct Plain<'a>(&'a mut dyn Implementation);

impl Implementation for Plain<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn reads(&self) -> Inputs {
        self.0.reads()
    }

    fn step(&mut self, state: &State, step: &Step) {
        self.0.step(state, step);
    }

    fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.0.select_task_rq(state, wakeup, walk)
    }

    fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
        self.0.peek(state, wakeup, walk)
    }

    fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
        self.0.peek_wide(state, wakeup)
    }
}

/// What one way said, and the hidden state that it left.
type Said = (Option<(Decision, Tried)>, Hidden);

/// A way to ask.
type Way<'a> = &'a dyn Fn(&mut dyn Implementation) -> Option<(Decision, Tried)>;

/// Both ways, with the sync flag and the wakee flips of both tasks taken for unknown. Hidden state is left as it was;
/// where it cannot be set, nothing is asked.
///
/// # Errors
/// The first thing that differs.
pub(super) fn tried(
    implementation: &mut dyn Implementation,
    state: &State,
    wakeup: &Wakeup,
) -> Result<(), Box<Finding>> {
    let Some(hidden) = implementation.hidden_mut() else { return Ok(()) };
    let before = hidden.clone();
    for id in [wakeup.p, wakeup.current] {
        hidden.task_mut(id, state.tasks[id].task_cpu).known.set_unknown(Inputs::WAKEE_FLIPS);
    }
    let open = hidden.clone();
    let mut ask = |way: Way<'_>| -> Said {
        set(implementation, &open);
        let said = way(implementation);
        (said, implementation.hidden().cloned().unwrap_or_else(|| open.clone()))
    };
    let unless = Inputs::NR_IDLE_SCAN;
    let one_by_one = ask(&|i| Some(Plain(i).select_and_try(state, wakeup, true, None)));
    let at_once = ask(&|i| Some(i.select_and_try(state, wakeup, true, None)));
    let one_by_one_unless = ask(&|i| Plain(i).select_and_try_unless(unless, state, wakeup, true));
    let at_once_unless = ask(&|i| i.select_and_try_unless(unless, state, wakeup, true));
    set(implementation, &before);
    let decision = at_once.0.map(|(decision, _)| decision);
    let refused = (None, open.clone());
    let reads = decision.is_some_and(|decision| decision.read.intersects(unless));
    let pairs = [
        ("tried at once", &one_by_one, &at_once),
        ("refused, one by one", if reads { &refused } else { &one_by_one }, &one_by_one_unless),
        ("refused, at once", if reads { &refused } else { &at_once }, &at_once_unless),
    ];
    for (what, expected, found) in pairs {
        if !is_same(expected, found) {
            return Err(Box::new(Finding {
                oracle: "tried",
                implementations: vec![implementation.name().to_owned()],
                exits: decision.iter().map(|decision| decision.exit).collect(),
                condition: what.to_owned(),
                known: None,
                text: if expected.0 == found.0 {
                    "hidden state is left in another way".to_owned()
                } else {
                    format!("{:?}, expected {:?}", found.0, expected.0)
                },
                event: 0,
            }));
        }
    }
    Ok(())
}

fn set(implementation: &mut dyn Implementation, hidden: &Hidden) {
    if let Some(own) = implementation.hidden_mut() {
        own.clone_from(hidden);
    }
}

/// The other sync flag need not have been tried where the walk did not ask for the flag.
fn is_same((expected, left): &Said, (found, left_by_found): &Said) -> bool {
    let said = match (expected, found) {
        (Some((decision, tried)), Some((other, others))) => {
            let untried = others.other_sync.is_none() && tried.sync == Some(false);
            let other_sync = if untried { None } else { tried.other_sync };
            decision == other && Tried { other_sync, ..*tried } == *others
        }
        (None, None) => true,
        _ => false,
    };
    said && left == left_by_found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Model;
    use crate::oracle::{Maker, Models, Options, Side, Trouble, attempt};
    use crate::scenario::{Case, World};

    /// A model that takes the answer for the same whatever is open.
    struct Careless(Model);

    impl Implementation for Careless {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn reads(&self) -> Inputs {
            self.0.reads()
        }
        fn step(&mut self, state: &State, step: &Step) {
            self.0.step(state, step);
        }
        fn select_task_rq(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
            self.0.select_task_rq(state, wakeup, walk)
        }
        fn peek(&mut self, state: &State, wakeup: &Wakeup, walk: Option<&mut Walk>) -> Decision {
            self.0.peek(state, wakeup, walk)
        }
        fn peek_wide(&mut self, state: &State, wakeup: &Wakeup) -> Option<[Decision; 2]> {
            self.0.peek_wide(state, wakeup)
        }
        fn select_and_try(
            &mut self,
            state: &State,
            wakeup: &Wakeup,
            _is_sync_open: bool,
            walk: Option<&mut Walk>,
        ) -> (Decision, Tried) {
            let tried = Tried { sync: Some(false), other_sync: None, flips: Some(false), both: false };
            (self.select_task_rq(state, wakeup, walk), tried)
        }
        fn hidden(&self) -> Option<&Hidden> {
            self.0.hidden()
        }
        fn hidden_mut(&mut self) -> Option<&mut Hidden> {
            self.0.hidden_mut()
        }
    }

    struct Makes;

    impl Maker for Makes {
        fn make(&self, name: &str, case: &Case, world: &World) -> Result<Side, Trouble> {
            let side = Models.make(name, case, world)?;
            let model = Model::new(name.parse()?, &world.state().topology);
            Ok(Side { implementation: Box::new(Careless(model)), ..side })
        }
    }

    fn speakers(maker: &dyn Maker) -> Vec<&'static str> {
        let cases = (0..200).map(|number| crate::fuzz_loop::case(5, number));
        let found = cases.filter_map(|case| attempt(&case, &["v5.11"], maker, Options::default()).err());
        let of = |trouble| if let Trouble::Finding(finding) = trouble { finding.oracle } else { "trouble" };
        found.map(of).collect()
    }

    #[test]
    fn who_does_not_try_is_found_out() {
        assert!(speakers(&Makes).contains(&"tried"));
        assert!(!speakers(&Models).contains(&"tried"));
    }
}
