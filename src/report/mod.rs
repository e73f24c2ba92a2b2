// SPDX-License-Identifier: GPL-2.0-or-later
//! Comparisons → text and JSON. Pure functions; whoever calls prints.

pub mod agreement;
pub mod counters;
pub mod cut;
pub mod decisions;
pub mod explain;
pub mod fidelity;
pub mod fidelity_json;
pub mod fidelity_md;
pub mod funcgraph;
pub mod fuzz;
pub mod gate;
pub mod gate_ci;
pub mod gate_json;
pub mod gate_junit;
#[cfg(test)]
mod gate_samples;
pub mod gate_sarif;
pub mod html;
pub mod info;
pub mod json;
pub mod layout;
pub mod list;
pub mod merged;
pub mod picture;
pub mod placements;
pub mod plot;
pub mod reality;
pub mod reproduction;
pub mod shards;
pub mod shell;
pub mod simulate;
pub mod simulate_json;
pub mod sis;
pub mod text;
pub mod walks;
