// SPDX-License-Identifier: GPL-2.0-or-later
//! Pictures: numbers → inline SVG. Pure; knows neither recordings nor reports.
//!
//! Own code, about as long as the set-up of a plotting crate would be: colours come from the page's style sheet (light,
//! dark, print), text stays text, and the same numbers give the same bytes.

pub mod axis;
pub mod bars;
pub mod curves;
pub mod heat;
pub mod steps;
pub mod svg;
