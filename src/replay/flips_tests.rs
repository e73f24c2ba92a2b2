// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

const NARROW: (Cpu, Cpu) = (Cpu(0), Cpu(0));
const WIDE: (Cpu, Cpu) = (Cpu(1), Cpu(1));

/// The kernel chose `cpu` where the kin of stamp 7 lack `lacks` flips; what is learned.
fn choose(flips: &mut Flips, lacks: u32, cpu: u16) -> Vec<HiddenFact> {
    flips.held.push_back(Question { number: 1, stamp_jiffies: 7, lacks, narrow: NARROW, wide: WIDE });
    flips.chosen(1, Choice { class_cpu: Some(Cpu(cpu)), final_cpu: None });
    flips.take()
}

#[test]
fn two_wide_wakeups_show_what_is_lacking() {
    let mut flips = Flips::default();
    assert_eq!(choose(&mut flips, 5, 1), []);
    assert_eq!(choose(&mut flips, 5, 1), [HiddenFact::FlipsOfKin(7, 5)]);
    assert_eq!(choose(&mut flips, 0, 1), [], "it is enough now");
}

#[test]
fn wakeups_that_were_not_wide_take_it_back() {
    let mut flips = Flips::default();
    choose(&mut flips, 5, 1);
    choose(&mut flips, 5, 1);
    let learned: Vec<HiddenFact> = (0..4).flat_map(|_| choose(&mut flips, 0, 0)).collect();
    assert_eq!(learned, [HiddenFact::FlipsOfKin(7, -5)]);
}

#[test]
fn a_choice_that_is_neither_teaches_nothing() {
    let mut flips = Flips::default();
    for _ in 0..5 {
        assert_eq!(choose(&mut flips, 5, 2), []);
    }
    assert!(flips.kin.is_empty());
}

#[test]
fn one_that_lacks_none_speaks_for_them_once_they_were_given() {
    let mut flips = Flips::default();
    choose(&mut flips, 5, 1);
    assert_eq!(choose(&mut flips, 5, 0), []);
    assert_eq!(choose(&mut flips, 5, 1), [], "one for it, one against it");
    assert_eq!(choose(&mut flips, 5, 1), [HiddenFact::FlipsOfKin(7, 5)]);
}
