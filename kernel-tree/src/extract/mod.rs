// SPDX-License-Identifier: GPL-2.0-or-later
//! Cutting the wakeup path out of a tree.

pub mod assemble;
pub mod closure;
pub mod instrument;
pub mod keeps;
pub mod library;
pub mod members;
pub mod reads;
pub mod tables;
