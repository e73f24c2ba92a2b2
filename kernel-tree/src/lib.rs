// SPDX-License-Identifier: GPL-2.0-or-later
//! The wakeup path of a kernel tree, cut out, built and run in user space.

#![deny(unsafe_code)]

pub mod build;
pub mod c;
pub mod config;
pub mod error;
pub mod extract;
pub mod run;
pub mod source;
pub mod standins;
pub mod tree;
