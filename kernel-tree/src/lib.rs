// SPDX-License-Identifier: GPL-2.0-or-later
//! The wakeup path of a kernel tree, cut out, built and run in user space.

pub mod c;
pub mod config;
pub mod error;
pub mod extract;
pub mod standins;
