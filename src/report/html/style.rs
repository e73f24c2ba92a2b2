// SPDX-License-Identifier: GPL-2.0-or-later
//! The style sheet and the script, as they stand beside this file.

/// Colours told apart by the colour-blind (Okabe and Ito's for series, one hue for counts, blue and orange for
/// differences), in light and dark; a phone's width; print.
pub const STYLE: &str = include_str!("report.css");

/// Sorts and filters tables, and opens what a link leads to. Nothing is missing without it.
pub const SCRIPT: &str = include_str!("report.js");
