// SPDX-License-Identifier: GPL-2.0-or-later
//! Words for kinds of decisions, verdicts and differences: those of `docs/decision.schema.json`.

#[cfg(feature = "parquet")]
use crate::compare::Verdict;
use crate::compare::{Class, Distance, Load, Outside};
use crate::replay::Role;
use crate::wakeup::WakeKind;

pub(super) fn kind(kind: WakeKind) -> &'static str {
    match kind {
        WakeKind::Ttwu => "wakeup",
        WakeKind::Fork => "fork",
        WakeKind::Exec => "exec",
    }
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Baseline => "baseline",
        Role::Patched => "patched",
        Role::Recorded => "recorded",
    }
}

pub(super) fn class(class: Class) -> &'static str {
    match class {
        Class::Known => "known",
        Class::Assumed => "assumed",
        Class::Unknown => "unknown",
    }
}

#[cfg(feature = "parquet")]
pub(super) fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Agree { .. } => "agree",
        Verdict::Diverge { .. } => "diverge",
        Verdict::Unknown { .. } => "unknown",
    }
}

pub(super) fn distance(distance: Distance) -> &'static str {
    match distance {
        Distance::SameCore => "same-core",
        Distance::OtherCore => "other-core",
        Distance::OtherLlc => "other-llc",
        Distance::OtherNode => "other-node",
    }
}

pub(super) fn load(load: Load) -> &'static str {
    match load {
        Load::Alike => "alike",
        Load::IdleToBusy => "idle-to-busy",
        Load::BusyToIdle => "busy-to-idle",
        Load::CoreToSibling => "core-to-sibling",
        Load::SiblingToCore => "sibling-to-core",
    }
}

pub(super) fn outside(outside: Outside) -> &'static str {
    match outside {
        Outside::Neither => "neither",
        Outside::Baseline => "baseline",
        Outside::Patched => "patched",
        Outside::Both => "both",
    }
}
