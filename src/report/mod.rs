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
pub mod html;
pub mod info;
pub mod json;
pub mod layout;
pub mod list;
pub mod merged;
pub mod picture;
pub mod placements;
pub mod plot;
pub mod shell;
pub mod sis;
pub mod text;
pub mod walks;
