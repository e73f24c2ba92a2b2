// SPDX-License-Identifier: GPL-2.0-or-later
//! What things cost: the numbers of `cost.toml`, each of which a file or a sweep can set.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::fair::ProbeCosts;
use crate::hint::did_you_mean;
use crate::topology::Distance;

/// The defaults, with their sources.
pub const DEFAULTS: &str = include_str!("cost.toml");

/// Costs, ns unless the name says otherwise; `cost.toml` says what each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Cost {
    pub context_switch_ns: u64,
    pub wakeup_local_ns: u64,
    pub wakeup_remote_ns: u64,
    pub ipi_ns: u64,
    pub interrupt_ns: u64,
    pub fork_ns: u64,
    pub clock_read_ns: u64,
    pub mask_op_ns: u64,
    pub probe_core_ns: u64,
    pub probe_llc_ns: u64,
    pub probe_node_ns: u64,
    pub probe_remote_ns: u64,
    pub refill_llc_ns_per_kib: u64,
    pub refill_remote_ns_per_kib: u64,
    pub refill_max_kib: u64,
    pub exchange_core_ns: u64,
    pub exchange_llc_ns: u64,
    pub exchange_node_ns: u64,
    pub exchange_remote_ns: u64,
    pub smt_slowdown_percent: u64,
    pub balance_ns_per_cpu: u64,
    pub idle1_exit_ns: u64,
    pub idle1_residency_ns: u64,
    pub idle2_exit_ns: u64,
    pub idle2_residency_ns: u64,
    pub idle3_exit_ns: u64,
    pub idle3_residency_ns: u64,
}

type Field = (&'static str, fn(&mut Cost) -> &mut u64);

macro_rules! fields {
    ($($name:ident)*) => { &[$((stringify!($name), |cost| &mut cost.$name)),*] };
}

/// Every cost by name.
const FIELDS: &[Field] = fields!(
    context_switch_ns wakeup_local_ns wakeup_remote_ns ipi_ns interrupt_ns fork_ns clock_read_ns mask_op_ns
    probe_core_ns probe_llc_ns probe_node_ns probe_remote_ns refill_llc_ns_per_kib refill_remote_ns_per_kib
    refill_max_kib exchange_core_ns exchange_llc_ns exchange_node_ns exchange_remote_ns smt_slowdown_percent
    balance_ns_per_cpu idle1_exit_ns idle1_residency_ns idle2_exit_ns idle2_residency_ns idle3_exit_ns
    idle3_residency_ns
);

/// The largest value of a cost: a second.
const MAX: u64 = 1_000_000_000;

/// Why costs cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// Text that is no TOML of the expected form.
    #[error("costs: {0}")]
    Toml(String),
    /// A key that there is not.
    #[error("costs: no cost {found:?}{hint}; `sisdiff simulate --print-cost` lists them")]
    Key {
        /// The key.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
    },
    /// A value that is too large.
    #[error("costs: {key} is {found}, expected at most {MAX}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        found: u64,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Number(u64),
    Table {
        value: u64,
        #[serde(default, rename = "source")]
        _source: Option<String>,
    },
}

impl Cost {
    /// The defaults.
    pub fn new() -> Self {
        let mut cost = Self::default();
        cost.read(DEFAULTS).expect("the defaults are part of the program");
        cost
    }

    /// Everything free: for what follows from queues alone.
    pub fn free() -> Self {
        Self::default()
    }

    /// Takes the values that a file gives; the others stay.
    ///
    /// # Errors
    /// [`CostError`] names the key.
    pub fn read(&mut self, text: &str) -> Result<(), CostError> {
        let entries: BTreeMap<String, Entry> =
            toml::from_str(text).map_err(|error| CostError::Toml(error.to_string()))?;
        for (key, entry) in entries {
            let (Entry::Number(value) | Entry::Table { value, .. }) = entry;
            self.set(&key, value)?;
        }
        Ok(())
    }

    /// Sets one.
    ///
    /// # Errors
    /// [`CostError::Key`] or [`CostError::Value`].
    pub fn set(&mut self, key: &str, value: u64) -> Result<(), CostError> {
        let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
        let field = FIELDS.iter().find(|(name, _)| *name == key);
        let (_, field) =
            field.ok_or_else(|| CostError::Key { found: key.to_owned(), hint: did_you_mean(key, &names) })?;
        if value > MAX {
            return Err(CostError::Value { key: key.to_owned(), found: value });
        }
        *field(self) = value;
        Ok(())
    }

    /// Names and values.
    pub fn values(&self) -> Vec<(&'static str, u64)> {
        let mut copy = *self;
        FIELDS.iter().map(|(name, field)| (*name, *field(&mut copy))).collect()
    }

    /// What an idle check costs.
    pub fn probes(&self) -> ProbeCosts {
        ProbeCosts {
            core_ns: self.probe_core_ns,
            llc_ns: self.probe_llc_ns,
            node_ns: self.probe_node_ns,
            remote_ns: self.probe_remote_ns,
        }
    }

    /// What a task pays for its caches after it moved so far.
    pub fn refill(&self, distance: Distance, footprint_kib: u64) -> u64 {
        let kib = footprint_kib.min(self.refill_max_kib);
        match distance {
            Distance::Same | Distance::Core => 0,
            Distance::Llc => kib * self.refill_llc_ns_per_kib,
            Distance::Node | Distance::Remote => kib * self.refill_remote_ns_per_kib,
        }
    }

    /// What a wakee pays for its waker's data so far away.
    pub fn exchange(&self, distance: Distance) -> u64 {
        match distance {
            Distance::Same | Distance::Core => self.exchange_core_ns,
            Distance::Llc => self.exchange_llc_ns,
            Distance::Node => self.exchange_node_ns,
            Distance::Remote => self.exchange_remote_ns,
        }
    }

    /// How long so much work takes beside a busy sibling.
    pub fn beside_sibling(&self, ns: u64) -> u64 {
        ns + ns * self.smt_slowdown_percent / 100
    }

    /// Exit latency of the deepest idle state that pays for a period of so long: state 0 polls.
    pub fn idle_state(&self, predicted_ns: u64) -> IdleState {
        let states = [
            (3, self.idle3_residency_ns, self.idle3_exit_ns),
            (2, self.idle2_residency_ns, self.idle2_exit_ns),
            (1, self.idle1_residency_ns, self.idle1_exit_ns),
        ];
        let deepest = states.iter().find(|(_, residency, _)| *residency > 0 && predicted_ns >= *residency);
        deepest.map_or(IdleState { depth: 0, exit_ns: 0 }, |&(depth, _, exit_ns)| IdleState { depth, exit_ns })
    }
}

/// How deep a CPU sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IdleState {
    /// 0: it polls, and needs no interrupt to see new work.
    pub depth: u8,
    /// How long it takes to wake, ns.
    pub exit_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_has_a_default_with_a_source() {
        #[derive(Deserialize)]
        struct Told {
            value: u64,
            source: String,
        }
        let told: BTreeMap<String, Told> = toml::from_str(DEFAULTS).expect("TOML");
        assert_eq!(told.len(), FIELDS.len());
        let cost = Cost::new();
        for (name, value) in cost.values() {
            assert_eq!(told[name].value, value, "{name}");
            assert!(told[name].source.len() > 10, "{name}");
        }
    }

    #[test]
    fn what_is_set_is_set_and_what_is_not_there_refused() {
        let mut cost = Cost::new();
        cost.read("ipi_ns = 7\n[fork_ns]\nvalue = 8\n").expect("costs");
        assert_eq!((cost.ipi_ns, cost.fork_ns), (7, 8));
        let error = cost.read("ipi = 7").expect_err("no such key").to_string();
        assert!(error.contains("ipi_ns"), "{error}");
        assert!(cost.set("ipi_ns", 2_000_000_000).is_err());
    }

    #[test]
    fn long_sleeps_are_deep() {
        let cost = Cost::new();
        let depth = |ns| cost.idle_state(ns).depth;
        assert_eq!([depth(0), depth(5_000), depth(30_000), depth(1_000_000)], [0, 1, 2, 3]);
        assert_eq!(Cost::free().idle_state(1_000_000), IdleState::default());
    }
}
