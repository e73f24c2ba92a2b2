// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks of a whole case: changed in a way that must not matter, it goes the same way.

use crate::cpumask::MAX_CPUS;
use crate::fair::{Decision, Writes};
use crate::oracle::{Finding, Maker, Options, Tally, Trouble, attempt};
use crate::scenario::Case;
use crate::units::Cpu;

/// The number that CPU `cpu` gets: order is kept, holes come between.
fn spread(cpu: Cpu) -> Cpu {
    Cpu(cpu.0 * 2 + 1)
}

/// CPU numbers spread over twice the range, in the same order, change nothing but the numbers. (Other renumberings would:
/// every scan goes by the order of numbers.) `tally` is what the case gave as it is.
///
/// # Errors
/// [`Trouble::Finding`] where something else changed.
pub fn relabelled<S: AsRef<str>>(
    case: &Case,
    tally: &Tally,
    names: &[S],
    maker: &dyn Maker,
    options: Options,
) -> Result<(), Trouble> {
    if case.machine.nr_cpu_ids() * 2 > MAX_CPUS {
        return Ok(());
    }
    let other = attempt(&case.renumbered(spread), names, maker, options)?;
    let expected = tally.trail.iter().map(renumber);
    compare("relabel", names, expected, &other)
}

/// Played again, the case goes the same way.
///
/// # Errors
/// [`Trouble::Finding`] where it does not.
pub fn replayed<S: AsRef<str>>(
    case: &Case,
    tally: &Tally,
    names: &[S],
    maker: &dyn Maker,
    options: Options,
) -> Result<(), Trouble> {
    let other = attempt(case, names, maker, options)?;
    compare("replay", names, tally.trail.iter().copied(), &other)
}

fn renumber(decision: &Decision) -> Decision {
    let writes = decision.writes;
    Decision {
        class_cpu: spread(decision.class_cpu),
        final_cpu: spread(decision.final_cpu),
        writes: Writes {
            p_recent_used_cpu: writes.p_recent_used_cpu.map(spread),
            current_recent_used_cpu: writes.current_recent_used_cpu.map(spread),
            ..writes
        },
        ..*decision
    }
}

fn compare<S: AsRef<str>>(
    oracle: &'static str,
    names: &[S],
    expected: impl ExactSizeIterator<Item = Decision>,
    found: &Tally,
) -> Result<(), Trouble> {
    let lengths = (expected.len(), found.trail.len());
    let mut pairs = expected.zip(&found.trail).enumerate();
    let differs = pairs.find(|(_, (expected, found))| expected != *found);
    let (at, exits, text) = match differs {
        Some((at, (expected, found))) => {
            (at, vec![expected.exit, found.exit], format!("{found:?}, expected {expected:?}"))
        }
        None if lengths.0 != lengths.1 => (0, Vec::new(), format!("{} decisions, expected {}", lengths.1, lengths.0)),
        None => return Ok(()),
    };
    Err(Trouble::Finding(Box::new(Finding {
        oracle,
        implementations: vec![names[at % names.len()].as_ref().to_owned()],
        exits,
        condition: "another decision".to_owned(),
        known: None,
        text: format!("decision {}: {text}", at / names.len() + 1),
        event: 0,
    })))
}
